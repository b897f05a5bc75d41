"""A user's table with columns added: all of it as it was, row by row, and what was found in one of its columns.

The result is written beside its place and moved there when it is whole.
"""

from __future__ import annotations

import gzip
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import duckdb

from venire.arena.errors import InputError
from venire.storage.transfer.delimited import write_rows
from venire.storage.transfer.formats.source import TableFile, open_table

_ROWS = 2000
_TEXT: dict[str, Any] = {"encoding": "utf-8", "newline": ""}
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_FORMS = {
    ".jsonl": "format json, array false",
    ".ndjson": "format json, array false",
    ".json": "format json, array true",
    ".parquet": "format parquet, compression zstd",
}


class Annotated:
    """An open table of which one text column is read, and to which columns of text are added; close it when done."""

    def __init__(self, table: TableFile, column: str, *, raw: bool = False) -> None:
        self._table = table
        self._column = column
        self._raw = raw

    @property
    def columns(self) -> Sequence[str]:
        """The names of the table's columns."""
        return tuple(self._table.columns)

    def texts(self) -> Iterator[str | None]:
        """The cells of the column that is read, in the table's order; an empty cell of CSV or TSV is None."""
        with self._table.errors():
            result = self._table.execute(f"select {self._table.text(self._column)} from {{table}}")
            while rows := result.fetchmany(_ROWS):
                yield from (row[0] for row in rows)

    def cells(self, column: str) -> list[str | None]:
        """All cells of another column, as labels."""
        with self._table.errors():
            return [
                cell for (cell,) in self._table.execute(f"select {self._table.label(column)} from {{table}}").fetchall()
            ]

    def add(self, columns: Mapping[str, Sequence[str | None]]) -> None:
        """Keep new columns, a cell for each row in the table's order; raises InputError where a name is taken."""
        taken = {name.casefold(): name for name in self._table.columns}
        for name in columns:
            if name.casefold() in taken:
                raise InputError(
                    f'{self._table.path}: has a column "{taken[name.casefold()]}" already; '
                    f"choose other names for the new ones with --prefix, as in --prefix parsed_"
                )
        names = ", ".join(f"{_quoted(name)} varchar" for name in columns)
        self._table.connection.execute(f"create temp table added ({names})")
        cells = list(columns.values())
        unnested = ", ".join("unnest(cast(? as varchar[]))" for _ in columns)
        for at in range(0, len(cells[0]), _ROWS):
            chunk = [list(cell[at : at + _ROWS]) for cell in cells]
            self._table.connection.execute(f"insert into added select {unnested}", chunk)

    def write_to(self, file: TextIO, delimiter: str = ",") -> None:
        """Write the table as CSV, or with another delimiter."""
        added = [str(row[0]) for row in self._table.connection.execute("describe added").fetchall()]
        write_rows(file, [*self._table.columns, *added], self._rows(), delimiter, raw=self._raw)

    def _rows(self) -> Iterator[tuple[str | None, ...]]:
        """All cells as text; a cell without a value is None."""
        cells = [f"cast(t.{_quoted(name)} as varchar)" for name in self._names()]
        with self._table.errors():
            result = self._table.execute(
                f"select {', '.join(cells)}, added.* from (select * from {{table}}) t positional join added"
            )
            while rows := result.fetchmany(_ROWS):
                yield from rows

    def write(self, path: Path) -> None:
        """Write the table to a file whose name gives its form; raises InputError where that cannot be done."""
        extension, packed = _form(path)
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        try:
            if extension in _DELIMITERS:
                with gzip.open(partial, "wt", **_TEXT) if packed else partial.open("w", **_TEXT) as file:
                    self.write_to(file, _DELIMITERS[extension])
            else:
                self._copy(partial, path, _FORMS[extension] + (", compression gzip" if packed else ""))
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)

    def _copy(self, partial: Path, path: Path, form: str) -> None:
        folded = Counter(map(str.casefold, self._table.columns))
        if twice := [name for name in self._table.columns if folded[name.casefold()] > 1]:
            raise InputError(f"{path}: columns {' and '.join(twice)} differ by case only; write .csv or .tsv instead")
        table = _as_json(self._table) if "format json" in form else self._table
        shown = zip(self._names(), self._table.columns, strict=True)
        cells = ", ".join(f"t.{_quoted(name)} as {_quoted(theirs)}" for name, theirs in shown)
        place = str(partial.absolute()).replace("'", "''")
        query = f"select {cells}, added.* from (select * from {table.reader}) t positional join added"
        try:
            table.connection.execute(f"copy ({query}) to '{place}' ({form})", list(table.parameters))
        except duckdb.Error as error:
            reason = str(error).partition("\n")[0].rpartition("Error: ")[2][:300]
            raise InputError(f"{path}: cannot be written: {reason}") from None

    def close(self) -> None:
        """Close the table."""
        self._table.connection.close()

    def _names(self) -> Iterable[str]:
        """How the reader calls the columns: cells of CSV by their position."""
        return [f"c{at}" for at in range(len(self._table.columns))] if self._table.delimited else self._table.columns


def open_annotated(
    path: Path, column: str, mapping: Mapping[str, str], out: Path | None, *, raw: bool = False
) -> Annotated:
    """Open a table of which `column`, or the file's name for it, is read; `raw` writes formulas in CSV as they are.

    Raises InputError for a file that cannot be read, a missing column, and an `out` that cannot be written there.
    """
    if out is not None:
        _form(out)
        if out.is_dir() or not out.absolute().parent.is_dir():
            raise InputError(f"{out}: {'a folder, not a file' if out.is_dir() else 'its folder does not exist'}")
        if not os.access(out.absolute().parent, os.W_OK):
            raise InputError(f"{out}: its folder cannot be written to")
    table = open_table(path)
    try:
        theirs = table.column(column, mapping)
        table.text(theirs)
    except InputError:
        table.connection.close()
        raise
    return Annotated(table, theirs, raw=raw)


def _form(path: Path) -> tuple[str, bool]:
    """The extension of a file to write and whether it is packed; raises InputError for one that is not known."""
    names = [suffix.lower() for suffix in path.suffixes]
    packed = names[-1:] == [".gz"]
    extension = "".join((names[:-1] if packed else names)[-1:])
    known = [*_DELIMITERS, *_FORMS]
    if extension not in known or (packed and extension == ".parquet"):
        raise InputError(f"{path}: not a table by its name; accepted: {', '.join(known)}, the text forms also with .gz")
    return extension, packed


def _as_json(table: TableFile) -> TableFile:
    """The same rows of a JSON file with each value as in the file, so that a number stays a number."""
    if not table.reader.startswith("read_json("):
        return table
    path, _, *rest = table.parameters
    return replace(table, parameters=(path, dict.fromkeys(table.columns, "JSON"), *rest))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
