"""What a planner needs to know of each judge: how far its verdicts follow the ratings, what it owes to places and ties.

A verdict says P(first) = sigma(b + theta g), g being the gap of the ratings in logits, and a tie is half of each. With
few verdicts all of it is near what a judge is taken for that nobody has heard: habits weigh as many verdicts as below.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from venire.arena.battles import Battles
from venire.arena.planning import JudgeHabit
from venire.arena.records import Status
from venire.ratings.data.judgments import canonical, combine_keys, select_battles
from venire.ratings.judges.slopes import GapRows, fit_slopes

__all__ = ["planning_habits"]

SLOPE_SD = 0.5
"""Slopes of judges differ by about so much, as a share of their mean."""

FIRST_VERDICTS = 20.0
"""Verdicts on equals, half of them for the first place, that are added to each judge's own."""

TIE_VERDICTS = 20.0
"""Verdicts without a tie that are added."""

PAIRED_VERDICTS = 40.0
"""Battles in both orders, with verdicts that have nothing in common, that are added."""

_LEAST_RHO = -0.5

Vector = NDArray[np.float64]


def planning_habits(battles: Battles, models: Sequence[str], logits: Vector) -> dict[str, JudgeHabit]:
    """Habits by judge, for all that have a readable verdict between models with `logits` (models,), else NaN.

    Slopes are relative to that of all judges together, so that the slope of a lone one is 1, whatever drew its ratings
    together. Raises `InputError` as `merge_orders` does, and `NotConvergedError`.
    """
    table = canonical(battles)
    place = {name: code for code, name in enumerate(models)}
    rating = np.array([logits[place[name]] if name in place else np.nan for name in table.models], dtype=np.float64)
    gap = rating[table.model_a] - rating[table.model_b]
    kept = (table.status == Status.OK) & np.isfinite(gap)
    rows, gap = select_battles(table, kept), np.round(gap[kept], 12)
    if not len(gap):
        return {}
    y = 0.5 + 0.5 * rows.label if rows.outcome is None else rows.outcome
    swapped = rows.swapped if rows.ordered else np.zeros(len(gap), dtype=np.bool_)
    first, lead = np.where(swapped, 1.0 - y, y), np.where(swapped, -gap, gap)
    size = len(rows.judges)
    bias, slope = _slopes(size, rows.judge, lead, first, rows.ordered)
    heard = np.bincount(rows.judge, minlength=size)
    ties = np.bincount(rows.judge[y == 0.5], minlength=size) / (heard + TIE_VERDICTS)
    side = np.where(swapped, -1.0, 1.0)
    surprise = y - expit(side * bias[rows.judge] + slope[rows.judge] * gap)
    rho = _rho(size, rows, surprise) if rows.ordered else np.zeros(size)
    pooled = float(np.sum(slope * heard) / heard.sum())
    return {
        rows.judges[code]: JudgeHabit(
            slope=float(slope[code]) / pooled, bias=float(bias[code]), ties=float(ties[code]), rho=float(rho[code])
        )
        for code in np.flatnonzero(heard).tolist()
    }


def _slopes(size: int, judge: NDArray[np.int32], lead: Vector, first: Vector, ordered: bool) -> tuple[Vector, Vector]:
    """Bias and slope (judges,) of each judge, slopes drawn towards that of all verdicts together."""
    _, together = _fitted(1, np.zeros(len(judge), dtype=np.intp), lead, first, ordered, 1.0)
    return _fitted(size, judge.astype(np.intp), lead, first, ordered, float(together[0]))


def _fitted(
    size: int, judge: NDArray[np.intp], lead: Vector, first: Vector, ordered: bool, mean: float
) -> tuple[Vector, Vector]:
    gaps, value = np.unique(lead, return_inverse=True)
    key = combine_keys(judge, value.astype(np.int64))
    _, start, cell = np.unique(key, return_index=True, return_inverse=True)
    count, won = np.bincount(cell).astype(np.float64), np.bincount(cell, first)
    none = np.zeros(0, dtype=np.intp)
    rows = GapRows(
        judges=size,
        cell=none,
        cluster=none,
        number=none,
        first=none,
        cell_judge=np.concatenate([judge[start], np.arange(size)]),
        cell_gap=np.concatenate([gaps[value[start]], np.zeros(size)]),
        cluster_judge=none,
        count=np.concatenate([count, np.full(size, FIRST_VERDICTS)]),
        won=np.concatenate([won, np.full(size, FIRST_VERDICTS / 2.0)]),
        ordered=ordered,
    )
    found = fit_slopes(rows, mean=mean, precision=1.0 / (SLOPE_SD * mean) ** 2)
    return found.b, found.theta


def _rho(size: int, rows: Battles, surprise: Vector) -> Vector:
    """Correlation (judges,) of what both orders of a battle say beyond the ratings."""
    key = combine_keys(rows.model_a, rows.model_b, rows.instruction + 1, rows.judge, rows.repeat, rows.swapped)
    order = np.argsort(key, kind="stable")
    shown = rows.swapped[order]
    battle = combine_keys(*(column[order] for column in (rows.model_a, rows.model_b)), rows.instruction[order] + 1)
    battle = combine_keys(battle, rows.judge[order], rows.repeat[order])
    pair = (battle[1:] == battle[:-1]) & ~shown[:-1] & shown[1:]
    one, other = surprise[order[:-1][pair]], surprise[order[1:][pair]]
    judge = rows.judge[order[:-1][pair]]
    number = np.bincount(judge, minlength=size)
    both = np.bincount(judge, one * other, size)
    own = np.sqrt(np.bincount(judge, one**2, size) * np.bincount(judge, other**2, size))
    found = np.divide(both, own, out=np.zeros(size), where=own > 0.0)
    return np.asarray(np.maximum(found * number / (number + PAIRED_VERDICTS), _LEAST_RHO))
