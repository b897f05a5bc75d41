"""Position bias: the effect of the presentation order on verdicts, on a single battle, and on ratings.

`position_effects` and `position_bias` describe each judge as a whole: the first compares flips with the noise of two
repeats of one order, the second is the plain share with Wilson's interval, as in the Soft-Elo paper. `position_audit`
examines one battle asked many times. `adjust_for_position` rates with the position as a covariate.

A judge that is only uncertain changes its verdict between two orders as often as between two repeats of one order; the
excess is due to the order. Where a table has only one order of each battle, the better model may have been shown first
more often: then the effect is fitted jointly with the ratings.

Other modules use position for other purposes, and their figures differ intentionally: `habits` counts first places and
flips together with consistency and shrinks the bias for planning, `drift` compares them early and late,
`discrimination` fits the bias b_J jointly with the slope, and am-ELO the habit "position" jointly with the ability.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError, VenireError
from venire.arena.records import Status
from venire.ratings.data.clustered import ClusteredMean, clustered_difference, clustered_mean
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.judgments import canonical, merge_orders, select_battles
from venire.ratings.data.validation import float_array
from venire.ratings.judges.habits import ShareEstimate, estimate_share
from venire.ratings.judges.length import AdjustedRatings, adjust_for
from venire.ratings.judges.matchups import dense_codes, outcomes

_BALANCED = 0.2
"""Largest share of verdicts without their other order for which first places are simply counted."""

_ROWS_A_MODEL = 5
"""Verdicts per model below which a fit with a position effect overfits."""


@dataclass(frozen=True, slots=True)
class PositionBias:
    """Position bias of a judge: shares of decisive verdicts for the first place, and of flipped judgments."""

    judge: str
    first: ShareEstimate
    flips: ShareEstimate


def position_bias(battles: Battles) -> tuple[PositionBias, ...]:
    """Position bias of each judge, by name, from verdicts with a known presentation order.

    Source: the Soft-Elo paper.

    Raises `InputError` for a table that does not know orders.

    >>> from venire.ratings import battles, position_bias
    >>> y = np.tile([1, 1, 0, 1, 1, 0], 20)
    >>> shown = np.tile([False, True], 60)
    >>> asked = battles(["a"] * 120, ["b"] * 120, y, instruction=np.arange(120) // 2, swapped=shown)
    >>> found = position_bias(asked)
    >>> [(one.first.value, round(one.flips.value, 2)) for one in found]
    [(0.5, 0.67)]
    """
    if not battles.ordered:
        raise InputError("the table does not say which answer was shown first: there is no position to measure")
    rows, judgments = canonical(battles), merge_orders(battles)
    said = outcomes(rows.label, rows.outcome)
    decided = (rows.status == Status.OK) & (said != 0.5)
    first = (said > 0.5) ^ rows.swapped
    found = []
    for code, judge in enumerate(rows.judges):
        mine = decided & (rows.judge == code)
        both = (judgments.judge == code) & (judgments.readable == 2)
        cluster = rows.instruction[mine] if rows.instructions else None
        turns = judgments.instruction[both] if rows.instructions else None
        flips = judgments.flipped[both] if judgments.merged else np.zeros(0, dtype=np.bool_)
        turned = estimate_share(flips, turns if judgments.merged else None)
        found.append(PositionBias(judge, estimate_share(first[mine], cluster), turned))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class PositionEffect:
    """Position effect of one judge: `first` is the share of decisive verdicts for the answer shown first.

    `fitted` means that `first` is the fitted share between equal models, since most battles were shown in one order
    only; `reason` explains why it is None. `counted` is the raw share, regardless of which model was shown first.

    `flips` is the share of pairs of verdicts, one of each order, that name opposite winners, and `again` that of two
    repeats of one order; `excess` is the difference. `to_first` and `to_second` count battles with one repeat where
    both orders chose the first, or the second, place. Values are None without data.
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


def position_effects(battles: Battles) -> tuple[PositionEffect, ...]:
    """Position effect of each judge, by name: first places, and flips beyond noise, with errors by instruction.

    Raises `InputError` for a table without presentation orders, and as `canonical` does.

    >>> from venire.ratings import battles, position_effects
    >>> y = np.tile([1, 1, 0, 1, 1, 0], 20)
    >>> shown = np.tile([False, True], 60)
    >>> asked = battles(["a"] * 120, ["b"] * 120, y, instruction=np.arange(120) // 2, swapped=shown)
    >>> found = position_effects(asked)
    >>> [(one.counted, one.to_first, one.to_second) for one in found]
    [(0.5, 20, 20)]
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


def adjust_for_position(battles: Battles) -> AdjustedRatings:
    """Adjust ratings for position bias: the position is a covariate, and every verdict is a separate row.

    Raises the errors of `adjust_for`, and `InputError` for a table without presentation orders.

    >>> from venire.ratings import adjust_for_position, battles
    >>> y = np.tile([1, 1, 0, 1, 1, 0], 20)
    >>> shown = np.tile([False, True], 60)
    >>> asked = battles(["a"] * 120, ["b"] * 120, y, instruction=np.arange(120) // 2, swapped=shown)
    >>> found = adjust_for_position(asked)
    >>> round(abs(found.coefficient), 6)
    0.0
    """
    judgments = merge_orders(battles, "none")
    if judgments.first is None:
        raise InputError("nothing says which answer was shown first: there is no place to hold equal")
    return adjust_for(judgments.comparisons(), judgments.first.astype(np.float64), "position")


def _of_judge(name: str, rows: Battles, y: NDArray[np.float64]) -> PositionEffect:
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
    return PositionEffect(name, first, fitted, counted.value, flips, again, excess, to_first, to_second, reason)


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
    """The share of the first place between equal models, or the reason why it cannot be fitted."""
    decided = y != 0.5
    place = np.where(rows.swapped, -1.0, 1.0)[decided]
    cluster = (unit[decided].astype(np.int32), rows.instructions) if rows.instructions else (None, ())
    data = Comparisons(rows.models, rows.model_a[decided], rows.model_b[decided], y[decided], None, *cluster)
    try:
        found = adjust_for(data, place, "position", scaled=False)
    except VenireError as error:
        return ClusteredMean(None, None, counted.n, counted.clusters), str(error)
    if found.rows < _ROWS_A_MODEL * len(found.plain.models):
        few = f"{found.rows} verdicts on {len(found.plain.models)} models, shown in one order, are too few for a fit"
        return ClusteredMean(None, None, counted.n, counted.clusters), few
    share = 1.0 / (1.0 + float(np.exp(-found.coefficient)))
    return ClusteredMean(share, found.se * share * (1.0 - share), counted.n, counted.clusters), None


@dataclass(frozen=True, slots=True)
class PositionAudit:
    """Verdicts on one battle by order; pairs are (A shown first, B shown first), None without data.

    `won` and `lost` count A's decisive verdicts, `ties` the others. `first` is the share of decisive verdicts for the
    completion shown first. `flip_rate` is the share of pairs of verdicts, one of each order, with opposite winners.
    `p_value` is Fisher's exact test, two-sided, of order against winner without ties. `between_orders` is the share of
    the variance of decisive verdicts that lies between the orders: 0 where the position has no effect, 1 where it
    decides.
    """

    won: tuple[int, int]
    lost: tuple[int, int]
    ties: tuple[int, int]
    first: tuple[float | None, float | None]
    flip_rate: float | None
    p_value: float | None
    between_orders: float | None

    def summary(self) -> str:
        """The audit in a few lines of text."""
        lines = []
        for index, name in enumerate(("A shown first", "B shown first")):
            counts = f"A {self.won[index]}, B {self.lost[index]}, tie {self.ties[index]}"
            lines.append(f"{name}: {counts}; first place wins {_shown(self.first[index])}")
        lines.append(
            f"flips {_shown(self.flip_rate)}; variance between orders {_shown(self.between_orders)}; "
            f"Fisher's exact p {_shown(self.p_value)}"
        )
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class BattleAudit:
    """The audit of one battle by one judge."""

    judge: str
    model_a: str
    model_b: str
    instruction: str
    audit: PositionAudit


def position_audit(outcome: ArrayLike, swapped: ArrayLike) -> PositionAudit:
    """Audit one battle from plain columns (rows,): the outcome for A (1, 0.5 or 0) and whether B was shown first.

    An outcome over 0.5 is a win for A. Raises `InputError` for columns of unequal length and outcomes outside [0, 1].

    >>> from venire.ratings import position_audit
    >>> found = position_audit([1, 1, 0, 1], [False, True, False, True])
    >>> found.won, found.lost, found.ties
    ((1, 2), (1, 0), (0, 0))
    """
    y, back = float_array("outcome", outcome), np.asarray(swapped)
    if y.ndim != 1 or back.shape != y.shape:
        raise InputError(f"outcome has shape {y.shape}, swapped {back.shape}; give one value of each a verdict")
    wrong = ~((y >= 0.0) & (y <= 1.0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"outcome, row {row}: {y[row]}; give the outcome for A, from 0 to 1")
    order = back.astype(np.bool_).astype(np.intp)
    table = np.bincount(3 * order + 1 + np.sign(y - 0.5).astype(np.intp), minlength=6).reshape(2, 3)
    return _audit(table)


def position_audits(battles: Battles, *, least: int = 2) -> tuple[BattleAudit, ...]:
    """Audit each battle with at least `least` readable verdicts of a judge per order, by judge, models, instruction.

    Raises `InputError` as `canonical` does, and for a table without presentation orders or instructions.

    >>> from venire.ratings import battles, position_audits
    >>> y = np.tile([1, 1, 0, 1, 1, 0], 20)
    >>> shown, i = np.tile([False, True], 60), np.arange(120)
    >>> asked = battles(["a"] * 120, ["b"] * 120, y, instruction=i // 6, swapped=shown, repeat=1 + i % 6 // 2)
    >>> found = position_audits(asked)
    >>> len(found), found[0].audit.won, found[0].audit.lost
    (20, (2, 2), (1, 1))
    """
    rows = canonical(battles)
    if not rows.ordered or not rows.instructions:
        raise InputError("a position audit needs verdicts that say which completion came first and on what instruction")
    ok = rows.status == Status.OK
    models, units = max(len(rows.models), 1), len(rows.instructions)
    columns = (rows.judge[ok], rows.model_a[ok], rows.model_b[ok], rows.instruction[ok])
    judge, a, b, unit = (column.astype(np.intp) for column in columns)
    code, found = dense_codes(((judge * models + a) * models + b) * units + unit, len(rows.judges) * models**2 * units)
    side = np.sign(outcomes(rows.label[ok], None if rows.outcome is None else rows.outcome[ok]) - 0.5).astype(np.intp)
    tables = np.bincount(6 * code + 3 * rows.swapped[ok] + 1 + side, minlength=6 * len(found)).reshape(-1, 2, 3)
    enough = (tables.sum(axis=2) >= least).all(axis=1)
    made = []
    for key, table in zip(found[enough].tolist(), tables[enough], strict=True):
        battle, item = divmod(key, units)
        pair, second = divmod(battle, models)
        who, first = divmod(pair, models)
        names = rows.judges[who], rows.models[first], rows.models[second], rows.instructions[item]
        made.append(BattleAudit(*names, _audit(table)))
    return tuple(made)


def _audit(table: NDArray[np.intp]) -> PositionAudit:
    """From counts (order, B tie A); the first order shows A first."""
    (lost_1, tied_1, won_1), (lost_2, tied_2, won_2) = table.tolist()
    decided = (won_1 + lost_1, won_2 + lost_2)
    pairs = int(table[0].sum() * table[1].sum())
    between = p_value = None
    if min(decided) > 0:
        from scipy.stats import fisher_exact  # slow to import: see `data.statistics`

        p_value = float(fisher_exact(table[:, [2, 0]]).pvalue)
        share_1, share_2 = won_1 / decided[0], won_2 / decided[1]
        mean = (share_1 + share_2) / 2.0
        # All verdicts are for one side: there is no variance to decompose.
        between = (share_1 - share_2) ** 2 / (4.0 * mean * (1.0 - mean)) if 0.0 < mean < 1.0 else None
    return PositionAudit(
        won=(won_1, won_2),
        lost=(lost_1, lost_2),
        ties=(tied_1, tied_2),
        first=(_ratio(won_1, decided[0]), _ratio(lost_2, decided[1])),
        flip_rate=_ratio(won_1 * lost_2 + lost_1 * won_2, pairs),
        p_value=p_value,
        between_orders=between,
    )


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"
