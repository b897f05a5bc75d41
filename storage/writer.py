"""The one thread that writes while a campaign runs: group commits, and never a row lost in silence."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from venire.arena.errors import StoreError
from venire.storage.store import Row, Store

__all__ = ["Writer"]

_TABLES = ("attempt", "verdict", "failure", "event")
_CHECKPOINT_BYTES = 64 << 20


class Writer:
    """Commits rows in groups: every `group_seconds`, or as soon as `group_rows` have come together.

    `put` never waits. `on_commit` is called in the writing thread after each group is on disk. A failure to write is
    kept, handed to `on_error` once, and raised by every later `put` and by `close`. The store's connection belongs to
    this thread from construction to `close`.
    """

    def __init__(
        self,
        store: Store,
        *,
        group_rows: int = 500,
        group_seconds: float = 0.1,
        on_commit: Callable[[], None] | None = None,
        on_error: Callable[[StoreError], None] | None = None,
    ) -> None:
        self._store = store
        self._group_rows = group_rows
        self._group_seconds = group_seconds
        self._on_commit = on_commit
        self._on_error = on_error
        self._queue: queue.SimpleQueue[tuple[str, Row] | None] = queue.SimpleQueue()
        self._error: StoreError | None = None
        self._put = 0
        self._written = 0
        self._appenders = {table: store.connection.appender(table) for table in _TABLES}
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

    def put(self, table: str, row: Row) -> int:
        """Hand one row over, all columns but its batch; returns its place among all that were.

        Raises StoreError when an earlier row could not be written, KeyError for a table that is not the writer's.
        """
        if table not in self._appenders:
            raise KeyError(table)
        if self._error is not None:
            raise self._error
        self._put += 1
        self._queue.put((table, row))
        return self._put

    def close(self) -> None:
        """Write what is waiting and end the thread. Raises StoreError when that could not be done."""
        self._queue.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while self._error is None:
            group, last = self._collect()
            try:
                if group:
                    self._commit(group)
                if self._store.log_bytes > _CHECKPOINT_BYTES and self._queue.empty():
                    self._store.checkpoint()
            except Exception as error:  # the last frame of a thread: whatever it is, the run must hear of it
                self._fail(error)
            if last:
                return

    def _collect(self) -> tuple[list[tuple[str, Row]], bool]:
        group: list[tuple[str, Row]] = []
        deadline: float | None = None
        while len(group) < self._group_rows:
            try:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                item = self._queue.get(timeout=left)
            except queue.Empty:
                break
            if item is None:
                return group, True
            group.append(item)
            if deadline is None:
                deadline = time.monotonic() + self._group_seconds
        return group, False

    def _commit(self, group: list[tuple[str, Row]]) -> None:
        with self._store.commit() as commit:
            for table in _TABLES:
                if rows := [(*row, commit.batch) for name, row in group if name == table]:
                    commit.append(self._appenders[table], rows)
        self._written += len(group)
        if self._on_commit is not None:
            self._on_commit()

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, StoreError):
            error = StoreError(f"the store {self._store.path} cannot be written: {error}")
        for appender in self._appenders.values():
            appender.clear()
        self._error = error
        if self._on_error is not None:
            self._on_error(error)
