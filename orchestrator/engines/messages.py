"""What a coordinator and its actors say to each other: plain records, which any transport can carry.

The coordinator speaks first, always: `begin` starts a lease, `exchange` brings trials and answers down and takes
reports up. Reports are numbered and kept by the actor until the coordinator has them on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from venire.arena.budgets import Amount
from venire.arena.campaigns import CampaignSettings, Identity, JudgeSettings, Limits, TokenPrice
from venire.arena.errors import Fault, VenireError
from venire.arena.records import Outcome, Reply
from venire.judges.providers.base import Provider
from venire.orchestrator.lanes.calls import CallUsage
from venire.orchestrator.lanes.windows import Load
from venire.orchestrator.recording.recorder import AttemptRecord
from venire.storage.plans.trial_states import PendingTrial

STALE_SECONDS = 0.5
"""Without a word for longer, beside what an exchange takes, permits for calls are neither given nor used."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What an actor needs to know of a campaign to ask its trials; no key is part of it."""

    campaign: CampaignSettings
    judges: Mapping[int, JudgeSettings]
    """By respondent number: those that actors ask."""
    prices: Mapping[str, TokenPrice]
    """By judge name."""
    routes: Mapping[str, int]
    """Numbers of routes in the store, by name."""
    accepted: frozenset[int] = field(compare=False)
    """Routes by which a call was answered at any time."""
    open_providers: Callable[[], Sequence[tuple[Identity, Provider]]] = field(compare=False)
    """Opens the routes in the actor's process, with the keys of its own environment. Raises InputError."""
    lease_seconds: float
    """How long a lease lasts without an exchange."""
    version: str
    """Of Venire, where the coordinator is."""
    coordinator: str
    """Another one: its own simulated judges are at another address."""
    events: bool = False
    """Whether anybody observes the run."""


class CallOut(NamedTuple):
    """A call that an actor may have sent and has not reported: what was announced of it."""

    trial: int
    key: bytes
    """Of the trial."""
    step: int
    number: int
    lane: int
    respondent: int
    reservation: Amount
    load: Load | None
    """None: it has ended, and no gate needs to know."""


class Begun(NamedTuple):
    """An actor's answer to the beginning of a lease."""

    process: str
    """Another one: the process before it is gone, with all that it had."""
    pid: int
    node: str
    out: Mapping[int, CallOut]
    """Calls of earlier leases that are still on their way, by number; they are reported when they end."""
    campaign: str | None
    """The campaign of the lease before, by name; None: there was none."""
    unacknowledged: tuple[Attempted, ...]
    """Calls that ended and that no coordinator has on disk, as far as the actor knows."""


class Grant(NamedTuple):
    """A call may be sent: the number of the attempt, seconds that it waited at the gate, and what is reserved."""

    call: int
    number: int
    waited: float
    reservation: Amount


class Refused(NamedTuple):
    """A call may not be sent, for a reason that is said in a sentence."""

    call: int
    because: Literal["budget", "closed", "stopped"]
    why: str


class Down(NamedTuple):
    """What a coordinator sends with each exchange."""

    lease: int
    acknowledged: int
    """Reports up to this number are on disk."""
    trials: tuple[PendingTrial, ...]
    answers: tuple[Grant | Refused, ...]
    done: frozenset[int]
    """Respondents that are asked no further trial."""
    silent: frozenset[int]
    """Of these, those that are sent no further call either."""
    last: bool
    """Whether no further trial will come, as far as is known."""
    halt: bool
    linger: float
    """Seconds for which reports may wait for more, so that they go up together."""


class Ask(NamedTuple):
    """A call that is ready to be sent and wants a permit."""

    call: int
    trial: int
    step: int
    lane: int
    reservation: Amount
    load: Load


class GaveUp(NamedTuple):
    """A call that wants no permit any more."""

    call: int


class Attempted(NamedTuple):
    """A call that was sent and has ended."""

    call: int
    out: CallOut
    record: AttemptRecord
    usage: CallUsage
    tokens: int | None
    """All that it used; None: not known."""
    doubt: str = ""
    """What of the provider's report is not believed."""


class Withdrawn(NamedTuple):
    """A call that had a permit and was not sent."""

    call: int


class Settled(NamedTuple):
    """A trial with its outcome; `reply` is the last one of a verdict that is not ok."""

    trial: int
    outcome: Outcome
    seconds: float
    reply: Reply | None


class Failed(NamedTuple):
    """A trial of which a step used up its attempts."""

    trial: int
    step: int
    fault: Fault
    seconds: float


class Returned(NamedTuple):
    """A trial that this actor does not ask to its end."""

    trial: int


class Learnt(NamedTuple):
    """Limits in an answer's headers, and seconds for which its route is to be held."""

    lane: int
    limits: Limits
    hold: float


class Closed(NamedTuple):
    """A lane through which this actor asks no more, and why."""

    lane: tuple[Identity, ...]
    why: str


class Warned(NamedTuple):
    """A sentence for the person at the terminal."""

    sentence: str


class Broke(NamedTuple):
    """A mistake in asking ended what an actor did under its lease; whoever gets its trials would make it again."""

    error: str


class Emitted(NamedTuple):
    """An event for the observers of the run."""

    name: str
    fields: Mapping[str, object]


Report = Ask | GaveUp | Attempted | Withdrawn | Settled | Failed | Returned | Learnt | Closed | Warned | Broke | Emitted


class Numbered(NamedTuple):
    """A report with its number, from 1, and the lease that it was made under."""

    number: int
    lease: int
    report: Report


class Up(NamedTuple):
    """What an actor answers to an exchange."""

    lease: int
    reports: tuple[Numbered, ...]
    active: int
    """Trials that are being asked."""
    waiting: Mapping[tuple[Identity, ...], int]
    """Of these, how many wait between two attempts, by lane."""
    over: bool
    """Whether the lease ended here before this exchange came: nothing more is sent under it."""


class LinkLostError(VenireError):
    """An actor does not answer: its process has ended, or cannot be reached."""


class Link(Protocol):
    """The way to one actor."""

    @property
    def name(self) -> str:
        """What it is called in messages."""
        ...

    async def begin(self, lease: int, setup: Setup | None) -> Begun:
        """End the lease before and begin another; without a setup none.

        Raises InputError where the actor cannot ask this campaign's judges, LinkLostError where it does not answer.
        """
        ...

    async def exchange(self, down: Down) -> Up:
        """Bring trials and answers down and take reports up. Raises LinkLostError where the actor does not answer."""
        ...

    async def kill(self) -> None:
        """End the actor's process."""
        ...
