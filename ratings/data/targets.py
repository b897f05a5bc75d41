"""Outcomes for `comparisons` from labels or from scores; `smoothing.smoothed` pulls any of them towards a tie."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from venire.arena.errors import InputError

__all__ = ["hard", "soft"]


def hard(labels: ArrayLike) -> NDArray[np.float64]:
    """1, 0.5 and 0 for labels (rows,) of 1 (A won), 0 (a tie) and -1 (B won); raises `InputError` for others."""
    values = np.asarray(labels)
    wrong = ~((values == 1) | (values == 0) | (values == -1))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"labels, row {row}: {values[row]} is not possible: give 1 (A won), 0 (a tie) or -1 (B won)")
    return 0.5 + 0.5 * values.astype(np.float64)


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
