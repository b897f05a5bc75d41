"""Ratings as if every pair had been judged equally often, whatever pairs a policy chose to ask about.

No judge follows the Bradley-Terry curve exactly. Then ratings that weight pairs as they were asked depend on the choice
of pairs: close pairs imply one slope, distant pairs another. Here a more flexible curve is fitted first,

    P(i beats j) = l / 2 + (1 - l) Phi((r_i - r_j) / 1.702),

where l is the lapse rate, the share of verdicts that do not depend on the gap (instructions that are tied for any
answers; mistakes), and Phi the normal distribution function (Thurstone, "A Law of Comparative Judgment", 1927). Then
Bradley-Terry is fitted to its expectations for all pairs, asked or not, with equal weights ("standardisation" of a
regression). If pairs were asked evenly, this changes hardly anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import ndtr

from venire.ratings.data.clustered import outer_products_by_cluster
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.data.wins import WinCounts
from venire.ratings.pairwise.bradley_terry import bradley_terry_wins
from venire.ratings.pairwise.covariance import (
    Covariance,
    blank_without_scatter,
    few_clusters,
    inverse_laplacian,
    largest_score,
)
from venire.ratings.pairwise.solvers import NotConvergedError

SCALE = 1.702
"""Logits per standard deviation of the normal curve closest to the logistic curve."""

VERDICTS_WITHOUT_LAPSE = 1.0
"""Prior: one verdict that did depend on the gap. It keeps a lapse rate without evidence at 0."""

PRIOR_SD = 10.0
"""Logits: a prior for ratings that would diverge, if all losses may be lapses; expected outcomes hardly change."""

_BEGIN = 0.02
_MAX_LAPSE = 0.9
_STEPS = 300
_HALVINGS = 40
_CLOSE = 1e-16
"""Tolerance: twice the possible gain in log-likelihood; ratings are then within 1e-8 of their standard errors."""
_ROUNDING = 1e-12
"""A step with a smaller relative gain in log-likelihood is accepted unchecked: it is below rounding error."""
_MIN_SHARE = 1e-12
"""Smallest probability distinguished from 0."""

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class BalancedPairs:
    """`ratings` with their clustered covariance; `floor` (n, n) is the model-based covariance of the fitted curve.

    `lapse` is the share of verdicts that do not depend on the gap, `curve` (n,) the ratings on the fitted curve.
    """

    ratings: Ratings
    floor: Matrix
    lapse: float
    curve: Vector


@dataclass(frozen=True, slots=True, eq=False)
class _CurveFit:
    """The curve at its maximum: ratings (n,), lapse, and the information (n + 1, n + 1) of both with the prior's."""

    logits: Vector
    lapse: float
    information: Matrix
    value: float
    steps: int


def balanced_pairs(data: Comparisons) -> BalancedPairs:
    """Rate the models of `data`, which chains of wins must connect both ways; docs/planning.md#when-is-enough.

    Errors are clustered where the data has clusters, else by row, and include the error of the lapse rate. Raises
    `SeparatedError` as Bradley-Terry does, and `NotConvergedError`.
    """
    counts = data.wins
    plain = bradley_terry_wins(counts)
    known = np.isfinite(plain.logits)
    part = counts if known.all() else counts.only(known)
    fit = _fitted(part, plain.logits[known])
    even, moves = _standardised(part.models, fit)
    bread = moves @ _inverse(fit.information)
    found = _covariance(data, known, fit, bread, bread @ moves.T)
    size = len(counts.models)
    logits, curve, floor = np.full(size, np.nan), np.full(size, np.nan), np.full((size, size), np.nan)
    logits[known], curve[known] = even, fit.logits
    floor[np.ix_(known, known)] = bread @ moves.T
    notes = {**_kept(plain), "log_likelihood": fit.value, "iterations": fit.steps, "lapse": fit.lapse}
    ratings = Ratings("even-pairs", counts.models, logits, plain.battles, diagnostics=notes)
    return BalancedPairs(found.of(ratings), floor, fit.lapse, curve)


def _kept(plain: Ratings) -> dict[str, object]:
    """The diagnostics of the plain fit that apply to this fit too."""
    return {key: value for key, value in plain.diagnostics.items() if key in ("pairs", "components", "no_estimate")}


def _curve(gap: Vector | Matrix, lapse: float) -> tuple[Matrix, Matrix, Matrix]:
    """Probabilities of gaps in logits, of any shape, and their slopes in the gap and in the lapse."""
    share = ndtr(gap / SCALE)
    density = np.exp(-0.5 * (gap / SCALE) ** 2) / (np.sqrt(2.0 * np.pi) * SCALE)
    return (
        np.clip(0.5 * lapse + (1.0 - lapse) * share, _MIN_SHARE, 1.0 - _MIN_SHARE),
        np.asarray((1.0 - lapse) * density),
        np.asarray(0.5 - share),
    )


def _fitted(counts: WinCounts, start: Vector) -> _CurveFit:
    """Newton's method, or Fisher scoring where it is not concave, with steps halved until the likelihood increases.

    A lapse rate of 0 stays there while its slope is negative.
    """
    logits, lapse = start - start.mean(), _BEGIN
    value = _value(counts, logits, lapse)
    for number in range(_STEPS):
        gradient, expected, seen = _local(counts, logits, lapse)
        if lapse == 0.0 and gradient[-1] <= 0.0:
            gradient[-1] = 0.0
            for matrix in (seen, bent := expected.copy()):
                matrix[-1, :-1], matrix[:-1, -1], matrix[-1, -1] = 0.0, 0.0, expected[-1, -1]
        else:
            bent = expected
        try:
            step = _inverse(seen) @ gradient
        except NotConvergedError:
            step = _inverse(bent) @ gradient
        ahead = float(gradient @ step)
        if ahead <= _CLOSE:
            return _CurveFit(logits, lapse, expected, value, number)
        for scale in 0.5 ** np.arange(_HALVINGS):
            there = logits + scale * step[:-1]
            at = min(max(lapse + float(scale * step[-1]), 0.0), _MAX_LAPSE)
            reached = _value(counts, there, at)
            if reached > value or ahead < _ROUNDING * abs(value):
                break
        else:
            raise NotConvergedError("no step along the information of the curve led any higher")
        logits, lapse, value = there, at, reached
    raise NotConvergedError(f"the curve of pairs was not at its maximum after {_STEPS} steps")


def _value(counts: WinCounts, logits: Vector, lapse: float) -> float:
    share, _, _ = _curve(logits[counts.first] - logits[counts.second], lapse)
    log_likelihood = float(counts.won @ np.log(share) + counts.lost @ np.log1p(-share))
    return (
        log_likelihood + VERDICTS_WITHOUT_LAPSE * float(np.log1p(-lapse)) - 0.5 * float(logits @ logits) / PRIOR_SD**2
    )


def _local(counts: WinCounts, logits: Vector, lapse: float) -> tuple[Vector, Matrix, Matrix]:
    """Gradient (n + 1,) in ratings and lapse, and their information (n + 1, n + 1): expected, and observed."""
    size, first, second = len(logits), counts.first, counts.second
    gap = logits[first] - logits[second]
    share, slope, fall = _curve(gap, lapse)
    spread, total = share * (1.0 - share), counts.won + counts.lost
    scores = (counts.won - total * share) / spread
    gradient = np.append(
        np.bincount(first, scores * slope, size) - np.bincount(second, scores * slope, size) - logits / PRIOR_SD**2,
        scores @ fall - VERDICTS_WITHOUT_LAPSE / (1.0 - lapse),
    )
    bend = -scores * slope * gap / SCALE**2
    seen = counts.won / share**2 + counts.lost / (1.0 - share) ** 2
    expected = _information(counts, lapse, total / spread, slope, fall)
    observed = _information(counts, lapse, seen, slope, fall, bend, -scores * slope / (1.0 - lapse))
    return gradient, expected, observed


def _information(
    counts: WinCounts,
    lapse: float,
    weight: Vector,
    slope: Vector,
    fall: Vector,
    bend: Vector | float = 0.0,
    cross: Vector | float = 0.0,
) -> Matrix:
    """Products of slopes, each pair by its `weight`, minus the curvature term, plus the prior's information."""
    size, first, second = len(counts.models), counts.first, counts.second
    coupling, across = weight * slope**2 - bend, weight * slope * fall - cross
    matrix = np.zeros((size + 1, size + 1))
    np.add.at(matrix, (first, second), -coupling)
    np.add.at(matrix, (second, first), -coupling)
    place = np.arange(size)
    matrix[place, place] = -matrix[:size, :size].sum(axis=1) + 1.0 / PRIOR_SD**2
    matrix[:size, size] = np.bincount(first, across, size) - np.bincount(second, across, size)
    matrix[size, :size] = matrix[:size, size]
    matrix[size, size] = weight @ fall**2 + VERDICTS_WITHOUT_LAPSE / (1.0 - lapse) ** 2
    return matrix


def _inverse(information: Matrix) -> Matrix:
    """The inverse of a positive definite matrix, scaled to ones on the diagonal. Raises `NotConvergedError`."""
    if not bool(np.all(np.diagonal(information) > 0.0)):
        raise NotConvergedError("the information of the curve is singular in double precision")
    scale = 1.0 / np.sqrt(np.diagonal(information))
    try:
        factor = cho_factor(information * scale[:, None] * scale[None, :], lower=True)
    except LinAlgError as error:
        raise NotConvergedError("the information of the curve is singular in double precision") from error
    return np.asarray(cho_solve(factor, np.diag(scale)) * scale[:, None])


def _standardised(models: tuple[str, ...], fit: _CurveFit) -> tuple[Vector, Matrix]:
    """Bradley-Terry ratings (n,) with all pairs equal, and their Jacobian (n, n + 1) in those of the curve."""
    share, slope, fall = _curve(fit.logits[:, None] - fit.logits[None, :], fit.lapse)
    for matrix in (share, slope):
        np.fill_diagonal(matrix, 0.0)
    even = bradley_terry_wins(share, models, start=fit.logits).logits
    weight = np.exp(-np.abs(even[:, None] - even[None, :]))
    weight /= (1.0 + weight) ** 2
    np.fill_diagonal(weight, 0.0)
    free = np.ones(len(even), dtype=np.bool_)
    inverse = inverse_laplacian(weight, weight >= 0.0, ridge=0.0, free=free, models=models)
    pulls = np.hstack([np.diag(slope.sum(axis=1)) - slope, fall.sum(axis=1, keepdims=True)])
    return even, inverse @ pulls


def _covariance(
    data: Comparisons, known: NDArray[np.bool_], fit: _CurveFit, bread: Matrix, floor: Matrix
) -> Covariance:
    """Covariance (n, n) by clusters, with remarks on it."""
    place = np.cumsum(known) - 1
    rows = data if data.weight is None else data.select(data.weight > 0.0)
    a, b = (place[code].astype(np.int32) for code in (rows.a, rows.b))
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    share, slope, fall = _curve(fit.logits[a] - fit.logits[b], fit.lapse)
    scores = weight * (rows.y - share) / (share * (1.0 - share))
    units = rows.units()
    names = tuple(name for name, there in zip(data.models, known.tolist(), strict=True) if there)
    matrix, errors = np.full((len(known), len(known)), np.nan), rows.errors
    found = Covariance(matrix, np.nan, units.errors if errors == "cluster" else errors, units.clusters)
    if units.count < 2:
        return replace(found, reason="errors cannot be told from one unit")

    def sandwich(unit: NDArray[np.int32], count: int) -> Matrix:
        lapses = np.bincount(unit, scores * fall, count).astype(np.float64)[:, None]
        meat = outer_products_by_cluster(unit, count, a, scores * slope, b, -scores * slope, len(names), columns=lapses)
        return np.asarray(bread @ meat @ bread.T)

    inner = units.covariance(sandwich)
    largest = largest_score(weight * (rows.y - share), rows.y, rows.weight)
    reason = blank_without_scatter(names, inner, np.diagonal(floor) * largest)
    matrix[np.ix_(known, known)] = 0.5 * (inner + inner.T)
    reason = reason or few_clusters(units.clusters, len(names), errors)
    return replace(found, degrees=float(units.count - 1), respondents=units.respondents, reason=reason)
