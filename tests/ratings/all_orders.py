"""Votes for the tests of orders, and the truth about them where all orders can be tried."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from venire.ratings.data.votes import Votes

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Truth:
    """The least weight that an order contradicts, the orders that do, and each model's mean place over these."""

    cost: float
    orders: tuple[tuple[int, ...], ...]
    position: Matrix


def tried(weight: Matrix) -> Truth:
    """Every order of the models tried; up to 8 of them."""
    size = len(weight)
    orders = np.array(list(permutations(range(size))), dtype=np.intp)
    ahead, behind = np.triu_indices(size, 1)
    costs = weight[orders[:, behind], orders[:, ahead]].sum(axis=1)
    best = orders[costs <= costs.min() + 1e-7 * max(1.0, weight.sum())]
    return Truth(float(costs.min()), tuple(map(tuple, best.tolist())), 1.0 + np.argsort(best, axis=1).mean(axis=0))


def named(weight: Matrix) -> Votes:
    """Votes between models m00, m01, ..."""
    return Votes(tuple(f"m{code:02}" for code in range(len(weight))), weight)


def tournament(size: int, seed: int) -> Matrix:
    """One vote a pair, at random."""
    won = np.triu(np.random.default_rng(seed).random((size, size)) < 0.5, 1)
    return np.where(won, 1.0, np.tril(~won.T, -1).astype(np.float64))


def ballots_summed(size: int, voters: int, agreement: float, seed: int) -> Matrix:
    """Orders of voters who agree on one order as far as told, summed to pairs."""
    rng = np.random.default_rng(seed)
    weight = np.zeros((size, size))
    for _ in range(voters):
        score = agreement * np.arange(size) + rng.gumbel(size=size)
        weight += score[:, None] < score[None, :]
    return weight
