"""What stands on the screen beside a leaderboard: ratings that it is held against, and judges on themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from venire.render.screen import tabulate
from venire.reports.wording import few
from venire.wording import plain

__all__ = ["show_peers", "show_reference"]

_NARROW = 105
"""Columns below which the two positions behind a gap are left out, as in the judges' table."""

_MOST = 40


def show_reference(screen: Console, told: Mapping[str, Any]) -> None:
    """One line on the ratings of a file: how many were used, and which could not be."""
    line = f"reference: {plain(told['file'])}, {told['shared']} of its {told['ratings']} models were judged"
    line += f" (not judged: {plain(few(told['not_judged']))})" if told["not_judged"] else ""
    line += f"; no reference for {plain(few(told['not_rated']))}" if told["not_rated"] else ""
    line += f"; in place of the store's {told['replaces']} ratings" if told["replaces"] else ""
    screen.print(line, style="dim")


def show_peers(screen: Console, facts: Mapping[str, Any], verdicts: str | None) -> None:
    """What models that judge say of themselves, what the others say, and what their own verdicts move."""
    models, level = facts["models"][:_MOST], f"{100 * facts['level']:g} %"
    positions = facts["unit"] == "positions"
    places = 2 if positions else 3
    columns: list[tuple[str, list[str]]] = [
        ("model", [plain(row["model"]) for row in models]),
        ("by itself", [_figure(row["self_evaluation"], places) for row in models]),
        ("by others", [_figure(row["peer_evaluation"], places) for row in models]),
        ("gap", [_figure(row["se_minus_pe"], places, "+") for row in models]),
        (level, [_span(row, "se_minus_pe", places) for row in models]),
        ("own odds", [_figure(row["own_odds"], 2, "+") for row in models]),
        (level, [_span(row, "own_odds", 2) for row in models]),
        ("moved", [_figure(row["sie_minus_sfe"], 2, "+") for row in models]),
    ]
    wide = screen.width >= _NARROW
    shown = [(head, cells) for head, cells in columns if any(cells) and (wide or not head.startswith("by"))]
    cells = list(zip(*(cells for _, cells in shown), strict=True))
    screen.print()
    tabulate(screen, [head for head, _ in shown], cells, title=f"Judges on themselves   verdicts: {verdicts}")
    gap = "positions (1 is the best)" if positions else "share of points lost"
    screen.print(
        f"gap: by itself less by others, {gap}; a sharp judge puts a good model, itself too, further ahead. "
        "own odds: log odds for itself beyond that; above 0 it favours itself. "
        "moved: places by verdicts of models on themselves, below 0 to the better",
        style="dim",
    )
    for reason in dict.fromkeys(row["own_odds_reason"] for row in facts["models"] if row["own_odds_reason"]):
        names = [row["model"] for row in facts["models"] if row["own_odds_reason"] == reason]
        screen.print(f"no own odds: {plain(few(names))}: {reason}", style="dim")
    for warning in facts["warnings"]:
        screen.print(f"note: {plain(warning)}")


def _figure(value: float | None, places: int, sign: str = "") -> str:
    if value is None:
        return ""
    return f"{value:{sign}.{places}f}" if round(value, places) else f"{0:.{places}f}"


def _span(row: Mapping[str, Any], name: str, places: int) -> str:
    lo, hi = row[f"{name}_lo"], row[f"{name}_hi"]
    return "" if lo is None or hi is None else f"{lo:.{places}f} to {hi:.{places}f}"
