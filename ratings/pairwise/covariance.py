"""Covariance of Bradley-Terry ratings: cluster-robust (sandwich) and model-based, from the inverse information.

The estimate changes by `bread @ score` when the score (the gradient of the log-likelihood) changes, so its covariance
is bread times the scatter of the scores of independent units times bread: the sandwich. Units are clusters (all rows of
one instruction) or single rows. Only differences of ratings are determined, so the information matrix is singular along
equal shifts; that direction is fixed exactly, without a pseudo-inverse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from venire.arena.choices import PairErrors
from venire.arena.errors import InputError
from venire.ratings.data.clustered import Units, outer_products_by_cluster
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.data.validation import float_array

Errors = Literal["cluster", "sandwich", "hessian", "none"]

FEW_CLUSTERS = 20
"""Below this many clusters intervals are too narrow even with Student's t."""

_CHUNK = 1 << 16
_NO_SCATTER = 1e-20

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_SINGULAR = "the ratings are too far apart for an error in double precision: give a ridge"


@dataclass(frozen=True, slots=True, eq=False)
class Covariance:
    """Covariance `matrix` (n, n) of ratings in logits, in the gauge of these ratings.

    `degrees` of freedom belong to Student's t (infinite: a normal distribution), `errors` names the method, `clusters`
    is the number of independent units, `respondents` that of those that cross them (0: errors are not two-way). A fixed
    model has an error of 0, since nothing was estimated; a model whose error is unknown has NaN in its row and column.
    `reason` explains it or is a warning; else None.
    """

    matrix: Matrix
    degrees: float
    errors: str
    clusters: int
    respondents: int = 0
    reason: str | None = None

    @property
    def se(self) -> Vector:
        """Standard errors (n,) in logits."""
        return np.asarray(np.sqrt(np.maximum(np.diagonal(self.matrix), 0.0)))

    def of(self, ratings: Ratings) -> Ratings:
        """The ratings (n,) with these errors, and what is to be said of them in their diagnostics."""
        units = {"respondents": self.respondents} if self.respondents else {}
        notes = {**ratings.diagnostics, "clusters": self.clusters, **units, "errors_reason": self.reason}
        return replace(ratings, covariance=self.matrix, errors=self.errors, degrees=self.degrees, diagnostics=notes)


@dataclass(frozen=True, slots=True, eq=False)
class FittedOutcomes:
    """How outcomes depend on parameters that were fitted to the same rows, so that errors include the fit's own.

    `parameter` (rows,) is the code of a row's parameter, `slope` (rows,) the derivative of its outcome by it, and
    `influence` (rows,) what the row adds to the parameter's estimate (0 for a row that was not used to fit it).
    """

    parameter: NDArray[np.intp]
    slope: Vector
    influence: Vector

    def select(self, rows: NDArray[np.bool_]) -> FittedOutcomes:
        """Those of some rows (rows,)."""
        return FittedOutcomes(self.parameter[rows], self.slope[rows], self.influence[rows])


def bradley_terry_covariance(
    data: Comparisons,
    logits: Vector,
    *,
    ridge: float = 0.0,
    errors: PairErrors = "cluster",
    fixed: NDArray[np.bool_] | None = None,
    fitted: FittedOutcomes | None = None,
) -> Covariance:
    """Covariance of Bradley-Terry ratings `logits` (n,) at their maximum; docs/ratings.md.

    NaN in `logits` is a model without an estimate: its rows are left out. `fixed` (n,) marks models that were held.
    "cluster" sums scores within clusters (of crossed comparisons two ways: `data.clustered.Units`), "sandwich" treats
    each row as a unit; both have the factor C / (C - 1) and C - 1 degrees of freedom for C units. "hessian" assumes
    that the model is right and that weights are counts. `fitted` adds the errors of parameters that outcomes were made
    with: the estimating equations of both are stacked (Stefanski and Boos 2002). Raises `InputError` for a choice that
    the data do not allow and where models were never compared with the others.

    >>> from venire.ratings import bradley_terry, bradley_terry_covariance, comparisons
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0], cluster=[1, 2, 3, 4, 5, 6])
    >>> found = bradley_terry_covariance(data, bradley_terry(data).logits)
    >>> found.matrix.shape
    (3, 3)
    """
    logits = float_array("logits", logits)
    held = np.zeros(len(data.models), dtype=np.bool_) if fixed is None else np.asarray(fixed, dtype=np.bool_)
    _check(data, logits, held, ridge, errors)
    rows = rated_rows(data, logits)
    outcomes = rows.y if rows.weight is None else rows.y[rows.weight > 0.0]
    if errors == "hessian" and not bool(np.all((outcomes == 0.0) | (outcomes == 1.0))):
        raise InputError(
            "errors='hessian' holds only where every outcome is 0 or 1: a tie or a probability scatters less than the "
            "model says; use errors='sandwich' or 'cluster'"
        )
    if fitted is not None and len(rows) < len(data):
        rated = np.isfinite(logits)
        fitted = fitted.select(rated[data.a] & rated[data.b])
    return _both(data, rows, logits, ridge, errors, held, fitted)[0]


def covariance_and_floor(data: Comparisons, logits: Vector) -> tuple[Covariance, Matrix]:
    """`bradley_terry_covariance` and `model_covariance` in one computation, for ratings without ridge or held models.

    Clustered where the data has clusters, else by row. Raises the errors of both.
    """
    held = np.zeros(len(data.models), dtype=np.bool_)
    _check(data, logits, held, 0.0, data.errors)
    return _both(data, rated_rows(data, logits), logits, 0.0, data.errors, held)


def _both(
    data: Comparisons,
    rows: Comparisons,
    logits: Vector,
    ridge: float,
    errors: PairErrors,
    held: NDArray[np.bool_],
    fitted: FittedOutcomes | None = None,
) -> tuple[Covariance, Matrix]:
    """The requested covariance and the model-based covariance, which is the bread of the sandwich."""
    rated = np.flatnonzero(np.isfinite(logits))
    at, free = logits[rated], ~held[rated]
    totals, residuals = _totals_and_residuals(rows, at)
    bread = inverse_information(totals, at, ridge=ridge, free=free, models=rows.models)
    own = _spread(data, rated, Covariance(bread, np.inf, errors, int(np.count_nonzero(residuals))))
    if errors == "hessian":
        return own, own.matrix
    counted = None if rows.weight is None else rows.weight > 0.0
    units = rows.units(counted, clustered=errors == "cluster")
    part = (rows, residuals) if counted is None else (rows.select(counted), residuals[counted])
    if fitted is None:
        meat = partial(_scatter, *part, errors == "sandwich")
    else:
        meat = partial(_stacked_scatter, *part, fitted if counted is None else fitted.select(counted))
    largest = largest_score(residuals, rows.y, rows.weight)
    found = sandwiched(bread, meat, units, free=free, models=rows.models, largest=largest, errors=errors)
    return _spread(data, rated, found), own.matrix


def sandwiched(
    bread: Matrix,
    meat: Callable[[NDArray[np.int32], int], Matrix],
    units: Units,
    *,
    free: NDArray[np.bool_],
    models: tuple[str, ...],
    largest: float,
    errors: str,
    unit: str = "comparison",
) -> Covariance:
    """The sandwich: covariance (n, n) from the scatter of the scores of `units`, with a warning where there is reason.

    `bread` is the inverse information, `meat` gives the sum of outer products of the scores of rows put together by
    codes (rows,), `free` (n,) marks the models that were not held, `largest` is the largest term of a row's score (the
    scale of its rounding), `unit` the name of a single row.
    """
    name = units.errors if errors == "cluster" else errors
    if units.count < 2:
        nothing = np.where(free[:, None] | free[None, :], np.nan, 0.0)
        alone = f"errors cannot be told from one {'cluster' if errors == 'cluster' else unit}"
        return Covariance(nothing, np.nan, name, units.clusters, units.respondents, alone)
    matrix = units.covariance(lambda code, count: bread @ meat(code, count) @ bread)
    silent = blank_without_scatter(models, matrix, np.where(free, np.diagonal(bread), np.nan) * largest)
    reason = silent or few_clusters(units.clusters, int(free.sum()), errors)
    return Covariance(matrix, float(units.count - 1), name, units.clusters, units.respondents, reason)


def model_covariance(
    data: Comparisons, logits: Vector, *, ridge: float = 0.0, fixed: NDArray[np.bool_] | None = None
) -> Matrix:
    """Model-based covariance (n, n), the inverse information: the errors if outcomes vary as the model assumes.

    With ties or probabilities it is not a covariance but a floor for stopping rules. Raises as the other does.

    >>> from venire.ratings import bradley_terry, comparisons, model_covariance
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> model_covariance(data, bradley_terry(data).logits).shape
    (3, 3)
    """
    logits = float_array("logits", logits)
    held = np.zeros(len(data.models), dtype=np.bool_) if fixed is None else np.asarray(fixed, dtype=np.bool_)
    _check(data, logits, held, ridge, "hessian")
    rows = rated_rows(data, logits)
    rated = np.flatnonzero(np.isfinite(logits))
    totals, _ = _totals_and_residuals(rows, logits[rated])
    bread = inverse_information(totals, logits[rated], ridge=ridge, free=~held[rated], models=rows.models)
    return _spread(data, rated, Covariance(bread, np.inf, "model", 0)).matrix


def rated_rows(data: Comparisons, logits: Vector) -> Comparisons:
    """The rows between models with finite `logits`, recoded to these models."""
    rated = np.isfinite(logits)
    if rated.all():
        return data
    place = np.cumsum(rated, dtype=np.int32) - np.int32(1)
    rows = data.select(rated[data.a] & rated[data.b])
    models = tuple(name for name, known in zip(data.models, rated.tolist(), strict=True) if known)
    return replace(rows, models=models, a=place[rows.a], b=place[rows.b])


def _check(data: Comparisons, logits: Vector, held: NDArray[np.bool_], ridge: float, errors: str) -> None:
    for argument, given in (("logits", logits), ("fixed", held)):
        if given.shape != (len(data.models),):
            raise InputError(
                f"{argument} has shape {given.shape}; give one value for each of {len(data.models)} models"
            )
    if not (ridge >= 0.0 and np.isfinite(ridge)):
        raise InputError(f"ridge is {ridge}; give 0 or a positive number")
    if errors not in ("cluster", "sandwich", "hessian"):
        raise InputError(f"errors is {errors!r}; give 'cluster', 'sandwich' or 'hessian'")
    if errors == "cluster" and data.cluster is None:
        raise InputError("errors='cluster' needs comparisons with a cluster; give one, or use errors='sandwich'")


def _totals_and_residuals(rows: Comparisons, logits: Vector) -> tuple[Matrix, Vector]:
    """Weight of each pair (n, n), both ways, and each row's weighted outcome minus its expectation (rows,)."""
    size = len(logits)
    gap = logits[:, None] - logits[None, :]
    share = expit(gap).ravel()
    against = expit(-gap).ravel()
    chunk = max(_CHUNK, 4 * size * size)
    totals = np.zeros(size * size)
    residuals = np.empty(len(rows))
    for start in range(0, len(rows), chunk):
        part = slice(start, start + chunk)
        key = rows.a[part].astype(np.int64)
        key *= size
        key += rows.b[part]
        weight = None if rows.weight is None else rows.weight[part]
        totals += np.bincount(key, weight, size * size)
        # Outcome minus share, written so that a share near 1 does not lose precision.
        y, out = rows.y[part], residuals[part]
        np.multiply(y, against.take(key), out=out)
        out -= (1.0 - y) * share.take(key)
        if weight is not None:
            out *= weight
    square = totals.reshape(size, size)
    return square + square.T, residuals


def _scatter(rows: Comparisons, residuals: Vector, by_row: bool, group: NDArray[np.int32], count: int) -> Matrix:
    """Sum over groups of score times score (n, n); `by_row`: each row is a group, which pair counts are enough for."""
    size = len(rows.models)
    if by_row:
        key = rows.a.astype(np.int64) * size + rows.b
        square = np.bincount(key, residuals * residuals, size * size).reshape(size, size)
        square = square + square.T
        return np.asarray(np.diag(square.sum(axis=1)) - square)
    return outer_products_by_cluster(group, count, rows.a, residuals, rows.b, -residuals, size)


def _stacked_scatter(
    rows: Comparisons, residuals: Vector, fitted: FittedOutcomes, group: NDArray[np.int32], count: int
) -> Matrix:
    """`_scatter` of the scores with what each unit moves them by through the parameters that outcomes were made with.

    A parameter that moves by d moves the total score by d * q, q (n,) being the sum of slopes of its rows, A less B.
    """
    size, parameter = len(rows.models), fitted.parameter
    kinds = int(parameter.max(initial=0)) + 1
    slope = fitted.slope if rows.weight is None else fitted.slope * rows.weight
    moves = np.bincount(group.astype(np.int64) * kinds + parameter, fitted.influence, count * kinds)
    joint = outer_products_by_cluster(
        group, count, rows.a, residuals, rows.b, -residuals, size, moves.reshape(count, kinds).astype(np.float64)
    )
    pulled = np.bincount(rows.a * kinds + parameter, slope, size * kinds)
    pulled -= np.bincount(rows.b * kinds + parameter, slope, size * kinds)
    stack = np.hstack([np.eye(size), pulled.reshape(size, kinds)])
    return np.asarray(stack @ joint @ stack.T)


def largest_score(residuals: Vector, y: Vector, weight: Vector | None) -> float:
    """The largest term in the residuals of rows (rows,), to which their rounding error is relative.

    A heavy expected win has nearly no residual and nearly no rounding error; a heavy tie has the full rounding error.
    """
    if weight is None:
        return 1.0
    return float((np.abs(residuals) + 2.0 * weight * np.minimum(y, 1.0 - y)).max(initial=0.0))


def blank_without_scatter(names: Sequence[str], matrix: Matrix, reach: Vector) -> str | None:
    """Set NaN in place where a covariance (n, n) comes from scores without any scatter: 0 would be misleading.

    `reach` (n,) is how far a row of the `largest_score` moves each estimate, NaN for held models. Returns the reason
    with the affected `names`, or None.
    """
    silent = np.diagonal(matrix) <= _NO_SCATTER * reach**2
    if not silent.any():
        return None
    matrix[silent, :] = np.nan
    matrix[:, silent] = np.nan
    named = [names[code] for code in np.flatnonzero(silent).tolist()]
    shown = ", ".join(named[:5]) + (f" and {len(named) - 5} more" if len(named) > 5 else "")
    return f"outcomes do not scatter between units, so that no error can be told: {shown}"


def few_clusters(units: int, models: int, errors: str) -> str | None:
    """A warning about errors from too few clusters to be reliable; None without one."""
    if errors != "cluster":
        return None
    if units <= models:
        return f"{units} clusters for {models} models: some differences between several models come out with no error"
    if units < FEW_CLUSTERS:
        return f"only {units} clusters: intervals may be too narrow"
    return None


def _spread(data: Comparisons, rated: NDArray[np.intp], inner: Covariance) -> Covariance:
    """Expand to all models, with NaN for those without an estimate."""
    size = len(data.models)
    if len(rated) == size:
        return inner
    matrix = np.full((size, size), np.nan)
    matrix[np.ix_(rated, rated)] = inner.matrix
    return replace(inner, matrix=matrix)


def inverse_information(
    totals: Matrix, logits: Vector, *, ridge: float, free: NDArray[np.bool_], models: tuple[str, ...]
) -> Matrix:
    """Inverse (n, n) of the information at `logits` (n,), from the weight of all comparisons of each pair (n, n).

    With every model `free`, equal shifts are removed; otherwise rows and columns of fixed models are 0. A single fixed
    model only sets the gauge: a ridge shrinks towards the mean as without it. Several are held, and a ridge shrinks the
    others towards 0. A fixed model without comparisons, next to fixed models with some, has no effect. Raises
    `InputError` where models have no comparisons with the rest.
    """
    gap = logits[:, None] - logits[None, :]
    coupling = totals * expit(gap) * expit(-gap)
    np.fill_diagonal(coupling, 0.0)
    return inverse_laplacian(coupling, totals > 0.0, ridge=ridge, free=free, models=models)


def inverse_laplacian(
    coupling: Matrix, joined: NDArray[np.bool_], *, ridge: float, free: NDArray[np.bool_], models: tuple[str, ...]
) -> Matrix:
    """The inverse of an information matrix given by its negated off-diagonal entries; its rows sum to the ridge.

    `coupling` (n, n) has a diagonal of 0; `joined` (n, n) marks compared models, since 0 may be underflow.
    """
    met = free | joined.any(axis=1)
    if not met.all() and not free[met].all():
        return _among(met, coupling, joined, ridge=ridge, free=free, models=models)
    if np.count_nonzero(~free) == 1:
        centred = inverse_laplacian(coupling, joined, ridge=ridge, free=np.ones_like(free), models=models)
        return _about(centred, int(np.argmin(free)))
    size = len(coupling)
    inverse = np.zeros((size, size))
    if not free.any():
        return inverse
    if ridge == 0.0:
        _refuse_islands(joined, free, models)
    information = -coupling
    np.fill_diagonal(information, ridge + coupling.sum(axis=1))
    shifts = bool(free.all())
    inside = free.copy()
    if shifts and ridge > 0.0:
        information += np.trace(information) / size**2
    elif shifts:
        # Any model may be held; the most precisely known model loses the least precision.
        inside[np.argmax(np.diagonal(information))] = False
    if not inside.any():
        return inverse
    inner = information[np.ix_(inside, inside)]
    if not bool(np.all(np.diagonal(inner) > 0.0)):
        raise InputError(_SINGULAR)
    # Ratings far apart give diagonals of different magnitude; scaling them to ones avoids a loss of precision.
    scale = 1.0 / np.sqrt(np.diagonal(inner))
    try:
        factor = cho_factor(inner * scale[:, None] * scale[None, :], lower=True, overwrite_a=True)
    except LinAlgError as error:
        raise InputError(_SINGULAR) from error
    inverse[np.ix_(inside, inside)] = cho_solve(factor, np.diag(scale)) * scale[:, None]
    if shifts:
        inverse -= inverse.mean(axis=0)[None, :]
        inverse -= inverse.mean(axis=1)[:, None]
    return 0.5 * (inverse + inverse.T)


def _among(
    met: NDArray[np.bool_],
    coupling: Matrix,
    joined: NDArray[np.bool_],
    *,
    ridge: float,
    free: NDArray[np.bool_],
    models: tuple[str, ...],
) -> Matrix:
    """The inverse for the models in `met` only, and zeros for the others, which are fixed and without comparisons."""
    inside, inverse = np.ix_(met, met), np.zeros_like(coupling)
    names = tuple(name for name, stays in zip(models, met.tolist(), strict=True) if stays)
    inverse[inside] = inverse_laplacian(coupling[inside], joined[inside], ridge=ridge, free=free[met], models=names)
    return inverse


def _about(centred: Matrix, anchor: int) -> Matrix:
    """The covariance of differences to one model, whose own variance is then 0."""
    found = centred - centred[anchor] - centred[:, anchor, None] + centred[anchor, anchor]
    found[anchor], found[:, anchor] = 0.0, 0.0
    return np.asarray(found)


def _refuse_islands(joined: NDArray[np.bool_], free: NDArray[np.bool_], models: tuple[str, ...]) -> None:
    """Check that, without a ridge, comparisons connect every free model to every other, or to a fixed model."""
    graph = joined.copy()
    held = np.flatnonzero(~free)
    graph[np.ix_(held, held)] = True
    count, part = connected_components(graph.astype(np.float64), directed=False)
    if count > 1:
        counts = np.bincount(part)
        alone = [
            models[code] for code in np.flatnonzero(part != part[held[0]] if len(held) else part != counts.argmax())
        ]
        shown = ", ".join(alone[:5]) + (f" and {len(alone) - 5} more" if len(alone) > 5 else "")
        raise InputError(f"{shown}: never compared with the others; rate them apart, or give a ridge")
