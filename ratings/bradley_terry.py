"""Bradley-Terry ratings by maximum likelihood: P(i beats j) = sigma(R_i - R_j).

The likelihood is linear in the outcome, so the matrix of pair counts W[i, j] = weight by which i beat j is all that a
fit needs, whatever the number of judgments. A finite maximum exists exactly when every model can be reached from
every other along wins (Ford 1957); this is checked before fitting, never discovered by an optimiser that ran away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, log_expit

from venire.arena.errors import InputError, VenireError
from venire.ratings.merging import Judgments

__all__ = [
    "BradleyTerry",
    "NotConvergedError",
    "SeparatedError",
    "count_components",
    "derivatives",
    "fit",
    "fit_wins",
    "has_estimate",
    "log_likelihood",
    "maximise",
    "separated_groups",
    "strong_groups",
    "win_matrix",
]

_TOLERANCE = 1e-12
_STEPS = 200


class SeparatedError(VenireError):
    """No finite estimate exists; `groups` holds the names of the models that can be rated together, strongest first."""

    def __init__(self, groups: tuple[tuple[str, ...], ...]) -> None:
        shown = "; ".join(_few(group) for group in groups[:5]) + ("; ..." if len(groups) > 5 else "")
        super().__init__(
            f"the models fall into {len(groups)} groups without wins both ways between them: {shown}; "
            "rate each group apart, or judge more battles between them"
        )
        self.groups = groups


class NotConvergedError(VenireError):
    """The optimiser stopped short of the maximum: the counts are too extreme for double precision."""


@dataclass(frozen=True, slots=True, eq=False)
class BradleyTerry:
    """A fit at its maximum: `ratings` in logits with mean 0, in the order of `models`.

    `gradient` is the largest entry of the gradient over the total weight, `pairs` the number of distinct pairs
    judged, `battles` the weight of each model's judgments (their number, where each has weight one).
    """

    models: tuple[str, ...]
    ratings: NDArray[np.float64]
    log_likelihood: float
    iterations: int
    gradient: float
    pairs: int
    battles: NDArray[np.float64]


def win_matrix(judgments: Judgments, models: Sequence[str] | None = None) -> NDArray[np.float64]:
    """Pair counts (models, models): entry [i, j] is the weight by which i beat j, a tie being half a win to each.

    `models` names those to keep, in the order wanted; judgments with any other model are left out.
    """
    names = judgments.models if models is None else tuple(models)
    place = np.full(len(judgments.models), -1, dtype=np.int64)
    known = {name: code for code, name in enumerate(judgments.models)}
    place[[known[name] for name in names]] = np.arange(len(names))
    a, b = place[judgments.model_a], place[judgments.model_b]
    inside = (a >= 0) & (b >= 0)
    a, b, y, size = a[inside], b[inside], judgments.y[inside], len(names)
    wins = np.bincount(a * size + b, y, size * size) + np.bincount(b * size + a, 1.0 - y, size * size)
    return np.asarray(wins.reshape(size, size), dtype=np.float64)


def strong_groups(wins: NDArray[np.float64]) -> list[NDArray[np.intp]]:
    """Sets of models that can be rated together (strong components of the beat graph), from pair counts (n, n).

    Each holds ascending positions. A group that only ever beats another comes before it; where wins say nothing,
    the larger comes first, then the one with the smaller position.
    """
    count, part = connected_components(_beat_graph(wins), directed=True, connection="strong")
    members = [np.flatnonzero(part == label) for label in range(count)]
    beats: TopologicalSorter[int] = TopologicalSorter(dict.fromkeys(range(count), ()))
    winner, loser = np.nonzero(wins)
    for above, below in {*zip(part[winner].tolist(), part[loser].tolist(), strict=True)}:
        if above != below:
            beats.add(below, above)
    beats.prepare()
    order: list[int] = []
    while beats.is_active():
        ready = sorted(beats.get_ready(), key=lambda label: (-len(members[label]), members[label][0]))
        order.extend(ready)
        beats.done(*ready)
    return [members[label] for label in order]


def has_estimate(wins: NDArray[np.float64]) -> bool:
    """Whether pair counts (n, n) have a finite maximum: wins lead from every model to every other."""
    return int(connected_components(_beat_graph(wins), directed=True, connection="strong")[0]) <= 1


def count_components(wins: NDArray[np.float64]) -> int:
    """How many sets of models were never compared with one another, from pair counts (n, n)."""
    return int(connected_components(_beat_graph(wins), directed=False)[0])


def separated_groups(judgments: Judgments) -> tuple[tuple[str, ...], ...]:
    """The names of the models that can be rated together, group by group, ordered as `strong_groups` does."""
    return tuple(tuple(judgments.models[code] for code in group) for group in strong_groups(win_matrix(judgments)))


def log_likelihood(wins: NDArray[np.float64], ratings: NDArray[np.float64]) -> float:
    """Log-likelihood of ratings in logits (n,) under pair counts (n, n)."""
    return float(np.sum(wins * log_expit(ratings[:, None] - ratings[None, :])))


def derivatives(
    wins: NDArray[np.float64], ratings: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gradient (n,) of the log-likelihood and the information matrix (n, n), which is minus its Hessian."""
    share = expit(ratings[:, None] - ratings[None, :])
    surprise = wins * share.T
    information = -(wins + wins.T) * share * share.T
    np.fill_diagonal(information, 0.0)
    np.fill_diagonal(information, -information.sum(axis=1))
    # Wins less expected wins, term by term: one total taken from the other would drown a rare loss in rounding.
    return surprise.sum(axis=1) - surprise.sum(axis=0), information


def maximise(
    wins: NDArray[np.float64], start: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.float64], int, float]:
    """Newton's method on pair counts (n, n) whose maximum exists; ratings in logits with mean 0, steps, gradient.

    The information matrix is singular along equal shifts; adding one constant to all its entries fixes that
    direction alone and leaves every other solution as it is. A step is halved when the slope along it at its end
    points back more steeply than it pointed ahead. Stops when each model's gradient is within 1e-12 of its own
    information, which is never more than its weight. Raises `NotConvergedError`.
    """
    size = len(wins)
    total = float(wins.sum())
    ratings = np.zeros(size) if start is None else start - start.mean()
    step, slope, scale = np.zeros(size), np.inf, 1.0
    for iteration in range(_STEPS):
        gradient, information = derivatives(wins, ratings)
        if np.all(np.abs(gradient) <= _TOLERANCE * np.diagonal(information)):
            return ratings - ratings.mean(), iteration, float(np.abs(gradient).max()) / total if total else 0.0
        if -(gradient @ step) > 0.9 * slope and scale > 1e-6:
            scale *= 0.5
            ratings = ratings - scale * step
            continue
        information += np.trace(information) / size**2
        try:
            step = cho_solve(cho_factor(information, lower=True, overwrite_a=True), gradient)
        except LinAlgError as error:
            raise NotConvergedError("the information matrix is singular in double precision") from error
        slope, scale = float(gradient @ step), 1.0
        ratings = ratings + step
        ratings -= ratings.mean()
    raise NotConvergedError(f"the gradient was not zero after {_STEPS} steps")


def fit_wins(wins: NDArray[np.float64], models: Sequence[str]) -> BradleyTerry:
    """Fit pair counts (n, n) with [i, j] the weight by which i beat j; raises as `fit` does."""
    names = tuple(models)
    if not names:
        raise InputError("there is no model to rate")
    groups = strong_groups(wins)
    if len(groups) > 1:
        raise SeparatedError(tuple(tuple(names[code] for code in group) for group in groups))
    ratings, iterations, gradient = maximise(wins)
    played = wins + wins.T
    return BradleyTerry(
        models=names,
        ratings=ratings,
        log_likelihood=log_likelihood(wins, ratings),
        iterations=iterations,
        gradient=gradient,
        pairs=int(np.count_nonzero(np.triu(played, 1))),
        battles=played.sum(axis=1),
    )


def fit(judgments: Judgments, models: Sequence[str] | None = None) -> BradleyTerry:
    """Maximum-likelihood ratings of the models named (default: all), ties as half a win to each; SPEC 7.

    Raises `SeparatedError`, which names the groups, when no finite estimate exists, `InputError` when there is no
    model, and `NotConvergedError` when double precision does not reach the maximum.
    """
    names = judgments.models if models is None else tuple(models)
    return fit_wins(win_matrix(judgments, names), names)


def _beat_graph(wins: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ones where there is a win: scipy takes a weight below 1e-8 for no edge at all."""
    return (wins > 0).astype(np.float64)


def _few(group: Sequence[str]) -> str:
    return ", ".join(group[:5]) + (f" and {len(group) - 5} more" if len(group) > 5 else "")
