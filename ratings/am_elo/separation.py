"""Separation in am-ELO: ratings and abilities without a finite maximum, who is left out of the fit, and why.

A judge whose every verdict agrees (or disagrees) with the order of the ratings fits ever better as its ability grows:
in the limit its verdicts cost nothing, and it says nothing but that order. It is taken out, the rest is fitted, and it
stays out if the rest's order agrees with it. If not, the judge holds models apart that the others would put the other
way round; the limit is then its order with those models equal, which a very large ability comes close to. One that
contradicts itself among them, and would gain by a smaller ability, comes back into the fit. Models are separated where
no chain of wins, each read with the sign of its judge's ability, leads both ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.ratings.am_elo.fit import Cells, Peak, Penalty, Point, arrow, maximise, odds_at
from venire.ratings.pairwise.components import strong_components_of
from venire.ratings.pairwise.solvers import NotConvergedError
from venire.ratings.pairwise.wins import WinCounts

__all__ = ["LimitFit", "climb_to_limit", "judge_reasons", "model_reasons", "verdict_directions", "warm_start"]

_FAR = 30.0
"""Ability, in ratings of unit spread, from which a judge without a contradiction is taken to have no finite one."""

_VAST = 1e4
"""The same for a judge that contradicts itself on models that the others find all but equal."""

_SOON = 100.0
"""The same where no climb came so far."""

_WIDE = 15.0
"""Log odds beyond which a model may be running away from the others."""

_EDGE = (1e3, 1e4, 1e5, 1e6, 1e7)
"""Abilities, in the same unit, that stand in for an infinite one where a judge's order holds models equal."""

_RECEDES = 1e-6
"""Slope in nats below which a judge at the edge is better off with a smaller ability."""

_LITTLE = 1e-7
"""Information of a judge, a verdict, below which its habits are not told."""

_LEAP = 2.0

Vector = NDArray[np.float64]

Codes = NDArray[np.intp]

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class LimitFit:
    """The fit of the models and judges that have a finite one, and who is left out.

    `models` and `judges` are the codes of `part`, whose maximum `peak` is; `held` (judges of it, b) marks what stood
    still in it, `fixed` (all judges, b) what was not to be fitted. `edge` are judges of the fit whose order holds
    models equal, and `endless` those out of it that agree or disagree with all of it.
    """

    part: Cells
    models: Codes
    judges: Codes
    peak: Peak
    held: Mask
    fixed: Mask
    edge: Codes
    endless: Codes


@dataclass(slots=True)
class _State:
    """Who is in the fit: `alive` models, `endless` judges out of it, those `tried` again, and those at the `edge`.

    `freed` judges were at the edge and came back; nobody else does once it is `settled`. An ability from `vast` on is
    taken to have no end.
    """

    point: Point
    fixed: Mask
    alive: Codes
    endless: Mask
    tried: Mask
    edge: Mask
    freed: Mask
    vast: float
    settled: bool = False
    steps: int = 0


def climb_to_limit(
    cells: Cells, start: Point, penalty: Penalty, fixed: Mask, names: tuple[str, ...], judge_names: tuple[str, ...]
) -> LimitFit | None:
    """The maximum that a start leads to, in the limit where it is not finite; None where nothing can be fitted.

    `start` covers all models and judges, `fixed` (judges, b) marks what stays as it is. Ties between groups of one
    size go by weight, then by `names`. A judge whose verdicts do not tell its habit of place from its
    ability is fitted without that habit. Raises `InputError` for one whose ties tell nothing, and `NotConvergedError`.
    """
    blind = False
    state = _begin(cells, start, penalty, fixed, names)
    for _ in range(8 + cells.models + 6 * cells.judges):
        judges = np.flatnonzero(cells.among(state.alive, np.arange(cells.judges)).by_judge(None) > 0)
        judges = judges[~state.endless[judges]]
        part = cells.among(state.alive, judges)
        if len(state.alive) < 2 or not len(part) or state.edge[judges].all():
            return None
        try:
            peak, halted = _fitted(part, state, judges, penalty, blind)
        except NotConvergedError:
            if not _back_at_edge(state, judges):
                if state.vast == _SOON:
                    raise
                state.vast = _SOON
            continue
        state.point.ratings[state.alive], state.point.local[judges] = peak.point.ratings, peak.point.local
        state.steps += peak.steps
        if _unplaced(part, peak.point, state, judges, judge_names):
            continue
        if penalty.abilities == 0.0 and _runaways(part, peak.point, state, judges, halted):
            continue
        groups = _groups(part, peak.point) if penalty.ratings == 0.0 else []
        if len(groups) > 1:
            state.alive = state.alive[_chosen(groups, part, state.alive, names)]
            continue
        if halted:
            blind = True
            continue
        if _released(cells, state, peak.point.spread) or _receded(part, peak.point, state, judges):
            blind = False
            continue
        held = state.fixed[judges] | (state.edge[judges][:, None] & _column(fixed))
        outside = np.flatnonzero(state.endless)
        peak = replace(peak, steps=state.steps, log_likelihood=peak.log_likelihood + _aside(cells, state))
        return LimitFit(part, state.alive, judges, peak, held, state.fixed, np.flatnonzero(state.edge), outside)
    raise NotConvergedError("ratings and abilities: which judges have a finite ability did not settle")


def _begin(cells: Cells, start: Point, penalty: Penalty, fixed: Mask, names: tuple[str, ...]) -> _State:
    """All models that hang together, and all judges but those that a single pair, always the same way, says nothing."""
    some = np.flatnonzero(
        np.bincount(cells.upper, minlength=cells.models) + np.bincount(cells.lower, minlength=cells.models)
    )
    part = cells.among(some, np.arange(cells.judges))
    if penalty.ratings == 0.0 and len(some):
        islands = _joined(part, part.weight, part.weight)
        some = some if len(islands) == 1 else some[_chosen(islands, part, some, names)]
    endless = np.zeros(cells.judges, dtype=np.bool_)
    if penalty.abilities == 0.0 and cells.tied is None and cells.first is None:
        endless = (cells.by_judge(None) == 1.0) & (cells.by_judge(cells.mixed.astype(np.float64)) == 0.0)
    nobody = np.zeros(cells.judges, dtype=np.bool_)
    return _State(
        Point(start.ratings.copy(), start.local.copy()),
        fixed.copy(),
        some,
        endless,
        nobody,
        nobody.copy(),
        nobody.copy(),
        _VAST,
    )


def _fitted(part: Cells, state: _State, judges: Codes, penalty: Penalty, blind: bool) -> tuple[Peak, bool]:
    """The maximum from where the state stands, and whether the climb was ended for somebody that runs away.

    A `blind` climb goes on: what looked like running away was none.
    """
    begin = Point(state.point.ratings[state.alive], state.point.local[judges])
    edge, held, freed = state.edge[judges], state.fixed[judges], state.freed[judges]
    halted = False

    def watch(point: Point) -> bool:
        nonlocal halted
        if blind:
            return False
        size = np.abs(point.ability) * point.spread
        odds = odds_at(part, point)
        if held.shape[1] > 1:
            placed = ~state.fixed[judges][:, 1:].all(axis=1)
            halted = bool(np.any(_beyond(point, state.fixed[judges]) & placed & ~edge))
        if penalty.abilities == 0.0 and np.any((size > _FAR) & ~edge):
            halted = halted or bool(
                np.any((size > _FAR) & ~edge & ((verdict_directions(part, odds) > 0) | ((size > state.vast) & ~freed)))
            )
        if not halted and penalty.ratings == 0.0 and float(np.abs(odds).max(initial=0.0)) > _WIDE:
            halted = len(_groups(part, point)) > 1
        return halted

    if not edge.any():
        return maximise(part, begin, penalty, held, watch), halted
    held = held | (edge[:, None] & _column(held))
    found: Peak | None = None
    for size in _EDGE:
        local = begin.local.copy()
        local[edge, 0] = np.sign(local[edge, 0]) * size / begin.spread
        try:
            found = maximise(part, Point(begin.ratings, local), penalty, held, watch)
        except NotConvergedError:
            if found is None:
                raise
            break
        begin = found.point
        if halted:
            break
    assert found is not None, "there is a first size"
    return found, halted


def _beyond(point: Point, fixed: Mask) -> Mask:
    """Judges (judges,) with an ability or a habit that no verdicts of both kinds would lead to."""
    size = np.abs(np.where(fixed, 0.0, point.local))
    size[:, 0] *= point.spread
    return np.asarray((size > _FAR).any(axis=1))


def _unplaced(part: Cells, point: Point, state: _State, judges: Codes, names: tuple[str, ...]) -> bool:
    """Fit judges that run away without their habit of place; whether there were any."""
    if point.local.shape[1] == 1:
        return False
    held = state.fixed[judges]
    inner = arrow(part, point, held=held).inner
    beyond = _beyond(point, held) | (np.linalg.eigvalsh(inner)[:, 0] < _LITTLE * part.by_judge(part.weight))
    if part.first is None:
        beyond &= ~state.fixed[judges, -1]
    else:
        beyond |= verdict_directions(part, odds_at(part, point)) > 0
        beyond &= ~state.fixed[judges, 1] | (~state.fixed[judges, -1] if part.tied is not None else False)
    beyond &= ~state.edge[judges]
    found = judges[beyond]
    if part.first is None or state.fixed[found, 1].any():
        unbounded = [names[code] for code in found.tolist() if part.first is None or state.fixed[code, 1]]
        if unbounded:
            raise InputError(
                f"judge {', '.join(unbounded[:5])}: wins and ties never contradict the order of the ratings, so that "
                "how freely it ties has no finite estimate: leave it out, or leave the habit of ties out"
            )
    state.fixed[found, 1] = True
    state.point.local[found, :2] = (1.0 / point.spread, 0.0)
    return bool(len(found))


def _column(fixed: Mask) -> Mask:
    """Marks the ability among what is fitted of a judge (1, b)."""
    return np.asarray(np.arange(fixed.shape[1])[None, :] == 0)


def verdict_directions(cells: Cells, odds: Vector) -> NDArray[np.int8]:
    """For each judge (judges,) 1 where every verdict is on the side that `odds` (cells,) favour, -1 where none is.

    0 stands for a judge with verdicts of both kinds, with ties, or on models that are equal, and for one without any.
    """
    ahead, behind = odds > 0.0, odds < 0.0
    level = cells.mixed | ~(ahead | behind)
    against = cells.by_judge(np.where(level | (ahead & (cells.lost > 0.0)) | (behind & (cells.won > 0.0)), 1.0, 0.0))
    with_it = cells.by_judge(np.where(level | (ahead & (cells.won > 0.0)) | (behind & (cells.lost > 0.0)), 1.0, 0.0))
    some = cells.by_judge(None) > 0.0
    return np.asarray((some & (against == 0.0)).astype(np.int8) - (some & (with_it == 0.0)), dtype=np.int8)


def _runaways(part: Cells, point: Point, state: _State, judges: Codes, halted: bool) -> bool:
    """Take judges that run away out of the fit, or to the edge where they were out before; whether there were any."""
    size, inside = np.abs(point.ability) * point.spread, ~state.edge[judges]
    separated = inside & (verdict_directions(part, odds_at(part, point)) > 0)
    if halted:
        separated &= size > _FAR
    vast = inside & ~separated & (size > state.vast) & ~state.freed[judges]
    single = part.by_judge(None) == 1.0
    tried = state.tried[judges]
    state.edge[judges[(separated & tried) | (vast & ~single)]] = True
    state.endless[judges[(separated & ~tried) | (vast & single)]] = True
    return bool((separated | vast).any())


def _released(cells: Cells, state: _State, spread: float) -> bool:
    """Put judges whose verdicts the rest's order contradicts back into the fit; whether there were any."""
    ratings = np.full(cells.models, np.nan)
    ratings[state.alive] = state.point.ratings[state.alive]
    part = cells.among(state.alive, np.arange(cells.judges))
    gap = ratings[state.alive][part.upper] - ratings[state.alive][part.lower]
    there = part.by_judge(None) > 0.0
    back = state.endless & there & (verdict_directions(part, gap) == 0)
    # A judge of a single pair contradicts nobody. It has an ability where it says both of models that are apart.
    single = part.by_judge(None) == 1.0
    fits = _fitting(part, gap)
    fitted = single & ~state.tried & (fits != 0.0) & (np.abs(fits) * spread < _VAST)
    back &= ~single | fitted
    state.endless &= ~back
    state.tried |= back
    state.point.local[back, 0] = np.where(fitted, fits, np.sign(state.point.local[:, 0]) * _FAR / spread)[back]
    return bool(back.any())


def _fitting(part: Cells, gap: Vector) -> Vector:
    """The ability (judges,) that a judge's share of wins asks for at these gaps of ratings; 0 where none does."""
    found = np.zeros(part.judges)
    both = (part.won > 0.0) & (part.lost > 0.0) & (gap != 0.0)
    found[part.judge[both]] = np.log(part.won[both] / part.lost[both]) / gap[both]
    return found


def _aside(cells: Cells, state: _State) -> float:
    """The log-likelihood of judges out of the fit that say both of one pair: at their best, however near 0 its gap."""
    part = cells.among(state.alive, np.flatnonzero(state.endless))
    both = (part.won > 0.0) & (part.lost > 0.0) & (part.by_judge(None) == 1.0)[part.judge]
    won, lost = part.won[both], part.lost[both]
    return float((won * np.log(won / (won + lost)) + lost * np.log(lost / (won + lost))).sum())


def _receded(part: Cells, point: Point, state: _State, judges: Codes) -> bool:
    """Set free a judge at the edge that contradicts itself and would rather be less able; whether there was one.

    What it would gain is told by the slope of the likelihood in the logarithm of its ability. Each is set free once.
    """
    edge = state.edge[judges] & ~state.freed[judges]
    if state.settled or not edge.any():
        return False
    slope = np.where(edge, arrow(part, point).local_pull[:, 0] * point.ability, 0.0)
    least = int(np.argmin(slope))
    if slope[least] >= -_RECEDES:
        return False
    state.edge[judges[least]], state.freed[judges[least]] = False, True
    state.point.local[judges[least], 0] = np.sign(point.ability[least]) * _FAR / point.spread
    return True


def _back_at_edge(state: _State, judges: Codes) -> bool:
    """Put judges that were set free back, and free no more, where no climb ends without it; whether there were any."""
    back = judges[state.freed[judges] & ~state.edge[judges]]
    state.edge[back], state.settled = True, True
    return bool(len(back))


def _groups(part: Cells, point: Point) -> list[Codes]:
    """Models that chains of wins join both ways, a win by a judge of negative ability being a loss."""
    ability = point.ability[part.judge]
    tied = np.zeros(len(part)) if part.tied is None else part.tied
    counted = np.abs(ability) * point.spread > 1e-9
    turned = ability < 0.0
    won = np.where(turned, part.lost, part.won) + tied
    lost = np.where(turned, part.won, part.lost) + tied
    return _joined(part, won * counted, lost * counted)


def _joined(part: Cells, won: Vector, lost: Vector) -> list[Codes]:
    """Sets of models that chains of wins, as counted (cells,) here, join both ways."""
    return strong_components_of(WinCounts(tuple(map(str, range(part.models))), part.upper, part.lower, won, lost))


def _chosen(groups: list[Codes], part: Cells, codes: Codes, names: tuple[str, ...]) -> Codes:
    """The group with the most models; of equals the one with more judgments, then the first by name."""
    weight = np.bincount(part.upper, part.weight, part.models) + np.bincount(part.lower, part.weight, part.models)
    return np.sort(
        min(groups, key=lambda group: (-len(group), -weight[group].sum(), min(names[codes[code]] for code in group)))
    )


def warm_start(cells: Cells, start: Point, fixed: Mask, penalty: Penalty) -> Point:
    """The start with each ability one step closer to what the ratings make of its judge: it halves the climb."""
    here = arrow(cells, start, penalty, fixed)
    own = here.inner[:, 0, 0]
    step = np.divide(here.local_pull[:, 0], own, out=np.zeros(len(own)), where=own > 0.0)
    local = start.local.copy()
    local[:, 0] += np.clip(step, -_LEAP, _LEAP)
    return Point(start.ratings, local)


def judge_reasons(
    judges: Sequence[str], cells: Cells, logits: Vector, ability: Vector, limit: LimitFit
) -> dict[str, str]:
    """Why an ability (judges,) is not finite, or a habit not known, by the judge's name."""
    some, edge = cells.by_judge(None), set(limit.edge.tolist())
    level = np.isfinite(logits)
    among = cells.among(np.flatnonzero(level), np.arange(cells.judges)).by_judge(None)
    reasons = {}
    for code in np.flatnonzero(~np.isfinite(ability)).tolist():
        way = "agree" if ability[code] > 0.0 else "disagree"
        if code in edge:
            why = (
                f"its verdicts {way} with the order of the ratings, however close they are: models that it tells apart "
                "come out equal"
            )
        elif np.isinf(ability[code]):
            why = f"its verdicts all {way} with the order of the ratings"
        elif some[code] == 0.0:
            why = "it has no readable judgment"
        elif among[code] == 0.0:
            why = "it judged no two of the models that are rated together"
        else:
            why = "it compared only models of equal ratings"
        reasons[judges[code]] = why
    if cells.first is not None:
        shown = cells.by_judge(np.abs(cells.first)) > 0.0
        for code in np.flatnonzero(shown & limit.fixed[:, 1] & np.isfinite(ability)).tolist():
            reasons[judges[code]] = "its verdicts do not tell a habit of place from its ability: fitted without"
    return reasons


def model_reasons(models: Sequence[str], cells: Cells, limit: LimitFit, ability: Vector) -> dict[str, str]:
    """Why a model has no rating, by its name; wins by a judge of negative ability are losses."""
    left = np.setdiff1d(np.arange(cells.models), limit.models)
    if not len(left):
        return {}
    theta = ability[cells.judge]
    turned = theta < 0.0
    tied = np.zeros(len(cells)) if cells.tied is None else cells.tied
    won, lost = np.where(turned, cells.lost, cells.won) + tied, np.where(turned, cells.won, cells.lost) + tied
    wins = np.bincount(cells.upper, won, cells.models) + np.bincount(cells.lower, lost, cells.models)
    losses = np.bincount(cells.upper, lost, cells.models) + np.bincount(cells.lower, won, cells.models)
    tail = ": no finite rating exists" + (
        "; wins by judges of negative ability count as losses" if turned.any() else ""
    )
    reasons = {}
    for code in left.tolist():
        if wins[code] + losses[code] == 0.0:
            why = "took part in no readable judgment"
        elif losses[code] == 0.0:
            why = "won every judgment it took part in" + tail
        elif wins[code] == 0.0:
            why = "lost every judgment it took part in" + tail
        else:
            why = (
                f"no chain of wins leads both to it and back from it among the {len(limit.models)} models rated" + tail
            )
        reasons[models[code]] = why
    return reasons
