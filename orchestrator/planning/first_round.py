"""The first round of a plan: which models are judged on which instructions, and which matchups or battles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from venire.arena.campaigns import CampaignSettings, PhaseSettings
from venire.arena.errors import InputError
from venire.arena.planning import Pick, PlanState
from venire.arena.records import RECORDED
from venire.judges import PROTOCOLS
from venire.orchestrator.costs.coverage import Funds
from venire.orchestrator.designs import ExcludedModel, Replayed, RoundDesign, battle_design, crossed_design
from venire.orchestrator.planning.design_space import DesignSpace, payable_battles, policy_state
from venire.orchestrator.planning.inputs import PlanInputs
from venire.orchestrator.planning.oversized import OversizedText, oversized_battles, oversized_texts
from venire.orchestrator.planning.recorded import judged_pairs, replay_summary
from venire.orchestrator.policies import POLICIES


def first_round(inputs: PlanInputs, funds: Funds) -> RoundDesign:
    """The design of the first round: a pure function of what was read, seeded by the campaign.

    Judges are asked about the completions that are there, contestants about all instructions that are drawn. Battles
    that the caller chose are left as they are: their models need no other instruction in common. Raises InputError for
    whatever makes a plan impossible.
    """
    campaign, rng = inputs.campaign, np.random.default_rng(inputs.campaign.seed)
    phase = campaign.plan.phases[0]
    if campaign.pair_judges:
        refuse_phases(campaign, inputs.models.names, inputs.models.elo)
    if inputs.battles is not None:
        design = _given(inputs, inputs.battles, funds)
    elif phase.policy == RECORDED and not campaign.asks_contestants:
        design = _on_record(inputs, rng)
    else:
        drawn, _ = draw_instructions(inputs, funds, rng)
        if campaign.asks_contestants:
            return RoundDesign((), drawn, tuple(judge.name for judge in campaign.judges), (), phase=phase.name)
        crosses = phase.crosses or not campaign.pair_judges
        design = _crossed(inputs, drawn, rng) if crosses else _battles(inputs, drawn, funds)
    _refuse_without_reference(inputs, design)
    _refuse_without_edits(inputs)
    return replace(design, recorded=_replayed(inputs, design))


def texts_left_out(inputs: PlanInputs, funds: Funds) -> tuple[OversizedText, ...]:
    """The texts that no budget covers and that `first_round` leaves out."""
    if inputs.battles is None:
        return draw_instructions(inputs, funds, np.random.default_rng(inputs.campaign.seed))[1]
    long = _oversized_battles(inputs, inputs.battles, funds)
    return tuple(long.values()) if len(long) < len(inputs.battles) else ()


def _given(inputs: PlanInputs, battles: Sequence[Pick], funds: Funds) -> RoundDesign:
    """Battles that the caller chose, without those that no budget covers unless these are all."""
    long = _oversized_battles(inputs, battles, funds)
    battles = [pick for row, pick in enumerate(battles) if row not in long] or battles
    models = sorted({model for pick in battles for model in (pick.model_a, pick.model_b)})
    instructions = sorted({pick.instruction for pick in battles if pick.instruction is not None})
    return battle_design(battles, {}, instructions, models, inputs.campaign.plan.phases[0].name)


def _oversized_battles(inputs: PlanInputs, battles: Sequence[Pick], funds: Funds) -> Mapping[int, OversizedText]:
    return oversized_battles(battles, inputs.answers, inputs.lengths, funds, inputs.settled.values())


def _on_record(inputs: PlanInputs, rng: np.random.Generator) -> RoundDesign:
    """What was judged elsewhere: every pair, on every instruction that is in the store."""
    campaign, chosen, recordings = inputs.campaign, inputs.models, inputs.recordings.values()
    judged = {model for recording in recordings for model in recording.models}
    models = tuple(model for model in chosen.names if model in judged)
    without = tuple(ExcludedModel(model, "no judgment on record") for model in chosen.names if model not in judged)
    there = sorted({name for recording in recordings for name in recording.texts} & inputs.answers.instructions.keys())
    drawn = _sample(campaign, there, "those judged are only", rng)
    met = [Pick(*pair) for pair in sorted(judged_pairs(recordings)) if set(pair) <= set(models)]
    design = crossed_design(met, chosen.elo, drawn, models, campaign.plan.phases[0].name)
    return replace(design, left_out=chosen.left_out + without)


def _crossed(inputs: PlanInputs, drawn: Sequence[str], rng: np.random.Generator) -> RoundDesign:
    """Matchups by the campaign's first policy, each on all instructions drawn; none where no judge is shown pairs."""
    phase, models = inputs.campaign.plan.phases[0], inputs.models
    picks = _matchups(phase, PlanState(models.names, models.elo), rng) if inputs.campaign.pair_judges else []
    design = crossed_design(picks, models.elo, drawn, models.names, phase.name)
    return replace(design, left_out=models.left_out)


def _battles(inputs: PlanInputs, drawn: tuple[str, ...], funds: Funds) -> RoundDesign:
    """The first battles by the campaign's first policy, at most as many as the budget pays for, but one at least."""
    campaign, models = inputs.campaign, inputs.models
    space = DesignSpace(inputs, models.names, drawn)
    phase, state = campaign.plan.phases[0], policy_state(space, elo=models.elo, estimates=inputs.estimates)
    rng = np.random.default_rng([campaign.seed, 1])
    picks = POLICIES[phase.policy].choose(state, phase, campaign.plan.round_size(phase), rng)
    if not picks:
        raise InputError(f"{campaign.path}: policy {phase.policy!r} finds no battle to ask: are all texts equal?")
    picks = _judged_first(space, picks)
    count, _ = payable_battles(space, picks, campaign.pair_judges, funds)
    design = battle_design(picks[: max(1, count)], models.elo, space.instructions, models.names, phase.name)
    return replace(design, left_out=models.left_out)


def _judged_first(space: DesignSpace, picks: Sequence[Pick]) -> list[Pick]:
    """The battles chosen, those that an earlier plan had judged first: else a budget may not reach what it paid for."""
    battles = space.battles(picks)
    left = np.zeros(len(picks))
    for cost in space.inputs.costs:
        left += space.left(cost, battles)
    return [picks[row] for row in np.argsort(left, kind="stable").tolist()]


def _matchups(phase: PhaseSettings, state: PlanState, rng: np.random.Generator) -> list[Pick]:
    """As many as a crossing phase wants, else all."""
    return POLICIES[phase.policy].choose(state, phase, phase.matchups or pairs_of(state.models), rng)


def pairs_of(models: Sequence[str]) -> int:
    """How many pairs there are of some models."""
    return len(models) * (len(models) - 1) // 2


def draw_instructions(
    inputs: PlanInputs, funds: Funds, rng: np.random.Generator
) -> tuple[tuple[str, ...], tuple[OversizedText, ...]]:
    """The instructions of a plan, and the texts that no budget covers and whose instructions are not among them.

    Where none would be left, all that were drawn are kept. Raises InputError for no or too few instructions.
    """
    campaign, answers, models = inputs.campaign, inputs.answers, inputs.models.names
    if campaign.asks_contestants:
        names, only = sorted(answers.instructions), "there are only"
        if not names:
            raise InputError(f"{campaign.path}: no instructions to answer: name a table in [data] instructions")
    else:
        names = sorted(
            name for name in answers.instructions if all((model, name) in answers.completions for model in models)
        )
        only = f"those answered by all {len(models)} models are only"
        if not names:
            raise InputError(
                f"{campaign.path}: the {len(models)} models have no instruction in common that all of them answered: "
                "name fewer models in [data] models or import the missing completions"
            )
    drawn = _sample(campaign, names, only, rng)
    long = oversized_texts(drawn, models, answers, inputs.lengths, funds)
    without = {text.instruction for text in long}
    kept = tuple(name for name in drawn if name not in without)
    return (kept, long) if kept else (drawn, ())


def _sample(campaign: CampaignSettings, names: Sequence[str], only: str, rng: np.random.Generator) -> tuple[str, ...]:
    """So many instructions as the campaign wants; all of them where it does not say. Raises InputError for too few."""
    wanted = campaign.plan.instructions
    if wanted is None:
        return tuple(names)
    if wanted > len(names):
        raise InputError(f"{campaign.path}: [plan] instructions = {wanted}, and {only} {len(names)}")
    return tuple(names[n] for n in rng.permutation(len(names))[:wanted])


def needs_other_judges(phase: PhaseSettings, models: Sequence[str], known: Mapping[str, float]) -> bool:
    """Whether a later phase chooses by gaps that only verdicts give: each judge's are then by those of the others."""
    return phase.needs_elo and any(model not in known for model in models)


def refuse_phases(campaign: CampaignSettings, models: Sequence[str], elo: Mapping[str, float]) -> None:
    """Raise InputError for what would make a later phase impossible, before anything is paid for the first."""
    for number, phase in enumerate(campaign.plan.phases):
        where = f"{campaign.path}: [[plan.phase]] {phase.name!r}"
        if phase.purpose == "place" and phase.place not in models:
            there = ", ".join(sorted(models)[:8]) + (" ..." if len(models) > 8 else "")
            raise InputError(f"{campaign.path}: place = {phase.place!r} is no model of this campaign: it has {there}")
        if number and needs_other_judges(phase, models, elo) and len(campaign.pair_judges) < 2:
            without = next(name for name in models if name not in elo)
            raise InputError(
                f"{where}: policy {phase.policy!r} needs Elo, and {without!r} has none: it would come from verdicts, "
                "and those of the only judge may not choose what that judge is asked: import Elo, add another judge, "
                "or choose another policy"
            )
        if number and phase.crosses:
            any_elo = {name: float(n) for n, name in enumerate(models)}  # to see what cannot be
            try:
                _matchups(phase, PlanState(tuple(models), any_elo), np.random.default_rng(0))
            except InputError as error:
                raise InputError(f"{where}: {error}") from None


def _replayed(inputs: PlanInputs, design: RoundDesign) -> tuple[Replayed, ...]:
    """What a design takes of judgments on record; InputError where it takes none and asks nobody."""
    campaign, recordings, plan = inputs.campaign, inputs.recordings, inputs.campaign.plan
    taken = tuple(
        replay_summary(
            recordings[judge.name], design, inputs.answers, judge.repeats or plan.repeats, plan.phases[0].policy
        )
        for judge in campaign.judges
        if judge.name in recordings
    )
    if len(taken) == len(campaign.judges) and not any(recording.trials for recording in taken):
        raise InputError(
            f"{campaign.path}: none of the {sum(recording.rows for recording in taken)} judgments on record is of "
            "completions, matchups and repeats of this campaign: models and instructions need the same "
            "names in all tables"
        )
    return taken


def _refuse_without_reference(inputs: PlanInputs, design: RoundDesign) -> None:
    path = inputs.campaign.path
    for judge in inputs.campaign.judges:
        without = [name for name in design.instructions if name not in inputs.answers.referenced]
        if PROTOCOLS[judge.protocol].needs_reference and without:
            raise InputError(
                f"{path}: judge {judge.name!r}: protocol {judge.protocol!r} needs reference answers, and "
                f"{len(without)} of {len(design.instructions)} instructions have none ({without[0]!r} is the first): "
                "add the column reference to the instructions, or use protocol 'direct'"
            )


def _refuse_without_edits(inputs: PlanInputs) -> None:
    """Refuse edits where none could be judged, and where battles are chosen by the verdicts of others."""
    campaign = inputs.campaign
    if campaign.plan.variants and (campaign.in_rounds or not campaign.pair_judges):
        raise InputError(
            f"{campaign.path}: [plan] variants needs judges of pairs, and a plan of one round with every matchup on "
            "every instruction, such as policy 'all-pairs'"
        )
    for variant in campaign.plan.variants:
        if not any(name == variant for _, _, name in inputs.answers.edited):
            raise InputError(
                f"{campaign.path}: [plan] variants names {variant!r}, and no completion of these models was edited so: "
                "`venire edit` writes the copies of an [[editor]] of that name, or import them (a table of completions "
                "with a column variant)"
            )
