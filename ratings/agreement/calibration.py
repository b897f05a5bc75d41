"""Calibration of stated probabilities: the expected calibration error and the reliability curve behind it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError
from venire.ratings.agreement.chance_corrected import Coefficient, coefficient_of, resample
from venire.ratings.data.validation import float_array

_NAME = "expected calibration error"


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """The error and, for each bin (bins,), the mean probability, the observed frequency and the number of rows.

    `by_chance` is approximately the error expected from noise alone if every probability is right; compare `error` to
    it.
    """

    error: Coefficient
    by_chance: float
    stated: NDArray[np.float64]
    came_true: NDArray[np.float64]
    rows: NDArray[np.int64]


def calibration(
    probability: ArrayLike,
    outcome: ArrayLike,
    *,
    bins: int = 10,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    cluster: ArrayLike | None = None,
) -> Calibration:
    """Expected calibration error of `probability` (rows,) for `outcome` (rows,), both from 0 to 1.

    Rows are sorted by probability (stable) and split into `bins` of equal size, as `numpy.array_split` does it; the
    error is the mean over rows of |mean probability - mean outcome| of their bin. The bootstrap keeps the bins fixed.
    The interval is the basic one (reflected about the estimate), clipped to [0, 1]: a sum of absolute values grows with
    noise, so percentiles of the draws are too high. Raises `InputError` that names the argument and the row.

    >>> from venire.ratings import calibration
    >>> found = calibration([0.9, 0.8, 0.3, 0.2, 0.6, 0.4], [1, 1, 0, 0, 1, 0], bins=2, replicates=100)
    >>> round(found.error.value, 3)
    0.267
    """
    stated, true = _share("probability", probability), _share("outcome", outcome)
    if stated.shape != true.shape:
        raise InputError(f"probability has {len(stated)} rows, outcome {len(true)}; give one of each a row")
    if bins < 1:
        raise InputError(f"bins is {bins}; give 1 or more")
    items = len(stated)
    if not items:
        none = np.zeros(0)
        missing = Coefficient(_NAME, None, 0, level=level, reason="there is no row")
        return Calibration(missing, np.nan, none, none, none.astype(np.int64))
    filled = min(bins, items)
    code = np.empty(items, dtype=np.int64)
    for index, part in enumerate(np.array_split(np.argsort(stated, kind="stable"), filled)):
        code[part] = index
    member = np.zeros((items, filled))
    member[np.arange(items), code] = stated - true

    def statistic(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.abs(weights @ member).sum(axis=1) / weights.sum(axis=1), dtype=np.float64)

    drawn = resample(statistic, items, level=level, replicates=replicates, seed=seed, cluster=cluster)
    error = coefficient_of(_NAME, float(statistic(np.ones((1, items)))[0]), items, drawn, level=level)
    rows = np.bincount(code, minlength=filled)
    return Calibration(
        error=_reflected(error),
        by_chance=_by_chance(stated, code, filled),
        stated=np.bincount(code, stated, filled) / rows,
        came_true=np.bincount(code, true, filled) / rows,
        rows=rows,
    )


def _reflected(error: Coefficient) -> Coefficient:
    """The basic bootstrap interval instead of the percentile interval, clipped to [0, 1]."""
    if error.value is None or error.lo is None or error.hi is None:
        return error
    low, high = (min(max(2.0 * error.value - bound, 0.0), 1.0) for bound in (error.hi, error.lo))
    return replace(error, lo=low, hi=high)


def _by_chance(stated: NDArray[np.float64], code: NDArray[np.int64], bins: int) -> float:
    """Mean error of outcomes drawn from `stated` itself: each bin's mean error is about normal with this variance."""
    spread = np.sqrt(np.bincount(code, stated * (1.0 - stated), bins))
    return float(np.sqrt(2.0 / np.pi) * spread.sum() / len(stated))


def _share(argument: str, values: ArrayLike) -> NDArray[np.float64]:
    array = float_array(argument, values)
    if array.ndim != 1:
        raise InputError(f"{argument} has shape {array.shape}; give one column")
    wrong = np.flatnonzero(~((array >= 0.0) & (array <= 1.0)))
    if len(wrong):
        raise InputError(f"{argument}, row {int(wrong[0])}: {array[wrong[0]]!s} is not possible: give 0 to 1")
    return array
