"""Calls in flight after rate-limit answers: one cut an episode, growth with time, holds, and recovery."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine
from itertools import pairwise
from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from venire.arena.campaigns import Limits
from venire.arena.clock import VirtualClock
from venire.orchestrator.lanes.concurrency import Adaptive
from venire.orchestrator.lanes.limits import Gate, Load

T = TypeVar("T")

CALL = Load(1, 1, 1)


def run(clock: VirtualClock, main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
        return runner.run(main)


def after_one_refusal(most: int, in_flight: int) -> Adaptive:
    """A route at which one call of many was refused and another one answered."""
    adaptive = Adaptive(most, jitter=lambda: 0.0)
    adaptive.ended(100.0, in_flight, 0, in_flight, True)
    adaptive.ended(100.0, in_flight - 1, 0, in_flight, False)
    return adaptive


def test_refusals_of_calls_sent_before_the_cut_belong_to_its_episode() -> None:
    adaptive = after_one_refusal(100, 100)
    assert adaptive.allowed == 70
    for in_flight in range(99, 1, -1):
        adaptive.ended(100.1, in_flight, 0, 100, True)
    assert adaptive.allowed == 70
    adaptive.ended(100.2, 70, adaptive.episode, 70, True)
    adaptive.ended(100.2, 69, adaptive.episode, 70, False)
    assert adaptive.allowed == 49


def test_the_cut_starts_from_what_was_in_flight_not_from_what_might_have_been() -> None:
    assert after_one_refusal(1_000, 20).allowed == 14


def test_the_number_grows_with_time_and_only_while_exactly_it_is_in_flight() -> None:
    adaptive = after_one_refusal(100, 100)
    for time, in_flight, allowed in ((200, 69, 70), (300, 71, 70), (309, 70, 80), (310, 79, 80), (400, 80, 100)):
        adaptive.grow(time, in_flight)
        assert adaptive.allowed == allowed
    assert adaptive.normal


def test_growth_is_told_ahead_of_time() -> None:
    adaptive = after_one_refusal(10, 10)
    adaptive.grow(100.0, 7)
    at = adaptive.grows_at(100.0, 7)
    assert at == pytest.approx(109)
    adaptive.grow(at + 1e-6, 7)
    assert adaptive.allowed == 8
    assert adaptive.grows_at(at, 7) == math.inf  # not all of them are in flight
    assert Adaptive(5).grows_at(0.0, 5) == math.inf


def test_while_only_refusals_come_one_call_at_a_time_is_sent_after_growing_holds() -> None:
    adaptive = Adaptive(64, jitter=lambda: 0.999999)
    now, holds = 0.0, []
    for _ in range(9):
        adaptive.ended(now, 1, adaptive.episode, 64, True)
        assert adaptive.allowed == 1
        assert adaptive.grows_at(now, 1) == math.inf
        holds.append(adaptive.held_until - now)
        now = adaptive.held_until
    assert holds == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60, 60], rel=1e-3)
    adaptive.ended(now, 1, adaptive.episode, 1, False)
    assert adaptive.held_until == 0
    adaptive.ended(now + 1, 1, adaptive.episode, 1, True)
    assert adaptive.held_until - now - 1 == pytest.approx(1)


def test_a_level_once_regained_does_not_slow_further_growth() -> None:
    """Capacity was 10 for a while and is 1,000 again: minutes, not hours."""
    adaptive, now = after_one_refusal(1_000, 10), 100.0
    while not adaptive.normal:
        now += 1
        adaptive.grow(now, adaptive.allowed)
    assert now < 100 + 600


@settings(deadline=None, max_examples=200)
@given(most=st.integers(1, 1_000), seed=st.integers(0, 2**32))
@example(most=753, seed=757)  # here a sum comes out just below the next number
def test_the_number_stays_between_one_and_the_most(most: int, seed: int) -> None:
    adaptive, random, now = Adaptive(most), Random(seed), 0.0
    for _ in range(300):
        now += random.expovariate(0.3)
        in_flight = random.randint(1, most)
        episode = random.randint(0, adaptive.episode) if random.random() < 0.5 else adaptive.episode
        adaptive.ended(now, in_flight, episode, random.randint(1, most), random.random() < 0.4)
        assert 1 <= adaptive.allowed <= most
        assert adaptive.held_until <= now + 60
        at = adaptive.grows_at(now, adaptive.allowed)
        assert at > now
        assert at < math.inf or adaptive.allowed in (1, most)


class Outage:
    """A provider that refuses every call for an hour, from the second minute on; workers that ask without a break."""

    def __init__(self, concurrency: int, latency: float, refusing: float) -> None:
        self.clock = VirtualClock()
        self.gate = Gate(Limits(), self.clock, concurrency=concurrency)
        self.answered: list[float] = []
        self.refused: list[float] = []
        self.start, self.end = 60.0, 3_660.0
        self._latency, self._refusing = latency, refusing
        self._random = Random(concurrency)

    async def _worker(self, until: float) -> None:
        while self.clock.monotonic() < until:
            turn = await self.gate.take(CALL)
            if refused := self.start <= self.clock.monotonic() < self.end:
                self.refused.append(self.clock.monotonic())
            await self.clock.sleep(self._random.uniform(0.9, 1.1) * (self._refusing if refused else self._latency))
            if not refused:
                self.answered.append(self.clock.monotonic())
            self.gate.done(turn, 1, 1, rate_limited=refused)

    async def play(self, until: float, workers: int) -> None:
        tasks = [asyncio.create_task(self._worker(until)) for _ in range(workers)]
        await self.clock.sleep(until)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("refusing", [0.02, 1.0])
@pytest.mark.parametrize(
    ("concurrency", "latency"),
    [
        (1, 0.02),
        (1, 20.0),
        (2, 0.3),
        (16, 1.0),
        (4, 0.02),
        (250, 20.0),
        pytest.param(1_000, 20.0, marks=pytest.mark.slow),
    ],
)
def test_an_hour_of_refusals_takes_few_calls_and_is_over_within_five_minutes(
    concurrency: int, latency: float, refusing: float
) -> None:
    outage = Outage(concurrency, latency, refusing * latency)
    run(outage.clock, outage.play(outage.end + 360, concurrency + 20))
    lately = sum(outage.end + 300 <= time for time in outage.answered)
    assert lately >= 0.9 * concurrency / latency * 60 - 1
    in_the_first_minute = sum(time < outage.start + 60 for time in outage.refused)
    assert in_the_first_minute <= (2.0 if refusing == 1.0 else 1.1) * concurrency + 12  # slow to tell: more are sent
    assert len(outage.refused) - in_the_first_minute <= 59 * 1.6
    assert outage.gate.allowed == concurrency


def test_a_refusal_among_answers_holds_nobody_for_long() -> None:
    """One in two hundred calls is refused: at most a tenth of the throughput is given up."""
    clock, random = VirtualClock(), Random(2)
    gate = Gate(Limits(), clock, concurrency=50)
    answered = 0

    async def worker() -> None:
        nonlocal answered
        while clock.monotonic() < 600:
            turn = await gate.take(CALL)
            await clock.sleep(random.uniform(0.5, 1.5))
            refused = clock.monotonic() > 60 and random.random() < 1 / 2_000
            answered += not refused
            gate.done(turn, 1, 1, rate_limited=refused)

    async def main() -> None:
        await asyncio.gather(*(worker() for _ in range(60)))

    run(clock, main())
    assert answered > 0.8 * 600 * 50
    assert gate.allowed > 25


def test_what_the_provider_asks_for_wins_over_a_shorter_hold_and_outlives_the_doubt() -> None:
    clock = VirtualClock()
    gate = Gate(Limits(), clock, concurrency=4)

    async def main() -> float:
        turns = [await gate.take(CALL) for _ in range(3)]
        gate.done(turns[0], None, None, rate_limited=True)
        assert 0 < gate.held_for <= 1
        assert gate.allowed == 1
        gate.pause(30)
        assert gate.held_for == 30
        for turn in turns[1:]:
            gate.done(turn, 1, 1)
        assert gate.allowed == 2
        await gate.take(CALL)
        return clock.monotonic()

    assert run(clock, main()) == pytest.approx(30)


def test_an_answer_ends_the_hold_and_wakes_who_waits() -> None:
    clock = VirtualClock()
    gate = Gate(Limits(), clock, concurrency=10)

    async def main() -> None:
        turns = [await gate.take(CALL) for _ in range(10)]
        for turn in turns[:8]:
            gate.done(turn, None, None, rate_limited=True)
        waiting = asyncio.create_task(gate.take(CALL))
        await clock.sleep(0.1)
        assert not waiting.done()
        gate.done(turns[8], 1, 1)
        assert (await waiting).waited == pytest.approx(0.1)

    run(clock, main())


def test_a_probe_that_was_not_sent_makes_way_for_the_next() -> None:
    clock = VirtualClock()
    gate = Gate(Limits(), clock, concurrency=10)

    async def main() -> None:
        gate.done(await gate.take(CALL), None, None, rate_limited=True)
        probe = await gate.take(CALL)
        assert 0.5 <= clock.monotonic() <= 1.1
        waiting = asyncio.create_task(gate.take(CALL))
        await clock.sleep(5)
        assert not waiting.done()
        gate.release(probe)
        await waiting
        assert gate.in_flight == 1

    run(clock, main())
    assert clock.monotonic() < 6.2


def test_time_at_the_limit_lets_the_next_call_pass_though_nothing_is_answered() -> None:
    clock = VirtualClock()
    gate = Gate(Limits(), clock, concurrency=10)

    async def main() -> float:
        turns = [await gate.take(CALL) for _ in range(10)]
        for turn in turns[:3]:
            gate.done(turn, 1, 1, rate_limited=turn is turns[0])
        assert (gate.allowed, gate.in_flight) == (7, 7)
        return (await gate.take(CALL)).waited

    assert run(clock, main()) == pytest.approx(9, abs=0.01)


def test_a_wait_that_the_provider_tells_is_believed_until_it_was_wrong_three_times() -> None:
    clock = VirtualClock()
    gate = Gate(Limits(), clock, concurrency=10)
    at: list[float] = []

    async def main() -> None:
        for _ in range(6):
            turn = await gate.take(CALL)
            at.append(clock.monotonic())
            gate.done(turn, 0, 0, rate_limited=True, retry_after=0.1)

    run(clock, main())
    waits = [later - earlier for earlier, later in pairwise(at)]
    assert waits[:3] == pytest.approx([0.1] * 3, abs=0.03)
    assert waits[3] >= 4, "then the wait that doubles with each refusal"
