"""Habits of judges: shares of ties, flips, first places and readable verdicts, and the habits that planning needs.

A planner models a verdict as P(first) = sigma(b + theta g), where g is the gap of the ratings in logits, and a tie as
half of each. With few verdicts the estimates are close to those of an unknown judge: `planning_habits` adds the prior
verdicts below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from venire.arena.battles import Battles
from venire.arena.planning import JudgeHabit
from venire.arena.records import Status
from venire.ratings.data.clustered import clustered_mean, score_interval
from venire.ratings.data.judgments import canonical, combine_keys, merge_orders, select_battles
from venire.ratings.data.statistics import norm
from venire.ratings.judges.discrimination import GapRows, fit_slopes
from venire.ratings.judges.matchups import CodedVerdicts, VerdictCounts

SLOPE_SD = 0.5
"""Prior standard deviation of judges' slopes, as a share of their mean."""

FIRST_VERDICTS = 20.0
"""Number of prior verdicts on equal models, half of them for the first place, added to each judge's own."""

TIE_VERDICTS = 20.0
"""Number of prior verdicts without a tie."""

PAIRED_VERDICTS = 40.0
"""Number of prior battles in both orders with uncorrelated verdicts."""

_MIN_RHO = -0.5

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ShareEstimate:
    """A share of `n` cases with Wilson's interval at 95 %; `value` and bounds are None without cases.

    For clustered cases the interval uses the effective sample size: the number of independent cases with equal
    variance.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Habits:
    """Shares of each judge, in the order of `judges`; None where there are no data."""

    judges: tuple[str, ...]
    ties: list[float | None]
    flips: list[float | None]
    first: list[float | None]
    readable: list[float | None]
    verdicts: list[int]
    own_family: list[int]


def estimate_share(hits: NDArray[np.bool_], cluster: NDArray[Any] | None) -> ShareEstimate:
    """A share with its Wilson interval from `hits` (cases,); `cluster` (cases,) names their clusters."""
    cases = len(hits)
    if not cases:
        return ShareEstimate(None, None, None, 0)
    value, alike = float(hits.mean()), float(cases)
    if cluster is not None and 0.0 < value < 1.0:
        error = clustered_mean(hits, cluster).se
        alike = min(alike, value * (1.0 - value) / error**2) if error else alike
    return ShareEstimate(value, *score_interval(value, alike, float(norm.ppf(0.975))), cases)


def own_family_rows(
    rows: Battles, families: Mapping[str, str] | None, judge_families: Mapping[str, str] | None
) -> NDArray[np.bool_]:
    """Rows (rows,) that show a judge a model of its own family.

    `families` maps models to families, `judge_families` judges; a judge without an entry has the family of the model
    with its name.
    """
    of_model = dict(families or {})
    of_judge = {**of_model, **(judge_families or {})}
    codes = {family: code for code, family in enumerate({*of_model.values(), *of_judge.values()})}
    model = np.array([codes[of_model[name]] if name in of_model else -1 for name in rows.models], dtype=np.int64)
    judge = np.array([codes[of_judge[name]] if name in of_judge else -2 for name in rows.judges], dtype=np.int64)
    if not (np.isin(judge, model)).any():
        return np.zeros(len(rows.judge), dtype=np.bool_)
    mine = judge[rows.judge]
    return np.asarray((model[rows.model_a] == mine) | (model[rows.model_b] == mine), dtype=np.bool_)


def habits(rows: Battles, kin: NDArray[np.bool_], used: CodedVerdicts, counted: VerdictCounts | None) -> Habits:
    """Count a canonical table; `used` are its readable rows outside `kin` (rows,), `counted` their counts.

    Raises `InputError` for two verdicts on the same presentation.
    """
    judges = len(rows.judges)
    decisive = used.y != 0.5
    first = decisive & ((used.y > 0.5) ^ used.swapped)
    readable = np.bincount(used.judge, minlength=judges)
    decided = np.bincount(used.judge[decisive], minlength=judges)
    opposite, both = _flips(rows, kin, used, counted)
    asked = np.bincount(rows.judge, minlength=judges)
    own = np.bincount(rows.judge[kin], minlength=judges)
    return Habits(
        judges=rows.judges,
        ties=_ratios(readable - decided, readable),
        flips=_ratios(opposite, both),
        first=_ratios(np.bincount(used.judge[first], minlength=judges), decided if rows.ordered else decided * 0),
        readable=_ratios(readable, asked - own),
        verdicts=readable.tolist(),
        own_family=own.tolist(),
    )


def _flips(
    rows: Battles, kin: NDArray[np.bool_], used: CodedVerdicts, counted: VerdictCounts | None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """For each judge, judgments whose two orders chose opposite winners, and judgments readable in both orders."""
    judges = len(rows.judges)
    if not used.ordered or counted is None or not len(used):
        return np.zeros(judges, dtype=np.intp), np.zeros(judges, dtype=np.intp)
    once = bool((rows.repeat == rows.repeat[0]).all()) and int(counted.count.max()) == 1
    if once:
        side = 2 * counted.won + counted.ties - counted.count
        opposite = counted.judge[side[:, 0] * side[:, 1] < 0]
        both = counted.judge[counted.count.min(axis=1) > 0]
    else:
        # Merging into judgments distinguishes repeats and rejects two verdicts on the same presentation.
        judgments = merge_orders(select_battles(rows, ~kin))
        codes = judgments.judge.astype(np.intp)
        opposite, both = codes[judgments.flipped], codes[judgments.readable == 2]
    return np.bincount(opposite, minlength=judges), np.bincount(both, minlength=judges)


def _ratios(part: NDArray[np.intp], whole: NDArray[np.intp]) -> list[float | None]:
    return [int(p) / int(w) if w else None for p, w in zip(part, whole, strict=True)]


def planning_habits(battles: Battles, models: Sequence[str], logits: Vector) -> dict[str, JudgeHabit]:
    """Habits by judge, for all with a readable verdict between models that have `logits` (models,), not NaN.

    Slopes are relative to that of all judges together, so the slope of a single judge is 1, whatever shrinkage its
    ratings have. Raises `InputError` as `merge_orders` does, and `NotConvergedError`.
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
    verdicts = np.bincount(rows.judge, minlength=size)
    ties = np.bincount(rows.judge[y == 0.5], minlength=size) / (verdicts + TIE_VERDICTS)
    side = np.where(swapped, -1.0, 1.0)
    surprise = y - expit(side * bias[rows.judge] + slope[rows.judge] * gap)
    rho = _rho(size, rows, surprise) if rows.ordered else np.zeros(size)
    pooled = float(np.sum(slope * verdicts) / verdicts.sum())
    return {
        rows.judges[code]: JudgeHabit(
            slope=float(slope[code]) / pooled, bias=float(bias[code]), ties=float(ties[code]), rho=float(rho[code])
        )
        for code in np.flatnonzero(verdicts).tolist()
    }


def _slopes(size: int, judge: NDArray[np.int32], lead: Vector, first: Vector, ordered: bool) -> tuple[Vector, Vector]:
    """Bias and slope (judges,) of each judge; slopes are shrunk towards that of all verdicts together."""
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
    """Correlation (judges,) of the residuals of both orders of a battle."""
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
    return np.asarray(np.maximum(found * number / (number + PAIRED_VERDICTS), _MIN_RHO))
