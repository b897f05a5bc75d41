"""A lane's gate: its rate in any minute, its order, its pauses. On the virtual clock, but for one test."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import pytest
from asyncio_throttle import Throttler
from hypothesis import example, given, settings
from hypothesis import strategies as st

from venire.arena.clock import SystemClock, VirtualClock
from venire.orchestrator.lanes.limits import Gate

T = TypeVar("T")

SKEW = 1e-6
"""Seconds by which sums of floating-point times may be off."""


class CountingClock(VirtualClock):
    """A virtual clock that counts how often somebody goes to sleep on it."""

    def __init__(self) -> None:
        super().__init__()
        self.sleeps = 0

    def sleep(self, seconds: float) -> Awaitable[None]:
        self.sleeps += 1
        return super().sleep(seconds)


@pytest.fixture
def clock() -> CountingClock:
    return CountingClock()


def run(clock: VirtualClock, main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
        return runner.run(main)


def most_in_a_minute(times: list[float]) -> int:
    """The most passes that any half-open window of 60 s sees; `times` ascending."""
    most, start = 0, 0
    for end, time in enumerate(times):
        while time - times[start] >= 60 - SKEW:
            start += 1
        most = max(most, end - start + 1)
    return most


async def passes(gate: Gate, clock: VirtualClock, arrivals: list[tuple[float, int]]) -> list[float]:
    """When calls pass that arrive in groups: seconds after the group before, and how many."""
    times: list[float] = []

    async def one() -> None:
        await gate.take()
        times.append(clock.monotonic())

    async with asyncio.TaskGroup() as group:
        for gap, number in arrivals:
            await clock.sleep(gap)
            for _ in range(number):
                group.create_task(one())
    return times


async def saturate(gate: Gate, clock: VirtualClock, seconds: float) -> list[float]:
    """When calls pass for so many seconds with always one more at the gate."""
    times: list[float] = []
    while clock.monotonic() < seconds - SKEW:
        await gate.take()
        times.append(clock.monotonic())
    return [time for time in times if time < seconds - SKEW]


groups = st.lists(st.tuples(st.floats(0, 70), st.integers(1, 150)), min_size=1, max_size=8)


@settings(deadline=None, max_examples=100)
@given(rate=st.integers(1, 300), arrivals=groups)
def test_no_minute_sees_more_calls_than_allowed_however_they_arrive(
    rate: int, arrivals: list[tuple[float, int]]
) -> None:
    clock = VirtualClock()
    times = run(clock, passes(Gate(rate, clock), clock, arrivals))
    assert len(times) == sum(number for _, number in arrivals)
    assert times == sorted(times)
    assert most_in_a_minute(times) <= rate


RATES = st.one_of(st.integers(1, 1199), st.integers(1200, 100_000))


@settings(deadline=None, max_examples=15)
@given(rate=RATES)
@example(rate=1)
@example(rate=1201)
@example(rate=100_000)
def test_a_lane_in_need_uses_its_rate_and_no_minute_sees_more(rate: int) -> None:
    clock = VirtualClock()
    times = run(clock, saturate(Gate(rate, clock), clock, 75))
    assert most_in_a_minute(times) <= rate
    assert sum(time < 60 - SKEW for time in times) >= 0.97 * rate


def test_a_quiet_spell_earns_no_burst_beyond_a_tenth_of_a_second(clock: CountingClock) -> None:
    times = run(clock, passes(Gate(6000, clock), clock, [(0, 5), (600, 200)]))
    later = times[5:]
    assert sum(time < later[0] + 0.1 - SKEW for time in later) == 10


def test_calls_pass_in_the_order_they_came(clock: CountingClock) -> None:
    gate = Gate(600, clock)
    order: list[int] = []

    async def one(number: int) -> None:
        await gate.take()
        order.append(number)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(200):
                group.create_task(one(number))
                if number % 7 == 0:
                    await clock.sleep(0.31)
                if number == 50:
                    gate.pause(3)

    run(clock, main())
    assert order == list(range(200))


@pytest.mark.parametrize("rate", [None, 60])
@pytest.mark.parametrize(("pauses", "until"), [((5.0,), 5.0), ((10.0, 2.0), 10.0), ((2.0, 10.0), 10.0)])
def test_a_pause_holds_everybody_for_the_longest_of_those_on(
    clock: CountingClock, rate: int | None, pauses: tuple[float, ...], until: float
) -> None:
    gate = Gate(rate, clock)
    for seconds in pauses:
        gate.pause(seconds)
    times = run(clock, passes(gate, clock, [(0, 3)]))
    assert times == pytest.approx([until] * 3 if rate is None else [until, until + 1, until + 2])


def test_a_pause_made_longer_while_calls_wait_holds_them_on(clock: CountingClock) -> None:
    gate = Gate(None, clock)
    gate.pause(5)

    async def main() -> list[float]:
        waiting = asyncio.create_task(passes(gate, clock, [(0, 3)]))
        await clock.sleep(4)
        gate.pause(6)
        return await waiting

    assert run(clock, main()) == pytest.approx([10, 10, 10])


def test_a_pause_holds_the_call_whose_turn_is_next_too(clock: CountingClock) -> None:
    gate = Gate(60, clock)

    async def main() -> list[float]:
        waiting = asyncio.create_task(passes(gate, clock, [(0, 4)]))
        await clock.sleep(0.5)
        gate.pause(10)
        return await waiting

    assert run(clock, main()) == pytest.approx([0, 10.5, 11.5, 12.5])


def test_after_a_pause_no_minute_sees_more_calls_than_allowed(clock: CountingClock) -> None:
    gate = Gate(60, clock)

    async def main() -> list[float]:
        waiting = asyncio.create_task(passes(gate, clock, [(0, 300)]))
        for _ in range(20):
            await clock.sleep(4.7)
            gate.pause(2.3)
        return await waiting

    assert most_in_a_minute(run(clock, main())) <= 60


@pytest.mark.parametrize("cancelled", [1, 2])
def test_a_cancelled_call_takes_no_turn_and_does_not_hold_up_the_next(clock: CountingClock, cancelled: int) -> None:
    gate = Gate(60, clock)
    times: dict[int, float] = {}

    async def one(number: int) -> None:
        await gate.take()
        times[number] = clock.monotonic()

    async def main() -> None:
        tasks = [asyncio.create_task(one(number)) for number in range(4)]
        await clock.sleep(0.5)
        tasks[cancelled].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert tasks[cancelled].cancelled()

    run(clock, main())
    left = [number for number in range(4) if number != cancelled]
    assert times == pytest.approx(dict(zip(left, [0, 1, 2], strict=True)))
    assert gate.waits == 2
    assert gate.waited == pytest.approx(3)


def test_a_call_cancelled_during_a_pause_does_not_hold_up_the_next(clock: CountingClock) -> None:
    gate = Gate(None, clock)
    gate.pause(5)

    async def main() -> float:
        first, second = asyncio.create_task(gate.take()), asyncio.create_task(gate.take())
        await clock.sleep(1)
        first.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        assert first.cancelled()
        return second.result()

    assert run(clock, main()) == pytest.approx(5)


def test_a_gate_without_a_rate_never_waits(clock: CountingClock) -> None:
    gate = Gate(None, clock)

    async def main() -> list[float]:
        return await asyncio.gather(*(gate.take() for _ in range(5_000)))

    assert run(clock, main()) == [0.0] * 5_000
    assert (gate.waits, gate.waited, clock.sleeps) == (0, 0.0, 0)


def test_waits_are_counted_and_their_seconds_summed_and_told(clock: CountingClock) -> None:
    gate = Gate(60, clock)

    async def main() -> list[float]:
        return await asyncio.gather(*(gate.take() for _ in range(4)))

    assert run(clock, main()) == pytest.approx([0, 1, 2, 3])
    assert gate.waits == 3
    assert gate.waited == pytest.approx(6)


@pytest.mark.parametrize(("rate", "sleeps"), [(600, 2 * 5_000), (6_000, 2 * 500)])
def test_five_thousand_waiting_calls_do_not_poll(clock: CountingClock, rate: int, sleeps: int) -> None:
    times = run(clock, passes(Gate(rate, clock), clock, [(0, 5_000)]))
    assert len(times) == 5_000
    assert times[-1] == pytest.approx(5_000 * 60 / rate, abs=0.2)
    assert clock.sleeps <= sleeps


def test_on_the_system_clock_as_many_calls_pass_as_with_plain_asyncio_throttle() -> None:
    clock = SystemClock()
    gate, plain = Gate(6_000, clock), Throttler(rate_limit=10, period=0.1, retry_interval=0.001)

    async def count(take: Callable[[], Awaitable[object]], until: float) -> int:
        passed = 0
        while True:
            await take()
            if clock.monotonic() >= until:
                return passed
            passed += 1

    async def main() -> tuple[int, int]:
        until = clock.monotonic() + 3
        return await asyncio.gather(count(gate.take, until), count(plain.acquire, until))

    ours, theirs = asyncio.run(main())
    assert ours <= 300
    assert theirs <= 300
    assert abs(ours - theirs) <= 20
