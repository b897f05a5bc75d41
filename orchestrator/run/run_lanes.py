"""The lanes of a run: opened when the first of their judges has something to ask, and kept from round to round."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from venire.arena.budgets import Amount
from venire.arena.campaigns import Identity, LaneSettings, RouteSettings
from venire.judges.providers.base import Provider
from venire.judges.providers.batches.base import BatchProvider
from venire.orchestrator.designs import PlannedCampaign
from venire.orchestrator.engines.feed import Feed
from venire.orchestrator.engines.work import LaneWork
from venire.orchestrator.lanes.gate import Gate
from venire.orchestrator.lanes.lane import Lane
from venire.orchestrator.lanes.lane_events import LaneEvents
from venire.orchestrator.lanes.ledger import CallLedger
from venire.orchestrator.lanes.routes import Route, accepted_routes, lane_name, open_gates, register_routes, route_name
from venire.orchestrator.recording.recorder import Recorder
from venire.orchestrator.run.run_setup import RunContext
from venire.orchestrator.run.wave_file import clear_waves
from venire.orchestrator.run.wave_lane import WaveLane
from venire.storage.plans import submissions
from venire.storage.plans.submissions import OpenSubmission
from venire.storage.plans.trial_states import PendingTrials

if TYPE_CHECKING:
    from numpy.typing import NDArray


class RunLanes:
    """Every lane of a run with its ledger, and what it has to ask in this round; `providers` by route identity.

    `halt`: no further call is sent.
    """

    def __init__(self, context: RunContext, providers: Mapping[Identity, Provider], halt: asyncio.Event) -> None:
        self._context, self._providers, self._halt = context, providers, halt
        self._numbers = register_routes(context.store, context.campaign)
        self._accepted = accepted_routes(context.store)
        self._gates: Mapping[Identity, Gate] = {}
        """By route; those of one account share one."""
        self._lanes: dict[tuple[Identity, ...], Lane] = {}
        self.ledgers: dict[tuple[Identity, ...], CallLedger] = {}
        """Of these lanes."""
        self.other_calls: CallLedger
        """Of calls that an earlier run sent for no lane of this one."""
        self._submission_numbers = count(submissions.last_submission(context.store) + 1)
        self._waves: dict[tuple[Identity, ...], WaveLane] = {}
        self._left: dict[tuple[Identity, ...], PendingTrials] = {}
        """What each of these has left to ask in this round."""
        self.out: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        """Trials that were in batches when the round began."""
        self.out_elsewhere = 0
        """Of those still to be asked, how many are in batches that no lane of this run collects."""

    def __iter__(self) -> Iterator[Lane]:
        return iter(self._lanes.values())

    @property
    def gates(self) -> set[Gate]:
        """Those of all routes, each once."""
        return set(self._gates.values())

    @property
    def in_waves(self) -> tuple[WaveLane, ...]:
        """The lanes that ask in waves."""
        return tuple(self._waves.values())

    @property
    def is_waiting(self) -> bool:
        """Whether something is left that only a later start can take in."""
        return self.out_elsewhere > 0 or any(one.out.waves or one.left_for_later for one in self.in_waves)

    def waves_left(self, none: PendingTrials) -> list[tuple[WaveLane, PendingTrials]]:
        """Each lane that asks in waves with what it has left to ask in this round, or `none`."""
        return [(lane, self._left.get(identity, none)) for identity, lane in self._waves.items()]

    def open_gates(self, planned: PlannedCampaign) -> None:
        """Open the gates of all routes, with what was sent through them of late."""
        context = self._context
        clock = context.setup.clock
        self._gates = open_gates(context.store, context.campaign, self._providers, clock, planned.sent_elsewhere)

    def begin(self, recorder: Recorder) -> None:
        """Begin another round, whose calls go to this recorder."""
        context = self._context
        other = LaneEvents("no lane of this run", context.events, context.setup.warn)
        self.other_calls = self._open_ledger(other, recorder)
        for ledger in self.ledgers.values():
            ledger.begin(recorder)

    def work(self, planned: PlannedCampaign, pending: PendingTrials, recorder: Recorder) -> list[LaneWork]:
        """A feed for each lane whose judges have something left, with its workers' number.

        Lanes that ask in waves have none. Nothing that is in a batch is asked by another lane.
        """
        context = self._context
        found: list[LaneWork] = []
        by_lane: dict[tuple[Identity, ...], list[int]] = {}
        for number in np.unique(pending.respondents).tolist():
            by_lane.setdefault(planned.judges[number].lane.identity, []).append(number)
        self._recover_waves(planned, recorder)
        in_submission, self.out = submissions.open_lines(context.store)
        collected = [number for one in self.in_waves for number in one.out.waves]
        elsewhere = self.out[~np.isin(in_submission, collected)]
        self.out_elsewhere = int(np.isin(pending.trials, elsewhere).sum())
        for identity, numbers in by_lane.items():
            lane = self._opened(planned.judges[numbers[0]].lane, recorder)
            lane.begin()
            left = pending.of(*numbers)
            if identity in self._waves:
                self._left[identity] = left
                continue
            found.append(self.feed(lane, left.without(self.out)))
        return found

    def feed(self, lane: Lane, left: PendingTrials) -> LaneWork:
        """What a lane is to ask one by one, and by how many workers."""
        context = self._context
        feed = Feed(context.store, left, context.roster.done_asking, inline=context.setup.inline)
        return LaneWork(feed, lane, min(lane.settings.workers, len(left.trials)))

    def _recover_waves(self, planned: PlannedCampaign, recorder: Recorder) -> None:
        """Open the lanes that ask in waves, each with what is out of earlier runs, and begin a round with them."""
        store, setup = self._context.store, self._context.setup
        first = not self._waves
        self._left = {}
        out = submissions.open_submissions(store, planned.id) if first else ()
        if first:
            clear_waves(store.path)
        routes: set[int] = set()
        for settings in {judge.lane.identity: judge.lane for judge in planned.judges.values()}.values():
            batches = setup.batches.get(settings.routes[0].identity)
            if settings.batch is None or batches is None:
                continue
            lane = self._opened(settings, recorder)
            lane.begin()
            if first:
                self._waves[settings.identity] = self._open_wave_lane(lane, batches, planned)
                routes.add(number := self._numbers[route_name(settings.routes[0])])
                self._waves[settings.identity].out.recover([one for one in out if one.lane == number])
            self._waves[settings.identity].begin(recorder)
        for one in out:
            if one.lane not in routes:
                self._pass_over(one)

    def _pass_over(self, one: OpenSubmission) -> None:
        """Touch no batch that no lane of this run collects: it stays reserved, and nobody waits for that."""
        context = self._context
        for left in submissions.left_by_respondent(context.store, one.id):
            calls = Amount(left.lines, left.reserved, left.reserved_tokens)
            context.budgets[left.respondent].hold(calls)
            context.budgets[left.respondent].park(calls)
        context.setup.warn(
            f"warning: {one.lines:,} calls are out in batch {one.name}, sent for a judge that is not asked in "
            'batches now: they are not asked again; to collect them, give the judge transport = "batch" again'
        )

    def _open_wave_lane(self, lane: Lane, batches: BatchProvider, planned: PlannedCampaign) -> WaveLane:
        identity = lane.settings.identity
        judges = {number: judge for number, judge in planned.judges.items() if judge.lane.identity == identity}
        return WaveLane(
            lane,
            batches,
            self._context,
            campaign=planned.id,
            judges=judges,
            ledger=self.ledgers[identity],
            halt=self._halt,
            numbers=self._submission_numbers,
        )

    def _opened(self, settings: LaneSettings, recorder: Recorder) -> Lane:
        """The lane of these settings, which is opened once in a run."""
        if settings.identity in self._lanes:
            return self._lanes[settings.identity]
        context = self._context
        lane_events = LaneEvents(lane_name(settings), context.events, context.setup.warn)
        ledger = self.ledgers[settings.identity] = self._open_ledger(lane_events, recorder)
        lane = self._lanes[settings.identity] = Lane(
            settings,
            [self._open_route(way) for way in settings.routes],
            ledger=ledger,
            clock=context.setup.clock,
            stopping=self._halt,
            lane_events=lane_events,
            strict=context.campaign.strict,
            others_at_work=lambda: any(not one.routes.is_down and one.at_work for one in self),
        )
        return lane

    def _open_ledger(self, lane_events: LaneEvents, recorder: Recorder) -> CallLedger:
        context = self._context
        return CallLedger(recorder, clock=context.setup.clock, counters=context.counters, lane_events=lane_events)

    def _open_route(self, way: RouteSettings) -> Route:
        number, gate, clock = self._numbers[route_name(way)], self._gates[way.identity], self._context.setup.clock
        return Route(way, number, self._providers[way.identity], gate, clock, accepted=number in self._accepted)
