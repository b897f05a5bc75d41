"""The lanes and budgets of a run as they are at one moment, in plain values: for whoever looks on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from venire.orchestrator.costs.budget import BudgetAccount, BudgetView
from venire.orchestrator.lanes.lane import Lane


def run_state(lanes: Iterable[Lane], budgets: Iterable[BudgetView], *, stopping: bool) -> dict[str, Any]:
    """Each route with what it sent in the last minute, why it is held or closed, and each budget with what is left.

    Keys are named by their environment variable. Money is in nano-dollars, times in seconds.
    """
    return {
        "lanes": [row for lane in lanes for row in _routes(lane)],
        "budgets": [row for one in _accounts(budgets) for row in one.limits.rows(one.whose, one.used, one.reserved)],
        "stopping": stopping,
    }


def _routes(lane: Lane) -> list[Mapping[str, Any]]:
    return [
        {
            "route": route.name,
            "key": route.settings.key_variable,
            "in_flight": route.gate.in_flight,
            "allowed": route.gate.allowed,
            "held_seconds": round(route.gate.held_for, 1),
            "held_why": route.gate.held_why,
            "slowed": route.gate.slowed,
            "closed": route.closed or lane.closed,
            "circuit": route.circuit.is_open,
            **asdict(route.gate.usage()),
        }
        for route in lane.routes.all
    ]


def _accounts(budgets: Iterable[BudgetView]) -> list[BudgetAccount]:
    """Every account once: judges share that of the campaign."""
    return list({id(account): account for one in budgets for account in one.accounts}.values())
