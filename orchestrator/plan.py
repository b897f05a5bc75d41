"""From a campaign to its plan: who judges, who is judged, on what, in which order. The plan is a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product

import numpy as np

from venire.arena.battles import PlanState
from venire.arena.campaigns import Campaign, JudgeSettings
from venire.arena.errors import InputError
from venire.arena.keys import respondent_key, trial_key
from venire.arena.records import Matchup, Origin, PlannedTrial, Respondent
from venire.judges import PROTOCOLS, prompts
from venire.judges.orientation import BOTH_ORDERS, arrange
from venire.orchestrator.policies import NEEDS_ELO, POLICIES
from venire.storage import frames, imports, plans
from venire.storage.plans import Answers
from venire.storage.store import Store

__all__ = ["Design", "LeftOut", "PlannedCampaign", "design", "expand", "plan_campaign", "respondents", "select_models"]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A model that is in the store and not in the campaign, and why."""

    model: str
    reason: str


@dataclass(frozen=True, slots=True)
class Design:
    """What a plan is made of: matchups and instruction ids, drawn once and the same for all matchups."""

    matchups: tuple[Matchup, ...]
    instructions: tuple[str, ...]
    models: tuple[str, ...]
    left_out: tuple[LeftOut, ...]


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

    Raises InputError for an unknown protocol, and for two judges that are the same but for their names.
    """
    found: list[tuple[JudgeSettings, Respondent]] = []
    keys: dict[bytes, str] = {}
    for judge in campaign.judges:
        if judge.protocol not in PROTOCOLS:
            known = ", ".join(PROTOCOLS)
            raise InputError(
                f"{campaign.path}: judge {judge.name!r}: no protocol {judge.protocol!r}; there is: {known}"
            )
        respondent = Respondent(
            judge.model,
            judge.protocol,
            Origin.of_model(judge.model),
            tuple(sorted(judge.options.items())),
            PROTOCOLS[judge.protocol].digests(),
        )
        twin = keys.setdefault(respondent_key(respondent), judge.name)
        if twin != judge.name:
            raise InputError(
                f"{campaign.path}: judges {twin!r} and {judge.name!r} are the same: same model, protocol and settings; "
                "for more verdicts of one judge use [plan] repeats"
            )
        found.append((judge, respondent))
    return found


def select_models(campaign: Campaign, there: Sequence[imports.Contestant]) -> tuple[PlanState, tuple[LeftOut, ...]]:
    """The contestants of a campaign with their Elo, and who was left out.

    Raises InputError for a named model that is unknown or lacks what the policy needs, and for fewer than two.
    """
    known = {one.model: one for one in there}
    needs_elo = campaign.plan.policy in NEEDS_ELO
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
                f"{campaign.plan.policy!r} needs one: import it, leave the model out, or use policy 'random'"
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
    wanted = campaign.plan.instructions
    if not common:
        raise InputError(
            f"{campaign.path}: the {len(state.models)} models have no instruction in common that all of them answered: "
            "name fewer models in [data] models or import the missing completions"
        )
    if wanted is not None and wanted > len(common):
        raise InputError(
            f"{campaign.path}: [plan] instructions = {wanted}, and only {len(common)} are answered by all "
            f"{len(state.models)} models"
        )
    drawn = common if wanted is None else [common[n] for n in rng.permutation(len(common))[:wanted]]
    matchups = POLICIES[campaign.plan.policy](state, campaign.plan, rng)
    return Design(tuple(matchups), tuple(drawn), state.models, left_out)


def expand(
    chosen: Design,
    answers: Answers,
    judges: Sequence[tuple[int, Respondent]],
    repeats: int,
    equal_texts: list[int],
) -> Iterator[PlannedTrial]:
    """The trials of a design, instruction by instruction, every battle in both orders, as a stream.

    Within an instruction every battle comes once before any is repeated. Prompts of one instruction begin alike, and a
    provider that caches prompts reads that again; a repeat, alike to its end, is found there only when it does not
    leave together with the first (benchmarks/prefixes.py measures it).

    `judges` are respondent numbers with their records. Battles with equal texts are left out and counted in
    `equal_texts[0]`.
    """
    keyed = [(number, respondent_key(one), PROTOCOLS[one.protocol].number) for number, one in judges]
    for name in chosen.instructions:
        instruction, instruction_key = answers.instructions[name]
        for repeat, matchup in product(range(1, repeats + 1), chosen.matchups):
            a, b = answers.completions[matchup.model_a, name], answers.completions[matchup.model_b, name]
            if a[2] == b[2]:
                equal_texts[0] += repeat == 1
                continue
            for number, key, protocol in keyed:
                for swapped in BOTH_ORDERS:
                    shown = arrange(a[1], b[1], swapped)
                    yield PlannedTrial(
                        trial_key(key, instruction_key, shown, repeat),
                        protocol,
                        number,
                        instruction,
                        answers.models[matchup.model_a],
                        answers.models[matchup.model_b],
                        a[0],
                        b[0],
                        swapped,
                        repeat,
                        matchup.gap,
                    )


def plan_campaign(store: Store, campaign: Campaign) -> PlannedCampaign:
    """Register a campaign and write its plan, unless the plan in force is already that of these settings.

    What was planned stays planned, whatever has come into the store since. Raises InputError for whatever makes a plan
    impossible; nothing is planned then.
    """
    judges = respondents(campaign)
    known = plans.find_campaign(store, campaign.name)
    if known is not None and known.planned and known.settings == campaign.settings:
        _refuse_other_prompts(store, campaign, known.id, judges)
        numbers = plans.register(store, campaign, judges, _texts(judges))
    else:
        state, left_out = select_models(campaign, imports.contestants(store))
        answers = plans.catalogue(store, state.models)
        chosen = design(campaign, state, left_out, answers)
        numbers = plans.register(store, campaign, judges, _texts(judges))
        known = plans.find_campaign(store, campaign.name)
        assert known is not None  # registered above
        equal_texts = [0]
        numbered = [(numbers[judge.name], respondent) for judge, respondent in judges]
        plans.append_round(
            store,
            known.id,
            expand(chosen, answers, numbered, campaign.plan.repeats, equal_texts),
            policy=campaign.plan.policy,
            seed=campaign.seed,
            equal_texts=equal_texts,
            design=json.dumps(asdict(chosen), ensure_ascii=False),
        )
    trials_planned, equal, made_of = plans.planned(store, known.id)
    by_number = {numbers[judge.name]: judge for judge in campaign.judges}
    return PlannedCampaign(known.id, by_number, _read_design(made_of), trials_planned, equal)


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
    return [
        (f"{entry.folder}/{name}", digest, prompts.load(entry.folder, name).template)
        for entry in {judge.protocol: PROTOCOLS[judge.protocol] for judge, _ in judges}.values()
        for name, digest in zip(entry.prompts, entry.digests(), strict=True)
    ]


def _read_design(text: str) -> Design:
    found = json.loads(text)
    return Design(
        tuple(Matchup(**one) for one in found["matchups"]),
        tuple(found["instructions"]),
        tuple(found["models"]),
        tuple(LeftOut(**one) for one in found["left_out"]),
    )
