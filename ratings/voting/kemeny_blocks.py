"""What Kemeny's cost rests on, and the blocks that every best order keeps together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Excess", "blocks", "excess", "excess_of"]

_PARTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 20, 24, 25, 60, 100)
"""Weights are sought as whole multiples of one part in so many: halves of ties, shares of a few judges."""

_ROUNDING = 1e-6
_EXACT = 2.0**52

_EQUAL = 4e-6
"""What equal costs may differ by in a table without a unit: HiGHS takes a row that is missed by 1e-6 for held."""


@dataclass(frozen=True, slots=True, eq=False)
class Excess:
    """By how much the heavier side of each pair is the heavier.

    `table[i, j]` (n, n) times `scale` is what an order pays for j above i beyond what every order pays; one of
    `table[i, j]` and `table[j, i]` is 0, both in a tie. Costs that differ by `tolerance` or less are equal. `whole`:
    the table holds whole numbers, so that a bound may be rounded up to one.
    """

    table: NDArray[np.float64]
    scale: float
    whole: bool
    tolerance: float

    def among(self, codes: NDArray[np.intp]) -> Excess:
        """The same between some models (k,), given by their codes."""
        return Excess(self.table[np.ix_(codes, codes)], self.scale, self.whole, self.tolerance)


def excess(weight: NDArray[np.float64], tolerance: float) -> Excess:
    """The table of pairwise votes `weight` (n, n) as excesses, in whole units where weights have a common unit.

    Sides that differ by `tolerance` or less are tied, unless a common unit tells them apart.
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


def excess_of(table: NDArray[np.float64], order: NDArray[np.intp]) -> float:
    """What an order (n,), codes from the best on, pays by a table of excesses (n, n)."""
    return float(np.tril(table[np.ix_(order, order)], -1).sum())


def blocks(table: NDArray[np.float64]) -> list[NDArray[np.intp]]:
    """Sets of models, ascending codes, that stand in this order in every order of least cost.

    They are the strong components of "has at least as many votes", of a table of excesses (n, n). Each model of an
    earlier block has more votes than each of a later one: putting an order's models in the order of blocks, and
    leaving it alone within them, takes away the cost of every such pair that stood the other way, and adds none.
    """
    if not len(table):
        return []
    beats = table > 0.0
    score = beats.sum(axis=1) - beats.sum(axis=0)
    # Wins less losses fall from each block to the next, so that blocks are stretches of this order.
    order = np.argsort(-score, kind="stable")
    held = ~beats[np.ix_(order, order)]
    reach = np.maximum.accumulate(len(table) - 1 - np.argmax(held[:, ::-1], axis=1))
    ends = np.flatnonzero(reach == np.arange(len(table))) + 1
    return [np.sort(part) for part in np.split(order, ends[:-1])]
