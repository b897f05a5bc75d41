"""How a run is asked to end, and how it did."""

from __future__ import annotations

import asyncio
import gc
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from venire.arena.battles import Statistics
from venire.arena.errors import Fault, StoreError
from venire.storage.read import frames
from venire.storage.store.recovery import rescue
from venire.storage.store.store import Store

GRACE_SECONDS = 30.0
"""How long calls in flight may take after a request to stop."""


class Ending(StrEnum):
    """Why a run ended."""

    COMPLETE = "complete"
    FAILED_STEPS = "failed steps"
    BUDGET = "budget reached"
    INTERRUPTED = "interrupted"
    LANE_CLOSED = "lane closed"
    UNREADABLE = "judge unreadable"
    QUALITY = "quality gate missed"
    WAITING = "batches under way"


EXIT_CODES: Mapping[str, int] = {
    Ending.COMPLETE: 0,
    Ending.LANE_CLOSED: 1,
    Ending.UNREADABLE: 1,
    Ending.BUDGET: 3,
    Ending.WAITING: 3,
    Ending.FAILED_STEPS: 4,
    Ending.QUALITY: 5,
    Ending.INTERRUPTED: 130,
}
"""What a command that asks returns, by how its run ended; 1 of one that failed."""


def ending_of(
    progress: frames.Progress,
    *,
    stopped: bool,
    planned_out: bool,
    out_of_budget: bool,
    unreadable: bool = False,
    waiting: bool = False,
) -> Ending:
    """Why a run ended: by the progress of its campaign, and whether it was asked to stop.

    `planned_out`: all of the plan is planned; `out_of_budget`: a judge's next call, or the next round, is not covered.
    `unreadable`: a judge is asked no more, since its replies cannot be read. `waiting`: batches are out, or calls were
    left for the next start.
    """
    if unreadable and not stopped:
        return Ending.UNREADABLE
    if progress.missing == 0 and planned_out:
        if out_of_budget:
            return Ending.BUDGET
        return Ending.FAILED_STEPS if progress.failed else Ending.COMPLETE
    if stopped:
        return Ending.INTERRUPTED
    if waiting:
        return Ending.WAITING
    return Ending.BUDGET if out_of_budget else Ending.LANE_CLOSED


async def wait_for_any(*events: asyncio.Event) -> None:
    """Wait until one of some events is set."""
    reasons = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(reasons, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for reason in reasons:
            reason.cancel()


def record_end(store: Store, campaign: int, calls: int) -> None:
    """Record that a run ended by itself; of one that did not, the next start reports what it left."""
    fields = {"campaign": campaign, "kind": "run ended", "detail": json.dumps({"calls": calls})}
    with store.commit() as commit:
        commit.run("insert_event", now=store.clock.wall(), batch=commit.batch, **fields)


def rescue_error(store: Store, error: StoreError) -> StoreError:
    """What to say of a store that is not in its place any more, after a copy of it was written beside."""
    try:
        copy = rescue(store)
    except StoreError as failed:
        return StoreError(
            f"{error}. No more calls were sent. A copy of what the run had could not be made ({failed}); where the "
            "store, its log and its journal were only moved, put them back together: nothing of them is lost"
        )
    return StoreError(
        f"{error}. No more calls were sent. All that the run had, what was in flight included, is in {copy}: put "
        f"that in the place of {store.path.name} and go on with the same command"
    )


_OBJECTS = 50_000
"""New objects between two looks for garbage, where Python looks after 700."""


@contextmanager
def gc_paused() -> Iterator[None]:
    """Look for garbage in cycles less often: calls leave next to none, and looking took a tenth of their time."""
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@dataclass(slots=True)
class RouteCalls:
    """The calls of one route in a run: how many ended in each class, seconds waited, nano-dollars.

    `slowed` are the seconds in which rate-limit responses held it below what the campaign file allows.
    """

    ended: Counter[Fault] = field(default_factory=Counter)
    waited: float = 0.0
    cost: int = 0
    slowed: float = 0.0


@dataclass(slots=True)
class LeaseLosses:
    """What lost and silent actors have cost so far; money in nano-dollars."""

    leases: int = 0
    """Leases that ended before their trials were settled or given back."""
    calls: int = 0
    """Calls in flight whose answers were lost; the same steps were asked again."""
    reserved: int = 0
    """What these count at, since their cost is not known."""
    late: int = 0
    """Calls that were answered after their lease had ended: others ask their steps again, or will."""
    late_cost: int = 0
    gave_up: bool = False
    """Whether the run ended because no actor answered any more."""

    @property
    def any(self) -> bool:
        """Whether a lease was lost at all."""
        return self.leases > 0


@dataclass(frozen=True, slots=True)
class CampaignSummary:
    """How a run ended. Counters are of this run; `progress` is of the campaign; seconds of the run's clock."""

    ending: Ending
    statistics: Statistics
    progress: frames.Progress
    closed_lanes: Mapping[str, str]
    """Lane name to why it closed."""
    unaffordable: Mapping[str, str]
    """Name of each judge whose next call a budget does not cover, to a sentence that names the budget."""
    routes: Mapping[str, RouteCalls] = field(default_factory=dict)
    """What went by each route in this run, by its name."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Name of a judge that is asked no more, to why: too few of its replies could be read."""
    gates: tuple[str, ...] = ()
    """The quality gates that a complete campaign missed, a sentence each."""
    stopped: str | None = None
    """Why no more is planned, of a campaign that is planned in rounds."""
    batches: int = 0
    """Batches that are out."""
    left_for_later: int = 0
    """Calls of batches that were given up, left for the next start."""
    out_elsewhere: int = 0
    """Trials still to be judged that are in batches which this run could not collect: of other campaigns, or of judges
    that are not asked in batches any more."""
    losses: LeaseLosses = field(default_factory=LeaseLosses)
    """What lost actors have cost, where others asked the calls."""


class StopRequest:
    """A way to stop a run from outside: once, what is in flight finishes; twice, it is given up."""

    def __init__(self) -> None:
        self.gently = asyncio.Event()
        self.now = asyncio.Event()

    def request(self) -> None:
        """Ask to stop; a second time, at once."""
        (self.now if self.gently.is_set() else self.gently).set()
