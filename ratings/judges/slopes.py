"""Logistic slopes of many judges at once: P(first) = sigma(b + theta * g), each judge with its own b and theta.

Verdicts of one judge on one gap are counted first, so that a step costs as much as there are distinct gaps. All
judges take their Newton steps together; a step that would go downhill is halved for that judge alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from venire.ratings.pairwise.solvers import NotConvergedError

__all__ = ["GapRows", "Slopes", "clustered_errors", "derivatives", "empirical_bayes", "fit_slopes", "log_posterior"]

POSITION_SD = 5.0
"""Standard deviation of the prior of b: wide enough for any judge but one that always says the same."""
_STEPS = 200
_HALVINGS = 60
_ROUNDS = 1_000
_LEAP = 4.0
"""Furthest extrapolation of the mean slope, and of the logarithm of the variance."""
_TOLERANCE = 1e-8


@dataclass(frozen=True, slots=True, eq=False)
class GapRows:
    """Decisive verdicts, counted: a row is a `cell` and a `cluster`, `number` of verdicts, `first` won of them.

    A cell is a judge and a gap of first over second in log odds; a cluster a judge and an instruction. `count` and
    `won` add `number` and `first` up by cell. `ordered` is False where the first place means nothing: b is held
    at 0.
    """

    judges: int
    cell: NDArray[np.intp]
    cluster: NDArray[np.intp]
    number: NDArray[np.intp]
    first: NDArray[np.intp]
    cell_judge: NDArray[np.intp]
    cell_gap: NDArray[np.float64]
    cluster_judge: NDArray[np.intp]
    count: NDArray[np.float64]
    won: NDArray[np.float64]
    ordered: bool

    def by_judge(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums (judges,) of values by cell (cells,)."""
        return np.asarray(np.bincount(self.cell_judge, values, self.judges), dtype=np.float64)

    @property
    def ends(self) -> NDArray[np.float64]:
        """1 for a judge whose verdicts all follow the gap, -1 where all are against it, 0 otherwise, NaN for no gap."""
        followed = np.where(self.cell_gap > 0, self.won, self.count - self.won)
        apart = self.cell_gap != 0.0
        with_gap = self.by_judge(self.count * apart)
        follow = self.by_judge(followed * apart)
        ends = (follow == with_gap).astype(np.float64) - (follow == 0.0)
        return np.asarray(np.where(with_gap > 0, ends, np.nan))


@dataclass(frozen=True, slots=True, eq=False)
class Slopes:
    """Each judge's `b` and `theta` at the maximum (judges,), and the inverse information (judges, 2, 2) there."""

    b: NDArray[np.float64]
    theta: NDArray[np.float64]
    covariance: NDArray[np.float64]


def log_posterior(
    rows: GapRows, b: NDArray[np.float64], theta: NDArray[np.float64], mean: float, precision: float
) -> NDArray[np.float64]:
    """Log-likelihood and log priors of each judge (judges,), up to a constant; `precision` 0 is no prior on theta."""
    logit = b[rows.cell_judge] + theta[rows.cell_judge] * rows.cell_gap
    lost = rows.count - rows.won
    fit = rows.by_judge(rows.won * log_expit(logit) + lost * log_expit(-logit))
    return np.asarray(fit - 0.5 * (b / POSITION_SD) ** 2 - 0.5 * precision * (theta - mean) ** 2)


def derivatives(
    rows: GapRows, b: NDArray[np.float64], theta: NDArray[np.float64], mean: float, precision: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gradient (judges, 2) of `log_posterior` in (b, theta), and the information (judges, 2, 2): minus its Hessian."""
    share = expit(b[rows.cell_judge] + theta[rows.cell_judge] * rows.cell_gap)
    surprise = rows.won - rows.count * share
    spread = rows.count * share * (1.0 - share)
    gradient = np.stack([rows.by_judge(surprise), rows.by_judge(surprise * rows.cell_gap)], axis=1)
    gradient -= np.stack([b / POSITION_SD**2, precision * (theta - mean)], axis=1)
    information = np.empty((rows.judges, 2, 2))
    information[:, 0, 0] = rows.by_judge(spread) + 1.0 / POSITION_SD**2
    information[:, 0, 1] = information[:, 1, 0] = rows.by_judge(spread * rows.cell_gap)
    information[:, 1, 1] = rows.by_judge(spread * rows.cell_gap**2) + precision
    if not rows.ordered:
        gradient[:, 0] = 0.0
        information[:, 0, :], information[:, :, 0] = [1.0, 0.0], [1.0, 0.0]
    return gradient, information


def fit_slopes(
    rows: GapRows,
    *,
    mean: float = 0.0,
    precision: float = 0.0,
    held: NDArray[np.bool_] | None = None,
    start: Slopes | None = None,
) -> Slopes:
    """Newton's method for all judges; `held` ones (judges,) stay at slope 0. Raises `NotConvergedError`.

    Every judge that is not held needs a finite maximum: a prior, or verdicts both with and against the gap.
    """
    free = np.ones(rows.judges, dtype=np.bool_) if held is None else ~held
    b = np.zeros(rows.judges) if start is None else start.b
    theta = np.where(free, mean, 0.0) if start is None else start.theta
    for _ in range(_STEPS):
        gradient, information = derivatives(rows, b, theta, mean, precision)
        information[~free, 1, :], information[~free, :, 1] = [0.0, 1.0], [0.0, 1.0]
        gradient[~free, 1] = 0.0
        inverse = _inverse(information)
        step = np.einsum("jkl,jl->jk", inverse, gradient)
        if np.all(np.abs(step) <= 1e-11 * (1.0 + np.abs(np.stack([b, theta], axis=1)))):
            return Slopes(b, theta, inverse)
        scale = _length(rows, b, theta, step, mean, precision)
        b, theta = b + scale * step[:, 0], theta + scale * step[:, 1]
    raise NotConvergedError(f"the judges' slopes did not settle within {_STEPS} steps")


def empirical_bayes(rows: GapRows, start: tuple[float, float]) -> tuple[float, float]:
    """Mean and variance of the slopes of the judges that have verdicts, by the fixed point of docs/judges.md, to 1e-8.

    mu is the mean of the shrunk slopes, tau^2 the mean of their squared distance to it plus their own variance. Where
    judges hardly differ the plain iteration creeps towards a variance of 0, so that two rounds are extrapolated
    (SQUAREM, Varadhan and Roland 2008), in mu and the logarithm of tau^2. Raises `NotConvergedError`.
    """
    some = rows.by_judge(rows.count) > 0
    found: Slopes | None = None

    def round_of(at: NDArray[np.float64]) -> NDArray[np.float64]:
        nonlocal found
        found = fit_slopes(rows, mean=float(at[0]), precision=float(np.exp(-at[1])), start=found)
        theta, error = found.theta[some], found.covariance[some, 1, 1]
        mu = theta.mean()
        return np.array([mu, np.log(np.mean((theta - mu) ** 2 + error))])

    point = np.array([start[0], np.log(start[1])])
    for _ in range(_ROUNDS):
        once = round_of(point)
        if abs(once[0] - point[0]) <= _TOLERANCE and abs(np.exp(once[1]) - np.exp(point[1])) <= _TOLERANCE:
            return float(once[0]), float(np.exp(once[1]))
        twice = round_of(once)
        change, bend = once - point, (twice - once) - (once - point)
        length = max(float(np.linalg.norm(change)) / max(float(np.linalg.norm(bend)), 1e-300), 1.0)
        leap = 2.0 * length * change + length**2 * bend
        if not np.isfinite(leap).all() or np.abs(leap).max() > _LEAP:
            leap = np.clip(np.nan_to_num(leap), -_LEAP, _LEAP)
        # One plain round after the leap: it cannot leave what the data allow.
        point = round_of(point + leap)
    raise NotConvergedError(f"the judges' mean slope did not settle within {_ROUNDS} rounds")


def clustered_errors(rows: GapRows, found: Slopes) -> NDArray[np.float64]:
    """Standard errors of theta (judges,), robust to whatever verdicts on one instruction share; NaN below two.

    Sandwich with the factor C / (C - 1), C instructions of the judge.
    """
    share = expit(found.b[rows.cell_judge] + found.theta[rows.cell_judge] * rows.cell_gap)
    surprise = rows.first - rows.number * share[rows.cell]
    size = len(rows.cluster_judge)
    pull = np.bincount(rows.cluster, surprise, size) if rows.ordered else np.zeros(size)
    slope = np.bincount(rows.cluster, surprise * rows.cell_gap[rows.cell], size)
    inverse = found.covariance[rows.cluster_judge, 1]
    influence = inverse[:, 0] * pull + inverse[:, 1] * slope
    clusters = np.bincount(rows.cluster_judge, minlength=rows.judges)
    total = np.bincount(rows.cluster_judge, influence**2, rows.judges)
    several = clusters > 1
    factor = np.where(several, clusters / np.maximum(clusters - 1, 1), np.nan)
    return np.asarray(np.sqrt(total * factor))


def _inverse(information: NDArray[np.float64]) -> NDArray[np.float64]:
    """Inverses of symmetric 2 x 2 matrices (judges, 2, 2)."""
    first, both, second = information[:, 0, 0], information[:, 0, 1], information[:, 1, 1]
    determinant = first * second - both * both
    if not np.all(determinant > 0.0):
        raise NotConvergedError("a judge's verdicts say nothing of its slope in double precision")
    inverse = np.empty_like(information)
    inverse[:, 0, 0], inverse[:, 1, 1] = second / determinant, first / determinant
    inverse[:, 0, 1] = inverse[:, 1, 0] = -both / determinant
    return inverse


def _length(
    rows: GapRows,
    b: NDArray[np.float64],
    theta: NDArray[np.float64],
    step: NDArray[np.float64],
    mean: float,
    precision: float,
) -> NDArray[np.float64]:
    """How much of each judge's step to take (judges,): halved until it does not go downhill."""
    here = log_posterior(rows, b, theta, mean, precision)
    least = here - 1e-12 * (1.0 + np.abs(here))
    scale = np.ones(rows.judges)
    for _ in range(_HALVINGS):
        there = log_posterior(rows, b + scale * step[:, 0], theta + scale * step[:, 1], mean, precision)
        if np.all(there >= least):
            break
        scale = np.where(there >= least, scale, 0.5 * scale)
    return scale
