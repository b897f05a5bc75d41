"""Change detection on rate-limit responses: a CUSUM over the share of calls that a route refuses.

Page (1954), "Continuous inspection schemes", Biometrika 41: the sum of refusals less the share that is allowed for,
never below zero; it stays near zero while the share is as usual and climbs as soon as it is not, however slowly.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import NamedTuple

TOLERATED = 0.02
"""Share of refused calls, above the background, that never raises the alarm."""

_BACKGROUND_WEIGHT = 1.5
_THRESHOLD = 5.0
"""Refusals beyond the allowance that raise the alarm (the decision interval of the CUSUM)."""
_MEMORY = 500
"""Calls over which the background share is averaged."""
_PRIOR = 64
"""Calls without a refusal that the background share begins with."""
_MIN_SPAN = 32
"""Calls that a share is taken of at least, so that a short cluster is not taken for all calls."""
_RUN = 8
"""Refusals in a row that mean that nothing passes."""
_DENSE, _LOOKED_AT = 0.6, 64
_MAX_KEPT = 4096


class _StreamPoint(NamedTuple):
    """A point of the stream of calls: the number of a call in the order sent, how many have ended, how many of these
    were refused."""

    sent: int
    ended: int
    refused: int


class RateLimitMonitor:
    """Counts the rate-limit responses of a route, and raises an alarm when their share is above the usual.

    Refusals mostly come at once and answers after many seconds, so "of the last hundred that ended" would count
    refusals twice over. The stream is therefore measured in calls *sent*, by the number of the refused call; only
    where refusals take about as long as answers (`by_end`) is it measured in calls ended, which is exact then,
    while numbers would come out of order. Pure: no clock.
    """

    def __init__(self) -> None:
        self.background = 0.0
        """Share of calls that is refused at whatever rate they are sent."""
        self.learning = True
        """Whether ordinary stretches count for the background: not while the rate is what causes refusals."""
        self.by_end = False
        self._known = _PRIOR
        self._in_a_row = 0
        self._sum = 0.0
        self._ended = self._count = 0
        self._begin = self._mark = self._zero = self._last = _StreamPoint(0, 0, 0)
        self._numbers: deque[int] = deque(maxlen=_MAX_KEPT)

    @property
    def allowance(self) -> float:
        """The share of refused calls that is taken as usual."""
        return TOLERATED + _BACKGROUND_WEIGHT * self.background

    def begin(self, number: int) -> None:
        """From now on only calls sent after call `number` count: the earlier ones were sent at another rate."""
        self._begin = self._mark = self._zero = self._last = _StreamPoint(number, self._ended, self._count)
        self._sum = 0.0

    def mark(self) -> None:
        """Measure from the latest refusal on, and let the sum begin anew."""
        self._mark = self._zero = self._last
        self._sum = 0.0

    def counts(self, number: int) -> bool:
        """Whether a call was sent at the present rate."""
        return number > self._begin.sent

    def answered(self) -> None:
        """A call that counts has ended otherwise than refused."""
        self._ended += 1
        self._in_a_row = 0

    def refused(self, number: int) -> bool:
        """A call that counts was refused; returns whether that raises the alarm."""
        self._ended += 1
        self._count += 1
        self._in_a_row += 1
        self._numbers.append(number)
        here = _StreamPoint(max(number, self._last.sent), self._ended, self._count)
        self._sum -= self.allowance * self._between(self._last, here)
        self._last = here
        if self._sum <= 0.0:
            if self.learning:
                self.learn(here.refused - self._zero.refused, self._between(self._zero, here))
            self._sum, self._zero = 0.0, here
        self._sum += 1.0
        return self._sum >= _THRESHOLD

    @property
    def nothing_passes(self) -> bool:
        """Whether the latest calls were all refused."""
        if len(self._numbers) < _RUN:
            return False
        if self.by_end:
            return self._in_a_row >= _RUN
        latest = list(islice(reversed(self._numbers), _LOOKED_AT))
        lowest = min(latest[:_RUN])
        span = max(latest[:_RUN]) - lowest + 1
        return sum(number >= lowest for number in latest) >= _DENSE * span

    @property
    def climb(self) -> int:
        """Refusals since the sum was last zero, the first included."""
        return self._last.refused - self._zero.refused + 1

    @property
    def excess(self) -> float:
        """The share refused since the sum was last zero, the refusal that raised it left out."""
        refused = self.climb - 2
        return min(1.0, max(0, refused) / max(_MIN_SPAN, self._between(self._zero, self._last)))

    def measured(self, number: int) -> tuple[int, int]:
        """Refused and all calls since the mark, when call `number` has just ended."""
        refused = self._count - self._mark.refused
        calls = self._between(self._mark, _StreamPoint(max(number, self._last.sent), self._ended, self._count))
        return refused, max(calls, refused)

    def learn(self, refused: int, calls: int) -> None:
        """Average so many calls into the background share."""
        calls = max(calls, refused)
        if calls:
            self._known = min(self._known + calls, _MEMORY)
            self.background += (refused / calls - self.background) * min(1.0, calls / self._known)

    def refused_after(self, number: int) -> int:
        """How many calls with a higher number were refused, of the latest few thousand."""
        return sum(other > number for other in self._numbers)

    def _between(self, one: _StreamPoint, other: _StreamPoint) -> int:
        return other.ended - one.ended if self.by_end else other.sent - one.sent
