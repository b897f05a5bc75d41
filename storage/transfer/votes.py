"""People's votes on their way into a store: all of a file, or nothing of it.

A vote is known by who gave it, on which instruction, between which models, in which order (where that is known), and
by its number among the votes of this annotator on this showing. So the same file adds nothing the second time.

The table of a page of `venire annotate` names no model and no instruction: it has codes of completions, which only the
store that the page was made of can read (`storage.read.blind_battles`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.choices import BothBad
from venire.arena.errors import InputError
from venire.arena.hints import setting, setting_of
from venire.arena.keys import instruction_key
from venire.arena.records import Origin, Status
from venire.storage.read.blind_battles import completions_by_code
from venire.storage.store.connection import Row
from venire.storage.store.store import Commit, Store
from venire.storage.transfer.casting import group_name, group_number
from venire.storage.transfer.formats import read_verdicts
from venire.storage.transfer.formats.battles import read_battle_table
from venire.storage.transfer.formats.columns import UNNAMED_JUDGE, condition
from venire.storage.transfer.formats.source import open_table

_CHUNK = 2_000
_MAX_REPEAT = 2**15 - 1
_BLIND = {"first": "answer_1", "second": "answer_2", "verdict": "winner"}
"""Our columns and those of a page's table, whose answers are codes of completions."""
_OF_A_PAGE = frozenset({"page", "battle", "voted_at"})
"""Columns of a page's table that say nothing of a vote."""
_NOTE = "note"
MAX_NOTE = 10_000
"""Characters of one note that a store keeps."""
_ORDERS = {"true": True, "false": False, "1": True, "0": False}
"""What the column `swapped` of an exported table may hold."""
_WINNERS = {1: "the first of them", 0: "a tie", -1: "the second of them"}


@dataclass(frozen=True, slots=True, eq=False)
class VoteFile:
    """Votes as a file has them: `battles`, whose judges are the annotators, and the row of each (votes,) in the file.

    `rows` is None for formats of other tools, of whose rows one may hold several votes. `origins` are the values of a
    column `origin`, as tables of battles have it that a store exported.
    """

    path: Path
    battles: Battles
    rows: NDArray[np.int64] | None
    origins: frozenset[str] = frozenset()
    left_aside: Sequence[str] = ()
    """Columns of a plain table of which nothing was read."""
    remarks: Sequence[str] = ()
    """How the file was read: the column of instructions, and what of names and lines does not count."""
    blind: bool = False
    """It is the table of a page of `venire annotate`: its models are codes of completions."""
    notes: Mapping[int, str] = field(default_factory=dict)
    """What was written beside a vote, by the number of its row."""
    swapped: Mapping[int, bool] = field(default_factory=dict)
    """Whether `model_b` was shown first, by row: of a table that a store exported, which names models by letter."""

    def at(self, place: int) -> str:
        """Where a vote stands, for messages."""
        return f"{self.path}" if self.rows is None else f"{self.path}: row {int(self.rows[place])}"


@dataclass(frozen=True, slots=True)
class AddedVotes:
    """What an import brought: new votes, annotators and notes, votes known already, and rows without a winner."""

    votes: int
    annotators: int
    known: int
    without_winner: int
    notes: int = 0


def read_votes(
    path: Path,
    form: str | None = None,
    *,
    mapping: Mapping[str, str] = {},
    values: Mapping[str, str] = {},
    where: Mapping[str, str | Sequence[str]] = {},
    both_bad: BothBad = "tie",
) -> VoteFile:
    """The votes of a file that `venire rate` reads; `form`, `mapping`, `values`, `where`, `both_bad` are as there.

    A column `annotator` is taken for `judge`, which it may be called as well; of a plain table a column `note` is read.
    The table of a page of `venire annotate` is known by its columns, and its codes are read by `add_votes`. Raises
    InputError that names file, row and value: for a file without instructions, for weights and shares, which a vote has
    not, and for a note that is longer than `MAX_NOTE`.
    """
    if {"judge", "annotator"} <= mapping.keys():
        raise InputError(
            f"{path}: {setting('mapping')} names both judge and annotator; a table of votes has one of them"
        )
    named = {"judge" if ours == "annotator" else ours: theirs for ours, theirs in mapping.items()}
    note = named.pop(_NOTE, None)
    blind = form is None and _is_of_a_page(path)
    named = _BLIND | named if blind else named
    found = None if blind else read_verdicts([path], form, mapping=named, where=where, values=values)
    if found is not None:
        if note is not None:
            raise InputError(
                f"{path}: {setting('mapping')} names note, which is read of plain tables alone: leave it out"
            )
        given = VoteFile(path, found.fitted(both_bad), None, remarks=found.notes)
    else:
        table = read_battle_table(path, named, values=values, where=where)
        beside = _beside(path, named, where, note)
        known = {*beside.columns, *(_OF_A_PAGE if blind else ())}
        aside = [name for name in table.left_aside if name not in known]
        given = VoteFile(
            path,
            table.battles,
            table.rows,
            beside.origins,
            aside,
            () if blind else table.notes,
            blind,
            beside.notes,
            beside.swapped,
        )
    _refuse_no_votes(given)
    return given


def _is_of_a_page(path: Path) -> bool:
    with closing((table := open_table(path)).connection):
        return table.columns.keys() >= {"page", *_BLIND.values()} and "instruction_id" not in table.columns


class _Beside(NamedTuple):
    """What a plain table has beside its verdicts, by the number of the row; `origins` are the values of a column."""

    origins: frozenset[str]
    notes: dict[int, str]
    swapped: dict[int, bool]
    columns: frozenset[str]
    """Those of the file in which they are."""


def _beside(
    path: Path, mapping: Mapping[str, str], where: Mapping[str, str | Sequence[str]], note: str | None
) -> _Beside:
    """Origins, notes and orders of the rows asked for; nothing of columns that the file does not have."""
    with closing((table := open_table(path)).connection):
        if note is not None:
            table.column(_NOTE, {_NOTE: note})
        kept, values = condition(table, where, mapping)
        # Of a table of battles the order is not taken: a rehearsal's two orders stay two votes, as of two people.
        names = {"origin": "origin", _NOTE: note or _NOTE}
        if "people" in table.columns:
            names["swapped"] = "swapped"
        there = {ours: theirs for ours, theirs in names.items() if theirs in table.columns}
        cells = ", ".join(
            f"{table.text(there[ours]) if ours in there else 'null'} as {ours}" for ours in ("origin", _NOTE, "swapped")
        )
        query = (
            f"select row, origin, note, swapped from (select row_number() over () as row, {kept} as kept, {cells} "
            f"from {table.reader}) where kept and (origin is not null or note is not null or swapped is not null)"
        )
        with table.errors():
            rows = table.connection.execute(query, [*values, *table.parameters]).fetchall()
    notes, swapped = {}, {}
    for row, _, text, order in rows:
        if text is not None and text.strip():
            notes[row] = _note(path, row, text)
        if order:
            if order.lower() not in _ORDERS:
                raise InputError(
                    f'{path}: row {row}: "swapped" is "{order[:60]}"; accepted: true where model_b was shown first, '
                    "false, or nothing"
                )
            swapped[row] = _ORDERS[order.lower()]
    origins = frozenset(origin for _, origin, *_ in rows if origin is not None)
    return _Beside(origins, notes, swapped, frozenset(there.values()))


def _note(path: Path, row: int, text: str) -> str:
    if len(text) > MAX_NOTE:
        raise InputError(
            f"{path}: row {row}: the note has {len(text):,} characters, and a store keeps {MAX_NOTE:,}: shorten it"
        )
    return text.strip()


def _refuse_no_votes(given: VoteFile) -> None:
    battles = given.battles
    if not (battles.instructions or given.blind):
        raise InputError(
            f"{given.path}: no column of instructions, and votes are kept by instruction; where another column holds "
            f"their ids: {setting_of('mapping', 'instruction_id', 'COLUMN')}"
        )
    if battles.weight is not None:
        raise InputError(f"{given.path}: votes have no weights: leave the column weight out, or call it otherwise")
    if battles.outcome is not None:
        shares = np.flatnonzero(~np.isin(battles.outcome, (0.0, 0.5, 1.0)) & ~np.isnan(battles.outcome))
        if len(shares):
            place = int(shares[0])
            raise InputError(
                f"{given.at(place)}: a vote is 1, 0.5 or 0 for the first named, not {battles.outcome[place]:g}; shares "
                "of several people are not taken: give each vote a row"
            )


def add_votes(store: Store, name: str, *given: VoteFile, origin: Origin | None = None) -> AddedVotes:
    """Bring votes into a store under the name of a group of people; what is there already is left as it is.

    Of several files all are brought in, or none.

    A file without annotators holds the votes of one, called as the group. An annotator's votes on one showing are
    numbered in the order of the rows, unless the file numbers them (`repeat`). `origin` is that of the votes, by
    default "people", or "simulated" where the annotators are simulated models by their names or the file's own column
    `origin`.

    Raises InputError, with nothing imported, for a model, an instruction or the code of a completion that the store
    does not have, for a vote
    that is in the store with another winner, and for a group whose votes are of another origin.
    """
    group_name(name)
    named = [_with_names(store, file) if file.blind else file for file in given]
    with store.commit() as commit:
        added = [_add(store, commit, name, file, origin) for file in named]
    return AddedVotes(
        votes=sum(file.votes for file in added),
        annotators=sum(file.annotators for file in added),
        known=sum(file.known for file in added),
        without_winner=sum(file.without_winner for file in added),
        notes=sum(file.notes for file in added),
    )


def _add(store: Store, commit: Commit, name: str, given: VoteFile, origin: Origin | None) -> AddedVotes:
    """One file's votes, within a commit of all."""
    staged = _staged(store, given, name)
    _refuse_repeated(store, commit, given, staged)
    people = group_number(store, commit, name, origin or _origin(given), given.path)
    if clash := store.rows("clashing_vote", people=people):
        row, annotator, *battle, label = clash[0]
        raise InputError(
            f"{_place(given, row)}: {annotator!r} has voted {_in_words(store, battle, label)} already: nothing "
            "was imported; if both votes were given, number them in a column repeat, or name each annotator"
        )
    before = commit.written
    commit.run("insert_annotators", people=people)
    annotators, before = commit.written - before, commit.written
    commit.run("insert_votes", people=people, batch=commit.batch)
    votes, before = commit.written - before, commit.written
    commit.run("insert_notes", people=people)
    notes = commit.written - before
    if votes:
        detail = json.dumps({"people": name, "file": given.path.name, "votes": votes}, ensure_ascii=False)
        now = store.clock.wall()
        commit.run("insert_event", now=now, campaign=None, kind="votes", detail=detail, batch=commit.batch)
    without = int(np.count_nonzero(given.battles.status != Status.OK))
    return AddedVotes(votes, annotators, len(staged) - votes, without, notes)


def _with_names(store: Store, given: VoteFile) -> VoteFile:
    """The votes of a page's table with models and instructions for the codes of completions.

    Raises InputError for a code that is of no completion of this store, and for two that are no battle.
    """
    battles, known = given.battles, completions_by_code(store)
    sides = (battles.model_a, battles.model_b)
    missing = [code for code, name in enumerate(battles.models) if name not in known]
    if missing:
        place = int(np.argmax(np.logical_or(*(np.isin(side, missing) for side in sides))))
        code = next(battles.models[side[place]] for side in sides if int(side[place]) in missing)
        raise InputError(
            f"{given.at(place)}: {code!r} is the code of no completion in {store.path}: nothing was imported; this "
            "table is of a page that was made of another store, or was changed. Import it into the store of its page; "
            "`venire store merge` brings votes together"
        )
    models = tuple(sorted({known[side][0] for side in battles.models}))
    instructions = tuple(sorted({known[side][1] for side in battles.models}))
    model = np.array([models.index(known[side][0]) for side in battles.models], dtype=np.int32)
    asked = np.array([instructions.index(known[side][1]) for side in battles.models], dtype=np.int32)
    a, b = sides
    wrong = (asked[a] != asked[b]) | (model[a] == model[b]) if len(a) else np.zeros(0, dtype=np.bool_)
    if wrong.any():
        raise InputError(
            f"{given.at(int(np.argmax(wrong)))}: answer_1 and answer_2 are not of two models on one instruction: "
            "nothing was imported; the table was changed after the page had made it"
        )
    named = replace(
        battles,
        models=models,
        instructions=instructions,
        model_a=model[a] if len(a) else a,
        model_b=model[b] if len(b) else b,
        instruction=asked[a] if len(a) else battles.instruction,
    )
    return replace(given, battles=named, blind=False)


def _origin(given: VoteFile) -> Origin:
    """Simulated where the file says so, or every annotator is a simulated model by its name.

    Raises InputError for some of each.
    """
    if Origin.SIMULATED.value in given.origins:
        if others := sorted(given.origins - {Origin.SIMULATED.value}):
            raise InputError(
                f"{given.path}: votes of origin simulated beside {', '.join(others)}: import simulated people under a "
                f"name of their own ({setting_of('where', 'origin', 'simulated')})"
            )
        return Origin.SIMULATED
    found = {Origin.of_model(judge) is Origin.SIMULATED: judge for judge in given.battles.judges}
    if len(found) > 1:
        raise InputError(
            f"{given.path}: {found[True]!r} is simulated and {found[False]!r} is not: import simulated people under a "
            f"name of their own ({setting_of('where', 'annotator', 'NAME')} takes the rows of one)"
        )
    return Origin.SIMULATED if True in found else Origin.PEOPLE


def _staged(store: Store, given: VoteFile, name: str) -> list[Row]:
    """Votes with the store's numbers, A before B by name; those of an annotator on one showing are numbered."""
    battles = given.battles
    models = _numbers(given, "model", battles.models, {text: number for text, number, *_ in store.rows("models")})
    instructions = _numbers(given, "instruction", battles.instructions, _known_instructions(store, battles))
    annotators = [name if judge == UNNAMED_JUDGE else judge for judge in battles.judges]
    found: list[Row] = []
    for place in np.flatnonzero(battles.status == Status.OK).tolist():
        a, b = int(battles.model_a[place]), int(battles.model_b[place])
        turned = battles.models[a] > battles.models[b]
        a, b = (b, a) if turned else (a, b)
        label = int(battles.label[place])
        row = place + 1 if given.rows is None else int(given.rows[place])
        shown = bool(battles.swapped[place]) if battles.ordered else given.swapped.get(row)
        swapped = None if shown is None else shown ^ turned
        key = (annotators[int(battles.judge[place])], instructions[int(battles.instruction[place])])
        vote = (swapped, int(battles.repeat[place]), -label if turned else label, given.notes.get(row))
        found.append((row, *key, models[a], models[b], *vote))
    return _repeats_numbered(found)


def _known_instructions(store: Store, battles: Battles) -> dict[str, int]:
    """The store's number of each instruction by its id, and of those that the votes name by their text."""
    rows = store.rows("instruction_keys")
    by_id = {name: int(number) for name, number, _ in rows}
    by_key = {bytes(key): int(number) for _, number, key in rows}
    keys = {name: instruction_key((name,)) for name in battles.instructions if name not in by_id}
    return by_id | {name: by_key[key] for name, key in keys.items() if key in by_key}


def _repeats_numbered(rows: list[Row]) -> list[Row]:
    """The same with repeats counted in the order of the rows, where the file leaves all of them at 1."""
    if any(row[6] != 1 for row in rows):
        return rows
    seen: Counter[Row] = Counter()
    found: list[Row] = []
    for row in rows:
        key = row[1:6]
        seen[key] += 1
        found.append((*row[:6], seen[key], *row[7:]))
    return found


def _numbers(given: VoteFile, kind: str, names: Sequence[str], known: Mapping[str, int]) -> list[int]:
    """The store's number of each name. Raises InputError with the first row that has one which the store has not."""
    missing = {code for code, name in enumerate(names) if name not in known}
    if missing:
        battles = given.battles
        columns = [battles.model_a, battles.model_b] if kind == "model" else [battles.instruction]
        wrong = np.logical_or.reduce([np.isin(column, list(missing)) for column in columns])
        place = int(np.argmax(wrong))
        code = next(int(column[place]) for column in columns if int(column[place]) in missing)
        raise InputError(
            f"{given.at(place)}: {kind} {names[code]!r} is not in the store, which has {_few(sorted(known))}: nothing "
            "was imported; give both the same names, or leave the row out"
        )
    return [known[name] for name in names]


def _few(names: Sequence[str]) -> str:
    return "none" if not names else ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def _refuse_repeated(store: Store, commit: Commit, given: VoteFile, rows: list[Row]) -> None:
    """Stage the rows; raises InputError for two votes under one number, and for a number that is too large."""
    if large := next((row for row in rows if row[6] > _MAX_REPEAT), None):
        raise InputError(f"{_place(given, large[0])}: repeat {large[6]} is too large: number votes from 1 on")
    commit.run("stage_votes")
    appender = store.connection.appender("staged_vote")
    for chunk in _chunks(rows):
        appender.append_rows(chunk)
        appender.flush()
    if found := store.rows("repeated_vote"):
        row, annotator, *battle, repeat = found[0]
        raise InputError(
            f"{_place(given, row)}: {annotator!r} votes twice {_between(store, battle)}, both as repeat {repeat}: "
            "nothing was imported; give each its own number"
        )


def _chunks(rows: list[Row]) -> Iterator[list[Row]]:
    stream = iter(rows)
    while chunk := list(islice(stream, _CHUNK)):
        yield chunk


def _place(given: VoteFile, row: int) -> str:
    return f"{given.path}" if given.rows is None else f"{given.path}: row {row}"


def _in_words(store: Store, battle: Sequence[int], label: int) -> str:
    return f"for {_WINNERS[label]} {_between(store, battle)}"


def _between(store: Store, battle: Sequence[int]) -> str:
    """A battle in words, from the store's numbers of its instruction and models."""
    instruction, model_a, model_b = battle
    models: dict[int, str] = dict(store.rows("model_names"))
    instructions: dict[int, str] = dict(store.rows("instruction_names"))
    return f"on {models[model_a]!r} against {models[model_b]!r}, instruction {instructions[instruction]!r}"
