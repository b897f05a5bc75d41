"""TrueSkill between two players without draws: a skill is a normal distribution that each battle narrows and moves.

Herbrich, Minka and Graepel 2006, with the constants of Remeli and Hardt 2026: skills begin at N(25, (25/3)^2), a
performance scatters about the skill with 25/6, and a skill drifts by 25/300 before each battle. As with Elo the order
of battles matters, and the result is the mean over random orders. One battle moves both skills to the exact moments of
their posterior.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.pairwise.shuffles import by_name, orders, single_battles

__all__ = ["BETA", "MU", "SIGMA", "TAU", "TrueSkill", "trueskill"]

MU, SIGMA, BETA, TAU = 25.0, 25.0 / 3.0, 25.0 / 6.0, 25.0 / 300.0

_NORMAL_TO_LOGISTIC = 1.702  # Phi(x) is within 0.0095 of sigma(1.702 x) everywhere


@dataclass(frozen=True, slots=True, eq=False)
class TrueSkill:
    """Skills after the last battle, means over orders; `ratings.score` is `mu`.

    `sigma` (n,) is the width that the model itself gives a skill, `sd` (n,) the standard deviation of mu between
    orders. `ties` rows were left out: without draws in the model they say nothing to it.
    """

    ratings: Ratings
    mu: NDArray[np.float64]
    sigma: NDArray[np.float64]
    sd: NDArray[np.float64]
    ties: int
    shuffles: int


def trueskill(data: Comparisons, *, shuffles: int = 100, seed: int = 0) -> TrueSkill:
    """TrueSkill, mean over random orders; rows with outcome 0.5 are left out and counted.

    Any other outcome is a win for the side that has more than half. Elo points come from P = Phi(d / (sqrt 2 beta))
    read as a logistic. Raises `InputError` for fewer than one shuffle, and for weights other than 0 and 1.
    """
    played, size = single_battles(data, "TrueSkill"), len(data.models)
    rows, origin = by_name(played)
    decisive = rows.y != 0.5
    first = rows.y[decisive] > 0.5
    a, b = rows.a[decisive], rows.b[decisive]
    winner, loser = np.where(first, a, b), np.where(first, b, a)
    skills = [_side_by_side(winner, loser, size, group) for group in orders(len(winner), shuffles, seed)]
    mu, variance = np.empty((size, shuffles)), np.empty((size, shuffles))
    mu[origin] = np.hstack([skill[0] for skill in skills])
    variance[origin] = np.hstack([skill[1] for skill in skills])
    battles = np.empty(size)
    battles[origin] = np.bincount(winner, minlength=size) + np.bincount(loser, minlength=size)
    mu[battles == 0], variance[battles == 0] = np.nan, np.nan
    mean, ties = mu.mean(axis=1), int(np.count_nonzero(~decisive))
    absent = [data.models[code] for code in np.flatnonzero(battles == 0)]
    ratings = Ratings(
        method="trueskill",
        models=data.models,
        logits=_logits(mean),
        battles=battles,
        score=mean,
        unit="mu",
        diagnostics={
            "shuffles": shuffles,
            "ties_left_out": ties,
            "no_estimate": dict.fromkeys(absent, "it has no decisive comparison with a weight above 0"),
        },
    )
    sd = mu.std(axis=1, ddof=1) if shuffles > 1 else np.full(size, np.nan)
    return TrueSkill(ratings, mean, np.sqrt(variance.mean(axis=1)), sd, ties, shuffles)


def _logits(mu: NDArray[np.float64]) -> NDArray[np.float64]:
    if np.isnan(mu).all():
        raise InputError("there is no decisive comparison with a weight above 0: TrueSkill has nothing to rate")
    return np.asarray((mu - np.nanmean(mu)) * (_NORMAL_TO_LOGISTIC / (math.sqrt(2.0) * BETA)))


def _side_by_side(
    winner: NDArray[np.int32], loser: NDArray[np.int32], size: int, order: NDArray[np.int32]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means and variances of the skills (models, orders) after a pass in each of the orders (rows, orders)."""
    lanes = order.shape[1]
    mu, variance = np.full(size * lanes, MU), np.full(size * lanes, SIGMA * SIGMA)
    lane, chunk = np.arange(lanes), max(1, 1_000_000 // lanes)
    for start in range(0, len(order), chunk):
        part = order[start : start + chunk]
        won, lost = winner[part] * np.int64(lanes) + lane, loser[part] * np.int64(lanes) + lane
        for i, j in zip(won, lost, strict=True):
            wide_i, wide_j = variance[i] + TAU * TAU, variance[j] + TAU * TAU
            total = 2.0 * BETA * BETA + wide_i + wide_j
            root = np.sqrt(total)
            ahead = (mu[i] - mu[j]) / root
            # The normal density over its own integral, in a form that does not underflow for an upset.
            lift = math.sqrt(2.0 / math.pi) / erfcx(-ahead / math.sqrt(2.0))
            narrow = lift * (lift + ahead) / total
            mu[i] += wide_i * lift / root
            mu[j] -= wide_j * lift / root
            variance[i], variance[j] = wide_i * (1.0 - wide_i * narrow), wide_j * (1.0 - wide_j * narrow)
    return mu.reshape(size, lanes), variance.reshape(size, lanes)
