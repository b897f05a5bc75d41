"""The joint spread of ratings: errors of differences, and draws of all errors at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.ratings.data.checks import check_level
from venire.ratings.data.distributions import student
from venire.ratings.data.result import Ratings
from venire.ratings.inference.bootstrap import Replicates

__all__ = ["Spread", "largest", "spread"]

_NO_ERROR = 1e-12
_ENTRIES = 1 << 18
_EXTREMES = 24
_DRAWS = 1000

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Of the models that have an estimate and an error, whose places among all are `known` (m,).

    `logits` (m,), their `covariance` (m, m) with its `degrees` of freedom, and `errors` (draws, m): how far off the
    ratings might have been, jointly.
    """

    known: NDArray[np.intp]
    logits: Vector
    covariance: Matrix
    degrees: float
    errors: Matrix

    @property
    def differences(self) -> Matrix:
        """Standard errors (m, m) of the differences of two models in logits.

        0 where both were held; NaN where one was not and yet no error is left, which is want of data, not certainty.
        """
        variance = np.diagonal(self.covariance)
        both = variance[:, None] + variance[None, :]
        square = both - 2.0 * self.covariance
        unknown = (square <= _NO_ERROR * both) & (both > 0.0)
        np.fill_diagonal(unknown, False)
        np.fill_diagonal(square, 0.0)
        return np.asarray(np.where(unknown, np.nan, np.sqrt(np.maximum(square, 0.0))))

    def quantile(self, level: float) -> float:
        """Half the width of a two-sided interval of one difference, in standard errors."""
        return float(student.ppf(0.5 + level / 2.0, self.degrees))


def spread(
    ratings: Ratings, *, replicates: Replicates | None = None, draws: int = 10_000, seed: int = 0, level: float = 0.95
) -> Spread:
    """The spread of `ratings` from their covariance, or from `replicates` of the same models where they are given.

    Errors drawn from a covariance are normal, or Student's where it has finite degrees. Raises `InputError` for ratings
    without a covariance, replicates of other models, and impossible numbers.
    """
    check_level(level)
    if draws < 0 or seed < 0:
        raise InputError(f"draws is {draws} and seed {seed}; give numbers that are not negative")
    if replicates is not None:
        return _from_replicates(ratings, replicates)
    if ratings.covariance is None:
        raise InputError(
            f"these ratings ({ratings.method}) have no covariance: fit them with errors, or give replicates"
        )
    known = np.flatnonzero(np.isfinite(ratings.logits) & np.isfinite(np.diagonal(ratings.covariance)))
    covariance = ratings.covariance[np.ix_(known, known)]
    rng = np.random.default_rng(seed)
    errors = np.zeros((0, len(known)))
    if draws and len(known):
        # Singular by nature (equal shifts): the root is taken of what eigenvalues there are.
        values, vectors = np.linalg.eigh(covariance)
        errors = rng.standard_normal((draws, len(known))) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    if np.isfinite(ratings.degrees):
        errors /= np.sqrt(rng.chisquare(ratings.degrees, (len(errors), 1)) / ratings.degrees)
    return Spread(known, ratings.logits[known], covariance, ratings.degrees, errors)


def largest(joint: Spread, level: float, against: int | None = None) -> float:
    """The level quantile of the largest |difference| over its standard error, over all pairs or those of one model.

    `against` is that model's place in `known`. Infinite where nothing can be told, and never less than for one pair.
    """
    se = joint.differences
    inverse = np.zeros_like(se)
    np.divide(1.0, se, out=inverse, where=se > 0.0)
    if not len(joint.errors) or not inverse.any():
        return np.inf
    if against is not None:
        found = (np.abs(joint.errors - joint.errors[:, against, None]) * inverse[against]).max(axis=1)
    else:
        found, sure = _largest_of_extremes(joint, inverse)
        if not sure.all():
            found[~sure] = _largest_of_all(joint.errors[~sure], inverse)
    return max(float(np.quantile(found, level)), joint.quantile(level))


def _largest_of_all(errors: Matrix, inverse: Matrix) -> Vector:
    """The largest ratio (draws,) over every pair."""
    draws, size = errors.shape
    found = np.zeros(draws)
    block = max(1, _ENTRIES // size)
    for start in range(0, draws, block):
        part, best = errors[start : start + block], found[start : start + block]
        for row in range(size - 1):
            apart = part[:, row + 1 :] - part[:, row, None]
            np.abs(apart, out=apart)
            apart *= inverse[row, row + 1 :]
            np.maximum(best, apart.max(axis=1), out=best)
    return found


def _largest_of_extremes(joint: Spread, inverse: Matrix) -> tuple[Vector, NDArray[np.bool_]]:
    """The largest ratio (draws,) over pairs of the models that are furthest off, and whether no other pair can beat it.

    With q = error^2 / variance of a model and se^2 at least s times the sum of both variances, the squared ratio of a
    pair is at most (q + q) / s (Cauchy and Schwarz), which the many models near their mean do not reach.
    """
    draws, size = joint.errors.shape
    if size <= 2 * _EXTREMES:
        return np.zeros(draws), np.zeros(draws, dtype=np.bool_)
    centre = joint.covariance - joint.covariance.mean(axis=0)
    variance = np.diagonal(centre - centre.mean(axis=1, keepdims=True))
    both = (variance[:, None] + variance[None, :])[inverse > 0.0]
    least = float(np.min(1.0 / (inverse[inverse > 0.0] ** 2 * both)))
    found, sure = np.zeros(draws), np.zeros(draws, dtype=np.bool_)
    if not variance.min() > 0.0:
        return found, sure
    one, other = np.triu_indices(_EXTREMES, 1)
    for start in range(0, draws, _DRAWS):
        block = slice(start, start + _DRAWS)
        errors = joint.errors[block] - joint.errors[block].mean(axis=1, keepdims=True)
        off = errors**2 / variance
        top = np.argpartition(-off, _EXTREMES, axis=1)[:, : _EXTREMES + 1]
        top = np.take_along_axis(top, np.argsort(-np.take_along_axis(off, top, axis=1), axis=1), axis=1)
        high = np.take_along_axis(errors, top, axis=1)
        ratio = np.abs(high[:, one] - high[:, other]) * inverse[top[:, one], top[:, other]]
        found[block] = ratio.max(axis=1)
        bound = np.take_along_axis(off, top[:, [0, _EXTREMES]], axis=1).sum(axis=1) / least
        sure[block] = found[block] ** 2 >= bound
    return found, sure


def _from_replicates(ratings: Ratings, replicates: Replicates) -> Spread:
    if replicates.models != ratings.models:
        raise InputError("replicates are of other models than these ratings, or in another order")
    covariance = replicates.covariance
    known = np.flatnonzero(np.isfinite(ratings.logits) & np.isfinite(np.diagonal(covariance)))
    errors = replicates.found[:, known] - ratings.logits[known]
    return Spread(known, ratings.logits[known], covariance[np.ix_(known, known)], np.inf, errors)
