"""Good orders without a proof: models are moved to where they cost less until no move helps, from several starts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from venire.ratings.voting.kemeny_blocks import Excess, excess_of

__all__ = ["improved", "searched", "started"]

_SEED = 0
_MOVED = 0.2
"""The share of models that a new start puts elsewhere."""

Codes = NDArray[np.intp]


def started(block: Excess) -> Codes:
    """The order (n,) by votes won less votes lost, as Borda counts; of equals the smaller code first."""
    table = block.table
    return np.argsort(-(table.sum(axis=1) - table.sum(axis=0)), kind="stable")


def improved(block: Excess, order: Codes, late: Callable[[], bool]) -> Codes:
    """The order after moving one model at a time, always the move that saves most, until none saves or it is `late`."""
    margin, order = block.table - block.table.T, order.copy()
    while not late():
        ranked = margin[np.ix_(order, order)]
        # What a model gains by standing above the first k of the others, against standing below all of them.
        above = np.pad(np.cumsum(ranked[:, ::-1], axis=1)[:, ::-1], ((0, 0), (0, 1)))
        saved = above - np.diagonal(above)[:, None]
        mover, place = np.unravel_index(int(np.argmax(saved)), saved.shape)
        if saved[mover, place] <= block.tolerance:
            break
        model = order[mover]
        order = np.insert(np.delete(order, mover), place - (place > mover), model)
    return order


def searched(block: Excess, order: Codes, starts: int, late: Callable[[], bool]) -> Codes:
    """The best order met in so many new starts from the best known, each with some models moved at random."""
    rng, size = np.random.default_rng(_SEED), len(order)
    cost, moved = excess_of(block.table, order), max(2, round(_MOVED * size))
    for _ in range(starts):
        if late():
            break
        keys = np.empty(size)
        keys[order] = np.arange(size)
        keys[rng.choice(size, moved, replace=False)] = rng.uniform(-0.5, size - 0.5, moved)
        found = improved(block, np.argsort(keys, kind="stable"), late)
        paid = excess_of(block.table, found)
        if paid <= cost:
            order, cost = found, paid
    return order
