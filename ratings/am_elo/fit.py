"""Newton's method for the maximum of am-ELO's likelihood in ratings, abilities and habits together.

Judges are coupled only through the ratings, so the information matrix is an arrowhead: ratings by ratings, ratings by
judges, and a small block for each judge. Eliminating the judges (Schur complement) leaves one system of the size of the
number of models. The log-likelihood is not concave, so each step is damped (Levenberg) until it increases it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from venire.ratings.am_elo.likelihood import Cells, LikelihoodTerms, Matrix, Point, Vector, gradient_at, terms_at
from venire.ratings.pairwise.solvers import NotConvergedError

_TOLERANCE = 1e-11
"""Convergence tolerance: the gradient, as a share of the weight of all judgments, at a maximum."""

_BLUR = 16.0 * float(np.finfo(np.float64).eps)

_GAIN = 1e-13
"""Predicted gain of a step that is still allowed at a maximum, as a share of the same weight."""

_NEAR = 1e3
"""Multiple of the tolerance within which a point is near the maximum and its information is evaluated."""

_STEPS = 300

_DAMPING = 1e-3

_STIFFEST = 1e9

_ROUNDING = 1e-13
"""Relative decrease of a value that is attributed to rounding."""

Border = tuple[Vector, Matrix]
"""A direction in the ratings and the judges' parameters that a step must not have a component along."""


@dataclass(frozen=True, slots=True)
class Penalty:
    """Lambda in lambda / 2 |R|^2 (`ratings`) and lambda / 2 (theta - 1)^2 (`abilities`), which the fit subtracts.

    A penalty on ratings alone would only make them small and abilities large, so abilities then keep a mean of 1.
    """

    ratings: float = 0.0
    abilities: float = 0.0

    @property
    def floating(self) -> bool:
        """Whether no penalty fixes the scale: ratings times c with abilities divided by c give the same value."""
        return self.ratings == 0.0 and self.abilities == 0.0

    @property
    def tied(self) -> bool:
        """Whether a mean ability of 1 fixes the scale."""
        return self.ratings > 0.0 and self.abilities == 0.0

    def value(self, point: Point) -> float:
        """The penalty that is subtracted from the log-likelihood."""
        if self.floating:
            return 0.0
        apart = float(point.ratings @ point.ratings), float(((point.ability - 1.0) ** 2).sum())
        return 0.5 * (self.ratings * apart[0] + self.abilities * apart[1])


_FREE = Penalty()


@dataclass(frozen=True, slots=True, eq=False)
class Arrow:
    """Gradient and information of the penalised likelihood at a point, an arrowhead matrix in three parts.

    `pull` (models,) and `local_pull` (judges, b) are the gradient; `head` (models, models), `wing` (models, judges, b)
    and `inner` (judges, b, b) the information.
    """

    value: float
    pull: Vector
    local_pull: Matrix
    head: Matrix
    wing: NDArray[np.float64]
    inner: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Peak:
    """A maximum of the likelihood: the point, its log-likelihood without penalty, steps taken, largest gradient."""

    point: Point
    log_likelihood: float
    steps: int
    gradient: float


def arrow(
    cells: Cells,
    point: Point,
    penalty: Penalty = _FREE,
    held: NDArray[np.bool_] | None = None,
    found: LikelihoodTerms | None = None,
) -> Arrow:
    """Gradient and information of the cells at a point; parameters in `held` (judges, b) get no slope or coupling.

    `found` are the cells' terms at the point, if already computed.
    """
    models, judge = cells.models, cells.judge
    ability, gap = point.local[judge, 0], point.ratings[cells.upper] - point.ratings[cells.lower]
    found = terms_at(cells, point) if found is None else found
    pull, local_pull = gradient_at(cells, point, found)
    columns: list[Vector] = [gap] if cells.first is None else [gap, cells.first]
    crosses = [found.bend * ability * one for one in columns]
    crosses[0] = crosses[0] - found.slope
    inner = np.empty((cells.judges, point.local.shape[1], point.local.shape[1]))
    for row, one in enumerate(columns):
        for column in range(row + 1):
            inner[:, row, column] = inner[:, column, row] = cells.by_judge(found.bend * one * columns[column])
    if found.cross is not None and found.tie_bend is not None:
        crosses.append(found.cross * ability)
        for column, one in enumerate(columns):
            inner[:, -1, column] = inner[:, column, -1] = cells.by_judge(found.cross * one)
        inner[:, -1, -1] = cells.by_judge(found.tie_bend)
    wing = np.stack([_wings(cells, cross) for cross in crosses], axis=2)
    pairs = np.bincount(cells.upper * models + cells.lower, found.bend * ability * ability, models * models)
    head = np.asarray(-pairs.reshape(models, models), dtype=np.float64)
    head = head + head.T
    np.einsum("ii->i", head)[:] = penalty.ratings - head.sum(axis=1)
    inner[:, 0, 0] += penalty.abilities
    local_pull[:, 0] -= penalty.abilities * (point.ability - 1.0)
    if held is not None and held.any():
        local_pull[held] = 0.0
        wing[:, held] = 0.0
        inner[held[:, :, None] | held[:, None, :]] = 0.0
        np.einsum("kii->ki", inner)[held] = 1.0
    value = float(found.value.sum()) - penalty.value(point)
    return Arrow(value, pull - penalty.ratings * point.ratings, local_pull, head, wing, inner)


def _wings(cells: Cells, values: Vector) -> Matrix:
    size = cells.models * cells.judges
    sums = np.bincount(cells.upper * cells.judges + cells.judge, values, size)
    sums -= np.bincount(cells.lower * cells.judges + cells.judge, values, size)
    return np.asarray(sums.reshape(cells.models, cells.judges))


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """Schur complement of an arrowhead: `factor` is the Cholesky factor of what is left for the ratings.

    `inverse` (judges, b, b) holds the inverses of the judges' blocks and `folded` (models, judges * b) the wing times
    them.
    """

    factor: Matrix
    inverse: NDArray[np.float64]
    folded: Matrix

    def ratings(self, right: NDArray[np.float64]) -> NDArray[np.float64]:
        """The solution (models, ...) of the system of the ratings."""
        solved, _ = dpotrs(self.factor, np.asfortranarray(right), lower=True)
        return np.asarray(solved)

    def solve(self, right: Vector, local: Matrix) -> tuple[Vector, Matrix]:
        """The solution (models,) and (judges, b) of the whole system."""
        step = self.ratings(right - self.folded @ local.ravel())
        rest = np.einsum("kab,kb->ka", self.inverse, local) - (step @ self.folded).reshape(local.shape)
        return step, rest


def reduced(here: Arrow, ratings: Vector, penalty: Penalty, damping: float = 0.0) -> Reduced | None:
    """Eliminate the judges; None where the remaining system is not positive definite, so that no maximum is near.

    Without a penalty on ratings, equal shifts change nothing; without any penalty, scales change nothing either. A
    constant is added along both directions; it does not change solutions of a system that is invariant to them.
    """
    models, judges, width = here.wing.shape
    inner, head = here.inner, here.head
    if damping > 0.0:
        own = np.einsum("kii->ki", inner)
        own = own + own.mean(axis=0)
        inner = inner + damping * own[:, :, None] * np.eye(width)
        head = head + damping * np.diag(np.diagonal(head))
    if width == 1:
        # A judge of equally rated models only: zero curvature, so the gradient must be zero too.
        level = inner[:, 0, 0] <= 0.0
        if level.any() and np.any(here.wing[:, level]):
            return None
        inverse = np.divide(1.0, inner, out=np.zeros_like(inner), where=inner > 0.0)
        folded = here.wing[:, :, 0] * inverse[:, 0, 0]
    else:
        bends = np.linalg.eigvalsh(inner)
        if not np.all(bends[:, 0] > _BLUR * bends[:, -1]):
            return None
        inverse = np.linalg.inv(inner)
        folded = np.einsum("mka,kab->mkb", here.wing, inverse).reshape(models, judges * width)
    left = head - folded @ here.wing.reshape(models, judges * width).T
    size = float(np.trace(head)) / models
    if penalty.ratings == 0.0:
        left = left + size / models
    if penalty.floating:
        apart = ratings - ratings.mean()
        long = float(apart @ apart)
        if long > 0.0:
            left = left + size / long * np.outer(apart, apart)
    factor, failed = dpotrf(left, lower=True)
    return None if failed else Reduced(factor, inverse, folded)


def maximise(
    cells: Cells,
    start: Point,
    penalty: Penalty = _FREE,
    held: NDArray[np.bool_] | None = None,
    watch: Callable[[Point], bool] | None = None,
) -> Peak:
    """A local maximum of the penalised likelihood from `start`; parameters in `held` (judges, b) stay fixed.

    Without a penalty the returned ratings have a root mean square of 1. `watch` is called with each point and stops the
    iteration when it returns True. Raises `NotConvergedError` where the gradient is not 0 up to rounding.
    """
    fixed = None if held is None or not held.any() else held
    point, damping, total = _gauged(start, penalty, fixed), _DAMPING, float(cells.weight.sum())
    here = arrow(cells, point, penalty, fixed)
    for step in range(_STEPS):
        flat, border = _flat(here, point, penalty, fixed, total)
        level = None
        if flat <= _NEAR * _TOLERANCE:
            level = reduced(here, point.ratings, penalty)
            if level is not None and flat <= _TOLERANCE and _ascent(level, here, border)[1] <= _GAIN * total:
                return Peak(point, here.value + penalty.value(point), step, flat)
        if watch is not None and watch(point):
            return Peak(point, here.value + penalty.value(point), step, flat)
        found = _climb(cells, point, here, border, penalty, fixed, damping)
        if found is None:
            if flat <= _NEAR * _TOLERANCE and level is not None:
                return Peak(point, here.value + penalty.value(point), step, flat)
            raise NotConvergedError("ratings and abilities: no step climbs, and the gradient is not 0")
        point, cell_terms, damping = found
        damping = max(0.1 * damping, 1e-14)
        here = arrow(cells, point, penalty, fixed, cell_terms)
    hint = ": leave habits out, or judges of few verdicts" if point.local.shape[1] > 1 else ""
    hint = hint if penalty.floating else ": give a ridge and an ability ridge together, which hold every answer"
    raise NotConvergedError(f"ratings and abilities: the gradient was not zero after {_STEPS} steps{hint}")


def _climb(
    cells: Cells,
    point: Point,
    here: Arrow,
    border: Border | None,
    penalty: Penalty,
    held: NDArray[np.bool_] | None,
    damping: float,
) -> tuple[Point, LikelihoodTerms, float] | None:
    """The next point that is not lower, its cells' terms and the damping used; None where no step improves."""
    while damping <= _STIFFEST:
        system = reduced(here, point.ratings, penalty, damping)
        if system is not None:
            (shift, turn), _ = _ascent(system, here, border)
            moved = _gauged(Point(point.ratings + shift, point.local + turn), penalty, held)
            found = terms_at(cells, moved)
            value = float(found.value.sum()) - penalty.value(moved)
            if value >= here.value - _ROUNDING * abs(here.value):
                return moved, found, damping
        damping = max(8.0 * damping, 1e-8)
    return None


def _gauged(point: Point, penalty: Penalty, held: NDArray[np.bool_] | None) -> Point:
    """The point in its gauge, of the same likelihood: ratings of mean 0, and a spread or a mean ability of 1."""
    if penalty.ratings == 0.0 and len(point.ratings):
        point = replace(point, ratings=point.ratings - point.ratings.mean())
    still = None if held is None else held[:, 0]
    if penalty.floating:
        return point.scaled(1.0 / point.spread, still)
    free = point.ability if still is None else point.ability[~still]
    if penalty.tied and len(free) and abs(float(free.mean())) > 1e-6 * float(np.abs(free).mean()):
        return point.scaled(float(free.mean()), still)
    return point


def _flat(
    here: Arrow, point: Point, penalty: Penalty, held: NDArray[np.bool_] | None, total: float
) -> tuple[float, Border | None]:
    """The largest gradient as a share of all weight, in units of the scale, and the direction a step must not change.

    Where a penalty on ratings requires a mean ability of 1, the slopes of all abilities at the maximum are equal, not
    0. Where an ability is held against ratings of spread 1, the slope of the ratings is parallel to the ratings.
    """
    border: Border | None = None
    pull, local = here.pull, here.local_pull
    if penalty.tied:
        free = np.ones(len(local)) if held is None else (~held[:, 0]).astype(np.float64)
        turn = np.zeros_like(local)
        turn[:, 0] = free / max(free.sum(), 1.0)
        border = np.zeros_like(pull), turn
        local = local - free.sum() * float((turn * local).sum()) * turn
    elif penalty.floating and held is not None and held[:, 0].any():
        apart = point.ratings - point.ratings.mean()
        border = apart, np.zeros_like(local)
        pull = pull - float(pull @ apart) / max(float(apart @ apart), 1e-300) * apart
    size = np.ones_like(local)
    size[:, 0] = np.maximum(np.abs(point.ability), 1e-3)
    # Where the curvature is high, the rounding error of a rating changes the gradient by this much.
    blur = _BLUR * np.diagonal(here.head) * point.spread
    uneven = np.maximum(np.abs(pull) - blur, 0.0) * point.spread
    largest = max(float(uneven.max(initial=0.0)), float(np.abs(local * size).max(initial=0.0)))
    return largest / total, border


def _ascent(system: Reduced, here: Arrow, border: Border | None) -> tuple[tuple[Vector, Matrix], float]:
    """The step that solves the system, and its predicted gain."""
    shift, turn = system.solve(here.pull, here.local_pull)
    if border is not None:
        across, along = system.solve(*border)
        bound = float(border[0] @ across + (border[1] * along).sum())
        much = float(border[0] @ shift + (border[1] * turn).sum()) / bound if bound > 0.0 else 0.0
        shift, turn = shift - much * across, turn - much * along
    promise: Any = 0.5 * (here.pull @ shift + (here.local_pull * turn).sum())
    return (shift, turn), float(promise)
