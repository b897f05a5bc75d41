"""A lane that asks in waves: requests that are next are submitted as a batch, and collected when it has ended.

What is out is known from the store alone: a submission is on disk before it is sent, and a line is done once its
attempt is on disk. So a run may end at any point, and the next one finds, collects or sends what there is.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from venire.arena.campaigns import BatchSettings, JudgeSettings, TokenPrice
from venire.arena.clock import Clock
from venire.arena.errors import BudgetReachedError, CallError, Fault, TransientError
from venire.arena.records import Outcome, Request
from venire.judges.providers.batches.base import CLOCK_SKEW, BatchProvider, BatchState, BatchStatus
from venire.judges.providers.token_counting import worst_case
from venire.orchestrator.costs.budget import BudgetView, Reservation
from venire.orchestrator.engines.trial import TrialRunner
from venire.orchestrator.lanes.calls import Attempt, digest
from venire.orchestrator.lanes.lane import Lane
from venire.orchestrator.lanes.ledger import CallLedger
from venire.orchestrator.lanes.refusals import refusal_advice
from venire.orchestrator.lanes.retry import pause_after
from venire.orchestrator.lanes.routes import Route
from venire.orchestrator.recording.ending import wait_for_any
from venire.orchestrator.recording.events import Events
from venire.orchestrator.recording.recorder import Recorder
from venire.orchestrator.run.collector import Collected, Collector
from venire.orchestrator.run.wave_file import WaveFile
from venire.storage.plans import submissions
from venire.storage.plans.submissions import OpenSubmission, SubmissionLine
from venire.storage.plans.trial_states import PendingTrial, PendingTrials, load
from venire.storage.store.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["AskLive", "Polling", "WaveLane"]

AskLive = Callable[[Lane, PendingTrials], None]
"""Hands trials to the ordinary workers of a lane."""

_CHUNK = 500
"""Trials read at once for a wave."""
_FIRST_PAUSE, _GROWTH = 1.0, 1.5
_NOT_FOUND = 404
_LOOKS = 2
"""How often a list is searched for a batch in vain before it counts as never made: lists lag behind."""
_READINGS, _PATIENCE = 6, 10
"""How often the answers of a batch are read, and for how many of the longest pauses at least, before results that its
provider counts and does not hand out are lost."""
_SLACK = timedelta(seconds=5)
"""How much earlier than the writing of its submission a batch may be dated by our clock: dates are in whole seconds."""


@dataclass(frozen=True, slots=True)
class Polling:
    """How a run waits for batches: `longest` seconds between two looks, which grow to that; `detach`: not at all."""

    longest: float = 60.0
    detach: bool = False


@dataclass(slots=True)
class _Wave:
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
    is_lost: bool = False
    """Whether its provider refuses to say anything of it: the next start looks again."""
    sent_now: bool = True
    """Whether it was submitted in this run."""
    rests_until: float = 0.0
    """In seconds of the clock: not looked at before."""


@dataclass(slots=True)
class _Failures:
    """Batches in a row that were not confirmed when they were sent; times in seconds of the clock."""

    number: int = 0
    doubtful: int = 0
    """Of these, those that may have been made."""
    since: float | None = None
    pauses_until: float = -inf


class WaveLane:
    """Asks the trials of one lane in waves, through the batch interface of its first route.

    `judges`, `budgets` and `prices` are by respondent number, the prices those of the batch interface; `ledger` is the
    lane's; `numbers` are those of new submissions, which all lanes take from. `cannot_pay` gets a respondent whose next
    call no budget covers.
    """

    def __init__(
        self,
        lane: Lane,
        batches: BatchProvider,
        *,
        store: Store,
        campaign: int,
        folder: Path,
        trials: TrialRunner,
        judges: Mapping[int, JudgeSettings],
        ledger: CallLedger,
        budgets: Mapping[int, BudgetView],
        prices: Mapping[int, TokenPrice],
        clock: Clock,
        events: Events,
        warn: Callable[[str], None],
        polling: Polling,
        halt: asyncio.Event,
        done_asking: Container[int],
        numbers: Iterator[int],
        cannot_pay: Callable[[int, str], None],
    ) -> None:
        assert lane.settings.batch is not None  # it asks in waves
        self.lane, self.batches = lane, batches
        self.left_for_later = 0
        """Trials whose batch was given up, and that are left for the next start."""
        self._settings: BatchSettings = lane.settings.batch
        self._route: Route = lane.routes.all[0]
        self._store, self._campaign, self._folder = store, campaign, folder
        self._trials, self._judges = trials, judges
        self._ledger, self._budgets = ledger, budgets
        self._prices = defaultdict(lambda: max(prices.values(), key=lambda price: price.output), prices)
        self._clock, self._events, self._warn = clock, events, warn
        self._polling, self._halt, self._done_asking = polling, halt, done_asking
        self._cannot_pay, self._numbers = cannot_pay, numbers
        self._recorder: Recorder | None = None
        self._collector = Collector(
            store,
            self._route,
            batches,
            trials,
            judges=judges,
            ledger=ledger,
            budgets=budgets,
            prices=self._prices,
            clock=clock,
            max_attempts=lane.settings.max_attempts,
        )
        most = self._settings.wave_size or batches.limits.lines
        self._most_lines = min(most, batches.limits.lines)
        self.waves: dict[int, _Wave] = {}
        """What is out, by the number of the submission."""
        self._failures = _Failures()
        self._keeps_names = batches.keeps_names
        """Whether a list without our name is one without our batch; not so at a gateway that drops names."""
        self._had_strays = False
        self._had_full_queue = self._queue_is_full = False
        """Whether a wave was refused, once or just now, for what else is waiting: then no other is sent until some of
        that has come back."""

    def recover(self, out: Sequence[OpenSubmission]) -> None:
        """Take over what earlier runs submitted by this lane: its reservations hold."""
        for one in out:
            self.waves[one.id] = _Wave(one, self._folder / f"{one.name}.jsonl", sent_now=False)
            for left in submissions.left_by_respondent(self._store, one.id):
                self._budgets[left.respondent].hold(Reservation(left.reserved, left.reserved_tokens), left.lines)
            if self._events.active:
                self._ledger.sent(self._attempts(submissions.lines_left(self._store, one.id).values(), one.written_at))

    def begin(self, recorder: Recorder) -> None:
        """Begin another round: results go to this recorder."""
        self._recorder = recorder
        self._collector.begin(recorder)

    @property
    def lines_out(self) -> int:
        """Requests in batches that are out."""
        return sum(wave.submission.lines for wave in self.waves.values())

    async def run(self, left: PendingTrials, out: NDArray[np.int64], ask_live: AskLive) -> None:
        """Ask what is left until nothing is, or there is a reason to stop; trials in `out` are in batches already.

        `ask_live` hands trials of a batch that was given up to the lane's ordinary workers.

        Raises StoreError when the store has failed.
        """
        planned = dict(zip(left.trials.tolist(), left.respondents.tolist(), strict=True))
        todo = left.trials[~np.isin(left.trials, out)].tolist()
        pause, looks = _FIRST_PAUSE, 0
        while not self._halt.is_set():
            todo = await self._submit_all([one for one in todo if planned[one] not in self._done_asking])
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
            await self._park()

    def _may_leave(self, looks: int, todo: Sequence[int]) -> bool:
        """Whether nothing more comes of looking: nothing is out or to be sent, or it is left to a later start."""
        waves = [wave for wave in self.waves.values() if not wave.is_lost]
        if self._halt.is_set():
            return True
        if not self._polling.detach:
            return not waves and not self._waits_to_send(todo)
        if not waves:
            return True
        # Each is looked at once when it was sent by an earlier start, and what was not confirmed is searched for.
        unsure = any(wave.submission.provider_id is None for wave in waves)
        return looks >= _LOOKS or (not unsure and (looks > 0 or all(wave.sent_now for wave in waves)))

    async def _park(self) -> None:
        """Tell the budgets that what is out now does not come back in this run: others may wait for it."""
        for number in self.waves:
            for left in await asyncio.to_thread(submissions.left_by_respondent, self._store, number):
                self._budgets[left.respondent].park(Reservation(left.reserved, left.reserved_tokens))

    async def _rest(self, seconds: float) -> None:
        """Wait, but not when nothing more is to be asked."""
        waiting = asyncio.ensure_future(self._clock.sleep(seconds))
        halting = asyncio.ensure_future(wait_for_any(self._halt))
        try:
            await asyncio.wait((waiting, halting), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            halting.cancel()

    # Submitting

    async def _submit_all(self, todo: list[int]) -> list[int]:
        """Send wave after wave; returns the trials that are left when that ends, for money, room or another reason."""
        while todo and not (self._queue_is_full or self.lane.closed or self._halt.is_set() or self._is_pausing()):
            before = len(todo)
            todo = await self._submit(todo)
            if len(todo) == before:
                break  # there is no money until some of what is out has come back
        return todo

    async def _submit(self, todo: list[int]) -> list[int]:
        """Write and send one wave of what fits into it and can be paid; returns the trials that are left."""
        assert self._recorder is not None
        place = 0
        with WaveFile(self._folder, most_lines=self._most_lines, most_bytes=self.batches.limits.bytes) as wave:
            full = False
            while place < len(todo) and not full and not self._halt.is_set():
                room = min(_CHUNK, self._most_lines - len(wave.lines) + 1)  # one more shows that it is full
                chunk = np.array(todo[place : place + room], dtype=np.int64)
                for pending in await asyncio.to_thread(load, self._store, chunk):
                    if not await self._add(wave, pending):
                        full = True
                        break
                    place += 1
                await self._recorder.room()
        if not wave.lines:
            wave.remove()
            return todo[place:]
        if self._halt.is_set():
            for attempt in self._attempts(wave.lines, self._clock.wall()):
                self._ledger.release(attempt)
            wave.remove()
            return todo
        returned = await self._send(wave)
        return returned + todo[place:]

    def _attempts(self, lines: Iterable[SubmissionLine], sent_at: datetime) -> Iterator[Attempt]:
        return (self._collector.attempt(line, sent_at) for line in lines)

    async def _add(self, wave: WaveFile, pending: PendingTrial) -> bool:
        """Put a trial's next request into a wave, if it has one; False where it has no room, or no money just now."""
        if pending.respondent in self._done_asking:
            return True
        judge = self._judges[pending.respondent]
        found = self._trials.resume(pending, judge)
        if isinstance(found, Outcome):
            self._trials.ends.conclude(pending, judge, found, pending.cost, 0.0)
            return True
        talk, request = found
        talk.close()
        body = self._route.provider.encode(self._route.settings.model, request)
        line = self._line(pending, request, body)
        content = self.batches.line(line.custom_id, body)
        if not wave.has_room(content):
            if wave.lines:
                return False
            self._trials.ends.fail(pending, judge, line.step, Fault.TOO_LONG, pending.cost, 0.0)
            self._warn(
                f"warning: judge {judge.name!r}: a request of {len(content):,} bytes is larger than a whole batch may "
                f"be ({self.batches.limits.bytes:,} bytes): its trial has failed"
            )
            return True
        try:
            if not await self._reserve(line, others_out=bool(self.waves or wave.lines)):
                return False
        except BudgetReachedError as error:
            self._cannot_pay(pending.respondent, str(error))
            return True
        wave.add(line, content)
        return True

    def _line(self, pending: PendingTrial, request: Request, body: bytes) -> SubmissionLine:
        step, tokens = len(pending.replies) + 1, worst_case(body)
        money = self._prices[pending.respondent].cost(tokens, request.max_tokens)
        reserved = self._ledger.reservation(money, tokens + request.max_tokens)
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
        attempt = self._collector.attempt(line, self._clock.wall())
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
            written_at=self._clock.wall(),
            campaign=self._campaign,
            provider_id=None,
            adopted=False,
            cancelling=False,
        )
        self._recorder.submission(submission, wave.digest)
        await self._recorder.safe()
        self._ledger.counters.calls += len(lines)
        self._ledger.sent(self._attempts(lines, submission.written_at))
        self.waves[number] = _Wave(submission, wave.path)
        return await self._send_file(self.waves[number])

    async def _send_file(self, wave: _Wave) -> list[int]:
        """Send the file of a wave that is on record; returns its trials where the provider refuses it for good."""
        one = wave.submission
        try:
            status = await self.batches.submit(one.name, self._route.settings.model, wave.path)
        except CallError as error:
            if isinstance(error, TransientError) or error.may_be_billed:
                wave.unsent = not error.may_be_billed
                self._hold_back(one, error)
                return []
            self.lane.close(f"{error}{refusal_advice(error)}")
            return await self._return(wave, str(error))
        wave.unsent = False
        self._keeps_names = self._keeps_names and status.name == one.name
        await self._confirm(wave, status)
        if self._events.active:
            size = {"lines": one.lines, "bytes": one.bytes, "reserved_nano": one.reserved}
            self._events.emit("batch.submitted", route=self._route.name, name=one.name, provider_id=status.id, **size)
        return []

    async def _confirm(self, wave: _Wave, status: BatchStatus, how: str = "") -> None:
        """Put on record under which id the provider has a submission; `how` it was found, where not by its answer.

        One that has not our name is adopted: whether it is ours is known by its answers, so that it is never cancelled.
        """
        adopted = bool(how) and status.name != wave.submission.name
        await self._note(wave, "adopted" if adopted else "sent", status.id, how)
        wave.submission = replace(wave.submission, provider_id=status.id, adopted=adopted)
        wave.status = status
        self._failures = _Failures()

    def _hold_back(self, one: OpenSubmission, error: CallError) -> None:
        """After a batch that was not confirmed, wait with the next: longer each time, and not for ever.

        Each of those that may have been made may be paid for, so that they are as few as the attempts of a call.
        """
        failures, now = self._failures, self._clock.monotonic()
        failures.number += 1
        failures.doubtful += error.may_be_billed
        failures.since = now if failures.since is None else failures.since
        pause = pause_after(failures.number, error)
        failures.pauses_until = now + pause
        what = "is looked for" if error.may_be_billed else "is sent again"
        self._warn(
            f"{self._route.name}: the batch {one.name} was not confirmed ({error}); it {what}, and no other is sent "
            f"for {pause:.1f} s"
        )
        settings = self.lane.settings
        if failures.doubtful >= settings.max_attempts or now + pause - failures.since > settings.max_elapsed:
            self.lane.close(f"{failures.number} batches in a row were not confirmed ({error}); start again later")

    def _waits_to_send(self, todo: Sequence[int]) -> bool:
        return bool(todo) and self.lane.closed is None and self._is_pausing()

    def _is_pausing(self) -> bool:
        """Whether nothing is sent just now: a batch was not confirmed a short while ago, or is still looked for."""
        waves = (wave for wave in self.waves.values() if wave.sent_now and not wave.in_doubt)
        unsure = any(wave.submission.provider_id is None for wave in waves)
        return unsure or self._clock.monotonic() < self._failures.pauses_until

    async def _note(self, wave: _Wave, kind: str, provider_id: str | None = None, detail: str = "") -> None:
        """Put on record what became of a submission, and wait until it is on disk."""
        assert self._recorder is not None
        self._recorder.submission_event(wave.submission.id, self._clock.wall(), kind, provider_id, detail)
        await self._recorder.safe()

    async def _return(self, wave: _Wave, why: str) -> list[int]:
        """Close a submission of which no line was asked; its trials, whose reservations end."""
        lines = (await asyncio.to_thread(submissions.lines_left, self._store, wave.submission.id)).values()
        for attempt in self._attempts(lines, wave.submission.written_at):
            self._ledger.withdraw(attempt)
        await self._note(wave, "returned", wave.submission.provider_id, why)
        self._ledger.counters.calls -= len(lines) if wave.sent_now else 0
        self._forget(wave)
        return [line.trial for line in lines]

    def _forget(self, wave: _Wave) -> None:
        del self.waves[wave.submission.id]
        self._queue_is_full = False
        wave.path.unlink(missing_ok=True)
        with suppress(OSError):  # another wave is in it
            self._folder.rmdir()

    # Looking after what is out

    async def _look(self, planned: Mapping[int, int], ask_live: AskLive) -> tuple[bool, list[int]]:
        """Look at every batch that is out: whether anything changed, and the trials that go on."""
        moved = False
        more: list[int] = []
        now = self._clock.monotonic()
        for wave in [one for one in self.waves.values() if not one.is_lost and one.rests_until <= now]:
            if self._halt.is_set():
                break
            try:
                changed, goes_on = await self._look_at(wave, planned, ask_live)
            except TransientError as error:
                self._warn(f"{self._route.name}: {wave.submission.name}: {error}; it is looked at again later")
                continue
            except CallError as error:
                wave.is_lost = True
                self.lane.close(f"batch {wave.submission.name}: {error}{self._advice(wave, error)}")
                continue
            moved, more = moved or changed, more + goes_on
        return moved, more

    def _advice(self, wave: _Wave, error: CallError) -> str:
        """What to do where a provider refuses to say anything of a batch."""
        if error.status != _NOT_FOUND:
            return refusal_advice(error)
        store = shlex.quote(os.path.relpath(self._store.path))
        return f"; where it is gone for good, give it up: venire batch cancel {store} {wave.submission.name}"

    async def _look_at(self, wave: _Wave, planned: Mapping[int, int], ask_live: AskLive) -> tuple[bool, list[int]]:
        if wave.unsent:
            if self.lane.closed is not None:
                return True, await self._return(wave, self.lane.closed)
            waits = self._clock.monotonic() < self._failures.pauses_until
            return False, [] if waits else await self._send_file(wave)
        one = wave.submission
        if one.provider_id is None:
            return await self._find(wave)
        before, provider_id = wave.status, one.provider_id
        status = wave.status = await self.batches.status(provider_id)
        if status.state is BatchState.REFUSED:
            return not status.may_pass, await self._take_refusal(wave, status)
        if status.state is BatchState.ENDED:
            found = await self._collect(wave, status)
            if not found.is_whole and wave.found.missing:
                return False, []
            late = self._age(wave) > (self._settings.max_wait or inf)
            return True, self._give_up(found, planned, ask_live) if late else found.goes_on
        longest = self._settings.max_wait
        if longest is not None and self._age(wave) > longest and not (one.adopted or one.cancelling):
            wave.submission = replace(wave.submission, cancelling=True)
            try:
                wave.status = await self.batches.cancel(provider_id)
            except TransientError:
                raise
            except CallError:  # it has just ended, or is about to: the next look says so
                return False, []
            await self._note(wave, "cancelling", detail=f"not answered within {longest:g} s")
        return before is None or (before.answered, before.failed) != (status.answered, status.failed), []

    def _age(self, wave: _Wave) -> float:
        """Seconds since a wave was submitted."""
        return (self._clock.wall() - wave.submission.written_at).total_seconds()

    async def _find(self, wave: _Wave) -> tuple[bool, list[int]]:
        """Look for a batch that was not confirmed when it was sent; where it is surely not there, return its trials.

        A name proves that it is ours. In a list without names one of its size that was made since then may be: that is
        waited for, and once it has ended its answers say whose it is.
        """
        one = wave.submission
        taken = submissions.taken_batches(self._store, one.id)
        listed = [
            status for status in await self.batches.batches(one.written_at - CLOCK_SKEW) if status.id not in taken
        ]
        for status in listed:
            if status.name == one.name:
                await self._confirm(wave, status, "found in the provider's list by its name")
                return True, []
        maybe = [] if self._keeps_names else [status for status in listed if _may_be(status, one)]
        for status in maybe:
            if (await self.batches.status(status.id)).state is BatchState.ENDED:
                await self._confirm(wave, status, "found in the provider's list by its size and time")
                return True, []
        # One of the same size that was adopted may turn out to be this one.
        others = () if self._keeps_names else (other.submission for other in self.waves.values())
        if maybe or any(other.adopted and other.lines == one.lines for other in others):
            self._say_doubt(wave, maybe)
            wave.looked_for = 0
            return False, []
        wave.looked_for += 1
        if wave.looked_for < _LOOKS or self._age(wave) < self._polling.longest:
            return False, []
        return True, await self._return(wave, "the provider has no such batch")

    def _say_doubt(self, wave: _Wave, maybe: Sequence[BatchStatus]) -> None:
        """Say once why a submission is neither out nor sent again."""
        if maybe and not wave.in_doubt:
            wave.in_doubt = True
            ids = ", ".join(status.id for status in maybe[:3]) + (", ..." if len(maybe) > 3 else "")
            self._warn(
                f"{self._route.name}: {ids} of {wave.submission.lines:,} requests may be batch {wave.submission.name} "
                "or somebody else's: its answers will say so once it has ended; until then it is not cancelled, and "
                "nothing is sent again"
            )

    async def _take_refusal(self, wave: _Wave, status: BatchStatus) -> list[int]:
        """A file was refused as a whole: smaller ones are tried where that may help, else the lane is closed."""
        one = wave.submission
        if not status.may_pass:
            self.lane.close(f"the provider refused the file of batch {one.name}: {status.problem}")
            return await self._return(wave, status.problem)
        if not self._had_full_queue:
            self._had_full_queue = True
            self._warn(
                f"{self._route.name}: batch {one.name} was refused for now ({status.problem}); what it held is sent "
                "later, or in smaller batches"
            )
        others = len(self.waves) > 1
        if not others:
            self._most_lines = max(1, one.lines // 2)
        trials = await self._return(wave, status.problem)
        self._queue_is_full = others
        return trials

    async def _collect(self, wave: _Wave, status: BatchStatus) -> Collected:
        """Take the answers of a batch in, unless the run ends meanwhile: then the next start takes in the rest."""
        one, found, answers = wave.submission, wave.found, self.batches.answers(status.id)
        patient = self._is_patient(one)
        await self._collector.collect(one, answers, found, status=status, patient=patient, halt=self._halt)
        if found.is_foreign:
            wave.submission, wave.found = replace(one, provider_id=None, adopted=False), Collected()
            wave.looked_for = 0
            await self._note(wave, "mistaken", status.id, "its answers are to other requests")
        if found.missing and patient:
            await self._note_missing(wave, status)
        if not found.is_whole:
            return Collected()
        await self._note(wave, "collected", status.id, _summary(found, status))
        if self._events.active:
            counts = {"answered": found.answered, "failed": found.failed, "strays": found.strays}
            self._events.emit("batch.collected", route=self._route.name, name=one.name, provider_id=status.id, **counts)
        if found.missing:
            self._warn(
                f"{self._route.name}: {found.missing:,} results of batch {one.name} are lost: its provider did not "
                f"hand them out in {one.short_readings + 1} readings; their calls are asked again"
            )
        if found.strays and not self._had_strays:
            self._had_strays = True
            self._warn(
                f"{self._route.name}: batch {one.name} holds results ({found.strays:,}) that nobody asked for or "
                "that came twice: they are left aside, in further batches too"
            )
        self._forget(wave)
        if found.closing is not None:
            self.lane.close(f"{found.closing}{refusal_advice(found.closing)}")
        return found

    def _is_patient(self, one: OpenSubmission) -> bool:
        """Whether results that the provider has and does not hand out may still come: it keeps them for weeks."""
        since = one.missing_since
        if one.short_readings < _READINGS or since is None:
            return True
        return (self._clock.wall() - since).total_seconds() < _PATIENCE * self._polling.longest

    async def _note_missing(self, wave: _Wave, status: BatchStatus) -> None:
        """Put on record and say that a reading fell short; the next one is after a pause that grows."""
        one, found, now = wave.submission, wave.found, self._clock.wall()
        wave.submission = one = replace(
            one, short_readings=one.short_readings + 1, missing_since=one.missing_since or now
        )
        wave.rests_until = self._clock.monotonic() + min(self._polling.longest, pause_after(one.short_readings))
        said = f"{found.missing:,} of {one.lines:,} results were not handed out"
        said += f" (lines that cannot be read: {found.unreadable:,})" if found.unreadable else ""
        await self._note(wave, "incomplete", status.id, said)
        if one.short_readings == 1:
            self._warn(
                f"{self._route.name}: batch {one.name} has ended, but {said}: they are read again, and nothing of it "
                "is asked anew meanwhile"
            )
        if self._events.active:
            counts = {"missing": found.missing, "unreadable": found.unreadable, "reading": one.short_readings}
            self._events.emit(
                "batch.incomplete", route=self._route.name, name=one.name, provider_id=status.id, **counts
            )

    def _give_up(self, found: Collected, planned: Mapping[int, int], ask_live: AskLive) -> list[int]:
        """Of a batch that took too long, ask what it left live, or leave it to the next start; the others go on."""
        late = set(found.unanswered)
        goes_on = [number for number in found.goes_on if number not in late]
        numbers = np.array([number for number in found.unanswered if number in planned], dtype=np.int64)
        if len(numbers) and self._settings.after_wait == "live":
            respondents = np.array([planned[number] for number in numbers.tolist()], dtype=np.int16)
            ask_live(self.lane, PendingTrials(numbers, respondents))
        else:
            self.left_for_later += len(numbers)
        return goes_on


def _may_be(status: BatchStatus, one: OpenSubmission) -> bool:
    """Whether a batch without a name may be a submission, by its size and time."""
    if status.name or status.lines not in (0, one.lines):
        return False
    return status.created_at is None or status.created_at >= one.written_at - _SLACK


def _summary(found: Collected, status: BatchStatus) -> str:
    parts = [f"{found.answered} answered", f"{found.failed} failed"]
    parts += [f"{found.strays} not asked for"] if found.strays else []
    parts += [f"{found.unreadable} unreadable"] if found.unreadable else []
    parts += [status.problem] if status.problem else []
    return ", ".join(parts)
