"""Reliability diagram of a judge: observed agreement of people against predicted agreement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from venire.arena.errors import InputError
from venire.ratings.soft_elo.beta import ScoreGrid, label_column, score_column, score_grid

_FLAT = 1.645
_SMALL = 0.55


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """Ten bins of equal numbers of battles, from the least to the most certain; arrays are (bins,).

    `predicted` is the mean probability that people agree with the judge, `observed` the share in which they did, `size`
    the mean |score|, `count` the battles. `ece` is the expected calibration error: the mean distance of the two, by
    weight. `trend` is the correlation of |score| with agreement times the root of the number of battles: below 1.645
    the curve of agreement is flat. `warnings` are reasons to doubt soft targets.
    """

    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    size: NDArray[np.float64]
    count: NDArray[np.int64]
    ece: float
    agreement: float
    trend: float
    battles: int
    warnings: tuple[str, ...] = ()


def reliability(
    score: ArrayLike,
    human: ArrayLike,
    beta: float,
    *,
    y: NDArray[np.float64] | None = None,
    weight: NDArray[np.float64] | None = None,
    bins: int = 10,
) -> Reliability:
    """Compare sigma(beta * |score|) with how often people chose the side that the score favours; the Soft-Elo paper.

    `score` (rows,) is A minus B, `human` (rows,) 1, 0.5 or 0 for A, NaN unknown. Only battles decided by both sides
    count: no human tie, no score of 0, and no tie of the judge where `y` (rows,) contains its verdicts. Bins are equal
    parts of a stable sort by probability. Raises `InputError`.

    >>> from venire.ratings import reliability
    >>> found = reliability([3.0, -2.0, 1.0, -1.0], [1, 0, 1, 0], 0.8, bins=2)
    >>> round(found.ece, 3)
    0.218
    """
    rows = len(np.atleast_1d(np.asarray(score)))
    scores, labels = score_column(score, rows), label_column(human, rows)
    for name, column in (("y", y), ("weight", weight)):
        if column is not None and np.shape(column) != (rows,):
            raise InputError(f"{name} has shape {np.shape(column)}, score ({rows},); give one value a row")
    labels = np.where(np.isnan(scores), np.nan, labels)
    grid = score_grid(np.nan_to_num(scores, nan=0.0))
    return reliability_of(grid, labels, beta, y=y, weight=weight, bins=bins)


def reliability_of(
    grid: ScoreGrid,
    human: NDArray[np.float64],
    beta: float,
    *,
    y: NDArray[np.float64] | None = None,
    weight: NDArray[np.float64] | None = None,
    bins: int = 10,
) -> Reliability:
    """`reliability` from scores that are already on their grid; rows whose label is NaN are left out.

    `human`, `y` and `weight` are columns (rows,). Raises `InputError` for fewer than one bin.
    """
    if bins < 1:
        raise InputError(f"bins is {bins}; give 1 or more")
    used = (grid.size > 0.0)[grid.code] & (human != 0.5) & ~np.isnan(human)
    if y is not None:
        used &= y != 0.5
    if weight is not None:
        used &= weight > 0.0
    rows = np.flatnonzero(used)
    code = grid.code.take(rows)
    if not len(code):
        nothing = np.empty(0)
        reason = ("reliability: no battle was decided by people and judge alike",)
        return Reliability(nothing, nothing, nothing, np.empty(0, np.int64), np.nan, np.nan, np.nan, 0, reason)
    share = grid.favoured(beta)
    sided = grid.sided(human, rows)
    mass = np.ones(len(code)) if weight is None else weight.take(rows)
    rank = code if beta >= 0.0 else len(grid.size) - 1 - code
    order = np.argsort(rank.astype(np.uint16) if len(grid.size) < 2**16 else rank, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    starts = np.cumsum([0, *(len(part) for part in parts[:-1])])
    code, sided, mass = code[order], sided[order], mass[order]
    total, won = np.add.reduceat(mass, starts), np.add.reduceat(mass * sided, starts)
    predicted, observed = np.add.reduceat(mass * share[code], starts) / total, won / total
    trend = _trend(grid.size, code, sided, mass)
    middle = float(grid.size[code[(len(code) - 1) // 2]])
    return Reliability(
        predicted=predicted,
        observed=observed,
        size=np.add.reduceat(mass * grid.size[code], starts) / total,
        count=np.array([len(part) for part in parts], dtype=np.int64),
        ece=float(total @ np.abs(predicted - observed) / total.sum()),
        agreement=float(won.sum() / total.sum()),
        trend=trend,
        battles=len(code),
        warnings=_warnings(beta, middle, trend),
    )


def _trend(
    sizes: NDArray[np.float64], code: NDArray[np.intp], sided: NDArray[np.float64], mass: NDArray[np.float64]
) -> float:
    """Correlation of |score| with agreement, in units of its standard error under no correlation."""
    total = float(mass.sum())
    battles = np.bincount(code, mass, len(sizes))
    agreed = np.bincount(code, mass * sided, len(sizes))
    share = float(agreed.sum()) / total
    across = sizes - float(battles @ sizes) / total
    along = float(mass @ (sided - share) ** 2)
    spread = float(battles @ (across * across)) * along
    if spread <= 0.0:
        return 0.0
    return float(across @ (agreed - share * battles)) / float(np.sqrt(spread)) * float(np.sqrt(len(code)))


def _warnings(beta: float, median: float, trend: float) -> tuple[str, ...]:
    warnings = []
    if trend < _FLAT:
        warnings.append(
            "the curve of agreement is flat: people side no more with large score differences than with small"
        )
    if beta * median > 0.0 and float(expit(beta * median)) < _SMALL:
        middle = float(expit(beta * median))
        warnings.append(f"beta is small: the median score difference moves the probability to {middle:.3f} alone")
    return tuple(warnings)
