"""Differences of models, and any weighted sum of ratings, with intervals: one at a time or many at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from venire.arena.errors import InputError
from venire.arena.scale import POINTS_PER_LOGIT
from venire.ratings.data.distributions import norm, student
from venire.ratings.data.result import Ratings
from venire.ratings.inference.bootstrap import Replicates
from venire.ratings.inference.spread import Spread, largest, spread

__all__ = [
    "BattlesNeeded",
    "Contrast",
    "Simultaneous",
    "battles_needed",
    "contrast",
    "difference",
    "simultaneous",
    "simultaneous_differences",
]

_NO_ERROR = 1e-12


@dataclass(frozen=True, slots=True)
class Contrast:
    """A weighted sum of ratings in Elo points: `estimate`, standard error `se`, and the interval from `lo` to `hi`.

    `above` is the chance that the true value is above 0, by the estimate's own distribution. All but the estimate are
    NaN where no error can be told; held models alone have an error of 0.
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
    """Intervals that all hold at once with the chance `level`: each is `critical` standard errors to either side."""

    critical: float
    level: float
    contrasts: tuple[Contrast, ...]


@dataclass(frozen=True, slots=True)
class BattlesNeeded:
    """How many battles are still to come, rounded up; infinite where no number is enough, 0 where none is needed.

    `between` are battles of the two models alone; `everywhere` more of all battles, spread as they have been so far.
    """

    between: float
    everywhere: float


def contrast(ratings: Ratings, coefficients: Mapping[str, float], level: float = 0.95) -> Contrast:
    """The weighted sum of ratings that `coefficients` name, such as {"a": 1, "b": -1}, in Elo points.

    Coefficients that do not add up to 0 speak of ratings less 1000. Raises `InputError` for a model that is unknown or
    has no estimate, for ratings without a covariance, and for a level.
    """
    ratings.quantile(level)
    found = spread(ratings, draws=0, level=level)
    return _contrast(ratings, found, coefficients, level, found.quantile(level))


def difference(ratings: Ratings, model: str, other: str, level: float = 0.95) -> Contrast:
    """How far `model` stands above `other`, in Elo points; `above` is the chance that its true rating is higher.

    Raises `InputError` as `contrast` does, and for one model twice.
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
    """Intervals of several contrasts that all hold at once, by the largest of them in draws of all errors together.

    Each contrast is as in `contrast`; errors are drawn as in `ranking`. Raises `InputError` as these two do.
    """
    found = spread(ratings, replicates=replicates, draws=draws, seed=seed, level=level)
    single = found.quantile(level)
    each = [_contrast(ratings, found, chosen, level, single) for chosen in contrasts]
    se = np.array([one.se / POINTS_PER_LOGIT for one in each])
    known = se > 0.0
    critical = single
    if known.any() and len(found.errors):
        weights = np.stack([_weights(ratings, found, chosen) for chosen in contrasts])[known] / se[known, None]
        critical = max(single, float(np.quantile(np.abs(found.errors @ weights.T).max(axis=1), level)))
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
    """All differences of two models at once: the critical value and bounds (n, n) of row less column in Elo points."""
    found = spread(ratings, replicates=replicates, draws=draws, seed=seed, level=level)
    critical = largest(found, level)
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
    """Battles still to come until `model` and `other` are separated, if their ratings are what they seem.

    `power` is the chance of success wanted (0.5: the interval just reaches 0 on average). With `half_width` in Elo
    points, until the interval of their difference is that wide. `inflation` is how much wider than that of independent
    battles the variance of a battle is (clusters, ties). Raises `InputError` as `difference` does, and for the numbers.
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


def _weights(ratings: Ratings, found: Spread, coefficients: Mapping[str, float]) -> NDArray[np.float64]:
    """Coefficients (m,) by the places of the models that have an estimate and an error."""
    place = {ratings.models[code]: row for row, code in enumerate(found.known.tolist())}
    weights = np.zeros(len(place))
    for name, value in coefficients.items():
        if name not in ratings.models:
            raise InputError(f"{name} is none of the models rated: {', '.join(ratings.models[:10])}")
        if name not in place:
            raise InputError(f"{name} has no estimate or no error: leave it out, or see what `diagnostics` say of it")
        if not math.isfinite(value):
            raise InputError(f"the coefficient of {name} is {value}; give a number")
        weights[place[name]] = value
    return weights


def _contrast(
    ratings: Ratings, found: Spread, coefficients: Mapping[str, float], level: float, reach: float
) -> Contrast:
    weights = _weights(ratings, found, coefficients)
    estimate = float(weights @ found.logits)
    variance = float(weights @ found.covariance @ weights)
    own = float(weights**2 @ np.diagonal(found.covariance))
    if own > 0.0 and variance <= _NO_ERROR * own:
        se, above = math.nan, math.nan
    else:
        se = math.sqrt(max(variance, 0.0))
        above = float(student.cdf(estimate / se, found.degrees)) if se else float(np.heaviside(estimate, 0.5))
    middle, error = POINTS_PER_LOGIT * estimate, POINTS_PER_LOGIT * se
    half = reach * error if error else 0.0
    return Contrast(dict(coefficients), middle, error, middle - half, middle + half, level, above)
