"""How judgments scatter about the ratings, and how much of that they share: what a count of judgments is worth.

A model of independent verdicts takes each for a coin with the odds of the ratings. Real ones scatter less (two orders
are averaged, ties lie in the middle), and hang together: judges agree about one battle beyond the ratings, and a
completion that is better than its model's others wins all its battles. These shares are moments of residuals, so that
they can be measured on a pilot and put to a plan that is not judged yet.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from venire.arena.errors import InputError
from venire.ratings.data.judgments import Judgments
from venire.ratings.data.merging import combine

__all__ = ["DEFAULT_EFFECT", "DEFAULT_EFFECT_ONE_ORDER", "DesignEffect", "design_effect"]

Vector = NDArray[np.float64]
Codes = NDArray[np.int64]

_PRIOR_PAIRS = 100
"""Pairs of judgments that a default counts as beside those that are measured."""


@dataclass(frozen=True, slots=True)
class DesignEffect:
    """Moments of the residuals of judgments, outcome less expectation.

    `scatter` is their variance over p (1 - p). The others are correlations: of two `judges` about one battle, of the
    `repeats` of one judge about one battle, and of two battles on one instruction that show the same completion of one
    model (`completions`; another where it stands on the other side). `judgments` says how many were measured; 0: a
    default. `ties` and `flips` are shares of those measured.
    """

    scatter: float
    judges: float
    completions: float
    repeats: float
    judgments: int = 0
    ties: float | None = None
    flips: float | None = None


DEFAULT_EFFECT = DesignEffect(scatter=0.5, judges=0.25, completions=0.2, repeats=0.75)
"""Where nothing was measured: the middle of fourteen recorded judges and more (docs/planning.md)."""

DEFAULT_EFFECT_ONE_ORDER = replace(DEFAULT_EFFECT, scatter=0.93)
"""The same where a battle is shown in one order."""


def design_effect(data: Judgments, logits: Vector, default: DesignEffect = DEFAULT_EFFECT) -> DesignEffect:
    """The moments of `data` about ratings `logits` (models,), each drawn to the `default` as to 100 pairs of rows.

    Rows of models without an estimate are left out. Raises `InputError` where the ratings are of other models.
    """
    if logits.shape != (len(data.models),):
        raise InputError(f"logits has shape {logits.shape}; give one value for each of {len(data.models)} models")
    rated = np.isfinite(logits)
    rows = data.select(rated[data.model_a] & rated[data.model_b])
    if not len(rows) or not rows.instructions:
        return default
    share = expit(logits[rows.model_a] - logits[rows.model_b])
    size = np.sqrt(share * (1.0 - share))
    residual = rows.y - share
    # Ratings that were fitted to the same rows took some of the scatter.
    free = len(rows) - (len(np.unique([rows.model_a, rows.model_b])) - 1)
    grown = len(rows) / free if free > 0 else 1.0
    scatter = _drawn(grown * float(residual @ residual), float(size @ size), len(rows), default.scatter)
    sides = [column.astype(np.int64) for column in (rows.instruction, rows.model_a, rows.model_b)]
    battle = combine(*sides)
    asked = combine(battle, rows.judge.astype(np.int64))
    again, any_judge = _within(asked, residual, size), _within(battle, residual, size)
    others = _Sums(*(whole - part for whole, part in zip(any_judge, again, strict=True)))
    return DesignEffect(
        scatter,
        judges=_correlation(others, scatter, default.judges),
        completions=_correlation(_sharing(sides, battle, residual, size), scatter, default.completions),
        repeats=_correlation(again, scatter, default.repeats),
        judgments=len(rows),
        ties=float(np.mean((rows.y == 0.5) & ~rows.flipped)),
        flips=float(np.mean(rows.flipped)),
    )


class _Sums(NamedTuple):
    """Over pairs of rows: sum of the products of residuals, of what they would be at a correlation of 1, and number."""

    products: float
    sizes: float
    pairs: float


def _within(key: Codes, residual: Vector, size: Vector) -> _Sums:
    """Over all pairs of rows with one key."""
    group = np.unique(key, return_inverse=True)[1]

    def over_pairs(values: Vector) -> float:
        return 0.5 * float((np.bincount(group, values) ** 2).sum() - values @ values)

    return _Sums(over_pairs(residual), over_pairs(size), over_pairs(np.ones(len(key))))


def _sharing(sides: list[Codes], battle: Codes, residual: Vector, size: Vector) -> _Sums:
    """Over all pairs of rows that show one completion in common: the other sign where it stands on the other side."""
    first, group = np.unique(battle, return_index=True, return_inverse=True)[1:]
    instruction, a, b = (side[first] for side in sides)
    told, sizes, number = (np.bincount(group, values) for values in (residual, size, np.ones(len(group))))
    completion = combine(np.tile(instruction, 2), np.concatenate([a, b]))
    found = _within(completion, np.concatenate([told, -told]), np.tile(sizes, 2))
    return found._replace(pairs=_within(completion, np.tile(number, 2), np.tile(number, 2)).products)


def _drawn(above: float, below: float, pairs: float, default: float) -> float:
    """A ratio of sums over so many pairs, drawn to a default as to some more."""
    found = above / below if below > 0.0 else default
    return (pairs * found + _PRIOR_PAIRS * default) / (pairs + _PRIOR_PAIRS)


def _correlation(found: _Sums, scatter: float, default: float) -> float:
    """Less than 0 is taken for chance: a plan should not count on it."""
    return min(1.0, max(0.0, _drawn(found.products, scatter * found.sizes, found.pairs, default)))
