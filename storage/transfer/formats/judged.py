"""Verdicts that another tool wrote, as `Battles`: what a dialect is, which one a file speaks, and how it is read.

A dialect names columns and a query. The columns are copied as text into the temporary table `given`, one row a row of
the file; the query (storage/queries/formats.sql) turns that into `found`, one row a verdict. So a file of a million
rows is read by DuckDB, and Python sees arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from typing import get_args

import duckdb
import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.choices import BothBad
from venire.arena.errors import InputError
from venire.arena.hints import setting, setting_of, setting_with
from venire.arena.wording import suggest
from venire.storage.store.connection import query
from venire.storage.transfer.formats.columns import (
    column_of,
    condition,
    encode,
    instruction_note,
    name_cell,
    padded_cell,
    padded_note,
    repeated_note,
)
from venire.storage.transfer.formats.source import ImportReading, TableFile, TableSource, connect, open_table

_NAMED = ("model", "model_a", "model_b", "winner", "judge")
"""Our columns of names, around which spaces say nothing."""


@dataclass(frozen=True, slots=True)
class VerdictDialect:
    """One form in which a format writes verdicts; `columns` is from our name to the names it may have in a file.

    `needed` are ours that must be there, `absent` are names of a file that must not, `nested` may hold JSON, of which
    `lists` must be lists. `given` are
    ours that the user may name instead, where the file has no such column. `signs` are names of a file that tell the
    dialect and are not read. `words` is what a winner may be. `once`: a line says so much that an equal one is the
    same judgment again.
    """

    format: str
    query: str
    columns: Mapping[str, tuple[str, ...]]
    needed: tuple[str, ...]
    words: str
    nested: frozenset[str] = frozenset()
    lists: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    given: frozenset[str] = frozenset()
    signs: frozenset[str] = frozenset()
    ordered: bool = False
    once: bool = False
    note: str = ""
    """What a reader of the ratings should know about how these verdicts were made from the file."""
    tied: float = 0.0
    """How near two grades are a tie."""
    unparsed: float | None = None
    """A grade that says that none was read."""


@dataclass(frozen=True, slots=True, eq=False)
class ImportedVerdicts:
    """Verdicts from elsewhere with what `Battles` has no room for; the arrays are as long as its columns.

    `both_bad` marks ties whose judge said that neither answer is good. `score` is A minus B on the file's own scale,
    NaN where there is none. `itself` counts rows left out because a model met itself.
    """

    battles: Battles
    both_bad: NDArray[np.bool_]
    score: NDArray[np.float64]
    format: str
    note: str = ""
    itself: int = 0
    guessed: bool = False
    notes: tuple[str, ...] = ()
    """What of the reading changes ratings or intervals."""

    def fitted(self, both_bad: BothBad = "tie") -> Battles:
        """The verdicts to rate from: with those that both are bad as ties, or without them.

        Raises InputError for another word.
        """
        if both_bad not in get_args(BothBad):
            raise InputError(f"{setting('both_bad')} is {both_bad!r}; choose tie or drop")
        if both_bad == "tie" or not self.both_bad.any():
            return self.battles
        kept = ~self.both_bad
        columns = [one.name for one in fields(Battles) if isinstance(getattr(self.battles, one.name), np.ndarray)]
        return replace(self.battles, **{name: getattr(self.battles, name)[kept] for name in columns})

    def reading(self, both_bad: BothBad = "tie") -> ImportReading:
        """What became of the file's rows."""
        return ImportReading(
            format=self.format,
            guessed=self.guessed,
            verdicts=len(self.both_bad),
            not_read=int(np.count_nonzero(self.battles.status)),
            both_bad=int(np.count_nonzero(self.both_bad)),
            both_bad_as=both_bad,
            itself=self.itself,
            note=self.note,
            notes=self.notes,
        )


@dataclass(frozen=True, slots=True)
class _DialectColumns:
    """The file's names of our columns, those that are there."""

    dialect: VerdictDialect
    theirs: Mapping[str, str]
    constants: Mapping[str, str] = field(default_factory=dict)


def matches(dialect: VerdictDialect, columns: Iterable[str]) -> bool:
    """Whether a file with these columns is of this dialect."""
    there = set(columns)
    needed = [name for name in dialect.needed if name not in dialect.given]
    if there & dialect.absent or dialect.signs - there:
        return False
    return all(there & set(dialect.columns[name]) for name in needed)


def likely_dialects(dialects: Iterable[VerdictDialect], columns: Iterable[str]) -> list[VerdictDialect]:
    """The dialects that a file with these columns may be of; one that asks for more columns hides those of fewer."""
    fitting = [dialect for dialect in dialects if matches(dialect, columns)]
    most = max((len(dialect.needed) + len(dialect.signs) for dialect in fitting), default=0)
    return [dialect for dialect in fitting if len(dialect.needed) + len(dialect.signs) == most]


def read_judged(
    paths: Sequence[TableSource],
    dialects: Sequence[VerdictDialect],
    *,
    mapping: Mapping[str, str] = {},
    constants: Mapping[str, str] = {},
    where: Mapping[str, str | Sequence[str]] = {},
) -> ImportedVerdicts:
    """Verdicts of one or several files of one format, in their order; the first file decides on the dialect.

    `mapping` is from our column names to the files', `constants` gives columns that the files do not have (such as the
    baseline), `where` keeps the rows that hold given values (`columns.condition`; of several files one may lack
    them). A null or failed verdict has status 1 and is never a tie. Raises InputError that names file, row (the first
    is 1), column and what to do.
    """
    with closing(connect(*paths)) as connection:
        chosen: VerdictDialect | None = None
        for number, path in enumerate(paths):
            table = open_table(path)
            try:
                columns = _columns(table, dialects if chosen is None else [chosen], mapping, constants)
                kept = condition(table, where, {**mapping, **columns.theirs}, strict=len(paths) == 1)
                _copy(table, columns, connection, number, kept)
            finally:
                table.connection.close()
            chosen = columns.dialect
        if chosen is None:
            raise InputError("no file was named: name one or several")
        repeated = _counted_once(connection, chosen) if chosen.once else 0
        judged = _judged(connection, chosen, paths)
        return replace(judged, notes=_notes(connection, columns, judged.battles, repeated))


def _columns(
    table: TableFile, dialects: Sequence[VerdictDialect], mapping: Mapping[str, str], constants: Mapping[str, str]
) -> _DialectColumns:
    """Which dialect, and the file's names of its columns; raises InputError that names what is missing."""
    fitting = likely_dialects(dialects, [*table.columns, *(_named(dialects, mapping, table))])
    nearest = max(
        dialects, key=lambda one: sum(bool(set(one.columns[name]) & table.columns.keys()) for name in one.needed)
    )
    dialect = fitting[0] if fitting else nearest
    if unknown := sorted(set(mapping) - set(dialect.columns)):
        raise InputError(
            f'{table.path}: {setting("mapping")} names "{unknown[0]}", which is no column of {dialect.format}; '
            f"{suggest(unknown[0], dialect.columns)}"
        )
    theirs = {}
    for ours, names in dialect.columns.items():
        found = next((name for name in names if name in table.columns), None) or column_of(table, ours)
        if ours in mapping:
            theirs[ours] = table.column(ours, mapping)
        elif found is not None:
            theirs[ours] = found
        elif ours in dialect.needed and ours not in constants:
            raise InputError(_missing(table, dialects, dialect, ours))
    return _DialectColumns(
        dialect, theirs, {name: constants[name] for name in dialect.given & set(constants) - set(theirs)}
    )


def _named(dialects: Sequence[VerdictDialect], mapping: Mapping[str, str], table: TableFile) -> list[str]:
    """The dialects' own names of columns that a mapping gives another name."""
    mapped = [ours for ours, theirs in mapping.items() if theirs in table.columns]
    return [name for dialect in dialects for ours in mapped for name in dialect.columns.get(ours, ())[:1]]


def _missing(table: TableFile, dialects: Sequence[VerdictDialect], dialect: VerdictDialect, ours: str) -> str:
    names = '" or "'.join(dialect.columns[ours])
    found = ", ".join(list(table.columns)[:30])
    if ours in dialect.given:
        return (
            f'{table.path}: no column "{names}"; say who it was with {setting_with(dialect.columns[ours][0], "NAME")}'
        )
    forms = [
        ", ".join([*(dialect.columns[name][0] for name in dialect.needed), *sorted(dialect.signs)])
        for dialect in dialects
    ]
    return (
        f'{table.path}: not {dialect.format}: no column "{names}"; columns found: {found}. A file of {dialect.format} '
        f"has {'; or '.join(forms)}. Where another column holds it: {setting_of('mapping', ours, 'COLUMN')}"
    )


def _copy(
    table: TableFile,
    columns: _DialectColumns,
    connection: duckdb.DuckDBPyConnection,
    number: int,
    kept: tuple[str, list[list[str]]],
) -> None:
    """The file's cells as text behind those of the files before, so that it is parsed once."""
    cells, parameters = [], []
    for ours in columns.dialect.columns:
        if ours in columns.theirs:
            theirs = columns.theirs[ours]
            cells.append(f"{_cell(table, columns.dialect, ours, theirs)} as {ours}")
        else:
            cells.append(f"cast(? as varchar) as {ours}")
            parameters.append(columns.constants.get(ours))
    named = [columns.theirs[ours] for ours in _NAMED if ours in columns.theirs and ours not in columns.dialect.nested]
    line = "hash(line)" if columns.dialect.once else "null"  # reads all columns
    select = (
        f"select * exclude (kept) from (select {number} as file, row_number() over () as row, {', '.join(cells)}, "
        f"{padded_cell(table, named)} as padded, {line} as line, {kept[0]} as kept from {table.reader} as line) "
        "where kept"
    )
    with table.errors():
        make = "create temp table given as" if number == 0 else "insert into given"
        connection.execute(f"{make} {select}", [*parameters, *kept[1], *table.parameters])


def _cell(table: TableFile, dialect: VerdictDialect, ours: str, theirs: str) -> str:
    if ours in dialect.nested:
        return table.json(theirs)
    if theirs in dialect.columns[ours]:
        return table.name(theirs) if ours in _NAMED else table.label(theirs)
    return name_cell(table, ours, theirs)


def _counted_once(connection: duckdb.DuckDBPyConnection, dialect: VerdictDialect) -> int:
    """Deletes lines that are equal in all that they say, not only in what is read of them; how many."""
    cells = ", ".join(("line", *dialect.columns))
    ((deleted,),) = connection.execute(
        f"delete from given where rowid not in (select min(rowid) from given group by {cells})"
    ).fetchall()
    return int(deleted)


def _notes(
    connection: duckdb.DuckDBPyConnection, columns: _DialectColumns, battles: Battles, repeated: int
) -> tuple[str, ...]:
    """What was taken as the instruction, unless its text is in every row, and which names and lines are alike."""
    ((padded,),) = connection.execute("select count(*) from given where padded").fetchall()
    theirs = columns.theirs.get("instruction_id")
    taken = None if theirs is None and battles.instructions else instruction_note(theirs)
    notes = [taken, padded_note(padded) if padded else None, repeated_note(repeated) if repeated else None]
    return tuple(note for note in notes if note)


def _refuse_no_lists(
    connection: duckdb.DuckDBPyConnection, dialect: VerdictDialect, paths: Sequence[TableSource]
) -> None:
    for column in sorted(dialect.lists):
        found = connection.execute(
            f"select file, row from given where not coalesce(json_valid({column}), true) "
            f"or if(json_valid({column}), json_type({column}), 'ARRAY') not in ('ARRAY', 'NULL') order by all limit 1"
        ).fetchone()
        if found is not None:
            name = dialect.columns[column][0]
            raise InputError(f'{paths[found[0]]}: row {found[1]}: "{name}" is no list; mend it or leave the row out')


def _judged(
    connection: duckdb.DuckDBPyConnection, dialect: VerdictDialect, paths: Sequence[TableSource]
) -> ImportedVerdicts:
    _refuse_no_lists(connection, dialect, paths)
    try:
        unparsed = "null" if dialect.unparsed is None else str(dialect.unparsed)
        rows = query(dialect.query).replace("{tied}", str(dialect.tied)).replace("{unparsed}", unparsed)
        connection.execute(f"create temp table found as {rows}")
    except duckdb.Error as error:
        files = ", ".join(str(path) for path in paths)
        raise InputError(f"{files}: not {dialect.format}: {str(error).partition(chr(10))[0][:300]}") from None
    _refuse_bad_rows(connection, dialect, paths)
    connection.execute(query("judged_verdicts"))
    facts = connection.execute(query("judged_facts")).fetchone()
    if facts is None or not facts[0]:
        raise InputError(f"{paths[0]}: no verdict between two models is in it")
    rows, judge, instruction, swapped, itself = facts
    ordered = dialect.ordered and swapped == rows
    battles = encode(
        connection, judge=judge > 0, instruction=instruction > 0, ordered=ordered, numbers=("score", "human")
    )
    extra = connection.execute("select both_bad from verdict order by row").fetchnumpy()
    score = np.full(len(battles.label), np.nan) if battles.score is None else battles.score
    both_bad = np.asarray(extra["both_bad"], dtype=np.bool_)
    return ImportedVerdicts(battles, both_bad, score, dialect.format, dialect.note, int(itself))


def _refuse_bad_rows(
    connection: duckdb.DuckDBPyConnection, dialect: VerdictDialect, paths: Sequence[TableSource]
) -> None:
    found = connection.execute(query("judged_bad_row")).fetchone()
    if found is None:
        return
    file, row, column, word = found
    name = dialect.columns.get(column, (column,))[0]
    if word is None:
        problem = f'"{name}" is empty; fill it in or leave the row out'
    else:
        problem = f'"{name}" is "{word[:60]}"; accepted: {dialect.words}, or nothing where it was not read'
    raise InputError(f"{paths[file]}: row {row}: {problem}")
