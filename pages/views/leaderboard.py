"""The leaderboard: ratings with intervals on one scale, ranks, tied sets, and wins seen beside wins expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from venire.pages.context import PageContext
from venire.pages.texts import name
from venire.storage.read.activity import ContestantRow, known_models
from venire.storage.read.frames import judges as judges_of
from venire.storage.read.trial_table import TrialFilter, categories

__all__ = ["STEPS", "leaderboard"]

STEPS = 10
"""Shades of a cell of the win matrix."""

_WIDTH = 320.0
_LABEL = 14.0
"""Half of what the widest label of the scale takes: closer to an end it would reach into the next column."""
_POINTS = (50, 100, 200, 400)


def leaderboard(here: PageContext, board: Mapping[str, Any], chosen: Mapping[str, str]) -> dict[str, Any]:
    """The values of the leaderboard's page, from a board's document (docs/board.md) and how it was chosen."""
    models = {one.name: one for one in known_models(here.store)}
    rows = board["models"]
    ordered = bool(rows) and all(one.get("elo") is None for one in rows)
    scale = _scale(rows)
    shown = [_row(here, one, models, scale) for one in rows]
    judges = chosen["judge"].split("\n") if chosen["judge"] else []
    wanted = TrialFilter(judge=judges[0] if len(judges) == 1 else None, category=chosen["category"] or None)
    return {
        "board": board,
        "rows": shown,
        "ordered": ordered,
        "axis": None if scale is None else _axis(*scale),
        "chosen": chosen,
        "judges": judges,
        "matrix": _matrix(here, rows, models, board["seen"], wanted),
        "judge_names": [one.name for one in judges_of(here.store, here.campaign.id)],
        "categories": here.memo("categories", lambda: categories(here.store)),
        "not_rated": board["diagnostics"].get("no_estimate") or {},
        "has_reference": any(one.get("reference") is not None for one in rows),
        "points": [(gap, expected(float(gap))) for gap in _POINTS],
        "tied": _tied(rows),
    }


def expected(gap: float) -> float:
    """The chance that the model rated `gap` Elo points higher wins a battle, ties as halves.

    >>> round(expected(100.0), 2)
    0.64
    """
    return float(1.0 / (1.0 + 10.0 ** (-gap / 400.0)))


def _scale(rows: Sequence[Mapping[str, Any]]) -> tuple[float, float] | None:
    """The ends of the scale that all intervals are drawn on; an interval without an end goes to the edge."""
    values = [one[key] for one in rows for key in ("elo", "lo", "hi", "reference") if one.get(key) is not None]
    if not values:
        return None
    low, high = min(values), max(values)
    room = max(10.0, 0.04 * (high - low))
    return low - room, high + room


def _axis(low: float, high: float) -> list[dict[str, float]]:
    step = next((one for one in (25, 50, 100, 200, 500, 1000, 2000, 5000) if (high - low) / one <= 8), 10_000)
    first = int(low // step + 1) * step
    ticks = [{"value": value, "x": _x(value, low, high)} for value in range(first, int(high) + 1, step)]
    return [one for one in ticks if _LABEL <= one["x"] <= _WIDTH - _LABEL]


def _x(value: float, low: float, high: float) -> float:
    return round(_WIDTH * (value - low) / (high - low), 1)


def _row(
    here: PageContext, one: Mapping[str, Any], models: Mapping[str, ContestantRow], scale: tuple[float, float] | None
) -> dict[str, Any]:
    known = models.get(one["model"])
    bar = None
    if scale is not None:

        def at(key: str, edge: float | None = None) -> float | None:
            return edge if one.get(key) is None else _x(one[key], *scale)

        bounded = one.get("lo") is not None or one.get("hi") is not None
        bar = {
            "lo": at("lo", 0.0 if bounded else None),
            "hi": at("hi", _WIDTH if bounded else None),
            "elo": at("elo"),
            "reference": at("reference"),
            "open_below": bounded and one.get("lo") is None,
            "open_above": bounded and one.get("hi") is None,
        }
    low, high = one.get("rank_lo"), one.get("rank_hi")
    return {
        "facts": one,
        "bar": bar,
        "rank": "–" if low is None else f"{low}" if low == high else f"{low}–{high}",
        "page": here.links.contestant(known.number) if known else None,
        "calls": here.links.calls(model=known.number) if known else None,
        "family": known.family if known else None,
    }


def _tied(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Models that do not differ significantly from the first of their tier, where there are several."""
    tiers: dict[int, list[str]] = {}
    for one in rows:
        if one.get("tier") is not None:
            tiers.setdefault(one["tier"], []).append(one["model"])
    return [names for names in tiers.values() if len(names) > 1]


def _matrix(
    here: PageContext,
    rows: Sequence[Mapping[str, Any]],
    models: Mapping[str, ContestantRow],
    pairs: Sequence[tuple[str, str, float, int]],
    wanted: TrialFilter,
) -> list[dict[str, Any]]:
    """Of each model, best first, its share of wins against each other one: seen, and expected from the ratings."""
    seen: dict[tuple[str, str], tuple[float, int]] = {}
    for a, b, wins, count in pairs:  # each order of two models has a line of its own where both were A
        before, number = seen.get((a, b), (0.0, 0))
        seen[a, b] = before + wins, number + count
        seen[b, a] = number - before + count - wins, number + count
    there = [(one, models[one["model"]]) for one in rows if one["model"] in models]
    found = []
    for one, known in there:
        cells = []
        for other, opponent in there:
            wins, count = seen.get((known.name, opponent.name), (0.0, 0))
            both = one.get("elo") is not None and other.get("elo") is not None
            likely = expected(one["elo"] - other["elo"]) if both and known is not opponent else None
            share = wins / count if count else None
            link = count and here.links.calls(
                model=known.number, opponent=opponent.number, judge=wanted.judge, category=wanted.category
            )
            cells.append(
                {
                    "same": known is opponent,
                    "count": count,
                    "share": share,
                    "expected": likely,
                    "step": None if share is None else min(STEPS, round(share * STEPS)),
                    "link": link or None,
                    "words": f"{name(one['model'], 40)} against {name(other['model'], 40)}",
                }
            )
        found.append({"model": one["model"], "cells": cells})
    return found
