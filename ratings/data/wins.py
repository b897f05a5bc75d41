"""Pair counts: the weight by which each of two models beat the other.

The Bradley-Terry log-likelihood is linear in the outcome, so these counts are sufficient for a fit: one pass over the
comparisons, after which the cost depends only on the number of distinct pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from venire.arena.errors import InputError
from venire.ratings.data.validation import float_array

_CHUNK = 1 << 16
"""Rows counted at a time, so that their keys and weights stay in the processor's cache."""

_CELLS = 1 << 22
"""The largest table (models, models) that is always dense; beyond it pairs are sorted if that is cheaper."""

_CACHED = 1 << 15
"""The largest table with separate counts of wins, ties and losses: three integers per cell fit into cache."""

_MAX_PACKED_ROWS = 1 << 26
"""Rows below which a count and, shifted above it, the number of half wins fit exactly into one double."""

_LITTLE = 0.01
"""Shrinkage of the first guess: the share of a model's comparisons added to both its wins and its losses."""

_FAR = 8.0
"""Spread between the strongest and the weakest in logits beyond which no first guess is used."""


@dataclass(frozen=True, eq=False)
class WinCounts:
    """One entry per pair that met: `first` < `second` are positions in `models`, sorted.

    `won` is the weight by which the first beat the second and `lost` that by which it lost, a tie being half of each.
    """

    models: tuple[str, ...]
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    won: NDArray[np.float64]
    lost: NDArray[np.float64]

    @property
    def played(self) -> NDArray[np.float64]:
        """The total weight of each model's comparisons (models,)."""
        size, weight = len(self.models), self.won + self.lost
        return _sums(self.first, weight, size) + _sums(self.second, weight, size)

    @property
    def total(self) -> float:
        """The weight of all comparisons."""
        return float(self.won.sum() + self.lost.sum())

    def strong_components(self, fixed: NDArray[np.bool_] | None = None) -> tuple[NDArray[np.intp], ...]:
        """Strongly connected components of the graph of wins: models that can be rated together, by position.

        Each holds ascending positions. A group that only beats another group comes before it; if wins do not determine
        the order, the larger group comes first, then the group with the smaller position. The models marked in `fixed`
        (n,) are held and so belong to one group.
        """
        held = () if fixed is None else np.flatnonzero(fixed)
        return self._strong_components if len(held) < 2 else self._joined(np.asarray(held))

    @cached_property
    def _strong_components(self) -> tuple[NDArray[np.intp], ...]:
        return self._joined(np.zeros(0, dtype=np.intp))

    def _joined(self, held: NDArray[np.intp]) -> tuple[NDArray[np.intp], ...]:
        up, down = self.won > 0.0, self.lost > 0.0
        if self.joins_all(up & down):
            return (np.arange(len(self.models)),)
        winner = np.concatenate([self.first[up], self.second[down], held])
        loser = np.concatenate([self.second[up], self.first[down], np.roll(held, 1)])
        return tuple(ordered_groups(len(self.models), winner, loser))

    def joins_all(self, both: NDArray[np.bool_]) -> bool:
        """Whether a few steps along pairs marked in `both` reach every model, as on well connected boards."""
        reached = np.zeros(len(self.models), dtype=np.bool_)
        reached[:1] = True
        for _ in range(4):
            across = both & (reached[self.first] != reached[self.second])
            reached[self.first[across]] = reached[self.second[across]] = True
            if reached.all():
                return True
        return False

    def guess(self) -> NDArray[np.float64]:
        """Start values of ratings in logits (models,): the log odds of each model's share of wins, slightly shrunk.

        They save Newton's method about two steps. Where they are far apart they are unreliable, and are 0 instead.
        """
        size = len(self.models)
        won = _sums(self.first, self.won, size) + _sums(self.second, self.lost, size)
        lost = _sums(self.first, self.lost, size) + _sums(self.second, self.won, size)
        little = _LITTLE * (won + lost)
        odds = np.divide(won + little, lost + little, out=np.ones(size), where=little > 0.0)
        logits = np.asarray(np.log(odds))
        return logits if not size or np.ptp(logits) < _FAR else np.zeros(size)

    def matrix(self) -> NDArray[np.float64]:
        """The counts as a matrix (models, models): entry [i, j] is the weight by which i beat j."""
        wins = np.zeros((len(self.models), len(self.models)))
        wins[self.first, self.second], wins[self.second, self.first] = self.won, self.lost
        return wins

    def only(self, kept: NDArray[np.bool_]) -> WinCounts:
        """The counts among the marked models (models,), which keep their order."""
        place = np.cumsum(kept) - 1
        inside = kept[self.first] & kept[self.second]
        return WinCounts(
            models=tuple(name for name, stays in zip(self.models, kept.tolist(), strict=True) if stays),
            first=place[self.first[inside]],
            second=place[self.second[inside]],
            won=self.won[inside],
            lost=self.lost[inside],
        )


class PairTable(Protocol):
    """The columns of comparisons that are counted."""

    @property
    def models(self) -> tuple[str, ...]: ...
    @property
    def a(self) -> NDArray[np.int32]: ...
    @property
    def b(self) -> NDArray[np.int32]: ...
    @property
    def y(self) -> NDArray[np.float64]: ...
    @property
    def weight(self) -> NDArray[np.float64] | None: ...
    def __len__(self) -> int: ...


def win_counts(data: PairTable) -> WinCounts:
    """Pair counts of comparisons, which `Comparisons.wins` keeps; comparisons of weight 0 create no pair.

    >>> from venire.ratings import comparisons, win_counts
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> counts = win_counts(data)
    >>> counts.first.tolist(), counts.second.tolist(), counts.won.tolist(), counts.lost.tolist()
    ([0, 0, 1], [1, 2, 2], [1.0, 2.0, 1.0], [1.0, 0.0, 1.0])
    """
    size = len(data.models)
    cells = size * size
    if cells <= max(_CELLS, 2 * len(data)):
        up, down = _count_cells(data, size)
        return _pairs(data.models, up.reshape(size, size) + down.reshape(size, size).T)
    low, high = np.minimum(data.a, data.b), np.maximum(data.a, data.b)
    keys, pair = np.unique(low.astype(np.int64) * size + high, return_inverse=True)
    ahead, behind, rest = data.a < data.b, data.a > data.b, 1.0 - data.y
    won = _sums(pair, _times(np.where(ahead, data.y, rest), data.weight), len(keys))
    lost = _sums(pair, _times(np.where(behind, data.y, rest), data.weight), len(keys))
    met = (won > 0.0) | (lost > 0.0)
    keys = keys[met]
    return WinCounts(data.models, keys // size, keys % size, won[met], lost[met])


def ordered_groups(size: int, winner: NDArray[np.intp], loser: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Strongly connected components of a graph of `size` models in which `winner` beat `loser` (wins,), in order."""
    count, part = connected_components(edges(size, winner, loser), directed=True, connection="strong")
    if count <= 1:
        return [np.arange(size)] if size else []
    members = np.split(np.argsort(part, kind="stable"), np.cumsum(np.bincount(part, minlength=count))[:-1])
    beats: TopologicalSorter[int] = TopologicalSorter(dict.fromkeys(range(count), ()))
    between = part[winner] != part[loser]
    for above, below in {*zip(part[winner[between]].tolist(), part[loser[between]].tolist(), strict=True)}:
        beats.add(below, above)
    beats.prepare()
    order: list[int] = []
    while beats.is_active():
        ready = sorted(beats.get_ready(), key=lambda label: (-len(members[label]), members[label][0]))
        order.extend(ready)
        beats.done(*ready)
    return [members[label] for label in order]


def edges(size: int, start: NDArray[np.intp], end: NDArray[np.intp]) -> csr_array:
    """A directed graph of `size` models as a sparse matrix."""
    return coo_array((np.ones(len(start)), (start, end)), shape=(size, size)).tocsr()


def count_matrix(wins: ArrayLike, models: Sequence[str]) -> WinCounts:
    """Pair counts from a matrix (models, models) whose entry [i, j] is the weight by which i beat j.

    Raises `InputError` for another shape, for an entry that is negative or not finite, and for a nonzero diagonal.
    """
    matrix, names = float_array("wins", wins), tuple(models)
    if matrix.shape != (len(names), len(names)):
        raise InputError(f"wins has shape {matrix.shape}; for {len(names)} models give ({len(names)}, {len(names)})")
    wrong = ~((matrix >= 0.0) & np.isfinite(matrix))
    np.fill_diagonal(wrong, np.diagonal(matrix) != 0.0)
    if wrong.any():
        row, column = np.argwhere(wrong)[0].tolist()
        what = "a model does not meet itself" if row == column else "give a finite weight, 0 or more"
        raise InputError(f"wins[{row}, {column}] is {matrix[row, column]}: {what}")
    return _pairs(names, matrix)


def _pairs(models: tuple[str, ...], wins: NDArray[np.float64]) -> WinCounts:
    met = wins > 0.0
    met |= met.T
    cells = np.flatnonzero(np.triu(met, 1))
    first, second = np.divmod(cells, max(len(models), 1))
    return WinCounts(models, first, second, wins.ravel()[cells], wins.ravel()[second * len(models) + first])


def _count_cells(data: PairTable, size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The weight by which the model in A won and lost, for each cell (A, B) of a flat table.

    Wins, ties and losses without weights are counted as integers; other shares are summed. Losses are summed
    separately: subtracting wins from the total would leave rounding errors where there was no loss.
    """
    cells = size * size
    won: NDArray[np.float64] | None = None
    lost: NDArray[np.float64] | None = None
    whole: NDArray[Any] | None = None
    count = _count_packed if cells > _CACHED and len(data) < _MAX_PACKED_ROWS else _count_outcomes
    block = max(_CHUNK, 4 * cells)
    keys = np.empty(min(block, len(data)), dtype=np.int64)
    for rows in _chunks(0, len(data), block):
        key = keys[: rows.stop - rows.start]
        if data.weight is None and (counted := count(data, rows, size, key)) is not None:
            whole = _added(whole, counted)
            continue
        np.multiply(data.a[rows], size, out=key, dtype=np.int64)
        key += data.b[rows]
        y, weight = data.y[rows], None if data.weight is None else data.weight[rows]
        won = _added(won, _sums(key, _times(y, weight), cells))
        lost = _added(lost, _sums(key, _times(1.0 - y, weight), cells))
    if whole is not None:
        more = _unpacked(whole) if count is _count_packed else _halved(whole)
        won, lost = _added(won, more[0]), _added(lost, more[1])
    return np.zeros(cells) if won is None else won, np.zeros(cells) if lost is None else lost


def _count_outcomes(data: PairTable, rows: slice, size: int, keys: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Losses, ties and wins of each cell (3 * cells,), or None if there are other shares; `keys` is overwritten."""
    narrow = np.int32 if 3 * size * size < 1 << 31 else np.int64
    for part in _chunks(rows.start, rows.stop, _CHUNK):
        doubled = data.y[part] + data.y[part]
        halves = doubled.astype(narrow)
        if not bool((halves == doubled).all()):
            return None
        key = _cell(data, part, size, narrow)
        key *= 3
        key += halves
        keys[part.start - rows.start : part.stop - rows.start] = key
    return np.bincount(keys, minlength=3 * size * size)


def _halved(counts: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    losses, ties, victories = counts.reshape(-1, 3).T
    half = 0.5 * ties
    return victories + half, losses + half


def _count_packed(data: PairTable, rows: slice, size: int, keys: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """Rows of each cell plus `_MAX_PACKED_ROWS` times its half wins (cells,), one exact number; None for other shares.

    The cost of a table larger than the cache depends on its size, and this is a third of that of `_count_outcomes`.
    """
    packed = np.empty(len(keys))
    narrow = np.int32 if size * size < 1 << 31 else np.int64
    for part in _chunks(rows.start, rows.stop, _CHUNK):
        place = slice(part.start - rows.start, part.stop - rows.start)
        doubled = np.add(data.y[part], data.y[part], out=packed[place])
        if not bool((np.rint(doubled) == doubled).all()):
            return None
        doubled *= _MAX_PACKED_ROWS
        doubled += 1.0
        keys[place] = _cell(data, part, size, narrow)
    return _sums(keys, packed, size * size)


def _unpacked(packed: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    won = np.floor(packed * (1.0 / _MAX_PACKED_ROWS))
    lost = packed - _MAX_PACKED_ROWS * won
    won *= 0.5
    lost -= won
    return won, lost


def _cell(data: PairTable, rows: slice, size: int, dtype: Any) -> NDArray[Any]:
    key = np.multiply(data.a[rows], size, dtype=dtype)
    key += data.b[rows]
    return key


def _added(sums: NDArray[Any] | None, more: NDArray[Any]) -> NDArray[Any]:
    """The sum of both, in the memory of the first; this avoids first filling large tables with zeros."""
    if sums is None:
        return more
    sums += more
    return sums


def _chunks(start: int, stop: int, size: int) -> Iterator[slice]:
    for place in range(start, stop, size):
        yield slice(place, min(place + size, stop))


def _times(share: NDArray[np.float64], weight: NDArray[np.float64] | None) -> NDArray[np.float64]:
    return share if weight is None else share * weight


def _sums(code: NDArray[Any], weight: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    return np.asarray(np.bincount(code, weight, size), dtype=np.float64)
