"""Peer evaluation: models that judge each other, each by its own verdicts and by those of the others.

Source: *LLMs Judge Themselves: A Game-Theoretic Framework for Human-Aligned Evaluation*, arXiv 2510.15746.

Differences are of positions (1 is the best) or of points lost: a value below 0 means that a model is better by its own
verdicts. For log odds (`self_preference_odds`) a value above 0 means this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Ballots
from venire.arena.errors import InputError
from venire.arena.wording import suggest
from venire.ratings.data.ballots import ballot_votes, ballots_from_judgments, select_ballots, to_battles, without_own
from venire.ratings.data.judgments import Judgments, combine_keys, merge_orders
from venire.ratings.data.models import model_of_judge, own_models
from venire.ratings.data.statistics import ranks, student
from venire.ratings.data.validation import check_level, code_integers, finite_or_none
from venire.ratings.data.votes import Order, Votes, votes
from venire.ratings.peers.self_preference import SelfPreferenceOdds, features_held, self_preference_odds
from venire.ratings.voting.kemeny import kemeny_young

Aggregate = Callable[[Votes], Order]
"""An aggregation of votes to one order: `kemeny.kemeny_young`, or another voting method."""

_MAX_MOVED = 0.5
"""Number of positions that own verdicts may move a model without a warning (the paper's convention)."""

Unit = Literal["positions", "share of points lost"]

_Difference = tuple[float | None, float | None, NDArray[np.float64]]
"""A model's evaluation by itself, by others, and the difference on each instruction."""


@dataclass(frozen=True, slots=True, eq=False)
class Placings:
    """Positions by one judge on one instruction (rows), as means over repeats.

    `position` (rows, models) is 1 for the best; tied models share the mean of their places, models that were not ranked
    share the places below, and NaN is a model that was not shown. `weight` (rows,) is the weight of the judge's ballots
    there.
    """

    judge: NDArray[np.int32]
    instruction: NDArray[np.int32]
    position: NDArray[np.float64]
    weight: NDArray[np.float64]


def placings(given: Ballots) -> Placings:
    """The positions that each judge gave on each instruction, without ballots of weight 0."""
    counted = np.ones(len(given)) if given.weight is None else given.weight
    if not (counted > 0.0).all():
        given, counted = select_ballots(given, counted > 0.0), counted[counted > 0.0]
    table = np.where(np.isinf(given.rank), len(given.models) + 1.0, given.rank)
    there = ~np.isnan(table)
    # Absent models are ranked behind all others, where they change no position.
    places = np.where(there, ranks(np.where(there, table, np.inf)), 0.0) if len(given) else table
    _, first, group = np.unique(
        combine_keys(given.judge, given.instruction + 1), return_index=True, return_inverse=True
    )
    sums, total = np.zeros((2, len(first), len(given.models)))
    np.add.at(sums, group, counted[:, None] * places)
    np.add.at(total, group, counted[:, None] * there)
    mean = np.where(total > 0.0, sums / np.where(total > 0.0, total, 1.0), np.nan)
    weight = np.bincount(group, counted, len(first)) / np.maximum(np.bincount(group, minlength=len(first)), 1)
    return Placings(given.judge[first], given.instruction[first], mean, weight)


def complete(given: Judgments) -> tuple[Ballots | None, int, int]:
    """The ballots from pairwise judgments, and how many of how many (judge, instruction, repeat) lack a pair.

    None where all of them do.
    """
    groups, _ = code_integers(combine_keys(given.judge, given.instruction + 1, given.repeat))
    try:
        found = ballots_from_judgments(given)
    except InputError:  # the only reason to raise
        return None, len(groups), len(groups)
    return found, len(groups) - len(found), len(groups)


def by_judge(given: Judgments | Ballots) -> dict[str, NDArray[np.float64]]:
    """Positions (instructions, models) by each judge, NaN where it gave none; judges without any are left out.

    A pairwise judge has positions where it judged all pairs of an instruction, by the points that it gave.
    """
    if not isinstance(given, Ballots):
        whole, _, _ = complete(given)
        if whole is None:
            return {}
        given = whole
    seen, size = placings(given), max(len(given.instructions), 1)
    found = {}
    for code, name in enumerate(given.judges):
        rows = seen.judge == code
        if rows.any():
            found[name] = np.full((size, len(given.models)), np.nan)
            found[name][seen.instruction[rows] if given.instructions else 0] = seen.position[rows]
    return found


def order_by(aggregate: Aggregate, given: Judgments | Ballots) -> Order:
    """One order of all models from all verdicts."""
    return aggregate(ballot_votes(given) if isinstance(given, Ballots) else votes(given.comparisons()))


def orders_by_instruction(aggregate: Aggregate, given: Judgments | Ballots) -> NDArray[np.float64]:
    """Positions (instructions, models) in one order per instruction; NaN for a model that it lacks.

    Without instructions, all verdicts count as one instruction.
    """
    code, size = given.instruction, len(given.instructions)
    if not size:
        return order_by(aggregate, given).position[None, :]
    order = np.argsort(code, kind="stable")
    ends = np.cumsum(np.bincount(code, minlength=size))
    found = np.full((size, len(given.models)), np.nan)
    data = None if isinstance(given, Ballots) else given.comparisons()
    for number, rows in enumerate(np.split(order, ends[:-1])):
        if not len(rows):
            continue
        if isinstance(given, Ballots):
            said = ballot_votes(select_ballots(given, rows))
        elif data is not None:
            said = votes(data.select(rows))
        found[number] = aggregate(said).position
    return found


def self_free(given: Judgments | Ballots, peers: Mapping[str, str]) -> Judgments | Ballots:
    """The same data without judges' verdicts on themselves; `peers` maps judges to models of another name."""
    if isinstance(given, Ballots):
        return without_own(given, peers)
    own = model_of_judge(given.judges, given.models, peers)[given.judge]
    return given.select((own != given.model_a) & (own != given.model_b))


@dataclass(frozen=True, slots=True)
class SelfPeerGap:
    """A mean difference over `instructions`, with its standard error over them and Student's interval.

    None where undefined: the value without an instruction, its error with fewer than two instructions, or with so few
    that they may all be equal by chance.
    """

    value: float | None
    se: float | None
    lo: float | None
    hi: float | None
    instructions: int


@dataclass(frozen=True, slots=True)
class PeerRow:
    """One model that judges: `self_evaluation` by its `judges`, `peer_evaluation` by all others, and their `gap`.

    `gap` is the first minus the second, if both are known. A value below 0 may be self-preference, or a discriminating
    judge's view of a strong model (or an undiscriminating judge's of a weak model); `odds` are the self-preference
    beyond that.

    `sie` is its position in the order of all verdicts, `sfe` in the order without judges' verdicts on themselves, and
    `moved` the first minus the second. `moved_micro` is the mean of the same difference over orders of single
    instructions.
    """

    model: str
    judges: tuple[str, ...]
    self_evaluation: float | None
    peer_evaluation: float | None
    gap: SelfPeerGap
    odds: SelfPreferenceOdds
    sie: float | None
    sfe: float | None
    moved: float | None
    moved_micro: SelfPeerGap | None


@dataclass(frozen=True, slots=True, eq=False)
class PeerEvaluation:
    """The models that judge, by name; `unit` is the unit of `self_evaluation`, `peer_evaluation` and `gap`.

    `left_out` counts (judge, instruction) pairs that are not in the gaps: pairs were missing, or models that other
    judges were shown. `held` are features of answers that own odds hold equal. `inclusive` and `free` are the orders
    behind `sie` and `sfe`.
    """

    models: tuple[PeerRow, ...]
    unit: Unit
    level: float
    left_out: int
    held: tuple[str, ...]
    inclusive: Order
    free: Order
    warnings: tuple[str, ...]


def peer_evaluation(
    given: Judgments | Ballots,
    aggregate: Aggregate = kemeny_young,
    *,
    peers: Mapping[str, str] | None = None,
    unit: Unit | None = None,
    micro: bool = True,
    level: float = 0.95,
) -> PeerEvaluation:
    """Evaluate models that are judges by their own verdicts on themselves and by those of the others.

    `aggregate` combines votes to one order, by default with Kemeny-Young; `micro` also does this for each instruction.
    `peers` maps judges to models of another name. Pairwise judgments become positions by the points that a judge gave
    on an instruction; where more than half of these lack pairs, the unit is the share of points lost, over pairs of
    (instruction, opponent) that the model itself and others judged. Raises `InputError` where no judge is a model, and
    where positions are requested but no judgment gives any.

    >>> from venire.ratings import ballots, borda, peer_evaluation
    >>> given = ballots(list("aaabbbccc") * 2, ["q"] * 9 + ["r"] * 9, list("abc") * 6, [1, 2, 3, 2, 1, 3, 1, 3, 2] * 2)
    >>> found = peer_evaluation(given, borda)
    >>> [row.model for row in found.models]
    ['a', 'b', 'c']
    """
    check_level(level)
    own = model_of_judge(given.judges, given.models, peers or {})
    if not (own >= 0).any():
        raise InputError("no judge is one of the models: name who is whom in peers, judge by judge")
    if unit not in (None, *get_args(Unit)):
        raise InputError(f"unit is {unit!r}; {suggest(unit, get_args(Unit))}")
    counted, differences, left_out = _differences(given, own, unit)
    free = self_free(given, peers or {})
    inclusive, without = order_by(aggregate, given), order_by(aggregate, free)
    single = (
        _distance(orders_by_instruction(aggregate, given), orders_by_instruction(aggregate, free)) if micro else None
    )
    pairs = merge_orders(to_battles(given)) if isinstance(given, Ballots) else given
    odds = _odds(pairs, peers or {}, level)
    rows = []
    for code, said in differences.items():
        judges = tuple(name for name, model in zip(given.judges, own, strict=True) if model == code)
        moved = None if single is None else _gap(single[:, code], level)
        name = given.models[code]
        rows.append(_row(name, judges, said, odds[name], (inclusive, without), moved, level))
    rows.sort(key=lambda row: row.model)
    return PeerEvaluation(
        models=tuple(rows),
        unit=counted,
        level=level,
        left_out=left_out,
        held=tuple(features_held(pairs)),
        inclusive=inclusive,
        free=without,
        warnings=(*_warnings(rows), *_unproved(inclusive, without)),
    )


def _odds(pairs: Judgments, peers: Mapping[str, str], level: float) -> dict[str, SelfPreferenceOdds]:
    """Self-preference odds of each model that is a judge, by name; judges that are one model share one figure."""
    names = pairs.judges, pairs.models, peers
    together = model_of_judge(*names)
    found = self_preference_odds(pairs, own_models(*names), together=together, held=features_held(pairs), level=level)
    return {pairs.models[code]: one for code, one in found.items()}


def _row(
    model: str,
    judges: tuple[str, ...],
    said: _Difference,
    odds: SelfPreferenceOdds,
    orders: tuple[Order, Order],
    moved_micro: SelfPeerGap | None,
    level: float,
) -> PeerRow:
    inclusive, free = orders
    code = inclusive.models.index(model)
    own_mean, peer_mean, each = said
    return PeerRow(
        model=model,
        judges=judges,
        self_evaluation=own_mean,
        peer_evaluation=peer_mean,
        gap=_gap(each, level),
        odds=odds,
        sie=finite_or_none(inclusive.position[code]),
        sfe=finite_or_none(free.position[code]),
        moved=finite_or_none(_distance(inclusive.position, free.position)[code]),
        moved_micro=moved_micro,
    )


def _differences(
    given: Judgments | Ballots, own: NDArray[np.int64], unit: Unit | None
) -> tuple[Unit, Mapping[int, _Difference], int]:
    models = np.unique(own[own >= 0]).tolist()
    if isinstance(given, Ballots):
        if unit == "share of points lost":
            raise InputError("ballots have positions and no points; leave unit out")
        said, without = given, 0
    else:
        whole, without, groups = complete(given)
        if unit == "share of points lost" or (unit is None and 2 * without > groups):
            return "share of points lost", {code: _by_points(given, own, code) for code in models}, 0
        said = whole if whole is not None else ballots_from_judgments(given)  # raises the reason if there are none
    seen, left_out = _alike(placings(said))
    return "positions", {code: _by_positions(seen, own, code) for code in models}, without + left_out


def _alike(seen: Placings) -> tuple[Placings, int]:
    """The rows without those that lack a model of their instruction: positions among fewer are not comparable."""
    there, group = np.isfinite(seen.position), seen.instruction + 1
    every = np.zeros((int(group.max(initial=0)) + 1, there.shape[1]), dtype=np.bool_)
    np.logical_or.at(every, group, there)
    kept = np.all(there == every[group], axis=1)
    alike = Placings(seen.judge[kept], seen.instruction[kept], seen.position[kept], seen.weight[kept])
    return alike, int(np.count_nonzero(~kept))


def _by_positions(seen: Placings, own: NDArray[np.int64], code: int) -> _Difference:
    rows = np.isfinite(seen.position[:, code])
    itself = own[seen.judge[rows]] == code
    return _paired(itself, seen.instruction[rows] + 1, seen.position[rows, code], seen.weight[rows])


def _by_points(given: Judgments, own: NDArray[np.int64], code: int) -> _Difference:
    """Shares of points lost against each opponent on each instruction, by the model itself and by others."""
    rows = np.flatnonzero((given.model_a == code) | (given.model_b == code))
    first = given.model_a[rows] == code
    lost = np.where(first, 1.0 - given.y[rows], given.y[rows])
    opponent = np.where(first, given.model_b[rows], given.model_a[rows])
    weight = np.ones(len(rows)) if given.weight is None else given.weight[rows]
    itself = own[given.judge[rows]] == code
    _, where, cell = np.unique(
        combine_keys(given.instruction[rows] + 1, opponent), return_index=True, return_inverse=True
    )
    mine, others = (_means(cell[part], lost[part], weight[part], len(where)) for part in (itself, ~itself))
    both = np.isfinite(mine) & np.isfinite(others)
    group = given.instruction[rows][where][both] + 1
    size = int(group.max(initial=0)) + 1
    ours, theirs = (_means(group, side[both], np.ones(len(group)), size) for side in (mine, others))
    return _mean(ours), _mean(theirs), ours - theirs


def _paired(
    itself: NDArray[np.bool_], group: NDArray[np.int32], value: NDArray[np.float64], weight: NDArray[np.float64]
) -> _Difference:
    """Means over instructions that have both, and their difference on each."""
    size = int(group.max(initial=0)) + 1
    ours, theirs = (_means(group[part], value[part], weight[part], size) for part in (itself, ~itself))
    both = np.isfinite(ours) & np.isfinite(theirs)
    return _mean(ours[both]), _mean(theirs[both]), (ours - theirs)[both]


def _means(
    group: NDArray[np.int32] | NDArray[np.intp], value: NDArray[np.float64], weight: NDArray[np.float64], size: int
) -> NDArray[np.float64]:
    """The weighted mean of each group (size,); NaN for one without weight."""
    total = np.bincount(group, weight, size)
    sums = np.bincount(group, weight * value, size)
    return np.where(total > 0.0, sums / np.where(total > 0.0, total, 1.0), np.nan)


def _mean(values: NDArray[np.float64]) -> float | None:
    there = values[np.isfinite(values)]
    return float(there.mean()) if len(there) else None


def _gap(differences: NDArray[np.float64], level: float) -> SelfPeerGap:
    there = differences[np.isfinite(differences)]
    count = len(there)
    if count < 2:
        return SelfPeerGap(_mean(there), None, None, None, count)
    value, se = float(there.mean()), float(there.std(ddof=1)) / math.sqrt(count)
    if se == 0.0 and 2.0 * 0.5**count > 1.0 - level:  # so few may be equal by chance, by a sign test
        return SelfPeerGap(value, None, None, None, count)
    half = float(student.ppf(0.5 + level / 2.0, count - 1)) * se
    return SelfPeerGap(value, se, value - half, value + half, count)


def _distance(inclusive: NDArray[np.float64], free: NDArray[np.float64]) -> NDArray[np.float64]:
    """Positions with own verdicts minus those without (..., models), NaN where the two orders have different models.

    A position among fewer models is not comparable.
    """
    alike = (np.isfinite(inclusive) == np.isfinite(free)).all(axis=-1, keepdims=True)
    return np.where(alike, inclusive - free, np.nan)


def _warnings(rows: list[PeerRow]) -> list[str]:
    said = []
    for row in rows:
        micro = None if row.moved_micro is None else row.moved_micro.value
        for moved, where in ((row.moved, "in the order of all verdicts"), (micro, "on an average instruction")):
            if moved is not None and abs(moved) > _MAX_MOVED:
                way = "better" if moved < 0.0 else "worse"
                said.append(
                    f"{row.model} stands {abs(moved):.2f} positions {way} {where} with the verdicts of models on "
                    f"themselves than without: more than {_MAX_MOVED:g}"
                )
    return said


def _unproved(inclusive: Order, free: Order) -> list[str]:
    """Warnings about unproved orders, for methods that search for the order of least cost."""
    if inclusive.method != "kemeny" or (inclusive.proved and free.proved):
        return []
    return [
        "the order of all verdicts is the best found, not proved to be the best there is: sie and sfe may be others"
    ]
