"""One battle asked many times in each order: how much of a judge's verdict is the place, and how much the answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.records import Status
from venire.ratings.data.judgments import canonical
from venire.ratings.judges.matchups import dense_codes, outcomes

__all__ = ["BattleAudit", "PositionAudit", "position_audit", "position_audits"]


@dataclass(frozen=True, slots=True)
class PositionAudit:
    """Verdicts on one battle by order; pairs are (A shown first, B shown first), None where no verdict says.

    `won` and `lost` count A's decisive verdicts, `ties` the others. `first` is the share of decisive verdicts for the
    completion shown first. `flip_rate` is the share of pairs of verdicts, one of each order, with opposite winners.
    `p_value` is Fisher's exact test, two-sided, of order against winner without ties. `between_orders` is the share of
    the variance of decisive verdicts that lies between the orders: 0 where the place changes nothing, 1 where it
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
        for place, name in enumerate(("A shown first", "B shown first")):
            counts = f"A {self.won[place]}, B {self.lost[place]}, tie {self.ties[place]}"
            lines.append(f"{name}: {counts}; first place wins {_shown(self.first[place])}")
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

    An outcome over 0.5 is A's. Raises `InputError` for columns of unequal length and outcomes outside [0, 1].
    """
    y, back = np.asarray(outcome, dtype=np.float64), np.asarray(swapped)
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
    """Audit every battle that a judge read at least `least` times in each order, by judge, models and instruction.

    Raises `InputError` as `canonical` does, and for a table that does not know the order shown or the instruction.
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
        from scipy.stats import fisher_exact  # slow to import: see `distributions`

        p_value = float(fisher_exact(table[:, [2, 0]]).pvalue)
        share_1, share_2 = won_1 / decided[0], won_2 / decided[1]
        mean = (share_1 + share_2) / 2.0
        # Every verdict for one side: there is no variance to share out.
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
