"""Opening a store: its lock, its migrations, and what the last run left beside it."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID
from weakref import WeakSet

import duckdb

from venire.arena.clock import Clock, SystemClock
from venire.arena.errors import InputError, StoreHeldError
from venire.arena.keywords import checked
from venire.storage.store.connection import (
    close,
    connect,
    fetch,
    first_line,
    migrate,
    refuse_other_format,
    rescued_paths,
)
from venire.storage.store.files import StoreLock, flush, is_writable
from venire.storage.store.journal import read_journal
from venire.storage.store.recovery import recover, refuse_unfinished
from venire.storage.store.store import Store

_OPEN: WeakSet[Store] = WeakSet()
"""The stores that this process opened: its own lock keeps it from opening one of them again."""


@checked
def open_store(
    path: Path | str,
    *,
    create: bool = True,
    to_read: bool = False,
    clock: Clock | None = None,
    accept_loss: bool = False,
    shows: bool = False,
    under_way: Collection[tuple[int, int, int]] = (),
) -> Store:
    """Open a store, making the file when it is not there and `create` is true.

    Migrations are applied, and what a run that ended without notice left in its journal is brought in. With `to_read`,
    for those who write nothing, a store that cannot be written (on a read-only file system, or of another user) is
    opened as it is: without a lock, and nothing of it is changed. `shows`: for pages, as the message to others says.
    `under_way`: calls that are not lost with the last run, since other processes have them (see `recovery.recover`).

    Raises InputError for a file that is missing, is not a store, has a newer format, or has lost commits (unless
    `accept_loss` is true), and for one that would have to be changed to be read; StoreHeldError when another process
    owns it.

    >>> with open_store("campaign.duckdb", create=False) as store:
    ...     store.path.name
    'campaign.duckdb'
    """
    path = Path(path)
    if path.is_symlink():
        path = path.resolve()  # lock and log lie beside the file itself
    if "?" in str(path):
        raise InputError(f"a store's path may hold no question mark, which DuckDB reads otherwise: {path}")
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a store in it")
    clock = clock or SystemClock()
    new = not path.exists()
    if new:
        _refuse_to_begin_anew(path)
    if new and not create:
        raise InputError(f"there is no store {path}: `venire run FILE` makes one")
    if to_read and not new and not is_writable(path):
        return _only_read(path, clock)
    if not path.parent.is_dir():
        raise InputError(f"the folder {path.parent} of the store {path.name} does not exist: make it first")
    lock = StoreLock.acquire(path, shows=shows)
    try:
        _clear_what_a_killed_owner_left(path)
        read_journal(path)  # one that this version cannot read is refused before anything is migrated
        connection = _connected(path)
        try:
            try:
                migrate(connection, path, clock)
            except duckdb.Error as error:
                raise InputError(f"{path} cannot be used as a store: {first_line(error)}") from error
            if new:
                flush(path.parent)
            store = Store(path, connection, lock, clock)
            if not to_read:
                _refuse_beside_rescued(store)
            store.recovered = recover(store, accept_loss=accept_loss, under_way=under_way)
            _OPEN.add(store)
            return store
        except BaseException:
            close(connection, fold=False)
            raise
    except BaseException:
        lock.release()
        raise


def _connected(path: Path) -> duckdb.DuckDBPyConnection:
    try:
        return connect(path)
    except InputError as error:
        if (rescued := _rescued(path)) is None:
            raise
        raise InputError(f"{error}. What a run had of it is in {rescued}: {_take_back(rescued, path)}") from error


def _rescued(path: Path) -> Path | None:
    """The newest copy that a run made when its store was taken away."""
    return next((one for one in reversed(rescued_paths(path)) if one.exists()), None)


def _take_back(rescued: Path, path: Path) -> str:
    return f"put that in its place (mv {shlex.quote(str(rescued))} {shlex.quote(str(path))})"


def _refuse_beside_rescued(store: Store) -> None:
    """Raises InputError where a run's copy has what the store that is there now has not: it would be paid for again."""
    for rescued in filter(Path.exists, rescued_paths(store.path)):
        connection = connect(rescued, scratch=rescued.with_name(rescued.name + ".tmp"))
        try:
            constant = UUID(fetch(connection, "read_store", {})[0][1]).bytes
            batch = fetch(connection, "last_batch", {})[0][0]
        except duckdb.Error as error:
            raise InputError(f"{rescued} cannot be read: {first_line(error)}: move it away") from error
        finally:
            connection.close()
        if constant != store.constant or batch > store.batch:
            raise InputError(
                f"the store {store.path} is not the one that a run wrote to: what that run had, and paid for, is in "
                f"{rescued}. To go on with that, move the store that is there now away and "
                f"{_take_back(rescued, store.path)}; to go on with the store that is there now, move {rescued.name} "
                "away; to have both, see `venire store merge`"
            )


def _only_read(path: Path, clock: Clock, within: Path | None = None, lock: StoreLock | None = None) -> Store:
    """A store where nothing can be written, opened without journal; a log beside it is read and kept.

    It has the lock, if there is one, unless opening fails.
    """
    scratch = TemporaryDirectory(prefix="venire-", dir=within)
    try:
        connection = connect(path, scratch=Path(scratch.name))
        try:
            refuse_other_format(connection, path)
            store = Store(path, connection, lock, clock)
            refuse_unfinished(store)
        except BaseException:
            close(connection, fold=False)
            raise
    except BaseException:
        scratch.cleanup()
        raise
    store.scratch = scratch
    _OPEN.add(store)
    return store


@contextmanager
def open_unchanged(path: Path, *, scratch: Path | None = None) -> Iterator[Store]:
    """A store to look at, of which nothing is changed: not brought to today's format, nothing recovered or written.

    Its lock is held meanwhile where there can be one, so that no run begins that could not write: a run that asks for
    it waits until the store is closed, which `Store.is_wanted` says is to be soon. With `scratch`, a
    folder of another process, that process looks at the store too, has the lock until later, and removes the folder.
    Raises InputError for a file that is missing, is no store, has another format, or has a run's replies beside it that
    are not in it yet; StoreHeldError where another process owns it.
    """
    path = path.resolve()
    if not path.is_file():
        raise InputError(f"there is no store {path}")
    lock = StoreLock.acquire(path, shows=True) if is_writable(path) and scratch is None else None
    try:
        store = _only_read(path, SystemClock(), scratch, lock)
    except BaseException as error:  # whatever it is, a Ctrl-C too, the lock is given up
        if lock is None:
            raise
        lock.release()
        if not isinstance(error, InputError) or isinstance(error, StoreHeldError):
            raise
        raise InputError(f"{_first_part(error)}: `venire status {shlex.quote(str(path))}` mends that") from error
    with store:
        yield store


def _first_part(error: InputError) -> str:
    """What is wrong, without what is to be done about a store that cannot be written."""
    return str(error).partition(", is brought to format")[0].partition(", which cannot be written")[0]


@contextmanager
def reading(path: Path) -> Iterator[Store]:
    """A store to read from: the one of this path that this process has open, which stays open; else opened and closed.

    Raises InputError and StoreHeldError as `open_store` does.
    """
    here = path.resolve()
    mine = next((one for one in list(_OPEN) if one.is_open and one.path.resolve() == here), None)
    if mine is not None and not mine.is_elsewhere():
        with mine.lent() as there:
            if there:
                yield mine
                return
    with open_store(path, create=False, to_read=True) as store:
        yield store


def _refuse_to_begin_anew(path: Path) -> None:
    """A store that is gone, of which something is left, was paid for: to begin anew what is left is cleared away."""
    if (rescued := _rescued(path)) is not None:
        raise InputError(
            f"there is no store {path}, but what a run had of it is in {rescued}: {_take_back(rescued, path)}, or move "
            "it away to begin anew"
        )
    left = [one for one in (path.with_name(path.name + end) for end in (".journal", ".wal")) if one.exists()]
    if left:
        raise InputError(
            f"there is no store {path}, but {' and '.join(map(str, left))} of one that was there: put the store back, "
            "or remove what is left of it to begin anew"
        )


def _clear_what_a_killed_owner_left(path: Path) -> None:
    """A socket that nobody serves, and what DuckDB could not hold in memory; the caller owns the store."""
    with suppress(OSError):  # anything else of that name is not ours
        path.with_name(path.name + ".sock").unlink()
    shutil.rmtree(path.with_name(path.name + ".tmp"), ignore_errors=True)
