"""Hours on the virtual clock pass in no time, in order, and only there."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import pytest

from venire.arena.clock import Clock, SystemClock, VirtualClock

T = TypeVar("T")

HOUR = 3_600.0
BLINK = 5.0
"""Real seconds that are far too few for an hour and far too many for a jump."""


def run(clock: VirtualClock, work: Coroutine[object, object, T]) -> T:
    with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
        return runner.run(work)


@pytest.mark.parametrize("seconds", [HOUR, 90 * 24 * HOUR], ids=["an hour", "a quarter"])
def test_sleeping_takes_no_real_time(seconds: float) -> None:
    clock = VirtualClock()
    began = time.monotonic()
    run(clock, asyncio.wait_for(clock.sleep(seconds), 2 * seconds))
    assert time.monotonic() - began < BLINK
    assert clock.monotonic() == pytest.approx(seconds, abs=1e-6)


def test_sleep_of_asyncio_itself_is_on_the_clock() -> None:
    clock = VirtualClock()
    began = time.monotonic()
    run(clock, asyncio.sleep(HOUR))
    assert time.monotonic() - began < BLINK
    assert clock.monotonic() == pytest.approx(HOUR, abs=1e-6)


def test_timers_fire_in_order_each_at_its_own_time() -> None:
    clock = VirtualClock()
    fired: list[tuple[float, float]] = []

    async def wait(seconds: float) -> None:
        await clock.sleep(seconds)
        fired.append((seconds, clock.monotonic()))

    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            for seconds in (30.0, 0.25, 2 * HOUR, 1.0, HOUR, 0.5):
                group.create_task(wait(seconds))

    run(clock, work())
    assert [seconds for seconds, _ in fired] == [0.25, 0.5, 1.0, 30.0, HOUR, 2 * HOUR]
    assert [at for _, at in fired] == pytest.approx([seconds for seconds, _ in fired], abs=1e-6)


def test_sleepers_and_timers_of_asyncio_share_one_order() -> None:
    clock = VirtualClock()
    woken: list[tuple[str, float]] = []

    async def wait(name: str, seconds: float) -> None:
        if name == "clock":
            await clock.sleep(seconds)
        else:
            rung = asyncio.Event()
            asyncio.get_running_loop().call_later(seconds, rung.set)
            await rung.wait()
        woken.append((name, clock.monotonic()))

    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            for name, seconds in (("asyncio", 3.0), ("clock", 2.0), ("clock", 4.0), ("asyncio", 1.0)):
                group.create_task(wait(name, seconds))

    run(clock, work())
    assert woken == [("asyncio", 1.0), ("clock", 2.0), ("asyncio", 3.0), ("clock", 4.0)]


def test_a_sleeper_that_gave_up_holds_nobody() -> None:
    clock = VirtualClock()

    async def work() -> None:
        async def wait() -> None:
            await clock.sleep(HOUR)

        given_up = asyncio.ensure_future(wait())
        await clock.sleep(1)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        await clock.sleep(2 * HOUR)
        assert given_up.cancelled()

    run(clock, work())
    assert clock.monotonic() == pytest.approx(2 * HOUR + 1, abs=1e-6)


def test_those_who_sleep_until_one_moment_wake_in_the_order_they_lay_down() -> None:
    clock = VirtualClock()
    woken: list[int] = []

    async def wait(number: int) -> None:
        await clock.sleep(7)
        woken.append(number)

    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(wait(number))

    run(clock, work())
    assert woken == list(range(20))
    assert clock.monotonic() == 7


def test_work_without_waiting_takes_no_virtual_time() -> None:
    clock = VirtualClock()

    async def work() -> None:
        for _ in range(100):
            await clock.sleep(0)

    run(clock, work())
    assert clock.monotonic() == 0.0


def test_a_timeout_ends_what_takes_longer() -> None:
    clock = VirtualClock()

    async def work() -> None:
        async with asyncio.timeout(60):
            await clock.sleep(HOUR)

    began = time.monotonic()
    with pytest.raises(TimeoutError):
        run(clock, work())
    assert time.monotonic() - began < BLINK
    assert clock.monotonic() == pytest.approx(60, abs=1e-6)


def test_a_timeout_leaves_alone_what_is_shorter() -> None:
    clock = VirtualClock()

    async def work() -> str:
        async with asyncio.timeout(HOUR):
            await clock.sleep(60)
        return "done"

    assert run(clock, work()) == "done"
    assert clock.monotonic() == pytest.approx(60, abs=1e-6)


def test_loop_wall_and_monotonic_agree() -> None:
    start = datetime(2030, 5, 6, 7, 8, tzinfo=UTC)
    clock = VirtualClock(start)
    assert clock.wall() == start

    async def work() -> tuple[float, float, datetime]:
        await clock.sleep(90)
        return asyncio.get_running_loop().time(), clock.monotonic(), clock.wall()

    loop, monotonic, wall = run(clock, work())
    assert loop == monotonic
    assert wall == start + timedelta(seconds=monotonic)
    assert (wall - start).total_seconds() == pytest.approx(90, abs=1e-6)


def test_virtual_time_has_a_zone_and_a_fixed_start() -> None:
    assert VirtualClock().wall() == VirtualClock().wall()
    assert VirtualClock().wall().tzinfo is UTC


def test_a_clock_moved_by_hand_moves_both_times() -> None:
    clock = VirtualClock()
    start = clock.wall()
    clock.advance(12.5)
    assert clock.monotonic() == 12.5
    assert clock.wall() == start + timedelta(seconds=12.5)


def test_time_goes_on_from_one_loop_to_the_next() -> None:
    clock = VirtualClock()
    run(clock, asyncio.sleep(10))
    run(clock, asyncio.sleep(5))
    assert clock.monotonic() == pytest.approx(15, abs=1e-6)


def test_a_thread_wakes_the_loop_when_nothing_else_is_due() -> None:
    clock = VirtualClock()
    began, waiting = time.monotonic(), threading.Event()

    async def work() -> str:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[str] = loop.create_future()

        def call_back() -> None:
            waiting.wait(BLINK)
            loop.call_soon_threadsafe(answer.set_result, "from the thread")

        thread = threading.Thread(target=call_back)
        thread.start()
        loop.call_soon(waiting.set)
        try:
            return await answer
        finally:
            thread.join()

    assert run(clock, work()) == "from the thread"
    assert time.monotonic() - began < BLINK
    assert clock.monotonic() == 0.0


def test_what_has_arrived_comes_before_a_timer_and_takes_no_time() -> None:
    clock = VirtualClock()

    async def work() -> tuple[bytes, float]:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.send(b"here")
            arrived: asyncio.Future[tuple[bytes, float]] = loop.create_future()
            loop.add_reader(ours, lambda: arrived.set_result((ours.recv(4), clock.monotonic())))
            try:
                async with asyncio.timeout(HOUR):
                    return await arrived
            finally:
                loop.remove_reader(ours)

    assert run(clock, work()) == (b"here", 0.0)


def test_the_machines_clock_is_in_utc_and_never_goes_back() -> None:
    clock: Clock = SystemClock()
    first, second = clock.monotonic(), clock.monotonic()
    assert first <= second
    assert clock.wall().utcoffset() == timedelta(0)
    assert abs(clock.wall() - datetime.now(UTC)) < timedelta(seconds=BLINK)


def test_the_machines_clock_is_that_of_the_running_loop() -> None:
    clock = SystemClock()

    async def work() -> tuple[float, float, float]:
        before = clock.monotonic()
        await clock.sleep(0)
        return before, asyncio.get_running_loop().time(), clock.monotonic()

    before, loop, after = asyncio.run(work())
    assert before <= loop <= after


def test_the_clock_stands_still_while_a_thread_works() -> None:
    clock = VirtualClock()
    gate = threading.Event()

    async def go() -> float:
        async with asyncio.timeout(3600):
            work = asyncio.get_running_loop().run_in_executor(None, gate.wait, 10)
            await asyncio.sleep(0)
            threading.Timer(0.05, gate.set).start()
            assert await work
        return clock.monotonic()

    with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
        assert runner.run(go()) == 0.0


def test_the_clock_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="does not go back"):
        VirtualClock().advance(-1)
