"""The one retry layer: what is tried again, how often, after how long. On the virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from venire.arena.clock import VirtualClock
from venire.arena.errors import CallError, Fault, TransientError
from venire.orchestrator.lanes.retry import retry_call


def busy(number: int = 0, *, after: float | None = None) -> TransientError:
    return TransientError(f"busy {number}", Fault.TRANSIENT, status=503, retry_after=after)


class Script:
    """Answers or raises what it was given, one a call, and notes when it was called."""

    def __init__(self, clock: VirtualClock, *said: BaseException | str) -> None:
        self.clock, self.said, self.at = clock, list(said), list[float]()

    async def __call__(self) -> str:
        self.at.append(self.clock.monotonic())
        said = self.said[len(self.at) - 1]
        if isinstance(said, BaseException):
            raise said
        return said

    @property
    def waits(self) -> list[float]:
        return [later - earlier for earlier, later in zip(self.at, self.at[1:], strict=False)]


async def trying(send: Callable[[], Awaitable[str]], attempts: int, clock: VirtualClock, elapsed: float = 1e9) -> str:
    """As a lane does: the retry layer is entered after a first failure."""
    try:
        return await send()
    except TransientError as failed:
        return await retry_call(failed, send, attempts=attempts, elapsed=elapsed, clock=clock)


def go(clock: VirtualClock, send: Callable[[], Awaitable[str]], attempts: int) -> str:
    async def main() -> str:
        return await trying(send, attempts, clock)

    with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
        return runner.run(main())


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.mark.parametrize(
    "error",
    [
        CallError("no", Fault.BAD_REQUEST, status=400),
        CallError("no", Fault.QUOTA, retry_after=1.0),
        ValueError("a bug"),
    ],
)
def test_an_error_that_is_not_transient_passes_at_once(clock: VirtualClock, error: Exception) -> None:
    send = Script(clock, error, "too late")
    with pytest.raises(type(error)) as raised:
        go(clock, send, 5)
    assert raised.value is error
    assert send.at == [0.0]


def test_an_error_that_is_not_transient_passes_at_once_after_transient_ones(clock: VirtualClock) -> None:
    error = CallError("no", Fault.BAD_REQUEST)
    send = Script(clock, busy(), busy(), error, "too late")
    with pytest.raises(CallError) as raised:
        go(clock, send, 5)
    assert raised.value is error
    assert len(send.at) == 3


@pytest.mark.parametrize("attempts", range(1, 8))
def test_a_call_is_sent_exactly_as_often_as_allowed_and_the_last_error_is_raised(
    clock: VirtualClock, attempts: int
) -> None:
    errors = [busy(n) for n in range(20)]
    send = Script(clock, *errors)
    with pytest.raises(TransientError) as raised:
        go(clock, send, attempts)
    assert len(send.at) == attempts
    assert raised.value is errors[attempts - 1]


@pytest.mark.parametrize("failures", range(1, 5))
def test_a_call_that_answers_at_last_is_sent_no_more(clock: VirtualClock, failures: int) -> None:
    send = Script(clock, *(busy(n) for n in range(failures)), "well", "again")
    assert go(clock, send, 5) == "well"
    assert len(send.at) == failures + 1


def test_the_wait_is_drawn_below_a_bound_that_doubles_up_to_a_minute() -> None:
    bounds = [0.5, 1, 2, 4, 8, 16, 32, 60, 60]
    longest = [0.0] * len(bounds)
    for _ in range(100):
        clock = VirtualClock()
        send = Script(clock, *(busy() for _ in bounds), "well")
        go(clock, send, len(bounds) + 1)
        assert all(0 <= wait <= bound + 1e-6 for wait, bound in zip(send.waits, bounds, strict=True))
        longest = [max(pair) for pair in zip(longest, send.waits, strict=True)]
    assert all(seen > bound / 2 for seen, bound in zip(longest, bounds, strict=True)), "chance of a miss: 2 ** -100"


def test_a_wait_is_at_least_what_the_provider_asked_for_after_each_failure(clock: VirtualClock) -> None:
    asked = [7.0, 200.0, 0.0, 31.5]
    send = Script(clock, *(busy(after=seconds) for seconds in asked), "well")
    go(clock, send, 5)
    bounds = [0.5, 1, 2, 4]
    for wait, seconds, bound in zip(send.waits, asked, bounds, strict=True):
        assert seconds - 1e-6 <= wait <= max(seconds, bound) + 1e-6


def test_waits_are_slept_on_the_clock_that_was_given() -> None:
    slept: list[float] = []

    class Watched(VirtualClock):
        def sleep(self, seconds: float) -> Awaitable[None]:
            slept.append(seconds)
            return super().sleep(seconds)

    clock = Watched()
    send = Script(clock, busy(), busy(), "well")
    go(clock, send, 5)
    assert slept == pytest.approx(send.waits)


@pytest.mark.parametrize("first", [(), (busy(),)])
def test_cancellation_of_a_call_passes_through_at_once(clock: VirtualClock, first: tuple[TransientError, ...]) -> None:
    called: list[float] = []

    async def send() -> str:
        called.append(clock.monotonic())
        if len(called) <= len(first):
            raise first[len(called) - 1]
        await asyncio.Event().wait()
        return "never"

    async def main() -> float:
        task = asyncio.create_task(trying(send, 5, clock))
        await clock.sleep(10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return clock.monotonic()

    with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
        assert runner.run(main()) == pytest.approx(10)
    assert len(called) == len(first) + 1


def test_cancellation_between_two_attempts_passes_through_at_once(clock: VirtualClock) -> None:
    send = Script(clock, busy(after=100.0), "too late")

    async def main() -> float:
        task = asyncio.create_task(trying(send, 5, clock))
        await clock.sleep(10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return clock.monotonic()

    with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
        assert runner.run(main()) == pytest.approx(10)
    assert send.at == [0.0]


def test_refusals_for_the_rate_are_not_failures_of_the_step(clock: VirtualClock) -> None:
    limited = TransientError("slow down", Fault.RATE_LIMITED, status=429)
    send = Script(clock, busy(), *[limited] * 40, busy(), "well")
    assert go(clock, send, 3) == "well"
    assert len(send.at) == 43


def test_a_wait_that_is_asked_for_the_rate_is_waited_by_the_call_itself(clock: VirtualClock) -> None:
    send = Script(clock, TransientError("slow down", Fault.RATE_LIMITED, retry_after=40.0), "well")
    assert go(clock, send, 3) == "well"
    assert send.at[1] == pytest.approx(40.0)


def test_no_attempt_begins_later_than_the_time_allowed_after_the_first_failure(clock: VirtualClock) -> None:
    send = Script(clock, *[busy(after=40.0)] * 20)

    async def main() -> None:
        await trying(send, 5, clock, elapsed=100.0)

    with asyncio.Runner(loop_factory=clock.new_event_loop) as runner, pytest.raises(TransientError):
        runner.run(main())
    assert send.at == pytest.approx([0, 40, 80])
