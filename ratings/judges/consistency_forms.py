"""The forms of consistency, 1 - 4 * weighted mean over matchups of p (1 - p), and what they are on drawn units.

`corrected` takes out what few instructions add: with k of them, the square of p is estimated from pairs of different
instructions alone (a U-statistic), so that its mean is right for any k of 2 or more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from venire.ratings.data.validation import check_draws
from venire.ratings.judges.matchups import Coded, MatchupShares, dense_codes

__all__ = ["Drawn", "Draws", "Interval", "Unit", "draw_matchups", "draw_units", "scores"]

_Form = Literal["plain", "corrected"]
Unit = Literal["matchup", "battle"]
Interval = Literal["instructions", "matchups"]

_BLOCK = 1 << 17
"""Entries of one block of replicates: about 1 MB, which stays in cache."""
_DENSE = 0.05
"""Share of filled cells from which a table of units is multiplied as it stands, zeros included."""
_CELLS = 1 << 25


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """How often each unit counts in each replicate: `weights` (replicates, units).

    `what` was drawn (`instruction`, `battle` where a table names no instruction, or `matchup`), `number` of them.
    `unit_of` gives the unit of each readable verdict where verdicts are drawn.
    """

    what: Literal["instruction", "battle", "matchup"]
    number: int
    weights: NDArray[np.float64]
    unit_of: NDArray[np.intp] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Consistency of all judges: `point` (judges,), and how many `matchups` it is the mean of.

    `centre` (judges,) is the corrected figure, about which intervals stand; `errors` (replicates, judges) are its
    replicates less what they estimate in the world that they were drawn from. NaN where there is nothing.
    """

    point: NDArray[np.float64]
    centre: NDArray[np.float64]
    errors: NDArray[np.float64]
    matchups: NDArray[np.intp]


def draw_units(rows: Coded, replicates: int, seed: int) -> Drawn:
    """Draw the instructions that occur, or where there is none the verdicts, as counts of equal ones.

    The same number of instructions and the same seed give the same draws, whatever else the rows hold. Raises
    `InputError` for a negative number of replicates or a negative seed.
    """
    check_draws(replicates, seed)
    if rows.instructions:
        counts, unit_of = np.bincount(rows.unit, minlength=rows.instructions), None
        size = (counts > 0).astype(np.float64)
    else:
        levels, level = np.unique(rows.y, return_inverse=True)
        key = (rows.judge * max(len(rows.pairs), 1) + rows.pair) * max(len(levels), 1) + level
        unit_of, found = dense_codes(key, int(key.max(initial=0)) + 1)
        size = np.bincount(unit_of, minlength=len(found)).astype(np.float64)
    number = int(size.sum())
    weights = np.zeros((replicates, len(size)))
    if number:
        occurs = size > 0
        drawn = np.random.default_rng(seed).multinomial(number, size[occurs] / number, size=replicates)
        weights[:, occurs] = drawn / size[occurs]
    return Drawn("instruction" if rows.instructions else "battle", number, weights, unit_of)


def draw_matchups(rows: Coded, replicates: int, seed: int) -> Drawn:
    """Draw the pairs that met, with all their verdicts, the same for all judges; raises as `draw_units` does."""
    if replicates < 0 or seed < 0:
        return draw_units(rows, replicates, seed)
    number = len(rows.pairs)
    share = np.full(number, 1.0 / max(number, 1))
    weights = np.random.default_rng(seed).multinomial(number, share, size=replicates if number else 0)
    return Drawn("matchup", number, weights.astype(np.float64))


def scores(
    shares: MatchupShares,
    rows: Coded,
    drawn: Drawn,
    *,
    unit: Unit = "matchup",
    importance: NDArray[np.float64] | None = None,
) -> Draws:
    """The consistency of every judge, plain and corrected, and the errors of the corrected one on the drawn units.

    `importance` (judges, pairs) weighs matchups (None: all the same; 0 or NaN leaves one out). Corrected figures use
    the matchups with at least two instructions; the unit `battle` has none, and its errors are of the plain figure.
    """
    weight = np.ones((len(rows.judges), len(rows.pairs))) if importance is None else np.nan_to_num(importance, nan=0.0)
    if unit == "battle":
        mass, spread = weight[shares.judge, shares.pair], shares.u * (1.0 - shares.u)
        return _ratio(_Spread(spread, mass, shares.judge, shares.pair, _units(shares, drawn)), rows, drawn)
    table = _Columns.of(shares, rows, drawn)
    whole = np.ones((1, table.units))
    mass = weight[table.judge, table.pair]
    plain, corrected = table.spread(whole, "plain"), table.spread(whole, "corrected")
    found = _ratio(_Spread(plain[0], mass, table.judge, table.pair, None), rows, drawn)
    several = np.where(np.isfinite(corrected[0]), mass, 0.0)
    if drawn.what == "matchup":
        about = _ratio(_Spread(corrected[0], several, table.judge, table.pair, None), rows, drawn)
        return Draws(found.point, about.point, about.errors, found.matchups)
    # Drawing with replacement makes what was seen the truth, so that corrected replicates scatter about the plain mean.
    seen = table.by_judge(np.where(several > 0, plain, np.nan), several)[0]
    errors = np.full((len(drawn.weights) if drawn.number > 1 else 0, len(rows.judges)), np.nan)
    for block in table.blocks(len(errors)):
        errors[block] = table.by_judge(table.spread(drawn.weights[block], "corrected"), several) - seen
    return Draws(found.point, table.by_judge(corrected, several)[0], errors, found.matchups)


@dataclass(frozen=True, slots=True, eq=False)
class _Spread:
    """p (1 - p) of things that stay as they are when units are drawn: their mass, and where they belong."""

    spread: NDArray[np.float64]
    mass: NDArray[np.float64]
    judge: NDArray[np.intp]
    pair: NDArray[np.intp]
    unit: NDArray[np.intp] | None


def _ratio(parts: _Spread, rows: Coded, drawn: Drawn) -> Draws:
    """1 - 4 * weighted mean spread of every judge, and its errors where whole parts are drawn."""
    judges = len(rows.judges)
    used = parts.mass > 0
    spread = np.where(used, parts.spread, 0.0) * parts.mass
    unit = parts.pair if drawn.what == "matchup" else parts.unit
    units = drawn.weights.shape[1] if unit is not None else 1
    key = parts.judge if unit is None else unit * judges + parts.judge
    above = np.bincount(key, spread, units * judges).reshape(units, judges)
    below = np.bincount(key, parts.mass, units * judges).reshape(units, judges)
    point = _quotient(above.sum(axis=0), below.sum(axis=0))
    weights = drawn.weights if unit is not None and drawn.number > 1 else np.zeros((0, units))
    distinct = np.unique(parts.judge[used] * max(len(rows.pairs), 1) + parts.pair[used])
    matchups = np.bincount(distinct // max(len(rows.pairs), 1), minlength=judges)
    return Draws(point, point, _quotient(weights @ above, weights @ below) - point, matchups)


def _quotient(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    some = below > 0
    return np.asarray(np.where(some, 1.0 - 4.0 * above / np.where(some, below, 1.0), np.nan))


def _units(shares: MatchupShares, drawn: Drawn) -> NDArray[np.intp]:
    return shares.unit if drawn.unit_of is None else drawn.unit_of[shares.verdict]


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """What each column (a judge and a matchup) is counted from, by unit.

    `total`, `count` and `square` have shape (units, columns); `count` is None where every cell holds one share.
    `parts` are the columns of each judge.
    """

    units: int
    total: Any
    count: Any
    square: Any
    judge: NDArray[np.intp]
    pair: NDArray[np.intp]
    parts: tuple[slice, ...]

    @classmethod
    def of(cls, shares: MatchupShares, rows: Coded, drawn: Drawn) -> _Columns:
        pairs, judges = max(len(rows.pairs), 1), len(rows.judges)
        column, found = dense_codes(shares.judge * pairs + shares.pair, max(judges, 1) * pairs)
        judge, pair = np.divmod(found, pairs)
        alone = drawn.what == "matchup"
        units = 1 if alone else drawn.weights.shape[1]
        unit = np.zeros(len(shares), dtype=np.intp) if alone else _units(shares, drawn)
        edges = np.searchsorted(judge, np.arange(judges + 1))
        make = _Table(unit, column, (units, len(found)))
        return cls(
            units=units,
            total=make.sums(shares.u),
            count=make.counts(),
            square=make.sums(shares.u**2),
            judge=judge,
            pair=pair,
            parts=tuple(slice(start, stop) for start, stop in pairwise(edges.tolist())),
        )

    def blocks(self, replicates: int) -> Iterator[slice]:
        size = max(8, _BLOCK // max(len(self.pair), 1))
        for start in range(0, replicates, size):
            yield slice(start, min(start + size, replicates))

    def spread(self, weights: NDArray[np.float64], form: _Form) -> NDArray[np.float64]:
        """p (1 - p) by replicate and column, NaN where a replicate has too little of it."""
        number = weights.sum(axis=1, keepdims=True) if self.count is None else weights @ self.count
        total = weights @ self.total
        least = 2.0 if form == "corrected" else 0.5
        enough = number >= least
        count = np.where(enough, number, 2.0)
        if form == "corrected":
            square = (total * total - weights @ self.square) / (count * (count - 1.0))
            spread = total / count - square
        else:
            share = total / count
            spread = share * (1.0 - share)
        return np.asarray(np.where(enough, spread, np.nan))

    def by_judge(self, spread: NDArray[np.float64], mass: NDArray[np.float64]) -> NDArray[np.float64]:
        """1 - 4 * mean spread (replicates, judges) over the columns a replicate has; NaN where it has none."""
        known = np.isfinite(spread)
        complete = bool(known.all())
        filled = spread if complete else np.where(known, spread, 0.0)
        found = np.full((len(spread), len(self.parts)), np.nan)
        for judge, part in enumerate(self.parts):
            weight = mass[part]
            whole = np.full(len(spread), weight.sum()) if complete else known[:, part] @ weight
            some = whole > 0
            found[some, judge] = 1.0 - 4.0 * (filled[:, part] @ weight)[some] / whole[some]
        return found


class _Table:
    """Adds values up by unit and column: dense where enough cells are filled, sparse otherwise."""

    def __init__(self, unit: NDArray[np.intp], column: NDArray[np.intp], shape: tuple[int, int]) -> None:
        cells = shape[0] * shape[1]
        self._dense = cells <= _CELLS and len(unit) >= _DENSE * cells
        self._unit, self._column, self._shape, self._cells = unit, column, shape, cells

    def sums(self, values: NDArray[np.float64]) -> Any:
        if not self._dense:
            return csr_array((values, (self._unit, self._column)), shape=self._shape)
        flat = np.bincount(self._unit * self._shape[1] + self._column, values, self._cells)
        return flat.reshape(self._shape)

    def counts(self) -> Any:
        table = self.sums(np.ones(len(self._unit)))
        return None if self._dense and bool((table == 1.0).all()) else table
