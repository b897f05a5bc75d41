"""Outcomes for `comparisons` from labels or scores: hard, smoothed, or soft."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from venire.arena.errors import InputError

__all__ = ["hard", "smoothed", "soft"]


def hard(labels: ArrayLike) -> NDArray[np.float64]:
    """1, 0.5 and 0 for labels (rows,) of 1 (A won), 0 (a tie) and -1 (B won); raises `InputError` for others."""
    return smoothed(labels, 0.0)


def smoothed(labels: ArrayLike, c: float) -> NDArray[np.float64]:
    """1 - c, 0.5 and c for the same labels: a share c of each decision is taken to be wrong; c from 0 to 0.5.

    With c above 0 every model that played has wins and losses, so a connected table always has an estimate. Raises
    `InputError` for another c and for other labels.
    """
    if not 0.0 <= c <= 0.5:
        raise InputError(f"c is {c}; give the share of decisions taken to be wrong, from 0 to 0.5")
    values = np.asarray(labels)
    wrong = ~((values == 1) | (values == 0) | (values == -1))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"labels, row {row}: {values[row]} is not possible: give 1 (A won), 0 (a tie) or -1 (B won)")
    return np.where(values == 0, 0.5, np.where(values == 1, 1.0 - c, c))


def soft(score: ArrayLike, beta: float) -> NDArray[np.float64]:
    """`sigma(beta score)` for scores (rows,) of A less B; beta is 0 or more. Raises `InputError`."""
    if not (beta >= 0.0 and np.isfinite(beta)):
        raise InputError(f"beta is {beta}; give a finite number, 0 or more")
    values = np.asarray(score, dtype=np.float64)
    wrong = ~np.isfinite(values)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"score, row {row}: {values[row]} is not possible: give the score of A less that of B")
    return np.asarray(expit(beta * values), dtype=np.float64)
