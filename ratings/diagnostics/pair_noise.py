"""What chance does to the win shares of pairs, drawn as it hangs together: rows of one instruction move as one.

A null distribution from independent battles calls any misfit real as soon as instructions feed many battles. Here each
unit (a cluster, or a row where there are none) adds its own residuals, times one normal number a draw: a wild bootstrap
with the model's own expectation held (Liu 1988, "Bootstrap procedures under some non-i.i.d. models").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from venire.ratings.data.clustered import cluster_codes
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.pairwise.covariance import rated_rows

__all__ = ["PairNoise", "by_lot", "pair_noise", "tail"]

_UNITS = 2_000
"""Units beyond these are taken together: independent of one another as they are, nothing is lost by it but time."""

_BLOCK = 64
"""Draws made at once from one stream; part of what a seed means."""

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class PairNoise:
    """Pairs that met, as codes `first` < `second` (pairs,) into `models`, and what moves their wins.

    `won` (pairs,) is the weight by which the first won and `total` that of the pair's rows, `expected` the share of
    wins under the ratings. `residuals` (pairs, units) sums outcome less expectation over each unit's rows. `even`
    (pairs,) is the variance of the weight won about one half, which it is held against in the question who won.
    """

    models: tuple[str, ...]
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    won: Vector
    total: Vector
    expected: Vector
    residuals: csr_array
    even: Vector

    @property
    def variance(self) -> Vector:
        """Variance (pairs,) of the weight won."""
        return _squares(self.residuals)

    def draws(self, number: int, seed: int) -> Iterator[Matrix]:
        """Noise of the weight won, blocks (pairs, up to 64) of `number` draws in all."""
        units = self.residuals.shape[1]
        scale = np.sqrt(units / (units - 1)) if units > 1 else 0.0
        for block, start in enumerate(range(0, number, _BLOCK)):
            rng = np.random.default_rng([seed, block])
            chance = rng.standard_normal((units, _BLOCK))[:, : min(_BLOCK, number - start)]
            yield np.asarray(scale * (self.residuals @ chance), dtype=np.float64)


def pair_noise(data: Comparisons, logits: Vector) -> PairNoise:
    """The noise of pairs around ratings `logits` (n,); models with NaN are left out."""
    rows = rated_rows(data if data.weight is None else data.select(data.weight > 0.0), logits)
    at = logits[np.isfinite(logits)]
    size = len(at)
    low, high = np.minimum(rows.a, rows.b), np.maximum(rows.a, rows.b)
    y = np.where(rows.a == low, rows.y, 1.0 - rows.y)
    weight = np.ones(len(y)) if rows.weight is None else rows.weight
    order = np.lexsort((weight, y, high, low))
    low, high, y, weight = (column[order] for column in (low, high, y, weight))
    keys, pair = np.unique(low.astype(np.int64) * size + high, return_inverse=True)
    first, second = (np.asarray(part, dtype=np.intp) for part in np.divmod(keys, max(size, 1)))
    expected = expit(at[first] - at[second])
    unit, units = cluster_codes(None if rows.cluster is None else rows.cluster[order], len(y))
    unit, units = by_lot(unit, units)

    def by_unit(values: Vector) -> csr_array:
        return csr_array((weight * values, (pair, unit)), shape=(len(keys), units))

    return PairNoise(
        models=rows.models,
        first=first,
        second=second,
        won=np.bincount(pair, weight * y, len(keys)).astype(np.float64),
        total=np.bincount(pair, weight, len(keys)).astype(np.float64),
        expected=expected,
        residuals=by_unit(y - expected[pair]),
        even=_squares(by_unit(y - 0.5)),
    )


def by_lot(unit: NDArray[np.int32], units: int) -> tuple[NDArray[np.int32], int]:
    """Units (rows,) taken together by lot where there are more than 2,000, and how many there are then.

    Not in turn: neighbours may be sorted by outcome, and dealt out evenly they would scatter too little.
    """
    if units <= _UNITS:
        return unit, units
    lot = np.random.default_rng(0).permutation(units) % _UNITS
    return lot[unit].astype(np.int32), _UNITS


def _squares(sums: csr_array) -> Vector:
    """Sums of squares over units (pairs,), NaN with one unit alone."""
    units = sums.shape[1]
    square = np.asarray(sums.power(2).sum(axis=1), dtype=np.float64).ravel()
    return square * (units / (units - 1)) if units > 1 else np.full(len(square), np.nan)


def tail(found: float, drawn: Vector) -> float:
    """Share of draws (draws,) that are as large as what was found or larger, that one among them: a p-value."""
    return float((1 + np.count_nonzero(drawn >= found - 1e-12 * max(1.0, abs(found)))) / (1 + len(drawn)))
