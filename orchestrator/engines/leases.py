"""Leases of work: which actor asks which trials of a round, and what is left to lease.

A lease ends when its actor is lost or silent for too long. Its trials are then asked elsewhere at once, and one that
has calls in doubt is concluded when it is known what became of them.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from venire.arena.campaigns import Identity
from venire.arena.errors import StoreError
from venire.orchestrator.engines.messages import Failed, Link, Settled
from venire.orchestrator.engines.permits import Caller, PermittedCall, TrialCalls
from venire.orchestrator.engines.work import LaneWork, RoundWork, TrialSource
from venire.orchestrator.lanes.lane import Lane
from venire.storage.plans.trial_states import PendingTrial, load

_AHEAD = 1.25
"""Trials leased to an actor, for each call in flight that is its share."""
_MIN_AHEAD = 4

LaneKey = tuple[Identity, ...]


@dataclass(slots=True, eq=False)
class LeasedTrial(TrialCalls):
    """A trial that is leased, or on its way to another lease."""

    holder: tuple[Actor, int] | None = None
    """Who has it, and under which lease."""


@dataclass(slots=True, eq=False, kw_only=True)
class Actor(Caller):
    """What the coordinator knows of one actor: beside its calls, its lease, trials and reports."""

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
    closed: dict[LaneKey, str] = field(default_factory=dict)
    idle: bool = False
    """Whether it asks nothing, and knows that it may not."""
    silent_since: float | None = None
    """When its last lease ended without a new one."""

    @property
    def name(self) -> str:
        return self.link.name


class Stock:
    """What one lane has left for actors: what its feed hands out, and trials that came back."""

    def __init__(self, of: Leases, feed: TrialSource, lane: Lane) -> None:
        self.lane, self._feed, self._leases = lane, feed, of
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
        work = self._leases.work
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
                elif pending.respondent in self._leases.work.done_asking:
                    self._leases.forget(pending.id)
                elif pending.id not in self._leases.away:
                    return pending
                else:
                    self._leases.away[pending.id].append(self)
        return None

    async def _take(self) -> PendingTrial | None:
        try:
            return await self._feed.take() if self._fed else None
        except StoreError as error:
            self._leases.work.store_failed(error)
            return None

    async def _load(self) -> None:
        """Read what came back anew, once all that is known of it is on disk."""
        account = self._leases.account
        trials = np.array(sorted(set(self._back)), dtype=np.int64)
        self._back.clear()
        self._loading = len(trials)
        await account.recorder.safe()
        loop = asyncio.get_running_loop()
        self._loaded.extend(await loop.run_in_executor(None, load, account.store, trials))
        self._loading = 0


class Leases:
    """The trials of a round among its actors."""

    def __init__(self, work: RoundWork, lanes: Sequence[LaneWork], actors: Sequence[Actor]) -> None:
        assert work.account is not None
        self.work, self.account, self._actors = work, work.account, actors
        self.stocks = {one.lane.settings.identity: Stock(self, one.feed, one.lane) for one in lanes}
        self.trials: dict[int, LeasedTrial] = {}
        self.away: dict[int, list[Stock]] = {}
        """Trials with a call that a coordinator which is gone had under way, and who waits to hand them out."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to lease, as far as is known."""
        return all(one.is_empty for one in self.stocks.values())

    @property
    def is_over(self) -> bool:
        """Whether nothing is left at all: to lease, with an actor, or in flight for a coordinator that is gone."""
        held = any(one.holder is not None for one in self.trials.values())
        return not held and not self.away and self.is_empty

    async def lease(self, actor: Actor) -> list[PendingTrial]:
        """More trials for an actor, so that it has its share of each lane."""
        trials: list[PendingTrial] = []
        for key, stock in self.stocks.items():
            leased = actor.leased.setdefault(key, set())
            wanted = self._share(stock.lane) + actor.waiting.get(key, 0) - len(leased)
            while wanted > 0 and key not in actor.closed and (pending := await stock.next()) is not None:
                trials.append(self._lease(actor, stock, pending))
                wanted -= 1
        return trials

    def _share(self, lane: Lane) -> int:
        """Trials that an actor may have at once: its part of the calls in flight, and some ahead."""
        others = sum(1 for one in self._actors if one.lease and lane.settings.identity not in one.closed)
        return math.ceil(_AHEAD * lane.settings.workers / max(1, others)) + _MIN_AHEAD

    def _lease(self, actor: Actor, stock: Stock, pending: PendingTrial) -> PendingTrial:
        trial = self.trials.get(pending.id)
        if trial is None:
            judge = self.work.judges[pending.respondent]
            trial = self.trials[pending.id] = LeasedTrial(pending, judge, stock.lane)
        trial.holder = (actor, actor.lease)
        actor.leased[stock.key].add(pending.id)
        stock.lane.elsewhere += 1
        return pending._replace(attempts=trial.attempts, cost=trial.cost)

    def held(self, actor: Actor, lease: int, number: int) -> LeasedTrial | None:
        """A trial that an actor has under a lease; None where it went to another."""
        trial = self.trials.get(number)
        return trial if trial is not None and trial.holder == (actor, lease) else None

    def take_back(self, trial: LeasedTrial) -> None:
        """Have a trial leased again, unless its judge is asked no more."""
        self.let_go(trial)
        if not self.work.halt.is_set() and trial.pending.respondent not in self.work.done_asking:
            self.stocks[trial.lane.settings.identity].put_back(trial.pending.id)
        elif not trial.doubts:
            self.trials.pop(trial.pending.id, None)

    def let_go(self, trial: LeasedTrial) -> None:
        """A trial is with its actor no more."""
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

    def ended(self, trial: LeasedTrial, end: Settled | Failed) -> None:
        """A trial was asked to its end: put it on record, once nothing of it is in doubt."""
        self.let_go(trial)
        trial.end = end
        if not trial.doubts:
            self._conclude(trial)

    def resolved(self, call: PermittedCall) -> None:
        """It is known what became of a call: whoever waited for that goes on."""
        trial = call.trial
        if trial is None:
            number = call.attempt.step.trial
            for stock in self.away.pop(number, ()):
                stock.put_back(number)
            return
        trial.doubts.discard(call)
        if trial.end is not None and not trial.doubts:
            self._conclude(trial)

    def _conclude(self, trial: TrialCalls) -> None:
        """Put a trial on record, at the cost of all its calls."""
        end, ends = trial.end, self.account.ends
        del self.trials[trial.pending.id]
        if isinstance(end, Settled):
            ends.conclude(trial.pending, trial.judge, end.outcome, trial.cost, end.seconds, end.reply)
        elif end is not None:
            ends.fail(trial.pending, trial.judge, end.step, end.fault, trial.cost, end.seconds)
