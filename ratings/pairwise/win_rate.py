"""Win rates: the share of battles won, raw, with opponents of equal weight, or against one baseline.

Source: Remeli and Hardt 2026.

They need no model of strength and no connected graph, but they depend on the opponents that a model met: weak opponents
raise a raw rate. Equal weight for each opponent corrects for unequal numbers, not for different opponents.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.arena.wording import suggest
from venire.ratings.data.clustered import clustered_mean, log_odds_interval, outer_products_by_cluster
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings

_NO_SCATTER = 1e-20


@dataclass(frozen=True, slots=True, eq=False)
class WinRates:
    """Win rates (n,) from 0 to 1, a tie counting half, with their covariance (n, n) over `units` (n,) clusters of each.

    NaN where unknown.

    A model with one cluster, or without scatter between clusters, has an unknown error instead of 0. `ratings.score` is
    `rate`; its logits are the log odds of the rate, minus their mean, and NaN for a rate of 0 or 1.
    """

    ratings: Ratings
    rate: NDArray[np.float64]
    covariance: NDArray[np.float64]
    units: NDArray[np.int64]

    @property
    def se(self) -> NDArray[np.float64]:
        """Standard errors (n,) of the rates."""
        return np.asarray(np.sqrt(np.diagonal(self.covariance)))

    def interval(self, level: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bounds (n,) of the rates: Student's t by each model's clusters, on the scale of log odds; NaN at 0 and 1."""
        return log_odds_interval(self.rate, self.se, self.units.astype(np.float64) - 1.0, level)


@dataclass(frozen=True, slots=True, eq=False)
class BaselineRates:
    """Win rates (n,) of `models` against one baseline, standard errors over `units`, and the weight of battles."""

    baseline: str
    models: tuple[str, ...]
    rate: NDArray[np.float64]
    se: NDArray[np.float64]
    battles: NDArray[np.float64]
    units: NDArray[np.int64]

    def interval(self, level: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bounds (n,) as those of `WinRates`."""
        return log_odds_interval(self.rate, self.se, self.units.astype(np.float64) - 1.0, level)


def win_rate(data: Comparisons) -> WinRates:
    """Each model's share of its battles, by weight, with errors clustered by `data.cluster` (None: by row).

    >>> from venire.ratings import comparisons, win_rate
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> win_rate(data).rate.round(2).tolist()
    [0.75, 0.5, 0.25]
    """
    weight = _weight(data)
    size = len(data.models)
    played = _by_model(data.a, weight, data.b, weight, size)
    return _rates(data, "win-rate", played[data.a], played[data.b])


def win_rate_balanced(data: Comparisons) -> WinRates:
    """The mean over a model's opponents of its share against each, with errors clustered as in `win_rate`.

    If a model has a single row against some opponent, the error does not include that opponent; more rows are needed.

    >>> from venire.ratings import comparisons, win_rate_balanced
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> win_rate_balanced(data).rate.round(2).tolist()
    [0.75, 0.5, 0.25]
    """
    weight, size = _weight(data), len(data.models)
    pair = data.a.astype(np.int64) * size + data.b
    met = np.bincount(pair, weight, size * size).reshape(size, size)
    met = met + met.T
    opponents = np.count_nonzero(met, axis=1)
    together = met[data.a, data.b]
    return _rates(data, "win-rate-balanced", together * opponents[data.a], together * opponents[data.b])


def against_baseline(data: Comparisons, baseline: str) -> BaselineRates:
    """Each model's share against `baseline` only, as in AlpacaEval: the mean of outcomes and its error.

    The error is that of a mean of clusters (an instruction asked once: sd over the root of n, with n - 1). Raises
    `InputError` where the baseline is not among the models.

    >>> from venire.ratings import against_baseline, comparisons
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> against_baseline(data, "a").rate.round(2).tolist()
    [0.5, 0.0]
    """
    if baseline not in data.models:
        raise InputError(f"baseline {baseline} is not among the models; {suggest(baseline, data.models)}")
    code = data.models.index(baseline)
    rows = ((data.a == code) | (data.b == code)) & (_weight(data) > 0.0)
    y = np.where(data.b == code, data.y, 1.0 - data.y)[rows]
    other, weight = np.where(data.b == code, data.a, data.b)[rows], _weight(data)[rows]
    cluster = None if data.cluster is None else data.cluster[rows]
    met = np.unique(other)
    found = [
        clustered_mean(y[own], None if cluster is None else cluster[own], weight[own])
        for own in (other == one for one in met)
    ]
    return BaselineRates(
        baseline=baseline,
        models=tuple(data.models[one] for one in met.tolist()),
        rate=np.array([mean.value for mean in found], dtype=np.float64),
        se=np.array([mean.se for mean in found], dtype=np.float64),
        battles=np.bincount(other, weight, len(data.models))[met],
        units=np.array([mean.clusters for mean in found], dtype=np.int64),
    )


def _rates(data: Comparisons, method: str, share_a: NDArray[np.float64], share_b: NDArray[np.float64]) -> WinRates:
    """Rates in which a row counts its weight over share_a (rows,) for A and over share_b for B."""
    weight, size = _weight(data), len(data.models)
    used = weight > 0.0
    a, b, y = data.a[used], data.b[used], data.y[used]
    for_a, for_b = weight[used] / share_a[used], weight[used] / share_b[used]
    counted = _by_model(a, for_a, b, for_b, size)
    with np.errstate(invalid="ignore"):
        # Shares sum to 1 but for rounding: whoever won everything must have exactly 1, whose log odds are infinite.
        rate = _by_model(a, for_a * y, b, for_b * (1.0 - y), size) / counted
    centre_a, centre_b = _centres(data, method, rate, used)
    found, fewest = data.units(used), np.full(size, len(y), dtype=np.int64)

    def scatter(group: NDArray[np.int32], count: int) -> NDArray[np.float64]:
        products = outer_products_by_cluster(
            group, count, a, for_a * (y - centre_a), b, for_b * (1.0 - y - centre_b), size
        )
        units = _units(group, count, a, b, size)
        np.minimum(fewest, units, out=fewest)
        # Each model uses the number of its own clusters, so that the error of a model with few is not underestimated.
        factor = np.sqrt(np.where(units > 1, units / np.maximum(units - 1.0, 1.0), np.nan))
        factor[np.diagonal(products) <= _NO_SCATTER] = np.nan
        return np.asarray(products * factor * factor[:, None])

    covariance = found.combined(scatter)
    played = _by_model(data.a, weight, data.b, weight, size)
    ratings = _ratings(data, method, rate, covariance, fewest, played)
    errors = "sandwich" if data.cluster is None else found.errors
    notes = {"clusters": found.clusters, "respondents": found.respondents} if found.respondents else {}
    ratings = replace(ratings, errors=errors, diagnostics={**ratings.diagnostics, **notes})
    return WinRates(ratings, rate, covariance, fewest)


def _centres(
    data: Comparisons, method: str, rate: NDArray[np.float64], used: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The centre of each row, for A and for B: the model's rate, or its share against that opponent."""
    a, b = data.a[used], data.b[used]
    if method == "win-rate":
        return rate[a], rate[b]
    size, weight = len(data.models), _weight(data)[used]
    won = np.bincount(a.astype(np.int64) * size + b, weight * data.y[used], size * size)
    won += np.bincount(b.astype(np.int64) * size + a, weight * (1.0 - data.y[used]), size * size)
    table = won.reshape(size, size)
    share = table[a, b] / (table[a, b] + table[b, a])
    return share, 1.0 - share


def _ratings(
    data: Comparisons,
    method: str,
    rate: NDArray[np.float64],
    covariance: NDArray[np.float64],
    units: NDArray[np.int64],
    played: NDArray[np.float64],
) -> Ratings:
    inside = (rate > 0.0) & (rate < 1.0)
    kept = np.flatnonzero(inside)
    logits, spread = np.full(len(rate), np.nan), np.full_like(covariance, np.nan)
    if len(kept):
        odds = np.log(rate[kept]) - np.log1p(-rate[kept])
        logits[kept] = odds - odds.mean()
        slope = 1.0 / (rate[kept] * (1.0 - rate[kept]))
        centre = (np.eye(len(kept)) - 1.0 / len(kept)) * slope
        spread[np.ix_(kept, kept)] = centre @ covariance[np.ix_(kept, kept)] @ centre.T
    unknown = [data.models[code] for code in kept if np.isnan(covariance[code, code])]
    shown = ", ".join(unknown[:5]) + (f" and {len(unknown) - 5} more" if len(unknown) > 5 else "")
    reasons = {
        data.models[code]: "it has no comparison with a weight above 0"
        if np.isnan(rate[code])
        else f"a win rate of {rate[code]:g} has infinite log odds"
        for code in np.flatnonzero(~inside)
    }
    return Ratings(
        method=method,
        models=data.models,
        logits=logits,
        battles=played,
        covariance=spread,
        degrees=float(max(units[kept].min() - 1, 1)) if len(kept) else np.inf,
        score=rate,
        unit="win rate",
        diagnostics={
            "no_estimate": reasons,
            "errors_reason": f"no rating has an error, since all are against the mean and that of {shown} cannot be "
            "told: one cluster, or outcomes that do not scatter"
            if unknown
            else None,
        },
    )


def _units(
    group: NDArray[np.int32], count: int, a: NDArray[np.int32], b: NDArray[np.int32], size: int
) -> NDArray[np.int64]:
    """The number of clusters of each model (n,)."""
    key = np.unique(np.concatenate([a.astype(np.int64) * count + group, b.astype(np.int64) * count + group]))
    return np.bincount(key // max(count, 1), minlength=size)


def _by_model(
    a: NDArray[np.int32], of_a: NDArray[np.float64], b: NDArray[np.int32], of_b: NDArray[np.float64], size: int
) -> NDArray[np.float64]:
    return np.asarray(np.bincount(a, of_a, size) + np.bincount(b, of_b, size), dtype=np.float64)


def _weight(data: Comparisons) -> NDArray[np.float64]:
    return np.ones(len(data)) if data.weight is None else data.weight
