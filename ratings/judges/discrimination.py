"""Discrimination of judges: the slope of verdicts on the gap, P(first) = sigma(b_J + theta_J * g), by judge.

g is the gap of first over second in log odds, so theta = 1 is a person's slope, 0 a coin toss, and a negative slope is
reversed. b_J is the bias towards the first position. Theta is am-ELO's ability with the ratings held at the reference.
Verdicts of one judge on one gap are counted first, so the cost of a step is proportional to the number of distinct
gaps. All judges take their Newton steps together; a step that would decrease a judge's likelihood is halved for that
judge only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit

from venire.arena.errors import InputError
from venire.ratings.data.validation import float_array
from venire.ratings.judges.matchups import dense_codes
from venire.ratings.pairwise.solvers import NotConvergedError

POSITION_SD = 5.0
"""Standard deviation of the prior of b: wide enough for any judge except one that always answers the same."""

_STEPS = 200

_HALVINGS = 60

_ROUNDS = 1_000

_LEAP = 4.0
"""Maximum extrapolation of the mean slope, and of the logarithm of the variance."""

_TOLERANCE = 1e-8

_MIN_JUDGES = 5

_FIXED = (1.5, 1.0)
"""Mean and variance of the prior of slopes where there are too few judges to estimate it."""

_NO_GAP = 1e-9
"""Log odds below which a gap counts as 0: the rounding error of a fit between equal models."""


@dataclass(frozen=True, slots=True, eq=False)
class GapRows:
    """Decisive verdicts, counted: a row is a `cell` and a `cluster` with `number` verdicts; the first won `first`.

    A cell is a judge and a gap of first over second in log odds; a cluster a judge and an instruction. `count` and
    `won` sum `number` and `first` by cell. `ordered` is False where the first place has no meaning: b is held at 0.
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
        """1 for a judge whose verdicts all follow the gap, -1 if all are against it, 0 otherwise, NaN without a gap."""
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
    """Log-likelihood and log priors of each judge (judges,), up to a constant; `precision` 0: no prior on theta."""
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
    """Newton's method for all judges; `held` judges (judges,) stay at slope 0. Raises `NotConvergedError`.

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


def _empirical_bayes(rows: GapRows, start: tuple[float, float]) -> tuple[float, float]:
    """Mean and variance of the slopes of the judges that have verdicts, by the fixed point of docs/judges.md, to 1e-8.

    mu is the mean of the shrunk slopes, tau^2 the mean of their squared distance to it plus their own variance. Where
    judges hardly differ the plain iteration converges slowly to a variance of 0, so two rounds are extrapolated
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
        # One plain round after the extrapolation returns to the range that the data allow.
        point = round_of(point + leap)
    raise NotConvergedError(f"the judges' mean slope did not settle within {_ROUNDS} rounds")


def _clustered_errors(rows: GapRows, found: Slopes) -> NDArray[np.float64]:
    """Standard errors of theta (judges,), clustered by instruction; NaN with fewer than two.

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
    """Step lengths (judges,): halved until the likelihood does not decrease."""
    here = log_posterior(rows, b, theta, mean, precision)
    least = here - 1e-12 * (1.0 + np.abs(here))
    scale = np.ones(rows.judges)
    for _ in range(_HALVINGS):
        there = log_posterior(rows, b + scale * step[:, 0], theta + scale * step[:, 1], mean, precision)
        if np.all(there >= least):
            break
        scale = np.where(there >= least, scale, 0.5 * scale)
    return scale


@dataclass(frozen=True, slots=True, eq=False)
class Discrimination:
    """Slopes of judges; arrays have one entry per judge, NaN where it has no decisive verdict with a known gap.

    `theta` is shrunk towards the judges' mean `mu` (sd `tau`), for display; `ml` is the maximum-likelihood slope, inf
    where every verdict follows the gap (a ceiling) and -inf where every verdict is against it. `se` and `ml_se` are
    clustered by instruction (NaN with fewer than two instructions, and where the slope is infinite). `position` is b_J;
    `verdicts` and `instructions` count the data of a judge. `prior` is the source of mu and tau.
    """

    judges: tuple[str, ...]
    theta: NDArray[np.float64]
    se: NDArray[np.float64]
    ml: NDArray[np.float64]
    ml_se: NDArray[np.float64]
    position: NDArray[np.float64]
    verdicts: NDArray[np.intp]
    instructions: NDArray[np.intp]
    mu: float
    tau: float
    prior: str

    @property
    def ceiling(self) -> tuple[str, ...]:
        """Judges whose verdicts all follow the gap: their maximum is not at a finite slope."""
        return tuple(name for name, value in zip(self.judges, self.ml, strict=True) if value == np.inf)

    @property
    def floor(self) -> tuple[str, ...]:
        """Judges whose verdicts are all against the gap."""
        return tuple(name for name, value in zip(self.judges, self.ml, strict=True) if value == -np.inf)

    @property
    def reliability(self) -> float | None:
        """Share of the variance of the maximum-likelihood slopes that is not error; see `score_reliability`."""
        return score_reliability(self.ml, self.ml_se)

    def summary(self) -> str:
        """The slopes as a text table, steepest first."""
        order = sorted(range(len(self.judges)), key=lambda k: (-np.nan_to_num(self.theta[k], nan=-np.inf), k))
        width = max([5, *(len(name) for name in self.judges)])
        share = self.reliability
        lines = [
            f"discrimination, 1 = a person's slope; prior: {self.prior}, mean {self.mu:.2f}, sd {self.tau:.2f}; "
            f"reliability {'unknown' if share is None else f'{share:.2f}'}",
            f"{'judge':<{width}}  {'theta':>6}  {'se':>5}  {'ml':>6}  {'se':>5}  {'pull':>5}  {'verdicts':>8}",
        ]
        lines += [
            f"{self.judges[k]:<{width}}  {self.theta[k]:>6.2f}  {self.se[k]:>5.2f}  {self.ml[k]:>6.2f}  "
            f"{self.ml_se[k]:>5.2f}  {self.position[k]:>5.2f}  {self.verdicts[k]:>8d}"
            for k in order
        ]
        lines += [f"ceiling, every verdict follows the gap: {name}" for name in self.ceiling]
        return "\n".join([*lines, *(f"every verdict is against the gap: {name}" for name in self.floor)])


def score_reliability(values: ArrayLike, errors: ArrayLike) -> float | None:
    """1 - mean(se^2) / var of values (n,) with standard errors (n,), where both are known; None with fewer than 3.

    A correlation with these values is not expected to exceed its square root. Below 0 the values differ by less than
    their errors.

    >>> from venire.ratings import score_reliability
    >>> round(score_reliability([0.9, 0.8, 0.6, 0.7], [0.02, 0.03, 0.02, 0.04]), 3)
    0.951
    """
    value, error = float_array("values", values), float_array("errors", errors)
    if value.shape != error.shape:
        raise InputError(f"values has shape {value.shape}, errors {error.shape}; give one error for each value")
    known = np.isfinite(value) & np.isfinite(error)
    if np.count_nonzero(known) < 3:
        return None
    spread = float(value[known].var(ddof=1))
    return None if spread == 0.0 else 1.0 - float(np.mean(error[known] ** 2)) / spread


def discrimination(
    judge: ArrayLike,
    gap: ArrayLike,
    first_won: ArrayLike,
    *,
    judges: Sequence[str],
    instruction: ArrayLike | None = None,
    ordered: bool = True,
) -> Discrimination:
    """Fit the slope of each judge on plain columns (rows,), one row per decisive verdict; docs/judges.md.

    `judge` are codes into `judges`, `gap` is that of first over second in log odds, `first_won` is true or false, and
    `instruction` are codes (None: one cluster per verdict). Rows with a NaN gap are left out. The position bias has a
    prior N(0, 5^2); slopes have N(mu, tau^2) by empirical Bayes, or N(1.5, 1) with fewer than 5 judges. `ordered=False`
    leaves the position bias out: the table does not contain the presentation order. Raises `InputError` and
    `NotConvergedError`.

    >>> from venire.ratings import discrimination
    >>> rng = np.random.default_rng(0)
    >>> gap = rng.normal(0, 200, 80)
    >>> won = (gap + rng.normal(0, 100, 80) > 0).astype(float)
    >>> found = discrimination(np.zeros(80, dtype=int), gap, won, judges=["x"])
    >>> found.judges
    ('x',)
    """
    who = float_array("judge", judge).astype(np.intp)
    _check(who, len(judges), gap=gap, first_won=first_won, instruction=instruction)
    gaps = float_array("gap", gap)
    known = np.isfinite(gaps)
    values, value = np.unique(gaps[known], return_inverse=True)
    won = np.asarray(first_won, dtype=np.bool_)[known]
    units = own_units(who[known], value, won)
    if instruction is not None:
        units = np.unique(np.asarray(instruction)[known], return_inverse=True)[1]
    who, value, units, number, first = _counted(who[known], value, units, won)
    rows = gap_rows(who, value, values, units, number, first, judges=len(judges), ordered=ordered)
    return fit_discrimination(rows, judges)


def own_units(judge: NDArray[np.intp], value: NDArray[np.intp], won: NDArray[Any]) -> NDArray[np.intp]:
    """A separate instruction for each row (rows,), numbered so that the order of rows has no effect."""
    place = np.empty(len(judge), dtype=np.intp)
    place[np.lexsort((won, value, judge))] = np.arange(len(judge))
    return place


def gap_rows(
    judge: NDArray[np.intp],
    value: NDArray[np.intp],
    gaps: NDArray[np.float64],
    instruction: NDArray[np.intp],
    number: NDArray[np.intp],
    first: NDArray[np.intp],
    *,
    judges: int,
    ordered: bool,
) -> GapRows:
    """Index counted entries by judge and gap; `value` (rows,) are indices into `gaps` (n,) or (judges, n).

    An entry is `number` verdicts of a judge on a gap and an instruction; the first won `first` of them.
    """
    sizes, units = gaps.shape[-1], int(instruction.max(initial=-1)) + 1
    cluster, clusters = dense_codes(judge * units + instruction, judges * units)
    cell, cells = dense_codes(judge * sizes + value, judges * sizes)
    cell_judge, place = np.divmod(cells, max(sizes, 1))
    found = gaps[place] if gaps.ndim == 1 else gaps[cell_judge, place]
    return GapRows(
        judges=judges,
        cell=cell,
        cluster=cluster,
        number=number,
        first=first,
        cell_judge=cell_judge,
        cell_gap=np.where(np.abs(found) < _NO_GAP, 0.0, found),
        cluster_judge=clusters // max(units, 1),
        count=np.bincount(cell, number, len(cells)).astype(np.float64),
        won=np.bincount(cell, first, len(cells)).astype(np.float64),
        ordered=ordered,
    )


def _counted(
    judge: NDArray[np.intp], value: NDArray[np.intp], instruction: NDArray[np.intp], won: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], ...]:
    """Entries of equal judge, value and instruction, sorted by these, with their number and wins of the first.

    They are summed in sorted order, so that no sum depends on the order of rows.
    """
    values, units = int(value.max(initial=0)) + 1, int(instruction.max(initial=0)) + 1
    key = (judge * units + instruction) * values + value
    entry, found = dense_codes(key, int(key.max(initial=-1)) + 1)
    cluster, value = np.divmod(found, values)
    judge, instruction = np.divmod(cluster, units)
    number = np.bincount(entry, minlength=len(found))
    return judge, value, instruction, number, np.bincount(entry[won], minlength=len(found))


def fit_discrimination(rows: GapRows, judges: Sequence[str]) -> Discrimination:
    """The slopes of judges from counted verdicts; see `discrimination`."""
    verdicts = rows.by_judge(rows.count).astype(np.intp)
    ends, some = rows.ends, verdicts > 0
    mean, variance, prior = *_FIXED, f"fixed, fewer than {_MIN_JUDGES} judges"
    if np.count_nonzero(some) >= _MIN_JUDGES:
        prior = "empirical Bayes"
        mean, variance = _empirical_bayes(rows, _FIXED)
    shrunk = fit_slopes(rows, mean=mean, precision=1.0 / variance)
    free = fit_slopes(rows, held=ends != 0.0)
    ml = np.where(ends == 0.0, free.theta, np.nan)
    ml[ends == 1.0], ml[ends == -1.0] = np.inf, -np.inf
    return Discrimination(
        judges=tuple(judges),
        theta=np.where(some, shrunk.theta, np.nan),
        se=np.where(some, _clustered_errors(rows, shrunk), np.nan),
        ml=ml,
        ml_se=np.where(ends == 0.0, _clustered_errors(rows, free), np.nan),
        position=np.where(some & rows.ordered, shrunk.b, np.nan),
        verdicts=verdicts,
        instructions=np.bincount(rows.cluster_judge, minlength=rows.judges),
        mu=mean,
        tau=float(np.sqrt(variance)),
        prior=prior,
    )


def _check(judge: NDArray[np.intp], judges: int, **columns: Any) -> None:
    """Reject columns of unequal length, codes without a judge and outcomes other than true and false."""
    if judge.ndim != 1:
        raise InputError(f"judge has shape {judge.shape}; give one code a row")
    for name, column in columns.items():
        shape = np.shape(column)
        if column is not None and shape != judge.shape:
            raise InputError(f"{name} has shape {shape}, judge {judge.shape}; give one value a row")
    wrong = (judge < 0) | (judge >= judges)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"judge, row {row}: {judge[row]} stands for none of the {judges} judges")
    won = np.asarray(columns["first_won"], dtype=np.float64)
    wrong = (won != 0.0) & (won != 1.0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"first_won, row {row}: {won[row]:g}; give true or false, and leave ties out")
