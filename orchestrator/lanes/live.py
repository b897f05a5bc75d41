"""A live lane: sends calls one by one through its gate, pays for them, and keeps every attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from venire.arena.campaigns import LaneSettings, Price
from venire.arena.clock import Clock
from venire.arena.errors import CallError, Fault, TransientError
from venire.arena.records import Reply, Request
from venire.judges.providers.base import Provider
from venire.judges.providers.tokens import worst_case
from venire.orchestrator.budget import Purse
from venire.orchestrator.lanes.limits import Gate
from venire.orchestrator.lanes.retry import persist
from venire.orchestrator.recorder import AttemptRecord, Recorder

__all__ = ["CLOSING_FAULTS", "Lane", "LaneClosedError", "Step", "StoppedError", "Tally"]

CLOSING_FAULTS = frozenset({Fault.AUTHENTICATION, Fault.QUOTA})
"""Faults that no other call of the lane would escape."""

_REFUSED_IN_A_ROW = 20
"""Bad requests without an answer between them that close a lane: the model or a setting is wrong, not a trial."""


class LaneClosedError(Exception):
    """The lane takes no more calls: its key was refused or its account is empty."""


class StoppedError(Exception):
    """The campaign is stopping and this call was not sent."""


@dataclass(slots=True)
class Tally:
    """Counters of a running campaign."""

    calls: int = 0
    answered: int = 0
    retries: int = 0
    sending: set[asyncio.Task[Any] | None] = field(default_factory=set)
    """Workers with a call in flight."""

    @property
    def in_flight(self) -> int:
        """Calls sent and not yet answered."""
        return len(self.sending)


@dataclass(slots=True)
class Step:
    """A step on its way: which one, of which trial, and how many attempts it has on record."""

    trial: int
    key: bytes
    number: int
    attempts: int
    cost: int = 0
    """Nano-dollars of the attempts made now."""
    tries: int = 0
    """Attempts made now."""


class Lane:
    """One provider account's door for one model."""

    def __init__(
        self,
        settings: LaneSettings,
        number: int,
        provider: Provider,
        *,
        purse: Purse,
        recorder: Recorder,
        clock: Clock,
        tally: Tally,
        stopping: asyncio.Event,
        on_pause: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        self.settings = settings
        self.gate = Gate(settings.requests_per_minute, clock)
        self.closed: str | None = None
        self.workers: list[asyncio.Task[None]] = []
        """Who asks through this lane."""
        self._refused = 0
        self._number = number
        self._provider = provider
        self._purse = purse
        self._recorder = recorder
        self._clock = clock
        self._tally = tally
        self._stopping = stopping
        self._on_pause = on_pause

    def send_home(self) -> None:
        """Cancel the workers that wait for a turn or between attempts; the others finish their call."""
        for worker in self.workers:
            if worker not in self._tally.sending and worker is not asyncio.current_task():
                worker.cancel()

    async def ask(self, step: Step, request: Request, price: Price) -> Reply:
        """The reply to one step, after as many attempts as it takes and the settings allow.

        Raises CallError when the attempts are used up or the fault will not pass, LaneClosedError, StoppedError and
        BudgetReachedError when the call may not be sent, StoreError when the store has failed. Cancelled: a call that
        was on its way is on record as unanswered.
        """
        body = self._provider.encode(self.settings.model, request)
        digest = blake2b(body, digest_size=16).digest()
        worst = price.cost(worst_case(body), request.max_tokens)
        try:
            return await persist(
                lambda: self._attempt_while_open(step, body, digest, worst, price),
                attempts=self.settings.max_attempts,
                clock=self._clock,
            )
        except CallError as error:
            if error.fault is Fault.BAD_REQUEST:
                self._refused += 1
            if error.fault in CLOSING_FAULTS or self._refused >= _REFUSED_IN_A_ROW:
                self.closed = str(error)
                self.send_home()
                raise LaneClosedError(self.closed) from error
            raise

    def _check_open(self) -> None:
        if self._stopping.is_set():
            raise StoppedError
        if self.closed is not None:
            raise LaneClosedError(self.closed)

    async def _attempt_while_open(self, step: Step, body: bytes, digest: bytes, worst: int, price: Price) -> Reply:
        """One attempt; a failure that would be tried again is not waited for when nothing more will be sent."""
        try:
            return await self._attempt(step, body, digest, worst, price)
        except TransientError:
            self._check_open()
            raise

    async def _attempt(self, step: Step, body: bytes, digest: bytes, worst: int, price: Price) -> Reply:
        if self._recorder.full:
            await self._recorder.room()
        self._check_open()
        await self._purse.reserve_when_free(worst)
        try:
            waited = await self.gate.take()
            self._check_open()
        except BaseException:
            self._purse.release(worst)
            raise
        step.attempts += 1
        step.tries += 1
        self._tally.calls += 1
        self._tally.retries += step.tries > 1
        slot = self._recorder.announce(step.trial, step.number, step.attempts, self._number, worst)
        worker = asyncio.current_task()
        self._tally.sending.add(worker)
        sent_at, start = self._clock.wall(), self._clock.monotonic()
        reply: Reply | None = None
        error: CallError | None = None
        cost: int | None = None
        try:
            reply = await self._provider.send(body, f"{step.key.hex()}-{step.number}")
            cost = reply.cost if reply.cost is not None else price.cost(reply.input_tokens, reply.output_tokens)
            self._tally.answered += 1
            self._refused = 0
            return reply
        except CallError as failed:
            error = failed
            cost = None if failed.may_be_billed else 0
            if failed.fault is Fault.RATE_LIMITED and failed.retry_after is not None:
                self.gate.pause(failed.retry_after)
                self._on_pause(failed.retry_after)
            raise
        finally:  # also when cancelled: then the call is on record as unanswered, at its reserved price
            self._tally.sending.discard(worker)
            self._purse.settle(worst, cost)
            step.cost += worst if cost is None else cost
            unanswered = Fault.NONE if reply is not None else Fault.UNANSWERED
            self._recorder.attempt(
                AttemptRecord(
                    trial=step.trial,
                    step=step.number,
                    number=step.attempts,
                    lane=self._number,
                    sent_at=sent_at,
                    latency=self._clock.monotonic() - start,
                    waited=waited,
                    reserved=worst,
                    cost=cost,
                    request_digest=digest,
                    fault=error.fault if error is not None else unanswered,
                    http_status=200 if reply is not None else (error.status if error is not None else None),
                    message=str(error) if error is not None else None,
                    reply=reply,
                ),
                slot,
            )
