"""Ballots: rankings of several models at once, from columns or judgments, and the battles and votes they imply.

Two models that a ballot shows but does not rank are tied below the ranked models. For a voting method this is half a
vote for each. For a rating it carries no information: the choice model in which a ranked pair is won with probability
sigma(R_A - R_B) gives the same probability over all ballots that rank at least one of the two, while ties among the
many unranked models would pull their ratings together (docs/ballots.md, "Ballots").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.battles import Ballots, Battles
from venire.arena.choices import Unranked
from venire.arena.errors import InputError
from venire.arena.records import Status
from venire.arena.wording import suggest
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.judgments import Judgments, combine_keys, merge_orders
from venire.ratings.data.models import own_models
from venire.ratings.data.validation import code_integers, code_labels, column
from venire.ratings.data.votes import Votes

_UNNAMED = "unnamed"
_PART = 1 << 20
"""Pairs generated at a time, so that temporary arrays stay small compared with the result."""
_NEEDED = (
    "ballots (columns judge, instruction_id, model, rank), or a judge that judged all pairs of three models or more on "
    "an instruction"
)


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
    """Ballots from long columns (rows,), one row per model and ballot; a ballot is one (judge, instruction, repeat).

    `judge`, `instruction` and `model` are names or integers; None: one judge, no instructions. `rank` is any number
    above 0: smaller is better, equal is tied, NaN means shown but not ranked. Ranks become 1, 2, 2, 4. `repeat` counts
    from 1, `weight` is one number per ballot. A model without a row on a ballot is "below" where another ballot on the
    same instruction has it, unless it is the judge itself; or always "absent". Names come out sorted. Raises
    `InputError` that names the argument and the row (the first is 0).

    >>> from venire.ratings import ballots
    >>> given = ballots(list("xxxyyy"), list("qqqqqq"), list("abcabc"), [1, 2, 3, 2, 1, 3])
    >>> given.models, len(given)
    (('a', 'b', 'c'), 2)
    """
    if unranked not in get_args(Unranked):
        raise InputError(f"unranked is {unranked!r}; {suggest(unranked, get_args(Unranked))}")
    models, of_model = _names_of("model", model)
    rows = len(of_model)
    judges, of_judge = _names_of("judge", judge, rows) if judge is not None else ((_UNNAMED,), np.zeros(rows, np.int32))
    instructions, asked = (
        ((), np.full(rows, -1, np.int32)) if instruction is None else _names_of("instruction", instruction, rows)
    )
    places, times = _ranks_of(rank, rows), repeats_of(repeat, rows)
    key = combine_keys(of_judge, asked + 1, times)
    _, first, ballot = np.unique(key, return_index=True, return_inverse=True)
    _refuse_twice(combine_keys(ballot, of_model), models, of_model)
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
        weight=_weights_of(weight, rows, ballot, first),
    )
    return replace(found, rank=_competition_ranks(_rank_unranked_below(found) if unranked == "below" else table))


def _rank_unranked_below(given: Ballots) -> NDArray[np.float64]:
    """The ranks with models that an instruction's other ballots show put below, but never a judge on its own."""
    group = given.instruction + 1
    shown = np.zeros((int(group.max(initial=0)) + 1, len(given.models)), dtype=np.bool_)
    ballot, model = np.nonzero(~np.isnan(given.rank))
    shown[group[ballot], model] = True
    itself = own_models(given.judges, given.models)[given.judge]
    missing = shown[group] & np.isnan(given.rank) & ~itself
    return np.where(missing, np.inf, given.rank)


def select_ballots(given: Ballots, rows: NDArray[Any]) -> Ballots:
    """The same table with some of its ballots, by mask or position; the names keep their codes."""
    columns = {name: getattr(given, name) for name in ("judge", "instruction", "repeat", "rank", "weight")}
    return replace(given, **{name: column[rows] for name, column in columns.items() if column is not None})


def truncated(given: Ballots, best: int) -> Ballots:
    """Ballots that rank only the `best` first models, with all ties at the last place; the others are below.

    Raises `InputError` for `best` below 1.
    """
    if best < 1:
        raise InputError(f"best is {best}; give 1 or more")
    return replace(given, rank=np.where(given.rank > best, np.inf, given.rank))


def without_own(given: Ballots, peers: Mapping[str, str]) -> Ballots:
    """The same ballots without self-votes; `peers` maps judges to models, in addition to equal names."""
    itself = own_models(given.judges, given.models, peers)[given.judge]
    return replace(given, rank=_competition_ranks(np.where(itself, np.nan, given.rank)))


def ballot_votes(given: Ballots) -> Votes:
    """Pairwise votes: the weight of ballots that prefer one model to another; ties, also unranked, are halves.

    A ballot that ranks nothing has no vote.

    >>> from venire.ratings import ballot_votes, ballots
    >>> given = ballots(list("xxxyyy"), list("qqqqqq"), list("abcabc"), [1, 2, 3, 2, 1, 3])
    >>> ballot_votes(given).models
    ('a', 'b', 'c')
    """
    ranking, size = select_ballots(given, _ranks_any(given)), len(given.models)
    weight = np.zeros(size * size)
    for rows, a, b, sign, _ in _pairs(ranking):
        share = 0.5 + 0.5 * sign
        counted = np.ones(len(rows)) if ranking.weight is None else ranking.weight[rows]
        weight += np.bincount(a.astype(np.int64) * size + b, counted * share, size * size)
        weight += np.bincount(b.astype(np.int64) * size + a, counted * (1.0 - share), size * size)
    return Votes(given.models, weight.reshape(size, size))


def to_battles(given: Ballots, status: NDArray[np.int8] | None = None) -> Battles:
    """Ballots as verdicts, one row for each pair of models of a ballot of which at least one is ranked.

    `status` (ballots,) states why a ballot ranks nothing, unreadable by default; all its pairs then get this status.
    Rows of one instruction share their noise, and rows of one ballot where no instruction is known. The presentation
    order is unknown. The readable ballots are kept with the battles.

    >>> from venire.ratings import ballots, to_battles
    >>> given = ballots(list("xxxyyy"), list("qqqqqq"), list("abcabc"), [1, 2, 3, 2, 1, 3])
    >>> len(to_battles(given).label)
    6
    """
    ranks_any = _ranks_any(given)
    unread = np.full(len(given), Status.UNREADABLE, dtype=np.int8) if status is None else np.asarray(status)
    if unread.shape != (len(given),):
        raise InputError(f"status has shape {unread.shape}; give one for each of {len(given)} ballots")
    parts: list[tuple[NDArray[Any], ...]] = [
        tuple(np.zeros(0, dtype=kind) for kind in (np.int32, np.int32, np.int32, np.int8))
    ]
    for rows, a, b, sign, unranked in _pairs(given):
        kept = ~unranked | ~ranks_any[rows]
        parts.append((rows[kept], a[kept], b[kept], sign[kept]))
    ballot, a, b, sign = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    if np.any(ballot[1:] < ballot[:-1]):  # ballots of several sizes are generated size by size
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
        status=np.where(ranks_any, np.int8(Status.OK), unread)[ballot].astype(np.int8),
        label=sign,
        ordered=False,
        weight=None if given.weight is None else given.weight[ballot],
        cluster=None if named else ballot,
        clusters=() if named else _titles(given),
        ballots=select_ballots(given, ranks_any),
    )


def _titles(given: Ballots) -> tuple[str, ...]:
    """A name for each ballot of a table without instructions."""
    judges = [given.judges[code] for code in given.judge.tolist()]
    return tuple(f"{judge}, repeat {time}" for judge, time in zip(judges, given.repeat.tolist(), strict=True))


def _ranks_any(given: Ballots) -> NDArray[np.bool_]:
    """Which ballots rank at least one model."""
    return np.asarray(np.isfinite(given.rank).any(axis=1))


def _pairs(
    given: Ballots,
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int8], NDArray[np.bool_]]]:
    """All pairs of each ballot, in parts: ballot, models, 1 if the first is above, and whether neither is ranked."""
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


def ballots_from_judgments(judgments: Judgments) -> Ballots:
    """Judgments of pairs as ballots: models by the points that a judge gave them on an instruction, in one repeat.

    Only where the judge judged all pairs of the models that it saw there; `count_incomplete` counts the others. Equal
    points are a tie. Raises `InputError` where no ballot is complete.

    >>> from venire.ratings import ballots, ballots_from_judgments, merge_orders, to_battles
    >>> given = ballots(list("aaabbbccc"), ["q"] * 9, list("abc") * 3, [1, 2, 3, 2, 1, 3, 1, 3, 2])
    >>> judgments = merge_orders(to_battles(given))
    >>> ballots_from_judgments(judgments).models
    ('a', 'b', 'c')
    """
    first, group, table, complete = _groups(judgments)
    if not complete.any():
        raise InputError(
            "no ballot can be made of these judgments: no judge judged all pairs of the models that it met on an "
            "instruction; give ballots (columns judge, instruction_id, model, rank), or choose a method for pairs"
        )
    there = ~np.isnan(table)
    # Sums of shares that differ by rounding only are equal points.
    places = _competition_ranks(np.where(there, -np.round(table, 9), np.nan))
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
    return select_ballots(found, complete)


def count_incomplete(judgments: Judgments) -> int:
    """The number of (judge, instruction, repeat) groups that lack a pair of their models, and so give no ballot."""
    return int(np.count_nonzero(~_groups(judgments)[3]))


def _groups(
    judgments: Judgments,
) -> tuple[NDArray[np.intp], NDArray[np.int32], NDArray[np.float64], NDArray[np.bool_]]:
    """Candidate ballots: a row of each group, the group of each row, points, and which groups have all pairs.

    Points (groups, models) are NaN for models that a group does not have; a pair judged twice counts its mean.
    """
    size = len(judgments.models)
    key = combine_keys(judgments.judge, judgments.instruction + 1, judgments.repeat)
    found, group = code_integers(key)
    first = np.empty(len(found), dtype=np.intp)
    first[group[::-1]] = np.arange(len(group))[::-1]  # the first of several rows is written last and stays
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


def _competition_ranks(table: NDArray[np.float64]) -> NDArray[np.float64]:
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


def _names_of(argument: str, values: Any, rows: int | None = None) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """The sorted names, and each row's code. Raises `InputError` for invalid names and a wrong number of rows."""
    given = column(argument, values)
    encoded = isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], np.ndarray)
    length = len(given[0]) if encoded else len(given)
    if rows is not None and length != rows:
        raise InputError(f"{argument} has {length} rows, model has {rows}; give one value a row")
    if not length:
        return (), np.zeros(0, dtype=np.int32)
    if isinstance(given, np.ndarray) and np.issubdtype(given.dtype, np.integer):
        found, codes = code_integers(given)
        names = list(map(str, found.tolist()))
    else:
        names, codes = code_labels(argument, given)
    ordered = tuple(sorted(set(names)))
    place = {name: code for code, name in enumerate(ordered)}
    return ordered, np.array([place[name] for name in names], dtype=np.int32)[codes]


def _ranks_of(rank: ArrayLike, rows: int) -> NDArray[np.float64]:
    """Ranks (rows,) as given, infinite where a model was shown and not ranked. Raises `InputError` if invalid."""
    places = numbers_of("rank", rank, rows)
    wrong = places <= 0
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"rank, row {row}: {places[row]:g} is not possible: give a number above 0, smaller being better, or NaN "
            "for a model that was shown and not ranked"
        )
    return np.where(np.isnan(places), np.inf, places)


def repeats_of(repeat: ArrayLike | None, rows: int) -> NDArray[np.int32]:
    """Repeats (rows,), 1 where none are given. Raises `InputError` for a value that is not an integer from 1 on."""
    if repeat is None:
        return np.ones(rows, dtype=np.int32)
    times = numbers_of("repeat", repeat, rows)
    wrong = ~((times >= 1) & (times == np.floor(times)) & (times < 2**31))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"repeat, row {row}: {times[row]:g} is not possible: give a whole number from 1 on")
    return times.astype(np.int32)


def _weights_of(
    weight: ArrayLike | None, rows: int, ballot: NDArray[np.intp], first: NDArray[np.intp]
) -> NDArray[np.float64] | None:
    """The weight of each ballot; `ballot` (rows,) is each row's, `first` (ballots,) the first row of each.

    Raises `InputError` for an invalid weight, and where rows of a ballot differ.
    """
    if weight is None:
        return None
    given = numbers_of("weight", weight, rows)
    wrong = ~((given >= 0) & np.isfinite(given))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"weight, row {row}: {given[row]:g} is not possible: give a finite weight, 0 or more")
    of_ballot = given[first]
    other = given != of_ballot[ballot]
    if other.any():
        row = int(np.argmax(other))
        raise InputError(
            f"weight, row {row}: {given[row]:g}, and {of_ballot[ballot[row]]:g} in row {first[ballot[row]]} of the "
            "same ballot; a ballot has one weight"
        )
    return of_ballot


def numbers_of(argument: str, values: ArrayLike, rows: int) -> NDArray[np.float64]:
    """One number per row. Raises `InputError` for other shapes, and for a row without a number, which it names."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        row, value = _no_number(list(np.asarray(values, dtype=object)))
        raise InputError(f"{argument}, row {row}: {value!r} is not a number") from None
    if array.shape != (rows,):
        raise InputError(f"{argument} has shape {array.shape}, model has {rows} rows; give one number a row")
    return array


def _no_number(values: list[Any]) -> tuple[int, Any]:
    """The first value that is not a number, and its row."""
    for row, value in enumerate(values):
        try:
            float(value)
        except (TypeError, ValueError):
            if value is not None:
                return row, value
    return 0, values


@dataclass(frozen=True, slots=True, eq=False)
class PairedBallots:
    """Ballots with their pairs: `data`, one row per pair, and `ballot` (rows,), the ballot of each row.

    Errors are clustered by the instruction of a ballot; without instructions each ballot is its own unit.
    """

    ballots: Ballots
    data: Comparisons
    ballot: NDArray[np.intp]
    notes: tuple[str, ...] = ()

    def restrict(self, models: Sequence[str]) -> PairedBallots:
        """The ballots restricted to some models, and the rows between these."""
        codes = [self.data.models.index(name) for name in models]
        inside = np.isin(self.data.a, codes) & np.isin(self.data.b, codes)
        ballots = replace(self.ballots, models=tuple(models), rank=self.ballots.rank[:, codes])
        return PairedBallots(ballots, self.data.select(inside), self.ballot[inside])

    def resample(self, rows: NDArray[np.intp]) -> Ballots:
        """The ballots of drawn rows, by position, each as often as the first of its rows was drawn."""
        found, first = np.unique(self.ballot, return_index=True)
        times = np.bincount(rows, minlength=len(self.ballot))[first]
        return select_ballots(self.ballots, np.repeat(found, times))


def missing_ballots(battles: Battles, judgments: Judgments) -> str | None:
    """The reason why there are no ballots, in words; None where there are ballots, or judgments that form some."""
    return None if battles.ballots is not None or _complete_ballots(judgments) is not None else _NEEDED


def _complete_ballots(judgments: Judgments) -> Ballots | None:
    """Ballots of judges that judged all pairs on an instruction; None if none has three models or more."""
    if not judgments.instructions:
        return None
    try:
        found = ballots_from_judgments(judgments)
    except InputError:
        return None
    return found if ((~np.isnan(found.rank)).sum(axis=1) > 2).any() else None


def paired_ballots(battles: Battles, judgments: Judgments) -> PairedBallots:
    """The ballots behind judgments, or formed from them, with the models and clusters of the judgments.

    Raises `InputError` where there are no ballots.
    """
    given, pairs = battles.ballots, judgments
    notes: tuple[str, ...] = ()
    if given is None:
        given = _complete_ballots(judgments)
        if given is None:
            raise InputError(f"there are no ballots: give {_NEEDED}")
        notes, pairs = (_conversion_note(len(given), count_incomplete(judgments)),), merge_orders(to_battles(given))
    listed = [given.models.index(name) for name in judgments.models]
    ballots = replace(given, models=judgments.models, rank=given.rank[:, listed])
    row = _ballot_of(pairs, ballots)
    kept = np.unique(row)
    ballots, row = select_ballots(ballots, kept), np.searchsorted(kept, row)
    source, first = judgments.comparisons(), np.unique(_ballot_of(judgments, ballots), return_index=True)[1]
    cluster, names, data = source.cluster, source.clusters, replace(pairs.comparisons(), crossed=source.crossed)
    if cluster is None:
        ballots = replace(ballots, instruction=np.full(len(ballots), -1, dtype=np.int32), instructions=())
        return PairedBallots(ballots, replace(data, cluster=row.astype(np.int32)), row, notes)
    shared = cluster[first[-len(ballots) :]]
    ballots = replace(ballots, instruction=shared, instructions=names)
    return PairedBallots(ballots, replace(data, cluster=shared[row], clusters=names), row, notes)


def _conversion_note(made: int, incomplete: int) -> str:
    lost = f"; {incomplete} of a judge on an instruction lack a pair and are left out" if incomplete else ""
    return f"{made} ballots are made of judgments of all pairs{lost}"


def _ballot_of(rows: Judgments, ballots: Ballots) -> NDArray[np.intp]:
    """The ballot of each judgment (rows,), by judge, instruction and repeat; -1 for none."""
    judge = {name: code for code, name in enumerate(ballots.judges)}
    asked = {name: code for code, name in enumerate(ballots.instructions)}
    judges = np.array([judge.get(name, len(judge)) for name in rows.judges], dtype=np.int64)
    instructions = np.array([*(asked.get(name, len(asked)) for name in rows.instructions), -1], dtype=np.int64)
    key = combine_keys(
        np.concatenate([ballots.judge, judges[rows.judge]]),
        np.concatenate([ballots.instruction, instructions[rows.instruction]]) + 1,
        np.concatenate([ballots.repeat, rows.repeat]),
    )
    codes = np.unique(key, return_inverse=True)[1]
    ballot = np.full(len(codes), -1, dtype=np.intp)
    ballot[codes[: len(ballots)]] = np.arange(len(ballots))
    return ballot[codes[len(ballots) :]]
