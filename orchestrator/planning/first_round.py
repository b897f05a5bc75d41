"""The first round of a plan: which models are judged on which instructions, and which matchups or battles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from venire.arena.campaigns import CampaignSettings, PhaseSettings, TokenPrice
from venire.arena.errors import InputError
from venire.arena.planning import Estimates, Pick, PlanState
from venire.arena.records import RECORDED, Matchup
from venire.judges import PROTOCOLS
from venire.orchestrator.costs.budget import BudgetView
from venire.orchestrator.designs import ExcludedModel, RoundDesign, battle_design, crossed_design
from venire.orchestrator.planning.oversized import (
    OversizedText,
    has_oversized,
    oversized_battles,
    oversized_texts,
    without_oversized,
)
from venire.orchestrator.planning.plan_state import PlanInputs, payable_battles, policy_state
from venire.orchestrator.planning.recorded import Recording, judged_pairs, read_recordings, replay_summary
from venire.orchestrator.policies import POLICIES
from venire.orchestrator.policies.matchup_policies import gap
from venire.storage.plans import plans
from venire.storage.plans.plans import Catalogue
from venire.storage.store.store import Store
from venire.storage.transfer import importing


def design_first_round(
    store: Store,
    campaign: CampaignSettings,
    prices: Mapping[str, TokenPrice],
    budgets: Mapping[str, BudgetView],
    estimates: Estimates | None = None,
) -> tuple[RoundDesign, Catalogue, Mapping[str, Recording]]:
    """The first round, with the texts that it shows and the judgments on record by judge.

    Judges are asked about the completions that are there, contestants about all instructions that are drawn. `prices`
    and `budgets` are by judge name, `estimates` what is known before the first verdict. Raises InputError for whatever
    makes a plan impossible.
    """
    if campaign.asks_contestants:
        asked = plans.instruction_catalogue(store)
        oversized = oversized_texts(store, campaign, asked, (), prices, budgets)
        return _design_generation(campaign, asked, oversized), asked, {}
    recordings = read_recordings(campaign)
    state, left_out = select_models(campaign, importing.contestants(store))
    if campaign.pair_judges:
        refuse_phases(campaign, state)
    answers = plans.catalogue(store, state.models, campaign.plan.variants)
    oversized = oversized_texts(store, campaign, answers, state.models, prices, budgets)
    if campaign.plan.phases[0].policy == RECORDED:
        chosen = _design_recorded(campaign, state, left_out, answers, recordings)
    elif campaign.plan.phases[0].crosses or not campaign.pair_judges:
        chosen = design_crossed(campaign, state, left_out, answers, oversized)
    else:
        rng = np.random.default_rng(campaign.seed)
        drawn = without_oversized(_common_instructions(campaign, state.models, answers, rng), oversized)
        inputs = PlanInputs(store, campaign, state.models, drawn, answers, recordings, prices)
        chosen = replace(_design_battles(inputs, state.elo, budgets, estimates), left_out=left_out)
    _refuse_without_reference(campaign, chosen, answers)
    _refuse_without_edits(campaign, answers)
    return _with_replayed(campaign, chosen, answers, recordings), answers, recordings


def design_given(
    store: Store,
    campaign: CampaignSettings,
    battles: Sequence[Pick],
    prices: Mapping[str, TokenPrice],
    budgets: Mapping[str, BudgetView],
) -> tuple[RoundDesign, Catalogue, Mapping[str, Recording]]:
    """The same of battles that the caller chose: the models of a battle need no other instruction in common.

    Raises InputError for a protocol that shows a reference where an instruction has none.
    """
    answers = _catalogue_of(store, battles)
    oversized = oversized_battles(store, campaign, answers, battles, prices, budgets)
    battles = [pick for place, pick in enumerate(battles) if place not in oversized] or battles
    models = sorted({model for pick in battles for model in (pick.model_a, pick.model_b)})
    instructions = sorted({pick.instruction for pick in battles if pick.instruction is not None})
    chosen = battle_design(battles, {}, instructions, models, campaign.plan.phases[0].name)
    _refuse_without_reference(campaign, chosen, answers)
    return chosen, answers, {}


def _catalogue_of(store: Store, battles: Sequence[Pick]) -> Catalogue:
    return plans.catalogue(store, sorted({model for pick in battles for model in (pick.model_a, pick.model_b)}))


def left_out_texts(
    store: Store,
    campaign: CampaignSettings,
    prices: Mapping[str, TokenPrice],
    budgets: Mapping[str, BudgetView],
    battles: Sequence[Pick] | None = None,
) -> tuple[OversizedText, ...]:
    """The texts that no budget covers, and that a first round leaves out: of the instructions that it draws, or of
    `battles`, where they are given."""
    if not has_oversized(store, campaign, prices, budgets) or campaign.plan.phases[0].policy == RECORDED:
        return ()
    if battles is not None:
        of = oversized_battles(store, campaign, _catalogue_of(store, battles), battles, prices, budgets)
        return tuple(of.values()) if len(of) < len(battles) else ()
    rng, models = np.random.default_rng(campaign.seed), tuple[str, ...]()
    if campaign.asks_contestants:
        asked = plans.instruction_catalogue(store)
        drawn = _draw_instructions(campaign, sorted(asked.instructions), "there are only", rng)
    else:
        models = select_models(campaign, importing.contestants(store))[0].models
        asked = plans.catalogue(store, models)
        drawn = _common_instructions(campaign, models, asked, rng)
    found = [
        one for one in oversized_texts(store, campaign, asked, models, prices, budgets) if one.instruction in drawn
    ]
    return tuple(found) if len(found) < len(drawn) else ()


def _design_generation(campaign: CampaignSettings, asked: Catalogue, oversized: Sequence[OversizedText]) -> RoundDesign:
    """All instructions that are drawn, put to the contestants."""
    if not asked.instructions:
        raise InputError(f"{campaign.path}: no instructions to answer: name a table in [data] instructions")
    rng = np.random.default_rng(campaign.seed)
    drawn = without_oversized(
        _draw_instructions(campaign, sorted(asked.instructions), "there are only", rng), oversized
    )
    names = tuple(judge.name for judge in campaign.judges)
    return RoundDesign((), drawn, names, (), phase=campaign.plan.phases[0].name)


def select_models(
    campaign: CampaignSettings, there: Sequence[importing.StoredModel]
) -> tuple[PlanState, tuple[ExcludedModel, ...]]:
    """The contestants of a campaign with their Elo, and who was left out.

    Raises InputError for a named model that is unknown or lacks what the policy needs, and for fewer models than two,
    or than a judge is shown at once.
    """
    known = {one.model: one for one in there}
    policy = campaign.plan.phases[0].policy
    needs_elo = campaign.plan.phases[0].needs_elo and campaign.pair_judges
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
    left_out = tuple(ExcludedModel(model, "no Elo") for model in without)
    models = tuple(model for model in chosen if model not in without)
    if len(models) < 2:
        raise InputError(
            f"{campaign.path}: a campaign needs two models with completions"
            f"{' and Elo' if needs_elo else ''}, and there are {len(models)}: import completions"
            f"{' and Elo' if needs_elo else ''} (`venire import table PATH --kind ...`) or name files in [data]"
        )
    for judge in campaign.judges:
        if (shown := judge.shape.size(len(models))) > len(models):
            raise InputError(
                f"{campaign.path}: judge {judge.name!r}: protocol {judge.protocol!r} shows {shown} completions of an "
                f"instruction at once, and there are {len(models)} models: import completions of more, or choose "
                "another protocol"
            )
    elo = {model: value for model in models if (value := known[model].elo) is not None}
    return PlanState(models, elo), left_out


def design_crossed(
    campaign: CampaignSettings,
    state: PlanState,
    left_out: tuple[ExcludedModel, ...],
    answers: Catalogue,
    oversized: Sequence[OversizedText] = (),
) -> RoundDesign:
    """Matchups by the campaign's first policy, where it crosses, and instructions drawn with the campaign's seed.

    Those of `oversized` texts are left out.

    Raises InputError when the models have no instructions, or too few, in common.
    """
    rng = np.random.default_rng(campaign.seed)
    drawn = without_oversized(_common_instructions(campaign, state.models, answers, rng), oversized)
    phase = campaign.plan.phases[0]
    if not campaign.pair_judges:
        return RoundDesign((), drawn, state.models, left_out, phase=phase.name)
    picks = POLICIES[phase.policy].choose(state, phase, phase.matchups or _pairs(state.models), rng)
    return replace(crossed_design(picks, state.elo, drawn, state.models, phase.name), left_out=left_out)


def _pairs(models: Sequence[str]) -> int:
    return len(models) * (len(models) - 1) // 2


def _common_instructions(
    campaign: CampaignSettings, models: Sequence[str], answers: Catalogue, rng: np.random.Generator
) -> tuple[str, ...]:
    common = sorted(
        name for name in answers.instructions if all((model, name) in answers.completions for model in models)
    )
    if not common:
        raise InputError(
            f"{campaign.path}: the {len(models)} models have no instruction in common that all of them answered: "
            "name fewer models in [data] models or import the missing completions"
        )
    return _draw_instructions(campaign, common, f"those answered by all {len(models)} models are only", rng)


def needs_other_judges(phase: PhaseSettings, models: Sequence[str], known: Mapping[str, float]) -> bool:
    """Whether a later phase chooses by gaps that only verdicts give: each judge's are then by those of the others."""
    return phase.needs_elo and any(one not in known for one in models)


def refuse_phases(campaign: CampaignSettings, state: PlanState) -> None:
    """Raise InputError for what would make a later phase impossible, before anything is paid for the first."""
    for place, phase in enumerate(campaign.plan.phases):
        where = f"{campaign.path}: [[plan.phase]] {phase.name!r}"
        if phase.purpose == "place" and phase.place not in state.models:
            there = ", ".join(sorted(state.models)[:8]) + (" ..." if len(state.models) > 8 else "")
            raise InputError(f"{campaign.path}: place = {phase.place!r} is no model of this campaign: it has {there}")
        if place and needs_other_judges(phase, state.models, state.elo) and len(campaign.pair_judges) < 2:
            without = next(name for name in state.models if name not in state.elo)
            raise InputError(
                f"{where}: policy {phase.policy!r} needs Elo, and {without!r} has none: it would come from verdicts, "
                "and those of the only judge may not choose what that judge is asked: import Elo, add another judge, "
                "or choose another policy"
            )
        if place and phase.crosses:
            elo = {name: float(n) for n, name in enumerate(state.models)}  # any will do to see what cannot be
            number = phase.matchups or _pairs(state.models)
            try:
                POLICIES[phase.policy].choose(replace(state, elo=elo), phase, number, np.random.default_rng(0))
            except InputError as error:
                raise InputError(f"{where}: {error}") from None


def _design_battles(
    inputs: PlanInputs, elo: Mapping[str, float], budgets: Mapping[str, BudgetView], estimates: Estimates | None
) -> RoundDesign:
    """The first battles by the campaign's first policy, at most as many as the budget pays for, but one at least."""
    campaign = inputs.campaign
    phase, rng = campaign.plan.phases[0], np.random.default_rng([campaign.seed, 1])
    picks = POLICIES[phase.policy].choose(
        policy_state(inputs, elo=elo, estimates=estimates), phase, campaign.plan.round_size(phase), rng
    )
    if not picks:
        raise InputError(f"{campaign.path}: policy {phase.policy!r} finds no battle to ask: are all texts equal?")
    limited = any(budget.is_limited for budget in budgets.values())
    costs = inputs.learned_costs() if limited else inputs.costs
    count, _ = payable_battles(inputs, picks, costs, budgets)
    return battle_design(picks[: max(1, count)], elo, inputs.instructions, inputs.models, phase.name)


def _design_recorded(
    campaign: CampaignSettings,
    state: PlanState,
    left_out: tuple[ExcludedModel, ...],
    answers: Catalogue,
    recordings: Mapping[str, Recording],
) -> RoundDesign:
    """What was judged elsewhere: every pair, on every instruction that is in the store."""
    names = sorted({name for one in recordings.values() for name in one.texts} & answers.instructions.keys())
    judged = {
        model for one in recordings.values() for rows in one.texts.values() for shown, _ in rows for model in shown
    }
    models = tuple(model for model in state.models if model in judged)
    without = tuple(ExcludedModel(model, "no judgment on record") for model in state.models if model not in judged)
    drawn = _draw_instructions(campaign, names, "those judged are only", np.random.default_rng(campaign.seed))
    met = [pair for pair in sorted(judged_pairs(recordings.values())) if set(pair) <= set(models)]
    matchups = tuple(Matchup(*pair, gap(state, *pair)) for pair in met)
    return RoundDesign(matchups, drawn, models, left_out + without, phase=campaign.plan.phases[0].name)


def _with_replayed(
    campaign: CampaignSettings, chosen: RoundDesign, answers: Catalogue, recordings: Mapping[str, Recording]
) -> RoundDesign:
    """The design with what it takes of judgments on record; InputError where it takes none and asks nobody."""
    policy = campaign.plan.phases[0].policy
    taken = [
        replay_summary(recordings[one.name], chosen, answers, one.repeats or campaign.plan.repeats, policy)
        for one in campaign.judges
        if one.name in recordings
    ]
    if len(taken) == len(campaign.judges) and not any(one.trials for one in taken):
        raise InputError(
            f"{campaign.path}: none of the {sum(one.rows for one in taken)} judgments on record is of completions, "
            "matchups and repeats of this campaign: models and instructions need the same names in all tables"
        )
    return replace(chosen, recorded=tuple(taken))


def _refuse_without_reference(campaign: CampaignSettings, chosen: RoundDesign, answers: Catalogue) -> None:
    for judge in campaign.judges:
        without = [name for name in chosen.instructions if name not in answers.referenced]
        if PROTOCOLS[judge.protocol].needs_reference and without:
            raise InputError(
                f"{campaign.path}: judge {judge.name!r}: protocol {judge.protocol!r} needs reference answers, and "
                f"{len(without)} of {len(chosen.instructions)} instructions have none ({without[0]!r} is the first): "
                "add the column reference to the instructions, or use protocol 'direct'"
            )


def _refuse_without_edits(campaign: CampaignSettings, answers: Catalogue) -> None:
    """Refuse edits where none could be judged, and where battles are chosen by the verdicts of others."""
    if campaign.plan.variants and (campaign.in_rounds or not campaign.pair_judges):
        raise InputError(
            f"{campaign.path}: [plan] variants needs judges of pairs, and a plan of one round with every matchup on "
            "every instruction, such as policy 'all-pairs'"
        )
    for variant in campaign.plan.variants:
        if not any(name == variant for _, _, name in answers.edited):
            raise InputError(
                f"{campaign.path}: [plan] variants names {variant!r}, and no completion of these models was edited so: "
                "`venire edit` writes the copies of an [[editor]] of that name, or import them (a table of completions "
                "with a column variant)"
            )


def _draw_instructions(
    campaign: CampaignSettings, names: Sequence[str], only: str, rng: np.random.Generator
) -> tuple[str, ...]:
    """So many instructions as the campaign wants; all of them where it does not say. Raises InputError for too few."""
    wanted = campaign.plan.instructions
    if wanted is None:
        return tuple(names)
    if wanted > len(names):
        raise InputError(f"{campaign.path}: [plan] instructions = {wanted}, and {only} {len(names)}")
    return tuple(names[n] for n in rng.permutation(len(names))[:wanted])
