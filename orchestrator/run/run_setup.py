"""How a campaign is run: by which clock and engine, who is called on the way, and how what it asks is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from venire.arena.battles import Statistics
from venire.arena.campaigns import CampaignSettings, Identity, TokenPrice
from venire.arena.clock import Clock
from venire.judges.providers.batches.base import BatchProvider
from venire.orchestrator.costs.budget import BudgetView
from venire.orchestrator.engines.local import LocalEngine
from venire.orchestrator.engines.trial import TrialRunner
from venire.orchestrator.engines.work import Engine
from venire.orchestrator.lanes.calls import CallCounters
from venire.orchestrator.recording.ending import StopRequest
from venire.orchestrator.recording.events import Events
from venire.orchestrator.recording.recorder import Recorder
from venire.orchestrator.run.next_round import OnAnalysis, RoundSource
from venire.orchestrator.run.roster import Roster
from venire.storage.store.store import Store


def say_nothing(sentence: str) -> None:
    """Drop a warning: nobody wants to be warned."""


@dataclass(frozen=True, slots=True)
class Polling:
    """How a run waits for batches: `longest` seconds between two looks, which grow to that; `detach`: not at all."""

    longest: float = 60.0
    detach: bool = False


@dataclass(frozen=True, slots=True)
class RunSetup:
    """How a run goes; by default in this process, to the end of what is planned, without anybody who follows it."""

    clock: Clock
    stop: StopRequest = field(default_factory=StopRequest)
    engine: Engine = field(default_factory=LocalEngine)
    """Asks the trials; by default in this process."""
    rounds: RoundSource | None = None
    """Asked in a thread for the campaign with another round, once all is settled or failed."""
    events: Events | None = None

    progress: Callable[[Statistics], None] | None = None
    warn: Callable[[str], None] = say_nothing
    on_start: Callable[[Recorder], None] | None = None
    """Handed each round's recorder before its first call, for whoever wants to hold the store."""
    on_open: Callable[[Callable[[], Mapping[str, Any]]], None] | None = None
    """Handed once a function that returns lanes and budgets as they are (`run_state`), for the loop's thread."""
    on_analysis: OnAnalysis | None = None
    """Gets each interim analysis."""

    group_rows: int = 500
    group_seconds: float = 0.1
    inline: bool = False
    """Read and write without threads: for a virtual clock, which does not wait for one."""
    command: str = ""
    """The options of the command line by which this run goes, noted in the store."""

    batches: Mapping[Identity, BatchProvider] = field(default_factory=dict)
    """Batch interfaces by route, for lanes that ask in waves."""
    batch_prices: Mapping[str, TokenPrice] = field(default_factory=dict)
    """Prices there, by judge name."""
    polling: Polling = field(default_factory=Polling)


@dataclass(frozen=True, slots=True)
class RunContext:
    """What all rounds and lanes of one run have in common."""

    store: Store
    campaign: CampaignSettings
    setup: RunSetup
    events: Events
    counters: CallCounters
    budgets: Mapping[int, BudgetView]
    """By respondent number; of others, the campaign's."""
    roster: Roster
    trials: TrialRunner
