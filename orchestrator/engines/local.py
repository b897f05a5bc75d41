"""The engine of this process: some workers for each lane, under one task group."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from venire.arena.errors import BudgetReachedError, StoreError
from venire.orchestrator.engines.trial import UnreadableError
from venire.orchestrator.engines.work import LaneWork, RoundWork, TrialSource
from venire.orchestrator.lanes.lane import Lane, LaneClosedError, StoppedError
from venire.orchestrator.recording.ending import LeaseLosses


class LocalEngine:
    """Asks trials by tasks of this event loop; see `Engine`.

    A worker whose call waits to be repeated leaves its place to another one meanwhile.
    """

    def __init__(self) -> None:
        self._lanes: set[Lane] = set()
        self.losses = LeaseLosses()
        """None: it has no actors."""

    async def ask(self, work: RoundWork, lanes: Sequence[LaneWork]) -> None:
        """See `Engine.ask`."""
        async with asyncio.TaskGroup() as group:
            for feed, lane, workers in lanes:
                self._lanes.add(lane)
                start = partial(self._start_worker, group, work, feed, lane)
                lane.on_waiting = partial(self._hire, work, start, feed, lane)
                for _ in range(workers):
                    start()

    def halt(self) -> None:
        """Workers that wait for a turn or between attempts go home, the others finish their call."""
        for lane in self._lanes:
            lane.cancel_idle_workers()

    def _start_worker(self, group: asyncio.TaskGroup, work: RoundWork, feed: TrialSource, lane: Lane) -> None:
        worker = group.create_task(self._worker(work, feed, lane))
        lane.workers.add(worker)
        worker.add_done_callback(partial(self._worker_done, work, lane))

    def _worker_done(self, work: RoundWork, lane: Lane, worker: asyncio.Task[None]) -> None:
        lane.workers.discard(worker)
        if not worker.cancelled() and worker.exception() is not None:
            work.halt.set()  # a task group that gives up cancels its tasks, but not one that is hired after that

    def _hire(self, work: RoundWork, start: Callable[[], None], feed: TrialSource, lane: Lane) -> None:
        """Let another worker take the place of one whose call waits to be repeated, where there is more to ask."""
        if lane.wants_worker and not feed.empty and not work.halt.is_set() and not work.nobody_left.is_set():
            start()

    async def _worker(self, work: RoundWork, feed: TrialSource, lane: Lane) -> None:
        """Ask one trial after another, until there are none or there is a reason to stop."""
        while not (work.halt.is_set() or work.nobody_left.is_set()) and lane.closed is None:
            if lane.retire_surplus(asyncio.current_task()):
                return
            try:
                pending = await feed.take()
            except StoreError as error:
                work.store_failed(error)  # what others have in flight comes in
                return
            if pending is None:
                return
            if pending.respondent in work.done_asking:
                continue
            if work.issued is not None:
                if work.issued[pending.id]:
                    raise AssertionError(f"trial {pending.id} was handed out twice")
                work.issued[pending.id] = True
            judge = work.judges[pending.respondent]
            try:
                await work.ask(pending, judge, lane, work.prices[judge.name])
            except (StoppedError, LaneClosedError):
                return
            except UnreadableError:
                continue
            except BudgetReachedError as error:
                work.cannot_pay(pending.respondent, str(error))
