"""The one retry layer: tenacity's policies, entered only after a first failure, on the transient error alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_random_exponential

from venire.arena.clock import Clock
from venire.arena.errors import Fault, TransientError

__all__ = ["persist"]

T = TypeVar("T")

_LONGEST = 60.0
_jitter = wait_random_exponential(multiplier=0.5, max=_LONGEST)


class _Wait:
    """Full jitter, or what the provider asked this call to wait, whichever is longer."""

    def __init__(self, asked: Callable[[TransientError], float]) -> None:
        self._asked = asked

    def __call__(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        return max(self._asked(error) if isinstance(error, TransientError) else 0.0, _jitter(state))


class _Stop:
    """Whether a step has been tried long enough: so many failures, or so many seconds since the first of them.

    A refusal for the rate is no failure of the step: it waits, however long that takes. Neither is one that is
    `spared`.
    """

    def __init__(self, attempts: int, elapsed: float, clock: Clock, spared: Callable[[], bool]) -> None:
        self._attempts, self._clock, self._spared = attempts, clock, spared
        self._deadline = clock.monotonic() + elapsed
        self._failures = 0

    def __call__(self, state: RetryCallState) -> bool:
        error = state.outcome.exception() if state.outcome is not None else None
        limited = isinstance(error, TransientError) and error.fault is Fault.RATE_LIMITED
        self._failures += not limited and not self._spared()
        return self._failures >= self._attempts or self._clock.monotonic() + state.upcoming_sleep > self._deadline


async def persist(
    failed: TransientError,
    send: Callable[[], Awaitable[T]],
    *,
    attempts: int,
    elapsed: float,
    clock: Clock,
    sleep: Callable[[float], Awaitable[None]] | None = None,
    asked: Callable[[TransientError], float] = lambda error: error.retry_after or 0.0,
    spared: Callable[[], bool] = lambda: False,
) -> T:
    """Go on after a first failure: call `send` until it answers; raises what the last attempt raised.

    At most `attempts` attempts may fail, the first one counted, refusals for the rate and those of which `spared`
    says so when they have just failed not; none begins later than `elapsed` seconds after now, not counting what
    `send` waits for a turn. Waits are full jitter, or what the provider asked for where that is longer: `asked`
    says what of that holds for this call, and `sleep` waits (on `clock` unless given). Errors other than
    TransientError, cancellation among them, pass through at once.
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
        stop=_Stop(attempts, elapsed, clock, spared),
        wait=_Wait(asked),
        sleep=sleep or clock.sleep,
        reraise=True,
    )
    return await retrying(again)
