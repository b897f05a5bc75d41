"""Conformal intervals for the human rating of a model that only a judge has seen.

The judge's errors on models with human ratings predict its error on the next model, provided that the models are
exchangeable. Nothing is assumed about the distribution of these errors. A split calibrates on half of the models.
Jackknife+ calibrates on all of them: each is left out in turn together with the model to be placed, and ratings without
both are used (Barber, Candes, Ramdas and Tibshirani, 2021: coverage is at least 1 - 2 alpha, and about 1 - alpha).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.choices import HumanTies
from venire.arena.errors import InputError
from venire.arena.scale import ELO_MEAN, POINTS_PER_LOGIT
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.validation import check_seed, float_array
from venire.ratings.soft_elo.cross_validation import HoldOut, hold_out
from venire.ratings.soft_elo.soft_elo import RIDGE, place_against_anchors

Scale = Literal["total", "se", "none"]

_FEW = 9
"""Number of calibration models below which 90 % intervals are infinite, and others depend on single models."""


@dataclass(frozen=True, slots=True, eq=False)
class Conformal:
    """Intervals `low` to `high` (models,) in Elo points around `elo` (models,); infinite where none can be given.

    `quantile` (models,) is the score of rank `rank` among `n` calibration models, times `scale` (models,) half the
    width. `tau` (models,) is the spread that measurement errors do not explain. `expected` is the coverage rank / (n +
    1) that holds on average over models; None where the interval is infinite. `warnings` must be shown with the
    intervals.
    """

    elo: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    quantile: NDArray[np.float64]
    scale: NDArray[np.float64]
    tau: NDArray[np.float64]
    n: int
    rank: int
    alpha: float
    expected: float | None
    method: str
    warnings: tuple[str, ...] = ()

    def covers(self, human: ArrayLike) -> NDArray[np.bool_]:
        """Whether each interval contains the rating by people (models,)."""
        truth = float_array("human", human)
        return np.asarray((truth >= self.low) & (truth <= self.high))


def conformal_rank(n: int, alpha: float) -> int:
    """Rank of the sorted scores that bounds the next with probability at least 1 - alpha; n + 1 means infinity.

    The 1e-12 keeps (99 + 1) * 0.55 at 55, where floating point gives slightly more. Raises `InputError`.
    """
    if not 0.0 < alpha < 1.0:
        raise InputError(f"alpha is {alpha}; give a share between 0 and 1, such as 0.1")
    return min(math.ceil((n + 1) * (1.0 - alpha) - 1e-12), n + 1)


def split_conformal(
    residual: ArrayLike,
    se: ArrayLike,
    elo: ArrayLike,
    elo_se: ArrayLike,
    *,
    human_se: ArrayLike = 0.0,
    elo_human_se: ArrayLike = 0.0,
    alpha: float = 0.1,
    scale: Scale = "total",
    calibration_elo: ArrayLike | None = None,
    family: Sequence[str] | None = None,
    calibration_family: Sequence[str] | None = None,
) -> Conformal:
    """Intervals for models without human ratings, calibrated on models with human ratings. All in Elo points.

    Source: the Soft-Elo paper.

    `residual` (n,) is human minus judge of the calibration models (NaN, where one could not be placed, counts as larger
    than any), `se` (n,) the error of the judge's rating,
    `human_se` (n,) that of people's (0: unknown). `elo` (models,) are the judge's ratings of new models, `elo_se` their
    errors; `elo_human_se` is the error that their human rating would have, if an interval should cover that measurement
    instead of the true value. `scale` "total" divides residuals by the root of se^2 + human_se^2 + tau^2, "se" by se
    only as in the paper, which undercovers where new models have smaller errors than the calibration models, "none" by
    1. `calibration_elo`, `family` and `calibration_family` are used for warnings only. Raises `InputError`.

    >>> from venire.ratings import split_conformal
    >>> rng = np.random.default_rng(0)
    >>> residual = rng.normal(0, 30, 20)
    >>> found = split_conformal(residual, np.full(20, 10.0), [1000.0], [12.0])
    >>> (found.low.round(1).tolist(), found.high.round(1).tolist())
    ([959.6], [1040.4])
    """
    known = _CalibrationSet.of(residual, se, human_se, scale)
    points = np.atleast_1d(float_array("elo", elo))
    errors, people = _column("elo_se", elo_se, points), _column("elo_human_se", elo_human_se, points)
    if calibration_elo is not None:
        calibration_elo = _column("calibration_elo", calibration_elo, known.residual)
    rank = conformal_rank(known.n, alpha)
    tau = known.tau()
    width = known.width(errors, people, tau)
    quantile = _smallest(known.scores(tau), rank)
    warnings = (
        *_size_warnings(known.n, rank, alpha),
        *_extrapolation_warnings(points, calibration_elo, family, calibration_family),
        *_trend_warnings(known.residual, calibration_elo),
    )
    return _intervals(
        points, np.full(len(points), quantile), width, np.full(len(points), tau), known.n, rank, alpha, warnings
    )


def leave_one_out_conformal(
    residual: ArrayLike,
    se: ArrayLike,
    elo: ArrayLike,
    *,
    human_se: ArrayLike = 0.0,
    alpha: float = 0.1,
    scale: Scale = "total",
) -> Conformal:
    """The interval of each model (n,), calibrated on all other models with human ratings.

    Arguments are as in `split_conformal`, for the same n models. Each interval keeps the guarantee of a split with n -
    1 calibration models, on average over models; the intervals of two models share their calibration and are not
    independent, so the observed share varies more than a binomial. Raises `InputError`.

    >>> from venire.ratings import leave_one_out_conformal
    >>> rng = np.random.default_rng(0)
    >>> found = leave_one_out_conformal(rng.normal(0, 30, 20), np.full(20, 10.0), np.linspace(900, 1100, 20))
    >>> found.low.shape, found.n
    ((20,), 19)
    """
    known = _CalibrationSet.of(residual, se, human_se, scale)
    points = _column("elo", elo, known.residual)
    count = known.n
    rank = conformal_rank(count - 1, alpha)
    quantile, tau, width = np.empty(count), np.empty(count), np.empty(count)
    for code in range(count):
        others = known.without(code)
        tau[code] = others.tau()
        quantile[code] = _smallest(others.scores(float(tau[code])), rank)
        width[code] = known.width(known.se[code], known.human_se[code], float(tau[code]))
    warnings = (*_size_warnings(count - 1, rank, alpha), *_trend_warnings(known.residual, points))
    return _intervals(points, quantile, width, tau, count - 1, rank, alpha, warnings, "leave-one-out")


@dataclass(frozen=True, slots=True, eq=False)
class _CalibrationSet:
    """Validated figures of calibration models (n,)."""

    residual: NDArray[np.float64]
    se: NDArray[np.float64]
    human_se: NDArray[np.float64]
    scale: Scale

    @classmethod
    def of(cls, residual: ArrayLike, se: ArrayLike, human_se: ArrayLike, scale: Scale) -> _CalibrationSet:
        """Validate the columns; a single number applies to all models. Raises `InputError`."""
        if scale not in get_args(Scale):
            raise InputError(f"scale is {scale!r}; give one of {', '.join(get_args(Scale))}")
        found = float_array("residual", residual)
        if found.ndim != 1 or np.isinf(found).any():
            raise InputError(
                "residual: give one finite number a calibration model; leave out those people did not rate"
            )
        errors, people = _column("se", se, found), _column("human_se", human_se, found)
        if scale == "se" and not (errors > 0.0).all():
            raise InputError("scale 'se' divides by the error of every calibration model: one of them is 0")
        return cls(found, errors, people, scale)

    @property
    def n(self) -> int:
        """The number of calibration models."""
        return len(self.residual)

    def without(self, code: int) -> _CalibrationSet:
        """All but one of them."""
        keep = np.arange(self.n) != code
        return _CalibrationSet(self.residual[keep], self.se[keep], self.human_se[keep], self.scale)

    def tau(self) -> float:
        """The spread of residuals (Elo points) that measurement errors do not explain; 0 without models."""
        known = ~np.isnan(self.residual)
        if not known.any() or self.scale != "total":
            return 0.0
        return math.sqrt(max(0.0, float(np.mean((self.residual**2 - self.se**2 - self.human_se**2)[known]))))

    def width(self, se: ArrayLike, human_se: ArrayLike, tau: float) -> NDArray[np.float64]:
        """The divisor of residuals of models with these errors."""
        own, people = float_array("se", se), float_array("human_se", human_se)
        if self.scale == "none":
            return np.ones_like(own)
        return own if self.scale == "se" else np.asarray(np.sqrt(own**2 + people**2 + tau**2))

    def scores(self, tau: float) -> NDArray[np.float64]:
        """Absolute residuals (n,) in units of `width`; infinite where that is 0 and the residual is not, or unknown."""
        width = self.width(self.se, self.human_se, tau)
        size = np.where(np.isnan(self.residual), np.inf, np.abs(self.residual))
        return np.divide(size, width, out=np.where(size > 0.0, np.inf, 0.0), where=width > 0.0)


def _smallest(scores: NDArray[np.float64], rank: int) -> float:
    return math.inf if rank > len(scores) else float(np.partition(scores, rank - 1)[rank - 1])


def _column(argument: str, values: ArrayLike, like: NDArray[np.float64]) -> NDArray[np.float64]:
    array = float_array(argument, values)
    if array.ndim == 0:
        array = np.full(len(like), float(array))
    if array.shape != like.shape or not np.isfinite(array).all() or (argument.endswith("se") and (array < 0.0).any()):
        rule = "finite and not negative" if argument.endswith("se") else "finite"
        raise InputError(f"{argument}: give one number a model ({len(like)}), each {rule}")
    return array


def _intervals(
    elo: NDArray[np.float64],
    quantile: NDArray[np.float64],
    scale: NDArray[np.float64],
    tau: NDArray[np.float64],
    n: int,
    rank: int,
    alpha: float,
    warnings: tuple[str, ...],
    method: str = "split",
) -> Conformal:
    half = np.full(len(elo), np.inf) if rank > n else quantile * scale
    expected = None if rank > n else rank / (n + 1)
    return Conformal(elo, elo - half, elo + half, quantile, scale, tau, n, rank, alpha, expected, method, warnings)


@dataclass(frozen=True, slots=True, eq=False)
class LeaveTwoOut:
    """Ratings in Elo points of model i where i and j are both left out: `human` and `judge` [i, j] (n, n).

    The diagonal leaves out i alone. `anchor` (n,) marks the models that people and judge both rated; NaN in `human`
    for the others.
    """

    models: tuple[str, ...]
    human: NDArray[np.float64]
    judge: NDArray[np.float64]
    anchor: NDArray[np.bool_]


def leave_two_out(
    data: Comparisons,
    score: ArrayLike,
    human: ArrayLike,
    *,
    signal: Literal["hard", "soft"] = "soft",
    ridge: float = RIDGE,
    ties: HumanTies = "drop",
    parity: bool = False,
    by_judge: bool = False,
) -> LeaveTwoOut:
    """Place every model with each other model left out as well; arguments are as in `leave_one_out`.

    The cost is that of models^2 / 2 fits. Raises `InputError`.

    >>> from venire.ratings import comparisons, leave_two_out
    >>> data = comparisons(list("aaabbc") * 8, list("bcdcdd") * 8, [1, 1, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0] * 4)
    >>> human = np.tile([1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 0], 4)
    >>> score = np.tile([2.0, 1.0, -1.0, 0.5], 12)
    >>> found = leave_two_out(data, score, human)
    >>> found.models
    ('a', 'b', 'c', 'd')
    """
    if signal not in ("hard", "soft"):
        raise InputError(f"signal is {signal!r}; give 'hard' or 'soft'")
    field = hold_out(data, score, human, {}, ridge=ridge, ties=ties, parity=parity, by_judge=by_judge)
    if np.count_nonzero(field.anchor) < 4:
        raise InputError("leaving two models out needs at least 4 that people and judge both rated")
    count = len(data.models)
    people, judge = np.full((count, count), np.nan), np.full((count, count), np.nan)
    for one in range(count):
        for two in range(one, count):
            for table, (first, second) in zip((people, judge), _pair(field, one, two, signal), strict=True):
                table[one, two], table[two, one] = first, second
    people[~field.anchor] = np.nan
    return LeaveTwoOut(data.models, people, judge, field.anchor)


def _pair(field: HoldOut, one: int, two: int, signal: str) -> list[tuple[float, float]]:
    """Elo of `one` and of `two` by people, then by the judge, where both are left out."""
    out, found = (one, two), []
    for name in ("human", signal):
        wins = field.wins_of(field.soft(field.beta(*out))) if name == "soft" else field.wins[name]
        near = field.start["human" if name == "soft" else name]
        anchors, table = field.rate(wins, out, near), wins.matrix()
        rest = np.flatnonzero(np.isfinite(anchors))
        placed = []
        for code in out:
            won, lost = table[code, rest, None], table[rest, code, None]
            logit = place_against_anchors(anchors[rest], won, lost, field.ridge, float(near[code]))[0]
            placed.append(ELO_MEAN + POINTS_PER_LOGIT * float(logit))
        found.append((placed[0], placed[1]))
    return found


def jackknife_plus(
    ratings: LeaveTwoOut,
    se: ArrayLike,
    *,
    human_se: ArrayLike = 0.0,
    alpha: float = 0.1,
    scale: Scale = "total",
) -> Conformal:
    """The interval of every model (n,), calibrated on all the other anchors; all in Elo points.

    `se` and `human_se` (n,) are the errors of the ratings by judge and people, as in `split_conformal`. `elo` of the
    result is the rating with the model alone left out; `quantile` is NaN, since the two bounds are found separately. A
    model without a human rating is placed by every anchor; NaN in `human_se`, as from `leave_one_out`, is unknown and
    counts as 0. Raises `InputError`.

    >>> from venire.ratings import comparisons, jackknife_plus, leave_two_out
    >>> data = comparisons(list("aaabbc") * 8, list("bcdcdd") * 8, [1, 1, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0] * 4)
    >>> human = np.tile([1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 0], 4)
    >>> score = np.tile([2.0, 1.0, -1.0, 0.5], 12)
    >>> found = jackknife_plus(leave_two_out(data, score, human), 10.0, alpha=0.5)
    >>> bool(np.all(found.low < found.elo)), bool(np.all(found.elo < found.high))
    (True, True)
    """
    count = len(ratings.models)
    own, people = _errors("se", se, count), np.nan_to_num(_errors("human_se", human_se, count))
    low, high = np.full(count, -np.inf), np.full(count, np.inf)
    tau, width = np.full(count, np.nan), np.full(count, np.nan)
    fewest = int(np.count_nonzero(ratings.anchor)) - int(ratings.anchor.any())
    for code in range(count):
        others = np.flatnonzero(ratings.anchor & (np.arange(count) != code))
        residual = ratings.human[others, code] - ratings.judge[others, code]
        known = _CalibrationSet.of(residual, own[others], people[others], scale)
        tau[code] = known.tau()
        width[code] = known.width(own[code], people[code], float(tau[code]))
        reach = known.scores(float(tau[code])) * width[code]
        rank, seen = conformal_rank(len(others), alpha), ratings.judge[code, others]
        if rank <= len(others):
            low[code] = -np.partition(reach - seen, rank - 1)[rank - 1]
            high[code] = np.partition(seen + reach, rank - 1)[rank - 1]
    rank = conformal_rank(fewest, alpha)
    expected = None if rank > fewest else rank / (fewest + 1)
    warnings = _size_warnings(fewest, rank, alpha)
    blank, elo = np.full(count, math.nan), np.diagonal(ratings.judge).copy()
    return Conformal(elo, low, high, blank, width, tau, fewest, rank, alpha, expected, "jackknife+", warnings)


def _errors(argument: str, values: ArrayLike, count: int) -> NDArray[np.float64]:
    array = float_array(argument, values)
    if array.ndim and array.shape != (count,):
        raise InputError(f"{argument} has shape {array.shape}; give one number a model ({count}), or one for all")
    return np.broadcast_to(array, (count,))


def _size_warnings(n: int, rank: int, alpha: float) -> tuple[str, ...]:
    """A warning where `n` calibration models are too few for this alpha, or few in general; else an empty tuple."""
    if rank > n:
        least = math.ceil((1.0 - alpha) / alpha - 1e-12)
        return (
            f"{n} calibration models are too few for alpha {alpha:g}: the intervals are infinite; {least} would do",
        )
    if n < _FEW:
        return (f"only {n} calibration models: one of them more or less moves every interval",)
    return ()


def _extrapolation_warnings(
    elo: NDArray[np.float64],
    calibration_elo: ArrayLike | None,
    family: Sequence[str] | None,
    calibration_family: Sequence[str] | None,
) -> tuple[str, ...]:
    """Warnings about new models rated beyond all calibration models, or of a family that these lack.

    `elo` (models,) and `calibration_elo` (n,) are ratings by the judge. Raises `InputError` for a wrong number of
    families.
    """
    warnings = []
    if calibration_elo is not None and np.size(calibration_elo):
        known = np.asarray(calibration_elo, dtype=np.float64)
        outside = (elo < known.min()) | (elo > known.max())
        warnings += [
            f"model {code}: {elo[code]:.0f} Elo is outside the {known.min():.0f} to {known.max():.0f} of calibration"
            for code in np.flatnonzero(outside)
        ]
    if family is not None and calibration_family is not None:
        if len(family) != len(elo):
            raise InputError(f"family has {len(family)} names, elo {len(elo)} models; give one name a model")
        absent = sorted(set(family) - set(calibration_family))
        warnings += [f"no calibration model is of the family {name}" for name in absent]
    return tuple(warnings)


def _trend_warnings(residual: NDArray[np.float64], rating: ArrayLike | None) -> tuple[str, ...]:
    """A warning where residuals (n,) depend on the rating (n,): correlation beyond 2 / sqrt(n).

    Raises `InputError` for columns of different lengths.
    """
    if rating is None or len(residual) < 3:
        return ()
    elo = float_array("rating", rating)
    if elo.shape != residual.shape:
        raise InputError(f"calibration_elo has shape {elo.shape}, residual {residual.shape}; give one a model")
    known = ~np.isnan(residual)
    elo, residual = elo[known], residual[known]
    if len(residual) < 3 or np.ptp(elo) == 0.0 or np.ptp(residual) == 0.0:
        return ()
    found = float(np.corrcoef(elo, residual)[0, 1])
    if abs(found) <= 2.0 / math.sqrt(len(residual)):
        return ()
    return (f"residuals hang on the rating (correlation {found:+.2f}): models at one end are covered less than others",)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Share of held-out models covered by their interval, over random splits: mean `observed` and its spread `sd`.

    `expected` is rank / (n + 1), the value for exchangeable models; None, and `width` infinite, where intervals are.
    `width` is the median of whole widths in Elo points; `n` models calibrated each of `splits` splits.
    """

    observed: float
    sd: float
    expected: float | None
    width: float
    n: int
    splits: int


def split_coverage(
    residual: ArrayLike,
    se: ArrayLike,
    elo: ArrayLike,
    *,
    human_se: ArrayLike = 0.0,
    alpha: float = 0.1,
    scale: Scale = "total",
    splits: int = 20,
    share: float = 0.5,
    seed: int = 0,
) -> Coverage:
    """Calibrate on a random `share` of the models (rounded down), test on the others, and repeat; the Soft-Elo paper.

    Other arguments are as in `split_conformal`, for models with human ratings; all in Elo points. Splits of the same
    models overlap, so `sd` is not a standard error. Raises `InputError`.

    >>> from venire.ratings import split_coverage
    >>> rng = np.random.default_rng(0)
    >>> found = split_coverage(rng.normal(0, 30, 40), np.full(40, 10.0), np.linspace(900, 1100, 40), splits=5)
    >>> 0.5 < found.observed <= 1.0
    True
    """
    known = _CalibrationSet.of(residual, se, human_se, scale)
    points = float_array("elo", elo)
    if splits < 1 or known.n < 2 or points.shape != known.residual.shape:
        raise InputError("give 2 models or more, each with its elo and residual, and 1 split or more")
    check_seed(seed)
    rng, part = np.random.default_rng(seed), math.floor(known.n * share) if 0.0 < share < 1.0 else 0
    if not part:
        raise InputError(f"share is {share}; give a part of the {known.n} models, such as 0.7")
    held, widths, expected = [], [], None
    for _ in range(splits):
        order = rng.permutation(known.n)
        old, new = order[:part], order[part:]
        found = split_conformal(
            known.residual[old],
            known.se[old],
            points[new],
            known.se[new],
            human_se=known.human_se[old],
            elo_human_se=known.human_se[new],
            alpha=alpha,
            scale=scale,
        )
        held.append(float(found.covers(points[new] + known.residual[new]).mean()))
        widths.append(found.high - found.low)
        expected = found.expected
    spread = float(np.std(held, ddof=1)) if splits > 1 else float("nan")
    return Coverage(float(np.mean(held)), spread, expected, float(np.median(np.concatenate(widths))), part, splits)
