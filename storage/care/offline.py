"""Store files outside a campaign: locked, folded, attached several at a time, and put in place whole or not at all.

A store that this process has open is never touched here: to open and close its file once more drops DuckDB's lock.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from venire.arena.errors import InputError, StoreError
from venire.storage.store.connection import ROW_GROUP, first_line, make_database, migrations, query, quoted
from venire.storage.store.files import StoreLock, flush, is_writable, log_path
from venire.storage.store.journal import journal_path
from venire.storage.store.opening import open_store


def named(path: Path) -> Path:
    """The file of a store that is there, links resolved. Raises InputError where there is none."""
    if path.is_symlink():
        path = path.resolve()
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a store in it")
    if not path.exists():
        raise InputError(f"there is no store {path}")
    if "?" in str(path):
        raise InputError(f"a store's path may hold no question mark, which DuckDB reads otherwise: {path}")
    return path


def left_beside(store: Path) -> list[Path]:
    """What a run that ended without notice left beside its store: a log, a journal."""
    return [path for path in (log_path(store), journal_path(store)) if path.exists()]


@contextmanager
def locked(*paths: Path) -> Iterator[None]:
    """Hold the locks of some store files, whether they are there or not. Raises StoreHeldError."""
    with ExitStack() as stack:
        for path in sorted(set(paths)):
            stack.callback(StoreLock.acquire(path).release)
        yield


@contextmanager
def scratch_of(path: Path) -> Iterator[Path]:
    """A folder, not made yet, for what does not fit into memory: beside a store, or elsewhere if it is only read."""
    if is_writable(path):
        yield path.with_name(path.name + ".tmp")
        return
    with TemporaryDirectory(prefix="venire-") as folder:
        yield Path(folder) / "scratch"


@contextmanager
def folded(path: Path, *, to_read: bool = False) -> Iterator[Path]:
    """A store brought to today's schema with its log and journal folded in: locked, and open nowhere.

    With `to_read`, a store that cannot be written is taken as it is. Raises InputError for what is no store,
    StoreHeldError when another process owns it.
    """
    path = named(path)
    open_store(path, create=False, to_read=to_read).close()
    if to_read and not is_writable(path):
        yield path
        return
    with locked(path):
        if left := left_beside(path):
            raise InputError(
                f"{left[0]} could not be folded into {path}: make room on that disk, or wait for who else opened the "
                "store, and try again"
            )
        yield path


@contextmanager
def attached(
    readable: Mapping[str, Path], *, scratch: Path, writable: Mapping[str, Path] = {}
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with store files under these names; the readable ones are not changed.

    Their locks are the caller's to hold. `scratch` is where DuckDB may write what does not fit into memory. Raises
    InputError for a file that is not a store of a known format, StoreError for DuckDB's errors after that.
    """
    with duckdb.connect(":memory:") as connection:
        for setting in (
            "set enable_progress_bar = false",
            "set autoinstall_known_extensions = false",
            "set memory_limit = '1GB'",
            "set threads = 2",
            "set TimeZone = 'UTC'",
            f"set temp_directory = {quoted(scratch.absolute())}",
        ):
            connection.execute(setting)
        for name, path in readable.items():
            _attach(connection, name, path)
        for name, path in writable.items():
            make_database(path, connection)
            connection.execute(f"attach {quoted(path)} as {name} (row_group_size {ROW_GROUP})")
        try:
            yield connection
        except duckdb.Error as error:
            files = ", ".join(str(path) for path in [*readable.values(), *writable.values()])
            raise StoreError(f"DuckDB gave up on {files}: {first_line(error)}") from error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _attach(connection: duckdb.DuckDBPyConnection, name: str, path: Path) -> None:
    try:
        connection.execute(f"attach {quoted(path)} as {name} (read_only)")
        connection.execute(f"use {name}")
        tables = {table for (table,) in connection.execute(query("tables")).fetchall()}
        rows = connection.execute(query("read_store")).fetchall() if "store" in tables else []
    except duckdb.Error as error:
        raise InputError(f"cannot open {path} as a store: {first_line(error)}") from None
    if not rows:
        raise InputError(f"{path} is a DuckDB file of something else: name a store")
    newest = migrations()[-1][0]
    if rows[0][0] > newest:
        raise InputError(
            f"the store {path} has format {rows[0][0]} and this Venire reads up to {newest}: install a newer Venire"
        )


def made_empty(connection: duckdb.DuckDBPyConnection, name: str) -> list[str]:
    """Give an attached empty file today's schema, without a row; returns its tables."""
    connection.execute(f"use {name}")
    connection.begin()  # or each statement would be a commit of its own
    for _, _, text in migrations():
        connection.execute(text)
    connection.commit()
    return sorted(table for (table,) in connection.execute(query("tables")).fetchall())


def copied(source: Path, target: Path) -> None:
    """Copy a file and have it on the disk. Raises OSError."""
    shutil.copyfile(source, target)
    shutil.copymode(source, target)
    flush(target)


def refuse_full(folder: Path, needed: int, what: str) -> None:
    """Raises InputError where a folder has not so many bytes free."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise InputError(
            f"{what} takes up to {needed / 1e6:,.0f} MB in {folder}, where {free / 1e6:,.0f} MB are free: make room"
        )


@contextmanager
def in_place(target: Path) -> Iterator[Path]:
    """A name beside the target to write to; what is written takes the target's place, whole, when nothing raised.

    Of an attempt that was killed the next one removes what it left.
    """
    temporary = target.with_name(f".{target.name}.partial")
    leftovers = (temporary, log_path(temporary))
    for path in leftovers:
        path.unlink(missing_ok=True)
    try:
        yield temporary
        flush(temporary)
        os.replace(temporary, target)
        flush(target.parent)
    finally:
        for path in leftovers:
            path.unlink(missing_ok=True)
