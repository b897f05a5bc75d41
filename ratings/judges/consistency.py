"""How firmly a judge decides matchups: consistency in its forms, discrimination, and the habits that stand beside them.

Consistency is 1 - 4 times the mean over matchups of p (1 - p), p being A's mean share over instructions: 1 when
every matchup is decided one way throughout, 0 when all are even. Decisive consistency leaves ties out first;
corrected consistency takes out what few instructions add. Discrimination asks how verdicts follow the gap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.records import Status
from venire.ratings.data.judgments import canonical
from venire.ratings.data.validation import check_level, finite_or_none
from venire.ratings.judges.consistency_forms import Drawn, Draws, Interval, Unit, draw_matchups, draw_units, scores
from venire.ratings.judges.discrimination import Discrimination, alone, fit_discrimination, gap_rows
from venire.ratings.judges.judge_habits import Habits, habits, own_family_rows
from venire.ratings.judges.matchup_gaps import Weights, gaps_from_elo, gaps_from_other_judges, importance
from venire.ratings.judges.matchups import Coded, MatchupShares, Tally, code_rows, matchup_shares, tally

__all__ = ["Consistency", "JudgeConsistency", "consistency"]

SCORES = ("consistency", "decisive", "corrected")


@dataclass(frozen=True, slots=True)
class JudgeConsistency:
    """One judge's figures, each None where there is nothing to take it from; `lo` and `hi` bound the interval.

    `discrimination` is the slope shrunk for display and `discrimination_ml` the maximum-likelihood one, None at a
    ceiling; their `se` are clustered by instruction. Shares run from 0 to 1: `ties` of readable verdicts, `flips` of
    judgments readable in both orders whose winners are opposite, `first` of decisive verdicts that favour the
    completion shown first, `readable` of all verdicts. `verdicts` counts the readable ones used, `own_family` those
    left out for kinship. `note` says what a reader of these figures must know.
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
    """The figures of all judges, sorted by name, and how they were made.

    `drawn` names what the intervals draw and `units` how many there are; `gaps` where the gaps of matchups come from
    (`elo`, `other judges` or `none`); `slopes` holds everything about discrimination. `forms` keeps the draws, from
    which `difference` speaks of two judges.
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
    forms: Mapping[str, Draws] = field(default_factory=dict, compare=False, repr=False)

    def difference(
        self, judge: str, other: str, score: str = "consistency", *, level: float | None = None
    ) -> tuple[float, float, float]:
        """How much higher one judge's score is than another's, with its interval: (difference, lo, hi).

        `score` is `consistency`, `decisive` or `corrected`. Both judges' scores come from the same draws, so what
        they share cancels; the interval allows for the lean of few instructions, as each judge's own does. NaN
        where a judge has no score, or nothing could be drawn. Raises `InputError`.
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

    `families` maps a model to its family, `judge_families` a judge; a judge without one has that of the model of its
    name. Matchups with a model of the judge's family are left out unless `own_family`. `elo` are people's ratings by
    model: gaps come from them, and without at least two from a fit on the other judges. `unit` battle takes each
    (pair, instruction) on its own; `weights` weighs matchups by gap. Intervals draw `instructions` (verdicts where the
    table names none), or `matchups` with all their verdicts; the same draws for all judges and forms. Weights of rows
    are not used: every instruction counts the same. Raises `InputError` as `merge_orders` does, and for unknown words.
    """
    _check(unit, interval, level)
    rows = canonical(battles)
    kin = np.zeros(len(rows.status), dtype=np.bool_)
    if not own_family:
        kin = own_family_rows(rows, families, judge_families)
    used, drawn = _used(rows, kin, interval, replicates, seed)
    counted = tally(used)
    plain, decisive = matchup_shares(used, counted), matchup_shares(used, counted, decisive=True)
    source, gaps = _gaps(used, plain, elo)
    heavy = importance(weights, plain, gaps)
    decisive_heavy = importance(weights, decisive, gaps) if weights == "optimal" else heavy
    forms = {
        "consistency": scores(plain, used, drawn, unit=unit, importance=heavy),
        "decisive": scores(decisive, used, drawn, unit=unit, importance=decisive_heavy),
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


def _used(rows: Battles, kin: NDArray[np.bool_], interval: Interval, replicates: int, seed: int) -> tuple[Coded, Drawn]:
    """The readable rows outside `kin`, and what is drawn of all that are readable."""
    readable = rows.status == Status.OK
    known = code_rows(rows, readable)
    drawn = (draw_matchups if interval == "matchups" else draw_units)(known, replicates, seed)
    used = code_rows(rows, readable & ~kin) if kin.any() else known
    if drawn.unit_of is not None:
        drawn = replace(drawn, unit_of=drawn.unit_of[~kin[readable]])
    return used, drawn


def _gaps(rows: Coded, shares: MatchupShares, elo: Mapping[str, float] | None) -> tuple[str, NDArray[np.float64]]:
    """Where the gaps come from, and the gaps (judges, pairs), NaN where they are not known."""
    known = gaps_from_elo(rows, elo or {})
    if np.isfinite(known).any():
        return "elo", known
    fitted = gaps_from_other_judges(rows, shares)
    return "other judges" if np.isfinite(fitted).any() else "none", fitted


def _slopes(rows: Coded, counted: Tally | None, gaps: NDArray[np.float64]) -> Discrimination | None:
    """Discrimination on the decisive verdicts whose gap is known; None where there is none."""
    both = np.concatenate([gaps, -gaps], axis=1)
    if counted is None:
        won = rows.y > 0.5
        taken = np.flatnonzero((rows.y != 0.5) & np.isfinite(gaps[rows.judge, rows.pair]))
        judge, value = rows.judge[taken], rows.pair[taken] + len(rows.pairs) * rows.swapped[taken]
        first = (won ^ rows.swapped)[taken].astype(np.intp)
        number, unit = np.ones(len(taken), dtype=np.intp), alone(judge, value, first)
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
    """Quantiles of errors (replicates,); NaN with fewer than two that are known."""
    known = errors[np.isfinite(errors)]
    if len(known) < 2:
        return np.nan, np.nan
    tail = (1.0 - level) / 2.0
    lo, hi = np.quantile(known, [tail, 1.0 - tail])
    return float(lo), float(hi)


def _figures(name: str, found: Draws | None, code: int, level: float) -> dict[str, float | None]:
    """A score and its basic interval: the corrected estimate less the quantiles of its errors, turned about.

    Few instructions make a matchup look more one-sided than it is, and replicates, which repeat instructions, more
    so again: their percentiles cover 0.01 to 0.81 of the time instead of 0.95 with 30 instructions, and with two a
    basic interval about the plain figure never. The corrected figure has no such lean (docs/judges.md).
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
    forms: Mapping[str, Draws], seen: Habits, slopes: Discrimination | None, level: float
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
    """What a reader must know of one judge's figures, or None."""
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
