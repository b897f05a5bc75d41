"""What is measured of one simulated campaign, against what is known of its models and judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire.arena.records import Status
from venire.arena.scale import to_elo
from venire.ratings.data.statistics import kendall, pearson, spearman
from venire.reports.board import Board, ModelRow
from venire.session import Session

__all__ = ["FIGURES", "LEAST_JUDGES", "TOP", "Figure", "figures"]

TOP = 3
"""Of how many models it is asked whether they are the best."""

LEAST_JUDGES = 4
"""Judges that a correlation over judges takes."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: its heading, whether less is better (None: neither), and what it is."""

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
    """All figures but the time, None where there is nothing to take it from.

    `elo` are the known ratings, `truth` (models,) long-run logits in the order of the sorted names, `slopes` of the
    judges by name.
    """
    board = session.board()
    rows = _largest(board)
    statuses: Mapping[str, int] = board.diagnostics["statuses"]
    asked = sum(statuses.values())
    return {
        **_of_models(rows, elo),
        **_of_intervals(rows, sorted(elo), truth),
        "unrated": float(len(elo) - len(rows)),
        **{name: _over_judges(board, name, slopes) for name in ("consistency", "decisive", "discrimination")},
        "judgments": float(board.diagnostics["judgments"]),
        "calls": float(session.accounts.calls),
        "dollars": session.accounts.nano / 1e9,
        "unreadable": 1.0 - statuses[Status.OK.name.lower()] / asked if asked else None,
    }


def _largest(board: Board) -> list[ModelRow]:
    """The rated models that compare with one another, of the group with most of them."""
    rated = [row for row in board.models if row.elo is not None]
    size = Counter(row.group for row in rated)
    most = max(size, key=lambda group: (size[group], -(group or 0)), default=None)
    return sorted((row for row in rated if row.group == most), key=lambda row: row.model)


def _of_models(rows: Sequence[ModelRow], elo: Mapping[str, float]) -> dict[str, float | None]:
    if len(rows) <= TOP:
        return dict.fromkeys(("error", "pearson", "spearman", "kendall", "top"))
    # What prints alike is tied: last bits must not decide.
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
    """Mean distance in points of the known ratings: judges of another slope have another scale, and a line mends it."""
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
    """Their width, and whether they hold the long-run ratings, which are centred as the rated models are."""
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
    """How a score of the judges goes with their known slopes; None for few judges."""
    pairs = [(getattr(row, score), slopes[row.judge]) for row in board.judges]
    known = [(value, slope) for value, slope in pairs if value is not None]
    if len(known) < LEAST_JUDGES:
        return None
    ours, theirs = np.array(known).T
    return _number(pearson, ours, theirs)
