"""What voting methods share: majorities of pairs, and the order that a method's figures make."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from venire.ratings.data.votes import Order, Votes, contradicted, pair_bound

__all__ = ["between", "by_score", "levels", "margins", "met", "slack", "steps"]

Matrix = NDArray[np.float64]


def met(votes: Votes) -> NDArray[np.bool_]:
    """Which pairs (n, n) have any vote."""
    return np.asarray(votes.weight + votes.weight.T > 0.0) & ~np.eye(len(votes.models), dtype=np.bool_)


def margins(votes: Votes) -> Matrix:
    """Votes for less votes against, (n, n); 0 where they are equal but for the last bits of a sum."""
    margin = votes.weight - votes.weight.T
    return np.where(np.abs(margin) <= slack(votes), 0.0, margin)


def slack(votes: Votes) -> float:
    """Margins that differ by less are equal: a pair's own sums lose no more, however many pairs there are."""
    return 1e-9 * float((votes.weight + votes.weight.T).max(initial=0.0))


def levels(votes: Votes) -> NDArray[np.int64]:
    """Majorities (n, n) in whole numbers: 0 for none, and the same for margins that are equal; more for larger ones."""
    margin = margins(votes)
    level = np.zeros(margin.shape, dtype=np.int64)
    won = margin > 0.0
    level[won] = 1 + steps(margin[won], slack(votes))
    return level


def steps(values: NDArray[np.float64], tolerance: float) -> NDArray[np.int64]:
    """Each value's place among the distinct ones (n,), from 0 for the lowest; a gap within `tolerance` is none."""
    rising = np.argsort(values, kind="stable")
    step = np.zeros(len(values), dtype=np.int64)
    step[rising[1:]] = np.cumsum(np.diff(values[rising]) > tolerance)
    return step


def between(below: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Models surely below less models surely above (n,), from a strict partial order: [i, j] puts i above j.

    It is the middle of the positions that the relation leaves open to a model, counted from the middle of the field: a
    model above another always has more, and a full order keeps its positions.
    """
    return np.asarray(below.sum(axis=1) - below.sum(axis=0), dtype=np.float64)


def by_score(
    method: str,
    votes: Votes,
    score: NDArray[np.float64],
    unit: str,
    *,
    key: NDArray[np.float64] | None = None,
    tolerance: float = 1e-9,
) -> Order:
    """The order that `key` makes, highest first; None: the `score` (n,) itself. NaN is a model that has no position.

    Models whose keys differ by no more than `tolerance` share the mean of their positions and stand by name.
    """
    value = score if key is None else key
    codes = np.flatnonzero(~np.isnan(value))
    step = steps(-value[codes], tolerance)
    sizes = np.bincount(step)
    position = np.full(len(value), np.nan)
    position[codes] = (np.cumsum(sizes) - (sizes - 1) / 2.0)[step]
    last = np.where(np.isnan(position), np.inf, position).tolist()
    order = sorted(range(len(value)), key=lambda code: (last[code], votes.models[code]))
    cost, bound = contradicted(votes.weight, order), pair_bound(votes.weight)
    return Order(
        method=method,
        models=votes.models,
        order=tuple(votes.models[code] for code in order),
        position=position,
        cost=cost,
        lower_bound=bound,
        proved=cost - bound <= votes.tolerance,
        score=score,
        unit=unit,
    )
