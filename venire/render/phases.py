"""Rounds and phases of a campaign's plan, for eyes and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Console

from venire.arena.campaigns import CampaignSettings, PhaseSettings
from venire.orchestrator.designs import PlannedCampaign
from venire.reports.wording import counted
from venire.status import stop_rules
from venire.wording import plain

__all__ = ["phases_json", "show_phases"]


def show_phases(screen: Console, campaign: CampaignSettings, planned: PlannedCampaign) -> None:
    """What is planned after the rounds that stand: in which phases, in rounds of how many, and until what."""
    for phase in campaign.plan.phases:
        mine = [one for one in planned.rounds if one.phase == phase.name]
        size = counted(sum(one.design.size for one in mine), "battle")
        there = f"; planned so far: {counted(len(mine), 'round')}, {size}" if mine else ""
        screen.print(plain(f"phase {phase.name}: {_of_phase(phase)}{there}"))
    if rules := stop_rules(campaign.plan.stop):
        screen.print(f"stops when {' or '.join(rules)}, or at the end of the plan or of the budget")


def _of_phase(phase: PhaseSettings) -> str:
    if phase.crosses:
        return f"{phase.policy}, every matchup on all instructions"
    many = "battles until a rule or the budget ends it" if phase.battles is None else f"{phase.battles:,} battles"
    about = {"mean": "", "boundary": f" about the best {phase.top}", "place": f" about {phase.place}"}[phase.purpose]
    return f"{phase.policy}{about}, {many}, in rounds of {phase.round:,}"


def phases_json(campaign: CampaignSettings, planned: PlannedCampaign) -> dict[str, Any]:
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
