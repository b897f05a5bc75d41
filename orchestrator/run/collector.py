"""Taking in the answers of a batch: each line becomes an attempt, its trial a verdict, a failure or another request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from venire.arena.budgets import Amount
from venire.arena.campaigns import JudgeSettings, TokenPrice
from venire.arena.clock import Clock
from venire.arena.errors import CallError, Fault, TransientError
from venire.arena.records import Outcome, Reply
from venire.judges.providers.batches.base import BatchAnswer, BatchProvider, BatchStatus
from venire.orchestrator.costs.budget import BudgetView
from venire.orchestrator.engines.trial import VERDICT_FAULTS, TrialRunner
from venire.orchestrator.lanes.calls import Attempt, Step
from venire.orchestrator.lanes.lane import CLOSING_FAULTS
from venire.orchestrator.lanes.ledger import CallLedger
from venire.orchestrator.lanes.routes import Route
from venire.orchestrator.recording.recorder import Recorder
from venire.storage.plans.submissions import OpenSubmission, SubmissionLine, lines_left, lines_taken, settled_among
from venire.storage.plans.trial_states import PendingTrial, load
from venire.storage.store.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CHUNK = 500
"""Lines that are taken in at once: their trials are read together, and no more answers than these are in memory."""
_REFUSED_IN_A_ROW = 20
"""Bad requests without an answer among them that close a lane: the model or a setting is wrong, not a trial."""

_FORBIDDEN = 403


@dataclass(slots=True)
class Collected:
    """What one batch came to: lines by what became of them, and the trials that go on.

    Where its answers could not all be read at once, it is of all the times that they were read in this run.
    """

    answered: int = 0
    failed: int = 0
    """Lines whose call failed, those without a result included."""
    strays: int = 0
    """Results that nobody asked for, or that came a second time."""
    unreadable: int = 0
    """Lines that are no result at all, such as those of a web page in the place of the answers."""
    missing: int = 0
    """Results that the provider has and did not hand out; of a whole batch: that are lost."""
    goes_on: list[int] = field(default_factory=list)
    """Trials whose next request is to be asked: a further step, or the same one again."""
    unanswered: list[int] = field(default_factory=list)
    """Of these, trials whose request expired, was cancelled or came back without a result."""
    closing: CallError | None = None
    """A refusal that no other call would escape."""
    is_foreign: bool = False
    """Whether none of its results was asked for: it is another batch than it was taken for."""
    is_whole: bool = False
    """Whether every line of the batch was taken in; False where the run ended meanwhile, or results are missing."""


class _Result(NamedTuple):
    """What a line came to, read once."""

    outcome: Reply | CallError
    answer: BatchAnswer | None
    """None where it came without one."""

    @property
    def status(self) -> int | None:
        """That of its answer; None where it was not asked, or came without one."""
        return None if self.answer is None else self.answer.status


@dataclass(slots=True)
class _Reading:
    """What one reading of a batch's answers has shown so far, of the lines of a submission."""

    lines: dict[str, SubmissionLine]
    """Those without a reply, by the id that the provider knows them by."""
    taken: set[str]
    """Ids of those on record that did not come yet."""
    failed: dict[str, _Result] = field(default_factory=dict)
    """Answers that are no reply, until all is read: a reply to the same request counts more, in whatever order."""
    statuses: list[int] = field(default_factory=list)
    """Of the results of those that have a reply or are on record."""
    strays: int = 0
    unreadable: int = 0

    def missing(self, status: BatchStatus) -> int:
        """How many results the provider has and did not hand out, of the lines that came with none.

        Known by its counts. One that counts nothing has all of a batch that was worked through; and a line that cannot
        be read is in the place of some result.
        """
        left = len(self.lines) - len(self.failed)
        if not status.lines and not status.problem:
            return left
        asked = len(self.statuses) + sum(result.status is not None for result in self.failed.values())
        return min(left, max(status.answered + status.failed - asked, self.unreadable))

    def delivered(self) -> int:
        """How many lines came with what the provider counts as an answer."""
        failed = (result.status for result in self.failed.values() if result.status is not None)
        return sum(200 <= status < 300 for status in (*self.statuses, *failed))


class _Refused(NamedTuple):
    """A trial whose request was refused, before any other of the batch was answered."""

    pending: PendingTrial
    judge: JudgeSettings
    line: SubmissionLine
    error: CallError
    cost: int


class Collector:
    """Takes in the answers of one lane's batches; `prices` and `judges` are by respondent number.

    What it records is safe to interrupt anywhere: a line is taken in once its attempt is on disk, and only then.
    """

    def __init__(
        self,
        store: Store,
        route: Route,
        batches: BatchProvider,
        trials: TrialRunner,
        *,
        judges: Mapping[int, JudgeSettings],
        ledger: CallLedger,
        budgets: Mapping[int, BudgetView],
        prices: Mapping[int, TokenPrice],
        clock: Clock,
        max_attempts: int,
    ) -> None:
        self._store, self._route, self._batches, self._trials = store, route, batches, trials
        self._judges, self._ledger, self._budgets, self._prices = judges, ledger, budgets, prices
        self._clock, self._max_attempts = clock, max_attempts
        self._recorder: Recorder | None = None
        self._refused: list[_Refused] = []
        self._forbidden: list[_Refused] = []
        """Those with status 403 and no reason: a filter of texts answers so, and a key that may not."""

    def begin(self, recorder: Recorder) -> None:
        """Record with another recorder from now on."""
        self._recorder = recorder

    async def collect(
        self,
        submission: OpenSubmission,
        answers: AsyncIterator[BatchAnswer],
        found: Collected,
        *,
        status: BatchStatus,
        patient: bool,
        halt: asyncio.Event,
    ) -> None:
        """Take in the answers of a batch that has ended, and add to `found` what came of those not on record yet.

        `status` is what the provider says of it. Where it counts more results than it hands out, or some cannot be
        read, only replies are taken in while `patient`: the rest is read another time. Else what it counts as answered
        counts at what was reserved. Stops half-way when `halt` is set. Raises `CallError` where the answers cannot be
        read; what was taken in until then is on record, and in `found`.
        """
        assert self._recorder is not None
        await self._recorder.safe()  # what an earlier, shorter reading took in is not taken in again
        reading = _Reading(*await asyncio.to_thread(self._lines, submission))
        self._refused.clear()
        self._forbidden.clear()
        is_read = await self._take_replies(submission, answers, reading, found, halt)
        # Counted anew: files are read from their beginning.
        found.strays, found.unreadable, found.missing = reading.strays, reading.unreadable, 0
        if not is_read:
            return
        missing, lines = reading.missing(status), reading.lines
        waits = missing > 0 and patient
        if submission.adopted and len(lines) == submission.lines and not reading.failed:
            found.is_foreign = not waits or reading.strays > 0
        if found.is_foreign:
            return
        found.missing = missing
        if waits:
            return
        failed = [(lines.pop(id), result) for id, result in reading.failed.items()]
        lost = missing > 0 and (not status.lines or reading.delivered() < status.answered)
        rest = [*failed, *((line, _unanswered(lost=lost)) for line in lines.values())]
        for start in range(0, len(rest), _CHUNK):
            if halt.is_set():
                return
            await self._take(submission, rest[start : start + _CHUNK], found)
        self._decide_refusals(found)
        found.is_whole = True

    async def _take_replies(
        self,
        submission: OpenSubmission,
        answers: AsyncIterator[BatchAnswer],
        reading: _Reading,
        found: Collected,
        halt: asyncio.Event,
    ) -> bool:
        """Take in what is a reply, and leave the rest in `reading`; False where the run ends before all is read."""
        chunk: list[tuple[SubmissionLine, _Result]] = []
        async for answer in answers:
            reply = self._first_reply(answer, reading)
            if reply is None:
                continue
            chunk.append(reply)
            if len(chunk) >= _CHUNK:
                await self._take(submission, chunk, found)
                chunk.clear()
                if halt.is_set():
                    return False
        await self._take(submission, chunk, found)
        return True

    def _first_reply(self, answer: BatchAnswer, reading: _Reading) -> tuple[SubmissionLine, _Result] | None:
        """The line that an answer is the first reply to, and that; any other is noted in `reading`, and None."""
        id = answer.custom_id
        if not id:
            reading.unreadable += 1
        elif id in reading.taken:
            reading.taken.remove(id)
            reading.statuses += [] if answer.status is None else [answer.status]
        elif id not in reading.lines:
            reading.strays += 1
        elif isinstance((result := self._result(answer)).outcome, Reply):
            reading.strays += reading.failed.pop(id, None) is not None
            reading.statuses.append(200)
            return reading.lines.pop(id), result
        elif id not in reading.failed:
            reading.failed[id] = result
        else:
            reading.strays += 1
        return None

    def _result(self, answer: BatchAnswer) -> _Result:
        if answer.status is None:
            return _Result(TransientError(answer.text, Fault.TRANSIENT), answer)
        try:
            return _Result(self._batches.read(answer, b""), answer)
        except CallError as error:
            return _Result(error.with_traceback(None), answer)  # all that failed are kept until the end

    def _lines(self, submission: OpenSubmission) -> tuple[dict[str, SubmissionLine], set[str]]:
        """The lines of a submission that are out, and the ids of those that are on record."""
        return lines_left(self._store, submission.id), lines_taken(self._store, submission.id)

    async def _take(
        self,
        submission: OpenSubmission,
        chunk: Sequence[tuple[SubmissionLine, _Result]],
        found: Collected,
    ) -> None:
        if not chunk:
            return
        assert self._recorder is not None
        numbers = np.unique(np.array([line.trial for line, _ in chunk], dtype=np.int64))
        trials, settled = await self._read(numbers)
        for line, result in chunk:
            self._take_line(submission, trials[line.trial], line, result, found, done=line.trial in settled)
        await self._recorder.room()

    async def _read(self, numbers: NDArray[np.int64]) -> tuple[Mapping[int, PendingTrial], frozenset[int]]:
        def read() -> tuple[Mapping[int, PendingTrial], frozenset[int]]:
            return {one.id: one for one in load(self._store, numbers)}, settled_among(self._store, numbers)

        return await asyncio.to_thread(read)

    def _take_line(
        self,
        submission: OpenSubmission,
        pending: PendingTrial,
        line: SubmissionLine,
        result: _Result,
        found: Collected,
        *,
        done: bool,
    ) -> None:
        judge = self._judges.get(line.respondent)
        resumed = None if judge is None or done else self._trials.resume(pending, judge)
        goes_on = len(pending.replies) + 1 == line.step and isinstance(resumed, tuple)
        talk, request = resumed if isinstance(resumed, tuple) else (None, None)
        body = b"" if request is None else self._route.provider.encode(self._route.settings.model, request)
        attempt = self.attempt(line, submission.written_at)
        attempt.body_bytes, attempt.latency = len(body), (self._clock.wall() - attempt.sent_at).total_seconds()
        if request is not None:
            attempt.cut = request.cut
            attempt.structured = self._route.structured if request.schema is not None else None
        if isinstance(result.outcome, CallError):
            attempt.error = result.outcome
        else:
            attempt.reply = self._counted(result.outcome, result.answer, body)
        self._ledger.settle(attempt)
        cost = pending.cost + attempt.step.cost
        if attempt.reply is not None:
            found.answered += 1
        else:
            found.failed += 1
        if not goes_on or judge is None or talk is None:
            if talk is not None:
                talk.close()
            return
        if attempt.reply is None:
            talk.close()
            assert attempt.error is not None
            self._failed(pending, judge, line, attempt.error, cost, attempt.latency, found, result.status)
            return
        self._settle_refused()
        try:
            talk.send(attempt.reply)
        except StopIteration as end:
            outcome: Outcome = end.value
            self._trials.ends.conclude(pending, judge, outcome, cost, attempt.latency, attempt.reply)
        else:
            talk.close()
            found.goes_on.append(line.trial)

    def _counted(self, reply: Reply, answer: BatchAnswer | None, body: bytes) -> Reply:
        """A reply with its tokens: one that counts none is read again, to estimate them from its request's body."""
        return self._batches.read(answer, body) if reply.estimated and answer is not None else reply

    def attempt(self, line: SubmissionLine, sent_at: datetime) -> Attempt:
        """The call of a line, as it is reserved and was put on record at a time."""
        judge = self._judges.get(line.respondent)
        step = Step(line.trial, line.key, line.step, line.number, judge="" if judge is None else judge.name)
        attempt = Attempt(step, self._budgets[line.respondent], Amount(1, line.reserved, line.reserved_tokens))
        attempt.route, attempt.lane, attempt.number = self._route, self._route.number, line.number
        attempt.price, attempt.digest, attempt.sent_at = self._prices[line.respondent], line.digest, sent_at
        return attempt

    def _failed(
        self,
        pending: PendingTrial,
        judge: JudgeSettings,
        line: SubmissionLine,
        error: CallError,
        cost: int,
        seconds: float,
        found: Collected,
        status: int | None,
    ) -> None:
        """What becomes of a trial whose call failed: as of a call that was sent alone, but that nobody waits here."""
        if error.fault in VERDICT_FAULTS:
            self._trials.ends.conclude(pending, judge, Outcome(VERDICT_FAULTS[error.fault]), cost, seconds)
        elif error.fault in CLOSING_FAULTS and error.by_status != _FORBIDDEN:
            found.closing = found.closing or error
        elif isinstance(error, TransientError) or error.fault is Fault.UNANSWERED:
            if line.number >= self._max_attempts:
                self._trials.ends.fail(pending, judge, line.step, error.fault, cost, seconds)
                return
            found.goes_on.append(line.trial)
            if status is None:
                found.unanswered.append(line.trial)
        elif found.answered and error.by_status is None:
            self._trials.ends.fail(pending, judge, line.step, error.fault, cost, seconds)
        else:
            bare = pending._replace(shown=(), replies=(), fences=())
            refused = self._refused if error.by_status is None else self._forbidden
            refused.append(_Refused(bare, judge, line, error, cost))

    def _settle_refused(self) -> None:
        """Record trials as failed that were refused before a call was answered: so it was theirs."""
        for one in self._refused:
            self._trials.ends.fail(one.pending, one.judge, one.line.step, one.error.fault, one.cost, 0.0)
        self._refused.clear()

    def _decide_refusals(self, found: Collected) -> None:
        """Close the lane where all requests of a batch were refused; else the refused trials have failed.

        Those that were forbidden are the key's where nothing was answered, or less than was forbidden.
        """
        if len(self._forbidden) > found.answered:
            found.closing = found.closing or self._forbidden[0].error
        else:
            self._refused += self._forbidden
        if len(self._refused) >= _REFUSED_IN_A_ROW and not found.answered:
            found.closing = found.closing or self._refused[0].error
            self._refused.clear()
        self._settle_refused()


def _unanswered(*, lost: bool) -> _Result:
    """That a line came without an answer; `lost`: one that may be paid for."""
    message = "the batch ended without a result of this call"
    return _Result(TransientError(message, Fault.UNANSWERED, may_be_billed=lost), None)
