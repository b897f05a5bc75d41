"""The likelihood of am-ELO, P(A) = sigma(theta_k (R_A - R_B)) for judge k, and Newton's method for its maximum.

Judgments are counted by judge and pair of models; these counts are sufficient. All variants share one log-likelihood.
Let z be the log odds of a win for the first model and t the logarithm of the judge's tie parameter. Then P(win) = exp(z
/ 2) / Z, P(tie) = exp(t) / Z and Z = 2 cosh(z / 2) + exp(t): Davidson's model (1970). If ties are not an outcome,
exp(t) is 0, a tie is half a win for each side, and P(win) is sigma(z).

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

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.pairwise.solvers import NotConvergedError

_TABLE = 1 << 22
"""Largest dense table of judges and pairs that is used for counting whatever the number of rows."""

Vector = NDArray[np.float64]

Codes = NDArray[np.intp]

NO_TIES = -700.0
"""The logarithm of the tie parameter of a judge that never ties."""

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

Matrix = NDArray[np.float64]

Border = tuple[Vector, Matrix]
"""A direction in the ratings and the judges' parameters that a step must not have a component along."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Sufficient statistics: one cell per judge, pair of models and presentation order; `upper` < `lower` are codes.

    `won` and `lost` (cells,) are the weights for and against the upper model. `tied` is the weight of ties where they
    are a separate outcome; None: a tie is half of each. `first` is 1 where the upper model was shown first, -1 where
    second, 0 where neither; None where presentation order is not modelled.
    """

    models: int
    judges: int
    judge: Codes
    upper: Codes
    lower: Codes
    won: Vector
    lost: Vector
    tied: Vector | None = None
    first: Vector | None = None

    def __len__(self) -> int:
        return len(self.judge)

    @property
    def weight(self) -> Vector:
        """The weight of each cell (cells,)."""
        played = self.won + self.lost
        return played if self.tied is None else played + self.tied

    @property
    def mixed(self) -> NDArray[np.bool_]:
        """Cells (cells,) whose verdicts are not all of one kind."""
        split = (self.won > 0.0) & (self.lost > 0.0)
        return split if self.tied is None else split | (self.tied > 0.0)

    def by_judge(self, values: Vector | None) -> Vector:
        """Sums (judges,) of values by cell (cells,); None: the number of cells."""
        return np.asarray(np.bincount(self.judge, values, self.judges), dtype=np.float64)

    def select(self, kept: NDArray[np.bool_]) -> Cells:
        """Some of the cells, by mask (cells,); models and judges keep their codes."""
        return replace(
            self,
            judge=self.judge[kept],
            upper=self.upper[kept],
            lower=self.lower[kept],
            won=self.won[kept],
            lost=self.lost[kept],
            tied=None if self.tied is None else self.tied[kept],
            first=None if self.first is None else self.first[kept],
        )

    def among(self, models: Codes, judges: Codes) -> Cells:
        """The cells of some models and some judges only, recoded in ascending order."""
        if len(models) == self.models and len(judges) == self.judges:
            return self
        place, seat = np.full(self.models, -1), np.full(self.judges, -1)
        place[models], seat[judges] = np.arange(len(models)), np.arange(len(judges))
        inside = (place[self.upper] >= 0) & (place[self.lower] >= 0) & (seat[self.judge] >= 0)
        part = self.select(inside)
        return replace(
            part,
            models=len(models),
            judges=len(judges),
            judge=seat[part.judge],
            upper=place[part.upper],
            lower=place[part.lower],
        )


def cells_of(data: Comparisons, *, first: Vector | None = None, ties: bool = False) -> Cells:
    """Count comparisons by judge, pair and, where `first` (rows,) gives it for the model in a, presentation order.

    With `ties` an outcome of exactly 0.5 is a tie. Raises `InputError` if the table names no judges, for an outcome
    other than win, tie and loss under `ties`, and for values of `first` other than 1, -1 and 0.
    """
    if data.judge is None:
        raise InputError("abilities are of judges, and these comparisons name none: give judge=, a name for each row")
    ahead = data.a < data.b
    y = np.where(ahead, data.y, 1.0 - data.y)
    size, count = len(data.models), len(data.judges)
    key = data.judge.astype(np.int64) * size
    key += np.minimum(data.a, data.b)
    key *= size
    key += np.maximum(data.a, data.b)
    places = count * size * size
    if first is not None:
        key = 3 * key + (1 + np.where(ahead, 1, -1) * _orders(first, len(data)))
        places *= 3
    weight = data.weight
    drawn = _ties(y) if ties else None
    if drawn is not None:
        y = np.where(drawn, 0.0, y)
    lost = np.where(drawn, 0.0, 1.0 - y) if drawn is not None else 1.0 - y
    kinds = [y, lost] if drawn is None else [y, lost, drawn.astype(np.float64)]
    found, sums = _counted(key, [kind if weight is None else kind * weight for kind in kinds], places)
    order = None if first is None else np.asarray(found % 3 - 1, dtype=np.float64)
    pair = found // 3 if first is not None else found
    return Cells(
        models=size,
        judges=count,
        judge=pair // (size * size),
        upper=pair // size % size,
        lower=pair % size,
        won=sums[0],
        lost=sums[1],
        tied=None if drawn is None else sums[2],
        first=order,
    )


def _orders(first: Vector, rows: int) -> NDArray[np.int64]:
    given = np.asarray(first, dtype=np.float64)
    if given.shape != (rows,):
        raise InputError(f"first has shape {given.shape}; give 1, -1 or 0 for each of {rows} rows")
    if not np.isin(given, (-1.0, 0.0, 1.0)).all():
        row = int(np.argmin(np.isin(given, (-1.0, 0.0, 1.0))))
        raise InputError(f"first, row {row}: {given[row]} is not possible: give 1 where model_a was shown first, or -1")
    return given.astype(np.int64)


def _ties(y: Vector) -> NDArray[np.bool_]:
    tie = y == 0.5
    wrong = ~(tie | (y == 0.0) | (y == 1.0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"y, row {row}: {y[row]} is not possible: with a habit of ties each outcome is a win, a tie or a loss"
        )
    return np.asarray(tie, dtype=np.bool_)


def _counted(key: NDArray[np.int64], sums: list[Vector], places: int) -> tuple[NDArray[np.int64], list[Vector]]:
    """The keys with nonzero weight, ascending, and the sums by key."""
    if places <= max(_TABLE, 4 * len(key)):
        keys, cell = np.arange(places), key
    else:
        keys, cell = np.unique(key, return_inverse=True)
    totals = [np.asarray(np.bincount(cell, values, len(keys)), dtype=np.float64) for values in sums]
    there = np.flatnonzero(sum(totals) > 0.0)
    return keys[there], [total[there] for total in totals]


@dataclass(frozen=True, slots=True, eq=False)
class LikelihoodTerms:
    """Each cell's log-likelihood (cells,), its slopes in z and t, and minus its second derivatives.

    `tie_slope`, `tie_bend` and `cross` are None where ties are not a separate outcome.
    """

    value: Vector
    slope: Vector
    bend: Vector
    tie_slope: Vector | None = None
    tie_bend: Vector | None = None
    cross: Vector | None = None


def likelihood_terms(
    won: Vector, lost: Vector, tied: Vector | None, odds: Vector, freedom: Vector | None
) -> LikelihoodTerms:
    """Log-likelihood and derivatives of cells at log odds z and tie parameter t (cells,) each.

    Log probabilities are computed from the rarer side, so that a rare loss keeps its precision.
    """
    if tied is None or freedom is None:
        rare = np.exp(-np.abs(odds))
        tail, likely = np.log1p(rare), 1.0 / (1.0 + rare)
        rare *= likely
        ahead = odds > 0.0
        win, loss = np.where(ahead, likely, rare), np.where(ahead, rare, likely)
        value = -(won * (np.maximum(-odds, 0.0) + tail) + lost * (np.maximum(odds, 0.0) + tail))
        return LikelihoodTerms(value, won * loss - lost * win, (won + lost) * (rare * likely))
    half = 0.5 * np.abs(odds)
    total = np.logaddexp(half + np.log1p(np.exp(-2.0 * half)), freedom)
    win, loss, tie = np.exp(0.5 * odds - total), np.exp(-0.5 * odds - total), np.exp(freedom - total)
    met = won + lost + tied
    return LikelihoodTerms(
        value=0.5 * odds * (won - lost) + tied * freedom - met * total,
        slope=0.5 * (won * (2.0 * loss + tie) + tied * loss - lost * (2.0 * win + tie) - tied * win),
        bend=0.25 * met * (tie * (win + loss) + 4.0 * win * loss),
        tie_slope=tied * (win + loss) - (won + lost) * tie,
        tie_bend=met * tie * (win + loss),
        cross=-0.5 * met * (win - loss) * tie,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """`ratings` (models,) in logits and, for each judge, `local` (judges, 1 to 3): ability, then habits.

    Habits are the position bias and the logarithm of the tie parameter, in this order.
    """

    ratings: Vector
    local: Matrix

    @property
    def ability(self) -> Vector:
        """Abilities (judges,)."""
        return np.asarray(self.local[:, 0])

    def scaled(self, factor: float, but: NDArray[np.bool_] | None = None) -> Point:
        """The point with ratings times `factor`: the same likelihood, unless abilities are held (`but`, judges)."""
        local = self.local.copy()
        local[:, 0] /= factor if but is None else np.where(but, 1.0, factor)
        return Point(self.ratings * factor, local)

    @property
    def spread(self) -> float:
        """Root mean square of the ratings about their mean; 1 where they are all equal."""
        apart = float(np.sqrt(np.mean((self.ratings - self.ratings.mean()) ** 2))) if len(self.ratings) else 0.0
        return apart if apart > 0.0 else 1.0


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
    found = _terms_at(cells, point) if found is None else found
    columns: list[Vector] = [gap] if cells.first is None else [gap, cells.first]
    slopes, crosses = [found.slope * one for one in columns], [found.bend * ability * one for one in columns]
    crosses[0] = crosses[0] - found.slope
    inner = np.empty((cells.judges, point.local.shape[1], point.local.shape[1]))
    for row, one in enumerate(columns):
        for column in range(row + 1):
            inner[:, row, column] = inner[:, column, row] = cells.by_judge(found.bend * one * columns[column])
    if found.cross is not None and found.tie_slope is not None and found.tie_bend is not None:
        slopes.append(found.tie_slope)
        crosses.append(found.cross * ability)
        for column, one in enumerate(columns):
            inner[:, -1, column] = inner[:, column, -1] = cells.by_judge(found.cross * one)
        inner[:, -1, -1] = cells.by_judge(found.tie_bend)
    pull = _difference(cells, found.slope * ability)
    local_pull = np.stack([cells.by_judge(slope) for slope in slopes], axis=1)
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


def odds_at(cells: Cells, point: Point) -> Vector:
    """The log odds (cells,) of a win for the upper model, habits of place included."""
    odds = point.local[cells.judge, 0] * (point.ratings[cells.upper] - point.ratings[cells.lower])
    if cells.first is not None:
        odds = odds + point.local[cells.judge, 1] * cells.first
    return np.asarray(odds, dtype=np.float64)


def _terms_at(cells: Cells, point: Point) -> LikelihoodTerms:
    """Each cell's log-likelihood at a point, with its derivatives."""
    freedom = None if cells.tied is None else point.local[cells.judge, -1]
    return likelihood_terms(cells.won, cells.lost, cells.tied, odds_at(cells, point), freedom)


def _difference(cells: Cells, values: Vector) -> Vector:
    """Sums (models,) in which each cell adds to its upper model and subtracts from its lower model."""
    sums = np.bincount(cells.upper, values, cells.models) - np.bincount(cells.lower, values, cells.models)
    return np.asarray(sums, dtype=np.float64)


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
            found = _terms_at(cells, moved)
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
