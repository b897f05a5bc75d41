"""The coordinator's side of a campaign that several processes ask: leases, leave for calls, and what is put on record.

Trials go out under leases. A call is sent only with leave: its highest price is reserved, its route's gate has let it
pass, and it is announced on disk, as for a call of this process. So limits and budgets hold over all actors, and what
a lost actor had in flight is known exactly. A lease ends when its actor is lost or silent for too long; its trials are
asked elsewhere at once, while its calls in flight stay reserved: *in doubt* until they are reported after all, or until
their process is known to be gone, and they count as unanswered.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Protocol
from uuid import uuid4

import numpy as np

from venire.arena.campaigns import CampaignSettings, Identity, JudgeSettings
from venire.arena.clock import Clock
from venire.arena.errors import BudgetReachedError, Fault, InputError, StoreError
from venire.judges.providers.base import Provider
from venire.judges.providers.replay import REPLAY
from venire.orchestrator.engines.local import LocalEngine
from venire.orchestrator.engines.messages import (
    STALE_SECONDS,
    Ask,
    Attempted,
    Begun,
    CallOut,
    Closed,
    Down,
    Emitted,
    Failed,
    GaveUp,
    Grant,
    Learnt,
    Link,
    LinkLostError,
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
from venire.orchestrator.engines.work import LaneWork, RoundWork, TrialSource
from venire.orchestrator.lanes.calls import Attempt, Step
from venire.orchestrator.lanes.lane import Lane
from venire.orchestrator.lanes.ledger import CallLedger
from venire.orchestrator.lanes.routes import Route
from venire.orchestrator.recording.ending import LeaseLosses
from venire.orchestrator.recording.events import Events
from venire.storage.plans.trial_states import PendingTrial, load

__all__ = ["LEASE_SECONDS", "Crew", "RemoteEngine"]

LEASE_SECONDS = 10.0
"""Without an answer for so long an actor's trials are asked by others."""
_RETRY_SECONDS = 0.5
"""Between two attempts to reach an actor that was lost."""
_SILENCE, _PATIENCE = 15.0, 120.0
"""Seconds without any actor after which that is said, and after which the lanes close."""
_GIVEN_UP = 6
"""Leases after which an actor that stays silent is ended."""
_LATE = 10_000
"""Numbers of late answers are above the next multiple of this: the reply of a step is the lowest that is answered."""
_AHEAD = 1.25
"""Trials leased to an actor, for each call in flight that is its share."""
_MIN_AHEAD = 4
_LINGER, _EXCHANGES = 0.005, 1_000.0
"""Seconds for which reports wait for more at least, and exchanges a second that one coordinator makes at most."""
_LOST = "the actor that sent it was lost before its answer was reported"

LaneKey = tuple[Identity, ...]
OpenProviders = Callable[[], Sequence[tuple[Identity, Provider]]]


@dataclass(slots=True, eq=False)
class _LeasedTrial:
    """A trial that is leased, or on its way to another lease."""

    pending: PendingTrial
    judge: JudgeSettings
    lane: Lane
    steps: dict[int, Step] = field(default_factory=dict)
    """What was asked of it in this run, by number; `pending` says what was on record before."""
    holder: tuple[_Actor, int] | None = None
    """Who has it, and under which lease."""
    doubts: set[_Out] = field(default_factory=set)
    """Calls of lost leases that may still be reported: its verdict waits, since it names the cost of all calls."""
    end: Settled | Failed | None = None
    late: int = 0
    """Late answers so far."""

    def step(self, number: int) -> Step:
        """A step with the attempts that it has so far."""
        if number not in self.steps:
            one = self.pending
            self.steps[number] = Step(one.id, one.key, number, one.attempts.get(number, 0), judge=self.judge.name)
        return self.steps[number]

    @property
    def attempts(self) -> Mapping[int, int]:
        """The highest number of an attempt, by step."""
        return {**self.pending.attempts, **{number: step.attempts for number, step in self.steps.items()}}

    @property
    def cost(self) -> int:
        """Nano-dollars of all its calls on record and handed to the recorder."""
        return self.pending.cost + sum(step.cost for step in self.steps.values())

    def late_number(self, step: int) -> int:
        """A number for another late answer to a step."""
        self.late += 1
        return (max(self.step(step).attempts, 1) // _LATE + 1) * _LATE + self.late


@dataclass(slots=True, eq=False)
class _Out:
    """A call that has a permit."""

    attempt: Attempt
    ledger: CallLedger
    of: _LeasedTrial | None
    """None: the call was sent for a coordinator that is gone."""


@dataclass(slots=True, eq=False)
class _Actor:
    """What the coordinator knows of one actor."""

    link: Link
    process: str | None = None
    lease: int = 0
    """0: it has none."""
    seen: int = 0
    """The number of its last report that was taken in."""
    acknowledged: int = 0
    places: deque[tuple[int, int]] = field(default_factory=deque)
    """Numbers of reports, and how many rows the recorder had been handed by then."""
    leased: dict[LaneKey, set[int]] = field(default_factory=dict)
    waiting: Mapping[LaneKey, int] = field(default_factory=dict)
    out: dict[int, _Out] = field(default_factory=dict)
    on_disk: set[int] = field(default_factory=set)
    """Calls whose attempt a coordinator that is gone had stored, and not acknowledged."""
    asking: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    """Calls that wait for leave."""
    answers: list[Grant | Refused] = field(default_factory=list)
    closed: dict[LaneKey, str] = field(default_factory=dict)
    idle: bool = False
    """Whether it asks nothing, and knows that it may not."""
    silent_since: float | None = None
    """When its last lease ended without a new one."""
    answered_at: float = 0.0
    """When it last answered."""
    news: asyncio.Event = field(default_factory=asyncio.Event)
    """Set whenever it answers."""

    @property
    def name(self) -> str:
        return self.link.name


class Crew(Protocol):
    """Who asks for a store elsewhere; see `ray_actors.RayCrew`."""

    @property
    def under_way(self) -> frozenset[tuple[int, int, int]]:
        """Trial, step and number of every call that was sent for a coordinator which is gone, and is not lost."""
        ...

    def engine(
        self,
        store_id: bytes,
        campaign: CampaignSettings,
        open_providers: OpenProviders,
        *,
        clock: Clock,
        events: Events,
        warn: Callable[[str], None] | None,
    ) -> RemoteEngine:
        """The engine that has them ask."""
        ...


class RemoteEngine:
    """Has actors ask the trials of a run; see `Engine`.

    `survivors` are actors that asked for a coordinator which is gone, with what they said when they were told to stand
    by. `open_providers` opens the routes in an actor's process. Judges whose answers are recorded are asked here.

    Raises InputError from `ask` where an actor cannot ask the campaign's judges: a key is missing there, for example.
    """

    def __init__(
        self,
        links: Sequence[Link],
        campaign: CampaignSettings,
        open_providers: OpenProviders,
        *,
        clock: Clock,
        events: Events,
        warn: Callable[[str], None] | None = None,
        lease_seconds: float = LEASE_SECONDS,
        survivors: Mapping[Link, Begun] | None = None,
    ) -> None:
        self.actors = [_Actor(link) for link in links]
        self.campaign, self.open_providers = campaign, open_providers
        self.clock, self.events, self.lease_seconds = clock, events, lease_seconds
        self.losses = LeaseLosses()
        self.survivors = dict(survivors or {})
        self._warn = warn or (lambda sentence: None)
        self._said: set[str] = set()
        self._lease = time.time_ns() // 1_000  # above those of a coordinator before this one
        self.identity = uuid4().hex
        self._here = LocalEngine()
        self._round: _Round | None = None

    async def ask(self, work: RoundWork, lanes: Sequence[LaneWork]) -> None:
        """See `Engine.ask`."""
        here = [one for one in lanes if one.lane.settings.routes[0].provider == REPLAY]
        there = [one for one in lanes if one not in here]
        async with asyncio.TaskGroup() as group:
            if here:
                group.create_task(self._here.ask(work, here))
            if there or self.survivors:
                self._round = _Round(self, work, there)
                group.create_task(self._round.run())

    def halt(self) -> None:
        """See `Engine.halt`."""
        self._here.halt()
        if self._round is not None:
            self._round.halt()

    def next_lease(self) -> int:
        """A number above those of all leases before."""
        self._lease += 1
        return self._lease

    def warn(self, sentence: str) -> None:
        """Say something once to the person at the terminal, however many actors say it."""
        if sentence not in self._said:
            self._said.add(sentence)
            self._warn(sentence)

    async def close(self) -> None:
        """End all actors."""
        await asyncio.gather(*(one.link.kill() for one in self.actors), return_exceptions=True)


class _Stock:
    """What one lane has left for actors: what its feed hands out, and trials that came back."""

    def __init__(self, of: _Round, feed: TrialSource, lane: Lane) -> None:
        self.lane, self._feed, self._round = lane, feed, of
        self.key: LaneKey = lane.settings.identity
        self._back: deque[int] = deque()
        self._loaded: deque[PendingTrial] = deque()
        self._turn = asyncio.Lock()
        self._loading = 0
        """Trials that are being read anew."""
        self._fed = True

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left, as far as is known."""
        work = self._round.work
        if self.lane.closed is not None or work.nobody_left.is_set():
            return True
        return not (self._fed or self._back or self._loading or self._loaded)

    def put_back(self, trial: int) -> None:
        """A trial is to be leased again, with what is on record by then."""
        self._back.append(trial)

    async def next(self) -> PendingTrial | None:
        """The next trial; None where there is none now."""
        async with self._turn:
            while not self.is_empty:
                if not self._loaded and self._back:
                    await self._load()
                if self._loaded:
                    pending: PendingTrial | None = self._loaded.popleft()
                else:
                    pending = await self._take()
                if pending is None:
                    self._fed = False
                elif pending.respondent in self._round.work.done_asking:
                    self._round.forget(pending.id)
                elif pending.id not in self._round.away:
                    return pending
                else:
                    self._round.away[pending.id].append(self)
        return None

    async def _take(self) -> PendingTrial | None:
        try:
            return await self._feed.take() if self._fed else None
        except StoreError as error:
            self._round.work.store_failed(error)
            return None

    async def _load(self) -> None:
        """Read what came back anew, once all that is known of it is on disk."""
        account = self._round.account
        trials = np.array(sorted(set(self._back)), dtype=np.int64)
        self._back.clear()
        self._loading = len(trials)
        await account.recorder.safe()
        loop = asyncio.get_running_loop()
        self._loaded.extend(await loop.run_in_executor(None, load, account.store, trials))
        self._loading = 0


class _Round:
    """One round under way."""

    def __init__(self, engine: RemoteEngine, work: RoundWork, lanes: Sequence[LaneWork]) -> None:
        assert work.account is not None
        self.engine, self.work, self.account = engine, work, work.account
        self.stocks = {one.lane.settings.identity: _Stock(self, one.feed, one.lane) for one in lanes}
        self.lanes = {key: stock.lane for key, stock in self.stocks.items()}
        self.routes = {route.number: (lane, route) for lane in self.lanes.values() for route in lane.routes.all}
        self.trials: dict[int, _LeasedTrial] = {}
        self.away: dict[int, list[_Stock]] = {}
        """Trials with a call that a coordinator which is gone had under way, and who waits to hand them out."""
        self._finished = asyncio.Event()
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Ends with what went wrong in granting a call, if anything did."""
        self._said_none = False
        self._began = engine.clock.monotonic()
        used = {number: judge for number, judge in work.judges.items() if judge.lane.identity in self.stocks}
        self.setup = Setup(
            engine.campaign,
            used,
            {judge.name: work.prices[judge.name] for judge in used.values()},
            {route.name: route.number for _, route in self.routes.values()},
            frozenset(route.number for _, route in self.routes.values() if route.refusals.accepted),
            engine.open_providers,
            engine.lease_seconds,
            version("venire"),
            engine.identity,
            events=engine.events.active,
        )

    async def run(self) -> None:
        """Serve all actors until nothing is left or there is a reason to stop."""
        for actor in self.engine.actors:
            actor.closed.clear()
            actor.idle = False
            if actor.places:  # of the round before, all of which is on disk
                actor.acknowledged = actor.places[-1][0]
                actor.places.clear()
            if (begun := self.engine.survivors.pop(actor.link, None)) is not None:
                await self._adopt(actor, begun)
        serving = {asyncio.create_task(self._serve(actor)) for actor in self.engine.actors}
        serving.add(asyncio.create_task(self._watch()))
        serving.add(asyncio.create_task(self._fail()))
        finished = asyncio.create_task(self._finished.wait())
        try:
            self._look()
            while not finished.done():
                done, _ = await asyncio.wait({finished, *serving}, return_when=asyncio.FIRST_COMPLETED)
                for task in done & serving:
                    task.result()  # raises what went wrong
        finally:
            for task in (finished, *serving):
                task.cancel()
            await asyncio.gather(finished, *serving, return_exceptions=True)
            await self._wind_up()

    def halt(self) -> None:
        """Let calls in flight come in, and grant no other."""
        for actor in self.engine.actors:
            self._stop_asking(actor, "the run is stopping")
        self._look()

    async def _fail(self) -> None:
        await self._failure

    async def _watch(self) -> None:
        """Give up where no actor answers for long."""
        while True:
            await self.engine.clock.sleep(_RETRY_SECONDS)
            now = self.engine.clock.monotonic()
            silent = [one.silent_since for one in self.engine.actors]
            since = [self._began if at is None else at for at in silent]
            silence = now - max(since) if all(not one.lease for one in self.engine.actors) else 0.0
            if silence > _SILENCE and not self._said_none:
                self._said_none = True
                self.engine.warn(f"no actor of the cluster answers: waiting for one, {_PATIENCE:.0f} s at most")
            if silence > _PATIENCE:
                self.engine.losses.gave_up = True
                for lane in self.lanes.values():
                    lane.close(f"no actor of the cluster has answered for {_PATIENCE:.0f} s (see `ray status`)")
            self._look()

    # --- one actor ------------------------------------------------------------------------------------------------

    async def _serve(self, actor: _Actor) -> None:
        while True:
            lease = self.engine.next_lease()
            try:
                begun = await actor.link.begin(lease, self.setup)
            except LinkLostError:
                await self.engine.clock.sleep(_RETRY_SECONDS)
                continue
            except InputError as error:
                if actor.process is None:
                    raise
                self.engine.warn(f"warning: actor {actor.name} came back where it cannot ask: {error}")
                return
            self._begin(actor, lease, begun)
            await self._exchange(actor)

    def _begin(self, actor: _Actor, lease: int, begun: Begun) -> None:
        """Take up a lease: what another process of this actor had in flight is lost."""
        if actor.process not in (None, begun.process):
            self._bury(actor)
            actor.seen = actor.acknowledged = 0
            actor.places.clear()
            actor.on_disk.clear()
        actor.process, actor.lease, actor.silent_since = begun.process, lease, None
        self._note_answer(actor)
        reported = begun.out.keys() | {one.call for one in begun.unacknowledged}
        for call in [call for call in actor.out if call not in reported]:
            self._withdraw(actor, call)  # its leave did not come in time, and is not heeded any more

    async def _exchange(self, actor: _Actor) -> None:
        """Exchange until the lease is over."""
        while True:
            down = await self._compose(actor)
            answer = asyncio.create_task(actor.link.exchange(down))
            try:
                done, _ = await asyncio.wait({answer}, timeout=self.engine.lease_seconds)
                if not done:
                    self._suspend(actor, f"has not answered for {self.engine.lease_seconds:.0f} s")
                    await asyncio.wait({answer}, timeout=_GIVEN_UP * self.engine.lease_seconds)
                    if not answer.done():
                        await actor.link.kill()  # another process takes its place, and its calls are unanswered then
                        return
                up = await answer
            except LinkLostError as error:
                self._suspend(actor, str(error))
                return
            finally:
                answer.cancel()
            self._receive(actor, up)
            if not actor.lease or up.over:
                self._suspend(actor, "had no lease any more")
                return
            actor.waiting = up.waiting
            actor.idle = down.halt and not up.active and not actor.out
            self._look()
            await asyncio.sleep(0)  # calls that need not wait get their leave now, and it goes down at once

    async def _compose(self, actor: _Actor) -> Down:
        """Lease more trials to an actor, and say what became of its calls and reports."""
        work = self.work
        trials: list[PendingTrial] = []
        if not work.halt.is_set():
            for key, stock in self.stocks.items():
                leased = actor.leased.setdefault(key, set())
                wanted = self._share(actor, stock.lane) + actor.waiting.get(key, 0) - len(leased)
                while wanted > 0 and key not in actor.closed and (pending := await stock.next()) is not None:
                    trials.append(self._lease(actor, stock, pending))
                    wanted -= 1
        written = self.account.recorder.written
        while actor.places and actor.places[0][1] <= written:
            actor.acknowledged = actor.places.popleft()[0]
        answers, actor.answers = tuple(actor.answers), []
        return Down(
            actor.lease,
            actor.acknowledged,
            tuple(trials),
            answers,
            frozenset(work.done_asking),
            frozenset(work.unreadable),
            all(one.is_empty for one in self.stocks.values()),
            work.halt.is_set(),
            self._linger,
        )

    def _share(self, actor: _Actor, lane: Lane) -> int:
        """Trials that an actor may have at once: its part of the calls in flight, and some ahead."""
        others = sum(1 for one in self.engine.actors if one.lease and lane.settings.identity not in one.closed)
        return math.ceil(_AHEAD * lane.settings.workers / max(1, others)) + _MIN_AHEAD

    def _lease(self, actor: _Actor, stock: _Stock, pending: PendingTrial) -> PendingTrial:
        trial = self.trials.get(pending.id)
        if trial is None:
            judge = self.work.judges[pending.respondent]
            trial = self.trials[pending.id] = _LeasedTrial(pending, judge, stock.lane)
        trial.holder = (actor, actor.lease)
        actor.leased[stock.key].add(pending.id)
        stock.lane.elsewhere += 1
        return pending._replace(attempts=trial.attempts, cost=trial.cost)

    def _suspend(self, actor: _Actor, why: str) -> None:
        """End a lease: its trials go to others, its calls in flight are in doubt."""
        if not actor.lease:
            return
        actor.lease, actor.silent_since = 0, self.engine.clock.monotonic()
        self._stop_asking(actor, why)
        actor.answers.clear()
        for one in actor.out.values():
            self._doubt(one)
        leased = [number for numbers in actor.leased.values() for number in numbers]
        if leased or actor.out:
            self.engine.losses.leases += 1
            detail = {"actor": actor.name, "why": why, "trials": len(leased), "calls": len(actor.out)}
            self.account.recorder.event(self.engine.clock.wall(), "lease lost", json.dumps(detail))
            self.engine.warn(
                f"warning: actor {actor.name} {why}: others ask what it had (trials: {len(leased):,}; calls in flight: "
                f"{len(actor.out):,})"
            )
        for number in leased:
            self._take_back(self.trials[number])
        self._look()

    def _doubt(self, one: _Out) -> None:
        """Wait for a call no longer."""
        one.ledger.park(one.attempt)
        if one.of is not None:
            one.of.doubts.add(one)

    def _take_back(self, trial: _LeasedTrial) -> None:
        """Have a trial leased again, unless its judge is asked no more."""
        self._let_go(trial)
        if not self.work.halt.is_set() and trial.pending.respondent not in self.work.done_asking:
            self.stocks[trial.lane.settings.identity].put_back(trial.pending.id)
        elif not trial.doubts:
            self.trials.pop(trial.pending.id, None)

    def _let_go(self, trial: _LeasedTrial) -> None:
        assert trial.holder is not None
        actor, _ = trial.holder
        actor.leased[trial.lane.settings.identity].discard(trial.pending.id)
        trial.holder = None
        trial.lane.elsewhere -= 1

    def forget(self, number: int) -> None:
        """A trial is not asked any more in this run."""
        trial = self.trials.get(number)
        if trial is not None and not trial.doubts:
            del self.trials[number]

    # --- reports --------------------------------------------------------------------------------------------------

    def _note_answer(self, actor: _Actor) -> None:
        actor.answered_at = self.engine.clock.monotonic()
        actor.news.set()
        actor.news = asyncio.Event()

    def _receive(self, actor: _Actor, up: Up) -> None:
        self._note_answer(actor)
        for one in up.reports:
            if one.number <= actor.seen:
                continue
            actor.seen = one.number
            self._take(actor, one)
            actor.places.append((one.number, self.account.recorder.handed))

    def _take(self, actor: _Actor, numbered: Numbered) -> None:
        report: Report = numbered.report
        match report:
            case Ask():
                self._asked(actor, numbered.lease, report)
            case Attempted():
                self._attempted(actor, report)
            case Settled() | Failed():
                self._ended(actor, numbered.lease, report)
            case Returned():
                trial = self._held(actor, numbered.lease, report.trial)
                if trial is not None:
                    self._take_back(trial)
            case GaveUp():
                self._give_up(actor, report.call)
            case Withdrawn():
                self._withdraw(actor, report.call)
            case Learnt():
                lane, route = self.routes[report.lane]
                lane.learn(route, report.limits, report.hold)
            case Closed():
                self._closed(actor, report)
            case Warned():
                self.engine.warn(report.sentence)
            case Emitted():
                if self.engine.events.active:
                    self.engine.events.emit(report.name, **report.fields)

    def _held(self, actor: _Actor, lease: int, number: int) -> _LeasedTrial | None:
        """A trial that an actor has under a lease; None where it went to another."""
        trial = self.trials.get(number)
        return trial if trial is not None and trial.holder == (actor, lease) else None

    def _closed(self, actor: _Actor, report: Closed) -> None:
        actor.closed[report.lane] = report.why
        lane = self.lanes[report.lane]
        if all(report.lane in one.closed for one in self.engine.actors if one.lease):
            lane.close(report.why)
        else:
            self.engine.warn(f"warning: actor {actor.name} asks {lane.routes.all[0].name} no more: {report.why}")

    def _ended(self, actor: _Actor, lease: int, report: Settled | Failed) -> None:
        trial = self._held(actor, lease, report.trial)
        if trial is None:
            return
        self._let_go(trial)
        trial.end = report
        if not trial.doubts:
            self._conclude(trial)

    def _conclude(self, trial: _LeasedTrial) -> None:
        """Put a trial on record, at the cost of all its calls."""
        end, trials = trial.end, self.work.trials
        del self.trials[trial.pending.id]
        if isinstance(end, Settled):
            trials.conclude(trial.pending, trial.judge, end.outcome, trial.cost, end.seconds, end.reply)
        elif end is not None:
            trials.fail(trial.pending, trial.judge, end.step, end.fault, trial.cost, end.seconds)

    # --- calls ----------------------------------------------------------------------------------------------------

    def _asked(self, actor: _Actor, lease: int, ask: Ask) -> None:
        trial = self._held(actor, lease, ask.trial)
        lane, route = self.routes[ask.lane]
        if trial is None or self.work.halt.is_set():
            actor.answers.append(Refused(ask.call, "stopped", "the run is stopping"))
        elif lane.closed is not None:
            actor.answers.append(Refused(ask.call, "closed", lane.closed))
        else:
            task = asyncio.create_task(self._grant(actor, lane, route, trial, ask))
            actor.asking[ask.call] = task
            task.add_done_callback(lambda task: self._granted(actor, ask.call, task))

    def _granted(self, actor: _Actor, call: int, task: asyncio.Task[None]) -> None:
        actor.asking.pop(call, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            actor.answers.append(Refused(call, "stopped", "the run is stopping"))
            if isinstance(error, StoreError):
                self.work.store_failed(error)
            elif not self._failure.done():
                self._failure.set_exception(error)

    async def _grant(self, actor: _Actor, lane: Lane, route: Route, trial: _LeasedTrial, ask: Ask) -> None:
        """Reserve, admit and announce a call as its lane would here."""
        ledger, respondent = self.account.ledgers[lane.settings.identity], trial.pending.respondent
        attempt = Attempt(
            trial.step(ask.step),
            self.account.budgets[respondent],
            ledger.reservation(ask.reservation.money, ask.reservation.tokens),
            sender=object(),
            lane=ask.lane,
            route=route,
        )
        await ledger.room()
        try:
            await ledger.reserve(attempt)
        except BudgetReachedError as error:
            self.work.cannot_pay(respondent, str(error))
            actor.answers.append(Refused(ask.call, "budget", str(error)))
            return
        try:
            attempt.permit = route.gate.take_now(ask.load) or await route.gate.take(ask.load)
            while self._is_stale(actor):  # permits that wait for an actor would be used all at once when it is back
                route.gate.release(attempt.permit)
                attempt.permit = None
                await actor.news.wait()
                attempt.permit = await route.gate.take(ask.load)
            if route.gate.throttler is not None:
                await route.gate.throttler.acquire()
            attempt.waited = attempt.permit.waited
            await ledger.announce(attempt)
        except BaseException:  # cancellation too: what is not sent stays reserved nowhere
            ledger.release(attempt)
            raise
        actor.out[ask.call] = _Out(attempt, ledger, trial)
        actor.answers.append(Grant(ask.call, attempt.number, attempt.waited))

    def _is_stale(self, actor: _Actor) -> bool:
        """Whether an actor has not been heard of for longer than an exchange takes."""
        return self.engine.clock.monotonic() - actor.answered_at > STALE_SECONDS + 10 * self._linger

    @property
    def _linger(self) -> float:
        """Seconds for which reports may wait for more."""
        return max(_LINGER, min(len(self.engine.actors) / _EXCHANGES, self.engine.lease_seconds / 10))

    def _give_up(self, actor: _Actor, call: int) -> None:
        """A call wants leave no more; where it has it by now, it says so once the leave has come."""
        if (task := actor.asking.get(call)) is not None:
            task.cancel()

    def _stop_asking(self, actor: _Actor, why: str) -> None:
        for call, task in list(actor.asking.items()):
            task.cancel()
            actor.answers.append(Refused(call, "stopped", why))

    def _withdraw(self, actor: _Actor, call: int) -> None:
        """A call had a permit and was not sent: everything is given back."""
        if (one := actor.out.pop(call, None)) is not None:
            one.ledger.withdraw(one.attempt)
            self._resolved(one)

    def _attempted(self, actor: _Actor, report: Attempted) -> None:
        """A call has ended: pay for it and put it on record."""
        one = actor.out.pop(report.call, None)
        if one is None:
            return  # it is on disk, and was not acknowledged in time
        attempt, reserved, losses = one.attempt, one.attempt.reservation, self.engine.losses
        if attempt.in_doubt and report.record.reply is not None:
            losses.late += 1
            losses.late_cost += reserved.money if report.record.cost is None else report.record.cost
            if one.of is not None:
                # Whoever asks this step now, or will, has a lower number: its reply is what the verdict rests on.
                one.ledger.renumber(attempt, one.of.late_number(attempt.step.number))
        record = report.record._replace(number=attempt.number, reserved=reserved.money, reserved_tokens=reserved.tokens)
        one.ledger.enter(attempt, record, report.usage, report.tokens, report.doubt)
        if attempt.lane in self.routes and record.fault is Fault.RATE_LIMITED:
            lane, route = self.routes[attempt.lane]
            lane.heed_hold(route)
        self._resolved(one)

    def _bury(self, actor: _Actor) -> None:
        """The process that had these calls in flight is gone: they count as unanswered, at their highest price."""
        out, actor.out = actor.out, {}
        for one in out.values():
            self.engine.losses.calls += 1
            self.engine.losses.reserved += one.attempt.reservation.money
            one.attempt.lost = _LOST
            one.ledger.settle(one.attempt)
            self._resolved(one)

    def _resolved(self, one: _Out) -> None:
        """What became of a call is known: whoever waited for that goes on."""
        trial = one.of
        if trial is None:
            number = one.attempt.step.trial
            for stock in self.away.pop(number, ()):
                stock.put_back(number)
            return
        trial.doubts.discard(one)
        if trial.end is not None and not trial.doubts:
            self._conclude(trial)

    # --- beginning and end ------------------------------------------------------------------------------------------

    async def _adopt(self, actor: _Actor, begun: Begun) -> None:
        """Go on with what an actor has of a coordinator that is gone: calls in flight, and answers not on disk."""
        actor.process = begun.process
        said = {one.call: one for one in begun.unacknowledged}
        trials = sorted({one.record.trial for one in said.values()} | {one.trial for one in begun.out.values()})
        sent = {tuple(row) for row in self.account.store.read("attempts_sent", trials=trials)}
        for call, one in said.items():
            record = one.record
            if (record.trial, record.step, record.sent_at) in sent:
                actor.on_disk.add(call)
                continue
            await self._take_over(actor, call, one.out._replace(load=None))
        for call, under_way in begun.out.items():
            await self._take_over(actor, call, under_way)

    async def _take_over(self, actor: _Actor, call: int, under_way: CallOut) -> None:
        account = self.account
        known = account.store.read("attempts_of", trials=[under_way.trial])
        numbers, number = {number for _, step, number in known if step == under_way.step}, under_way.number
        if number in numbers:  # another command has opened the store meanwhile, and took it for unanswered
            number = max(numbers) + 1
        judge = self.work.judges.get(under_way.respondent)
        lane, route = self.routes.get(under_way.lane, (None, None))
        ledger = account.other_calls if lane is None else account.ledgers[lane.settings.identity]
        attempt = Attempt(
            Step(under_way.trial, under_way.key, under_way.step, number - 1, judge="" if judge is None else judge.name),
            account.budgets[under_way.respondent],
            under_way.reservation,
            sender=object(),
            lane=under_way.lane,
            route=route,
        )
        await ledger.adopt(attempt, under_way.load)
        actor.out[call] = _Out(attempt, ledger, None)
        self.away.setdefault(under_way.trial, [])

    async def _wind_up(self) -> None:
        """Leave nothing open behind: what is in doubt counts as unanswered, and whoever may still report it ends."""
        for actor in self.engine.actors:
            for task in list(actor.asking.values()):
                task.cancel()
            await asyncio.gather(*actor.asking.values(), return_exceptions=True)
            unresolved = bool(actor.out)
            self._bury(actor)
            for number in [number for numbers in actor.leased.values() for number in numbers]:
                self._let_go(self.trials[number])
            actor.lease = 0
            actor.answers.clear()
            if unresolved:
                await actor.link.kill()

    def _look(self) -> None:
        """Whether the round is over."""
        if self.work.halt.is_set():
            over = all(not one.lease or one.idle for one in self.engine.actors)
        else:
            held = any(one.holder is not None for one in self.trials.values())
            over = not held and not self.away and all(one.is_empty for one in self.stocks.values())
        if over:
            self._finished.set()
