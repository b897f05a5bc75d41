"""Ballots: rankings of several models at once, and the way from them to pairs and from pairs back to them.

Two models that a ballot showed and did not rank are tied below those that it did. To a voting method that is half a
vote for each. To a rating it says nothing: the rule of choice under which a pair of ranked models is won by
sigma(R_A - R_B) wins by that same share, over all ballots that rank at least one of the two, while ties among the many
that nobody ranked would draw their ratings together (docs/ballots.md, "Ballots").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.ballots import Ballots
from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.records import Status
from venire.ratings.data.ballot_columns import names_of, ranks_of, repeats_of, weights_of
from venire.ratings.data.judgments import Judgments
from venire.ratings.data.merging import combine
from venire.ratings.data.own_models import own_models
from venire.ratings.data.validation import code_integers
from venire.ratings.data.votes import Votes

__all__ = [
    "Unranked",
    "ballot_votes",
    "ballots",
    "ballots_of",
    "incomplete",
    "paired",
    "select",
    "truncated",
    "without_own",
]

Unranked = Literal["below", "absent"]
"""What a model without a row on a ballot is: shown and not ranked, where the instruction's other ballots have it; or
not shown."""

_UNNAMED = "unnamed"
_PART = 1 << 20
"""Pairs made at a time, so that what is made on the way stays small beside what is kept."""


def ballots(
    judge: Any,
    instruction: Any,
    model: Any,
    rank: ArrayLike,
    *,
    repeat: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    unranked: Unranked = "below",
) -> Ballots:
    """Ballots from long columns (rows,), one row a model on a ballot; a ballot is one (judge, instruction, repeat).

    `judge`, `instruction` and `model` are names or integers; None: one judge, no instructions. `rank` is any number
    above 0, smaller is better and equal is tied, NaN is shown and not ranked; it becomes 1, 2, 2, 4. `repeat` counts
    from 1, `weight` is one figure a ballot. A model without a row on a ballot is "below" where another ballot on the
    same instruction has it, unless it is the judge itself; or always "absent". Names come out sorted. Raises
    `InputError` that names the argument and the row (the first is 0).
    """
    if unranked not in get_args(Unranked):
        raise InputError(f"unranked is {unranked!r}; choose one of {', '.join(get_args(Unranked))}")
    models, of_model = names_of("model", model)
    rows = len(of_model)
    judges, of_judge = names_of("judge", judge, rows) if judge is not None else ((_UNNAMED,), np.zeros(rows, np.int32))
    instructions, asked = (
        ((), np.full(rows, -1, np.int32)) if instruction is None else names_of("instruction", instruction, rows)
    )
    places, times = ranks_of(rank, rows), repeats_of(repeat, rows)
    key = combine(of_judge, asked + 1, times)
    _, first, ballot = np.unique(key, return_index=True, return_inverse=True)
    _refuse_twice(combine(ballot, of_model), models, of_model)
    table = np.full((len(first), len(models)), np.nan)
    table[ballot, of_model] = places
    found = Ballots(
        models=models,
        judges=judges,
        instructions=instructions,
        judge=of_judge[first],
        instruction=asked[first],
        repeat=times[first],
        rank=table,
        weight=weights_of(weight, rows, ballot, first),
    )
    return replace(found, rank=_competition(_below(found) if unranked == "below" else table))


def _below(given: Ballots) -> NDArray[np.float64]:
    """The ranks with models that an instruction's other ballots show put below, but never a judge on its own."""
    group = given.instruction + 1
    shown = np.zeros((int(group.max(initial=0)) + 1, len(given.models)), dtype=np.bool_)
    ballot, model = np.nonzero(~np.isnan(given.rank))
    shown[group[ballot], model] = True
    itself = own_models(given.judges, given.models)[given.judge]
    missing = shown[group] & np.isnan(given.rank) & ~itself
    return np.where(missing, np.inf, given.rank)


def select(given: Ballots, rows: NDArray[Any]) -> Ballots:
    """The same table with some of its ballots, by mask or by position; the names keep their codes."""
    columns = {name: getattr(given, name) for name in ("judge", "instruction", "repeat", "rank", "weight")}
    return replace(given, **{name: column[rows] for name, column in columns.items() if column is not None})


def truncated(given: Ballots, best: int) -> Ballots:
    """Ballots that rank the best few alone, with all that are tied at the last place; the others are below.

    Raises `InputError` for `best` below 1.
    """
    if best < 1:
        raise InputError(f"best is {best}; give 1 or more")
    return replace(given, rank=np.where(given.rank > best, np.inf, given.rank))


def without_own(given: Ballots, peers: Mapping[str, str]) -> Ballots:
    """The same ballots without what a judge said of itself; `peers` is from judges to models, beside equal names."""
    itself = own_models(given.judges, given.models, peers)[given.judge]
    return replace(given, rank=_competition(np.where(itself, np.nan, given.rank)))


def ballot_votes(given: Ballots) -> Votes:
    """The weight of ballots that prefer each model to each other; a tie, also of two unranked, is half to each.

    A ballot that ranks nothing says nothing.
    """
    said, size = select(given, _says(given)), len(given.models)
    weight = np.zeros(size * size)
    for rows, a, b, sign, _ in _pairs(said):
        share = 0.5 + 0.5 * sign
        counted = np.ones(len(rows)) if said.weight is None else said.weight[rows]
        weight += np.bincount(a.astype(np.int64) * size + b, counted * share, size * size)
        weight += np.bincount(b.astype(np.int64) * size + a, counted * (1.0 - share), size * size)
    return Votes(given.models, weight.reshape(size, size))


def paired(given: Ballots, status: NDArray[np.int8] | None = None) -> Battles:
    """Ballots as verdicts, a row for each two models of a ballot of which one is ranked at least.

    `status` (ballots,) says why a ballot ranks nothing, unreadable unless told: all its pairs are then such verdicts.
    Rows of one instruction share their noise, and rows of one ballot where no instruction is known. The order shown is
    not known. What ballots there are to read stay with the battles.
    """
    says = _says(given)
    unread = np.full(len(given), Status.UNREADABLE, dtype=np.int8) if status is None else status
    parts: list[tuple[NDArray[Any], ...]] = [
        tuple(np.zeros(0, dtype=kind) for kind in (np.int32, np.int32, np.int32, np.int8))
    ]
    for rows, a, b, sign, unranked in _pairs(given):
        kept = ~unranked | ~says[rows]
        parts.append((rows[kept], a[kept], b[kept], sign[kept]))
    ballot, a, b, sign = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    if np.any(ballot[1:] < ballot[:-1]):  # ballots of several sizes came size by size
        order = np.argsort(ballot, kind="stable")
        ballot, a, b, sign = ballot[order], a[order], b[order], sign[order]
    named = bool(given.instructions)
    return Battles(
        models=given.models,
        judges=given.judges,
        instructions=given.instructions,
        model_a=a,
        model_b=b,
        judge=given.judge[ballot],
        instruction=given.instruction[ballot],
        repeat=given.repeat[ballot],
        swapped=np.zeros(len(ballot), dtype=np.bool_),
        status=np.where(says, np.int8(Status.OK), unread)[ballot].astype(np.int8),
        label=sign,
        ordered=False,
        weight=None if given.weight is None else given.weight[ballot],
        cluster=None if named else ballot,
        clusters=() if named else _titles(given),
        ballots=select(given, says),
    )


def _titles(given: Ballots) -> tuple[str, ...]:
    """A name for each ballot of a table that names no instruction."""
    judges = [given.judges[code] for code in given.judge.tolist()]
    return tuple(f"{judge}, repeat {time}" for judge, time in zip(judges, given.repeat.tolist(), strict=True))


def _says(given: Ballots) -> NDArray[np.bool_]:
    """Which ballots rank a model."""
    return np.asarray(np.isfinite(given.rank).any(axis=1))


def _pairs(
    given: Ballots,
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int8], NDArray[np.bool_]]]:
    """Each two models of each ballot, in parts: ballot, models, 1 if the first is above, and if neither is ranked."""
    there = ~np.isnan(given.rank)
    sizes = there.sum(axis=1)
    for size in np.unique(sizes[sizes > 1]).tolist():
        i, j = np.triu_indices(size, 1)
        step = max(1, _PART // len(i))
        found = np.flatnonzero(sizes == size)
        for rows in (found[start : start + step] for start in range(0, len(found), step)):
            models = np.nonzero(there[rows])[1].astype(np.int32).reshape(-1, size)
            ranks = given.rank[rows][there[rows]].reshape(-1, size)
            first, second = ranks[:, i].ravel(), ranks[:, j].ravel()
            sign = (first < second).astype(np.int8) - (first > second).astype(np.int8)
            unranked = np.isinf(first) & np.isinf(second)
            yield np.repeat(rows.astype(np.int32), len(i)), models[:, i].ravel(), models[:, j].ravel(), sign, unranked


def ballots_of(judgments: Judgments) -> Ballots:
    """Judgments of pairs as ballots: models by the points that a judge gave them on an instruction, in one repeat.

    Only where the judge judged all pairs of the models that it met there; `incomplete` counts the others. Equal points
    are a tie. Raises `InputError` where no ballot is complete.
    """
    first, group, table, complete = _groups(judgments)
    if not complete.any():
        raise InputError(
            "no ballot can be made of these judgments: no judge judged all pairs of the models that it met on an "
            "instruction; give ballots (columns judge, instruction_id, model, rank), or choose a method for pairs"
        )
    there = ~np.isnan(table)
    # Sums of shares that print alike are equal points: their last bits must not decide.
    places = _competition(np.where(there, -np.round(table, 9), np.nan))
    weight = None
    if judgments.weight is not None:
        weight = np.bincount(group, judgments.weight) / np.bincount(group)
    found = Ballots(
        models=judgments.models,
        judges=judgments.judges,
        instructions=judgments.instructions,
        judge=judgments.judge[first],
        instruction=judgments.instruction[first],
        repeat=judgments.repeat[first],
        rank=places,
        weight=weight,
    )
    return select(found, complete)


def incomplete(judgments: Judgments) -> int:
    """How many (judge, instruction, repeat) lack a pair of their models, so that `ballots_of` leaves them out."""
    return int(np.count_nonzero(~_groups(judgments)[3]))


def _groups(
    judgments: Judgments,
) -> tuple[NDArray[np.intp], NDArray[np.int32], NDArray[np.float64], NDArray[np.bool_]]:
    """Groups of judgments that may be a ballot: a row of each, the group of each row, points, and which have all pairs.

    Points (groups, models) are NaN for models that a group does not have; a pair judged twice counts its mean.
    """
    size = len(judgments.models)
    key = combine(judgments.judge, judgments.instruction + 1, judgments.repeat)
    found, group = code_integers(key)
    first = np.empty(len(found), dtype=np.intp)
    first[group[::-1]] = np.arange(len(group))[::-1]  # of several rows the first one, written last, stays
    cell = (group.astype(np.int64) * size + judgments.model_a) * size + judgments.model_b
    pairs, where = code_integers(cell)
    y = np.bincount(where, judgments.y, len(pairs)) / np.bincount(where, minlength=len(pairs))
    of_pair, both = np.divmod(pairs, max(size * size, 1))
    a, b = np.divmod(both, max(size, 1))
    points = np.bincount(of_pair * size + a, y, len(first) * size) + np.bincount(
        of_pair * size + b, 1.0 - y, len(first) * size
    )
    met = np.bincount(np.concatenate([of_pair * size + a, of_pair * size + b]), minlength=len(first) * size) > 0
    met = met.reshape(len(first), size)
    count = met.sum(axis=1)
    complete = np.bincount(of_pair, minlength=len(first)) == count * (count - 1) // 2
    return first, group, np.where(met, points.reshape(len(first), size), np.nan), np.asarray(complete)


def _competition(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers (ballots, models), smaller is better, as ranks 1, 2, 2, 4; infinite and NaN stay."""
    order = np.argsort(table, axis=1, kind="stable")
    ascending = np.take_along_axis(table, order, axis=1)
    fresh = np.ones(table.shape, dtype=np.bool_)
    fresh[:, 1:] = ascending[:, 1:] != ascending[:, :-1]
    place = np.maximum.accumulate(np.where(fresh, np.arange(1, table.shape[1] + 1), 0), axis=1)
    ranks = np.empty(table.shape)
    np.put_along_axis(ranks, order, place.astype(np.float64), axis=1)
    return np.where(np.isfinite(table), ranks, table)


def _refuse_twice(cell: NDArray[np.int64], models: tuple[str, ...], model: NDArray[np.int32]) -> None:
    order = np.argsort(cell, kind="stable")
    again = np.flatnonzero(cell[order][1:] == cell[order][:-1])
    if len(again):
        place = again[np.argmin(order[again + 1])]
        row, before = order[place + 1], order[place]
        raise InputError(f"model, row {row}: {models[model[row]]!r} stands on this ballot in row {before} already")
