"""Events of a lane: for the listeners of a run, and as sentences for the person at the terminal."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from venire.arena.campaigns import Limits
from venire.arena.errors import CallError, Fault
from venire.arena.wording import money
from venire.orchestrator.lanes.calls import Attempt
from venire.orchestrator.lanes.congestion import Congestion
from venire.orchestrator.lanes.routes import Route
from venire.orchestrator.recording.events import Events
from venire.orchestrator.recording.recorder import AttemptRecord

_LONG_PAUSE = 30.0
"""Seconds of a wait that a person at the terminal should hear of."""


class LaneEvents:
    """Emits what happens to the routes of one lane, each as an event, a warning or both."""

    def __init__(self, lane: str, events: Events, warn: Callable[[str], None]) -> None:
        self.lane = lane
        self.events = events
        self._warn = warn
        self._outages: set[str] = set()
        self._warned_until: dict[str, float] = {}
        self._held_back: set[str] = set()
        self._learnt: dict[str, Limits] = {}
        self._slowed: set[str] = set()
        self._disbelieved: set[str] = set()
        self._all_wait = False
        self._out_of_files = False

    def sent(self, attempt: Attempt) -> None:
        """A call leaves."""
        self.events.emit("call.sent", **self._of(attempt), reserved_nano=attempt.reservation.money)

    def ended(self, attempt: Attempt, record: AttemptRecord) -> None:
        """A call was answered, failed, was given up or lost."""
        reply = record.reply
        counted = reply is not None and not reply.estimated
        self.events.emit(
            "call.ended",
            **self._of(attempt),
            fault=record.fault.name.lower(),
            status=record.http_status,
            latency_s=record.latency,
            input_tokens=reply.input_tokens if reply is not None and counted else None,
            output_tokens=reply.output_tokens if reply is not None and counted else None,
            cached_tokens=reply.cached_tokens if reply is not None and counted else None,
            cost_nano=record.cost,
        )

    def _of(self, attempt: Attempt) -> dict[str, object]:
        step, route = attempt.step, attempt.route
        return {
            "lane": self.lane,
            "route": self.lane if route is None else route.name,
            "judge": step.judge,
            "trial": step.trial,
            "key": step.key.hex(),
            "step": step.number,
            "attempt": attempt.number,
            "wait_s": attempt.waited,
        }

    def held(self, route: Route, seconds: float, why: str) -> None:
        """No call of a route is sent for a while."""
        if self.events.active:
            self.events.emit("lane.held", lane=self.lane, route=route.name, seconds=seconds, why=why)

    def slowed(self, route: Route) -> None:
        """Rate-limit responses began to slow a route, or do so no more; said once each to whoever watches."""
        control = route.gate.congestion
        if (slow := control.state is not Congestion.NONE) == (route.name in self._slowed):
            return
        if not slow:
            self._slowed.discard(route.name)
        else:
            self._slowed.add(route.name)
        if self.events.active:
            rate = None if control.rate == inf else control.rate
            about = {"in_flight": control.allowed, "calls_per_second": rate, "refused": control.slowed_by}
            self.events.emit("lane.slowed" if slow else "lane.unslowed", lane=self.lane, route=route.name, **about)

    def waiting(self, route: Route, now: float, *, others: bool) -> None:
        """Warn at the terminal, once per hold, where a route sends nothing for long.

        `others`: calls continue on other routes.
        """
        seconds = route.gate.held_for
        if seconds >= _LONG_PAUSE and now + seconds > self._warned_until.get(route.name, 0.0) + 1:
            self._warned_until[route.name] = now + seconds
            rest = "; calls go by the other routes" if others else " (Ctrl-C stops, and the same command goes on later)"
            self._warn(f"{route.name}: no call is sent for {seconds:.0f} s: {route.gate.held_why}{rest}")

    def all_wait(self, calls: int, seconds: float) -> None:
        """Said to the person at the terminal where only calls are left that the provider asked to wait."""
        if seconds >= _LONG_PAUSE and not self._all_wait:
            what = "the last call waits" if calls == 1 else f"the last {calls:,} calls wait"
            self._warn(
                f"{self.lane}: {what} for {seconds:.0f} s or more, as the provider asked (Ctrl-C stops, and the same "
                "command goes on later)"
            )
            self._all_wait = True

    def disbelieved(self, route: Route, what: str) -> None:
        """The provider reports a usage or a cost that cannot be true; a warning once a route."""
        if route.name not in self._disbelieved:
            self._disbelieved.add(route.name)
            self._warn(
                f"warning: {route.name}: the provider reports {what}: not believed; such calls count at the price in "
                "the campaign file or table (set free = true where the judge costs nothing)"
            )

    def out_of_files(self, route: Route) -> bool:
        """This process may open no more files, so that no further connection could be made; whether it is the first.

        A warning once a lane.
        """
        if self._out_of_files:
            return False
        self._out_of_files = True
        self._warn(
            f"warning: {route.name}: this process may open no more files: calls wait, and fewer are in flight from "
            "here on. To go faster, stop, raise `ulimit -n`, and go on; or lower concurrency"
        )
        return True

    def surcharged(self, route: Route, cost: int, allowed: int) -> None:
        """The provider charges more than the price allows."""
        self._warn(
            f"warning: {route.name}: the provider charged {money(cost, 6)} for a call that cannot cost more than "
            f"{money(allowed, 6)} by the price in the campaign file or table: correct the price; from now on as much "
            "is reserved for each call as the dearest one cost"
        )

    def quarantined(self, route: Route, error: CallError, *, others: bool) -> None:
        """A route takes no more calls; `others`: they continue on other routes."""
        why = str(error)
        if others:
            self._warn(f"warning: {route.name}: takes no more calls ({why}); calls go by the other routes")
        if self.events.active and error.fault in (Fault.AUTHENTICATION, Fault.QUOTA):
            variable = route.settings.key_variable or "no key"
            self.events.emit("key.quarantined", lane=self.lane, route=route.name, variable=variable, why=why)

    def opened(self, route: Route, seconds: float, why: str, *, others: bool) -> None:
        """A route's circuit opened after repeated failures; `others`: calls continue on other routes."""
        if route.name not in self._outages:
            self._outages.add(route.name)
            rest = "calls go by the other routes; here one is sent" if others else "one is sent"
            self._warn(f"{route.name}: calls fail ({why}); {rest} now and then until it works again")
        if self.events.active:
            self.events.emit("circuit.opened", lane=self.lane, route=route.name, seconds=seconds, why=why)

    def probed(self, route: Route) -> None:
        """One call is sent to see."""
        if self.events.active:
            self.events.emit("circuit.probed", lane=self.lane, route=route.name)

    def recovered(self, route: Route) -> None:
        """A route works again."""
        if route.name in self._outages:
            self._outages.discard(route.name)
            self._warn(f"{route.name}: works again")
        if self.events.active:
            self.events.emit("circuit.closed", lane=self.lane, route=route.name)

    def closed(self, why: str) -> None:
        """The lane takes no more calls."""
        if self.events.active:
            self.events.emit("lane.closed", lane=self.lane, why=why)

    def learnt(self, route: Route, limits: Limits) -> None:
        """A provider reported its limits; the person at the terminal is warned once they make calls wait."""
        if route.gate.waits and not route.gate.slowed and route.name not in self._held_back:
            self._held_back.add(route.name)
            figures = ", ".join(
                f"{getattr(limits, name):,} {name.replace('_per_', ' a ').replace('_', ' ')}"
                for name in limits.__slots__
                if getattr(limits, name) is not None
            )
            self._warn(f"{route.name}: calls wait for the limits that the provider tells: {figures}")
        if limits == self._learnt.get(route.name):
            return
        self._learnt[route.name] = limits
        if not self.events.active:
            return
        for name in limits.__slots__:
            if (limit := getattr(limits, name)) is not None:
                self.events.emit("limit.learnt", lane=self.lane, route=route.name, what=name, limit=limit)
