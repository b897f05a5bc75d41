"""Logits and Elo points: the only place that converts one into the other."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["ELO_MEAN", "POINTS_PER_LOGIT", "to_elo", "to_logits"]

ELO_MEAN = 1000.0
POINTS_PER_LOGIT = 400.0 / math.log(10.0)


def to_elo(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Elo points with mean 1000 over the last axis, from ratings in logits of shape (..., models); docs/ratings.md."""
    centred = logits - logits.mean(axis=-1, keepdims=True)
    return np.asarray(ELO_MEAN + POINTS_PER_LOGIT * centred, dtype=np.float64)


def to_logits(elo: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ratings in logits with mean 0 over the last axis, from Elo points of shape (..., models)."""
    return np.asarray((elo - elo.mean(axis=-1, keepdims=True)) / POINTS_PER_LOGIT, dtype=np.float64)
