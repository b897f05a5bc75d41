"""The waves of one lane that are out, and what is put on record of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from venire.arena.budgets import Amount
from venire.arena.clock import Clock
from venire.judges.providers.batches.base import BatchProvider, BatchStatus
from venire.orchestrator.costs.budget import BudgetView
from venire.orchestrator.lanes.calls import Attempt
from venire.orchestrator.lanes.lane import Lane
from venire.orchestrator.lanes.ledger import CallLedger
from venire.orchestrator.recording.events import Events
from venire.orchestrator.recording.recorder import Recorder
from venire.orchestrator.run.collector import Collected, Collector
from venire.storage.plans import submissions
from venire.storage.plans.submissions import OpenSubmission, SubmissionLine
from venire.storage.store.store import Store


@dataclass(slots=True)
class Wave:
    """A submission that is out, in this run."""

    submission: OpenSubmission
    path: Path
    status: BatchStatus | None = None
    unsent: bool = False
    """Whether the provider surely has none of it, since sending its file failed in this run."""
    looked_for: int = 0
    """How often the provider's list was searched for it in vain."""
    in_doubt: bool = False
    """Whether it was said that another batch may be it."""
    found: Collected = field(default_factory=Collected)
    """What came of it so far in this run."""
    is_left: bool = False
    """Whether the next start looks again, and this run does not: its provider refuses to say anything of it, or whose
    it is could not be known within `max_wait`."""
    sent_now: bool = True
    """Whether it was submitted in this run."""
    rests_until: float = 0.0
    """In seconds of the clock: not looked at before."""
    failed_looks: int = 0
    """How often in a row its provider did not answer a question about it."""
    refused_looks: int = 0
    """Of these, how often it was refused."""
    candidate: str | None = None
    """The provider's id of the batch that was asked about last in the search for it."""
    failed_cancels: int = 0
    cancels_from: float = 0.0
    """In seconds of the clock: not cancelled before."""


@dataclass(slots=True)
class WavesOut:
    """What of one lane is out, with the provider that has it; `longest` seconds are between two looks at it.

    `collector` makes the attempts of lines, whose reservations are in `ledger` and `budgets`; files are in `folder`.
    """

    lane: Lane
    batches: BatchProvider
    store: Store
    folder: Path
    collector: Collector
    ledger: CallLedger
    budgets: Mapping[int, BudgetView]
    clock: Clock
    events: Events
    warn: Callable[[str], None]
    longest: float
    waves: dict[int, Wave] = field(default_factory=dict)
    """By the number of the submission."""
    queue_is_full: bool = False
    """Whether a wave was refused for what else is waiting: no other is sent until some of that has come back."""
    recorder: Recorder | None = None

    @property
    def route(self) -> str:
        """The name of the route that has the batches."""
        return self.lane.routes.all[0].name

    @property
    def lines(self) -> int:
        """Requests in batches that are out."""
        return sum(wave.submission.lines for wave in self.waves.values())

    def recover(self, out: Sequence[OpenSubmission]) -> None:
        """Take over what earlier runs submitted by this lane: its reservations hold."""
        for one in out:
            self.waves[one.id] = Wave(one, self.folder / f"{one.name}.jsonl", sent_now=False)
            for left in submissions.left_by_respondent(self.store, one.id):
                self.budgets[left.respondent].hold(Amount(left.lines, left.reserved, left.reserved_tokens))
            if self.events.active:
                self.ledger.sent(self.attempts(submissions.lines_left(self.store, one.id).values(), one.written_at))

    def attempts(self, lines: Iterable[SubmissionLine], sent_at: datetime) -> Iterator[Attempt]:
        """The calls of lines, put on record at a time."""
        return (self.collector.attempt(line, sent_at) for line in lines)

    def age(self, wave: Wave) -> float:
        """Seconds since a wave was submitted."""
        return (self.clock.wall() - wave.submission.written_at).total_seconds()

    async def note(self, wave: Wave, kind: str, provider_id: str | None = None, detail: str = "") -> None:
        """Put on record what became of a submission, and wait until it is on disk."""
        assert self.recorder is not None
        self.recorder.submission_event(wave.submission.id, self.clock.wall(), kind, provider_id, detail)
        await self.recorder.safe()

    def emit(self, event: str, wave: Wave, provider_id: str, **counts: int) -> None:
        """Emit an event about a submission."""
        if self.events.active:
            self.events.emit(event, route=self.route, name=wave.submission.name, provider_id=provider_id, **counts)

    async def give_back(self, wave: Wave, why: str) -> list[int]:
        """Close a submission of which no line was asked; its trials, whose reservations end."""
        lines = (await asyncio.to_thread(submissions.lines_left, self.store, wave.submission.id)).values()
        for attempt in self.attempts(lines, wave.submission.written_at):
            self.ledger.withdraw(attempt)
        await self.note(wave, "returned", wave.submission.provider_id, why)
        self.ledger.counters.calls -= len(lines) if wave.sent_now else 0
        self.forget(wave)
        return [line.trial for line in lines]

    async def disown(self, wave: Wave, provider_id: str, why: str) -> None:
        """A batch that was taken for this submission, or could be it, is another: the search goes on without it."""
        await self.note(wave, "mistaken", provider_id, why)
        unread = replace(wave.submission, provider_id=None, adopted=False, short_readings=0, missing_since=None)
        wave.submission, wave.found = unread, Collected()
        wave.looked_for = wave.failed_looks = wave.refused_looks = 0
        wave.in_doubt = False  # the next one that may be it is said and put on record too
        self.warn(
            f"{self.route}: {provider_id} was somebody else's ({why}): batch {wave.submission.name} is looked for "
            "further"
        )

    def forget(self, wave: Wave) -> None:
        """A submission is not out any more."""
        del self.waves[wave.submission.id]
        self.queue_is_full = False
        wave.path.unlink(missing_ok=True)
        with suppress(OSError):  # another wave is in it
            self.folder.rmdir()

    async def park(self) -> None:
        """Tell the budgets that what is out now does not come back in this run: others may wait for it."""
        for number in self.waves:
            for left in await asyncio.to_thread(submissions.left_by_respondent, self.store, number):
                self.budgets[left.respondent].park(Amount(left.lines, left.reserved, left.reserved_tokens))
