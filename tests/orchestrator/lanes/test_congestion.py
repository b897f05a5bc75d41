"""Congestion control of a route: sporadic refusals cost next to nothing, limits are found and kept, outages waited out.

Upstreams are simulated on the virtual clock, with workers that ask without a break; benchmarks/refusals.py has more of
them, for longer.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import deque
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parameters import slow_after
from venire.arena.campaigns import Limits
from venire.arena.clock import VirtualClock
from venire.orchestrator.lanes.congestion import Congestion, CongestionControl
from venire.orchestrator.lanes.gate import Gate
from venire.orchestrator.lanes.windows import Load

T = TypeVar("T")

CALL = Load(1, 1, 1)
Accepts = Callable[[float, int], bool]
"""Whether an upstream takes a call that comes at a moment when so many are being worked on."""


@pytest.fixture(autouse=True)
def repeatable() -> None:
    """The random part of waits comes from the module's own generator."""
    random.seed(7)


def run(clock: VirtualClock, main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
        return runner.run(main)


def sporadic(share: float) -> Accepts:
    draws = Random(11)
    return lambda now, busy: draws.random() >= share


def bucket(rate: float) -> Accepts:
    """A token bucket that holds a second's worth."""
    tokens, last = rate, 0.0

    def accepts(now: float, busy: int) -> bool:
        nonlocal tokens, last
        tokens, last = min(rate, tokens + rate * (now - last)), now
        if tokens < 1:
            return False
        tokens -= 1
        return True

    return accepts


def window(calls: int, seconds: float = 60.0) -> Accepts:
    """A sliding window."""
    log: deque[float] = deque()

    def accepts(now: float, busy: int) -> bool:
        while log and log[0] + seconds <= now:
            log.popleft()
        if len(log) >= calls:
            return False
        log.append(now)
        return True

    return accepts


def places(most: int) -> Accepts:
    return lambda now, busy: busy < most


class Upstream:
    """A gate before an upstream that answers after `latency` seconds, more or less, and refuses after `refusing`.

    A refused call waits up to half a second, or as long as it is asked to, and holds no place.
    """

    def __init__(
        self,
        accepts: Accepts,
        *,
        concurrency: int = 32,
        latency: float = 0.5,
        refusing: float = 0.02,
        retry_after: float | None = None,
    ) -> None:
        self.clock = VirtualClock()
        self.gate = Gate(Limits(), self.clock, concurrency=concurrency)
        self.answered: list[float] = []
        self.refused: list[float] = []
        self._accepts, self._latency, self._refusing = accepts, latency, refusing
        self._retry_after = retry_after
        self._random = Random(concurrency)
        self._busy = 0

    async def _call(self) -> None:
        turn = await self.gate.take(CALL)
        if accepted := self._accepts(self.clock.monotonic(), self._busy):
            self._busy += 1
        await self.clock.sleep(self._random.uniform(0.9, 1.1) * (self._latency if accepted else self._refusing))
        (self.answered if accepted else self.refused).append(self.clock.monotonic())
        if accepted:
            self._busy -= 1
            self.gate.done(turn, 1, 1)
        else:
            self.gate.done(turn, 0, 0, replied=False, rate_limited=True, retry_after=self._retry_after)

    async def _ask_on(self, until: float) -> None:
        while self.clock.monotonic() < until:
            await self._call()

    async def _play(self, until: float) -> None:
        tasks = [asyncio.create_task(self._ask_on(until)) for _ in range(2 * self.gate.congestion.most)]
        await self.clock.sleep(until)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def play(self, until: float) -> None:
        run(self.clock, self._play(until))

    def rate(self, start: float, end: float) -> float:
        """Answers a second."""
        return sum(start <= at < end for at in self.answered) / (end - start)

    @property
    def refused_share(self) -> float:
        return len(self.refused) / (len(self.refused) + len(self.answered))


@pytest.mark.parametrize(("share", "least"), [(0.001, 0.97), (0.01, 0.97), (0.02, 0.93), (0.05, 0.6)])
@pytest.mark.parametrize("latency", [0.02, 0.5, 10.0])
@pytest.mark.parametrize("as_slow", slow_after(1, False, True))
def test_sporadic_refusals_cost_next_to_nothing(share: float, least: float, latency: float, as_slow: bool) -> None:
    upstream = Upstream(sporadic(share), latency=latency, refusing=latency if as_slow else 0.02)
    upstream.play(150 * latency)
    assert upstream.rate(10 * latency, 150 * latency) >= least * 32 / latency


def test_one_refusal_with_a_long_wait_holds_nobody_else() -> None:
    first = True

    def accepts(now: float, busy: int) -> bool:
        nonlocal first
        refuse, first = first and now > 1, first and now <= 1
        return not refuse

    upstream = Upstream(accepts, retry_after=3_600.0)
    upstream.play(60)
    assert len(upstream.refused) == 1
    assert upstream.rate(5, 60) >= 0.97 * 64
    assert upstream.gate.held_for == 0


LIMITS: dict[str, tuple[Callable[[], Accepts], float, float]] = {
    "bucket of 10 a second": (lambda: bucket(10), 10, 0.5),
    "bucket of 10 a second, quick answers": (lambda: bucket(10), 10, 0.02),
    "bucket of 25 a second": (lambda: bucket(25), 25, 0.5),
    "600 in any minute": (lambda: window(600), 10, 0.5),
    "16 in flight": (lambda: places(16), 32, 0.5),
}


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("refusing", slow_after(1, 0.02, 0.5))
def test_a_limit_that_nobody_declared_is_found_and_kept(name: str, refusing: float) -> None:
    make, limit, latency = LIMITS[name]
    upstream = Upstream(make(), latency=latency, refusing=min(refusing, latency))
    upstream.play(600)
    assert upstream.rate(60, 600) >= 0.85 * limit
    assert upstream.refused_share <= (0.05 if refusing < latency else 0.06)
    assert upstream.gate.congestion.state is not Congestion.NONE
    assert "slowed to " in upstream.gate.slowed or "single calls" in upstream.gate.slowed


@pytest.mark.parametrize("name", slow_after(1, *LIMITS))
def test_it_is_found_beside_sporadic_refusals(name: str) -> None:
    make, limit, latency = LIMITS[name]
    accepts, noise = make(), sporadic(0.01)
    upstream = Upstream(lambda now, busy: noise(now, busy) and accepts(now, busy), latency=latency)
    upstream.play(600)
    assert upstream.rate(60, 600) >= 0.8 * limit


def test_a_limit_that_is_lifted_is_noticed() -> None:
    accepts = bucket(10)
    upstream = Upstream(lambda now, busy: now > 300 or accepts(now, busy))
    upstream.play(700)
    assert upstream.rate(600, 700) >= 0.97 * 64
    assert upstream.gate.slowed == ""


def outage(concurrency: int, latency: float, refusing: float) -> Upstream:
    """Everything is refused for an hour, from the first minute on."""
    open_ = lambda now, busy: not 60 <= now < 3_660  # noqa: E731  # a function with a name says no more
    return Upstream(open_, concurrency=concurrency, latency=latency, refusing=refusing)


@pytest.mark.parametrize("as_slow", slow_after(1, True, False))
@pytest.mark.parametrize(("concurrency", "latency"), [(1, 0.3), (4, 0.02), (32, 0.5), (16, 10.0), (250, 10.0)])
def test_an_hour_of_refusals_takes_two_calls_a_minute_and_is_over_within_two_minutes(
    concurrency: int, latency: float, as_slow: bool
) -> None:
    upstream = outage(concurrency, latency, latency if as_slow else 0.02)
    upstream.play(3_660 + 180)
    before = upstream.rate(30, 60)
    assert upstream.rate(3_660 + 120, 3_660 + 180) >= 0.9 * before
    in_the_first = sum(at < 180 for at in upstream.refused)
    assert in_the_first <= (3 if as_slow else 1.2) * concurrency + 30
    assert len(upstream.refused) - in_the_first <= 2 * 58
    assert upstream.gate.allowed == concurrency


def test_a_wait_that_the_provider_asks_for_is_believed_until_it_was_wrong_three_times() -> None:
    control = CongestionControl(10, lambda now: 0, jitter=lambda: 0.0)
    now = 0.0
    for _ in range(8):
        control.refused(now, control.sent(now), 0.02, 1, 0.1)
    waits = []
    for _ in range(6):
        assert control.state is Congestion.BLOCKED
        waits.append(control.held_until - now)
        now = control.held_until
        assert control.opens(now, 0) <= now
        control.refused(now, control.sent(now), 0.02, 1, 0.1)
    assert waits == pytest.approx([0.1, 0.1, 0.1, 0.6 * 8, 0.6 * 15, 0.6 * 15])


def test_while_nothing_passes_one_call_is_out_at_a_time_whatever_else_is_in_flight() -> None:
    control = CongestionControl(100, lambda now: 0, jitter=lambda: 0.0)
    for _ in range(8):
        control.refused(1.0, control.sent(1.0), 0.5, 50, None)
    assert control.opens(1.0, 42) == control.held_until == pytest.approx(1.6)
    control.sent(1.6)
    assert control.opens(1.7, 43) > 1.7, "until the probe has come back, or is out for longer than refusals take"
    assert control.opens(5.0, 43) <= 5.0
    assert control.state is Congestion.PACED


def test_a_probe_that_was_not_sent_makes_way_for_the_next() -> None:
    control = CongestionControl(100, lambda now: 0, jitter=lambda: 0.0)
    for _ in range(8):
        control.refused(1.0, control.sent(1.0), 0.5, 50, None)
    control.unsent(control.sent(1.6))
    assert control.opens(1.6, 0) <= 1.6


@given(most=st.integers(1, 1_000), seed=st.integers(0, 2**32))
def test_whatever_comes_the_control_stays_within_its_bounds(most: int, seed: int) -> None:
    draws, now, recent = Random(seed), 0.0, 0
    control = CongestionControl(most, lambda now: recent)
    out: list[tuple[int, float]] = []
    for _ in range(400):
        now += draws.expovariate(3)
        opens = control.opens(now, len(out))
        assert opens <= now + 3_600 or (opens == math.inf and out)
        if (opens <= now or draws.random() < 0.05) and len(out) < most:
            out.append((control.sent(now), now))
            recent += 1
        elif out:
            number, sent = out.pop(draws.randrange(len(out)))
            kind = draws.random()
            if kind < 0.4:
                control.refused(now, number, now - sent, len(out) + 1, draws.choice((None, 0.0, 5.0, 3_600.0)))
            elif kind < 0.5:
                control.unsent(number)
            else:
                control.ended(now, number, now - sent if kind < 0.9 else None)
        assert 1 <= control.allowed <= most
        assert control.rate > 0
        assert control.free == (control.state is Congestion.NONE) or control.rate == math.inf


def test_an_answer_wakes_who_waits_for_a_place() -> None:
    clock = VirtualClock()
    gate = Gate(Limits(), clock, concurrency=2)

    async def main() -> float:
        turns = [await gate.take(CALL) for _ in range(2)]
        waiting = asyncio.create_task(gate.take(CALL))
        await clock.sleep(0.1)
        assert not waiting.done()
        gate.done(turns[0], 1, 1)
        return (await waiting).waited

    assert run(clock, main()) == pytest.approx(0.1)


def test_sporadic_refusals_are_no_outage_where_a_busy_event_loop_makes_them_look_slow() -> None:
    """Calls leave in batches, the refused ones of a batch end before its answers, all late by up to a batch's time."""
    chance, now, blocked, free = Random(1), 0.0, 0, 0
    control = CongestionControl(256, lambda now: 10_000)
    batches = 400
    for _ in range(batches):
        numbers = [control.sent(now) for _ in range(min(256, control.allowed))]
        refused = [number for number in numbers if chance.random() < 0.05]
        for place, number in enumerate(refused):
            control.refused(now + 0.04, number, 0.004 + 0.036 * place / len(refused), len(numbers), None)
        for number in sorted(set(numbers) - set(refused)):
            control.ended(now + 0.05, number, 0.05)
        now = max(now + 0.06, control.held_until)
        blocked += control.state is Congestion.BLOCKED
        free += control.free
    assert blocked == 0
    assert free > 0.8 * batches
