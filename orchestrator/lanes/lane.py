"""A lane: sends calls one by one on its routes; its ledger pays for them and keeps every attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from venire.arena.budgets import Amount
from venire.arena.campaigns import LaneSettings, Limits, TokenPrice
from venire.arena.clock import Clock
from venire.arena.errors import BudgetReachedError, CallError, Fault, OutOfFilesError, StoreError, TransientError
from venire.arena.records import Reply, Request
from venire.judges.providers.token_counting import worst_case
from venire.orchestrator.costs.budget import BudgetView
from venire.orchestrator.lanes.calls import Attempt, Call, Step, digest
from venire.orchestrator.lanes.lane_events import LaneEvents
from venire.orchestrator.lanes.ledger import LaneLedger
from venire.orchestrator.lanes.refusals import Doubt, Refusal, is_key_refused, refusal_advice
from venire.orchestrator.lanes.retry import retry_call
from venire.orchestrator.lanes.routes import Route, RouteLease, Routes

CLOSING_FAULTS = frozenset({Fault.AUTHENTICATION, Fault.QUOTA})
"""Faults that no other call with the same key would escape, but for refusals without a reason: see `refusals`."""

_REFUSED_IN_A_ROW = 20
"""Bad requests without an answer between them that close a lane: the model or a setting is wrong, not a trial."""


_SPARE_FILES = 4
"""Files left free for the store once this process was out of them."""
_FILES_SECONDS = 1.0
"""Seconds until a call is tried again for which no file could be opened, where none of its route is in flight."""

_MIN_WAITING, _WAITING_PER_PLACE = 256, 4
"""Calls that may wait to be repeated while others are asked in their stead: at least, and for each in flight."""


class LaneClosedError(Exception):
    """The lane takes no more calls: its keys were refused, its accounts are empty, or no route answers."""


class StoppedError(Exception):
    """The campaign is stopping and this call was not sent."""


class Lane:
    """Sends the calls of all judges of one model.

    `others_at_work` returns whether other lanes of the campaign are working: while they are, a lane whose routes never
    answer is not given up.
    """

    def __init__(
        self,
        settings: LaneSettings,
        routes: Sequence[Route],
        *,
        ledger: LaneLedger,
        clock: Clock,
        stopping: asyncio.Event,
        lane_events: LaneEvents,
        strict: bool = False,
        others_at_work: Callable[[], bool] = lambda: False,
    ) -> None:
        self.settings = settings
        self.routes = Routes(routes, clock, self._give_up_if_too_long)
        self.closed: str | None = None
        self.workers: set[asyncio.Task[None]] = set()
        """The tasks that send calls on this lane, including those whose call waits for a retry."""
        self.elsewhere = 0
        """Trials that actors of a cluster ask through this lane at present."""
        self._returns: dict[asyncio.Task[Any] | None, float] = {}
        """When each call that waits between two attempts is retried; it occupies no worker place meanwhile."""
        self.on_waiting: Callable[[], None] = lambda: None
        """Called when a call begins to wait: another worker may take its place."""
        self.on_closing: Callable[[str], None] = lambda why: None
        """Called with why the lane takes no more calls, once."""
        self._ledger = ledger
        self._clock = clock
        self._stopping = stopping
        self._strict = strict
        self._lane_events = lane_events
        self._others_at_work = others_at_work
        self._price: TokenPrice | None = None
        self._rates: tuple[TokenPrice, ...] = ()
        """What calls at the last price may be charged at, by whichever route they go."""
        for route in routes:
            route.provider.on_limits = partial(self.learn, route)

    def begin(self) -> None:
        """Begin another round: no worker yet. What was learnt about routes is kept."""
        self.workers.clear()
        for route in self.routes.all:
            route.refusals.drop()

    @property
    def at_work(self) -> bool:
        """Whether any worker of this lane is still active, here or elsewhere."""
        return self.elsewhere > 0 or any(not worker.done() for worker in self.workers)

    @property
    def waiting(self) -> int:
        """Calls that wait between two attempts, while other calls take their places."""
        return len(self._returns)

    @property
    def wants_worker(self) -> bool:
        """Whether to add a worker because others wait for a retry; limited, so waiting calls do not fill memory."""
        few = self.waiting <= max(_MIN_WAITING, _WAITING_PER_PLACE * self.settings.workers)
        return few and len(self.workers) - self.waiting < self.settings.workers

    def retire_surplus(self, worker: asyncio.Task[None] | None) -> bool:
        """Whether this worker is surplus, since calls that waited between attempts have come back; it has to end then.

        It is no longer counted from here on, not from when its task has ended: of several workers that look in one turn
        of the event loop only the surplus may leave.
        """
        if worker is None or len(self.workers) - self.waiting <= self.settings.workers:
            return False
        self.workers.discard(worker)
        return True

    def report_holds(self, seconds: float) -> None:
        """Report routes that rate-limit responses slow down or that send nothing for long, where calls wait for them.

        Called every so many seconds.
        """
        if self.closed is None and self.at_work:
            for route in self.routes.all:
                if route.closed is None:
                    if route.gate.slowed:
                        self._ledger.counters.of(route.name).slowed += seconds
                    others = bool(self.routes.other_routes((route,)))
                    self._lane_events.waiting(route, self._clock.monotonic(), others=others)
                    self._lane_events.slowed(route)
            if self._returns and len(self._returns) == len(self.workers):
                self._lane_events.all_wait(len(self._returns), min(self._returns.values()) - self._clock.monotonic())

    @property
    def slowed(self) -> list[str]:
        """How rate-limit responses slow its routes at present, a sentence for each."""
        there = [route for route in self.routes.all if route.closed is None] if self.at_work else []
        return [f"{route.name}: {slowed}" for route in there if (slowed := route.gate.slowed)]

    def cancel_idle_workers(self) -> None:
        """Cancel the workers without a call in flight, waiting for a permit or between attempts; others finish."""
        for worker in self.workers:
            if worker not in self._ledger.counters.sending and worker is not asyncio.current_task():
                worker.cancel()

    async def ask(self, step: Step, request: Request, price: TokenPrice, budget: BudgetView) -> Reply:
        """The reply to one step, paid from a budget, after as many attempts as needed and the settings allow.

        Raises CallError when the attempts are used up or the fault will not pass, LaneClosedError, StoppedError and
        BudgetReachedError when the call may not be sent, StoreError when the store has failed. Cancelled: a call that
        was on its way is on record as unanswered.
        """
        call = self._prepare(step, request, price, budget)
        while True:
            try:
                try:
                    return await self._attempt(call)
                except TransientError as failed:
                    self._check_open()
                    patient_until = self._clock.monotonic() + self.settings.patience
                    return await retry_call(
                        failed,
                        partial(self._attempt_while_open, call),
                        attempts=self.settings.max_attempts,
                        elapsed=self.settings.max_elapsed,
                        clock=self._clock,
                        sleep=self._wait_aside,
                        asked=partial(self._asked_wait, call),
                        uncounted=partial(self._is_uncounted_failure, call, patient_until),
                    )
            except CallError as error:
                await self._refuse(call, error)  # raises, unless there is another way

    def _is_uncounted_failure(self, call: Call, patient_until: float) -> bool:
        """Whether a failure is the route's and not the step's: an outage should use up no probe's attempts."""
        return call.probed and self._clock.monotonic() < patient_until

    async def _wait_aside(self, seconds: float) -> None:
        """Wait between two attempts, while somebody else takes the place."""
        worker = asyncio.current_task()
        self._returns[worker] = self._clock.monotonic() + seconds
        self.on_waiting()
        try:
            await self._clock.sleep(seconds)
        finally:
            del self._returns[worker]

    def _asked_wait(self, call: Call, error: TransientError) -> float:
        """Seconds that this call waits because the provider asked for it; none where it can go another way."""
        seconds = error.retry_after or 0.0
        if seconds and error.fault is Fault.RATE_LIMITED and self.routes.has_other(call.route, seconds):
            call.avoid(call.route, self._clock.monotonic() + seconds)
            return 0.0
        return seconds

    def _prepare(self, step: Step, request: Request, price: TokenPrice, budget: BudgetView) -> Call:
        route = self.routes.all[0]
        body = route.provider.encode(route.settings.model, request)
        tokens = worst_case(body)
        if price is not self._price:  # to find it by its hash would take as long
            self._price, self._rates = price, tuple({route.settings.price or price for route in self.routes.all})
        worst = 0
        for rate in self._rates:
            if (cost := rate.cost(tokens, request.max_tokens)) > worst:
                worst = cost
        reservation = self._ledger.reservation(Amount(1, worst, tokens + request.max_tokens))
        return Call(step, request, price, budget, body, digest(body), route.wire, reservation, route)

    async def _refuse(self, call: Call, error: CallError) -> None:
        """Close what a fault closes; raises it, or that the lane is closed, unless the call can go another way."""
        route = call.route
        if error.fault is Fault.BAD_REQUEST:
            route.refused += 1
            if not route.refusals.accepted and route.closed is None:
                call.doubt = call.doubt or Doubt()
                route.refusals.doubt(self._refusal(call, error, call.doubt))
        own = error.by_status is not None and await self._refuses_this_call(call, error)
        closing = (error.fault in CLOSING_FAULTS and not own) or route.refused >= _REFUSED_IN_A_ROW
        if closing and route.closed is None:
            self._close_route(route, error, self._advice(call, error))
        if own:
            once_more = route in call.refused_by  # the others have failed meanwhile
            call.refused_by += (route,)
            if once_more or not self.routes.other_routes(call.refused_by):
                raise error
        if error.fault not in CLOSING_FAULTS:
            if self.closed is not None:
                raise LaneClosedError(self.closed) from error
            raise error
        self._check_open()

    def _refusal(self, call: Call, error: CallError, doubt: Doubt) -> Refusal:
        again = call.step.attempts > len(call.refused_by) + 1
        return Refusal(error, self._clock.monotonic(), call.step.prefix, call.step.trial, again, doubt)

    async def _refuses_this_call(self, call: Call, error: CallError) -> bool:
        """Whether a refusal without a reason may be of this call alone; its key is then still in use."""
        route, now = call.route, self._clock.monotonic()
        if route.closed is not None:
            return False
        call.doubt = call.doubt or Doubt()
        if route.refusals.refused(self._refusal(call, error, call.doubt)):
            return False
        if route.refusals.may_ask(now) and await is_key_refused(route.provider):
            return False
        return route.closed is None

    def _close_route(self, route: Route, error: CallError, advice: str = "") -> None:
        """Send no more calls by a route; what it refused and is undecided is asked again when nobody else is there."""
        running = len(route.refusals.undecided) if error.by_status is not None else 0
        why = f"{error} ({running:,} refusals running)" if running > 1 else f"{error}{advice}"
        route.closed = why
        others = any(route.closed is None for route in self.routes.all)
        self._lane_events.quarantined(route, error, others=others)
        self.routes.notify_waiters()
        if not others:
            several = len(self.routes.all) > 1
            self.close(f"the last of its routes, {route.name}: {why}" if several else why)
            route.refusals.drop()
        route.refusals.decide(own=False)

    def fail(self, error: CallError, record: Callable[[], None]) -> None:
        """Record a trial as failed with the error that `ask` raised: now, or once its key is known to be good."""
        for route in self.routes.all:
            for refusal in reversed(route.refusals.undecided):
                if refusal.error is error:
                    refusal.doubt.fail(record)
                    return
        record()

    def decide_refusals(self) -> None:
        """Decide on the refusals that no answer has decided, when all has been asked."""
        for route in self.routes.all:
            refusals = route.refusals
            if refusals.undecided and refusals.are_of_the_key and route.closed is None:
                error = refusals.undecided[-1].error
                self._close_route(route, error, refusal_advice(error))
        for route in self.routes.all:
            route.refusals.decide(own=True)

    def _advice(self, call: Call, error: CallError) -> str:
        """What may help where a whole lane's requests are refused, in the words of the campaign file."""
        held = call.request.schema is not None and call.route.structured
        if held and error.fault is Fault.BAD_REQUEST:
            return f"{refusal_advice(error)} (where it is the schema that is refused: set structured_output = false)"
        return refusal_advice(error)

    def close(self, why: str) -> None:
        """Take no more calls, for a reason that is said in a sentence."""
        if self.closed is None:
            self.closed = why
            self._lane_events.closed(why)
            self.cancel_idle_workers()
            self.on_closing(why)

    def _give_up_if_too_long(self) -> None:
        self._check_open()
        silent = self._clock.monotonic() - self.routes.down_since
        if silent >= self.settings.patience and not self._others_at_work():
            long = f"{silent:.0f} s" if silent < 120 else f"{silent / 60:.0f} minutes"
            failed = [route.failed for route in self.routes.all if route.failed is not None]
            last = f"; the last failure: {failed[0]}{refusal_advice(failed[0])}" if failed else ""
            self.close(f"no call was answered for {long}{last}")
            self._check_open()

    def _check_open(self) -> None:
        if self._stopping.is_set():
            raise StoppedError
        if self.closed is not None:
            raise LaneClosedError(self.closed)

    async def _attempt_while_open(self, call: Call) -> Reply:
        """One attempt; a failure that would be tried again is not waited for when nothing more will be sent."""
        try:
            return await self._attempt(call)
        except TransientError:
            self._check_open()
            raise

    async def _attempt(self, call: Call) -> Reply:
        """Send one call once; where this process may open no more files, wait until fewer are in flight."""
        since = None
        while True:
            try:
                return await self._send(call)
            except OutOfFilesError as error:
                now = self._clock.monotonic()
                since = now if since is None else since
                if now - since >= self.settings.patience:
                    self.close(str(error))
                self._check_open()
                if not call.route.gate.in_flight:  # what has the files are not calls of this route
                    await self._clock.sleep(_FILES_SECONDS)

    async def _send(self, call: Call) -> Reply:
        """Send one call and record its result; in strict campaigns wait for the disk before and after."""
        attempt, lease = await self._lease(call)
        route, step, ledger = lease.route, call.step, self._ledger
        try:
            if route.wire != call.wire:
                call.write_for(route)
            if route.gate.throttler is not None:
                await route.gate.throttler.acquire()
            attempt.digest = call.digest
            attempt.structured = route.structured if call.request.schema is not None else None
            await ledger.announce(attempt)
        except StoreError as error:  # the run knows already, and lets what is in flight come in
            self._cancel_unsent(attempt, lease)
            raise StoppedError from error
        except LaneClosedError as error:
            self._cancel_unsent(attempt, lease)
            self.close(str(error))
            raise
        except (asyncio.CancelledError, BudgetReachedError, StoppedError):  # given up while it waited, or refused
            self._cancel_unsent(attempt, lease)
            raise
        start = self._clock.monotonic()
        try:
            reply = attempt.reply = step.reply = await route.provider.send(call.body, f"{step.key.hex()}-{step.number}")
        except CallError as error:
            attempt.error = error
            raise
        finally:  # also when cancelled: then the call is on record as unanswered, at its reserved price
            if attempt.error is not None and isinstance(attempt.error, OutOfFilesError):
                self._take_back(attempt, lease)
            else:
                attempt.latency = self._clock.monotonic() - start
                ledger.settle(attempt)
                self._heed(attempt, lease)
        route.refused = 0
        route.refusals.answered(start)
        if self._strict:
            await ledger.safe()
        return reply

    async def _lease(self, call: Call) -> tuple[Attempt, RouteLease]:
        """Wait for room on the disk, for the money and for a permit of one of the routes."""
        step, ledger = call.step, self._ledger
        attempt = Attempt(step, call.budget, call.reservation, call.request.cut, asyncio.current_task())
        self._check_open()
        if not ledger.reserve_now(attempt):
            await ledger.reserve(attempt)
        try:
            prefix, avoided = step.prefix, call.avoided(self._clock) if step.tries else None
            if call.refused_by:
                lease = await self.routes.take_other(call.refused_by, prefix, call.load)
            else:
                now = self.routes.take_now(prefix, call.load) if avoided is None else None
                lease = now or await self.routes.take(prefix, call.load, fresh=not step.tries, avoided=avoided)
        except (asyncio.CancelledError, StoppedError, LaneClosedError):  # what is not sent stays reserved nowhere
            ledger.release(attempt)
            raise
        route, permit = lease.route, lease.permit
        call.route, call.probed = route, bool(lease.probe)
        attempt.route, attempt.permit, attempt.lane, attempt.waited = route, permit, route.number, permit.waited
        attempt.price, attempt.body_bytes = route.settings.price or call.price, permit.load.body_bytes
        try:
            self._check_open()
        except (StoppedError, LaneClosedError):
            self._cancel_unsent(attempt, lease)
            raise
        if lease.probe:
            self._lane_events.probed(route)
        return attempt, lease

    def _take_back(self, attempt: Attempt, lease: RouteLease) -> None:
        """Count a call as never made for which no file could be opened, and let one fewer be in flight from now on.

        The first time some more are left free, since the store needs files, too.
        """
        self._ledger.withdraw(attempt)
        self._abandoned(lease)
        first, congestion = self._lane_events.out_of_files(lease.route), lease.route.gate.congestion
        congestion.lower(congestion.most - 1 - _SPARE_FILES * first)

    def _cancel_unsent(self, attempt: Attempt, lease: RouteLease) -> None:
        self._ledger.release(attempt)
        self._abandoned(lease)

    def _heed(self, attempt: Attempt, lease: RouteLease) -> None:
        """Report what a call came to to its route: a hold that it brought, and whether the route answers."""
        route, error = lease.route, attempt.error
        if error is None:
            if attempt.reply is None:
                self._abandoned(lease)
                return
        elif error.fault is Fault.RATE_LIMITED:
            self.heed_hold(route)
        elif error.fault is Fault.TRANSIENT:
            route.failed = error
            wait = route.circuit.failed(probe=lease.probe)
            if wait is not None:
                self._lane_events.opened(route, wait, str(error), others=not self.routes.is_down)
                self.routes.notify_waiters()
            return
        if route.circuit.answered():
            self._lane_events.recovered(route)
            self.routes.notify_waiters()

    def heed_hold(self, route: Route) -> None:
        """Report a route that its gate holds, if it does, and send calls another way where that is for long."""
        if (seconds := route.gate.held_for) > 0:
            self._lane_events.held(route, seconds, route.gate.held_why)
            self.routes.reroute_if_held(route)

    def _abandoned(self, lease: RouteLease) -> None:
        """The result of a call is unknown; after a probe another call may probe."""
        lease.route.circuit.abandoned(probe=lease.probe)
        if lease.probe:
            self.routes.notify_waiters()

    def learn(self, route: Route, limits: Limits, hold: float) -> None:
        """Take over the limits in the headers of an answer, and hold a route for so many seconds."""
        self._ledger.learn(route, limits, hold)
        if hold > 0:
            self.heed_hold(route)
