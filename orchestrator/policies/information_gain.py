"""The information of a battle about the ratings, given the battles so far: Bayesian A-optimal design, step by step.

The criterion is the trace of L times the posterior covariance of the ratings, at the current estimates; L encodes the
purpose of the ratings. The Sherman-Morrison formula gives its reduction by one battle, so that each choice accounts
for those before ("Optimum Experimental Designs", Atkinson and Donev; linear in the battles' information).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from venire.arena.campaigns import PhaseSettings
from venire.arena.errors import InputError
from venire.arena.planning import JudgeHabit, PlanState
from venire.arena.scale import LOGITS_PER_POINT

PRIOR = 1.0
"""Standard deviation of a rating in logits before anything was asked."""
OPPONENT_SD = 0.2
"""Logits: how far a rating that is held may be off for one pair of models. A model that is placed by its nearest
opponent alone inherits all of that; docs/policies.md has what one, several and all opponents come to."""
_DRAWS = 256

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


def starting_logits(state: PlanState, models: Sequence[str]) -> Vector:
    """Ratings (models,) in logits to plan by: what verdicts say, else the reference Elo, else the mean of the others.

    Ratings without an end are put one logit beyond the last that has one.
    """
    place = {name: n for n, name in enumerate(state.models)}
    order = [place[name] for name in models]
    seen = np.full(len(order), np.nan) if state.logits is None else np.asarray(state.logits, dtype=np.float64)[order]
    reference = np.array([state.elo.get(name, np.nan) for name in models]) * LOGITS_PER_POINT
    ends = seen[np.isfinite(seen)] if np.isfinite(seen).any() else np.zeros(1)
    seen = np.nan_to_num(seen, nan=np.nan, posinf=ends.max() + 1.0, neginf=ends.min() - 1.0)
    both = np.isfinite(seen) & np.isfinite(reference)
    if both.any():
        reference = reference + (seen[both] - reference[both]).mean()
    elif np.isfinite(seen).any():
        reference = np.full(len(order), np.nan)
    found = np.where(np.isfinite(seen), seen, reference)
    known = np.isfinite(found)
    return np.where(known, found, found[known].mean() if known.any() else 0.0)


def information_of_pairs(logits: Vector, judges: Sequence[JudgeHabit]) -> Matrix:
    """Fisher information (models, models) of one battle of each pair in both orders, summed over the judges.

    A negative correlation of both orders is noise of a small sample, and counts as none.
    """
    gap = logits[:, None] - logits[None, :]
    found = np.zeros_like(gap)
    for judge in judges or (JudgeHabit(),):
        scale = (1.0 - judge.ties) * judge.slope**2 / (1.0 + max(judge.rho, 0.0))
        for sign in (1.0, -1.0):
            # P(1 - P) without overflow, as far apart as the ratings may be.
            less = np.exp(-np.abs(sign * judge.bias + judge.slope * gap))
            found += scale * less / (1.0 + less) ** 2
    np.fill_diagonal(found, 0.0)
    return found


def covariance_after(
    weights: Matrix, counts: NDArray[np.int64], free: NDArray[np.bool_], prior: Vector | float = PRIOR
) -> Matrix:
    """Posterior covariance (models, models) of the ratings after so many battles of each pair; 0 where one is held.

    `weights` (models, models) is the information of one battle, `counts` (models, models) how often each pair was
    asked, `free` (models,) are those whose ratings are not known already, `prior` (models,) in logits is how far each
    may be off before anything was asked.
    """
    fisher = -weights * counts
    np.fill_diagonal(fisher, -fisher.sum(axis=1) + 1.0 / np.square(prior))
    inside = np.ix_(free, free)
    found = np.zeros_like(weights)
    inverse = np.linalg.inv(fisher[inside])
    found[inside] = 0.5 * (inverse + inverse.T)
    return found


def wanted(
    phase: PhaseSettings,
    models: Sequence[str],
    logits: Vector,
    covariance: Matrix,
    free: NDArray[np.bool_],
    rng: np.random.Generator,
) -> Matrix:
    """L (models, models): what the ratings are wanted for.

    `mean`: how far each is from the mean, or from where it is where some are held; `boundary`: the best `phase.top`
    against as many next; `place`: one model. Who is at the boundary is known as well as the ratings are: L is its mean
    over draws of these, so that a wrong guess does not keep itself alive. Raises InputError for a model or a number
    that is not in the field.
    """
    size = len(models)
    if phase.purpose == "mean":
        return np.eye(size) - (1.0 / size if free.all() else 0.0)
    if phase.purpose == "place":
        if phase.place not in models:
            raise InputError(
                f"[plan] place = {phase.place!r} is none of the models of this plan: {', '.join(models[:8])}"
                f"{' ...' if size > 8 else ''}"
            )
        one = np.array([name == phase.place for name in models], dtype=np.float64)
        return np.outer(one, one)
    if not 0 < phase.top < size:
        raise InputError(f"[plan] top = {phase.top} of {size} models has no boundary: give 1 to {size - 1}")
    return _boundary(phase.top, logits, covariance, free, rng)


def _boundary(
    top: int, logits: Vector, covariance: Matrix, free: NDArray[np.bool_], rng: np.random.Generator
) -> Matrix:
    drawn = np.tile(logits, (_DRAWS, 1))
    root = np.linalg.cholesky(covariance[np.ix_(free, free)])
    drawn[:, free] += rng.standard_normal((_DRAWS, int(free.sum()))) @ root.T
    rank = np.argsort(np.argsort(-drawn, axis=1, kind="stable"), axis=1)
    best, rest = (rank < top).astype(np.float64), ((rank >= top) & (rank < 2 * top)).astype(np.float64)
    each = best * rest.sum(axis=1, keepdims=True) + rest * top
    met = best.T @ rest
    return np.asarray(np.diag(each.mean(axis=0)) - (met + met.T) / _DRAWS)


class Knowledge:
    """What each pair would take off the criterion, by what its battles say, what is known, and what is wanted.

    All three are (models, models); `covariance` is that after what was asked, `aim` is L.
    """

    def __init__(self, weights: Matrix, covariance: Matrix, aim: Matrix) -> None:
        self._weights = weights
        self.covariance = covariance.copy()
        self._criterion = covariance @ aim @ covariance

    def gains(self) -> Matrix:
        """By how much (models, models) one more battle of each pair would lower the criterion, in square logits."""
        weights = self._weights
        return weights * _of_differences(self._criterion) / (1.0 + weights * _of_differences(self.covariance))

    def add(self, a: int, b: int) -> None:
        """Count one battle of a pair as asked."""
        weight = self._weights[a, b]
        apart = self.covariance[:, a] - self.covariance[:, b]
        share = weight / (1.0 + weight * (apart[a] - apart[b]))
        pulled = self._criterion[:, a] - self._criterion[:, b]
        drop = pulled[a] - pulled[b]
        cross = share * np.outer(apart, pulled)
        self._criterion -= cross + cross.T - share**2 * drop * np.outer(apart, apart)
        self.covariance -= share * np.outer(apart, apart)


def _of_differences(matrix: Matrix) -> Matrix:
    """(e_a - e_b)' M (e_a - e_b) of every pair."""
    diagonal = np.diagonal(matrix)
    return diagonal[:, None] + diagonal[None, :] - 2.0 * matrix
