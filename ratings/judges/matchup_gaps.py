"""The gap of each matchup in log odds, as one judge may know it: from people's ratings, or from the other judges.

A judge's own verdicts never say how wide its matchups are: that would measure it by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.arena.scale import POINTS_PER_LOGIT
from venire.ratings.judges.matchups import Coded, MatchupShares
from venire.ratings.pairwise.bradley_terry import bradley_terry_wins
from venire.ratings.pairwise.components import strong_components
from venire.ratings.pairwise.solvers import NotConvergedError

__all__ = ["Weights", "gaps_from_elo", "gaps_from_other_judges", "importance"]

Weights = Literal["even", "gap", "gap-squared", "optimal"]


def gaps_from_elo(rows: Coded, elo: Mapping[str, float]) -> NDArray[np.float64]:
    """Signed gaps A less B (judges, pairs) in log odds from Elo points by model; NaN where one is not known."""
    logits = np.array([elo.get(name, np.nan) for name in rows.models], dtype=np.float64) / POINTS_PER_LOGIT
    gap = logits[rows.pairs[:, 0]] - logits[rows.pairs[:, 1]]
    return np.tile(gap, (len(rows.judges), 1))


def gaps_from_other_judges(rows: Coded, shares: MatchupShares) -> NDArray[np.float64]:
    """Signed gaps A less B (judges, pairs) in log odds, for each judge from a Bradley-Terry fit on all others.

    Each share of a matchup on an instruction counts once. Gaps are known within the largest set of models that the
    others can rate together, and NaN elsewhere, as where the
    counts are too extreme for double precision.
    """
    judges, pairs, models = len(rows.judges), len(rows.pairs), len(rows.models)
    key = shares.judge * pairs + shares.pair
    won = np.bincount(key, shares.u, judges * pairs).reshape(judges, pairs)
    lost = np.bincount(key, 1.0 - shares.u, judges * pairs).reshape(judges, pairs)
    gaps = np.full((judges, pairs), np.nan)
    a, b = rows.pairs.T
    for judge in range(judges):
        # Summed over the others rather than taken from the total, which would leave rounding where nothing was won.
        others = np.arange(judges) != judge
        wins = np.zeros((models, models))
        wins[a, b], wins[b, a] = won[others].sum(axis=0), lost[others].sum(axis=0)
        group = max(strong_components(wins), key=len, default=np.empty(0, dtype=np.intp))
        if len(group) > 1:
            gaps[judge] = _gaps(wins, group)[a, b]
    return gaps


def _gaps(wins: NDArray[np.float64], group: NDArray[np.intp]) -> NDArray[np.float64]:
    """Gaps (models, models) between the models of one group, from pair counts; NaN elsewhere, or if no fit is had."""
    logits = np.full(len(wins), np.nan)
    with suppress(NotConvergedError):
        names = [str(code) for code in group]
        logits[group] = bradley_terry_wins(wins[np.ix_(group, group)], names).logits
    gaps: NDArray[np.float64] = logits[:, None] - logits
    return gaps


def importance(weights: Weights, shares: MatchupShares, gaps: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """How much each matchup counts in each judge's consistency (judges, pairs); None: all the same.

    `gap` and `gap-squared` are the gap's size and its square. `optimal` is n * gap / (2 pbar - 1), n the judge's
    instructions and pbar A's share with all judges: what the spread tells of a judge's slope over its noise. NaN where
    the gap is not known or the judges lean against it. Raises `InputError` for another word.
    """
    if weights == "even":
        return None
    if weights == "gap":
        return np.abs(gaps)
    if weights == "gap-squared":
        return gaps**2
    if weights != "optimal":
        raise InputError(f"weights is {weights!r}; choose one of even, gap, gap-squared, optimal")
    judges, pairs = gaps.shape
    count = np.bincount(shares.judge * pairs + shares.pair, minlength=judges * pairs).reshape(judges, pairs)
    lean = 2.0 * np.bincount(shares.pair, shares.u, pairs) / np.maximum(count.sum(axis=0), 1) - 1.0
    with_gap = gaps * lean > 0.0
    return np.where(with_gap, count * gaps / np.where(with_gap, lean, 1.0), np.nan)
