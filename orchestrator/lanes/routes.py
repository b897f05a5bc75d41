"""The ways to a judge's model: several keys side by side, further endpoints behind them, and the choice among them.

Routes that share a vendor's limits share one gate; the store knows each by a number.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from venire.arena.campaigns import CampaignSettings, Identity, LaneSettings, Limits, RouteSettings
from venire.arena.clock import Clock
from venire.arena.errors import CallError
from venire.judges.providers.base import Provider
from venire.orchestrator.lanes.circuit import Circuit
from venire.orchestrator.lanes.gate import Gate, Permit
from venire.orchestrator.lanes.refusals import Refusals
from venire.orchestrator.lanes.windows import Load
from venire.storage.plans import plans
from venire.storage.plans.plans import SentLately
from venire.storage.store.store import Store

_LONG_HOLD = 5.0
"""Seconds of a hold for which calls go another way, where there is one."""
_MIN_SLEEP = 1.0
"""Seconds between two looks for a better way, at least."""
_PREFIXES = 4096
"""Prefixes whose first route is remembered."""


def route_name(settings: RouteSettings) -> str:
    """A route's name in the store and in messages: provider, endpoint, key variable and model; never a key."""
    return " ".join(part for part in settings.identity if part)


def lane_name(settings: LaneSettings) -> str:
    """A lane's name in messages: that of its first route, and how many more there are."""
    first, *others = settings.routes
    return route_name(first) + (f" (and {len(others)} more)" if others else "")


class Route:
    """An endpoint with one key: its connections, its gate and its circuit, and why it is closed where it is."""

    def __init__(
        self,
        settings: RouteSettings,
        number: int,
        provider: Provider,
        gate: Gate,
        clock: Clock,
        *,
        accepted: bool = False,
    ) -> None:
        self.settings = settings
        self.name = route_name(settings)
        self.number = number
        """In the store's table of lanes."""
        self.wire = (settings.provider, settings.base_url, settings.model, settings.structured)
        """What a body is written for: endpoints of one protocol differ in the names of parameters."""
        self.provider = provider
        self.gate = gate
        self.circuit = Circuit(clock)
        self.closed: str | None = None
        self.failed: CallError | None = None
        """How a call failed last in a way that may pass."""
        self.refused = 0
        """Bad requests since a call was answered well."""
        self.refusals = Refusals(accepted=accepted)
        self.left_until = -math.inf
        """End of the hold for which those who waited here were sent another way."""

    @property
    def structured(self) -> bool:
        """Whether the schema of a request, if any, is sent as its response format here."""
        return self.provider.is_structured(self.settings.model)

    def opens_in(self) -> float:
        """Seconds until a call may try this route, without its wait at the gate; infinity where that is unknown."""
        return math.inf if self.closed is not None else self.circuit.opens_in()


def _sorted(routes: list[Route], prefix: int) -> list[Route]:
    """Routes as the calls of one prefix try them; each is the first of as many prefixes as any other."""
    return sorted(routes, key=lambda one: sha256(b"%d %d" % (prefix, one.number)).digest())


class RouteLease(NamedTuple):
    """The route of one call, the permit of its gate, and the call's number as a probe, 0 for another call."""

    route: Route
    permit: Permit
    probe: int


class Routes:
    """Chooses a route for each call.

    Of the routes of the lowest rank that can be used, a call takes the one that its prefix falls to, so that a
    provider's cache of prompts finds it again; another one only where that one is busy and the other is not. A route
    whose probe is due gets one call before that, unless those in use are of a lower rank; a call that has failed
    already goes where others were answered.
    `gave_up` is called whenever no route answers; it raises where that has lasted too long.
    """

    def __init__(self, routes: Sequence[Route], clock: Clock, gave_up: Callable[[], None]) -> None:
        self.all = tuple(routes)
        self._clock = clock
        self._gave_up = gave_up
        self._only = self.all[0] if len(self.all) == 1 else None
        self._line = asyncio.Lock()  # fair: of those who wait for a way, one at a time looks for it
        self._changed = asyncio.Event()
        self._first = lru_cache(_PREFIXES)(lambda prefix: _sorted(self._front, prefix)[0])
        self._survey()

    @property
    def is_down(self) -> bool:
        """Whether no route takes calls but probes."""
        return all(route.closed is not None or route.circuit.is_open for route in self.all)

    @property
    def down_since(self) -> float:
        """When the last route that was there stopped answering; infinity while one is there."""
        moments = [route.circuit.opened_at for route in self.all if route.closed is None]
        return max((math.inf if at is None else at for at in moments), default=math.inf)

    def _survey(self) -> None:
        """Note which routes come first, and whether all of them work: then a call need not look further."""
        there = [route for route in self.all if route.closed is None]
        lowest = min((route.settings.rank for route in there), default=0)
        self._front = [route for route in there if route.settings.rank == lowest]
        self._calm = bool(there) and not any(route.circuit.is_open for route in self._front)
        self._first.cache_clear()

    def notify_waiters(self) -> None:
        """Let calls that wait choose a route anew: called whenever one may have opened or closed."""
        self._survey()
        self._changed.set()
        self._changed = asyncio.Event()  # whoever waits keeps the one that is set, so that nobody misses it

    def reroute_if_held(self, route: Route) -> None:
        """Send calls that wait at a route another way where its gate is held for long, once a hold."""
        now, seconds = self._clock.monotonic(), route.gate.held_for
        if seconds > _LONG_HOLD and now >= route.left_until:
            route.left_until = now + seconds
            self.notify_waiters()

    def take_now(self, prefix: int, load: Callable[[Route], Load]) -> RouteLease | None:
        """The first route of a prefix, where all routes work and its gate gives a permit without waiting."""
        if self._calm:
            first = self._only or self._first(prefix)
            permit = first.gate.take_now(load(first))
            if permit is not None:
                return RouteLease(first, permit, 0)
        return None

    def has_other(self, route: Route, seconds: float) -> bool:
        """Whether a call that this route asks to wait can go by another of its rank, or of any for a long wait."""
        others = self.other_routes((route,))
        return any(seconds > _LONG_HOLD or other.settings.rank <= route.settings.rank for other in others)

    async def take(
        self, prefix: int, load: Callable[[Route], Load], *, fresh: bool = True, avoided: Route | None = None
    ) -> RouteLease:
        """A route and permit for one call, waited for as long as it takes; `fresh`: it may probe though another works.

        `avoided` is taken only where there is no other. Cancelled: nothing was taken.
        """
        if avoided is None and (lease := self.take_now(prefix, load)) is not None:
            return lease
        while True:
            to_probe, usable = self._choice(avoided)
            if not to_probe and not usable:
                await self._wait()
                continue
            usable = _sorted(usable, prefix)
            for route in (*to_probe, *usable) if fresh or not usable else usable:
                permit = route.gate.take_now(load(route))
                if permit is not None:
                    return RouteLease(route, permit, route.circuit.enter())
            route = (usable or to_probe)[0]
            permit = await self._permit(route, load(route))
            if permit is None:
                continue
            if route.opens_in() > 0:  # it closed while this call waited
                route.gate.release(permit)
                continue
            return RouteLease(route, permit, route.circuit.enter())

    def other_routes(self, refused: Collection[Route]) -> list[Route]:
        """Routes that work and are not held for long, other than those that have refused a call."""
        there = [
            route for route in self.all if route.closed is None and not route.circuit.is_open and route not in refused
        ]
        return [route for route in there if route.gate.held_for <= _LONG_HOLD]

    async def take_other(self, refused: Collection[Route], prefix: int, load: Callable[[Route], Load]) -> RouteLease:
        """A route and permit for a call that some routes have refused: by another, as long as one works.

        Cancelled: nothing was taken.
        """
        while usable := self.other_routes(refused):
            lowest = min(way.settings.rank for way in usable)
            route = _sorted([way for way in usable if way.settings.rank == lowest], prefix)[0]
            permit = await route.gate.take(load(route))
            if route.opens_in() <= 0:
                return RouteLease(route, permit, route.circuit.enter())
            route.gate.release(permit)
        return await self.take(prefix, load, fresh=False)

    def _choice(self, avoided: Route | None = None) -> tuple[list[Route], list[Route]]:
        """Routes to probe, and those of the lowest rank that can be used."""
        there = [route for route in self.all if route.opens_in() <= 0]
        if avoided is not None:
            there = [route for route in there if route is not avoided] or there
        if len(there) > 1:
            there = [route for route in there if route.gate.held_for <= _LONG_HOLD] or there
        sound = [route for route in there if not route.circuit.is_open]
        lowest = min((route.settings.rank for route in sound or there), default=0)
        to_probe = [route for route in there if route.circuit.is_open and route.settings.rank <= lowest]
        return to_probe, [route for route in sound if route.settings.rank == lowest]

    async def _permit(self, route: Route, load: Load) -> Permit | None:
        """The permit of a gate; None where there are other routes and a better one may have opened before it came."""
        if self._only is not None:
            return await route.gate.take(load)
        permit = asyncio.ensure_future(route.gate.take(load))
        change = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait((permit, change), timeout=self._better_in(route), return_when=asyncio.FIRST_COMPLETED)
            if permit.done():
                return permit.result()
        except asyncio.CancelledError:
            if permit.done() and not permit.cancelled() and permit.exception() is None:
                route.gate.release(permit.result())
            raise
        finally:
            change.cancel()
            permit.cancel()
        return None

    def _better_in(self, route: Route) -> float | None:
        """Seconds until waiting elsewhere than at this route's gate may be better; None where that is unknown."""
        held = route.gate.held_for > _LONG_HOLD
        others = [
            other for other in self.all if other is not route and (held or other.settings.rank < route.settings.rank)
        ]
        seconds = min((max(other.opens_in(), other.gate.held_for - _LONG_HOLD) for other in others), default=math.inf)
        return None if seconds == math.inf else max(_MIN_SLEEP, seconds)

    async def _wait(self) -> None:
        """Wait until a route opens, or until one may be probed."""
        async with self._line:
            while not any(self._choice()):
                self._gave_up()
                seconds = min(route.opens_in() for route in self.all)
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if seconds == math.inf else seconds):
                        await self._changed.wait()


def register_routes(store: Store, campaign: CampaignSettings) -> Mapping[str, int]:
    """The numbers of all routes in the store, by name; its table calls them lanes."""
    routes = {route.identity: route for _, route in _ways(campaign)}.values()
    names = [route_name(route) for route in routes]
    if not all(store.read("lane_id", name=name) for name in names):
        with store.commit() as commit:
            for name, route in zip(names, routes, strict=True):
                commit.run("insert_lane", name=name, provider=route.provider, endpoint=route.endpoint)
    return {name: store.read("lane_id", name=name)[0][0] for name in names}


def accepted_routes(store: Store) -> frozenset[int]:
    """The numbers of routes by which a call was answered at any time."""
    return frozenset(number for (number,) in store.read("answered_routes"))


def open_gates(
    store: Store,
    campaign: CampaignSettings,
    providers: Mapping[Identity, Provider],
    clock: Clock,
    elsewhere: Mapping[str, SentLately],
) -> Mapping[Identity, Gate]:
    """The gate of every route that there is a provider for: one for each limits key, whichever lanes its routes are of.

    Lanes that share a gate share the strictest limits that they set. Limits count what earlier runs sent, and
    `elsewhere`, by route name, what others sent within the same part of the limits.
    """
    shared: dict[tuple[str, ...], list[tuple[LaneSettings, RouteSettings]]] = {}
    for lane, route in _ways(campaign):
        if route.identity in providers:
            shared.setdefault(providers[route.identity].limits_key(route.model), []).append((lane, route))
    gates: dict[Identity, Gate] = {}
    for lane_routes in shared.values():
        routes = {route_name(route) for _, route in lane_routes}
        sent = plans.sent_lately(store, routes)
        sent = sum((elsewhere[name] for name in routes & elsewhere.keys()), sent)
        gate = _gate([lane for lane, _ in lane_routes], sent, clock)
        gates.update((route.identity, gate) for _, route in lane_routes)
    return gates


def _ways(campaign: CampaignSettings) -> Iterable[tuple[LaneSettings, RouteSettings]]:
    """Every route of every judge, with the lane that it belongs to."""
    return ((judge.lane, route) for judge in campaign.judges for route in judge.lane.routes)


def _gate(
    lanes: Sequence[LaneSettings],
    sent: SentLately,
    clock: Clock,
) -> Gate:
    figures = {
        field.name: [figure for lane in lanes if (figure := getattr(lane.limits, field.name)) is not None]
        for field in fields(Limits)
    }
    return Gate(
        Limits(**{name: min(given) for name, given in figures.items() if given}),
        clock,
        concurrency=min(lane.concurrency for lane in lanes),
        share=min(lane.share for lane in lanes),
        skew=max(lane.skew for lane in lanes),
        sent_today=sent.calls,
        tokens_lately=sent.tokens,
    )
