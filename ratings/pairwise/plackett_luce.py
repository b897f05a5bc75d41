"""Plackett-Luce ratings of ballots by maximum likelihood: Bradley-Terry for choices among more than two.

Sources: Luce, Individual Choice Behavior (1959); Plackett, The analysis of permutations (1975). A finite maximum exists
if and only if "placed above or tied" leads from every model to every other (Hunter, MM algorithms for generalized
Bradley-Terry models, 2004). This is the same condition as for the pairs of the ballots, and it is checked before
fitting.

With e_i = exp(R_i), a ballot is a sequence of stages: the best of all is chosen, then the best of the remaining models,
with probability e_i / D, where D is the sum over the remaining models. Models that were shown but not ranked remain to
the end: they are in every D and are never chosen. A group of m tied models takes m stages, of which each model wins one
m-th; at stage l (from 0) the group counts (m - l) / m of its sum in D (Efron 1977). If no model remains below the
group, its last stage carries no information and is omitted, so a tie of two is half a win for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Ballots
from venire.arena.errors import InputError
from venire.arena.wording import suggest
from venire.ratings.data.clustered import Units, units_of
from venire.ratings.data.result import Ratings
from venire.ratings.pairwise.bradley_terry import bradley_terry_wins
from venire.ratings.pairwise.covariance import Covariance, Errors, inverse_laplacian, sandwiched
from venire.ratings.pairwise.solvers import Local, Maximum, NotConvergedError, climb

Vector = NDArray[np.float64]

_ROWS = 1024
"""Ballots processed at a time, so that they stay in the processor's cache."""
_SPAN = 300.0
"""Largest spread of ratings in logits whose squared exponentials fit into double precision."""
Matrix = NDArray[np.float64]


def plackett_luce(
    ballots: Ballots,
    *,
    ridge: float = 0.0,
    anchors: Mapping[str, float] | None = None,
    errors: Errors | None = None,
    crossed: bool = False,
) -> Ratings:
    """Maximum-likelihood ratings of the models on ballots; ballots of two models give those of Bradley-Terry.

    Unranked models remain after every choice; a tied group shares its choices (`choices`). `ridge` and `anchors` are as
    in `bradley_terry`. A ballot is one unit, and `errors` None is "cluster" where ballots name instructions, else
    "sandwich"; `crossed` clusters by judge too. A model that shares no ballot with another is NaN and listed in
    `no_estimate`. Raises `SeparatedError` when no finite maximum exists and there is no ridge, `InputError`,
    `NotConvergedError`.

    >>> from venire.ratings import ballots, plackett_luce
    >>> given = ballots(list("xxxyyy"), list("qqqqqq"), list("abcabc"), [1, 2, 3, 2, 1, 3])
    >>> plackett_luce(given, ridge=0.1).elo.round(1).tolist()
    [1158.9, 1158.9, 682.1]
    """
    kind = errors or ("cluster" if ballots.instructions else "sandwich")
    _check(ballots, kind)
    weight = np.ones(len(ballots)) if ballots.weight is None else ballots.weight
    field = ranked_places(ballots.rank)
    pairs = ChoiceLikelihood(field, weight, len(ballots.models)).wins()
    begin = bradley_terry_wins(pairs, ballots.models, ridge=ridge, anchors=anchors)
    known = np.flatnonzero(begin.battles > 0.0)
    counted = np.flatnonzero((weight > 0.0) & (field.shown > 1) & (field.ranked > 0))
    likelihood = _likelihood(field.part(counted), weight[counted], known, len(ballots.models))
    held = np.isin(ballots.models, list(anchors or ()))
    found = _climb(likelihood, begin.logits[known], held[known], ridge)
    logits = begin.logits.copy()
    logits[known] = found.logits
    if np.count_nonzero(held) == 1:
        logits[known] += (begin.logits - logits)[held]
    rated = replace(
        begin, method="plackett-luce", logits=logits, diagnostics=_notes(begin, likelihood, found, weight[counted])
    )
    if kind == "none":
        return rated
    unit = ballots.instruction[counted] if kind == "cluster" else None
    units = units_of(unit, ballots.judge[counted] if crossed else None, len(counted))
    return _with_errors(rated, likelihood, known, ~held[known], ridge, kind, units)


def _check(ballots: Ballots, kind: str) -> None:
    if kind not in get_args(Errors):
        raise InputError(f"errors is {kind!r}; {suggest(kind, get_args(Errors))}")
    if kind == "cluster" and not ballots.instructions:
        raise InputError("errors='cluster' needs ballots that name their instruction; use errors='sandwich'")


def _likelihood(field: RankedPlaces, weight: Vector, known: NDArray[np.intp], size: int) -> ChoiceLikelihood:
    """The likelihood with models recoded to those `known`: the others have no comparisons."""
    place = np.zeros(size, dtype=np.intp)
    place[known] = np.arange(len(known))
    return ChoiceLikelihood(replace(field, model=place[field.model]), weight, len(known))


def _climb(likelihood: ChoiceLikelihood, begin: Vector, held: NDArray[np.bool_], ridge: float) -> Maximum:
    """Maximise from the ratings of the pairs, or from equal ratings if that fails; several anchors are held."""
    fixed = held if np.count_nonzero(held) > 1 else None
    plain = np.zeros(len(begin)) if fixed is None else np.where(held, begin, begin[held].mean())
    try:
        return climb(likelihood, begin, ridge=ridge, fixed=fixed)
    except NotConvergedError:
        return climb(likelihood, plain, ridge=ridge, fixed=fixed)


def _notes(begin: Ratings, likelihood: ChoiceLikelihood, found: Maximum, weight: Vector) -> dict[str, Any]:
    total = float(weight.sum())
    kept = ("components", "groups", "no_estimate")
    return {
        "log_likelihood": likelihood.log_likelihood(found.logits),
        "iterations": found.steps,
        "gradient": found.gradient / total if total else 0.0,
        "ballots": len(weight),
        **{name: begin.diagnostics[name] for name in kept if name in begin.diagnostics},
    }


def _with_errors(
    rated: Ratings,
    likelihood: ChoiceLikelihood,
    known: NDArray[np.intp],
    free: NDArray[np.bool_],
    ridge: float,
    kind: str,
    units: Units,
) -> Ratings:
    """The ratings with their covariance over `units` of ballots."""
    names, logits = tuple(rated.models[code] for code in known), rated.logits[known]
    coupling = likelihood.coupling(logits)
    bread = inverse_laplacian(coupling, coupling > 0.0, ridge=ridge, free=free, models=names)
    if kind == "hessian" and likelihood.ties:
        raise InputError("errors='hessian' holds only for ballots without ties; use errors='sandwich' or 'cluster'")
    found = Covariance(bread, np.inf, kind, units.clusters)
    if kind != "hessian":

        def meat(unit: NDArray[np.int32], count: int) -> Matrix:
            scores = likelihood.scores(logits, unit, count)
            return np.asarray(scores.T @ scores)

        most = likelihood.largest_score(logits)
        found = sandwiched(bread, meat, units, free=free, models=names, largest=most, errors=kind, unit="ballot")
    spread = np.full((len(rated.models), len(rated.models)), np.nan)
    spread[np.ix_(known, known)] = found.matrix
    return replace(found, matrix=spread).of(rated)


@dataclass(frozen=True, slots=True, eq=False)
class RankedPlaces:
    """Ballots by place, best first: all arrays except the last two are (places, ballots).

    `model` are codes, `start` and `end` bound the group of tied models of a place, `there` marks whether the ballot has
    this place. `ranked` and `shown` (ballots,) count its models.
    """

    model: NDArray[np.intp]
    start: NDArray[np.intp]
    end: NDArray[np.intp]
    there: NDArray[np.bool_]
    ranked: NDArray[np.intp]
    shown: NDArray[np.intp]

    def part(self, rows: NDArray[np.intp]) -> RankedPlaces:
        """The same for some ballots, by position."""
        inside = (self.model[:, rows], self.start[:, rows], self.end[:, rows], self.there[:, rows])
        return RankedPlaces(*inside, self.ranked[rows], self.shown[rows])


def ranked_places(rank: Matrix) -> RankedPlaces:
    """Sort each ballot of ranks (ballots, models), as in `Ballots`."""
    ranked, shown = np.isfinite(rank).sum(axis=1), (~np.isnan(rank)).sum(axis=1)
    most = int(shown.max(initial=0))
    model = np.argsort(rank, axis=1, kind="stable")[:, :most]
    value = np.take_along_axis(rank, model, axis=1)
    index = np.arange(most)
    fresh = np.ones(value.shape, dtype=np.bool_)
    fresh[:, 1:] = value[:, 1:] != value[:, :-1]
    start = np.maximum.accumulate(np.where(fresh, index, 0), axis=1)
    last = np.roll(fresh, -1, axis=1)
    last[:, -1:] = True
    end = np.minimum.accumulate(np.where(last, index + 1, most)[:, ::-1], axis=1)[:, ::-1]
    model, start, end = (np.ascontiguousarray(column.T) for column in (model, start, end))
    return RankedPlaces(model, start, end, index[:, None] < shown, ranked, shown)


@dataclass(frozen=True, slots=True, eq=False)
class _PlaceTerms:
    """The contribution of each place of each ballot, (places, ballots): slopes up and down, and curvature.

    Two models of one ballot couple by the product of their exponentials times `bend` of the better placed, or `within`
    where they are tied; None: there are no ties.
    """

    up: Matrix
    down: Matrix
    bend: Matrix
    within: Matrix | None


class ChoiceLikelihood:
    """The log-likelihood of ballots, for `solvers.climb`; `weight` (ballots,) are their weights."""

    def __init__(self, ballots: RankedPlaces, weight: Vector, size: int) -> None:
        self.size = size
        tied = ((ballots.end - ballots.start > 1) & (ballots.start < ballots.ranked)).any(axis=0)
        self.ties = bool(tied.any())
        most = max(_ROWS, 2 * size * size // max(len(ballots.model), 1))
        self._parts = [
            (ballots.part(rows), weight[rows], rows, ties)
            for ties in (False, True)
            for rows in _cut(np.flatnonzero(tied == ties), most)
        ]

    def at(self, logits: Vector) -> Local:
        """Slopes and curvature at `logits` (n,). Raises `NotConvergedError` where they are too far apart."""
        gains, losses, coupling = self._sums(logits)
        return Local(gains - losses, gains + losses, coupling.sum(axis=1), coupling)

    def coupling(self, logits: Vector) -> Matrix:
        """The information matrix (n, n) without its diagonal, with reversed sign."""
        return self._sums(logits)[2]

    def _sums(self, logits: Vector) -> tuple[Vector, Vector, Matrix]:
        power, size = self._power(logits), self.size
        gains, losses, coupling = np.zeros(size), np.zeros(size), np.zeros(size * size)
        for part, weight, _, ties in self._parts:
            inside = power[part.model] * part.there
            terms = _tied(part, weight, inside) if ties else _strict(part, weight, inside)
            gains += np.bincount(part.model.ravel(), terms.up.ravel(), size)
            losses += np.bincount(part.model.ravel(), terms.down.ravel(), size)
            bend, code = terms.bend * inside, part.model * size
            for place in range(len(inside) - 1):
                both = bend[place] * inside[place + 1 :]
                if terms.within is not None:
                    group = np.arange(place + 1, len(inside))[:, None] < part.end[place]
                    both = np.where(group, terms.within[place] * inside[place] * inside[place + 1 :], both)
                key = code[place] + part.model[place + 1 :]
                coupling += np.bincount(key.ravel(), both.ravel(), size * size)
        square = coupling.reshape(size, size)
        return gains, losses, square + square.T

    def scores(self, logits: Vector, unit: NDArray[np.int32], units: int) -> Matrix:
        """Slopes summed by unit (units, n), where `unit` (ballots,) is each ballot's unit."""
        sums = np.zeros(units * self.size)
        for part, rows, terms in self._terms(logits):
            key = unit[rows].astype(np.intp) * self.size + part.model
            sums += np.bincount(key.ravel(), (terms.up - terms.down).ravel(), units * self.size)
        return sums.reshape(units, self.size)

    def largest_score(self, logits: Vector) -> float:
        """The largest term of the slopes, to which their rounding is relative."""
        return max(
            (float((terms.up + terms.down).max(initial=0.0)) for _, _, terms in self._terms(logits)), default=0.0
        )

    def _terms(self, logits: Vector) -> Iterator[tuple[RankedPlaces, NDArray[np.intp], _PlaceTerms]]:
        power = self._power(logits)
        for part, weight, rows, ties in self._parts:
            inside = power[part.model] * part.there
            yield part, rows, _tied(part, weight, inside) if ties else _strict(part, weight, inside)

    def log_likelihood(self, logits: Vector) -> float:
        """The log-likelihood of `logits` (n,)."""
        power, total = self._power(logits), 0.0
        chosen = logits - logits.max(initial=-np.inf)
        for part, weight, _, _ in self._parts:
            tail, stage = _tail(power[part.model] * part.there), _stages(part, weight)
            positive = stage > 0.0
            total += float(_won(part, stage)[part.there] @ chosen[part.model[part.there]])
            total -= float(stage[positive] @ np.log(_left(part, tail)[positive]))
        return total

    def wins(self) -> Matrix:
        """The weight (n, n) by which each model was placed above each other; a tie is half, unranked pairs are 0."""
        wins = np.zeros(self.size * self.size)
        for part, weight, _, ties in self._parts:
            for place in range(len(part.model) - 1):
                mass = weight * (place < part.ranked) * part.there[place + 1 :]
                key = part.model[place] * self.size + part.model[place + 1 :]
                if ties:
                    half = 0.5 * mass * (np.arange(place + 1, len(part.model))[:, None] < part.end[place])
                    back = part.model[place + 1 :] * self.size + part.model[place]
                    wins += np.bincount(back.ravel(), half.ravel(), len(wins))
                    mass = mass - half
                wins += np.bincount(key.ravel(), mass.ravel(), len(wins))
        return wins.reshape(self.size, self.size)

    def _power(self, logits: Vector) -> Vector:
        if len(logits) and not np.ptp(logits) <= _SPAN:
            raise NotConvergedError(f"ratings came to be more than {_SPAN:g} logits apart: give a ridge")
        return np.asarray(np.exp(logits - logits.max(initial=-np.inf)))


def _cut(rows: NDArray[np.intp], size: int) -> list[NDArray[np.intp]]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _tail(inside: Matrix) -> Matrix:
    """The sum of exponentials at and below each place (places + 1, ballots)."""
    return _before(inside[::-1])[::-1]


def _stages(part: RankedPlaces, weight: Vector) -> Matrix:
    """The weight of the choice at each place: 0 where one model remains, and at unranked models."""
    made = np.arange(len(part.model))[:, None] < np.minimum(part.ranked, part.shown - 1)
    return np.asarray(weight * made)


def _share(part: RankedPlaces) -> Matrix:
    """The share of its group's sum that counts at each place: 1 at first, 1 / m at last."""
    return np.asarray((part.end - np.arange(len(part.model))[:, None]) / (part.end - part.start))


def _left(part: RankedPlaces, tail: Matrix) -> Matrix:
    """The sum D over the models of a choice; a weighted mean, so that no precision is lost."""
    share = _share(part)
    behind = np.take_along_axis(tail, part.end, axis=0)
    return share * np.take_along_axis(tail, part.start, axis=0) + (1.0 - share) * behind


def _won(part: RankedPlaces, stage: Matrix) -> Matrix:
    """The choices of each place: those of its group, shared equally."""
    return _within(part, stage) / (part.end - part.start)


def _within(part: RankedPlaces, values: Matrix) -> Matrix:
    """Sums over each place's own group."""
    sums = _before(values)
    return np.take_along_axis(sums, part.end, axis=0) - np.take_along_axis(sums, part.start, axis=0)


def _before(values: Matrix) -> Matrix:
    """Sums over all places above (places + 1, ballots); by whole rows, faster than NumPy's cumulative sum."""
    sums = np.zeros((len(values) + 1, values.shape[1]))
    for index, row in enumerate(values):
        np.add(sums[index], row, out=sums[index + 1])
    return sums


def _strict(part: RankedPlaces, weight: Vector, inside: Matrix) -> _PlaceTerms:
    """Ballots without ties among ranked models: each place is a separate choice."""
    tail, stage = _tail(inside), _stages(part, weight)
    once = np.divide(stage, tail[:-1], out=np.zeros_like(stage), where=stage > 0.0)
    twice = np.divide(once, tail[:-1], out=np.zeros_like(stage), where=stage > 0.0)
    # The slope of a choice is 1 minus its probability, written so that a probability near 1 keeps its precision.
    return _PlaceTerms(once * tail[1:], inside * _before(once)[:-1], _before(twice)[1:], None)


def _tied(part: RankedPlaces, weight: Vector, inside: Matrix) -> _PlaceTerms:
    tail, stage = _tail(inside), _stages(part, weight)
    left, share = _left(part, tail), _share(part)
    once = np.divide(stage, left, out=np.zeros_like(left), where=stage > 0.0)
    twice = np.divide(once, left, out=np.zeros_like(left), where=stage > 0.0)
    alone = part.end - part.start == 1
    up = np.where(alone, once * tail[1:], _won(part, stage))
    down = np.take_along_axis(_before(once), part.start, axis=0)
    down = inside * np.where(alone, down, down + _within(part, share * once))
    above = np.take_along_axis(_before(twice), part.start, axis=0)
    bend, within = (above + _within(part, share**power * twice) for power in (1, 2))
    return _PlaceTerms(up, down, bend, within)
