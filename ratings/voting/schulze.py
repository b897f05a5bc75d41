"""Schulze's method: who has the stronger path of majorities to the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from venire.ratings.data.votes import Order, Votes
from venire.ratings.voting.majorities import between, by_score, levels, met

__all__ = ["schulze"]


def schulze(votes: Votes) -> Order:
    """By strongest paths: a path is as strong as its smallest margin, and i is above j if its best path to j is better.

    Source: Schulze, The Schulze Method of Voting, arXiv 1804.02973, which proves that "above" has no cycles. Strength
    is the margin, since winning votes would let ties, split between the sides, strengthen a majority. Models whose
    paths to each other are equal are apart only by whom they are both above or below: see `majorities.between`.
    """
    path = widest(levels(votes))
    score = np.where(met(votes).any(axis=1), between(path > path.T), np.nan)
    return by_score("schulze", votes, score, "models below less models above")


def widest(strength: NDArray[np.int64]) -> NDArray[np.int64]:
    """Strengths (n, n) of the strongest paths from each model to each other; 0 is no path."""
    path = strength.copy()
    for through in range(len(path)):
        np.maximum(path, np.minimum(path[:, through, None], path[None, through]), out=path)
    np.fill_diagonal(path, 0)
    return path
