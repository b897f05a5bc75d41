"""The gate of a route: calls and tokens a minute, calls a day, calls in flight and holds, first come first served."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from asyncio_throttle import Throttler

from venire.arena.campaigns import Limits
from venire.arena.clock import Clock, SystemClock
from venire.orchestrator.lanes.congestion import Congestion, CongestionControl
from venire.orchestrator.lanes.windows import MISCOUNT, Load, Pace, RequestWindow, Slice, TokenWindow

_MINUTE = 60.0
_DAY = 86_400.0
_MARGIN = 1.1
"""Input is estimated at the densest body seen so far, and a tenth more."""
_THROTTLER_SECONDS = 0.25
"""Seconds after which a call looks again that the throttler holds, which nothing does while the gate is right."""
_MIN_SLEEP = 0.02
"""Seconds that the gate sleeps at least: calls that may pass within them pass together."""
_TIMER_SLACK = 1e-7
"""Timers may come early by the rounding of a sum."""


@dataclass(frozen=True, slots=True)
class GateUsage:
    """What a route sent in the last minute, and the parts of its limits that it may use; None: there is no limit."""

    requests: int
    requests_limit: float | None
    tokens: int
    tokens_limit: float | None
    """Of requests and replies together, else of the requests alone."""


@dataclass(slots=True)
class Permit:
    """Permission for one call to be sent, held from `take` to `done` or `release`."""

    load: Load
    sent_at: float
    slice: Slice
    number: int
    """Of the gate's calls, in the order they passed."""
    waited: float = 0.0
    """Seconds at the gate."""
    ended: bool = False


class Gate:
    """Admits the calls of one route first come first served, each when all its limits have room.

    `skew` is the largest difference in network delay between two calls, in seconds: no window of 60 s + skew at this
    end contains more than a limit, so no window of 60 s does at the provider's end. Of every limit, given or learnt,
    the part `share` is used, but at least 1. `sent_today` are calls of earlier runs: seconds ago, and how many;
    `tokens_lately` their tokens: seconds ago, in and out, the oldest first.
    Raises ValueError for numbers out of range.
    """

    def __init__(
        self,
        limits: Limits,
        clock: Clock,
        *,
        concurrency: int,
        share: float = 1.0,
        skew: float = 1.0,
        sent_today: Sequence[tuple[float, int]] = (),
        tokens_lately: Sequence[tuple[float, int, int]] = (),
    ) -> None:
        too_low = any(limit is not None and limit < 1 for limit in asdict(limits).values())
        if too_low or concurrency < 1 or not 0 < share <= 1 or skew < 0:
            raise ValueError("limits and concurrency are at least 1, share is in (0, 1], and skew is not below 0")
        self.waits = 0
        self.waited = 0.0
        self.in_flight = 0
        self._clock = clock
        self._given = limits
        self._learnt = self._told = Limits()
        self._share = share
        self._skew = skew
        self._densest = 0.0
        """Input tokens a byte, at most; 0: nothing was seen yet."""
        self._closed_until = -math.inf
        self.congestion = CongestionControl(concurrency, self._sent_lately, minute=_MINUTE + skew)
        self._began = clock.monotonic()
        self._earlier = [(self._began - ago, calls) for ago, calls in sorted(sent_today, reverse=True)]
        self._minute = RequestWindow(math.inf, _MINUTE + skew)
        self._minute.recall(sent for sent in self._earlier if sent[0] > self._began - self._minute.period)
        self._day: RequestWindow | None = None
        self.throttler: Throttler | None = None
        """Where calls a minute are limited on the machine's own clock: passed last before a call is sent."""
        self._pace = Pace(self._began)
        self._tokens = TokenWindow(_MINUTE + skew, self._began)
        self._tokens.recall((self._began - ago, given, made) for ago, given, made in tokens_lately)
        self._queue: OrderedDict[asyncio.Future[Permit], tuple[Load, float]] = OrderedDict()
        self._sleeper: asyncio.Task[None] | None = None
        self._wakes_at = math.inf
        self._apply(self._began)

    @property
    def held_for(self) -> float:
        """Seconds for which nothing is sent: asked for by the provider, in doubt after refusals, or the day is used."""
        return max(0.0, self._hold()[0] - self._clock.monotonic())

    @property
    def held_why(self) -> str:
        """Why nothing is sent at present."""
        return self._hold()[1]

    def _hold(self) -> tuple[float, str]:
        day = -math.inf if self._day is None else self._day.opens(self._clock.monotonic())
        return max(
            (self._closed_until, "the provider asks to wait"),
            (self.congestion.held_until, "it refuses calls for their rate"),
            (day, "the limit of requests a day is used up"),
        )

    @property
    def allowed(self) -> int:
        """Calls that may be in flight at present."""
        return self.congestion.allowed

    @property
    def slowed(self) -> str:
        """How rate-limit responses slow the route, in words; empty while they do not."""
        control = self.congestion
        if control.state is Congestion.NONE:
            return ""
        responses = f"{control.slowed_by:,} rate-limit response{'s' * (control.slowed_by != 1)}"
        if control.state is Congestion.BLOCKED:
            return f"sends single calls after {responses}"
        return f"slowed to {control.allowed:,} in flight ({control.rate:,.3g} calls/s) by {responses}"

    def usage(self) -> GateUsage:
        """Requests and tokens of the last minute against their limits."""
        limits = _merged(self._given, self._learnt)
        only_input = limits.tokens_per_minute is None and limits.input_tokens_per_minute is not None
        tokens = limits.input_tokens_per_minute if only_input else limits.tokens_per_minute
        return GateUsage(
            self._sent_lately(self._clock.monotonic()),
            None if limits.requests_per_minute is None else self._part(limits.requests_per_minute),
            self._tokens.input + (0 if only_input else self._tokens.output),
            None if tokens is None else self._part(tokens),
        )

    def load(self, body_bytes: int, max_tokens: int) -> Load:
        """What to set aside for a call with a body of so many bytes and answers of at most `max_tokens`.

        Before any usage was seen a byte counts as a token, since no tokenizer makes more; then the densest body so far
        and a tenth more. The answer counts in full: that is also what providers count when a call arrives.
        """
        rate = self._densest * _MARGIN if self._densest else 1.0
        return Load(body_bytes, math.ceil(body_bytes * rate), max_tokens)

    def take_now(self, load: Load) -> Permit | None:
        """A permit without waiting, or None when the call would have to wait."""
        if self._queue:
            return None
        now = self._clock.monotonic()
        return None if self._opens(now, load) > now else self._grant(now, load)

    def admit(self, load: Load) -> Permit:
        """A permit for a call that was sent already, whatever the limits are: those that come later wait for it."""
        return self._grant(self._clock.monotonic(), load)

    async def take(self, load: Load) -> Permit:
        """Wait for the permit of one call. Cancelled: nothing was taken."""
        permit = self.take_now(load)
        if permit is not None:
            return permit
        future: asyncio.Future[Permit] = asyncio.get_running_loop().create_future()
        self._queue[future] = (load, self._clock.monotonic())
        if len(self._queue) == 1:
            self._serve()
        try:
            return await future
        except asyncio.CancelledError:
            if self._queue.pop(future, None) is None and not future.cancelled():  # its turn came at the same moment
                self.release(future.result())
            else:
                self._serve()
            raise

    def done(
        self,
        permit: Permit,
        input_tokens: int | None,
        output_tokens: int | None,
        *,
        replied: bool = True,
        rate_limited: bool = False,
        retry_after: float | None = None,
    ) -> None:
        """A call has ended; its tokens count as used when it was sent. None: unknown, the estimate stays.

        `replied`: a reply came, and its latency is used to estimate latencies. `rate_limited`: the provider sent a
        rate-limit response; any other answer shows that it accepts calls. `retry_after` is the wait in seconds that it
        asked for: it holds other calls only while no call is accepted.
        """
        if permit.ended:
            raise RuntimeError("this permit was given back already")
        permit.ended = True
        load, now = permit.load, self._clock.monotonic()
        if input_tokens is not None or output_tokens is not None:
            if input_tokens is None:
                input_tokens = load.input_tokens
            elif input_tokens > self._densest * load.body_bytes and load.body_bytes:
                self._densest = min(MISCOUNT, input_tokens / load.body_bytes)
            self._tokens.settle(
                permit.slice, load, input_tokens, load.output_tokens if output_tokens is None else output_tokens
            )
        took = now - permit.sent_at
        if rate_limited:
            self.congestion.refused(now, permit.number, took, self.in_flight, retry_after)
        else:
            self.congestion.ended(now, permit.number, took if replied else None)
        self.in_flight -= 1
        if self._queue:
            self._serve()

    def release(self, permit: Permit) -> None:
        """A call was not sent: everything is given back."""
        if permit.ended:
            raise RuntimeError("this permit was given back already")
        permit.ended = True
        self.congestion.unsent(permit.number)
        self.in_flight -= 1
        self._minute.forget(permit.sent_at)
        if self._day is not None:
            self._day.forget(permit.sent_at)
        self._pace.due -= self._pace.interval
        self._tokens.forget(permit.slice, permit.load)
        if self._queue:
            self._serve()

    def pause(self, seconds: float) -> None:
        """Hold every call for so many seconds from now, or longer where a longer hold is on."""
        self._closed_until = max(self._closed_until, self._clock.monotonic() + seconds)

    def learn(self, limits: Limits) -> None:
        """Take over the limits that the provider reports, where none is given; figures below 1 are ignored."""
        if limits == self._told:
            return
        self._told = limits
        self._learnt = _merged(limits, self._learnt)
        self._apply(self._clock.monotonic())
        if self._queue:
            self._serve()

    def _apply(self, now: float) -> None:
        limits = _merged(self._given, self._learnt)
        self._limited = limits != Limits()
        calls = self._part(limits.requests_per_minute)
        self._minute.rate_limit = calls
        self._pace.change(_MINUTE / calls, now)
        if math.isfinite(calls) and isinstance(self._clock, SystemClock):
            self.throttler = self.throttler or Throttler(calls, _MINUTE, _THROTTLER_SECONDS)
            self.throttler.rate_limit = calls
        tokens = (limits.tokens_per_minute, limits.input_tokens_per_minute, limits.output_tokens_per_minute)
        both, only_input, only_output = map(self._part, tokens)
        self._tokens.limit((both, only_input, only_output), now)
        if limits.requests_per_day is None:
            return
        if self._day is None:
            self._day = RequestWindow(math.inf, _DAY + self._skew)
            self._day.recall(sent for sent in self._earlier if sent[0] > now - self._day.period)
            self._day.recall(self._minute.since(self._began))
        self._day.rate_limit = self._part(limits.requests_per_day)

    def _part(self, limit: int | None) -> float:
        """The part of a limit that is used; infinity where there is none."""
        return math.inf if limit is None else max(1, math.floor(limit * self._share + 1e-9))

    def _opens(self, now: float, load: Load) -> float:
        """When a call may pass as things are: not later than `now` is at once, infinity when only an answer helps."""
        at, congestion = self._closed_until, self.congestion
        if not congestion.free:
            at = max(at, congestion.opens(now, self.in_flight))
        elif self.in_flight >= congestion.allowed:
            return math.inf
        if not self._limited:
            return at
        at = max(at, self._pace.due, self._minute.opens(now), self._tokens.opens(now, load))
        return at if self._day is None else max(at, self._day.opens(now))

    def _grant(self, now: float, load: Load) -> Permit:
        self.in_flight += 1
        self._minute.log(now)  # with no limit as well: one may be learnt
        if self._limited:
            self._pace.push(now, 1)
            if self._day is not None:
                self._day.log(now)
        return Permit(load, now, self._tokens.add(now, load), self.congestion.sent(now))

    def _sent_lately(self, now: float) -> int:
        return self._minute.calls(now)

    def _serve(self) -> None:
        """Admit the calls that may pass, in order; sleep until the next may."""
        now = self._clock.monotonic()
        while self._queue:
            future, (load, since) = next(iter(self._queue.items()))
            if not future.cancelled():
                opens = self._opens(now, load)
                if opens > now:
                    self._wake(opens, now)
                    return
                permit = self._grant(now, load)
                permit.waited = now - since
                if permit.waited > 1e-3:
                    self.waits += 1
                    self.waited += permit.waited
                future.set_result(permit)
            del self._queue[future]
        self._rest()

    def _wake(self, at: float, now: float) -> None:
        """Serve the queue at this time at the latest; one timer serves all waiting calls."""
        at = max(at, now + _MIN_SLEEP)
        if at < math.inf and (at < self._wakes_at - _MIN_SLEEP or self._sleeper is None or self._sleeper.done()):
            self._rest()
            self._wakes_at = at
            self._sleeper = asyncio.get_running_loop().create_task(self._sleep(at - now + _TIMER_SLACK))

    async def _sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._sleeper, self._wakes_at = None, math.inf
        self._serve()

    def _rest(self) -> None:
        if self._sleeper is not None:
            self._sleeper.cancel()
            self._sleeper, self._wakes_at = None, math.inf


def _merged(first: Limits, second: Limits) -> Limits:
    """The figures of `first`, and those of `second` where it has none."""
    return replace(second, **{name: limit for name, limit in asdict(first).items() if limit is not None and limit >= 1})
