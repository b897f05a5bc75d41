"""Permission for the calls of actors: each is reserved, admitted by its route's gate and announced before it is sent.

So limits and budgets hold over all actors, and what a lost actor had in flight is known exactly. A call whose actor is
silent stays reserved: *in doubt* until it is reported after all, or until its process is known to be gone, and it
counts as unanswered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from venire.arena.campaigns import JudgeSettings
from venire.arena.clock import Clock
from venire.arena.errors import BudgetReachedError, Fault, StoreError
from venire.orchestrator.engines.messages import Ask, Attempted, Begun, CallOut, Failed, Grant, Refused, Settled
from venire.orchestrator.engines.work import RoundWork
from venire.orchestrator.lanes.calls import Attempt, Step
from venire.orchestrator.lanes.lane import Lane
from venire.orchestrator.lanes.ledger import CallLedger
from venire.orchestrator.lanes.routes import Route
from venire.orchestrator.recording.ending import LeaseLosses
from venire.storage.plans.trial_states import PendingTrial

_LATE = 10_000
"""Numbers of late answers are above the next multiple of this: the reply of a step is the lowest that is answered."""
_LOST = "the actor that sent it was lost before its answer was reported"


@dataclass(slots=True, eq=False)
class TrialCalls:
    """The calls of a trial that actors ask, and how it ended, which is put on record with what they cost."""

    pending: PendingTrial
    judge: JudgeSettings
    lane: Lane
    steps: dict[int, Step] = field(default_factory=dict)
    """What was asked of it in this run, by number; `pending` says what was on record before."""
    doubts: set[PermittedCall] = field(default_factory=set)
    """Calls of lost leases that may still be reported: its verdict waits, since it names the cost of all calls."""
    late: int = 0
    """Late answers so far."""
    end: Settled | Failed | None = None

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
class PermittedCall:
    """A call that has a permit, and may have been sent."""

    attempt: Attempt
    ledger: CallLedger
    trial: TrialCalls | None
    """None: the call was sent for a coordinator that is gone."""


@dataclass(slots=True, eq=False)
class Caller:
    """What the coordinator knows of the calls of one actor."""

    out: dict[int, PermittedCall] = field(default_factory=dict)
    """By the actor's numbers."""
    asking: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    """Calls that wait for a permit."""
    answers: list[Grant | Refused] = field(default_factory=list)
    """What goes down with the next exchange."""
    answered_at: float = 0.0
    """When it last answered."""
    news: asyncio.Event = field(default_factory=asyncio.Event)
    """Set whenever it answers."""


class CallPermits:
    """Grants the calls of a round, and settles them on the ledgers of their lanes.

    `routes` are those of the round's lanes, by number. Without a word from an actor for `stale_seconds` it is granted
    nothing. `resolved` is called with each call once it is known what became of it.
    """

    def __init__(
        self,
        work: RoundWork,
        routes: Mapping[int, tuple[Lane, Route]],
        *,
        clock: Clock,
        losses: LeaseLosses,
        stale_seconds: float,
        resolved: Callable[[PermittedCall], None],
    ) -> None:
        assert work.account is not None
        self._work, self._account, self._routes = work, work.account, routes
        self._clock, self._losses, self._stale_seconds, self._resolved = clock, losses, stale_seconds, resolved
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def failed(self) -> None:
        """Wait for what goes wrong in granting a call, and raise it."""
        await self._failure

    def ask(self, caller: Caller, trial: TrialCalls | None, ask: Ask) -> None:
        """A call wants a permit; without a trial, which went to others, it is refused."""
        lane, route = self._routes[ask.lane]
        if trial is None or self._work.halt.is_set():
            caller.answers.append(Refused(ask.call, "stopped", "the run is stopping"))
        elif lane.closed is not None:
            caller.answers.append(Refused(ask.call, "closed", lane.closed))
        else:
            task = asyncio.create_task(self._grant(caller, lane, route, trial, ask))
            caller.asking[ask.call] = task
            task.add_done_callback(lambda task: self._granted(caller, ask.call, task))

    def give_up(self, caller: Caller, call: int) -> None:
        """A call wants no permit any more; where it has one by now, its actor withdraws it once that has come."""
        if (task := caller.asking.get(call)) is not None:
            task.cancel()

    def refuse_all(self, caller: Caller, why: str) -> None:
        """Grant none of the calls that wait for a permit."""
        for call, task in list(caller.asking.items()):
            task.cancel()
            caller.answers.append(Refused(call, "stopped", why))

    def withdraw(self, caller: Caller, call: int) -> None:
        """A call had a permit and was not sent: everything is given back."""
        if (one := caller.out.pop(call, None)) is not None:
            one.ledger.withdraw(one.attempt)
            self._resolved(one)

    def attempted(self, caller: Caller, report: Attempted) -> None:
        """A call has ended: pay for it and put it on record."""
        one = caller.out.pop(report.call, None)
        if one is None:
            return  # it is on disk, and was not acknowledged in time
        attempt, record, losses = one.attempt, report.record, self._losses
        if attempt.in_doubt and record.reply is not None:
            losses.late += 1
            losses.late_cost += record.reserved if record.cost is None else record.cost
            if one.trial is not None:
                # Whoever asks this step now, or will, has a lower number: its reply is what the verdict rests on.
                one.ledger.renumber(attempt, one.trial.late_number(attempt.step.number))
        one.ledger.enter(attempt, record._replace(number=attempt.number), report.usage, report.tokens, report.doubt)
        if attempt.lane in self._routes and record.fault is Fault.RATE_LIMITED:
            lane, route = self._routes[attempt.lane]
            lane.heed_hold(route)
        self._resolved(one)

    def doubt(self, caller: Caller) -> None:
        """An actor is silent: nobody waits for its calls, which may still be reported."""
        for one in caller.out.values():
            one.ledger.park(one.attempt)
            if one.trial is not None:
                one.trial.doubts.add(one)

    def bury(self, caller: Caller) -> None:
        """The process that had these calls in flight is gone: they count as unanswered, at their highest price."""
        out, caller.out = caller.out, {}
        for one in out.values():
            self._losses.calls += 1
            self._losses.reserved += one.attempt.reservation.money
            one.attempt.lost = _LOST
            one.ledger.settle(one.attempt)
            self._resolved(one)

    async def adopt(self, caller: Caller, begun: Begun) -> set[int]:
        """Go on with what an actor has of a coordinator that is gone: calls in flight, and answers not on disk.

        Returns the trials that these are of.
        """
        said = {one.call: one for one in begun.unacknowledged}
        trials = sorted({one.record.trial for one in said.values()} | {one.trial for one in begun.out.values()})
        sent = {tuple(row) for row in self._account.store.read("attempts_sent", trials=trials)}
        unstored = {
            call: one.out._replace(load=None)
            for call, one in said.items()
            if (one.record.trial, one.record.step, one.record.sent_at) not in sent
        }
        for call, under_way in {**unstored, **begun.out}.items():
            caller.out[call] = await self._take_over(under_way)
        return {one.attempt.step.trial for one in caller.out.values()}

    async def close(self, caller: Caller) -> bool:
        """Grant nothing more, and take what has no answer for unanswered: whether there was any."""
        for task in list(caller.asking.values()):
            task.cancel()
        await asyncio.gather(*caller.asking.values(), return_exceptions=True)
        unresolved = bool(caller.out)
        self.bury(caller)
        return unresolved

    async def _grant(self, caller: Caller, lane: Lane, route: Route, trial: TrialCalls, ask: Ask) -> None:
        """Reserve, admit and announce a call as its lane would here."""
        ledger, respondent = self._account.ledgers[lane.settings.identity], trial.pending.respondent
        attempt = Attempt(
            trial.step(ask.step),
            self._account.budgets[respondent],
            ledger.reservation(ask.reservation),
            sender=object(),
            lane=ask.lane,
            route=route,
        )
        try:
            await ledger.reserve(attempt)
        except BudgetReachedError as error:
            self._work.cannot_pay(respondent, str(error))
            caller.answers.append(Refused(ask.call, "budget", str(error)))
            return
        try:
            attempt.permit = route.gate.take_now(ask.load) or await route.gate.take(ask.load)
            while self._is_stale(caller):  # permits that wait for an actor would be used all at once when it is back
                route.gate.release(attempt.permit)
                attempt.permit = None
                await caller.news.wait()
                attempt.permit = await route.gate.take(ask.load)
            if route.gate.throttler is not None:
                await route.gate.throttler.acquire()
            attempt.waited = attempt.permit.waited
            await ledger.announce(attempt)
        except BaseException:  # cancellation too: what is not sent stays reserved nowhere
            ledger.release(attempt)
            raise
        caller.out[ask.call] = PermittedCall(attempt, ledger, trial)
        caller.answers.append(Grant(ask.call, attempt.number, attempt.waited, attempt.reservation))

    def _granted(self, caller: Caller, call: int, task: asyncio.Task[None]) -> None:
        caller.asking.pop(call, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            caller.answers.append(Refused(call, "stopped", "the run is stopping"))
            if isinstance(error, StoreError):
                self._work.store_failed(error)
            elif not self._failure.done():
                self._failure.set_exception(error)

    def _is_stale(self, caller: Caller) -> bool:
        """Whether an actor has not answered for longer than an exchange takes."""
        return self._clock.monotonic() - caller.answered_at > self._stale_seconds

    async def _take_over(self, under_way: CallOut) -> PermittedCall:
        account = self._account
        known = account.store.read("attempts_of", trials=[under_way.trial])
        numbers, number = {number for _, step, number in known if step == under_way.step}, under_way.number
        if number in numbers:  # another command has opened the store meanwhile, and took it for unanswered
            number = max(numbers) + 1
        judge = self._work.judges.get(under_way.respondent)
        lane, route = self._routes.get(under_way.lane, (None, None))
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
        return PermittedCall(attempt, ledger, None)
