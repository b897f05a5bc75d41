"""The models of a board in their order: rated ones, those beyond them, and those without a rating."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from venire.ratings.data.judgments import Judgments
from venire.ratings.data.result import Rated
from venire.ratings.data.validation import finite_or_none
from venire.ratings.inference.one_sided import OneSided, one_sided
from venire.ratings.pairwise.components import largest_group

_RATES = ("win-rate", "win-rate-balanced")
"""Methods whose Elo is performance against the field: a bound of the strength behind wins is not on that scale."""


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One model: its rating, standard error and interval in Elo points, None where no estimate exists.

    A model that won or lost everything has no rating, and an interval with one end. `logit` is the rating in log odds,
    `rank_lo` to `rank_hi` the ranks it may have at the board's level (1 is best), `battles` the number of its
    judgments. Models of one `tier` are not separated from the tier's first; `best` is the probability that the model's
    true rating is the highest. `group` counts from 1 and is None where all models were rated together; `reference` is a
    rating known in advance; `figures` are specific to the method. `position` is the place in the order of a method that
    gives an order, equal models at their mean; otherwise None. `accuracy` is the share of attempted answers that were
    graded correct, with its interval, and `not_attempted` the share of graded answers that were not attempted.
    """

    model: str
    elo: float | None
    logit: float | None
    lo: float | None
    hi: float | None
    se: float | None
    rank_lo: int | None
    rank_hi: int | None
    battles: int
    tier: int | None = None
    best: float | None = None
    group: int | None = None
    reference: float | None = None
    position: float | None = None
    accuracy: float | None = None
    accuracy_lo: float | None = None
    accuracy_hi: float | None = None
    not_attempted: float | None = None
    figures: Mapping[str, float | None] = field(default_factory=dict)


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
            elo=finite_or_none(found.elo[code]),
            logit=finite_or_none(found.logits[code]),
            lo=finite_or_none(rated.lo[code]),
            hi=finite_or_none(rated.hi[code]),
            se=finite_or_none(rated.se[code]),
            rank_lo=int(rated.rank_lo[code]) or None,
            rank_hi=int(rated.rank_hi[code]) or None,
            battles=count[name],
            tier=int(rated.tier[code]) or None,
            best=finite_or_none(rated.best[code]),
            group=int(rated.group[code]) if len(rated.groups) > 1 else None,
            reference=reference.get(name),
            position=None if rated.position is None else finite_or_none(rated.position[code]),
            figures={
                name: finite_or_none(column[code]) for name, column in rated.figures.items() if name != "position"
            },
        )
        for code, name in enumerate(found.models)
    ]
    rows = [_bounded(row, outside[row.model]) if row.model in outside and row.elo is None else row for row in rows]
    order = order_by_wins(judgments, rated)
    return tuple(sorted(rows, key=lambda row: _sort_key(row, outside.get(row.model), order.get(row.model, 0))))


def order_by_wins(judgments: Judgments, rated: Rated) -> Mapping[str, int]:
    """The number, by model, of its set of models joined by wins both ways; a set that only beats another is before it.

    It orders models that have no rating on one scale. Empty where all have one, where a method gives an order itself,
    and where wins do not tell.
    """
    if rated.position is not None or _turned(rated) or (len(rated.groups) < 2 and np.isfinite(rated.ratings.elo).all()):
        return {}
    groups = judgments.comparisons().wins.strong_components()
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


def _sort_key(row: ModelRow, side: OneSided | None, order: int) -> tuple[int, int, float, float, str]:
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
