"""Beta, a judge's inverse temperature: it maps a score difference to a probability, P(A) = sigma(beta * score)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit

from venire.arena.choices import HumanTies
from venire.arena.errors import InputError
from venire.ratings.data.validation import float_array
from venire.ratings.pairwise.solvers import NotConvergedError

_STEPS = 200
_DIGITS = 1e12
_LOOK = 500
_CELLS = 1 << 14


@dataclass(frozen=True, slots=True)
class Beta:
    """Log odds per point of score: `beta` with its robust standard error `se`, clustered where clusters were given.

    `n_fit` is the number of battles in the fit, `log_likelihood` is at the optimum. `beta` is infinite where people
    always (or never) agreed with the scores, and NaN where no battle is informative; `warnings` then contains a
    message, as it does at 0 or below.
    """

    beta: float
    se: float
    n_fit: int
    log_likelihood: float
    iterations: int
    ties: HumanTies
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ScoreGrid:
    """Scores as distinct magnitudes: `size[code]` is |score| of a row, `negative` marks scores that favour B.

    Scores of criteria lie on a grid, so thousands of rows share tens of magnitudes, and a function of |score| costs
    tens of evaluations. Magnitudes that differ by at most 1e-12 of the largest score count as equal.
    """

    size: NDArray[np.float64]
    code: NDArray[np.intp]
    negative: NDArray[np.bool_]

    def favoured(self, beta: float) -> NDArray[np.float64]:
        """sigma(beta * size) of each size; an infinite beta gives 1, 0.5 or 0, a beta of NaN 0.5 throughout."""
        if np.isnan(beta):
            return np.full(len(self.size), 0.5)
        return np.asarray(expit(np.multiply(self.size, beta, out=np.zeros_like(self.size), where=self.size > 0.0)))

    def sided(self, human: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """The share of people who agree with the score in each of some `rows`, from their labels for A (all rows,)."""
        return np.abs(human.take(rows) - self.negative.take(rows))

    def probabilities(self, beta: float) -> NDArray[np.float64]:
        """sigma(beta * score) of each row, from `favoured` for the side that the score favours."""
        share = self.favoured(beta)
        return np.where(self.negative, (1.0 - share)[self.code], share[self.code])


def score_grid(score: NDArray[np.float64]) -> ScoreGrid:
    """The distinct sizes of finite scores (rows,)."""
    size = np.abs(score)
    unit = float(size.max(initial=0.0)) or 1.0
    if (even := _even_grid(size, unit)) is not None:
        return ScoreGrid(*even, score < 0.0)
    key = np.rint(size * (_DIGITS / unit))
    distinct, code = np.unique(key, return_inverse=True)
    return ScoreGrid(distinct * (unit / _DIGITS), code, score < 0.0)


def _even_grid(size: NDArray[np.float64], unit: float) -> tuple[NDArray[np.float64], NDArray[np.intp]] | None:
    """The distinct magnitudes and their codes without a sort, if all are multiples of one step; otherwise None.

    The step is estimated from the first rows. Means of criteria in whole or half points have this form.
    """
    distinct = np.unique(np.rint(size[:_LOOK] * (_DIGITS / unit))) * (unit / _DIGITS)
    if len(distinct) < 2 or (step := float(np.diff(distinct).min())) * _CELLS < unit:
        return None
    step = unit / np.rint(unit / step)
    whole = np.rint(size * (1.0 / step))
    if np.abs(whole * step - size).max() > unit / _DIGITS:
        return None
    cell = whole.astype(np.intp)
    met = np.bincount(cell) > 0
    return np.flatnonzero(met) * step, (np.cumsum(met) - 1)[cell]


def score_column(score: ArrayLike, rows: int) -> NDArray[np.float64]:
    """Scores A minus B (rows,), NaN where the judge gave none. Raises `InputError` for a wrong shape or infinity."""
    array = float_array("score", score)
    if array.shape != (rows,):
        raise InputError(f"score has shape {array.shape}, the comparisons have {rows} rows; give one score a row")
    if np.isinf(array).any():
        row = int(np.argmax(np.isinf(array)))
        raise InputError(f"score, row {row}: {array[row]} is not possible: give a finite score, or NaN for none")
    return array


def label_column(human: ArrayLike, rows: int) -> NDArray[np.float64]:
    """Human labels for A (rows,): 1, 0.5 or 0, NaN where unknown. Raises `InputError` for other values."""
    array = float_array("human", human)
    if array.shape != (rows,):
        raise InputError(f"human has shape {array.shape}, the comparisons have {rows} rows; give one label a row")
    wrong = ~((array >= 0.0) & (array <= 1.0) | np.isnan(array))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"human, row {row}: {array[row]} is not possible: give 1, 0.5 or 0 for A, or NaN for unknown")
    return array


def fit_beta(
    score: ArrayLike,
    human: ArrayLike,
    *,
    weight: NDArray[np.float64] | None = None,
    cluster: NDArray[np.int32] | None = None,
    ties: HumanTies = "drop",
) -> Beta:
    """Maximum likelihood of `human ~ sigma(beta * score)` over battles with a score and a human label.

    Source: the Soft-Elo paper.

    `score` (rows,) is A minus B, `human` (rows,) is 1, 0.5 or 0 for A; NaN in either leaves the row out. `ties` "drop"
    leaves human ties out as well; "half" counts them as half a win for each, which roughly halves beta. A beta of 0 or
    below, or without a finite optimum, is returned unchanged, with a warning in `warnings`. Raises `InputError`.

    >>> from venire.ratings import fit_beta
    >>> found = fit_beta([3.0, -2.0, 1.0, -1.0, 2.0, -1.0], [1, 0, 1, 0, 0, 1])
    >>> round(found.beta, 3)
    0.435
    """
    rows = len(np.atleast_1d(np.asarray(score)))
    scores, labels = score_column(score, rows), label_column(human, rows)
    _check_beside(rows, weight, cluster)
    known = ~np.isnan(scores)
    if known.all():
        return beta_of(score_grid(scores), labels, weight=weight, cluster=cluster, ties=ties)
    return beta_of(
        score_grid(scores[known]),
        labels[known],
        weight=None if weight is None else weight[known],
        cluster=None if cluster is None else cluster[known],
        ties=ties,
    )


def _check_beside(rows: int, weight: NDArray[np.float64] | None, cluster: NDArray[np.int32] | None) -> None:
    for name, column in (("weight", weight), ("cluster", cluster)):
        if column is None:
            continue
        if column.shape != (rows,):
            raise InputError(f"{name} has shape {column.shape}, score has {rows} rows; give one a row")
        wrong = ~((column >= 0) & np.isfinite(column))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(f"{name}, row {row}: {column[row]} is not possible: give a finite number, 0 or more")


def beta_of(
    grid: ScoreGrid,
    human: NDArray[np.float64],
    *,
    weight: NDArray[np.float64] | None = None,
    cluster: NDArray[np.int32] | None = None,
    ties: HumanTies = "drop",
) -> Beta:
    """`fit_beta` from scores that are already on their grid.

    `human` (rows,) are labels for A, NaN where no one was asked: these rows are left out. Raises `InputError` for an
    unknown tie rule.
    """
    if ties not in get_args(HumanTies):
        raise InputError(f"ties is {ties!r}; give 'drop' or 'half'")
    rows = _fit_rows(human, weight, ties)  # computed once: columns are then selected by index instead of by mask
    code, share = grid.code.take(rows), grid.sided(human, rows)
    mass = None if weight is None else weight.take(rows)
    battles = np.bincount(code, mass, len(grid.size)).astype(np.float64)
    sided = np.bincount(code, share if mass is None else mass * share, len(grid.size)).astype(np.float64)
    beta, iterations = maximise_beta(grid.size, battles, sided)
    error = _error(grid.size, code, share, mass, None if cluster is None else cluster.take(rows), beta)
    likelihood = beta_likelihood(grid.size, battles, sided, beta)
    return Beta(beta, error, len(code), likelihood, iterations, ties, _warnings(beta))


def maximise_beta(
    size: NDArray[np.float64], battles: NDArray[np.float64], sided: NDArray[np.float64]
) -> tuple[float, int]:
    """The optimum and the steps taken: Newton's method in one dimension, safeguarded by a bracket.

    All arrays are (sizes,): |score|, the weight of battles there, and the part of it where people agreed with the
    score. The objective is concave, so the sign of its slope at 0 is the sign of the optimum. Raises
    `NotConvergedError`.
    """
    live = (size > 0.0) & (battles > 0.0)
    size, battles, sided = size[live], battles[live], sided[live]
    if not len(size):
        return float("nan"), 0
    missed = battles - sided
    if not missed.any() or not sided.any():
        return (float("inf") if sided.any() else float("-inf")), 0
    low, high, beta, scale = -np.inf, np.inf, 0.0, float(battles @ size)
    for iteration in range(_STEPS):
        share = expit(beta * size)
        # Term by term: in a difference of totals a rare disagreement would vanish in rounding.
        slope = float((sided * (1.0 - share) - missed * share) @ size)
        curve = float((battles * share * (1.0 - share)) @ (size * size))
        if abs(slope) <= 1e-15 * scale:
            return beta, iteration
        low, high = (beta, high) if slope > 0.0 else (low, beta)
        reach = 4.0 * abs(beta) + 4.0 / float(size.max())
        step = slope / curve if abs(slope) < reach * curve else float(np.copysign(reach, slope))
        after = beta + step
        if not low < after < high:
            after = 0.5 * (low + high)
        if abs(after - beta) <= 1e-14 * abs(after) or after in (low, high):
            return after, iteration
        beta = after
    raise NotConvergedError(f"the slope at beta {beta:.6g} was not zero after {_STEPS} steps")


def beta_likelihood(
    size: NDArray[np.float64], battles: NDArray[np.float64], sided: NDArray[np.float64], beta: float
) -> float:
    """Log-likelihood at beta of the three tables (sizes,) that `maximise_beta` takes; its limit at an infinite beta."""
    if not np.isfinite(beta):
        return float(-np.log(2.0) * battles[size == 0.0].sum())
    return float(sided @ log_expit(beta * size) + (battles - sided) @ log_expit(-beta * size))


def beta_influence(
    grid: ScoreGrid,
    human: NDArray[np.float64],
    beta: float,
    *,
    weight: NDArray[np.float64] | None = None,
    ties: HumanTies = "drop",
) -> NDArray[np.float64]:
    """What each row (rows,) adds to the estimate of beta: its score at the optimum over the information.

    Rows outside the fit add 0; so do all where beta has no finite optimum.
    """
    found = np.zeros(len(grid.code))
    rows = _fit_rows(human, weight, ties)
    if not (np.isfinite(beta) and len(rows)):
        return found
    size = grid.size[grid.code.take(rows)]
    expected = expit(beta * size)
    surprise, curve = (grid.sided(human, rows) - expected) * size, expected * (1.0 - expected) * size * size
    if weight is not None:
        surprise, curve = surprise * weight.take(rows), curve * weight.take(rows)
    information = float(curve.sum())
    if information > 0.0:
        found[rows] = surprise / information
    return found


def _fit_rows(human: NDArray[np.float64], weight: NDArray[np.float64] | None, ties: HumanTies) -> NDArray[np.intp]:
    """The rows that beta is fitted to."""
    used = ~np.isnan(human)
    if ties == "drop":
        used &= human != 0.5
    if weight is not None:
        used &= weight > 0.0
    return np.flatnonzero(used)


def _error(
    sizes: NDArray[np.float64],
    code: NDArray[np.intp],
    share: NDArray[np.float64],
    weight: NDArray[np.float64] | None,
    cluster: NDArray[np.int32] | None,
    beta: float,
) -> float:
    if not np.isfinite(beta):
        return float("nan")
    expected, size = expit(beta * sizes)[code], sizes[code]
    surprise = (share - expected) * size
    curve = expected * (1.0 - expected) * size * size
    if weight is not None:
        surprise, curve = surprise * weight, curve * weight
    information = float(curve.sum())
    if information <= 0.0:
        return float("nan")
    if cluster is None:
        return float(np.sqrt(surprise @ surprise)) / information
    groups = np.bincount(cluster, surprise)
    count = int(np.count_nonzero(np.bincount(cluster)))
    factor = count / (count - 1) if count > 1 else float("nan")
    return float(np.sqrt(factor * (groups @ groups))) / information


def _warnings(beta: float) -> tuple[str, ...]:
    if np.isnan(beta):
        return ("beta: no battle has unequal scores and a decision of people, so it cannot be found",)
    if np.isinf(beta):
        which = "always" if beta > 0.0 else "never"
        return (f"beta has no finite optimum: people {which} sided with the scores; label more battles",)
    if beta <= 0.0:
        return (f"beta is {beta:.4g}: people do not side with the scores of this judge, which say nothing of quality",)
    return ()
