"""What a run answers to other processes: its counters, and where the rest is from; see `live.server`."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from venire.arena.battles import Statistics
from venire.status import status_document
from venire.storage.read.selecting import MAX_ROWS, Selected, select
from venire.storage.store.store import Store
from venire.wording import time_left

if TYPE_CHECKING:
    from venire.live.pages import Pages

_SQL_MEMORY = 256 << 20
"""A quarter of DuckDB's memory, for each of two queries at a time: the rest is the writer's."""

_STATUS_SECONDS = 1.0
_WINDOW_SECONDS = 60.0
"""Time window in which the pace of a run is measured."""

Ask = Callable[[str, int, threading.Event], Selected]
"""Arguments: a query, the maximum number of rows, and an event that is set when nobody waits for them any more."""


class Pulse:
    """Collects the counters of a run as they change, and returns them on request; `since` is the start of the run."""

    def __init__(self, campaign: str, since: datetime) -> None:
        self._run = {
            "campaign": campaign,
            "process": os.getpid(),
            "host": socket.gethostname(),
            "since": since.isoformat("T", "seconds"),
        }
        self._recent: deque[Statistics] = deque()
        self._state: Callable[[], Mapping[str, Any]] | None = None
        self._seen: Mapping[str, Any] = {}
        self._seen_at = -_STATUS_SECONDS
        self.ending: str | None = None
        """How the run ended, once it has."""
        self.page: str | None = None
        """Where its pages are, if it serves any."""

    def feed(self, now: Statistics) -> None:
        """Record the current counters; of several within a second the last is kept."""
        recent = self._recent
        if len(recent) > 1 and now.elapsed - recent[-2].elapsed < 1.0:
            recent.pop()
        recent.append(now)
        while now.elapsed - recent[0].elapsed > _WINDOW_SECONDS:
            recent.popleft()
        if self._state is not None and now.elapsed - self._seen_at >= _STATUS_SECONDS:
            self._seen, self._seen_at = self._state(), now.elapsed

    def look_at(self, state: Callable[[], Mapping[str, Any]]) -> None:
        """From now on, read lanes and budgets once a second, in the thread that feeds the counters."""
        self._state = state

    def whole_document(self) -> dict[str, Any]:
        """The document with the lanes and budgets of a moment ago; safe in any thread."""
        return {**self.document(), **self._seen}

    def document(self) -> dict[str, Any]:
        """The run's process and start, the counters, calls per second, and what is left of the whole plan.

        `seconds_left` is null while that is not known, and `left` says it in words, empty at the end; `ending` is null
        while the run goes on, `page` where it serves none.
        """
        first, last = (self._recent[0], self._recent[-1]) if self._recent else (Statistics(), Statistics())
        seconds = last.elapsed - first.elapsed
        return {
            **self._run,
            **asdict(last),
            "calls_per_second": round((last.calls - first.calls) / seconds, 3) if seconds > 0 else 0.0,
            "left": "" if self.ending else time_left(last),
            "ending": self.ending,
            "page": self.page,
        }


@dataclass(frozen=True, slots=True)
class Answers:
    """The sources of the server's answers; `status` and `sql` are called in threads.

    Both may raise InputError, whose message is sent to the client. Inside `hold` nothing is written to the store until
    the event that it yields is set; None if the store cannot be held.
    """

    pulse: Pulse | None
    """None while no run goes on."""
    status: Callable[[], dict[str, Any]]
    sql: Ask
    hold: Callable[[], AbstractAsyncContextManager[asyncio.Event]] | None = None
    pages: Callable[[], Pages] | None = None
    """Makes the pages of the run, once another process asks for one; it may raise InputError, and takes a second."""


def stored_answers(
    store: Store,
    pulse: Pulse | None = None,
    hold: Callable[[], AbstractAsyncContextManager[asyncio.Event]] | None = None,
    pages: Callable[[], Pages] | None = None,
) -> Answers:
    """The answers about a store that this process has open."""

    def sql(text: str, most: int, given_up: threading.Event) -> Selected:
        return select(store, text, most=min(most, MAX_ROWS), memory=_SQL_MEMORY, given_up=given_up)

    return Answers(pulse, lambda: status_document(store), sql, hold, pages)
