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
        "budgets": [row for account in _accounts(budgets) for row in _limits(account)],
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


def _limits(account: BudgetAccount) -> list[Mapping[str, Any]]:
    limits = account.limits
    found: list[Mapping[str, Any]] = []
    for unit, limit, used, reserved in (
        ("money", limits.money, account.money, account.reserved_money),
        ("calls", limits.calls, account.calls, 0),
        ("tokens", limits.tokens, account.tokens, account.reserved_tokens),
    ):
        if limit is not None:
            left = max(0, limit - used - reserved)
            row = {
                "whose": account.whose,
                "unit": unit,
                "limit": limit,
                "used": used,
                "reserved": reserved,
                "left": left,
            }
            found.append(row)
    return found
