"""Known biases of judges, measured: position, length, family; and how much is left of them in ratings.

Each is a diagnostic: it says what a judge does, not what it does wrong. A longer answer may be the better one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.records import Status
from venire.ratings.agreement.chance_corrected import cohen_kappa
from venire.ratings.agreement.coefficient import Coefficient, kept_clusters
from venire.ratings.data.judgments import canonical, merge_orders
from venire.ratings.data.statistics import norm, student
from venire.ratings.judges.matchups import outcomes

__all__ = [
    "FamilyExcess",
    "LengthBias",
    "Partial",
    "PositionBias",
    "Share",
    "family_excess",
    "human_kappa",
    "length_bias",
    "partial_correlation",
    "position_bias",
]


@dataclass(frozen=True, slots=True)
class Share:
    """A share of `n` cases with Wilson's interval at 95 %; `value` and bounds are None without cases.

    Where cases come in clusters the interval is that of as many independent cases as would scatter as they do.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class PositionBias:
    """Of one judge: the share of decisive verdicts for what was shown first, and of judgments that the order flips."""

    judge: str
    first: Share
    flips: Share


@dataclass(frozen=True, slots=True)
class LengthBias:
    """Share of decisive verdicts for the longer answer: where scores are `near` equal, in `all` battles, by people."""

    near: Share
    all: Share
    human: Share


@dataclass(frozen=True, slots=True)
class FamilyExcess:
    """Of one judge: what it gives its own family beyond the other judges' median, less what it gives strangers so.

    `excess` is in the unit of the scores, `low` to `high` Welch's interval at 95 %; None where it cannot be told.
    """

    judge: str
    family: str
    excess: float | None
    low: float | None
    high: float | None
    own: int
    others: int


@dataclass(frozen=True, slots=True)
class Partial:
    """A partial correlation over `n` models with Fisher's interval at 95 % and its p-value; None where none exists."""

    value: float | None
    low: float | None
    high: float | None
    p_value: float | None
    n: int


def position_bias(battles: Battles) -> tuple[PositionBias, ...]:
    """Position habits of each judge, in the order of names, from verdicts that say which side was shown first.

    Source: the Soft-Elo paper.

    Raises `InputError` for a table that does not know orders.
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
        turned = _share(flips, turns if judgments.merged else None)
        found.append(PositionBias(judge, _share(first[mine], cluster), turned))
    return tuple(found)


def length_bias(
    y: ArrayLike,
    length: ArrayLike,
    score: ArrayLike | None = None,
    *,
    human: ArrayLike | None = None,
    near: float = 0.5,
    cluster: ArrayLike | None = None,
) -> LengthBias:
    """How often the longer answer wins, and where |score| <= `near`, so that the judge itself sees little between them.

    `y` (rows,) is the judge's outcome for A, `length` (rows,) is A less B in any unit, `score` (rows,) A less B,
    `human` (rows,) what people said. Ties and equal lengths are left out, NaN too. Raises `InputError`.
    """
    outcome, gap = np.asarray(y, dtype=np.float64), np.asarray(length, dtype=np.float64)
    if outcome.shape != gap.shape or outcome.ndim != 1:
        raise InputError(f"y has shape {outcome.shape}, length {gap.shape}; give two columns of one length")
    nothing = np.full(len(gap), np.nan)
    scores = nothing if score is None else np.asarray(score, dtype=np.float64)
    people = nothing if human is None else np.asarray(human, dtype=np.float64)
    if scores.shape != gap.shape or people.shape != gap.shape:
        raise InputError(f"score and human need one number a row: length has {len(gap)} rows")

    def longer(said: NDArray[np.float64], rows: NDArray[np.bool_]) -> Share:
        kept = rows & (said != 0.5) & ~np.isnan(said) & (gap != 0.0) & ~np.isnan(gap)
        return _share((said[kept] > 0.5) == (gap[kept] > 0.0), kept_clusters(cluster, kept))

    every = np.ones(len(gap), dtype=np.bool_)
    return LengthBias(longer(outcome, np.abs(scores) <= near), longer(outcome, every), longer(people, every))


def family_excess(
    scores: ArrayLike, judges: Sequence[str], judge_family: Sequence[str], model_family: Sequence[str]
) -> tuple[FamilyExcess, ...]:
    """What each judge gives models of its own family beyond the other judges' median of the same models.

    Source: the Soft-Elo paper.

    `scores` (judges, models) are mean scores, Elo points or residuals, NaN where a judge has none. The deviation from
    that median is compared between own and other models, so that a judge that is generous to all has no excess. Raises
    `InputError`.
    """
    table = np.asarray(scores, dtype=np.float64)
    if table.shape != (len(judges), len(model_family)) or len(judge_family) != len(judges):
        raise InputError(f"scores has shape {table.shape}; give a row a judge and a column a model, and all families")
    families, found = np.array(model_family, dtype=object), []
    for code, judge in enumerate(judges):
        rest = np.delete(table, code, axis=0)
        seen = ~np.isnan(rest).all(axis=0) & ~np.isnan(table[code])
        deviation = table[code, seen] - np.nanmedian(rest[:, seen], axis=0)
        own = families[seen] == judge_family[code]
        excess, low, high = _welch(deviation[own], deviation[~own])
        mine = int(np.count_nonzero(own))
        found.append(FamilyExcess(judge, judge_family[code], excess, low, high, mine, len(own) - mine))
    return tuple(found)


def human_kappa(
    y: ArrayLike, human: ArrayLike, *, cluster: ArrayLike | None = None, replicates: int = 1000, seed: int = 0
) -> Coefficient:
    """Cohen's kappa of a judge with people over win, tie and loss.

    `y` and `human` (rows,) are outcomes for A, NaN unknown. Half a win counts as one: kappa asks for the
    side alone. Raises `InputError`.
    """
    judge, people = (np.sign(np.asarray(column, dtype=np.float64) - 0.5) for column in (y, human))
    if judge.shape != people.shape or judge.ndim != 1:
        raise InputError(f"y has shape {judge.shape}, human {people.shape}; give two columns of one length")
    both = ~(np.isnan(judge) | np.isnan(people))
    groups = kept_clusters(cluster, both)
    return cohen_kappa(
        judge[both].astype(int), people[both].astype(int), cluster=groups, replicates=replicates, seed=seed
    )


def partial_correlation(residual: ArrayLike, length: ArrayLike, elo: ArrayLike) -> Partial:
    """Correlation of `residual` with `length` over models (n,), after a straight line in `elo` is taken out of both.

    Models with NaN anywhere are left out. Raises `InputError` for columns of different lengths.
    """
    columns = [np.asarray(column, dtype=np.float64) for column in (residual, length, elo)]
    if len({column.shape for column in columns}) != 1 or columns[0].ndim != 1:
        raise InputError("residual, length and elo: give one number a model in each")
    known = ~np.isnan(np.stack(columns)).any(axis=0)
    count = int(np.count_nonzero(known))
    if count < 5:
        return Partial(None, None, None, None, count)
    ours, theirs, given = (column[known] - column[known].mean() for column in columns)
    scale = float(given @ given)
    left = [part - (part @ given / scale if scale > 0.0 else 0.0) * given for part in (ours, theirs)]
    rest = [float(part @ part) for part in left]
    if any(after <= 1e-24 * float(part @ part) for after, part in zip(rest, (ours, theirs), strict=True)):
        return Partial(None, None, None, None, count)
    value = float(np.clip(left[0] @ left[1] / math.sqrt(rest[0] * rest[1]), -1.0, 1.0))
    degrees = count - 3
    slack = max(1.0 - value * value, 1e-300)
    p_value = float(2.0 * student.sf(abs(value) * math.sqrt(degrees / slack), degrees))
    middle, half = math.atanh(np.clip(value, -1 + 1e-15, 1 - 1e-15)), float(norm.ppf(0.975)) / math.sqrt(count - 4)
    return Partial(value, math.tanh(middle - half), math.tanh(middle + half), p_value, count)


def _share(hits: NDArray[np.bool_], cluster: NDArray[Any] | None) -> Share:
    cases = len(hits)
    if not cases:
        return Share(None, None, None, 0)
    value, alike = float(hits.mean()), float(cases)
    if cluster is not None and 0.0 < value < 1.0:
        _, code = np.unique(cluster, return_inverse=True)
        sums = np.bincount(code, hits - value)
        groups = len(sums)
        spread = float(sums @ sums) * groups / max(groups - 1, 1) / cases**2
        alike = min(alike, value * (1.0 - value) / spread) if spread > 0.0 else alike
    z = float(norm.ppf(0.975)) ** 2
    middle = (value + z / (2.0 * alike)) / (1.0 + z / alike)
    half = math.sqrt(z * (value * (1.0 - value) / alike + z / (4.0 * alike**2))) / (1.0 + z / alike)
    return Share(value, max(0.0, middle - half), min(1.0, middle + half), cases)


def _welch(own: NDArray[np.float64], others: NDArray[np.float64]) -> tuple[float | None, float | None, float | None]:
    """Difference of two means and Welch's interval; bounds are None where a side has fewer than two models."""
    if not len(own) or not len(others):
        return None, None, None
    gap = float(own.mean() - others.mean())
    if len(own) < 2 or len(others) < 2:
        return gap, None, None
    parts = np.array([own.var(ddof=1) / len(own), others.var(ddof=1) / len(others)])
    error = math.sqrt(float(parts.sum()))
    if error == 0.0:
        return gap, gap, gap
    degrees = float(parts.sum()) ** 2 / float(parts[0] ** 2 / (len(own) - 1) + parts[1] ** 2 / (len(others) - 1))
    half = float(student.ppf(0.975, degrees)) * error
    return gap, gap - half, gap + half
