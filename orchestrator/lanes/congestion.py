"""Congestion control of a route: its call rate after rate-limit responses, which may be sporadic or due to a limit.

An undeclared limit and a provider that refuses a call now and then for its own reasons give the same answer: 429.
They differ in whether fewer calls lead to fewer refusals, so the rate is cut to find out: see docs/lanes.md for the
control law, its alternatives and its simulation.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from venire.orchestrator.lanes.monitor import TOLERATED, RateLimitMonitor

_CONFIRM = 64
"""Calls at the full rate that must confirm an alarm before the rate is cut for the first time."""
_HEADROOM = 0.95
"""What is sent after a cut, of the rate that was accepted."""
_MIN_TRIAL, _MAX_TRIAL, _EXPECTED = 48, 128, 6.0
"""Calls of a trial: so many that as many refusals would be expected if the cut had no effect."""
_SPORADIC = 0.2
"""Share up to which cuts without effect show that refusals do not depend on the rate."""
_CUTS = 2
"""Cuts without effect that it takes: the first may have been too small, for a bucket hides how much too fast it is."""
_DEEP = 0.25
"""Of the rate before the first cut: from here on a cut without effect shows that for shares of up to a half."""
_MIN_STEP, _NEAR_STEP, _MAX_STEP = 0.01, 0.04, 0.25
"""Steps up, each double the one before while all goes well: the first, the largest near the last limit, the largest."""
_NEAR = 1.15
_RECOVERY = 0.85
"""Of the rate accepted over the last minute: below it the steps up are large."""
_MIN_COHORT, _COHORT, _COHORT_SECONDS = 8, 64, 10.0
"""Calls between two steps up."""
_MAX_CUT = 0.1
"""What one cut leaves at least of the rate."""
_MINUTE_CUT = 0.7
"""... and at least where that much was accepted over the last minute: the limit may be one of a minute."""
_OUTAGE = 100.0
"""Seconds without an accepted call that no limit of a minute explains."""
_RAMP = 8.0
"""After an outage the rate begins at the former one divided by this, and doubles."""
_RAMP_COHORT, _RAMP_SECONDS = 16, 2.0
"""Calls between two doublings, or as many as are sent in so many seconds."""
_YOUNG = 5.0
"""Seconds: what was accepted in less is mostly one burst, and how fast calls may go on is not known from it."""
_FIRST_HOLD, _MINUTE_HOLD, _MAX_HOLD = 1.0, 15.0, 50.0
"""Seconds of the first wait for a probe, of the longest that a limit of a minute may need, of the longest."""
_MIN_JITTER = 0.6
_BELIEVED = 3
"""Refused probes running for which Retry-After is all that is waited."""
_CATCH_UP = 0.1
"""Seconds of lateness that are caught up at once."""
_SMOOTHING = 1 / 16
"""Weight of the latest answer in the mean latency."""
_PROBE_PASSES = 3.0
"""Times the latency of refusals after which a probe that is still out counts as accepted."""


class Congestion(Enum):
    """What limits a route at present."""

    NONE = "as many calls in flight as configured"
    PACED = "a rate that was found to be accepted"
    BLOCKED = "nothing but refusals: single probes after waits"


@dataclass(slots=True)
class _Blockage:
    """A time in which everything is refused: when it began, its probes, and what was accepted before."""

    since: float
    number: int
    """The last call sent before it."""
    seconds: float
    sent: int
    """Calls sent in so many seconds before it."""
    refused: int
    """Of these, those known as refused."""
    probe: int = 0
    """Number of the one on its way; 0: none is."""
    probed_at: float = 0.0
    probes: int = 0


class CongestionControl:
    """The pace of one route: calls a second, calls in flight, and holds.

    While nothing limits (`free`), `most` calls may be in flight, and an answer costs no more than a count. An
    *alarm* of the refusal monitor must be *confirmed* by the next calls; then the rate is *cut* to what was
    accepted, and a *trial* of some dozens of calls shows whether that ended the refusals. If not, they are
    sporadic: the former rate comes back, and their share is taken as usual from then on. If so, there is a limit:
    the rate stays below it and is raised in small steps that double, until the next alarm. When nothing passes any
    more, single *probes* are sent after waits that double; what is accepted then sets the rate by what was accepted
    over the last minute, waits included, which finds buckets and windows of a minute alike.

    A rate r and the mean latency T give the calls in flight, r T (Little's law). `recent` returns how many calls were
    sent in the last `minute` seconds. Pure: times are arguments, in seconds; `jitter` gives numbers in [0, 1).
    """

    def __init__(
        self,
        most: int,
        recent: Callable[[float], int],
        *,
        minute: float = 61.0,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.most = most
        self.allowed = most
        """Calls that may be in flight."""
        self.free = True
        """Whether `most` is the only limit; callers then need not ask when a call may pass."""
        self.rate = math.inf
        """Calls a second."""
        self.held_until = 0.0
        """When the next probe may be sent, while nothing passes."""
        self.slowed_by = 0
        """Rate-limit responses since it is not free, those included that raised the alarm."""
        self._recent = recent
        self._minute = minute
        self._jitter = jitter
        self._monitor = RateLimitMonitor()
        self._number = 0
        self._latency = self._refusal_latency = 0.0
        self._quick_refusal = math.inf
        """The quickest of the latest refusals: a busy event loop makes all of them look as slow as answers."""
        self._began = self._due = 0.0
        self._was_limiting = False
        self._confirming = False
        self._trial = 0
        """Calls that the trial under way takes; 0: there is none."""
        self._cuts = 0
        """Since the alarm."""
        self._share = 0.0
        """Share refused before the latest cut."""
        self._former = self._top = math.inf
        """The rate to come back to, and calls a second before the first cut."""
        self._ceiling = 0.0
        """Calls a second that were accepted when a limit was last met."""
        self._step = _MIN_STEP
        self._next_step = 0
        """Number of the call whose answer lets the rate grow."""
        self._ramp_to = 0.0
        self._block: _Blockage | None = None

    @property
    def state(self) -> Congestion:
        """What limits at present."""
        if self._block is not None:
            return Congestion.BLOCKED
        return Congestion.NONE if self.rate == math.inf else Congestion.PACED

    def opens(self, now: float, in_flight: int) -> float:
        """When a call may pass; not later than `now`: at once; infinity: when another one has ended."""
        if self._block is not None:
            if not self._block.probe:
                return self.held_until
            # A call that is refused is refused soon: one that is still out is being worked on.
            passes = self._block.probed_at + _PROBE_PASSES * self._refusal_latency + 0.05
            if now < passes:
                return passes
            self._unblock(now, self._block)
        if in_flight >= self.allowed:
            self._was_limiting = True
            return math.inf
        if self._due > now:
            self._was_limiting = True
        return self._due

    def sent(self, now: float) -> int:
        """A call passes; returns its number."""
        self._number += 1
        if self._block is not None:
            self._block.probe, self._block.probed_at = self._number, now
        elif self.rate < math.inf:
            self._due = max(self._due, now - _CATCH_UP) + 1.0 / self.rate
        elif self._number == 1:
            self._began = now
        return self._number

    def lower(self, most: int) -> None:
        """Let no more than so many calls be in flight from now on, at least one."""
        self.most = max(1, min(self.most, most))
        self._set_allowed()

    def unsent(self, number: int) -> None:
        """A call that passed was not sent after all."""
        if self._block is not None and self._block.probe == number:
            self._block.probe = 0

    def ended(self, now: float, number: int, latency: float | None) -> None:
        """A call has ended otherwise than refused for its rate; `latency` is in seconds, None where no reply came."""
        if latency is not None:
            self._latency += (latency - self._latency) * (_SMOOTHING if self._latency else 1.0)
        if self.free:
            self._monitor.answered()
            return
        if self._block is not None:
            if number == self._block.probe:
                self._unblock(now, self._block)
        elif self._monitor.counts(number):
            self._monitor.answered()
            self._go_on(now, number)
        self._set_allowed()

    def refused(self, now: float, number: int, latency: float, in_flight: int, retry_after: float | None) -> None:
        """A call was refused for its rate, `in_flight` still counting it; `retry_after`: seconds asked for with it."""
        self._refusal_latency = max(latency, 0.9 * self._refusal_latency)
        self._quick_refusal = min(latency, 1.05 * self._quick_refusal)
        self._monitor.by_end = 0.0 < self._latency < 2.0 * self._quick_refusal
        was_free, climb = self.free, 1
        if self._block is not None:
            self._refused_in_block(now, number, retry_after, self._block)
        elif self._monitor.counts(number):
            alarm, climb = self._monitor.refused(number), self._monitor.climb
            if self._monitor.nothing_passes:
                self._enter_block(now, retry_after)
            elif self._confirming:
                self._confirm(now, number, in_flight, alarm)
            elif self._trial:
                self._judge(now, number, alarm)
            elif alarm and self._latency:
                self._alarm(now)
        self._set_allowed()
        if not self.free:
            self.slowed_by = climb if was_free else self.slowed_by + 1

    def _set_allowed(self) -> None:
        places = self.rate * self._latency if self._latency else math.inf
        self.allowed = self.most if places >= self.most else max(1, math.ceil(places))
        self.free = self.rate == math.inf and self._block is None and not self._confirming

    def _go_on(self, now: float, number: int) -> None:
        """What the answer to a call means for the state that the control is in."""
        if self._confirming:
            self._confirm(now, number, self.allowed, alarm=False)
        elif self._trial:
            self._judge(now, number, alarm=False)
        elif self.rate < math.inf and number >= self._next_step:
            if self._was_limiting:  # a rate that is not used is no evidence for a higher one
                self._grow(now)
            self._was_limiting = False
            self._next_step = self._number + self._cohort()

    def _alarm(self, now: float) -> None:
        if self.rate < math.inf:  # found by steps up: a limit was to be expected
            self._former = self._top = self.rate
            self._cuts = 0
            self._cut(now, self.rate, self._monitor.excess)
            return
        self._confirming = True
        if self._monitor.by_end:
            self._monitor.mark()
        else:
            self._monitor.begin(self._number)

    def _confirm(self, now: float, number: int, in_flight: int, alarm: bool) -> None:
        """After an alarm: are more calls refused than usual, counted from there on? An alarm is a few chosen calls."""
        refused, calls = self._monitor.measured(number)
        if calls < _CONFIRM and not alarm:
            return
        self._confirming = False
        if refused <= self._monitor.allowance * calls and not alarm:
            self._monitor.learn(refused, calls)
            self._monitor.mark()
            return
        self._former, self._top = self.rate, min(self.rate, in_flight / self._latency)
        self._cuts = 0
        self._cut(now, self._top, refused / calls)

    def _cut(self, now: float, rate: float, share: float) -> None:
        """Send what was accepted, a little less, and begin a trial."""
        self._cuts += 1
        accepted = self._ceiling = rate * max(1.0 - share, _MAX_CUT)
        if now - self._began >= self._minute:
            lately = self._accepted_lately(now)
            self._ceiling = max(accepted, lately)
            accepted = max(accepted, min(lately, _MINUTE_CUT * rate))
        self._share = share
        self._trial = round(min(_MAX_TRIAL, max(_MIN_TRIAL, _EXPECTED / max(share, TOLERATED))))
        self._ramp_to = 0.0
        self._pace(_HEADROOM * accepted, now)
        self._due = now
        self._monitor.begin(self._number)

    def _judge(self, now: float, number: int, alarm: bool) -> None:
        """After a trial: did fewer calls bring fewer refusals?"""
        refused, calls = self._monitor.measured(number)
        if calls < self._trial and not alarm:
            return
        share = refused / calls
        helped = share <= max(self._share / 2.0, TOLERATED)
        shallow = max(share, self._share) <= _SPORADIC
        deep = self.rate <= _DEEP * self._top and share < 0.5
        sporadic = not helped and (shallow or deep)
        if sporadic and self._cuts >= _CUTS:
            if shallow:
                self._pace(self._former, now)
        elif alarm or sporadic:
            self._cut(now, self.rate, share)
            return
        self._monitor.learn(refused, calls)
        self._trial, self._step = 0, _MIN_STEP
        self._next_step = self._number + self._cohort()
        self._monitor.begin(self._number)

    def _cohort(self) -> int:
        """Calls until the next step up: as many as show a limit where one is near, else fewer at low rates."""
        if self._ramp_to:
            return round(min(_RAMP_COHORT, max(1.0, _RAMP_SECONDS * self.rate)))
        if _RECOVERY * self._ceiling < self.rate < _NEAR * self._ceiling or self.rate == math.inf:
            return _COHORT
        return round(min(_COHORT, max(_MIN_COHORT, _COHORT_SECONDS * self.rate)))

    def _grow(self, now: float) -> None:
        if self._ramp_to:
            self._pace(min(2.0 * self.rate, self._ramp_to), now)
            if self.rate >= self._ramp_to:
                self._ramp_to = 0.0
        elif self.rate < _RECOVERY * self._accepted_lately(now):
            self._pace(self.rate * (1.0 + _MAX_STEP), now)
        else:
            self._pace(self.rate * (1.0 + self._step), now)
            largest = _NEAR_STEP if self.rate < _NEAR * self._ceiling else _MAX_STEP
            self._step = min(largest, 2.0 * self._step)

    def _accepted_lately(self, now: float) -> float:
        """Calls a second that were accepted over the last minute, or since the route was opened."""
        sent = min(self._recent(now), self._number)
        refused = self._monitor.refused_after(self._number - sent)
        return (sent - refused) / min(self._minute, max(1.0, now - self._began))

    def _pace(self, rate: float, now: float) -> None:
        if rate * self._latency >= self.most:
            rate, self._ramp_to = math.inf, 0.0
        self.rate = rate
        self._due = min(self._due, now + 1.0 / rate)
        self._monitor.learning = rate == math.inf

    def _enter_block(self, now: float, retry_after: float | None) -> None:
        sent = min(self._recent(now), self._number)
        seconds = min(self._minute, now - self._began)
        self._block = _Blockage(now, self._number, seconds, sent, self._monitor.refused_after(self._number - sent))
        if not self._trial:
            self._former = self.rate
        self._trial, self._confirming = 0, False
        self._hold(now, retry_after, self._block)

    def _refused_in_block(self, now: float, number: int, retry_after: float | None, block: _Blockage) -> None:
        block.refused += number <= block.number
        if number == block.probe:
            block.probe = 0
            self._hold(now, retry_after, block)

    def _hold(self, now: float, retry_after: float | None, block: _Blockage) -> None:
        """Wait for the next probe: as long as was asked for, until that was wrong a few times; else ever longer.

        The random part keeps siblings that were refused together from coming back together.
        """
        if retry_after is not None and block.probes < _BELIEVED:
            self.held_until = now + retry_after
        else:
            longest = _MINUTE_HOLD if now - block.since < _OUTAGE - _MINUTE_HOLD else _MAX_HOLD
            seconds = min(longest, _FIRST_HOLD * 2.0 ** min(block.probes, 10))
            self.held_until = now + seconds * (_MIN_JITTER + (1.0 - _MIN_JITTER) * self._jitter())
        block.probes += 1

    def _unblock(self, now: float, block: _Blockage) -> None:
        """A probe was accepted: go on as fast as was accepted on average, or ramp up after an outage."""
        lasted, accepted = now - block.since, max(1, block.sent - block.refused)
        self._block, self.held_until, self._due = None, 0.0, now
        self._step = _MIN_STEP
        if lasted >= _OUTAGE:
            self._began = now
            self._ramp_to = self._former
            self._pace(min(accepted / max(block.seconds, 1.0), self._former) / _RAMP, now)
            self._next_step = self._number
        else:
            self._ceiling = accepted / (block.seconds + lasted)
            self._ramp_to = self._former if block.seconds + lasted < _YOUNG else 0.0
            self._pace(self._ceiling, now)
            self._next_step = self._number + self._cohort()
        self._monitor.begin(self._number)
        self._set_allowed()
