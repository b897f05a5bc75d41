"""Tables of a store as files that others can read: Parquet, CSV, JSON Lines, Arrow; or the files of another tool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

import duckdb

from venire.arena.choices import KeptPairs
from venire.arena.errors import InputError
from venire.arena.wording import suggest
from venire.storage.care.offline import attached, folded, in_place, scratch_of
from venire.storage.store.connection import query, quoted
from venire.storage.transfer.delimited import header_line, neutral_sql
from venire.storage.transfer.formats import FORMATS, with_writers
from venire.storage.transfer.formats.entry import ExportOptions, Format, Part, prepare, statement

_FRIENDLY = {
    "battles": "export_battle",
    "judgments": "export_judgment",
    "replies": "export_reply",
    "votes": "export_vote",
    "battle": "export_battle",
    "attempt": "export_attempt",
    "plan": "export_plan",
}
TABLES = ("battles", "judgments", "replies", "votes")
"""Tables with names instead of numbers; any table or view of a store can be named as well."""
RATINGS = "ratings"
"""The table that is computed from a store and handed in."""
_OPTIONS = {
    "parquet": "format parquet, compression zstd",
    "jsonl": "format json, array false",
}
FORMS = ("parquet", "csv", "jsonl", "arrow")
"""What a table is written as, which is the ending of its file."""
_BATCH_ROWS = 4_096
_KINDS = {bool: "boolean", int: "bigint", str: "varchar"}


@dataclass(frozen=True, slots=True)
class Exported:
    """A file that was written, of one table, with its rows and bytes."""

    table: str
    path: str
    rows: int
    bytes: int


def export_tables(
    path: Path,
    out: Path,
    tables: Sequence[str],
    *,
    form: str | None = None,
    campaign: str | None = None,
    ratings: Sequence[Mapping[str, Any]] = (),
    force: bool = False,
    raw: bool = False,
) -> tuple[Exported, ...]:
    """Write tables or views of a store, under a temporary name first.

    One table without `form` (parquet, csv, jsonl or arrow) goes to the file `out`, whose ending says what it is; else
    `out` is a folder with a file for each table, Parquet by default. `TABLES`, `attempt` and `plan` come with names
    instead of numbers; the table "ratings" has the rows of `ratings`. With `campaign`, tables with a column of that
    name are limited to it. CSV and JSON Lines have times as ISO 8601 in UTC and bytes as hexadecimal digits. In CSV a
    text that begins like a formula has an apostrophe before it, which reading takes away again, unless `raw`.

    Raises InputError for a store, campaign or table that is not there, an ending that is not known, `TABLES` or ratings
    without a row, files that are there already unless `force` is true, and where Arrow is asked for and not installed;
    StoreHeldError when another process owns the store.

    >>> export_tables(Path("first.duckdb"), Path("battles.csv"), ["battles"])[0].table
    'battles'
    """
    if RATINGS in tables and not ratings:
        raise InputError(f"{path} has no rated model to export: run the campaign first, and see `venire rate {path}`")
    single = form is None and len(tables) == 1
    form = _ending(out, FORMS, tables[0]) if single else form or "parquet"
    if form not in FORMS:
        raise InputError(f"no format {form!r} to write tables in; {suggest(form, FORMS)}")
    if form == "arrow":
        _refuse_without_arrow()
    if not single:
        _refuse_a_file(out)
    with _opened(path, campaign) as (connection, path):
        _add_ratings(connection, ratings)
        wanted = _wanted(connection, path, tables)
        targets = {table: out if single else out / f"{table}.{form}" for table in wanted}
        for table, target in targets.items():
            _refuse_there(target, force)
            _refuse_empty(connection, path, table, campaign)
        return tuple(_write(connection, table, targets[table], form, campaign, raw=raw) for table in wanted)


def export_format(
    path: Path,
    out: Path,
    form: str,
    *,
    campaign: str | None = None,
    options: ExportOptions | None = None,
    force: bool = False,
    raw: bool = False,
) -> tuple[Exported, ...]:
    """Write a store in the files of another tool (`storage.transfer.formats.FORMATS`), each whole or not at all.

    `out` is one file where its ending is among those of the format, else a folder. `raw` is as for `export_tables`.
    Raises InputError as that does, for a format that is not written, an option that it does not take, and as the
    format's writer does.

    >>> export_format(Path("first.duckdb"), Path("pairs.jsonl"), "preferences")[0].rows
    12
    """
    writers, form = with_writers(), FORMATS.named(form)
    if form not in writers:
        raise InputError(f"no format {form!r} to export to; {suggest(form, [*TABLES, RATINGS, *writers])}")
    found, options = FORMATS[form], options or ExportOptions()
    _refuse_ignored(form, found, options)
    ending = out.suffix.removeprefix(".")
    single = ending in found.endings and not out.is_dir()
    if ending in {*FORMS, "json"} and not single and not out.is_dir():
        kinds = " or ".join(f".{ending}" for ending in found.endings)
        there = f"a file that ends with {kinds}, or a folder" if kinds else "a folder"
        raise InputError(f"{out}: {form} is not written as .{ending}: name {there}")
    if not single:
        _refuse_a_file(out)
    with _opened(path, campaign) as (connection, path):
        prepare(connection)
        _add_ratings(connection, options.ratings)
        chosen = {option.name: getattr(options, option.name) for option in fields(options)} | {"ending": ending}
        parts = list(writers[form](connection, ExportOptions(**chosen) if single else options))
        targets = [out if single else out / part.path for part in parts]
        for target in targets:
            _refuse_there(target, force)
        pairs = zip(targets, parts, strict=True)
        return tuple(_write_part(connection, target, part, raw=raw) for target, part in pairs)


@contextmanager
def _opened(path: Path, campaign: str | None) -> Iterator[tuple[duckdb.DuckDBPyConnection, Path]]:
    """A connection to a store at rest, with the campaign chosen that tables are cut to."""
    with (
        folded(path, to_read=True) as path,
        scratch_of(path) as scratch,
        attached({"kept": path}, scratch=scratch) as connection,
    ):
        _choose(connection, path, campaign)
        yield connection, path


def _ending(out: Path, endings: Sequence[str], what: str) -> str:
    """The ending of a file to write. Raises InputError for a folder and for another ending."""
    if out.is_dir():
        raise InputError(f"{out} is a folder: name a file in it, such as {out / what}.parquet, or add --format")
    ending = out.suffix.removeprefix(".")
    if ending not in endings:
        kinds = ", ".join(f".{ending}" for ending in endings)
        raise InputError(f"{out}: the ending says what is written: {kinds}; a folder needs --format")
    return ending


def _refuse_a_file(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: name a folder to export to")


def _refuse_there(target: Path, force: bool) -> None:
    if target.is_dir():
        raise InputError(f"{target} is a folder: name another file")
    if target.exists() and not force:
        raise InputError(f"{target} is there already: name another place, or replace it with --force")


def _refuse_ignored(form: str, found: Format, options: ExportOptions) -> None:
    """Raises InputError for an option that a format would not look at, and for a word that is none."""
    if options.keep not in get_args(KeptPairs):
        raise InputError(f"--keep is {options.keep!r}; {suggest(options.keep, get_args(KeptPairs))}")
    flags = {
        "keep": "--keep",
        "judges": "--judge",
        "messages": "--messages",
        "baseline": "--baseline",
        "pair": "--pair",
    }
    default = ExportOptions()
    for name, flag in flags.items():
        if name not in found.options and getattr(options, name) != getattr(default, name):
            raise InputError(f"{form} does not take {flag}: leave it out")


def _refuse_empty(connection: duckdb.DuckDBPyConnection, path: Path, table: str, campaign: str | None) -> None:
    def any_row(name: str) -> bool:
        source, _ = _selected(connection, name, campaign)
        return connection.execute(f"select 1 from ({source}) limit 1").fetchone() is not None

    if table not in TABLES or any_row(table):
        return
    if table == "votes":
        raise InputError(f"{path} has no votes of people to export: `venire import votes` brings them in")
    what = "replies" if table == "replies" else "verdicts on pairs of answers"
    where = "" if campaign is None else f" of the campaign {campaign!r}"
    others = [kind for kind in ("grade", "ballot") if table != "replies" and any_row(kind)]
    do = f"there are others: {', '.join(others)}" if others else "run the campaign first (`venire run`)"
    raise InputError(f"{path} has no {what}{where} to export: {do}")


def _add_ratings(connection: duckdb.DuckDBPyConnection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Make the temporary table `written_rating` of rows that have the same keys."""
    if not rows:
        return
    kinds = {name: next((type(row[name]) for row in rows if row[name] is not None), float) for name in rows[0]}
    columns = ", ".join(f"{_named(name)} {_KINDS.get(kind, 'double')}" for name, kind in kinds.items())
    connection.execute(f"create or replace temp table written_rating ({columns})")
    places = ", ".join("?" * len(kinds))
    connection.executemany(f"insert into written_rating values ({places})", [list(row.values()) for row in rows])


def _write_part(connection: duckdb.DuckDBPyConnection, target: Path, part: Part, *, raw: bool) -> Exported:
    target.parent.mkdir(parents=True, exist_ok=True)
    with in_place(target) as partial:
        if part.form == "text":
            partial.write_text(part.query, encoding="utf-8")
            rows = len(part.query.splitlines())
        elif part.form == "csv":
            names = None if part.header is None else part.header.split(",")
            rows = _copy_csv(connection, statement(connection, part), partial, names, raw=raw)
        else:
            how = _OPTIONS["parquet"] if part.form == "parquet" else f"format json, array {part.form == 'list'}"
            copy = f"copy ({statement(connection, part)}) to {quoted(partial)} ({how})"
            ((rows,),) = connection.execute(copy).fetchall()
    return Exported(str(part.path), str(target), int(rows), target.stat().st_size)


def _copy_csv(
    connection: duckdb.DuckDBPyConnection, source: str, partial: Path, names: Sequence[str] | None, *, raw: bool
) -> int:
    """Write the rows of a query as CSV under its columns' names, or others; returns the number of rows."""
    columns = [(name, kind) for name, kind, *_ in connection.execute(f"describe {source}").fetchall()]
    cells = [
        f"{neutral_sql(_named(name))} as {_named(name)}" if kind == "VARCHAR" and not raw else _named(name)
        for name, kind in columns
    ]
    head = header_line(names or [name for name, _ in columns], raw=raw) + "\n"
    copy = f"copy (select {', '.join(cells)} from ({source})) to {quoted(partial)}"
    # the suffix stands where the end of the last line would
    how = f"format csv, header false, prefix {quoted(head)}, suffix '\n'"
    ((rows,),) = connection.execute(f"{copy} ({how})").fetchall()
    if not rows:
        partial.write_text(head, encoding="utf-8")
    return int(rows)


def _wanted(connection: duckdb.DuckDBPyConnection, path: Path, tables: Sequence[str]) -> list[str]:
    there = [name for (name,) in connection.execute(query("export_names")).fetchall()]
    for name in tables:
        if name not in (*there, *TABLES, RATINGS):
            raise InputError(f"{path} has no table or view {name!r}; {suggest(name, [*TABLES, RATINGS, *there])}")
    return list(dict.fromkeys(tables))


def _choose(connection: duckdb.DuckDBPyConnection, path: Path, campaign: str | None) -> None:
    """Sets what a table cut to one campaign is compared with: its name, or its number."""
    if campaign is None:
        return
    numbers = {name: number for number, name, *_ in connection.execute(query("campaigns")).fetchall()}
    if campaign not in numbers:
        raise InputError(f"the store {path} has no campaign {campaign!r}; {suggest(campaign, numbers)}")
    connection.execute("set variable campaign_name = $name", {"name": campaign})
    connection.execute("set variable campaign_number = $number", {"number": numbers[campaign]})


def _selected(
    connection: duckdb.DuckDBPyConnection, table: str, campaign: str | None
) -> tuple[str, list[tuple[str, str]]]:
    """The query of a table cut to a campaign, and its columns with their types."""
    source = query(_FRIENDLY[table]).rstrip("; \n") if table in _FRIENDLY else f"select * from {_named(table)}"
    source = "select * from written_rating" if table == RATINGS else source
    columns = [(name, kind) for name, kind, *_ in connection.execute(f"describe {source}").fetchall()]
    kinds = dict(columns)
    if campaign is not None and "campaign" in kinds:
        which = "campaign_name" if kinds["campaign"] == "VARCHAR" else "campaign_number"
        source = f"select * from ({source}) where campaign = getvariable('{which}')"
    return source, columns


def _write(
    connection: duckdb.DuckDBPyConnection, table: str, target: Path, form: str, campaign: str | None, *, raw: bool
) -> Exported:
    target.parent.mkdir(parents=True, exist_ok=True)
    source, columns = _selected(connection, table, campaign)
    shown = ", ".join(_cell(name, kind, form) for name, kind in columns)
    select = f"select {shown} from ({source})"
    with in_place(target) as partial:
        if form == "arrow":
            rows = _write_arrow(connection, select, partial)
        elif form == "csv":
            rows = _copy_csv(connection, select, partial, None, raw=raw)
        else:
            ((rows,),) = connection.execute(f"copy ({select}) to {quoted(partial)} ({_OPTIONS[form]})").fetchall()
    return Exported(table, str(target), int(rows), target.stat().st_size)


def _named(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _cell(name: str, kind: str, form: str) -> str:
    """SQL for one column: in texts, times in UTC and bytes as hexadecimal digits."""
    column = _named(name)
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
