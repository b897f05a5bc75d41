"""Rows on their way to the store: the only place that knows the order of their columns."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from venire.arena.errors import Fault, StoreError
from venire.arena.records import Reply, Verdict
from venire.storage.journal import Journal
from venire.storage.store import Store
from venire.storage.writer import Writer

__all__ = ["AttemptRecord", "Recorder"]


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One call that was sent. Money in nano-dollars; `cost` None: not known, counted at `reserved`."""

    trial: int
    step: int
    number: int
    lane: int
    sent_at: datetime
    latency: float
    waited: float
    reserved: int
    cost: int | None
    request_digest: bytes
    fault: Fault = Fault.NONE
    http_status: int | None = None
    message: str | None = None
    reply: Reply | None = None


class Recorder:
    """Hands what happened in one campaign to the writer. Every method raises StoreError once the store has failed.

    `room` is asked before a call is sent: no more than `group_rows` rows are then waiting for the disk, so a process
    that dies loses at most those, and what its workers have in flight.
    """

    def __init__(
        self,
        store: Store,
        campaign: int,
        reading: int,
        *,
        group_rows: int,
        group_seconds: float,
        on_error: Callable[[StoreError], None],
    ) -> None:
        self._campaign = campaign
        self._reading = reading
        self._most = group_rows
        self._freed = asyncio.Event()
        self._journal = Journal(store.path, store.constant, campaign, store.clock.wall())
        self._announced: deque[tuple[int, int]] = deque()
        """Places of attempts among the writer's rows, with their slots, in the order handed over."""
        loop = asyncio.get_running_loop()
        self._writer = Writer(
            store,
            group_rows=group_rows,
            group_seconds=group_seconds,
            on_commit=lambda: _call(loop, self._freed.set),
            on_error=lambda error: _call(loop, on_error, error),
        )

    @property
    def full(self) -> bool:
        """Whether as many rows wait for the disk as may."""
        return self._writer.waiting >= self._most

    async def room(self) -> None:
        """Wait until fewer rows than a group are waiting for the disk."""
        while self.full:
            self._freed.clear()
            await self._freed.wait()

    async def close(self) -> None:
        """Write what is waiting and end the writer; StoreError, and the journal left, when that could not be done."""
        written = False
        try:
            await asyncio.to_thread(self._writer.close)
            written = True
        finally:
            self._journal.close(remove=written)

    def announce(self, trial: int, step: int, number: int, lane: int, reserved: int) -> int:
        """Put a call on the campaign's account before it is sent; returns the slot that its attempt gives back."""
        while self._announced and self._announced[0][0] <= self._writer.written:
            self._journal.release(self._announced.popleft()[1])
        return self._journal.announce(trial, step, number, lane, reserved)

    def attempt(self, one: AttemptRecord, slot: int) -> None:
        """A call, answered or not, and the slot in which it was announced."""
        reply = one.reply
        said = (
            (None,) * 10
            if reply is None
            else (
                reply.finish,
                reply.input_tokens,
                reply.cached_tokens,
                reply.output_tokens,
                reply.reasoning_tokens,
                reply.served_model,
                reply.fingerprint,
                reply.text,
                reply.reasoning,
                reply.raw,
            )
        )
        place = self._writer.put(
            "attempt",
            (
                self._campaign,
                one.trial,
                one.step,
                one.number,
                one.lane,
                one.sent_at,
                round(one.latency * 1000),
                int(one.fault),
                one.http_status,
                one.message,
                round(one.waited * 1000),
                *said[:5],
                one.reserved,
                one.cost,
                *said[5:7],
                one.request_digest,
                *said[7:],
            ),
        )
        self._announced.append((place, slot))

    def verdict(self, trial: int, verdict: Verdict, cost: int) -> None:
        """How a trial ended, with what it cost in nano-dollars."""
        self._writer.put(
            "verdict",
            (trial, self._reading, int(verdict.status), verdict.rule, verdict.label, verdict.score, cost),
        )

    def failure(self, trial: int, step: int, fault: Fault) -> None:
        """A step that used up its attempts."""
        self._writer.put("failure", (trial, step, int(fault), False))

    def event(self, at: datetime, kind: str, detail: str) -> None:
        """Something worth knowing later: a start, a stop, a lane that closed."""
        self._writer.put("event", (at, self._campaign, kind, detail))


def _call(loop: asyncio.AbstractEventLoop, what: Callable[..., None], *arguments: object) -> None:
    """Call something in the loop's thread, from the writer's."""
    loop.call_soon_threadsafe(what, *arguments)
