"""Consistency of judges: how uniformly each decides its matchups, in three forms, with intervals.

Consistency is 1 - 4 times the mean over matchups of p (1 - p), p being A's mean share over instructions: 1 when every
matchup is always decided the same way, 0 when all are even (arXiv 2509.23510). Decisive consistency first leaves ties
out; corrected consistency removes the bias from few instructions. The result also contains discrimination, which
measures how verdicts follow the gap, and habits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.records import Status
from venire.ratings.data.judgments import canonical
from venire.ratings.data.validation import check_draws, check_level, finite_or_none
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

__all__ = [
    "Consistency",
    "Interval",
    "JudgeConsistency",
    "ResampledUnits",
    "ScoreDraws",
    "Unit",
    "consistency",
]

_Form = Literal["plain", "corrected"]

Unit = Literal["matchup", "battle"]

Interval = Literal["instructions", "matchups"]

_BLOCK = 1 << 17
"""Entries of one block of replicates: about 1 MB, which fits into cache."""

_DENSE = 0.05
"""Share of filled cells from which a table of units is multiplied as a dense matrix."""

_CELLS = 1 << 25

SCORES = ("consistency", "decisive", "corrected")


@dataclass(frozen=True, slots=True, eq=False)
class ResampledUnits:
    """Bootstrap weights: the count of each unit in each replicate, `weights` (replicates, units).

    `what` is the resampled unit (`instruction`, `battle` for a table without instructions, or `matchup`), `number`
    their number. `unit_of` gives the unit of each readable verdict where verdicts are drawn.
    """

    what: Literal["instruction", "battle", "matchup"]
    number: int
    weights: NDArray[np.float64]
    unit_of: NDArray[np.intp] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ScoreDraws:
    """Bootstrap of consistency: `point` (judges,), and the number of `matchups` that it averages.

    `centre` (judges,) is the corrected figure, the centre of intervals; `errors` (replicates, judges) are its
    replicates minus their true value in the bootstrap distribution. NaN where there are no data.
    """

    point: NDArray[np.float64]
    centre: NDArray[np.float64]
    errors: NDArray[np.float64]
    matchups: NDArray[np.intp]


def _draw_units(rows: CodedVerdicts, replicates: int, seed: int) -> ResampledUnits:
    """Draw the instructions that occur, or the verdicts if there are none, as counts of equal units.

    The draws depend only on the number of instructions and the seed. Raises `InputError` for a negative number of
    replicates or a negative seed.
    """
    check_draws(replicates, seed)
    if rows.instructions:
        counts, unit_of = np.bincount(rows.unit, minlength=rows.instructions), None
        size = (counts > 0).astype(np.float64)
    else:
        levels, level = np.unique(rows.y, return_inverse=True)
        key = (rows.judge * max(len(rows.pairs), 1) + rows.pair) * max(len(levels), 1) + level
        unit_of, found = dense_codes(key, int(key.max(initial=0)) + 1)
        size = np.bincount(unit_of, minlength=len(found)).astype(np.float64)
    number = int(size.sum())
    weights = np.zeros((replicates, len(size)))
    if number:
        occurs = size > 0
        drawn = np.random.default_rng(seed).multinomial(number, size[occurs] / number, size=replicates)
        weights[:, occurs] = drawn / size[occurs]
    return ResampledUnits("instruction" if rows.instructions else "battle", number, weights, unit_of)


def _draw_matchups(rows: CodedVerdicts, replicates: int, seed: int) -> ResampledUnits:
    """Draw the pairs that met, with all their verdicts, the same for all judges; raises as `_draw_units` does."""
    if replicates < 0 or seed < 0:
        return _draw_units(rows, replicates, seed)
    number = len(rows.pairs)
    share = np.full(number, 1.0 / max(number, 1))
    weights = np.random.default_rng(seed).multinomial(number, share, size=replicates if number else 0)
    return ResampledUnits("matchup", number, weights.astype(np.float64))


def _scores(
    shares: MatchupShares,
    rows: CodedVerdicts,
    drawn: ResampledUnits,
    *,
    unit: Unit = "matchup",
    importance: NDArray[np.float64] | None = None,
) -> ScoreDraws:
    """The consistency of every judge, plain and corrected, and the errors of the corrected figure on the drawn units.

    `importance` (judges, pairs) are weights of matchups (None: all equal; 0 or NaN leaves a matchup out). Corrected
    figures use the matchups with at least two instructions; the unit `battle` has none, and its errors are those of the
    plain figure.
    """
    weight = np.ones((len(rows.judges), len(rows.pairs))) if importance is None else np.nan_to_num(importance, nan=0.0)
    if unit == "battle":
        mass, spread = weight[shares.judge, shares.pair], shares.u * (1.0 - shares.u)
        return _ratio(_WeightedSpread(spread, mass, shares.judge, shares.pair, _units(shares, drawn)), rows, drawn)
    table = _ShareColumns.of(shares, rows, drawn)
    whole = np.ones((1, table.units))
    mass = weight[table.judge, table.pair]
    plain, corrected = table.spread(whole, "plain"), table.spread(whole, "corrected")
    found = _ratio(_WeightedSpread(plain[0], mass, table.judge, table.pair, None), rows, drawn)
    several = np.where(np.isfinite(corrected[0]), mass, 0.0)
    if drawn.what == "matchup":
        about = _ratio(_WeightedSpread(corrected[0], several, table.judge, table.pair, None), rows, drawn)
        return ScoreDraws(found.point, about.point, about.errors, found.matchups)
    # In resampling the observed data are the truth, so corrected replicates scatter about the plain mean.
    seen = table.by_judge(np.where(several > 0, plain, np.nan), several)[0]
    errors = np.full((len(drawn.weights) if drawn.number > 1 else 0, len(rows.judges)), np.nan)
    for block in table.blocks(len(errors)):
        errors[block] = table.by_judge(table.spread(drawn.weights[block], "corrected"), several) - seen
    return ScoreDraws(found.point, table.by_judge(corrected, several)[0], errors, found.matchups)


@dataclass(frozen=True, slots=True, eq=False)
class _WeightedSpread:
    """p (1 - p) of parts that resampling does not change: their mass, and their judge and unit."""

    spread: NDArray[np.float64]
    mass: NDArray[np.float64]
    judge: NDArray[np.intp]
    pair: NDArray[np.intp]
    unit: NDArray[np.intp] | None


def _ratio(parts: _WeightedSpread, rows: CodedVerdicts, drawn: ResampledUnits) -> ScoreDraws:
    """1 - 4 * weighted mean spread of every judge, and its errors where whole parts are drawn."""
    judges = len(rows.judges)
    used = parts.mass > 0
    spread = np.where(used, parts.spread, 0.0) * parts.mass
    unit = parts.pair if drawn.what == "matchup" else parts.unit
    units = drawn.weights.shape[1] if unit is not None else 1
    key = parts.judge if unit is None else unit * judges + parts.judge
    above = np.bincount(key, spread, units * judges).reshape(units, judges)
    below = np.bincount(key, parts.mass, units * judges).reshape(units, judges)
    point = _quotient(above.sum(axis=0), below.sum(axis=0))
    weights = drawn.weights if unit is not None and drawn.number > 1 else np.zeros((0, units))
    distinct = np.unique(parts.judge[used] * max(len(rows.pairs), 1) + parts.pair[used])
    matchups = np.bincount(distinct // max(len(rows.pairs), 1), minlength=judges)
    return ScoreDraws(point, point, _quotient(weights @ above, weights @ below) - point, matchups)


def _quotient(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    some = below > 0
    return np.asarray(np.where(some, 1.0 - 4.0 * above / np.where(some, below, 1.0), np.nan))


def _units(shares: MatchupShares, drawn: ResampledUnits) -> NDArray[np.intp]:
    return shares.unit if drawn.unit_of is None else drawn.unit_of[shares.verdict]


@dataclass(frozen=True, slots=True, eq=False)
class _ShareColumns:
    """The counts behind each column (a judge and a matchup), by unit.

    `total`, `count` and `square` have shape (units, columns); `count` is None where every cell holds one share.
    `parts` are the columns of each judge.
    """

    units: int
    total: Any
    count: Any
    square: Any
    judge: NDArray[np.intp]
    pair: NDArray[np.intp]
    parts: tuple[slice, ...]

    @classmethod
    def of(cls, shares: MatchupShares, rows: CodedVerdicts, drawn: ResampledUnits) -> _ShareColumns:
        pairs, judges = max(len(rows.pairs), 1), len(rows.judges)
        column, found = dense_codes(shares.judge * pairs + shares.pair, max(judges, 1) * pairs)
        judge, pair = np.divmod(found, pairs)
        by_matchup = drawn.what == "matchup"
        units = 1 if by_matchup else drawn.weights.shape[1]
        unit = np.zeros(len(shares), dtype=np.intp) if by_matchup else _units(shares, drawn)
        edges = np.searchsorted(judge, np.arange(judges + 1))
        make = _DrawTable(unit, column, (units, len(found)))
        return cls(
            units=units,
            total=make.sums(shares.u),
            count=make.counts(),
            square=make.sums(shares.u**2),
            judge=judge,
            pair=pair,
            parts=tuple(slice(start, stop) for start, stop in pairwise(edges.tolist())),
        )

    def blocks(self, replicates: int) -> Iterator[slice]:
        size = max(8, _BLOCK // max(len(self.pair), 1))
        for start in range(0, replicates, size):
            yield slice(start, min(start + size, replicates))

    def spread(self, weights: NDArray[np.float64], form: _Form) -> NDArray[np.float64]:
        """p (1 - p) by replicate and column, NaN where a replicate has too few data for it."""
        number = weights.sum(axis=1, keepdims=True) if self.count is None else weights @ self.count
        total = weights @ self.total
        least = 2.0 if form == "corrected" else 0.5
        enough = number >= least
        count = np.where(enough, number, 2.0)
        if form == "corrected":
            square = (total * total - weights @ self.square) / (count * (count - 1.0))
            spread = total / count - square
        else:
            share = total / count
            spread = share * (1.0 - share)
        return np.asarray(np.where(enough, spread, np.nan))

    def by_judge(self, spread: NDArray[np.float64], mass: NDArray[np.float64]) -> NDArray[np.float64]:
        """1 - 4 * mean spread (replicates, judges) over the columns of a replicate; NaN where it has none."""
        known = np.isfinite(spread)
        complete = bool(known.all())
        filled = spread if complete else np.where(known, spread, 0.0)
        found = np.full((len(spread), len(self.parts)), np.nan)
        for judge, part in enumerate(self.parts):
            weight = mass[part]
            whole = np.full(len(spread), weight.sum()) if complete else known[:, part] @ weight
            some = whole > 0
            found[some, judge] = 1.0 - 4.0 * (filled[:, part] @ weight)[some] / whole[some]
        return found


class _DrawTable:
    """Sums values by unit and column: dense where enough cells are filled, sparse otherwise."""

    def __init__(self, unit: NDArray[np.intp], column: NDArray[np.intp], shape: tuple[int, int]) -> None:
        cells = shape[0] * shape[1]
        self._dense = cells <= _CELLS and len(unit) >= _DENSE * cells
        self._unit, self._column, self._shape, self._cells = unit, column, shape, cells

    def sums(self, values: NDArray[np.float64]) -> Any:
        if not self._dense:
            return csr_array((values, (self._unit, self._column)), shape=self._shape)
        flat = np.bincount(self._unit * self._shape[1] + self._column, values, self._cells)
        return flat.reshape(self._shape)

    def counts(self) -> Any:
        table = self.sums(np.ones(len(self._unit)))
        return None if self._dense and bool((table == 1.0).all()) else table


@dataclass(frozen=True, slots=True)
class JudgeConsistency:
    """One judge's figures, each None where there are no data for it; `lo` and `hi` bound the interval.

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
    corrected_lo: float | None
    corrected_hi: float | None
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

    `drawn` names the unit that the intervals resample and `units` their number; `gaps` is the source of the gaps of
    matchups (`elo`, `other judges` or `none`); `slopes` holds all results on discrimination. `forms` keeps the draws,
    which `difference` uses to compare two judges.
    """

    judges: tuple[JudgeConsistency, ...]
    unit: Unit
    weights: Weights
    interval: Interval
    gaps: str
    drawn: str
    units: int
    replicates: int
    seed: int
    level: float
    slopes: Discrimination | None = field(default=None, compare=False, repr=False)
    forms: Mapping[str, ScoreDraws] = field(default_factory=dict, compare=False, repr=False)

    def difference(
        self, judge: str, other: str, score: str = "consistency", *, level: float | None = None
    ) -> tuple[float, float, float]:
        """The difference of two judges' scores with its interval: (difference, lo, hi).

        `score` is `consistency`, `decisive` or `corrected`. Both judges' scores come from the same draws, so shared
        effects cancel; the interval corrects for the bias from few instructions, as each judge's own interval does. NaN
        where a judge has no score, or there are no draws. Raises `InputError`.
        """
        names = [row.judge for row in self.judges]
        for name in (judge, other):
            if name not in names:
                raise InputError(f"there is no judge {name!r}; choose from {', '.join(names)}")
        if score not in self.forms:
            raise InputError(f"score is {score!r}; choose one of {', '.join(SCORES)}")
        wanted = self.level if level is None else level
        check_level(wanted)
        found = self.forms[score]
        first, second = names.index(judge), names.index(other)
        point = found.point[first] - found.point[second]
        centre = found.centre[first] - found.centre[second]
        lo, hi = _bounds(found.errors[:, first] - found.errors[:, second], wanted)
        return float(point), float(centre - hi), float(centre - lo)


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
    replicates: int = 200,
    seed: int = 0,
    level: float = 0.95,
) -> Consistency:
    """Consistency and discrimination of each judge, with basic bootstrap intervals; arXiv 2509.23510.

    `families` maps models to families, `judge_families` judges; a judge without an entry has the family of the model
    with its name. Matchups with a model of the judge's family are left out unless `own_family`. `elo` are people's
    ratings by model: gaps come from them, or with fewer than two from a fit on the other judges. `unit` battle treats
    each (pair, instruction) separately; `weights` weights matchups by gap. Intervals resample `instructions` (verdicts
    if the table has none), or `matchups` with all their verdicts, with the same draws for all judges and forms. Weights
    of rows are not used: every instruction counts equally. Raises `InputError` as `merge_orders` does, and for unknown
    options.

    >>> from venire.ratings import battles, consistency
    >>> rng = np.random.default_rng(0)
    >>> a, b = np.array([(0, 1), (1, 2), (0, 2)] * 160).T
    >>> y = (rng.random(480) < 0.7).astype(float)
    >>> asked = battles(a, b, y, instruction=np.arange(480) // 6, swapped=np.arange(480) % 6 > 2)
    >>> found = consistency(asked, replicates=50)
    >>> [(one.judge, one.matchups, round(one.decisive, 2)) for one in found.judges]
    [('unnamed', 3, 0.09)]
    """
    _check(unit, interval, level)
    rows = canonical(battles)
    kin = np.zeros(len(rows.status), dtype=np.bool_)
    if not own_family:
        kin = own_family_rows(rows, families, judge_families)
    used, drawn = _used(rows, kin, interval, replicates, seed)
    counted = count_verdicts(used)
    plain, decisive = matchup_shares(used, counted), matchup_shares(used, counted, decisive=True)
    source, gaps = _gaps(used, plain, elo)
    heavy = importance(weights, plain, gaps)
    decisive_heavy = importance(weights, decisive, gaps) if weights == "optimal" else heavy
    forms = {
        "consistency": _scores(plain, used, drawn, unit=unit, importance=heavy),
        "decisive": _scores(decisive, used, drawn, unit=unit, importance=decisive_heavy),
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
        drawn=drawn.what,
        units=drawn.number,
        replicates=replicates,
        seed=seed,
        level=level,
        slopes=slopes,
        forms=forms,
    )


def _check(unit: str, interval: str, level: float) -> None:
    for name, word, words in (("unit", unit, get_args(Unit)), ("interval", interval, get_args(Interval))):
        if word not in words:
            raise InputError(f"{name} is {word!r}; choose one of {', '.join(words)}")
    check_level(level)


def _used(
    rows: Battles, kin: NDArray[np.bool_], interval: Interval, replicates: int, seed: int
) -> tuple[CodedVerdicts, ResampledUnits]:
    """The readable rows outside `kin`, and the resampling units of all readable rows."""
    readable = rows.status == Status.OK
    known = code_rows(rows, readable)
    drawn = (_draw_matchups if interval == "matchups" else _draw_units)(known, replicates, seed)
    used = code_rows(rows, readable & ~kin) if kin.any() else known
    if drawn.unit_of is not None:
        drawn = replace(drawn, unit_of=drawn.unit_of[~kin[readable]])
    return used, drawn


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


def _bounds(errors: NDArray[np.float64], level: float) -> tuple[float, float]:
    """Quantiles of errors (replicates,); NaN with fewer than two known values."""
    known = errors[np.isfinite(errors)]
    if len(known) < 2:
        return np.nan, np.nan
    tail = (1.0 - level) / 2.0
    lo, hi = np.quantile(known, [tail, 1.0 - tail])
    return float(lo), float(hi)


def _figures(name: str, found: ScoreDraws | None, code: int, level: float) -> dict[str, float | None]:
    """A score and its basic interval: the corrected estimate minus the quantiles of its errors, in reverse order.

    With few instructions a matchup looks more one-sided than it is, and replicates, which repeat instructions, increase
    this bias: with 30 instructions the percentile interval covers 0.01 to 0.81 instead of 0.95, and with two a basic
    interval about the plain figure never covers. The corrected figure does not have this bias (docs/judges.md).
    """
    if found is None:
        return {name: None, f"{name}_lo": None, f"{name}_hi": None}
    point = found.point[code]
    low, high = _bounds(found.errors[:, code], level)
    bounds = np.array([found.centre[code] - high, found.centre[code] - low])
    if name != "corrected":
        bounds = np.clip(bounds, 0.0, 1.0)
    return {
        name: finite_or_none(point),
        f"{name}_lo": finite_or_none(bounds[0]),
        f"{name}_hi": finite_or_none(bounds[1]),
    }


def _assemble(
    forms: Mapping[str, ScoreDraws], seen: Habits, slopes: Discrimination | None, level: float
) -> tuple[JudgeConsistency, ...]:
    made = []
    for code, name in enumerate(seen.judges):
        figures: dict[str, float | None] = {}
        for score in SCORES:
            figures |= _figures(score, forms.get(score), code, level)
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
                note=_note(figures, slopes, name),
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


def _note(figures: Mapping[str, float | None], slopes: Discrimination | None, judge: str) -> str | None:
    """The remark for readers of one judge's figures, or None."""
    said = []
    above = [score for score in ("consistency", "decisive") if _above(figures[score], figures[f"{score}_hi"])]
    if above:
        said.append(
            f"so few instructions a matchup make {' and '.join(above)} lean high, above the interval, "
            "which allows for that as corrected does"
        )
    if slopes is not None and judge in slopes.ceiling:
        said.append("every decisive verdict follows the gap: discrimination is at its ceiling, bounded by its prior")
    if slopes is not None and judge in slopes.floor:
        said.append("every decisive verdict goes against the gap: discrimination is at its floor")
    return "; ".join(said) or None


def _above(point: float | None, hi: float | None) -> bool:
    return point is not None and hi is not None and point > hi + 1e-9
