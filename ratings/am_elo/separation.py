"""Separation in am-ELO: ratings and abilities without a finite maximum, what the fit leaves out, and why.

The likelihood of a judge whose every verdict agrees (or disagrees) with the order of the ratings increases without
bound of its ability. In the limit its log-likelihood is 0, and it carries no information except that order. The fit
removes this judge, fits the rest, and leaves it out if the order of the rest agrees with it. If not, the judge
separates models that the others would order the other way. The limit is then its order with those models equal; a very
large ability approximates this. A judge at this edge that contradicts itself among these models, and would gain by a
smaller ability, returns to the fit. Models are separated where no chain of wins, each read with the sign of its judge's
ability, leads both ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.ratings.am_elo.fit import Peak, Penalty, arrow, maximise
from venire.ratings.am_elo.likelihood import Cells, Point, odds_at
from venire.ratings.data.wins import WinCounts
from venire.ratings.pairwise.solvers import NotConvergedError

_FAR = 30.0
"""Ability, at ratings of unit spread, from which that of a judge without a contradiction is treated as infinite."""

_VAST = 1e4
"""The same threshold for a judge that contradicts itself on models that the others find nearly equal."""

_SOON = 100.0
"""The same threshold where no optimisation reached the above."""

_WIDE = 15.0
"""Log odds beyond which the rating of a model may be diverging."""

_EDGE = (1e3, 1e4, 1e5, 1e6, 1e7)
"""Abilities, in the same unit, that replace an infinite ability where a judge's order holds models equal."""

_RECEDES = 1e-6
"""Slope in nats below which a smaller ability fits a judge at the edge better."""

_LITTLE = 1e-7
"""Information per verdict of a judge below which its habits are not identified."""

_LEAP = 2.0

Vector = NDArray[np.float64]

Codes = NDArray[np.intp]

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class LimitFit:
    """The fit of the models and judges with a finite maximum, and the judges and models left out.

    `models` and `judges` are the codes of `part`, whose maximum is `peak`. `held` (judges of it, b) marks parameters
    that were held in the fit, `fixed` (all judges, b) parameters excluded from fitting. `edge` are judges of the fit
    whose order holds models equal; `endless` are judges out of the fit that agree or disagree with all of it.
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
    """State of the fit: `alive` models, `endless` judges out of it, those `tried` again, and those at the `edge`.

    `freed` judges were at the edge and returned; once it is `settled`, no other judge does. An ability from `vast` on
    is treated as infinite.
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
    """The maximum reached from a start, in the limit where it is not finite; None where nothing can be fitted.

    `start` covers all models and judges, `fixed` (judges, b) marks fixed parameters. Ties between groups of equal size
    are broken by weight, then by `names`. A judge whose verdicts do not distinguish its position bias from its ability
    is fitted without that bias. Raises `InputError` for a judge whose ties are not informative, and
    `NotConvergedError`.
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
    """All connected models, and all judges except those with verdicts on one pair only, always the same way."""
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
    """The maximum from the current state, and whether the optimisation stopped because a parameter diverges.

    A `blind` optimisation continues: the apparent divergence was false.
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
    """Judges (judges,) with an ability or a habit beyond the range that verdicts of both kinds would lead to."""
    size = np.abs(np.where(fixed, 0.0, point.local))
    size[:, 0] *= point.spread
    return np.asarray((size > _FAR).any(axis=1))


def _unplaced(part: Cells, point: Point, state: _State, judges: Codes, names: tuple[str, ...]) -> bool:
    """Fit judges whose parameters diverge without their position bias; whether there were any."""
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
    """Mask of the ability among a judge's fitted parameters (1, b)."""
    return np.asarray(np.arange(fixed.shape[1])[None, :] == 0)


def verdict_directions(cells: Cells, odds: Vector) -> NDArray[np.int8]:
    """For each judge (judges,) 1 where every verdict is on the side that `odds` (cells,) favour, -1 where none is.

    0 means that a judge has verdicts of both kinds, ties, verdicts on equal models, or no verdicts.
    """
    ahead, behind = odds > 0.0, odds < 0.0
    level = cells.mixed | ~(ahead | behind)
    against = cells.by_judge(np.where(level | (ahead & (cells.lost > 0.0)) | (behind & (cells.won > 0.0)), 1.0, 0.0))
    with_it = cells.by_judge(np.where(level | (ahead & (cells.won > 0.0)) | (behind & (cells.lost > 0.0)), 1.0, 0.0))
    some = cells.by_judge(None) > 0.0
    return np.asarray((some & (against == 0.0)).astype(np.int8) - (some & (with_it == 0.0)), dtype=np.int8)


def _runaways(part: Cells, point: Point, state: _State, judges: Codes, halted: bool) -> bool:
    """Move judges that diverge out of the fit, or to the edge if they were out before; whether there were any."""
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
    """Return judges whose verdicts contradict the order of the rest to the fit; whether there were any."""
    ratings = np.full(cells.models, np.nan)
    ratings[state.alive] = state.point.ratings[state.alive]
    part = cells.among(state.alive, np.arange(cells.judges))
    gap = ratings[state.alive][part.upper] - ratings[state.alive][part.lower]
    there = part.by_judge(None) > 0.0
    back = state.endless & there & (verdict_directions(part, gap) == 0)
    # A judge of a single pair contradicts no one. It has an ability if it gives both verdicts on models that differ.
    single = part.by_judge(None) == 1.0
    fits = _fitting(part, gap)
    fitted = single & ~state.tried & (fits != 0.0) & (np.abs(fits) * spread < _VAST)
    back &= ~single | fitted
    state.endless &= ~back
    state.tried |= back
    state.point.local[back, 0] = np.where(fitted, fits, np.sign(state.point.local[:, 0]) * _FAR / spread)[back]
    return bool(back.any())


def _fitting(part: Cells, gap: Vector) -> Vector:
    """The ability (judges,) that fits a judge's share of wins at these rating gaps; 0 where none does."""
    found = np.zeros(part.judges)
    both = (part.won > 0.0) & (part.lost > 0.0) & (gap != 0.0)
    found[part.judge[both]] = np.log(part.won[both] / part.lost[both]) / gap[both]
    return found


def _aside(cells: Cells, state: _State) -> float:
    """The maximum log-likelihood of judges out of the fit that give both verdicts on one pair, for any gap but 0."""
    part = cells.among(state.alive, np.flatnonzero(state.endless))
    both = (part.won > 0.0) & (part.lost > 0.0) & (part.by_judge(None) == 1.0)[part.judge]
    won, lost = part.won[both], part.lost[both]
    return float((won * np.log(won / (won + lost)) + lost * np.log(lost / (won + lost))).sum())


def _receded(part: Cells, point: Point, state: _State, judges: Codes) -> bool:
    """Free a judge at the edge that contradicts itself and fits better with less ability; whether there was one.

    The slope of the likelihood in the logarithm of its ability gives the gain. Each judge is freed once.
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
    """Return freed judges to the edge and free no more, if nothing else converges; whether there were any."""
    back = judges[state.freed[judges] & ~state.edge[judges]]
    state.edge[back], state.settled = True, True
    return bool(len(back))


def _groups(part: Cells, point: Point) -> Sequence[Codes]:
    """Models connected by chains of wins both ways; a win by a judge of negative ability is a loss."""
    ability = point.ability[part.judge]
    tied = np.zeros(len(part)) if part.tied is None else part.tied
    counted = np.abs(ability) * point.spread > 1e-9
    turned = ability < 0.0
    won = np.where(turned, part.lost, part.won) + tied
    lost = np.where(turned, part.won, part.lost) + tied
    return _joined(part, won * counted, lost * counted)


def _joined(part: Cells, won: Vector, lost: Vector) -> Sequence[Codes]:
    """Sets of models connected both ways by chains of wins, as counted (cells,) here."""
    return WinCounts(tuple(map(str, range(part.models))), part.upper, part.lower, won, lost).strong_components()


def _chosen(groups: Sequence[Codes], part: Cells, codes: Codes, names: tuple[str, ...]) -> Codes:
    """The group with the most models; among equals the group with more judgments, then the first by name."""
    weight = np.bincount(part.upper, part.weight, part.models) + np.bincount(part.lower, part.weight, part.models)
    return np.sort(
        min(groups, key=lambda group: (-len(group), -weight[group].sum(), min(names[codes[code]] for code in group)))
    )


def warm_start(cells: Cells, start: Point, fixed: Mask, penalty: Penalty) -> Point:
    """The start with each ability one step closer to its fit at these ratings; this halves the iterations."""
    here = arrow(cells, start, penalty, fixed)
    own = here.inner[:, 0, 0]
    step = np.divide(here.local_pull[:, 0], own, out=np.zeros(len(own)), where=own > 0.0)
    local = start.local.copy()
    local[:, 0] += np.clip(step, -_LEAP, _LEAP)
    return Point(start.ratings, local)


def judge_reasons(
    judges: Sequence[str], cells: Cells, logits: Vector, ability: Vector, limit: LimitFit
) -> dict[str, str]:
    """The reason why an ability (judges,) is not finite, or a habit is unknown, by the judge's name."""
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
    """The reason why a model has no rating, by its name; wins by a judge of negative ability are losses."""
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
