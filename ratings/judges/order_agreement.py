"""Whether a judge's two orders of a battle agree more than its preference for a place alone would make them.

A judge that draws lots, or always takes the same place, gives ratings, ranks and intervals like any other. Only the
same battle in the other order shows the difference.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.records import Status
from venire.ratings.data.clustered import ClusteredMean, clustered_mean
from venire.ratings.data.judgments import canonical, select_battles
from venire.ratings.judges.matchups import dense_codes, outcomes

FEWEST_BATTLES = 30
"""Battles judged in both orders below which agreement of the orders says nothing of a judge."""

_NO_SPREAD = 1e-9
Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class OrderAgreement:
    """The correlation `value` of a judge's two orders beyond its preference for a place, with its interval.

    1: every battle has the winner that it has in the other order; 0: a coin, however it leans to a place, or to ties;
    below 0: the other order has the other winner more often than that. `first` is the lean to the place shown first,
    -1 to 1, over `battles` judged in both orders. `value` is None with fewer than `FEWEST_BATTLES`.
    """

    judge: str
    value: float | None
    lo: float | None
    hi: float | None
    first: float
    battles: int

    @property
    def is_coin(self) -> bool:
        """Whether nothing shows that it decides better than a coin, though there is enough to show it."""
        return self.value is not None and (self.lo is None or self.lo <= 0.0)


def order_agreement(battles: Battles, *, level: float = 0.95) -> tuple[OrderAgreement, ...]:
    """The agreement of each judge's orders, by name, with errors by instruction; empty where orders are not known.

    With x and x' the verdicts of a battle's orders for one of its models (1 won, -1 lost, 0 tied; repeats averaged), x
    where it was shown first, and d the mean of (x - x') / 2, independent orders have a mean product of -d^2: `value` is
    (mean x x' + d^2) / (mean x^2 - d^2), the intraclass correlation (Scott's pi where nothing ties) of the table with
    both sides of every battle. The interval is Wilson's of (1 + value) / 2 with the delta method's error.

    >>> from venire.ratings import battles
    >>> y, shown = np.tile([1, 1, 0, 0], 20), np.tile([False, True], 40)
    >>> asked = battles(["a"] * 80, ["b"] * 80, y, instruction=np.arange(80) // 2, swapped=shown)
    >>> found = order_agreement(asked)[0]
    >>> found.value, found.is_coin
    (1.0, False)
    """
    if not (battles.ordered and battles.instructions):
        return ()
    rows = canonical(battles)
    rows = select_battles(rows, rows.status == Status.OK)
    side = 2.0 * outcomes(rows.label, rows.outcome) - 1.0
    size = max(len(rows.models), 1)
    pair = rows.model_a.astype(np.intp) * size + rows.model_b
    key = (rows.judge.astype(np.intp) * size * size + pair) * len(rows.instructions) + rows.instruction.astype(np.intp)
    cell, found = dense_codes(key, max(len(rows.judges), 1) * size * size * len(rows.instructions))
    slot, cells = 2 * cell + rows.swapped, 2 * len(found)
    count = np.bincount(slot, minlength=cells).reshape(-1, 2)
    mean = np.bincount(slot, side, cells).reshape(-1, 2) / np.maximum(count, 1)
    both = (count > 0).all(axis=1)
    judge, unit = found // (size * size * len(rows.instructions)), found % len(rows.instructions)
    return tuple(
        _of_judge(name, mean[mine], unit[mine], level)
        for code, name in enumerate(rows.judges)
        if (mine := both & (judge == code)).any()
    )


def _of_judge(name: str, orders: Vector, unit: NDArray[np.intp], level: float) -> OrderAgreement:
    """From the verdicts (battles, 2) for A, shown first and shown second, and the instruction of each battle."""
    lean = (orders[:, 0] - orders[:, 1]) / 2.0
    first, battles = float(lean.mean()), len(lean)
    if battles < FEWEST_BATTLES:
        return OrderAgreement(name, None, None, None, first, battles)
    covariance = orders[:, 0] * orders[:, 1] + 2.0 * first * lean - first**2
    variance = (orders**2).mean(axis=1) - 2.0 * first * lean + first**2
    spread = float(variance.mean())
    if spread < _NO_SPREAD:  # always the same place, or nothing but ties: nothing of the completions decides
        return OrderAgreement(name, 0.0, 0.0, 0.0, first, battles)
    value = min(1.0, max(-1.0, float(covariance.mean()) / spread))
    linear = clustered_mean((covariance - value * variance) / spread, unit)
    share = ClusteredMean((1.0 + value) / 2.0, None if linear.se is None else linear.se / 2.0, battles, linear.clusters)
    if share.value is not None and min(share.value, 1.0 - share.value) < _NO_SPREAD:
        share = replace(share, value=round(share.value))
    lo, hi = (None if end is None else 2.0 * end - 1.0 for end in share.share_interval(level))
    return OrderAgreement(name, value, lo, hi, first, battles)
