"""The models of a board's document: the ranks and ties of each in words, and what differences of ratings mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

POINTS = (50, 100, 200, 400)
"""Differences of ratings whose chances a page names."""


def expected(gap: float) -> float:
    """The chance that the model rated `gap` Elo points higher wins a battle, ties as halves.

    >>> round(expected(100.0), 2)
    0.64
    """
    return float(1.0 / (1.0 + 10.0 ** (-gap / 400.0)))


def rank_range(row: Mapping[str, Any]) -> str:
    """The places that a model may have.

    >>> rank_range({"rank_lo": 1, "rank_hi": 3}), rank_range({"rank_lo": 2, "rank_hi": 2}), rank_range({})
    ('1–3', '2', '–')
    """
    low, high = row.get("rank_lo"), row.get("rank_hi")
    return "–" if low is None else f"{low}" if low == high else f"{low}–{high}"


def tied(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Models that do not differ significantly from the first of their tier, where there are several.

    Groups of models that were rated apart have tiers of their own.
    """
    tiers: dict[tuple[int | None, int], list[str]] = {}
    for one in rows:
        if one.get("tier") is not None:
            tiers.setdefault((one.get("group"), one["tier"]), []).append(one["model"])
    return [names for names in tiers.values() if len(names) > 1]
