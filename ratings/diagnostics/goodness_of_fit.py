"""Whether one number a model explains who beats whom: win shares of pairs against those that ratings expect.

The plain chi-squared test takes battles for independent and outcomes for wins and losses: it rejects too often where
judges share instructions, too seldom where ties are many. Here the null distribution is drawn with each instruction's
rows moving as one, which is Rao and Scott's correction by simulation; and what is told is a size, in points of win
share, not only that there is a difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.data.statistics import chi2, norm
from venire.ratings.data.validation import check_draws
from venire.ratings.diagnostics.pair_noise import PairNoise, pair_noise, tail
from venire.ratings.pairwise.covariance import inverse_information

__all__ = ["GoodnessOfFit", "OddPair", "goodness_of_fit"]

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class OddPair:
    """Two models: the first one's share of wins, the share that ratings expect, and the standard errors between them.

    `p_value` is the chance that the clearest of all pairs is as clear.
    """

    models: tuple[str, str]
    share: float
    expected: float
    z: float
    p_value: float


@dataclass(frozen=True, slots=True)
class GoodnessOfFit:
    """How far win shares of pairs are from a Bradley-Terry fit.

    `misfit` is the root mean square distance in win share (0 to 1), weighted by battles, after what chance adds is
    taken off; `raw` before. `p_value` is the chance of as large a distance under the model, `naive_p` what the plain
    chi-squared test says, which takes battles for independent. `worst` are the pairs with the clearest distance.
    """

    misfit: float
    raw: float
    p_value: float
    naive_p: float
    pairs: int
    degrees: int
    worst: tuple[OddPair, ...]


def goodness_of_fit(data: Comparisons, ratings: Ratings, *, draws: int = 999, seed: int = 0) -> GoodnessOfFit:
    """Hold win shares of pairs against unridged Bradley-Terry `ratings` of the same data; docs/ratings.md.

    Raises `InputError` where pairs are no more than the ratings can fit exactly, and for a number of draws or a seed.
    """
    check_draws(draws, seed)
    noise = pair_noise(data, ratings.logits)
    degrees = len(noise.first) - (len(noise.models) - 1)
    if degrees < 1:
        raise InputError(
            f"{len(noise.first)} pairs of {len(noise.models)} models met: ratings fit as many exactly, so nothing can "
            "contradict them"
        )
    logits = ratings.logits[np.isfinite(ratings.logits)]
    apart = noise.won - noise.total * noise.expected
    drawn = _refitted(noise, logits, draws, seed)
    found, whole = float((apart**2 / noise.total).sum()), float(noise.total.sum())
    return GoodnessOfFit(
        misfit=float(np.sqrt(max(0.0, found - drawn.mean()) / whole)),
        raw=float(np.sqrt(found / whole)),
        p_value=tail(found, drawn),
        naive_p=_naive(noise, apart, degrees),
        pairs=len(noise.first),
        degrees=degrees,
        worst=_worst(noise, apart),
    )


def _refitted(noise: PairNoise, logits: NDArray[np.float64], draws: int, seed: int) -> NDArray[np.float64]:
    """The distance (draws,) of drawn tables from their own fits, which take up what ratings can explain."""
    size, pairs = len(logits), np.arange(len(noise.first))
    totals = np.zeros((size, size))
    totals[noise.first, noise.second] = totals[noise.second, noise.first] = noise.total
    bread = inverse_information(totals, logits, ridge=0.0, free=np.ones(size, dtype=np.bool_), models=noise.models)
    sides = np.concatenate([np.ones(len(pairs)), -np.ones(len(pairs))])
    ends = np.concatenate([pairs, pairs]), np.concatenate([noise.first, noise.second])
    design = csr_array((sides, ends), shape=(len(pairs), size))
    curve = noise.total * noise.expected * expit(logits[noise.second] - logits[noise.first])
    found = []
    for block in noise.draws(draws, seed):
        left = block - curve[:, None] * (design @ (bread @ (design.T @ block)))
        found.append((left**2 / noise.total[:, None]).sum(axis=0))
    return np.concatenate(found)


def _naive(noise: PairNoise, apart: NDArray[np.float64], degrees: int) -> float:
    scatter = noise.total * noise.expected * (1.0 - noise.expected)
    there = scatter > 0.0
    return float(chi2.sf((apart[there] ** 2 / scatter[there]).sum(), degrees))


def _worst(noise: PairNoise, apart: NDArray[np.float64]) -> tuple[OddPair, ...]:
    # The variance is that around the ratings, not around the pair's own share, and no less than what single wins would
    # scatter by: neither few rows nor rows that all say the same, as was expected, are clear by accident.
    sigma = np.sqrt(np.maximum(noise.variance, noise.total * noise.expected * (1.0 - noise.expected)))
    clear = np.divide(apart, sigma, out=np.zeros(len(apart)), where=sigma > 0.0)
    order = np.argsort(-np.round(np.abs(clear), 9), kind="stable")[:_SHOWN].tolist()
    share = noise.won / noise.total
    return tuple(
        OddPair(
            (noise.models[noise.first[place]], noise.models[noise.second[place]]),
            float(share[place]),
            float(noise.expected[place]),
            float(clear[place]),
            float(min(1.0, 2.0 * norm.sf(abs(clear[place])) * len(apart))),
        )
        for place in order
    )
