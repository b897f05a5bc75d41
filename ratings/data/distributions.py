"""The normal, Student's and the chi-square distribution, by the functions beneath those of scipy.stats.

`import scipy.stats` takes most of a second of processor time, which every command that rates would pay before its
first word: no module of this room imports it, or scipy.optimize, at its top. Each takes and gives numbers or
arrays, as NumPy's functions do; degrees of freedom without a distribution (0 or less) give NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtr, ndtri, stdtr, stdtrit

__all__ = ["chi2", "norm", "student"]

Numbers = float | NDArray[np.float64]


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
        """What is exceeded with probability 1 - `share`."""
        return ndtri(share)

    @staticmethod
    def isf(share: Numbers) -> Any:
        """What is exceeded with probability `share`."""
        return -ndtri(share)


class student:
    """Student's distribution; with infinite degrees of freedom the normal one."""

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
        """What is exceeded with probability 1 - `share`."""
        return np.where(np.equal(share, 0.0), -1.0, 1.0) * stdtrit(degrees, share)  # of 0 stdtrit makes +inf

    @staticmethod
    def isf(share: Numbers, degrees: Numbers) -> Any:
        """What is exceeded with probability `share`."""
        return -student.ppf(share, degrees)


class chi2:
    """The chi-square distribution."""

    @staticmethod
    def sf(x: Numbers, degrees: Numbers) -> Any:
        """Probability of more than `x`."""
        return np.where(np.greater(degrees, 0), chdtrc(degrees, np.maximum(x, 0.0)), np.nan)[()]
