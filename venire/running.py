"""One run of an open campaign: endpoints, live queries and pages around the calls, and how it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypedDict

from venire.arena.battles import Statistics
from venire.arena.campaigns import CampaignSettings, Identity, JudgeSettings, TokenPrice
from venire.arena.clock import Clock, VirtualClock
from venire.arena.errors import InputError
from venire.arena.keywords import Count
from venire.embedded import Embedded, embedded_provider, is_embedded
from venire.endpoints import (
    EmbeddedProvider,
    OpenRoute,
    Secrets,
    check_routes,
    open_elsewhere,
    open_routes,
    read_secrets,
)
from venire.live.answers import Pulse, stored_answers
from venire.loops import LoopFactory, run_to_completion, stop_on_signals
from venire.orchestrator.designs import PlannedCampaign
from venire.orchestrator.engines.local import LocalEngine
from venire.orchestrator.planning.recorded import recorded_texts
from venire.orchestrator.planning.respondents import respondents
from venire.orchestrator.planning.rounds import Rounds
from venire.orchestrator.recording.ending import CampaignSummary, StopRequest
from venire.orchestrator.recording.events import Events
from venire.orchestrator.recording.recorder import Recorder
from venire.orchestrator.run.campaign import run_campaign
from venire.orchestrator.run.next_round import OnAnalysis
from venire.orchestrator.run.run_setup import Polling, RunSetup, say_nothing
from venire.storage.store.store import Store

if TYPE_CHECKING:
    from venire.live.guard import Guard
    from venire.live.pages import Pages
    from venire.orchestrator.engines.remote import Crew, RemoteEngine


class HostKeywords(TypedDict, total=False):
    """The keywords of `Session.run` that are fields of `RunHost`."""

    loop_factory: LoopFactory | None
    ready: Callable[[Callable[[], None]], None] | None
    guard: Guard | None
    announce: Callable[[str], None] | None
    group_rows: Count
    group_seconds: float


@dataclass(frozen=True)
class RunHost:
    """What a process gives a run: an event loop, a way to stop it, pages, and rows of a commit: see `Session.run`."""

    loop_factory: LoopFactory | None = None
    ready: Callable[[Callable[[], None]], None] | None = None
    guard: Guard | None = None
    announce: Callable[[str], None] | None = None
    group_rows: int = 500
    group_seconds: float = 0.1


@dataclass(frozen=True)
class RunWishes:
    """Whom a run reports to, and how it asks: see `Session.run`."""

    environ: Mapping[str, str] | None
    embedded: Embedded
    progress: Callable[[Statistics], None] | None
    warn: Callable[[str], None] | None
    events: Events | None
    on_analysis: OnAnalysis | None
    polling: Polling | None
    live: bool


class _Door:
    """Access to a run's recorder, which exists once the run has begun."""

    def __init__(self) -> None:
        self._recorder: Recorder | None = None

    def open(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def hold(self) -> contextlib.AbstractAsyncContextManager[asyncio.Event]:
        if self._recorder is None:
            raise InputError("the run has not begun: try again in a moment")
        return self._recorder.hold()


@dataclass(frozen=True)
class CampaignRun:
    """A run that asks the missing trials of a campaign; `left` are the judges that have calls left.

    `prices` are those of calls one by one, `batch_prices` those of batches, by judge; `crew` are actors that ask the
    calls, `lasting` the options that say who asks what.
    """

    store: Store
    campaign: CampaignSettings
    planned: PlannedCampaign
    rounds: Rounds | None
    clock: Clock
    left: Sequence[JudgeSettings]
    prices: Mapping[str, TokenPrice]
    batch_prices: Mapping[str, TokenPrice]
    crew: Crew | None
    lasting: str
    wishes: RunWishes
    host: RunHost
    listens: Callable[[], None]
    """Called before it listens beside the store: whoever answers there until then is to end."""
    _stops: list[Callable[[], None]] = field(default_factory=list)
    """Stop the run gently, from any thread; empty until it has begun."""

    def run(self) -> CampaignSummary:
        """Run until all is settled or there is a reason to stop. Raises as `Session.run` does."""
        if self.wishes.polling is not None and self.wishes.polling.detach:
            self._refuse_to_detach()
        secrets = read_secrets(self.campaign, self.left, self.wishes.environ)
        elsewhere = [one for one in respondents(self.campaign) if one[0] in self.left and one[0].recorded is not None]
        recorded = recorded_texts(self.store, self.campaign, elsewhere)
        loop_factory = self.clock.new_event_loop if isinstance(self.clock, VirtualClock) else self.host.loop_factory
        with embedded_provider(self.left, self.campaign, self.store, self.clock, self.wishes.embedded) as inside:
            return run_to_completion(lambda: self._run(inside, secrets, recorded), loop_factory, self._stop)

    def _stop(self) -> None:
        for request in self._stops:
            request()

    async def _run(
        self, inside: EmbeddedProvider | None, secrets: Mapping[Identity, Secrets], recorded: Mapping[str, str]
    ) -> CampaignSummary:
        stop, warn = StopRequest(), self.wishes.warn
        self._stops.append(partial(_request_from_afar, asyncio.get_running_loop(), stop))
        if self.host.ready is not None:
            self.host.ready(self._stops[0])
        async with contextlib.AsyncExitStack() as stack:
            opened = open_routes(self.campaign, self.left, secrets, inside, recorded)
            for one in opened:
                stack.push_async_callback(one.provider.close)
                if one.batches is not None:
                    stack.push_async_callback(one.batches.close)
            await check_routes(self.campaign, opened, warn)
            engine = None if self.crew is None else self._remote_engine(self.crew, inside)
            pulse, door = Pulse(self.campaign.name, self.clock.wall()), _Door()
            if not isinstance(self.clock, VirtualClock):  # nobody can follow a run on a clock that jumps
                await self._serve(stack, pulse, door, stop)
            with stop_on_signals(stop, warn):
                summary = await self._ask(opened, engine, pulse, door, stop)
            pulse.ending = summary.ending.value
            return summary

    async def _ask(
        self, opened: Sequence[OpenRoute], engine: RemoteEngine | None, pulse: Pulse, door: _Door, stop: StopRequest
    ) -> CampaignSummary:
        """Ask the calls by open routes, or have the engine ask them."""
        wishes, virtual = self.wishes, isinstance(self.clock, VirtualClock)
        batches = {} if wishes.live else {one.route.identity: one.batches for one in opened if one.batches}

        def report(now: Statistics) -> None:
            pulse.feed(now)
            if wishes.progress is not None:
                wishes.progress(now)

        setup = RunSetup(
            clock=self.clock,
            stop=stop,
            progress=report if wishes.progress is not None or not virtual else None,
            warn=wishes.warn or say_nothing,
            on_start=door.open,
            on_open=pulse.look_at,
            rounds=self.rounds,
            on_analysis=wishes.on_analysis,
            events=wishes.events,
            group_rows=self.host.group_rows,
            group_seconds=self.host.group_seconds,
            inline=virtual,
            batches=batches,
            batch_prices=self.batch_prices,
            polling=wishes.polling or Polling(),
            engine=engine or LocalEngine(),
            command=self.lasting,
        )
        providers = {one.route.identity: one.provider for one in opened}
        return await run_campaign(self.store, self.campaign, self.planned, providers, self.prices, setup)

    def _remote_engine(self, crew: Crew, inside: EmbeddedProvider | None) -> RemoteEngine:
        """The engine that has the actors of a cluster ask."""
        judges = [judge for judge in self.campaign.judges if judge.recorded is None]
        return crew.engine(
            self.store.constant,
            self.campaign,
            partial(open_elsewhere, self.campaign, judges, inside),
            clock=self.clock,
            events=self.wishes.events or Events(self.clock),
            warn=self.wishes.warn,
        )

    async def _serve(self, stack: contextlib.AsyncExitStack, pulse: Pulse, door: _Door, stop: StopRequest) -> None:
        """Answer the queries of other processes until the stack is left, and serve pages where that was asked for."""
        from venire.live.server import serve  # and aiohttp, which nothing needs before a run begins

        guard = self.host.guard
        pages = None if guard is None else self._pages(guard, pulse, stop)
        answers = stored_answers(self.store, pulse, door.hold, lambda: self._pages(None, pulse, stop))
        await asyncio.to_thread(self.listens)
        await stack.enter_async_context(serve(self.store.path, answers, self.wishes.warn, pages))
        if guard is not None:
            pulse.page = guard.address.url(guard.port)
            if self.wishes.events is not None and self.wishes.events.active:
                self.wishes.events.emit("pages.served", address=pulse.page)
            if self.host.announce is not None:
                self.host.announce(guard.link())

    def _pages(self, guard: Guard | None, pulse: Pulse, stop: StopRequest) -> Pages:
        """The pages of this run; without a guard for its socket alone.

        Raises InputError without the packages that they need.
        """
        from venire.live.guard import DoorAddress, Guard
        from venire.live.library import Library
        from venire.live.page_maker import Live, refuse_without_packages
        from venire.live.pages import Pages

        refuse_without_packages()
        return Pages(
            Library.of_run(self.store), guard or Guard(DoorAddress()), Live(pulse.whole_document, stop.request)
        )

    def _refuse_to_detach(self) -> None:
        """Refuse to leave batches behind with a provider that ends with this run."""
        if names := [judge.name for judge in self.left if judge.lane.batch is not None and is_embedded(judge)]:
            raise InputError(
                f"{self.campaign.path}: judge {names[0]!r} is answered by this run itself, so nobody would work on its "
                "batches: run without --detach, or give it the base_url of `venire mock-provider`"
            )


def _request_from_afar(loop: asyncio.AbstractEventLoop, stop: StopRequest) -> None:
    """Ask a run in another thread to stop; do nothing if it has already ended."""
    with contextlib.suppress(RuntimeError):  # its loop is closed
        loop.call_soon_threadsafe(stop.request)
