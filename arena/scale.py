"""The logistic scale of ratings: Elo points, logits (log odds), and the one place that converts between them.

A model that is 400 points above another wins ten times as often as it loses, so that a logit is 400 / ln 10, or 173.7,
points. Only differences carry meaning; boards centre them at 1000.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ELO_MEAN = 1000.0
POINTS_PER_LOGIT = 400.0 / math.log(10.0)
LOGITS_PER_POINT = math.log(10.0) / 400.0


def to_elo(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Elo points with mean 1000 over the last axis, from ratings in logits of shape (..., models); docs/ratings.md.

    >>> from venire.ratings import to_elo
    >>> to_elo(np.array([0.0, 1.0])).round(1).tolist()
    [913.1, 1086.9]
    """
    elo: NDArray[np.float64] = ELO_MEAN + POINTS_PER_LOGIT * (logits - logits.mean(axis=-1, keepdims=True))
    return elo


def to_logits(elo: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ratings in logits with mean 0 over the last axis, from Elo points of shape (..., models).

    >>> from venire.ratings import to_logits
    >>> to_logits(np.array([1000.0, 1400.0])).round(3).tolist()
    [-1.151, 1.151]
    """
    logits: NDArray[np.float64] = (elo - elo.mean(axis=-1, keepdims=True)) / POINTS_PER_LOGIT
    return logits
