"""Tables of a store as files that others can read: Parquet, CSV, JSON Lines, Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import duckdb

from venire.arena.choices import KeptPairs
from venire.arena.errors import InputError
from venire.storage.care.offline import attached, folded, in_place, scratch_of
from venire.storage.store.connection import query, quoted
from venire.storage.transfer.formats import with_writers
from venire.storage.transfer.formats.entry import ExportWriter, Part, prepare, statement

__all__ = ["FORMS", "Exported", "export"]

DEFAULT = ("battle", "attempt", "plan")
_FRIENDLY = {"battle": "export_battle", "attempt": "export_attempt", "plan": "export_plan"}
_OPTIONS = {
    "parquet": "format parquet, compression zstd",
    "csv": "format csv, header true",
    "jsonl": "format json, array false",
}
FORMS = (*_OPTIONS, "arrow")
_BATCH_ROWS = 4_096


@dataclass(frozen=True, slots=True)
class Exported:
    """A file that was written, of one table, with its rows and bytes."""

    table: str
    path: str
    rows: int
    bytes: int


def export(
    path: Path,
    folder: Path,
    *,
    form: str = "parquet",
    campaign: str | None = None,
    tables: Sequence[str] = (),
    force: bool = False,
    keep: str = "agreed",
) -> tuple[Exported, ...]:
    """Write tables or views of a store into a folder, one file each, under a temporary name first.

    `form` is parquet, csv, jsonl or arrow, or a format of another tool (`storage.transfer.formats.FORMATS`), which has
    files of its own: no tables are named then, and `keep` selects the judgments that become preference pairs. `attempt`
    and `plan` come with names instead of numbers. With `campaign`, tables with a column of that name are limited to it.
    CSV and JSON Lines have times as ISO 8601 in UTC and bytes as hexadecimal digits.

    Raises InputError for a store, campaign or table that is not there, for files that are there already unless `force`
    is true, and where Arrow is asked for and not installed; StoreHeldError when another process owns the store.
    """
    writers = with_writers()
    if form not in FORMS and form not in writers:
        raise InputError(f"no format {form!r} to export to; there are: {', '.join([*FORMS, *writers])}")
    if form in writers and tables:
        raise InputError(f"{form} has files of its own: leave --table out")
    if keep not in get_args(KeptPairs):
        raise InputError(f"--keep is {keep!r}; choose one of {', '.join(get_args(KeptPairs))}")
    if form == "arrow":
        _refuse_without_arrow()
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: name a folder to export to")
    with (
        folded(path, to_read=True) as path,
        scratch_of(path) as scratch,
        attached({"kept": path}, scratch=scratch) as connection,
    ):
        _choose(connection, path, campaign)
        if form in writers:
            return _write_parts(connection, folder, writers[form], keep, force)
        wanted = _wanted(connection, path, tables)
        targets = {table: folder / f"{table}.{form}" for table in wanted}
        for target in targets.values():
            _refuse_there(target, force)
        folder.mkdir(parents=True, exist_ok=True)
        return tuple(_write(connection, table, targets[table], form, campaign) for table in wanted)


def _refuse_there(target: Path, force: bool) -> None:
    if target.exists() and not force:
        raise InputError(f"{target} is there already: name another folder, or replace it with --force")


def _write_parts(
    connection: duckdb.DuckDBPyConnection, folder: Path, writer: ExportWriter, keep: str, force: bool
) -> tuple[Exported, ...]:
    """The files of another tool's format."""
    prepare(connection)
    parts = list(writer(connection, keep))
    for part in parts:
        _refuse_there(folder / part.path, force)
    return tuple(_write_part(connection, folder / part.path, part) for part in parts)


def _write_part(connection: duckdb.DuckDBPyConnection, target: Path, part: Part) -> Exported:
    target.parent.mkdir(parents=True, exist_ok=True)
    select = statement(connection, part)
    with in_place(target) as partial:
        array = "true" if part.form == "list" else "false"
        copy = f"copy ({select}) to {quoted(partial)} (format json, array {array})"
        ((rows,),) = connection.execute(copy).fetchall()
    return Exported(str(part.path), str(target), int(rows), target.stat().st_size)


def _wanted(connection: duckdb.DuckDBPyConnection, path: Path, tables: Sequence[str]) -> list[str]:
    there = [name for (name,) in connection.execute(query("export_names")).fetchall()]
    for name in tables:
        if name not in there:
            raise InputError(f"{path} has no table or view {name!r}; there are: {', '.join(there)}")
    return list(dict.fromkeys(tables or DEFAULT))


def _choose(connection: duckdb.DuckDBPyConnection, path: Path, campaign: str | None) -> None:
    """Sets what a table cut to one campaign is compared with: its name, or its number."""
    if campaign is None:
        return
    numbers = {name: number for number, name, *_ in connection.execute(query("campaigns")).fetchall()}
    if campaign not in numbers:
        raise InputError(f"the store {path} has no campaign {campaign!r}; there are: {', '.join(numbers) or 'none'}")
    connection.execute("set variable campaign_name = $name", {"name": campaign})
    connection.execute("set variable campaign_number = $number", {"number": numbers[campaign]})


def _write(
    connection: duckdb.DuckDBPyConnection, table: str, target: Path, form: str, campaign: str | None
) -> Exported:
    source = query(_FRIENDLY[table]).rstrip("; \n") if table in _FRIENDLY else f'select * from "{table}"'
    columns = connection.execute(f"describe {source}").fetchall()
    shown = ", ".join(_cell(name, kind, form) for name, kind, *_ in columns)
    statement = f"select {shown} from ({source})"
    kinds = {name: kind for name, kind, *_ in columns}
    if campaign is not None and "campaign" in kinds:
        which = "campaign_name" if kinds["campaign"] == "VARCHAR" else "campaign_number"
        statement += f" where campaign = getvariable('{which}')"
    with in_place(target) as partial:
        if form == "arrow":
            rows = _write_arrow(connection, statement, partial)
        else:
            quoted = str(partial).replace("'", "''")
            ((rows,),) = connection.execute(f"copy ({statement}) to '{quoted}' ({_OPTIONS[form]})").fetchall()
    return Exported(table, str(target), int(rows), target.stat().st_size)


def _cell(name: str, kind: str, form: str) -> str:
    """SQL for one column: in texts, times in UTC and bytes as hexadecimal digits."""
    column = '"' + name.replace('"', '""') + '"'
    if form in ("csv", "jsonl") and kind == "TIMESTAMP WITH TIME ZONE":
        return f"strftime({column} at time zone 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ') as {column}"
    if form in ("csv", "jsonl") and kind == "BLOB":
        return f"lower(hex({column})) as {column}"
    return column


def _refuse_without_arrow() -> None:
    if find_spec("pyarrow") is None:
        raise InputError("the Arrow format needs pyarrow: pip install 'venire[arrow]'")


def _write_arrow(connection: duckdb.DuckDBPyConnection, statement: str, partial: Path) -> int:
    from pyarrow import ipc

    rows = 0
    reader = connection.sql(statement).to_arrow_reader(_BATCH_ROWS)
    with partial.open("wb") as sink, ipc.new_file(sink, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows
