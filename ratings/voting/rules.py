"""Rank centrality: how often a walk that follows votes stands at each model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.special import logsumexp

from venire.arena.errors import InputError
from venire.ratings.data.votes import Order, Votes
from venire.ratings.voting.majorities import by_score, met

__all__ = ["markov", "walk"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


def markov(votes: Votes, *, jump: float = 0.0) -> Order:
    """By the share of time that a walk spends at each model in the long run.

    Source: Negahban, Oh and Shah, Rank Centrality, arXiv 1209.1688. The walk looks at each opponent that its model met
    equally often and moves there with the share of votes that prefer it. Where shares are those of Bradley-Terry, the
    time is in proportion to strength, whoever met whom. A walk that begins anywhere leaves some models for good, such
    as all others where one never lost a vote: their share is 0, and they stand below, in the order of a walk among
    themselves. Of several sets that it cannot leave each has the share of starts that end in it. `jump` is the chance,
    at each step, to go to any model instead. Raises `InputError` for a jump outside [0, 1) and for votes so one-sided
    that double precision has no figures for them.
    """
    if not 0.0 <= jump < 1.0:
        raise InputError(f"jump is {jump}; give 0 for none, or a small share such as 0.01")
    opponents = met(votes)
    known = np.flatnonzero(opponents.any(axis=1))
    total = votes.weight + votes.weight.T
    rate = np.divide(votes.weight.T, total, out=np.zeros_like(total), where=opponents)[np.ix_(known, known)]
    if jump and len(known):
        rate = rate * ((1.0 - jump) / opponents.sum(axis=1).max()) + jump / len(known)
        np.fill_diagonal(rate, 0.0)
    score, key = np.full(len(total), np.nan), np.full(len(total), np.nan)
    left, above, first = np.arange(len(known)), 0.0, True
    while len(left):
        log_share = walk(rate[np.ix_(left, left)])
        stays = np.isfinite(log_share)
        if first:
            score[known] = np.exp(log_share)
        inside = log_share[stays]
        # A walk among those that were left is a step below: their shares compare with one another alone.
        key[known[left[stays]]] = inside - inside.max() + above
        above, left, first = above - 1.0 + float(inside.min() - inside.max()), left[~stays], False
    return by_score("markov", votes, score, "share of time", key=key)


def walk(rate: Matrix) -> Vector:
    """Logarithm of the long-run shares of time (n,) of a walk that begins anywhere; `rate[i, j]` leads from i to j.

    It is -inf at a state that is left for good. States are taken out one by one, and nothing is ever subtracted, so
    that small shares have as many true digits as large ones (Grassmann, Taksar and Heyman 1985). Raises `InputError`.
    """
    size = len(rate)
    count, part = connected_components(rate > 0.0, directed=True, connection="strong")
    open_parts = np.zeros(count, dtype=np.bool_)
    start, end = np.nonzero(rate)
    open_parts[part[start[part[start] != part[end]]]] = True
    passing = open_parts[part]
    mass = np.where(passing, 0.0, 1.0 / size)
    rate, waiting = rate.copy(), np.flatnonzero(passing)
    begun = np.where(passing, 1.0 / size, 0.0)
    for done, state in enumerate(waiting.tolist()):
        onward = _shares(rate[state], waiting[: done + 1])
        rate += np.outer(rate[:, state], onward)
        mass += np.where(passing, 0.0, begun[state] * onward)
        begun += np.where(passing, begun[state] * onward, 0.0)
    log_share = np.full(size, -np.inf)
    for label in np.flatnonzero(~open_parts).tolist():
        inside = np.flatnonzero(part == label)
        log_share[inside] = _stationary(rate[np.ix_(inside, inside)]) + np.log(mass[inside].sum())
    return log_share


def _shares(rate: Vector, gone: NDArray[np.intp]) -> Vector:
    """Where a state that is taken out leads to, (n,), among those that are still there."""
    onward = rate.copy()
    onward[gone] = 0.0
    total = float(onward.sum())
    if not total > 0.0:
        raise InputError("markov: votes are too one-sided for a walk in double precision; give a jump such as 0.01")
    return onward / total


def _stationary(rate: Matrix) -> Vector:
    """Logarithm of the share of time (k,) among states that all lead to one another."""
    size = len(rate)
    for state in range(size - 1, 0, -1):
        total = float(rate[state, :state].sum())
        if not total > 0.0:
            raise InputError("markov: votes are too one-sided for a walk in double precision; give a jump such as 0.01")
        rate[:state, state] /= total
        rate[:state, :state] += np.outer(rate[:state, state], rate[state, :state])
    log_rate = np.log(rate, out=np.full(rate.shape, -np.inf), where=rate > 0.0)
    share = np.zeros(size)
    for state in range(1, size):
        share[state] = logsumexp(share[:state] + log_rate[:state, state])
    return np.asarray(share - logsumexp(share))
