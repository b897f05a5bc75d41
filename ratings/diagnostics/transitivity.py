"""Cycles of wins (a beats b, b beats c, c beats a), and how many of them chance alone would produce.

One number per model cannot represent rock-paper-scissors. But similar models form cycles by chance, so the count is
compared with that of tables drawn from Bradley-Terry ratings, with the noise of the same instructions.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.data.statistics import norm
from venire.ratings.data.validation import check_draws
from venire.ratings.diagnostics.goodness_of_fit import PairNoise, pair_noise, tail_probability

_MAX_MODELS = 200
"""Maximum number of models; those with the fewest battles are left out: the number of triads grows cubically."""

_SHOWN = 5

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Cycle:
    """Three models, each preferred to the next and the last to the first.

    `shares` are the shares of wins along the cycle, each above one half. `weakest` is the smallest of the three
    margins, in standard errors. Any order of the three models contradicts one of these steps: `p_value` is the
    probability of this large a margin for that step, times the number of possible cycles.
    """

    models: tuple[str, str, str]
    shares: tuple[float, float, float]
    weakest: float
    p_value: float


@dataclass(frozen=True, slots=True)
class Transitivity:
    """Cyclic triads among those whose three pairs all have a majority, and the number expected by chance.

    `expected` is the mean share of cyclic triads in tables drawn from the ratings, `p_value` the probability of at
    least as many as found. `zeta` is Kendall's coefficient of consistence, 1 without cycles and 0 with the maximum
    number; None where a pair has no majority. `strongest` are the cycles whose weakest margin is the most significant.
    `models` is the number of models examined.
    """

    triads: int
    cyclic: int
    expected: float
    p_value: float
    zeta: float | None
    strongest: tuple[Cycle, ...]
    models: int

    @property
    def share(self) -> float:
        """Share of cyclic triads; 0.25 where winners are random."""
        return self.cyclic / self.triads

    @property
    def excess(self) -> float:
        """The share of cyclic triads in excess of chance."""
        return self.share - self.expected


def transitivity(data: Comparisons, ratings: Ratings, *, draws: int = 999, seed: int = 0) -> Transitivity:
    """Count cyclic triads of majorities against those of tables drawn from Bradley-Terry `ratings` of the data.

    Ratings are shrunk by the part of their spread that errors cause; otherwise drawn tables would have too few cycles.
    Of more than 200 models only those with the most battles are examined, and many models get fewer draws. Raises
    `InputError` where no triad has three majorities, and for an invalid number of draws or seed.

    >>> from venire.ratings import bradley_terry, comparisons, transitivity
    >>> data = comparisons(list("aba") * 3, list("bcc") * 3, [1, 1, 0, 0, 1, 1, 1, 0, 1])
    >>> found = transitivity(data, bradley_terry(data), draws=99)
    >>> found.triads, found.cyclic
    (1, 0)
    """
    check_draws(draws, seed)
    kept = _strongest_models(data, ratings)
    noise = pair_noise(data, kept)
    size = len(noise.models)
    clear = np.abs(2.0 * noise.won - noise.total) > 1e-9 * np.maximum(1.0, noise.total)
    met = np.zeros((size, size))
    met[noise.first[clear], noise.second[clear]] = 1.0
    met += met.T
    triads = round(_closed(met) / 6.0)
    if not triads:
        raise InputError("no three models all met with a majority: there is no triad to look at")
    wins = _winners(noise, noise.won, clear)
    cyclic = round(_closed(wins) / 3.0)
    drawn = _drawn(noise, clear, kept[np.isfinite(kept)] * _drawn_in(ratings), _affordable(draws, size), seed) / triads
    return Transitivity(
        triads=triads,
        cyclic=cyclic,
        expected=float(drawn.mean()),
        p_value=tail_probability(cyclic / triads, drawn),
        zeta=_zeta(size, cyclic) if bool(met.sum() == size * (size - 1)) else None,
        strongest=_strongest(noise, wins, 2.0 * triads),
        models=size,
    )


def _strongest_models(data: Comparisons, ratings: Ratings) -> Vector:
    """The centred ratings, NaN except for the models with the most battles; among equals, the first by name."""
    logits = ratings.logits - np.nanmean(ratings.logits)
    rated = np.flatnonzero(np.isfinite(logits)).tolist()
    played = data.played
    order = sorted(rated, key=lambda code: (-played[code], data.models[code]))
    kept = np.full(len(logits), np.nan)
    kept[order[:_MAX_MODELS]] = logits[order[:_MAX_MODELS]]
    return kept


def _drawn_in(ratings: Ratings) -> float:
    """The shrinkage factor of ratings: errors make estimates more spread out than the true ratings."""
    known = np.isfinite(ratings.logits)
    spread = float(np.var(ratings.logits[known]))
    noise = float(np.mean(np.square(ratings.se[known])))
    return max(0.0, 1.0 - noise / spread) if spread > 0.0 and np.isfinite(noise) else 1.0


def _affordable(draws: int, size: int) -> int:
    return max(min(draws, 99), min(draws, int(2e10 / (2.0 * size**3))))


def _winners(noise: PairNoise, won: Vector, clear: NDArray[np.bool_]) -> NDArray[np.float32]:
    """1 at [i, j] where i has the majority over j (n, n), among the pairs marked clear."""
    size = len(noise.models)
    wins = np.zeros((size, size), dtype=np.float32)
    ahead = 2.0 * won > noise.total
    wins[noise.first[clear & ahead], noise.second[clear & ahead]] = 1.0
    wins[noise.second[clear & ~ahead], noise.first[clear & ~ahead]] = 1.0
    return wins


def _closed(steps: NDArray[np.floating]) -> float:
    """The number of closed walks of three steps; each is counted once per starting point."""
    return float(((steps @ steps) * steps.T).sum(dtype=np.float64))


def _drawn(noise: PairNoise, clear: NDArray[np.bool_], at: Vector, draws: int, seed: int) -> Vector:
    """Cyclic triads (draws,) of tables drawn from ratings `at` (n,)."""
    expected = noise.total / (1.0 + np.exp(at[noise.second] - at[noise.first]))
    found: list[float] = []
    for block in noise.draws(draws, seed):
        found.extend(_closed(_winners(noise, expected + column, clear)) / 3.0 for column in block.T)
    return np.array(found)


def _zeta(size: int, cyclic: int) -> float:
    """Kendall and Babington Smith 1940, "On the method of paired comparisons"."""
    most = (size**3 - size) / 24 if size % 2 else (size**3 - 4 * size) / 24
    return 1.0 - cyclic / most


def _strongest(noise: PairNoise, wins: NDArray[np.floating], tests: float) -> tuple[Cycle, ...]:
    size, sigma = len(noise.models), np.sqrt(noise.even)
    lead = noise.won - 0.5 * noise.total
    clearness = np.divide(lead, sigma, out=np.zeros(len(lead)), where=sigma > 0.0)
    margin, share = np.zeros((size, size)), np.zeros((size, size))
    margin[noise.first, noise.second], margin[noise.second, noise.first] = clearness, -clearness
    share[noise.first, noise.second] = noise.won / noise.total
    share[noise.second, noise.first] = 1.0 - noise.won / noise.total
    best: list[tuple[float, tuple[int, int, int]]] = []
    for one in range(size):
        # A cycle is counted once, from the first of its names.
        rest = slice(one + 1, size)
        closed = (wins[one, rest, None] * wins[rest, rest] * wins[rest, one][None, :]) > 0.0
        least = np.minimum(np.minimum(margin[one, rest, None], margin[rest, rest]), margin[rest, one][None, :])
        there = np.argwhere(closed)
        for two, three in there[np.argsort(-least[closed], kind="stable")[:_SHOWN]].tolist():
            best.append((float(least[two, three]), (one, one + 1 + two, one + 1 + three)))
    chosen = heapq.nsmallest(_SHOWN, best, key=lambda entry: (-entry[0], entry[1]))
    return tuple(
        Cycle(
            (noise.models[one], noise.models[two], noise.models[three]),
            (float(share[one, two]), float(share[two, three]), float(share[three, one])),
            weakest,
            float(min(1.0, tests * norm.sf(weakest))),
        )
        for weakest, (one, two, three) in chosen
    )
