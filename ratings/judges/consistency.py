"""Consistency of judges: how uniformly each decides its matchups, in three forms, with intervals.

Consistency is 1 - 4 times the mean over matchups of p (1 - p), p being A's mean share over instructions: 1 when every
matchup is always decided the same way, 0 when all are even (arXiv 2509.23510). Decisive consistency first leaves ties
out; corrected consistency removes the bias from few instructions. The result also contains discrimination, which
measures how verdicts follow the gap, and habits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.records import Status
from venire.arena.wording import suggest
from venire.ratings.data.clustered import interval_below_one, jackknife_error
from venire.ratings.data.judgments import canonical
from venire.ratings.data.statistics import student
from venire.ratings.data.validation import check_level, finite_or_none
from venire.ratings.judges.discrimination import Discrimination, fit_discrimination, gap_rows, own_units
from venire.ratings.judges.habits import Habits, habits, own_family_rows
from venire.ratings.judges.matchups import (
    CodedVerdicts,
    MatchupShares,
    VerdictCounts,
    Weights,
    code_rows,
    count_verdicts,
    dense_codes,
    gaps_from_elo,
    gaps_from_other_judges,
    importance,
    matchup_shares,
)

Unit = Literal["matchup", "battle"]

Interval = Literal["instructions", "matchups"]

SCORES = ("consistency", "decisive", "corrected")

_CORRECTED = {"consistency": "corrected", "decisive": "decisive_corrected"}
"""The names of scores in a row, and of their corrected forms."""


@dataclass(frozen=True, slots=True, eq=False)
class LeftOutUnits:
    """What the jackknife leaves out, one at a time.

    `what` is an `instruction`, a `battle` for a table without instructions, or a `matchup`; `number` is how many there
    are. Alike battles are one entry: `count` (entries,) is how often each occurs. `unit_of` gives the entry of each
    readable verdict where verdicts are left out.
    """

    what: Literal["instruction", "battle", "matchup"]
    number: int
    count: NDArray[np.float64]
    unit_of: NDArray[np.intp] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class JackknifeScores:
    """A form of consistency of every judge, and what it is without each unit.

    `point` (judges,) is the figure, `centre` (judges,) the corrected one, which intervals are about, and `matchups`
    (judges,) the number that it averages. `left_out` (units, judges) is `centre` without each unit, `count` (units,)
    how often that occurs, `present` (units, judges) whether the judge has verdicts there, `floor` (judges,) the least
    standard error: what one more disagreement changes. NaN where there are no data.
    """

    point: NDArray[np.float64]
    centre: NDArray[np.float64]
    matchups: NDArray[np.intp]
    left_out: NDArray[np.float64]
    count: NDArray[np.float64]
    present: NDArray[np.bool_]
    floor: NDArray[np.float64]

    def error(self, left_out: NDArray[np.float64], present: NDArray[np.bool_], floor: float) -> tuple[float, float]:
        """Jackknife error, not below `floor`, of a figure from its values without each unit, and its degrees."""
        error, degrees = jackknife_error(left_out[present], self.count[present])
        return max(error, floor), degrees

    def errors(self) -> NDArray[np.float64]:
        """Standard errors of the judges' figures (judges,)."""
        judges = range(len(self.point))
        return np.array([self.error(self.left_out[:, j], self.present[:, j], self.floor[j])[0] for j in judges])

    def bounds(self, judge: int, level: float) -> tuple[float, float]:
        """The interval of one judge's corrected figure; NaN where its error is unknown."""
        floor = float(self.floor[judge])
        error, degrees = self.error(self.left_out[:, judge], self.present[:, judge], floor)
        found = interval_below_one(float(self.centre[judge]), error, floor, degrees, level)
        return (np.nan, np.nan) if found is None else found


def _instructions(rows: CodedVerdicts) -> LeftOutUnits:
    """The instructions that occur, or the verdicts if there are none, alike ones as one entry."""
    if rows.instructions:
        count = (np.bincount(rows.unit, minlength=rows.instructions) > 0).astype(np.float64)
        return LeftOutUnits("instruction", int(count.sum()), count)
    levels, level = np.unique(rows.y, return_inverse=True)
    key = (rows.judge * max(len(rows.pairs), 1) + rows.pair) * max(len(levels), 1) + level
    unit_of, found = dense_codes(key, int(key.max(initial=0)) + 1)
    return LeftOutUnits("battle", len(rows), np.bincount(unit_of, minlength=len(found)).astype(np.float64), unit_of)


def _scores(
    shares: MatchupShares,
    rows: CodedVerdicts,
    units: LeftOutUnits,
    *,
    unit: Unit = "matchup",
    importance: NDArray[np.float64] | None = None,
) -> JackknifeScores:
    """The consistency of every judge, plain and corrected, and the corrected figure without each unit.

    `importance` (judges, pairs) are weights of matchups (None: all equal; 0 or NaN leaves a matchup out). Corrected
    figures use the matchups with at least two instructions; the unit `battle` has none: its figure is the plain one.
    """
    weight = np.ones((len(rows.judges), len(rows.pairs))) if importance is None else np.nan_to_num(importance, nan=0.0)
    pairs = max(len(rows.pairs), 1)
    column, found = dense_codes(shares.judge * pairs + shares.pair, max(len(rows.judges), 1) * pairs)
    judge, pair = np.divmod(found, pairs)
    mass = weight[judge, pair]
    matchups = np.bincount(judge[mass > 0], minlength=len(rows.judges))
    count = np.bincount(column, minlength=len(found)).astype(np.float64)
    total = _sum(column, shares.u, len(found))
    square = _sum(column, shares.u**2, len(found))
    entry, where = _entries(shares, units)
    u, at = shares.u[entry], column[entry]
    if unit == "battle":
        spread = _sum(column, shares.u * (1.0 - shares.u), len(found))
        sums = _SpreadSums(judge, mass * spread, mass * count, len(rows.judges))
        if units.what == "matchup":
            return sums.jackknife(sums.figure(), matchups, pair, units, judge, -mass * spread, -mass * count)
        change = -mass[at] * u * (1.0 - u), -mass[at]
        return sums.jackknife(sums.figure(), matchups, where, units, judge[at], *change)
    point = _SpreadSums(judge, mass * _plain(total, count), mass, len(rows.judges)).figure()
    corrected = _corrected(total, square, count)
    several = np.where(np.isfinite(corrected), mass, 0.0)
    corrected = np.nan_to_num(corrected)
    sums = _SpreadSums(judge, several * corrected, several, len(rows.judges), instructions=count)
    if units.what == "matchup":
        return sums.jackknife(point, matchups, pair, units, judge, -several * corrected, -several)
    without = _corrected(total[at] - u, square[at] - u**2, count[at] - 1.0)
    gone = ~np.isfinite(without)
    change = several[at] * (np.nan_to_num(without) - corrected[at]), np.where(gone, -several[at], 0.0)
    return sums.jackknife(point, matchups, where, units, judge[at], *change)


def _entries(shares: MatchupShares, units: LeftOutUnits) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows of shares to leave out, one a unit and matchup, and the units that they belong to."""
    if units.what == "instruction":
        return np.arange(len(shares)), shares.unit
    if units.unit_of is None:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
    where, first = np.unique(units.unit_of[shares.verdict], return_index=True)
    return first, where


def _plain(total: NDArray[np.float64], count: NDArray[np.float64]) -> NDArray[np.float64]:
    """p (1 - p) from the sum of shares and their number, each of shape (columns,)."""
    share = total / count
    return np.asarray(share * (1.0 - share))


def _corrected(
    total: NDArray[np.float64], square: NDArray[np.float64], count: NDArray[np.float64]
) -> NDArray[np.float64]:
    """p (1 - p) without the bias from few instructions, from sums of shares and of their squares; NaN below two."""
    enough = count > 1.5
    number = np.where(enough, count, 2.0)
    spread = total / number - (total * total - square) / (number * (number - 1.0))
    return np.asarray(np.where(enough, spread, np.nan))


class _SpreadSums:
    """Weighted sums behind a form of consistency: 1 - 4 `above` / `below`, both (judges,)."""

    def __init__(
        self,
        judge: NDArray[np.intp],
        above: NDArray[np.float64],
        below: NDArray[np.float64],
        judges: int,
        *,
        instructions: NDArray[np.float64] | None = None,
    ) -> None:
        """`judge`, `above`, `below` and `instructions` are of matchups (columns,); without the last, of battles."""
        self.judges = judges
        self.above = _sum(judge, above, judges)
        self.below = _sum(judge, below, judges)
        with np.errstate(divide="ignore", invalid="ignore"):
            if instructions is None:  # a battle that turns from 1 to 0.5 changes its own spread by 1/4
                self.floor = 1.0 / self.below
            else:
                used = (below > 0).astype(np.float64)
                mean = _sum(judge, used * instructions, judges) / _sum(judge, used, judges)
                self.floor = 4.0 * _sum(judge, below**2, judges) / self.below**2 / mean

    def figure(self) -> NDArray[np.float64]:
        return _quotient(self.above, self.below)

    def jackknife(
        self,
        point: NDArray[np.float64],
        matchups: NDArray[np.intp],
        where: NDArray[np.intp],
        units: LeftOutUnits,
        judge: NDArray[np.intp],
        above: NDArray[np.float64],
        below: NDArray[np.float64],
    ) -> JackknifeScores:
        """The figures without each unit: `above` and `below` (entries,) change when unit `where` is left out."""
        size, shape = len(units.count) * self.judges, (len(units.count), self.judges)
        key = where * self.judges + judge
        left_out = _quotient(
            self.above + _sum(key, above, size).reshape(shape),
            self.below + _sum(key, below, size).reshape(shape),
        )
        present = np.bincount(key, minlength=size).reshape(shape) > 0
        return JackknifeScores(point, self.figure(), matchups, left_out, units.count, present, self.floor)


def _sum(code: NDArray[np.intp], values: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Sums of values (entries,) by their code, 0 to `size`."""
    return np.bincount(code, values, size).astype(np.float64, copy=False)


def _quotient(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    some = below > 1e-12
    return np.asarray(np.where(some, 1.0 - 4.0 * above / np.where(some, below, 1.0), np.nan))


@dataclass(frozen=True, slots=True)
class JudgeConsistency:
    """One judge's figures, each None where there are no data for it; `lo` and `hi` bound the interval.

    `corrected` and `decisive_corrected` are `consistency` and `decisive` without the bias from few instructions: the
    intervals of these are about them, and they may lie outside [0, 1].
    `discrimination` is the slope shrunk for display and `discrimination_ml` the maximum-likelihood one, None at a
    ceiling; their `se` are clustered by instruction. Shares run from 0 to 1: `ties` of readable verdicts, `flips` of
    judgments readable in both orders whose winners are opposite, `first` of decisive verdicts that favour the
    completion shown first, `readable` of all verdicts. `verdicts` counts the readable verdicts used, `own_family` those
    left out because of the judge's family. `note` is a remark for readers of these figures.
    """

    judge: str
    consistency: float | None
    consistency_lo: float | None
    consistency_hi: float | None
    decisive: float | None
    decisive_lo: float | None
    decisive_hi: float | None
    corrected: float | None
    decisive_corrected: float | None
    discrimination: float | None
    discrimination_se: float | None
    discrimination_ml: float | None
    discrimination_ml_se: float | None
    ties: float | None
    flips: float | None
    first: float | None
    readable: float | None
    verdicts: int
    matchups: int
    decisive_matchups: int
    own_family: int
    note: str | None


@dataclass(frozen=True, slots=True)
class Consistency:
    """The figures of all judges, sorted by name, and how they were computed.

    `left_out` names what the jackknife of the intervals leaves out and `units` how many there are; `gaps` is the source
    of the gaps of matchups (`elo`, `other judges` or `none`); `slopes` holds all results on discrimination. `forms`
    keeps the figures without each unit, which `difference` uses to compare two judges.
    """

    judges: tuple[JudgeConsistency, ...]
    unit: Unit
    weights: Weights
    interval: Interval
    gaps: str
    left_out: str
    units: int
    level: float
    slopes: Discrimination | None = field(default=None, compare=False, repr=False)
    forms: Mapping[str, JackknifeScores] = field(default_factory=dict, compare=False, repr=False)

    def difference(
        self, judge: str, other: str, score: str = "consistency", *, level: float | None = None
    ) -> tuple[float, float, float]:
        """The difference of two judges' scores with its interval: (difference, lo, hi).

        `score` is `consistency`, `decisive` or `corrected`. The same units are left out of both judges' scores, so
        shared effects cancel; the interval is about the difference of the corrected figures, as each judge's own is.
        NaN where a judge has no score or there are fewer than two units. Raises `InputError`.
        """
        names = [row.judge for row in self.judges]
        for name in (judge, other):
            if name not in names:
                raise InputError(f"there is no judge {name!r}; {suggest(name, names)}")
        if score not in self.forms:
            raise InputError(f"score is {score!r}; {suggest(score, SCORES)}")
        wanted = self.level if level is None else level
        check_level(wanted)
        found = self.forms[score]
        first, second = names.index(judge), names.index(other)
        point = found.point[first] - found.point[second]
        centre = float(found.centre[first] - found.centre[second])
        if first == second:
            return float(point), centre, centre
        error, degrees = found.error(
            found.left_out[:, first] - found.left_out[:, second],
            found.present[:, first] | found.present[:, second],
            float(max(found.floor[first], found.floor[second])),
        )
        reach = float(student.ppf((1.0 + wanted) / 2.0, degrees)) * error
        return float(point), centre - reach, centre + reach


def consistency(
    battles: Battles,
    *,
    families: Mapping[str, str] | None = None,
    judge_families: Mapping[str, str] | None = None,
    own_family: bool = False,
    elo: Mapping[str, float] | None = None,
    unit: Unit = "matchup",
    weights: Weights = "even",
    interval: Interval = "instructions",
    level: float = 0.95,
) -> Consistency:
    """Consistency and discrimination of each judge, with jackknife intervals; arXiv 2509.23510.

    `families` maps models to families, `judge_families` judges; a judge without an entry has the family of the model
    with its name. Matchups with a model of the judge's family are left out unless `own_family`. `elo` are people's
    ratings by model: gaps come from them, or with fewer than two from a fit on the other judges. `unit` battle treats
    each (pair, instruction) separately; `weights` weights matchups by gap. Intervals leave out `instructions` (verdicts
    if the table has none), or `matchups` with all their verdicts, one at a time. Weights
    of rows are not used: every instruction counts equally. Raises `InputError` as `merge_orders` does, and for unknown
    options.

    >>> from venire.ratings import battles, consistency
    >>> rng = np.random.default_rng(0)
    >>> a, b = np.array([(0, 1), (1, 2), (0, 2)] * 160).T
    >>> y = (rng.random(480) < 0.7).astype(float)
    >>> asked = battles(a, b, y, instruction=np.arange(480) // 6, swapped=np.arange(480) % 6 > 2)
    >>> found = consistency(asked)
    >>> [(one.judge, one.matchups, round(one.decisive, 2)) for one in found.judges]
    [('unnamed', 3, 0.09)]
    """
    _check(unit, interval, level)
    rows = canonical(battles)
    kin = np.zeros(len(rows.status), dtype=np.bool_)
    if not own_family:
        kin = own_family_rows(rows, families, judge_families)
    used = code_rows(rows, (rows.status == Status.OK) & ~kin)
    units = _instructions(used)
    if interval == "matchups":
        units = LeftOutUnits("matchup", len(used.pairs), np.ones(len(used.pairs)))
    counted = count_verdicts(used)
    plain, decisive = matchup_shares(used, counted), matchup_shares(used, counted, decisive=True)
    source, gaps = _gaps(used, plain, elo)
    heavy = importance(weights, plain, gaps)
    decisive_heavy = importance(weights, decisive, gaps) if weights == "optimal" else heavy
    forms = {
        "consistency": _scores(plain, used, units, unit=unit, importance=heavy),
        "decisive": _scores(decisive, used, units, unit=unit, importance=decisive_heavy),
    }
    if unit == "matchup":
        forms["corrected"] = replace(forms["consistency"], point=forms["consistency"].centre)
    slopes = _slopes(used, counted, gaps)
    judges = _assemble(forms, habits(rows, kin, used, counted), slopes, level)
    return Consistency(
        judges=judges,
        unit=unit,
        weights=weights,
        interval=interval,
        gaps=source,
        left_out=units.what,
        units=units.number,
        level=level,
        slopes=slopes,
        forms=forms,
    )


def _check(unit: str, interval: str, level: float) -> None:
    for name, word, words in (("unit", unit, get_args(Unit)), ("interval", interval, get_args(Interval))):
        if word not in words:
            raise InputError(f"{name} is {word!r}; {suggest(word, words)}")
    check_level(level)


def _gaps(
    rows: CodedVerdicts, shares: MatchupShares, elo: Mapping[str, float] | None
) -> tuple[str, NDArray[np.float64]]:
    """The source of the gaps, and the gaps (judges, pairs), NaN where unknown."""
    known = gaps_from_elo(rows, elo or {})
    if np.isfinite(known).any():
        return "elo", known
    fitted = gaps_from_other_judges(rows, shares)
    return "other judges" if np.isfinite(fitted).any() else "none", fitted


def _slopes(rows: CodedVerdicts, counted: VerdictCounts | None, gaps: NDArray[np.float64]) -> Discrimination | None:
    """Discrimination on the decisive verdicts whose gap is known; None where there is none."""
    both = np.concatenate([gaps, -gaps], axis=1)
    if counted is None:
        won = rows.y > 0.5
        taken = np.flatnonzero((rows.y != 0.5) & np.isfinite(gaps[rows.judge, rows.pair]))
        judge, value = rows.judge[taken], rows.pair[taken] + len(rows.pairs) * rows.swapped[taken]
        first = (won ^ rows.swapped)[taken].astype(np.intp)
        number, unit = np.ones(len(taken), dtype=np.intp), own_units(judge, value, first)
    else:
        decided = counted.count - counted.ties
        cell, order = np.nonzero(decided * np.isfinite(gaps[counted.judge, counted.pair])[:, None])
        judge, unit = counted.judge[cell], counted.unit[cell]
        value, number = counted.pair[cell] + len(rows.pairs) * order, decided[cell, order]
        first = np.where(order == 0, counted.won[cell, order], number - counted.won[cell, order])
    if not len(judge):
        return None
    entries = gap_rows(judge, value, both, unit, number, first, judges=len(rows.judges), ordered=rows.ordered)
    return fit_discrimination(entries, rows.judges)


def _figures(name: str, found: JackknifeScores, code: int, level: float) -> dict[str, float | None]:
    """A score and its interval, which is about the corrected figure, within [0, 1] and never of no width.

    With few instructions a matchup looks more one-sided than it is, so that the plain figure leans high; the corrected
    figure does not (docs/judges.md).
    """
    lo, hi = found.bounds(code, level)
    return {
        name: finite_or_none(found.point[code]),
        f"{name}_lo": finite_or_none(float(np.clip(lo, 0.0, 1.0))),
        f"{name}_hi": finite_or_none(float(np.clip(hi, min(found.floor[code], 1.0), 1.0))),
    }


def _assemble(
    forms: Mapping[str, JackknifeScores], seen: Habits, slopes: Discrimination | None, level: float
) -> tuple[JudgeConsistency, ...]:
    made = []
    for code, name in enumerate(seen.judges):
        figures: dict[str, float | None] = {}
        for score, corrected in _CORRECTED.items():
            figures |= _figures(score, forms[score], code, level)
            figures[corrected] = finite_or_none(forms[score].centre[code]) if "corrected" in forms else None
        for key, values in _of_slopes(slopes).items():
            figures[key] = None if values is None else finite_or_none(values[code])
        made.append(
            JudgeConsistency(
                judge=name,
                **figures,
                ties=seen.ties[code],
                flips=seen.flips[code],
                first=seen.first[code],
                readable=seen.readable[code],
                verdicts=seen.verdicts[code],
                matchups=int(forms["consistency"].matchups[code]),
                decisive_matchups=int(forms["decisive"].matchups[code]),
                own_family=seen.own_family[code],
                note=_note(slopes, name),
            )
        )
    return tuple(made)


def _of_slopes(slopes: Discrimination | None) -> dict[str, NDArray[np.float64] | None]:
    return {
        "discrimination": None if slopes is None else slopes.theta,
        "discrimination_se": None if slopes is None else slopes.se,
        "discrimination_ml": None if slopes is None else slopes.ml,
        "discrimination_ml_se": None if slopes is None else slopes.ml_se,
    }


def _note(slopes: Discrimination | None, judge: str) -> str | None:
    """The remark for readers of one judge's figures, or None."""
    if slopes is not None and judge in slopes.ceiling:
        return "every decisive verdict follows the gap: discrimination is at its ceiling, bounded by its prior"
    if slopes is not None and judge in slopes.floor:
        return "every decisive verdict goes against the gap: discrimination is at its floor"
    return None
