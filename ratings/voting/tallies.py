"""Voting methods that are read off the table of votes: Borda, Copeland, minimax.

All take any table, not only one in which every model met every other as often; what unequal numbers do is said at each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from venire.ratings.data.votes import Order, Votes
from venire.ratings.voting.majorities import by_score, margins, met, slack

__all__ = ["borda", "copeland", "minimax"]


def borda(votes: Votes) -> Order:
    """By the share of a model's votes that prefer it. Source: Borda, Mémoire sur les élections au scrutin (1781).

    Where all models have as many votes this is the order of Borda's points, the sum of each row; elsewhere the share
    keeps those who met more opponents from gaining by it. Weak opponents still flatter, as in any win rate.
    """
    won, lost = votes.weight.sum(axis=1), votes.weight.sum(axis=0)
    return by_score("borda", votes, _share(won, won + lost), "share of votes")


def copeland(votes: Votes) -> Order:
    """By the share of opponents met that a majority puts below, an even split counting half.

    Source: Copeland, A 'reasonable' social welfare function (1951). How large majorities are does not count.
    """
    opponents, margin = met(votes), margins(votes)
    beaten = (np.where(margin > 0.0, 1.0, 0.5) * (margin >= 0.0) * opponents).sum(axis=1)
    return by_score("copeland", votes, _share(beaten, opponents.sum(axis=1)), "share of opponents beaten")


def minimax(votes: Votes) -> Order:
    """By the smallest margin over any opponent met: that of the worst defeat, or of the narrowest win where none is.

    Sources: Simpson (1969), Kramer (1977); this is the variant of margins. They are counted in votes, so an opponent
    met often can do more harm than one met rarely. May put first a model that loses to all others, narrowly.
    """
    margin = np.where(met(votes), margins(votes), np.inf)
    worst = margin.min(axis=1, initial=np.inf)
    score = np.where(np.isinf(worst), np.nan, worst)
    return by_score("minimax", votes, score, "smallest margin in votes", tolerance=slack(votes))


def _share(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0.0))
