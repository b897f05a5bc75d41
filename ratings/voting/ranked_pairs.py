"""Ranked pairs: majorities are locked in by falling margin, unless they contradict what is locked."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from venire.ratings.data.votes import Order, Votes
from venire.ratings.voting.majorities import between, by_score, levels, met

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
    for start, end in pairwise([0, *ends.tolist(), len(winner)]):
        upper, lower = winner[start:end], loser[start:end]
        if end - start > 1:
            upper, lower = _outside_cycles(above, upper, lower)
        _lock(above, upper.tolist(), lower.tolist())
    score = np.where(met(votes).any(axis=1), between(above), np.nan)
    return by_score("ranked-pairs", votes, score, "models below less models above")


def _outside_cycles(
    above: NDArray[np.bool_], winner: NDArray[np.intp], loser: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Majorities of one margin that nothing locked contradicts, and that close no cycle with what is locked."""
    stands = ~above[loser, winner]
    winner, loser = winner[stands], loser[stands]
    # What is locked is closed under following it, so the models of these majorities are all that a cycle needs.
    codes, place = np.unique(np.concatenate([winner, loser]), return_inverse=True)
    graph, (upper, lower) = above[np.ix_(codes, codes)], np.split(place, 2)
    graph[upper, lower] = True
    part = connected_components(graph, directed=True, connection="strong")[1]
    outside = part[upper] != part[lower]
    return winner[outside], loser[outside]


def _lock(above: NDArray[np.bool_], winner: list[int], loser: list[int]) -> None:
    """Add majorities to who is `above` (n, n) whom, unless it is settled; what follows from them is added too."""
    for upper, lower in zip(winner, loser, strict=True):
        if not (above[upper, lower] or above[lower, upper]):
            ahead, behind = above[:, upper] & ~above[:, lower], above[lower].copy()
            ahead[upper] = behind[lower] = True
            above[ahead] |= behind
