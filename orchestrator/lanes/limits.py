"""A lane's gate: requests a minute, first come first served, with one waiter at a time."""

from __future__ import annotations

import asyncio
import math

from asyncio_throttle import Throttler

from venire.arena.clock import Clock

__all__ = ["Gate"]

_PERIOD = 0.1
"""Seconds of quota sent at once, at most: a whole minute's in one burst would trip the provider's own limiter."""


class _ClockThrottler(Throttler):  # type: ignore[misc]  # asyncio-throttle has no type hints
    """asyncio-throttle on a clock of ours, sleeping until the oldest call leaves the window instead of polling."""

    def __init__(self, rate_limit: int, period: float, clock: Clock) -> None:
        super().__init__(rate_limit=rate_limit, period=period)
        self._clock = clock

    def flush(self) -> None:
        now = self._clock.monotonic()
        while self._task_logs and self._task_logs[0] + self.period <= now:  # the same sum as in `room`
            self._task_logs.popleft()

    async def room(self) -> None:
        """Wait until a call may pass, without counting one."""
        while True:
            self.flush()
            if len(self._task_logs) < self.rate_limit:
                return
            await self._clock.sleep(self._task_logs[0] + self.period - self._clock.monotonic())

    async def acquire(self) -> None:
        await self.room()
        self._task_logs.append(self._clock.monotonic())


class Gate:
    """Lets calls of one lane pass at its rate, in the order they came; `pause` holds all of them.

    `per_minute` None lets calls pass at once. Any window of 60 s sees at most `per_minute` of them: the quota is cut
    into periods of a tenth of a second or of a single call, whichever is longer.
    """

    def __init__(self, per_minute: int | None, clock: Clock) -> None:
        self._clock = clock
        self._throttler: _ClockThrottler | None = None
        if per_minute is not None:
            burst = max(1, math.floor(per_minute * _PERIOD / 60))
            self._throttler = _ClockThrottler(burst, 60 / (per_minute // burst), clock)
        self._turn = asyncio.Lock()  # asyncio's lock is fair: this is the queue
        self._closed_until = 0.0
        self.waits = 0
        self.waited = 0.0

    async def take(self) -> float:
        """Wait for the turn of one call; returns the seconds waited. Cancelled: no turn was taken."""
        start = self._clock.monotonic()
        async with self._turn:
            while True:
                while (left := self._closed_until - self._clock.monotonic()) > 0:
                    await self._clock.sleep(left)
                if self._throttler is None:
                    break
                await self._throttler.room()
                if self._closed_until <= self._clock.monotonic():  # no pause came while it waited for room
                    await self._throttler.acquire()
                    break
        waited = self._clock.monotonic() - start
        if waited > 1e-3:
            self.waits += 1
            self.waited += waited
        return waited

    def pause(self, seconds: float) -> None:
        """Hold every call of the lane for so many seconds from now, or longer where a longer hold is on."""
        self._closed_until = max(self._closed_until, self._clock.monotonic() + seconds)
