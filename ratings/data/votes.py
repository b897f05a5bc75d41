"""Pairwise votes, and the orders that voting methods derive from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons

_MIN_WEIGHT = 1e-300
"""Smaller numbers lose precision; votes of less weight count as 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Votes:
    """Pairwise votes: `weight[i, j]` (models, models) prefers model i to model j, a tie half to each side."""

    models: tuple[str, ...]
    weight: NDArray[np.float64]

    @property
    def tolerance(self) -> float:
        """Sums of votes that differ by less are equal, so that rounding decides nothing at any scale of weights."""
        return max(1e-9 * float(self.weight.sum()), _MIN_WEIGHT)


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """An order of `models` by one method.

    `order` lists all models, best first; tied models are sorted by name. `position` (models,) counts from 1 for the
    best; tied models share their mean, and with several optimal orders it is the mean over them. NaN is a model without
    votes. `score` (models,) is the method's own figure and `unit` names it. `cost` is the weight of votes that `order`
    contradicts, `lower_bound` a lower bound of the cost of any order, `proved` whether `cost` is the minimum,
    `optimal_orders` the number of orders with this cost, None where unknown.
    """

    method: str
    models: tuple[str, ...]
    order: tuple[str, ...]
    position: NDArray[np.float64]
    cost: float
    lower_bound: float
    proved: bool
    optimal_orders: int | None = None
    score: NDArray[np.float64] | None = None
    unit: str | None = None


def votes(data: Comparisons) -> Votes:
    """The weight with which each model was preferred to each other model; shares and ties are split.

    >>> from venire.ratings import comparisons, votes
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> found = votes(data)
    >>> found.models
    ('a', 'b', 'c')
    """
    size = len(data.models)
    weight: NDArray[np.float64] = np.ones(len(data)) if data.weight is None else data.weight
    cells = data.a.astype(np.int64) * size + data.b
    won = np.bincount(cells, weight * data.y, size * size).reshape(size, size)
    lost = np.bincount(cells, weight * (1.0 - data.y), size * size).reshape(size, size)
    return Votes(data.models, np.asarray(won + lost.T, dtype=np.float64))


def contradicted(weight: ArrayLike, order: ArrayLike) -> float:
    """The weight of votes that an order contradicts (Kemeny's cost).

    `weight` (n, n) as in `Votes`, `order` (n,) the models' codes, best first. Raises `InputError` for an order that
    does not name every model once.
    """
    table, codes = np.asarray(weight, dtype=np.float64), np.asarray(order, dtype=np.int64)
    if not np.array_equal(np.sort(codes), np.arange(len(table))):
        raise InputError(f"order has {len(codes)} entries; name each of the {len(table)} models once, by its code")
    return float(np.tril(table[np.ix_(codes, codes)], -1).sum())


def pair_bound(weight: ArrayLike) -> float:
    """The sum over pairs of the lighter side, a lower bound of `contradicted`. `weight` (n, n) as in `Votes`."""
    table = np.asarray(weight, dtype=np.float64)
    return float(np.triu(np.minimum(table, table.T), 1).sum())
