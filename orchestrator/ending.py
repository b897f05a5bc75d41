"""How a run is asked to end, and how it did."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from venire.arena.battles import Statistics
from venire.arena.errors import Fault
from venire.storage import frames

__all__ = ["GRACE_SECONDS", "CampaignSummary", "Ending", "Stop"]

GRACE_SECONDS = 30.0
"""How long calls in flight may take after a request to stop."""


class Ending(StrEnum):
    """Why a run ended."""

    COMPLETE = "complete"
    FAILED_STEPS = "failed steps"
    BUDGET = "budget reached"
    INTERRUPTED = "interrupted"
    LANE_CLOSED = "lane closed"


@dataclass(slots=True)
class RouteCalls:
    """The calls of one route in a run: how many ended in each class, seconds waited, nano-dollars."""

    ended: Counter[Fault] = field(default_factory=Counter)
    waited: float = 0.0
    cost: int = 0


@dataclass(frozen=True, slots=True)
class CampaignSummary:
    """How a run ended. Counters are of this run; `progress` is of the campaign; seconds of the run's clock."""

    ending: Ending
    statistics: Statistics
    progress: frames.Progress
    closed_lanes: Mapping[str, str]
    """Lane name to why it closed."""
    unaffordable: Mapping[str, str]
    """Name of a judge whose next call a budget does not cover, to the sentence that says which."""
    routes: Mapping[str, RouteCalls] = field(default_factory=dict)
    """What went by each route in this run, by its name."""


class Stop:
    """A way to stop a run from outside: once, what is in flight finishes; twice, it is given up."""

    def __init__(self) -> None:
        self.gently = asyncio.Event()
        self.now = asyncio.Event()

    def request(self) -> None:
        """Ask to stop; a second time, at once."""
        (self.now if self.gently.is_set() else self.gently).set()
