"""What methods found beside ratings, a line each: the cost of an order, the sign of abilities, judges left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from venire.reports.wording import few
from venire.wording import plain

__all__ = ["show_found"]

_NAMED = 5
"""Judges that are named; all of them stand in `venire rate --json`."""


def show_found(screen: Console, facts: Mapping[str, Any]) -> None:
    """The lines that a board's diagnostics ask for, as far as its method made them."""
    if "own_left_out" in facts:
        screen.print(f"left out: {facts['own_left_out']} verdicts of judges on themselves", style="dim")
    if weights := facts.get("judge_weights"):
        screen.print(f"weights: {few([f'{plain(name)} {weight:g}' for name, weight in weights.items()])}", style="dim")
    if "cost" in facts:
        _show_order(screen, facts)
    if str(facts.get("sign", "")).startswith("undecided"):
        screen.print(f"note: the sign of the abilities is {plain(str(facts['sign']))}")
    unknown: Mapping[str, str] = facts.get("no_ability", {})
    for reason in dict.fromkeys(unknown.values()):
        names = [plain(name) for name, why in unknown.items() if why == reason]
        screen.print(f"no finite ability: {few(names)}: {plain(reason)}")
    dropped = facts.get("dropped", ())
    for one in dropped[:_NAMED]:
        screen.print(f"left out: {plain(one['judge'])}: {plain(one['reason'])}")
    if len(dropped) > _NAMED:
        screen.print(f"and {len(dropped) - _NAMED} more judges left out: all of them in `venire rate --json`")


def _show_order(screen: Console, facts: Mapping[str, Any]) -> None:
    said = "proved to be the least" if facts["proved"] else "not known to be the least"
    count = facts["optimal_orders"]
    orders = (
        "" if count is None else "; no other order costs as little" if count == 1 else f"; {count:,} orders cost it"
    )
    screen.print(
        f"cost {facts['cost']:.10g}, the votes that this order contradicts, lower bound {facts['lower_bound']:.10g}: "
        f"{said}{orders}",
        style="dim",
    )
