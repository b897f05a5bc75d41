"""Intervals as bars on one scale, as pages draw them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

WIDTH = 320.0
_LABEL = 14.0
"""Half of what the widest label of the scale takes: closer to an end it would reach into the next column."""


def scale(rows: Sequence[Mapping[str, Any]]) -> tuple[float, float] | None:
    """The ends of the scale that all intervals are drawn on; an interval without an end goes to the edge."""
    values = [one[key] for one in rows for key in ("elo", "lo", "hi", "reference") if one.get(key) is not None]
    if not values:
        return None
    low, high = min(values), max(values)
    room = max(10.0, 0.04 * (high - low))
    return low - room, high + room


def axis(low: float, high: float) -> list[dict[str, float]]:
    """Ticks of a scale at round numbers: values and places."""
    step = next((one for one in (25, 50, 100, 200, 500, 1000, 2000, 5000) if (high - low) / one <= 8), 10_000)
    first = int(low // step + 1) * step
    ticks = [{"value": value, "x": _x(value, low, high)} for value in range(first, int(high) + 1, step)]
    return [one for one in ticks if _LABEL <= one["x"] <= WIDTH - _LABEL]


def _x(value: float, low: float, high: float) -> float:
    return round(WIDTH * (value - low) / (high - low), 1)


def bar(row: Mapping[str, Any], ends: tuple[float, float] | None) -> dict[str, Any] | None:
    """The places of a rating, its interval and its reference on a scale; None without a scale."""
    if ends is None:
        return None

    def at(key: str, edge: float | None = None) -> float | None:
        return edge if row.get(key) is None else _x(row[key], *ends)

    bounded = row.get("lo") is not None or row.get("hi") is not None
    return {
        "lo": at("lo", 0.0 if bounded else None),
        "hi": at("hi", WIDTH if bounded else None),
        "elo": at("elo"),
        "reference": at("reference"),
        "open_below": bounded and row.get("lo") is None,
        "open_above": bounded and row.get("hi") is None,
    }
