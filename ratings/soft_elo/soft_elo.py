"""Soft-Elo: Bradley-Terry on the probability that people agree with a judge, calibrated on human labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.choices import HumanTies
from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.pairwise.bradley_terry import bradley_terry
from venire.ratings.pairwise.covariance import Errors, FittedOutcomes
from venire.ratings.pairwise.solvers import NotConvergedError
from venire.ratings.soft_elo.beta import (
    Beta,
    ScoreGrid,
    beta_influence,
    beta_of,
    label_column,
    score_column,
    score_grid,
)
from venire.ratings.soft_elo.reliability import Reliability, reliability_of

RIDGE = 0.01
_STEPS = 200
_TOLERANCE = 1e-11
_CLIP = 1e-6
_SPAN = 700.0
"""Largest logit whose exponential is finite in double precision."""


@dataclass(frozen=True, slots=True, eq=False)
class SoftElo:
    """Ratings from probabilities, and their reliability.

    `targets` (rows,) is sigma(beta * score) for A, NaN where the judge gave no score. `beta` is the fitted factor,
    `n_fit` the number of human labels in its fit, `ece` the expected calibration error. `warnings` must be shown with
    the ratings.
    """

    ratings: Ratings
    beta: float
    n_fit: int
    ece: float
    fit: Beta
    reliability: Reliability
    targets: NDArray[np.float64]
    warnings: tuple[str, ...] = ()


def hard_elo(
    data: Comparisons,
    *,
    ridge: float = RIDGE,
    anchors: Mapping[str, float] | None = None,
    errors: Errors | None = None,
    parity: bool = False,
) -> Ratings:
    """Bradley-Terry on the verdicts of a judge, with ties as half a win and a ridge that keeps every rating finite.

    `ridge` is lambda in lambda / 2 |R|^2 on the summed likelihood; `anchors` and `errors` are as in `bradley_terry`.
    `parity` clips outcomes to [1e-6, 1 - 1e-6] as the
    method's authors do, which moves ratings by thousandths of a point. Raises `InputError` and `NotConvergedError`.

    >>> from venire.ratings import comparisons, hard_elo
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> hard_elo(data).elo.round(1).tolist()
    [1130.1, 1000.0, 869.9]
    """
    return rate_targets("hard-elo", data, data.y, ridge, parity, anchors, errors)


def human_elo(
    data: Comparisons,
    human: ArrayLike,
    *,
    ridge: float = RIDGE,
    anchors: Mapping[str, float] | None = None,
    errors: Errors | None = None,
    parity: bool = False,
) -> Ratings:
    """`hard_elo` on human labels: `human` (rows,) is 1, 0.5 or 0 for A, NaN where no one was asked.

    >>> from venire.ratings import comparisons, human_elo
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> human_elo(data, [1, 0, 1, 1, 1, 0]).elo.round(1).tolist()
    [1278.9, 1278.9, 442.2]
    """
    return rate_targets("human-elo", data, label_column(human, len(data)), ridge, parity, anchors, errors)


def soft_elo(
    data: Comparisons,
    score: ArrayLike,
    human: ArrayLike,
    *,
    ridge: float = RIDGE,
    anchors: Mapping[str, float] | None = None,
    errors: Errors | None = None,
    ties: HumanTies = "drop",
    beta: float | None = None,
    parity: bool = False,
) -> SoftElo:
    """Fit beta to human labels, replace each verdict by sigma(beta * score), and rate on these; the Soft-Elo paper.

    `data.y` holds the verdicts of the judge, `score` (rows,) its scores A minus B averaged over both orders, `human`
    (rows,) human labels: 1, 0.5 or 0 for A. NaN in either is unknown; every row with a score is rated, whether people
    saw it or not. `ties` is the treatment of human ties in fitting beta. If `beta` is given, no label is needed.
    `anchors` and `errors` are as in `bradley_terry`; errors include those of a beta that was fitted. Raises
    `InputError` where no row has a score or beta cannot be estimated.

    >>> from venire.ratings import comparisons, soft_elo
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> score, human = [2.0, -1.0, 1.5, 2.0, -0.5, -2.0], [1, 0, 1, 1, 1, 0]
    >>> soft_elo(data, score, human).ratings.elo.round(1).tolist()
    [1143.8, 1015.8, 840.4]
    """
    scores, labels = score_column(score, len(data)), label_column(human, len(data))
    known = ~np.isnan(scores)
    if not known.any():
        raise InputError("score: no row has one; give the judge's score of A less that of B")
    kept = with_targets(data, np.where(known, data.y, np.nan))
    scores, labels = scores[known], labels[known]
    grid = score_grid(scores)
    fit = _beta(grid, labels, kept, ties, beta)
    targets = grid.probabilities(fit.beta)
    trust = reliability_of(grid, labels, fit.beta, y=kept.y, weight=kept.weight)
    warnings = (*fit.warnings, *trust.warnings)
    facts = {
        "beta": fit.beta,
        "beta_se": fit.se,
        "n_fit": fit.n_fit,
        "ece": trust.ece,
        "without_score": len(data) - len(kept),
        "warnings": list(warnings),
    }
    fitted = None
    if beta is None and np.isfinite(fit.beta):
        slope = targets * (1.0 - targets) * scores
        influence = beta_influence(grid, labels, fit.beta, weight=kept.weight, ties=ties)
        fitted = FittedOutcomes(np.zeros(len(kept), dtype=np.intp), slope, influence)
    found = rate_targets("soft-elo", kept, targets, ridge, parity, anchors, errors, fitted)
    spread = np.full(len(data), np.nan)
    spread[known] = targets
    ratings = replace(found, diagnostics={**found.diagnostics, **facts})
    return SoftElo(ratings, fit.beta, fit.n_fit, trust.ece, fit, trust, spread, warnings)


def _beta(
    grid: ScoreGrid, labels: NDArray[np.float64], data: Comparisons, ties: HumanTies, given: float | None
) -> Beta:
    """Beta from labels, or the given beta. Raises `InputError` where it is not a number."""
    if given is None:
        fit = beta_of(grid, labels, weight=data.weight, cluster=data.cluster, ties=ties)
    else:
        if np.isnan(given):
            raise InputError("beta is nan; give a number above 0, or none to fit it")
        against = (f"beta is {given:g}: the scores of this judge count for nothing, or against themselves",)
        warnings = ("beta was given, not fitted", *(against if given <= 0.0 else ()))
        fit = Beta(float(given), np.nan, 0, np.nan, 0, ties, warnings)
    if np.isnan(fit.beta):
        raise InputError(f"{'; '.join(fit.warnings)}: give labels of people in `human`, or `beta` itself")
    return fit


def rate_targets(
    method: str,
    data: Comparisons,
    targets: NDArray[np.float64],
    ridge: float,
    parity: bool,
    anchors: Mapping[str, float] | None,
    errors: Errors | None,
    fitted: FittedOutcomes | None = None,
) -> Ratings:
    """Bradley-Terry with a ridge on targets (rows,) for A; rows whose target is NaN are left out.

    `fitted` says how the targets depend on a fit to the same rows. Raises `InputError` and `NotConvergedError`.
    """
    if not (ridge > 0.0 and np.isfinite(ridge)):
        raise InputError(f"ridge is {ridge}; give a number above 0, such as {RIDGE}, or use bradley_terry")
    known = with_targets(data, clip_targets(targets, parity))
    found = bradley_terry(known, ridge=ridge, anchors=anchors, errors=errors if len(known) else "none", fitted=fitted)
    return replace(found, method=method, diagnostics={**found.diagnostics, "ridge": ridge, "parity": parity})


def clip_targets(targets: NDArray[np.float64], parity: bool) -> NDArray[np.float64]:
    """Targets unchanged; with `parity` clipped to [1e-6, 1 - 1e-6], as by the authors of Soft-Elo."""
    return np.asarray(np.clip(targets, _CLIP, 1.0 - _CLIP)) if parity else targets


def with_targets(data: Comparisons, targets: NDArray[np.float64]) -> Comparisons:
    """The same comparisons with other outcomes (rows,); a row whose target is NaN is left out."""
    known = ~np.isnan(targets)
    if known.all():
        return replace(data, y=targets)
    return replace(data, y=targets).select(known)


def place_against_anchors(
    anchors: NDArray[np.float64],
    won: NDArray[np.float64],
    lost: NDArray[np.float64],
    ridge: float,
    start: float = 0.0,
) -> NDArray[np.float64]:
    """Ratings (columns,) in logits that maximise the ridged likelihood of battles against fixed anchors.

    `anchors` (opponents,) are logits; `won` and `lost` (opponents, columns) are the weights of battles won and lost
    against each, one column per resample; `ridge` above 0 is lambda in lambda / 2 R^2. A column without battles is NaN.
    Newton's method from `start`, with every column safeguarded by a bracket. Raises `NotConvergedError`.
    """
    played = won + lost
    live = np.flatnonzero(played.sum(axis=0) > 0.0)
    placed = np.full(won.shape[1], np.nan)
    won, lost, played = won[:, live], lost[:, live], played[:, live]
    rating = np.full(len(live), start)
    low, high = np.full(len(live), -np.inf), np.full(len(live), np.inf)
    for _ in range(_STEPS):
        odds = np.exp(np.clip(anchors[:, None] - rating, -_SPAN, _SPAN))
        share = 1.0 / (1.0 + odds)
        missed = odds * share  # 1 - share would lose precision where share is almost 1
        slope = (won * missed - lost * share).sum(axis=0) - ridge * rating
        curve = (played * share * missed).sum(axis=0) + ridge
        low, high = np.where(slope > 0.0, rating, low), np.where(slope > 0.0, high, rating)
        after = rating + np.clip(slope / curve, -2.0, 2.0)
        outside = ~((after >= low) & (after <= high))
        after[outside] = 0.5 * (low + high)[outside]
        done = bool(np.all(np.abs(after - rating) <= _TOLERANCE * (1.0 + np.abs(after))))
        rating = after
        if done:
            placed[live] = rating
            return placed
    raise NotConvergedError(f"a rating against fixed anchors was not found in {_STEPS} steps")
