"""Time as a parameter: the system's clock, and a virtual clock that jumps whenever all tasks wait.

Under the virtual clock an hour of waiting costs no time: its event loop, instead of sleeping until the next timer,
moves the clock there. Timers, timeouts and `Clock.sleep` of that loop all see the same virtual time. While work given
to `run_in_executor` or `to_thread` is running the clock does not move; it does not wait for sockets or other threads.
"""

from __future__ import annotations

import asyncio
import math
import selectors
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Executor
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from types import coroutine
from typing import Any, Protocol, TypeVar, TypeVarTuple

_LOOK_EVERY = 1e-3
"""Seconds of the machine's own time between two looks of a busy loop for events."""
_LONG_JUMP = 1.0
"""Virtual seconds before which there is always a look."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Clock(Protocol):
    """What the engine needs of time."""

    def monotonic(self) -> float:
        """Seconds that never go backwards."""
        ...

    def wall(self) -> datetime:
        """The time of day, in UTC."""
        ...

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Wait for so many seconds of this clock."""
        ...


class SystemClock:
    """The machine's own clock."""

    def monotonic(self) -> float:
        """Seconds of the running event loop's kind of clock."""
        return time.monotonic()

    def wall(self) -> datetime:
        """The time of day, in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Wait without blocking the event loop."""
        return asyncio.sleep(seconds)


class VirtualClock:
    """A clock that starts at a fixed moment and moves only when its event loop has nothing else to do."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._now = 0.0
        self._loop: _VirtualLoop | None = None
        self.threads = 0
        """Work under way in an executor's threads."""

    def monotonic(self) -> float:
        """Virtual seconds since the start."""
        return self._now

    def wall(self) -> datetime:
        """The start plus the virtual seconds."""
        return self._start + timedelta(seconds=self._now)

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Wait on this clock's event loop."""
        loop = self._loop
        if seconds > 0 and loop is not None and loop.is_running():
            return loop.sleepers.add(loop.create_future(), self._now + seconds)
        return asyncio.sleep(seconds)

    def advance(self, seconds: float) -> None:
        """Move the clock by hand. Raises ValueError for a step back."""
        if seconds < 0:
            raise ValueError(f"a clock does not go back, got {seconds} s")
        self._now += seconds

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        """An event loop that lives on this clock; a `loop_factory` for `asyncio.Runner`."""
        self._loop = _VirtualLoop(self)
        return self._loop


class _Sleepers:
    """Who waits on a virtual loop for a moment, the next first: every call of a simulation does so.

    A timer of asyncio's own takes a coroutine, a handle and a copied context, and is compared with others in Python.
    """

    def __init__(self) -> None:
        self._number = count()
        self._heap: list[tuple[float, int, asyncio.Future[None]]] = []

    def add(self, sleeper: asyncio.Future[None], until: float) -> asyncio.Future[None]:
        """The same future, which will be done at a moment; who gives up waiting cancels it."""
        heappush(self._heap, (until, next(self._number), sleeper))
        return sleeper

    def next(self) -> float:
        """When the first wakes who has not given up; infinity where nobody sleeps."""
        heap = self._heap
        while heap and heap[0][2].done():
            heappop(heap)
        return heap[0][0] if heap else math.inf

    def wake(self, until: float) -> None:
        """Wake those whose moment has come."""
        while self.next() <= until:
            heappop(self._heap)[2].set_result(None)


class _JumpingSelector(selectors.DefaultSelector):
    """Waits by moving the clock; events that are there already come first and take no virtual time.

    A look whether there are events costs more than a timer, so a busy loop looks once in a millisecond of the machine's
    own time; before the clock moves by a second or more it always does.
    """

    def __init__(self, clock: VirtualClock, sleepers: _Sleepers) -> None:
        super().__init__()
        self._clock = clock
        self._sleepers = sleepers
        self._look_at = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        idle = timeout is None or timeout > 0
        if self._clock.threads and idle:
            return super().select(None)  # until a thread is done and wakes the loop
        wakes_at = self._sleepers.next() if idle else math.inf
        left = wakes_at - self._clock.monotonic()
        if wakes := left < math.inf and (timeout is None or left <= timeout):
            timeout = max(0.0, left)
        now = time.perf_counter()
        if timeout is None or timeout >= _LONG_JUMP or now >= self._look_at:
            self._look_at = now + _LOOK_EVERY
            if events := super().select(None if timeout is None else 0):
                return events
        if timeout is not None and idle:
            self._clock.advance(timeout)
            if wakes:
                self._sleepers.wake(wakes_at)
        return []


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self, clock: VirtualClock) -> None:
        self.sleepers = _Sleepers()
        super().__init__(_JumpingSelector(clock, self.sleepers))
        self._virtual = clock
        self._clock_resolution: Any = 1e-9

    def time(self) -> float:
        return self._virtual.monotonic()

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        work = super().run_in_executor(executor, func, *args)
        self._virtual.threads += 1
        work.add_done_callback(self._thread_done)
        return work

    def shutdown_default_executor(self, *timeout: Any) -> Coroutine[Any, Any, None]:
        return self._clock_stopped(super().shutdown_default_executor(*timeout))

    @coroutine
    def _clock_stopped(self, work: Coroutine[Any, Any, None]) -> Generator[Any, Any, None]:
        """Await the joining of threads, which gives up after some minutes of the loop's own time."""
        self._virtual.threads += 1
        try:
            yield from work
        finally:
            self._virtual.threads -= 1

    def _thread_done(self, work: asyncio.Future[T]) -> None:
        self._virtual.threads -= 1
