"""The ledger alone, in any order of what may happen to calls: no cap is passed, and every nano-dollar counts once."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from venire.arena.budgets import UNITS, Amount, BudgetSettings
from venire.arena.campaigns import Limits, TokenPrice
from venire.arena.clock import VirtualClock
from venire.arena.errors import Fault, TransientError
from venire.arena.records import Reply
from venire.orchestrator.costs.budget import BudgetAccount, BudgetView
from venire.orchestrator.lanes.calls import Attempt, CallCounters, Step
from venire.orchestrator.lanes.gate import Gate
from venire.orchestrator.lanes.lane_events import LaneEvents
from venire.orchestrator.lanes.ledger import CallLedger
from venire.orchestrator.recording.events import Event, Events
from venire.orchestrator.recording.recorder import AttemptRecord

T = TypeVar("T")

CAP = 1_000
LATE = 10_000
OF_SENT = ("answer", "fail", "bill", "lose", "withdraw", "fall silent")
OF_SILENT = ("answer late", "lose late", "withdraw late")
STEPS = st.tuples(
    st.sampled_from(("reserve", "send", "release", *OF_SENT, *OF_SILENT, "kill")),
    st.integers(0, 9),
    st.integers(0, 300),
)


@dataclass
class Disk:
    """What is on disk: rows of calls that have ended, and what was announced of the others."""

    rows: list[AttemptRecord] = field(default_factory=list)
    slots: dict[int, tuple[int, int, int, int, Amount]] = field(default_factory=dict)
    full: bool = False
    last: int = 0

    async def announce(self, *about: Any) -> int:
        self.last += 1
        self.slots[self.last] = about  # type: ignore[assignment]
        return self.last

    def withdraw(self, slot: int) -> None:
        del self.slots[slot]

    def renumber(self, slot: int, *about: Any) -> int:
        self.last += 1
        self.slots[self.last] = about  # type: ignore[assignment]
        self.withdraw(slot)
        return self.last

    def attempt(self, row: AttemptRecord, slot: int) -> None:
        assert self.slots.pop(slot) == (*row[:4], Amount(1, row.reserved, row.reserved_tokens))
        self.rows.append(row)

    @property
    def paid(self) -> int:
        return sum(row.reserved if row.cost is None else row.cost for row in self.rows)

    @property
    def counted(self) -> int:
        """What a start after a kill counts: rows, and what was announced and has none."""
        return self.paid + sum(reserved.money for *_, reserved in self.slots.values())


def done(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that need not wait."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("it waits")


class Books:
    """A ledger with everything around it, and what it must come to; a kill makes all of that but the disk anew."""

    def __init__(self) -> None:
        self.disk = Disk()
        self.steps: dict[int, Step] = {}
        self.said: list[str] = []
        self.begin({})

    def begin(self, left: dict[int, tuple[int, int, int, int, Amount]]) -> None:
        """Start: what was announced and has no row is taken over, as from actors that are still there."""
        clock = VirtualClock()
        rows = self.disk.rows
        self.account = BudgetAccount("the budget", BudgetSettings(money=CAP), Amount(len(rows), self.disk.paid, 0))
        self.budget = BudgetView([self.account])
        self.gate = Gate(Limits(), clock, concurrency=1_000)
        self.route: Any = SimpleNamespace(name="the route", number=4, gate=self.gate)
        self.counters = CallCounters()
        self.seen: list[Event] = []
        events = LaneEvents("the lane", Events(clock, [self.seen.append]), self.said.append)
        self.ledger = CallLedger(self.disk, clock=clock, counters=self.counters, lane_events=events)  # type: ignore[arg-type]
        self.reserved: list[Attempt] = []
        self.sent: list[Attempt] = []
        self.silent: list[Attempt] = []
        for trial, number, attempts, _, reserved in left.values():
            attempt = Attempt(Step(trial, bytes(16), number, attempts - 1), self.budget, reserved, lane=4)
            attempt.route, attempt.sender = self.route, object()
            done(self.ledger.adopt(attempt, self.gate.load(10, 10)))
            self.sent.append(attempt)

    def play(self, event: str, which: int, amount: int) -> None:
        """One thing happens, where it can."""
        among = self.sent if event in OF_SENT else self.silent if event in OF_SILENT else self.reserved
        if event == "reserve":
            self.reserve(which, amount)
        elif event == "kill":
            left, self.disk.slots = self.disk.slots, {}
            self.begin(left)
        elif among:
            attempt = among.pop(which % len(among))
            getattr(self, event.removesuffix(" late").replace(" ", "_"))(attempt, amount)

    def reserve(self, trial: int, money: int) -> None:
        step = self.steps.setdefault(trial, Step(trial, bytes(16), 1, 0))
        attempt = Attempt(
            step, self.budget, self.ledger.reservation(Amount(1, money, money)), lane=4, price=TokenPrice(1, 1)
        )
        room = CAP - self.account.used.money - self.account.reserved.money
        assert self.ledger.reserve_now(attempt) == (attempt.reservation.money <= room)
        if attempt.reservation.money <= room:
            self.reserved.append(attempt)

    def send(self, attempt: Attempt, amount: int) -> None:
        attempt.route, attempt.sender = self.route, object()
        attempt.permit = self.gate.take_now(self.gate.load(10, 10))
        done(self.ledger.announce(attempt))
        self.sent.append(attempt)

    def answer(self, attempt: Attempt, amount: int) -> None:
        if attempt.in_doubt:
            self.ledger.renumber(attempt, LATE + self.disk.last)
        cost = min(amount, attempt.reservation.money)  # what the price allows
        attempt.reply = Reply("1", input_tokens=1, output_tokens=1, cost=cost or None)
        self.ledger.settle(attempt)

    def fail(self, attempt: Attempt, amount: int) -> None:
        attempt.error = TransientError("busy", Fault.TRANSIENT)
        self.ledger.settle(attempt)

    def bill(self, attempt: Attempt, amount: int) -> None:
        attempt.error = TransientError("cut off", Fault.TRANSIENT, may_be_billed=True)
        self.ledger.settle(attempt)

    def lose(self, attempt: Attempt, amount: int) -> None:
        attempt.lost = "its actor is gone"
        self.ledger.settle(attempt)

    def fall_silent(self, attempt: Attempt, amount: int) -> None:
        self.ledger.park(attempt)
        self.silent.append(attempt)

    def withdraw(self, attempt: Attempt, amount: int) -> None:
        self.ledger.withdraw(attempt)

    def release(self, attempt: Attempt, amount: int) -> None:
        self.ledger.release(attempt)

    def check(self) -> None:
        """The promises, at any moment."""
        on_way = [*self.sent, *self.silent]
        live = [*self.reserved, *on_way]
        account, disk = self.account, self.disk
        assert account.used.money + account.reserved.money <= CAP, "the cap holds"
        assert disk.counted <= CAP, "and holds for whoever comes after a kill"
        assert account.used.money == disk.paid, "what is paid is on record"
        assert account.reserved.money == sum(one.reservation.money for one in live)
        assert account.parked.money == sum(one.reservation.money for one in self.silent)
        assert account.taken(UNITS["calls"]) == len(disk.rows) + len(live)
        assert sorted(disk.slots) == sorted(one.slot or 0 for one in on_way), "what is on its way is announced"
        numbers = [row[:3] for row in disk.rows] + [about[:3] for about in disk.slots.values()]
        assert len(set(numbers)) == len(numbers), "no two calls of a step have one number"
        assert self.gate.in_flight == len(self.sent)
        assert self.counters.in_flight == len(on_way)
        assert len([one for one in self.seen if one.name == "call.sent"]) - len(on_way) == len(
            [one for one in self.seen if one.name == "call.ended"]
        )


def keep_books(events: list[tuple[str, int, int]]) -> None:
    books = Books()
    for event in events:
        books.play(*event)
        books.check()
    for end in ("answer", "answer late", "release"):  # in the end all is paid or given back
        while books.sent if end == "answer" else books.silent if end == "answer late" else books.reserved:
            books.play(end, 0, 50)
    books.check()
    assert (books.account.reserved.money, books.account.parked.money, books.gate.in_flight) == (0, 0, 0)
    assert books.account.used.money == books.disk.paid == books.disk.counted <= CAP


@given(st.lists(STEPS, max_size=60))
def test_in_any_order_the_cap_holds_and_every_nano_dollar_counts_once(events: list[tuple[str, int, int]]) -> None:
    keep_books(events)


def twice(method: Callable[..., Any]) -> Callable[..., Any]:
    def broken(self: CallLedger, attempt: Attempt) -> None:
        method(self, attempt)
        attempt.permit = None
        method(self, attempt)

    return broken


def not_of_the_silent(method: Callable[..., Any]) -> Callable[..., Any]:
    def broken(self: CallLedger, attempt: Attempt, *more: Any) -> None:
        if not attempt.in_doubt:
            method(self, attempt, *more)

    return broken


def for_less(method: Callable[..., Any]) -> Callable[..., Any]:
    def broken(self: CallLedger, attempt: Attempt) -> bool:
        whole = attempt.reservation
        attempt.reservation = whole._replace(money=whole.money // 2)
        try:
            return bool(method(self, attempt))
        finally:
            attempt.reservation = whole

    return broken


@pytest.mark.parametrize(
    ("name", "break_it"),
    [
        ("release", twice),
        ("settle", twice),
        ("enter", not_of_the_silent),
        ("reserve_now", for_less),
        ("withdraw", lambda method: CallLedger.release),
        ("park", lambda method: lambda self, attempt: setattr(attempt, "in_doubt", True)),
        ("renumber", lambda method: lambda self, attempt, number: setattr(attempt, "number", number)),
    ],
)
def test_a_ledger_that_is_wrong_is_noticed(
    name: str, break_it: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CallLedger, name, break_it(getattr(CallLedger, name)))
    quick = settings(phases=[Phase.generate], derandomize=True, database=None, max_examples=200)
    noticed = quick(given(st.lists(STEPS, min_size=30, max_size=60))(keep_books))
    with pytest.raises((AssertionError, KeyError, RuntimeError)):
        noticed()


def test_what_a_call_costs_beyond_its_price_is_said_once_and_reserved_for_each_call_after_it() -> None:
    books = Books()
    for cost in (300, 200):
        books.reserve(1, 100)
        books.send(books.reserved.pop(), 0)
        attempt = books.sent.pop()
        attempt.reply = Reply("1", input_tokens=1, output_tokens=1, cost=cost)
        books.ledger.settle(attempt)
    assert attempt.reservation.money == books.ledger.reservation(Amount(1, 100, 0)).money == 300
    assert len(books.said) == 1
