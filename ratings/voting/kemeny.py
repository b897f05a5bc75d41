"""Kemeny-Young: the order of models that contradicts the least weight of pairwise votes; `proved` if exact.

Peyton Young and Arthur Levenglick, A consistent extension of Condorcet's election principle (1978). For ballots, the
order of least cost is their median under Kendall's distance. Finding it is NP-hard in general, but fast for realistic
votes: the order decomposes into blocks; small blocks are solved exactly over all their orders (`kemeny_blocks`), large
blocks by linear programs (`kemeny_program`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.ratings.data.votes import Order, Votes, contradicted, pair_bound
from venire.ratings.pairwise.components import strong_components
from venire.ratings.voting.kemeny_blocks import MAX_MODELS, Excess, blocks, excess_table, optimal_orders
from venire.ratings.voting.kemeny_program import BestOrder, optimal_order

Codes = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class _SolvedBlock:
    """A solved block of n models: an order (n,), mean places (n,) from 1, excess, bound, and the number of orders."""

    order: Codes
    position: NDArray[np.float64]
    cost: float
    bound: float
    count: int | None


def kemeny_young(votes: Votes, *, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic) -> Order:
    """Kemeny-Young order: the order of models that contradicts the least weight of votes.

    Where several orders cost the same, `position` is a model's mean place over all of them, and `order` is one of them.
    Both are known for blocks (strong components of the majority relation) of up to 18 models; for a larger block
    `position` is the place in the order found and `optimal_orders` is None. After `seconds` by the `clock` the best
    order found is returned with a lower bound of the cost; `proved` states whether the two are equal. Models without
    votes have no position. Raises `InputError` for votes that are not finite and at least 0, and for no time.

    >>> from venire.ratings import comparisons, kemeny_young, votes
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> kemeny_young(votes(data)).position.tolist()
    [1.3333333333333333, 2.0, 2.6666666666666665]
    """
    _check(votes, seconds)
    until = clock() + seconds
    named = np.array(sorted(range(len(votes.models)), key=lambda code: votes.models[code]), dtype=np.intp)
    weight = votes.weight[np.ix_(named, named)].astype(np.float64)
    np.fill_diagonal(weight, 0.0)
    voted = weight.any(axis=0) | weight.any(axis=1)
    there, position = np.flatnonzero(voted), np.full(len(named), np.nan)
    table = excess_table(weight[np.ix_(there, there)], votes.tolerance)
    order: list[int] = []
    solved: list[_SolvedBlock] = []
    for codes in blocks(table.table):
        block = _solve_block(table.among(codes), lambda: until - clock())
        position[named[there[codes]]] = len(order) + block.position
        order.extend(there[codes[block.order]].tolist())
        solved.append(block)
    order += np.flatnonzero(~voted).tolist()
    cost = contradicted(weight, order)
    open_gap = sum(block.cost - block.bound for block in solved) * table.scale
    proved = all(block.cost - block.bound <= table.tolerance for block in solved)
    counts = [block.count for block in solved]
    return Order(
        method="kemeny",
        models=votes.models,
        order=tuple(votes.models[named[code]] for code in order),
        position=position,
        cost=cost,
        lower_bound=cost if proved else max(cost - open_gap, pair_bound(weight)),
        proved=proved,
        optimal_orders=None if None in counts else math.prod(count for count in counts if count is not None),
    )


def _check(votes: Votes, seconds: float) -> None:
    size, weight = len(votes.models), np.asarray(votes.weight)
    if weight.shape != (size, size):
        raise InputError(f"weight has shape {weight.shape}; give a row and a column for each of {size} models")
    wrong = ~(np.isfinite(weight) & (weight >= 0.0))
    np.fill_diagonal(wrong, False)
    if wrong.any():
        first, second = np.argwhere(wrong)[0]
        pair = f"{votes.models[first]} over {votes.models[second]}"
        raise InputError(f"weight of {pair} is {weight[first, second]}; give a finite weight, 0 or more")
    if not seconds > 0.0:
        raise InputError(f"seconds is {seconds}; give a time above 0")


def _solve_block(block: Excess, left: Callable[[], float]) -> _SolvedBlock:
    size = len(block.table)
    if not block.table.any():
        return _SolvedBlock(np.arange(size), np.full(size, (size + 1) / 2.0), 0.0, 0.0, math.factorial(size))
    if size <= MAX_MODELS:
        found = optimal_orders(block)
        return _SolvedBlock(found.order, found.position, found.cost, found.cost, found.count)
    order = _solve_large_block(block, left)
    position = np.empty(size)
    position[order.order] = np.arange(1.0, size + 1.0)
    return _SolvedBlock(order.order, position, order.cost, order.bound, None)


def _solve_large_block(block: Excess, left: Callable[[], float]) -> BestOrder:
    """One best order of a large block, solved per strong component of strict majorities."""
    order: list[int] = []
    cost = bound = 0.0
    for codes in strong_components(block.table):
        part = block.among(codes)
        if len(codes) <= MAX_MODELS:
            exact = optimal_orders(part)
            found = BestOrder(exact.order, exact.cost, exact.cost)
        else:
            found = optimal_order(part, left)
        order.extend(codes[found.order].tolist())
        cost, bound = cost + found.cost, bound + found.bound
    return BestOrder(np.array(order, dtype=np.intp), cost, bound)
