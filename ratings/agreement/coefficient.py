"""One coefficient of agreement with its interval, and the bootstrap over items that gives it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError
from venire.ratings.data.validation import check_draws, check_level

__all__ = ["Coefficient", "Resampling", "coefficient_of", "kept_clusters", "resample"]

Statistic = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Weights (replicates, items) to one value each (replicates,); NaN where it is undefined."""

_BLOCK = 1 << 22
"""Weights held at once, so that many items and replicates fit into memory."""


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A coefficient over `items`, with a two-sided interval at `level` and the standard error of the same draws.

    `value` is None where it is undefined, and `reason` says why. `observed` and `expected` are the shares of agreement
    (for alpha of disagreement) that it sets against each other. `errors` says how `lo`, `hi` and `se` were found
    ("bootstrap" over items, or clusters of them; "asymptotic"; "none"); `undefined` counts draws without a value.
    """

    name: str
    value: float | None
    items: int
    observed: float | None = None
    expected: float | None = None
    lo: float | None = None
    hi: float | None = None
    se: float | None = None
    level: float = 0.95
    errors: str = "none"
    replicates: int = 0
    undefined: int = 0
    reason: str | None = None

    def summary(self) -> str:
        """The coefficient, its interval and what it rests on, in one line."""
        if self.value is None:
            return f"{self.name}: none ({self.reason})"
        span = "" if self.lo is None else f", {self.level:.0%} interval {self.lo:.4f} to {self.hi:.4f}"
        return f"{self.name}: {self.value:.4f}{span}; {self.items:,} items, errors: {self.errors}"


@dataclass(frozen=True, slots=True, eq=False)
class Resampling:
    """What was drawn: `values` (replicates,) without the undefined ones, and how many of those there were."""

    values: NDArray[np.float64]
    undefined: int
    replicates: int

    def percentile(self, level: float) -> tuple[float | None, float | None]:
        """Percentile interval; None for both where every draw is undefined."""
        if not len(self.values):
            return None, None
        low, high = np.quantile(self.values, [0.5 - level / 2.0, 0.5 + level / 2.0])
        return float(low), float(high)

    @property
    def se(self) -> float | None:
        """Standard deviation of the draws."""
        return float(self.values.std(ddof=1)) if len(self.values) > 1 else None


def coefficient_of(
    name: str,
    value: float,
    items: int,
    found: Resampling,
    *,
    level: float,
    observed: float | None = None,
    expected: float | None = None,
    undefined: str = "",
) -> Coefficient:
    """A value over `items` with the percentile interval of its draws; NaN becomes None, and `undefined` says why."""
    known = bool(np.isfinite(value))
    low, high = found.percentile(level) if known else (None, None)
    return Coefficient(
        name=name,
        value=float(value) if known else None,
        items=items,
        observed=observed,
        expected=expected,
        lo=low,
        hi=high,
        se=found.se if known else None,
        level=level,
        errors="bootstrap" if found.replicates else "none",
        replicates=found.replicates,
        undefined=found.undefined,
        reason=None if known else undefined,
    )


def kept_clusters(cluster: ArrayLike | None, kept: NDArray[np.bool_]) -> NDArray[Any] | None:
    """The clusters of the items `kept` (items,), None without clusters; raises `InputError` for another length."""
    return None if cluster is None else np.asarray(_clusters(cluster, len(kept))[kept])


def _clusters(cluster: ArrayLike, items: int) -> NDArray[Any]:
    names = np.asarray(cluster)
    if names.shape != (items,):
        raise InputError(f"cluster has shape {names.shape}; give one name or number for each of {items} items")
    return names


def resample(
    statistic: Statistic, items: int, *, level: float, replicates: int, seed: int, cluster: ArrayLike | None = None
) -> Resampling:
    """Draw items with replacement `replicates` times, and whole clusters where `cluster` (items,) names them.

    The same seed gives the same draws whatever memory allows at once. Raises `InputError` for a level, a number of
    replicates or clusters that cannot be used.
    """
    check_level(level)
    check_draws(replicates, seed)
    code: NDArray[np.int64] | None = None
    units = items
    if cluster is not None:
        found, places = np.unique(_clusters(cluster, items), return_inverse=True)
        code, units = places.astype(np.int64), len(found)
    rng = np.random.default_rng(seed)
    share = np.full(units, 1.0 / units) if units else np.zeros(0)
    step = max(1, _BLOCK // max(items, 1))
    parts = []
    for start in range(0, replicates if units else 0, step):
        draws = rng.multinomial(units, share, size=min(step, replicates - start)).astype(np.float64)
        parts.append(statistic(draws if code is None else draws[:, code]))
    values = np.concatenate(parts) if parts else np.zeros(0)
    defined = values[np.isfinite(values)]
    return Resampling(defined, len(values) - len(defined), len(values))
