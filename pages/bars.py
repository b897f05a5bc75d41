"""A board as pages and reports draw it: its rows with their intervals as bars on one scale, in shares of its width."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from venire.reports.documents.rows import rank_range

_LABEL = 4.5
"""Half of what the widest label of the scale takes: closer to an end it would reach into the next column."""


def drawn_board(
    rows: Sequence[Mapping[str, Any]], more: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda one: {}
) -> dict[str, Any]:
    """What a template draws of a board's models, best first; `more` is added to each row.

    `ordered` is a board without ratings, `ranked` one of which any rank is known, `judged` one of any judgments, `axis`
    the ticks of the scale, in `unit`. Models that were graded alone have their accuracy in the place of ratings.
    """
    unit, ends = "Elo", _scale(rows)
    if ends is None and any(one.get("accuracy") is not None for one in rows):
        unit, ends = "accuracy", (0.0, 100.0)
        rows = [{**one, **_accuracy(one)} for one in rows]
    drawn = [{"facts": one, "bar": _bar(one, ends), "rank": rank_range(one), **more(one)} for one in rows]
    return {
        "rows": drawn,
        "ordered": bool(rows) and all(one.get("elo") is None for one in rows),
        "ranked": any(one["rank"] != "–" for one in drawn),
        "judged": any(one.get("battles") for one in rows),
        "has_reference": any(one.get("reference") is not None for one in rows),
        "axis": None if ends is None else _axis(*ends),
        "unit": unit,
    }


def _accuracy(row: Mapping[str, Any]) -> dict[str, float | None]:
    """The accuracy of a row with its interval, in percent, under the names of a rating's."""
    names = {"elo": "accuracy", "lo": "accuracy_lo", "hi": "accuracy_hi"}
    return {name: None if row.get(key) is None else 100.0 * row[key] for name, key in names.items()}


def _scale(rows: Sequence[Mapping[str, Any]]) -> tuple[float, float] | None:
    """The ends of the scale that all intervals are drawn on; an interval without an end goes to the edge."""
    values = [one[key] for one in rows for key in ("elo", "lo", "hi", "reference") if one.get(key) is not None]
    if not values:
        return None
    low, high = min(values), max(values)
    room = max(10.0, 0.04 * (high - low))
    return low - room, high + room


def _axis(low: float, high: float) -> list[dict[str, float]]:
    """Ticks of a scale at round numbers: values and where they are."""
    step = next((one for one in (25, 50, 100, 200, 500, 1000, 2000, 5000) if (high - low) / one <= 8), 10_000)
    first = int(low // step + 1) * step
    ticks = [{"value": value, "x": _x(value, low, high)} for value in range(first, int(high) + 1, step)]
    return [one for one in ticks if _LABEL <= one["x"] <= 100.0 - _LABEL]


def _x(value: float, low: float, high: float) -> float:
    """Where a value is on the scale, in percent of its width."""
    return round(100.0 * (value - low) / (high - low), 2)


def _bar(row: Mapping[str, Any], ends: tuple[float, float] | None) -> dict[str, Any] | None:
    """Where a rating, its interval and its reference are on a scale; None without a scale."""
    if ends is None:
        return None

    def at(key: str, edge: float | None = None) -> float | None:
        return edge if row.get(key) is None else _x(row[key], *ends)

    bounded = row.get("lo") is not None or row.get("hi") is not None
    return {
        "lo": at("lo", 0.0 if bounded else None),
        "hi": at("hi", 100.0 if bounded else None),
        "elo": at("elo"),
        "reference": at("reference"),
        "open_below": bounded and row.get("lo") is None,
        "open_above": bounded and row.get("hi") is None,
    }
