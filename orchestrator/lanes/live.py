"""A live lane: sends calls one by one through its gate, pays for them, and keeps every attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any

from venire.arena.campaigns import LaneSettings, Price
from venire.arena.clock import Clock
from venire.arena.errors import CallError, Fault, StoreError, TransientError
from venire.arena.records import Reply, Request
from venire.judges.providers.base import Provider
from venire.judges.providers.tokens import worst_case
from venire.orchestrator.budget import Claim, Purse
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


@dataclass(frozen=True, slots=True)
class _Call:
    """What is sent for a step, and what it may cost."""

    step: Step
    body: bytes
    digest: bytes
    claim: Claim
    price: Price
    purse: Purse


@dataclass(slots=True)
class _Result:
    """What came of a call; neither reply nor error: it was given up while it was on its way."""

    sent_at: datetime
    waited: float
    latency: float = 0.0
    reply: Reply | None = None
    error: CallError | None = None

    @property
    def fault(self) -> Fault:
        if self.error is not None:
            return self.error.fault
        return Fault.NONE if self.reply is not None else Fault.UNANSWERED

    def paid(self, price: Price) -> tuple[int | None, int | None]:
        """Nano-dollars and tokens: the provider's own cost first, then the price; None where it is not known."""
        reply = self.reply
        if reply is None:
            billed = self.error is None or self.error.may_be_billed
            return (None, None) if billed else (0, 0)
        tokens = None if reply.estimated else reply.input_tokens + reply.output_tokens
        if reply.cost is not None:
            return reply.cost, tokens
        return (None if reply.estimated else price.cost(reply.input_tokens, reply.output_tokens)), tokens


class Lane:
    """One provider account's door for one model."""

    def __init__(
        self,
        settings: LaneSettings,
        number: int,
        provider: Provider,
        *,
        recorder: Recorder,
        clock: Clock,
        tally: Tally,
        stopping: asyncio.Event,
        strict: bool = False,
        on_pause: Callable[[float], None] = lambda seconds: None,
        on_surcharge: Callable[[int, int], None] = lambda cost, allowed: None,
    ) -> None:
        self.settings = settings
        self.gate = Gate(settings.requests_per_minute, clock)
        self.closed: str | None = None
        self.workers: list[asyncio.Task[None]] = []
        """Who asks through this lane."""
        self._refused = 0
        self._number = number
        self._provider = provider
        self._recorder = recorder
        self._clock = clock
        self._tally = tally
        self._stopping = stopping
        self._strict = strict
        self._on_pause = on_pause
        self._on_surcharge = on_surcharge
        self._dearest = 0
        """What the provider charged for a call at most, where that was more than the price allows."""
        self._heaviest = 0
        """Tokens that the provider counted for a call at most, where those were more than were reserved."""

    def send_home(self) -> None:
        """Cancel the workers that wait for a turn or between attempts; the others finish their call."""
        for worker in self.workers:
            if worker not in self._tally.sending and worker is not asyncio.current_task():
                worker.cancel()

    async def ask(self, step: Step, request: Request, price: Price, purse: Purse) -> Reply:
        """The reply to one step, paid from a purse, after as many attempts as it takes and the settings allow.

        Raises CallError when the attempts are used up or the fault will not pass, LaneClosedError, StoppedError and
        BudgetReachedError when the call may not be sent, StoreError when the store has failed. Cancelled: a call that
        was on its way is on record as unanswered.
        """
        body = self._provider.encode(self.settings.model, request)
        tokens = worst_case(body)
        worst = max(price.cost(tokens, request.max_tokens), self._dearest)
        claim = Claim(worst, max(tokens + request.max_tokens, self._heaviest))
        call = _Call(step, body, sha256(body).digest()[:16], claim, price, purse)
        try:
            return await persist(
                lambda: self._attempt_while_open(call), attempts=self.settings.max_attempts, clock=self._clock
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

    async def _attempt_while_open(self, call: _Call) -> Reply:
        """One attempt; a failure that would be tried again is not waited for when nothing more will be sent."""
        try:
            return await self._attempt(call)
        except TransientError:
            self._check_open()
            raise

    async def _attempt(self, call: _Call) -> Reply:
        """Send one call and put on record what came of it; in strict campaigns wait for the disk before and after."""
        waited = await self._turn(call)
        step = call.step
        try:
            slot = await self._recorder.announce(step.trial, step.number, step.attempts + 1, self._number, call.claim)
        except BaseException as error:
            call.purse.release(call.claim)
            if isinstance(error, StoreError):  # the run has heard of it, and lets what is in flight come in
                raise StoppedError from error
            raise
        step.attempts += 1
        step.tries += 1
        self._tally.calls += 1
        self._tally.retries += step.tries > 1
        result = _Result(self._clock.wall(), waited)
        start = self._clock.monotonic()
        worker = asyncio.current_task()
        self._tally.sending.add(worker)
        try:
            reply = result.reply = await self._provider.send(call.body, f"{step.key.hex()}-{step.number}")
        except CallError as error:
            result.error = error
            if error.fault is Fault.RATE_LIMITED and error.retry_after is not None:
                self.gate.pause(error.retry_after)
                self._on_pause(error.retry_after)
            raise
        finally:  # also when cancelled: then the call is on record as unanswered, at its reserved price
            self._tally.sending.discard(worker)
            result.latency = self._clock.monotonic() - start
            self._settle(call, result, slot)
        self._tally.answered += 1
        self._refused = 0
        if self._strict:
            await self._recorder.safe()
        return reply

    async def _turn(self, call: _Call) -> float:
        """Wait for room on the disk, for the money and for the lane's gate; returns the seconds at the gate."""
        if self._recorder.full:
            await self._recorder.room()
        self._check_open()
        await call.purse.reserve_when_free(call.claim)
        try:
            waited = await self.gate.take()
            self._check_open()
        except BaseException:
            call.purse.release(call.claim)
            raise
        return waited

    def _settle(self, call: _Call, result: _Result, slot: int) -> None:
        """Pay for a call and hand it to the recorder."""
        cost, tokens = result.paid(call.price)
        call.purse.settle(call.claim, cost, tokens)
        if tokens is not None and tokens > call.claim.tokens:
            self._heaviest = max(self._heaviest, tokens)
        if cost is not None and cost > max(call.claim.money, self._dearest):
            if not self._dearest:
                self._on_surcharge(cost, call.claim.money)
            self._dearest = cost
        call.step.cost += call.claim.money if cost is None else cost
        self._recorder.attempt(
            AttemptRecord(
                trial=call.step.trial,
                step=call.step.number,
                number=call.step.attempts,
                lane=self._number,
                sent_at=result.sent_at,
                latency=result.latency,
                waited=result.waited,
                reserved=call.claim.money,
                reserved_tokens=call.claim.tokens,
                cost=cost,
                request_digest=call.digest,
                fault=result.fault,
                http_status=200 if result.reply is not None else result.error.status if result.error else None,
                message=str(result.error) if result.error is not None else None,
                reply=result.reply,
            ),
            slot,
        )
