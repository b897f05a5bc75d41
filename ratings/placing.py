"""The small fits that leaving one model out is made of: the anchors together, then one model among fixed anchors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit

from venire.ratings.bradley_terry import NotConvergedError, derivatives

__all__ = ["clipped", "pair_wins", "place", "rate_wins"]

_STEPS = 200
_TOLERANCE = 1e-11
_CLIP = 1e-6


def clipped(targets: NDArray[np.float64], parity: bool) -> NDArray[np.float64]:
    """Targets as they are; with `parity` kept 1e-6 away from 0 and 1, as the authors of Soft-Elo do."""
    return np.asarray(np.clip(targets, _CLIP, 1.0 - _CLIP)) if parity else targets


def pair_wins(
    a: NDArray[np.int32], b: NDArray[np.int32], y: NDArray[np.float64], weight: NDArray[np.float64] | None, models: int
) -> NDArray[np.float64]:
    """Pair counts (models, models) of checked rows: [i, j] is the weight by which i beat j; a NaN outcome is no row."""
    known = ~np.isnan(y)
    if not known.all():
        a, b, y, weight = a[known], b[known], y[known], None if weight is None else weight[known]
    cell = a * np.int64(models) + b
    # Losses are summed by themselves: taken from a total, a chance of 1e-9 would drown in rounding.
    won = np.bincount(cell, y if weight is None else weight * y, models * models).reshape(models, models)
    lost = np.bincount(cell, 1.0 - y if weight is None else weight * (1.0 - y), models * models)
    return np.asarray(won + lost.reshape(models, models).T, dtype=np.float64)


def rate_wins(
    wins: NDArray[np.float64], ridge: float, start: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.float64], int]:
    """Ratings (n,) in logits, not centred, that maximise the ridged likelihood of pair counts (n, n), and the steps.

    A model without battles stays at 0. Newton; a step is halved when the slope along it points back at its end more
    steeply than it pointed ahead. Raises `NotConvergedError`.
    """
    size = len(wins)
    ratings = np.zeros(size) if start is None else start.copy()
    step, slope, scale = np.zeros(size), np.inf, 1.0
    for iteration in range(_STEPS):
        gradient, information = derivatives(wins, ratings)
        gradient -= ridge * ratings
        np.fill_diagonal(information, np.diagonal(information) + ridge)
        if np.all(np.abs(gradient) <= 1e-12 * np.diagonal(information)):
            return ratings, iteration
        if -(gradient @ step) > 0.9 * slope and scale > 1e-6:
            scale *= 0.5
            ratings = ratings - scale * step
            continue
        try:
            step = cho_solve(cho_factor(information, lower=True, overwrite_a=True), gradient)
        except LinAlgError as error:
            raise NotConvergedError(
                "the information matrix is singular in double precision: raise the ridge"
            ) from error
        slope, scale = float(gradient @ step), 1.0
        ratings = ratings + step
    raise NotConvergedError(f"the gradient was not zero after {_STEPS} steps")


def place(
    anchors: NDArray[np.float64], won: NDArray[np.float64], lost: NDArray[np.float64], ridge: float
) -> NDArray[np.float64]:
    """Ratings (columns,) in logits that maximise the ridged likelihood of battles against fixed anchors.

    `anchors` (opponents,) are logits; `won` and `lost` (opponents, columns) are the weights of battles won and lost
    against each, one column a resample; `ridge` above 0 is lambda in lambda / 2 R^2. A column without battles is NaN.
    Newton, every column kept between points where its slope has either sign. Raises `NotConvergedError`.
    """
    played = won + lost
    live = np.flatnonzero(played.sum(axis=0) > 0.0)
    placed = np.full(won.shape[1], np.nan)
    won, lost, played = won[:, live], lost[:, live], played[:, live]
    rating = np.zeros(len(live))
    low, high = np.full(len(live), -np.inf), np.full(len(live), np.inf)
    for _ in range(_STEPS):
        gap = rating - anchors[:, None]
        share, missed = expit(gap), expit(-gap)  # 1 - share has no digits left where share is almost 1
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
