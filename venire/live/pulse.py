"""The pulse of a run: its latest counters, and how fast it has been in the last minute."""

from __future__ import annotations

import os
import socket
from collections import deque
from dataclasses import asdict
from datetime import datetime
from typing import Any

from venire.arena.battles import Statistics

__all__ = ["Pulse"]

_WINDOW_SECONDS = 60.0


class Pulse:
    """Takes the counters of a run as they change, and tells them to whoever asks; `since` is when the run began."""

    def __init__(self, campaign: str, since: datetime) -> None:
        self._run = {
            "campaign": campaign,
            "process": os.getpid(),
            "host": socket.gethostname(),
            "since": since.isoformat("T", "seconds"),
        }
        self._recent: deque[Statistics] = deque()
        self.ending: str | None = None
        """How the run ended, once it has."""

    def feed(self, now: Statistics) -> None:
        """Take the counters of this moment; of those within a second the last is kept."""
        recent = self._recent
        if len(recent) > 1 and now.elapsed - recent[-2].elapsed < 1.0:
            recent.pop()
        recent.append(now)
        while now.elapsed - recent[0].elapsed > _WINDOW_SECONDS:
            recent.popleft()

    def document(self) -> dict[str, Any]:
        """Who runs what since when, the counters, calls a second, and the seconds that are left at this pace.

        `seconds_left` is null as long as nothing has been settled, `ending` as long as the run goes on.
        """
        first, last = (self._recent[0], self._recent[-1]) if self._recent else (Statistics(), Statistics())
        seconds = last.elapsed - first.elapsed
        done = last.settled + last.failed - first.settled - first.failed
        left = last.planned - last.settled - last.failed
        return {
            **self._run,
            **asdict(last),
            "calls_per_second": round((last.calls - first.calls) / seconds, 3) if seconds > 0 else 0.0,
            "seconds_left": round(left * seconds / done, 1) if done > 0 else None,
            "ending": self.ending,
        }
