"""The ways to a judge's model: several keys side by side, further endpoints behind them, and the choice among them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple
from zlib import crc32

from venire.arena.campaigns import RouteSettings
from venire.arena.clock import Clock
from venire.judges.providers.base import Provider
from venire.orchestrator.lanes.circuit import Circuit
from venire.orchestrator.lanes.limits import Gate, Load, Turn

__all__ = ["Route", "Routes", "Way", "route_name"]

_LONG_HOLD = 5.0
"""Seconds of a hold for which calls go another way, where there is one."""


def route_name(settings: RouteSettings) -> str:
    """A route's name in the store and in messages: provider, endpoint, key variable and model; never a key."""
    return " ".join(part for part in settings.identity if part)


class Route:
    """An endpoint with one key: its connections, its gate and its circuit, and why it is closed where it is."""

    def __init__(self, settings: RouteSettings, number: int, provider: Provider, gate: Gate, clock: Clock) -> None:
        self.settings = settings
        self.name = route_name(settings)
        self.number = number
        """In the store's table of lanes."""
        self.provider = provider
        self.gate = gate
        self.circuit = Circuit(clock)
        self.closed: str | None = None

    def opens_in(self) -> float:
        """Seconds until a call may try this way, not counting its turn at the gate; infinity where nobody can tell."""
        return math.inf if self.closed is not None else self.circuit.opens_in()


class Way(NamedTuple):
    """The route of one call, its turn at the gate, and whether it is a probe."""

    route: Route
    turn: Turn
    probe: bool


class Routes:
    """Chooses a route for each call.

    Of the routes of the lowest rank that can be used, a call takes the one that its prefix falls to, so that a
    provider's cache of prompts finds it again; another one only where that one is busy and the other is not.
    `gave_up` is asked whenever nobody answers on any route; it raises where that has lasted too long.
    """

    def __init__(self, routes: Sequence[Route], clock: Clock, gave_up: Callable[[], None]) -> None:
        self.all = tuple(routes)
        self._clock = clock
        self._gave_up = gave_up
        self._only = self.all[0] if len(self.all) == 1 else None
        self._line = asyncio.Lock()  # fair: of those who wait for a way, one at a time looks for it
        self.changed = asyncio.Event()
        """Set when a way may have opened or closed."""

    @property
    def is_down(self) -> bool:
        """Whether no route takes calls but probes."""
        return all(one.closed is not None or one.circuit.is_open for one in self.all)

    @property
    def down_since(self) -> float:
        """When the last route that was there stopped answering; infinity while one is there."""
        moments = [one.circuit.opened_at for one in self.all if one.closed is None]
        return max((math.inf if at is None else at for at in moments), default=math.inf)

    async def take(self, prefix: int, load: Callable[[Route], Load]) -> Way:
        """A way for one call, waited for as long as it takes. Cancelled: nothing was taken."""
        only = self._only
        if only is not None and only.closed is None and not only.circuit.is_open:
            turn = only.gate.take_now(load(only))
            if turn is not None:
                return Way(only, turn, False)
        while True:
            usable = self._usable()
            if not usable:
                await self._wait()
                continue
            ordered = sorted(usable, key=lambda one: crc32(b"%d %d" % (prefix, one.number)))
            for route in ordered:
                turn = route.gate.take_now(load(route))
                if turn is not None:
                    return Way(route, turn, route.circuit.enter())
            route = ordered[0]
            turn = await self._turn(route, load(route))
            if turn is None:
                continue
            if route.opens_in() > 0:  # it closed while this call waited
                route.gate.release(turn)
                continue
            return Way(route, turn, route.circuit.enter())

    def _usable(self) -> list[Route]:
        open_now = [one for one in self.all if one.opens_in() <= 0]
        if len(open_now) > 1:
            at_once = [one for one in open_now if one.gate.held_for <= _LONG_HOLD and not one.circuit.is_open]
            open_now = at_once or open_now
        lowest = min((one.settings.rank for one in open_now), default=0)
        return [one for one in open_now if one.settings.rank == lowest]

    async def _turn(self, route: Route, load: Load) -> Turn | None:
        """The turn at a gate; None where there are other ways and something changed before it came."""
        if self._only is not None:
            return await route.gate.take(load)
        self.changed.clear()
        turn = asyncio.ensure_future(route.gate.take(load))
        change = asyncio.ensure_future(self.changed.wait())
        try:
            await asyncio.wait((turn, change), return_when=asyncio.FIRST_COMPLETED)
            if turn.done():
                return turn.result()
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                route.gate.release(turn.result())
            raise
        finally:
            change.cancel()
            turn.cancel()
        return None

    async def _wait(self) -> None:
        """Wait until a way opens, or until one may be probed."""
        async with self._line:
            while not self._usable():
                self._gave_up()
                seconds = min(one.opens_in() for one in self.all)
                self.changed.clear()
                change = asyncio.ensure_future(self.changed.wait())
                pause = asyncio.ensure_future(self._clock.sleep(seconds)) if seconds < math.inf else None
                try:
                    await asyncio.wait([change, *([pause] if pause else [])], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    change.cancel()
                    if pause is not None:
                        pause.cancel()
