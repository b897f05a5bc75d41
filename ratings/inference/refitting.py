"""Bradley-Terry refits of many replicates of one table at once.

All replicates of a block take Newton steps with one information matrix, that of the point estimate, inverted once: a
step is a sweep over the pairs and one matrix product. The steps shrink by a constant ratio; a replicate whose steps do
not shrink by half is refitted separately, once for all draws that are equal: of few clusters most are. Every replicate
ends at its own maximum, to 1e-7 logits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components
from scipy.special import expit

from venire.arena.errors import InputError
from venire.ratings.pairwise.covariance import inverse_information

_STEP = 1e-7
_FIRST_STEP = 2.0
_SHRINK = 0.5
_CHORD_STEPS = 60
_NEWTON_STEPS = 200
_SAFE = 300.0

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Refits:
    """Shared data of the refits of one table. Pairs are `high`, `low` (pairs,), their weights (2 * pairs, columns):
    first those by which high won, then those by which low won.

    `start` (n,) is the point estimate and `bread` (n, n) its inverse information; `sides` (n, pairs) sums residuals of
    pairs over models. `witness` are entries; if all are positive, a replicate has an estimate. `held` are the models
    whose ratings set the gauge; without any it is the mean.
    """

    high: Places
    low: Places
    start: Vector
    bread: Matrix
    sides: csr_array
    ridge: float
    free: NDArray[np.bool_]
    witness: Places
    held: Places
    fitted: dict[tuple[str, bytes], Vector | None] = field(default_factory=dict)
    """What was found for replicates that were looked at separately, by the digest of their weights."""

    def solve(self, weights: Matrix) -> Matrix:
        """Ratings (columns, n) in logits of replicates with weights (2 * pairs, columns).

        Without a finite maximum a rating is what it tends to in its gauge: infinite, finite, or NaN where wins leave
        either side open. A row of NaN is also a fit that fails.
        """
        found = np.full((weights.shape[1], len(self.start)), np.nan)
        exists = np.asarray((weights[self.witness] > 0.0).all(axis=0))  # a ridge has no witness, and always an estimate
        for column in np.flatnonzero(~exists):
            limit = self._once(self._limit, weights[:, column])
            if limit is not None:
                found[column] = limit
            exists[column] = limit is None
        if not exists.all():
            weights = weights[:, exists]
        logits, left = self._chord(weights)
        for column in left:
            logits[:, column] = self._once(self._newton, weights[:, column])
        found[exists] = logits.T
        return found

    def _once(self, fit: Callable[[Vector], Vector | None], weights: Vector) -> Vector | None:
        """What `fit` gives for the weights (2 * pairs,) of one replicate, kept for draws that are equal."""
        key = fit.__name__, blake2b(weights.tobytes(), digest_size=16).digest()
        if key not in self.fitted:
            self.fitted[key] = fit(weights)
        return self.fitted[key]

    def _limit(self, weights: Vector) -> Vector | None:
        """What the ratings (n,) of one replicate tend to, by who beat whom; None where they have a finite maximum.

        About held models: those that only ever beat them are above everything, those that only ever lose below, and
        those joined with them by wins both ways have the ratings that they have without the others. About the mean:
        every model is infinitely far from some others, so those above all others are above, those below all below.
        """
        graph = _wins(self.high, self.low, weights, self.free)
        parts, part = connected_components(graph, directed=True, connection="strong")
        if parts == 1:
            return None
        node = _nodes(self.free)
        found = np.full(len(self.start), np.nan)
        if not len(self.held):
            winner, loser = graph.nonzero()
            crossing = part[winner] != part[loser]
            never_lost, never_won = (np.setdiff1d(part, part[end[crossing]]) for end in (loser, winner))
            for ends, limit in ((never_lost, np.inf), (never_won, -np.inf)):
                if len(ends) == 1:
                    found[part[node] == ends[0]] = limit
            return found
        centre = int(node[self.held[0]])
        inside = part[node] == part[centre]
        for arrows, limit in ((graph, -np.inf), (graph.T.tocsr(), np.inf)):
            reached = np.isin(node, breadth_first_order(arrows, centre, return_predecessors=False))
            found[reached] = limit
        both = inside[self.high] & inside[self.low]
        free = inside & self.free
        free[self.held] = False
        found[inside] = self._newton(np.where(np.tile(both, 2), weights, 0.0), free)[inside]
        return found

    def gradient(self, weights: Matrix, logits: Matrix) -> Matrix:
        """Gradient (n, columns) of the log-likelihood, minus that of the ridge, at logits (n, columns)."""
        won, lost = weights[: len(self.high)], weights[len(self.high) :]
        if np.abs(logits).max(initial=0.0) < _SAFE:
            odds = np.exp(logits)
            one, other = odds[self.high], odds[self.low]
            both = one + other
            other *= won
            one *= lost
            other -= one
            other /= both
            surprise = other
        else:
            gap = logits[self.high] - logits[self.low]
            surprise = won * expit(-gap) - lost * expit(gap)
        total: Matrix = self.sides @ surprise
        return total - self.ridge * logits if self.ridge else total

    def _chord(self, weights: Matrix) -> tuple[Matrix, Places]:
        """Ratings (n, columns) by steps with the shared information, and the columns that do not converge."""
        columns = weights.shape[1]
        logits = np.repeat(self.start[:, None], columns, axis=1)
        open_, suited = np.ones(columns, dtype=np.bool_), np.ones(columns, dtype=np.bool_)
        before = np.full(columns, _FIRST_STEP / _SHRINK)
        for _ in range(_CHORD_STEPS):
            if not open_.any():
                break
            step = self.bread @ self.gradient(weights, logits)
            length = np.abs(step).max(axis=0)
            wild = open_ & ~(length <= _SHRINK * before)
            suited &= ~wild
            open_ &= ~wild
            logits += np.where(open_, step, 0.0)
            open_ &= length > _STEP
            before = length
        unsuited = np.flatnonzero(~suited | open_)
        logits[:, unsuited] = self.start[:, None]
        return logits, unsuited

    def _newton(self, weights: Vector, free: NDArray[np.bool_] | None = None) -> Vector:
        """Ratings (n,) of one replicate by Newton's method with steps halved where they overshoot; NaN if it fails.

        Only models that are `free` (n,), by default those of the table, move.
        """
        free = self.free if free is None else free
        size, pairs = len(self.start), len(self.high)
        logits = self.start.copy()
        step, slope, scale = np.zeros(size), np.inf, 1.0
        total = weights[:pairs] + weights[pairs:]
        for _ in range(_NEWTON_STEPS):
            gradient = np.where(free, self.gradient(weights[:, None], logits[:, None])[:, 0], 0.0)
            if -(gradient @ step) > 0.9 * slope and scale > 1e-6:
                scale *= 0.5
                logits -= scale * step
                continue
            gap = logits[self.high] - logits[self.low]
            information = np.zeros((size, size))
            information[self.high, self.low] = information[self.low, self.high] = -total * expit(gap) * expit(-gap)
            information[np.diag_indices(size)] = self.ridge - information.sum(axis=1)
            step = self._newton_step(information, gradient, free)
            slope, scale = float(gradient @ step), 1.0
            logits += step
            length = float(np.abs(step).max(initial=0.0))
            if length <= _STEP:
                return logits
            if not np.isfinite(length):
                break
        return np.full(size, np.nan)

    def _newton_step(self, information: Matrix, gradient: Vector, free: NDArray[np.bool_]) -> Vector:
        inside = free.copy()
        shifts = bool(inside.all()) and not self.ridge
        if shifts:
            inside[np.argmax(np.diagonal(information))] = False
        step = np.zeros_like(gradient)
        # LAPACK itself: what scipy.linalg adds takes longer than factor and solution of a board's few models.
        factor, failed = dpotrf(information[np.ix_(inside, inside)], lower=True, clean=False, overwrite_a=True)
        if failed:
            return np.full_like(gradient, np.nan)
        step[inside] = dpotrs(factor, gradient[inside], lower=True)[0]
        return step - step.mean() if shifts else step


def refits(
    high: Places,
    low: Places,
    weights: Vector,
    chances: Vector,
    logits: Vector,
    *,
    ridge: float,
    free: NDArray[np.bool_],
    models: tuple[str, ...],
    held: Places | None = None,
) -> Refits:
    """Prepare refits of a table of pairs (pairs,) around its estimate `logits` (n,).

    `weights` (2 * pairs,) are those of the table, `chances` (2 * pairs,) the number of units behind each: the more, the
    less likely that a replicate loses it. `held` sets the gauge, by default those that are not `free`. Raises
    `InputError` where the table itself has no finite estimate.
    """
    if not (ridge >= 0.0 and np.isfinite(ridge)):
        raise InputError(f"ridge is {ridge}; give a number that is 0 or more")
    size, pairs = len(logits), len(high)
    totals = np.zeros((size, size))
    totals[high, low] = totals[low, high] = weights[:pairs] + weights[pairs:]
    bread = inverse_information(totals, logits, ridge=ridge, free=free, models=models)
    ones, place = np.ones(pairs), np.arange(pairs)
    ends = (np.concatenate([high, low]), np.concatenate([place, place]))
    sides = csr_array((np.concatenate([ones, -ones]), ends), shape=(size, pairs))
    witness = np.zeros(0, dtype=np.intp) if ridge else _witness(high, low, np.where(weights > 0.0, chances, 0.0), free)
    held = np.flatnonzero(~free) if held is None else held
    return Refits(high, low, logits, bread, sides, ridge, free, witness, held)


def _arrows(high: Places, low: Places, free: NDArray[np.bool_]) -> tuple[Places, Places, int]:
    """Winner and loser (2 * pairs,) of each entry and the number of nodes: all fixed models are one node."""
    node = _nodes(free)
    count = int(node.max(initial=-1)) + 1
    return np.concatenate([node[high], node[low]]), np.concatenate([node[low], node[high]]), count


def _nodes(free: NDArray[np.bool_]) -> Places:
    """The node (n,) of each model: all fixed models are the last one."""
    return np.where(free, np.cumsum(free) - 1, int(free.sum()))


def _wins(high: Places, low: Places, weights: Vector, free: NDArray[np.bool_]) -> csr_array:
    """Who beat whom (nodes, nodes) in a replicate with weights (2 * pairs,)."""
    winner, loser, _ = _arrows(high, low, free)
    there, count = weights > 0.0, len(np.unique(_nodes(free)))
    return csr_array((np.ones(int(there.sum())), (winner[there], loser[there])), shape=(count, count))


def _witness(high: Places, low: Places, chances: Vector, free: NDArray[np.bool_]) -> Places:
    """Entries that connect one node to all others and back, along the most likely wins.

    If all of them are positive, the graph of wins is strongly connected and an estimate exists. Other replicates are
    checked in full.
    """
    winner, loser, count = _arrows(high, low, free)
    order = np.argsort(chances, kind="stable")
    width, entry = np.zeros((count, count)), np.zeros((count, count), dtype=np.intp)
    width[winner[order], loser[order]] = chances[order]
    entry[winner[order], loser[order]] = order
    np.fill_diagonal(width, 0.0)
    root = int(width.sum(axis=1).argmax()) if count else 0
    return np.union1d(_widest_tree(width, entry, root), _widest_tree(width.T, entry.T, root))


def _widest_tree(width: Matrix, entry: Places, root: int) -> Places:
    """Entries of a tree from the root to all nodes, each reached by the widest available edge."""
    best, via = width[root].copy(), entry[root].copy()
    waiting = np.ones(len(width), dtype=np.bool_)
    waiting[root] = False
    chosen = []
    for _ in range(len(width) - 1):
        node = int(np.where(waiting, best, -1.0).argmax())
        if best[node] <= 0.0:
            raise InputError(
                "these comparisons have no finite estimate, so there is nothing to draw around: some models only ever "
                "beat others; rate each group apart, or give a ridge"
            )
        chosen.append(int(via[node]))
        waiting[node] = False
        wider = width[node] > best
        best, via = np.where(wider, width[node], best), np.where(wider, entry[node], via)
    return np.array(chosen, dtype=np.intp)
