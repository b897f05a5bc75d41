"""The figures of one simulated campaign, and the truth that they are compared with.

The true value for an interval is the rating from infinitely many verdicts of these judges. It is not the Elo by
people's votes that drives the judges: the judges have their own slopes, ties and preferences, and a Bradley-Terry fit
is on the judges' scale. It is the limit of the fit when every pair of models is judged on ever more instructions like
those of the field, in both orders, by every judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from venire.arena.records import Status
from venire.arena.scale import LOGITS_PER_POINT, to_elo
from venire.experiments.contestants import ContestantField
from venire.judges import PROTOCOLS
from venire.ratings.data.statistics import kendall, norm, pearson, spearman
from venire.ratings.pairwise.bradley_terry import bradley_terry_wins
from venire.reports.board.board import Board
from venire.reports.board.model_rows import ModelRow
from venire.session import Session
from venire.simulation.judge import Profile

TOP = 3
"""Number of best models that the figure for the top checks."""

MIN_JUDGES = 4
"""Minimum number of judges for a correlation over judges."""


_QUANTILES = 64
_MAX_LOG_RATIO = 2.0


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: its heading, whether less is better (None: neither), and its description."""

    heading: str
    less: bool | None
    about: str


FIGURES: Mapping[str, Figure] = {
    "error": Figure("error", True, "mean distance from the known Elo in points, after the best line"),
    "pearson": Figure("r", False, "correlation with the known Elo"),
    "spearman": Figure("Spearman", False, "correlation of ranks with those of the known Elo"),
    "kendall": Figure("Kendall", False, "tau-b with the known Elo"),
    "top": Figure(f"top {TOP}", False, f"whether the best {TOP} are those of the known Elo"),
    "half_width": Figure("half width", True, "of the 95 % intervals, in points of the judges' own scale"),
    "coverage": Figure("coverage", None, "share of the intervals that hold the long-run rating"),
    "long_run_error": Figure("to long run", True, "mean distance from the long-run rating, in points"),
    "unrated": Figure("unrated", True, "models without a rating that compares with most others"),
    "consistency": Figure("consistency r", False, "correlation over judges of consistency with their known slope"),
    "decisive": Figure("decisive r", False, "the same of decisive consistency"),
    "discrimination": Figure("discrimination r", False, "the same of discrimination"),
    "judgments": Figure("judgments", None, "that models are rated from"),
    "calls": Figure("calls", None, "asked"),
    "dollars": Figure("money", None, "US dollars"),
    "seconds": Figure("time", None, "seconds that a real run with these latencies and limits would take"),
    "unreadable": Figure("unreadable", None, "share of verdicts without a reading"),
}
"""Every figure of a run by its name."""


def figures(
    session: Session, elo: Mapping[str, float], truth: NDArray[np.float64] | None, slopes: Mapping[str, float]
) -> dict[str, float | None]:
    """All figures but the time, None for a figure without data.

    `elo` are the known ratings, `truth` (models,) the long-run logits in the order of the sorted names, `slopes` those
    of the judges by name.
    """
    board = session.board()
    rows = _largest(board)
    statuses: Mapping[str, int] = board.diagnostics.counts.statuses
    asked = sum(statuses.values())
    return {
        **_of_models(rows, elo),
        **_of_intervals(rows, sorted(elo), truth),
        "unrated": float(len(elo) - len(rows)),
        **{name: _over_judges(board, name, slopes) for name in ("consistency", "decisive", "discrimination")},
        "judgments": float(board.diagnostics.counts.judgments),
        "calls": float(session.spending.calls),
        "dollars": session.spending.nano / 1e9,
        "unreadable": 1.0 - statuses[Status.OK.name.lower()] / asked if asked else None,
    }


def _largest(board: Board) -> list[ModelRow]:
    """The rated models of the largest group of models that can be compared with one another."""
    rated = [row for row in board.models if row.elo is not None]
    size = Counter(row.group for row in rated)
    most = max(size, key=lambda group: (size[group], -(group or 0)), default=None)
    return sorted((row for row in rated if row.group == most), key=lambda row: row.model)


def _of_models(rows: Sequence[ModelRow], elo: Mapping[str, float]) -> dict[str, float | None]:
    if len(rows) <= TOP:
        return dict.fromkeys(("error", "pearson", "spearman", "kendall", "top"))
    # Values that print alike are ties: the last bits must not decide.
    ours = np.array([round(row.elo or 0.0, 6) for row in rows])
    known = np.array([elo[row.model] for row in rows])
    best = {rows[place].model for place in np.argsort(-ours, kind="stable")[:TOP]}
    really = set(sorted(elo, key=lambda model: (-elo[model], model))[:TOP])
    return {
        "error": _after_the_best_line(ours, known),
        "pearson": _number(pearson, ours, known),
        "spearman": _number(spearman, ours, known),
        "kendall": _number(kendall, ours, known),
        "top": float(best == really),
    }


def _after_the_best_line(ours: NDArray[np.float64], known: NDArray[np.float64]) -> float:
    """Mean distance in points of the known ratings, after a linear fit that corrects the scale of judges' slopes."""
    x = ours - ours.mean()
    y = known - known.mean()
    slope = float(x @ y) / float(x @ x) if float(x @ x) > 0.0 else 0.0
    return float(np.abs(y - slope * x).mean())


_Correlation = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


def _number(by: _Correlation, ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> float | None:
    value = float(by(ours[None], theirs)[0])
    return None if np.isnan(value) else value


def _of_intervals(
    rows: Sequence[ModelRow], models: Sequence[str], truth: NDArray[np.float64] | None
) -> dict[str, float | None]:
    """Width and coverage of the intervals; the long-run ratings are centred like the rated models."""
    bounds = [(row.lo, row.hi) for row in rows if row.lo is not None and row.hi is not None]
    found: dict[str, float | None] = dict.fromkeys(("half_width", "coverage", "long_run_error"))
    if bounds:
        found["half_width"] = float(np.mean([(hi - lo) / 2.0 for lo, hi in bounds]))
    if truth is None or not rows:
        return found
    place = {model: n for n, model in enumerate(models)}
    there = to_elo(truth[[place[row.model] for row in rows]])
    found["long_run_error"] = float(np.mean([abs((row.elo or 0.0) - at) for row, at in zip(rows, there, strict=True)]))
    held = [
        row.lo <= at <= row.hi
        for row, at in zip(rows, there.tolist(), strict=True)
        if row.lo is not None and row.hi is not None
    ]
    found["coverage"] = float(np.mean(held)) if held else None
    return found


def _over_judges(board: Board, score: str, slopes: Mapping[str, float]) -> float | None:
    """Correlation of a score of the judges with their known slopes; None for too few judges."""
    pairs = [(getattr(row, score), slopes[row.judge]) for row in board.judges]
    known = [(value, slope) for value, slope in pairs if value is not None]
    if len(known) < MIN_JUDGES:
        return None
    ours, theirs = np.array(known).T
    return _number(pearson, ours, theirs)


@dataclass(frozen=True, slots=True)
class LongRunJudge:
    """One judge of a simulation: its profile, its protocol, and the share of its judgments that can be read."""

    profile: Profile
    protocol: str
    readable: float = 1.0


def known_slope(profile: Profile) -> float:
    """How steeply a judge's verdicts follow people's log odds: its slope over the spread of its other influences."""
    noise = profile.sigma_item**2 + profile.sigma_order**2 + profile.sigma_position**2
    return profile.slope / sqrt(noise + (np.pi * profile.temperature) ** 2 / 3.0)


def shares(habit: LongRunJudge, gaps: NDArray[np.float64], log_ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    """The win share of the first model (pairs,) in judgments of both orders, ties as halves.

    `gaps` (pairs,) are in Elo points, `log_ratios` (pairs or 1, any) as in `ContestantField`. The formula is that of
    `simulation.judge`, with its normal draws integrated and its logistic draw summed over quantiles.
    """
    one = habit.profile
    binary = habit.protocol == "binary"
    band, tied = (0.0, 0.0) if binary else (one.tie_band, one.item_tie)
    points = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    drawn = one.temperature * np.log(points / (1.0 - points))
    spread = sqrt(one.sigma_item**2 + one.sigma_order**2 + one.sigma_position**2)
    mean = one.slope * gaps[:, None] * LOGITS_PER_POINT + one.length * np.clip(
        log_ratios, -_MAX_LOG_RATIO, _MAX_LOG_RATIO
    )
    found = np.zeros(mean.shape)
    for pull in (one.position, -one.position):
        for noise in drawn.tolist():
            z = mean + pull + noise
            found += norm.sf((band - z) / spread) + norm.sf((-band - z) / spread)
    share = found.mean(axis=1) / (4.0 * _QUANTILES)
    return np.asarray((1.0 - tied) * share + 0.5 * tied, dtype=np.float64)


def long_run(field: ContestantField, habits: Sequence[LongRunJudge]) -> NDArray[np.float64] | None:
    """Long-run logits (models,) of mean 0, in the order of `field.models`; None where a judge ranks lists.

    The long-run order of lists is not computed here.
    """
    if any(not PROTOCOLS[habit.protocol].shape.pairwise for habit in habits):
        return None
    weight = np.array([habit.readable for habit in habits])
    share = weight @ np.array([shares(habit, field.gaps, field.log_ratios) for habit in habits]) / weight.sum()
    first, second = field.pairs.T
    wins = np.zeros((len(field.elo), len(field.elo)))
    wins[first, second], wins[second, first] = share, 1.0 - share
    logits = bradley_terry_wins(wins, field.models).logits
    return np.asarray(logits - logits.mean(), dtype=np.float64)
