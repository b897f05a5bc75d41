"""Sliding windows of a gate: calls and tokens of the last minute or day, and when more may be sent."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

BURST = 0.1
"""Seconds of quota that a pause earns: so much lateness of the event loop is caught up, and no more sent at once."""

MISCOUNT = 4.0
"""Tokens a byte, and times what was set aside, from which on a count is not believed for calls to come."""

_MINUTE = 60.0
_TOKEN_HASTE = 0.95
"""Tokens are paced a little faster than their limit, since what a call will use is a guess; their window is exact."""
_SLICES = 1024
_STAMPS = 8192
_FADE = 0.01
"""By so much what is known of earlier calls fades with each call that ends."""


class Load(NamedTuple):
    """What one call puts on a gate: the bytes of its body, and the tokens to set aside for it."""

    body_bytes: int
    input_tokens: int
    output_tokens: int


class Pace:
    """Spreads a minute's quota over the minute; `due` is when the next call may pass.

    A call that passes late brings the next one no further off, up to `BURST` seconds.
    """

    __slots__ = ("due", "interval")

    def __init__(self, now: float) -> None:
        self.due = now
        self.interval = 0.0
        """Seconds for one unit; 0: nothing is spread."""

    def change(self, interval: float, now: float) -> None:
        """Another speed from now on, also for what is due already."""
        left = max(0.0, self.due - now)
        self.due = now + (left * interval / self.interval if self.interval else 0.0)
        self.interval = interval

    def push(self, now: float, units: float) -> None:
        """Count so many units as sent now."""
        earliest = now - BURST
        self.due = (self.due if self.due > earliest else earliest) + units * self.interval


class RequestWindow:
    """A log of calls, at most `rate_limit` of which lie in any `period` seconds; it says when the next may pass.

    Calls of one moment share one stamp, rounded up, so that a call costs the log eight bytes.
    """

    def __init__(self, rate_limit: float, period: float) -> None:
        self.rate_limit = rate_limit
        self.period = period
        self._log: deque[float] = deque()
        self._moment = period / _STAMPS
        self._last = -math.inf

    def opens(self, now: float) -> float:
        """When the next call may pass; not later than `now` when it may at once."""
        log = self._log
        if len(log) < self.rate_limit:  # what is still to be forgotten can only make more room
            return now
        self._forget_old(now)
        surplus = len(log) - self.rate_limit
        return now if surplus < 0 else log[int(surplus)] + self.period

    def log(self, at: float, calls: int = 1) -> None:
        """Count calls that are sent now, or were sent `at` a time not before those that are counted already."""
        if at > self._last:
            self._last = self._stamp(at)
            self._forget_old(at)
        if calls == 1:
            self._log.append(self._last)
        else:
            self._log.extend(repeat(self._last, calls))

    def calls(self, now: float) -> int:
        """How many calls are in the window."""
        self._forget_old(now)
        return len(self._log)

    def recall(self, sent: Iterable[tuple[float, int]]) -> None:
        """Count earlier calls, given as times and numbers, the oldest first."""
        for at, calls in sent:
            self.log(at, calls)

    def since(self, start: float) -> list[tuple[float, int]]:
        """Times and numbers of the calls counted from `start` on."""
        return [(at, 1) for at in self._log if at >= start]

    def forget(self, at: float) -> None:
        """Give back the place of a call that was counted `at` a time and then not sent."""
        log, stamp = self._log, self._stamp(at)
        for back in range(-1, -len(log) - 1, -1):
            if log[back] <= stamp:
                if log[back] == stamp:
                    del log[back]
                return

    def _stamp(self, at: float) -> float:
        return math.ceil(at / self._moment) * self._moment

    def _forget_old(self, now: float) -> None:
        log, period = self._log, self.period
        while log and log[0] + period <= now:
            log.popleft()


@dataclass(slots=True)
class Slice:
    """Tokens of the calls of one short span, which leave the window together when the last of them does."""

    last: float
    input: int = 0
    output: int = 0
    counted: bool = True
    """Whether it is still in the window."""


class _Quota:
    """One limit of tokens a minute: of input, of output, or of both together."""

    __slots__ = ("_in", "_out", "limit", "pace")

    def __init__(self, of_input: bool, of_output: bool, now: float) -> None:
        self._in, self._out = int(of_input), int(of_output)
        self.limit: float = math.inf
        self.pace = Pace(now)

    def of(self, input_tokens: float, output_tokens: float) -> float:
        """How many of these tokens this limit counts."""
        return self._in * input_tokens + self._out * output_tokens

    def fits(self, input_tokens: int, output_tokens: int, load: Load) -> bool:
        """Whether a call fits beside these tokens; one larger than the limit fits beside none."""
        free = self.limit - self._in * load[1] - self._out * load[2]
        return self._in * input_tokens + self._out * output_tokens <= (free if free > 0 else 0)


class TokenWindow:
    """Tokens sent in the last `period` seconds, reserved or used, under up to three limits.

    Calls are counted in slices of a thousandth of the period, from the time of the last call of the slice: memory does
    not depend on how many calls there are, and no token leaves early.
    """

    def __init__(self, period: float, now: float) -> None:
        self.input = 0
        self.output = 0
        self._period = period
        self._slices: deque[Slice] = deque()
        self._slice = Slice(now)
        self._slice_ends = -math.inf
        self._quotas = (_Quota(True, True, now), _Quota(True, False, now), _Quota(False, True, now))
        self.limited: list[_Quota] = []
        self._reserved_input = self._reserved_output = 0.0
        self._used_input = self._used_output = 0.0
        """Of the calls that ended lately."""

    def limit(self, limits: tuple[float, float, float], now: float) -> None:
        """Set the limits of tokens a minute: of both together, of input, of output; infinity is none."""
        for quota, limit in zip(self._quotas, limits, strict=True):
            quota.limit = limit
            quota.pace.change(_TOKEN_HASTE * _MINUTE / limit, now)
        self.limited = [quota for quota in self._quotas if quota.limit < math.inf]

    def opens(self, now: float, load: Load) -> float:
        """When a call may pass; not later than `now` when it may at once."""
        at = now
        full = False
        for quota in self.limited:
            if quota.pace.due > at:
                at = quota.pace.due
            full = full or not quota.fits(self.input, self.output, load)
        return max(at, self._fits_at(now, load)) if full else at

    def _fits_at(self, now: float, load: Load) -> float:
        """When enough has left the window for a call."""
        self._forget_old(now)
        input_tokens, output_tokens, at = self.input, self.output, now
        slices = iter(self._slices)
        while not all(quota.fits(input_tokens, output_tokens, load) for quota in self.limited):
            slice_ = next(slices)  # there is one: an empty window takes any call
            input_tokens -= slice_.input
            output_tokens -= slice_.output
            at = slice_.last + self._period
        return at

    def add(self, now: float, load: Load) -> Slice:
        """Count the tokens of a call that is sent now; returns where they were counted."""
        if now >= self._slice_ends:
            self._slice_ends = now + self._period / _SLICES
            self._forget_old(now)
            self._slice = Slice(now)
            self._slices.append(self._slice)
        slice_ = self._slice
        slice_.last = now
        slice_.input += load.input_tokens
        slice_.output += load.output_tokens
        self.input += load.input_tokens
        self.output += load.output_tokens
        for quota in self.limited:
            quota.pace.push(now, self._likely(quota, load))
        return slice_

    def recall(self, sent: Iterable[tuple[float, int, int]]) -> None:
        """Count tokens of earlier calls, given as times, tokens in and tokens out, the oldest first."""
        for at, given, made in sent:
            self._slices.append(Slice(at, given, made))
            self.input += given
            self.output += made

    def settle(self, slice_: Slice, load: Load, input_tokens: int, output_tokens: int) -> None:
        """Count what a call used in place of what was set aside for it, from when it was sent."""
        if slice_.counted:
            more = input_tokens - load.input_tokens
            slice_.input += more
            self.input += more
            more = output_tokens - load.output_tokens
            slice_.output += more
            self.output += more
        if self.limited and (input_tokens or output_tokens):  # a failed call is no evidence about successful ones
            self._fade(load, input_tokens, output_tokens)

    def forget(self, slice_: Slice, load: Load) -> None:
        """Give back what was set aside for a call that was not sent."""
        self.settle(slice_, load, 0, 0)
        for quota in self.limited:
            quota.pace.due -= self._likely(quota, load) * quota.pace.interval

    def _forget_old(self, now: float) -> None:
        slices, period = self._slices, self._period
        while slices and slices[0].last + period <= now:
            gone = slices.popleft()
            gone.counted = False
            self.input -= gone.input
            self.output -= gone.output

    def _fade(self, load: Load, input_tokens: int, output_tokens: int) -> None:
        self._reserved_input += load.input_tokens - _FADE * self._reserved_input
        self._reserved_output += load.output_tokens - _FADE * self._reserved_output
        most_input = MISCOUNT * max(load.input_tokens, load.body_bytes)
        self._used_input += min(input_tokens, most_input) - _FADE * self._used_input
        self._used_output += min(output_tokens, MISCOUNT * load.output_tokens) - _FADE * self._used_output

    def _likely(self, quota: _Quota, load: Load) -> float:
        """Tokens by which a call moves the pace: the part that calls used lately of what was set aside for them."""
        tokens = quota.of(load.input_tokens, load.output_tokens)
        reserved = quota.of(self._reserved_input, self._reserved_output)
        if reserved:
            tokens *= quota.of(self._used_input, self._used_output) / reserved
        return tokens if tokens < quota.limit else quota.limit
