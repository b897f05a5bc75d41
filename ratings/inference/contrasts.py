"""Contrasts of ratings, such as differences, with pointwise and simultaneous intervals, and joint errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from venire.arena.errors import InputError
from venire.arena.scale import POINTS_PER_LOGIT
from venire.arena.wording import suggest
from venire.ratings.data.result import Ratings
from venire.ratings.data.statistics import norm, student
from venire.ratings.data.validation import check_level
from venire.ratings.inference.bootstrap import Replicates

_NO_ERROR = 1e-12
_ENTRIES = 1 << 18
_EXTREMES = 24
_DRAWS = 1000
Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class JointErrors:
    """Joint errors of the models that have an estimate and an error; `known` (m,) are their indices among all.

    `logits` (m,), their `covariance` (m, m) with its `degrees` of freedom, and `errors` (draws, m): joint draws of the
    estimation errors. `endless` are further replicates, in which some error is infinite.
    """

    known: NDArray[np.intp]
    logits: Vector
    covariance: Matrix
    degrees: float
    errors: Matrix
    endless: int = 0

    @property
    def differences(self) -> Matrix:
        """Standard errors (m, m) of the differences of two models in logits.

        0 where both were held; NaN where one was not held and still has no error, which means missing data, not
        certainty.
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

    def error(self, weights: Matrix) -> Vector:
        """Standard errors (contrasts,) of contrasts (contrasts, m) in logits; NaN where one is missing, as above."""
        variance = ((weights @ self.covariance) * weights).sum(axis=1)
        own = weights**2 @ np.diagonal(self.covariance)
        unknown = (own > 0.0) & (variance <= _NO_ERROR * own)
        return np.asarray(np.where(unknown, np.nan, np.sqrt(np.maximum(variance, 0.0))))

    def largest(self, ratios: Vector, level: float) -> float:
        """The quantile at `level` of the largest ratios (draws,): infinite where endless replicates reach to it."""
        if not self.endless:
            return float(np.quantile(ratios, level))
        return float(np.quantile(np.append(ratios, np.full(self.endless, np.inf)), level, method="higher"))


@dataclass(frozen=True, slots=True)
class Contrast:
    """A weighted sum of ratings in Elo points: `estimate`, standard error `se`, and the interval from `lo` to `hi`.

    `above` is the probability that the true value is above 0, by the distribution of the estimate. All but the estimate
    are NaN where no error is known; a contrast of held models only has an error of 0.
    """

    coefficients: Mapping[str, float]
    estimate: float
    se: float
    lo: float
    hi: float
    level: float
    above: float


@dataclass(frozen=True, slots=True, eq=False)
class Simultaneous:
    """Simultaneous intervals with joint coverage `level`: each is `critical` standard errors to either side."""

    critical: float
    level: float
    contrasts: tuple[Contrast, ...]


@dataclass(frozen=True, slots=True)
class BattlesNeeded:
    """How many more battles are needed, rounded up; infinite where no number is enough, 0 where none is needed.

    `between` counts battles between the two models only; `everywhere` counts all battles, distributed as so far.
    """

    between: float
    everywhere: float


def contrast(ratings: Ratings, coefficients: Mapping[str, float], level: float = 0.95) -> Contrast:
    """The weighted sum of ratings that `coefficients` name, such as {"a": 1, "b": -1}, in Elo points.

    Coefficients that do not sum to 0 apply to ratings minus 1000. Raises `InputError` for a model that is unknown or
    has no estimate, for ratings without a covariance, and for an invalid level.

    >>> from venire.ratings import bradley_terry, comparisons, contrast
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> ratings = bradley_terry(data)
    >>> round(contrast(ratings, {"a": 1.0, "b": -0.5, "c": -0.5}).estimate, 1)
    197.1
    """
    ratings.quantile(level)
    found = joint_errors(ratings, draws=0, level=level)
    return _contrast(ratings, found, coefficients, level, found.quantile(level))


def difference(ratings: Ratings, model: str, other: str, level: float = 0.95) -> Contrast:
    """The difference of `model` and `other` in Elo points; `above` is the probability that `model` is truly higher.

    Raises `InputError` as `contrast` does, and if both are the same model.

    >>> from venire.ratings import bradley_terry, comparisons, difference
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> found = difference(bradley_terry(data), "a", "b")
    >>> round(found.estimate, 1), found.lo < found.estimate < found.hi
    (131.4, True)
    """
    if model == other:
        raise InputError(f"{model} cannot be compared with itself: name two models")
    return contrast(ratings, {model: 1.0, other: -1.0}, level)


def simultaneous(
    ratings: Ratings,
    contrasts: Sequence[Mapping[str, float]],
    level: float = 0.95,
    *,
    draws: int = 10_000,
    seed: int = 0,
    replicates: Replicates | None = None,
) -> Simultaneous:
    """Simultaneous intervals of several contrasts, by the maximum of their ratios in draws of the joint errors.

    Each contrast is as in `contrast`; errors are drawn as in `ranking`. Raises `InputError` as these two do.

    >>> from venire.ratings import bradley_terry, comparisons, simultaneous
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> len(simultaneous(bradley_terry(data), [{"a": 1.0, "b": -1.0}], draws=100).contrasts)
    1
    """
    found = joint_errors(ratings, replicates=replicates, draws=draws, seed=seed, level=level)
    weights = np.array([_weights(ratings, found, chosen) for chosen in contrasts]).reshape(-1, len(found.known))
    critical, se = found.quantile(level), found.error(weights)
    known = se > 0.0
    if known.any() and len(found.errors):
        scaled = weights[known] / se[known, None]
        critical = max(critical, found.largest(np.abs(found.errors @ scaled.T).max(axis=1), level))
    wide = tuple(_contrast(ratings, found, chosen, level, critical) for chosen in contrasts)
    return Simultaneous(critical, level, wide)


def simultaneous_differences(
    ratings: Ratings,
    level: float = 0.95,
    *,
    draws: int = 10_000,
    seed: int = 0,
    replicates: Replicates | None = None,
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """All pairwise differences at once: the critical value and bounds (n, n) of row minus column in Elo points.

    >>> from venire.ratings import bradley_terry, comparisons, simultaneous_differences
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> critical, lower, upper = simultaneous_differences(bradley_terry(data), draws=100)
    >>> lower.shape
    (3, 3)
    """
    found = joint_errors(ratings, replicates=replicates, draws=draws, seed=seed, level=level)
    critical = max_t_quantile(found, level)
    size = len(ratings.models)
    lo, hi = np.full((size, size), np.nan), np.full((size, size), np.nan)
    gap, half = found.logits[:, None] - found.logits[None, :], critical * found.differences
    at = np.ix_(found.known, found.known)
    lo[at], hi[at] = POINTS_PER_LOGIT * (gap - half), POINTS_PER_LOGIT * (gap + half)
    return critical, lo, hi


def battles_needed(
    ratings: Ratings,
    model: str,
    other: str,
    *,
    level: float = 0.95,
    power: float = 0.5,
    half_width: float | None = None,
    inflation: float = 1.0,
) -> BattlesNeeded:
    """Battles needed until `model` and `other` are separated, if their true ratings equal the estimates.

    `power` is the desired probability of success (0.5: the interval just reaches 0 on average). With `half_width` in
    Elo points: until the interval of their difference has that half width. `inflation` is the variance of a battle
    relative to that of independent battles (clusters, ties). Raises `InputError` as `difference` does, and for invalid
    numbers.

    >>> from venire.ratings import battles_needed, bradley_terry, comparisons
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> found = battles_needed(bradley_terry(data), "a", "b", half_width=50.0)
    >>> found.between > len(data)
    True
    """
    if not 0.0 < power < 1.0 or not inflation > 0.0 or (half_width is not None and not half_width > 0.0):
        raise InputError("give a power between 0 and 1, and a positive inflation and half_width")
    now = difference(ratings, model, other, level)
    se, gap = now.se / POINTS_PER_LOGIT, now.estimate / POINTS_PER_LOGIT
    reach = float(norm.ppf(0.5 + level / 2.0))
    if half_width is None:
        wanted = abs(gap) / max(reach + float(norm.ppf(power)), 1e-9)
    else:
        wanted = half_width / POINTS_PER_LOGIT / reach
    if not se > wanted:
        return BattlesNeeded(math.nan, math.nan) if math.isnan(se) else BattlesNeeded(0.0, 0.0)
    if wanted == 0.0:
        return BattlesNeeded(math.inf, math.inf)
    information = float(expit(gap) * expit(-gap)) / inflation
    total = float(np.nansum(ratings.battles)) / 2.0
    between = (1.0 / wanted**2 - 1.0 / se**2) / information
    return BattlesNeeded(float(math.ceil(between)), float(math.ceil(total * ((se / wanted) ** 2 - 1.0))))


def _weights(ratings: Ratings, found: JointErrors, coefficients: Mapping[str, float]) -> NDArray[np.float64]:
    """Coefficients (m,) by the indices of the models that have an estimate and an error."""
    place = {ratings.models[code]: row for row, code in enumerate(found.known.tolist())}
    weights = np.zeros(len(place))
    for name, value in coefficients.items():
        if name not in ratings.models:
            raise InputError(f"{name} is none of the models rated; {suggest(name, ratings.models)}")
        if name not in place:
            raise InputError(f"{name} has no estimate or no error: leave it out, or see what `diagnostics` say of it")
        if not math.isfinite(value):
            raise InputError(f"the coefficient of {name} is {value}; give a number")
        weights[place[name]] = value
    return weights


def _contrast(
    ratings: Ratings, found: JointErrors, coefficients: Mapping[str, float], level: float, reach: float
) -> Contrast:
    weights = _weights(ratings, found, coefficients)
    estimate = float(weights @ found.logits)
    se, above = float(found.error(weights[None])[0]), math.nan
    if not math.isnan(se):
        above = float(student.cdf(estimate / se, found.degrees)) if se else float(np.heaviside(estimate, 0.5))
    middle, error = POINTS_PER_LOGIT * estimate, POINTS_PER_LOGIT * se
    half = reach * error if error else 0.0
    return Contrast(dict(coefficients), middle, error, middle - half, middle + half, level, above)


def joint_errors(
    ratings: Ratings, *, replicates: Replicates | None = None, draws: int = 10_000, seed: int = 0, level: float = 0.95
) -> JointErrors:
    """Joint errors of `ratings` from their covariance, or from `replicates` of the same models where they are given.

    Errors drawn from a covariance are normal, or Student's t where it has finite degrees of freedom. Raises
    `InputError` for ratings without a covariance, replicates of other models, and impossible numbers.
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
        # Singular by construction (equal shifts): the root uses the nonzero eigenvalues.
        values, vectors = np.linalg.eigh(covariance)
        errors = rng.standard_normal((draws, len(known))) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    if np.isfinite(ratings.degrees):
        errors /= np.sqrt(rng.chisquare(ratings.degrees, (len(errors), 1)) / ratings.degrees)
    return JointErrors(known, ratings.logits[known], covariance, ratings.degrees, errors)


def max_t_quantile(joint: JointErrors, level: float, against: int | None = None) -> float:
    """Max-t critical value: the level quantile of the largest |difference| / error over all pairs, or one model's.

    `against` is that model's index in `known`. Infinite where no error is known, and never less than for one pair.
    """
    se = joint.differences
    inverse = np.zeros_like(se)
    np.divide(1.0, se, out=inverse, where=se > 0.0)
    if not len(joint.errors) or not inverse.any():
        return np.inf
    if against is not None:
        found = (np.abs(joint.errors - joint.errors[:, against, None]) * inverse[against]).max(axis=1)
    else:
        found, sure = _max_t_of_extremes(joint, inverse)
        if not sure.all():
            found[~sure] = _max_t_of_all(joint.errors[~sure], inverse)
    return max(joint.largest(found, level), joint.quantile(level))


def _max_t_of_all(errors: Matrix, inverse: Matrix) -> Vector:
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


def _max_t_of_extremes(joint: JointErrors, inverse: Matrix) -> tuple[Vector, NDArray[np.bool_]]:
    """The largest ratio (draws,) over pairs of models with the largest errors, and whether it is the overall maximum.

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


def _from_replicates(ratings: Ratings, replicates: Replicates) -> JointErrors:
    if replicates.models != ratings.models:
        raise InputError("replicates are of other models than these ratings, or in another order")
    covariance = replicates.covariance
    known = np.flatnonzero(np.isfinite(ratings.logits) & np.isfinite(np.diagonal(covariance)))
    errors = replicates.estimates[:, known] - ratings.logits[known]
    return JointErrors(
        known, ratings.logits[known], covariance[np.ix_(known, known)], np.inf, errors, replicates.without_estimate
    )
