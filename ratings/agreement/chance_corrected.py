"""Chance-corrected agreement of judges: Cohen's kappa, Fleiss' kappa and Krippendorff's alpha, with intervals.

Each coefficient is (observed - expected) / (1 - expected), for alpha written with disagreement. Its interval is that of
a jackknife over items, or over clusters of them, as that of consistency is (`interval_below_one`). Other figures of
this package draw items with `resample`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from venire.arena.errors import InputError
from venire.arena.wording import interval_text
from venire.ratings.data.clustered import clustered_mean, interval_below_one, jackknife_error
from venire.ratings.data.labels import Labels, labels
from venire.ratings.data.statistics import norm
from venire.ratings.data.validation import check_draws, check_level, finite_or_none, float_array

Statistic = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Weights (replicates, items) to one value each (replicates,); NaN where it is undefined."""

_BLOCK = 1 << 22
"""Number of weights held in memory at once; bounds memory for many items and replicates."""

_LEFT_OUT_LIMIT = 1000
"""Units that are left out one by one; of more, every so manieth together, which takes the time of as many draws."""

Weighting = Literal["none", "linear", "quadratic"]

KappaErrors = Literal["jackknife", "asymptotic", "none"]

Distance = Literal["nominal", "ordinal", "interval"]


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A coefficient over `items`, with a two-sided interval at `level` and a standard error.

    `value` is None where it is undefined, and `reason` explains why. `observed` and `expected` are the shares of
    agreement (for alpha: of disagreement) that it compares. `errors` names the method behind `lo`, `hi` and `se`
    ("jackknife" or "bootstrap" over items or clusters of items; "asymptotic"; "none"). A jackknife has none where the
    coefficient is undefined without one of the units, or there are fewer than two. `undefined` counts draws of a
    bootstrap without a value, which may be any: a bound that they reach is None.
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
        """The coefficient, its interval and the number of items, in one line."""
        if self.value is None:
            return f"{self.name}: none ({self.reason})"
        between = interval_text(self.lo, self.hi, ".4f")
        span = f", {self.level:.0%} interval {between}" if between else ""
        return f"{self.name}: {self.value:.4f}{span}; {self.items:,} items, errors: {self.errors}"


@dataclass(frozen=True, slots=True, eq=False)
class Resampling:
    """Bootstrap draws of so many `units`: `values` (replicates,) without undefined values, and the number of these."""

    values: NDArray[np.float64]
    undefined: int
    replicates: int
    units: int

    def percentile(self, level: float) -> tuple[float | None, float | None]:
        """Percentile interval; a bound is None where undefined draws reach it."""
        if not len(self.values):
            return None, None
        tails = ((0.5 - level / 2.0, -math.inf, "lower"), (0.5 + level / 2.0, math.inf, "higher"))
        bounds = [
            np.quantile(np.append(self.values, np.full(self.undefined, end)), at, method=outward)  # type: ignore[call-overload]  # NumPy's stubs want a literal
            if self.undefined
            else np.quantile(self.values, at)
            for at, end, outward in tails
        ]
        low, high = (finite_or_none(float(bound)) for bound in bounds)
        return low, high

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
    undefined: str = "",
) -> Coefficient:
    """A value over `items` with the percentile interval of its draws; NaN becomes None, with `undefined` as reason.

    Of a single unit there is no interval.
    """
    known = bool(np.isfinite(value))
    low, high = found.percentile(level) if known and found.units > 1 else (None, None)
    return Coefficient(
        name=name,
        value=float(value) if known else None,
        items=items,
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
    """Bootstrap over items, `replicates` times, or over whole clusters where `cluster` (items,) is given.

    The draws depend on the seed only, not on how many are held in memory at once. Raises `InputError` for an invalid
    level, number of replicates or clusters.
    """
    check_level(level)
    check_draws(replicates, seed)
    code, units = _units(items, cluster)
    rng = np.random.default_rng(seed)
    share = np.full(units, 1.0 / units) if units else np.zeros(0)
    step = max(1, _BLOCK // max(items, 1))
    parts = []
    for start in range(0, replicates if units else 0, step):
        draws = rng.multinomial(units, share, size=min(step, replicates - start)).astype(np.float64)
        parts.append(statistic(draws if cluster is None else draws[:, code]))
    values = np.concatenate(parts) if parts else np.zeros(0)
    defined = values[np.isfinite(values)]
    return Resampling(defined, len(values) - len(defined), len(values), units)


def _units(items: int, cluster: ArrayLike | None) -> tuple[NDArray[np.intp], int]:
    """The unit of each item (items,), numbered without gaps, and the number of units: clusters, or items themselves."""
    if cluster is None:
        return np.arange(items), items
    found, code = np.unique(_clusters(cluster, items), return_inverse=True)
    return code, len(found)


def _without_each(statistic: Statistic, items: int, cluster: ArrayLike | None) -> NDArray[np.float64]:
    """The statistic without each unit (units,), or without each of `_LEFT_OUT_LIMIT` groups of units."""
    code, units = _units(items, cluster)
    group, groups = code % _LEFT_OUT_LIMIT, min(units, _LEFT_OUT_LIMIT)
    step = max(1, _BLOCK // max(items, 1))
    parts = [
        statistic((group != np.arange(start, min(start + step, groups))[:, None]).astype(np.float64))
        for start in range(0, groups if groups > 1 else 0, step)
    ]
    return np.concatenate(parts) if parts else np.zeros(0)


def _jackknifed(found: Coefficient, left_out: NDArray[np.float64], room: float) -> Coefficient:
    """The coefficient with the interval of its values without each unit (units,).

    `room` is by how much one item that disagrees lowers it, times the items: errors are not below that.
    """
    check_level(found.level)
    if found.value is None or len(left_out) < 2:
        return found
    floor = room / found.items
    error, degrees = jackknife_error(left_out)
    error = max(error, floor)
    bounds = interval_below_one(found.value, error, floor, degrees, found.level)
    if bounds is None:
        return found
    return replace(found, lo=max(-1.0, bounds[0]), hi=bounds[1], se=error, errors="jackknife")


def cohen_kappa(
    first: ArrayLike,
    second: ArrayLike,
    *,
    weighting: Weighting = "none",
    categories: Sequence[object] | None = None,
    errors: KappaErrors = "jackknife",
    level: float = 0.95,
    cluster: ArrayLike | None = None,
) -> Coefficient:
    """Cohen's kappa (1960) of two judges' labels (items,), optionally weighted by category distance (1968).

    Items that lack a label from either judge are left out. With a weighting, categories are in the order given, else
    sorted. `errors` "asymptotic" uses the variance of Fleiss, Cohen and Everitt (1969), for independent items. Raises
    `InputError` for columns of different lengths and for an unknown option.

    >>> from venire.ratings import cohen_kappa
    >>> found = cohen_kappa([1, 0, 1, 1, 0, 0], [1, 0, 1, 0, 0, 1])
    >>> round(found.value, 3)
    0.333
    """
    left, right = np.asarray(first), np.asarray(second)
    if left.ndim != 1 or left.shape != right.shape:
        raise InputError(f"first has shape {left.shape}, second {right.shape}; give two columns of one length")
    coded = labels(np.stack([left.astype(object), right.astype(object)], axis=1), categories=categories)
    both = (coded.codes >= 0).all(axis=1)
    pairs, size = coded.codes[both], len(coded.categories)
    close = _closeness(size, weighting)
    _check_errors(errors, cluster)
    if not len(pairs):
        return Coefficient("Cohen's kappa", None, 0, level=level, reason="no item has a label of both judges")
    cell = csr_array(
        (np.ones(len(pairs)), (np.arange(len(pairs)), pairs[:, 0] * size + pairs[:, 1])), (len(pairs), size**2)
    )

    def statistic(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        observed, expected = _chances(np.asarray(weights @ cell).reshape(-1, size, size), close)
        return _beyond(observed, expected)

    table: NDArray[np.float64] = np.asarray(cell.sum(axis=0), dtype=np.float64).reshape(1, size, size)
    observed, expected = _chances(table, close)
    found = _kappa("Cohen's kappa", observed[0], expected[0], len(pairs), level)
    if errors == "asymptotic":
        return _asymptotic(found, table[0], close)
    kept = kept_clusters(cluster, np.asarray(both))
    left_out = _without_each(statistic, len(pairs), kept) if errors == "jackknife" else np.zeros(0)
    return _jackknifed(found, left_out, 1.0 / max(1.0 - expected[0], 1e-12))


def fleiss_kappa(
    table: ArrayLike,
    *,
    level: float = 0.95,
    cluster: ArrayLike | None = None,
) -> Coefficient:
    """Fleiss' kappa (1971) of a table (items, judges) of labels; every item needs the same number of labels.

    Raises `InputError` where the numbers differ: `krippendorff_alpha` accepts these tables.

    >>> from venire.ratings import fleiss_kappa
    >>> round(fleiss_kappa([[1, 1, 0], [0, 0, 0], [1, 1, 1], [0, 1, 0]]).value, 3)
    0.333
    """
    return fleiss_kappa_counts(labels(table).counts(), level=level, cluster=cluster)


def fleiss_kappa_counts(
    counts: ArrayLike,
    *,
    level: float = 0.95,
    cluster: ArrayLike | None = None,
) -> Coefficient:
    """Fleiss' kappa of `counts` (items, categories): how many judges gave each item each category.

    Raises `InputError` for numbers below 0, and for items with different numbers of judges.

    >>> from venire.ratings import fleiss_kappa_counts
    >>> round(fleiss_kappa_counts([[1, 2], [3, 0], [0, 3], [2, 1]]).value, 3)
    0.333
    """
    table = float_array("counts", counts)
    if table.ndim != 2 or not np.isfinite(table).all() or (table < 0).any():
        raise InputError("counts: give a table of items by categories, of numbers that are 0 or more")
    judges = table.sum(axis=1)
    if not len(table):
        return Coefficient("Fleiss' kappa", None, 0, level=level, reason="there is no item")
    wrong = np.flatnonzero((judges != judges[0]) | (judges < 2))
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"labels, row {row}: {judges[row]:g} labels; Fleiss' kappa needs the same number, 2 or more, for every "
            f"item (row 0 has {judges[0]:g}): leave the item out, or take krippendorff_alpha"
        )
    agreed = ((table * table).sum(axis=1) - judges) / (judges * (judges - 1.0))
    shares = table / judges[0]

    def parts(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        total = weights.sum(axis=1)
        marginal = (weights @ shares) / total[:, None]
        return (weights @ agreed) / total, (marginal * marginal).sum(axis=1)

    observed, expected = parts(np.ones((1, len(table))))
    left_out = _without_each(lambda weights: _beyond(*parts(weights)), len(table), cluster)
    found = _kappa("Fleiss' kappa", observed[0], expected[0], len(table), level)
    return _jackknifed(found, left_out, 1.0 / max(1.0 - expected[0], 1e-12))


def unanimity(
    table: ArrayLike,
    *,
    level: float = 0.95,
    cluster: ArrayLike | None = None,
) -> Coefficient:
    """Share of the items (items, judges) on which all judges agree, of those that all of them labelled.

    Its interval is Wilson's, clustered (`ClusteredMean.share_interval`).

    >>> from venire.ratings import unanimity
    >>> round(unanimity([[1, 1, 0], [0, 0, 0], [1, 1, 1], [0, 1, 0]]).value, 3)
    0.5
    """
    codes = labels(table).codes
    full = (codes >= 0).all(axis=1)
    same = (codes[full] == codes[full][:, :1]).all(axis=1).astype(np.float64)
    if not len(same):
        return Coefficient("unanimous share", None, 0, level=level, reason="no item has a label of every judge")
    found = clustered_mean(same, kept_clusters(cluster, np.asarray(full)))
    lo, hi = found.share_interval(level)
    return Coefficient(
        "unanimous share", found.value, len(same), lo=lo, hi=hi, se=found.se, level=level, errors="cluster"
    )


def human_kappa(y: ArrayLike, human: ArrayLike, *, cluster: ArrayLike | None = None) -> Coefficient:
    """Cohen's kappa of a judge with people over win, tie and loss.

    `y` and `human` (rows,) are outcomes for A, NaN unknown. A partial win counts as a win: kappa uses the side only.
    Raises `InputError`.

    >>> from venire.ratings import human_kappa
    >>> round(human_kappa([1, 0, 0.5, 1], [1, 0, 1, 1]).value, 3)
    0.556
    """
    judge, people = (np.sign(float_array(name, column) - 0.5) for name, column in (("y", y), ("human", human)))
    if judge.shape != people.shape or judge.ndim != 1:
        raise InputError(f"y has shape {judge.shape}, human {people.shape}; give two columns of one length")
    both = ~(np.isnan(judge) | np.isnan(people))
    groups = kept_clusters(cluster, both)
    return cohen_kappa(judge[both].astype(int), people[both].astype(int), cluster=groups)


def _closeness(size: int, weighting: Weighting) -> NDArray[np.float64]:
    """Agreement weights of pairs of categories (size, size): 1 on the diagonal."""
    if weighting not in ("none", "linear", "quadratic"):
        raise InputError(f"weighting is {weighting!r}; choose none, linear or quadratic")
    if weighting == "none" or size < 2:
        return np.eye(size)
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size))) / (size - 1.0)
    return np.asarray(1.0 - (apart if weighting == "linear" else apart * apart), dtype=np.float64)


def _check_errors(errors: str, cluster: ArrayLike | None) -> None:
    if errors not in get_args(KappaErrors):
        raise InputError(f"errors is {errors!r}; choose jackknife, asymptotic or none")
    if errors == "asymptotic" and cluster is not None:
        raise InputError('errors "asymptotic" takes items as independent; with cluster choose "jackknife"')


def _chances(
    tables: NDArray[np.float64], close: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Observed and expected agreement (n,) of tables of counts (n, categories, categories)."""
    share = tables / tables.sum(axis=(1, 2), keepdims=True)
    observed = (share * close).sum(axis=(1, 2))
    expected = np.einsum("ni,ij,nj->n", share.sum(axis=2), close, share.sum(axis=1))
    return observed, expected


def _beyond(observed: NDArray[np.float64], expected: NDArray[np.float64]) -> NDArray[np.float64]:
    """(observed - expected) / (1 - expected); NaN where the expected agreement is 1."""
    room = 1.0 - expected
    defined = room > 1e-12
    return np.where(defined, (observed - expected) / np.where(defined, room, 1.0), np.nan)


def _coefficient(
    name: str, value: float, items: int, observed: float, expected: float, level: float, undefined: str
) -> Coefficient:
    known = bool(np.isfinite(value))
    return Coefficient(
        name, float(value) if known else None, items, float(observed), float(expected), level=level,
        reason=None if known else undefined,
    )  # fmt: skip


def _kappa(name: str, observed: float, expected: float, items: int, level: float) -> Coefficient:
    """A kappa without an interval."""
    value = float(_beyond(np.array([observed]), np.array([expected]))[0])
    none = "all labels are of one category: chance alone agrees always"
    return _coefficient(name, value, items, observed, expected, level, none)


def _asymptotic(plain: Coefficient, table: NDArray[np.float64], close: NDArray[np.float64]) -> Coefficient:
    """Cohen's kappa with the large-sample variance of Fleiss, Cohen and Everitt (1969)."""
    check_level(plain.level)
    if plain.value is None:
        return plain
    share, kappa = table / table.sum(), plain.value
    row, column = share.sum(axis=1), share.sum(axis=0)
    expected = float(row @ close @ column)
    mean = (close @ column)[:, None] + (row @ close)[None, :]
    spread = float((share * (close - mean * (1.0 - kappa)) ** 2).sum()) - (kappa - expected * (1.0 - kappa)) ** 2
    error = float(np.sqrt(max(spread, 0.0) / plain.items)) / (1.0 - expected)
    half = float(norm.ppf(0.5 + plain.level / 2.0)) * error
    return replace(plain, lo=max(-1.0, kappa - half), hi=min(1.0, kappa + half), se=error, errors="asymptotic")


def krippendorff_alpha(
    table: ArrayLike,
    *,
    distance: Distance = "nominal",
    categories: Sequence[object] | None = None,
    level: float = 0.95,
    cluster: ArrayLike | None = None,
) -> Coefficient:
    """Krippendorff's alpha of a table (items, judges) of labels; None, NaN and "" are missing.

    alpha = 1 - observed / expected disagreement over pairs of labels of one item, and of any two. An item with fewer
    than two labels is left out. "ordinal" takes categories in the order given, else sorted; "interval" needs numbers.
    Whole items are left out, or clusters of them. Raises `InputError` for a distance that does not fit.

    >>> from venire.ratings import krippendorff_alpha
    >>> round(krippendorff_alpha([[1, 1, 0], [0, 0, 0], [1, 1, np.nan], [0, 1, 0]]).value, 3)
    0.333
    """
    if distance not in ("nominal", "ordinal", "interval"):
        raise InputError(f"distance is {distance!r}; choose nominal, ordinal or interval")
    coded = labels(table, categories=categories)
    counts = coded.counts()
    paired = counts.sum(axis=1) >= 2
    counts = counts[paired]
    if not len(counts):
        none = "no item has labels of two judges"
        return Coefficient(f"Krippendorff's alpha ({distance})", None, 0, level=level, reason=none)
    points = _points(coded, distance)

    def parts(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return _nominal(counts, weights) if points is None else _distances(counts, weights, points, distance)

    observed, expected = parts(np.ones((1, len(counts))))
    value = float(_alpha(observed, expected)[0])
    none = "all labels are equal: nothing could have disagreed"
    name = f"Krippendorff's alpha ({distance})"
    found = _coefficient(name, value, len(counts), observed[0], expected[0], level, none)
    left_out = _without_each(lambda weights: _alpha(*parts(weights)), len(counts), kept_clusters(cluster, paired))
    # One item of two labels that differ; of distances on a line, one that disagrees as chance does.
    return _jackknifed(found, left_out, 1.0 if points is not None else 1.0 / max(expected[0], 1e-12))


def _points(coded: Labels, distance: Distance) -> NDArray[np.float64] | None:
    """Positions of the categories on a line (categories,); None for nominal categories."""
    if distance == "nominal":
        return None
    if distance == "ordinal":
        return np.arange(len(coded.categories), dtype=np.float64)
    if coded.values is None:
        raise InputError("labels: the interval distance needs numbers; choose ordinal or nominal for names")
    # Large values with small differences would lose digits in the squares.
    return np.asarray(coded.values - coded.values.mean(), dtype=np.float64)


def _alpha(observed: NDArray[np.float64], expected: NDArray[np.float64]) -> NDArray[np.float64]:
    defined = expected > 0.0
    return np.where(defined, 1.0 - observed / np.where(defined, expected, 1.0), np.nan)


def _nominal(
    counts: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Observed and expected share (n,) of pairs with different labels, for weights (n, items)."""
    size = counts.sum(axis=1)
    apart = (size * size - (counts * counts).sum(axis=1)) / (size - 1.0)
    total, marginal = weights @ size, weights @ counts
    return (weights @ apart) / total, (total * total - (marginal * marginal).sum(axis=1)) / (total * (total - 1.0))


def _distances(
    counts: NDArray[np.float64], weights: NDArray[np.float64], points: NDArray[np.float64], distance: Distance
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same as `_nominal` for squared distances on a line.

    The ordinal distance of two categories counts the labels between them plus half of both ends. This is the difference
    of their mid-ranks, so it equals the interval distance on ranks that are recomputed for each draw.
    """
    size = counts.sum(axis=1)
    total, marginal = weights @ size, weights @ counts
    place = np.broadcast_to(points, marginal.shape)
    if distance == "ordinal":
        place = np.cumsum(marginal, axis=1) - marginal / 2.0 - total[:, None] / 2.0
    share = 2.0 / (size - 1.0)
    squares = ((weights * (share * size)) @ counts) * place * place
    sums = counts @ (place.T if distance == "ordinal" else points[:, None])
    within = squares.sum(axis=1) - ((weights * share).T * (sums * sums)).sum(axis=0)
    mean = (marginal * place).sum(axis=1)
    between = 2.0 * (total * (marginal * place * place).sum(axis=1) - mean * mean)
    # All labels have one value: rounding error must not count as spread, or the draw would get a meaningless alpha.
    between = np.where(np.count_nonzero(marginal, axis=1) > 1, between, 0.0)
    return within / total, between / (total * (total - 1.0))
