"""A board as pages and reports draw it: its rows with their intervals as bars on one scale, in shares of its width."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from venire.reports.documents.rows import rank_range
from venire.reports.planes import round_ticks

_LABEL = 4.5
"""Half of what the widest label of the scale takes: closer to an end, but not at it, a label would meet the next."""

_TICKS = 6.5
_STEPS = (1.0, 2.0, 2.5, 5.0)
"""So many labels, at such distances, have room where a bar is shortest."""


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
    drawn = [{"facts": one, "bar": ends and _bar(one, ends), "rank": rank_range(one), **more(one)} for one in rows]
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


def drawn_intervals(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The same of rows that have a `name`, a `value` with its `lo` and `hi`, and may have an `other` value.

    Shares are on the whole scale from 0 to 1.
    """
    rows = [{**one, "elo": one["value"], "reference": one.get("other")} for one in rows]
    low, high = _scale(rows, least_room=0.0) or (0.0, 1.0)
    ends = (0.0, 1.0) if low >= 0.0 and high <= 1.0 else (low, high if high > low else low + 1.0)
    return {"rows": [{"facts": one, "bar": _bar(one, ends)} for one in rows], "axis": _axis(*ends), "half": False}


def drawn_shares(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Shares (`value`) of each `name` as bars from 0 to 1, with the figure `written`, and an `other` share.

    At a half there is a dashed line.
    """
    axis = [{"x": x, "text": f"{x}%", "anchor": anchor} for x, anchor in ((0, "start"), (50, "middle"), (100, "end"))]
    drawn = [
        {
            "facts": one,
            "bar": {**_bar({"reference": one.get("other")}, (0.0, 1.0)), "filled": _x(one["value"], 0.0, 1.0)},
        }
        for one in rows
    ]
    return {"rows": drawn, "axis": axis, "half": True}


def _scale(rows: Sequence[Mapping[str, Any]], least_room: float = 10.0) -> tuple[float, float] | None:
    """The ends of the scale that all intervals are drawn on; an interval without an end goes to the edge."""
    values: list[float] = [
        one[key] for one in rows for key in ("elo", "lo", "hi", "reference") if one.get(key) is not None
    ]
    if not values:
        return None
    low, high = min(values), max(values)
    room = max(least_room, 0.04 * (high - low)) if least_room else 0.0
    return low - room, high + room


def _axis(low: float, high: float) -> list[dict[str, Any]]:
    """Ticks of a scale at round numbers: where they are, and as text."""
    found = []
    for value in round_ticks(low, high, _TICKS, _STEPS):
        x = _x(value, low, high)
        at_end = "start" if x <= 0.0 else "end" if x >= 100.0 else ""
        text = f"{value:.10g}" if at_end or _LABEL <= x <= 100.0 - _LABEL else ""
        found.append({"x": x, "text": text, "anchor": at_end or "middle"})
    return found


def _x(value: float, low: float, high: float) -> float:
    """Where a value is on the scale, in percent of its width."""
    return round(100.0 * (value - low) / (high - low), 2)


def _bar(row: Mapping[str, Any], ends: tuple[float, float]) -> dict[str, Any]:
    """Where a rating, its interval and its reference are on a scale."""

    def at(key: str, edge: float | None = None) -> float | None:
        return edge if row.get(key) is None else _x(row[key], *ends)

    bounded = row.get("lo") is not None or row.get("hi") is not None
    return {
        "lo": at("lo", 0.0 if bounded else None),
        "hi": at("hi", 100.0 if bounded else None),
        "elo": at("elo"),
        "reference": at("reference"),
        "filled": None,
        "open_below": bounded and row.get("lo") is None,
        "open_above": bounded and row.get("hi") is None,
    }
