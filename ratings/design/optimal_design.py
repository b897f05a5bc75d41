"""The A-optimal design over pairs: the best plan of battles for a purpose, if the ratings were known.

Of all allocations of a number of battles to the pairs, it has the least variance of the target. Weights are found by
the multiplicative algorithm with exponent one half, whose criterion never increases ("Monotonic convergence of a
general algorithm for computing optimal designs"), until the equivalence theorem shows that no design is better by more
than a tolerance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from venire.arena.errors import InputError
from venire.arena.planning import JudgeHabit
from venire.ratings.pairwise.covariance import inverse_laplacian
from venire.ratings.pairwise.solvers import NotConvergedError

_Purpose = Literal["mean", "boundary", "place"]
"""All ratings about their mean; the best `top` against the same number of next models; one model among known ones."""

_STEPS = 20_000
_EVEN = 0.1
"""Part of the tolerance used to keep every pair in the design; without it models could drop out."""

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class OptimalDesign:
    """The best design for a purpose, in a field with these ratings.

    `weights` (models, models) is the share of battles of each pair, symmetric, each pair's share in both places.
    `limit` is its criterion: the variance of the target (summed over models or contrasts), in square logits, for one
    battle allocated in these shares; for N battles divide it by N. No design is below `bound`. `information` (models,
    models) is the information of one battle of each pair, `aim` (models, models) is L, and models that are not `free`
    are known; `steps` is the number of search steps.
    """

    weights: Matrix
    limit: float
    bound: float
    information: Matrix
    aim: Matrix
    free: NDArray[np.bool_]
    steps: int

    def criterion(self, counts: NDArray[np.int64] | Matrix) -> float:
        """The variance of the target after battles `counts` (models, models), each pair in one place or in both.

        Infinite where they do not connect the models to be compared. Raises `InputError` for counts of another shape.
        """
        given = np.asarray(counts, dtype=np.float64)
        if given.shape != self.weights.shape or not np.isfinite(given).all() or bool((given < 0.0).any()):
            size = len(self.weights)
            raise InputError(
                f"counts of battles have the shape {given.shape}; give numbers of 0 or more, {size} x {size}"
            )
        return _criterion(np.maximum(given, given.T) * self.information, self.aim, self.free)

    def efficiency(self, counts: NDArray[np.int64] | Matrix) -> float:
        """The share of these battles that the optimal design needs for the same variance, from 0 to 1."""
        found = self.criterion(counts)
        number = float(np.triu(np.maximum(counts, np.transpose(counts)), 1).sum())
        return self.limit / (number * found) if number > 0.0 else 0.0


def pair_information(logits: Sequence[float] | Matrix, judges: Sequence[JudgeHabit] = ()) -> Matrix:
    """Fisher information (models, models) of one battle of each pair in both orders, summed over the judges.

    The unit is 1 / logit^2. Without judges it is that of one judge of unknown habits. Orders that agree less than by
    chance count as independent.
    """
    ratings = np.asarray(logits, dtype=np.float64)
    gap = ratings[:, None] - ratings[None, :]
    found = np.zeros_like(gap)
    for judge in judges or (JudgeHabit(),):
        scale = (1.0 - judge.ties) * judge.slope**2 / (1.0 + max(judge.rho, 0.0))
        for bias in (judge.bias, -judge.bias):
            odds = bias + judge.slope * gap
            found += scale * expit(odds) * expit(-odds)
    np.fill_diagonal(found, 0.0)
    return found


def optimal_design(
    logits: Sequence[float] | Matrix,
    *,
    judges: Sequence[JudgeHabit] = (),
    purpose: _Purpose = "mean",
    top: int = 3,
    place: int | None = None,
    tolerance: float = 1e-3,
) -> OptimalDesign:
    """The design that minimises the variance of the target, at ratings `logits` (models,).

    `place` is the index of the model to be placed. `limit` exceeds `bound` by at most the fraction `tolerance`. Raises
    `InputError` for ratings or a purpose without a design, and `NotConvergedError` where the search does not converge.
    """
    ratings = np.asarray(logits, dtype=np.float64)
    if ratings.ndim != 1 or len(ratings) < 2 or not np.isfinite(ratings).all():
        raise InputError("a design needs the finite ratings of two models or more")
    if not 0.0 < tolerance < 1.0:
        raise InputError(f"tolerance is {tolerance:g}; give a part between 0 and 1")
    information = pair_information(ratings, judges)
    if purpose == "place":
        return _one_against_known(information, place)
    if not information.any():
        raise InputError(
            "no battle says anything: the judges only tie, do not follow the ratings, or these are too far"
        )
    size = len(ratings)
    aim = np.eye(size) - 1.0 / size if purpose == "mean" else _boundary(ratings, top)
    even = (np.ones((size, size)) - np.eye(size)) / (size * (size - 1) / 2)
    free = np.ones(size, dtype=np.bool_)
    weights, kept = even.copy(), _EVEN * tolerance
    for step in range(_STEPS):
        criterion, slopes = _slopes(weights, information, aim)
        # The criterion is convex and halves when all weights double, so no design is below this.
        bound = criterion**2 / float(slopes.max())
        if bound >= criterion * (1.0 - tolerance):
            return OptimalDesign(weights, criterion, bound, information, aim, free, step)
        weights = weights * np.sqrt(slopes / criterion)
        weights *= (1.0 - kept) * 2.0 / weights.sum()
        weights += kept * even
    raise NotConvergedError(f"the best design: not within a part {tolerance:g} of the bound after {_STEPS} steps")


def _slopes(weights: Matrix, information: Matrix, aim: Matrix) -> tuple[float, Matrix]:
    """The criterion, and by how much (models, models) one battle more of each pair would lower it."""
    free = np.ones(len(weights), dtype=np.bool_)
    names = tuple(str(n) for n in range(len(weights)))
    covariance = inverse_laplacian(weights * information, weights > 0.0, ridge=0.0, free=free, models=names)
    aimed = covariance @ aim @ covariance
    spread = np.diagonal(aimed)
    falls = information * np.maximum(spread[:, None] + spread[None, :] - 2.0 * aimed, 0.0)
    return float((covariance * aim).sum()), falls


def _one_against_known(information: Matrix, place: int | None) -> OptimalDesign:
    """One unknown rating: all battles against the anchor with the most information."""
    size = len(information)
    if place is None or not 0 <= place < size:
        raise InputError(f"place is {place}; give the place of a model, 0 to {size - 1}")
    free = np.arange(size) == place
    aim = np.zeros((size, size))
    aim[place, place] = 1.0
    anchor = int(np.argmax(information[place]))
    if not information[place, anchor] > 0.0:
        raise InputError("no battle says anything of the model to place: its rating is too far from all others")
    weights = np.zeros((size, size))
    weights[place, anchor] = weights[anchor, place] = 1.0
    limit = 1.0 / float(information[place, anchor])
    return OptimalDesign(weights, limit, limit, information, aim, free, 0)


def _boundary(ratings: Matrix, top: int) -> Matrix:
    """L of the differences between each of the best models and each of the same number of next models."""
    if not 0 < top < len(ratings):
        raise InputError(f"top is {top}; give 1 to {len(ratings) - 1}, so that there is a boundary")
    ranked = np.argsort(-ratings, kind="stable")
    best, rest = ranked[:top], ranked[top : 2 * top]
    found = np.zeros((len(ratings), len(ratings)))
    found[best, best], found[rest, rest] = len(rest), len(best)
    found[np.ix_(best, rest)] = found[np.ix_(rest, best)] = -1.0
    return found


def _criterion(coupling: Matrix, aim: Matrix, free: NDArray[np.bool_]) -> float:
    """tr(L M^-1) over the models connected to those in L; infinite where those are not connected."""
    joined = coupling > 0.0
    joined |= ~free[:, None] & ~free[None, :]
    _, part = connected_components(joined.astype(np.float64), directed=False)
    about = np.flatnonzero(np.diagonal(aim))
    if len(np.unique(part[about])) > 1:
        return float("inf")
    inside = part == part[about[0]]
    if not free.all() and bool(free[inside].all()):
        return float("inf")
    block = np.ix_(inside, inside)
    names = tuple(str(n) for n in range(int(inside.sum())))
    covariance = inverse_laplacian(coupling[block], coupling[block] > 0.0, ridge=0.0, free=free[inside], models=names)
    return float((covariance * aim[block]).sum())
