"""A rating method: Glicko (Glickman 1999, equations 9 to 11), with each instruction as a rating period."""

import numpy as np

from venire.ratings.data.result import Ratings
from venire.ratings.inference.intervals import with_intervals
from venire.ratings.methods.methods import Method

_Q = np.log(10) / 400
_DEVIATION = 350.0


def glicko(data):
    """Ratings and deviations (models,) in Elo points after the last period."""
    size = len(data.models)
    rating, deviation = np.zeros(size), np.full(size, _DEVIATION)
    period = np.arange(len(data)) if data.cluster is None else data.cluster
    for one in np.unique(period):
        rows = np.flatnonzero(period == one)
        me = np.concatenate([data.a[rows], data.b[rows]])
        other = np.concatenate([data.b[rows], data.a[rows]])
        won = np.concatenate([data.y[rows], 1 - data.y[rows]])
        weight = np.ones(len(me)) if data.weight is None else np.tile(data.weight[rows], 2)
        g = 1 / np.sqrt(1 + 3 * _Q**2 * deviation[other] ** 2 / np.pi**2)
        expected = 1 / (1 + np.exp(-_Q * g * (rating[me] - rating[other])))
        information = _Q**2 * np.bincount(me, weight * g**2 * expected * (1 - expected), size)
        surprise = np.bincount(me, weight * g * (won - expected), size)
        variance = 1 / (1 / deviation**2 + information)
        rating, deviation = rating + _Q * variance * surprise, np.sqrt(variance)
    return rating, deviation


def by_glicko(battles, judgments, options):
    """The ratings as a leaderboard shows them; intervals are from the deviations, or by bootstrap."""
    data = judgments.comparisons()
    return with_intervals(_rated(data), data, options, refit=lambda rows: _rated(data.select(rows)))


def _rated(data):
    rating, deviation = glicko(data)
    logits = _Q * (rating - rating.mean())
    return Ratings(
        "glicko", data.models, logits, data.played, covariance=np.diag((_Q * deviation) ** 2), errors="deviations"
    )


GLICKO = Method(by_glicko, "Glicko, an instruction a rating period")
