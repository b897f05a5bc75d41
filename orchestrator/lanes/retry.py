"""The one retry layer: tenacity's policies, entered only after a first failure, on the transient error alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from venire.arena.clock import Clock
from venire.arena.errors import TransientError

__all__ = ["persist"]

T = TypeVar("T")

_LONGEST = 60.0
_jitter = wait_random_exponential(multiplier=0.5, max=_LONGEST)


def _wait(state: RetryCallState) -> float:
    """Full jitter, or what the provider asked for, whichever is longer."""
    error = state.outcome.exception() if state.outcome is not None else None
    asked = error.retry_after if isinstance(error, TransientError) and error.retry_after is not None else 0.0
    return max(asked, _jitter(state))


async def persist(send: Callable[[], Awaitable[T]], *, attempts: int, clock: Clock) -> T:
    """Call `send` until it answers, at most `attempts` times; raises what the last attempt raised.

    Only TransientError is tried again; anything else, cancellation included, passes through at once. A call that
    succeeds at first never meets tenacity, whose wrapper costs more than the rest of the hot path.
    """
    try:
        return await send()
    except TransientError as error:
        if attempts <= 1:
            raise
        first: TransientError | None = error

    async def again() -> T:
        nonlocal first
        if first is not None:  # the failure that brought us here is tenacity's first attempt
            failed, first = first, None
            raise failed
        return await send()

    retrying = AsyncRetrying(
        retry=retry_if_exception_type(TransientError),
        stop=stop_after_attempt(attempts),
        wait=_wait,
        sleep=clock.sleep,
        reraise=True,
    )
    return await retrying(again)
