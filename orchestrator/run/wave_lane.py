"""A lane that asks in waves: requests that are next are submitted as a batch, and collected when it has ended.

What is out is known from the store alone: a submission is on disk before it is sent, and a line is done once its
attempt is on disk. So a run may end at any point, and the next one finds, collects or sends what there is.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from venire.arena.budgets import Amount
from venire.arena.campaigns import BatchSettings, JudgeSettings
from venire.arena.errors import BudgetReachedError, CallError, Fault, TransientError
from venire.arena.records import Outcome, Request
from venire.judges.providers.batches.base import BatchProvider, BatchState, BatchStatus
from venire.judges.providers.token_counting import worst_case
from venire.orchestrator.lanes.calls import digest
from venire.orchestrator.lanes.lane import Lane
from venire.orchestrator.lanes.ledger import CallLedger
from venire.orchestrator.lanes.refusals import refusal_advice
from venire.orchestrator.lanes.retry import pause_after
from venire.orchestrator.lanes.routes import Route
from venire.orchestrator.recording.ending import wait_for_any
from venire.orchestrator.recording.recorder import Recorder
from venire.orchestrator.run.batch_download import BatchDownload
from venire.orchestrator.run.batch_search import SEARCHES, BatchSearch
from venire.orchestrator.run.collector import Collected, Collector
from venire.orchestrator.run.failed_looks import FailedLooks
from venire.orchestrator.run.run_setup import RunContext
from venire.orchestrator.run.wave_file import WaveFile, waves_folder
from venire.orchestrator.run.waves_out import Wave, WavesOut
from venire.storage.plans.submissions import OpenSubmission, SubmissionLine
from venire.storage.plans.trial_states import PendingTrial, PendingTrials, load

if TYPE_CHECKING:
    from numpy.typing import NDArray

AskLive = Callable[[Lane, PendingTrials], None]
"""Hands trials to the ordinary workers of a lane."""

_CHUNK = 500
"""Trials read at once for a wave."""
_FIRST_PAUSE, _GROWTH = 1.0, 1.5


class WaveLane:
    """Asks the trials of one lane in waves, through the batch interface of its first route.

    `judges` are its respondents by number; `ledger` is the lane's; `numbers` are those of new submissions, which all
    lanes take from.
    """

    def __init__(
        self,
        lane: Lane,
        batches: BatchProvider,
        context: RunContext,
        *,
        campaign: int,
        judges: Mapping[int, JudgeSettings],
        ledger: CallLedger,
        halt: asyncio.Event,
        numbers: Iterator[int],
    ) -> None:
        assert lane.settings.batch is not None  # it asks in waves
        self._lane, self._batches = lane, batches
        self.left_for_later = 0
        """Trials whose batch was given up, and that are left for the next start."""
        self._settings: BatchSettings = lane.settings.batch
        self._route: Route = lane.routes.all[0]
        self._context, self._setup = context, context.setup
        self._campaign, self._folder = campaign, waves_folder(context.store.path)
        self._judges, self._ledger = judges, ledger
        prices = {number: self._setup.batch_prices[judge.name] for number, judge in judges.items()}
        self._prices = defaultdict(lambda: max(prices.values(), key=lambda price: price.output), prices)
        self._polling, self._halt, self._numbers = self._setup.polling, halt, numbers
        self._recorder: Recorder | None = None
        self._collector = Collector(
            context.store,
            self._route,
            batches,
            context.trials,
            judges=judges,
            ledger=ledger,
            budgets=context.budgets,
            prices=self._prices,
            clock=self._setup.clock,
            max_attempts=lane.settings.max_attempts,
        )
        most = self._settings.wave_size or batches.limits.lines
        self._most_lines = min(most, batches.limits.lines)
        self.out = WavesOut(
            lane,
            batches,
            context.store,
            self._folder,
            self._collector,
            ledger=ledger,
            budgets=context.budgets,
            clock=self._setup.clock,
            events=context.events,
            warn=self._setup.warn,
            longest=self._polling.longest,
        )
        self._search, self._download = BatchSearch(self.out), BatchDownload(self.out, halt)
        self._failed_looks = FailedLooks(self.out)
        self._had_full_queue = False

    def begin(self, recorder: Recorder) -> None:
        """Begin another round: results go to this recorder."""
        self._recorder = self.out.recorder = recorder
        self._collector.begin(recorder)

    async def run(self, left: PendingTrials, out: NDArray[np.int64], ask_live: AskLive) -> None:
        """Ask what is left until nothing is, or there is a reason to stop; trials in `out` are in batches already.

        `ask_live` hands trials of a batch that was given up to the lane's ordinary workers.

        Raises StoreError when the store has failed.
        """
        planned = dict(zip(left.trials.tolist(), left.respondents.tolist(), strict=True))
        todo = left.trials[~np.isin(left.trials, out)].tolist()
        pause, looks = _FIRST_PAUSE, 0
        while not self._halt.is_set():
            todo = await self._submit_all([one for one in todo if planned[one] not in self._context.roster.done_asking])
            if self._may_leave(looks, todo):
                break
            moved, more = await self._look(planned, ask_live)
            looks += 1
            todo[:0] = [number for number in more if number in planned]  # what was begun comes before what was not
            if moved:
                pause = _FIRST_PAUSE
            elif not self._may_leave(looks, todo):
                await self._rest(min(pause, self._polling.longest))
                pause *= _GROWTH
        if not self._halt.is_set():
            self.left_for_later += len(todo) if self._waits_to_send(todo) else 0
            await self.out.park()

    def _may_leave(self, looks: int, todo: Sequence[int]) -> bool:
        """Whether nothing more comes of looking: nothing is out or to be sent, or it is left to a later start."""
        waves = [wave for wave in self.out.waves.values() if not wave.is_left]
        if self._halt.is_set():
            return True
        if not self._polling.detach:
            return not waves and not self._waits_to_send(todo)
        if not waves:
            return True
        if any(wave.refused_looks for wave in waves):
            return False  # a refusal counts when it is repeated
        # Each is looked at once when it was sent by an earlier start, and what was not confirmed is searched for.
        unsure = any(wave.submission.provider_id is None for wave in waves)
        return looks >= SEARCHES or (not unsure and (looks > 0 or all(wave.sent_now for wave in waves)))

    async def _rest(self, seconds: float) -> None:
        """Wait, but not when nothing more is to be asked."""
        waiting = asyncio.ensure_future(self._setup.clock.sleep(seconds))
        halting = asyncio.ensure_future(wait_for_any(self._halt))
        try:
            await asyncio.wait((waiting, halting), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            halting.cancel()

    # Submitting

    async def _submit_all(self, todo: list[int]) -> list[int]:
        """Send wave after wave; returns the trials that are left when that ends, for money, room or another reason."""
        while todo and not (
            self.out.queue_is_full or self._lane.closed or self._halt.is_set() or self._search.is_pausing
        ):
            before = len(todo)
            todo = await self._submit(todo)
            if len(todo) == before:
                break  # there is no money until some of what is out has come back
        return todo

    async def _submit(self, todo: list[int]) -> list[int]:
        """Write and send one wave of what fits into it and can be paid; returns the trials that are left."""
        assert self._recorder is not None
        place = 0
        with WaveFile(self._folder, most_lines=self._most_lines, most_bytes=self._batches.limits.bytes) as wave:
            full = False
            while place < len(todo) and not full and not self._halt.is_set():
                room = min(_CHUNK, self._most_lines - len(wave.lines) + 1)  # one more shows that it is full
                chunk = np.array(todo[place : place + room], dtype=np.int64)
                for pending in await asyncio.to_thread(load, self._context.store, chunk):
                    if not await self._add(wave, pending):
                        full = True
                        break
                    place += 1
                await self._recorder.room()
        if not wave.lines:
            wave.remove()
            return todo[place:]
        if self._halt.is_set():
            for attempt in self.out.attempts(wave.lines, self._setup.clock.wall()):
                self._ledger.release(attempt)
            wave.remove()
            return todo
        returned = await self._send(wave)
        return returned + todo[place:]

    async def _add(self, wave: WaveFile, pending: PendingTrial) -> bool:
        """Put a trial's next request into a wave, if it has one; False where it has no room, or no money just now."""
        if pending.respondent in self._context.roster.done_asking:
            return True
        judge = self._judges[pending.respondent]
        found = self._context.trials.resume(pending, judge)
        if isinstance(found, Outcome):
            self._context.trials.ends.conclude(pending, judge, found, pending.cost, 0.0)
            return True
        talk, request = found
        talk.close()
        body = self._route.provider.encode(self._route.settings.model, request)
        line = self._line(pending, request, body)
        content = self._batches.line(line.custom_id, body)
        if not wave.has_room(content):
            if wave.lines:
                return False
            self._context.trials.ends.fail(pending, judge, line.step, Fault.TOO_LONG, pending.cost, 0.0)
            self._setup.warn(
                f"warning: judge {judge.name!r}: a request of {len(content):,} bytes is larger than a whole batch may "
                f"be ({self._batches.limits.bytes:,} bytes): its trial has failed"
            )
            return True
        try:
            if not await self._reserve(line, others_out=bool(self.out.waves or wave.lines)):
                return False
        except BudgetReachedError as error:
            self._context.roster.cannot_pay(pending.respondent, str(error))
            return True
        wave.add(line, content)
        return True

    def _line(self, pending: PendingTrial, request: Request, body: bytes) -> SubmissionLine:
        step, tokens = len(pending.replies) + 1, worst_case(body)
        money = self._prices[pending.respondent].cost(tokens, request.max_tokens)
        reserved = self._ledger.reservation(Amount(1, money, tokens + request.max_tokens))
        number = pending.attempts.get(step, 0) + 1
        head = (pending.id, pending.key, pending.respondent, step, number)
        return SubmissionLine(*head, reserved.money, reserved.tokens, digest(body))

    async def _reserve(self, line: SubmissionLine, *, others_out: bool) -> bool:
        """Set the worst case of a line aside; False where it does not fit while others of this lane are out.

        What they cost in the end may leave room. Where none are out, what other lanes have reserved is waited for, and
        False is that the run ended before. Raises BudgetReachedError where nothing can leave room.
        """
        assert self._recorder is not None
        await self._recorder.room()
        attempt = self._collector.attempt(line, self._setup.clock.wall())
        if self._ledger.reserve_now(attempt):
            return True
        if others_out and attempt.budget.may_fit_later(attempt.reservation):
            return False
        waiting = asyncio.ensure_future(self._ledger.reserve(attempt))
        halting = asyncio.ensure_future(wait_for_any(self._halt))
        try:
            await asyncio.wait((waiting, halting), return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                waiting.result()
            return waiting.done()
        finally:
            waiting.cancel()
            halting.cancel()

    async def _send(self, wave: WaveFile) -> list[int]:
        """Put a wave on record, and only then send it; returns its trials where the provider did not take it."""
        assert self._recorder is not None
        lines = wave.lines
        number = next(self._numbers)
        for place, line in enumerate(lines, start=1):
            self._recorder.submission_line(number, line)
            if place % _CHUNK == 0:
                await self._recorder.room()
        submission = OpenSubmission(
            id=number,
            name=wave.name,
            lane=self._route.number,
            lines=len(lines),
            bytes=wave.bytes,
            reserved=sum(line.reserved for line in lines),
            reserved_tokens=sum(line.reserved_tokens for line in lines),
            written_at=self._setup.clock.wall(),
            campaign=self._campaign,
            provider_id=None,
            adopted=False,
            cancelling=False,
        )
        self._recorder.submission(submission, wave.digest)
        await self._recorder.safe()
        self._ledger.counters.calls += len(lines)
        self._ledger.sent(self.out.attempts(lines, submission.written_at))
        self.out.waves[number] = Wave(submission, wave.path)
        return await self._send_file(self.out.waves[number])

    async def _send_file(self, wave: Wave) -> list[int]:
        """Send the file of a wave that is on record; returns its trials where the provider refuses it for good."""
        one = wave.submission
        try:
            status = await self._batches.submit(one.name, self._route.settings.model, wave.path)
        except CallError as error:
            if isinstance(error, TransientError) or error.may_be_billed:
                self._search.hold_back(wave, error)
                return []
            self._lane.close(f"{error}{refusal_advice(error)}")
            return await self.out.give_back(wave, str(error))
        await self._search.sent(wave, status)
        self.out.emit("batch.submitted", wave, status.id, lines=one.lines, bytes=one.bytes, reserved_nano=one.reserved)
        return []

    def _waits_to_send(self, todo: Sequence[int]) -> bool:
        return bool(todo) and self._lane.closed is None and self._search.is_pausing

    # Looking after what is out

    async def _look(self, planned: Mapping[int, int], ask_live: AskLive) -> tuple[bool, list[int]]:
        """Look at every batch that is out: whether anything changed, and the trials that go on."""
        moved = False
        more: list[int] = []
        now = self._setup.clock.monotonic()
        for wave in [one for one in self.out.waves.values() if not one.is_left and one.rests_until <= now]:
            if self._halt.is_set():
                break
            try:
                changed, goes_on = await self._look_at(wave, planned, ask_live)
            except CallError as error:
                await self._failed_looks.take(wave, error)
                continue
            wave.failed_looks = wave.refused_looks = 0
            moved, more = moved or changed, more + goes_on
        return moved, more

    async def _look_at(self, wave: Wave, planned: Mapping[int, int], ask_live: AskLive) -> tuple[bool, list[int]]:
        if wave.unsent:
            if self._lane.closed is not None:
                return True, await self.out.give_back(wave, self._lane.closed)
            waits = self._search.is_held_back
            return False, [] if waits else await self._send_file(wave)
        one = wave.submission
        if one.provider_id is None:
            return await self._search.find(wave)
        before, provider_id = wave.status, one.provider_id
        status = wave.status = await self._batches.status(provider_id)
        if status.state is BatchState.REFUSED:
            return not status.may_pass, await self._take_refusal(wave, status)
        if status.state is BatchState.ENDED:
            found = await self._download.collect(wave, status)
            if not found.is_whole and wave.found.missing:
                return False, []
            late = self.out.age(wave) > (self._settings.max_wait or inf)
            return True, self._give_up(found, planned, ask_live) if late else found.goes_on
        longest = self._settings.max_wait
        is_late = longest is not None and self.out.age(wave) > longest
        if is_late and not (one.adopted or one.cancelling or status.cancelling):
            await self._cancel(wave, provider_id, f"not answered within {longest:g} s")
        return before is None or (before.answered, before.failed) != (status.answered, status.failed), []

    async def _cancel(self, wave: Wave, provider_id: str, why: str) -> None:
        """Ask for a batch to be ended; where that fails, the looks after a pause that grows ask again."""
        now = self._setup.clock.monotonic()
        if now < wave.cancels_from:
            return
        try:
            wave.status = await self._batches.cancel(provider_id)
        except CallError as error:  # perhaps it has just ended: the next look says so
            wave.failed_cancels += 1
            wave.cancels_from = now + pause_after(wave.failed_cancels, error)
            if wave.failed_cancels == 1:
                self._setup.warn(
                    f"{self._route.name}: batch {wave.submission.name} took longer than max_wait and could not be "
                    f"cancelled yet ({error}); that is tried again"
                )
            return
        wave.submission = replace(wave.submission, cancelling=True)
        await self.out.note(wave, "cancelling", detail=why)

    async def _take_refusal(self, wave: Wave, status: BatchStatus) -> list[int]:
        """A file was refused as a whole: smaller ones are tried where that may help, else the lane is closed."""
        one = wave.submission
        if not status.may_pass:
            self._lane.close(f"the provider refused the file of batch {one.name}: {status.problem}")
            return await self.out.give_back(wave, status.problem)
        if not self._had_full_queue:
            self._had_full_queue = True
            self._setup.warn(
                f"{self._route.name}: batch {one.name} was refused for now ({status.problem}); what it held is sent "
                "later, or in smaller batches"
            )
        others = any(not other.is_left for other in self.out.waves.values() if other is not wave)
        if not others:
            self._most_lines = max(1, one.lines // 2)
        trials = await self.out.give_back(wave, status.problem)
        self.out.queue_is_full = others
        return trials

    def _give_up(self, found: Collected, planned: Mapping[int, int], ask_live: AskLive) -> list[int]:
        """Of a batch that took too long, ask what it left live, or leave it to the next start; the others go on."""
        late = set(found.unanswered)
        goes_on = [number for number in found.goes_on if number not in late]
        numbers = np.array([number for number in found.unanswered if number in planned], dtype=np.int64)
        if len(numbers) and self._settings.after_wait == "live":
            respondents = np.array([planned[number] for number in numbers.tolist()], dtype=np.int16)
            ask_live(self._lane, PendingTrials(numbers, respondents))
        else:
            self.left_for_later += len(numbers)
        return goes_on
