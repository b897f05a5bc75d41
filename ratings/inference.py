"""Bootstrap intervals over instructions, by refitting each replicate on its own pair counts.

One instruction feeds many battles, so battles are not independent and instructions are what is drawn again. A
replicate's draw is one multinomial over the sorted instructions, the same for every rating and every judge, so that
differences come from the same draws. Where a table names no instruction, battles are drawn instead: as counts of
equal battles, which is the same law and does not depend on the order of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from venire.arena.errors import InputError
from venire.ratings.bradley_terry import NotConvergedError, fit, has_estimate, maximise
from venire.ratings.merging import Judgments, combine
from venire.ratings.scale import to_elo

__all__ = ["Bootstrap", "Resampling", "Unit", "bootstrap", "percentiles", "resample"]

Unit = Literal["instruction", "battle"]

_BLOCK = 1 << 21
"""Entries of one block of replicates: about 16 MB."""


@dataclass(frozen=True, slots=True, eq=False)
class Resampling:
    """How often each unit counts in each replicate: `weights` (replicates, units), `unit_of` a row's unit (rows,).

    `units` is the number of things drawn: instructions, or battles.
    """

    unit: Unit
    units: int
    weights: NDArray[np.float64]
    unit_of: NDArray[np.intp]

    def blocks(self, columns: int) -> Iterator[slice]:
        """Consecutive slices of the replicates, small enough that (slice, columns) stays in memory."""
        size = max(1, _BLOCK // max(columns, 1))
        for start in range(0, len(self.weights), size):
            yield slice(start, min(start + size, len(self.weights)))


@dataclass(frozen=True, slots=True, eq=False)
class Bootstrap:
    """Percentile intervals: `lo` and `hi` in Elo points with mean 1000 over `models`, NaN where there is none.

    `unit` is what was drawn, `without_estimate` how many of the `replicates` had no finite estimate and were left
    out, so that the interval speaks of the others alone.
    """

    models: tuple[str, ...]
    unit: Unit
    units: int
    replicates: int
    without_estimate: int
    seed: int
    level: float
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]


def resample(
    judge: NDArray[Any],
    pair: NDArray[Any],
    outcome: NDArray[Any],
    instruction: NDArray[Any] | None,
    *,
    replicates: int,
    seed: int,
) -> Resampling:
    """Draw replicates for rows given by codes (rows,): of instructions, or of battles where `instruction` is None.

    The same set of instructions and the same seed give the same draws, whatever else the rows hold. Raises
    `InputError` for a negative number of replicates or a negative seed.
    """
    if replicates < 0:
        raise InputError(f"replicates is {replicates}; give 0 for no interval, or a number such as 200")
    if seed < 0:
        raise InputError(f"seed is {seed}; give a number that is not negative")
    if instruction is not None:
        names, unit_of = np.unique(instruction, return_inverse=True)
        size = np.ones(len(names))
    else:
        _, unit_of, counts = np.unique(combine(judge, pair, outcome), return_inverse=True, return_counts=True)
        size = counts.astype(np.float64)
    units = int(size.sum())
    if units == 0:
        weights = np.zeros((replicates, 0))
    else:
        draws = np.random.default_rng(seed).multinomial(units, size / units, size=replicates)
        weights = draws / size
    return Resampling("battle" if instruction is None else "instruction", units, weights, unit_of)


def percentiles(values: NDArray[np.float64], level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper percentile (columns,) of replicates (replicates, columns); NaN with fewer than two replicates."""
    if len(values) < 2:
        nothing = np.full(values.shape[1], np.nan)
        return nothing, nothing.copy()
    tail = (1.0 - level) / 2.0
    lo, hi = np.quantile(values, [tail, 1.0 - tail], axis=0)
    return lo, hi


def bootstrap(
    judgments: Judgments,
    models: Sequence[str] | None = None,
    *,
    replicates: int = 200,
    seed: int = 0,
    level: float = 0.95,
) -> Bootstrap:
    """Percentile intervals of the Bradley-Terry ratings of the models named (default: all); SPEC 2 and 7.

    Draws come from all judgments, the refits use those between the models named. With fewer than two units nothing
    can be said and the interval is NaN. Raises as `fit` does when the models have no finite estimate at all.
    """
    point = fit(judgments, models)
    size = len(point.models)
    pair = combine(judgments.model_a, judgments.model_b)
    outcome = (4.0 * judgments.y).astype(np.int64)
    instruction = judgments.instruction if judgments.instructions else None
    drawn = resample(judgments.judge, pair, outcome, instruction, replicates=replicates, seed=seed)
    ratings = np.full((replicates, size), np.nan)
    high, low, won, lost = _pair_counts(judgments, point.models, drawn)
    for block in drawn.blocks(len(high)):
        weights = drawn.weights[block]
        for row, (up, down) in enumerate(zip(weights @ won, weights @ lost, strict=True), start=block.start):
            wins = np.zeros((size, size))
            wins[high, low], wins[low, high] = up, down
            ratings[row] = _refit(wins, point.ratings)
    found = ratings[np.isfinite(ratings).all(axis=1)]
    lo, hi = percentiles(to_elo(found) if drawn.units > 1 else found[:0], level)
    return Bootstrap(
        models=point.models,
        unit=drawn.unit,
        units=drawn.units,
        replicates=replicates,
        without_estimate=replicates - len(found),
        seed=seed,
        level=level,
        lo=lo,
        hi=hi,
    )


def _pair_counts(
    judgments: Judgments, models: tuple[str, ...], drawn: Resampling
) -> tuple[NDArray[np.intp], NDArray[np.intp], csr_array, csr_array]:
    """Positions of both models of each pair, and its wins and losses by unit (units, pairs).

    Wins and losses are kept apart: one taken from the total would leave rounding where there was no win at all.
    """
    place = np.array([models.index(name) if name in models else -1 for name in judgments.models], dtype=np.intp)
    a, b = place[judgments.model_a], place[judgments.model_b]
    inside = (a >= 0) & (b >= 0)
    key, column = np.unique(a[inside] * len(models) + b[inside], return_inverse=True)
    y, unit = judgments.y[inside], drawn.unit_of[inside]
    shape = (drawn.weights.shape[1], len(key))
    won = csr_array((y, (unit, column)), shape=shape)
    lost = csr_array((1.0 - y, (unit, column)), shape=shape)
    return key // len(models), key % len(models), won, lost


def _refit(wins: NDArray[np.float64], start: NDArray[np.float64]) -> NDArray[np.float64] | float:
    """Ratings of one replicate in logits, or NaN where it has no finite estimate."""
    if not has_estimate(wins):
        return np.nan
    try:
        return maximise(wins, start)[0]
    except NotConvergedError:
        return np.nan
