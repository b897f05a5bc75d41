"""What a campaign has done so far, as pages show it: judges' progress, routes with their faults, calls over time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from venire.arena.errors import fault_name
from venire.storage.read.trial_table import TrialTable
from venire.storage.store.store import Store

_SPANS = 60


class JudgeActivity(NamedTuple):
    """The trials of one judge: `flips` counts battles whose two orders had opposite winners; cost in nano-dollars."""

    judge: str
    protocol: str
    model: str
    origin: str
    planned: int
    settled: int
    read: int
    failed: int
    pending: int
    too_long: int
    flips: int
    flagged: int
    retried: int
    cost: int
    latency_ms: int

    @property
    def readable(self) -> float | None:
        """Share read of the settled trials that were not too long."""
        answered = self.settled - self.too_long
        return self.read / answered if answered else None

    @property
    def cost_per_verdict(self) -> float | None:
        """Nano-dollars for each verdict that could be read."""
        return self.cost / self.read if self.read else None


@dataclass(frozen=True, slots=True)
class RouteActivity:
    """The calls of one route: mean waits and latencies in ms, money in nano-dollars, faults by class."""

    name: str
    provider: str
    endpoint: str
    calls: int
    answered: int
    wait_ms: float
    latency_ms: float
    input_tokens: int
    output_tokens: int
    cost: int
    last: datetime
    faults: dict[str, int]


@dataclass(frozen=True, slots=True)
class CallSpan:
    """Calls sent within one span of time, by outcome ("answered" or a class of fault), and what they cost."""

    start: datetime
    end: datetime
    calls: dict[str, int]
    cost: int


@dataclass(frozen=True, slots=True)
class JudgeAgreementRow:
    """How often two judges preferred the same side of a battle, of the battles where both preferred one."""

    one: str
    other: str
    battles: int
    same: int


@dataclass(frozen=True, slots=True)
class ContestantRow:
    """A model of the store, with the rating that was known before and its family."""

    number: int
    name: str
    elo: float | None
    family: str | None


def judge_activity(table: TrialTable) -> tuple[JudgeActivity, ...]:
    """The judges of a campaign, by name."""
    return tuple(JudgeActivity._make(row) for row in table.rows("trial_table_progress"))


def pairwise_agreement(table: TrialTable) -> tuple[JudgeAgreementRow, ...]:
    """The agreement of every two judges of a campaign that saw the same battles."""
    return tuple(JudgeAgreementRow(*row) for row in table.rows("trial_table_agreement"))


def route_activity(store: Store, campaign: int) -> tuple[RouteActivity, ...]:
    """The routes that a campaign's calls took, by name."""
    faults: dict[str, dict[str, int]] = {}
    for name, fault, count in store.read("route_faults", campaign=campaign):
        faults.setdefault(name, {})[fault_name(fault)] = count
    rows = store.read("routes_used", campaign=campaign)
    return tuple(RouteActivity(*(*row, faults.get(row[0], {}))) for row in rows)


def calls_over_time(store: Store, campaign: int) -> tuple[CallSpan, ...]:
    """A campaign's calls in at most sixty or so equal spans of time; spans without any are left out."""
    ((first, last, count),) = store.read("calls_between", campaign=campaign)
    if not count:
        return ()
    seconds = _nice((last - first) / _SPANS)
    found: dict[int, tuple[dict[str, int], int]] = {}
    for span, fault, calls, cost in store.read("calls_in_time", campaign=campaign, seconds=seconds):
        by_outcome, before = found.get(span, ({}, 0))
        by_outcome["answered" if fault == 0 else fault_name(fault)] = calls
        found[span] = by_outcome, before + cost
    return tuple(
        CallSpan(
            datetime.fromtimestamp(span * seconds, UTC), datetime.fromtimestamp((span + 1) * seconds, UTC), calls, cost
        )
        for span, (calls, cost) in sorted(found.items())
    )


def _nice(seconds: float) -> float:
    """The next length of a span that one would choose."""
    for one in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400):
        if seconds <= one:
            return float(one)
    return 86_400.0 * (1 + seconds // 86_400)


def run_history(store: Store, campaign: int, limit: int = 10) -> tuple[tuple[datetime, str, dict[str, Any]], ...]:
    """When the campaign's runs started and ended, the newest first, with what was noted."""
    rows = store.read("run_events", campaign=campaign, limit=limit)
    return tuple((at, kind, json.loads(detail)) for at, kind, detail in rows)


def campaign_settings(store: Store, campaign: int) -> dict[str, Any]:
    """A campaign's settings as they were written to the store; keys that its file does not set may be missing."""
    found: dict[str, Any] = json.loads(store.read("campaign_settings", campaign=campaign)[0][0])
    return found


def instruction_numbers(store: Store) -> dict[str, int]:
    """The number of each instruction by its name."""
    return {name: number for number, name in store.read("instruction_names")}


def known_models(store: Store) -> tuple[ContestantRow, ...]:
    """All models of a store, by number."""
    return tuple(ContestantRow(*row) for row in store.read("page_models"))
