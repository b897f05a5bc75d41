"""How firmly a judge decides matchups: consistency with and without ties, and the habits that stand beside it.

Consistency is 1 - 4 times the mean over matchups of p (1 - p), p being A's mean share over instructions: 1 when
every matchup is decided one way throughout, 0 when all are even. Decisive consistency leaves ties out first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from venire.arena.battles import Battles
from venire.arena.records import Status
from venire.ratings.inference import Resampling, Unit, percentiles, resample
from venire.ratings.merging import canonical, combine, merge_orders, select

__all__ = ["Consistency", "JudgeConsistency", "consistency"]


@dataclass(frozen=True, slots=True)
class JudgeConsistency:
    """One judge's figures, each None where there is nothing to take it from; `lo` and `hi` bound the interval.

    Shares run from 0 to 1: `ties` of readable verdicts, `flips` of judgments readable in both orders whose
    winners are opposite, `first` of decisive verdicts that favour the completion shown first, `readable`
    of all verdicts. `verdicts` counts the readable ones used, `own_family` the verdicts left out for kinship.
    """

    judge: str
    consistency: float | None
    consistency_lo: float | None
    consistency_hi: float | None
    decisive: float | None
    decisive_lo: float | None
    decisive_hi: float | None
    ties: float | None
    flips: float | None
    first: float | None
    readable: float | None
    verdicts: int
    matchups: int
    decisive_matchups: int
    own_family: int


@dataclass(frozen=True, slots=True)
class Consistency:
    """The figures of all judges, sorted by name, and how their intervals were drawn."""

    judges: tuple[JudgeConsistency, ...]
    unit: Unit
    units: int
    replicates: int
    seed: int
    level: float


@dataclass(frozen=True, slots=True, eq=False)
class _Shares:
    """A's share `u` of each (judge, matchup, instruction), with the column of its judge and matchup and its unit."""

    u: NDArray[np.float64]
    column: NDArray[np.intp]
    unit_of: NDArray[np.intp]
    judge_of_column: NDArray[np.intp]


def consistency(
    battles: Battles,
    *,
    families: Mapping[str, str] | None = None,
    judge_families: Mapping[str, str] | None = None,
    own_family: bool = False,
    replicates: int = 200,
    seed: int = 0,
    level: float = 0.95,
) -> Consistency:
    """Consistency of each judge, plain and decisive, unit matchup, with basic bootstrap intervals; SPEC 2, paper 000.

    `families` maps a model to its family, `judge_families` a judge; a judge without one has that of the model of its
    name. Matchups with a model of the judge's family are left out unless `own_family`. Intervals draw instructions
    (battles where the table names none), the same for all judges and both figures.
    Raises `InputError` as `merge_orders` and `resample` do.
    """
    rows = canonical(battles)
    readable = rows.status == Status.OK
    kin = np.zeros(len(readable), dtype=np.bool_) if own_family else _own_family(rows, families, judge_families)
    known = select(rows, readable)
    pair = combine(known.model_a, known.model_b)
    drawn = resample(
        known.judge,
        pair,
        # Quarters, as judgments have them: a table without instructions then gives both the same draws.
        2 * (known.label.astype(np.int64) + 1),
        known.instruction if known.instructions else None,
        replicates=replicates,
        seed=seed,
    )
    used = ~kin[readable]
    plain = _figure(rows, _shares(known, used, drawn), drawn, level)
    decisive = _figure(rows, _shares(known, used & (known.label != 0), drawn), drawn, level)
    judges = _assemble(rows, kin, plain, decisive)
    return Consistency(judges, drawn.unit, drawn.units, replicates, seed, level)


@dataclass(frozen=True, slots=True)
class _Figure:
    score: list[float | None]
    lo: list[float | None]
    hi: list[float | None]
    matchups: list[int]


@dataclass(frozen=True, slots=True)
class _Habits:
    ties: list[float | None]
    flips: list[float | None]
    first: list[float | None]
    readable: list[float | None]
    verdicts: list[int]


def _assemble(rows: Battles, kin: NDArray[np.bool_], plain: _Figure, decisive: _Figure) -> tuple[JudgeConsistency, ...]:
    habits = _habits(select(rows, ~kin))
    left_out = np.bincount(rows.judge[kin], minlength=len(rows.judges)).tolist()
    return tuple(
        JudgeConsistency(
            judge=name,
            consistency=plain.score[code],
            consistency_lo=plain.lo[code],
            consistency_hi=plain.hi[code],
            decisive=decisive.score[code],
            decisive_lo=decisive.lo[code],
            decisive_hi=decisive.hi[code],
            ties=habits.ties[code],
            flips=habits.flips[code],
            first=habits.first[code],
            readable=habits.readable[code],
            verdicts=habits.verdicts[code],
            matchups=plain.matchups[code],
            decisive_matchups=decisive.matchups[code],
            own_family=left_out[code],
        )
        for code, name in enumerate(rows.judges)
    )


def _own_family(
    rows: Battles, families: Mapping[str, str] | None, judge_families: Mapping[str, str] | None
) -> NDArray[np.bool_]:
    """Which rows show a judge a model of its own family."""
    of_model = dict(families or {})
    of_judge = {**of_model, **(judge_families or {})}
    codes = {family: code for code, family in enumerate({*of_model.values(), *of_judge.values()})}
    model = np.array([codes[of_model[name]] if name in of_model else -1 for name in rows.models], dtype=np.int64)
    judge = np.array([codes[of_judge[name]] if name in of_judge else -2 for name in rows.judges], dtype=np.int64)
    mine = judge[rows.judge]
    return np.asarray((model[rows.model_a] == mine) | (model[rows.model_b] == mine), dtype=np.bool_)


def _shares(known: Battles, used: NDArray[np.bool_], drawn: Resampling) -> _Shares:
    """Average the rows used: first the repeats of one order, then the orders; each row alone without instructions."""
    rows = select(known, used)
    unit_of = drawn.unit_of[used]
    y = (rows.label + 1) / 2.0
    if rows.instructions:
        key = combine(rows.judge, rows.model_a, rows.model_b, rows.instruction)
        _, example, entry = np.unique(key, return_index=True, return_inverse=True)
        slot = 2 * entry + (rows.swapped if rows.ordered else 0)
        count = np.bincount(slot, minlength=2 * len(example)).reshape(-1, 2)
        total = np.bincount(slot, y, 2 * len(example)).reshape(-1, 2)
        u = (total / np.maximum(count, 1)).sum(axis=1) / np.count_nonzero(count, axis=1)
    else:
        example, u = np.arange(len(y)), y
    _, first, column = np.unique(
        combine(rows.judge, rows.model_a, rows.model_b)[example], return_index=True, return_inverse=True
    )
    return _Shares(u, column, unit_of[example], rows.judge[example][first].astype(np.intp))


def _figure(rows: Battles, shares: _Shares, drawn: Resampling, level: float) -> _Figure:
    judges, columns = len(rows.judges), len(shares.judge_of_column)
    shape = (drawn.weights.shape[1], columns)
    total = csr_array((shares.u, (shares.unit_of, shares.column)), shape=shape)
    count = csr_array((np.ones(len(shares.u)), (shares.unit_of, shares.column)), shape=shape)
    owner = csr_array((np.ones(columns), (np.arange(columns), shares.judge_of_column)), shape=(columns, judges))
    point = _scores(np.ones((1, shape[0])), total, count, owner)[0]
    replicates = [_scores(drawn.weights[block], total, count, owner) for block in drawn.blocks(columns)]
    values = np.concatenate(replicates) if replicates and drawn.units > 1 else np.empty((0, judges))
    bounds = [percentiles(column[np.isfinite(column), None], level) for column in values.T]
    return _Figure(
        score=[_known(value) for value in point],
        lo=[_known(_reflected(value, hi[0])) for value, (_, hi) in zip(point, bounds, strict=True)],
        hi=[_known(_reflected(value, lo[0])) for value, (lo, _) in zip(point, bounds, strict=True)],
        matchups=np.bincount(shares.judge_of_column, minlength=judges).tolist(),
    )


def _reflected(point: float, percentile: float) -> float:
    """A bound of the basic bootstrap interval, held within [0, 1].

    Replicates are more one-sided than the sample, so their percentiles sit too high: with 30 instructions they cover
    0.01 to 0.81 of the time instead of 0.95, reflected about the estimate 0.91 to 0.97 (docs/ratings.md).
    """
    return float(np.clip(2.0 * point - percentile, 0.0, 1.0))


def _scores(weights: NDArray[np.float64], total: csr_array, count: csr_array, owner: csr_array) -> NDArray[np.float64]:
    """1 - 4 * mean p (1 - p) by replicate and judge, over the matchups that a replicate has; NaN where it has none."""
    number = weights @ count
    share = (weights @ total) / np.where(number > 0, number, 1.0)
    spread = np.where(number > 0, share * (1.0 - share), 0.0) @ owner
    matchups = (number > 0).astype(np.float64) @ owner
    return np.asarray(np.where(matchups > 0, 1.0 - 4.0 * spread / np.maximum(matchups, 1.0), np.nan))


def _habits(rows: Battles) -> _Habits:
    judges = len(rows.judges)
    ok = rows.status == Status.OK
    decisive = ok & (rows.label != 0)
    first = decisive & ((rows.label > 0) ^ rows.swapped)
    readable = np.bincount(rows.judge[ok], minlength=judges)
    decided = np.bincount(rows.judge[decisive], minlength=judges)
    judgments = merge_orders(rows)
    both = judgments.readable == 2
    return _Habits(
        ties=_ratios(readable - decided, readable),
        flips=_ratios(
            np.bincount(judgments.judge[judgments.flipped], minlength=judges),
            np.bincount(judgments.judge[both], minlength=judges),
        ),
        first=_ratios(np.bincount(rows.judge[first], minlength=judges), decided if rows.ordered else decided * 0),
        readable=_ratios(readable, np.bincount(rows.judge, minlength=judges)),
        verdicts=readable.tolist(),
    )


def _ratios(part: NDArray[np.intp], whole: NDArray[np.intp]) -> list[float | None]:
    return [int(p) / int(w) if w else None for p, w in zip(part, whole, strict=True)]


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
