"""Soft-Elo for several judges: each has a beta of its own, and their calibrated probabilities are rated together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.choices import HumanTies
from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.pairwise.covariance import Errors, FittedOutcomes
from venire.ratings.soft_elo.beta import (
    Beta,
    beta_influence,
    beta_of,
    label_column,
    score_column,
    score_grid,
)
from venire.ratings.soft_elo.cross_validation import judge_codes
from venire.ratings.soft_elo.reliability import Reliability, reliability_of
from venire.ratings.soft_elo.soft_elo import RIDGE, rate_targets


@dataclass(frozen=True, slots=True, eq=False)
class JudgeCalibration:
    """How one judge's scores become probabilities: `fit` is its beta, `reliability` how far that holds.

    `judge` is its name, "" where the rows name none; `rows` is the number of its rows with a score, `unscaled` the
    expected calibration error of probabilities at beta 1. `warnings` name it.
    """

    judge: str
    fit: Beta
    reliability: Reliability
    rows: int
    unscaled: float
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class SoftEloPanel:
    """Ratings from the probabilities of several judges, and the calibration of each of `judges`, in their order.

    `targets` (rows,) is sigma(beta * score) for A by the row's own judge, NaN without a score and for a judge whose
    beta cannot be found. `n_fit` is the number of labels in all fits, `ece` the mean expected calibration error by the
    battles that it was measured on. `warnings` must be shown with the ratings.
    """

    ratings: Ratings
    judges: tuple[JudgeCalibration, ...]
    targets: NDArray[np.float64]
    n_fit: int
    ece: float
    warnings: tuple[str, ...] = ()


def soft_elo_panel(
    data: Comparisons,
    score: ArrayLike,
    human: ArrayLike,
    *,
    ridge: float = RIDGE,
    anchors: Mapping[str, float] | None = None,
    errors: Errors | None = None,
    ties: HumanTies = "drop",
    parity: bool = False,
) -> SoftEloPanel:
    """`soft_elo` with one beta for each judge of `data`; the Soft-Elo paper fits one a judge.

    Arguments are as in `soft_elo`; errors include those of all betas. A judge whose beta cannot be found is left out,
    with a warning. With one judge it is `soft_elo`. Raises `InputError` where no row has a score, or no judge a beta.

    >>> from venire.ratings import comparisons, soft_elo_panel
    >>> data = comparisons(list("aababc") * 2, list("bbccca") * 2, [1, 0, 1, 1, 0, 0] * 2, judge=["x"] * 6 + ["y"] * 6)
    >>> score = np.array([2.0, -1.0, 1.5, 2.0, -0.5, -2.0] * 2) * np.repeat([1.0, 2.0], 6)
    >>> found = soft_elo_panel(data, score, [1, 0, 1, 1, 1, 0] * 2)
    >>> [(one.judge, round(one.fit.beta, 3)) for one in found.judges]
    [('x', 1.869), ('y', 0.934)]
    """
    scores, labels = score_column(score, len(data)), label_column(human, len(data))
    if np.isnan(scores).all():
        raise InputError("score: no row has one; give the judge's score of A less that of B")
    code, targets = judge_codes(data), np.full(len(data), np.nan)
    slope, influence = np.zeros(len(data)), np.zeros(len(data))
    found = []
    for number, name in enumerate(data.judges or ("",)):
        rows = np.flatnonzero((code == number) & ~np.isnan(scores))
        if not len(rows):
            continue
        own, grid = data.select(rows), score_grid(scores[rows])
        fit = beta_of(grid, labels[rows], weight=own.weight, cluster=own.cluster, ties=ties)
        trust = reliability_of(grid, labels[rows], fit.beta, y=own.y, weight=own.weight)
        said = "" if len(data.judges) < 2 else f"{name}: "
        warnings = tuple(f"{said}{one}" for one in (*fit.warnings, *trust.warnings))
        unscaled = reliability_of(grid, labels[rows], 1.0, y=own.y, weight=own.weight).ece
        found.append(JudgeCalibration(name, fit, trust, len(rows), unscaled, warnings))
        if np.isnan(fit.beta):
            continue
        targets[rows] = grid.probabilities(fit.beta)
        if np.isfinite(fit.beta):
            slope[rows] = targets[rows] * (1.0 - targets[rows]) * scores[rows]
            influence[rows] = beta_influence(grid, labels[rows], fit.beta, weight=own.weight, ties=ties)
    warnings = tuple(warning for judge in found for warning in judge.warnings)
    kept = np.flatnonzero(~np.isnan(targets))
    if not len(kept):
        raise InputError(f"{'; '.join(warnings)}: give labels of people in `human`")
    fitted = FittedOutcomes(code[kept], slope[kept], influence[kept])
    rated = rate_targets("soft-elo", data.select(kept), targets[kept], ridge, parity, anchors, errors, fitted)
    facts = {"n_fit": sum(one.fit.n_fit for one in found), "without_score": int(np.isnan(scores).sum())}
    ratings = replace(rated, diagnostics={**rated.diagnostics, **facts, "warnings": list(warnings)})
    return SoftEloPanel(ratings, tuple(found), targets, facts["n_fit"], _mean_ece(found), warnings)


def _mean_ece(judges: list[JudgeCalibration]) -> float:
    """The expected calibration error over all judges, by their battles; NaN where none was measured."""
    known = [judge.reliability for judge in judges if judge.reliability.battles]
    battles = sum(one.battles for one in known)
    return sum(one.ece * one.battles for one in known) / battles if battles else float("nan")
