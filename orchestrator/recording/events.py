"""Events of a run, sent to observers as they happen: names, fields, and the way from the engine to them.

No event holds the text of a prompt or a reply, or a key. Trials are named by number and by key in hexadecimal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from venire.arena.clock import Clock


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened: its name, the time of day in UTC, and its fields as plain values."""

    name: str
    at: datetime
    fields: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class EventKind:
    """What an event of some name means, and the fields that it has, all of them always."""

    meaning: str
    fields: tuple[str, ...]


Observer = Callable[[Event], None]
"""Called in the event loop's thread: it must not wait for anything."""

_CALL = ("lane", "route", "judge", "trial", "key", "step", "attempt")

EVENTS: Mapping[str, EventKind] = {
    "run.started": EventKind(
        "A run begins; `lanes` lists its routes: `lane`, `route`, `provider`, `model` and `endpoint` of each. "
        "`spent_nano` is what the campaign spent before it, `budget_nano` its limit, null without one.",
        ("campaign", "planned", "settled", "failed", "missing", "spent_nano", "budget_nano", "lanes"),
    ),
    "run.ended": EventKind(
        "A run is over, for the reason in `ending`; counts of calls and money are of this run.",
        ("campaign", "ending", "calls", "answered", "retries", "settled", "failed", "missing", "cost_nano", "seconds"),
    ),
    "trial.settled": EventKind(
        "A trial has its verdict; `status` as in the view battle, `cost_nano` and `seconds` over all its calls.",
        ("trial", "key", "judge", "lane", "status", "cost_nano", "seconds"),
    ),
    "trial.failed": EventKind(
        "A step of a trial used up its attempts, or was refused; `fault` is the class of the last one's fault.",
        ("trial", "key", "judge", "lane", "step", "fault", "cost_nano", "seconds"),
    ),
    "call.sent": EventKind(
        "A call leaves, after `wait_s` seconds at its lane's gate; of a batch, when it is submitted or taken over from "
        "an earlier run.",
        (*_CALL, "wait_s", "reserved_nano"),
    ),
    "call.ended": EventKind(
        "A call was answered, failed or was given up; `fault` is `none` when answered, `status` that of HTTP. What the "
        "provider did not count is null; `cached_tokens` are among the `input_tokens`.",
        (
            *_CALL,
            "fault",
            "status",
            "wait_s",
            "latency_s",
            "input_tokens",
            "output_tokens",
            "cached_tokens",
            "cost_nano",
        ),
    ),
    "batch.submitted": EventKind(
        "A wave of requests was submitted as a batch; `name` is ours, `provider_id` the provider's.",
        ("route", "name", "provider_id", "lines", "bytes", "reserved_nano"),
    ),
    "batch.doubted": EventKind(
        "A batch was not confirmed when it was sent, and so many of the provider's may be it or somebody else's, the "
        "first of them `provider_id`: nothing is sent again until they have ended.",
        ("route", "name", "provider_id", "lines", "candidates"),
    ),
    "batch.incomplete": EventKind(
        "A batch has ended, and results that its provider counts are missing from what it hands out: it is read again; "
        "lines that are no result, and how often it was read.",
        ("route", "name", "provider_id", "missing", "unreadable", "reading"),
    ),
    "batch.collected": EventKind(
        "The answers of a batch are on disk: lines answered and failed, and strays, which nobody asked for.",
        ("route", "name", "provider_id", "answered", "failed", "strays"),
    ),
    "lane.held": EventKind("No call of a route is sent for so many seconds.", ("lane", "route", "seconds", "why")),
    "lane.slowed": EventKind(
        "Rate-limit responses slow a route: the calls that may be in flight, calls a second (null where only single "
        "calls are sent to see), and the responses that led to it.",
        ("lane", "route", "in_flight", "calls_per_second", "refused"),
    ),
    "lane.unslowed": EventKind(
        "A route is as fast again as the campaign file allows.",
        ("lane", "route", "in_flight", "calls_per_second", "refused"),
    ),
    "circuit.opened": EventKind(
        "A route failed too often and gets no calls for a while.", ("lane", "route", "seconds", "why")
    ),
    "circuit.probed": EventKind("One call is sent to see whether a route works again.", ("lane", "route")),
    "circuit.closed": EventKind("A route works again.", ("lane", "route")),
    "key.quarantined": EventKind(
        "A provider refuses a key, which is named by its environment variable.", ("lane", "route", "variable", "why")
    ),
    "lane.closed": EventKind("A lane takes no more calls in this run.", ("lane", "why")),
    "limit.learnt": EventKind(
        "A provider's answer told a limit; `what` says which, as in `requests_per_minute`.",
        ("lane", "route", "what", "limit"),
    ),
    "judge.unreadable": EventKind("Too few of a judge's last verdicts could be read.", ("judge", "why")),
    "judge.unaffordable": EventKind("A budget does not cover a judge's next call.", ("judge", "why")),
    "budget.passed": EventKind(
        "The campaign has spent 50, 80 or 100 % of its money: in this run, each once.",
        ("percent", "spent_nano", "limit_nano"),
    ),
    "budget.reached": EventKind("No judge can pay its next call: the run ends.", ("why",)),
    "look": EventKind(
        "What is known after a round of a plan: judged battles, verdicts, the largest half of an interval in Elo "
        "points, pairs of models that are open, models with too few battles; `stop` says why no more is planned.",
        ("round", "battles", "verdicts", "half_width", "open", "starved", "spent_nano", "stop"),
    ),
    "round.planned": EventKind(
        "Another round of the plan is in the store, and the run goes on with it.",
        ("round", "phase", "policy", "battles", "trials"),
    ),
    "pages.served": EventKind("The run serves pages at an address.", ("address",)),
    "board.rated": EventKind(
        "The verdicts are rated, after `run.ended`; `leader` is the model that is rated highest.",
        ("leader", "method"),
    ),
    "events.lost": EventKind("So many events before this one could not be written to this file.", ("count",)),
}
"""Every event by name; docs/documents.md#events shows the same."""


class Events:
    """Sends events to observers; without observers it is not `active`, and callers build no fields.

    An observer that raises is dropped, and `warn` is called once: an observer never harms the run. Where
    `checked` is true, as in tests, an event that does not match `EVENTS` raises ValueError.
    """

    checked: ClassVar[bool] = False

    def __init__(
        self, clock: Clock, observers: Sequence[Observer] = (), *, warn: Callable[[str], None] | None = None
    ) -> None:
        self.active = bool(observers)
        self._clock = clock
        self._observers = tuple(observers)
        self._warn = warn

    def emit(self, name: str, /, **fields: object) -> None:
        """Tell all observers, now."""
        if self.checked:
            _check(name, fields)
        event = Event(name, self._clock.wall(), fields)
        for observer in self._observers:
            try:
                observer(event)
            except Exception as error:  # somebody else's code: no mistake in it may cost a paid reply
                self._drop(observer, error)

    def _drop(self, observer: Observer, error: Exception) -> None:
        self._observers = tuple(known for known in self._observers if known is not observer)
        self.active = bool(self._observers)
        if self._warn is not None:
            name = getattr(observer, "__qualname__", type(observer).__qualname__)
            self._warn(f"warning: {name} failed ({type(error).__name__}: {error}) and is told nothing more of this run")


def _check(name: str, fields: Mapping[str, object]) -> None:
    if name not in EVENTS:
        raise ValueError(f"no event is named {name!r}")
    if fields.keys() != set(EVENTS[name].fields):
        wrong = sorted(fields.keys() ^ set(EVENTS[name].fields))
        raise ValueError(f"event {name!r}: missing or unknown fields: {', '.join(wrong)}")
