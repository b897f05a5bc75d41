"""The gate of a route: what the provider counts in any minute, the order, the pauses. Mostly on the virtual clock."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Awaitable, Coroutine, Sequence
from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.servers import listening
from venire.arena.campaigns import Limits
from venire.arena.clock import Clock, SystemClock, VirtualClock
from venire.orchestrator.lanes.gate import Gate, Permit
from venire.orchestrator.lanes.windows import Load

T = TypeVar("T")

SUM = 1e-6
"""Seconds by which sums of floating-point times may be off."""


class CountingClock(VirtualClock):
    """A virtual clock that counts how often somebody goes to sleep on it, and may wake them late."""

    def __init__(self, late: float = 0.0, seed: int = 0) -> None:
        super().__init__()
        self.sleeps = 0
        self._late, self._random = late, Random(seed)

    def sleep(self, seconds: float) -> Awaitable[None]:
        self.sleeps += 1
        return super().sleep(seconds + self._random.uniform(0, self._late))


@pytest.fixture
def clock() -> CountingClock:
    return CountingClock()


def run(clock: VirtualClock, main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
        return runner.run(main)


def gate_of(clock: Clock, limits: Limits | None = None, *, concurrency: int = 10_000, **more: Any) -> Gate:
    return Gate(limits or Limits(), clock, concurrency=concurrency, **more)


def a_minute(rate: int | None) -> Limits:
    return Limits(requests_per_minute=rate)


def most_within(seconds: float, sent: Sequence[tuple[float, int]]) -> int:
    """The most that any half-open window of so many seconds sees of what was sent: times and amounts."""
    ordered = sorted(sent)
    most = inside = start = 0
    for time, amount in ordered:
        inside += amount
        while time - ordered[start][0] >= seconds - SUM:
            inside -= ordered[start][1]
            start += 1
        most = max(most, inside)
    return most


NOTHING = Load(1, 1, 1)


async def passes(
    gate: Gate, clock: VirtualClock, arrivals: list[tuple[float, int]], load: Load = NOTHING
) -> list[float]:
    """When calls pass that arrive in groups: seconds after the group before, and how many."""
    times: list[float] = []

    async def one() -> None:
        await gate.take(load)
        times.append(clock.monotonic())

    async with asyncio.TaskGroup() as group:
        for gap, number in arrivals:
            await clock.sleep(gap)
            for _ in range(number):
                group.create_task(one())
    return times


async def saturate(gate: Gate, clock: VirtualClock, seconds: float) -> list[tuple[float, int]]:
    """When calls pass for so many seconds with always one more at the gate."""
    times: list[tuple[float, int]] = []
    while True:
        turn = await gate.take(NOTHING)
        if clock.monotonic() >= seconds - SUM:
            return times
        times.append((clock.monotonic(), 1))
        gate.done(turn, None, None)


async def drive(
    gate: Gate, clock: VirtualClock, random: Random, calls: list[tuple[Load, int, int]], *, latency: float, skew: float
) -> list[tuple[float, int, int]]:
    """Send calls with their real usage, as fast as the gate lets them; returns what arrived: times, input, output."""
    arrived: list[tuple[float, int, int]] = []

    async def one(load: Load, used: tuple[int, int]) -> None:
        turn = await gate.take(load)
        arrived.append((clock.monotonic() + random.uniform(0, 0.999 * skew), *used))
        await clock.sleep(random.uniform(0.1, 1.0) * latency)
        gate.done(turn, *used)

    async with asyncio.TaskGroup() as group:
        for load, *used in calls:
            group.create_task(one(load, (used[0], used[1])))
    return arrived


groups = st.lists(st.tuples(st.floats(0, 70), st.integers(1, 150)), min_size=1, max_size=8)
seeds = st.integers(0, 2**32)


@given(rate=st.integers(1, 300), arrivals=groups, skew=st.sampled_from([0.0, 0.3, 1.0, 5.0]), seed=seeds)
def test_no_minute_of_the_provider_sees_more_calls_than_allowed_however_they_arrive(
    rate: int, arrivals: list[tuple[float, int]], skew: float, seed: int
) -> None:
    clock, random = VirtualClock(), Random(seed)
    times = run(clock, passes(gate_of(clock, a_minute(rate), skew=skew), clock, arrivals))
    assert len(times) == sum(number for _, number in arrivals)
    assert times == sorted(times)
    assert most_within(60 + skew, [(time, 1) for time in times]) <= rate
    assert most_within(60, [(time + random.uniform(0, 0.999 * skew), 1) for time in times]) <= rate


@given(
    tokens=st.none() | st.integers(2_000, 200_000),
    input_tokens=st.none() | st.integers(2_000, 100_000),
    output_tokens=st.none() | st.integers(2_000, 50_000),
    latency=st.sampled_from([0.0, 0.3, 8.0, 90.0]),
    concurrency=st.integers(1, 200),
    skew=st.sampled_from([0.0, 1.0]),
    seed=seeds,
)
def test_no_minute_of_the_provider_sees_more_tokens_than_allowed(
    tokens: int | None,
    input_tokens: int | None,
    output_tokens: int | None,
    latency: float,
    concurrency: int,
    skew: float,
    seed: int,
) -> None:
    clock, random = VirtualClock(), Random(seed)
    limits = Limits(None, tokens, input_tokens, output_tokens)
    gate = gate_of(clock, limits, concurrency=concurrency, skew=skew)
    calls = []
    for _ in range(300):
        load = Load(1, random.randint(1, 1_500), random.randint(1, 500))
        calls.append((load, random.randint(0, load.input_tokens), random.randint(0, load.output_tokens)))
    arrived = run(clock, drive(gate, clock, random, calls, latency=latency, skew=skew))
    assert len(arrived) == 300
    assert gate.in_flight == 0
    for limit, counted in ((tokens, (1, 1)), (input_tokens, (1, 0)), (output_tokens, (0, 1))):
        if limit is not None:
            sent = [(time, counted[0] * inwards + counted[1] * out) for time, inwards, out in arrived]
            assert most_within(60, sent) <= limit


@pytest.mark.slow
@settings(max_examples=12)
@given(rate=st.one_of(st.integers(1, 1199), st.integers(1200, 20_000)), late=st.sampled_from([0.0, 0.05]), seed=seeds)
@example(rate=1, late=0.05, seed=0)
@example(rate=2, late=0.0, seed=0)
@example(rate=1201, late=0.05, seed=0)
@example(rate=100_000, late=0.01, seed=0)
def test_a_route_in_need_uses_its_calls_even_when_it_is_woken_late(rate: int, late: float, seed: int) -> None:
    clock = CountingClock(late, seed)
    minutes = 10 if rate < 1_000 else 3
    sent = run(clock, saturate(gate_of(clock, a_minute(rate)), clock, 60 * minutes))
    assert most_within(61, sent) <= rate
    assert len(sent) >= int(0.97 * rate * minutes)


@pytest.mark.slow
@settings(max_examples=8)
@given(
    limit=st.integers(100_000, 10_000_000),
    kind=st.sampled_from(["tokens", "input_tokens", "output_tokens"]),
    latency=st.sampled_from([0.0, 0.5, 5.0]),
    late=st.sampled_from([0.0, 0.03]),
    seed=seeds,
)
def test_a_route_in_need_uses_its_tokens(limit: int, kind: str, latency: float, late: float, seed: int) -> None:
    """Calls use about a fifth of what is set aside for them; what is in flight is therefore part of what was used."""
    clock, random = CountingClock(late, seed), Random(seed)
    gate = gate_of(clock, Limits(**{f"{kind}_per_minute": limit}))
    size = limit // 200
    part = {"tokens": (1, 1), "input_tokens": (1, 0), "output_tokens": (0, 1)}[kind]
    calls, total = [], 0
    while total < 3.3 * limit:
        load = Load(1, random.randint(1, size), random.randint(1, size))
        used = (int(load.input_tokens * random.uniform(0.1, 0.3)), int(load.output_tokens * random.uniform(0.1, 0.3)))
        total += part[0] * used[0] + part[1] * used[1]
        calls.append((load, *used))
    arrived = run(clock, drive(gate, clock, random, calls, latency=latency, skew=0.0))
    sent = [(time, part[0] * inwards + part[1] * out) for time, inwards, out in arrived]
    assert most_within(61, sent) <= limit
    # from the second minute on: before, the gate learns what part of an estimate calls use
    steady = sum(amount for time, amount in sent if 60 <= time < 180)
    in_flight = 4 * limit * latency / 60
    assert steady >= 2 * (0.97 * limit - in_flight)


def test_a_start_or_a_quiet_spell_earns_no_burst_beyond_a_tenth_of_a_second(clock: CountingClock) -> None:
    times = run(clock, passes(gate_of(clock, a_minute(6000)), clock, [(0, 500), (600, 500)]))
    first, later = times[:500], times[500:]
    assert sum(time < first[0] + 1 for time in first) <= 101
    assert sum(time < later[0] + 1 for time in later) <= 111
    assert sum(time < later[0] + 0.01 - SUM for time in later) <= 11


@pytest.mark.parametrize("kind", ["tokens", "input_tokens", "output_tokens"])
def test_a_start_sends_no_minute_of_tokens_at_once(clock: CountingClock, kind: str) -> None:
    gate = gate_of(clock, Limits(**{f"{kind}_per_minute": 60_000}))
    times = run(clock, passes(gate, clock, [(0, 100)], Load(1, 500, 500)))
    within = sum(time < 6 for time in times) * (1_000 if kind == "tokens" else 500)
    assert 6_000 <= within <= 7_500


def test_calls_pass_in_the_order_they_came_whatever_their_size(clock: CountingClock) -> None:
    gate, random = gate_of(clock, Limits(600, 400_000)), Random(3)
    order: list[int] = []

    async def one(number: int) -> None:
        turn = await gate.take(Load(1, random.choice((500, 2_000, 8_000)), 100))
        order.append(number)
        gate.done(turn, None, None)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(300):
                group.create_task(one(number))
                if number % 7 == 0:
                    await clock.sleep(0.31)
                if number == 50:
                    gate.pause(3)

    run(clock, main())
    assert order == list(range(300))


def test_large_calls_wait_no_longer_than_small_ones(clock: CountingClock) -> None:
    gate, random = gate_of(clock, Limits(tokens_per_minute=2_000_000)), Random(1)
    waits: dict[int, list[float]] = {500: [], 2_000: [], 8_000: []}

    async def worker() -> None:
        while clock.monotonic() < 60:
            size = random.choice((500, 2_000, 8_000))
            turn = await gate.take(Load(1, size, 0))
            waits[size].append(turn.waited)
            await clock.sleep(0.2)
            gate.done(turn, size, 0)

    async def main() -> None:
        await asyncio.gather(*(worker() for _ in range(200)))

    run(clock, main())
    means = [sum(times) / len(times) for times in waits.values()]
    assert max(means) < 1.1 * min(means)
    assert min(means) > 5


def test_a_call_larger_than_the_limit_passes_an_empty_window_and_the_next_after_it(clock: CountingClock) -> None:
    gate = gate_of(clock, Limits(tokens_per_minute=1_000))

    async def main() -> list[float]:
        times = []
        for size in (10, 5_000, 10):
            turn = await gate.take(Load(1, size, 0))
            times.append(clock.monotonic())
            gate.done(turn, None, None)
        return times

    assert run(clock, main()) == pytest.approx([0, 61, 122], abs=0.1)


def test_every_limit_holds_at_once_and_a_call_takes_nothing_until_it_has_all(clock: CountingClock) -> None:
    gate = gate_of(clock, Limits(60, 3_000, 2_000, 1_500), concurrency=2)

    async def main() -> None:
        one, two = gate.take_now(Load(1, 1_000, 100)), await gate.take(Load(1, 100, 100))
        assert one is not None
        for _ in range(5):
            assert gate.take_now(NOTHING) is None  # two in flight
        gate.done(one, 1_000, 100)
        gate.done(two, 100, 100)
        await clock.sleep(30)
        for load in (Load(1, 1_500, 1), Load(1, 100, 1_400), Load(1, 900, 900)):
            assert gate.take_now(load) is None  # input, output, both together
        assert gate.take_now(Load(1, 900, 300)) is not None

    run(clock, main())


@pytest.mark.parametrize("rate", [None, 60])
@pytest.mark.parametrize(("pauses", "until"), [((5.0,), 5.0), ((10.0, 2.0), 10.0), ((2.0, 10.0), 10.0)])
def test_a_pause_holds_everybody_for_the_longest_of_those_on(
    clock: CountingClock, rate: int | None, pauses: tuple[float, ...], until: float
) -> None:
    gate = gate_of(clock, a_minute(rate))
    for seconds in pauses:
        gate.pause(seconds)
    assert gate.held_for == until
    times = run(clock, passes(gate, clock, [(0, 3)]))
    assert times == pytest.approx([until] * 3 if rate is None else [until, until + 0.9, until + 1.9])
    assert gate.held_for == 0


@pytest.mark.parametrize("rate", [None, 60])
def test_a_pause_made_while_calls_wait_holds_them_on(clock: CountingClock, rate: int | None) -> None:
    gate = gate_of(clock, a_minute(rate))
    gate.pause(5)

    async def main() -> list[float]:
        waiting = asyncio.create_task(passes(gate, clock, [(0, 1)]))
        await clock.sleep(4)
        gate.pause(6)
        return await waiting

    assert run(clock, main()) == pytest.approx([10])


def test_after_pauses_no_minute_sees_more_calls_than_allowed(clock: CountingClock) -> None:
    gate = gate_of(clock, a_minute(60))

    async def main() -> list[float]:
        waiting = asyncio.create_task(passes(gate, clock, [(0, 300)]))
        for _ in range(20):
            await clock.sleep(4.7)
            gate.pause(2.3)
        return await waiting

    assert most_within(61, [(time, 1) for time in run(clock, main())]) <= 60


@pytest.mark.parametrize("cancelled", [1, 2])
def test_a_cancelled_call_takes_no_turn_and_does_not_hold_up_the_next(clock: CountingClock, cancelled: int) -> None:
    gate = gate_of(clock, a_minute(60))
    times: dict[int, float] = {}

    async def one(number: int) -> None:
        await gate.take(NOTHING)
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
    assert (gate.waits, gate.in_flight) == (2, 3)
    assert gate.waited == pytest.approx(3)


def test_when_a_large_call_at_the_head_is_cancelled_the_small_one_behind_it_passes_at_once(
    clock: CountingClock,
) -> None:
    gate = gate_of(clock, Limits(tokens_per_minute=10_000))

    async def main() -> float:
        await gate.take(Load(1, 1_000, 0))
        await clock.sleep(20)
        large = asyncio.create_task(gate.take(Load(1, 9_500, 0)))
        small = asyncio.create_task(gate.take(Load(1, 100, 0)))
        await clock.sleep(5)
        large.cancel()
        await small
        return clock.monotonic()

    assert run(clock, main()) == pytest.approx(25)


def test_a_call_cancelled_in_the_moment_its_turn_comes_gives_it_back(clock: CountingClock) -> None:
    gate = gate_of(clock, Limits(2, 1_000), concurrency=1)

    async def main() -> None:
        first = await gate.take(Load(1, 100, 100))
        second = asyncio.create_task(gate.take(Load(1, 400, 400)))
        third = asyncio.create_task(gate.take(Load(1, 400, 400)))
        await clock.sleep(40)
        gate.done(first, 0, 0)  # the second has its turn, and does not know it yet
        assert gate.in_flight == 1
        second.cancel()
        await clock.sleep(0)
        await clock.sleep(0)
        assert second.cancelled()
        assert third.done()  # at once: neither the place in flight nor calls nor tokens were lost
        assert gate.in_flight == 1

    run(clock, main())


def test_a_call_cancelled_a_moment_before_its_turn_is_passed_over(clock: CountingClock) -> None:
    gate = gate_of(clock, concurrency=1)

    async def main() -> None:
        first = await gate.take(NOTHING)
        second, third = asyncio.create_task(gate.take(NOTHING)), asyncio.create_task(gate.take(NOTHING))
        await clock.sleep(1)
        second.cancel()
        gate.done(first, None, None)
        await third
        assert second.cancelled()
        assert gate.in_flight == 1

    run(clock, main())


def test_a_gate_without_limits_never_waits(clock: CountingClock) -> None:
    gate = gate_of(clock)

    async def main() -> list[Permit]:
        return await asyncio.gather(*(gate.take(NOTHING) for _ in range(5_000)))

    assert [turn.waited for turn in run(clock, main())] == [0.0] * 5_000
    assert (gate.waits, gate.waited, gate.in_flight, clock.sleeps) == (0, 0.0, 5_000, 0)


def test_waits_are_counted_and_their_seconds_summed_and_told(clock: CountingClock) -> None:
    gate = gate_of(clock, a_minute(60))

    async def main() -> list[Permit]:
        return await asyncio.gather(*(gate.take(NOTHING) for _ in range(4)))

    assert [turn.waited for turn in run(clock, main())] == pytest.approx([0, 1, 2, 3])
    assert gate.waits == 3
    assert gate.waited == pytest.approx(6)


@pytest.mark.parametrize(("rate", "sleeps"), [(600, 5_000), (6_000, 2_600), (60_000, 300)])
def test_five_thousand_waiting_calls_do_not_poll(clock: CountingClock, rate: int, sleeps: int) -> None:
    times = run(clock, passes(gate_of(clock, a_minute(rate)), clock, [(0, 5_000)]))
    assert len(times) == 5_000
    assert times[-1] == pytest.approx(5_000 * 60 / rate, rel=0.02, abs=0.2)
    assert clock.sleeps <= sleeps


def test_no_call_overtakes_those_that_wait(clock: CountingClock) -> None:
    gate = gate_of(clock, Limits(tokens_per_minute=1_000))

    async def main() -> None:
        gate.done(await gate.take(Load(1, 500, 0)), None, None)
        await clock.sleep(40)
        assert gate.take_now(Load(1, 10, 0)) is not None
        large = asyncio.create_task(gate.take(Load(1, 900, 0)))
        await clock.sleep(1)
        assert gate.take_now(Load(1, 10, 0)) is None
        large.cancel()
        await clock.sleep(1)
        assert gate.take_now(Load(1, 10, 0)) is not None

    run(clock, main())


def test_places_in_flight_are_free_again_at_once(clock: CountingClock) -> None:
    gate = gate_of(clock, concurrency=3)

    async def worker() -> None:
        for _ in range(10):
            turn = await gate.take(NOTHING)
            assert gate.in_flight <= 3
            await clock.sleep(1)
            gate.done(turn, None, None)

    async def main() -> None:
        await asyncio.gather(*(worker() for _ in range(9)))

    run(clock, main())
    assert clock.monotonic() == pytest.approx(30)
    assert gate.in_flight == 0


def test_what_a_call_did_not_use_lets_the_next_one_pass_at_once(clock: CountingClock) -> None:
    gate = gate_of(clock, Limits(tokens_per_minute=1_000))

    async def main() -> None:
        first = await gate.take(Load(1, 500, 400))
        waiting = asyncio.create_task(gate.take(Load(1, 500, 0)))
        await clock.sleep(55)
        assert not waiting.done()
        gate.done(first, 100, 20)
        assert (await waiting).waited == pytest.approx(55)

    run(clock, main())
    assert clock.monotonic() == pytest.approx(55)


def test_tokens_stay_in_the_window_as_long_as_the_last_call_counted_with_them(clock: CountingClock) -> None:
    gate = gate_of(clock, Limits(tokens_per_minute=1_000_000))
    steps = ((0, 1, True), (0.05, 999_000, True), (60.98, 500_000, False), (0.05, 500_000, True))
    for wait, tokens, passes_now in steps:
        clock.advance(wait)
        assert (gate.take_now(Load(1, tokens, 0)) is not None) == passes_now


def test_what_a_call_used_beyond_its_estimate_is_counted(clock: CountingClock) -> None:
    gate = gate_of(clock, Limits(tokens_per_minute=1_000))

    async def main() -> None:
        gate.done(await gate.take(Load(1, 100, 0)), 900, 50)
        await clock.sleep(30)
        assert gate.take_now(Load(1, 100, 0)) is None
        await gate.take(Load(1, 100, 0))

    run(clock, main())
    assert clock.monotonic() == pytest.approx(61, abs=0.01)


def test_usage_told_after_its_minute_changes_nothing(clock: CountingClock) -> None:
    gate = gate_of(clock, Limits(tokens_per_minute=1_000))

    async def main() -> None:
        slow = await gate.take(Load(1, 900, 0))
        await clock.sleep(70)
        gate.done(await gate.take(Load(1, 500, 0)), None, None)
        gate.done(slow, 100, 0)
        await clock.sleep(45)
        assert gate.take_now(Load(1, 600, 0)) is None
        assert gate.take_now(Load(1, 400, 0)) is not None

    run(clock, main())


def test_a_call_that_was_not_sent_gives_everything_back(clock: CountingClock) -> None:
    gate = gate_of(clock, Limits(2, 1_000, requests_per_day=2), concurrency=1)

    async def main() -> None:
        for _ in range(10):
            turn = gate.take_now(Load(1, 900, 50))
            assert turn is not None
            gate.release(turn)
        kept = await gate.take(Load(1, 10, 0))
        waiting = [asyncio.create_task(gate.take(Load(1, 10, 0))) for _ in range(2)]
        await clock.sleep(40)
        gate.done(kept, None, None)
        await clock.sleep(1)
        gate.release(waiting[0].result())
        assert (await waiting[1]).waited == pytest.approx(41)

    run(clock, main())
    assert gate.in_flight == 1


def test_a_turn_ends_once(clock: CountingClock) -> None:
    gate = gate_of(clock)
    turn = gate.take_now(NOTHING)
    assert turn is not None
    gate.done(turn, 1, 1)
    for end in (lambda: gate.done(turn, 1, 1), lambda: gate.release(turn)):
        with pytest.raises(RuntimeError):
            end()
    assert gate.in_flight == 0


def test_what_is_set_aside_follows_the_densest_body_seen(clock: CountingClock) -> None:
    gate = gate_of(clock)
    assert gate.load(4_000, 300) == Load(4_000, 4_000, 300)
    for used in (1_000, 500, None):
        turn = gate.take_now(gate.load(4_000, 300))
        assert turn is not None
        gate.done(turn, used, 100)
    assert gate.load(8_000, 300) == Load(8_000, 2_200, 300)


def test_one_wrong_count_of_a_provider_does_not_slow_every_later_call(clock: CountingClock) -> None:
    """A reply that claims 50 million tokens leaves the window after a minute; what comes next is not sized by it."""
    gate = gate_of(clock, Limits(tokens_per_minute=1_000_000))

    async def main() -> float:
        for used in (50_000_000, *[1_000] * 100):
            gate.done(await gate.take(gate.load(4_000, 300)), used, 100)
        return clock.monotonic()

    assert run(clock, main()) < 61 + 120


def test_a_limit_that_is_learnt_counts_at_once_and_calls_before_it_too(clock: CountingClock) -> None:
    gate = gate_of(clock)

    async def main() -> list[float]:
        for _ in range(8):
            gate.done(await gate.take(NOTHING), None, None)
        gate.learn(a_minute(10))
        return await passes(gate, clock, [(0, 12)])

    times = run(clock, main())
    assert most_within(61, [(0.0, 8), *((time, 1) for time in times)]) <= 10
    assert times[-1] == pytest.approx(61 + 9 * 6, abs=0.2)


def test_a_limit_learnt_lower_or_higher_replaces_the_one_before_and_wakes_who_waits(clock: CountingClock) -> None:
    gate = gate_of(clock)
    gate.learn(a_minute(60))

    async def main() -> list[float]:
        waiting = asyncio.create_task(passes(gate, clock, [(0, 1_000)]))
        await clock.sleep(10.5)
        gate.learn(Limits(requests_per_minute=6, tokens_per_minute=10**6))
        await clock.sleep(89.5)
        gate.learn(Limits(tokens_per_minute=10**7))  # says nothing of calls
        await clock.sleep(20)
        gate.learn(a_minute(6_000))
        return await waiting

    times = run(clock, main())
    assert sum(time < 10.5 for time in times) == 11
    assert most_within(61, [(time, 1) for time in times if 10.5 < time < 120]) <= 6
    assert 4 <= sum(10.5 < time < 120 for time in times) <= 6
    assert [time for time in times if time > 120][:3] == pytest.approx([120, 120.01, 120.02], abs=0.03)
    assert times[-1] < 130.5


def test_a_limit_of_the_campaign_is_not_replaced_and_figures_below_one_say_nothing(clock: CountingClock) -> None:
    gate = gate_of(clock, a_minute(60))
    gate.learn(Limits(requests_per_minute=1, tokens_per_minute=0))
    times = run(clock, passes(gate, clock, [(0, 3)]))
    assert times == pytest.approx([0, 1, 2])


@pytest.mark.parametrize("learnt", [True, False])
def test_only_its_share_of_a_limit_is_used(clock: CountingClock, learnt: bool) -> None:
    limits = Limits(100, 10_000)
    gate = gate_of(clock, None if learnt else limits, share=0.29)
    gate.learn(limits)
    times = run(clock, passes(gate, clock, [(0, 60)]))
    assert most_within(61, [(time, 1) for time in times]) == 29


def test_a_share_of_a_small_limit_leaves_one_call(clock: CountingClock) -> None:
    times = run(clock, passes(gate_of(clock, a_minute(1), share=0.2), clock, [(0, 2)]))
    assert times == pytest.approx([0, 61], abs=0.01)


def test_calls_of_earlier_runs_count_for_their_day_and_for_their_minute(clock: CountingClock) -> None:
    earlier = [(30.0, 15), (86_000.0, 50), (90_000.0, 1_000)]
    gate = gate_of(clock, Limits(requests_per_minute=20, requests_per_day=100), sent_today=earlier)
    times = run(clock, passes(gate, clock, [(0, 200)]))
    assert most_within(61, [(-30.0, 15), *((time, 1) for time in times)]) <= 20
    day = [(-86_000.0, 50), (-30.0, 15), *((time, 1) for time in times)]
    assert most_within(86_401, day) == 100
    assert sum(time < 400 for time in times) == 35
    assert times[35] == pytest.approx(401, abs=11)
    assert sum(time < 86_000 for time in times) == 85


def test_a_limit_a_day_that_is_learnt_knows_of_the_calls_before_it(clock: CountingClock) -> None:
    gate = gate_of(clock, sent_today=[(3_600.0, 90)])

    async def main() -> list[float]:
        first = await passes(gate, clock, [(0, 4)])
        gate.learn(Limits(requests_per_day=100))
        return first + await passes(gate, clock, [(0, 7)])

    times = run(clock, main())
    assert times[:-1] == pytest.approx([0] * 10)
    assert times[-1] == pytest.approx(86_401 - 3_600, abs=11)


@pytest.mark.parametrize("limited", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_ten_thousand_calls_a_minute_cost_little_memory(clock: CountingClock, limited: bool) -> None:
    gate = gate_of(clock, Limits(200_000, 10**9, requests_per_day=10**9) if limited else None)
    load = gate.load(6_000, 500)
    tracemalloc.start()
    try:
        for _ in range(14_000):  # beyond a minute: what is older is forgotten
            clock.advance(61 / 10_000)
            turn = gate.take_now(load)
            assert turn is not None
            gate.done(turn, 1_500, 300)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size < (750_000 if limited else 600_000)


@pytest.mark.parametrize(
    ("limits", "more"),
    [
        (Limits(requests_per_minute=0), {}),
        (Limits(output_tokens_per_minute=-1), {}),
        (Limits(), {"concurrency": 0}),
        (Limits(), {"share": 0.0}),
        (Limits(), {"share": 1.1}),
        (Limits(), {"skew": -1.0}),
    ],
)
def test_numbers_out_of_range_are_refused(clock: CountingClock, limits: Limits, more: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        gate_of(clock, limits, **more)


class Provider:
    """A small server on the loopback that counts calls and tokens by its own clock, after a delay of up to `jitter`.

    The delays are real: what is tried with it is that real clocks and sockets bring the counts of the virtual one.
    """

    def __init__(self, jitter: float) -> None:
        self.arrived: list[tuple[float, int]] = []
        self._jitter, self._random = jitter, Random(5)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        clock = asyncio.get_running_loop().time
        while line := await reader.readline():
            await asyncio.sleep(self._random.uniform(0, self._jitter))  # on its way
            self.arrived.append((clock(), int(line)))
            await asyncio.sleep(self._random.uniform(0, self._jitter))
            writer.write(line)


async def ask_for(seconds: float, gate: Gate, provider: Provider, workers: int) -> None:
    """Let workers send calls of 100 to 2,000 tokens through a gate; a call uses from a third to all of its estimate."""
    random = Random(9)
    until = asyncio.get_running_loop().time() + seconds

    async def worker(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while asyncio.get_running_loop().time() < until:
            most = random.randint(100, 2_000)
            turn = await gate.take(Load(1, 0, most))
            used = random.randint(most // 3, most)
            writer.write(b"%d\n" % used)
            await reader.readline()
            gate.done(turn, 0, used)
        writer.close()
        await writer.wait_closed()

    async with listening(provider.serve) as address, asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(worker(int(address.rpartition(":")[2])))


@pytest.mark.slow
def test_on_the_system_clock_the_server_counts_what_the_gate_allows() -> None:
    """Windows of a minute do not fit into three seconds: the rate and its evenness are counted instead."""
    provider = Provider(jitter=0.02)
    gate = gate_of(SystemClock(), Limits(6_000, 10**7), concurrency=50)
    asyncio.run(ask_for(3, gate, provider, 50))
    first = provider.arrived[0][0]
    in_time = [sent for sent in provider.arrived if sent[0] < first + 3]
    assert 0.8 * 300 <= len(in_time) <= 300 + 12
    assert most_within(1, [(time, 1) for time, _ in in_time]) <= 100 + 12 + 4


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("limits", [Limits(requests_per_minute=3_000), Limits(tokens_per_minute=2_000_000)])
def test_for_two_minutes_the_server_counts_no_more_than_the_limit_and_nearly_all_of_it(limits: Limits) -> None:
    provider = Provider(jitter=0.9)
    gate = gate_of(SystemClock(), limits, concurrency=150)
    asyncio.run(ask_for(125, gate, provider, 150))
    first = provider.arrived[0][0]
    by_calls = limits.requests_per_minute is not None
    limit = limits.requests_per_minute or limits.tokens_per_minute or 0
    sent = [(time, 1 if by_calls else tokens) for time, tokens in provider.arrived if time < first + 121]
    assert most_within(60, sent) <= limit
    in_flight = 0 if by_calls else 150 * 600
    assert sum(amount for _, amount in sent) >= 0.97 * 2 * limit - in_flight


def test_tokens_of_a_run_before_count_in_the_minute_that_they_were_sent_in(clock: CountingClock) -> None:
    """The danger: a restart forgot them, and 114 % of the limit left within a minute."""
    limits = Limits(tokens_per_minute=1_000)
    gate = gate_of(clock, limits, skew=0.0, tokens_lately=[(50.0, 400, 100), (20.0, 300, 100)])
    assert gate.take_now(Load(0, 90, 10)) is not None
    assert gate.take_now(Load(0, 90, 10)) is None, "only 100 of the 1,000 were left"

    async def one() -> float:
        await gate.take(Load(0, 90, 10))
        return clock.monotonic()

    assert run(clock, one()) == pytest.approx(10.0, abs=0.2), "the oldest leave the minute ten seconds later"
