"""Cluster-robust errors: means and differences of clustered rows, and the sums that sandwich errors need.

Rows of one cluster (usually one instruction) share effects that the models do not cause, so errors count them as one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.special import expit, logit

from venire.arena.errors import InputError
from venire.ratings.data.statistics import student

Vector = NDArray[np.float64]

FEWEST_RESPONDENTS = 5
"""Respondents (judges or people) from which errors are clustered by them too: fewer do not show how others differ."""

_DENSE = 20_000_000  # largest dense table of sums by cluster and model (160 MB)


def cluster_codes(cluster: NDArray[np.int32] | None, rows: int) -> tuple[NDArray[np.int32], int]:
    """Each row's cluster (rows,), numbered without gaps, and the number of clusters; None: one cluster per row."""
    if cluster is None:
        return np.arange(rows, dtype=np.int32), rows
    present = np.bincount(cluster) > 0
    return (np.cumsum(present, dtype=np.int32) - np.int32(1))[cluster], int(present.sum())


@dataclass(frozen=True, slots=True, eq=False)
class _Grouping:
    """Rows put together: each row's `code` (rows,), numbered without gaps; `sign` -1 takes away what counts twice."""

    code: NDArray[np.int32]
    count: int
    sign: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """What errors take as independent: clusters of rows, or clusters and respondents, which cross.

    Of crossed units the covariance is V_cluster + V_respondent - V_both, and Student's t has the smaller of the two
    numbers less one as its degrees of freedom: Cameron, Gelbach and Miller 2011, *Robust Inference with Multiway
    Clustering*. `clusters` and `respondents` count them; 0 respondents: not crossed.
    """

    groupings: tuple[_Grouping, ...]
    clusters: int
    respondents: int = 0

    @property
    def count(self) -> int:
        """The number of units, of crossed ones that of the fewer: one more than the degrees of freedom."""
        return min(one.count for one in self.groupings if one.sign > 0.0)

    @property
    def errors(self) -> str:
        """The name of the errors that come from them: clustered one way, or two."""
        return "two-way" if self.respondents else "cluster"

    def covariance(self, of: Callable[[NDArray[np.int32], int], NDArray[np.float64]]) -> NDArray[np.float64]:
        """The covariance (n, n) by `of`, which takes codes (rows,) and their number C, with factors C / (C - 1)."""
        return self.combined(lambda code, count: of(code, count) * (count / (count - 1)))

    def combined(self, of: Callable[[NDArray[np.int32], int], NDArray[np.float64]]) -> NDArray[np.float64]:
        """The covariance (n, n) by `of`, which has a factor of its own; NaN where it is not known.

        A difference of covariances may be negative in some direction, which is then taken as 0.
        """
        matrix = np.asarray(sum(one.sign * of(one.code, one.count) for one in self.groupings), dtype=np.float64)
        return matrix if len(self.groupings) == 1 else _not_negative(matrix)

    def error(self, influence: Vector) -> float:
        """The standard error of a figure to which each row adds its `influence` (rows,)."""
        variance = self.combined(lambda code, count: np.array([[_clustered_variance(influence, code, count)]]))
        return float(np.sqrt(variance[0, 0]))


def units_of(cluster: NDArray[np.int32] | None, respondent: NDArray[np.int32] | None, rows: int) -> Units:
    """The independent units of so many rows by their `cluster` (None: one a row) and by their `respondent` (rows,).

    Fewer than five respondents are not crossed, nor are rows of which nobody knows what else they share.
    """
    code, clusters = cluster_codes(cluster, rows)
    who, respondents = (code, 0) if respondent is None or cluster is None else cluster_codes(respondent, rows)
    if respondents < FEWEST_RESPONDENTS:
        return Units((_Grouping(code, clusters),), clusters)
    cells, both = np.unique(who.astype(np.int64) * clusters + code, return_inverse=True)
    crossed = _Grouping(both.astype(np.int32), len(cells), sign=-1.0)
    return Units((_Grouping(code, clusters), _Grouping(who, respondents), crossed), clusters, respondents)


def _not_negative(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """The symmetric matrix (n, n) without its negative eigenvalues, as far as it is known."""
    known = np.ix_(*[np.isfinite(np.diagonal(matrix))] * 2)
    values, vectors = np.linalg.eigh(0.5 * (matrix[known] + matrix[known].T))
    found = matrix.copy()
    if values.min(initial=0.0) < 0.0:
        found[known] = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return found


@dataclass(frozen=True, slots=True)
class ClusteredMean:
    """A mean, or a difference of two, of `n` rows in `clusters` clusters; None where there are no rows.

    `se` is its cluster-robust standard error, None with fewer than two clusters. Where respondents cross these,
    `clusters` is the smaller of both numbers.
    """

    value: float | None
    se: float | None
    n: int
    clusters: int

    def interval(self, level: float = 0.95) -> tuple[float | None, float | None]:
        """Student's t interval with clusters - 1 degrees of freedom; both bounds are None without a standard error."""
        if self.value is None or self.se is None:
            return None, None
        half = float(student.ppf(0.5 + level / 2.0, self.clusters - 1)) * self.se
        return self.value - half, self.value + half

    def share_interval(self, level: float = 0.95) -> tuple[float | None, float | None]:
        """Interval of a share of rows (values 0 or 1), within 0 and 1; both bounds are None without a standard error.

        Wilson's score interval at the effective number of rows, `p (1 - p) / se^2`, with Student's t for the normal
        quantile: Franco, Little, Louis and Slud 2019, *Comparative Study of Confidence Intervals for Proportions in
        Complex Sample Surveys*. The number is at most that of the rows; where all rows agree, so that nothing
        scatters, it is that of the clusters.
        """
        if self.value is None or self.se is None:
            return None, None
        spread = self.value * (1.0 - self.value)
        rows = min(float(self.n), spread / self.se**2) if self.se > 0.0 else float(self.n)
        if spread < 1e-12:
            rows = float(self.clusters)
        return score_interval(self.value, rows, float(student.ppf(0.5 + level / 2.0, self.clusters - 1)))

    def beyond(self, middle: float) -> float:
        """The distance of the value from `middle` in standard errors; 0 where that is unknown."""
        if self.value is None or self.se is None:
            return 0.0
        apart = abs(self.value - middle)
        return apart / self.se if self.se > 1e-12 else (float("inf") if apart > 1e-9 else 0.0)


def score_interval(share: float, rows: float, quantile: float) -> tuple[float, float]:
    """Wilson's bounds of a share of `rows` independent rows: within 0 and 1, and of some width at both ends."""
    square = quantile * quantile
    middle = (share * rows + square / 2.0) / (rows + square)
    half = quantile / (rows + square) * float(np.sqrt(rows * share * (1.0 - share) + square / 4.0))
    # At the ends the bound is the end itself, which rounding would miss.
    return (0.0 if share <= 0.0 else max(0.0, middle - half)), (1.0 if share >= 1.0 else min(1.0, middle + half))


def log_odds_interval(share: Vector, se: Vector, degrees: Vector, level: float) -> tuple[Vector, Vector]:
    """Student's t intervals (n,) of shares that may be of parts of rows, on the scale of log odds, so within 0 and 1.

    NaN for shares of 0 and 1, and without an error or degrees of freedom.
    """
    spread = share * (1.0 - share)
    inside = spread > 0.0
    odds = logit(np.where(inside, share, 0.5))
    half = student.ppf(0.5 + level / 2.0, degrees) * se / np.where(inside, spread, np.nan)
    return expit(odds - half), expit(odds + half)


def clustered_mean(
    value: ArrayLike,
    cluster: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    respondent: ArrayLike | None = None,
) -> ClusteredMean:
    """Weighted mean of `value` (rows,) with its cluster-robust error; `cluster` None: one cluster per row.

    The error is two-way where five `respondent`s (rows,) or more cross the clusters. Rows of weight 0 are left out.
    Raises `InputError` for columns of different lengths.
    """
    rows, heavy, names = _columns(value, cluster, weight)
    _, _, who = (None,) * 3 if cluster is None or respondent is None else _columns(value, respondent, weight)
    return _of(*_parts(rows, heavy), names, who)


def clustered_difference(
    value: ArrayLike,
    other: ArrayLike,
    cluster: ArrayLike | None = None,
    other_cluster: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    other_weight: ArrayLike | None = None,
) -> ClusteredMean:
    """Difference of the means of `value` and `other` with its cluster-robust error; clusters are matched by name.

    Raises `InputError` for columns of different lengths.
    """
    rows, heavy, names = _columns(value, cluster, weight)
    others, other_heavy, other_names = _columns(other, other_cluster, other_weight)
    if cluster is None:
        other_names = other_names + len(rows)
    first, scores = _parts(rows, heavy)
    second, other_scores = _parts(others, other_heavy)
    if first is None or second is None:
        return ClusteredMean(None, None, len(rows) + len(others), 0)
    return _of(first - second, np.concatenate([scores, -other_scores]), np.concatenate([names, other_names]))


def _columns(
    value: ArrayLike, cluster: ArrayLike | None, weight: ArrayLike | None
) -> tuple[Vector, Vector, NDArray[Any]]:
    rows = np.asarray(value, dtype=np.float64)
    heavy = np.ones(len(rows)) if weight is None else np.asarray(weight, dtype=np.float64)
    names = np.arange(len(rows)) if cluster is None else np.asarray(cluster)
    if rows.ndim != 1 or heavy.shape != rows.shape or names.shape != rows.shape:
        raise InputError(f"value has shape {rows.shape}, cluster {names.shape}, weight {heavy.shape}: give one length")
    # A row without weight is no further cluster: it would make the only cluster that counts look certain.
    used = heavy > 0.0
    return (rows, heavy, names) if used.all() else (rows[used], heavy[used], names[used])


def _parts(rows: Vector, weight: Vector) -> tuple[float | None, Vector]:
    """The mean, and each row's contribution to its error."""
    total = float(weight.sum())
    if total <= 0.0:
        return None, np.zeros(len(rows))
    mean = float(weight @ rows / total)
    return mean, weight * (rows - mean) / total


def _of(value: float | None, scores: Vector, names: NDArray[Any], who: NDArray[Any] | None = None) -> ClusteredMean:
    if value is None:
        return ClusteredMean(None, None, len(scores), 0)
    cluster, respondent = (
        None if one is None else np.unique(one, return_inverse=True)[1].astype(np.int32) for one in (names, who)
    )
    units = units_of(cluster, respondent, len(scores))
    return ClusteredMean(value, units.error(scores) if units.count > 1 else None, len(scores), units.count)


def clustered_error(influence: Vector, code: NDArray[Any], clusters: int) -> float:
    """Cluster-robust standard error of a figure to which each row adds its `influence` (rows,).

    `code` (rows,) numbers the clusters without gaps. The factor is C / (C - 1) for C clusters; NaN with fewer than two.
    """
    return float(np.sqrt(_clustered_variance(influence, code, clusters)))


def _clustered_variance(influence: Vector, code: NDArray[Any], clusters: int) -> float:
    if clusters < 2:
        return float("nan")
    sums = np.bincount(code, influence, clusters)
    return float(sums @ sums * clusters / (clusters - 1))


def jackknife_error(left_out: Vector, count: Vector | None = None) -> tuple[float, float]:
    """Standard error of a figure from its values without each unit (units,), and its degrees of freedom.

    Efron and Stein 1981. `count` (units,) is how often each occurs, None: once. NaN with fewer than two units, or where
    there is no figure without one of them. The degrees are half of units less one: figures of judges are of products of
    shares, whose tails are longer than normal ones (docs/judges.md).
    """
    often = np.ones(len(left_out)) if count is None else count
    number = float(often.sum())
    if number < 2.0 or not np.isfinite(left_out).all():
        return float("nan"), float("nan")
    apart = left_out - float(often @ left_out) / number
    return float(np.sqrt((number - 1.0) / number * float(often @ (apart * apart)))), (number - 1.0) / 2.0


def interval_below_one(
    value: float, error: float, floor: float, degrees: float, level: float
) -> tuple[float, float] | None:
    """Student's t interval of a figure that is 1 at most, about the square root of 1 - value, which scatters evenly.

    1 - value is near 0 for good judges: on its own scale, intervals near the ceiling are too short below. `floor` is
    the least error, what one more disagreement changes: on few units figures at a ceiling do not scatter, while their
    truth may lie below it. None without an error.
    """
    if not np.isfinite(error + value):
        return None
    error = max(error, floor)
    root = float(np.sqrt(max(1.0 - value, floor / 2.0)))
    reach = float(student.ppf((1.0 + level) / 2.0, degrees)) * error / (2.0 * root)
    return 1.0 - (root + reach) ** 2, 1.0 - max(root - reach, 0.0) ** 2


def outer_products_by_cluster(
    group: NDArray[np.int32],
    count: int,
    a: NDArray[np.int32],
    of_a: NDArray[np.float64],
    b: NDArray[np.int32],
    of_b: NDArray[np.float64],
    size: int,
    columns: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Sum over `count` groups of the outer product of the group's sums with themselves, (size + k, size + k).

    A row adds `of_a` to the sum of model `a` and `of_b` to that of `b`; `columns` (count, k) are further sums.
    """
    more = np.zeros((count, 0)) if columns is None else columns
    if count * size <= _DENSE:
        place = group.astype(np.int64) * size
        models = np.bincount(place + a, of_a, count * size) + np.bincount(place + b, of_b, count * size)
        sums = np.hstack([models.reshape(count, size), more])
        return np.asarray(sums.T @ sums)
    at = np.concatenate([group, group]), np.concatenate([a, b])
    sparse = coo_array((np.concatenate([of_a, of_b]), at), shape=(count, size)).tocsr()
    across, matrix = sparse.T @ more, np.empty((size + more.shape[1], size + more.shape[1]))
    matrix[:size, :size] = (sparse.T @ sparse).toarray()
    matrix[:size, size:], matrix[size:, :size], matrix[size:, size:] = across, across.T, more.T @ more
    return matrix
