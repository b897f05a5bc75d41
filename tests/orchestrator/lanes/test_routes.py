"""Several keys and fallback endpoints of one lane: who is asked when, and what is told. On the virtual clock."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise, repeat
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.orchestrator.lanes.test_lane import BODY, PAID, PRICE, REQUEST, WELL, WORST, Kept, bad, busy, limited
from venire.arena.budgets import UNITS, BudgetSettings
from venire.arena.campaigns import LaneSettings, Limits, RouteSettings, TokenPrice
from venire.arena.clock import VirtualClock
from venire.arena.errors import CallError, Fault, StoreError, TransientError
from venire.arena.records import Reply, Request
from venire.orchestrator.costs.budget import BudgetAccount, BudgetView
from venire.orchestrator.lanes.calls import CallCounters, Step, digest
from venire.orchestrator.lanes.circuit import FAILURES
from venire.orchestrator.lanes.gate import Gate
from venire.orchestrator.lanes.lane import Lane, LaneClosedError, StoppedError
from venire.orchestrator.lanes.lane_events import LaneEvents
from venire.orchestrator.lanes.ledger import CallLedger
from venire.orchestrator.lanes.refusals import refusal_advice
from venire.orchestrator.lanes.routes import Route
from venire.orchestrator.recording.events import Event, Events

T = TypeVar("T")
Said = Reply | Exception


class Endpoint:
    """A provider that takes a second for each call and then says what comes next, or what it was told to say."""

    def __init__(self, clock: VirtualClock, name: str, script: Iterable[Said]) -> None:
        self.clock, self.name = clock, name
        self.script: Iterator[Said] = chain(script, repeat(WELL))
        self.always: Said | None = None
        """Said until further notice, whatever the script."""
        self.on_limits: Callable[[Limits, float], None] | None = None
        self.at: list[float] = []
        self.bodies: list[bytes] = []
        self.keys: list[str] = []
        self.structured = False

    def limits_key(self, model: str) -> tuple[str, ...]:
        return (self.name, model)

    def encode(self, model: str, request: Request) -> bytes:
        plain = BODY if self.name == "openai" else f"{self.name} {model}".encode().ljust(len(BODY), b".")
        return plain + b" by schema" if request.schema and self.structured else plain

    def is_structured(self, model: str) -> bool:
        return self.structured

    async def send(self, body: bytes, idempotency_key: str) -> Reply:
        self.at.append(self.clock.monotonic())
        self.bodies.append(body)
        self.keys.append(idempotency_key)
        said = self.always if self.always is not None else next(self.script)
        await self.clock.sleep(1)
        if isinstance(said, Exception):
            raise said
        return said

    async def check(self) -> str | None:
        return None

    async def close(self) -> None:
        return None


@dataclass
class Door:
    """One route of a house, to be made."""

    script: list[Said] = field(default_factory=list)
    rank: int = 0
    rate: int | None = None
    provider: str = "openai"
    base_url: str | None = None
    model: str = "judge-1"
    price: TokenPrice | None = None
    structured: bool | None = None


def key(*script: Said, rate: int | None = None) -> Door:
    return Door(list(script), rate=rate)


def fallback(*script: Said, rank: int = 1, **more: Any) -> Door:
    return Door(list(script), rank=rank, base_url="http://127.0.0.1:1/v1", **more)


class House:
    """A lane of several routes with everything around it."""

    def __init__(
        self,
        *doors: Door,
        attempts: int = 3,
        concurrency: int = 16,
        patience: float = 900.0,
        budget: BudgetSettings | None = None,
    ) -> None:
        self.clock = VirtualClock()
        self.account = BudgetAccount("the budget", budget or BudgetSettings())
        self.budget_view = BudgetView([self.account])
        self.kept, self.counters, self.stopping = Kept(), CallCounters(), asyncio.Event()
        self.told: list[str] = []
        self.events: list[Event] = []
        self.others_work = False
        routes = tuple(
            RouteSettings(one.provider, one.base_url, f"KEY_{number}", one.model, one.rank, one.price, one.structured)
            for number, one in enumerate(doors)
        )
        lane = LaneSettings(routes, concurrency=concurrency, max_attempts=attempts, patience=patience)
        self.ends = [Endpoint(self.clock, one.provider, one.script) for one in doors]
        for end, one in zip(self.ends, doors, strict=True):
            end.structured = one.structured is True
        self.gates = [Gate(Limits(one.rate), self.clock, concurrency=concurrency) for one in doors]
        self.routes = [
            Route(route, number, end, gate, self.clock)
            for number, (route, end, gate) in enumerate(zip(routes, self.ends, self.gates, strict=True))
        ]
        lane_events = LaneEvents("judge-1", Events(self.clock, [self.events.append]), self.told.append)
        self.lane = Lane(
            lane,
            self.routes,
            ledger=CallLedger(self.kept, clock=self.clock, counters=self.counters, lane_events=lane_events),
            clock=self.clock,
            stopping=self.stopping,
            lane_events=lane_events,
            others_at_work=lambda: self.others_work,
        )

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run to the end; nothing may be left behind of any call."""

        async def whole() -> T:
            found = await main
            for _ in range(3):
                await asyncio.sleep(0)
            assert asyncio.all_tasks() == {asyncio.current_task()}
            self.balance()
            return found

        with asyncio.Runner(loop_factory=self.clock.new_event_loop) as runner:
            return runner.run(whole())

    def balance(self) -> None:
        assert [gate.in_flight for gate in self.gates] == [0] * len(self.gates)
        assert self.counters.in_flight == 0
        assert (self.account.reserved.money, self.account.reserved.tokens) == (0, 0)
        assert self.account.taken(UNITS["calls"]) == len(self.kept.attempts) == sum(self.calls)
        counted = [one.reserved if one.cost is None else one.cost for one in self.kept.attempts]
        assert self.account.used.money == sum(counted)
        assert Counter(one.lane for one in self.kept.attempts) == Counter(dict(enumerate(self.calls)))

    @property
    def calls(self) -> list[int]:
        return [len(end.at) for end in self.ends]

    def names(self, kind: str) -> list[str]:
        return [str(event.fields["route"]) for event in self.events if event.name == kind]

    async def ask(self, prefix: int = 0, trial: int = 7) -> Reply:
        return await self.lane.ask(Step(trial, trial.to_bytes(16), 1, 0, prefix), REQUEST, PRICE, self.budget_view)

    def work(self, trials: int, workers: int = 4) -> list[Reply | Exception]:
        """Ask so many trials, each with a prefix of its own, with a few workers, as a campaign does."""
        return self.run(self.worked(trials, workers))

    async def worked(self, trials: int, workers: int = 4) -> list[Reply | Exception]:
        left, ended = iter(range(trials)), []

        async def worker() -> None:
            for trial in left:
                if self.lane.closed is not None:
                    return
                try:
                    ended.append(await self.ask(trial, trial))
                except (CallError, LaneClosedError, StoppedError) as error:
                    ended.append(error)

        async with asyncio.TaskGroup() as group:
            self.lane.workers = {group.create_task(worker()) for _ in range(workers)}
        return ended


def refused(fault: Fault = Fault.AUTHENTICATION) -> CallError:
    return CallError("Incorrect API key provided", fault, status=401 if fault is Fault.AUTHENTICATION else 402)


def down(house: House, number: int) -> None:
    house.ends[number].always = busy()


# Several keys


def test_calls_of_one_prefix_take_one_key_and_those_of_many_are_shared_out_evenly() -> None:
    house = House(key(), key(), key(), concurrency=1000)

    async def main() -> None:
        for _ in range(5):
            await asyncio.gather(*(house.ask(3) for _ in range(4)))
        assert sorted(house.calls) == [0, 0, 20]
        before = list(house.calls)
        await asyncio.gather(*(house.ask(prefix) for prefix in range(900)))
        each = [now - then for now, then in zip(house.calls, before, strict=True)]
        assert min(each) > 250, each

    house.run(main())


def test_another_key_is_taken_only_where_the_first_is_busy_and_that_one_is_not() -> None:
    house = House(key(), key(), concurrency=2)

    async def main() -> None:
        await house.ask(0)
        first = house.calls.index(1)
        await asyncio.gather(*(house.ask(0) for _ in range(2)))
        assert house.calls[first] == 3
        await asyncio.gather(*(house.ask(0) for _ in range(3)))
        assert (house.calls[first], house.calls[1 - first]) == (5, 1)
        await asyncio.gather(*(house.ask(0) for _ in range(5)))
        assert (house.calls[first], house.calls[1 - first]) == (8, 3), "the fifth waits where its prefix is known"

    house.run(main())


def test_workers_with_calls_of_one_prefix_use_the_limits_of_all_keys() -> None:
    house = House(key(rate=60), key(rate=60))

    async def worker() -> None:
        for _ in range(20):
            await house.ask(0)

    async def main() -> None:
        await asyncio.gather(*(worker() for _ in range(6)))

    house.run(main())
    assert house.clock.monotonic() == pytest.approx(60, abs=5), "120 calls at two a second"


@pytest.mark.parametrize("fault", [Fault.AUTHENTICATION, Fault.QUOTA])
def test_a_refused_key_closes_its_route_alone_and_its_call_goes_on_at_once_without_using_up_an_attempt(
    fault: Fault,
) -> None:
    house = House(key(), key(), attempts=1)

    async def main() -> None:
        await house.ask(0)
        first = house.calls.index(1)
        house.ends[first].always = refused(fault)
        assert await house.ask(0) is WELL
        assert house.clock.monotonic() == pytest.approx(3), "a second each: nothing was waited for"
        for _ in range(3):
            await house.ask(0)
        assert (house.calls[first], house.calls[1 - first]) == (2, 4)
        (told,) = house.told
        assert f"KEY_{first}" in told
        assert "Incorrect API key" in told
        assert "calls go by the other routes" in told
        assert house.lane.closed is None

    house.run(main())
    assert [one.fault for one in house.kept.attempts] == [Fault.NONE, fault, *[Fault.NONE] * 4]
    assert [event.name for event in house.events if event.name == "key.quarantined"] == ["key.quarantined"]


def filtering() -> CallError:
    return CallError("blocked", Fault.AUTHENTICATION, status=403, by_status=403)


def test_a_call_that_one_route_refuses_without_a_reason_goes_by_another_at_once_and_both_stay_open() -> None:
    house = House(key(), key(), attempts=1)

    async def main() -> None:
        await house.ask(0)
        first = house.calls.index(1)
        for _ in range(3):
            house.ends[first].script = chain([filtering()], repeat(WELL))
            assert await house.ask(0) is WELL
            await house.ask(0)
        assert (house.calls[first], house.calls[1 - first]) == (7, 3)

    house.run(main())
    assert house.told == []
    assert house.lane.closed is None


def test_a_call_that_every_route_refuses_without_a_reason_was_asked_once_by_each_and_fails() -> None:
    house = House(key(), key(), fallback())

    async def main() -> None:
        for prefix in range(6):
            await house.ask(prefix)
        before = list(house.calls)
        for one in house.ends:
            one.script = chain([filtering()], repeat(WELL))
        with pytest.raises(CallError, match="blocked"):
            await house.ask(0)
        assert [now - then for now, then in zip(house.calls, before, strict=True)] == [1, 1, 1]

    house.run(main())
    assert house.lane.closed is None


@pytest.mark.parametrize("held", [False, True])
def test_a_call_that_is_refused_does_not_wait_for_a_route_that_is_down_or_held_for_long(held: bool) -> None:
    house = House(key(), fallback())

    async def main() -> None:
        await house.ask(0)
        other = house.lane.routes.all[1]
        if held:
            other.gate.pause(3600.0)
        else:
            for _ in range(FAILURES):
                other.circuit.failed(probe=0)
        house.ends[0].script = chain([filtering()], repeat(WELL))
        with pytest.raises(CallError, match="blocked"):
            await house.ask(0)
        assert house.clock.monotonic() == pytest.approx(2)
        assert await house.ask(0) is WELL

    house.run(main())
    assert house.calls == [3, 0]


def test_calls_in_flight_when_a_key_is_refused_all_go_on_by_the_other_and_it_is_told_once() -> None:
    house = House(key(), key(), attempts=1)

    async def main() -> None:
        await house.ask(0)
        first = house.calls.index(1)
        house.ends[first].always = refused()
        assert await asyncio.gather(*(house.ask(0) for _ in range(10))) == [WELL] * 10
        assert (house.calls[first], house.calls[1 - first]) == (11, 10)

    house.run(main())
    assert len(house.told) == 1


def test_calls_that_wait_for_a_key_that_is_refused_go_by_the_other() -> None:
    house = House(key(), key(), concurrency=1)

    async def main() -> None:
        await house.ask(0)
        first = house.calls.index(1)
        house.ends[first].script = iter([refused()])
        assert await asyncio.gather(*(house.ask(0) for _ in range(6))) == [WELL] * 6
        assert house.calls[first] == 2

    house.run(main())


def test_calls_that_would_wait_long_for_a_key_that_is_refused_go_by_the_other_at_once() -> None:
    house = House(key(rate=1), key(), concurrency=4)

    async def main() -> None:
        house.ends[0].always = refused()
        await asyncio.gather(*(house.ask(prefix) for prefix in range(20)))
        assert house.calls == [1, 20]
        assert house.clock.monotonic() < 10

    house.run(main())


def test_the_last_key_refused_closes_the_lane_and_nothing_more_is_sent() -> None:
    house = House(key(*[refused()] * 9), key(*[refused()] * 9))

    async def main() -> None:
        for _ in range(3):
            with pytest.raises(LaneClosedError, match="Incorrect API key"):
                await house.ask()

    house.run(main())
    assert house.calls == [1, 1]
    assert [event.name for event in house.events].count("lane.closed") == 1
    assert len(house.told) == 1, "of the last one the end of the run tells"
    assert house.lane.closed is not None
    for name in ("KEY_0", "KEY_1"):
        assert name in house.told[0] or f"the last of its routes, openai {name}" in house.lane.closed


def test_twenty_bad_requests_in_a_row_on_one_route_close_that_route_alone() -> None:
    house = House(key(), fallback(), attempts=1)
    house.ends[0].always = bad()

    async def main() -> None:
        for _ in range(20):
            with pytest.raises(CallError):
                await house.ask()
        assert house.lane.closed is None
        assert await house.ask() is WELL

    house.run(main())
    assert house.calls == [20, 1]
    assert "no such setting" in house.told[0]
    assert house.names("key.quarantined") == [], "nobody refused a key"


# Circuits


def test_a_route_that_fails_again_and_again_rests_and_is_used_again_when_a_probe_is_answered() -> None:
    house = House(key(), key(), attempts=10)

    async def main() -> None:
        await house.ask(0)
        first = house.calls.index(1)
        down(house, first)
        await asyncio.gather(*(house.ask(0) for _ in range(5)))
        assert house.names("circuit.opened") == [house.routes[first].name]
        asked = house.calls[first]
        await asyncio.gather(*(house.ask(0) for _ in range(5)))
        assert house.calls[first] <= asked + 2
        for _ in range(60):
            await house.ask(0)
        assert asked + 4 <= house.calls[first] <= asked + 9, "probes, though the other one works"
        house.ends[first].always = None
        for _ in range(200):
            await house.ask(0)
        asked = house.calls[first]
        await asyncio.gather(*(house.ask(0) for _ in range(5)))
        assert house.calls[first] == asked + 5, "its prefixes fall to it again"

    house.run(main())
    assert len(house.told) == 2
    assert "calls go by the other routes" in house.told[0]
    assert house.told[1].endswith("works again")
    assert len(set(house.names("circuit.closed"))) == 1


def test_a_lane_of_one_route_that_is_down_sends_one_probe_at_a_time_at_waits_that_double() -> None:
    house = House(key(), attempts=1000)
    down(house, 0)

    async def main() -> None:
        working = asyncio.create_task(house.worked(16, workers=16))
        await house.clock.sleep(400)
        house.ends[0].always = None
        await working

    house.run(main())
    at = [moment for moment in house.ends[0].at if moment < 400]
    opened = [moment for moment in at if moment > 0]
    apart = [later - sooner for sooner, later in pairwise(opened)]
    assert all(gap >= 1 for gap in apart), "each one was answered for before the next was sent"
    assert len(opened) <= 12
    assert max(apart) <= 61 + 1e-6
    assert [event.name for event in house.events].count("circuit.closed") == 1
    assert house.counters.answered == 16


@pytest.mark.parametrize("answer", [bad(), limited(None), limited(2.0)])
def test_a_refusal_to_a_probe_is_an_answer_and_closes_the_circuit(answer: CallError) -> None:
    house = House(key(*[busy()] * 5, answer), attempts=6)

    async def main() -> None:
        await asyncio.gather(*(house.ask(trial=trial) for trial in range(5)), return_exceptions=True)

    house.run(main())
    assert house.names("circuit.closed") == [house.routes[0].name]
    assert not house.routes[0].circuit.is_open


def test_a_probe_that_is_cancelled_lets_another_call_probe_at_once() -> None:
    house = House(key(*[busy()] * 5), attempts=20)

    async def main() -> None:
        asking = [asyncio.create_task(house.ask(trial=trial)) for trial in range(5)]
        while not house.names("circuit.probed"):
            await house.clock.sleep(0.05)
        (probing,) = house.counters.sending
        assert probing is not None
        probing.cancel()
        began = house.clock.monotonic()
        done = await asyncio.wait_for(asyncio.gather(*asking, return_exceptions=True), 100)
        assert Counter(type(one) for one in done) == {asyncio.CancelledError: 1, Reply: 4}
        assert house.ends[0].at[6] == began, "nobody waits for a probe that is no more"

    house.run(main())


def test_a_probe_that_could_not_be_announced_lets_another_call_probe_at_once() -> None:
    house = House(key(*[busy()] * 5), attempts=20)
    announce = house.kept.announce

    async def refuse(*what: Any) -> int:
        house.kept.announce = announce  # type: ignore[method-assign]
        raise StoreError("the disk is full")

    async def main() -> None:
        asking = [asyncio.create_task(house.ask(trial=trial)) for trial in range(5)]
        while not house.routes[0].circuit.is_open:
            await house.clock.sleep(0.05)
        house.kept.announce = refuse  # type: ignore[method-assign]
        done = await asyncio.wait_for(asyncio.gather(*asking, return_exceptions=True), 100)
        assert Counter(type(one) for one in done) == {StoppedError: 1, Reply: 4}

    house.run(main())


# Fallbacks


def test_a_fallback_is_asked_only_while_no_route_before_it_can_be_and_is_left_when_that_works_again() -> None:
    house = House(key(), fallback(), attempts=10)

    async def main() -> None:
        await asyncio.gather(*(house.ask(prefix) for prefix in range(40)))
        assert house.calls[1] == 0, "busy is no reason"
        down(house, 0)
        await asyncio.gather(*(house.ask(prefix) for prefix in range(5)))
        for _ in range(100):
            await house.ask()
        asked = house.calls[0]
        assert house.calls[1] == 105
        assert house.names("circuit.opened") == [house.routes[0].name] * (asked - 44)
        house.ends[0].always = None
        for _ in range(100):
            await house.ask()
        assert house.names("circuit.closed") == [house.routes[0].name]
        asked = house.calls[1]
        for _ in range(20):
            await house.ask()
        assert house.calls[1] == asked

    house.run(main())
    assert len(house.told) == 2


def test_a_call_probes_once_at_most_while_another_route_works() -> None:
    house = House(key(), fallback(rank=1), fallback(rank=2), attempts=20)
    down(house, 0)
    down(house, 1)

    async def main() -> None:
        await asyncio.gather(*(house.ask() for _ in range(5)))
        for _ in range(10):
            await house.clock.sleep(70)  # probes of both are due
            step = Step(7, bytes(16), 1, 0)
            await house.lane.ask(step, REQUEST, PRICE, house.budget_view)
            assert step.tries == 2

    house.run(main())


@pytest.mark.parametrize("first", [True, False])
def test_each_endpoint_is_asked_for_a_schema_in_its_own_way_and_every_attempt_tells_which(first: bool) -> None:
    """Also where both are one server with two keys: a body for one is not what the other was to be sent."""
    house = House(Door(structured=first), Door(structured=not first, rank=1), attempts=20)
    asked = replace(REQUEST, schema={"type": "object"})
    down(house, 0)

    async def main() -> None:
        for prefix in range(9):
            step = Step(prefix, prefix.to_bytes(16), 1, 0, prefix)
            await house.lane.ask(step, asked, PRICE, house.budget_view)

    house.run(main())
    assert all(house.calls)
    for lane, end in enumerate(house.ends):
        assert {body.endswith(b" by schema") for body in end.bodies} == {end.structured}
        assert {one.structured for one in house.kept.attempts if one.lane == lane} == {end.structured}


@pytest.mark.parametrize("structured", [True, False])
def test_a_lane_that_refuses_every_schema_says_which_key_of_the_file_turns_it_off(structured: bool) -> None:
    house = House(Door(structured=structured), attempts=1)
    house.ends[0].always = bad()

    async def main() -> None:
        asked = replace(REQUEST, schema={"type": "object"})
        while house.lane.closed is None:
            with suppress(CallError, LaneClosedError):
                await house.lane.ask(Step(7, bytes(16), 1, 0, 0), asked, PRICE, house.budget_view)

    house.run(main())
    assert ("structured_output = false" in str(house.lane.closed)) == structured


def test_without_a_schema_there_is_nothing_to_tell() -> None:
    house = House(Door(structured=True))
    house.work(1)
    assert [one.structured for one in house.kept.attempts] == [None]


def test_fallbacks_are_asked_in_their_order() -> None:
    house = House(key(), fallback(rank=1), fallback(rank=2), attempts=20)
    down(house, 0)
    down(house, 1)

    async def main() -> None:
        await asyncio.gather(*(house.ask() for _ in range(20)))
        assert house.calls[2] == 20
        house.ends[1].always = None
        for _ in range(100):
            await house.ask()
        assert house.names("circuit.closed") == [house.routes[1].name]
        asked = house.calls[2]
        for _ in range(20):
            await house.ask()
        assert house.calls[2] == asked

    house.run(main())


def test_a_fallback_that_is_down_is_not_probed_while_the_routes_before_it_work() -> None:
    house = House(key(), fallback(), attempts=20)
    down(house, 0)
    down(house, 1)

    async def main() -> None:
        asking = [asyncio.create_task(house.ask()) for _ in range(10)]
        while len(set(house.names("circuit.opened"))) < 2:
            await house.clock.sleep(1)
        house.ends[0].always = None
        await asyncio.gather(*asking)
        asked = house.calls[1]
        for _ in range(100):
            await house.ask()
        assert house.calls[1] == asked

    house.run(main())


def test_calls_that_wait_at_a_fallback_go_back_as_soon_as_the_first_works_again() -> None:
    house = House(key(), fallback(rate=1), attempts=20)
    down(house, 0)

    async def main() -> None:
        await asyncio.gather(*(house.ask() for _ in range(5)), return_exceptions=True)
        house.ends[0].always = None
        await asyncio.gather(*(house.ask() for _ in range(20)))
        assert house.clock.monotonic() < 400, "twenty minutes at the fallback's one a minute"
        assert house.calls[1] < 8

    house.run(main())


def test_a_body_for_another_provider_or_model_or_endpoint_is_written_anew_and_kept_under_its_own_digest() -> None:
    house = House(key(*[refused()] * 3), key(*[refused()] * 3), fallback(provider="gemini", model="judge-1-x"))

    async def main() -> None:
        await house.ask()

    house.run(main())
    assert house.calls == [1, 1, 1]
    assert [end.bodies[0] for end in house.ends] == [BODY, BODY, b"gemini judge-1-x".ljust(len(BODY), b".")]
    assert {one.lane: one.request_digest for one in house.kept.attempts} == {
        number: digest(end.bodies[0]) for number, end in enumerate(house.ends)
    }
    assert len({end.keys[0] for end in house.ends}) == 1, "one step, one idempotency key"


def test_endpoints_of_one_protocol_have_bodies_of_their_own() -> None:
    house = House(key(refused()), fallback())
    house.ends[1].encode = lambda model, request: b"random_seed in place of seed".ljust(len(BODY))  # type: ignore[method-assign]
    house.run(house.ask())
    assert house.ends[1].bodies == [b"random_seed in place of seed".ljust(len(BODY))]


def test_calls_by_a_fallback_cost_its_price_and_the_dearest_route_is_set_aside_for_all() -> None:
    dear = TokenPrice(3 * PRICE.input, 3 * PRICE.output)
    house = House(key(WELL, refused()), fallback(price=dear))

    async def main() -> None:
        await house.ask()
        assert house.account.used.money == PAID
        await house.ask()

    house.run(main())
    assert [one.reserved for one in house.kept.attempts] == [3 * WORST] * 3
    assert [one.cost for one in house.kept.attempts] == [PAID, 0, 3 * PAID]
    assert house.told[1:] == []


# Holds


@pytest.mark.parametrize("other", [key(), fallback()])
def test_a_call_asked_to_wait_for_long_goes_by_the_other_route_and_the_others_stay(other: Door) -> None:
    for seconds, elsewhere in ((4.0, other.rank == 0), (120.0, True)):
        house = House(key(), other)

        async def main(house: House = house, seconds: float = seconds, elsewhere: bool = elsewhere) -> None:
            await house.ask(0)
            first = house.calls.index(1)
            house.ends[first].script = chain([limited(seconds)], repeat(WELL))
            await asyncio.gather(house.ask(0), *(house.ask(0) for _ in range(4)))
            assert house.calls[1 - first] == (1 if elsewhere else 0)
            assert house.clock.monotonic() < (60 if elsewhere else 10)
            assert house.calls[first] == (6 if elsewhere else 7)

        house.run(main())


@pytest.mark.parametrize("other", [key(), fallback()])
def test_calls_that_wait_when_nothing_passes_any_more_go_to_the_other_route(other: Door) -> None:
    house = House(key(), other, concurrency=1)

    async def main() -> None:
        house.ends[0].script = chain([limited(600.0)] * 12, repeat(WELL))
        await asyncio.gather(*(house.ask(prefix) for prefix in range(40)))
        assert house.clock.monotonic() < 60
        assert house.calls[0] == 8, "so many refusals running show that nothing passes"

    house.run(main())


def test_a_hold_that_headers_tell_of_counts_as_well() -> None:
    house = House(key(), fallback(), concurrency=1)

    async def main() -> None:
        asking = [asyncio.create_task(house.ask()) for _ in range(5)]
        await house.clock.sleep(0.5)
        assert house.ends[0].on_limits is not None
        house.ends[0].on_limits(Limits(100), 300.0)
        await asyncio.gather(*asking)
        assert house.calls == [1, 4]
        assert house.clock.monotonic() < 10

    house.run(main())


def test_when_all_routes_are_held_calls_go_by_the_one_that_is_free_first() -> None:
    house = House(key(), key(), concurrency=4)

    async def main() -> None:
        await house.ask(0)
        first = house.calls.index(1)
        house.gates[first].pause(3000)
        house.gates[1 - first].pause(100)
        await asyncio.gather(*(house.ask(0) for _ in range(4)))
        assert house.clock.monotonic() < 110
        assert house.calls[1 - first] == 4

    house.run(main())


def test_a_route_that_is_down_is_probed_though_the_other_one_is_held_for_long() -> None:
    house = House(key(), fallback(), attempts=50)
    down(house, 0)

    async def main() -> None:
        await asyncio.gather(*(house.ask() for _ in range(5)))
        house.ends[0].always = None
        house.gates[1].pause(3000)
        await asyncio.gather(*(house.ask() for _ in range(5)))
        assert house.clock.monotonic() < 100

    house.run(main())


# Ends


@pytest.mark.parametrize(
    ("failure", "advice"),
    [
        ("HTTP 503: Loading model", "wait until the server has loaded its model"),
        ("HTTP 200 with an event stream, though none was asked for: this server only streams", "LiteLLM's proxy"),
        ("HTTP 503: no healthy upstream", "the server behind it"),
        ("HTTP 502: a web page, 502 Bad Gateway", "the server behind it"),
        ("no connection (refused)", "correct base_url"),
        ("HTTP 500: Internal Server Error", "own log"),
        ("HTTP 529: overloaded", ""),
    ],
)
def test_what_may_help_is_said_of_failures_that_do_not_pass(failure: str, advice: str) -> None:
    said = refusal_advice(TransientError(failure, Fault.TRANSIENT))
    assert advice in said
    assert bool(said) == bool(advice)


def test_a_lane_that_nobody_answers_is_given_up_after_its_patience_only_when_nothing_else_is_at_work() -> None:
    house = House(key(), fallback(), attempts=1000, patience=300)
    down(house, 0)
    down(house, 1)
    house.others_work = True

    async def main() -> list[Reply | Exception]:
        working = asyncio.create_task(house.worked(8, workers=8))
        await house.clock.sleep(2000)
        assert house.lane.closed is None
        house.others_work = False
        return await working

    ended = house.run(main())
    assert house.lane.closed is not None
    assert house.lane.closed.startswith("no call was answered for")
    assert "; the last failure: busy" in house.lane.closed
    assert 2000 <= house.clock.monotonic() < 2070
    assert {type(one) for one in ended} <= {LaneClosedError}


def test_patience_counts_from_when_the_last_route_went_silent_and_an_answer_starts_it_anew() -> None:
    house = House(key(), attempts=1000, patience=300)
    down(house, 0)

    async def main() -> None:
        working = asyncio.create_task(house.worked(40, workers=8))
        await house.clock.sleep(250)
        house.ends[0].always = None
        while not house.counters.answered:
            await house.clock.sleep(1)
        down(house, 0)
        again = house.clock.monotonic()
        await working
        assert again + 300 <= house.clock.monotonic() < again + 300 + 70

    house.run(main())
    assert house.lane.closed is not None


@pytest.mark.parametrize("doors", [[key()], [key(), key()], [key(), fallback()]])
def test_workers_that_wait_are_sent_home_at_a_stop_and_what_is_in_flight_comes_in(doors: list[Door]) -> None:
    house = House(*(Door(rank=one.rank, rate=6, base_url=one.base_url) for one in doors))

    async def main() -> None:
        working = asyncio.create_task(house.worked(100, workers=12))
        await house.clock.sleep(0.5)
        house.stopping.set()
        house.lane.cancel_idle_workers()
        await asyncio.wait_for(working, 2)

    house.run(main())
    assert house.counters.answered == sum(house.calls) == sum(one.rank == 0 for one in doors)


def test_workers_that_wait_for_a_probe_are_sent_home_at_a_stop() -> None:
    house = House(key(), fallback(), attempts=100)
    down(house, 0)
    down(house, 1)

    async def main() -> None:
        working = asyncio.create_task(house.worked(100, workers=12))
        await house.clock.sleep(50)
        house.stopping.set()
        house.lane.cancel_idle_workers()
        await asyncio.wait_for(working, 2)

    house.run(main())


SAID: tuple[Callable[[], Said], ...] = (
    *(lambda: WELL,) * 4,
    *(busy,) * 6,
    bad,
    refused,
    lambda: limited(None),
    lambda: limited(2.0),
    lambda: limited(40.0),
    lambda: busy(may_be_billed=True),
)
scripts = st.lists(st.sampled_from(SAID), max_size=40).map(lambda made: [one() for one in made])
doors = st.builds(Door, scripts, st.integers(0, 1), st.sampled_from([None, None, 30]))


@given(
    st.lists(doors, min_size=2, max_size=3),
    st.integers(1, 25),
    st.integers(1, 8),
    st.integers(1, 3),
    st.none() | st.integers(0, 200),
    st.lists(st.integers(0, 100), max_size=3),
)
def test_whatever_routes_answer_every_trial_ends_and_accounts_balance(
    doors: list[Door], trials: int, workers: int, concurrency: int, stop_at: int | None, cancelled_at: list[int]
) -> None:
    doors.sort(key=lambda one: one.rank)
    doors[0].rank = 0
    house = House(*doors, concurrency=concurrency)

    async def main() -> list[Reply | Exception]:
        working = asyncio.create_task(house.worked(trials, workers))
        for moment in sorted(cancelled_at):
            await house.clock.sleep(max(0.0, moment - house.clock.monotonic()))
            for one in list(house.counters.sending)[:1]:
                if one is not None:
                    one.cancel()  # as if its trial were given up
        if stop_at is not None:
            await house.clock.sleep(max(0.0, stop_at - house.clock.monotonic()))
            house.stopping.set()
            house.lane.cancel_idle_workers()
        return await asyncio.wait_for(working, 10_000)

    ended = house.run(main())
    assert all(isinstance(one, Reply | CallError | LaneClosedError | StoppedError) for one in ended)
    if stop_at is None and house.lane.closed is None and not cancelled_at:
        assert len(ended) == trials
    tries = Counter((one.trial, one.number) for one in house.kept.attempts)
    assert set(tries.values()) <= {1}


@pytest.mark.parametrize("both", [False, True])
def test_a_long_hold_of_one_route_is_not_told_as_one_of_the_whole_lane(both: bool) -> None:
    """The danger: "no call is sent for 3600 s (Ctrl-C stops ...)" while all calls went by the fallback."""
    house = House(key(), fallback())

    async def main() -> None:
        for gate in house.gates[: 1 + both]:
            gate.pause(3600.0)
        house.lane.workers.add(asyncio.ensure_future(house.ask()))
        await house.clock.sleep(0.5)
        house.lane.report_holds(1.0)
        house.lane.cancel_idle_workers()
        await asyncio.gather(*house.lane.workers, return_exceptions=True)

    house.run(main())
    assert len(house.told) == 1 + both
    for told in house.told:
        assert "no call is sent for 3600 s: the provider asks to wait" in told
        assert ("calls go by the other routes" in told) is not both
        assert ("Ctrl-C stops" in told) is both
