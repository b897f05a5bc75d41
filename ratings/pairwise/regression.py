"""Paired logistic regression, P(A) = sigma(R_a - R_b + w . x): passes over rows, Newton's method, failure modes.

Rows are read in blocks that stay in the processor's cache. A pass costs one exponential per row, one sparse product and
one count by pairs. The first steps use every 32nd row and then every fourth, so that only two or three passes over all
rows are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csc_array

from venire.arena.errors import InputError, VenireError
from venire.ratings.pairwise.solvers import NotConvergedError

_BLOCK = 1 << 14
_SIDE = 32  # rows copied side by side
_STRIDES = (32, 4)  # the first steps use every 32nd row, the next every fourth
_STEPS = 100
_REACH = 1e-6  # a step that changes no log odds by more leaves an error of about its square
_ROUGH = 0.3  # tolerance for a subset of rows: the other rows move the point by a similar amount
_EXPLAINED = 1e-9  # a column with less than this share of its information left counts as collinear
_LEANING = 1e-6  # a direction of separation points the wrong way by at most this share of its largest row


class CovariateSeparatedError(VenireError):
    """The likelihood increases without bound along `direction`: coefficients by covariate, the largest being 1."""

    def __init__(self, direction: dict[str, float]) -> None:
        shown = ", ".join(f"{value:+.3g} {name}" for name, value in direction.items())
        super().__init__(
            f"the covariates tell every outcome that depends on them without one exception, along {shown}: their "
            "coefficients have no finite estimate; leave one of them out, or judge more battles"
        )
        self.direction = direction


@dataclass(frozen=True, slots=True, eq=False)
class RegressionRows:
    """Rows of a regression on `size` ratings and the columns of `x` (rows, k); `pair` is a * size + b."""

    size: int
    a: NDArray[np.int32]
    b: NDArray[np.int32]
    pair: NDArray[np.int64]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    weight: NDArray[np.float64] | None = None

    @property
    def reach(self) -> NDArray[np.float64]:
        """The largest magnitude in each column (k,)."""
        return largest_magnitudes(self.x)

    def every(self, stride: int) -> RegressionRows:
        """Every `stride`-th row, copied into contiguous arrays."""
        x, weight = np.ascontiguousarray(self.x[::stride]), None if self.weight is None else self.weight[::stride]
        return regression_rows(self.size, self.a[::stride], self.b[::stride], x, self.y[::stride], weight)

    def blocks(self) -> Iterator[slice]:
        """Slices of rows that fit in the cache."""
        return (slice(begin, begin + _BLOCK) for begin in range(0, len(self.y), _BLOCK))

    def shift(self, rows: slice, point: NDArray[np.float64]) -> NDArray[np.float64]:
        """The log odds (rows,) for A at a point, or their change by a step."""
        shift = point[self.a[rows]]
        shift -= point[self.b[rows]]
        shift += self.x[rows] @ point[self.size :]
        return shift


def regression_rows(
    size: int,
    a: NDArray[np.int32],
    b: NDArray[np.int32],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    weight: NDArray[np.float64] | None = None,
) -> RegressionRows:
    """Rows of A's and B's code, covariates, outcome for A and weight (None: 1 each), prepared for passes."""
    return RegressionRows(size, a, b, a.astype(np.int64) * size + b, x, y, weight)


def largest_magnitudes(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest magnitude in each column (k,) of x (rows, k), NaN where one is NaN."""
    rows, k = x.shape
    if not k:
        return np.zeros(0)
    # Many rows side by side: a maximum along narrow columns would not be vectorised.
    whole = rows - rows % _SIDE
    wide = np.ascontiguousarray(x[:whole]).reshape(whole // _SIDE, _SIDE * k)
    ends = [f(axis=0, initial=0.0) for part in (wide, x[whole:]) for f in (part.max, part.min)]
    stacked = np.concatenate([np.abs(end).reshape(-1, k) for end in ends])
    return np.asarray(stacked.max(axis=0, initial=0.0))


def derivatives(design: RegressionRows, point: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gradient (size + k,) of the log-likelihood at ratings and coefficients, and minus its Hessian."""
    return _gather(design, lambda rows: _terms(design, rows, design.shift(rows, point)))


def outer_products(design: RegressionRows, spread: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum over rows of spread (rows,) times the outer product of the row with itself, (size + k, size + k).

    A row is +1 at A, -1 at B and its covariates. With p (1 - p) as the spread this is the information, with squared
    residuals the middle of a sandwich.
    """
    return _gather(design, lambda rows: (spread[rows], spread[rows]))[1]


def score_totals(design: RegressionRows, surprise: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum (size + k,) of rows' scores: each row's residual `surprise` (rows,) times its design vector."""
    models = np.bincount(design.a, surprise, design.size) - np.bincount(design.b, surprise, design.size)
    return np.concatenate([models, surprise @ design.x])


def _gather(
    design: RegressionRows, terms: Callable[[slice], tuple[NDArray[np.float64], NDArray[np.float64]]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """`totals` of the surprise and `outer` of the spread that `terms` gives for some rows, in one pass."""
    size, k = design.size, design.x.shape[1]
    spread = np.empty(len(design.y))
    slopes, across, within = np.zeros(size + k), np.zeros((size, k)), np.zeros((k, k))
    sign, start = np.tile([1.0, -1.0], _BLOCK), np.arange(0, 2 * _BLOCK + 1, 2, dtype=np.int32)
    scaled = np.empty((_BLOCK, k))
    for rows in design.blocks():
        x, (surprise, spread[rows]) = design.x[rows], terms(rows)
        part = np.multiply(x, spread[rows][:, None], out=scaled[: len(x)])
        sides = np.column_stack([design.a[rows], design.b[rows]]).ravel()
        models = csc_array((sign[: len(sides)], sides, start[: len(x) + 1]), (size, len(x)))
        across += models @ part
        within += x.T @ part
        slopes[:size] += models @ surprise
        slopes[size:] += surprise @ x
    pairs = np.bincount(design.pair, spread, size * size).reshape(size, size)
    pairs = pairs + pairs.T
    matrix = np.empty((size + k, size + k))
    matrix[:size, :size] = np.diag(pairs.sum(axis=1)) - pairs
    matrix[:size, size:], matrix[size:, :size], matrix[size:, size:] = across, across.T, within
    return slopes, matrix


def residuals(design: RegressionRows, point: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Each row's weighted outcome minus its expectation (rows,), and the log-likelihood."""
    surprise, total = np.empty(len(design.y)), 0.0
    for rows in design.blocks():
        shift, y = design.shift(rows, point), design.y[rows]
        surprise[rows] = _terms(design, rows, shift)[0]
        share = y * np.minimum(shift, 0.0) - (1.0 - y) * np.maximum(shift, 0.0) - np.log1p(np.exp(-np.abs(shift)))
        total += float(share.sum() if design.weight is None else share @ design.weight[rows])
    return surprise, total


def gauge(information: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """The matrix with a constant added among ratings: it fixes their common shift and changes nothing else."""
    fixed = information.copy()
    fixed[:size, :size] += float(np.trace(information[:size, :size])) / size**2
    return fixed


def maximise(
    design: RegressionRows, names: Sequence[str], penalty: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Ratings (mean 0) and coefficients at the maximum (size + k,), information without penalty there, steps.

    `penalty` (size + k,) is lambda in lambda / 2 times the square of each. Raises `InputError` for columns that are
    combinations of others, `CovariateSeparatedError`, and `NotConvergedError`.
    """
    k, reach = design.x.shape[1], design.reach
    point = np.zeros(design.size + k)
    for stride in _STRIDES:
        if len(design.y) > stride * 50 * len(point):
            # A start may be imprecise: a small penalty keeps few rows from moving it far.
            held = penalty / stride + 1e-2 * np.concatenate([np.ones(design.size), reach**2])
            point = _Climb(design.every(stride), names, held, reach, rough=True).run(point, 8)[0]
    climb = _Climb(design, names, penalty, reach)
    try:
        point, steps, done = climb.run(point, _STEPS)
    except NotConvergedError:
        if not point.any():
            raise
        # In a sorted table the sampled rows may all be of one kind, and a start from them is useless.
        point, steps, done = climb.run(np.zeros(len(point)), _STEPS)
    if not done:
        climb.refuse_separation()
        raise NotConvergedError(f"the gradient was not zero after {_STEPS} steps")
    return point, climb.information, steps


class _Climb:
    """Newton's method on one design; a step is halved when it overshoots, judged by the slope at its end."""

    def __init__(
        self,
        design: RegressionRows,
        names: Sequence[str],
        penalty: NDArray[np.float64],
        reach: NDArray[np.float64],
        rough: bool = False,
    ) -> None:
        self.design, self.names, self.penalty, self.reach, self.rough = design, names, penalty, reach, rough
        self.information: NDArray[np.float64] = np.zeros((0, 0))
        self.step: NDArray[np.float64] = np.zeros(len(penalty))

    def run(self, point: NDArray[np.float64], steps: int) -> tuple[NDArray[np.float64], int, bool]:
        """The point reached, the steps made, and whether the last one was small enough to stop."""
        size, slope, scale = self.design.size, np.inf, 1.0
        for count in range(1, steps + 1):
            gradient, self.information = derivatives(self.design, point)
            gradient -= self.penalty * point
            if not self.rough and count == 1:
                _refuse_collinear(self.information, self.penalty, size, self.names)
            if -(gradient @ self.step) > 0.9 * slope and scale > 1e-6:
                scale *= 0.5
                point = point - scale * self.step
                continue
            self.step = self._solve(gradient)
            slope, scale = float(gradient @ self.step), 1.0
            point = point + self.step
            point[:size] -= point[:size].mean()
            change = 2.0 * np.abs(self.step[:size]).max() + np.abs(self.step[size:]) @ self.reach
            if change <= (_ROUGH if self.rough else _REACH):
                return point, count, True
            if count % 10 == 0 and change > 0.1:
                self.refuse_separation()
        return point, steps, False

    def _solve(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        fixed = gauge(self.information, self.design.size)
        fixed[np.diag_indices_from(fixed)] += self.penalty
        # Columns in any units: each is brought to one before the factorisation.
        unit = 1.0 / np.sqrt(np.diagonal(fixed))
        try:
            factor = cho_factor(fixed * unit * unit[:, None], lower=True, overwrite_a=True)
        except LinAlgError as error:
            self.refuse_separation()
            raise NotConvergedError("the information matrix is singular in double precision") from error
        return np.asarray(unit * cho_solve(factor, unit * gradient), dtype=np.float64)

    def refuse_separation(self) -> None:
        """Raise `CovariateSeparatedError` when the last step makes no row less likely, and some rows more likely."""
        design, size = self.design, self.design.size
        wrong = right = 0.0
        for rows in design.blocks():
            shift, y = design.shift(rows, self.step), design.y[rows]
            along = np.where(y == 1.0, shift, np.where(y == 0.0, -shift, -np.abs(shift)))
            wrong, right = max(wrong, float(-along.min())), max(right, float(along.max()))
        weights = self.step[size:] * self.reach
        if right > 0.0 and wrong <= _LEANING * right and len(weights) and np.abs(weights).max() > _LEANING * right:
            kept = np.flatnonzero(np.abs(weights) > 1e-3 * np.abs(weights).max()).tolist()
            largest = float(np.abs(self.step[size:][kept]).max())
            raise CovariateSeparatedError({self.names[j]: float(self.step[size + j] / largest) for j in kept})


def _terms(
    design: RegressionRows, rows: slice, shift: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weighted residual and variance of some rows; 1 - p is computed directly, so that rare losses keep precision."""
    y = design.y[rows]
    rare = np.exp(-np.abs(shift))
    likely = 1.0 / (1.0 + rare)
    rare *= likely
    ahead = shift > 0.0
    surprise = y * np.where(ahead, rare, likely)
    surprise -= (1.0 - y) * np.where(ahead, likely, rare)
    spread = rare * likely
    if design.weight is not None:
        surprise *= design.weight[rows]
        spread *= design.weight[rows]
    return surprise, spread


def _refuse_collinear(gram: NDArray[np.float64], penalty: NDArray[np.float64], size: int, names: Sequence[str]) -> None:
    """Raise `InputError` for the first column that models and earlier columns already explain."""
    if not names:
        return
    fixed = gauge(gram, size)
    fixed[np.diag_indices_from(fixed)] += penalty
    own = np.diagonal(gram)[size:]
    unit = 1.0 / np.sqrt(own)
    solved = cho_solve(cho_factor(fixed[:size, :size], lower=True), gram[:size, size:])
    rest = (gram[size:, size:] - gram[size:, :size] @ solved) * unit * unit[:, None]
    for column, name in enumerate(names):
        if rest[column, column] < _EXPLAINED:
            raise InputError(
                f"covariate {name}: it follows from which models meet, so that no battle can tell it from their "
                "ratings; leave it out"
            )
        before = rest[:column, :column]
        left = rest[column, column] - rest[column, :column] @ np.linalg.solve(before, rest[:column, column])
        if left < _EXPLAINED:
            others = ", ".join(names[:column])
            raise InputError(f"covariate {name}: it is a combination of {others} and the models; leave one of them out")
