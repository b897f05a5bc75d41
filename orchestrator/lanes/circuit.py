"""A route's circuit: opens after repeated failure, lets one call probe now and then, and closes when it is answered."""

from __future__ import annotations

import math
import random

from venire.arena.clock import Clock

FAILURES = 4
"""Failures without an answer between them that open a circuit."""

_FIRST_WAIT = 1.0
_MAX_WAIT = 60.0


class Circuit:
    """Whether calls go through a route. Every call that does is announced by `enter` and ends with one of the others.

    While the circuit is open nothing passes but a probe: one call, after 1 s and then after waits that double up to
    60 s, each shortened at random by up to a quarter so that lanes of one provider do not probe together. Probes are
    numbered from 1: one that ends when the circuit was closed by another answer meanwhile is a call like others.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.failures = 0
        """Calls that failed since one was answered."""
        self.opened_at: float | None = None
        """Seconds of the clock; None while the circuit is closed."""
        self._wait = _FIRST_WAIT
        self._probe_at = -math.inf
        self._probe = 0
        """The one on its way; 0: none is."""
        self._probes = 0

    @property
    def is_open(self) -> bool:
        """Whether nothing passes but a probe."""
        return self.opened_at is not None

    def opens_in(self) -> float:
        """Seconds until a call may pass: 0 at once, infinity while a probe is on its way."""
        if self.opened_at is None:
            return 0.0
        return math.inf if self._probe else max(0.0, self._probe_at - self._clock.monotonic())

    def enter(self) -> int:
        """A call goes through; returns the number of a probe, 0 for another call."""
        if self.opened_at is None:
            return 0
        self._probes += 1
        self._probe = self._probes
        return self._probe

    def answered(self) -> bool:
        """Somebody is there, whatever was said; returns whether that closed an open circuit."""
        self.failures = 0
        if self.opened_at is None:
            return False
        self.opened_at = None
        self._probe = 0
        self._wait = _FIRST_WAIT
        return True

    def failed(self, *, probe: int) -> float | None:
        """A call brought nothing; returns the seconds until the next probe where that opened or held the circuit."""
        self.failures += 1
        if self.opened_at is not None and (not probe or probe != self._probe):
            return None  # it was on its way already when the circuit opened
        if self.opened_at is None:
            if self.failures < FAILURES:
                return None
            self.opened_at = self._clock.monotonic()
        else:
            self._probe = 0
            self._wait = min(_MAX_WAIT, 2 * self._wait)
        wait = self._wait * random.uniform(0.75, 1.0)
        self._probe_at = self._clock.monotonic() + wait
        return wait

    def abandoned(self, *, probe: int) -> None:
        """A call was given up, so that nothing is known of it; after a probe another one may go at once."""
        if probe == self._probe:
            self._probe = 0
