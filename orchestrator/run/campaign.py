"""Running a campaign: lanes of workers under one task group, until all is settled or there is a reason to stop."""

from __future__ import annotations

import asyncio
import json
from collections import ChainMap
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from venire.arena.battles import Statistics
from venire.arena.budgets import Amount
from venire.arena.campaigns import CampaignSettings, Identity, LaneSettings, QualitySettings, RouteSettings, TokenPrice
from venire.arena.clock import Clock
from venire.arena.errors import StoreError, VenireError
from venire.arena.records import Reply, Status
from venire.judges.parsing import PARSER
from venire.judges.providers.base import Provider
from venire.judges.providers.batches.base import BatchProvider
from venire.orchestrator.costs.budget import open_budgets, paid_so_far
from venire.orchestrator.designs import PlannedCampaign
from venire.orchestrator.engines.feed import Feed
from venire.orchestrator.engines.local import LocalEngine
from venire.orchestrator.engines.trial import TrialBook, TrialRunner
from venire.orchestrator.engines.work import Engine, LaneWork, RoundAccount, RoundWork
from venire.orchestrator.lanes.calls import CallCounters
from venire.orchestrator.lanes.gate import Gate
from venire.orchestrator.lanes.lane import Lane
from venire.orchestrator.lanes.lane_events import LaneEvents
from venire.orchestrator.lanes.ledger import CallLedger
from venire.orchestrator.lanes.routes import Route, accepted_routes, lane_name, open_gates, register_routes, route_name
from venire.orchestrator.recording.ending import (
    GRACE_SECONDS,
    CampaignSummary,
    Ending,
    StopRequest,
    ending_of,
    gc_paused,
    record_end,
    rescue_error,
    wait_for_any,
)
from venire.orchestrator.recording.events import Events
from venire.orchestrator.recording.recorder import Recorder
from venire.orchestrator.run.next_round import NextRound, OnAnalysis, RoundSource, beside
from venire.orchestrator.run.readability import WINDOW, ReadabilityMonitor, gates_missed
from venire.orchestrator.run.reparse import screen
from venire.orchestrator.run.run_state import run_state
from venire.orchestrator.run.wave_file import clear_waves, waves_folder
from venire.orchestrator.run.wave_lane import AskLive, Polling, WaveLane
from venire.storage.plans import submissions, trial_states
from venire.storage.plans.submissions import OpenSubmission
from venire.storage.plans.trial_states import PendingTrial, PendingTrials
from venire.storage.read import frames
from venire.storage.read.judge_quality import judge_readability, recent_verdicts
from venire.storage.store.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TICK, _SIMULATED_TICK = 0.2, 10.0
"""Seconds between two reports of progress; of a clock that jumps they are many in one of the machine's."""

_UNPAID_SECONDS = 300.0
"""How long trials that were begun may take to end once nobody can pay for a further one."""

_Progress = Callable[[Statistics], None] | None


async def run_campaign(
    store: Store,
    campaign: CampaignSettings,
    planned: PlannedCampaign,
    providers: Mapping[Identity, Provider],
    prices: Mapping[str, TokenPrice],
    *,
    clock: Clock,
    stop: StopRequest | None = None,
    progress: _Progress = None,
    warn: Callable[[str], None] | None = None,
    on_start: Callable[[Recorder], None] | None = None,
    on_open: Callable[[Callable[[], Mapping[str, Any]]], None] | None = None,
    rounds: RoundSource | None = None,
    on_analysis: OnAnalysis | None = None,
    events: Events | None = None,
    group_rows: int = 500,
    group_seconds: float = 0.1,
    inline: bool = False,
    batches: Mapping[Identity, BatchProvider] | None = None,
    batch_prices: Mapping[str, TokenPrice] | None = None,
    polling: Polling | None = None,
    engine: Engine | None = None,
    options: str = "",
) -> CampaignSummary:
    """Ask what is missing of a planned campaign; `providers` by route identity, `prices` by judge name.

    Lanes that ask in waves do so by `batches`, at `batch_prices`, and wait for them as `polling` says.

    Once all of it is settled or failed, `rounds` is asked in a thread for the campaign with another round,
    `on_analysis` gets the interim analysis, and the run goes on until there is none: limits, routes, budgets and
    counters are of the whole run.
    `on_start` is handed each round's recorder before its first call, for whoever wants to hold the store, and `on_open`
    once a function that returns lanes and budgets as they are (`run.run_state`), for the loop's thread. `inline`
    reads and writes without threads: for a virtual clock, which does not wait for one. `engine` asks the trials; by
    default that of this process. `options`, those of the command line by which it does, are noted in the store.

    Returns when everything is settled or there is a reason to stop; raises StoreError when the store fails, after what
    was in flight has come in. Cancelled: as with a second request to stop.
    """
    events = events or Events(clock)
    next_round = NextRound(rounds, events, on_analysis)
    writing = {"group_rows": group_rows, "group_seconds": group_seconds, "inline": inline}
    waves = _Waves(batches or {}, batch_prices or {}, polling or Polling())
    run = _CampaignRun(
        store,
        campaign,
        planned,
        clock,
        stop or StopRequest(),
        warn,
        events,
        next_round,
        on_start,
        writing,
        waves,
        engine or LocalEngine(),
        options,
    )
    if on_open is not None:
        on_open(lambda: run_state(run.lanes.values(), run.budgets.values(), stopping=run.stop.gently.is_set()))
    with gc_paused():
        return await run.go(providers, prices, progress)


def _first(errors: BaseExceptionGroup[VenireError]) -> VenireError:
    """The first of some errors, which groups of tasks may have put into groups."""
    found = errors.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found


def _most_in_flight(lane: LaneSettings) -> int:
    return lane.concurrency * len(lane.routes)


class _Waves(NamedTuple):
    """How lanes ask in waves: batch interfaces by route, prices there by judge, and how batches are waited for."""

    batches: Mapping[Identity, BatchProvider]
    prices: Mapping[str, TokenPrice]
    polling: Polling


class _CampaignRun:
    def __init__(
        self,
        store: Store,
        campaign: CampaignSettings,
        planned: PlannedCampaign,
        clock: Clock,
        stop: StopRequest,
        warn: Callable[[str], None] | None,
        events: Events,
        next_round: NextRound,
        on_start: Callable[[Recorder], None] | None,
        writing: Mapping[str, Any],
        waves: _Waves,
        engine: Engine,
        options: str,
    ) -> None:
        self.store, self.campaign, self.clock, self.stop = store, campaign, clock, stop
        self.next_round, self.on_start, self.writing, self.waves = next_round, on_start, writing, waves
        self.warn = warn or (lambda sentence: None)
        self.events, self.engine, self.options = events, engine, options
        self.beside = LocalEngine()
        """Asks what waves leave to be asked one by one."""
        self.counters = CallCounters()
        self.out_of_budget: dict[int, str] = {}
        """Respondents whose next call a budget does not cover, and a sentence that names the budget."""
        self.unreadable: dict[int, str] = {}
        """Respondents whose replies cannot be read, and the sentence that says why."""
        self.done_asking: ChainMap[int, str] = ChainMap(self.out_of_budget, self.unreadable)
        """Respondents that are asked no further trial."""
        self.nobody_left = asyncio.Event()
        """No further trial of the round is begun; those that were are asked to their end, as far as can be paid."""
        self.halt = asyncio.Event()
        """No further call is sent."""
        self.trouble = asyncio.Event()
        """The store has failed, or is not in its place any more."""
        self.broken: StoreError | None = None
        self.issued: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self.account, self.budgets = open_budgets(campaign, planned.judges, paid_so_far(store, planned.id))
        self.ends = TrialBook(events, self._verdict)
        self.trials = TrialRunner(campaign, self.ends, self.budgets, clock, self.unreadable)
        self.monitor = ReadabilityMonitor(campaign.quality, recent_verdicts(store, planned.id, WINDOW))
        self.before = self.account.used.money
        screen(store)
        with store.commit() as commit:
            commit.run("insert_reading", parser=PARSER, now=clock.wall())
        self.reading = store.rows("reading_id", parser=PARSER)[0][0]
        self.numbers = register_routes(store, campaign)
        self.accepted = accepted_routes(store)
        self.start = clock.monotonic()
        self.lanes: dict[tuple[Identity, ...], Lane] = {}
        self.ledgers: dict[tuple[Identity, ...], CallLedger] = {}
        """Of these lanes."""
        self.other_calls: CallLedger
        """Of calls that an earlier run sent for no lane of this one."""
        self.gates: Mapping[Identity, Gate] = {}
        """By route; those of one account share one."""
        self.submission_numbers = count(submissions.last_submission(store) + 1)
        self.wave_lanes: dict[tuple[Identity, ...], WaveLane] = {}
        self.wave_left: dict[tuple[Identity, ...], PendingTrials] = {}
        """What each of these has left to ask in this round."""
        self.out: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        """Trials that were in batches when the round began."""
        self.out_elsewhere = 0
        """Of those still to be asked, how many are in batches that no lane of this run collects."""
        self._adopt(planned)

    def _adopt(self, planned: PlannedCampaign) -> None:
        """Count from the progress of the plan by now, with all of it in the store."""
        self.planned = planned
        self.progress_before = frames.progress(self.store, planned.id, planned.only)
        self.ends.count_anew()

    def _begin_round(self) -> None:
        """Open the way to the store for what is missing of the plan."""
        self.pending = trial_states.pending_trials(self.store, self.planned.id).among(self.planned.only)
        self.recorder = Recorder(
            self.store,
            self.planned.id,
            self.reading,
            **self.writing,
            on_error=self._on_error,
            strict=self.campaign.strict,
            workers=sum({judge.lane.identity: _most_in_flight(judge.lane) for judge in self.campaign.judges}.values()),
            # a reply that is asked for once more may have twice the tokens
            bytes_a_row=max(4096, *(2 * 4 * int(judge.options["max_tokens"]) for judge in self.campaign.judges)),
        )
        self.ends.begin(self.recorder)
        self.other_calls = self._open_ledger(LaneEvents("no lane of this run", self.events, self.warn))
        for ledger in self.ledgers.values():
            ledger.begin(self.recorder)
        if self.on_start is not None:
            self.on_start(self.recorder)
        for respondent in np.unique(self.pending.respondents).tolist():
            self._close_unreadable(respondent)

    def _on_error(self, error: StoreError) -> None:
        self.broken = self.broken or error
        self.trouble.set()

    async def go(
        self, providers: Mapping[Identity, Provider], prices: Mapping[str, TokenPrice], progress: _Progress
    ) -> CampaignSummary:
        self.gates = open_gates(self.store, self.campaign, providers, self.clock, self.planned.sent_elsewhere)
        try:
            return await self._rounds(providers, prices, progress)
        except StoreError as error:
            self.broken = self.broken or error
            raise
        finally:
            if self.broken is None:
                record_end(self.store, self.planned.id, self.counters.calls)

    async def _rounds(
        self, providers: Mapping[Identity, Provider], prices: Mapping[str, TokenPrice], progress: _Progress
    ) -> CampaignSummary:
        noted = {"options": self.options} if self.options else {}
        started = json.dumps({"missing": self.progress_before.missing} | noted)
        while True:
            self._begin_round()
            if started:
                self.recorder.event(self.clock.wall(), "run started", started)
                started = ""
            await self._round(self._open_lanes(providers), prices, progress)
            if self._is_over():
                break
            if (planned := await beside(self._tick(progress), self.next_round.ask(self.planned))) is None:
                break
            self._adopt(planned)
            if self.stop.gently.is_set():
                break
            self.halt.clear()
            self.nobody_left.clear()
        summary = self._summary()
        if summary.ending in (Ending.BUDGET, Ending.LANE_CLOSED) and not self.next_round.asked:
            await beside(self._tick(progress), self.next_round.analyse(self.planned))
        return summary

    def _is_over(self) -> bool:
        """Whether the run ends with this round: it was stopped, or nobody is left to go on to the next.

        What a judge cannot pay for, or cannot be asked through a closed lane, stays unasked; the others go on without.
        """
        if self.stop.gently.is_set() or self.planned.only is not None or not self.next_round or self._is_waiting:
            return True
        done = self.progress_before.settled + self.ends.settled + self.progress_before.failed + self.ends.failed
        if done == self.progress_before.planned and not self.wave_lanes:  # these may settle what left the plan, too
            return False
        left = trial_states.pending_trials(self.store, self.planned.id).respondents
        if not len(left):
            return False
        judges = self.planned.judges
        closed = {lane.settings.identity for lane in self.lanes.values() if lane.closed is not None}
        silent = {number for number, judge in judges.items() if judge.lane.identity in closed}
        unasked = silent | self.done_asking.keys()
        others = {number for number, judge in judges.items() if judge.name in self.campaign.pair_judges}
        return bool(set(left.tolist()) - unasked) or not others - unasked

    @property
    def _is_waiting(self) -> bool:
        """Whether something is left that only a later start can take in."""
        return self.out_elsewhere > 0 or any(one.out.waves or one.left_for_later for one in self.wave_lanes.values())

    async def _round(self, lanes: list[LaneWork], prices: Mapping[str, TokenPrice], progress: _Progress) -> None:
        """Ask what is missing, and have all of it in the store; raises StoreError where that could not be done."""
        try:
            await self._work(lanes, prices, progress)
        finally:
            self.halt.set()
            for one in lanes:
                await one.feed.close()
            try:
                await self.recorder.close()
            except StoreError as error:
                self.broken = error  # with what became of the rows
            if (found := self.store.displaced()) is not None:
                raise rescue_error(self.store, StoreError(found))
            if self.broken is not None:
                raise self.broken

    def _open_lanes(self, providers: Mapping[Identity, Provider]) -> list[LaneWork]:
        """A feed for each judge that has something left, with the lane it goes through and its workers' number.

        Lanes that ask in waves have none. Nothing that is in a batch is asked by another lane.
        """
        lanes: list[LaneWork] = []
        self.issued = np.zeros(int(self.pending.trials.max(initial=0)) + 1, dtype=np.bool_)
        by_lane: dict[tuple[Identity, ...], list[int]] = {}
        for number in np.unique(self.pending.respondents).tolist():
            by_lane.setdefault(self.planned.judges[number].lane.identity, []).append(number)
        self._recover_waves(providers)
        in_submission, self.out = submissions.open_lines(self.store)
        collected = [number for one in self.wave_lanes.values() for number in one.out.waves]
        elsewhere = self.out[~np.isin(in_submission, collected)]
        self.out_elsewhere = int(np.isin(self.pending.trials, elsewhere).sum())
        for identity, numbers in by_lane.items():
            settings = self.planned.judges[numbers[0]].lane
            if identity not in self.lanes:
                self.lanes[identity] = self._open_lane(settings, providers)
            lane = self.lanes[identity]
            lane.begin()
            left = self.pending.of(*numbers)
            if identity in self.wave_lanes:
                self.wave_left[identity] = left
                continue
            left = left.without(self.out)
            feed = Feed(self.store, left, self.done_asking, inline=self.writing["inline"])
            lanes.append(LaneWork(feed, lane, min(settings.workers, len(left.trials))))
        return lanes

    def _recover_waves(self, providers: Mapping[Identity, Provider]) -> None:
        """Open the lanes that ask in waves, each with what is out of earlier runs, and begin a round with them."""
        first = not self.wave_lanes
        self.wave_left = {}
        out = submissions.open_submissions(self.store, self.planned.id) if first else ()
        if first:
            clear_waves(self.store.path)
        routes: set[int] = set()
        for settings in {judge.lane.identity: judge.lane for judge in self.planned.judges.values()}.values():
            batches = self.waves.batches.get(settings.routes[0].identity)
            if settings.batch is None or batches is None:
                continue
            if settings.identity not in self.lanes:
                self.lanes[settings.identity] = self._open_lane(settings, providers)
            lane = self.lanes[settings.identity]
            lane.begin()
            if first:
                self.wave_lanes[settings.identity] = self._open_wave_lane(lane, batches)
                routes.add(number := self.numbers[route_name(settings.routes[0])])
                self.wave_lanes[settings.identity].out.recover([one for one in out if one.lane == number])
            self.wave_lanes[settings.identity].begin(self.recorder)
        for one in out:
            if one.lane not in routes:
                self._leave_out(one)

    def _leave_out(self, one: OpenSubmission) -> None:
        """Leave a batch alone that no lane of this run collects: it stays reserved, and nobody waits for that."""
        for left in submissions.left_by_respondent(self.store, one.id):
            budget = self.budgets[left.respondent]
            calls = Amount(left.lines, left.reserved, left.reserved_tokens)
            budget.hold(calls)
            budget.park(calls)
        self.warn(
            f"warning: {one.lines:,} calls are out in batch {one.name}, sent for a judge that is not asked in "
            'batches now: they are not asked again; to collect them, give the judge transport = "batch" again'
        )

    def _open_wave_lane(self, lane: Lane, batches: BatchProvider) -> WaveLane:
        judges = {
            number: judge
            for number, judge in self.planned.judges.items()
            if judge.lane.identity == lane.settings.identity
        }
        return WaveLane(
            lane,
            batches,
            store=self.store,
            campaign=self.planned.id,
            folder=waves_folder(self.store.path),
            trials=self.trials,
            judges=judges,
            ledger=self.ledgers[lane.settings.identity],
            budgets=self.budgets,
            prices={number: self.waves.prices[judge.name] for number, judge in judges.items()},
            clock=self.clock,
            events=self.events,
            warn=self.warn,
            polling=self.waves.polling,
            halt=self.halt,
            done_asking=self.done_asking,
            numbers=self.submission_numbers,
            cannot_pay=self._cannot_pay,
        )

    def _open_lane(self, settings: LaneSettings, providers: Mapping[Identity, Provider]) -> Lane:
        lane_events = LaneEvents(lane_name(settings), self.events, self.warn)
        ledger = self.ledgers[settings.identity] = self._open_ledger(lane_events)
        return Lane(
            settings,
            [self._open_route(way, providers) for way in settings.routes],
            ledger=ledger,
            clock=self.clock,
            stopping=self.halt,
            lane_events=lane_events,
            strict=self.campaign.strict,
            others_at_work=lambda: any(not one.routes.is_down and one.at_work for one in self.lanes.values()),
        )

    def _open_ledger(self, lane_events: LaneEvents) -> CallLedger:
        return CallLedger(self.recorder, clock=self.clock, counters=self.counters, lane_events=lane_events)

    def _open_route(self, way: RouteSettings, providers: Mapping[Identity, Provider]) -> Route:
        number, gate = self.numbers[route_name(way)], self.gates[way.identity]
        return Route(way, number, providers[way.identity], gate, self.clock, accepted=number in self.accepted)

    async def _work(self, lanes: list[LaneWork], prices: Mapping[str, TokenPrice], progress: _Progress) -> None:
        crew = asyncio.ensure_future(self._crew(lanes, prices))
        stop_now = asyncio.ensure_future(self.stop.now.wait())
        aside = (self._stop_gently(), self._end_unpaid(), self._tick(progress))
        others = [asyncio.ensure_future(one) for one in aside]
        try:
            reasons: set[asyncio.Future[Any]] = {crew, stop_now}
            await asyncio.wait(reasons, return_when=asyncio.FIRST_COMPLETED)
            if crew.done():
                await crew  # raises what a worker raised
        finally:
            for task in (crew, stop_now, *others):
                task.cancel()
            await asyncio.gather(crew, stop_now, *others, return_exceptions=True)
        if progress is not None:
            progress(self.statistics())

    async def _crew(self, lanes: list[LaneWork], prices: Mapping[str, TokenPrice]) -> None:
        work = RoundWork(
            self.planned.judges,
            prices,
            self.trials.ask,
            self.halt,
            self.nobody_left,
            self.done_asking,
            self.unreadable,
            self._cannot_pay,
            self._on_error,
            RoundAccount(self.store, self.recorder, self.budgets, self.ledgers, self.other_calls, self.ends),
            self.issued,
        )
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.engine.ask(work, tuple(lanes)))
                for identity, wave_lane in self.wave_lanes.items():
                    ask_live = partial(self._ask_live, group, work, lanes)
                    left = self.wave_left.get(identity, self.pending.of())
                    group.create_task(self._ask_in_waves(wave_lane, left, ask_live))
        except* VenireError as errors:
            raise _first(errors) from None
        if not self.halt.is_set():
            for _, lane, _ in lanes:
                lane.decide_refusals()

    async def _ask_in_waves(self, wave_lane: WaveLane, left: PendingTrials, ask_live: AskLive) -> None:
        try:
            await wave_lane.run(left, self.out, ask_live)
        except StoreError as error:
            self._on_error(error)  # what others have in flight comes in

    def _ask_live(
        self, group: asyncio.TaskGroup, work: RoundWork, lanes: list[LaneWork], lane: Lane, left: PendingTrials
    ) -> None:
        """Ask trials of a batch that was given up one by one, in this process."""
        feed = Feed(self.store, left, self.done_asking, inline=self.writing["inline"])
        more = LaneWork(feed, lane, min(lane.settings.workers, len(left.trials)))
        lanes.append(more)
        group.create_task(self.beside.ask(work, (more,)))

    async def _stop_gently(self) -> None:
        await wait_for_any(self.stop.gently, self.trouble)
        self._halt()
        await self.clock.sleep(GRACE_SECONDS)
        self.stop.now.set()

    async def _end_unpaid(self) -> None:
        """Wait no longer than this for what was begun when nobody could pay for more: it may be held for hours."""
        await self.nobody_left.wait()
        await self.clock.sleep(_UNPAID_SECONDS)
        while any(one.out.waves for one in self.wave_lanes.values()):
            await self.clock.sleep(_UNPAID_SECONDS)
        self._halt()

    def _halt(self) -> None:
        """Send nothing more; workers that wait for a turn or between attempts go home, the others finish their call."""
        self.halt.set()
        self.engine.halt()
        self.beside.halt()

    async def _tick(self, progress: _Progress) -> None:
        seconds = _SIMULATED_TICK if self.writing["inline"] else _TICK
        while progress is not None:
            progress(self.statistics())
            for lane in self.lanes.values():
                lane.report_holds(seconds)
            await self.clock.sleep(seconds)

    def _cannot_pay(self, respondent: int, why: str) -> None:
        """A judge asks no more; the others go on with what they can pay."""
        if respondent not in self.out_of_budget:
            name = self.planned.judges[respondent].name
            self.warn(f"judge {name!r} asks no more: {why}")
            if self.events.active:
                self.events.emit("judge.unaffordable", judge=name, why=why)
            self.out_of_budget[respondent] = why
            if self._ask_nobody_if_all_done() and self.events.active:
                self.events.emit("budget.reached", why=why)

    def _ask_nobody_if_all_done(self) -> bool:
        """Begin no further trial where none of the judges with trials left is asked any more."""
        if set(np.unique(self.pending.respondents).tolist()) <= self.done_asking.keys():
            self.nobody_left.set()
        return self.nobody_left.is_set()

    def _verdict(self, pending: PendingTrial, status: Status, reply: Reply | None) -> None:
        """Count a verdict; where too few can be read, the judge asks no more, and calls in flight are its last."""
        self.monitor.add(pending.respondent, pending.instruction_number, status)
        if status is not Status.OK and pending.respondent not in self.unreadable:
            self._close_unreadable(pending.respondent, reply)

    def _close_unreadable(self, respondent: int, reply: Reply | None = None) -> None:
        if not self.monitor.is_unreadable(respondent):
            return
        judge = self.planned.judges[respondent]
        why = self.monitor.explain(respondent, reply)
        self.unreadable[respondent] = why
        self.warn(f"judge {judge.name!r} is asked no more: {why}")
        if self.events.active:
            self.events.emit("judge.unreadable", judge=judge.name, why=why)
        self._ask_nobody_if_all_done()

    def statistics(self) -> Statistics:
        """The counters of this run, frozen."""
        gates = set(self.gates.values())
        return Statistics(
            planned=self.progress_before.planned,
            settled=self.progress_before.settled + self.ends.settled,
            failed=self.progress_before.failed + self.ends.failed,
            calls=self.counters.calls,
            answered=self.counters.answered,
            retries=self.counters.retries,
            in_flight=self.counters.in_flight,
            waits=sum(gate.waits for gate in gates),
            waited=sum(gate.waited for gate in gates),
            spent=self.account.used.money - self.before,
            elapsed=self.clock.monotonic() - self.start,
            round=len(self.planned.rounds) if self.next_round else 0,
            phase=self.planned.rounds[-1].phase if self.next_round else "",
            slowed=tuple(dict.fromkeys(sentence for lane in self.lanes.values() for sentence in lane.slowed)),
            batched=sum(one.out.lines for one in self.wave_lanes.values()),
        )

    def _summary(self) -> CampaignSummary:
        closed = {lane_name(lane.settings): lane.closed for lane in self.lanes.values() if lane.closed is not None}
        only = self.planned.only  # a part of the plan may be what there is to ask
        progress = frames.progress(self.store, self.planned.id, only)
        ending = ending_of(
            progress,
            stopped=self.stop.gently.is_set(),
            planned_out=only is not None or not self.next_round or self.next_round.asked,
            out_of_budget=bool(self.out_of_budget) or self.next_round.short,
            unreadable=bool(self.unreadable),
            waiting=self._is_waiting,
        )
        gates: tuple[str, ...] = ()
        if ending is Ending.COMPLETE and only is None:
            quality = QualitySettings() if self.campaign.writes else self.campaign.quality
            gates = gates_missed(judge_readability(self.store, self.planned.id), quality)
            ending = Ending.QUALITY if gates else ending
        unaffordable = {self.planned.judges[number].name: why for number, why in self.out_of_budget.items()}
        return CampaignSummary(
            ending,
            self.statistics(),
            progress,
            closed,
            unaffordable,
            self.counters.routes,
            {self.planned.judges[number].name: why for number, why in self.unreadable.items()},
            gates,
            self.next_round.stopped,
            batches=sum(len(one.out.waves) for one in self.wave_lanes.values()),
            left_for_later=sum(one.left_for_later for one in self.wave_lanes.values()),
            out_elsewhere=self.out_elsewhere,
            losses=self.engine.losses,
        )
