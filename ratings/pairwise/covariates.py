"""Bradley-Terry with covariates: ratings adjusted for length, style or position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csc_array

from venire.arena.errors import InputError
from venire.arena.wording import suggest
from venire.ratings.data.clustered import outer_products_by_cluster
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.data.statistics import kendall, student
from venire.ratings.data.validation import float_array
from venire.ratings.pairwise.bradley_terry import bradley_terry
from venire.ratings.pairwise.covariance import Errors, blank_without_scatter, largest_score
from venire.ratings.pairwise.regression import (
    RegressionRows,
    gauge,
    largest_magnitudes,
    maximise,
    outer_products,
    regression_rows,
    residuals,
    score_totals,
)


@dataclass(frozen=True, slots=True, eq=False)
class CovariateRatings:
    """Ratings with covariates and without them, on the same rows.

    `coefficients` (k,) are in logits per unit of their column, with `covariance` (k, k); NaN is a column left out, with
    the reason in `ratings.diagnostics["left_out"]`. `own_information` is, for each column, the share of its information
    that neither the models nor other columns explain: near 0, ratings and coefficient are nearly collinear. `kendall`
    is tau-b between the two orders of models: 1 where the covariates change no position.
    """

    ratings: Ratings
    plain: Ratings
    names: tuple[str, ...]
    coefficients: NDArray[np.float64]
    covariance: NDArray[np.float64] | None
    log_likelihood: float
    plain_log_likelihood: float
    kendall: float

    @property
    def se(self) -> NDArray[np.float64]:
        """Standard errors (k,) of the coefficients; NaN where none is known."""
        if self.covariance is None:
            return np.full(len(self.names), np.nan)
        return np.asarray(np.sqrt(np.diagonal(self.covariance)))

    def interval(self, level: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper bound (k,) of the coefficients. Raises InputError for an invalid level."""
        half = self.ratings.quantile(level) * self.se
        return self.coefficients - half, self.coefficients + half

    @property
    def p_values(self) -> NDArray[np.float64]:
        """Two-sided p values (k,) of the coefficients against 0; NaN where no error is known."""
        return np.asarray(2.0 * student.sf(np.abs(self.coefficients) / self.se, self.ratings.degrees))


def position_covariate(swapped: ArrayLike) -> NDArray[np.float64]:
    """The covariate for the presentation order, (rows,): +1 where A was shown first, -1 where B was (`swapped`).

    >>> from venire.ratings import position_covariate
    >>> position_covariate([True, False]).tolist()
    [-1.0, 1.0]
    """
    return np.where(np.asarray(swapped, dtype=np.bool_), -1.0, 1.0)


def covariates(
    data: Comparisons, x: ArrayLike, names: Sequence[str], *, ridge: float = 0.0, errors: Errors | None = None
) -> CovariateRatings:
    """Ratings adjusted for covariates: columns x (rows, k), A minus B, named by `names`; Remeli and Hardt 2026.

    `ridge` is lambda in lambda / 2 |R|^2; coefficients are not penalised. `errors` None is "cluster" where the data has
    clusters, else "sandwich". A column of zeros is left out with coefficient NaN: no other figure depends on it. Raises
    `InputError` for columns that are determined by others or by the models, since the choice of the column to leave out
    changes the meaning of the rest; `SeparatedError` where the models have no common estimate,
    `CovariateSeparatedError` where the coefficients have none, and `NotConvergedError`.

    >>> from venire.ratings import comparisons, covariates
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> covariates(data, [[1], [-1], [1], [-1], [1], [1]], ["length"], ridge=0.1).coefficients.round(2).tolist()
    [0.28]
    """
    table, labels = _table(x, names, len(data)), tuple(names)
    if not (np.isfinite(ridge) and ridge >= 0.0):
        raise InputError(f"ridge is {ridge}; give a finite number, 0 or more")
    used = np.ones(len(data), dtype=np.bool_) if data.weight is None else data.weight > 0.0
    if not used.all():
        data, table = data.select(used), table[used]
    kind = _kind(errors, data)
    kept = np.flatnonzero(largest_magnitudes(table))
    if len(kept) < len(labels):
        table = table[:, kept]
    plain = bradley_terry(data, ridge=ridge, errors=kind)
    full = _fit(data, table, tuple(labels[column] for column in kept), ridge, kind)
    missing = {labels[column]: "it is 0 in every row" for column in range(len(labels)) if column not in set(kept)}
    size, coefficients = len(data.models), np.full(len(labels), np.nan)
    coefficients[kept] = full.point[size:]
    return CovariateRatings(
        ratings=_ratings(data, full, kind, missing),
        plain=plain,
        names=labels,
        coefficients=coefficients,
        covariance=None if full.covariance is None else _widened(full.covariance[size:, size:], kept, len(labels)),
        log_likelihood=full.log_likelihood,
        plain_log_likelihood=float(plain.diagnostics["log_likelihood"]),
        kendall=_kendall(plain.logits, full.point[:size]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _CovariateFit:
    """One fit over all models; those that never played are NaN."""

    point: NDArray[np.float64]
    covariance: NDArray[np.float64] | None
    degrees: float
    log_likelihood: float
    iterations: int
    gradient: float
    absent: NDArray[np.intp]
    no_errors: str | None
    own: dict[str, float]


def _fit(
    data: Comparisons, x: NDArray[np.float64], names: tuple[str, ...], ridge: float, kind: Errors
) -> _CovariateFit:
    played = np.bincount(data.a, minlength=len(data.models)) + np.bincount(data.b, minlength=len(data.models)) > 0
    present = np.flatnonzero(played)
    size, k = len(present), x.shape[1]
    if not size:
        raise InputError("there is no comparison with a weight above 0: nothing can be rated")
    codes = (np.cumsum(played) - 1).astype(np.int32)
    rows = regression_rows(size, codes[data.a], codes[data.b], np.ascontiguousarray(x), data.y, data.weight)
    penalty = np.concatenate([np.full(size, ridge), np.zeros(k)])
    point, information, iterations = maximise(rows, names, penalty)
    surprise, likelihood = residuals(rows, point)
    slope = score_totals(rows, surprise) - penalty * point
    fixed = gauge(information, size)
    fixed[np.diag_indices_from(fixed)] += penalty
    inverse = cho_solve(cho_factor(fixed, lower=True), np.eye(len(fixed)))
    own = 1.0 / (np.diagonal(inverse) * np.diagonal(fixed))[size:]
    labels = [*(data.models[code] for code in present), *names]
    covariance, degrees, reason = _covariance(rows, data, labels, inverse, surprise, kind)
    kept = np.concatenate([present, len(data.models) + np.arange(k)])
    everything = len(data.models) + k
    wide = np.full(everything, np.nan)
    wide[kept] = point
    return _CovariateFit(
        point=wide,
        covariance=None if covariance is None else _widened(covariance, kept, everything),
        degrees=degrees,
        log_likelihood=likelihood,
        iterations=iterations,
        gradient=float(np.abs(slope).max()) / data.total,
        absent=np.flatnonzero(~played),
        no_errors=reason,
        own=dict(zip(names, own.tolist(), strict=True)),
    )


def _covariance(
    rows: RegressionRows,
    data: Comparisons,
    labels: Sequence[str],
    inverse: NDArray[np.float64],
    surprise: NDArray[np.float64],
    kind: Errors,
) -> tuple[NDArray[np.float64] | None, float, str | None]:
    """Covariance of ratings (mean 0) and coefficients, its degrees of freedom, or the reason why there is none."""
    if kind == "none":
        return None, np.inf, None
    if kind == "hessian":
        # Only the gauge determines the common shift, so it has no error.
        common = inverse[:, : rows.size].mean(axis=1)[:, None]
        return inverse - np.where(np.arange(len(inverse)) < rows.size, common, 0.0), np.inf, None
    units = data.units(clustered=kind == "cluster")
    if units.count < 2:
        unit = "comparison" if kind == "sandwich" else "cluster"
        return None, np.inf, f"there is one {unit} only: nothing shows how much another would differ"

    def sandwich(group: NDArray[np.int32], count: int) -> NDArray[np.float64]:
        alone = kind == "sandwich"
        middle = outer_products(rows, surprise * surprise) if alone else _middle(rows, surprise, group, count)
        return np.asarray(inverse @ middle @ inverse)

    covariance = units.covariance(sandwich)
    score = largest_score(surprise, rows.y, rows.weight)
    reach = np.diagonal(inverse) * score * np.concatenate([np.ones(rows.size), rows.reach])
    return covariance, units.count - 1.0, blank_without_scatter(labels, covariance, reach)


def _middle(
    rows: RegressionRows, surprise: NDArray[np.float64], group: NDArray[np.int32], count: int
) -> NDArray[np.float64]:
    """The sum over groups of the outer product of their summed scores."""
    columns = np.zeros((count, rows.x.shape[1]))
    for block in rows.blocks() if columns.size else ():
        sums = csc_array((surprise[block], group[block], np.arange(len(group[block]) + 1)), (count, len(group[block])))
        columns += np.asarray(sums @ rows.x[block])
    return outer_products_by_cluster(group, count, rows.a, surprise, rows.b, -surprise, rows.size, columns)


def _ratings(data: Comparisons, fit: _CovariateFit, kind: Errors, left_out: dict[str, str]) -> Ratings:
    size = len(data.models)
    notes: dict[str, Any] = {
        "log_likelihood": fit.log_likelihood,
        "iterations": fit.iterations,
        "gradient": fit.gradient,
        "no_estimate": {data.models[code]: "it has no comparison with a weight above 0" for code in fit.absent},
        "left_out": left_out,
        "own_information": fit.own,
    }
    if fit.no_errors:
        notes["errors_reason"] = fit.no_errors
    return Ratings(
        method="bradley-terry with covariates",
        models=data.models,
        logits=fit.point[:size],
        battles=data.played,
        covariance=None if fit.covariance is None else fit.covariance[:size, :size],
        errors="none" if fit.covariance is None else data.units().errors if kind == "cluster" else kind,
        degrees=fit.degrees,
        diagnostics=notes,
    )


def _table(x: ArrayLike, names: Sequence[str], rows: int) -> NDArray[np.float64]:
    table = float_array("x", x)
    if table.ndim != 2 or table.shape != (rows, len(names)):
        raise InputError(f"x has shape {table.shape}; give {rows} rows and one column for each of {len(names)} names")
    if len(set(names)) != len(names):
        raise InputError("names: a covariate is listed twice; give every column its own name")
    if not np.isfinite(largest_magnitudes(table)).all():
        wrong = ~np.isfinite(table)
        row, column = (int(place[0]) for place in np.nonzero(wrong))
        raise InputError(f"covariate {names[column]}, row {row}: {table[row, column]} is not possible: give a number")
    return table


def _kind(errors: Errors | None, data: Comparisons) -> Errors:
    kind: Errors = errors if errors is not None else data.errors
    if kind not in get_args(Errors):
        raise InputError(f"errors is {kind!r}; {suggest(kind, get_args(Errors))}")
    if kind == "cluster" and data.cluster is None:
        raise InputError("errors is 'cluster', but the comparisons name no cluster; name them, or choose 'sandwich'")
    if kind == "hessian" and bool(((data.y != 0.0) & (data.y != 1.0)).any()):
        raise InputError("errors is 'hessian', which holds for outcomes 0 and 1 alone; choose 'sandwich' or 'cluster'")
    return kind


def _widened(covariance: NDArray[np.float64], kept: NDArray[np.intp], size: int) -> NDArray[np.float64]:
    wide = np.full((size, size), np.nan)
    wide[np.ix_(kept, kept)] = covariance
    return wide


def _kendall(before: NDArray[np.float64], after: NDArray[np.float64]) -> float:
    """Tau-b of two sets of logits (n,), where equal means equal up to rounding."""
    known = np.isfinite(before) & np.isfinite(after)
    first, second = np.round(before[known], 10), np.round(after[known], 10)
    if len(set(first.tolist())) < 2 or len(set(second.tolist())) < 2:
        return float("nan")
    return float(kendall(first[None], second)[0])
