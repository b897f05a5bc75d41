"""Ballots that were cast elsewhere, from a plain table, as arrays: one row a model on a ballot.

Columns: `model` and `rank`, smaller being better; an empty rank is a model that was shown and not ranked. In place of
the rank a `score`, higher being better; an empty score says nothing of the model. Optional are `judge`,
`instruction_id`, `repeat` and `weight`, one figure a ballot. A ballot is what one judge said of one instruction in one
repeat: without instructions each judge has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np

from venire.arena.battles import Ballots
from venire.arena.errors import InputError
from venire.arena.hints import setting, setting_of, setting_with
from venire.arena.wording import suggest
from venire.storage.store.connection import query
from venire.storage.transfer.formats.columns import (
    NOT,
    UNNAMED_JUDGE,
    condition,
    instruction_note,
    name_cell,
    padded_cell,
    padded_note,
    plain_numbers,
    with_synonyms,
)
from venire.storage.transfer.formats.source import TableFile, TableReading, TableSource, open_table

_NEEDED = ("model", "rank")
_SCORE = "score"
_RATINGS = ("elo", "rating")
"""What leaderboards call a score that stands for a rating."""
_OPTIONAL = ("judge", "instruction_id", "repeat", "weight")
_NAMES = ("model", "judge", "instruction_id")
"""Columns of names; the others hold numbers."""
_BALLOT = ("judge", "instruction_id", "repeat_cell")

_ACCEPTED = {
    "rank": "a number above 0, 1 being the best, or nothing for a model that was shown and not ranked",
    _SCORE: "a number, higher being better, or nothing where there is none",
    "repeat": "a whole number from 1 on",
    "weight": "a number, 0 or more",
}
_PAIRS = frozenset({"winner", "verdict", "model_a", "model_b"})


@dataclass(frozen=True, slots=True, eq=False)
class BallotTable:
    """Ballots of a table, and how it was read, as of a `BattleTable`."""

    ballots: Ballots
    columns: Mapping[str, str]
    left_aside: Sequence[str]
    notes: Sequence[str]

    def reading(self) -> TableReading:
        """How the table was read."""
        columns = {ours: theirs for ours, theirs in self.columns.items() if ours != theirs}
        return TableReading("ballots", columns, {}, tuple(self.left_aside), tuple(self.notes))


def has_ballots(path: TableSource, mapping: Mapping[str, str] = {}) -> bool:
    """Whether a table holds ballots, by its columns: `model` and `rank` or `score`, as named there, and no winner.

    Raises InputError for a file that cannot be read, and for a leaderboard: without a column of judges, instructions or
    repeats, one row a model.
    """
    if set(mapping) & _PAIRS and not _named(mapping):
        return False
    with closing((table := open_table(path)).connection):
        known = (*_NEEDED, *_RATINGS, *_OPTIONAL, *_PAIRS)
        there = {*with_synonyms(table, table.respelt(known, mapping)), *table.columns}
        if "model" not in there or (there & _PAIRS and not _named(mapping)):
            return False
        ballots = bool(there & {"rank", _SCORE})
        if (ballots or there & {*_RATINGS}) and not there & {"judge", "instruction_id", "repeat"}:
            single = f"; as one ballot it is rated with {setting_with('form', 'ballots')}" if ballots else ""
            raise InputError(
                f"{path}: a leaderboard, a row for each model, and no verdicts to rate from: to compare a board of "
                f"verdicts with it, rate those with {setting_with('reference', str(path))}{single}"
            )
        return ballots


def _named(mapping: Mapping[str, str]) -> bool:
    """Whether a mapping names what is in ballots alone."""
    return "rank" in mapping or ("model" in mapping and _SCORE in mapping)


def read_ballots(
    path: TableSource,
    mapping: Mapping[str, str] = {},
    *,
    where: Mapping[str, str | Sequence[str]] = {},
    below: bool = True,
) -> Ballots:
    """The ballots of `read_ballot_table`, which has the arguments and errors."""
    return read_ballot_table(path, mapping, where=where, below=below).ballots


def read_ballot_table(
    path: TableSource,
    mapping: Mapping[str, str] = {},
    *,
    where: Mapping[str, str | Sequence[str]] = {},
    below: bool = True,
) -> BallotTable:
    """Ballots of a table file, sorted by judge, instruction and repeat; `mapping` is from our column names to its own.

    `where` keeps the rows that hold given values (`columns.condition`). A model without a row on a ballot counts as
    shown and not ranked where another ballot on the same instruction has it, unless it is the judge itself; without
    `below` as not shown. Without a judge column all ballots are of the judge `UNNAMED_JUDGE`. Raises InputError that
    names file, row (the first data row is 1) and value.
    """
    known = (*_NEEDED, _SCORE, *_OPTIONAL)
    if unknown := sorted(set(mapping) - set(known)):
        raise InputError(
            f'{path}: {setting("mapping")} names "{unknown[0]}", which is no column of ours for ballots; '
            f"{suggest(unknown[0], known)}"
        )
    with closing((table := open_table(path)).connection):
        mapping = with_synonyms(table, table.respelt(known, mapping))
        there = {*mapping, *table.columns}
        ranked = _SCORE if _SCORE in there and "rank" not in there else "rank"
        theirs = {name: table.column(name, mapping) for name in ("model", ranked)}
        theirs |= {name: table.column(name, mapping) for name in _OPTIONAL if {name} & {*mapping, *table.columns}}
        _load(table, theirs, condition(table, where, mapping))
        _refuse_bad_row(table, theirs)
        ((padded,),) = table.connection.execute("select count(*) from entry where padded").fetchall()
        # A score speaks of its own model alone: one that has none is not below those that have.
        ballots = _encoded(table.connection, theirs, below and ranked == "rank")
    asked = {mapping.get(name, name) for key in where for name in (key, key.removesuffix(NOT))}
    aside = [name for name in table.columns if name not in {*theirs.values(), *asked}]
    taken = instruction_note(theirs.get("instruction_id"))
    return BallotTable(
        ballots, theirs, aside, [*([taken] if taken else []), *([padded_note(padded)] if padded else [])]
    )


def _load(table: TableFile, theirs: Mapping[str, str], kept: tuple[str, list[list[str]]]) -> None:
    """The table `entry` that is checked and encoded; the file is parsed once."""
    cells = {name if name in _NAMES else f"{name}_cell": "null::varchar" for name in (*_NEEDED, *_OPTIONAL)}
    for name, column in theirs.items():
        if name == _SCORE:
            continue
        cells[name if name in _NAMES else f"{name}_cell"] = (
            name_cell(table, name, column) if name in _NAMES else table.cell(column)
        )
    names = [column for name, column in theirs.items() if name in _NAMES and not table.nested(column)]
    cells["padded"] = padded_cell(table, names)
    rows = kept[0]
    if _SCORE in theirs:
        cells["rank_cell"] = _rank(table.text(theirs[_SCORE]), [cells[name] for name in _BALLOT])
        rows = f"({rows}) and coalesce({table.text(theirs[_SCORE])}, '') not in ('', 'nan')"
    chosen = ", ".join(f"{cell} as {name}" for name, cell in cells.items())
    given = f"select row_number() over () as row, {rows} as kept, {chosen} from {table.reader}"
    with table.errors():
        table.connection.execute(
            f"create temp table entry as with given as (select * exclude (kept) from ({given}) where kept) "
            f"{query('ballot_entries')}",
            [*kept[1], *table.parameters],
        )


def _rank(score: str, ballot: Sequence[str]) -> str:
    """SQL for the place of a score on its ballot, as text; the cell itself where it is no number."""
    number = f"try_cast({score} as double)"
    place = f"rank() over (partition by {', '.join(ballot)} order by {number} desc nulls last)"
    return f"case when coalesce(isfinite({number}), false) then cast({place} as varchar) else {score} end"


def _refuse_bad_row(table: TableFile, theirs: Mapping[str, str]) -> None:
    if found := table.connection.execute(query("ballot_bad_row"), {"there": list(theirs)}).fetchone():
        row, place, cell = found
        place = _SCORE if place == "rank" and _SCORE in theirs else place
        if place in _ACCEPTED:
            problem = f'"{theirs[place]}" is "{(cell or "")[:60]}"; accepted: {_ACCEPTED[place]}'
        else:
            column = theirs[place]
            problem = (
                f'"{column}" is empty; fill it in or leave the row out ({setting_of("where", f"{column}{NOT}", "")})'
            )
        raise InputError(f"{table.path}: row {row}: {problem}")
    if found := table.connection.execute(query("ballot_twice")).fetchone():
        model, first, again = found
        raise InputError(
            f'{table.path}: row {again}: "{theirs["model"]}" is "{model[:60]}", which stands on the same ballot in row '
            f"{first}; a ballot is one judge, instruction_id and repeat: leave a row out, or number them in repeat"
        )
    if found := table.connection.execute(query("ballot_two_weights")).fetchone():
        low, light, high, heavy = found
        raise InputError(
            f'{table.path}: row {max(low, high)}: "{theirs["weight"]}" is {heavy if high > low else light:g}, and '
            f"{light if high > low else heavy:g} in row {min(low, high)} of the same ballot; a ballot has one weight"
        )


def _encoded(connection: duckdb.DuckDBPyConnection, theirs: Mapping[str, str], below: bool) -> Ballots:
    models = _listed(connection, "model", "model")
    judges = _listed(connection, "judge", "judge")
    instructions = _listed(connection, "instruction", "instruction_id")
    connection.execute(query("ballot_numbers"))
    heads = connection.execute(query("ballot_heads")).fetchnumpy()
    cells = connection.execute(query("ballot_ranks"), {"below": below}).fetchnumpy()
    rank = np.full((len(heads["judge"]), len(models)), np.nan)
    rank[_plain(cells["number"]), _plain(cells["model"])] = _plain(cells["rank"])
    return Ballots(
        models=models,
        judges=judges or (UNNAMED_JUDGE,),
        instructions=instructions,
        judge=_plain(heads["judge"]).astype(np.int32),
        instruction=_plain(heads["instruction"]).astype(np.int32),
        repeat=_plain(heads["repeat"]).astype(np.int32),
        rank=rank,
        weight=plain_numbers(heads["weight"]) if "weight" in theirs else None,
    )


def _listed(connection: duckdb.DuckDBPyConnection, kind: str, column: str) -> tuple[str, ...]:
    """The distinct names of a column in order, kept in a table with their places."""
    connection.execute(
        f"create temp table {kind}_names as select name, row_number() over (order by name) - 1 as code "
        f"from (select distinct {column} as name from entry) where name is not null"
    )
    found = connection.execute(f"select name from {kind}_names order by code").fetchnumpy()
    return tuple(found["name"].tolist())


def _plain(column: Any) -> Any:
    return np.ma.getdata(column)
