"""An open store: its connection, its commits and the files beside it; other modules hold the queries."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, TypeVar
from uuid import UUID

import duckdb

from venire.arena.clock import Clock
from venire.arena.errors import StoreError
from venire.storage.store.connection import (
    MEMORY,
    ROW_GROUP,
    THREADS,
    Row,
    close,
    fetch,
    first_line,
    query,
    written_table,
)
from venire.storage.store.files import FileIdentity, StoreLock, log_path, make_private
from venire.storage.store.journal import MIN_SLOTS, Journal, Recovered
from venire.storage.store.result_cache import ResultCache
from venire.storage.store.texts import Texts

T = TypeVar("T")

_LONG_LOG = 32 << 20
"""Reading a log of 50 MB back takes 130 MB of memory after a kill; folding one in takes 5 to 8 ms a megabyte."""

_IN_PLACE = ("truncated", "overwritten")
"""What may happen to a file that is still in its place."""

_SPARE_BYTES = 1 << 20
"""What a checkpoint may need on the disk beside the size of the log."""

_KEPT_CURSORS = 4
_KEPT = "8MB"
"""What `release_memory` leaves of the blocks that were read."""
_SMALL_BYTES = 32_000_000
"""A store of fewer is left as it is: it has hardly more, and to ask for memory back takes as long as a small query."""


class Store:
    """An open store and its one writing connection; made by `open_store`, closed by `close` or the end of a `with`."""

    def __init__(self, path: Path, connection: duckdb.DuckDBPyConnection, lock: StoreLock | None, clock: Clock) -> None:
        self.path = path
        self.clock = clock
        self.connection = connection
        self.journal: Journal | None = None
        """The journal of a run; None while no campaign runs."""
        self._lock = lock
        """None where there can be none, and where another process of ours holds it."""
        self.scratch: TemporaryDirectory[str] | None = None
        """Where a store that is only read has what does not fit into memory."""
        self._closed = False
        self._failed: StoreError | None = None
        self._log_is_open = False
        """Whether DuckDB has its log open: it is opened by name, and that may be another store's by then."""
        self.loading = threading.Lock()
        """Held while a chunk of trials is read: several at once take their memory several times."""
        self._idle_cursors: list[duckdb.DuckDBPyConnection] = []
        self._appenders: dict[str, duckdb.Appender] = {}
        self._door = threading.Lock()
        self._inside = 0
        """Reads and commits under way."""
        self._borrowers: list[int] = []
        """Threads that read through this store without having opened it; `close` waits for them."""
        self._returned = threading.Condition(self._door)
        self._place = FileIdentity.of(path)
        self._checkpoints = 0
        """Beginnings and ends of checkpoints: odd while the file is changed by our own hand."""
        self._results = ResultCache()
        self.batch, self.running, written = map(int, self.rows("last_batch")[0])
        if self.running != written:
            raise StoreError(
                f"the store {path} has lost commits: its ledger counts {self.running} rows and lists {written}; "
                "restore the file and its .wal from a backup"
            )
        self.recovered = Recovered()
        """What the last run left when it ended without notice, or could not write to the store."""
        self.constant = UUID(self.rows("read_store")[0][1]).bytes
        self.texts = Texts(self.read, self.constant)

    def rows(self, name: str, /, **parameters: Any) -> list[Row]:
        """All rows of a named query on the writing connection: with what is not committed, and in temporary tables."""
        try:
            with self._at_work():
                return fetch(self.connection, name, parameters)
        except duckdb.Error as error:
            raise StoreError(f"the store {self.path} cannot be read: {first_line(error)}") from error

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A connection of its own to the same file, for one thread; to be closed."""
        cursor = self.connection.cursor()
        cursor.execute("use venire")
        return cursor

    def lend_cursor(self) -> duckdb.DuckDBPyConnection:
        """A cursor that nobody else uses until it is given back with `keep_cursor`; to make one takes 0.3 ms."""
        try:
            return self._idle_cursors.pop()
        except IndexError:
            return self.cursor()

    def keep_cursor(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Keep a cursor, whose results were fetched, for the next; one that failed is not given back."""
        if self._closed or len(self._idle_cursors) >= _KEPT_CURSORS:
            cursor.close()
        else:
            self._idle_cursors.append(cursor)

    def read(self, name: str, /, **parameters: Any) -> list[Row]:
        """All rows of a named query of what is committed: safe in any thread while the writer is at work."""
        return list(self._committed(name, parameters, _rows))

    def arrays(self, name: str, /, **parameters: Any) -> Mapping[str, Any]:
        """Columns of a named query as NumPy arrays, by name, that nobody may change; as safe as `read`."""
        return self._committed(name, parameters, _arrays)

    def _committed(self, name: str, parameters: Mapping[str, Any], take: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        """What a query gives on a cursor of its own; a small result is kept until the next commit."""

        def run() -> T:
            try:
                with self._at_work():
                    cursor = self.lend_cursor()
                    found = take(cursor.execute(query(name), parameters))
                    self.keep_cursor(cursor)
                    return found
            except duckdb.Error as error:
                raise StoreError(f"the store {self.path} cannot be read: {first_line(error)}") from error

        return self._results.get(name, parameters, take, run)

    @contextmanager
    def commit(self) -> Iterator[Commit]:
        """One transaction with its line in the ledger; rolled back whole when anything in it raises.

        Raises StoreError when DuckDB cannot write.
        """
        if self._failed is not None:
            raise self._failed
        if self.is_only_read:
            raise StoreError(f"the store {self.path} is only read, and cannot be written")
        if not self._log_is_open and self.is_elsewhere():
            raise StoreError(f"the store {self.path} was taken away: its log cannot be begun")
        if not self._log_is_open:
            with suppress(OSError):  # DuckDB finds what is wrong as well, and says so
                make_private(log_path(self.path))
        with self._at_work(), self._transaction() as commit:
            yield commit
        if commit.written >= ROW_GROUP and self._place.changed() is None:
            self._place = self._place.written()  # it is longer now

    @contextmanager
    def _transaction(self) -> Iterator[Commit]:
        commit = Commit(self)
        try:
            self.connection.begin()
            yield commit
            self.running += commit.written
            self.connection.execute(
                query("insert_ledger"),
                {"batch": commit.batch, "now": self.clock.wall(), "written": commit.written, "running": self.running},
            )
            self.connection.commit()
        except BaseException as error:
            self._roll_back()
            self._read_ledger()
            self._results.clear()  # it may have been made all the same
            if isinstance(error, (duckdb.IOException, duckdb.TransactionException, duckdb.FatalException)):
                raise StoreError(f"the store {self.path} cannot be written: {first_line(error)}") from error
            raise
        self._results.forget({*commit.tables, "ledger"})
        self.batch = commit.batch
        self._log_is_open = True
        if self.journal is not None:
            self.journal.mark(self.batch, self.running)

    def give_up(self, error: StoreError) -> None:
        """Refuse every later commit: what follows is kept in the journal, under the numbers that come next."""
        self._failed = error

    def _read_ledger(self) -> None:
        """Read whether a failed commit was made all the same, if DuckDB still answers."""
        with suppress(StoreError):
            self.batch, self.running, _ = map(int, self.rows("last_batch")[0])

    def _roll_back(self) -> None:
        try:
            self.connection.rollback()
        except (duckdb.TransactionException, duckdb.FatalException):
            return  # DuckDB had ended the transaction by itself, or will do nothing more for this connection

    def appender(self, table: str) -> duckdb.Appender:
        """The appender whose rows have the table's columns in their order, but `batch` last."""
        if table not in self._appenders:
            columns = [name for name in self.connection.table(table).columns if name != "batch"]
            self._appenders[table] = self.connection.appender(table, columns=[*columns, "batch"])
        return self._appenders[table]

    def divide_work(self, *, among: int = THREADS) -> None:
        """Let DuckDB divide a statement's work among so many threads.

        Small groups are written with less work by one: to hand parts of it to another takes longer than they do.
        """
        with suppress(duckdb.Error):  # one that has given the connection up does no more work
            self.connection.execute(f"set threads = {among}")

    def begin_journal(self, campaign: int, *, workers: int = 0, spill_bytes: int = 1 << 20) -> Journal:
        """Start the journal of a run of so many workers; it goes when the store is closed with all of it in the file.

        The log is checkpointed first: a file without any checkpoint cannot be distinguished from one that is no store.
        Raises StoreError when there is no room on the disk for that, or for the journal.
        """
        if self.journal is not None:
            self.journal.close(remove=True)
        if not self.checkpoint() and self._place.changed() is None:
            raise StoreError(
                f"the disk of {self.path} has {self._free_bytes() / 1e6:,.0f} MB free, and "
                f"{(self.log_bytes + _SPARE_BYTES) / 1e6:,.0f} MB are needed to fold its log in: make room, try again"
            )
        now, slots = self.clock.wall(), MIN_SLOTS + 2 * workers
        self.journal = Journal(self.path, self.constant, campaign, now, slots=slots, spill_bytes=spill_bytes)
        self.journal.mark(self.batch, self.running)
        with self.commit():
            pass  # DuckDB opens its log by name at the first commit: while the name is ours
        return self.journal

    def end_journal(self) -> None:
        """Remove the journal, unless it keeps what the store could not take."""
        if self.journal is not None and self._failed is None:
            self.journal.close(remove=True)
            self.journal = None

    def _leave_journal(self) -> None:
        """Close the journal that there still is, for the next start to read."""
        if self.journal is not None:
            self.journal.close(remove=False)

    @property
    def is_open(self) -> bool:
        """Whether the store was not closed yet."""
        return not self._closed

    @property
    def is_only_read(self) -> bool:
        """Whether nothing can be written; other processes may then read the file as well."""
        return self.scratch is not None

    def is_wanted(self) -> bool:
        """Whether another process waits for this one, which shows the store, to give it up."""
        with suppress(OSError):  # it is being closed
            return self._lock is not None and self._lock.is_wanted()
        return False

    def is_elsewhere(self) -> bool:
        """Whether the path names another file than the one that was opened, or none."""
        return self._place.now() is not None

    def displaced(self) -> str | None:
        """What became of the store's files where they are no longer those that were opened, else None.

        Found by device, inode, size and time of change: opening the file would drop DuckDB's lock on it.
        """
        before = self._checkpoints
        found = self._place.changed()
        if found in _IN_PLACE and (before % 2 or before != self._checkpoints):
            found = None  # a checkpoint is under way in another thread
        if found is not None:
            return f"the store {self.path} was {found} while a run wrote to it"
        if self.journal is not None and not self.journal.in_place():
            return f"{self.journal.path} was removed while a run announced its calls in it"
        return None

    def checkpoint(self) -> bool:
        """Fold the write-ahead log into the file; True when that is done. Other writers wait, readers do not.

        Not begun where it could fail half-way, after which DuckDB gives the connection up: without room on the disk, or
        when the file is not ours any more (DuckDB removes the log by its name, and that may be another store's), or not
        what we wrote.
        """
        if self.is_only_read or self._place.changed() is not None:
            return False
        log = self.log_bytes
        if not log:
            if not self._log_is_open:  # made for a commit that was not, if at all
                log_path(self.path).unlink(missing_ok=True)
            return True
        if self._free_bytes() < log + _SPARE_BYTES:
            return False
        try:
            with self._at_work():
                self._checkpoints += 1
                self.connection.execute("checkpoint")
                self._log_is_open = False
                self._place = self._place.written()
                self._checkpoints += 1
        except duckdb.Error as error:
            raise StoreError(f"the log of the store {self.path} cannot be folded in: {first_line(error)}") from error
        return True

    def is_due(self, *, busy: bool = False) -> bool:
        """Whether the log is long enough to be folded in: 32 MB, four times that while rows are waiting.

        Less where the disk is nearly full: a folded log takes a third of its space.
        """
        log = self.log_bytes
        return log > _LONG_LOG * (4 if busy else 1) or (log > _SPARE_BYTES and log > self._free_bytes() // 4)

    def _free_bytes(self) -> int:
        return shutil.disk_usage(self.path.parent).free

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        with self._door:
            self._inside += 1
        try:
            yield
        finally:
            with self._door:
                self._inside -= 1

    @contextmanager
    def lent(self) -> Iterator[bool]:
        """Lend the store to a reader that did not open it; false where it is closed, and so cannot be lent."""
        thread = threading.get_ident()
        with self._door:
            there = not self._closed
            if there:
                self._borrowers.append(thread)
        try:
            yield there
        finally:
            if there:
                with self._door:
                    self._borrowers.remove(thread)
                    self._returned.notify_all()

    def limit_memory(self, most: str) -> None:
        """Let DuckDB use so much memory from now on, such as "300MB"."""
        self.connection.execute("set memory_limit = $most", {"most": most})

    def release_memory(self) -> None:
        """Give the memory of blocks that were read back to the system, unless somebody reads or writes just now.

        DuckDB keeps every block up to its limit; a scan of a million trials leaves 50 MB that are not read again. A
        small store is left as it is.
        """
        with suppress(OSError):  # it was taken away
            if self.path.stat().st_size + self.log_bytes < _SMALL_BYTES:
                return
        with self._door:  # whoever comes meanwhile would meet the low limit, so they wait these milliseconds
            if self._inside:
                return
            try:
                self.connection.execute(f"set memory_limit = '{_KEPT}'")
            except duckdb.Error:
                pass  # no room, in memory or on a full disk: as much as could go is gone
            finally:
                self.connection.execute(f"set memory_limit = '{MEMORY}'")

    @property
    def log_bytes(self) -> int:
        """Size of the write-ahead log in bytes."""
        try:
            return log_path(self.path).stat().st_size
        except FileNotFoundError:
            return 0

    def close(self) -> None:
        """Fold the log in, close the file and give up the lock; safe to call twice.

        Waits until other threads have done with what they borrowed; whatever fails, the lock is given up.
        """
        with self._door:
            if self._closed:
                return
            self._closed = True
            thread = threading.get_ident()  # waiting for itself would have no end
            self._returned.wait_for(lambda: all(borrower == thread for borrower in self._borrowers))
        with ExitStack() as ends:
            if self.scratch is not None:
                ends.callback(self.scratch.cleanup)
            if self._lock is not None:
                ends.callback(self._lock.release)
            ends.callback(self._leave_journal)
            while self._idle_cursors:
                self._idle_cursors.pop().close()
            self._appenders.clear()
            folded = False
            try:
                folded = self.checkpoint()
            except StoreError:
                pass  # everything committed is in the log, and the next start reads it from there
            finally:
                close(self.connection, fold=folded)
                if folded:
                    self.end_journal()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _rows(result: duckdb.DuckDBPyConnection) -> list[Row]:
    return result.fetchall()


def _arrays(result: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    columns: dict[str, Any] = result.fetchnumpy()
    for column in columns.values():
        column.setflags(write=False)
    return columns


class Commit:
    """A transaction under way: counts the rows that it writes."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.batch = store.batch + 1
        self.written = 0
        self.tables: set[str] = set()
        """Those with rows among these."""

    def run(self, name: str, /, **parameters: Any) -> None:
        """A named statement that writes; the rows it changed are counted."""
        result = self.store.connection.execute(query(name), parameters).fetchall()
        if len(result) == 1 and len(result[0]) == 1 and isinstance(result[0][0], int):
            self._count(written_table(name), result[0][0])

    def append(self, table: str, rows: Iterable[Row]) -> None:
        """Rows with all columns of a table but its batch, at once."""
        appender, whole = self.store.appender(table), [(*row, self.batch) for row in rows]
        try:
            appender.append_rows(whole)
            appender.flush()
        except BaseException:
            appender.clear()
            raise
        self._count(table, len(whole))

    def _count(self, table: str, rows: int) -> None:
        self.written += rows
        if rows:
            self.tables.add(table)
