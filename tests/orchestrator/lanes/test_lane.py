"""A live lane: what it sends, pays, keeps and refuses. On the virtual clock, with a provider that follows a script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from hashlib import sha256
from itertools import chain, repeat
from pathlib import Path
from typing import Any, TypeVar

import pytest

from venire.arena.budgets import UNITS, Amount, BudgetSettings
from venire.arena.campaigns import LaneSettings, Limits, RouteSettings, TokenPrice
from venire.arena.clock import SystemClock, VirtualClock
from venire.arena.errors import (
    BudgetReachedError,
    CallError,
    Fault,
    KeyRefusedError,
    OutOfFilesError,
    StoreError,
    TransientError,
)
from venire.arena.records import Reply, Request
from venire.orchestrator.costs.budget import BudgetAccount, BudgetView
from venire.orchestrator.lanes.calls import CallCounters, Step
from venire.orchestrator.lanes.gate import Gate
from venire.orchestrator.lanes.lane import Lane, LaneClosedError, StoppedError
from venire.orchestrator.lanes.lane_events import LaneEvents
from venire.orchestrator.lanes.ledger import CallLedger
from venire.orchestrator.lanes.refusals import REFUSALS_IN_A_ROW
from venire.orchestrator.lanes.routes import Route
from venire.orchestrator.recording.events import Events
from venire.orchestrator.recording.recorder import AttemptRecord, Recorder
from venire.storage.store.opening import open_store

T = TypeVar("T")

PRICE = TokenPrice(1_000_000_000, 3_000_000_000)
"""1,000 nano-dollars a token in, 3,000 a token out."""

BODY = b"x" * 100
REQUEST = Request(({"role": "user", "content": "Which?"},), max_tokens=10)
WORST = 100 * 1_000 + 10 * 3_000
WORST_TOKENS = 100 + 10
WELL = Reply("1", input_tokens=20, output_tokens=5)
PAID = 20 * 1_000 + 5 * 3_000
KEY = bytes(range(16))


class Scripted:
    """A provider that takes a second for each call, then answers or raises what comes next in its script."""

    def __init__(self, clock: Any, script: Iterator[Reply | Exception]) -> None:
        self.clock, self.script = clock, script
        self.on_limits: Callable[[Limits, float], None] | None = None
        self.encoded: list[tuple[str, Request]] = []
        self.sent: list[tuple[float, bytes, str]] = []
        self.seconds, self.checks, self.check_seconds = 1.0, 0, 1.0
        self.listed: Exception | None = None

    @property
    def at(self) -> list[float]:
        return [moment for moment, _, _ in self.sent]

    def limits_key(self, model: str) -> tuple[str, ...]:
        return ("scripted", model)

    def encode(self, model: str, request: Request) -> bytes:
        self.encoded.append((model, request))
        return BODY

    async def send(self, body: bytes, idempotency_key: str) -> Reply:
        self.sent.append((self.clock.monotonic(), body, idempotency_key))
        said = next(self.script)
        await self.clock.sleep(self.seconds)
        if isinstance(said, Exception):
            raise said
        return said

    async def check(self) -> str | None:
        self.checks += 1
        await self.clock.sleep(self.check_seconds)
        if self.listed is not None:
            raise self.listed
        return None

    async def close(self) -> None:
        return None


class Kept(Recorder):
    """A recorder that keeps attempts in a list, and has room unless it is told to be full."""

    def __init__(self) -> None:
        self.attempts: list[AttemptRecord] = []
        self.announced: list[tuple[int, int, int, int, Amount]] = []
        self.withdrawn = 0
        self.freed = asyncio.Event()
        self.freed.set()

    @property
    def full(self) -> bool:
        return not self.freed.is_set()

    async def room(self) -> None:
        await self.freed.wait()

    async def announce(self, trial: int, step: int, number: int, lane: int, reservation: Amount) -> int:
        self.announced.append((trial, step, number, lane, reservation))
        return len(self.announced)

    def withdraw(self, slot: int) -> None:
        self.withdrawn += 1

    def attempt(self, one: AttemptRecord, slot: int) -> None:
        assert self.announced[slot - 1] == (
            *(one.trial, one.step, one.number, one.lane),
            Amount(1, one.reserved, one.reserved_tokens),
        )
        self.attempts.append(one)


@dataclass
class House:
    """A lane with everything around it."""

    script: list[Reply | Exception] = field(default_factory=list)
    rate: int | None = None
    limits: Limits = field(default_factory=Limits)
    attempts: int = 3
    budget: BudgetSettings = field(default_factory=BudgetSettings)
    clock: Any = field(default_factory=VirtualClock)

    def __post_init__(self) -> None:
        self.provider = Scripted(self.clock, chain(self.script, repeat(WELL)))
        self.account = BudgetAccount("the budget", self.budget)
        self.budget_view = BudgetView([self.account])
        self.kept = Kept()
        self.counters = CallCounters()
        self.stopping = asyncio.Event()
        self.told: list[str] = []
        self.lane = self.make(self.kept)

    def make(self, recorder: Recorder) -> Lane:
        limits = replace(self.limits, requests_per_minute=self.rate)
        route = RouteSettings("openai", None, None, "judge-1")
        settings = LaneSettings((route,), limits, max_attempts=self.attempts)
        self.gate = Gate(settings.limits, self.clock, concurrency=settings.concurrency)
        lane_events = LaneEvents("judge-1", Events(self.clock), self.told.append)
        return Lane(
            settings,
            [Route(settings.routes[0], 4, self.provider, self.gate, self.clock)],
            ledger=CallLedger(recorder, clock=self.clock, counters=self.counters, lane_events=lane_events),
            clock=self.clock,
            stopping=self.stopping,
            lane_events=lane_events,
        )

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        with asyncio.Runner(loop_factory=self.clock.new_event_loop) as runner:
            return runner.run(main)

    async def ask(self, step: Step | None = None) -> Reply:
        return await self.lane.ask(step or new_step(), REQUEST, PRICE, self.budget_view)

    @property
    def money(self) -> tuple[int, int, int]:
        return (self.account.used.money, self.account.reserved.money, self.account.taken(UNITS["calls"]))


def new_step(number: int = 1, attempts: int = 0) -> Step:
    return Step(7, KEY, number, attempts)


def busy(**how: Any) -> TransientError:
    return TransientError("busy", Fault.TRANSIENT, status=503, **how)


def limited(after: float | None) -> TransientError:
    return TransientError("slow down", Fault.RATE_LIMITED, status=429, retry_after=after)


def no_files() -> OutOfFilesError:
    return OutOfFilesError("too many open files", Fault.TRANSIENT)


def bad() -> CallError:
    return CallError("no such setting", Fault.BAD_REQUEST, status=400)


def test_an_answer_is_returned_paid_and_kept_with_all_that_is_known_of_it() -> None:
    house = House()
    step = new_step(number=2)
    assert house.run(house.ask(step)) is WELL
    assert house.provider.encoded == [("judge-1", REQUEST)]
    assert house.provider.sent == [(0.0, BODY, f"{KEY.hex()}-2")]
    assert house.kept.attempts == [
        AttemptRecord(
            trial=7,
            step=2,
            number=1,
            lane=4,
            sent_at=VirtualClock().wall(),
            latency=1.0,
            waited=0.0,
            reserved=WORST,
            reserved_tokens=WORST_TOKENS,
            cost=PAID,
            request_digest=sha256(BODY).digest()[:16],
            http_status=200,
            reply=WELL,
        )
    ]
    assert house.money == (PAID, 0, 1)
    assert (step.attempts, step.tries, step.cost) == (1, 1, PAID)
    assert (house.counters.calls, house.counters.answered, house.counters.retries, house.counters.in_flight) == (
        1,
        1,
        0,
        0,
    )


def test_a_call_without_a_file_for_its_connection_is_none_and_fewer_are_in_flight_from_then_on() -> None:
    house = House([*repeat(WELL, 8), *repeat(no_files(), 2)], budget=BudgetSettings(calls=10), attempts=1)
    before = house.gate.allowed

    async def ten() -> None:
        await asyncio.gather(*(house.ask(new_step(number)) for number in range(10)))

    house.run(ten())
    assert len(house.kept.attempts) == 10
    assert {one.fault for one in house.kept.attempts} == {Fault.NONE}
    assert house.money == (10 * PAID, 0, 10)
    assert (house.counters.calls, house.counters.retries) == (10, 0)
    assert house.kept.withdrawn == 2
    assert house.gate.allowed == before - 2 - 4, "a few files are left for the store"
    assert len(house.told) == 1
    assert "ulimit -n" in house.told[0]


def test_a_lane_that_gets_no_file_at_all_waits_and_is_given_up_after_its_patience() -> None:
    house = House(list(repeat(no_files(), 10_000)))
    with pytest.raises(LaneClosedError, match="too many open files"):
        house.run(house.ask())
    assert house.clock.monotonic() >= house.lane.settings.patience
    assert house.money == (0, 0, 0)
    assert not house.kept.attempts


def test_the_throttler_holds_the_limit_of_requests_whatever_the_gate_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gate, "_opens", lambda self, now, load: now)
    assert House(rate=2).gate.throttler is None, "it reads the machine's clock"
    house = House(clock=SystemClock(), rate=2)
    assert house.gate.throttler is not None
    assert house.gate.throttler.period == 60
    house.gate.throttler.period, house.gate.throttler.retry_interval = 0.1, 0.001

    async def six() -> None:
        house.provider.seconds = 0.0
        await asyncio.gather(*(house.ask(new_step(number)) for number in range(6)))

    asyncio.run(six())
    assert len(house.provider.at) == 6
    assert all(later - first >= 0.1 for first, later in zip(house.provider.at, house.provider.at[2:], strict=False))


def test_every_attempt_is_kept_and_sent_under_one_idempotency_key() -> None:
    house = House([busy(), limited(5.0)])
    step = new_step()
    assert house.run(house.ask(step)) is WELL
    kept = house.kept.attempts
    assert [(one.number, one.fault, one.http_status, one.message, one.cost) for one in kept] == [
        (1, Fault.TRANSIENT, 503, "busy", 0),
        (2, Fault.RATE_LIMITED, 429, "slow down", 0),
        (3, Fault.NONE, 200, None, PAID),
    ]
    assert [one.reply for one in kept] == [None, None, WELL]
    assert [one.latency for one in kept] == pytest.approx([1, 1, 1])
    assert {key for _, _, key in house.provider.sent} == {f"{KEY.hex()}-1"}
    start = VirtualClock().wall()
    for one, (moment, _, _) in zip(kept, house.provider.sent, strict=True):
        assert abs(one.sent_at - start - timedelta(seconds=moment)) < timedelta(milliseconds=1)
    assert house.money == (PAID, 0, 3)
    assert (house.counters.calls, house.counters.answered, house.counters.retries) == (3, 1, 2)
    assert len(house.provider.encoded) == 1


def test_numbers_go_on_from_the_attempts_on_record_and_the_allowance_starts_anew() -> None:
    house = House([busy()] * 3)
    step = new_step(attempts=3)
    with pytest.raises(TransientError):
        house.run(house.ask(step))
    assert [one.number for one in house.kept.attempts] == [4, 5, 6]
    assert (step.attempts, step.tries, step.cost) == (6, 3, 0)
    assert house.money == (0, 0, 3)


def test_the_wait_at_the_gate_is_kept_and_is_not_part_of_the_latency() -> None:
    house = House(rate=60)

    async def main() -> None:
        await asyncio.gather(house.ask(), house.ask(), house.ask())

    house.run(main())
    assert [one.waited for one in house.kept.attempts] == pytest.approx([0, 1, 2])
    assert [one.latency for one in house.kept.attempts] == pytest.approx([1, 1, 1])


def test_the_price_is_set_aside_while_a_call_waits_and_while_it_is_in_flight() -> None:
    house = House(rate=60)

    async def main() -> None:
        asking = [asyncio.create_task(house.ask()) for _ in range(2)]
        await house.clock.sleep(0.5)
        assert house.money == (0, 2 * WORST, 2)
        assert house.counters.in_flight == 1
        await house.clock.sleep(1)
        assert house.money == (PAID, WORST, 2)
        await asyncio.gather(*asking)

    house.run(main())
    assert house.money == (2 * PAID, 0, 2)


def test_a_wait_that_is_asked_of_one_call_holds_that_call_alone() -> None:
    house = House([limited(30.0)])

    async def main() -> None:
        first = asyncio.create_task(house.ask())
        await house.clock.sleep(2)
        await asyncio.gather(first, house.ask(), house.ask())

    house.run(main())
    assert house.provider.at == pytest.approx([0, 2, 2, 31], abs=1e-5)
    assert house.told == []


def test_of_workers_that_look_in_one_turn_of_the_loop_only_the_surplus_leaves() -> None:
    """The calls of three have come back from a wait at one moment; were all to leave, trials would stay unasked."""
    house = House()

    async def main() -> None:
        wanted = house.lane.settings.workers
        house.lane.workers = {asyncio.create_task(asyncio.sleep(0)) for _ in range(wanted + 3)}
        assert sum(house.lane.retire_surplus(worker) for worker in list(house.lane.workers)) == 3
        assert len(house.lane.workers) == wanted
        assert not house.lane.wants_worker

    house.run(main())


def test_limits_that_the_provider_tells_are_kept_and_told_once_they_make_calls_wait() -> None:
    house = House()

    async def main() -> None:
        learn = house.provider.on_limits
        assert learn is not None
        await house.ask()
        learn(Limits(requests_per_minute=2), 0.0)
        assert house.told == []
        await asyncio.gather(*(house.ask() for _ in range(3)))
        for _ in range(2):
            learn(Limits(requests_per_minute=2), 0.0)

    house.run(main())
    assert house.told == ["openai judge-1: calls wait for the limits that the provider tells: 2 requests a minute"]
    assert house.provider.at[2] - house.provider.at[0] >= 60, "two calls a minute"


def test_a_day_that_is_used_up_is_told_once() -> None:
    house = House(limits=Limits(requests_per_day=1))

    async def main() -> None:
        await house.ask()
        house.lane.workers.add(asyncio.ensure_future(house.ask()))
        for _ in range(3):
            await house.clock.sleep(1)
            house.lane.report_holds(1.0)
        assert house.gate.held_for > 86_000
        house.lane.cancel_idle_workers()
        await asyncio.gather(*house.lane.workers, return_exceptions=True)

    house.run(main())
    (told,) = house.told
    assert "no call is sent for 86" in told
    assert "the limit of requests a day is used up" in told


def test_a_wait_that_the_headers_ask_for_holds_the_route() -> None:
    house = House()

    async def main() -> None:
        assert house.provider.on_limits is not None
        house.provider.on_limits(Limits(), 7.0)
        await house.ask()

    house.run(main())
    assert house.provider.at == pytest.approx([7.0])


def test_a_failure_that_is_not_for_the_rate_holds_its_own_call_alone() -> None:
    house = House([busy(retry_after=30.0)], attempts=1)

    async def main() -> None:
        with pytest.raises(TransientError):
            await house.ask()
        await house.ask()

    house.run(main())
    assert house.provider.at == pytest.approx([0, 1])


def test_a_failure_that_may_be_billed_has_no_cost_and_counts_at_its_reservation() -> None:
    house = House([busy(may_be_billed=True)])
    step = new_step()
    house.run(house.ask(step))
    assert [one.cost for one in house.kept.attempts] == [None, PAID]
    assert [one.reserved for one in house.kept.attempts] == [WORST, WORST]
    assert house.money == (WORST + PAID, 0, 2)
    assert step.cost == WORST + PAID


@pytest.mark.parametrize("told", [1, 17])
def test_a_cost_that_the_provider_reports_wins_over_the_price_table(told: int) -> None:
    house = House([Reply("1", input_tokens=20, output_tokens=5, cost=told)])
    house.run(house.ask())
    assert house.kept.attempts[0].cost == told
    assert house.money == (told, 0, 1)


@pytest.mark.parametrize(
    ("reply", "counted", "why"),
    [
        (Reply("1", input_tokens=20, output_tokens=5, cost=0), (20, 5), "a cost of $0.00"),
        (Reply("1", input_tokens=20, output_tokens=5, cached_tokens=21), (20, 5), "21 cached tokens of 20"),
        (Reply("x" * 6_400, input_tokens=20, output_tokens=1), (25, 1_600), "20 and 1 tokens for"),
    ],
)
def test_a_report_that_cannot_be_true_counts_at_the_price_and_is_told_once(
    reply: Reply, counted: tuple[int, int], why: str
) -> None:
    house = House([reply, reply])
    expected = PRICE.cost(*counted)
    house.run(house.ask())
    assert house.kept.attempts[0].cost == expected
    house.run(house.ask(new_step(2)))
    assert house.money == (2 * expected, 0, 2)
    (told,) = [one for one in house.told if "not believed" in one]
    assert why in told


def test_a_provider_that_charges_more_than_its_price_is_told_of_once_and_reserved_for_from_then_on() -> None:
    dear = Reply("1", input_tokens=20, output_tokens=5, cost=3 * WORST)
    house = House([dear, dear, WELL], budget=BudgetSettings(money=9 * WORST))

    async def main() -> None:
        await house.ask()
        await house.ask()
        await house.ask()
        with pytest.raises(BudgetReachedError):
            await house.ask()

    house.run(main())
    (told,) = house.told
    assert f"charged ${3 * WORST / 1e9:.6f} for a call that cannot cost more than ${WORST / 1e9:.6f}" in told
    assert [one.reserved for one in house.kept.attempts] == [WORST, 3 * WORST, 3 * WORST]
    assert house.money == (6 * WORST + PAID, 0, 3)


def test_a_reply_whose_tokens_nobody_counted_counts_at_its_reservation() -> None:
    house = House([Reply("1", input_tokens=20, output_tokens=5, estimated=True)])
    house.run(house.ask())
    assert house.kept.attempts[0].cost is None
    assert house.money == (WORST, 0, 1)
    assert house.account.used.tokens == WORST_TOKENS


def test_a_reported_cost_is_known_though_nobody_counted_the_tokens() -> None:
    house = House([Reply("1", input_tokens=20, output_tokens=5, cost=17, estimated=True)])
    house.run(house.ask())
    assert house.money == (17, 0, 1)
    assert house.account.used.tokens == WORST_TOKENS


@pytest.mark.parametrize(("error", "tokens"), [(busy(), 0), (busy(may_be_billed=True), WORST_TOKENS)])
def test_a_failed_call_takes_the_tokens_that_it_may_have_used(error: CallError, tokens: int) -> None:
    house = House([error], attempts=1)
    with pytest.raises(CallError):
        house.run(house.ask())
    assert (house.account.used.tokens, house.account.reserved.tokens) == (tokens, 0)


@pytest.mark.parametrize("fault", [Fault.AUTHENTICATION, Fault.QUOTA])
def test_a_refused_key_or_an_empty_account_closes_the_lane_and_nothing_more_is_sent(fault: Fault) -> None:
    house = House([CallError("the key was refused", fault, status=401)])

    async def main() -> None:
        for _ in range(3):
            with pytest.raises(LaneClosedError, match="the key was refused"):
                await house.ask()

    house.run(main())
    assert house.lane.closed == "the key was refused"
    assert [one.fault for one in house.kept.attempts] == [fault]
    assert len(house.provider.sent) == 1
    assert house.money == (0, 0, 1)


def test_calls_that_wait_when_the_lane_closes_are_not_sent_and_cost_nothing() -> None:
    house = House([CallError("empty", Fault.QUOTA)], rate=20)

    async def main() -> list[Reply | BaseException]:
        return await asyncio.gather(*(house.ask() for _ in range(4)), return_exceptions=True)

    assert {type(one) for one in house.run(main())} == {LaneClosedError}
    assert len(house.provider.sent) == len(house.kept.attempts) == 1
    assert house.money == (0, 0, 1)


@pytest.mark.parametrize("fault", [Fault.BAD_REQUEST, Fault.FILTERED, Fault.TOO_LONG])
def test_a_refusal_of_one_request_fails_at_its_first_attempt_and_leaves_the_lane_open(fault: Fault) -> None:
    house = House([CallError("no", fault, status=400)])

    async def main() -> None:
        with pytest.raises(CallError) as raised:
            await house.ask()
        assert raised.value.fault is fault
        assert await house.ask() is WELL

    house.run(main())
    assert [one.fault for one in house.kept.attempts] == [fault, Fault.NONE]
    assert house.lane.closed is None


def unexplained(status: int = 403) -> CallError:
    fault = Fault.QUOTA if status == 402 else Fault.AUTHENTICATION
    return CallError(f"HTTP {status}: no", fault, status=status, by_status=status)


async def fail(house: House, failed: list[int], trial: int, prefix: int = 1) -> None:
    """Ask, and put on record as failed what is to be."""
    with pytest.raises(CallError) as raised:
        await house.ask(Step(trial, KEY, 1, 0, prefix))
    house.lane.fail(raised.value, lambda: failed.append(trial))


def test_a_refusal_without_a_reason_after_an_answer_is_on_record_once_a_later_call_is_answered() -> None:
    house = House([WELL, unexplained(), WELL])
    failed: list[int] = []

    async def main() -> None:
        await house.ask()
        await fail(house, failed, 2)
        assert failed == []
        await house.ask()

    house.run(main())
    assert failed == [2]
    assert house.lane.closed is None
    assert house.provider.checks == 1


def test_a_list_of_models_that_is_refused_too_closes_the_lane_and_leaves_what_was_refused_to_the_next_run() -> None:
    house = House([WELL, *[unexplained(401)] * 40])
    house.provider.listed = KeyRefusedError("the key was refused (401)")
    failed: list[int] = []

    async def main() -> None:
        await house.ask()
        asking = [fail(house, failed, trial, trial) for trial in range(2, 6)]
        found = await asyncio.gather(*asking, return_exceptions=True)
        assert [type(one) for one in found] == [LaneClosedError, *[type(None)] * 3]

    house.run(main())
    assert house.lane.closed == "HTTP 401: no (4 refusals running)"
    assert failed == []
    assert house.provider.checks == 2, "asked by one of the four, and once more to be sure"


def test_the_list_of_models_is_waited_for_by_the_refused_call_alone() -> None:
    house = House([WELL, unexplained(), *[WELL] * 30])
    house.provider.check_seconds = 30.0

    async def main() -> None:
        await house.ask()
        refused = asyncio.create_task(fail(house, [], 2))
        await house.clock.sleep(1.5)
        for _ in range(20):
            await house.ask()
        assert not refused.done()
        await refused

    house.run(main())
    assert house.lane.closed is None


def test_several_refusals_running_close_the_lane_though_its_models_are_listed() -> None:
    house = House([WELL, *[unexplained(402)] * 40])
    failed: list[int] = []

    async def main() -> None:
        await house.ask()
        for trial in range(2, REFUSALS_IN_A_ROW + 1):
            await fail(house, failed, trial)
        with pytest.raises(LaneClosedError, match=r"HTTP 402: no \(8 refusals running\)"):
            await house.ask(Step(99, KEY, 1, 0, 1))

    house.run(main())
    assert failed == []
    assert len(house.provider.sent) == 1 + REFUSALS_IN_A_ROW
    assert house.provider.checks == 1


def test_at_the_end_a_single_undecided_refusal_fails_and_several_close_the_lane() -> None:
    for prefixes, closed, recorded in (([1, 1], None, [1, 2]), ([1, 2], "HTTP 403: no (2 refusals running)", [])):
        house = House([WELL, unexplained(), unexplained()])
        failed: list[int] = []

        async def main(house: House, failed: list[int], prefixes: list[int]) -> None:
            await house.ask()
            for trial, prefix in enumerate(prefixes, 1):
                await fail(house, failed, trial, prefix)
            house.lane.decide_refusals()

        house.run(main(house, failed, prefixes))
        assert (house.lane.closed, failed) == (closed, recorded)


def test_twenty_bad_requests_in_a_row_close_the_lane() -> None:
    house = House([bad() for _ in range(20)])

    async def main() -> None:
        for _ in range(19):
            with pytest.raises(CallError):
                await house.ask()
        assert house.lane.closed is None
        with pytest.raises(LaneClosedError, match="no such setting"):
            await house.ask()
        with pytest.raises(LaneClosedError):
            await house.ask()

    house.run(main())
    assert len(house.provider.sent) == 20


def test_prompts_that_are_too_long_close_no_lane_however_many_there_are() -> None:
    house = House([CallError("too long", Fault.TOO_LONG, status=400) for _ in range(60)])

    async def main() -> None:
        for _ in range(60):
            with pytest.raises(CallError, match="too long"):
                await house.ask()
        assert house.lane.closed is None

    house.run(main())


def test_an_answer_between_bad_requests_starts_their_count_anew() -> None:
    house = House([*(bad() for _ in range(19)), WELL, *(bad() for _ in range(19)), WELL])

    async def main() -> None:
        await asyncio.gather(*(house.ask() for _ in range(19)), return_exceptions=True)
        await house.ask()
        await asyncio.gather(*(house.ask() for _ in range(19)), return_exceptions=True)
        assert house.lane.closed is None
        await house.ask()

    house.run(main())


def test_a_call_beyond_the_budget_is_not_sent() -> None:
    house = House(budget=BudgetSettings(money=WORST + PAID))

    async def main() -> None:
        await house.ask()
        await house.ask()
        with pytest.raises(BudgetReachedError):
            await house.ask()

    house.run(main())
    assert len(house.provider.sent) == len(house.kept.attempts) == 2
    assert house.money == (2 * PAID, 0, 2)


def test_a_call_that_only_reservations_leave_no_money_for_is_sent_once_they_are_settled() -> None:
    house = House(budget=BudgetSettings(money=WORST + PAID))

    async def main() -> None:
        await asyncio.gather(house.ask(), house.ask())

    house.run(main())
    assert house.provider.at == pytest.approx([0, 1])
    assert house.money == (2 * PAID, 0, 2)


def test_a_call_waits_with_nothing_set_aside_until_the_recorder_has_room_and_is_refused_after_a_stop() -> None:
    house = House()
    house.kept.freed.clear()

    async def main() -> None:
        first = asyncio.create_task(house.ask())
        await house.clock.sleep(5)
        assert house.money == (0, 0, 0)
        house.kept.freed.set()
        await first
        assert house.provider.at == [5.0]
        house.kept.freed.clear()
        second = asyncio.create_task(house.ask())
        await house.clock.sleep(5)
        house.stopping.set()
        house.kept.freed.set()
        with pytest.raises(StoppedError):
            await second

    house.run(main())
    assert len(house.provider.sent) == 1
    assert house.money == (PAID, 0, 1)


def test_a_stop_keeps_a_waiting_call_from_being_sent_and_gives_its_reservation_back() -> None:
    house = House(rate=60)

    async def main() -> list[Reply | BaseException]:
        asking = [asyncio.create_task(house.ask()) for _ in range(3)]
        await house.clock.sleep(0.5)
        house.stopping.set()
        return await asyncio.gather(*asking, return_exceptions=True)

    first, *others = house.run(main())
    assert first is WELL
    assert {type(one) for one in others} == {StoppedError}
    assert len(house.provider.sent) == len(house.kept.attempts) == 1
    assert house.money == (PAID, 0, 1)


def test_after_a_stop_nothing_is_asked_and_nothing_tried_again() -> None:
    house = House([busy()])

    async def main() -> None:
        asking = asyncio.create_task(house.ask())
        await house.clock.sleep(0.5)
        house.stopping.set()
        with pytest.raises(StoppedError):
            await asking
        with pytest.raises(StoppedError):
            await house.ask()

    house.run(main())
    assert [one.fault for one in house.kept.attempts] == [Fault.TRANSIENT]
    assert house.money == (0, 0, 1)


def test_a_call_cancelled_in_flight_is_on_record_as_unanswered_at_its_reserved_price() -> None:
    house = House()
    step = new_step()

    async def main() -> None:
        asking = asyncio.create_task(house.ask(step))
        await house.clock.sleep(0.25)
        assert house.counters.sending == {asking}
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    house.run(main())
    (kept,) = house.kept.attempts
    assert (kept.fault, kept.cost, kept.reserved) == (Fault.UNANSWERED, None, WORST)
    assert (kept.http_status, kept.message, kept.reply) == (None, None, None)
    assert kept.latency == pytest.approx(0.25)
    assert house.money == (WORST, 0, 1)
    assert step.cost == WORST
    assert house.counters.in_flight == 0


def test_a_call_cancelled_while_it_waits_for_its_turn_is_not_on_record_and_costs_nothing() -> None:
    house = House(rate=60)
    step = new_step()

    async def main() -> None:
        first, second = asyncio.create_task(house.ask()), asyncio.create_task(house.ask(step))
        await house.clock.sleep(0.5)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        await first

    house.run(main())
    assert len(house.kept.attempts) == 1
    assert house.money == (PAID, 0, 1)
    assert (step.attempts, step.cost) == (0, 0)


def test_the_store_has_every_attempt_as_it_was(tmp_path: Path) -> None:
    house = House([limited(2.0), Reply("2", "length", "thoughts", 20, 5, 3, 4, None, "judge-1-b", "fp", "{}")])

    async def main() -> None:
        with open_store(tmp_path / "c.duckdb", clock=house.clock) as store:
            errors: list[StoreError] = []
            recorder = Recorder(store, 3, 1, group_rows=500, group_seconds=0.001, on_error=errors.append)
            await house.make(recorder).ask(new_step(number=2, attempts=1), REQUEST, PRICE, house.budget_view)
            await recorder.close()
            assert errors == []
            found = store.connection.execute(
                "select campaign, trial, step, number, lane, latency_ms, fault, http_status, message, finish, "
                "input_tokens, cached_tokens, output_tokens, reasoning_tokens, reserved, cost, served_model, "
                "fingerprint, text, reasoning, raw from attempt order by number"
            ).fetchall()
        nothing, said = (None,) * 5, ("judge-1-b", "fp", "2", "thoughts", "{}")
        assert found == [
            (3, 7, 2, 2, 4, 1000, 2, 429, "slow down", *nothing, WORST, 0, *nothing),
            (3, 7, 2, 3, 4, 1000, 0, 200, None, "length", 20, 3, 5, 4, WORST, PAID, *said),
        ]

    house.run(main())
