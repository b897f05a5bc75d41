"""One call on its way: what is asked for a step, what it may cost, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256

from venire.arena.budgets import Amount
from venire.arena.campaigns import TokenPrice
from venire.arena.clock import Clock
from venire.arena.errors import CallError, Fault
from venire.arena.records import Reply, Request
from venire.orchestrator.costs.budget import BudgetView
from venire.orchestrator.lanes.gate import Permit
from venire.orchestrator.lanes.refusals import Doubt
from venire.orchestrator.lanes.routes import Route
from venire.orchestrator.lanes.windows import Load
from venire.orchestrator.recording.ending import RouteCalls

_NO_PRICE = TokenPrice(0, 0)
_NOT_SENT = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class CallCounters:
    """Counters of a running campaign."""

    calls: int = 0
    answered: int = 0
    retries: int = 0
    routes: dict[str, RouteCalls] = field(default_factory=dict)
    """Calls that ended, by the name of their route."""
    sending: set[object] = field(default_factory=set)
    """Workers with a call in flight, and calls that others have in flight."""

    @property
    def in_flight(self) -> int:
        """Calls sent and not yet answered."""
        return len(self.sending)

    def of(self, route: str) -> RouteCalls:
        """The counters of a route."""
        if route not in self.routes:
            self.routes[route] = RouteCalls()
        return self.routes[route]

    def end(self, route: str, fault: Fault, waited: float, cost: int) -> None:
        """A call has ended; seconds that it waited, nano-dollars that it counts at."""
        calls = self.routes[route] if route in self.routes else self.of(route)
        calls.ended[fault] += 1
        calls.waited += waited
        calls.cost += cost


@dataclass(slots=True)
class Step:
    """A step on its way: which one, of which trial, and how many attempts it has on record."""

    trial: int
    key: bytes
    number: int
    attempts: int
    prefix: int = 0
    """What the prompts of some trials begin with alike: calls with one prefix go the same way where they can."""
    judge: str = ""
    cost: int = 0
    """Nano-dollars of the attempts made now."""
    tries: int = 0
    """Attempts made now."""
    reply: Reply | None = None
    """What came of the last attempt made now."""


@dataclass(slots=True)
class Call:
    """What is asked for a step, and what it may cost."""

    step: Step
    request: Request
    price: TokenPrice
    budget: BudgetView
    body: bytes
    digest: bytes
    wire: tuple[str, str | None, str, bool | None]
    """What the body is written for."""
    reservation: Amount
    route: Route
    """The one taken last."""
    probed: bool = False
    """Whether the call was a probe of the route; its failure is then no failure of the step."""
    refused_by: tuple[Route, ...] = ()
    """Routes that refused it without a reason, and were open then."""
    doubt: Doubt | None = None
    """Whether that was its own; None: it was not refused so."""

    _avoided: Route | None = None
    _until: float = 0.0

    def avoid(self, route: Route, until: float) -> None:
        """Go another way until a moment of the clock: this route asked this call to wait."""
        self._avoided, self._until = route, until

    def avoided(self, clock: Clock) -> Route | None:
        """The route that asked this call to wait until later than now."""
        return self._avoided if self._avoided is not None and clock.monotonic() < self._until else None

    def load(self, route: Route) -> Load:
        """What the call asks of a route's gate; bodies for other routes are of about the same length."""
        return route.gate.load(len(self.body), self.request.max_tokens)

    def write_for(self, route: Route) -> None:
        """The body as a route's endpoint wants it, where that is not as it is now."""
        self.body = route.provider.encode(route.settings.model, self.request)
        self.digest = digest(self.body)
        self.wire = route.wire


_LONGEST, _USUAL = 64, 4
"""Bytes of a token: more than these on average are not believed, and so many are then reckoned with."""


CallUsage = tuple[int | None, int | None, bool, bool, float | None]
"""Input and output tokens (None: not known, what was set aside counts), whether a reply came, whether it was a
rate-limit response, and the wait in seconds that it asked for. A plain tuple, since one is made for every call."""


@dataclass(slots=True, eq=False)
class Attempt:
    """One call on a ledger, from what is set aside for it to what came of it.

    One that has ended without reply and error was given up while it was on its way, or its answer was lost.
    """

    step: Step
    budget: BudgetView
    reservation: Amount
    cut: int = 0
    """Characters that were cut out of the texts shown."""
    sender: object = None
    """Who has it in flight, among `CallCounters.sending`."""
    lane: int = 0
    """The number of its route in the store, whose table calls it a lane."""
    route: Route | None = None
    """None: its judge is not asked in this run."""
    permit: Permit | None = None
    """None: no gate counts it, or no more."""
    waited: float = 0.0
    """Seconds at the gate."""
    price: TokenPrice = _NO_PRICE
    body_bytes: int = 0
    digest: bytes = b""
    structured: bool | None = None
    """Whether the endpoint is held to a JSON schema; None where none was asked for."""
    number: int = 0
    """Of the attempt, once it was announced."""
    again: bool = False
    """Whether this run has tried the step before."""
    slot: int | None = None
    """Where it was announced on disk; None: among the lines of a batch."""
    in_doubt: bool = False
    """Whether its sender is silent: it may still be reported, and nobody waits for it."""
    sent_at: datetime = _NOT_SENT
    latency: float = 0.0
    reply: Reply | None = None
    error: CallError | None = None
    lost: str | None = None
    """Why its answer is lost, in a sentence."""

    def usage(self) -> CallUsage:
        """What the gate that let the call pass is told of it, see `Gate.done`."""
        reply, error = self.reply, self.error
        if reply is not None:
            return (
                (None, None, True, False, None)
                if reply.estimated
                else (reply.input_tokens, reply.output_tokens, True, False, None)
            )
        if error is None or error.may_be_billed:
            return None, None, False, False, None
        limited = error.fault is Fault.RATE_LIMITED
        return 0, 0, False, limited, error.retry_after if limited else None

    def paid(self) -> tuple[int | None, int | None, str]:
        """Nano-dollars, tokens, and what of the provider's report is not believed; None where they are not known.

        The provider's own cost counts first, then the price. A cost of nothing for tokens that have a price is not
        believed, nor are more cached tokens than there were, nor counts far below the texts: the price counts then,
        at the larger counts, or a gateway that reports 0 would switch the budget off.
        """
        reply = self.reply
        if reply is None:
            billed = self.error is None or self.error.may_be_billed
            return (None, None, "") if billed else (0, 0, "")
        if reply.estimated:
            return reply.cost or None, None, ""
        given, made, cached, doubt = reply.input_tokens, reply.output_tokens, reply.cached_tokens, ""
        if cached > given:
            cached, doubt = 0, f"{cached:,} cached tokens of {given:,}"
        size, body_bytes = len(reply.text), self.body_bytes
        if given * _LONGEST < body_bytes or made * _LONGEST < size:
            doubt = f"{given:,} and {made:,} tokens for {body_bytes:,} bytes sent and {size:,} characters received"
            given, made = max(given, body_bytes // _USUAL), max(made, size // _USUAL)
        if reply.cost:
            return reply.cost, given + made, ""
        cost = self.price.cost(given, made, cached, reply.written_tokens)
        if reply.cost == 0 and cost:
            doubt = "a cost of $0.00"
        return cost, given + made, doubt


def digest(body: bytes) -> bytes:
    """Digest of a body as it was sent, 16 bytes."""
    return sha256(body).digest()[:16]
