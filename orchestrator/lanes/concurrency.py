"""How many calls a route may have in flight: fewer after rate-limit answers, more again with time."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

__all__ = ["Adaptive"]

_CUT = 0.7
_REGAIN = 90.0
"""Seconds at the limit in which the number grows by as much as it was before the trouble began."""
_FADES = 30.0
"""Seconds in which the memory of a higher number fades by half, while cuts go on between answered calls."""
_FIRST_HOLD = 1.0
_BELIEVED = 3
"""Refusals running for which a wait that the provider tells is all that is waited."""
_LONGEST_HOLD = 60.0


class Adaptive:
    """The number of calls allowed in flight, from 1 to `most`, and how long nothing is sent at all.

    A rate-limit answer opens an episode: the number is cut once, however many answers of the same kind come to calls
    that were sent before the cut. Until any other answer comes the route is in doubt: nothing is sent for a time that
    doubles with each refused call, and then one call at a time. The number grows with the time during which exactly as
    many calls as allowed were in flight, so that slow answers do not slow recovery. Pure: times are arguments, in
    seconds; `jitter` gives numbers in [0, 1).
    """

    def __init__(self, most: int, jitter: Callable[[], float] = random.random) -> None:
        self.most = most
        self.allowed = most
        self.normal = True
        """Whether all of `most` are allowed and there is no doubt: then nobody needs to tell of answered calls."""
        self.episode = 0
        self.held_until = 0.0
        """When the next call may be sent, as far as doubt goes."""
        self._jitter = jitter
        self._limit = float(most)
        self._former = float(most)
        self._refusals = 0
        self._looked = 0.0
        self._cut_at = -math.inf

    def grow(self, now: float, in_flight: int) -> None:
        """Count the time since the last look, through which `in_flight` calls were on their way."""
        if not self._refusals and in_flight == self.allowed and self._limit < self.most:
            self._former = max(self._former, self._limit)
            self._limit = min(float(self.most), self._limit + (now - self._looked) * self._former / _REGAIN)
            self._set(int(self._limit))
        self._looked = now

    def grows_at(self, now: float, in_flight: int) -> float:
        """When one call more will be allowed if nothing else happens; infinity when only an answer can tell."""
        if self._refusals or in_flight != self.allowed or self._limit >= self.most:
            return math.inf
        left = (self.allowed + 1 - self._limit) * _REGAIN / max(self._former, self._limit)
        return now + max(left, 1e-3)  # never now: a sum may be rounded to just below the next number

    def ended(
        self, now: float, in_flight: int, episode: int, beside: int, rate_limited: bool, told: float | None = None
    ) -> None:
        """A call has ended that was sent in `episode` when `beside` were in flight; `in_flight` still counts it.

        `told` is the wait that came with a rate-limit answer: it is believed until it was wrong a few times running.
        """
        self.grow(now, in_flight)
        if rate_limited:
            if episode == self.episode:
                self._refuse(now, max(in_flight, beside), told)
        elif self._refusals:
            self._refusals = 0
            self.held_until = 0.0
            self._set(int(self._limit))

    def _refuse(self, now: float, in_flight: int, told: float | None) -> None:
        self.episode += 1
        if not self._refusals:  # what was in flight was too much, not what might have been
            self._limit = min(self._limit, float(in_flight))
            self._former = max(self._limit, self._former * 0.5 ** ((now - self._cut_at) / _FADES))
        self._cut_at = now
        self._limit = max(1.0, self._limit * _CUT)
        longest = min(_LONGEST_HOLD, _FIRST_HOLD * 2.0 ** min(self._refusals, 10))
        believed = told is not None and self._refusals < _BELIEVED
        self.held_until = now if believed else now + longest * (1 + self._jitter()) / 2
        self._refusals += 1
        self._set(1)

    def _set(self, allowed: int) -> None:
        self.allowed = allowed
        self.normal = not self._refusals and allowed == self.most
