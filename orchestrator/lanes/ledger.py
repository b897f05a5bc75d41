"""The ledger of a lane's calls: what is set aside for each, and what it came to, each once and only once.

A call is *reserved*, then *announced* on disk just before it is sent, and at last *settled*: answered, failed, given up
or lost. What is not sent is given back: *released* before it was announced, *withdrawn* after that. Whoever sends
calls keeps them here: a lane of this process, the coordinator for its actors, and the waves of a batch interface.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import gt
from typing import Protocol

from venire.arena.budgets import NOTHING, Amount
from venire.arena.campaigns import Limits
from venire.arena.clock import Clock
from venire.arena.errors import BudgetReachedError, Fault
from venire.orchestrator.lanes.calls import Attempt, CallCounters, CallUsage
from venire.orchestrator.lanes.lane_events import LaneEvents
from venire.orchestrator.lanes.routes import Route
from venire.orchestrator.lanes.windows import Load
from venire.orchestrator.recording.recorder import AttemptRecord, Recorder


class LaneLedger(Protocol):
    """What a lane asks of whoever keeps the account of its calls: see `CallLedger`, which keeps it in this process."""

    counters: CallCounters

    def reservation(self, worst: Amount) -> Amount:
        """What to set aside for a call that may take so much by its price."""
        ...

    def reserve_now(self, attempt: Attempt) -> bool:
        """Set a call's reservation aside, where that needs no waiting."""
        ...

    async def reserve(self, attempt: Attempt) -> None:
        """Set a call's reservation aside, once the disk has kept up and others have freed what it needs.

        Raises BudgetReachedError where nothing that others free could be enough.
        """
        ...

    async def announce(self, attempt: Attempt) -> None:
        """Put a call that is sent next on the account, with its number. Cancelled, or raises: it is not announced.

        Raises StoreError; where others keep the account also BudgetReachedError and what ends a lane.
        """
        ...

    def release(self, attempt: Attempt) -> None:
        """Give back what was set aside for a call that is not sent: its money, and its permit if it has one."""
        ...

    def withdraw(self, attempt: Attempt) -> None:
        """Take a call back that was announced and then not sent, as if it had never been made."""
        ...

    def settle(self, attempt: Attempt) -> None:
        """Pay for a call that has ended, and put it on record."""
        ...

    async def safe(self) -> None:
        """Wait until the calls that were settled so far are on disk."""
        ...

    def learn(self, route: Route, limits: Limits, hold: float) -> None:
        """Take over the limits in the headers of an answer, and hold a route for so many seconds."""
        ...


class CallLedger:
    """The account of one lane's calls: their money, permits and announcements, the counters and events of the run.

    None of `reserve_now`, `release`, `withdraw`, `park`, `settle` and `enter` waits for anything, so each happens as a
    whole. What providers charge or count beyond the price is remembered: later calls reserve the highest so far.
    """

    def __init__(self, recorder: Recorder, *, clock: Clock, counters: CallCounters, lane_events: LaneEvents) -> None:
        self.counters = counters
        self._recorder = recorder
        self._clock = clock
        self._lane_events = lane_events
        self._most = NOTHING
        """The most that a provider charged or counted for a call, of each unit of which it was more than reserved."""

    def begin(self, recorder: Recorder) -> None:
        """Begin another round: calls go to this recorder."""
        self._recorder = recorder

    # --- before a call is sent ------------------------------------------------------------------------------------

    def reservation(self, worst: Amount) -> Amount:
        """What to set aside for a call that may take so much by its price: no less than the most taken so far."""
        return worst if self._most is NOTHING else worst.at_least(self._most)

    def reserve_now(self, attempt: Attempt) -> bool:
        """See `LaneLedger.reserve_now`."""
        if self._recorder.full:
            return False
        try:
            attempt.budget.reserve(attempt.reservation)
        except BudgetReachedError:
            return False
        return True

    async def reserve(self, attempt: Attempt) -> None:
        """See `LaneLedger.reserve`."""
        await self._recorder.room()
        await attempt.budget.reserve_when_free(attempt.reservation)

    async def announce(self, attempt: Attempt) -> None:
        """See `LaneLedger.announce`."""
        step, counters = attempt.step, self.counters
        number = step.attempts + 1
        attempt.slot = await self._recorder.announce(step.trial, step.number, number, attempt.lane, attempt.reservation)
        step.attempts = attempt.number = number
        step.tries += 1
        attempt.again = step.tries > 1
        counters.calls += 1
        counters.retries += attempt.again
        counters.sending.add(attempt.sender)
        attempt.sent_at = self._clock.wall()
        if self._lane_events.events.active:
            self._lane_events.sent(attempt)

    def sent(self, attempts: Iterable[Attempt]) -> None:
        """Say that calls are on their way which were announced as lines of a batch, and are counted with it."""
        if self._lane_events.events.active:
            for attempt in attempts:
                self._lane_events.sent(attempt)

    async def adopt(self, attempt: Attempt, load: Load | None) -> None:
        """Take over a call that an earlier run sent and did not settle, whatever the limits are by now.

        `load` is what it asks of its gate; None: it has ended, and no gate needs to know.
        """
        attempt.budget.hold(attempt.reservation)
        if attempt.route is not None and load is not None:
            attempt.permit = attempt.route.gate.admit(load)
        await self.announce(attempt)

    # --- not sent after all ---------------------------------------------------------------------------------------

    def release(self, attempt: Attempt) -> None:
        """See `LaneLedger.release`."""
        if attempt.permit is not None and attempt.route is not None:
            attempt.route.gate.release(attempt.permit)
        attempt.budget.release(attempt.reservation)
        if attempt.in_doubt:
            attempt.budget.unpark(attempt.reservation)

    def withdraw(self, attempt: Attempt) -> None:
        """See `LaneLedger.withdraw`."""
        if attempt.slot is not None:  # else it is a line of a batch, and counted with it
            step, counters = attempt.step, self.counters
            counters.calls -= 1
            counters.retries -= attempt.again
            counters.sending.discard(attempt.sender)
            if step.attempts == attempt.number:  # else others have asked the step since
                step.attempts -= 1
            step.tries -= 1
            self._recorder.withdraw(attempt.slot)
        self.release(attempt)
        if self._lane_events.events.active:
            self._lane_events.ended(attempt, attempt_record(attempt, 0))

    # --- on its way -----------------------------------------------------------------------------------------------

    def park(self, attempt: Attempt) -> None:
        """Wait no longer for a call whose sender is silent: others may have its place, and its money is not expected.

        It stays reserved until it is settled or withdrawn after all.
        """
        attempt.in_doubt = True
        attempt.budget.park(attempt.reservation)
        if attempt.permit is not None and attempt.route is not None:
            attempt.route.gate.done(attempt.permit, None, None, replied=False)
            attempt.permit = None

    def renumber(self, attempt: Attempt, number: int) -> None:
        """Give a call that is on its way another number, on disk too: see `Recorder.renumber`."""
        assert attempt.slot is not None
        step = attempt.step
        attempt.slot = self._recorder.renumber(
            attempt.slot, step.trial, step.number, number, attempt.lane, attempt.reservation
        )
        attempt.number = number

    # --- ended ----------------------------------------------------------------------------------------------------

    def settle(self, attempt: Attempt) -> None:
        """See `LaneLedger.settle`."""
        cost, tokens, doubt = attempt.paid()
        self.enter(attempt, attempt_record(attempt, cost), attempt.usage(), tokens, doubt)

    def enter(
        self, attempt: Attempt, record: AttemptRecord, usage: CallUsage, tokens: int | None, doubt: str = ""
    ) -> None:
        """As `settle`, of a call whose record, usage, tokens and doubt were made where it was sent."""
        reserved, route, counters, cost = attempt.reservation, attempt.route, self.counters, record.cost
        counters.sending.discard(attempt.sender)
        counted = reserved.money if cost is None else cost
        if route is not None:
            if attempt.permit is not None:
                given, made, replied, limited, asked = usage
                route.gate.done(attempt.permit, given, made, replied=replied, rate_limited=limited, retry_after=asked)
            counters.end(route.name, record.fault, attempt.waited, counted)
            if doubt:
                self._lane_events.disbelieved(route, doubt)
        taken = Amount(1, counted, reserved.tokens if tokens is None else tokens)
        attempt.budget.settle(reserved, taken)
        if attempt.in_doubt:
            attempt.budget.unpark(reserved)
        if counted > reserved.money and not self._most.money and route is not None:
            self._lane_events.surcharged(route, counted, reserved.money)
        if any(map(gt, taken, reserved)):
            beyond = (now if now > held else 0 for now, held in zip(taken, reserved, strict=True))
            self._most = self._most.at_least(Amount._make(beyond))
        attempt.step.cost += counted
        counters.answered += record.reply is not None
        if self._lane_events.events.active:
            self._lane_events.ended(attempt, record)
        self._recorder.attempt(record, attempt.slot)

    async def safe(self) -> None:
        """See `LaneLedger.safe`."""
        await self._recorder.safe()

    def learn(self, route: Route, limits: Limits, hold: float) -> None:
        """See `LaneLedger.learn`."""
        route.gate.learn(limits)
        if hold > 0:
            route.gate.pause(hold)
        if limits != Limits():
            self._lane_events.learnt(route, limits)


def attempt_record(attempt: Attempt, cost: int | None) -> AttemptRecord:
    """The row of a call that has ended, at so many nano-dollars; None: not known."""
    step, reply, error, message = attempt.step, attempt.reply, attempt.error, attempt.lost
    if error is not None:
        fault, status, message = error.fault, error.status, str(error)
    else:
        fault, status = (Fault.NONE, 200) if reply is not None else (Fault.UNANSWERED, None)
    return AttemptRecord(
        trial=step.trial,
        step=step.number,
        number=attempt.number,
        lane=attempt.lane,
        sent_at=attempt.sent_at,
        latency=attempt.latency,
        waited=attempt.waited,
        reserved=attempt.reservation.money,
        reserved_tokens=attempt.reservation.tokens,
        cost=cost,
        request_digest=attempt.digest,
        fault=fault,
        http_status=status,
        message=message,
        reply=reply,
        structured=attempt.structured,
        cut=attempt.cut,
    )
