"""DuckDB's connection to a store's file: its settings, schema and end, and the named queries of `queries/*.sql`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from venire.arena.clock import Clock
from venire.arena.errors import InputError
from venire.storage.store.files import held, log_path, make_private

ROW_GROUP = 4096
"""Rows; a commit of as many may write to the file itself, others are in the log alone until a checkpoint."""

MEMORY = "1GB"
THREADS = 2
"""What DuckDB may use: a group of rows with texts of megabytes is held whole."""

_SHUT = ("set python_enable_replacements = false", "set enable_external_access = false")
"""Once a store is attached no file and no variable is opened through its connection; DuckDB does not take this back.

The one exception is the copy of a store that was taken away: it is made through this connection or not at all.
"""


_ENDINGS = ("", ".wal", ".wal.checkpoint", ".wal.recovery")
"""Of the files that DuckDB makes of a database."""

Row = tuple[Any, ...]
Migration = tuple[int, str, str]
"""Number, name and text."""

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
"""Queries are in queries/*.sql, each below a line of this form and a comment on its purpose."""


@cache
def _queries() -> dict[str, str]:
    found: dict[str, str] = {}
    for file in sorted(files("venire.storage").joinpath("queries").iterdir(), key=lambda entry: entry.name):
        _, *parts = _NAME.split(file.read_text(encoding="utf-8"))
        for name, text in zip(parts[::2], parts[1::2], strict=True):
            if name in found:
                raise ValueError(f"two queries are called {name}")
            found[name] = text.strip()
    return found


def query(name: str) -> str:
    """The text of a named query; a text with a space is SQL itself, such as a file format of another package brings.

    Raises KeyError for a name that no file has.
    """
    return name if " " in name else _queries()[name]


_VIEW = re.compile(r"^create (?:or replace )?view (\w+) as(.*?);$", re.MULTILINE | re.DOTALL)
_WRITTEN = re.compile(r"(?:insert into|update|delete from) (\w+)")


@cache
def written_table(name: str) -> str:
    """The table that a named statement writes; empty for one that writes none."""
    found = _WRITTEN.match(_plain(query(name)))
    return found[1] if found else ""


@cache
def words_read(name: str) -> frozenset[str]:
    """The words of a named query and of the views among them: every table that it reads is one."""
    found = _words(query(name))
    while more := frozenset().union(*(read for view, read in _views() if view in found)) - found:
        found |= more
    return found


@cache
def _views() -> tuple[tuple[str, frozenset[str]], ...]:
    """Views by name, in each of their versions, with the words of what they select."""
    texts = (text for _, _, text in migrations())
    return tuple((view, _words(read)) for text in texts for view, read in _VIEW.findall(text))


def _plain(text: str) -> str:
    return re.sub(r"--.*\n", "", text)


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", _plain(text)))


@cache
def migrations() -> tuple[Migration, ...]:
    """Every migration, in order."""
    folder = files("venire.storage").joinpath("migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return tuple(
        (int(name[:4]), name.removesuffix(".sql"), folder.joinpath(name).read_text(encoding="utf-8")) for name in names
    )


def rescued_paths(store: Path) -> tuple[Path, ...]:
    """Where a run writes what it holds of a store that was taken away under it: to the first that is free."""
    return tuple(store.with_name(f"{store.name}.rescued{end}") for end in ("", *(f"-{n}" for n in range(2, 10))))


def make_database(path: Path, opened: duckdb.DuckDBPyConnection | None = None, *, block_bytes: int = 0) -> None:
    """Make an empty database for its user alone, unless there is a file; DuckDB lets everybody read what it makes.

    `opened` is a connection that may open files; None: one is made, which takes 12 ms. `block_bytes` is the size of the
    blocks that the file grows by and keeps for life, 0 for DuckDB's own (256 KiB).
    """
    if path.exists():
        return
    with TemporaryDirectory(prefix="venire-") as folder, ExitStack() as stack:
        empty = Path(folder) / "empty.duckdb"
        connection = opened or stack.enter_context(duckdb.connect(":memory:"))
        how = f" (block_size {block_bytes})" if block_bytes else ""
        connection.execute(f"attach {quoted(empty)} as empty{how}")
        connection.execute("detach empty")
        make_private(path, empty.read_bytes())


def connect(path: Path, *, scratch: Path | None = None) -> duckdb.DuckDBPyConnection:
    """Attach a store's file as `venire`, made when it is not there.

    With `scratch`, a folder for what does not fit into memory, the file is only read, and neither it nor a log beside
    it is changed; without, that folder is beside the file. Raises StoreHeldError where only reading is refused because
    another process writes, and InputError for what DuckDB does not take.
    """
    temporary = path.absolute().with_name(path.name + ".tmp") if scratch is None else scratch
    how = f"row_group_size {ROW_GROUP}" if scratch is None else "read_only"
    connection = duckdb.connect(":memory:")
    for setting in (
        "set enable_progress_bar = false",
        "set wal_autocheckpoint = '100GB'",
        f"set memory_limit = '{MEMORY}'",
        f"set threads = {THREADS}",
        "set preserve_insertion_order = false",
        "set TimeZone = 'UTC'",
        "set max_temp_directory_size = '8GB'",  # a greedy query ends before the disk is full
        f"set temp_directory = {quoted(temporary)}",
    ):
        connection.execute(setting)
    allowed = ", ".join(quoted(one.with_name(one.name + end)) for one in rescued_paths(path) for end in _ENDINGS)
    try:
        if scratch is None:
            make_database(path, connection)
        connection.execute(f"attach {quoted(path)} as venire (type duckdb, {how})")
        connection.execute("use venire")
        connection.execute(f"set allowed_paths = [{allowed}]")
        for setting in _SHUT:
            connection.execute(setting)
    except (duckdb.Error, OSError) as error:
        connection.close()
        if scratch is not None and "Could not set lock" in str(error):
            raise held(path) from error
        if "not a valid DuckDB" in str(error):
            raise InputError(
                f"{path} is no store, not a valid DuckDB database: name the .duckdb file that `venire run` made, or "
                "its campaign file"
            ) from error
        raise InputError(f"cannot open {path} as a store: {first_line(error)}") from error
    return connection


def close(connection: duckdb.DuckDBPyConnection, *, fold: bool) -> None:
    """Close a connection; DuckDB would fold the log in by itself, ready or not."""
    if not fold:
        with suppress(duckdb.Error):  # it has given the connection up, and writes no more
            connection.execute("pragma disable_checkpoint_on_shutdown")
    connection.close()


def refuse_other_format(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Raises InputError for a file of something else, and for a store of another format than today's."""
    try:
        found = _format(connection, path)
    except duckdb.Error as error:
        raise InputError(f"{path} cannot be used as a store: {first_line(error)}") from error
    if found < migrations()[-1][0]:
        raise InputError(
            f"the store {path} has format {found}, is brought to format {migrations()[-1][0]} before it is read, and "
            "cannot be written: copy it to a folder of your own and name the copy"
        )


def _format(connection: duckdb.DuckDBPyConnection, path: Path) -> int:
    """The format of the store in a file, 0 of an empty file. Raises InputError for something else and a newer one."""
    try:
        found: int = fetch(connection, "read_store", {})[0][0]
    except duckdb.CatalogException:  # there is no such table
        if fetch(connection, "tables", {}):
            raise InputError(f"{path} is a DuckDB file of something else: name another store") from None
        return 0
    newest = migrations()[-1][0]
    if found < 1:
        raise InputError(
            f"the store {path} has format {found}, which no Venire wrote: something else changed it; name a copy of it"
        )
    if found > newest:
        raise InputError(
            f"the store {path} has format {found} and this Venire reads up to {newest}: install a newer Venire"
        )
    return found


def migrate(connection: duckdb.DuckDBPyConnection, path: Path, clock: Clock) -> None:
    """Bring a file to today's schema, a new one in one transaction, an older one in one for each step.

    Raises InputError for a file of something else and for a newer format.
    """
    found = _format(connection, path)
    steps = [step for step in migrations() if step[0] > found]
    if steps:
        make_private(log_path(path))
    for together in [[step] for step in steps] if found else [steps]:
        connection.begin()
        for _, _, text in together:
            connection.execute(text)
        sign(connection, together, clock.wall(), new=not found)
        connection.commit()


def sign(connection: duckdb.DuckDBPyConnection, steps: Sequence[Migration], now: datetime, *, new: bool) -> None:
    """Note in the store in use which migrations were applied, and in a new one what it is."""
    numbers, names, _ = zip(*steps, strict=True)
    if new:
        connection.execute(query("insert_store"), {"format": numbers[-1], "version": version("venire"), "now": now})
    else:
        connection.execute(query("update_format"), {"format": numbers[-1]})
    connection.execute(query("insert_migrations"), {"numbers": numbers, "names": names, "now": now})


def fetch(connection: duckdb.DuckDBPyConnection, name: str, parameters: Mapping[str, Any]) -> list[Row]:
    """All rows of a named query."""
    rows: list[Row] = connection.execute(query(name), dict(parameters)).fetchall()
    return rows


def quoted(text: Path | str) -> str:
    """A path or another text as a string of SQL."""
    return "'" + str(text).replace("'", "''") + "'"


def first_line(error: Exception) -> str:
    """DuckDB's message, without its notes on the place."""
    return str(error).splitlines()[0]
