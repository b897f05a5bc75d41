"""Anytime-valid intervals and decisions: they hold at every interim analysis, whenever data collection stops.

An interval of 1.96 standard errors is valid at one predetermined analysis. Repeated looks until the hoped-for result
appears are wrong in more than a third of all cases. The intervals here are valid simultaneously at all looks, however
many there are and whatever is asked next; they are about half as wide again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError
from venire.arena.scale import POINTS_PER_LOGIT
from venire.ratings.data.result import Ratings
from venire.ratings.data.statistics import student
from venire.ratings.data.validation import check_level, float_array
from venire.ratings.inference.contrasts import difference, joint_errors

SCALE = 0.5
"""Expected distance of ratings from their mean in logits: intervals are narrowest there; not an assumption."""

PAIR_SCALE = SCALE * 2.0**0.5

MIN_CLUSTERS = 20
"""With fewer instructions the clustered error is too uncertain for a stopping decision."""

_MAX_LOOKS = 10

Vector = NDArray[np.float64]
Answer = Literal["above", "below", "open"]


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether `model` is above `other`, below, or undecided, with both intervals of the difference in Elo points.

    `lo` and `hi` are valid at every look, `fixed_lo` and `fixed_hi` only if this is the only look.
    """

    model: str
    other: str
    answer: Answer
    estimate: float
    lo: float
    hi: float
    fixed_lo: float
    fixed_hi: float


@dataclass(frozen=True, slots=True)
class TopK:
    """The `top` models by the estimate, best first, and whether it is `decided` that they are the best.

    Decided: none of them is more than `indifference` Elo points below any other model. `open` holds the pairs (one of
    the top, another model) that are still undecided.
    """

    top: tuple[str, ...]
    decided: bool
    open: tuple[tuple[str, str], ...]
    indifference: float
    level: float


def any_time_radius(se: ArrayLike, *, alpha: float = 0.05, tau: float = SCALE) -> Vector:
    """Radius of an anytime-valid interval in standard errors, c(s), for errors in logits.

    `se` are errors of any shape; the result has the same shape. `alpha` is the error probability over all looks; divide
    it among the monitored pairs. `tau` in logits is approximately how far the estimate may be from 0. Infinite where
    the error is 0 or unknown. Raises `InputError` for an invalid alpha or tau.

    >>> from venire.ratings import any_time_radius
    >>> any_time_radius([0.1, 0.2]).round(3).tolist()
    [3.102, 3.041]
    """
    if not 0.0 < alpha < 1.0 or not tau > 0.0:
        raise InputError(f"alpha is {alpha} and tau {tau}; give a chance between 0 and 1, and a positive tau in logits")
    errors = float_array("se", se)
    found = np.full(errors.shape, np.inf)
    known = (errors > 0.0) & np.isfinite(errors)
    ratio = (tau / errors[known]) ** 2
    found[known] = np.sqrt((1.0 + 1.0 / ratio) * (np.log1p(ratio) + 2.0 * np.log(1.0 / alpha)))
    return found


def interim_radius(looks: int, *, alpha: float = 0.05, degrees: float = np.inf) -> float:
    """Radius in standard errors of an interval valid at up to ten interim analyses, declared before the first.

    It is narrower where each look has half as many data again as the look before: alpha / looks at each (Bonferroni),
    two-sided, by Student's t with `degrees` of freedom. Raises `InputError` for an invalid number of looks or alpha.

    >>> from venire.ratings import interim_radius
    >>> round(interim_radius(10), 2)
    2.81
    """
    if not 1 <= looks <= _MAX_LOOKS:
        raise InputError(f"looks is {looks}; declare 1 to {_MAX_LOOKS}, or use any_time_radius")
    if not 0.0 < alpha < 1.0:
        raise InputError(f"alpha is {alpha}; give a chance between 0 and 1")
    return float(student.ppf(1.0 - alpha / looks / 2.0, degrees))


def any_time_interval(
    estimate: ArrayLike, se: ArrayLike, *, level: float = 0.95, tau: float = SCALE, among: int = 1
) -> tuple[Vector, Vector]:
    """Anytime-valid interval, (lower, upper) in logits, simultaneous for `among` quantities.

    `estimate` and `se` are in logits and of equal shape, as are both bounds. For a difference of two models use
    `tau=PAIR_SCALE`. Raises `InputError` for an invalid level or number of quantities.

    >>> from venire.ratings import any_time_interval
    >>> lower, upper = any_time_interval([0.4], [0.1])
    >>> round(float(lower[0]), 2), round(float(upper[0]), 2)
    (0.09, 0.71)
    """
    check_level(level)
    if among < 1:
        raise InputError(f"among is {among}; give the number of quantities that are watched, at least 1")
    middle, errors = float_array("estimate", estimate), float_array("se", se)
    radius = any_time_radius(errors, alpha=(1.0 - level) / among, tau=tau)
    half = np.where(errors > 0.0, radius * np.where(errors > 0.0, errors, 1.0), np.inf)
    return middle - half, middle + half


def decide_pair(
    ratings: Ratings, model: str, other: str, *, level: float = 0.95, among: int = 1, looks: int | None = None
) -> Decision:
    """Whether `model` is above `other`, at any look, or at one of `looks` declared ones; docs/ratings.md.

    `among` is the number of monitored pairs. Raises `InputError` as `difference` does.

    >>> from venire.ratings import bradley_terry, comparisons, decide_pair
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> decide_pair(bradley_terry(data), "a", "b").answer
    'open'
    """
    found = difference(ratings, model, other, level)
    gap, se = np.array([found.estimate, found.se]) / POINTS_PER_LOGIT
    lo, hi = _bounds(np.array([gap]), np.array([se]), level, among, looks, ratings.degrees)
    answer: Answer = "above" if lo[0] > 0.0 else "below" if hi[0] < 0.0 else "open"
    low, high = float(POINTS_PER_LOGIT * lo[0]), float(POINTS_PER_LOGIT * hi[0])
    return Decision(model, other, answer, found.estimate, low, high, found.lo, found.hi)


def decide_top_k(
    ratings: Ratings, k: int, *, indifference: float = 15.0, level: float = 0.95, looks: int | None = None
) -> TopK:
    """Whether the best `k` models are known, up to `indifference` Elo points; docs/ratings.md.

    Only pairs across the true boundary can lead to a wrong answer, so the error probability is divided by k (n - k).
    Models without an estimate or an error are left out. Raises `InputError` for a `k` that leaves one side empty.

    >>> from venire.ratings import bradley_terry, comparisons, decide_top_k
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> decide_top_k(bradley_terry(data), 1).top
    ('a',)
    """
    check_level(level)
    if not indifference >= 0.0:
        raise InputError(f"indifference is {indifference}; give Elo points, 0 or more")
    found = joint_errors(ratings, draws=0, level=level)
    count = len(found.known)
    if not 1 <= k < count:
        raise InputError(f"k is {k}; give a number from 1 to {count - 1}: {count} models have an estimate and an error")
    order = np.argsort(-found.logits, kind="stable")
    top, rest = order[:k], order[k:]
    gap, se = found.logits[top][:, None] - found.logits[rest], found.differences[np.ix_(top, rest)]
    lo, _ = _bounds(gap, se, level, k * (count - k), looks, ratings.degrees)
    names = [ratings.models[code] for code in found.known]
    unsure = np.argwhere(~(lo * POINTS_PER_LOGIT > -indifference)).tolist()
    open_ = tuple((names[top[row]], names[rest[column]]) for row, column in unsure)
    return TopK(tuple(names[code] for code in top), not open_, open_, indifference, level)


def stopping_half_width(se: ArrayLike, model_se: ArrayLike, clusters: int, *, level: float = 0.95) -> Vector:
    """Half width for stopping, in the units of `se`: stop when it is at most the target; docs/ratings.md.

    Stopping at a narrow interval favours moments when its error is underestimated. So the error counts as at least the
    model-based error (`model_covariance`), with Student's t quantile, and with fewer than 20 clusters it is infinite.

    >>> from venire.ratings import stopping_half_width
    >>> stopping_half_width([0.1], [0.1], 40).round(3).tolist()
    [0.202]
    """
    check_level(level)
    errors = np.maximum(float_array("se", se), float_array("model_se", model_se))
    if clusters < MIN_CLUSTERS:
        return np.full(errors.shape, np.inf)
    return np.asarray(np.where(np.isnan(errors), np.inf, student.ppf(0.5 + level / 2.0, clusters - 1) * errors))


def _bounds(
    gap: Vector, se: Vector, level: float, among: int, looks: int | None, degrees: float
) -> tuple[Vector, Vector]:
    """Bounds of differences in logits; exact between two held models, infinite where errors are unknown."""
    if looks is None:
        lo, hi = any_time_interval(gap, se, level=level, tau=PAIR_SCALE, among=among)
    else:
        reach = interim_radius(looks, alpha=(1.0 - level) / among, degrees=degrees)
        lo, hi = gap - reach * se, gap + reach * se
    lo, hi = np.where(np.isnan(se), -np.inf, lo), np.where(np.isnan(se), np.inf, hi)
    return np.where(se == 0.0, gap, lo), np.where(se == 0.0, gap, hi)
