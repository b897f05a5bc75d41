"""Prior ratings before the verdicts are available, on the scale of the judges' own log odds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from venire.arena.scale import to_logits
from venire.ratings.data.judgments import Judgments
from venire.ratings.pairwise.bradley_terry import bradley_terry

SLOPE, SLOPE_SD = 1.8, 0.7
"""Ratio of a judge's log odds to people's, for a reference in Elo points; twelve recorded judges: 0.5 to 2.6."""

ENOUGH = 10
"""Judgments per model from which on verdicts are used instead of a reference."""

PRIOR = 0.3
"""A ridge that keeps ratings from few verdicts finite, like a prior of 1.8 logits about the mean."""
_LARGEST = 50.0
_HALVINGS = 60

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class PriorRatings:
    """Ratings (models,) in logits, NaN where unknown, and their source.

    "verdicts": from the verdicts so far. "reference": known ratings times `slope`, which was fitted to `judgments`, if
    any. "nothing": neither is available.
    """

    logits: Vector
    source: Literal["verdicts", "reference", "nothing"]
    judgments: int = 0
    slope: float | None = None


def prior_ratings(
    models: Sequence[str], data: Judgments | None = None, reference: Mapping[str, float] | None = None
) -> PriorRatings:
    """Prior ratings of `models` from judgments so far and from `reference` ratings in Elo points.

    Many judgments are used directly; few judgments only determine the slope on the reference, if there is one.
    """
    rows = None if data is None else data.select(data.between([name for name in data.models if name in models]))
    number = 0 if rows is None else len(rows)
    known = np.array([(reference or {}).get(name, np.nan) for name in models], dtype=np.float64)
    there = np.isfinite(known)
    referenced = np.count_nonzero(there) > 1
    if rows is not None and number and (number >= ENOUGH * len(models) or not referenced):
        fit = bradley_terry(rows.comparisons(), ridge=PRIOR, errors="none")
        rated = dict(zip(fit.models, fit.logits.tolist(), strict=True))
        return PriorRatings(np.array([rated.get(name, np.nan) for name in models]), "verdicts", number)
    if not referenced:
        return PriorRatings(np.full(len(models), np.nan), "nothing")
    logits = np.full(len(models), np.nan)
    logits[there] = to_logits(known[there])
    slope = SLOPE if rows is None else _slope(rows, dict(zip(models, logits.tolist(), strict=True)))
    return PriorRatings(slope * logits, "reference", number, slope)


def _slope(rows: Judgments, logits: Mapping[str, float]) -> float:
    """The most likely slope of judgments on known ratings, with the slopes of other judges as a prior.

    The derivative of the log posterior is decreasing, so bisection finds its zero.
    """
    rating = np.array([logits.get(name, np.nan) for name in rows.models])
    gap = rating[rows.model_a] - rating[rows.model_b]
    known = np.isfinite(gap)
    gap, y = gap[known], rows.y[known]
    low, high = -_LARGEST, _LARGEST
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        rises = float(gap @ (y - expit(middle * gap))) > (middle - SLOPE) / SLOPE_SD**2
        low, high = (middle, high) if rises else (low, middle)
    return 0.5 * (low + high)
