"""The one thread that writes while a campaign runs: group commits, and never a row lost in silence.

A simulation on a virtual clock has no such thread: rows are written by whoever hands the last of a group over, since
a clock that moves only when everybody waits cannot know how long another thread takes.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import duckdb

from venire.arena.errors import Fault, StoreError
from venire.storage.store.connection import Row
from venire.storage.store.recovery import FAULT_COLUMN
from venire.storage.store.store import Store

_TABLES = ("attempt", "verdict", "failure", "event", "submission_line", "submission", "submission_event")
_PATIENCE = 20
"""How often a commit waits for memory, for as long as a group waits to be written."""


@dataclass(frozen=True, slots=True, eq=False)
class Hold:
    """A request to fold the log in and write nothing more until `released` is set.

    `held` is called in the writing thread once that is so; with False when it cannot be had.
    """

    held: Callable[[bool], None]
    released: threading.Event = field(default_factory=threading.Event)


class Writer:
    """Commits rows in groups: every `group_seconds`, or as soon as `group_rows` have come together.

    `put` never waits. `on_commit` is called in the writing thread after each group. When the store cannot be
    written, `on_error` is called once, and further rows are kept in the space that the store's journal has for them;
    the next start reads them from there. Where there is no journal or no space left, every later `put` raises. `close`
    raises whatever happened. The store's connection belongs to this thread from construction to `close`.

    `inline`: no thread is begun; a group is written by the `put` that completes it, so that rows never wait longer than
    that, the rest by `flush` and `close`.
    """

    def __init__(
        self,
        store: Store,
        *,
        group_rows: int = 500,
        group_seconds: float = 0.1,
        strict: bool = False,
        inline: bool = False,
        on_commit: Callable[[], None] | None = None,
        on_error: Callable[[StoreError], None] | None = None,
    ) -> None:
        self._store = store
        self._group_rows = group_rows
        self._group_seconds = group_seconds
        self._strict = strict
        self._on_commit = on_commit
        self._on_error = on_error
        self._queue: deque[tuple[str, Row] | Hold | None] = deque()
        self._begun = threading.Event()
        """Set when something was handed over; cleared by the thread when it has taken everything."""
        self._full = threading.Event()
        """Set when a whole group waits, or a request that should not wait for one."""
        self._asked = self._served = 0
        """Requests made, and those that the thread has come to."""
        self._error: StoreError | None = None
        self._lost: StoreError | None = None
        self._put = 0
        self._written = 0
        self._number = store.batch + 1
        """Of the next commit. One that failed keeps its number, in case it was made all the same."""
        self._spilled = 0
        self._replies_spilled = 0
        store.divide_work(among=1)
        self._thread: threading.Thread | None = None
        if not inline:
            self._thread = threading.Thread(target=self._run, name="venire-writer", daemon=True)
            self._thread.start()

    @property
    def waiting(self) -> int:
        """Rows handed over and not yet on disk."""
        return self._put - self._written

    @property
    def written(self) -> int:
        """Rows on disk, counted from the first that was handed over."""
        return self._written

    @property
    def handed(self) -> int:
        """Rows handed over so far."""
        return self._put

    @property
    def lost(self) -> StoreError | None:
        """Why rows can no longer be kept anywhere, if so."""
        return self._lost

    def put(self, table: str, row: Row) -> int:
        """Hand one row over, all columns but its batch; returns its place among all that were.

        Raises StoreError when rows can no longer be kept anywhere, KeyError for a table that is not the writer's.
        """
        if table not in _TABLES:
            raise KeyError(table)
        if self._lost is not None:
            raise self._lost
        self._put += 1
        self._queue.append((table, row))
        if self._thread is None:
            if len(self._queue) >= self._group_rows:
                self.flush()
            return self._put
        # The thread is woken once a group, not once a row: each time costs both threads a change of hands.
        if not self._begun.is_set():
            self._begun.set()
        # Rows that are being written just now do not count: they would send a small group after themselves.
        if len(self._queue) >= self._group_rows and not self._full.is_set():
            self._full.set()
        return self._put

    def _request(self, request: Hold | None) -> None:
        self._asked += 1
        self._queue.append(request)
        self._begun.set()
        self._full.set()

    def hold(self, request: Hold) -> None:
        """Write what is waiting, checkpoint the log, and write nothing until the request is released.

        Raises StoreError where there is no writing thread.
        """
        if self._thread is None:
            raise StoreError(f"the store {self._store.path} is a simulation's, which is not held: wait for its end")
        self._request(request)

    def flush(self) -> None:
        """Write what is waiting now, where no thread does so in its own time."""
        if self._thread is None:
            while self._queue:
                self._serve(*self._take())

    def close(self) -> None:
        """Write what is waiting and end the thread. Raises StoreError when that could not be done in the store."""
        if self._thread is None:
            self.flush()
        else:
            self._request(None)
            self._thread.join()
        self._store.divide_work()
        if self._lost is not None and self._lost is not self._error:
            raise StoreError(f"{self._error}; {self._lost}: {self.waiting} rows are lost") from self._error
        if self._error is not None:
            raise StoreError(f"{self._error}{self._kept()}") from self._error

    def _kept(self) -> str:
        if not self._spilled or self._store.journal is None:
            return ""
        return (
            f". What came in since ({self._spilled} rows, {self._replies_spilled} of them replies) is kept in "
            f"{self._store.journal.path} and taken in at the next start: mend the disk and go on with the same command"
        )

    def _run(self) -> None:
        while True:
            group, then = self._collect()
            self._serve(group, then)
            if then is None:
                return

    def _serve(self, group: list[tuple[str, Row]], then: Hold | bool | None) -> None:
        """Write a group, and do what was asked for after it."""
        try:
            if group:
                self._keep(group)
            if isinstance(then, Hold):
                self._stand_still(then)
            elif self._error is None and self._store.is_due(busy=bool(self._queue)):
                self._store.checkpoint()
                self._store.release_memory()  # what was folded in is hardly read again
        except Exception as error:  # the last frame of a thread: any error must reach the run
            self._fail(error)

    def _collect(self) -> tuple[list[tuple[str, Row]], Hold | bool | None]:
        """Wait for the next group; see `_take`."""
        self._begun.wait()
        if len(self._queue) < self._group_rows and self._asked == self._served:
            self._full.wait(self._group_seconds)
        self._begun.clear()  # before taking: what comes from here on sets it again
        self._full.clear()
        return self._take()

    def _take(self) -> tuple[list[tuple[str, Row]], Hold | bool | None]:
        """The next group; with it a request that came after it, None at the end, else True."""
        group: list[tuple[str, Row]] = []
        while self._queue and len(group) < self._group_rows:
            item = self._queue.popleft()
            if item is None or isinstance(item, Hold):
                self._served += 1
                self._begun.set()
                return group, item
            group.append(item)
        if self._queue:
            self._begun.set()
        return group, True

    def _keep(self, group: list[tuple[str, Row]]) -> None:
        """A group into the store, or where that fails into the journal."""
        if self._error is None:
            try:
                self._commit_when_there_is_memory(group)
                self._number = self._store.batch + 1
            except Exception as error:  # DuckDB's, Python's or ours: none of them may cost a reply
                self._fail(error)
        if self._error is not None and self._lost is None:
            self._spill(group)
        if self._lost is None:
            self._written += len(group)
        if self._on_commit is not None:
            self._on_commit()

    def _commit_when_there_is_memory(self, group: list[tuple[str, Row]]) -> None:
        """A query from outside may hold DuckDB's memory for a moment; that is no reason to give the store up."""
        for turn in count(1):
            try:
                self._commit(group)
                break
            except duckdb.OutOfMemoryException:
                if self._store.batch >= self._number:
                    break  # the commit was made all the same
                if turn > _PATIENCE:
                    raise
                time.sleep(self._group_seconds)

    def _commit(self, group: list[tuple[str, Row]]) -> None:
        with self._store.commit() as commit:
            for table in _TABLES:
                if rows := [row for name, row in group if name == table]:
                    commit.append(table, rows)

    def _spill(self, group: list[tuple[str, Row]]) -> None:
        journal = self._store.journal
        if journal is None:
            self._lost = self._error
            return
        try:
            journal.spill(self._number, group)
            if self._strict:
                journal.sync()
        except (StoreError, OSError) as error:
            self._lost = StoreError(str(error))
            return
        self._number += 1
        self._spilled += len(group)
        self._replies_spilled += sum(table == "attempt" and row[FAULT_COLUMN] == Fault.NONE for table, row in group)

    def _stand_still(self, request: Hold) -> None:
        folded = False
        try:
            folded = self._error is None and self._store.checkpoint()
        finally:
            request.held(folded)
        if folded:
            request.released.wait()

    def _fail(self, error: Exception) -> None:
        if self._error is not None:
            return
        if not isinstance(error, StoreError):
            error = StoreError(f"the store {self._store.path} cannot be written: {error}")
        self._error = error
        self._store.give_up(error)
        if self._on_error is not None:
            self._on_error(error)
