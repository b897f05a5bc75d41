"""Pair coverage: whether comparisons connect all models, which links are critical, and the cost of imbalance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.wins import WinCounts

_MAX_MODELS = 2_000
"""Number of models beyond which the balance of a board, which needs a table of all pairs, is not computed."""


@dataclass(frozen=True, slots=True)
class PairCoverage:
    """How models met. Battles are counted by weight.

    `groups` are sets of models connected by wins both ways, strongest first; only models of one group share a rating
    scale. `islands` counts sets that never met at all. `seen` of `possible` pairs met. `fewest_of_model` and
    `fewest_of_pair` are the smallest numbers of battles with their models. `bridges` are pairs, and `hinges` single
    models, without whose battles the others are disconnected. `balance` is the ratio of the largest standard error of a
    difference to that of a board of the same size in which every pair met equally often, at equal strengths: 1 is
    optimal, infinite where models never met, NaN on boards of more than 2,000 models. `worst` are the two models of
    this difference.
    """

    models: int
    groups: tuple[tuple[str, ...], ...]
    islands: int
    seen: int
    possible: int
    fewest_of_model: tuple[str, float]
    fewest_of_pair: tuple[str, str, float]
    bridges: tuple[tuple[str, str], ...]
    hinges: tuple[str, ...]
    balance: float
    worst: tuple[str, str] | None


def pair_coverage(data: Comparisons) -> PairCoverage:
    """Pair coverage of `data`. Raises `InputError` where no two models met.

    >>> from venire.ratings import comparisons, pair_coverage
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> found = pair_coverage(data)
    >>> found.seen, found.possible
    (3, 3)
    """
    counts = data.wins
    if not len(counts.first):
        raise InputError("no two models met: there is nothing to look at")
    names, size = data.models, len(data.models)
    weight = counts.won + counts.lost
    islands = int(connected_components(_graph(counts, weight), directed=False)[0])
    bridges, hinges = _weak_links(size, counts.first, counts.second)
    balance, worst = _balance(counts, weight) if islands == 1 and size <= _MAX_MODELS else (np.inf, None)
    poorest, pair = int(np.argmin(counts.played)), int(np.argmin(weight))
    return PairCoverage(
        models=size,
        groups=tuple(tuple(names[code] for code in group.tolist()) for group in counts.strong_components()),
        islands=islands,
        seen=len(weight),
        possible=size * (size - 1) // 2,
        fewest_of_model=(names[poorest], float(counts.played[poorest])),
        fewest_of_pair=(names[counts.first[pair]], names[counts.second[pair]], float(weight[pair])),
        bridges=tuple((names[one], names[two]) for one, two in bridges),
        hinges=tuple(names[code] for code in hinges),
        balance=balance if islands > 1 or size <= _MAX_MODELS else np.nan,
        worst=None if worst is None else (names[worst[0]], names[worst[1]]),
    )


def _graph(counts: WinCounts, weight: NDArray[np.float64]) -> coo_array:
    size = len(counts.models)
    return coo_array((weight, (counts.first, counts.second)), shape=(size, size))


def _balance(counts: WinCounts, weight: NDArray[np.float64]) -> tuple[float, tuple[int, int]]:
    """The largest effective resistance of the network whose edges are battles, relative to the even network."""
    size = len(counts.models)
    net = np.zeros((size, size))
    net[counts.first, counts.second] = net[counts.second, counts.first] = -weight
    np.fill_diagonal(net, -net.sum(axis=1))
    held = int(np.argmax(np.diagonal(net)))
    inside = np.arange(size) != held
    inverse = np.zeros((size, size))
    inverse[np.ix_(inside, inside)] = cho_solve(cho_factor(net[np.ix_(inside, inside)]), np.eye(size - 1))
    own = np.diagonal(inverse)
    resistance = own[:, None] + own[None, :] - 2.0 * inverse
    one, two = np.unravel_index(int(np.argmax(np.round(resistance * weight.sum(), 9))), resistance.shape)
    even = (size - 1) / weight.sum()
    return float(np.sqrt(resistance[one, two] / even)), (min(int(one), int(two)), max(int(one), int(two)))


def _weak_links(
    size: int, first: NDArray[np.intp], second: NDArray[np.intp]
) -> tuple[list[tuple[int, int]], list[int]]:
    """Bridges and articulation points of the graph (Tarjan 1972), by code.

    An iterative depth-first search; `low` is the earliest model reachable from the subtree without the edge to the
    parent.
    """
    around: list[list[int]] = [[] for _ in range(size)]
    for one, two in zip(first.tolist(), second.tolist(), strict=True):
        around[one].append(two)
        around[two].append(one)
    order, low = [0] * size, [0] * size
    bridges: list[tuple[int, int]] = []
    hinges: set[int] = set()
    clock = 0
    for root in range(size):
        if order[root]:
            continue
        clock += 1
        order[root] = low[root] = clock
        branches = 0
        path: list[tuple[int, int, Iterator[int]]] = [(root, -1, iter(around[root]))]
        while path:
            model, came_from, rest = path[-1]
            onward = next(rest, None)
            if onward is None:
                path.pop()
                if came_from < 0:
                    continue
                low[came_from] = min(low[came_from], low[model])
                if low[model] > order[came_from]:
                    bridges.append((min(model, came_from), max(model, came_from)))
                if came_from == root:
                    branches += 1
                elif low[model] >= order[came_from]:
                    hinges.add(came_from)
            elif not order[onward]:
                clock += 1
                order[onward] = low[onward] = clock
                path.append((onward, model, iter(around[onward])))
            elif onward != came_from:
                low[model] = min(low[model], order[onward])
        if branches > 1:
            hinges.add(root)
    return sorted(bridges), sorted(hinges)
