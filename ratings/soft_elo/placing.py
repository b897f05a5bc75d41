"""Other outcomes for the same comparisons, and one model placed among others whose ratings are fixed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from venire.ratings.data.comparisons import Comparisons
from venire.ratings.pairwise.solvers import NotConvergedError

__all__ = ["clipped", "place", "with_targets"]

_STEPS = 200
_TOLERANCE = 1e-11
_CLIP = 1e-6
_SPAN = 700.0
"""Logits within which an exponential is a number of double precision."""


def clipped(targets: NDArray[np.float64], parity: bool) -> NDArray[np.float64]:
    """Targets as they are; with `parity` kept 1e-6 away from 0 and 1, as the authors of Soft-Elo do."""
    return np.asarray(np.clip(targets, _CLIP, 1.0 - _CLIP)) if parity else targets


def with_targets(data: Comparisons, targets: NDArray[np.float64]) -> Comparisons:
    """The same comparisons with other outcomes (rows,); a row whose target is NaN is left out."""
    known = ~np.isnan(targets)
    if known.all():
        return replace(data, y=targets)
    return replace(data, y=targets).select(known)


def place(
    anchors: NDArray[np.float64],
    won: NDArray[np.float64],
    lost: NDArray[np.float64],
    ridge: float,
    start: float = 0.0,
) -> NDArray[np.float64]:
    """Ratings (columns,) in logits that maximise the ridged likelihood of battles against fixed anchors.

    `anchors` (opponents,) are logits; `won` and `lost` (opponents, columns) are the weights of battles won and lost
    against each, one column a resample; `ridge` above 0 is lambda in lambda / 2 R^2. A column without battles is NaN.
    Newton from `start`, every column kept between points where its slope has either sign. Raises `NotConvergedError`.
    """
    played = won + lost
    live = np.flatnonzero(played.sum(axis=0) > 0.0)
    placed = np.full(won.shape[1], np.nan)
    won, lost, played = won[:, live], lost[:, live], played[:, live]
    rating = np.full(len(live), start)
    low, high = np.full(len(live), -np.inf), np.full(len(live), np.inf)
    for _ in range(_STEPS):
        odds = np.exp(np.clip(anchors[:, None] - rating, -_SPAN, _SPAN))
        share = 1.0 / (1.0 + odds)
        missed = odds * share  # 1 - share has no digits left where share is almost 1
        slope = (won * missed - lost * share).sum(axis=0) - ridge * rating
        curve = (played * share * missed).sum(axis=0) + ridge
        low, high = np.where(slope > 0.0, rating, low), np.where(slope > 0.0, high, rating)
        after = rating + np.clip(slope / curve, -2.0, 2.0)
        outside = ~((after >= low) & (after <= high))
        after[outside] = 0.5 * (low + high)[outside]
        done = bool(np.all(np.abs(after - rating) <= _TOLERANCE * (1.0 + np.abs(after))))
        rating = after
        if done:
            placed[live] = rating
            return placed
    raise NotConvergedError(f"a rating against fixed anchors was not found in {_STEPS} steps")
