"""Distributions and rank correlations, built on the functions that scipy.stats itself uses.

`import scipy.stats` takes most of a second of CPU time, and every rating command would pay it at startup. Therefore no
module of this package imports it, or scipy.optimize, at module level. The distributions accept and return numbers or
arrays, as NumPy's functions do; invalid degrees of freedom (0 or less) give NaN. The correlations process many lists at
once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc, ndtr, ndtri, stdtr, stdtrit

__all__ = ["chi2", "kendall", "norm", "pearson", "ranks", "spearman", "student"]

_CELLS = 1 << 22
"""Pairs of models and rows compared at once; bounds memory for many instructions of many models."""
Numbers = float | NDArray[np.float64]


def ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Ranks from 1 along the last axis of `values` (..., n); ties share their mean rank. NaN is not supported."""
    given = np.asarray(values, dtype=np.float64)
    if not given.size:
        return np.empty(given.shape)
    rows = given.reshape(-1, given.shape[-1])
    order = np.argsort(rows, axis=1, kind="stable")
    ascending = np.take_along_axis(rows, order, axis=1)
    starts = np.ones(rows.shape, dtype=np.bool_)  # where a new value, or a new row, begins
    starts[:, 1:] = ascending[:, 1:] != ascending[:, :-1]
    group = np.cumsum(starts.ravel()) - 1
    first = np.flatnonzero(starts.ravel())
    size = np.diff(first, append=rows.size)
    shared = first % rows.shape[1] + (size + 1) / 2.0
    found = np.empty(rows.shape)
    np.put_along_axis(found, order, shared[group].reshape(rows.shape), axis=1)
    return found.reshape(given.shape)


def pearson(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pearson's correlation of each row of `ours` (rows, n) with `theirs` (n,); NaN where a side does not vary."""
    x, y = ours - ours.mean(axis=1, keepdims=True), theirs - theirs.mean()
    scale = np.sqrt((x * x).sum(axis=1) * float(y @ y))
    # The mean of equal positions has a rounding error, which must not be mistaken for an order.
    varies = (np.ptp(ours, axis=1) > 0.0) & (np.ptp(theirs) > 0.0)
    return np.where(varies, np.clip(x @ y / np.where(varies, scale, 1.0), -1.0, 1.0), np.nan)


def spearman(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Spearman's correlation of each row of `ours` (rows, n) with `theirs` (n,); NaN where a side does not vary."""
    return pearson(ranks(ours), ranks(theirs))


def kendall(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Kendall's tau-b of each row of `ours` (rows, n) with `theirs` (n,); NaN where a side does not vary."""
    first, second = np.triu_indices(len(theirs), 1)
    sign = np.sign(theirs[first] - theirs[second])
    found = np.empty(len(ours))
    step = max(1, _CELLS // max(len(sign), 1))
    for start in range(0, len(ours), step):
        rows = ours[start : start + step]
        side = np.sign(rows[:, first] - rows[:, second])
        pairs = np.count_nonzero(side, axis=1) * float(np.count_nonzero(sign))
        found[start : start + step] = np.where(pairs > 0.0, side @ sign / np.sqrt(np.maximum(pairs, 1.0)), np.nan)
    return found


class norm:
    """The standard normal distribution."""

    @staticmethod
    def pdf(x: Numbers) -> Any:
        """Density at `x`."""
        return np.exp(-0.5 * np.square(x)) / np.sqrt(2.0 * np.pi)

    @staticmethod
    def sf(x: Numbers) -> Any:
        """Probability of more than `x`, exact far out too."""
        return ndtr(np.negative(x))

    @staticmethod
    def ppf(share: Numbers) -> Any:
        """The quantile at probability `share`."""
        return ndtri(share)

    @staticmethod
    def isf(share: Numbers) -> Any:
        """The quantile at probability 1 - `share`."""
        return -ndtri(share)


class student:
    """Student's t distribution; with infinite degrees of freedom the normal distribution."""

    @staticmethod
    def cdf(x: Numbers, degrees: Numbers) -> Any:
        """Probability of `x` or less."""
        return stdtr(degrees, x)

    @staticmethod
    def sf(x: Numbers, degrees: Numbers) -> Any:
        """Probability of more than `x`, exact far out too."""
        return stdtr(degrees, np.negative(x))

    @staticmethod
    def ppf(share: Numbers, degrees: Numbers) -> Any:
        """The quantile at probability `share`."""
        return np.where(np.equal(share, 0.0), -1.0, 1.0) * stdtrit(degrees, share)  # stdtrit returns +inf for 0

    @staticmethod
    def isf(share: Numbers, degrees: Numbers) -> Any:
        """The quantile at probability 1 - `share`."""
        return -student.ppf(share, degrees)


class chi2:
    """The chi-square distribution."""

    @staticmethod
    def sf(x: Numbers, degrees: Numbers) -> Any:
        """Probability of more than `x`."""
        return np.where(np.greater(degrees, 0), chdtrc(degrees, np.maximum(x, 0.0)), np.nan)[()]
