"""Models without a finite rating, since they won or lost everything against the rated ones: their side and a bound."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire.arena.scale import POINTS_PER_LOGIT
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.validation import check_level

_FAR = 50.0
"""Logits beyond every opponent: further away no bound is looked for."""


@dataclass(frozen=True, slots=True)
class OneSided:
    """A model whose wins, or losses, against rated models have no counterpart.

    `above` is true where wins, its own or a chain of others', lead from it to the rated models and none back. `bound`
    is the one-sided confidence limit of its rating in Elo points, None where it met no rated model itself.
    """

    above: bool
    bound: float | None


def one_sided(data: Comparisons, elo: NDArray[np.float64], *, level: float = 0.95) -> Mapping[str, OneSided]:
    """The models without a rating that stand wholly above or below the rated ones, by name.

    `elo` (models,) are the ratings in Elo points, NaN where there is none, all of one group. The limit is the rating at
    which the model would win (lose) everything with probability 1 - `level`: Clopper and Pearson's for a share of 1,
    with the opponents held at their ratings, and the judgments of a cluster counted as one. Models that the wins do not
    place are left out. Raises `InputError` for a level outside 0 to 1.

    >>> from venire.ratings import comparisons
    >>> data = comparisons(["champ"] * 20 + ["a", "b"], ["a", "b"] * 10 + ["b", "a"], [1] * 22)
    >>> found = one_sided(data, np.array([1000.0, 1000.0, np.nan]))["champ"]
    >>> found.above, round(found.bound)
    (True, 1317)
    """
    check_level(level)
    rated = np.isfinite(elo)
    counts = np.ones(len(data)) if data.weight is None else data.weight
    won, lost = (counts > 0) & (data.y > 0.0), (counts > 0) & (data.y < 1.0)
    beats = np.zeros((len(data.models), len(data.models)), dtype=np.bool_)
    beats[data.a[won], data.b[won]] = True
    beats[data.b[lost], data.a[lost]] = True
    up, down = _reached(beats.T, rated), _reached(beats, rated)
    return {
        data.models[code]: OneSided(bool(up[code]), _bound(data, elo / POINTS_PER_LOGIT, code, level))
        for code in np.flatnonzero(~rated & (up != down)).tolist()
    }


def _reached(leads: NDArray[np.bool_], start: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whom a walk along `leads` (from, to) reaches from any of some models (models,)."""
    seen, last = start.copy(), start
    while last.any():
        last = leads[last].any(axis=0) & ~seen
        seen |= last
    return seen & ~start


def _bound(data: Comparisons, logits: NDArray[np.float64], code: int, level: float) -> float | None:
    other = np.where(data.a == code, data.b, data.a)
    mine = ((data.a == code) | (data.b == code)) & np.isfinite(logits[other])
    mine &= True if data.weight is None else data.weight > 0
    if not mine.any():
        return None
    outcome = np.where(data.a == code, data.y, 1.0 - data.y)[mine]
    sign = 1.0 if outcome[0] == 1.0 else -1.0
    against = logits[other[mine]]
    cluster = np.arange(len(against)) if data.cluster is None else data.cluster[mine]
    _, group, size = np.unique(cluster, return_inverse=True, return_counts=True)
    share = 1.0 / size[group]

    def excess(rating: float) -> float:
        """Log probability of all these outcomes at a rating, less that of the limit."""
        return float(-(share * np.logaddexp(0.0, -sign * (rating - against))).sum()) - math.log(1.0 - level)

    from scipy.optimize import brentq  # a second of every start

    low, high = float(against.min()) - _FAR, float(against.max()) + _FAR
    return POINTS_PER_LOGIT * float(brentq(excess, low, high))
