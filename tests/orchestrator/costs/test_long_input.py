"""Trials that do not fit a judge's context: told in the plan, never sent, or cut and on record."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.parameters import slow_after
from tests.stores import open_with
from venire.arena.budgets import BudgetSettings
from venire.arena.campaigns import (
    CampaignSettings,
    DataSettings,
    JudgeSettings,
    LaneSettings,
    PhaseSettings,
    PlanSettings,
    RouteSettings,
    TokenPrice,
)
from venire.arena.clock import VirtualClock
from venire.arena.errors import Fault
from venire.arena.records import UNSENT, Completion, Instruction, Reply, Request, Status
from venire.judges.providers.faults import refusal
from venire.orchestrator.costs.forecast import LongForecast, forecast_long
from venire.orchestrator.designs import PlannedCampaign
from venire.orchestrator.planning.plan import plan_campaign
from venire.orchestrator.planning.respondents import respondents, with_contexts
from venire.orchestrator.recording.ending import CampaignSummary, Ending
from venire.orchestrator.run.campaign import run_campaign
from venire.orchestrator.run.reparse import reparse
from venire.orchestrator.run.run_setup import RunSetup
from venire.storage.care.checking import check
from venire.storage.read.judge_quality import LongInput, long_input
from venire.storage.store.store import Store

PRICE = TokenPrice(1_000_000_000, 2_000_000_000)
SENTENCE = "This answer says the same thing once more, and then again. "
LENGTHS = {"q0": {"ash": 1, "birch": 2}, "q1": {"ash": 3, "birch": 100}, "q2": {"ash": 80, "birch": 90}}
"""How often each model says its sentence."""


class Judge:
    """Answers `1` after its reasons, and refuses prompts of more than so many characters as OpenAI does."""

    on_limits: Any = None

    def __init__(self, most: int = 10**9, reasons: str = "Reasons.") -> None:
        self.most, self.reasons = most, reasons
        self.asked: list[Request] = []

    def is_structured(self, model: str) -> bool:
        return False

    def encode(self, model: str, request: Request) -> bytes:
        self.asked.append(request)
        return orjson.dumps([message["content"] for message in request.messages])

    def limits_key(self, model: str) -> tuple[str, ...]:
        return ("fake", model)

    async def send(self, body: bytes, idempotency_key: str) -> Reply:
        said = orjson.loads(body)
        if sum(map(len, said)) > self.most:
            text = '{"error": {"code": "context_length_exceeded", "message": "maximum context length is 8192 tokens"}}'
            raise refusal(400, {}, text, VirtualClock().wall())
        return Reply(self.reasons if len(said) == 1 else "1", input_tokens=100, output_tokens=50, raw="{}")

    async def check(self) -> str | None:
        return None

    async def close(self) -> None:
        return None


def judge(protocol: str = "two-stage", context: int | None = 2000, **options: str) -> JudgeSettings:
    lane = LaneSettings((RouteSettings("openai", "http://127.0.0.1:9/v1", None, "m"),), concurrency=3)
    return JudgeSettings("m", "m", protocol, {"max_tokens": "300", **options}, lane, PRICE, context=context)


def campaign(one: JudgeSettings) -> CampaignSettings:
    settings = PlanSettings((PhaseSettings("all-pairs", matchups=None),))
    path = Path("c.toml")
    found = CampaignSettings(
        "c", 1, path, Path("c.duckdb"), DataSettings(), settings, (one,), BudgetSettings(), "", repr(one)
    )
    return with_contexts(found)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    questions = [Instruction(name, (f"Question {name}?",)) for name in LENGTHS]
    answers = [Completion(m, name, f"{m}: {SENTENCE * n}") for name, each in LENGTHS.items() for m, n in each.items()]
    with open_with(tmp_path / "c.duckdb", questions, answers, clock=VirtualClock()) as opened:
        yield opened


def go(store: Store, one: JudgeSettings, provider: Judge) -> tuple[PlannedCampaign, CampaignSummary]:
    asked = campaign(one)
    planned = plan_campaign(store, asked)
    clock = store.clock
    assert isinstance(clock, VirtualClock)
    ways, prices = {one.lane.routes[0].identity: provider}, {"m": PRICE}

    async def run() -> CampaignSummary:
        return await run_campaign(store, asked, planned, ways, prices, RunSetup(clock, inline=True))

    with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
        return planned, runner.run(run())


def rows(store: Store, sql: str) -> list[tuple[Any, ...]]:
    with store.cursor() as cursor:
        return cursor.execute(sql).fetchall()


STATUSES = """select i.external_id, v.status, v.rule, sum(v.cost)::bigint from verdict v join trial t on t.id = v.trial
  join instruction i on i.id = t.instruction group by all order by 1"""


def test_what_does_not_fit_is_too_long_without_a_call_and_costs_nothing(store: Store) -> None:
    provider = Judge()
    planned, summary = go(store, judge(), provider)
    assert summary.ending is Ending.COMPLETE
    assert rows(store, STATUSES) == [("q0", 0, "bare", 800_000), ("q1", 5, UNSENT, 0), ("q2", 5, UNSENT, 0)]
    assert summary.statistics.calls == 4 == len(rows(store, "select 1 from attempt"))
    assert all("q1" not in message["content"] for asked in provider.asked for message in asked.messages)
    assert long_input(store, planned.id, UNSENT) == (LongInput("m", unsent=4, refused=0, cut=0, most_cut=0),)


def test_the_plan_says_how_many_will_not_fit_before_anything_is_asked(store: Store) -> None:
    planned = plan_campaign(store, campaign(judge()))
    assert forecast_long(store, planned) == (LongForecast("m", 2000, 4, "error"),)
    go(store, judge(), Judge())
    assert forecast_long(store, planned) == (LongForecast("m", 2000, 0, "error"),)


@pytest.mark.parametrize("protocol", slow_after(1, "listwise", "direct", "criteria"))
def test_the_plan_agrees_with_the_run_for_every_shape(store: Store, protocol: str) -> None:
    planned = plan_campaign(store, campaign(judge(protocol)))
    (told,) = forecast_long(store, planned)
    planned, _ = go(store, judge(protocol), Judge(reasons="A"))
    (found,) = long_input(store, planned.id, UNSENT)
    assert told.too_long == found.unsent > 0


def test_where_no_context_is_known_nothing_is_counted_and_the_plan_claims_nothing(store: Store) -> None:
    one = judge(context=None)
    planned = plan_campaign(store, campaign(one))
    assert forecast_long(store, planned) == (LongForecast("m", None, None, "error"),)
    _, summary = go(store, one, Judge())
    assert summary.statistics.calls == 2 * 6


def test_a_providers_own_context_error_ends_as_too_long(store: Store) -> None:
    planned, summary = go(store, judge(context=None), Judge(most=4000))
    assert summary.ending is Ending.COMPLETE
    assert [(name, status) for name, status, _, _ in rows(store, STATUSES)] == [("q0", 0), ("q1", 5), ("q2", 5)]
    assert long_input(store, planned.id, UNSENT) == (LongInput("m", unsent=0, refused=4, cut=0, most_cut=0),)
    assert rows(store, "select distinct fault, message from attempt where fault <> 0") == [
        (int(Fault.TOO_LONG), "HTTP 400: maximum context length is 8192 tokens")
    ]


class OtherTokenizer(Judge):
    """Makes a token of every second byte, twice as many as are counted here, and has 4,000 of them."""

    context = 4000

    def __init__(self, says: str) -> None:
        super().__init__(most=10**9)
        self.says, self.taken = says, 0

    async def send(self, body: bytes, idempotency_key: str) -> Reply:
        said = orjson.loads(body)
        tokens = sum(map(len, said)) // 2
        if tokens + 300 <= self.context:
            self.taken = max(self.taken, tokens)
            return await super().send(body, idempotency_key)
        text = self.says.replace("CONTEXT", f"{self.context}").replace("LEAST", f"{self.context + 1}")
        raise refusal(400, {}, text.replace("TOKENS", f"{tokens}"), VirtualClock().wall())


@pytest.mark.parametrize(
    "says",
    [
        '{"error": {"type": "exceed_context_size_error", "message": "m", "n_prompt_tokens": TOKENS, "n_ctx": CONTEXT}}',
        '{"error": {"message": "This model\'s maximum context length is CONTEXT tokens. However, your prompt '
        'contains at least LEAST input tokens, which exceeds this limit.", "param": "input_tokens"}}',
        '{"error": {"code": "context_length_exceeded", "message": "too long"}}',
    ],
)
def test_texts_are_cut_until_they_fit_a_server_that_makes_more_tokens_of_them(store: Store, says: str) -> None:
    """The danger: what was cut by another tokenizer's count is refused, and counted as failed for good."""
    provider = OtherTokenizer(says)
    cutting = {"max_tokens": "300", "too_long": "truncate-both", "context": "4000"}
    _, summary = go(store, replace(judge(context=4000), options=cutting), provider)
    assert {status for _, status, _, _ in rows(store, STATUSES)} == {0}
    assert summary.ending is Ending.COMPLETE
    ((refusals, most),) = rows(store, "select count(*), max(number) from attempt where fault = 7")
    assert refusals > 0
    assert most <= 3
    assert provider.taken > 0.6 * provider.context, "no more was cut than had to be"
    assert rows(store, "select count(*) from failure") == [(0,)]
    store.close()
    assert check(store.path, full=True).sound


def test_a_second_step_that_does_not_fit_is_not_sent_and_the_first_is_paid(store: Store) -> None:
    one = judge(context=1000)
    _, summary = go(store, one, Judge(reasons="reasons " * 290))
    assert [(name, status) for name, status, _, _ in rows(store, STATUSES)] == [("q0", 5), ("q1", 5), ("q2", 5)]
    assert summary.statistics.calls == 2
    assert rows(store, "select sum(cost)::bigint from verdict") == [(2 * 200_000,)]


class Thinker(Judge):
    """Spends its limit on thoughts that nobody sees."""

    async def send(self, body: bytes, idempotency_key: str) -> Reply:
        return Reply("", "length", input_tokens=100, output_tokens=1500, raw="{}")


@pytest.mark.parametrize("policy", slow_after(1, "middle", "error"))
def test_a_reply_cut_in_thought_is_truncated_where_twice_the_tokens_do_not_fit(store: Store, policy: str) -> None:
    one = judge("direct", context=2900, too_long=policy)
    one = replace(one, options={**one.options, "max_tokens": "1500", "context": "2900"})
    planned, summary = go(store, one, Thinker())
    asked = "select status, count(*) from verdict where trial in (select trial from attempt) group by 1"
    read = dict(rows(store, asked))
    assert set(read) == {int(Status.TRUNCATED)}
    assert summary.statistics.calls == sum(read.values()), "asked once each"
    again = reparse(store, [planned.id], write=False).comparison
    assert (again.same, again.unasked) == (again.verdicts, 0)


@pytest.mark.parametrize("context", slow_after(1, 1000, 2000))
def test_reading_again_keeps_what_was_never_sent_as_too_long(store: Store, context: int) -> None:
    planned, _ = go(store, judge(context=context), Judge(reasons="reasons " * 290))
    again = reparse(store, [planned.id], write=False).comparison
    assert (again.verdicts, again.same, again.unasked) == (6, 6, 0)


@pytest.mark.parametrize("policy", ["truncate-both", "middle"])
def test_what_was_cut_is_on_record_with_how_much(store: Store, policy: str) -> None:
    provider = Judge()
    cutting = {"max_tokens": "300", "too_long": policy, "context": "2000"}
    planned, summary = go(store, replace(judge(), options=cutting), provider)
    assert {status for _, status, _, _ in rows(store, STATUSES)} == {0}
    cut = dict(
        rows(
            store,
            "select i.external_id, max(cut) from attempt a join trial t on t.id = a.trial join "
            "instruction i on i.id = t.instruction group by 1",
        )
    )
    assert cut["q0"] is None
    assert cut["q2"] > cut["q1"] > 0
    assert long_input(store, planned.id, UNSENT) == (LongInput("m", 0, 0, cut=4, most_cut=cut["q2"]),)
    assert summary.statistics.calls == 12
    again = reparse(store, [planned.id], write=False).comparison
    assert (again.verdicts, again.same) == (6, 6)
    store.close()
    assert check(store.path, full=True).sound


def test_a_judge_is_another_when_it_cuts_and_the_same_whatever_its_context_is_otherwise() -> None:
    def key(one: JudgeSettings) -> object:
        ((_, found),) = respondents(campaign(one))
        return found

    usual = key(judge(context=None))
    assert usual == key(judge(context=2000)) == key(judge(context=9000))
    cutting = {"max_tokens": "300", "too_long": "middle", "context": "2000"}
    others = [
        key(replace(judge(), options={**cutting, **more}))
        for more in ({}, {"too_long": "truncate-both"}, {"context": "2500"})
    ]
    assert len({repr(one) for one in (usual, *others)}) == 4


def test_a_context_that_the_file_does_not_give_is_looked_up_and_counted_in_the_models_vocabulary() -> None:
    (found,) = campaign(replace(judge(context=None), model="gpt-4o-mini")).judges
    assert (found.context, found.vocabulary) == (128_000, "o200k_base")
    (given,) = campaign(replace(judge(context=5000), model="gpt-4o-mini")).judges
    assert given.context == 5000
    cutting = {"max_tokens": "300", "too_long": "middle", "context": "5000"}
    (cut,) = campaign(replace(judge(context=5000), model="gpt-4o-mini", options=cutting)).judges
    assert cut.options == {**cutting, "vocabulary": "o200k_base"}  # it decides what is sent
    assert "vocabulary" not in given.options
    (unknown,) = campaign(judge(context=None)).judges
    assert (unknown.context, unknown.vocabulary) == (None, "estimate")
    tight = replace(judge(context=None), model="gpt-4", options={"max_tokens": "8192"})
    assert campaign(tight).judges[0].context is None  # nothing would fit: the provider decides
