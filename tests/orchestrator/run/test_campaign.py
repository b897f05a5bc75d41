"""A campaign under way: what it asks, what it pays, when it stops, and how it goes on. On the virtual clock."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.parameters import slow_after
from tests.stores import open_with
from venire.arena.battles import Statistics
from venire.arena.budgets import BudgetSettings
from venire.arena.campaigns import (
    CampaignSettings,
    DataSettings,
    JudgeSettings,
    LaneSettings,
    Limits,
    PhaseSettings,
    PlanSettings,
    RouteSettings,
    TokenPrice,
)
from venire.arena.clock import VirtualClock
from venire.arena.errors import CallError, Fault, KeyRefusedError, StoreError, TransientError
from venire.arena.records import Completion, Instruction, Rating, Reply, Request, Status
from venire.orchestrator.planning.plan import plan_campaign
from venire.orchestrator.recording.ending import GRACE_SECONDS, CampaignSummary, Ending, StopRequest
from venire.orchestrator.run.campaign import run_campaign
from venire.orchestrator.run.run_setup import RunSetup, say_nothing
from venire.storage.plans import plans, trial_states
from venire.storage.read import frames
from venire.storage.store.journal import Journal, read_journal
from venire.storage.store.opening import open_store
from venire.storage.store.store import Store
from venire.storage.transfer import importing

MODELS = ("ash", "birch", "cedar")
INSTRUCTIONS = 4
TRIALS = 3 * INSTRUCTIONS * 2
PRICE = TokenPrice(1_000_000_000, 2_000_000_000)


class FakeProvider:
    """Answers every step after a second; `before` may raise instead, and sees the idempotency key."""

    def __init__(self, before: Callable[[str], None] = lambda key: None) -> None:
        self.before = before
        self.sent: list[str] = []
        self.answered: list[str] = []

    def encode(self, model: str, request: Request) -> bytes:
        return orjson.dumps([model, list(request.messages), request.seed])

    on_limits: Callable[[Limits, float], None] | None = None

    def limits_key(self, model: str) -> tuple[str, ...]:
        return ("fake", model)

    async def send(self, body: bytes, idempotency_key: str) -> Reply:
        self.sent.append(idempotency_key)
        await asyncio.sleep(1)
        self.before(idempotency_key)
        self.answered.append(idempotency_key)
        stage = sum(message["role"] == "assistant" for message in orjson.loads(body)[1])
        return Reply("1" if stage else "Some reasons.", input_tokens=100, output_tokens=50, raw="{}")

    async def check(self) -> str | None:
        return None

    async def close(self) -> None:
        return None


def judge(name: str, **lane: Any) -> JudgeSettings:
    settings = LaneSettings(
        (RouteSettings("openai", "http://127.0.0.1:9/v1", None, name),), concurrency=3, max_attempts=3, patience=1e9
    )
    options = {"max_tokens": "50", "repair": "1"}
    return JudgeSettings(name, name, "two-stage", options, replace(settings, **lane), PRICE)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    questions = [Instruction(f"q{n}", (f"Question {n}?",)) for n in range(INSTRUCTIONS)]
    answers = [Completion(m, f"q{n}", f"{m} says {n}") for m in MODELS for n in range(INSTRUCTIONS)]
    ratings = [Rating(model, 1000.0 + n) for n, model in enumerate(MODELS)]
    with open_with(tmp_path / "c.duckdb", questions, answers, ratings, clock=VirtualClock()) as opened:
        yield opened


def campaign(*judges: JudgeSettings, name: str = "c", budget: BudgetSettings | None = None) -> CampaignSettings:
    plan, judging = PlanSettings((PhaseSettings("all-pairs", matchups=None),)), judges or (judge("judge"),)
    return CampaignSettings(
        name, 1, Path("c.toml"), Path("c.duckdb"), DataSettings(), plan, judging, budget or BudgetSettings(), "", name
    )


def virtual(store: Store) -> VirtualClock:
    assert isinstance(store.clock, VirtualClock)
    return store.clock


def go(
    store: Store,
    asked: CampaignSettings,
    providers: Mapping[str, FakeProvider] | FakeProvider,
    during: Callable[[StopRequest, FakeProvider], None] | None = None,
    progress: Callable[[Statistics], None] | None = None,
    after: Callable[[], None] = lambda: None,
    warn: Callable[[str], None] | None = None,
    prices: Mapping[str, TokenPrice] | None = None,
    group_seconds: float | None = None,
) -> CampaignSummary:
    clock = virtual(store)
    planned = plan_campaign(store, asked)
    single = isinstance(providers, FakeProvider)
    by_model = {one.model: providers if single else providers[one.model] for one in asked.judges}

    async def run() -> CampaignSummary:
        stop = StopRequest()
        if during is not None:
            during(stop, next(iter(by_model.values())))
        summary = await run_campaign(
            store,
            asked,
            planned,
            {one.lane.routes[0].identity: by_model[one.model] for one in asked.judges},
            {one.name: PRICE for one in asked.judges} | dict(prices or {}),
            RunSetup(
                clock=clock,
                stop=stop or StopRequest(),
                progress=progress,
                warn=warn or say_nothing,
                group_seconds=group_seconds or 0.001,
                inline=group_seconds is None and not asked.strict,
            ),
        )
        after()
        return summary

    with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
        return runner.run(run())


def replies(store: Store) -> Counter[str]:
    rows = store.connection.execute(
        "select hex(t.trial_key), a.step from attempt a join trial t on t.id = a.trial where a.fault = 0"
    ).fetchall()
    return Counter(f"{key.lower()}-{step}" for key, step in rows)


def test_every_planned_trial_is_settled_once_and_every_reply_is_kept(store: Store) -> None:
    provider = FakeProvider()
    summary = go(store, campaign(), provider)
    assert summary.ending is Ending.COMPLETE
    assert summary.progress == frames.Progress(TRIALS, TRIALS, 0)
    assert len(provider.sent) == len(set(provider.sent)) == 2 * TRIALS
    assert replies(store) == Counter(provider.answered)
    assert summary.statistics.spent == 2 * TRIALS * PRICE.cost(100, 50) == frames.campaign_spending(store, 1).nano


def test_no_more_calls_are_in_flight_than_the_lane_allows(store: Store) -> None:
    most = 0

    class Counting(FakeProvider):
        async def send(self, body: bytes, idempotency_key: str) -> Reply:
            nonlocal most
            most = max(most, len(self.sent) + 1 - len(self.answered))
            return await super().send(body, idempotency_key)

    go(store, campaign(), Counting())
    assert most == 3


def test_a_finished_campaign_asks_nothing_more(store: Store) -> None:
    go(store, campaign(), FakeProvider())
    provider = FakeProvider()
    assert go(store, campaign(), provider).ending is Ending.COMPLETE
    assert provider.sent == []


def test_a_second_campaign_pays_only_for_what_the_first_did_not_ask(store: Store) -> None:
    go(store, campaign(), FakeProvider())
    provider = FakeProvider()
    summary = go(store, campaign(judge("judge"), judge("another"), name="second"), provider)
    assert summary.progress == frames.Progress(2 * TRIALS, 2 * TRIALS, 0)
    assert len(provider.sent) == 2 * TRIALS
    second = plans.find_campaign(store, "second")
    assert second is not None
    assert frames.campaign_spending(store, second.id).calls == 2 * TRIALS


def test_the_budget_in_calls_ends_the_run_and_holds_across_runs(store: Store) -> None:
    limited = campaign(budget=BudgetSettings(calls=11))
    provider = FakeProvider()
    summary = go(store, limited, provider)
    assert summary.ending is Ending.BUDGET
    assert all("11 calls" in why for why in summary.unaffordable.values())
    assert len(provider.sent) == 11
    assert go(store, limited, provider).ending is Ending.BUDGET
    assert len(provider.sent) == 11
    more = FakeProvider()
    assert go(store, campaign(), more).ending is Ending.COMPLETE
    assert not set(more.sent) & set(provider.sent), "a step that was answered is not asked again"
    assert len(more.sent) == 2 * TRIALS - 11


def test_the_budget_in_money_is_never_passed(store: Store) -> None:
    limit = 3_000_000
    summary = go(store, campaign(budget=BudgetSettings(money=limit)), FakeProvider())
    assert summary.ending is Ending.BUDGET
    assert 0 < summary.statistics.spent <= limit


def test_a_step_that_uses_up_its_attempts_fails_and_waits_for_its_pardon(store: Store) -> None:
    unlucky: list[str] = []

    def fail(key: str) -> None:
        if not unlucky:
            unlucky.append(key)
        if key == unlucky[0]:
            raise TransientError("busy", Fault.TRANSIENT, status=503)

    provider = FakeProvider(fail)
    summary = go(store, campaign(), provider)
    assert summary.ending is Ending.FAILED_STEPS
    assert summary.progress == frames.Progress(TRIALS, TRIALS - 1, 1)
    assert provider.sent.count(unlucky[0]) == 3
    again = FakeProvider()
    assert go(store, campaign(), again).ending is Ending.FAILED_STEPS
    assert again.sent == []
    assert plans.clear_failures(store, 1) == 1
    assert go(store, campaign(), again).ending is Ending.COMPLETE
    assert len(again.sent) == 2
    numbers = store.connection.execute("select number from attempt where fault <> 0 order by number").fetchall()
    assert numbers == [(1,), (2,), (3,)]


@pytest.mark.parametrize(
    ("fault", "status"), slow_after(1, (Fault.FILTERED, Status.FILTERED), (Fault.TOO_LONG, Status.TOO_LONG))
)
def test_a_filtered_or_too_long_prompt_is_a_verdict_of_that_status(store: Store, fault: Fault, status: Status) -> None:
    def refuse(key: str) -> None:
        raise CallError("no", fault, status=400)

    summary = go(store, campaign(), FakeProvider(refuse))
    assert summary.ending is (Ending.QUALITY if fault is Fault.FILTERED else Ending.COMPLETE)
    assert summary.progress.missing == 0
    found = store.connection.execute("select distinct status from verdict").fetchall()
    assert found == [(int(status),)]


def test_a_refused_key_closes_its_lane_and_the_others_go_on(store: Store) -> None:
    def refuse(key: str) -> None:
        raise CallError("the key was refused", Fault.AUTHENTICATION, status=401)

    bad, good = FakeProvider(refuse), FakeProvider()
    summary = go(store, campaign(judge("bad"), judge("good")), {"bad": bad, "good": good})
    assert summary.ending is Ending.LANE_CLOSED
    assert list(summary.closed_lanes.values()) == ["the key was refused"]
    assert summary.progress == frames.Progress(2 * TRIALS, TRIALS, 0)
    assert len(bad.sent) <= 3


def unexplained(status: int = 403) -> CallError:
    return CallError(f"HTTP {status}: no", Fault.AUTHENTICATION, status=status, by_status=status)


@pytest.mark.parametrize("status", slow_after(1, 401, 403))
def test_a_key_that_is_revoked_with_all_trials_in_flight_fails_none_of_them(store: Store, status: int) -> None:
    class Revoked(FakeProvider):
        async def check(self) -> str | None:
            await asyncio.sleep(1)
            raise KeyRefusedError("the key was refused")

    def refuse(key: str) -> None:
        if len(first.answered) >= 10:
            raise unexplained(status)

    first = Revoked(refuse)
    summary = go(store, campaign(judge("judge", concurrency=32)), first)
    assert summary.ending is Ending.LANE_CLOSED
    assert (summary.progress.failed, summary.statistics.failed) == (0, 0)
    assert len(first.sent) == 24 + 10, "the first steps of all trials, and the second ones of those that were answered"
    second = FakeProvider()
    assert go(store, campaign(judge("judge", concurrency=32)), second).ending is Ending.COMPLETE
    assert len(first.answered) + len(second.answered) == 2 * TRIALS


def test_a_refusal_that_is_undecided_when_the_run_is_stopped_is_asked_again_by_the_next(store: Store) -> None:
    def during(stop: StopRequest, provider: FakeProvider) -> None:
        def once(key: str) -> None:
            if len(provider.answered) == 9:
                stop.request()
                raise unexplained()

        provider.before = once

    summary = go(store, campaign(judge("judge", concurrency=1)), FakeProvider(), during)
    assert (summary.ending, summary.progress.failed) == (Ending.INTERRUPTED, 0)
    assert go(store, campaign(judge("judge", concurrency=1)), FakeProvider()).ending is Ending.COMPLETE


def test_a_request_to_stop_lets_calls_in_flight_finish_and_sends_no_more(store: Store) -> None:
    def during(stop: StopRequest, provider: FakeProvider) -> None:
        def once(key: str) -> None:
            if len(provider.sent) >= 9 and not stop.gently.is_set():
                stop.request()

        provider.before = once

    first = FakeProvider()
    summary = go(store, campaign(), first, during)
    assert summary.ending is Ending.INTERRUPTED
    assert 9 <= len(first.sent) <= 12
    assert set(first.sent) == set(first.answered)
    assert replies(store) == Counter(first.answered)
    second = FakeProvider()
    assert go(store, campaign(), second).ending is Ending.COMPLETE
    assert not set(first.sent) & set(second.sent), "nothing is asked twice"
    assert len(first.sent) + len(second.sent) == 2 * TRIALS


def test_a_second_request_to_stop_gives_up_what_is_in_flight_and_keeps_it_on_record(store: Store) -> None:
    def during(stop: StopRequest, provider: FakeProvider) -> None:
        def twice(key: str) -> None:
            if len(provider.sent) >= 10 and not stop.gently.is_set():
                stop.request()
                stop.request()

        provider.before = twice

    first = FakeProvider()
    summary = go(store, campaign(), first, during)
    assert summary.ending is Ending.INTERRUPTED
    on_record = replies(store)
    unanswered = store.connection.execute(
        "select count(*), count(cost) from attempt where fault = ?", [int(Fault.UNANSWERED)]
    ).fetchall()
    assert unanswered == [(len(first.sent) - on_record.total(), 0)]
    assert unanswered[0][0] > 0
    second = FakeProvider()
    go(store, campaign(), second)
    assert set(first.sent) & set(second.sent) == set(first.sent) - set(on_record)


def test_between_two_steps_a_resumption_pays_only_for_the_second(store: Store) -> None:
    go(store, campaign(budget=BudgetSettings(calls=3)), FakeProvider())  # three workers, one first step each
    second = FakeProvider()
    go(store, campaign(), second)
    assert Counter(key[-1] for key in second.sent) == {"1": TRIALS - 3, "2": TRIALS}


def test_a_store_that_fails_stops_the_run_within_a_handful_of_calls(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = FakeProvider()
    real = Store.commit
    failed_at: list[int] = []

    def commit(self: Store) -> Any:
        if len(provider.sent) >= 9:
            failed_at.append(len(provider.sent))
            raise StoreError("the disk is full")
        return real(self)

    def settle_down(key: str) -> None:
        while failed_at == [] and len(provider.sent) >= 9:  # until the writer has met the fault
            pass

    provider.before = settle_down
    monkeypatch.setattr(Store, "commit", commit)
    with pytest.raises(StoreError, match="the disk is full"):
        go(store, campaign(), provider, group_seconds=0.001)
    assert len(provider.sent) <= failed_at[0] + 3


def test_the_progress_that_is_told_ends_with_everything(store: Store) -> None:
    seen: list[Statistics] = []
    go(store, campaign(), FakeProvider(), progress=seen.append)
    assert seen[0].settled == 0
    assert (seen[-1].settled, seen[-1].in_flight) == (TRIALS, 0)
    assert seen[-1].elapsed == pytest.approx(2 * TRIALS / 3, abs=0.5)


def test_at_every_moment_what_a_kill_would_put_on_the_account_is_within_the_budget(store: Store) -> None:
    """The danger: money that an answer frees is reserved again before the answer is on disk, and a kill counts both."""
    limit, accounts = 3_000_000, []

    def look(key: str) -> None:
        left = read_journal(store.path)
        assert left is not None
        accounts.append(sum(one.reserved for one in left.announced))

    summary = go(store, campaign(budget=BudgetSettings(money=limit)), FakeProvider(look), group_seconds=3600.0)
    assert summary.ending is Ending.BUDGET
    assert 0.8 * limit < max(accounts) <= limit


def test_a_budget_that_covers_everything_is_not_reached_by_reservations_alone(store: Store) -> None:
    paid = 2 * TRIALS * PRICE.cost(100, 50)
    summary = go(store, campaign(budget=BudgetSettings(money=paid + 10_000_000)), FakeProvider())
    assert summary.ending is Ending.COMPLETE
    tight = paid + 3_000_000  # room for one or two worst cases at a time, not for three workers'
    with open_store(store.path.with_name("tight.duckdb"), clock=VirtualClock()) as other:
        importing.add(other, [Instruction(f"q{n}", (f"Question {n}?",)) for n in range(INSTRUCTIONS)])
        importing.add(other, [Completion(m, f"q{n}", f"{m} says {n}") for m in MODELS for n in range(INSTRUCTIONS)])
        summary = go(other, campaign(budget=BudgetSettings(money=tight)), FakeProvider())
        assert summary.ending is Ending.COMPLETE
        assert summary.statistics.spent == paid <= tight


@pytest.mark.parametrize("limit", slow_after(1, 4_370_000, 7_110_000))
def test_a_run_spends_what_can_be_spent_so_that_the_next_one_asks_nothing(limit: int, tmp_path: Path) -> None:
    """The danger: a call too dear for the budget sent home cheaper ones that waited for it, which the next run sent."""
    with open_store(tmp_path / "c.duckdb", clock=VirtualClock()) as store:
        longer = [f"Question {n}?" * (1 + n * 7 % 5 * 40) for n in range(INSTRUCTIONS)]
        importing.add(store, [Instruction(f"q{n}", (text,)) for n, text in enumerate(longer)])
        importing.add(store, [Completion(m, f"q{n}", f"{m} says {n}") for m in MODELS for n in range(INSTRUCTIONS)])
        asked = campaign(budget=BudgetSettings(money=limit))
        first = go(store, asked, FakeProvider())
        assert (first.ending, first.statistics.calls > 10) == (Ending.BUDGET, True)
        again = go(store, asked, FakeProvider())
        assert (again.ending, again.statistics.calls) == (Ending.BUDGET, 0)


def test_where_nobody_can_pay_for_more_a_run_does_not_wait_for_hours_for_what_was_begun(store: Store) -> None:
    asked = campaign(judge("judge", limits=Limits(requests_per_day=2)), budget=BudgetSettings(calls=3))
    start = virtual(store).monotonic()
    summary = go(store, asked, FakeProvider())  # the third call has a place in the budget, and a turn tomorrow
    assert (summary.ending, summary.statistics.calls) == (Ending.BUDGET, 2)
    assert virtual(store).monotonic() - start < 400


def test_calls_that_outlast_the_grace_are_given_up(store: Store) -> None:
    class Endless(FakeProvider):
        async def send(self, body: bytes, idempotency_key: str) -> Reply:
            self.sent.append(idempotency_key)
            self.before(idempotency_key)
            await asyncio.sleep(86_400)
            raise AssertionError("nobody waits for a day")

    def during(stop: StopRequest, provider: FakeProvider) -> None:
        provider.before = lambda key: None if stop.gently.is_set() else stop.request()

    start = virtual(store).monotonic()
    summary = go(store, campaign(), Endless(), during)
    assert summary.ending is Ending.INTERRUPTED
    assert GRACE_SECONDS <= virtual(store).monotonic() - start < GRACE_SECONDS + 5
    faults = store.connection.execute("select distinct fault from attempt").fetchall()
    assert faults == [(int(Fault.UNANSWERED),)]


def test_a_verdict_costs_what_its_trial_cost_in_all_runs(store: Store) -> None:
    go(store, campaign(budget=BudgetSettings(calls=5)), FakeProvider())
    go(store, campaign(), FakeProvider())
    rows = store.connection.execute(
        "select v.cost, p.paid from verdict v join "
        "(select trial, sum(coalesce(cost, reserved)) paid from attempt group by trial) p on p.trial = v.trial"
    ).fetchall()
    assert len(rows) == TRIALS
    assert all(cost == paid for cost, paid in rows)


def test_attempts_are_numbered_on_across_runs(store: Store) -> None:
    def fail(key: str) -> None:
        raise TransientError("busy", Fault.TRANSIENT, status=503)

    assert go(store, campaign(), FakeProvider(fail)).progress.failed == TRIALS
    plans.clear_failures(store, 1)
    assert go(store, campaign(), FakeProvider()).ending is Ending.COMPLETE
    found = store.connection.execute(
        "select step, min(number), max(number) = count(*), max(number) filter (where fault = 0) = count(*) "
        "from attempt group by trial, step"
    ).fetchall()
    assert sorted(set(found)) == [(1, 1, True, True), (2, 1, True, True)]


def test_lanes_that_share_a_limits_key_share_the_strictest_of_their_limits(store: Store) -> None:
    """Two judges of one account at a vendor: what the second says of it must not be lost."""
    provider = FakeProvider()
    provider.limits_key = lambda model: ("one account",)  # type: ignore[method-assign]
    free, bound = judge("free"), judge("bound", limits=Limits(requests_per_minute=6))
    assert go(store, campaign(free, bound), provider).ending is Ending.COMPLETE
    calls = frames.campaign_spending(store, 1).calls
    assert store.clock.monotonic() > 60 * (calls / 6 - 1)


def test_an_outage_uses_up_no_attempts_while_the_lane_is_patient(store: Store) -> None:
    clock = store.clock

    def down_for_ten_minutes(key: str) -> None:
        if clock.monotonic() < 600:
            raise TransientError("bad gateway", Fault.TRANSIENT, status=502)

    asked = replace(campaign(judge("judge", concurrency=1, max_attempts=5, patience=900.0)))
    summary = go(store, asked, FakeProvider(down_for_ten_minutes))
    assert (summary.ending, summary.progress.failed) == (Ending.COMPLETE, 0)
    assert summary.statistics.retries < 30, "four failures, then a probe now and then"


def test_a_run_does_not_end_while_a_chunk_is_being_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    real = trial_states.load
    reading = threading.Event()
    done: list[bool] = []

    def slow(*arguments: Any) -> Any:
        reading.set()
        threading.Event().wait(0.3)
        found = real(*arguments)
        done.append(True)
        return found

    def during(stop: StopRequest, provider: FakeProvider) -> None:
        def watch() -> None:
            reading.wait()
            loop.call_soon_threadsafe(stop.request)
            loop.call_soon_threadsafe(stop.request)

        loop = asyncio.get_running_loop()
        threading.Thread(target=watch).start()

    monkeypatch.setattr("venire.orchestrator.engines.feed.load", slow)
    seen: list[bool] = []
    summary = go(store, campaign(), FakeProvider(), during, after=lambda: seen.extend(done))
    assert summary.ending is Ending.INTERRUPTED
    assert seen == [True]


def test_after_a_stop_nobody_sleeps_out_what_a_provider_asks_for(store: Store) -> None:
    def during(stop: StopRequest, provider: FakeProvider) -> None:
        def busy(key: str) -> None:
            if not stop.gently.is_set():
                stop.request()
            raise TransientError("slow down", Fault.RATE_LIMITED, status=429, retry_after=3600.0)

        provider.before = busy

    start = virtual(store).monotonic()
    assert go(store, campaign(), FakeProvider(), during).ending is Ending.INTERRUPTED
    assert virtual(store).monotonic() - start < 5


def test_a_closed_lane_ends_at_once_though_some_of_it_wait(store: Store) -> None:
    seen: list[str] = []

    def refuse(key: str) -> None:
        seen.append(key)
        if len(seen) == 1:
            raise TransientError("slow down", Fault.RATE_LIMITED, status=429, retry_after=40_000.0)
        raise CallError("the key was refused", Fault.AUTHENTICATION, status=401)

    start = virtual(store).monotonic()
    assert go(store, campaign(), FakeProvider(refuse)).ending is Ending.LANE_CLOSED
    assert virtual(store).monotonic() - start < 5


def test_a_long_wait_of_the_last_call_is_said(store: Store) -> None:
    seen: list[str] = []

    def busy_once(key: str) -> None:
        seen.append(key)
        if len(seen) == 1:
            raise TransientError("slow down", Fault.RATE_LIMITED, status=429, retry_after=600.0)

    told: list[str] = []
    watched = {"warn": told.append, "progress": lambda now: None}
    assert go(store, campaign(), FakeProvider(busy_once), **watched).ending is Ending.COMPLETE
    assert len(told) == 1
    assert re.search(r"the last call waits for 5\d\d s or more, as the provider asked", told[0])


class Watched(FakeProvider):
    """Sees how many calls are out at one time, and when each was answered."""

    def __init__(self, clock: VirtualClock, before: Callable[[str], None]) -> None:
        super().__init__(before)
        self.clock = clock
        self.out = self.most = 0
        self.at: list[float] = []

    async def send(self, body: bytes, idempotency_key: str) -> Reply:
        self.out += 1
        self.most = max(self.most, self.out)
        try:
            reply = await super().send(body, idempotency_key)
        finally:
            self.out -= 1
        self.at.append(self.clock.monotonic())
        return reply


@pytest.mark.parametrize("concurrency", slow_after(1, 3, 1))
def test_calls_that_wait_to_be_repeated_hold_no_place(store: Store, concurrency: int) -> None:
    """Five calls are asked to wait: all that others have to ask is asked meanwhile, never more at once than allowed."""
    seen: list[str] = []

    def busy_at_first(key: str) -> None:
        seen.append(key)
        if len(seen) in (1, 2, 4, 5, 7):
            raise TransientError("slow down", Fault.RATE_LIMITED, status=429, retry_after=600.0)

    provider = Watched(virtual(store), busy_at_first)
    asked = campaign(judge("judge", concurrency=concurrency))
    start = virtual(store).monotonic()
    assert go(store, asked, provider).ending is Ending.COMPLETE
    assert sum(at - start < 100 for at in provider.at) >= 2 * (TRIALS - 5)
    assert provider.most == concurrency
    assert set(replies(store).values()) == {1}


def test_a_failing_worker_ends_the_run_though_others_take_the_places_of_those_that_wait(store: Store) -> None:
    seen: list[str] = []

    def broken(key: str) -> None:
        seen.append(key)
        if len(seen) == 6:
            raise AssertionError("a mistake in the code")
        raise TransientError("slow down", Fault.RATE_LIMITED, status=429, retry_after=600.0)

    with pytest.raises(ExceptionGroup, match="unhandled errors"):
        go(store, campaign(), FakeProvider(broken))
    assert len(seen) <= 6 + 3


def test_a_route_that_is_slowed_says_so_while_it_is_and_how_long_it_was(store: Store) -> None:
    importing.add(store, [Instruction(f"more{n}", (f"Another {n}?",)) for n in range(60)])
    importing.add(store, [Completion(m, f"more{n}", f"{m} says more {n}") for m in MODELS for n in range(60)])
    clock, taken = virtual(store), 0.0

    def one_a_second(key: str) -> None:
        nonlocal taken
        if clock.monotonic() < taken + 1:
            raise TransientError("slow down", Fault.RATE_LIMITED, status=429)
        taken = clock.monotonic()

    seen: list[Statistics] = []
    summary = go(store, campaign(judge("judge", concurrency=16)), FakeProvider(one_a_second), progress=seen.append)
    sentences = {sentence for now in seen for sentence in now.slowed}
    assert any(
        re.fullmatch(r"openai .* judge: slowed to \d+ in flight \([\d.]+ calls/s\) by \d+ rate-limit responses", one)
        for one in sentences
    )
    assert seen[0].slowed == ()
    (calls,) = summary.routes.values()
    assert 0 < calls.slowed <= summary.statistics.elapsed


USED = 150
"""Tokens of each reply, those of its request included."""


def test_the_budget_in_tokens_is_never_passed_and_holds_across_runs(store: Store) -> None:
    limit = 4_000
    used = 0
    for _ in range(3):
        summary = go(store, campaign(budget=BudgetSettings(tokens=limit)), FakeProvider())
        assert summary.ending is Ending.BUDGET
        used = trial_states.paid(store, 1)[0].tokens
        assert USED < used <= limit
    assert used == frames.campaign_spending(store, 1).calls * USED


def test_a_judge_that_cannot_pay_stops_alone(store: Store) -> None:
    rich, poor = judge("rich"), judge("poor")
    asked = replace(campaign(rich, poor), judge_budgets={"poor": BudgetSettings(calls=5)})
    providers = {"rich": FakeProvider(), "poor": FakeProvider()}
    told: list[str] = []
    summary = go(store, asked, providers, warn=told.append)
    assert summary.ending is Ending.BUDGET
    assert [line.split(":")[0] for line in told] == ["judge 'poor' asks no more"]
    assert list(summary.unaffordable) == ["poor"]
    assert "the budget of judge 'poor' of 5 calls is reached" in summary.unaffordable["poor"]
    assert len(providers["poor"].sent) == 5
    assert len(providers["rich"].sent) == 2 * TRIALS
    again = go(store, asked, providers)
    assert again.ending is Ending.BUDGET
    assert len(providers["poor"].sent) == 5


def test_judges_of_one_model_share_its_budget(store: Store) -> None:
    one, other = judge("one"), judge("other")
    shared = replace(one.lane, routes=(replace(one.lane.routes[0], model="m"),))
    one = replace(one, model="m", lane=shared)
    other = replace(other, model="m", lane=shared, options={"max_tokens": "60", "repair": "1"})
    provider = FakeProvider()
    asked = replace(campaign(one, other), model_budgets={"m": BudgetSettings(calls=20)})
    summary = go(store, asked, provider)
    assert summary.ending is Ending.BUDGET
    assert set(summary.unaffordable) == {"one", "other"}
    assert len(provider.sent) == 20


def test_a_free_judge_goes_on_when_the_money_is_spent(store: Store) -> None:
    providers = {"dear": FakeProvider(), "free": FakeProvider()}
    asked = campaign(judge("dear"), judge("free"), budget=BudgetSettings(money=3_000_000))
    summary = go(store, asked, providers, prices={"free": TokenPrice(0, 0)})
    assert summary.ending is Ending.BUDGET
    assert list(summary.unaffordable) == ["dear"]
    assert len(providers["free"].sent) == 2 * TRIALS


def test_a_reply_is_on_disk_before_its_trial_goes_on_where_the_campaign_is_strict(store: Store) -> None:
    """And without that it need not be: the writer here waits for an hour before it writes a group."""
    late: list[str] = []

    def before(key: str) -> None:
        trial, step = key.rsplit("-", 1)
        if step == "2" and (trial, 1) not in on_disk(store):
            late.append(key)

    go(store, replace(campaign(), strict=True), FakeProvider(before), group_seconds=0.02)
    assert late == []
    with open_store(store.path.with_name("normal.duckdb"), clock=VirtualClock()) as other:
        importing.add(other, [Instruction("q0", ("Question?",))])
        importing.add(other, [Completion(m, "q0", f"{m} says") for m in MODELS])
        importing.add(other, [Rating(model, 1000.0 + n) for n, model in enumerate(MODELS)])

        def early(key: str) -> None:
            if key.endswith("-2") and (key.rsplit("-", 1)[0], 1) not in on_disk(other):
                late.append(key)

        go(other, campaign(), FakeProvider(early), group_seconds=3600.0)
    assert late


def on_disk(store: Store) -> set[tuple[str, int]]:
    with store.cursor() as cursor:
        rows = cursor.execute(
            "select lower(hex(t.trial_key)), a.step from attempt a join trial t on t.id = a.trial where a.fault = 0"
        ).fetchall()
    return {(key, step) for key, step in rows}


def test_a_call_is_announced_on_the_disk_itself_before_it_is_sent_where_the_campaign_is_strict(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[set[tuple[int, int]]] = []
    real = Journal.sync

    def sync(self: Journal) -> None:
        left = read_journal(store.path)
        assert left is not None
        real(self)
        synced.append({(one.trial, one.step) for one in left.announced})

    monkeypatch.setattr(Journal, "sync", sync)
    numbers: dict[str, int] = {}

    class Watching(FakeProvider):
        async def send(self, body: bytes, idempotency_key: str) -> Reply:
            if not numbers:
                with store.cursor() as cursor:
                    numbers.update(cursor.execute("select lower(hex(trial_key)), id from trial").fetchall())
            trial, step = idempotency_key.rsplit("-", 1)
            assert any((numbers[trial], int(step)) in turn for turn in synced)
            return await super().send(body, idempotency_key)

    provider = Watching()
    assert go(store, replace(campaign(), strict=True), provider, group_seconds=0.01).ending is Ending.COMPLETE
    assert len(provider.sent) == 2 * TRIALS


def test_what_is_in_flight_when_the_store_fails_comes_in_and_is_there_at_the_next_start(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = FakeProvider()
    real = Store.commit
    failing = False

    def before(key: str) -> None:
        nonlocal failing
        failing = failing or len(provider.answered) >= 10

    def commit(self: Store) -> Any:
        if failing:
            raise StoreError("no space left on device")
        return real(self)

    provider.before = before
    with monkeypatch.context() as patch:
        patch.setattr(Store, "commit", commit)
        with pytest.raises(StoreError, match=r"no space left on device.*taken in at the next start"):
            go(store, campaign(), provider)
    assert sorted(provider.sent) == sorted(provider.answered), "no call in flight was given up"
    store.close()
    with open_store(store.path, clock=VirtualClock()) as again:
        assert again.recovered.replies > 0
        assert again.recovered.calls == 0
        assert replies(again) == Counter(provider.answered)
        more = FakeProvider()
        assert go(again, campaign(), more).ending is Ending.COMPLETE
        assert set(more.sent).isdisjoint(provider.answered)


def test_a_chunk_that_cannot_be_read_stops_the_run_and_what_is_in_flight_comes_in(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The danger: giving up calls that are paid for because others cannot be planned on."""
    monkeypatch.setattr("venire.orchestrator.engines.feed._CHUNK", 3)
    real, reads = trial_states.load, 0

    def load(*arguments: Any) -> Any:
        nonlocal reads
        reads += 1
        if reads == 3:
            raise StoreError("no memory for reading")
        return real(*arguments)

    monkeypatch.setattr("venire.orchestrator.engines.feed.load", load)
    provider = FakeProvider()
    with pytest.raises(StoreError, match="no memory for reading"):
        go(store, campaign(), provider)
    assert sorted(provider.sent) == sorted(provider.answered)
    assert replies(store) == Counter(provider.answered)


def test_a_journal_that_cannot_be_written_stops_the_run_and_what_is_in_flight_comes_in(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, written = os.pwrite, 0

    def pwrite(descriptor: int, data: bytes, at: int) -> int:
        nonlocal written
        written += len(data) == 32
        if written > 8:
            raise OSError(5, "Input/output error")
        return real(descriptor, data, at)

    monkeypatch.setattr("venire.storage.store.journal.os.pwrite", pwrite)
    provider = FakeProvider()
    with pytest.raises(StoreError, match="Input/output error"):
        go(store, campaign(), provider)
    monkeypatch.undo()
    assert 0 < len(provider.sent) < 8, "what calls cost is written there, too"
    assert sorted(provider.sent) == sorted(provider.answered)


def test_a_budget_of_a_model_goes_on_where_earlier_runs_left_it(store: Store) -> None:
    asked = replace(campaign(), model_budgets={"judge": BudgetSettings(calls=7)})
    provider = FakeProvider()
    for _ in range(2):
        assert go(store, asked, provider).ending is Ending.BUDGET
        assert len(provider.sent) == 7


def test_replies_that_nobody_counted_count_the_same_after_a_resumption(store: Store) -> None:
    class Uncounted(FakeProvider):
        async def send(self, body: bytes, idempotency_key: str) -> Reply:
            reply = await super().send(body, idempotency_key)
            return reply._replace(estimated=True, cost=7)

    provider = Uncounted()
    for _ in range(3):
        assert go(store, campaign(budget=BudgetSettings(tokens=4_000)), provider).ending is Ending.BUDGET
    reserved = store.connection.execute("select sum(reserved_tokens) from attempt").fetchall()[0][0]
    assert trial_states.paid(store, 1)[0].tokens == reserved <= 4_000
