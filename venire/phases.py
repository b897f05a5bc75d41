"""Rounds and phases of a campaign's plan: who steers them, and how the plan is told, for eyes and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from venire.arena.campaigns import Campaign, PhaseSettings, Price, StopSettings
from venire.arena.planning import Look, ModelLook, Steering
from venire.orchestrator.first_round import crosses
from venire.orchestrator.plan import PlannedCampaign
from venire.orchestrator.policies import POLICIES
from venire.orchestrator.rounds import Rounds, in_rounds
from venire.reports.wording import counted, few
from venire.screen import money, plain
from venire.storage import frames
from venire.storage.store import Store

__all__ = ["phases_json", "rounds_of", "show_phases", "told_look"]

_STARVED_TOLD = 5

_LEAST_INSTRUCTIONS = 20
"""As `ratings.stopping`, which brings scipy: below it errors by instruction are too uncertain for a width."""


def rounds_of(
    store: Store,
    campaign: Campaign,
    planned: PlannedCampaign,
    prices: Mapping[str, Price],
    steering: Steering | None = None,
) -> Rounds | None:
    """Who plans the rounds of a campaign, the next one too where all before it are judged; None where one is all.

    `steering` None: by ratings of the campaign's own verdicts.

    Raises InputError for a rule to stop that can never hold.
    """
    if not in_rounds(campaign):
        return None
    if steering is None:
        from venire.steering import Steerer  # and scipy, 65 MB that a plan of one round does without

        chosen = any(POLICIES[phase.policy].adaptive for phase in campaign.plan.phases)
        steering = Steerer(planned.design.models, campaign.plan.stop, even=chosen)
    rounds = Rounds(store, campaign, planned, steering, prices)
    if not frames.progress(store, planned.id).missing:
        rounds()
    return rounds


def told_look(look: Look, phase: str = "", number: int | None = None) -> str:
    """What is known after a round, in a line."""
    head = "" if number is None else f"round {number}{f' ({phase})' if phase else ''}: "
    width = ", no interval yet" if look.half_width is None else f", intervals within {look.half_width:.0f} points"
    if look.half_width is None and look.instructions < _LEAST_INSTRUCTIONS:
        width += f" (fewer than {_LEAST_INSTRUCTIONS} instructions)"
    left = "" if look.open is None else f", {counted(look.open, 'pair')} open"
    return (
        f"{head}{counted(look.battles, 'battle')} judged{width}{left}, {money(look.nano)} spent{_starved(look.models)}"
    )


def _starved(models: Sequence[ModelLook]) -> str:
    starved = [one.model for one in models if one.starved]
    return f"; too few battles: {few(starved, _STARVED_TOLD)}" if starved else ""


def show_phases(screen: Console, campaign: Campaign, planned: PlannedCampaign) -> None:
    """What is planned after the rounds that stand: in which phases, in rounds of how many, and until what."""
    for phase in campaign.plan.phases:
        mine = [one for one in planned.rounds if one.phase == phase.name]
        size = counted(sum(one.design.size for one in mine), "battle")
        there = f"; planned so far: {counted(len(mine), 'round')}, {size}" if mine else ""
        screen.print(plain(f"phase {phase.name}: {_of_phase(phase)}{there}"))
    if rules := _rules(campaign.plan.stop):
        screen.print(f"stops when {' or '.join(rules)}, or at the end of the plan or of the budget")


def _of_phase(phase: PhaseSettings) -> str:
    if crosses(phase.policy):
        return f"{phase.policy}, every matchup on all instructions"
    many = "battles until a rule or the budget ends it" if phase.battles is None else f"{phase.battles:,} battles"
    about = {"mean": "", "boundary": f" about the best {phase.top}", "place": f" about {phase.place}"}[phase.purpose]
    return f"{phase.policy}{about}, {many}, in rounds of {phase.round:,}"


def _rules(stop: StopSettings) -> list[str]:
    points = f"{stop.indifference:g} points"
    told = (
        [f"{stop.battles:,} {'battle is' if stop.battles == 1 else 'battles are'} judged"]
        if stop.battles is not None
        else []
    )
    told += [f"every interval is within {stop.half_width:g} points"] if stop.half_width is not None else []
    told += [f"the best {stop.top} are known up to {points}"] if stop.top is not None else []
    return told + ([f"the order is known up to {points}"] if stop.ranks else [])


def phases_json(campaign: Campaign, planned: PlannedCampaign) -> dict[str, Any]:
    """Phases, rounds and rules of a plan as plain values."""
    return {
        "phases": [asdict(phase) for phase in campaign.plan.phases],
        "orders": campaign.plan.orders,
        "stop": asdict(campaign.plan.stop),
        "rounds": [
            {
                "round": one.number,
                "phase": one.phase,
                "policy": one.policy,
                "battles": one.design.size,
                "trials": one.trials,
                "judges": list(one.design.judges),
            }
            for one in planned.rounds
        ],
    }
