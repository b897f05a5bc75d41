"""Goodness of fit of one rating per model: observed win shares of pairs against expected ones, and their noise.

The plain chi-squared test assumes independent battles and outcomes without ties: it rejects too often where judges
share instructions, and too rarely with many ties. Here the null distribution is a wild bootstrap that holds the model's
own expectation (Liu 1988, "Bootstrap procedures under some non-i.i.d. models"): each unit (a cluster, or a row without
clusters) adds its own residuals, times one normal number per draw. This is Rao and Scott's correction by simulation.
The result is an effect size, in points of win share, and not only a test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from venire.arena.errors import InputError
from venire.ratings.data.clustered import cluster_codes
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.data.statistics import chi2, norm
from venire.ratings.data.validation import check_draws
from venire.ratings.pairwise.covariance import inverse_information, rated_rows

_UNITS = 2_000
"""Maximum number of units; beyond it they are pooled. They are independent, so pooling only saves time."""

_BLOCK = 64
"""Draws per random stream; changing it changes the results of a seed."""

Vector = NDArray[np.float64]

Matrix = NDArray[np.float64]

_SHOWN = 5


@dataclass(frozen=True, slots=True, eq=False)
class PairNoise:
    """Noise of pairs that met, as codes `first` < `second` (pairs,) into `models`, and the residuals behind it.

    `won` (pairs,) is the weight by which the first won and `total` that of the pair's rows, `expected` the share of
    wins under the ratings. `residuals` (pairs, units) sums outcome minus expectation over each unit's rows. `even`
    (pairs,) is the variance of the weight won about one half, which tests of the majority use.
    """

    models: tuple[str, ...]
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    won: Vector
    total: Vector
    expected: Vector
    residuals: csr_array
    even: Vector

    @property
    def variance(self) -> Vector:
        """Variance (pairs,) of the weight won."""
        return _squares(self.residuals)

    def draws(self, number: int, seed: int) -> Iterator[Matrix]:
        """Noise of the weight won, in blocks (pairs, up to 64) of `number` draws in total."""
        units = self.residuals.shape[1]
        scale = np.sqrt(units / (units - 1)) if units > 1 else 0.0
        for block, start in enumerate(range(0, number, _BLOCK)):
            rng = np.random.default_rng([seed, block])
            chance = rng.standard_normal((units, _BLOCK))[:, : min(_BLOCK, number - start)]
            yield np.asarray(scale * (self.residuals @ chance), dtype=np.float64)


def pair_noise(data: Comparisons, logits: Vector) -> PairNoise:
    """The noise of pairs around ratings `logits` (n,); models with NaN are left out."""
    rows = rated_rows(data if data.weight is None else data.select(data.weight > 0.0), logits)
    at = logits[np.isfinite(logits)]
    size = len(at)
    low, high = np.minimum(rows.a, rows.b), np.maximum(rows.a, rows.b)
    y = np.where(rows.a == low, rows.y, 1.0 - rows.y)
    weight = np.ones(len(y)) if rows.weight is None else rows.weight
    order = np.lexsort((weight, y, high, low))
    low, high, y, weight = (column[order] for column in (low, high, y, weight))
    keys, pair = np.unique(low.astype(np.int64) * size + high, return_inverse=True)
    first, second = (np.asarray(part, dtype=np.intp) for part in np.divmod(keys, max(size, 1)))
    expected = expit(at[first] - at[second])
    unit, units = cluster_codes(None if rows.cluster is None else rows.cluster[order], len(y))
    unit, units = pool_units(unit, units)

    def by_unit(values: Vector) -> csr_array:
        return csr_array((weight * values, (pair, unit)), shape=(len(keys), units))

    return PairNoise(
        models=rows.models,
        first=first,
        second=second,
        won=np.bincount(pair, weight * y, len(keys)).astype(np.float64),
        total=np.bincount(pair, weight, len(keys)).astype(np.float64),
        expected=expected,
        residuals=by_unit(y - expected[pair]),
        even=_squares(by_unit(y - 0.5)),
    )


def pool_units(unit: NDArray[np.int32], units: int) -> tuple[NDArray[np.int32], int]:
    """Pool units (rows,) at random where there are more than 2,000; the pooled units, and their number.

    Pooling is random, not round-robin: neighbours may be sorted by outcome, and an even split would scatter too little.
    """
    if units <= _UNITS:
        return unit, units
    lot = np.random.default_rng(0).permutation(units) % _UNITS
    return lot[unit].astype(np.int32), _UNITS


def _squares(sums: csr_array) -> Vector:
    """Sums of squares over units (pairs,), NaN with a single unit."""
    units = sums.shape[1]
    square = np.asarray(sums.power(2).sum(axis=1), dtype=np.float64).ravel()
    return square * (units / (units - 1)) if units > 1 else np.full(len(square), np.nan)


def tail_probability(found: float, drawn: Vector) -> float:
    """P-value by simulation: the share of draws (draws,) at least as large as `found`, including `found` itself."""
    return float((1 + np.count_nonzero(drawn >= found - 1e-12 * max(1.0, abs(found)))) / (1 + len(drawn)))


@dataclass(frozen=True, slots=True)
class OddPair:
    """Two models: the first one's share of wins, the share that ratings expect, and the standard errors between them.

    `p_value` is the probability that the most significant of all pairs is at least this significant.
    """

    models: tuple[str, str]
    share: float
    expected: float
    z: float
    p_value: float


@dataclass(frozen=True, slots=True)
class GoodnessOfFit:
    """How far win shares of pairs are from a Bradley-Terry fit.

    `misfit` is the root mean square distance in win share (0 to 1), weighted by battles, after subtracting the part due
    to chance; `raw` is before it. `p_value` is the probability of a distance at least as large under the model,
    `naive_p` that of the plain chi-squared test, which assumes independent battles. `worst` are the pairs with the most
    significant distance.
    """

    misfit: float
    raw: float
    p_value: float
    naive_p: float
    pairs: int
    degrees: int
    worst: tuple[OddPair, ...]


def goodness_of_fit(data: Comparisons, ratings: Ratings, *, draws: int = 999, seed: int = 0) -> GoodnessOfFit:
    """Compare win shares of pairs with unridged Bradley-Terry `ratings` of the same data; docs/ratings.md.

    Raises `InputError` where the ratings can fit all pairs exactly, and for an invalid number of draws or seed.

    >>> from venire.ratings import bradley_terry, comparisons, goodness_of_fit
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> goodness_of_fit(data, bradley_terry(data), draws=99).degrees
    1
    """
    check_draws(draws, seed)
    if draws < 1:
        raise InputError(f"draws is {draws}; give 1 or more, such as 999")
    noise = pair_noise(data, ratings.logits)
    degrees = len(noise.first) - (len(noise.models) - 1)
    if degrees < 1:
        raise InputError(
            f"{len(noise.first)} pairs of {len(noise.models)} models met: ratings fit as many exactly, so nothing can "
            "contradict them"
        )
    logits = ratings.logits[np.isfinite(ratings.logits)]
    excess = noise.won - noise.total * noise.expected
    drawn = _refitted(noise, logits, draws, seed)
    found, whole = float((excess**2 / noise.total).sum()), float(noise.total.sum())
    return GoodnessOfFit(
        misfit=float(np.sqrt(max(0.0, found - drawn.mean()) / whole)),
        raw=float(np.sqrt(found / whole)),
        p_value=tail_probability(found, drawn),
        naive_p=_naive(noise, excess, degrees),
        pairs=len(noise.first),
        degrees=degrees,
        worst=_worst(noise, excess),
    )


def _refitted(noise: PairNoise, logits: NDArray[np.float64], draws: int, seed: int) -> NDArray[np.float64]:
    """The distance (draws,) of drawn tables from their own fits, which absorb the part that ratings can explain."""
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


def _naive(noise: PairNoise, excess: NDArray[np.float64], degrees: int) -> float:
    scatter = noise.total * noise.expected * (1.0 - noise.expected)
    there = scatter > 0.0
    return float(chi2.sf((excess[there] ** 2 / scatter[there]).sum(), degrees))


def _worst(noise: PairNoise, excess: NDArray[np.float64]) -> tuple[OddPair, ...]:
    # The variance is that about the ratings, not about the pair's own share, and at least that of single wins: few
    # rows, or rows that all agree as expected, must not be significant by accident.
    sigma = np.sqrt(np.maximum(noise.variance, noise.total * noise.expected * (1.0 - noise.expected)))
    clear = np.divide(excess, sigma, out=np.zeros(len(excess)), where=sigma > 0.0)
    order = np.argsort(-np.round(np.abs(clear), 9), kind="stable")[:_SHOWN].tolist()
    share = noise.won / noise.total
    return tuple(
        OddPair(
            (noise.models[noise.first[place]], noise.models[noise.second[place]]),
            float(share[place]),
            float(noise.expected[place]),
            float(clear[place]),
            float(min(1.0, 2.0 * norm.sf(abs(clear[place])) * len(excess))),
        )
        for place in order
    )
