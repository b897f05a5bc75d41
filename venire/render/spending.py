"""What a campaign was expected to cost when it was first run, beside what it has cost by now."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console

from venire.render.screen import money
from venire.storage.read import frames
from venire.storage.store.store import Store

if TYPE_CHECKING:
    from venire.session import Session

__all__ = ["keep_forecast", "show_spending", "spending_json"]


@dataclass(frozen=True, slots=True)
class _Kept:
    """A forecast as it was kept: for `trials` that were left, after `done` and when `spent` was paid already."""

    trials: int
    done: int
    spent: int
    low: int
    expected: int
    high: int


def keep_forecast(session: Session) -> None:
    """Keep what the rest of a plan is expected to cost, unless an earlier run of this plan did so.

    Raises StoreError where the store cannot be written.
    """
    standing = session.progress
    if not standing.missing or session.store.read("first_forecast", campaign=session.planned.id):
        return
    rows = session.forecast()
    low, expected, high = (sum(getattr(row, name) for row in rows) for name in ("low", "expected", "high"))
    done, spent = standing.planned - standing.missing, session.accounts.nano
    detail = json.dumps(asdict(_Kept(standing.missing, done, spent, low, expected, high)))
    with session.store.commit() as commit:
        commit.run(
            "insert_event",
            now=session.store.clock.wall(),
            campaign=session.planned.id,
            kind="forecast",
            detail=detail,
            batch=commit.batch,
        )


def spending_json(store: Store, campaign: int) -> dict[str, Any] | None:
    """The forecast of the first run beside what is paid, in nano-dollars; None of a campaign without one.

    `expected_so_far` is what the trials settled since then were expected to cost, `paid_so_far` what was paid since;
    `whole` is what was expected of the plan as it was then, with what had been paid before it.
    """
    found = store.read("first_forecast", campaign=campaign)
    if not found:
        return None
    kept = _Kept(**json.loads(found[0][0]))
    standing, paid = frames.progress(store, campaign), frames.accounts(store, campaign).nano
    since = max(0, standing.planned - standing.missing - kept.done)
    share = since / kept.trials
    reach = max(share, share**0.5)  # of fewer trials the sum is less sure, for its size
    middle = kept.expected * share
    low, high = middle - reach * (kept.expected - kept.low), middle + reach * (kept.high - kept.expected)
    return {
        "trials": kept.trials,
        "low": kept.low,
        "expected": kept.expected,
        "high": kept.high,
        "whole": kept.spent + kept.expected,
        "settled_since": since,
        "low_so_far": max(0, round(low)),
        "expected_so_far": round(middle),
        "high_so_far": round(high),
        "paid_so_far": paid - kept.spent,
    }


def show_spending(screen: Console, told: dict[str, Any] | None) -> None:
    """A line: what was expected for the trials asked so far, and what they cost."""
    if told is None or not told["settled_since"] or not told["expected"]:
        return
    paid, low, high = (told[f"{name}_so_far"] for name in ("paid", "low", "high"))
    beyond = "" if low <= paid <= high else ": below the forecast" if paid < low else ": beyond the forecast"
    screen.print(
        f"  {told['settled_since']:,} trials since the first forecast were to cost {money(told['expected_so_far'])} "
        f"({money(low)} to {money(high)}) and cost {money(paid)}{beyond}"
    )
