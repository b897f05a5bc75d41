"""The coordinator's side of a campaign that several processes ask: it exchanges trials and reports with its actors.

Which actor asks what is in `leases`, permission for calls in `permits`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Protocol
from uuid import uuid4

from venire.arena.campaigns import CampaignSettings, Identity
from venire.arena.clock import Clock
from venire.arena.errors import InputError, VenireError
from venire.judges.providers.base import Provider
from venire.judges.providers.replay import REPLAY
from venire.orchestrator.engines.leases import Actor, Leases
from venire.orchestrator.engines.local import LocalEngine
from venire.orchestrator.engines.messages import (
    STALE_SECONDS,
    Ask,
    Attempted,
    Begun,
    Broke,
    Closed,
    Down,
    Emitted,
    Failed,
    GaveUp,
    Learnt,
    Link,
    LinkLostError,
    Numbered,
    Report,
    Returned,
    Settled,
    Setup,
    Up,
    Warned,
    Withdrawn,
)
from venire.orchestrator.engines.permits import CallPermits
from venire.orchestrator.engines.work import LaneWork, RoundWork
from venire.orchestrator.recording.ending import LeaseLosses
from venire.orchestrator.recording.events import Events

LEASE_SECONDS = 10.0
"""Without an answer for so long an actor's trials are asked by others."""
_RETRY_SECONDS = 0.5
"""Between two attempts to reach an actor that was lost."""
_SILENCE, _PATIENCE = 15.0, 120.0
"""Seconds without any actor after which that is said, and after which the lanes close."""
_GIVEN_UP = 6
"""Leases after which an actor that stays silent is ended."""
_LINGER, _EXCHANGES = 0.005, 1_000.0
"""Seconds for which reports wait for more at least, and exchanges a second that one coordinator makes at most."""
OpenProviders = Callable[[], Sequence[tuple[Identity, Provider]]]


class Crew(Protocol):
    """Who asks for a store elsewhere; see `ray_actors.RayCrew`."""

    @property
    def description(self) -> str:
        """How many there are, and where, for a screen."""
        ...

    @property
    def options(self) -> str:
        """The options of a command that has them ask."""
        ...

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
        self.actors = [Actor(link=link) for link in links]
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


class _Round:
    """One round under way."""

    def __init__(self, engine: RemoteEngine, work: RoundWork, lanes: Sequence[LaneWork]) -> None:
        assert work.account is not None
        self.engine, self.work, self.account = engine, work, work.account
        self.leases = Leases(work, lanes, engine.actors)
        self.lanes = {one.lane.settings.identity: one.lane for one in lanes}
        self.routes = {route.number: (lane, route) for lane in self.lanes.values() for route in lane.routes.all}
        self._linger = max(_LINGER, min(len(engine.actors) / _EXCHANGES, engine.lease_seconds / 10))
        """Seconds for which reports may wait for more."""
        self.permits = CallPermits(
            work,
            self.routes,
            clock=engine.clock,
            losses=engine.losses,
            stale_seconds=STALE_SECONDS + 10 * self._linger,
            resolved=self.leases.resolved,
        )
        self._finished = asyncio.Event()
        self._said_none = False
        self._began = engine.clock.monotonic()
        used = {number: judge for number, judge in work.judges.items() if judge.lane.identity in self.lanes}
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
                actor.process = begun.process
                for trial in await self.permits.adopt(actor, begun):
                    self.leases.away.setdefault(trial, [])
        serving = {asyncio.create_task(self._serve(actor)) for actor in self.engine.actors}
        serving.add(asyncio.create_task(self._watch()))
        serving.add(asyncio.create_task(self.permits.failed()))
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
            self.permits.refuse_all(actor, "the run is stopping")
        self._look()

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

    async def _serve(self, actor: Actor) -> None:
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

    def _begin(self, actor: Actor, lease: int, begun: Begun) -> None:
        """Take up a lease: what another process of this actor had in flight is lost."""
        if actor.process not in (None, begun.process):
            self.permits.bury(actor)
            actor.seen = actor.acknowledged = 0
            actor.places.clear()
        actor.process, actor.lease, actor.silent_since = begun.process, lease, None
        self._note_answer(actor)
        reported = begun.out.keys() | {one.call for one in begun.unacknowledged}
        for call in [call for call in actor.out if call not in reported]:
            self.permits.withdraw(actor, call)  # its permit did not come in time, and is not heeded any more

    async def _exchange(self, actor: Actor) -> None:
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
            await asyncio.sleep(0)  # calls that need not wait get their permits now, which go down at once

    async def _compose(self, actor: Actor) -> Down:
        """Lease more trials to an actor, and say what became of its calls and reports."""
        work = self.work
        trials = [] if work.halt.is_set() else await self.leases.lease(actor)
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
            self.leases.is_empty,
            work.halt.is_set(),
            self._linger,
        )

    def _suspend(self, actor: Actor, why: str) -> None:
        """End a lease: its trials go to others, its calls in flight are in doubt."""
        if not actor.lease:
            return
        actor.lease, actor.silent_since = 0, self.engine.clock.monotonic()
        self.permits.refuse_all(actor, why)
        actor.answers.clear()
        self.permits.doubt(actor)
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
            self.leases.take_back(self.leases.trials[number])
        self._look()

    # --- reports --------------------------------------------------------------------------------------------------

    def _note_answer(self, actor: Actor) -> None:
        actor.answered_at = self.engine.clock.monotonic()
        actor.news.set()
        actor.news = asyncio.Event()

    def _receive(self, actor: Actor, up: Up) -> None:
        self._note_answer(actor)
        for one in up.reports:
            if one.number <= actor.seen:
                continue
            actor.seen = one.number
            self._take(actor, one)
            actor.places.append((one.number, self.account.recorder.handed))

    def _take(self, actor: Actor, numbered: Numbered) -> None:
        report: Report = numbered.report
        match report:
            case Ask():
                self.permits.ask(actor, self.leases.held(actor, numbered.lease, report.trial), report)
            case GaveUp():
                self.permits.give_up(actor, report.call)
            case Withdrawn():
                self.permits.withdraw(actor, report.call)
            case Attempted():
                self.permits.attempted(actor, report)
            case Settled() | Failed() | Returned():
                self._let_go(actor, numbered.lease, report)
            case Learnt():
                lane, route = self.routes[report.lane]
                lane.learn(route, report.limits, report.hold)
            case Closed():
                self._closed(actor, report)
            case Warned():
                self.engine.warn(report.sentence)
            case Broke():  # not for the next actor, which would stop as well, and the one after it, without end
                raise VenireError(f"actor {actor.name} stopped asking: {report.error}")
            case Emitted():
                if self.engine.events.active:
                    self.engine.events.emit(report.name, **report.fields)

    def _let_go(self, actor: Actor, lease: int, report: Settled | Failed | Returned) -> None:
        """An actor is done with a trial, unless its lease has ended and others have it."""
        trial = self.leases.held(actor, lease, report.trial)
        if trial is None:
            return
        if isinstance(report, Returned):
            self.leases.take_back(trial)
        else:
            self.leases.ended(trial, report)

    def _closed(self, actor: Actor, report: Closed) -> None:
        actor.closed[report.lane] = report.why
        lane = self.lanes[report.lane]
        if all(report.lane in one.closed for one in self.engine.actors if one.lease):
            lane.close(report.why)
        else:
            self.engine.warn(f"warning: actor {actor.name} asks {lane.routes.all[0].name} no more: {report.why}")

    async def _wind_up(self) -> None:
        """Leave nothing open behind: what is in doubt counts as unanswered, and whoever may still report it ends."""
        for actor in self.engine.actors:
            unresolved = await self.permits.close(actor)
            for number in [number for numbers in actor.leased.values() for number in numbers]:
                self.leases.let_go(self.leases.trials[number])
            actor.lease = 0
            actor.answers.clear()
            if unresolved:
                await actor.link.kill()

    def _look(self) -> None:
        """Whether the round is over."""
        if self.work.halt.is_set():
            over = all(not one.lease or one.idle for one in self.engine.actors)
        else:
            over = self.leases.is_over
        if over:
            self._finished.set()
