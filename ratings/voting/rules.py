"""Voting rules other than Kemeny's: Borda, Copeland, minimax, Schulze, ranked pairs, median rank and rank centrality.

All accept any table of pairwise votes (median rank: ballots), including tables with unequal numbers of votes per pair;
each rule documents their effect. Each rule gives every model a score, and `order_by_score` sorts by it; equal scores
share a position.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.special import logsumexp

from venire.arena.battles import Ballots
from venire.arena.errors import InputError
from venire.ratings.data.ballots import ballot_votes
from venire.ratings.data.votes import Order, Votes, contradicted, pair_bound
from venire.ratings.pairwise.plackett_luce import ranked_places

Matrix = NDArray[np.float64]

Vector = NDArray[np.float64]


def _met(votes: Votes) -> NDArray[np.bool_]:
    """Pairs (n, n) with at least one vote."""
    return np.asarray(votes.weight + votes.weight.T > 0.0) & ~np.eye(len(votes.models), dtype=np.bool_)


def margins(votes: Votes) -> Matrix:
    """Margins (n, n): votes for minus votes against, 0 where they are equal up to rounding."""
    margin = votes.weight - votes.weight.T
    return np.where(np.abs(margin) <= _slack(votes), 0.0, margin)


def _slack(votes: Votes) -> float:
    """Margins that differ by less are equal: the rounding error of one pair's sums, whatever the number of pairs."""
    return 1e-9 * float((votes.weight + votes.weight.T).max(initial=0.0))


def levels(votes: Votes) -> NDArray[np.int64]:
    """Majorities (n, n) as integer levels: 0 for none, equal for equal margins, higher for larger margins."""
    margin = margins(votes)
    level = np.zeros(margin.shape, dtype=np.int64)
    won = margin > 0.0
    level[won] = 1 + _steps(margin[won], _slack(votes))
    return level


def _steps(values: NDArray[np.float64], tolerance: float) -> NDArray[np.int64]:
    """Each value's rank among the distinct values (n,), from 0 for the lowest; gaps within `tolerance` are ignored."""
    rising = np.argsort(values, kind="stable")
    step = np.zeros(len(values), dtype=np.int64)
    step[rising[1:]] = np.cumsum(np.diff(values[rising]) > tolerance)
    return step


def _between(below: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Number of models below minus number above (n,), from a strict partial order: [i, j] puts i above j.

    It is the midpoint of a model's possible positions, relative to the middle of the field: a model above another
    always has a higher value, and a full order keeps its positions.
    """
    return np.asarray(below.sum(axis=1) - below.sum(axis=0), dtype=np.float64)


def order_by_score(
    method: str,
    votes: Votes,
    score: NDArray[np.float64],
    unit: str,
    *,
    key: NDArray[np.float64] | None = None,
    tolerance: float = 1e-9,
) -> Order:
    """The order by `key`, highest first; None: by the `score` (n,) itself. NaN is a model without a position.

    Models whose keys differ by no more than `tolerance` share the mean of their positions and are sorted by name.
    """
    value = score if key is None else key
    codes = np.flatnonzero(~np.isnan(value))
    step = _steps(-value[codes], tolerance)
    sizes = np.bincount(step)
    position = np.full(len(value), np.nan)
    position[codes] = (np.cumsum(sizes) - (sizes - 1) / 2.0)[step]
    last = np.where(np.isnan(position), np.inf, position).tolist()
    order = sorted(range(len(value)), key=lambda code: (last[code], votes.models[code]))
    cost, bound = contradicted(votes.weight, order), pair_bound(votes.weight)
    return Order(
        method=method,
        models=votes.models,
        order=tuple(votes.models[code] for code in order),
        position=position,
        cost=cost,
        lower_bound=bound,
        proved=cost - bound <= votes.tolerance,
        score=score,
        unit=unit,
    )


def borda(votes: Votes) -> Order:
    """Borda's rule: by the share of a model's votes that prefer it.

    Source: Borda, Mémoire sur les élections au scrutin (1781). Where all models have equally many votes this is the
    order of Borda's points, the sum of each row; elsewhere the share avoids an advantage for models with more
    opponents. Weak opponents still raise it, as in any win rate.

    >>> from venire.ratings import borda, comparisons, votes
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> borda(votes(data)).position.tolist()
    [1.0, 2.0, 3.0]
    """
    won, lost = votes.weight.sum(axis=1), votes.weight.sum(axis=0)
    return order_by_score("borda", votes, _share(won, won + lost), "share of votes")


def copeland(votes: Votes) -> Order:
    """Copeland's rule: by the share of opponents met that a majority puts below; an even split counts half.

    Source: Copeland, A 'reasonable' social welfare function (1951). The size of majorities has no effect.

    >>> from venire.ratings import comparisons, copeland, votes
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> copeland(votes(data)).position.tolist()
    [1.0, 2.0, 3.0]
    """
    opponents, margin = _met(votes), margins(votes)
    beaten = (np.where(margin > 0.0, 1.0, 0.5) * (margin >= 0.0) * opponents).sum(axis=1)
    return order_by_score("copeland", votes, _share(beaten, opponents.sum(axis=1)), "share of opponents beaten")


def minimax(votes: Votes) -> Order:
    """Minimax: by the smallest margin over any opponent met, that of the worst defeat or the narrowest win.

    Sources: Simpson (1969), Kramer (1977); this is the variant of margins. They are counted in votes, so an opponent
    met often can have a larger effect than an opponent met rarely. May rank a model first that loses narrowly to all
    others.

    >>> from venire.ratings import comparisons, minimax, votes
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> minimax(votes(data)).position.tolist()
    [1.5, 1.5, 3.0]
    """
    margin = np.where(_met(votes), margins(votes), np.inf)
    worst = margin.min(axis=1, initial=np.inf)
    score = np.where(np.isinf(worst), np.nan, worst)
    return order_by_score("minimax", votes, score, "smallest margin in votes", tolerance=_slack(votes))


def _share(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0.0))


def schulze(votes: Votes) -> Order:
    """Schulze's rule: i is above j if its strongest path to j is stronger; a path's strength is its smallest margin.

    Source: Schulze, The Schulze Method of Voting, arXiv 1804.02973, which proves that "above" has no cycles. Strength
    is the margin, since winning votes would let ties, split between the sides, strengthen a majority. Models with equal
    paths to each other are separated only by the models above and below them: see `_between`.

    >>> from venire.ratings import comparisons, schulze, votes
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> schulze(votes(data)).position.tolist()
    [1.0, 2.0, 3.0]
    """
    path = strongest_paths(levels(votes))
    score = np.where(_met(votes).any(axis=1), _between(path > path.T), np.nan)
    return order_by_score("schulze", votes, score, "models below less models above")


def strongest_paths(strength: NDArray[np.int64]) -> NDArray[np.int64]:
    """Widest paths: strengths (n, n) of the strongest paths from each model to each other; 0 is no path."""
    path = strength.copy()
    for through in range(len(path)):
        np.maximum(path, np.minimum(path[:, through, None], path[None, through]), out=path)
    np.fill_diagonal(path, 0)
    return path


def ranked_pairs(votes: Votes) -> Order:
    """Ranked pairs: majorities are locked in by decreasing margin, except those that close a cycle.

    Source: Tideman, Independence of clones as a criterion for voting rules (1987). Majorities of equal margin are
    processed together, so that neither names nor the order of rows decide between them: first those that contradict
    locked majorities are dropped, then those on a cycle with the rest. The result need not separate all models: see
    `_between`.

    >>> from venire.ratings import comparisons, ranked_pairs, votes
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> ranked_pairs(votes(data)).position.tolist()
    [1.0, 2.0, 3.0]
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
    score = np.where(_met(votes).any(axis=1), _between(above), np.nan)
    return order_by_score("ranked-pairs", votes, score, "models below less models above")


def _outside_cycles(
    above: NDArray[np.bool_], winner: NDArray[np.intp], loser: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Majorities of one margin that no locked majority contradicts, and that close no cycle with locked ones."""
    stands = ~above[loser, winner]
    winner, loser = winner[stands], loser[stands]
    # The locked relation is transitively closed, so cycles need only the models of these majorities.
    codes, place = np.unique(np.concatenate([winner, loser]), return_inverse=True)
    graph, (upper, lower) = above[np.ix_(codes, codes)], np.split(place, 2)
    graph[upper, lower] = True
    part = connected_components(graph, directed=True, connection="strong")[1]
    outside = part[upper] != part[lower]
    return winner[outside], loser[outside]


def _lock(above: NDArray[np.bool_], winner: list[int], loser: list[int]) -> None:
    """Add majorities to the relation `above` (n, n), unless already settled, with their transitive closure."""
    for upper, lower in zip(winner, loser, strict=True):
        if not (above[upper, lower] or above[lower, upper]):
            ahead, behind = above[:, upper] & ~above[:, lower], above[lower].copy()
            ahead[upper] = behind[lower] = True
            above[ahead] |= behind


def median_rank(ballots: Ballots) -> Order:
    """Median rank: by the weighted median of a model's positions over the ballots that show it; 1 is the best.

    Source: Bassett and Persky, Robust Voting (1999). Tied models share the mean of their places, unranked models that
    of the remaining places. A place on a ballot with fewer models is scaled to the whole field, so that the middle
    stays the middle: `1/2 + models (place - 1/2) / shown`. Equal medians stay tied: there are few possible values, and
    many ties. Ballots that rank nothing, or show one model, are ignored.

    >>> from venire.ratings import ballots, median_rank
    >>> given = ballots(list("xxxyyy"), list("qqqqqq"), list("abcabc"), [1, 2, 3, 2, 1, 3])
    >>> median_rank(given).position.tolist()
    [1.5, 1.5, 3.0]
    """
    field = ranked_places(ballots.rank)
    says = (field.ranked > 0) & (field.shown > 1)
    size = len(ballots.models)
    middle = (field.start + field.end) / 2.0
    place = 0.5 + size * middle / np.maximum(field.shown, 1)
    weight = np.ones(len(ballots)) if ballots.weight is None else ballots.weight
    counted = field.there & says & (weight > 0.0)
    model, value = field.model[counted], place[counted]
    share = np.broadcast_to(weight, counted.shape)[counted]
    median = np.full(size, np.nan)
    for code in np.unique(model).tolist():
        own = model == code
        median[code] = weighted_median(value[own], share[own])
    return order_by_score("median-rank", ballot_votes(ballots), median, "median place", key=-median)


def weighted_median(values: Vector, weight: Vector) -> float:
    """Weighted median: half of the weight, above 0, on either side; the mean of two where the half falls between."""
    rising = np.argsort(values, kind="stable")
    ahead, half = np.cumsum(weight[rising]), 0.5 * float(weight.sum())
    slack = 1e-9 * half
    low = int(np.searchsorted(ahead, half - slack))
    high = int(np.searchsorted(ahead, half + slack))
    return 0.5 * float(values[rising[low]] + values[rising[min(high, len(values) - 1)]])


def markov(votes: Votes, *, jump: float = 0.0) -> Order:
    """Rank centrality: by the stationary distribution of a random walk along votes.

    Source: Negahban, Oh and Shah, Rank Centrality, arXiv 1209.1688. The walk picks each opponent of its model with
    equal probability and moves there with the share of votes that prefer it. Where shares follow Bradley-Terry, the
    stationary share is proportional to strength, whichever pairs met. Some models may be transient, for example all
    others if one model never lost a vote: their share is 0, and they are ranked below, by a walk among themselves. With
    several closed classes, each has the share of starts that end in it. `jump` is the probability, at each step, of
    moving to any model instead. Raises `InputError` for a jump outside [0, 1) and for votes too one-sided for double
    precision.

    >>> from venire.ratings import comparisons, markov, votes
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> markov(votes(data)).position.tolist()
    [1.0, 2.0, 3.0]
    """
    if not 0.0 <= jump < 1.0:
        raise InputError(f"jump is {jump}; give 0 for none, or a small share such as 0.01")
    opponents = _met(votes)
    known = np.flatnonzero(opponents.any(axis=1))
    total = votes.weight + votes.weight.T
    rate = np.divide(votes.weight.T, total, out=np.zeros_like(total), where=opponents)[np.ix_(known, known)]
    if jump and len(known):
        rate = rate * ((1.0 - jump) / opponents.sum(axis=1).max()) + jump / len(known)
        np.fill_diagonal(rate, 0.0)
    score, key = np.full(len(total), np.nan), np.full(len(total), np.nan)
    left, above, first = np.arange(len(known)), 0.0, True
    while len(left):
        log_share = stationary_log_shares(rate[np.ix_(left, left)])
        stays = np.isfinite(log_share)
        if first:
            score[known] = np.exp(log_share)
        inside = log_share[stays]
        # A walk among transient models is one level below: their shares are comparable among themselves only.
        key[known[left[stays]]] = inside - inside.max() + above
        above, left, first = above - 1.0 + float(inside.min() - inside.max()), left[~stays], False
    return order_by_score("markov", votes, score, "share of time", key=key)


def stationary_log_shares(rate: Matrix) -> Vector:
    """Stationary distribution of a walk, as logarithms (n,); `rate[i, j]` leads from i to j.

    It is -inf at a transient state. States are eliminated one by one without subtractions, so that small shares are as
    precise as large ones (Grassmann, Taksar and Heyman 1985). Raises `InputError`.
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
    """The transition shares (n,) of an eliminated state to the remaining states."""
    onward = rate.copy()
    onward[gone] = 0.0
    total = float(onward.sum())
    if not total > 0.0:
        raise InputError("markov: votes are too one-sided for a walk in double precision; give a jump such as 0.01")
    return onward / total


def _stationary(rate: Matrix) -> Vector:
    """Logarithm of the stationary distribution (k,) of an irreducible chain."""
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
