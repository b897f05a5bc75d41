"""What an engine is given to ask, and the interface of engines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from venire.arena.campaigns import Identity, JudgeSettings, TokenPrice
from venire.arena.errors import StoreError
from venire.orchestrator.costs.budget import BudgetView
from venire.orchestrator.engines.trial import TrialEnds
from venire.orchestrator.lanes.lane import Lane
from venire.orchestrator.lanes.ledger import CallLedger
from venire.orchestrator.recording.ending import LeaseLosses
from venire.orchestrator.recording.recorder import Recorder
from venire.storage.plans.trial_states import PendingTrial
from venire.storage.store.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


AskTrial = Callable[[PendingTrial, JudgeSettings, Lane, TokenPrice], Awaitable[None]]
"""Asks one trial to its end; see `TrialRunner.ask`."""


class TrialSource(Protocol):
    """Hands trials out, each once."""

    @property
    def empty(self) -> bool:
        """Whether all were handed out, as far as is known."""
        ...

    async def take(self) -> PendingTrial | None:
        """The next trial, or None at the end."""
        ...

    async def close(self) -> None:
        """Hand out nothing more."""
        ...


class LaneWork(NamedTuple):
    """The trials that one lane has left, the lane, and how many workers ask them at first."""

    feed: TrialSource
    lane: Lane
    workers: int


@dataclass(frozen=True, slots=True)
class RoundAccount:
    """Where the calls of a round are paid for and put on record."""

    store: Store
    recorder: Recorder
    budgets: Mapping[int, BudgetView]
    """By respondent number; of others, the campaign's."""
    ledgers: Mapping[tuple[Identity, ...], CallLedger]
    """By lane."""
    other_calls: CallLedger
    """Of calls of no lane of this run."""
    ends: TrialEnds
    """Where it is said how trials ended."""


@dataclass(frozen=True, slots=True)
class RoundWork:
    """What all lanes of a round share."""

    judges: Mapping[int, JudgeSettings]
    """By respondent number."""
    prices: Mapping[str, TokenPrice]
    """By judge name."""
    ask: AskTrial
    halt: asyncio.Event
    """No further call is sent."""
    nobody_left: asyncio.Event
    """No further trial is begun."""
    done_asking: Collection[int]
    """Respondents that are asked no further trial."""
    unreadable: Collection[int]
    """Of these, those that are sent no further call either."""
    cannot_pay: Callable[[int, str], None]
    """Called with a respondent whose next call no budget covers, and a sentence that names the budget."""
    store_failed: Callable[[StoreError], None]
    account: RoundAccount | None = None
    """Where calls are paid and put on record, for an engine that grants those of others; lanes of this process know."""
    issued: NDArray[np.bool_] | None = None
    """Which trials were handed out, by number: none may be twice. None: that is held elsewhere."""


class Engine(Protocol):
    """Asks the trials of a campaign's lanes: in this process (`engines.local`), or by others.

    One engine serves a whole run; its lanes keep what they learnt from round to round.
    """

    @property
    def losses(self) -> LeaseLosses:
        """What lost actors have cost so far."""
        ...

    async def ask(self, work: RoundWork, lanes: Sequence[LaneWork]) -> None:
        """Ask all that the feeds hand out, until it is settled, failed, or there is a reason to stop.

        Raises what a worker raised that is no reason to stop. Cancelled: calls in flight are on record as unanswered.
        """
        ...

    def halt(self) -> None:
        """Send no further call: what is in flight comes in, what waits is given up."""
        ...
