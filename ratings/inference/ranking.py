"""Ranks with simultaneous intervals: ties between models, tiers, and the probability of being best.

Two models are separated when their difference is beyond `critical` standard errors, the level quantile of the largest
such ratio over all pairs under the ratings' joint error: all separations hold simultaneously with probability `level`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.arena.wording import suggest
from venire.ratings.data.result import Ratings
from venire.ratings.data.statistics import student
from venire.ratings.inference.bootstrap import Replicates
from venire.ratings.inference.contrasts import JointErrors, joint_errors, max_t_quantile

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Ranks of `models`; 1 is best, and 0 marks a model without an estimate or an error.

    `rank` (n,) is by the estimate, `lo` and `hi` (n,) bound the true ranks of all models at once. `separated[i, j]` (n,
    n): i is above j. `tier` (n,): going down the ranks, a tier begins with each model that is separated from the first
    of the tier before. `best` (n,): probability that the true rating is the highest; `above[i, j]` (n, n): that it is
    above j's; NaN for models without a rank.
    """

    models: tuple[str, ...]
    rank: NDArray[np.int64]
    lo: NDArray[np.int64]
    hi: NDArray[np.int64]
    tier: NDArray[np.int64]
    separated: NDArray[np.bool_]
    above: Matrix
    best: NDArray[np.float64]
    critical: float
    level: float

    def tied(self, model: str) -> tuple[str, ...]:
        """Models that are not separated from `model`, including itself, best first. Raises `InputError`."""
        place = _place(self.models, model)
        if not self.rank[place]:
            return ()
        near = (self.rank > 0) & ~self.separated[place] & ~self.separated[:, place]
        return tuple(self.models[code] for code in sorted(np.flatnonzero(near), key=lambda code: self.rank[code]))


@dataclass(frozen=True, slots=True)
class RankInterval:
    """The rank of one model by the estimate, and bounds `lo` and `hi` of its true rank."""

    model: str
    rank: int
    lo: int
    hi: int
    critical: float
    level: float


def ranking(
    ratings: Ratings,
    *,
    level: float = 0.95,
    draws: int = 10_000,
    seed: int = 0,
    replicates: Replicates | None = None,
) -> Ranking:
    """Ranks of all models with simultaneous bounds; docs/ratings.md.

    Errors are drawn from the covariance, or are those of `replicates` where they are given. Raises `InputError` for
    ratings without a covariance, replicates of other models, and impossible numbers.

    >>> from venire.ratings import bradley_terry, comparisons, ranking
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> found = ranking(bradley_terry(data), draws=100)
    >>> list(zip(found.models, found.rank.tolist()))
    [('a', 1), ('b', 2), ('c', 3)]
    """
    found = joint_errors(ratings, replicates=replicates, draws=draws, seed=seed, level=level)
    critical = max_t_quantile(found, level)
    gap, se = found.logits[:, None] - found.logits[None, :], found.differences
    separated = _separated(gap, se, critical)
    count, size, known = len(found.known), len(ratings.models), found.known
    rank, lo, hi, tier = (np.zeros(size, dtype=np.int64) for _ in range(4))
    rank[known] = 1 + (gap < 0.0).sum(axis=1)
    lo[known] = 1 + separated.sum(axis=0)
    hi[known] = count - separated.sum(axis=1)
    tier[known] = _tiers(found.logits, separated)
    wide = np.zeros((size, size), dtype=np.bool_)
    wide[np.ix_(known, known)] = separated
    above, best = np.full((size, size), np.nan), np.full(size, np.nan)
    # Who is above whom in replicates without an estimate is not known: too many of them leave nothing to say.
    if found.endless <= (1.0 - level) * (found.endless + len(found.errors)):
        above[np.ix_(known, known)] = _above(found, gap, se, replicates is not None)
        best[known] = _best(found)
    return Ranking(ratings.models, rank, lo, hi, tier, wide, above, best, critical, level)


def rank_interval(
    ratings: Ratings,
    model: str,
    *,
    level: float = 0.95,
    draws: int = 10_000,
    seed: int = 0,
    replicates: Replicates | None = None,
) -> RankInterval:
    """Bounds of the rank of one model: tighter than `ranking`, since they cover that model only.

    Ranks count from 1. Raises `InputError` as `ranking` does, and for a model that is unknown or has no estimate.

    >>> from venire.ratings import bradley_terry, comparisons, rank_interval
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> found = rank_interval(bradley_terry(data), "a", draws=100)
    >>> found.rank, found.lo, found.hi
    (1, 1, 3)
    """
    found = joint_errors(ratings, replicates=replicates, draws=draws, seed=seed, level=level)
    code = _place(ratings.models, model)
    if code not in found.known:
        raise InputError(f"{model} has no estimate or no error, and so no rank: see what `diagnostics` say of it")
    place = int(np.searchsorted(found.known, code))
    critical = max_t_quantile(found, level, against=place)
    gap, se = found.logits[place] - found.logits, found.differences[place]
    ahead, behind = int(_separated(-gap, se, critical).sum()), int(_separated(gap, se, critical).sum())
    return RankInterval(model, 1 + int((gap < 0.0).sum()), 1 + ahead, len(found.known) - behind, critical, level)


def _place(models: tuple[str, ...], model: str) -> int:
    if model not in models:
        raise InputError(f"{model} is none of the models rated; {suggest(model, models)}")
    return models.index(model)


def _separated(gap: Matrix, se: Matrix, critical: float) -> NDArray[np.bool_]:
    """Where a difference is significant; an unknown error separates nothing."""
    bound = np.zeros_like(se)
    np.multiply(critical, se, out=bound, where=se != 0.0)
    return np.asarray(gap > bound)


def _tiers(logits: NDArray[np.float64], separated: NDArray[np.bool_]) -> NDArray[np.int64]:
    tier = np.zeros(len(logits), dtype=np.int64)
    leader = -1
    for code in np.argsort(-logits, kind="stable").tolist():
        if leader < 0 or separated[leader, code]:
            tier[code] = tier.max() + 1
            leader = code
        else:
            tier[code] = tier[leader]
    return tier


def _above(found: JointErrors, gap: Matrix, se: Matrix, drawn: bool) -> Matrix:
    """Probabilities (m, m) that the row's true rating is above the column's: from replicates, or in closed form."""
    if not drawn:
        ratio = np.full_like(gap, np.nan)
        np.divide(gap, se, out=ratio, where=se > 0.0)
        chance = np.asarray(student.cdf(ratio, found.degrees))
        return np.asarray(np.where(se == 0.0, np.heaviside(gap, 0.5), chance))
    ratings = found.errors + found.logits
    chance = np.empty_like(gap)
    for row in range(len(gap)):
        apart = ratings[:, row, None] - ratings
        chance[row] = np.mean(np.heaviside(apart, 0.5), axis=0)
    return chance


def _best(found: JointErrors) -> NDArray[np.float64]:
    if not len(found.errors) or not len(found.known):
        return np.full(len(found.known), np.nan)
    ratings = found.errors + found.logits
    top = ratings == ratings.max(axis=1, keepdims=True)
    return np.asarray((top / top.sum(axis=1, keepdims=True)).mean(axis=0))
