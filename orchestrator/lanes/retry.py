"""Retries with exponential backoff and full jitter: the one retry layer, on transient errors alone (tenacity)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_random_exponential

from venire.arena.clock import Clock
from venire.arena.errors import CallError, Fault, TransientError

T = TypeVar("T")

_MAX_WAIT = 60.0
_jitter = wait_random_exponential(multiplier=0.5, max=_MAX_WAIT)


class _Wait:
    """Full jitter, or what the provider asked this call to wait, whichever is longer."""

    def __init__(self, asked: Callable[[TransientError], float]) -> None:
        self._asked = asked

    def __call__(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        return max(self._asked(error) if isinstance(error, TransientError) else 0.0, _jitter(state))


class _Stop:
    """When a step is given up: after so many failures, or so many seconds since the first of them.

    A rate-limit response is no failure of the step: the step waits, however long that takes. Nor is a failure for which
    `uncounted` returns true.
    """

    def __init__(self, attempts: int, elapsed: float, clock: Clock, uncounted: Callable[[], bool]) -> None:
        self._attempts, self._clock, self._uncounted = attempts, clock, uncounted
        self._deadline = clock.monotonic() + elapsed
        self._failures = 0

    def __call__(self, state: RetryCallState) -> bool:
        error = state.outcome.exception() if state.outcome is not None else None
        limited = isinstance(error, TransientError) and error.fault is Fault.RATE_LIMITED
        self._failures += not limited and not self._uncounted()
        return self._failures >= self._attempts or self._clock.monotonic() + state.upcoming_sleep > self._deadline


def pause_after(failures: int, error: CallError | None = None) -> float:
    """Seconds to wait after so many failures in a row, for what another loop tries again: the waits of `retry_call`."""
    state = RetryCallState(AsyncRetrying(), None, (), {})
    state.attempt_number = failures
    return max(getattr(error, "retry_after", None) or 0.0, _jitter(state))


async def retry_call(
    failed: TransientError,
    send: Callable[[], Awaitable[T]],
    *,
    attempts: int,
    elapsed: float,
    clock: Clock,
    sleep: Callable[[float], Awaitable[None]] | None = None,
    asked: Callable[[TransientError], float] = lambda error: error.retry_after or 0.0,
    uncounted: Callable[[], bool] = lambda: False,
) -> T:
    """Go on after a first failure: call `send` until it answers; raises what the last attempt raised.

    At most `attempts` attempts may fail, the first one counted; rate-limit responses are not counted, nor are failures
    after which `uncounted` returns true. No attempt begins later than `elapsed` seconds from now, without the time that
    `send` waits for its turn. Waits are full jitter, or the wait that the provider asked for where that is longer:
    `asked` returns the part of it that applies to this call, and `sleep` waits (on `clock` unless given). Errors other
    than TransientError, cancellation among them, pass through at once.
    """
    first: TransientError | None = failed

    async def again() -> T:
        nonlocal first
        if first is not None:  # the failure that brought us here is tenacity's first attempt
            error, first = first, None
            raise error
        return await send()

    retrying = AsyncRetrying(
        retry=retry_if_exception_type(TransientError),
        stop=_Stop(attempts, elapsed, clock, uncounted),
        wait=_Wait(asked),
        sleep=sleep or clock.sleep,
        reraise=True,
    )
    return await retrying(again)
