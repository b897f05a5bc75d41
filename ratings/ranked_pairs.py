"""Ranked pairs: majorities are locked in by falling margin, unless they contradict what is locked."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from venire.ratings.majorities import between, by_score, levels, met
from venire.ratings.order import Order, Votes

__all__ = ["ranked_pairs"]


def ranked_pairs(votes: Votes) -> Order:
    """By the majorities that stay when they are locked in by falling margin, none that closes a cycle.

    Source: Tideman, Independence of clones as a criterion for voting rules (1987). Majorities of equal margin are taken
    together, so that neither names nor the order of rows choose between them: first those that contradict what is
    locked fall, then those on a cycle that the others make with it. What is left need not tell all models apart: see
    `majorities.between`.
    """
    level = levels(votes)
    above = np.zeros(level.shape, dtype=np.bool_)
    winner, loser = np.nonzero(level)
    falling = np.argsort(-level[winner, loser], kind="stable")
    winner, loser = winner[falling], loser[falling]
    ends = np.flatnonzero(np.diff(level[winner, loser])) + 1
    for upper, lower in zip(np.split(winner, ends), np.split(loser, ends), strict=True):
        _lock(above, upper, lower)
    score = np.where(met(votes).any(axis=1), between(above), np.nan)
    return by_score("ranked-pairs", votes, score, "models below less models above")


def _lock(above: NDArray[np.bool_], winner: NDArray[np.intp], loser: NDArray[np.intp]) -> None:
    """Add majorities of one margin to what is `above` (n, n) what, which stays closed under following it."""
    stands = ~above[loser, winner]
    winner, loser = winner[stands], loser[stands]
    if len(winner) > 1:
        start, end = np.nonzero(above)
        edges = np.concatenate([start, winner]), np.concatenate([end, loser])
        graph = coo_array((np.ones(len(edges[0])), edges), shape=above.shape)
        part = connected_components(graph, directed=True, connection="strong")[1]
        outside = part[winner] != part[loser]
        winner, loser = winner[outside], loser[outside]
    for upper, lower in zip(winner.tolist(), loser.tolist(), strict=True):
        if not above[upper, lower]:
            ahead, behind = above[:, upper].copy(), above[lower].copy()
            ahead[upper] = behind[lower] = True
            above |= ahead[:, None] & behind
