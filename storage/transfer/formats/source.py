"""A user's table behind one face: Parquet, CSV, TSV and JSON Lines, or in memory, read through DuckDB.

Of a delimited text only the delimiter is looked for, in its first two records: the header is read first, and every
cell stays text, so that an id `007` stays `007`. JSON values and Parquet numbers become text the same way, whatever
type was inferred.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import duckdb

from venire.arena.errors import InputError
from venire.arena.hints import setting_of
from venire.arena.wording import nearest
from venire.storage.transfer.delimited import is_neutralised, restored, restored_sql
from venire.storage.transfer.formats.files import file_of, in_utf8, not_utf8, refuse_address, refuse_archive
from venire.storage.transfer.memory import MemoryTable

TableSource = Path | MemoryTable
"""A file by its path, or a table in memory; as text, the name by which messages call it."""


@dataclass(frozen=True, slots=True)
class TableReading:
    """How a plain table or one of ballots was read: columns and values that it calls otherwise than we do, by ours and
    by theirs; columns that were `left_aside`; and notes on what changes ratings or intervals."""

    format: str
    columns: Mapping[str, str]
    values: Mapping[str, str]
    left_aside: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ImportReading:
    """What became of the rows of files of a format: how many were verdicts, not read, both bad (and counted as what),
    or a model against itself; whether the format was guessed; and notes on what changes ratings or intervals."""

    format: str
    guessed: bool
    verdicts: int
    not_read: int
    both_bad: int
    both_bad_as: str
    itself: int
    note: str
    notes: tuple[str, ...]


_DELIMITED = {".csv": ",", ".tsv": "\t"}
_DELIMITERS = (",", "\t", ";", "|")
_JSON = {".jsonl": "newline_delimited", ".ndjson": "newline_delimited", ".json": "auto"}
_EXTENSIONS = ".parquet, .csv, .tsv, .jsonl, .ndjson or .json, the text forms also with .gz"
_NESTED = re.compile(r"STRUCT|MAP|UNION|VARIANT|BLOB|BIT|GEOMETRY|.*\]$")
_FRACTIONAL = re.compile(r"DOUBLE|FLOAT|DECIMAL")
_REMEDIES = {
    "GZIP": "; it ends too early: copy it again, or unpack it",
    "Parquet": "; write it as Parquet again, or as CSV",
    "magic bytes": "; write it as Parquet again, or as CSV",
}
"""What to do, by a sign in DuckDB's report."""

_CSV_REASONS = {
    "unterminated quote": "a quoted cell does not end; write a quote inside a cell twice",
    "Maximum line size": "the line is too long",
    "state machine": "its line ends are mixed, or a quote stands where none may; write it again as RFC 4180",
}
_SPACES = " \t\r\n\v\f\u00a0\u3000\ufeff"
"""What is no part of a name where it stands at its ends."""
_LONGEST_LINE = 64 * 1024 * 1024
_LONGEST_VALUE = 1024 * 1024 * 1024
_CELLS_SHOWN = 30
_SMALL = 1 << 20
_READ_PARQUET = "read_parquet("
_CELL = 8
_OURS = frozenset(
    (
        "model",
        "model_a",
        "model_b",
        "winner",
        "judge",
        "instruction_id",
        "instruction",
        "completion",
        "repeat",
        "weight",
    )
)
"""Names of columns that mean what they say, and are no hint for another that is missing."""


class MissingColumnError(InputError):
    """A table lacks a column: `sentence` names those found, `hint` is the one that may hold `ours`, or COLUMN."""

    def __init__(self, sentence: str, ours: str, hint: str, remedy: str) -> None:
        super().__init__(f"{sentence}. Where another column holds it: {remedy}")
        self.sentence, self.ours, self.hint = sentence, ours, hint


class NoRowsError(InputError):
    """A table has columns and no row."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """An open table file: a connection of its own, the columns found (name to SQL type), and how to read them."""

    path: TableSource
    columns: Mapping[str, str]
    delimited: bool
    """Cells have a position instead of a name, and an empty cell cannot be distinguished from a missing one."""
    connection: duckdb.DuckDBPyConnection
    reader: str
    parameters: tuple[Any, ...]

    def column(self, ours: str, mapping: Mapping[str, str]) -> str:
        """The file's name of our column; raises InputError with the columns found and the nearest of them."""
        theirs = mapping.get(ours, ours)
        if theirs in self.columns:
            return theirs
        raise self.missing(ours, mapping)

    def missing(self, ours: str, mapping: Mapping[str, str]) -> MissingColumnError:
        """The error of a file without such a column: the columns found, and the nearest of them."""
        theirs = mapping.get(ours, ours)
        likely = [name for name in self.columns if _may_be(ours, name)]
        hint = nearest(theirs, likely) or nearest(ours, likely) or "COLUMN"
        remedy = setting_of("mapping", ours, hint)
        return MissingColumnError(
            f'{self.path}: no column "{theirs}"; columns found: {self.listed}', ours, hint, remedy
        )

    @property
    def listed(self) -> str:
        """The columns found, in a message."""
        found = ", ".join(list(self.columns)[:_CELLS_SHOWN]) + (", ..." if len(self.columns) > _CELLS_SHOWN else "")
        if isinstance(self.path, Path) and self.delimited and len(self.columns) == 1:
            found += " (cells are separated by commas, tabs, semicolons or bars)"
        return found

    def respelt(self, ours: Iterable[str], mapping: Mapping[str, str]) -> dict[str, str]:
        """The mapping, with those of our columns that the file writes as `Judge` or `Instruction ID`.

        A column of our own spelling comes first; where two are spelt alike neither is taken.
        """
        found = dict(mapping)
        for name in ours:
            if name in mapping or name in self.columns:
                continue
            alike = [theirs for theirs in self.columns if "_".join(theirs.casefold().split()) == name]
            if len(alike) == 1 and alike[0] not in mapping.values():
                found[name] = alike[0]
        return found

    def nested(self, theirs: str) -> bool:
        """Whether a column holds lists, structures or bytes."""
        return _NESTED.match(self.columns[theirs]) is not None

    def text(self, theirs: str) -> str:
        """SQL for a column as text; raises InputError for lists, structures and bytes."""
        if self.nested(theirs):
            kind = self.columns[theirs]
            raise InputError(
                f'{self.path}: column "{theirs}" holds {kind.lower()[:60]}, not text; write it as plain text'
            )
        return f"cast({self._identifier(theirs)} as varchar)"

    def cell(self, theirs: str) -> str:
        """SQL for a column unchanged, number or text; raises InputError for lists, structures and bytes."""
        self.text(theirs)
        return self._identifier(theirs)

    def json(self, theirs: str) -> str:
        """SQL for a column as text, in which lists and structures stand as JSON."""
        if _NESTED.match(self.columns[theirs]) and self.reader.startswith(_READ_PARQUET):
            return f"cast(to_json({self._identifier(theirs)}) as varchar)"
        return f"cast({self._identifier(theirs)} as varchar)"

    def label(self, theirs: str) -> str:
        """SQL for a column of ids or names: whole numbers as plain digits, so that 7, 7.0 and '7' meet."""
        text = self.text(theirs)
        if not _FRACTIONAL.match(self.columns[theirs]):
            return text
        name = self._identifier(theirs)
        whole = f"{name} = trunc({name}) and abs({name}) < 1e18"
        missing = f"when isnan(cast({name} as double)) then null"
        return f"case {missing} when {whole} then cast(cast({name} as hugeint) as varchar) else {text} end"

    def name(self, theirs: str) -> str:
        """SQL for a column of names: the label without the spaces around it."""
        return f"trim({self.label(theirs)}, '{_SPACES}')"

    def execute(self, query: str) -> duckdb.DuckDBPyConnection:
        """Run a query in which `{table}` denotes the file's rows; raises InputError where the file is unreadable."""
        with self.errors():
            return self.connection.execute(query.replace("{table}", self.reader), list(self.parameters))

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turns DuckDB's errors about the file into one InputError."""
        try:
            yield
        except duckdb.Error as error:
            raise _unreadable(self.path, error) from None

    def _identifier(self, theirs: str) -> str:
        if self.delimited:
            return f"c{list(self.columns).index(theirs)}"
        return '"' + theirs.replace('"', '""') + '"'


def open_table(path: TableSource) -> TableFile:
    """Open a table file, standard input (`-`), or a table in memory, and find its columns; close its connection when
    done.

    Raises InputError for an address, a workbook, an unknown extension, a missing, unreadable or empty file, and a table
    without rows.
    """
    if isinstance(path, MemoryTable):
        return _in_memory(path)
    refuse_address(path)
    file = file_of(path)
    if file.is_dir():
        raise InputError(f'{path}: a folder, not a file; where several files are taken: "{path}/*.csv"')
    refuse_archive(path, file)
    names = [suffix.lower() for suffix in file.suffixes[-2:]]
    compression = "gzip" if names[-1:] == [".gz"] else "none"
    extension = (names[:-1] if compression == "gzip" else names)[-1:]
    known = [*_DELIMITED, *_JSON] + ([".parquet"] if compression == "none" else [])
    if not extension or extension[0] not in known:
        raise InputError(f"{path}: not a table by its name; accepted: {_EXTENSIONS}")
    if not file.is_file():
        raise InputError(f"{path}: no such file")
    connection = connect(file)
    try:
        if extension[0] == ".parquet":
            table = _parquet(path, file, connection)
        else:
            file, compression = in_utf8(path, file, compression, marked=extension[0] in _DELIMITED)
            if extension[0] in _JSON:
                table = _json(path, file, connection, _JSON[extension[0]], compression)
            else:
                table = _delimited(path, file, connection, _DELIMITED[extension[0]], compression)
        if table.execute("select 1 from {table} limit 1").fetchone() is None:
            raise NoRowsError(f"{path}: the table has no rows: write at least one")
        if extension[0] in _JSON and list(table.columns) == ["json"]:  # what DuckDB calls values that are no objects
            how = "one for each row" if extension[0] == ".json" else "one on each line, and no list around them"
            raise InputError(f"{path}: its values are no JSON objects: write {how}")
    except InputError:
        connection.close()
        raise
    return table


def connect(*paths: TableSource) -> duckdb.DuckDBPyConnection:
    """A connection to read these files and tables with, to be closed; what it makes is temporary and its own.

    Small files share one DuckDB, which takes ten times as long to start as they take to read; large ones have their
    own, since it gives back what memory it took only when it ends.
    """
    small = sum(map(_size, paths)) <= _SMALL
    connection = _kept().cursor() if small else _duckdb()
    connection.execute("set enable_progress_bar=false")
    for path in paths:
        if isinstance(path, MemoryTable):
            connection.register(path.name, dict(path.cells))
    return connection


def _size(path: TableSource) -> int:
    """Bytes of a file, or about as many as a table in memory would have as one."""
    if isinstance(path, MemoryTable):
        return len(path) * len(path.columns) * _CELL
    return path.stat().st_size if path.is_file() else 0


def _in_memory(table: MemoryTable) -> TableFile:
    if not len(table):
        raise NoRowsError(f"{table} has no rows")
    cells = ", ".join(f"cast({name} as varchar) as {name}" for name in table.cells)  # a column without any has no type
    return TableFile(table, table.columns, True, connect(table), f"(select {cells} from {table.name})", ())


@cache
def _kept() -> duckdb.DuckDBPyConnection:
    return _duckdb()


def _duckdb() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(
        config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}  # never the network
    )
    connection.execute("set enable_external_file_cache=false")  # a file may be written again
    # Its own default is a folder where the user happens to stand.
    connection.execute("set temp_directory=?", [str(Path(gettempdir(), f"venire-{os.getpid()}"))])
    return connection


def _parquet(path: Path, file: Path, connection: duckdb.DuckDBPyConnection) -> TableFile:
    reader = f"{_READ_PARQUET}?, binary_as_string=true, hive_partitioning=false)"
    return _described(path, connection, reader, (_literal(file),))


def _delimited(
    path: Path, file: Path, connection: duckdb.DuckDBPyConnection, delimiter: str, compression: str
) -> TableFile:
    line, header, delimiter = _header(path, file, delimiter, compression)
    ours = is_neutralised(line, header, delimiter)
    header = [restored(name) for name in header] if ours else header
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise InputError(f'{path}: the header names "{twice[0]}" twice')
    # Cells are named by position: DuckDB takes `Model` and `model` for one name.
    types = {f"c{position}": "VARCHAR" for position in range(len(header))}
    reader = (
        "read_csv(?, columns=?, delim=?, compression=?, max_line_size=?, auto_detect=false, header=true, "
        "quote='\"', escape='\"', hive_partitioning=false)"
    )
    if ours:
        reader = f"(select {', '.join(f'{restored_sql(column)} as {column}' for column in types)} from {reader})"
    parameters = (_literal(file), types, delimiter, compression, _LONGEST_LINE)
    return TableFile(path, dict.fromkeys(header, "VARCHAR"), True, connection, reader, parameters)


def _header(path: Path, file: Path, delimiter: str, compression: str) -> tuple[str, list[str], str]:
    """The first line of a file as it stands there, its cells, and the delimiter between them.

    Another delimiter than the one of the file's name is taken where it makes more cells, as many in the second record.
    """
    try:
        line, records = _first_records(file, delimiter, compression)
        for other in _DELIMITERS:
            _, found = _first_records(file, other, compression) if other != delimiter else (line, records)
            even = len(found) < 2 or len(found[0]) == len(found[1])
            if found and even and len(found[0]) > len(records[0]):
                delimiter, records = other, found
    except UnicodeDecodeError:
        raise not_utf8(path) from None
    except (OSError, EOFError, csv.Error, zlib.error) as error:
        raise InputError(f"{path}: the header cannot be read: {error}") from None
    if not line:
        raise InputError(f"{path}: the file is empty; a header and rows are needed")
    if not records or not records[0]:
        raise InputError(f"{path}: the first line is empty; a header and rows are needed")
    return line, records[0], delimiter


def _first_records(file: Path, delimiter: str, compression: str) -> tuple[str, list[list[str]]]:
    """The first line of a file, and its first two records; only the header where the second one is too long."""
    opened = gzip.open if compression == "gzip" else open
    read: list[str] = []
    with opened(file, "rt", encoding="utf-8-sig", newline="") as lines:
        reader = csv.reader(_noted(lines, read), delimiter=delimiter)
        records = list(islice(reader, 1))
        line = "".join(read)
        # What is wrong with a row is said where rows are read.
        with suppress(csv.Error, UnicodeDecodeError, OSError, EOFError, zlib.error):
            records += islice((record for record in reader if record), 1)
    return line, records


def _noted(lines: Iterable[str], read: list[str]) -> Iterator[str]:
    for line in lines:
        read.append(line)
        yield line


def _json(path: Path, file: Path, connection: duckdb.DuckDBPyConnection, form: str, compression: str) -> TableFile:
    """The columns are found by looking at the whole file; then each is read as text, which keeps dates and ids."""
    look = (
        "read_json(?, format=?, compression=?, sample_size=-1, map_inference_threshold=-1, "
        "field_appearance_threshold=0, hive_partitioning=false)"
    )
    sizes: tuple[Any, ...] = ()
    try:
        found = _described(path, connection, look, (_literal(file), form, compression))
    except InputError as error:
        if "maximum_object_size" not in str(error):
            raise
        # One value that is longer than DuckDB expects, such as a whole report in one object.
        look, sizes = look.replace("(?,", "(?, maximum_object_size=?,", 1), (_longest(file, compression),)
        found = _described(path, connection, look, (_literal(file), *sizes, form, compression))
    kept = {name: kind if _NESTED.match(kind) else "VARCHAR" for name, kind in found.columns.items()}
    if set(found.columns) == {"json"}:
        return found
    longer = "maximum_object_size=?, " if sizes else ""
    reader = f"read_json(?, {longer}columns=?, format=?, compression=?, hive_partitioning=false)"
    parameters = (_literal(file), *sizes, dict.fromkeys(kept, "VARCHAR"), form, compression)
    return TableFile(path, kept, False, connection, reader, parameters)


def _longest(path: Path, compression: str) -> int:
    size = path.stat().st_size
    return min(size if compression == "none" else 20 * size, _LONGEST_VALUE)


def _described(
    path: Path, connection: duckdb.DuckDBPyConnection, reader: str, parameters: tuple[Any, ...]
) -> TableFile:
    table = TableFile(path, {}, False, connection, reader, parameters)
    rows = table.execute("describe select * from {table}").fetchall()
    return TableFile(path, {str(row[0]): str(row[1]) for row in rows}, False, connection, reader, parameters)


def _literal(path: Path) -> str:
    """The path with what DuckDB would take for a pattern set apart, absolute so that no `~` is opened up."""
    return re.sub(r"[*?\[]", r"[\g<0>]", str(path.absolute()))


def _unreadable(path: TableSource, error: duckdb.Error) -> InputError:
    """One sentence of DuckDB's report, without the line of the file that it quotes, its advice and its settings."""
    text = str(error)
    line = re.search(r"CSV Error on Line: (\d+)", text)
    if "Invalid unicode" in text or "invalid UTF-8" in text:
        return not_utf8(path, f"line {line[1]}: " if line else "")
    known = (reason for sign, reason in _CSV_REASONS.items() if (line or "CSV" in text) and sign in text)
    columns = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", text)
    if columns:
        reason = f"{columns[2]} cells where the header has {columns[1]}"
    else:
        first = re.sub(r"^[\w ]*Error: ", "", text).partition("\n")[0].strip()
        reason = next(known, first[:300])
    malformed = "Malformed JSON" in text and " in line " in text
    if isinstance(path, Path) and malformed and (bad := _bad_line(path)) is not None:
        return InputError(f"{path}: cannot be read: {bad}")
    absolute = path.absolute() if isinstance(path, Path) else path  # DuckDB may name the file once more
    reason = reason.removesuffix(f": {absolute}").replace(f"File '{absolute}' ", "the file is ")
    remedy = next((said for sign, said in _REMEDIES.items() if sign in text), "")
    return InputError(f"{path}: cannot be read: {f'line {line[1]}: ' if line else ''}{reason}{remedy}")


def _may_be(ours: str, theirs: str) -> bool:
    """Whether a column may be meant by a name of ours: no identifier for a text, and no other name of ours."""
    return theirs.lower() not in _OURS and (ours.endswith("_id") or not re.search(r"(^|[_ ])id$", theirs.lower()))


def _bad_line(path: Path) -> str | None:
    """The first line that is no JSON, and why; DuckDB counts one too many, and no empty lines."""
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                line.isspace() or json.loads(line)
            except ValueError as error:
                why = str(error).partition(": line")[0]
                return f"line {number}: no JSON ({why}); write one whole object on each line"
    return None
