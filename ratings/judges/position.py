"""What the order shown does: to each judge's verdicts, against what noise alone does, and to the ranking.

A judge that is merely unsure changes its mind between two orders as often as between two tries of one order. What it
does more than that is the order's doing. Where a table has one order of each battle alone, the better model may have
stood first more often: then the effect is fitted beside the ratings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError, VenireError
from venire.arena.records import Status
from venire.ratings.data.clustered import ClusteredMean, clustered_difference, clustered_mean
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.judgments import canonical, merge_orders, select
from venire.ratings.judges.length import HeldEqual, held_equal
from venire.ratings.judges.matchups import dense_codes, outcomes

__all__ = ["OrderEffect", "order_effects", "place_held_equal"]

_BALANCED = 0.2
"""The largest share of a judge's verdicts without their other order for which first places are simply counted."""

_ROWS_A_MODEL = 5
"""Verdicts a model below which a fit with a place follows single verdicts."""


@dataclass(frozen=True, slots=True)
class OrderEffect:
    """One judge. `first` is the share of decisive verdicts for what was shown first; `fitted` says that it is what a
    fit gives between equal models, since most battles were shown in one order alone; `reason` why there is none.
    `counted` is the share as the verdicts came, who stood first and all.

    `flips` is the share of pairs of verdicts, one of each order, that name opposite winners, and `again` that of two
    tries of one order; `excess` is the difference. `to_first` and `to_second` count battles of one try where both
    orders chose the first, or the second, place. Values are None where no verdicts say.
    """

    judge: str
    first: ClusteredMean
    fitted: bool
    counted: float | None
    flips: ClusteredMean
    again: ClusteredMean
    excess: ClusteredMean
    to_first: int
    to_second: int
    reason: str | None = None


def order_effects(battles: Battles) -> tuple[OrderEffect, ...]:
    """The order's effect on each judge, by name, with errors by instruction.

    Raises `InputError` for a table that does not know orders, and as `canonical` does.
    """
    if not battles.ordered:
        raise InputError("nothing says which answer was shown first: there is no order to look at")
    rows = canonical(battles)
    rows = select_battles(rows, rows.status == Status.OK)
    y = outcomes(rows.label, rows.outcome)
    return tuple(
        _of_judge(name, select_battles(rows, rows.judge == code), y[rows.judge == code])
        for code, name in enumerate(rows.judges)
    )


def place_held_equal(battles: Battles) -> HeldEqual:
    """Ratings with the place shown as a covariate beside those without, every verdict for itself.

    Raises as `held_equal` does, and `InputError` for a table that does not know orders.
    """
    judgments = merge_orders(battles, "none")
    if judgments.first is None:
        raise InputError("nothing says which answer was shown first: there is no place to hold equal")
    return held_equal(judgments.comparisons(), judgments.first.astype(np.float64), "position")


def _of_judge(name: str, rows: Battles, y: NDArray[np.float64]) -> OrderEffect:
    side = np.sign(y - 0.5).astype(np.intp)
    unit = rows.instruction.astype(np.intp) if rows.instructions else np.arange(len(y), dtype=np.intp)
    tables, of_battle = _tables(rows, side, unit)
    asked = tables.sum(axis=2)
    won, lost = tables[:, :, 2], tables[:, :, 0]
    across, twice = asked[:, 0] * asked[:, 1], (asked * (asked - 1) / 2.0).sum(axis=1)
    opposite, changed = won[:, 0] * lost[:, 1] + lost[:, 0] * won[:, 1], (won * lost).sum(axis=1)
    both, tried = across > 0, twice > 0
    parts = (opposite[both] / across[both], changed[tried] / twice[tried], of_battle[both], of_battle[tried])
    flips = clustered_mean(parts[0], parts[2], across[both])
    again = clustered_mean(parts[1], parts[3], twice[tried])
    excess = clustered_difference(*parts, across[both], twice[tried])
    decided = y != 0.5
    counted = clustered_mean((y > 0.5)[decided] ^ rows.swapped[decided], unit[decided])
    alone = float(np.abs(asked[:, 0] - asked[:, 1]).sum())
    fitted = alone > _BALANCED * len(y)
    first, reason = _fitted(rows, y, unit, counted) if fitted else (counted, None)
    once = asked.max(axis=1, initial=0) == 1
    to_first = int((won[once, 0] * lost[once, 1]).sum())
    to_second = int((lost[once, 0] * won[once, 1]).sum())
    return OrderEffect(name, first, fitted, counted.value, flips, again, excess, to_first, to_second, reason)


def _tables(
    rows: Battles, side: NDArray[np.intp], unit: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Counts (battles, orders, outcomes), A shown first in the first order, and each battle's cluster."""
    models, units = max(len(rows.models), 1), int(unit.max(initial=0)) + 1
    key = (rows.model_a.astype(np.intp) * models + rows.model_b) * units + unit
    code, found = dense_codes(key, models**2 * units)
    cells = np.bincount(6 * code + 3 * rows.swapped + 1 + side, minlength=6 * len(found))
    return cells.astype(np.float64).reshape(-1, 2, 3), np.asarray(found % units)


def _fitted(
    rows: Battles, y: NDArray[np.float64], unit: NDArray[np.intp], counted: ClusteredMean
) -> tuple[ClusteredMean, str | None]:
    """The share that the first place has between equals, or why it cannot be fitted."""
    decided = y != 0.5
    place = np.where(rows.swapped, -1.0, 1.0)[decided]
    cluster = (unit[decided].astype(np.int32), rows.instructions) if rows.instructions else (None, ())
    data = Comparisons(rows.models, rows.model_a[decided], rows.model_b[decided], y[decided], None, *cluster)
    try:
        found = held_equal(data, place, "position", scaled=False)
    except VenireError as error:
        return ClusteredMean(None, None, counted.n, counted.clusters), str(error)
    if found.rows < _ROWS_A_MODEL * len(found.plain.models):
        few = f"{found.rows} verdicts on {len(found.plain.models)} models, shown in one order, are too few for a fit"
        return ClusteredMean(None, None, counted.n, counted.clusters), few
    share = 1.0 / (1.0 + float(np.exp(-found.coefficient)))
    return ClusteredMean(share, found.se * share * (1.0 - share), counted.n, counted.clusters), None
