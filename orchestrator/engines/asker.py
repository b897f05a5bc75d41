"""An actor's side of a campaign that is asked by several processes: it asks leased trials through lanes of its own.

What is global stays with the coordinator, which grants every call before it is sent: money, rate limits, calls in
flight, and the announcement on disk. So an actor has gates without limits and no account. It keeps each report until
that is on the coordinator's disk, and gives it to the next coordinator where the first one is gone.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from uuid import uuid4

from venire.arena.budgets import NOTHING, Amount
from venire.arena.campaigns import Identity, JudgeSettings, LaneSettings, Limits, TokenPrice
from venire.arena.clock import Clock, SystemClock
from venire.arena.errors import BudgetReachedError, Fault, InputError, StoreError
from venire.arena.records import Outcome, Reply, Status
from venire.judges.providers.base import Provider
from venire.orchestrator.costs.budget import BudgetView
from venire.orchestrator.engines.local import LocalEngine
from venire.orchestrator.engines.messages import (
    STALE_SECONDS,
    Ask,
    Attempted,
    Begun,
    Broke,
    CallOut,
    Closed,
    Down,
    Emitted,
    Failed,
    GaveUp,
    Grant,
    Learnt,
    Numbered,
    Refused,
    Report,
    Returned,
    Settled,
    Setup,
    Up,
    Warned,
    Withdrawn,
)
from venire.orchestrator.engines.trial import TrialRunner
from venire.orchestrator.engines.work import LaneWork, RoundWork
from venire.orchestrator.lanes.calls import Attempt, CallCounters
from venire.orchestrator.lanes.gate import Gate
from venire.orchestrator.lanes.lane import Lane, LaneClosedError, StoppedError
from venire.orchestrator.lanes.lane_events import LaneEvents
from venire.orchestrator.lanes.ledger import attempt_record
from venire.orchestrator.lanes.routes import Route, lane_name, route_name
from venire.orchestrator.lanes.windows import Load
from venire.orchestrator.recording.events import Event, Events
from venire.storage.plans.trial_states import PendingTrial

_LONG_POLL = 5.0
"""For how often the seconds that reports may wait for more an exchange waits for something to report."""
_TOO_LATE = Grant(0, 0, 0.0, NOTHING)
"""In place of a permit that came too late to be used."""
_MAX_UNACKNOWLEDGED = 20_000
"""Reports that are kept; with more no further call is sent until some are on disk."""


class Asker:
    """Asks trials under leases of a coordinator; see `messages.Link`, whose two methods these are.

    All of it runs in one event loop. `clock` is the machine's, but for tests.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._process = uuid4().hex
        self._reports: deque[Numbered] = deque()
        """What the coordinator does not have on disk, the oldest first."""
        self._numbered = self._sent = 0
        """The last number given to a report, and the last that was sent under this lease."""
        self._calls = 0
        self.out: dict[int, CallOut] = {}
        """Calls that may have been sent and are not reported yet."""
        self._wake, self._freed = asyncio.Event(), asyncio.Event()
        self._setup: Setup | None = None
        self._providers: Mapping[Identity, Provider] = {}
        self._session: _Session | None = None
        self._leaving: set[_Session] = set()
        """Sessions of earlier leases that have calls in flight."""

    async def begin(self, lease: int, setup: Setup | None) -> Begun:
        """End the lease before, whose calls in flight end in their own time, and begin another."""
        if self._session is not None:
            self._leaving.add(self._session)
            self._session.halt()
            self._session = None
        self._drop_stale()
        campaign = None if self._setup is None else self._setup.campaign.name
        if setup is not None:
            await self._open(setup)
            self._session = _Session(self, lease, setup, self._providers, self._clock)
        kept = tuple(one.report for one in self._reports if isinstance(one.report, Attempted))
        return Begun(self._process, os.getpid(), socket.gethostname(), dict(self.out), campaign, kept)

    def _drop_stale(self) -> None:
        """Forget what concerned the lease alone, and send the rest again."""
        lasting = (Attempted, Withdrawn, Settled, Failed)
        self._reports = deque(one for one in self._reports if isinstance(one.report, lasting))
        self._sent = 0

    async def _open(self, setup: Setup) -> None:
        """Open the routes, unless those that are open serve."""
        if self._setup == setup:
            return
        if setup.version != (here := version("venire")):
            raise InputError(
                f"on {socket.gethostname()}, where an actor asks, Venire is of version {here}, and here of "
                f"{setup.version}: install the same everywhere"
            )
        before, self._providers = self._providers, {}
        self._setup = None
        try:
            self._providers = dict(setup.open_providers())
        except InputError as error:
            raise InputError(f"on {socket.gethostname()}, where an actor asks: {error}") from None
        self._setup = setup
        if before:  # calls of sessions that are leaving use them
            self._later = asyncio.create_task(self._close(before))

    async def _close(self, providers: Mapping[Identity, Provider]) -> None:
        await asyncio.gather(*(one.ended for one in self._leaving), return_exceptions=True)
        for one in providers.values():
            await one.close()

    async def exchange(self, down: Down) -> Up:
        """See `messages.Link.exchange`: answers as soon as there is something to report, or after a short while."""
        while self._reports and self._reports[0].number <= down.acknowledged:
            self._reports.popleft()
        self._freed.set()
        session = self._session
        if session is None or session.lease != down.lease or session.is_over:
            return Up(down.lease, self._unsent(), 0, {}, over=True)
        session.take(down)
        self._leaving = {one for one in self._leaving if not one.ended.done()}
        if not self._has_news:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LONG_POLL * down.linger):
                    await self._wake.wait()
        if self._has_news:
            await asyncio.sleep(down.linger)
        reports = self._unsent()
        session.renew()
        return Up(down.lease, reports, session.active, session.waiting(), over=False)

    @property
    def _has_news(self) -> bool:
        return bool(self._reports) and self._reports[-1].number > self._sent

    def _unsent(self) -> tuple[Numbered, ...]:
        self._wake.clear()
        found: list[Numbered] = []
        for one in reversed(self._reports):
            if one.number <= self._sent:
                break
            found.append(one)
        self._sent = self._numbered
        return tuple(reversed(found))

    def report(self, lease: int, one: Report) -> None:
        """Put something among what goes up with the next exchange."""
        self._numbered += 1
        self._reports.append(Numbered(self._numbered, lease, one))
        self._wake.set()

    async def acknowledged(self, number: int | None = None) -> None:
        """Wait until reports up to a number are on disk; None: until not too many wait for that."""
        while self.full if number is None else bool(self._reports) and self._reports[0].number <= number:
            self._freed.clear()
            await self._freed.wait()

    @property
    def last_number(self) -> int:
        """The number of the last report."""
        return self._numbered

    def number_call(self) -> int:
        """A number for a call, of all calls of this process."""
        self._calls += 1
        return self._calls

    @property
    def full(self) -> bool:
        """Whether too many reports wait for the coordinator's disk."""
        return len(self._reports) >= _MAX_UNACKNOWLEDGED


class _Session:
    """What an actor does under one lease."""

    def __init__(
        self, asker: Asker, lease: int, setup: Setup, providers: Mapping[Identity, Provider], clock: Clock
    ) -> None:
        self.asker, self.lease, self.setup, self.clock = asker, lease, setup, clock
        self.active = 0
        self.done: frozenset[int] = frozenset()
        self.silent: set[int] = set()
        """Respondents that are sent no further call, as the coordinator last said."""
        self.numbers = {judge.name: number for number, judge in setup.judges.items()}
        self.answers: dict[int, asyncio.Future[Grant]] = {}
        """Calls that wait for a permit."""
        self._last = False
        self._answered_at = clock.monotonic()
        """When the last exchange was answered: the coordinator's next one was sent after that."""
        self._valid_until = self._answered_at + setup.lease_seconds
        self.halted = asyncio.Event()
        self._nobody_left = asyncio.Event()
        observers = (self._emit,) if setup.events else ()
        self.events = Events(clock, observers)
        no_accounts = dict.fromkeys(setup.judges, BudgetView(()))  # money is the coordinator's
        self._trials = TrialRunner(setup.campaign, _ReportedEnds(self), no_accounts, clock, self.silent)
        self._lanes: dict[tuple[Identity, ...], Lane] = {}
        self._feeds: dict[tuple[Identity, ...], _Leased] = {}
        for judge in setup.judges.values():
            if judge.lane.identity not in self._lanes:
                self._lanes[judge.lane.identity] = self._open_lane(judge.lane, providers)
                self._feeds[judge.lane.identity] = _Leased(self)
        work = RoundWork(
            setup.judges,
            setup.prices,
            self._ask,
            self.halted,
            self._nobody_left,
            (),
            (),
            lambda respondent, why: None,
            lambda error: self.halt(),
        )
        lanes = [LaneWork(self._feeds[key], lane, lane.settings.workers) for key, lane in self._lanes.items()]
        self._engine = LocalEngine()
        self.ended = asyncio.create_task(self._engine.ask(work, lanes))
        self.ended.add_done_callback(self._failed)

    async def _ask(self, pending: PendingTrial, judge: JudgeSettings, lane: Lane, price: TokenPrice) -> None:
        """Ask a trial; one that is not asked to its end goes back."""
        self.active += 1
        try:
            await self._trials.ask(pending, judge, lane, price)
        except BaseException:  # cancellation too: whatever ends it here, others have to ask it
            self.report(Returned(pending.id))
            raise
        finally:
            self.active -= 1
            self.decide_if_idle()

    def _failed(self, task: asyncio.Task[None]) -> None:
        """A mistake in asking: what is leased goes back, and the coordinator ends the run for it."""
        if task.cancelled() or (error := task.exception()) is None:
            return
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        self.report(Broke(f"{type(error).__name__}: {error}"))
        self._valid_until = 0.0

    def report(self, one: Report) -> None:
        """Put something among what goes up with the next exchange."""
        self.asker.report(self.lease, one)

    @property
    def is_over(self) -> bool:
        """Whether the coordinator may have given this lease to somebody else."""
        return self.clock.monotonic() >= self._valid_until

    def renew(self) -> None:
        """An exchange is being answered: whoever sends the next one has that answer."""
        self._answered_at = self.clock.monotonic()

    def waiting(self) -> Mapping[tuple[Identity, ...], int]:
        """Trials that wait between two attempts, by lane."""
        return {key: lane.waiting for key, lane in self._lanes.items() if lane.waiting}

    def take(self, down: Down) -> None:
        """Take over what came down with an exchange, which makes the lease last longer."""
        self._valid_until = self._answered_at + self.setup.lease_seconds
        # This process, or the way to it, stood still: permits are of then, and would come on top of what is sent now.
        late = self.clock.monotonic() - self._answered_at > STALE_SECONDS + 10 * down.linger
        self.done = down.done
        self.silent.update(down.silent)
        for answer in down.answers:
            waiting = self.answers.pop(answer.call, None)
            if waiting is None or waiting.done():
                if isinstance(answer, Grant):
                    self.report(Withdrawn(answer.call))
            elif isinstance(answer, Grant):
                waiting.set_result(_TOO_LATE if late else answer)
            else:
                self._refuse(waiting, answer)
        for pending in down.trials:
            lane = self.setup.judges[pending.respondent].lane.identity
            if self._lanes[lane].closed is not None or self.halted.is_set():
                self.report(Returned(pending.id))
            else:
                self._feeds[lane].put(pending)
        if down.halt:
            self.halt()
        self._last = down.last
        self.decide_if_idle()

    def _refuse(self, waiting: asyncio.Future[Grant], answer: Refused) -> None:
        if answer.because == "budget":
            waiting.set_exception(BudgetReachedError(answer.why))
        elif answer.because == "closed":
            waiting.set_exception(LaneClosedError(answer.why))
        else:
            waiting.set_exception(StoreError(answer.why))  # the lane takes it for a run that is stopping

    def decide_if_idle(self) -> None:
        """Where nothing more comes and nothing is asked, decide on refusals that no answer has decided."""
        if self._last and not self.active and all(feed.empty for feed in self._feeds.values()):
            for lane in self._lanes.values():
                lane.decide_refusals()

    def halt(self) -> None:
        """Begin no call; those in flight end in their own time."""
        if self.halted.is_set():
            return
        self.halted.set()
        for feed in self._feeds.values():
            feed.give_back()
        self._engine.halt()

    def give_back(self, lane: tuple[Identity, ...]) -> None:
        """Return what of a lane was not begun."""
        if lane in self._feeds:  # not while the lanes are being opened
            self._feeds[lane].give_back()

    def _warn(self, sentence: str) -> None:
        self.report(Warned(sentence))

    def _emit(self, event: Event) -> None:
        self.report(Emitted(event.name, event.fields))

    def _open_lane(self, settings: LaneSettings, providers: Mapping[Identity, Provider]) -> Lane:
        routes = []
        for way in settings.routes:
            number = self.setup.routes[route_name(way)]
            gate = Gate(Limits(), self.clock, concurrency=settings.concurrency)  # limits are the coordinator's
            accepted = number in self.setup.accepted
            routes.append(Route(way, number, providers[way.identity], gate, self.clock, accepted=accepted))
        lane = Lane(
            settings,
            routes,
            ledger=_RemoteLedger(self),
            clock=self.clock,
            stopping=self.halted,
            lane_events=LaneEvents(lane_name(settings), self.events, self._warn),
            others_at_work=self._others_at_work,
        )
        lane.on_closing = partial(self._closed, settings.identity)
        return lane

    def _closed(self, lane: tuple[Identity, ...], why: str) -> None:
        """A lane takes no more calls: what of it was not begun goes back."""
        self.report(Closed(lane, why))
        self.give_back(lane)

    def _others_at_work(self) -> bool:
        return any(not one.routes.is_down and self.active for one in self._lanes.values())


class _Leased:
    """Trials of one lane that were leased and are not begun."""

    def __init__(self, session: _Session) -> None:
        self._session = session
        self._ready: deque[PendingTrial] = deque()
        self._takers: deque[asyncio.Future[None]] = deque()

    @property
    def empty(self) -> bool:
        """See `TrialSource.empty`."""
        return not self._ready

    def put(self, pending: PendingTrial) -> None:
        """Another trial to ask."""
        self._ready.append(pending)
        while self._takers:
            taker = self._takers.popleft()
            if not taker.done():
                taker.set_result(None)
                return

    async def take(self) -> PendingTrial | None:
        """See `TrialSource.take`; waits until there is one. Trials of judges that are asked no more go back."""
        while True:
            while not self._ready:
                taker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._takers.append(taker)
                try:
                    await taker
                except asyncio.CancelledError:
                    if taker.done() and not taker.cancelled():
                        self._pass_on()
                    raise
            pending = self._ready.popleft()
            if pending.respondent not in self._session.done:
                return pending
            self._session.report(Returned(pending.id))

    def _pass_on(self) -> None:
        """Somebody was woken for a trial and left."""
        while self._ready and self._takers:
            taker = self._takers.popleft()
            if not taker.done():
                taker.set_result(None)
                return

    def give_back(self) -> None:
        """Return all that was not begun."""
        while self._ready:
            self._session.report(Returned(self._ready.popleft().id))

    async def close(self) -> None:
        """See `TrialSource.close`."""
        self.give_back()


class _ReportedEnds:
    """Reports how trials ended; the coordinator puts that on record. See `TrialEnds`."""

    def __init__(self, session: _Session) -> None:
        self._session = session

    def conclude(
        self,
        pending: PendingTrial,
        judge: JudgeSettings,
        outcome: Outcome,
        cost: int,
        seconds: float,
        reply: Reply | None = None,
    ) -> None:
        """Report a trial as settled."""
        shown = reply if outcome.status is not Status.OK else None
        self._session.report(Settled(pending.id, outcome, seconds, shown))

    def fail(
        self, pending: PendingTrial, judge: JudgeSettings, step: int, fault: Fault, cost: int, seconds: float
    ) -> None:
        """Report a trial as failed."""
        self._session.report(Failed(pending.id, step, fault, seconds))


class _RemoteLedger:
    """The coordinator's ledger, as a lane of an actor has it: see `LaneLedger`.

    The coordinator reserves a call when it is announced there, so nothing is set aside here before that.
    """

    def __init__(self, session: _Session) -> None:
        self.counters = CallCounters()
        self._session, self._asker = session, session.asker
        self._handed_on: dict[int, Limits] = {}
        """The limits that were handed on last, by route."""

    def reservation(self, worst: Amount) -> Amount:
        """See `LaneLedger.reservation`; the coordinator raises it where calls have cost more."""
        return worst

    def reserve_now(self, attempt: Attempt) -> bool:
        """Whether not too many reports wait for the coordinator's disk."""
        return not self._asker.full

    async def reserve(self, attempt: Attempt) -> None:
        """Wait until fewer do."""
        await self._asker.acknowledged()

    async def announce(self, attempt: Attempt) -> None:
        """Wait for the coordinator's permit: it has then reserved, admitted and announced the call."""
        session, step, permit = self._session, attempt.step, attempt.permit
        assert permit is not None
        granted = await self._permit(attempt, permit.load)
        if session.is_over or session.halted.is_set():
            session.report(Withdrawn(granted.call))
            raise StoppedError
        attempt.slot, attempt.number, attempt.waited, attempt.reservation = granted
        step.attempts = granted.number
        step.tries += 1
        self.counters.sending.add(attempt.sender)
        attempt.sent_at = session.clock.wall()
        about = (step.trial, step.key, step.number, granted.number, attempt.lane, session.numbers[step.judge])
        self._asker.out[granted.call] = CallOut(*about, attempt.reservation, permit.load)

    async def _permit(self, attempt: Attempt, load: Load) -> Grant:
        """Ask the coordinator for a call until its answer has come in time."""
        session, step = self._session, attempt.step
        while True:
            number = self._asker.number_call()
            answer: asyncio.Future[Grant] = asyncio.get_running_loop().create_future()
            session.answers[number] = answer
            session.report(Ask(number, step.trial, step.number, attempt.lane, attempt.reservation, load))
            try:
                granted = await answer
            except asyncio.CancelledError:
                if session.answers.pop(number, None) is not None:
                    session.report(GaveUp(number))
                elif not answer.cancelled() and answer.exception() is None:  # its turn came at the same moment
                    session.report(Withdrawn(number))
                raise
            if granted is not _TOO_LATE:
                return granted
            session.report(Withdrawn(number))

    def release(self, attempt: Attempt) -> None:
        """See `LaneLedger.release`: the permit of this process."""
        if attempt.permit is not None and attempt.route is not None:
            attempt.route.gate.release(attempt.permit)

    def withdraw(self, attempt: Attempt) -> None:
        """See `LaneLedger.withdraw`."""
        assert attempt.slot is not None
        self.counters.sending.discard(attempt.sender)
        attempt.step.attempts -= 1
        attempt.step.tries -= 1
        del self._asker.out[attempt.slot]
        self._session.report(Withdrawn(attempt.slot))
        self.release(attempt)

    def settle(self, attempt: Attempt) -> None:
        """Report a call that has ended; what it says of limits is for the gates of the coordinator."""
        assert attempt.slot is not None
        assert attempt.permit is not None
        assert attempt.route is not None
        self.counters.sending.discard(attempt.sender)
        usage, (cost, tokens, doubt) = attempt.usage(), attempt.paid()
        attempt.route.gate.done(attempt.permit, None, None, replied=usage[2])
        out, record = self._asker.out.pop(attempt.slot), attempt_record(attempt, cost)
        self._session.report(Attempted(attempt.slot, out, record, usage, tokens, doubt))

    async def safe(self) -> None:
        """See `LaneLedger.safe`: on the coordinator's disk."""
        await self._asker.acknowledged(self._asker.last_number)

    def learn(self, route: Route, limits: Limits, hold: float) -> None:
        """Hand the limits in an answer's headers on."""
        if hold > 0 or limits != self._handed_on.get(route.number):
            self._handed_on[route.number] = limits
            self._session.report(Learnt(route.number, limits, hold))
