"""From a campaign to its plan: who judges, who is judged, and on what."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from venire.arena.campaigns import Campaign, JudgeSettings
from venire.arena.errors import InputError
from venire.arena.keys import respondent_key
from venire.arena.planning import PlanState
from venire.arena.records import GENERATE, RECORDED, Matchup, Respondent, Shape
from venire.judges import PROTOCOLS
from venire.orchestrator.expand import Design, LeftOut, expand
from venire.orchestrator.policies import POLICIES, gap
from venire.orchestrator.recorded import Recording, Replayed, pairs, read_recordings, tell
from venire.storage import frames, imports, plans
from venire.storage.plans import Answers
from venire.storage.store import Store

__all__ = ["PlannedCampaign", "design", "judges_pairs", "plan_campaign", "rates_models", "respondents", "select_models"]


@dataclass(frozen=True, slots=True)
class PlannedCampaign:
    """A campaign with its plan in the store: its number, judge names by respondent number, and what was chosen."""

    id: int
    judges: Mapping[int, JudgeSettings]
    design: Design
    trials: int
    equal_texts: int
    """Battles left out because both sides have the same text."""


def respondents(campaign: Campaign) -> list[tuple[JudgeSettings, Respondent]]:
    """The judges of a campaign as respondents.

    Raises InputError for an unknown protocol, for options that it does not take, and for two judges that are the same
    but for their names.
    """
    found: list[tuple[JudgeSettings, Respondent]] = []
    keys: dict[bytes, str] = {}
    for judge in campaign.judges:
        if judge.protocol not in PROTOCOLS or (judge.protocol == GENERATE and judge not in campaign.contestants):
            known = ", ".join(name for name in PROTOCOLS if name != GENERATE)
            raise InputError(
                f"{campaign.path}: judge {judge.name!r}: no protocol {judge.protocol!r}; there is: {known}"
            )
        entry = PROTOCOLS[judge.protocol]
        try:
            entry.check(judge.options)
        except InputError as error:
            raise InputError(f"{campaign.path}: {_who(judge)}: {error}") from None
        respondent = Respondent(
            judge.model,
            judge.protocol,
            judge.origin,
            tuple(sorted(judge.options.items())),
            entry.digests(judge.options),
        )
        twin = keys.setdefault(respondent_key(respondent), judge.name)
        if twin != judge.name:
            raise InputError(
                f"{campaign.path}: {twin!r} and {judge.name!r} are the same: same model, protocol and settings; for "
                "more verdicts of one judge use [plan] repeats, for more completions of a contestant samples"
            )
        found.append((judge, respondent))
    return found


def _who(judge: JudgeSettings) -> str:
    return f"{'contestant' if judge.protocol == GENERATE else 'judge'} {judge.name!r}"


def judges_pairs(campaign: Campaign) -> bool:
    """Whether any judge of a campaign is shown pairs, so that matchups are chosen."""
    return any(PROTOCOLS[judge.protocol].shape is Shape.PAIR for judge in campaign.judges)


def rates_models(campaign: Campaign) -> bool:
    """Whether any judge of a campaign sets one model above another, so that models can be rated."""
    return any(PROTOCOLS[judge.protocol].shape in (Shape.PAIR, Shape.LIST) for judge in campaign.judges)


def select_models(campaign: Campaign, there: Sequence[imports.Contestant]) -> tuple[PlanState, tuple[LeftOut, ...]]:
    """The contestants of a campaign with their Elo, and who was left out.

    Raises InputError for a named model that is unknown or lacks what the policy needs, and for fewer than two.
    """
    known = {one.model: one for one in there}
    policy = campaign.plan.phases[0].policy
    needs_elo = policy != RECORDED and POLICIES[policy].needs_elo and judges_pairs(campaign)
    named = campaign.data.models
    for model in named or ():
        if model not in known:
            raise InputError(
                f"{campaign.path}: [data] models names {model!r}, which has no completions in the store; "
                f"there are: {', '.join(sorted(known)) or 'none'}"
            )
        if needs_elo and known[model].elo is None:
            raise InputError(
                f"{campaign.path}: [data] models names {model!r}, which has no Elo, and policy "
                f"{policy!r} needs one: import it, leave the model out, or use policy 'random'"
            )
    chosen = sorted(named if named is not None else known)
    without = [model for model in chosen if needs_elo and known[model].elo is None]
    left_out = tuple(LeftOut(model, "no Elo") for model in without)
    models = tuple(model for model in chosen if model not in without)
    if len(models) < 2:
        raise InputError(
            f"{campaign.path}: a campaign needs two models with completions"
            f"{' and Elo' if needs_elo else ''}, and there are {len(models)}: import completions"
            f"{' and Elo' if needs_elo else ''} (`venire import table PATH --kind ...`) or name files in [data]"
        )
    elo = {model: value for model in models if (value := known[model].elo) is not None}
    return PlanState(models, elo), left_out


def design(campaign: Campaign, state: PlanState, left_out: tuple[LeftOut, ...], answers: Answers) -> Design:
    """Matchups by the campaign's policy and instructions drawn with its seed.

    Raises InputError when the models have no instructions, or too few, in common.
    """
    rng = np.random.default_rng(campaign.seed)
    common = sorted(
        name for name in answers.instructions if all((model, name) in answers.completions for model in state.models)
    )
    if not common:
        raise InputError(
            f"{campaign.path}: the {len(state.models)} models have no instruction in common that all of them answered: "
            "name fewer models in [data] models or import the missing completions"
        )
    drawn = _drawn(campaign, common, f"those answered by all {len(state.models)} models are only", rng)
    phase = campaign.plan.phases[0]
    possible = len(state.models) * (len(state.models) - 1) // 2
    picks = (
        POLICIES[phase.policy].choose(state, phase, phase.matchups or possible, rng) if judges_pairs(campaign) else ()
    )
    matchups = tuple(Matchup(one.model_a, one.model_b, gap(state, one.model_a, one.model_b)) for one in picks)
    return Design(matchups, drawn, state.models, left_out)


def plan_campaign(store: Store, campaign: Campaign, *, amend: bool = False) -> PlannedCampaign:
    """Register a campaign and write its plan, unless the plan in force is already that of these settings.

    What was planned stays planned, whatever has come into the store since; but what the campaign's own contestants
    wrote since is planned as long as no judge was asked, and with `amend`. Raises InputError for whatever makes a plan
    impossible; nothing is planned then.
    """
    judges = respondents(campaign)
    known = plans.find_campaign(store, campaign.name)
    planned = known is not None and known.planned and known.settings == campaign.settings
    if known is not None and planned and not (_may_grow(campaign) and _has_grown(store, campaign, known, amend=amend)):
        _refuse_other_prompts(store, campaign, known.id, judges)
        numbers = plans.register(store, campaign, judges, _texts(judges))
    else:
        chosen, answers, recordings = _chosen(store, campaign)
        numbers = plans.register(store, campaign, judges, _texts(judges))
        known = plans.find_campaign(store, campaign.name)
        assert known is not None  # registered above
        equal_texts = [0]
        numbered = [(numbers[judge.name], respondent) for judge, respondent in judges]
        repeats = {numbers[judge.name]: judge.repeats or campaign.plan.repeats for judge in campaign.judges}
        plans.append_round(
            store,
            known.id,
            expand(
                chosen,
                answers,
                numbered,
                repeats,
                equal_texts,
                seed=campaign.seed,
                recorded={numbers[name]: recording for name, recording in recordings.items()},
            ),
            policy=campaign.plan.phases[0].policy,
            seed=campaign.seed,
            equal_texts=equal_texts,
            design=json.dumps(asdict(chosen), ensure_ascii=False),
        )
    trials_planned, equal, made_of = plans.planned(store, known.id)
    by_number = {numbers[judge.name]: judge for judge in campaign.judges}
    return PlannedCampaign(known.id, by_number, _read_design(made_of), trials_planned, equal)


def _may_grow(campaign: Campaign) -> bool:
    return bool(campaign.contestants) and not _asks_contestants(campaign)


def _has_grown(store: Store, campaign: Campaign, known: plans.Known, *, amend: bool) -> bool:
    """Whether contestants have written since what the plan in force would show, and it may still be made anew."""
    if known.calls and not amend:
        return False
    made_of = plans.planned(store, known.id)[2]
    return json.dumps(asdict(_chosen(store, campaign)[0]), ensure_ascii=False) != made_of


def _asks_contestants(campaign: Campaign) -> bool:
    return all(judge.protocol == GENERATE for judge in campaign.judges)


def _chosen(store: Store, campaign: Campaign) -> tuple[Design, Answers, Mapping[str, Recording]]:
    """What is asked: of judges about the completions that are there, of contestants all instructions that are drawn.

    And the judgments on record by judge.
    """
    if _asks_contestants(campaign):
        asked = plans.asked(store)
        if not asked.instructions:
            raise InputError(f"{campaign.path}: no instructions to answer: name a table in [data] instructions")
        drawn = _drawn(campaign, sorted(asked.instructions), "there are only", np.random.default_rng(campaign.seed))
        return Design((), drawn, tuple(judge.name for judge in campaign.judges), ()), asked, {}
    recordings = read_recordings(campaign)
    state, left_out = select_models(campaign, imports.contestants(store))
    answers = plans.catalogue(store, state.models)
    if campaign.plan.phases[0].policy == RECORDED:
        chosen = _as_recorded(campaign, state, left_out, answers, recordings)
    else:
        chosen = design(campaign, state, left_out, answers)
    _refuse_without_reference(campaign, chosen, answers)
    taken = [
        tell(
            recordings[one.name], chosen, answers, one.repeats or campaign.plan.repeats, campaign.plan.phases[0].policy
        )
        for one in campaign.judges
        if one.name in recordings
    ]
    if len(taken) == len(campaign.judges) and not any(one.trials for one in taken):
        raise InputError(
            f"{campaign.path}: none of the {sum(one.rows for one in taken)} judgments on record is of completions, "
            "matchups and repeats of this campaign: models and instructions need the same names in all tables"
        )
    return replace(chosen, recorded=tuple(taken)), answers, recordings


def _as_recorded(
    campaign: Campaign,
    state: PlanState,
    left_out: tuple[LeftOut, ...],
    answers: Answers,
    recordings: Mapping[str, Recording],
) -> Design:
    """What was judged elsewhere: every pair, on every instruction that is in the store."""
    names = sorted({name for one in recordings.values() for name in one.texts} & answers.instructions.keys())
    judged = {
        model for one in recordings.values() for rows in one.texts.values() for shown, _ in rows for model in shown
    }
    models = tuple(model for model in state.models if model in judged)
    without = tuple(LeftOut(model, "no judgment on record") for model in state.models if model not in judged)
    drawn = _drawn(campaign, names, "those judged are only", np.random.default_rng(campaign.seed))
    met = [pair for pair in sorted(pairs(recordings.values())) if set(pair) <= set(models)]
    matchups = tuple(Matchup(*pair, gap(state, *pair)) for pair in met)
    return Design(matchups, drawn, models, left_out + without)


def _refuse_without_reference(campaign: Campaign, chosen: Design, answers: Answers) -> None:
    for judge in campaign.judges:
        without = [name for name in chosen.instructions if name not in answers.referenced]
        if PROTOCOLS[judge.protocol].needs_reference and without:
            raise InputError(
                f"{campaign.path}: judge {judge.name!r}: protocol {judge.protocol!r} needs reference answers, and "
                f"{len(without)} of {len(chosen.instructions)} instructions have none ({without[0]!r} is the first): "
                "add the column reference to the instructions, or use protocol 'direct'"
            )


def _drawn(campaign: Campaign, names: Sequence[str], only: str, rng: np.random.Generator) -> tuple[str, ...]:
    """So many instructions as the campaign wants; all of them where it does not say. Raises InputError for too few."""
    wanted = campaign.plan.instructions
    if wanted is None:
        return tuple(names)
    if wanted > len(names):
        raise InputError(f"{campaign.path}: [plan] instructions = {wanted}, and {only} {len(names)}")
    return tuple(names[n] for n in rng.permutation(len(names))[:wanted])


def _refuse_other_prompts(
    store: Store, campaign: Campaign, number: int, judges: Sequence[tuple[JudgeSettings, Respondent]]
) -> None:
    """With the same settings, a judge that is another respondent now is one that would be asked in other words."""
    before = {row.name: row.respondent for row in frames.judges(store, number)}
    for judge, respondent in judges:
        found = store.rows("respondent_id", respondent_key=respondent_key(respondent))
        if not found or found[0][0] != before.get(judge.name):
            raise InputError(
                f"{campaign.path}: judge {judge.name!r} would be asked with other prompts than this campaign began "
                "with: go on with the version of Venire that planned it, or give the campaign another name"
            )


def _texts(judges: Sequence[tuple[JudgeSettings, Respondent]]) -> list[tuple[str, bytes, str]]:
    """Name, digest and text of every prompt that these judges are sent."""
    return [text for judge, _ in judges for text in PROTOCOLS[judge.protocol].texts(judge.options)]


def _read_design(text: str) -> Design:
    found = json.loads(text)
    return Design(
        tuple(Matchup(**one) for one in found["matchups"]),
        tuple(found["instructions"]),
        tuple(found["models"]),
        tuple(LeftOut(**one) for one in found["left_out"]),
        tuple(Replayed(**one) for one in found.get("recorded", ())),
    )
