"""Rows on their way to the store: the only place that knows the order of their columns."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, NamedTuple

from venire.arena.budgets import Amount
from venire.arena.errors import Fault, InputError, StoreError
from venire.arena.records import Reply, Verdict
from venire.storage.plans.submissions import OpenSubmission, SubmissionLine
from venire.storage.store.store import Store
from venire.storage.store.writer import Hold, Writer

_MIN_SPILL = 1 << 20
"""Bytes set aside for what the store cannot take, at least."""

_LOOK_EVERY = 4
"""Calls between two looks at whether the store is in its place."""

_MAX_GROUP = 10_000
"""Waiting rows that space is set aside for, at most: each call among them has a slot of the journal."""


class AttemptRecord(NamedTuple):
    """One call that was sent. Money in nano-dollars; `cost` None: not known, counted at what was reserved."""

    trial: int
    step: int
    number: int
    lane: int
    sent_at: datetime
    latency: float
    waited: float
    reserved: int
    reserved_tokens: int
    cost: int | None
    request_digest: bytes
    fault: Fault = Fault.NONE
    http_status: int | None = None
    message: str | None = None
    reply: Reply | None = None
    structured: bool | None = None
    """Whether the endpoint was held to a JSON schema; None where none was asked for."""
    cut: int = 0
    """Characters that were cut out of the texts shown."""


def verdict_columns(verdict: Verdict) -> tuple[Any, ...]:
    """What was read, as the columns of the table `verdict` from status to flagged."""
    return (
        int(verdict.status),
        verdict.rule,
        verdict.label,
        verdict.score,
        list(verdict.criteria) or None,
        list(verdict.places) or None,
        verdict.answered,
        verdict.flagged,
    )


class Recorder:
    """Hands what happened in one campaign to the writer, which keeps it whatever becomes of the store.

    `room` is asked before a call is sent: no more than `group_rows` rows are then waiting for the disk, so a process
    that dies loses at most those, and what its workers have in flight. `workers` and `bytes_a_row` say how much may be
    on its way when the store fails, and so how much space is set aside for it. With `strict` an announcement is on the
    disk itself before its call is sent, and `safe` waits for a reply to be there. `inline` does without a thread (see
    `Writer`). `on_error` is called once, in the loop's
    thread, that the store failed or is not in its place any more; methods raise StoreError when nothing can be kept.
    Raises InputError for groups of no row, or of more than space can be set aside for.
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
        strict: bool = False,
        inline: bool = False,
        workers: int = 0,
        bytes_a_row: int = 4096,
    ) -> None:
        if not 1 <= group_rows <= _MAX_GROUP:
            raise InputError(f"group_rows is {group_rows:,}: give 1 to {_MAX_GROUP:,} rows to be written at once")
        self._store = store
        self._campaign = campaign
        self._reading = reading
        self._most = group_rows
        self._strict = strict
        self._on_error = on_error
        self._freed = asyncio.Event()
        rows = group_rows + 2 * workers
        spill_bytes = max(_MIN_SPILL, rows * bytes_a_row)
        self._journal = store.begin_journal(campaign, workers=workers, spill_bytes=spill_bytes)
        self._holds: set[Hold] = set()
        self._ending = asyncio.Event()
        self._announced: deque[tuple[int, int]] = deque()
        """Places of attempts among the writer's rows, with their slots, in the order handed over."""
        self._announcements = self._synced = 0
        self._displaced: str | None = None
        self._syncing: asyncio.Task[None] | None = None
        loop = asyncio.get_running_loop()
        self._writer = Writer(
            store,
            group_rows=group_rows,
            group_seconds=group_seconds,
            strict=strict,
            inline=inline,
            on_commit=lambda: _call(loop, self._freed.set),
            on_error=lambda error: _call(loop, on_error, error),
        )

    @property
    def full(self) -> bool:
        """Whether as many rows wait for the disk as may."""
        return self._writer.waiting >= self._most

    @property
    def handed(self) -> int:
        """Rows handed over so far."""
        return self._writer.handed

    @property
    def written(self) -> int:
        """Of these, how many are on disk."""
        return self._writer.written

    async def room(self) -> None:
        """Wait until fewer rows than a group are waiting for the disk."""
        while self.full:
            await self._next_group()

    async def safe(self) -> None:
        """Wait until what was handed over so far is on disk."""
        place = self._writer.handed
        self._writer.flush()
        while self._writer.written < place:
            await self._next_group()

    async def _next_group(self) -> None:
        if self._writer.lost is not None:
            raise self._writer.lost
        self._freed.clear()
        await self._freed.wait()

    async def close(self) -> None:
        """Write what is waiting and end the writer. Raises StoreError when that could not be done in the store.

        Whoever holds the store is notified, and not waited for.
        """
        self._ending.set()
        for request in self._holds:
            request.released.set()
        closing = asyncio.ensure_future(asyncio.to_thread(self._writer.close))
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            await asyncio.wait([closing])  # what is waiting is written, however often somebody gives up
            raise

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[asyncio.Event]:
        """Write nothing while the context lasts, with everything in the store's file: for who copies that file.

        Yields an event that is set when the run ends and the hold with it. Raises StoreError when the log cannot be
        folded in, and when the run is ending already.
        """
        if self._ending.is_set():
            raise StoreError("the run is ending: try again when it has ended")
        loop = asyncio.get_running_loop()
        held: asyncio.Future[bool] = loop.create_future()
        request = Hold(lambda folded: _call(loop, _answer, held, folded))
        self._holds.add(request)
        self._writer.hold(request)
        try:
            if not await held:
                raise StoreError(f"the log of the store {self._store.path} cannot be folded in: is the disk full?")
            yield self._ending
        finally:
            request.released.set()
            self._holds.discard(request)

    async def announce(self, trial: int, step: int, number: int, lane: int, reservation: Amount) -> int:
        """Put a call on the campaign's account before it is sent; returns the slot that its attempt gives back.

        Raises StoreError when the store is not in its place any more.
        """
        try:
            self._announcements += 1
            if self._displaced is None and self._announcements % _LOOK_EVERY == 0:
                self._displaced = self._store.displaced()
            if self._displaced is not None:
                raise StoreError(self._displaced)
            self._release()
            slot = self._journal.announce(trial, step, number, lane, reservation.money, reservation.tokens)
            if self._strict:
                await self._sync_slot(slot)
        except StoreError as error:
            self._on_error(error)
            raise
        return slot

    def withdraw(self, slot: int) -> None:
        """Take a call off the campaign's account that was announced and then not sent."""
        self._journal.withdraw(slot)

    def renumber(self, slot: int, trial: int, step: int, number: int, lane: int, reservation: Amount) -> int:
        """Announce a call that was sent under another number; returns its new slot.

        A slot keeps what was announced in it until it is used again: after a crash the call would else count twice.
        """
        renumbered = self._journal.announce(trial, step, number, lane, reservation.money, reservation.tokens)
        self._journal.withdraw(slot)
        return renumbered

    def _release(self) -> None:
        """Give the slots back whose attempts are on disk."""
        announced, written = self._announced, self._writer.written
        while announced and announced[0][0] <= written:
            self._journal.release(announced.popleft()[1])

    async def _sync_slot(self, slot: int) -> None:
        try:
            await self._sync()
        except (asyncio.CancelledError, StoreError):  # the call is not sent
            self._journal.withdraw(slot)
            raise

    async def _sync(self) -> None:
        """Wait for the disk; whoever announces while it turns shares the next turn."""
        mine = self._announcements
        while self._synced < mine:
            if self._syncing is None:
                self._syncing = asyncio.create_task(self._sync_once())
            await asyncio.shield(self._syncing)

    async def _sync_once(self) -> None:
        covered = self._announcements
        try:
            await asyncio.to_thread(self._journal.sync)
            self._synced = covered
        finally:
            self._syncing = None

    def attempt(self, one: AttemptRecord, slot: int | None) -> None:
        """A call, answered or not, and the slot in which it was announced; None for one of a batch, which has none."""
        counts, served, texts, logprobs = _NOTHING_SAID if one.reply is None else _said(one.reply)
        row = (
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
            *counts,
            one.reserved,
            one.cost,
            *served,
            one.request_digest,
            *texts,
            one.reserved_tokens,
            one.structured,
            logprobs,
            one.cut or None,
        )
        place = self._writer.put("attempt", row)
        if slot is not None:
            self._announced.append((place, slot))
            if one.cost is not None:  # what is left of its reservation is free for others before the row is on disk
                output, reply = 0, one.reply
                if reply is not None and not reply.estimated:
                    output, tokens = reply.output_tokens, reply.input_tokens + reply.output_tokens
                else:
                    tokens = one.reserved_tokens if one.fault is Fault.NONE else 0
                try:
                    self._journal.settle(slot, *one[:4], one.cost, tokens, output)
                except StoreError as error:  # the row itself is on its way
                    self._on_error(error)

    def verdict(self, trial: int, verdict: Verdict, cost: int) -> None:
        """How a trial ended, with what it cost in nano-dollars."""
        self._writer.put("verdict", (trial, self._reading, *verdict_columns(verdict), cost))

    def failure(self, trial: int, step: int, fault: Fault) -> None:
        """A step that used up its attempts."""
        self._writer.put("failure", (trial, step, int(fault), False))

    def submission_line(self, submission: int, line: SubmissionLine) -> None:
        """A request of a submission that is written next."""
        row = (submission, line.trial, line.step, line.number, line.reserved, line.reserved_tokens, line.digest)
        self._writer.put("submission_line", row)

    def submission(self, one: OpenSubmission, digest: bytes) -> None:
        """A submission whose lines were all handed over, with the digest of its file."""
        head = (one.id, one.campaign, one.name, one.lane, one.lines, one.bytes)
        self._writer.put("submission", (*head, digest, one.reserved, one.reserved_tokens, one.written_at))

    def submission_event(
        self, submission: int, at: datetime, kind: str, provider_id: str | None = None, detail: str = ""
    ) -> None:
        """What became of a submission: `sent` with the provider's id, at last `collected` or `returned`."""
        self._writer.put("submission_event", (submission, at, kind, provider_id, detail))

    def event(self, at: datetime, kind: str, detail: str) -> None:
        """Something worth knowing later: a start, a stop, a lane that closed."""
        self._writer.put("event", (at, self._campaign, kind, detail))


_Said = tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...], str | None]
_NOTHING_SAID: _Said = ((None,) * 5, (None,) * 2, (None,) * 3, None)


def _said(reply: Reply) -> _Said:
    """A reply in the order of the columns: finish and counts, who served it, texts, log-probabilities."""
    counted = not reply.estimated
    return (
        (
            reply.finish,
            reply.input_tokens if counted else None,
            reply.cached_tokens,
            reply.output_tokens if counted else None,
            reply.reasoning_tokens,
        ),
        (reply.served_model, reply.fingerprint),
        (reply.text, reply.reasoning, reply.raw),
        json.dumps(reply.logprobs) if reply.logprobs else None,
    )


def _call(loop: asyncio.AbstractEventLoop, what: Callable[..., None], *arguments: object) -> None:
    """Call something in the loop's thread, from the writer's."""
    loop.call_soon_threadsafe(what, *arguments)


def _answer(held: asyncio.Future[bool], folded: bool) -> None:
    if not held.done():  # who asked may have left
        held.set_result(folded)
