"""The models of a board in their order: rated ones, those beyond them, and those without a rating."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from venire.ratings.data.judgments import Judgments
from venire.ratings.data.result import Rated
from venire.ratings.data.validation import finite_or_none
from venire.ratings.inference.one_sided import OneSided, one_sided
from venire.ratings.pairwise.components import largest_group, strong_components_of
from venire.ratings.pairwise.wins import win_counts
from venire.reports.board.board import ModelRow

_RATES = ("win-rate", "win-rate-balanced")
"""Methods whose Elo is performance against the field: a bound of the strength behind wins is not on that scale."""


def model_rows(
    judgments: Judgments, rated: Rated, reference: Mapping[str, float], outside: Mapping[str, OneSided]
) -> tuple[ModelRow, ...]:
    sides = np.concatenate([judgments.model_a, judgments.model_b])
    battles = np.bincount(sides, minlength=len(judgments.models)).tolist()
    count = dict(zip(judgments.models, battles, strict=True))
    found = rated.ratings
    rows = [
        ModelRow(
            model=name,
            elo=finite_or_none(found.elo[place]),
            logit=finite_or_none(found.logits[place]),
            lo=finite_or_none(rated.lo[place]),
            hi=finite_or_none(rated.hi[place]),
            se=finite_or_none(rated.se[place]),
            rank_lo=int(rated.rank_lo[place]) or None,
            rank_hi=int(rated.rank_hi[place]) or None,
            battles=count[name],
            tier=int(rated.tier[place]) or None,
            best=finite_or_none(rated.best[place]),
            group=int(rated.group[place]) if len(rated.groups) > 1 else None,
            reference=reference.get(name),
            position=None if rated.position is None else finite_or_none(rated.position[place]),
            figures={
                name: finite_or_none(column[place]) for name, column in rated.figures.items() if name != "position"
            },
        )
        for place, name in enumerate(found.models)
    ]
    rows = [_bounded(row, outside[row.model]) if row.model in outside and row.elo is None else row for row in rows]
    order = order_by_wins(judgments, rated)
    return tuple(sorted(rows, key=lambda row: _place(row, outside.get(row.model), order.get(row.model, 0))))


def order_by_wins(judgments: Judgments, rated: Rated) -> Mapping[str, int]:
    """The number, by model, of its set of models joined by wins both ways; a set that only beats another is before it.

    It orders models that have no rating on one scale. Empty where all have one, where a method gives an order itself,
    and where wins do not tell.
    """
    if rated.position is not None or _turned(rated) or (len(rated.groups) < 2 and np.isfinite(rated.ratings.elo).all()):
        return {}
    groups = strong_components_of(win_counts(judgments.comparisons()))
    return {judgments.models[code]: number for number, codes in enumerate(groups, start=1) for code in codes.tolist()}


def outside_ratings(judgments: Judgments, rated: Rated, level: float) -> Mapping[str, OneSided]:
    """The models wholly above or below the largest group of rated models, and the bounds of their ratings."""
    group = largest_group(rated)
    if group is None or rated.position is not None or _turned(rated):
        return {}
    elo = np.where(rated.group == group, rated.ratings.elo, math.nan)
    if np.isfinite(elo).all():
        return {}
    found = one_sided(judgments.comparisons(), elo, level=level)
    if rated.ratings.method in _RATES:
        return {name: replace(side, bound=None) for name, side in found.items()}
    return found


def _turned(rated: Rated) -> bool:
    """Whether a judge is taken to mean the opposite of its verdicts: wins then do not tell who is above whom."""
    return any((column < 0).any() for name, column in rated.judge_figures.items() if name == "ability")


def _bounded(row: ModelRow, side: OneSided) -> ModelRow:
    """A model without a rating, with an interval that is open to the side on which it stands."""
    return replace(row, lo=side.bound) if side.above else replace(row, hi=side.bound)


def _place(row: ModelRow, side: OneSided | None, order: int) -> tuple[int, int, float, float, str]:
    """Sort key: side of the rated models, rating, then position.

    Values that print alike are tied, since the last bits must not decide. Groups wholly above or below the largest one
    are in the order of their wins: their ratings, each in a gauge of its own, cannot be compared.
    """
    tier = 0 if side is None else -1 if side.above else 1
    rating = math.inf if row.elo is None else -round(row.elo, 6)
    position = math.inf if row.position is None else round(row.position, 6)
    if side is None and row.elo is None and row.position is None:
        tier = 3 if row.battles == 0 else 2
    return tier, order if tier else 0, rating, position, row.model
