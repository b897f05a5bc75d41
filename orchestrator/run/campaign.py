"""Running a campaign: lanes of workers under one task group, until all is settled or there is a reason to stop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from venire.arena.battles import Statistics
from venire.arena.campaigns import CampaignSettings, Identity, LaneSettings, QualitySettings, TokenPrice
from venire.arena.errors import StoreError, VenireError
from venire.judges.parsing import PARSER
from venire.judges.providers.base import Provider
from venire.orchestrator.costs.budget import BudgetMarks, open_budgets, paid_so_far
from venire.orchestrator.designs import PlannedCampaign
from venire.orchestrator.engines.local import LocalEngine
from venire.orchestrator.engines.trial import TrialBook, TrialRunner
from venire.orchestrator.engines.work import LaneWork, RoundAccount, RoundWork
from venire.orchestrator.lanes.calls import CallCounters
from venire.orchestrator.lanes.lane import Lane
from venire.orchestrator.lanes.routes import lane_name
from venire.orchestrator.recording.ending import (
    GRACE_SECONDS,
    CampaignSummary,
    Ending,
    ending_of,
    gc_paused,
    record_end,
    rescue_error,
    wait_for_any,
)
from venire.orchestrator.recording.events import Events
from venire.orchestrator.recording.recorder import Recorder
from venire.orchestrator.run.next_round import NextRound, beside
from venire.orchestrator.run.readability import WINDOW, gates_missed
from venire.orchestrator.run.reparse import screen
from venire.orchestrator.run.roster import Roster
from venire.orchestrator.run.run_lanes import RunLanes
from venire.orchestrator.run.run_setup import RunContext, RunSetup
from venire.orchestrator.run.run_state import run_state
from venire.orchestrator.run.time_left import Outlook, TimeLeft, affordable_trials
from venire.orchestrator.run.wave_lane import AskLive, WaveLane
from venire.storage.plans import trial_states
from venire.storage.plans.trial_states import PendingTrials
from venire.storage.read import frames
from venire.storage.read.judge_quality import judge_readability, recent_verdicts
from venire.storage.store.store import Store

if TYPE_CHECKING:
    pass

_TICK, _SIMULATED_TICK = 0.2, 10.0
"""Seconds between two reports of progress; of a clock that jumps they are many in one of the machine's."""

_UNPAID_SECONDS = 300.0
"""How long trials that were begun may take to end once nobody can pay for a further one."""


async def run_campaign(
    store: Store,
    campaign: CampaignSettings,
    planned: PlannedCampaign,
    providers: Mapping[Identity, Provider],
    prices: Mapping[str, TokenPrice],
    setup: RunSetup,
) -> CampaignSummary:
    """Ask what is missing of a planned campaign; `providers` by route identity, `prices` by judge name.

    Once all of it is settled or failed, the source of rounds in `setup` is asked for the campaign with another round,
    and the run goes on until there is none: limits, routes, budgets and counters are of the whole run.

    Returns when everything is settled or there is a reason to stop; raises StoreError when the store fails, after what
    was in flight has come in. Cancelled: as with a second request to stop.
    """
    run = _CampaignRun(store, campaign, planned, providers, prices, setup)
    if setup.on_open is not None:
        budgets, stop = run.context.budgets, setup.stop
        setup.on_open(lambda: run_state(run.lanes, budgets.values(), stopping=stop.gently.is_set()))
    with gc_paused():
        return await run.go()


def _first(errors: BaseExceptionGroup[VenireError]) -> VenireError:
    """The first of some errors, which groups of tasks may have put into groups."""
    found = errors.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found


def _most_in_flight(lane: LaneSettings) -> int:
    return lane.concurrency * len(lane.routes)


class _CampaignRun:
    def __init__(
        self,
        store: Store,
        campaign: CampaignSettings,
        planned: PlannedCampaign,
        providers: Mapping[Identity, Provider],
        prices: Mapping[str, TokenPrice],
        setup: RunSetup,
    ) -> None:
        self.store, self.campaign, self.prices, self.setup = store, campaign, prices, setup
        self.clock, self.stop = setup.clock, setup.stop
        self.events = setup.events or Events(setup.clock)
        self.next_round = NextRound(setup.rounds, self.events, setup.on_analysis)
        self.beside = LocalEngine()
        """Asks what waves leave to be asked one by one."""
        self.halt = asyncio.Event()
        """No further call is sent."""
        self.trouble = asyncio.Event()
        """The store has failed, or is not in its place any more."""
        self.broken: StoreError | None = None
        self.account, budgets = open_budgets(campaign, planned.judges, paid_so_far(store, planned.id))
        self.before = self.account.used.money
        self.marks = BudgetMarks(self.account)
        recent = recent_verdicts(store, planned.id, WINDOW)
        self.roster = Roster(campaign.quality, recent, self.events, setup.warn)
        self.ends = TrialBook(self.events, self.roster.verdict)
        trials = TrialRunner(campaign, self.ends, budgets, setup.clock, self.roster.unreadable)
        self.context = RunContext(store, campaign, setup, self.events, CallCounters(), budgets, self.roster, trials)
        screen(store)
        if store.read("reading_id", parser=PARSER) == [(None,)]:
            with store.commit() as commit:
                commit.run("insert_reading", parser=PARSER, now=self.clock.wall())
        self.reading = store.read("reading_id", parser=PARSER)[0][0]
        self.lanes = RunLanes(self.context, providers, self.halt)
        self.start = self.clock.monotonic()
        self.time_left = TimeLeft(campaign, frames.elos(store))
        self._adopt(planned)

    def _adopt(self, planned: PlannedCampaign) -> None:
        """Count from the progress of the plan by now, with all of it in the store."""
        self.planned = planned
        self.progress_before = frames.progress(self.store, planned.id, planned.only)
        self.ends.count_anew()

    def _begin_round(self) -> None:
        """Open the way to the store for what is missing of the plan."""
        setup = self.setup
        self.pending = trial_states.pending_trials(self.store, self.planned.id).among(self.planned.only)
        self.recorder = Recorder(
            self.store,
            self.planned.id,
            self.reading,
            group_rows=setup.group_rows,
            group_seconds=setup.group_seconds,
            inline=setup.inline,
            on_error=self._on_error,
            strict=self.campaign.strict,
            workers=sum({judge.lane.identity: _most_in_flight(judge.lane) for judge in self.campaign.judges}.values()),
            # a reply that is asked for once more may have twice the tokens
            bytes_a_row=max(4096, *(2 * 4 * int(judge.options["max_tokens"]) for judge in self.campaign.judges)),
        )
        self.ends.begin(self.recorder)
        self.lanes.begin(self.recorder)
        if setup.on_start is not None:
            setup.on_start(self.recorder)
        numbers, missing = np.unique(self.pending.respondents, return_counts=True)
        self.roster.begin(self.planned.judges, numbers.tolist())
        follows = bool(self.next_round) and self.planned.only is None
        by_respondent = dict(zip(numbers.tolist(), missing.tolist(), strict=True))
        self.time_left.begin(self.planned, by_respondent, self.ends.by_judge, follows=follows)

    def _on_error(self, error: StoreError) -> None:
        self.broken = self.broken or error
        self.trouble.set()

    async def go(self) -> CampaignSummary:
        self.lanes.open_gates(self.planned)
        try:
            return await self._rounds()
        except StoreError as error:
            self.broken = self.broken or error
            raise
        finally:
            if self.broken is None:
                record_end(self.store, self.planned.id, self.context.counters.calls)

    async def _rounds(self) -> CampaignSummary:
        noted = {"options": self.setup.command} if self.setup.command else {}
        started = json.dumps({"missing": self.progress_before.missing} | noted)
        while True:
            self._begin_round()
            if started:
                self.recorder.event(self.clock.wall(), "run started", started)
                started = ""
            await self._round(self.lanes.work(self.planned, self.pending, self.recorder))
            if self._is_over():
                break
            if (planned := await beside(self._tick(), self.next_round.ask(self.planned))) is None:
                break
            self._adopt(planned)
            if self.stop.gently.is_set():
                break
            self.halt.clear()
        summary = self._summary()
        if summary.ending in (Ending.BUDGET, Ending.LANE_CLOSED) and not self.next_round.asked:
            await beside(self._tick(), self.next_round.analyse(self.planned))
        return summary

    def _is_over(self) -> bool:
        """Whether the run ends with this round: it was stopped, or nobody is left to go on to the next.

        What a judge cannot pay for, or cannot be asked through a closed lane, stays unasked; the others go on without.
        """
        if self.stop.gently.is_set() or self.planned.only is not None or not self.next_round or self.lanes.is_waiting:
            return True
        done = self.progress_before.settled + self.ends.settled + self.progress_before.failed + self.ends.failed
        if done == self.progress_before.planned and not self.lanes.in_waves:  # these may settle what left the plan, too
            return False
        left = trial_states.pending_trials(self.store, self.planned.id).respondents
        if not len(left):
            return False
        judges = self.planned.judges
        closed = {lane.settings.identity for lane in self.lanes if lane.closed is not None}
        silent = {number for number, judge in judges.items() if judge.lane.identity in closed}
        unasked = silent | self.roster.done_asking.keys()
        others = {number for number, judge in judges.items() if judge.name in self.campaign.pair_judges}
        return bool(set(left.tolist()) - unasked) or not others - unasked

    async def _round(self, lanes: list[LaneWork]) -> None:
        """Ask what is missing, and have all of it in the store; raises StoreError where that could not be done."""
        try:
            await self._work(lanes)
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

    async def _work(self, lanes: list[LaneWork]) -> None:
        crew = asyncio.ensure_future(self._crew(lanes))
        stop_now = asyncio.ensure_future(self.stop.now.wait())
        aside = (self._stop_gently(), self._end_unpaid(), self._tick())
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
        if self.setup.progress is not None:
            self.setup.progress(self.statistics())
        self._report_spending()

    async def _crew(self, lanes: list[LaneWork]) -> None:
        roster = self.roster
        work = RoundWork(
            self.planned.judges,
            self.prices,
            self.context.trials.ask,
            self.halt,
            roster.nobody_left,
            roster.done_asking,
            roster.unreadable,
            roster.cannot_pay,
            self._on_error,
            RoundAccount(
                self.store,
                self.recorder,
                self.context.budgets,
                self.lanes.ledgers,
                self.lanes.other_calls,
                self.ends,
            ),
            np.zeros(int(self.pending.trials.max(initial=0)) + 1, dtype=np.bool_),
        )
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.setup.engine.ask(work, tuple(lanes)))
                for wave_lane, left in self.lanes.waves_left(self.pending.of()):
                    ask_live = partial(self._ask_live, group, work, lanes)
                    group.create_task(self._ask_in_waves(wave_lane, left, ask_live))
        except* VenireError as errors:
            raise _first(errors) from None
        if not self.halt.is_set():
            for _, lane, _ in lanes:
                lane.decide_refusals()

    async def _ask_in_waves(self, wave_lane: WaveLane, left: PendingTrials, ask_live: AskLive) -> None:
        try:
            await wave_lane.run(left, self.lanes.out, ask_live)
        except StoreError as error:
            self._on_error(error)  # what others have in flight comes in

    def _ask_live(
        self, group: asyncio.TaskGroup, work: RoundWork, lanes: list[LaneWork], lane: Lane, left: PendingTrials
    ) -> None:
        """Ask trials of a batch that was given up one by one, in this process."""
        more = self.lanes.feed(lane, left)
        lanes.append(more)
        group.create_task(self.beside.ask(work, (more,)))

    async def _stop_gently(self) -> None:
        await wait_for_any(self.stop.gently, self.trouble)
        self._halt()
        await self.clock.sleep(GRACE_SECONDS)
        self.stop.now.set()

    async def _end_unpaid(self) -> None:
        """Wait no longer than this for what was begun when nobody could pay for more: it may be held for hours."""
        await self.roster.nobody_left.wait()
        await self.clock.sleep(_UNPAID_SECONDS)
        while any(one.out.waves for one in self.lanes.in_waves):
            await self.clock.sleep(_UNPAID_SECONDS)
        self._halt()

    def _halt(self) -> None:
        """Send nothing more; workers that wait for a turn or between attempts go home, the others finish their call."""
        self.halt.set()
        self.setup.engine.halt()
        self.beside.halt()

    async def _tick(self) -> None:
        seconds, progress = _SIMULATED_TICK if self.setup.inline else _TICK, self.setup.progress
        while progress is not None:
            progress(self.statistics())
            self._report_spending()
            for lane in self.lanes:
                lane.report_holds(seconds)
            await self.clock.sleep(seconds)

    def _report_spending(self) -> None:
        for percent in self.marks.passed():
            if self.events.active:
                facts = {"spent_nano": self.account.used.money, "limit_nano": self.marks.limit}
                self.events.emit("budget.passed", percent=percent, **facts)

    def statistics(self) -> Statistics:
        """The counters of this run, frozen."""
        gates, outlook = self.lanes.gates, self._outlook()
        return Statistics(
            planned=self.progress_before.planned,
            settled=self.progress_before.settled + self.ends.settled,
            failed=self.progress_before.failed + self.ends.failed,
            calls=self.context.counters.calls,
            answered=self.context.counters.answered,
            retries=self.context.counters.retries,
            in_flight=self.context.counters.in_flight,
            waits=sum(gate.waits for gate in gates),
            waited=sum(gate.waited for gate in gates),
            spent=self.account.used.money - self.before,
            elapsed=self.clock.monotonic() - self.start,
            round=len(self.planned.rounds) if self.next_round else 0,
            phase=self.planned.rounds[-1].phase if self.next_round else "",
            slowed=tuple(dict.fromkeys(sentence for lane in self.lanes for sentence in lane.slowed)),
            batched=sum(one.out.lines for one in self.lanes.in_waves),
            seconds_left=outlook.seconds,
            rounds=outlook.rounds,
            at_most=outlook.at_most,
            until_budget=outlook.until_budget,
        )

    def _outlook(self) -> Outlook:
        """What is left of the whole plan."""
        before = self.progress_before
        done = before.settled + self.ends.settled + before.failed + self.ends.failed
        return self.time_left.outlook(
            self.clock.monotonic() - self.start,
            self.ends.by_judge,
            affordable_trials(self.account, done),
            silent=self.roster.names(self.roster.done_asking).keys(),
            closed={lane.settings.identity for lane in self.lanes if lane.closed is not None},
        )

    def _summary(self) -> CampaignSummary:
        closed = {lane_name(lane.settings): lane.closed for lane in self.lanes if lane.closed is not None}
        only = self.planned.only  # a part of the plan may be what there is to ask
        progress = frames.progress(self.store, self.planned.id, only)
        ending = ending_of(
            progress,
            stopped=self.stop.gently.is_set(),
            planned_out=only is not None or not self.next_round or self.next_round.asked,
            out_of_budget=bool(self.roster.out_of_budget) or self.next_round.short,
            unreadable=bool(self.roster.unreadable),
            waiting=self.lanes.is_waiting,
        )
        gates: tuple[str, ...] = ()
        if ending is Ending.COMPLETE and only is None:
            quality = QualitySettings() if self.campaign.writes else self.campaign.quality
            readable = judge_readability(self.store, self.planned.id)
            gates = gates_missed(readable, quality, self.roster.examples)
            ending = Ending.QUALITY if gates else ending
        return CampaignSummary(
            ending,
            self.statistics(),
            progress,
            closed,
            self.roster.names(self.roster.out_of_budget),
            self.context.counters.routes,
            self.roster.names(self.roster.unreadable),
            gates,
            self.next_round.stopped,
            batches=sum(len(one.out.waves) for one in self.lanes.in_waves),
            left_for_later=sum(one.left_for_later for one in self.lanes.in_waves),
            out_elsewhere=self.lanes.out_elsewhere,
            losses=self.setup.engine.losses,
        )
