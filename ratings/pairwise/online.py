"""Online Elo: each battle moves two ratings by K times what it surprised; the am-ELO paper.

The result depends on the order of battles, which says nothing about models whose strength does not change. It is
therefore the mean over random orders. Bradley-Terry has no such dependence and is the better answer; this one is here
because boards quote it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.arena.scale import POINTS_PER_LOGIT
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.pairwise.shuffles import by_name, orders, single_battles

__all__ = ["OnlineElo", "Order", "online_elo"]

Order = Literal["shuffled", "given"]

_FEW = 24  # from so many orders on, side by side costs less than one after the other


@dataclass(frozen=True, slots=True, eq=False)
class OnlineElo:
    """Ratings after the last battle, their mean where there were several orders.

    `sd` (n,) is the standard deviation between orders in Elo points, of one order and not of the mean: how much a
    single pass owes to chance. It is not an error of the ratings, since it knows nothing of battles not seen.
    """

    ratings: Ratings
    sd: NDArray[np.float64]
    order: Order
    shuffles: int


def online_elo(
    data: Comparisons, *, k: float = 4.0, order: Order = "shuffled", shuffles: int = 100, seed: int = 0
) -> OnlineElo:
    """Elo from 1000, each battle moving both ratings by k points times outcome less expectation; the am-ELO paper.

    `order` "given" takes the rows as they stand, once. Raises `InputError` for a k outside (0, 10000], fewer than one
    shuffle, and weights other than 0 and 1.
    """
    if not 0.0 < k <= 10_000.0:
        raise InputError(f"k is {k}; give Elo points above 0 and up to 10000")
    if order not in get_args(Order):
        raise InputError(f"order is {order!r}; choose one of {', '.join(get_args(Order))}")
    played, size = single_battles(data, "online Elo"), len(data.models)
    if order == "given":
        runs = _one_by_one(played, k / POINTS_PER_LOGIT, np.arange(len(played), dtype=np.int32))[:, None]
    else:
        rows, origin = by_name(played)
        runs = np.empty((size, shuffles))
        runs[origin] = np.hstack(
            [_passes(rows, k / POINTS_PER_LOGIT, group) for group in orders(len(rows), shuffles, seed)]
        )
    battles = np.bincount(played.a, minlength=size) + np.bincount(played.b, minlength=size)
    runs[battles == 0] = np.nan
    absent = [data.models[code] for code in np.flatnonzero(battles == 0)]
    ratings = Ratings(
        method="elo",
        models=data.models,
        logits=runs.mean(axis=1),
        battles=battles.astype(np.float64),
        diagnostics={
            "k": k,
            "order": order,
            "shuffles": runs.shape[1] if order == "shuffled" else 0,
            "no_estimate": dict.fromkeys(absent, "it has no comparison with a weight above 0"),
        },
    )
    sd = runs.std(axis=1, ddof=1) * POINTS_PER_LOGIT if runs.shape[1] > 1 else np.full(size, np.nan)
    return OnlineElo(ratings=ratings, sd=sd, order=order, shuffles=runs.shape[1] if order == "shuffled" else 0)


def _passes(rows: Comparisons, k: float, order: NDArray[np.int32]) -> NDArray[np.float64]:
    """Ratings in logits (models, orders) after a pass in each of the orders (rows, orders)."""
    if order.shape[1] < _FEW:
        return np.column_stack([_one_by_one(rows, k, column) for column in order.T])
    return _side_by_side(rows, k, order)


def _one_by_one(rows: Comparisons, k: float, order: NDArray[np.int32]) -> NDArray[np.float64]:
    """The update as it is written, on plain lists: no array is faster where each battle needs the one before."""
    ratings = [0.0] * len(rows.models)
    exp = math.exp
    columns = (rows.a[order].tolist(), rows.b[order].tolist(), rows.y[order].tolist())
    for a, b, y in zip(*columns, strict=True):
        change = k * (y - 1.0 / (1.0 + exp(ratings[b] - ratings[a])))
        ratings[a] += change
        ratings[b] -= change
    return np.array(ratings)


def _side_by_side(rows: Comparisons, k: float, order: NDArray[np.int32]) -> NDArray[np.float64]:
    """The same update in all orders at once, one battle of each at a time."""
    lanes = order.shape[1]
    ratings = np.zeros(len(rows.models) * lanes)
    lane, chunk = np.arange(lanes), max(1, 1_000_000 // lanes)
    change = np.empty(lanes)
    for start in range(0, len(order), chunk):
        part = order[start : start + chunk]
        a, b = rows.a[part] * np.int64(lanes) + lane, rows.b[part] * np.int64(lanes) + lane
        for above, below, gain in zip(a, b, k * rows.y[part], strict=True):
            up, down = ratings.take(above), ratings.take(below)
            np.subtract(down, up, out=change)
            np.exp(change, out=change)
            change += 1.0
            np.divide(k, change, out=change)
            np.subtract(gain, change, out=change)
            up += change
            down -= change
            ratings[above], ratings[below] = up, down
    return ratings.reshape(len(rows.models), lanes)
