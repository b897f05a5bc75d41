"""How a judge's verdicts follow the gap between models: P(first) = sigma(b_J + theta_J * g), on decisive verdicts.

g is the gap of first over second in log odds, so that theta = 1 is a person's slope, 0 a coin, and a negative one is
reversed. b_J is the pull towards the first place. It is am-ELO's ability with the ratings held at the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError
from venire.ratings.judges.matchups import dense_codes
from venire.ratings.judges.slopes import GapRows, clustered_errors, empirical_bayes, fit_slopes

__all__ = ["Discrimination", "alone", "discrimination", "fit_discrimination", "gap_rows", "score_reliability"]

_FEW = 5
_FIXED = (1.5, 1.0)
"""Mean and variance of the prior of slopes where the judges are too few to say."""
_NO_GAP = 1e-9
"""Log odds below which a gap is none: a fit leaves as much where two models are equal."""


@dataclass(frozen=True, slots=True, eq=False)
class Discrimination:
    """Slopes of judges; arrays have one entry a judge, NaN where it has no decisive verdict with a known gap.

    `theta` is shrunk towards the judges' mean `mu` (sd `tau`), for display; `ml` is the maximum-likelihood slope, inf
    where every verdict follows the gap (a ceiling) and -inf where every one is against it. `se` and `ml_se` are
    clustered by instruction (NaN with fewer than two instructions, and where the slope is infinite). `position` is
    b_J, `verdicts` and `instructions` what a judge's figures rest on. `prior` says where mu and tau come from.
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
        """Judges whose verdicts all follow the gap: no finite slope is their maximum."""
        return tuple(name for name, value in zip(self.judges, self.ml, strict=True) if value == np.inf)

    @property
    def floor(self) -> tuple[str, ...]:
        """Judges whose verdicts are all against the gap."""
        return tuple(name for name, value in zip(self.judges, self.ml, strict=True) if value == -np.inf)

    @property
    def reliability(self) -> float | None:
        """Share of the spread of the maximum-likelihood slopes that is not error; see `score_reliability`."""
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
    """1 - mean(se^2) / var of values (n,) with standard errors (n,), over those that have both; None with fewer than 3.

    No correlation with these values is expected beyond its square root. Below 0 the values differ by less than their
    errors.
    """
    value, error = np.asarray(values, dtype=np.float64), np.asarray(errors, dtype=np.float64)
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
    """Fit the slope of each judge on plain columns (rows,), one row a decisive verdict; docs/judges.md.

    `judge` counts into `judges`, `gap` is that of first over second in log odds, `first_won` is true or false, and
    `instruction` are codes (None: every verdict by itself). Rows with a NaN gap are left out. The pull has a prior
    N(0, 5^2); slopes have N(mu, tau^2) by empirical Bayes, or N(1.5, 1) with fewer than 5 judges. `ordered=False`
    leaves the pull out: the table does not say which came first. Raises `InputError` and `NotConvergedError`.
    """
    who = np.asarray(judge, dtype=np.intp)
    _check(who, len(judges), gap=gap, first_won=first_won, instruction=instruction)
    gaps = np.asarray(gap, dtype=np.float64)
    known = np.isfinite(gaps)
    values, value = np.unique(gaps[known], return_inverse=True)
    won = np.asarray(first_won, dtype=np.bool_)[known]
    units = alone(who[known], value, won)
    if instruction is not None:
        units = np.unique(np.asarray(instruction)[known], return_inverse=True)[1]
    who, value, units, number, first = _counted(who[known], value, units, won)
    rows = gap_rows(who, value, values, units, number, first, judges=len(judges), ordered=ordered)
    return fit_discrimination(rows, judges)


def alone(judge: NDArray[np.intp], value: NDArray[np.intp], won: NDArray[Any]) -> NDArray[np.intp]:
    """Instructions (rows,) for rows that name none: each its own, numbered so that the order of rows does not show."""
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
    """Index counted entries by judge and gap; `value` (rows,) points into `gaps` (n,), or (judges, n) for each judge's.

    An entry is `number` verdicts of a judge on a gap and an instruction, of which the first won `first`.
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
    """Entries of equal judge, value and instruction, sorted by these, with their number and how many the first won.

    Counted in an order of their own: no sum may depend on that of the rows.
    """
    values, units = int(value.max(initial=0)) + 1, int(instruction.max(initial=0)) + 1
    key = (judge * units + instruction) * values + value
    entry, found = dense_codes(key, int(key.max(initial=-1)) + 1)
    cluster, value = np.divmod(found, values)
    judge, instruction = np.divmod(cluster, units)
    number = np.bincount(entry, minlength=len(found))
    return judge, value, instruction, number, np.bincount(entry[won], minlength=len(found))


def fit_discrimination(rows: GapRows, judges: Sequence[str]) -> Discrimination:
    """The slopes of judges whose verdicts are counted already; see `discrimination`."""
    verdicts = rows.by_judge(rows.count).astype(np.intp)
    ends, some = rows.ends, verdicts > 0
    mean, variance, prior = *_FIXED, f"fixed, fewer than {_FEW} judges"
    if np.count_nonzero(some) >= _FEW:
        prior = "empirical Bayes"
        mean, variance = empirical_bayes(rows, _FIXED)
    shrunk = fit_slopes(rows, mean=mean, precision=1.0 / variance)
    free = fit_slopes(rows, held=ends != 0.0)
    ml = np.where(ends == 0.0, free.theta, np.nan)
    ml[ends == 1.0], ml[ends == -1.0] = np.inf, -np.inf
    return Discrimination(
        judges=tuple(judges),
        theta=np.where(some, shrunk.theta, np.nan),
        se=np.where(some, clustered_errors(rows, shrunk), np.nan),
        ml=ml,
        ml_se=np.where(ends == 0.0, clustered_errors(rows, free), np.nan),
        position=np.where(some & rows.ordered, shrunk.b, np.nan),
        verdicts=verdicts,
        instructions=np.bincount(rows.cluster_judge, minlength=rows.judges),
        mu=mean,
        tau=float(np.sqrt(variance)),
        prior=prior,
    )


def _check(judge: NDArray[np.intp], judges: int, **columns: Any) -> None:
    """Refuse columns of unequal length, codes without a judge and outcomes other than true and false."""
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
