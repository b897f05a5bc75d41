"""Exact Kemeny-Young for small blocks: the decomposition into blocks, and dynamic programming over subsets.

A block is a strong component of "has at least as many votes": every order of least cost keeps its models together (the
extended Condorcet criterion). Within a block, the cost of placing a model below a set depends only on the set, not on
its order. So the least cost of every set on top follows from those of the sets with one model less, and an order is
optimal if and only if each of its steps is optimal. The numbers of optimal paths to a set from either end give how
often each model has each position.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_PARTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 20, 24, 25, 60, 100)
"""Largest denominator of a common unit of weights: halves from ties, shares of a few judges."""

_ROUNDING = 1e-6

_EXACT = 2.0**52

_EQUAL = 4e-6
"""Tolerance of equal costs in a table without a common unit: HiGHS accepts rows violated by up to 1e-6."""

MAX_MODELS = 18
"""Largest block solved over all 2^n sets; 18! is the largest number of orders that a float represents exactly."""

Codes = NDArray[np.intp]

Places = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Excess:
    """Margins of pairs: the difference between the heavier and the lighter side.

    `table[i, j]` (n, n) times `scale` is the extra cost of j above i over the cost common to all orders; one of
    `table[i, j]` and `table[j, i]` is 0, both in a tie. Costs that differ by `tolerance` or less are equal. `whole`:
    the table contains integers, so a bound may be rounded up.
    """

    table: NDArray[np.float64]
    scale: float
    whole: bool
    tolerance: float

    def among(self, codes: NDArray[np.intp]) -> Excess:
        """The same between some models (k,), given by their codes."""
        return Excess(self.table[np.ix_(codes, codes)], self.scale, self.whole, self.tolerance)


def excess_table(weight: NDArray[np.float64], tolerance: float) -> Excess:
    """The table of pairwise votes `weight` (n, n) as excesses, in integer units where weights have a common unit.

    Sides that differ by `tolerance` or less are tied, unless they differ in a common unit.
    """
    margin = weight - weight.T
    if not margin.any():
        return Excess(np.zeros_like(margin), 1.0, True, 0.5)
    for parts in _PARTS:
        counted = np.rint(margin * parts)
        allowed = min(tolerance * parts, _ROUNDING)
        if np.abs(counted).sum() < _EXACT and np.abs(margin * parts - counted).max() <= allowed and counted.any():
            unit = float(np.gcd.reduce(np.abs(counted[counted != 0.0]).astype(np.int64)))
            return Excess(np.maximum(counted, 0.0) / unit, unit / parts, True, 0.5)
    scale = tolerance / _EQUAL
    return Excess(np.where(margin > tolerance, margin, 0.0) / scale, scale, False, _EQUAL)


def order_cost(table: NDArray[np.float64], order: NDArray[np.intp]) -> float:
    """Cost of an order (n,), codes best first, by a table of excesses (n, n)."""
    return float(np.tril(table[np.ix_(order, order)], -1).sum())


def blocks(table: NDArray[np.float64]) -> list[NDArray[np.intp]]:
    """Blocks: sets of models, ascending codes, that have this order in every order of least cost.

    They are the strong components of "has at least as many votes", of a table of excesses (n, n). Each model of an
    earlier block has more votes than each of a later block: sorting an order's models by block, with their order within
    blocks unchanged, removes the cost of every reversed pair of this kind and adds none.
    """
    if not len(table):
        return []
    beats = table > 0.0
    score = beats.sum(axis=1) - beats.sum(axis=0)
    # Wins minus losses decrease from each block to the next, so blocks are contiguous in this order.
    order = np.argsort(-score, kind="stable")
    held = ~beats[np.ix_(order, order)]
    reach = np.maximum.accumulate(len(table) - 1 - np.argmax(held[:, ::-1], axis=1))
    ends = np.flatnonzero(reach == np.arange(len(table))) + 1
    return [np.sort(part) for part in np.split(order, ends[:-1])]


@dataclass(frozen=True, slots=True, eq=False)
class OptimalOrders:
    """The orders of least cost of n models.

    `order` (n,) are the codes of one of them, best first, `cost` is their excess, `count` their number, and `position`
    (n,) each model's mean place over all of them, from 1.
    """

    order: Codes
    cost: float
    count: int
    position: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """Sets of one size: the members of each (sets, size), and the index of the set without each member.

    `before` is its index in the previous layer, `under` the index of the member's cost below that set in the flat
    table.
    """

    members: Places
    before: Places
    under: Places


def optimal_orders(block: Excess) -> OptimalOrders:
    """All orders of least cost of up to `MAX_MODELS` models, with one of them returned.

    The returned order puts the model with the least mean place first (among equals, the smaller code), and so on.
    """
    size = len(block.table)
    layers = _layers(size)
    below = _below(block.table)
    cost, paths, least = np.zeros(1), np.ones(1), []
    for layer in layers:
        ways = cost[layer.before] + below[layer.under]
        cost = ways.min(axis=1)
        least.append(ways <= cost[:, None] + block.tolerance)
        paths = np.where(least[-1], paths[layer.before], 0.0).sum(axis=1)
    onward = _onward(layers, least)
    place = _places(layers, least, onward)
    total = float(paths[0])
    position = place @ np.arange(1.0, size + 1.0) / total
    return OptimalOrders(_positions(layers, least, onward, position), float(cost[0]), int(total), position)


@lru_cache(maxsize=32)
def _layers(size: int) -> tuple[_Layer, ...]:
    """Sets of 1, 2, ... n models as bits, which are the same for every block of that size."""
    sets = np.arange(1 << size, dtype=np.int32)
    count = np.bitwise_count(sets)
    order = np.argsort(count, kind="stable")
    edges = np.searchsorted(count[order], np.arange(size + 2))
    rank = np.empty(1 << size, dtype=np.int32)
    rank[order] = np.arange(1 << size) - edges[count[order]]
    bits, found = np.arange(size, dtype=np.int32), []
    for one in range(1, size + 1):
        members = order[edges[one] : edges[one + 1]]
        codes = np.nonzero(members[:, None] >> bits & 1)[1].reshape(-1, one).astype(np.int32)
        without = members[:, None] ^ (1 << codes)
        found.append(_Layer(codes, rank[without], codes * (1 << size) + without))
    return tuple(found)


def _below(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """The cost of each model below each set (n * 2^n,), with sets as bit masks."""
    size = len(table)
    sums = np.zeros((size, 1 << size))
    for code in range(size):
        width = 1 << code
        sums[:, width : 2 * width] = sums[:, :width] + table[:, [code]]
    return sums.ravel()


def _onward(layers: tuple[_Layer, ...], least: list[NDArray[np.bool_]]) -> list[NDArray[np.float64]]:
    """For the sets of each size from 0 to n, the number of optimal paths from there to the full set."""
    paths: list[NDArray[np.float64]] = [np.ones(1)]
    for size in range(len(layers), 0, -1):
        layer, ahead = layers[size - 1], np.where(least[size - 1], paths[-1][:, None], 0.0)
        behind = 1 if size == 1 else len(layers[size - 2].members)
        paths.append(np.bincount(layer.before.ravel(), ahead.ravel(), behind).astype(np.float64))
    return paths[::-1]


def _places(
    layers: tuple[_Layer, ...], least: list[NDArray[np.bool_]], onward: list[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """The number of orders of least cost in which each model (n,) has each place (n,)."""
    size = len(layers)
    place, paths = np.zeros((size, size)), np.ones(1)
    for number, (layer, steps) in enumerate(zip(layers, least, strict=True)):
        ways = np.where(steps, paths[layer.before], 0.0)
        through = ways * onward[number + 1][:, None]
        place[:, number] = np.bincount(layer.members.ravel(), through.ravel(), size)
        paths = ways.sum(axis=1)
    return place


def _positions(
    layers: tuple[_Layer, ...],
    least: list[NDArray[np.bool_]],
    onward: list[NDArray[np.float64]],
    position: NDArray[np.float64],
) -> Codes:
    size = len(layers)
    rank = np.empty(size)
    rank[np.lexsort((np.arange(size), np.round(position, 9)))] = np.arange(size)
    order, here = [], 0
    for number, layer in enumerate(layers):
        sets, which = np.nonzero((layer.before == here) & least[number])
        open_ways = onward[number + 1][sets] > 0.0
        sets, which = sets[open_ways], which[open_ways]
        best = int(np.argmin(rank[layer.members[sets, which]]))
        order.append(int(layer.members[sets[best], which[best]]))
        here = int(sets[best])
    return np.array(order, dtype=np.intp)
