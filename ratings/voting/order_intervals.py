"""Intervals of positions: the same method on resampled rows, or on whole clusters where the table has any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.votes import Order
from venire.ratings.inference.intervals import draw_rows, evaluate_draws

OrderRefit = Callable[[NDArray[np.intp]], Order]
"""The order by some rows of the table, by position; a row may occur several times."""


@dataclass(frozen=True, slots=True, eq=False)
class PositionIntervals:
    """Intervals of the positions of n models from draws; 0 or NaN for a model without a position.

    `lo` and `hi` (n,) are the percentile interval of a model's place, rounded outwards; in a draw without an order it
    is both first and last. `tier` (n,): going down the order, a tier begins with each model that is significantly below
    the first model of the previous tier, by the draws' interval of their difference. `best` (n,) is the share of draws
    with an order that have the model on top, split among equals; NaN where too many have none.
    """

    lo: NDArray[np.int64]
    hi: NDArray[np.int64]
    tier: NDArray[np.int64]
    best: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class OrderDraws:
    """Positions from resampled rows: `position` (replicates, n), NaN where the method could not place every model.

    `point` (n,) are the positions by all rows, `unit` is the resampled unit and `units` the number of units.
    """

    point: NDArray[np.float64]
    position: NDArray[np.float64]
    unit: str
    units: int

    @property
    def without_estimate(self) -> int:
        """The number of draws in which some model had no votes, or the method gave no order."""
        return len(self.position) - len(self._found)

    @property
    def _found(self) -> NDArray[np.float64]:
        return self.position[np.isfinite(self.position).any(axis=1)]

    def places(self, level: float) -> PositionIntervals:
        """Intervals, tiers and probabilities of being best; unknown with one cluster, or without a draw."""
        size, known = len(self.point), np.flatnonzero(np.isfinite(self.point))
        lo, hi, tier = (np.zeros(size, dtype=np.int64) for _ in range(3))
        best = np.full(size, np.nan)
        found, tail = self._found[:, known], (1.0 - level) / 2.0
        if len(found) and self.units > 1:
            lost = np.ones((self.without_estimate, len(known)))
            first_if, last_if = np.concatenate([found, lost]), np.concatenate([found, len(known) * lost])
            lo[known] = np.floor(np.quantile(first_if, tail, axis=0, method="lower") + 1e-9)
            hi[known] = np.ceil(np.quantile(last_if, 1.0 - tail, axis=0, method="higher") - 1e-9)
            if len(lost) <= 2.0 * tail * len(self.position):
                first = found <= found.min(axis=1, keepdims=True) + 1e-9
                best[known] = (first / first.sum(axis=1, keepdims=True)).mean(axis=0)
            tier[known] = _tiers(self.point[known], first_if, last_if, tail)
        return PositionIntervals(lo, hi, tier, best)


def redrawn_positions(data: Comparisons, refit: OrderRefit, order: Order, *, replicates: int, seed: int) -> OrderDraws:
    """Bootstrap of positions: resample rows and order the models by each draw."""
    drawn = draw_rows(data, replicates=replicates, seed=seed)
    position = evaluate_draws(drawn, lambda rows: refit(rows).position, order.position, replicates)
    return OrderDraws(order.position, position, drawn.unit, drawn.units)


def _tiers(
    point: NDArray[np.float64], first_if: NDArray[np.float64], last_if: NDArray[np.float64], tail: float
) -> NDArray[np.int64]:
    tier = np.zeros(len(point), dtype=np.int64)
    order = np.lexsort((np.arange(len(point)), np.round(point, 9)))
    first, number = order[0], 1
    for code in order:
        if np.quantile(first_if[:, code] - last_if[:, first], tail, method="lower") > 1e-9:
            first, number = code, number + 1
        tier[code] = number
    return tier
