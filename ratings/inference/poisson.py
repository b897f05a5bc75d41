"""Poisson draws around many known counts, at a few nanoseconds each.

A draw by Walker's alias method is one random word and two look-ups, whatever the mean. One table serves all cells of
one count, so tables pay where counts recur; where they do not, numpy draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

__all__ = ["PoissonCounts", "poisson_counts"]

_TABLES_PAY = 100
"""Entries of tables a cell, above which making them costs more than some thousand direct draws."""

_CHUNK = 1 << 15


@dataclass(frozen=True, slots=True, eq=False)
class PoissonCounts:
    """Draws of Poisson(count) for `counts` (cells,), through alias tables where `pick` is not empty.

    A cell's table starts at `base` and has 2 ** `bits` columns; the low bits of a random word name the column, the
    rest are compared with its `threshold`; `pick` holds the column's own value and its alias side by side.
    """

    counts: NDArray[np.int64]
    base: NDArray[np.int64]
    bits: NDArray[np.uint32]
    threshold: NDArray[np.uint32]
    pick: NDArray[np.float64]

    def draw(self, rng: np.random.Generator, cells: slice, columns: int) -> NDArray[np.float64]:
        """Draws (cells, columns) for a slice of the cells."""
        counts = self.counts[cells]
        if not len(self.pick):
            return rng.poisson(counts[:, None], (len(counts), columns)).astype(np.float64)
        base, bits = self.base[cells, None], self.bits[cells, None]
        mask = (np.uint32(1) << bits) - np.uint32(1)
        drawn = np.empty((len(counts), columns))
        chunk = max(1, _CHUNK // columns)
        for start in range(0, len(counts), chunk):
            part = slice(start, start + chunk)
            word = rng.integers(0, 1 << 32, drawn[part].shape, dtype=np.uint32)
            column = (word & mask[part]) + base[part]
            word >>= bits[part]
            alias = word >= self.threshold.take(column)
            column *= 2
            column += alias
            self.pick.take(column, out=drawn[part], mode="clip")
        return drawn


def poisson_counts(counts: NDArray[np.int64]) -> PoissonCounts:
    """Make ready to draw around counts (cells,), each a whole number of at least 1."""
    distinct, place = np.unique(counts, return_inverse=True)
    reach = 8.0 * np.sqrt(distinct)
    low = np.maximum(np.floor(distinct - reach), 0.0).astype(np.int64)
    # Less than 1e-13 of the law lies beyond.
    width = np.ceil(distinct + reach + 12.0) - low + 1.0
    bits = np.ceil(np.log2(width)).astype(np.uint32)
    sizes = np.int64(1) << bits.astype(np.int64)
    if not len(counts) or int(sizes.sum()) > _TABLES_PAY * len(counts):
        nothing = np.zeros(0, dtype=np.uint32)
        return PoissonCounts(counts, nothing.astype(np.int64), nothing, nothing, np.zeros(0))
    base = np.cumsum(sizes) - sizes
    threshold, pick = np.zeros(int(sizes.sum()), dtype=np.uint32), np.zeros(2 * int(sizes.sum()))
    for bit in np.unique(bits).tolist():
        same = np.flatnonzero(bits == bit)
        at = base[same][:, None] + np.arange(1 << bit)
        threshold[at], values, aliases = _alias_tables(distinct[same], low[same], bit)
        pick[2 * at], pick[2 * at + 1] = values, aliases
    return PoissonCounts(counts, base[place], bits[place], threshold, pick)


def _alias_tables(
    counts: NDArray[np.int64], low: NDArray[np.int64], bits: int
) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.int64]]:
    """Thresholds, values and aliases (counts, 2 ** bits) of laws whose tables have one size.

    Each step settles one column of every table: the next light one, filled up by the heavy one at hand, or that heavy
    one, when it has given so much away that it is light itself and is filled up by the next.
    """
    size, each = 1 << bits, np.arange(len(counts))
    values = low[:, None] + np.arange(size)
    mass = np.exp(values * np.log(counts)[:, None] - counts[:, None] - gammaln(values + 1.0))
    share = mass * (size / mass.sum(axis=1, keepdims=True))
    order = np.argsort(share > 1.0, axis=1, kind="stable")
    lights = (share <= 1.0).sum(axis=1)
    light, heavy = np.zeros(len(counts), dtype=np.intp), np.minimum(lights, size - 1)
    left = share[each, order[each, heavy]]
    keep, alias = np.ones_like(share), np.empty_like(values)
    for _ in range(size):
        needy, giver = order[each, np.minimum(light, size - 1)], order[each, heavy]
        following = np.minimum(heavy + 1, size - 1)
        gives = (light < lights) & ((left > 1.0) | (heavy == size - 1))
        column, after = np.where(gives, needy, giver), order[each, following]
        keep[each, column] = np.where(gives, share[each, needy], left)
        alias[each, column] = values[each, np.where(gives, giver, after)]
        left += np.where(gives, share[each, needy], share[each, after]) - 1.0
        light += gives
        heavy = np.where(gives, heavy, following)
    # A column that keeps all has itself or the law's heaviest for an alias: the one lost unit is within 2 ** -24.
    limit = 1 << (32 - bits)
    return np.clip(keep * limit, 0, limit - 1).astype(np.uint32), values, alias
