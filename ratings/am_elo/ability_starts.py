"""Where climbs to ratings and abilities begin, and which of the maxima they lead to is returned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError
from venire.ratings.am_elo.ability_cells import Cells, cells_of
from venire.ratings.am_elo.fit import NO_TIES, Penalty, Point
from venire.ratings.am_elo.separation import Limit, climb_to_limit, warmed
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.inference.options import Habit
from venire.ratings.pairwise.components import strong_components_of
from venire.ratings.pairwise.solvers import NotConvergedError, climb, curve_of
from venire.ratings.pairwise.wins import win_counts

__all__ = ["Restarts", "Task", "best_of", "task_of"]

_SAME = 1e-6
"""Log-likelihoods that differ by less, as a share of their size, are of one optimum."""

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Restarts:
    """How many starts were made, how many did not settle, and each optimum met, best first, as (log-likelihood, times).

    An optimum and its mirror image, with all signs turned, are one.
    """

    starts: int
    failed: int
    optima: tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What is fitted: the table, its cells, what holds the estimate, and what stays as it is in each judge."""

    data: Comparisons
    cells: Cells
    penalty: Penalty
    fixed: NDArray[np.bool_]
    first: Vector | None


def task_of(
    data: Comparisons, ridge: float, ability_ridge: float, habits: Sequence[Habit], first: ArrayLike | None
) -> Task:
    for name, value in (("ridge", ridge), ("ability_ridge", ability_ridge)):
        if not (value >= 0.0 and np.isfinite(value)):
            raise InputError(f"{name} is {value}; give a finite number, 0 or more")
    if strange := [name for name in habits if name not in ("position", "ties")]:
        raise InputError(f"habit is {strange[0]!r}; choose of position, ties")
    shown: Vector | None = None
    if "position" in habits:
        if first is None:
            raise InputError("a habit of place needs to know which answer was shown first: give first=")
        shown = np.asarray(first, dtype=np.float64)
    cells = cells_of(data, first=shown, ties="ties" in habits)
    width = 1 + ("position" in habits) + ("ties" in habits)
    fixed = np.zeros((cells.judges, width), dtype=np.bool_)
    if cells.first is not None:
        fixed[:, 1] = cells.by_judge(np.abs(cells.first)) == 0.0
    if cells.tied is not None:
        fixed[:, -1] = cells.by_judge(cells.tied) == 0.0
        only = (cells.by_judge(cells.won + cells.lost) == 0.0) & (cells.by_judge(cells.tied) > 0.0)
        if only.any():
            raise InputError(
                f"judge {data.judges[int(np.argmax(only))]} gave nothing but ties, so that how freely it ties has no "
                "finite estimate: leave it out, or leave the habit of ties out"
            )
    return Task(data, cells, Penalty(ridge, ability_ridge), fixed, shown)


def best_of(task: Task, restarts: int, seed: int) -> tuple[Limit | None, Restarts]:
    """The highest of the maxima that m-ELO with equal abilities and further starts lead to."""
    found: list[Limit] = []
    starts, failed, trouble = 0, 0, NotConvergedError("ratings and abilities: no start led to a maximum")
    rng = np.random.default_rng(seed)
    for number in range(2 + restarts):
        if number == 1 and found:
            continue
        start = _equal(task) if number == 0 else _leading(task) if number == 1 else _drawn(task, rng)
        starts += 1
        try:
            limit = climb_to_limit(task.cells, start, task.penalty, task.fixed, task.data.models, task.data.judges)
        except NotConvergedError as error:
            failed, trouble = failed + 1, error
            continue
        if limit is None:
            return None, Restarts(starts, failed, ())
        found.append(limit)
    if not found:
        raise trouble
    heights = [_height(task, limit) for limit in found]
    best = max(range(len(found)), key=lambda number: (heights[number], -number))
    optima: list[list[float]] = []
    for one in sorted((height[1] for height in heights), reverse=True):
        if optima and optima[-1][0] - one <= _SAME * max(1.0, abs(one)):
            optima[-1][1] += 1
        else:
            optima.append([one, 1])
    return found[best], Restarts(starts, failed, tuple((value, int(times)) for value, times in optima))


def _height(task: Task, limit: Limit) -> tuple[int, float]:
    """What starts are compared by: the more models rated the better, then the penalised likelihood."""
    height = limit.peak.log_likelihood - task.penalty.value(limit.peak.point)
    return len(limit.models), height


def _local(task: Task, ability: Vector) -> NDArray[np.float64]:
    """Where judges begin: an ability each, no pull of the first place, and ties as often as they gave them."""
    cells = task.cells
    local = np.zeros(task.fixed.shape)
    local[:, 0] = ability
    if cells.tied is not None:
        tied, rest = cells.by_judge(cells.tied), cells.by_judge(cells.won + cells.lost)
        odds = np.divide(2.0 * tied, rest, out=np.ones(len(tied)), where=rest > 0.0)
        local[:, -1] = np.where(tied > 0.0, np.log(np.where(odds > 0.0, odds, 1.0)), NO_TIES)
    return local


def _equal(task: Task) -> Point:
    """m-ELO's ratings, all abilities being 1; models that it cannot rate together are held by a slight ridge."""
    counts = win_counts(task.data)
    ridge = 0.0 if len(strong_components_of(counts)) == 1 else 0.1
    ratings = climb(curve_of(counts), counts.guess(), ridge=ridge).logits
    return warmed(task.cells, Point(ratings, _local(task, np.ones(task.cells.judges))), task.fixed, task.penalty)


def _leading(task: Task) -> Point:
    """The one order of models that judges' net wins have in common, followed or opposed: it needs no majority."""
    cells = task.cells
    net = np.zeros((cells.judges, cells.models))
    np.add.at(net, (cells.judge, cells.upper), cells.won - cells.lost)
    np.add.at(net, (cells.judge, cells.lower), cells.lost - cells.won)
    left, size, right = np.linalg.svd(net, full_matrices=False)
    if not len(size) or size[0] <= 0.0:
        raise NotConvergedError("ratings and abilities: verdicts name no winner that could tell models apart")
    ratings = right[0] / max(float(np.abs(right[0]).max()), 1e-300)
    ability = left[:, 0] / max(float(np.abs(left[:, 0]).max()), 1e-300)
    turn = 1.0 if ability.sum() >= 0.0 else -1.0
    return Point(turn * ratings, _local(task, turn * ability))


def _drawn(task: Task, rng: np.random.Generator) -> Point:
    """Abilities drawn at random, of either sign, and ratings from net wins counted with them."""
    cells = task.cells
    ability = rng.normal(size=cells.judges)
    if task.penalty.tied:
        ability *= np.sign(ability.sum())
        ability += 1.0 - ability.mean()
    lead = ability[cells.judge] * (cells.won - cells.lost)
    net = np.bincount(cells.upper, lead, cells.models) - np.bincount(cells.lower, lead, cells.models)
    met = np.bincount(cells.upper, cells.weight, cells.models) + np.bincount(cells.lower, cells.weight, cells.models)
    return Point(np.divide(net, met, out=np.zeros(cells.models), where=met > 0.0), _local(task, ability))
