"""Bootstrap of Bradley-Terry ratings by battle or by cluster; every replicate is refitted to its own maximum.

Battles are drawn as cells: equal rows form one cell, and the number of draws of a cell is Poisson with its count as
mean. A Poisson draw by Walker's alias method takes one random word and two look-ups, whatever the mean. One table
serves all cells of one count, so tables are used where counts recur, and NumPy's generator elsewhere. Clusters
(instructions) are drawn as C out of C with replacement. Draws come in blocks of 64 replicates, each block from a
separate stream, so the first replicates do not depend on the number requested, and neither do results on where blocks
are drawn: in this process, or by those of an executor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import gammaln

from venire.arena.errors import InputError
from venire.arena.scale import ELO_MEAN, POINTS_PER_LOGIT
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.validation import check_draws, check_level, model_column
from venire.ratings.inference.refitting import Refits, refits
from venire.ratings.pairwise.covariance import rated_rows

BLOCK = 64
"""Replicates per random stream; changing it changes the results of a seed."""

_CELLS = 1 << 12
_ENTRIES = 1 << 22

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Places = NDArray[np.intp]
Kind = Literal["percentile", "basic"]
Draw = Callable[[np.random.Generator], Matrix]

_TABLES_PAY = 100
"""Table entries per cell above which building the tables costs more than some thousand direct draws."""
_CHUNK = 1 << 15


@dataclass(frozen=True, slots=True, eq=False)
class Replicates:
    """Refits of drawn tables: `logits` (replicates, n) in the gauge of `point` (n,), the ratings drawn around.

    A replicate in which some models lost their last win or loss has no finite estimate: its row holds what ratings tend
    to, infinite where it is known to which side, and NaN where it is not. Intervals take part of these too, so that
    they open; `covariance` and `se` are of the other replicates. `unit` is the resampled unit, `units` their number.
    """

    models: tuple[str, ...]
    logits: Matrix
    point: Vector
    unit: Literal["battle", "cluster"]
    units: int
    seed: int

    @property
    def estimates(self) -> Matrix:
        """The replicates in which every rated model has a finite estimate (found, n)."""
        rated = np.isfinite(self.point)
        return self.logits[np.isfinite(self.logits[:, rated]).all(axis=1) & rated.any()]

    @property
    def without_estimate(self) -> int:
        """The number of replicates without an estimate."""
        return len(self.logits) - len(self.estimates)

    @property
    def covariance(self) -> Matrix:
        """Covariance (n, n) of the replicates in logits; NaN with fewer than two units or two replicates."""
        found = self.estimates
        if self.units < 2 or len(found) < 2:
            return np.full((len(self.models), len(self.models)), np.nan)
        apart = found - found.mean(axis=0)
        return np.asarray(apart.T @ apart / (len(found) - 1))

    @property
    def se(self) -> Vector:
        """Standard errors (n,) in logits."""
        return np.asarray(np.sqrt(np.diagonal(self.covariance)))

    def interval(
        self, level: float = 0.95, kind: Literal["percentile", "basic"] = "percentile"
    ) -> tuple[Vector, Vector]:
        """Lower and upper bound (n,) in Elo points; NaN with fewer than two units or two replicates.

        A bound is infinite where ratings without a finite estimate make up its tail. "basic" reflects the percentiles
        about the estimate. Raises `InputError` for an invalid level or kind.
        """
        check_level(level)
        if kind not in ("percentile", "basic"):
            raise InputError(f"kind is {kind!r}; give 'percentile' or 'basic'")
        rated = np.isfinite(self.point)
        lo, hi = np.full((2, len(self.models)), np.nan)
        if self.units < 2 or len(self.logits) < 2:
            return lo, hi
        drawn, tail = self.logits[:, rated], (1.0 - level) / 2.0
        open_below, open_above = (np.where(np.isnan(drawn), side, drawn) for side in (-np.inf, np.inf))
        lo[rated], hi[rated] = _quantile(open_below, tail), _quantile(open_above, 1.0 - tail)
        if kind == "basic":
            lo, hi = 2.0 * self.point - hi, 2.0 * self.point - lo
        return ELO_MEAN + POINTS_PER_LOGIT * lo, ELO_MEAN + POINTS_PER_LOGIT * hi


def _quantile(drawn: Matrix, share: float) -> Vector:
    """The quantile of each column of replicates (replicates, n); outward to a replicate where some are infinite."""
    if np.isfinite(drawn).all():
        return np.asarray(np.quantile(drawn, share, axis=0))
    return np.asarray(np.quantile(drawn, share, axis=0, method="lower" if share < 0.5 else "higher"))


def bootstrap_battles(
    data: Comparisons,
    logits: Vector,
    *,
    replicates: int = 1000,
    seed: int = 0,
    ridge: float = 0.0,
    fixed: NDArray[np.bool_] | None = None,
    executor: Executor | None = None,
) -> Replicates:
    """Bootstrap by battle: draw single rows around their ratings `logits` (n,), and refit; NaN is a model to leave out.

    The total number of rows varies: each row counts a Poisson(1) number of times. `fixed` (n,) marks held models.
    Blocks of 64 replicates are calls of `executor`, such as a `ProcessPoolExecutor`, with the same result as without.
    Raises `InputError` where the table has no finite estimate, and for an invalid number of replicates or seed.

    >>> from venire.ratings import bootstrap_battles, bradley_terry, comparisons
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> bootstrap_battles(data, bradley_terry(data).logits, replicates=10, ridge=0.1).logits.shape
    (10, 3)
    """
    logits = model_column("logits", logits, data.models)
    rows, at, free, held = _prepare(data, logits, replicates, seed, fixed)
    high, low, pair, y = _pairs(rows)
    cell_pair, cell_y, cell_weight, counts = _cells(rows, pair, y)
    won, lost = cell_weight * cell_y, cell_weight * (1.0 - cell_y)
    system = _system(rows, at, high, low, (cell_pair, won * counts, lost * counts, counts), ridge, free, held)
    poisson = poisson_counts(counts)
    parts = [slice(start, min(start + _CELLS, len(counts))) for start in range(0, len(counts), _CELLS)]
    spans = [slice(int(cell_pair[part.start]), int(cell_pair[part.stop - 1]) + 1) for part in parts]
    sums = [
        tuple(_sums(value[part], cell_pair[part] - span.start, span.stop - span.start) for value in (won, lost))
        for part, span in zip(parts, spans, strict=True)
    ]

    found = _replicate(
        system, _BattleDraws(len(high), poisson, tuple(parts), tuple(spans), tuple(sums)), replicates, seed, executor
    )
    units = int(counts[cell_weight > 0.0].sum())
    return _result(data, logits, fixed, found, "battle", units, seed)


def bootstrap_clusters(
    data: Comparisons,
    logits: Vector,
    *,
    replicates: int = 1000,
    seed: int = 0,
    ridge: float = 0.0,
    fixed: NDArray[np.bool_] | None = None,
    executor: Executor | None = None,
) -> Replicates:
    """Cluster bootstrap: draw as many whole clusters as there are, around ratings `logits` (n,), and refit.

    Arguments and errors are those of `bootstrap_battles`; comparisons without clusters also raise `InputError`.

    >>> from venire.ratings import bootstrap_clusters, bradley_terry, comparisons
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0], cluster=[1, 2, 3, 4, 5, 6])
    >>> bootstrap_clusters(data, bradley_terry(data).logits, replicates=10, ridge=0.1).logits.shape
    (10, 3)
    """
    if data.cluster is None:
        raise InputError("these comparisons have no cluster to draw: give one, or use bootstrap_battles")
    logits = model_column("logits", logits, data.models)
    rows, at, free, held = _prepare(data, logits, replicates, seed, fixed)
    assert rows.cluster is not None
    high, low, pair, y = _pairs(rows)
    counted = rows.y >= 0.0 if rows.weight is None else rows.weight > 0.0
    present = np.bincount(rows.cluster[counted]) > 0
    units, unit = int(present.sum()), (np.cumsum(present) - 1)[rows.cluster]
    weight = np.ones(len(y)) if rows.weight is None else rows.weight
    won, lost = weight * y, weight * (1.0 - y)
    system = _system(rows, at, high, low, (pair, won, lost, np.ones(len(y), np.int64)), ridge, free, held)
    sums = _cluster_sums(rows.weight is None, pair, won, lost, unit, (len(high), units))
    width = max(1, min(BLOCK, _ENTRIES // max(units, 1)))

    found = _replicate(system, _ClusterDraws(sums, units, width), replicates, seed, executor)
    return _result(data, logits, fixed, found, "cluster", units, seed)


def _prepare(
    data: Comparisons, logits: Vector, replicates: int, seed: int, fixed: NDArray[np.bool_] | None
) -> tuple[Comparisons, Vector, NDArray[np.bool_], Places]:
    """Rows, ratings and freedom of the models that have an estimate, and the places of those held."""
    check_draws(replicates, seed)
    size = len(data.models)
    held = np.zeros(size, dtype=np.bool_) if fixed is None else np.asarray(fixed, dtype=np.bool_)
    for argument, given in (("logits", logits), ("fixed", held)):
        if given.shape != (size,):
            raise InputError(f"{argument} has shape {given.shape}; give one value a model, {size} of them")
    rated = np.isfinite(logits) & ~_idle(data, held)
    at, free = logits[rated], ~held[rated]
    rows, places = rated_rows(data, np.where(rated, logits, np.nan)), np.flatnonzero(~free)
    if len(places) == 1:
        # A single held model only sets the gauge: all move about their mean, and are shifted at the end.
        return rows, at - at.mean(), np.ones_like(free), places
    return rows, at, free, places


def _idle(data: Comparisons, held: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Held models (n,) without comparisons, if others have some: nothing depends on them."""
    met = data.played > 0.0
    return held & ~met if (held & met).any() else np.zeros_like(held)


def _pairs(rows: Comparisons) -> tuple[Places, Places, Places, Vector]:
    """Both models of each pair that met, lower code first, and each row's pair and outcome for that model."""
    size = len(rows.models)
    key = np.minimum(rows.a, rows.b).astype(np.int64) * size + np.maximum(rows.a, rows.b)
    if size**2 <= 4 * len(key):
        met = np.flatnonzero(np.bincount(key, minlength=size * size))
        place = np.zeros(size * size, dtype=np.intp)
        place[met] = np.arange(len(met))
        pair = place[key]
    else:
        met, pair = np.unique(key, return_inverse=True)
    return met // size, met % size, pair, np.where(rows.a < rows.b, rows.y, 1.0 - rows.y)


def _cells(rows: Comparisons, pair: Places, y: Vector) -> tuple[Places, Vector, Vector, NDArray[np.int64]]:
    """Equal rows as cells, in an order independent of that of the rows: pair, outcome, weight and count of each."""
    quarter = (4.0 * y).astype(np.int64)
    if rows.weight is None and bool(np.all(quarter == 4.0 * y)):
        counts = np.bincount(5 * pair + quarter)
        cell = np.flatnonzero(counts)
        return cell // 5, cell % 5 / 4.0, np.ones(len(cell)), counts[cell]
    weight = np.ones(len(y)) if rows.weight is None else rows.weight
    order = np.lexsort((weight, y, pair))
    columns = pair[order], y[order], weight[order]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    begin = np.flatnonzero(first)
    counts = np.diff(np.append(begin, len(order)))
    return columns[0][begin], columns[1][begin], columns[2][begin], counts


def _sums(values: Vector, row: Places, rows: int) -> csr_array:
    """The matrix (rows, cells) that sums weighted cells into their pairs."""
    there = np.flatnonzero(values)
    return csr_array((values[there], (row[there], there)), shape=(rows, len(values)))


def _cluster_sums(whole: bool, pair: Places, won: Vector, lost: Vector, unit: Places, shape: tuple[int, int]) -> Any:
    """The contribution of each unit to each pair (2 * pairs, units), wins of the lower code first."""
    keep = [np.flatnonzero(side) for side in (won, lost)]
    entry = np.concatenate([pair[keep[0]], pair[keep[1]] + shape[0]])
    values: NDArray[Any] = np.concatenate([won[keep[0]], lost[keep[1]]])
    if whole and bool(np.all(4.0 * values % 1.0 == 0.0)):
        values = values.astype(np.float32)  # quarters are summed exactly in float32, in half the time
    columns = np.concatenate([unit[rows] for rows in keep])
    return csr_array((values, (entry, columns)), shape=(2 * shape[0], shape[1]))


def _system(
    rows: Comparisons,
    at: Vector,
    high: Places,
    low: Places,
    cells: tuple[Places, Vector, Vector, NDArray[np.int64]],
    ridge: float,
    free: NDArray[np.bool_],
    held: Places,
) -> Refits:
    pair, won, lost, counts = cells
    weights = [np.bincount(pair, side, len(high)) for side in (won, lost)]
    chances = [np.bincount(pair, counts * (side > 0.0), len(high)) for side in (won, lost)]
    return refits(
        high,
        low,
        np.concatenate(weights),
        np.concatenate(chances),
        at,
        ridge=ridge,
        free=free,
        held=held,
        models=rows.models,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _BattleDraws:
    """Weights (2 * pairs, BLOCK) of drawn battles; `sums` adds the cells of each of `parts` to its pairs, `spans`."""

    pairs: int
    poisson: _PoissonCounts
    parts: tuple[slice, ...]
    spans: tuple[slice, ...]
    sums: tuple[tuple[csr_array, ...], ...]

    def __call__(self, rng: np.random.Generator) -> Matrix:
        weights = np.zeros((2, self.pairs, BLOCK))
        for part, span, (up, down) in zip(self.parts, self.spans, self.sums, strict=True):
            times = self.poisson.draw(rng, part, BLOCK)
            weights[0, span] += up @ times
            weights[1, span] += down @ times
        return weights.reshape(2 * self.pairs, BLOCK)


@dataclass(frozen=True, slots=True, eq=False)
class _ClusterDraws:
    """Weights (2 * pairs, BLOCK) of drawn clusters, `width` replicates at a time: `sums` (2 * pairs, units)."""

    sums: Any
    units: int
    width: int

    def __call__(self, rng: np.random.Generator) -> Matrix:
        weights = np.empty((self.sums.shape[0], BLOCK))
        for start in range(0, BLOCK, self.width):
            columns = range(start, min(start + self.width, BLOCK))
            times = [np.bincount(rng.integers(0, self.units, self.units), minlength=self.units) for _ in columns]
            weights[:, start : columns.stop] = self.sums @ np.array(times, dtype=self.sums.dtype).T.copy()
        return weights


def _replicate(system: Refits, draw: Draw, replicates: int, seed: int, executor: Executor | None) -> Matrix:
    """Ratings (replicates, n) of drawn tables, block by block."""
    found = np.full((replicates, len(system.start)), np.nan)
    solve = partial(_block, system, draw, replicates, seed)
    starts = range(0, replicates, BLOCK)
    blocks: Iterable[Matrix] = map(solve, starts) if executor is None else executor.map(solve, starts)
    for start, ratings in zip(starts, blocks, strict=True):
        found[start : start + BLOCK] = ratings
    return found


def _block(system: Refits, draw: Draw, replicates: int, seed: int, start: int) -> Matrix:
    """Ratings (64 at most, n) of the replicates from `start`, which have a stream of their own."""
    rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence([seed, start // BLOCK])))
    columns = min(BLOCK, replicates - start)
    return system.solve(np.ascontiguousarray(draw(rng)[:, :columns]))


def _result(
    data: Comparisons,
    logits: Vector,
    fixed: NDArray[np.bool_] | None,
    found: Matrix,
    unit: Literal["battle", "cluster"],
    units: int,
    seed: int,
) -> Replicates:
    """Back to all models and their gauge, with NaN for models without an estimate."""
    everyone = np.full((len(found), len(data.models)), np.nan)
    idle = np.zeros_like(logits, dtype=np.bool_) if fixed is None else _idle(data, fixed)
    rated = np.isfinite(logits) & ~idle
    everyone[:, rated] = found
    if fixed is not None:
        held = np.flatnonzero(fixed & rated)
        if len(held) == 1:
            everyone += logits[held] - everyone[:, held]
            everyone[np.isfinite(everyone[:, held[0]]), held[0]] = logits[held]
    everyone[:, idle] = logits[idle]
    return Replicates(data.models, everyone, logits, unit, units, seed)


@dataclass(frozen=True, slots=True, eq=False)
class _PoissonCounts:
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


def poisson_counts(counts: NDArray[np.int64]) -> _PoissonCounts:
    """Prepare draws around counts (cells,), each an integer of at least 1."""
    distinct, place = np.unique(counts, return_inverse=True)
    reach = 8.0 * np.sqrt(distinct)
    low = np.maximum(np.floor(distinct - reach), 0.0).astype(np.int64)
    # The probability beyond is less than 1e-13.
    width = np.ceil(distinct + reach + 12.0) - low + 1.0
    bits = np.ceil(np.log2(width)).astype(np.uint32)
    sizes = np.int64(1) << bits.astype(np.int64)
    if not len(counts) or int(sizes.sum()) > _TABLES_PAY * len(counts):
        nothing = np.zeros(0, dtype=np.uint32)
        return _PoissonCounts(counts, nothing.astype(np.int64), nothing, nothing, np.zeros(0))
    base = np.cumsum(sizes) - sizes
    threshold, pick = np.zeros(int(sizes.sum()), dtype=np.uint32), np.zeros(2 * int(sizes.sum()))
    for bit in np.unique(bits).tolist():
        same = np.flatnonzero(bits == bit)
        at = base[same][:, None] + np.arange(1 << bit)
        threshold[at], values, aliases = _alias_tables(distinct[same], low[same], bit)
        pick[2 * at], pick[2 * at + 1] = values, aliases
    return _PoissonCounts(counts, base[place], bits[place], threshold, pick)


def _alias_tables(
    counts: NDArray[np.int64], low: NDArray[np.int64], bits: int
) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.int64]]:
    """Thresholds, values and aliases (counts, 2 ** bits) of distributions whose tables have equal size.

    Each step settles one column of every table: the next light column, filled up by the current heavy column, or that
    heavy column, once it has given away so much that it is light itself and the next fills it up.
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
    # A full column has itself or the heaviest value as alias: the one lost unit is within 2 ** -24.
    limit = 1 << (32 - bits)
    return np.clip(keep * limit, 0, limit - 1).astype(np.uint32), values, alias
