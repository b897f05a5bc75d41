"""What a plan will cost, worked out by hand for a tiny one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from tests.stores import open_with
from venire.arena.budgets import Amount, BudgetSettings
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
from venire.arena.errors import Fault
from venire.arena.records import Completion, Instruction, Reply, Status, Verdict
from venire.judges import PROTOCOLS, REASONS_TOKENS, prompts
from venire.orchestrator.costs.call_cost import CallCost
from venire.orchestrator.costs.forecast import JudgeForecast, forecast, judge_forecast
from venire.orchestrator.designs import PlannedCampaign
from venire.orchestrator.planning.plan import plan_campaign
from venire.orchestrator.recording.recorder import AttemptRecord, Recorder
from venire.storage.plans import plans, trial_states
from venire.storage.plans.usage import OnRecord, on_record
from venire.storage.store.store import Store
from venire.storage.transfer import importing

FREE = TokenPrice(0, 0)
PRICE = TokenPrice(1_000_000_000, 2_000_000_000)
"""1,000 nano-dollars a token in, 2,000 a token out."""

FRAME = sum(len(prompts.load("two_stage", name).template) for name in PROTOCOLS["two-stage"].prompts)
"""Characters of the prompt texts that come with every trial."""

TEXTS = 20 + 150 + 250
"""Characters that a trial shows: the question with its four brackets and quotes, and both answers."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    questions = [Instruction(name, (name * 8,)) for name in ("q1", "q2")]
    answers = [Completion("ash", name, name + "a" * 148) for name in ("q1", "q2")]
    answers += [Completion("birch", name, name + "b" * 248) for name in ("q1", "q2")]
    with open_with(tmp_path / "c.duckdb", questions, answers) as opened:
        yield opened


def judge(name: str, max_tokens: int = 400, rate: int | None = None, **options: str) -> JudgeSettings:
    lane = LaneSettings((RouteSettings("openai", None, None, name),), Limits(requests_per_minute=rate))
    return JudgeSettings(name, name, "two-stage", {"max_tokens": str(max_tokens), **options}, lane)


def planned(store: Store, *judges: JudgeSettings) -> PlannedCampaign:
    plan, settings = PlanSettings((PhaseSettings("all-pairs", matchups=None),)), json.dumps({"judge": repr(judges)})
    return plan_campaign(
        store,
        CampaignSettings(
            "c", 1, Path("c.toml"), store.path, DataSettings(), plan, judges, BudgetSettings(), "", settings
        ),
    )


def settle(store: Store, campaign: PlannedCampaign, trials: list[int], failed: list[int]) -> None:
    async def main() -> None:
        def fail(error: Exception) -> None:
            raise error

        recorder = Recorder(store, campaign.id, 1, group_rows=500, group_seconds=0.001, on_error=fail)
        for trial in trials:
            recorder.verdict(trial, Verdict(b"t" * 16, Status.OK, 1), 0)
        for trial in failed:
            recorder.failure(trial, 1, Fault.TRANSIENT)
        await recorder.close()

    asyncio.run(main())


def test_the_forecast_of_a_tiny_plan_is_what_one_works_out_by_hand(store: Store) -> None:
    (found,) = forecast(store, planned(store, judge("j", rate=30)), {"j": PRICE}).judges
    shown = 4 * (TEXTS + FRAME) // 4  # four trials, four characters a token
    reasons = 4 * REASONS_TOKENS
    tokens_in, tokens_out = 2 * shown + reasons, reasons + 4 * 4  # the second call shows the reasons of the first
    most_in = 3 * 2 * shown + 4 * 800 * (1 + 2)  # a repair; twice the tokens; the third call shows two full replies
    most_in, most_out = 2 * most_in, 4 * 3 * (400 + 800)  # each reply cut in thought, and asked for with twice the room
    short, long = 4 * 70, 4 * 400  # of reasons; 411 would be more than it may say
    short_in, long_in = 2 * (4 * (TEXTS + FRAME) // 5) + short, 2 * (4 * (TEXTS + FRAME) // 3) + long
    assert found == JudgeForecast(
        "j",
        trials=4,
        calls=8,
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        low=short_in * 1_000 + round(short + 4 * 4 * 70 / 250) * 2_000,
        expected=tokens_in * 1_000 + tokens_out * 2_000,
        high=long_in * 1_000 + round(long + 4 * 4 * 411 / 250) * 2_000,
        most=most_in * 1_000 + most_out * 2_000,
        seconds=16.0,
    )


def test_short_replies_and_no_repair_cost_less(store: Store) -> None:
    (found,) = forecast(store, planned(store, judge("j", 100, repair="0")), {"j": PRICE}).judges
    shown = TEXTS + FRAME
    assert found.input_tokens == 2 * shown + 4 * 100
    assert found.output_tokens == 4 * 100 + 4 * 4
    assert found.most == 2 * (2 * 2 * shown + 4 * 200) * 1_000 + 4 * 2 * (100 + 200) * 2_000
    assert found.seconds is None


def test_judges_come_by_name_each_at_its_own_price_and_a_free_one_costs_nothing(store: Store) -> None:
    made = planned(store, judge("paid"), judge("free"), judge("dear"))
    dear = TokenPrice(2 * PRICE.input, 2 * PRICE.output)
    by_judge = forecast(store, made, {"paid": PRICE, "free": FREE, "dear": dear}).judges
    assert [one.judge for one in by_judge] == ["dear", "free", "paid"]
    twice, nothing, once = by_judge
    assert (nothing.expected, nothing.most) == (0, 0)
    assert nothing.calls == once.calls == 8
    assert (twice.expected, twice.most) == (2 * once.expected, 2 * once.most)
    assert 0 < once.expected < once.most


def test_what_is_settled_or_failed_is_no_longer_counted(store: Store) -> None:
    made = planned(store, judge("j", rate=60), judge("k", rate=60))
    prices = {"j": PRICE, "k": PRICE}
    mine, other = sorted(made.judges, key=lambda number: made.judges[number].name)
    left = trial_states.pending_trials(store, made.id).of(mine).trials.tolist()
    before = forecast(store, made, prices).judges
    settle(store, made, left[:2], left[2:3])
    first, second = forecast(store, made, prices).judges
    assert (first.trials, first.calls, first.seconds) == (1, 2, 2.0)
    assert first.input_tokens == before[0].input_tokens // 4
    assert second == before[1]
    settle(store, made, left[3:] + trial_states.pending_trials(store, made.id).of(other).trials.tolist(), [])
    for one in forecast(store, made, prices).judges:
        assert (one.trials, one.calls, one.low, one.expected, one.high, one.most, one.seconds) == (
            0,
            0,
            0,
            0,
            0,
            0,
            0.0,
        )


def test_a_pardoned_failure_is_counted_again(store: Store) -> None:
    made = planned(store, judge("j"))
    settle(store, made, [], trial_states.pending_trials(store, made.id).trials.tolist()[:1])
    assert forecast(store, made, {"j": PRICE}).judges[0].trials == 3
    plans.clear_failures(store, made.id)
    assert forecast(store, made, {"j": PRICE}).judges[0].trials == 4


def test_at_most_is_what_the_dearest_endpoint_costs(store: Store) -> None:
    """Before anything is sent a budget reserves that much, and an outage may send every call there."""
    plain = judge("plain")
    (first,) = plain.lane.routes
    dear = replace(
        first, base_url="https://other.example/v1", rank=1, price=TokenPrice(PRICE.input * 3, PRICE.output * 3)
    )
    backed = replace(plain, name="backed", options={**plain.options, "max_tokens": "401"})
    backed = replace(backed, lane=replace(plain.lane, routes=(first, dear)))
    alone = replace(backed, name="alone", options={**plain.options, "max_tokens": "401", "repair": "1"})
    alone = replace(alone, lane=plain.lane)
    found = forecast(store, planned(store, backed, alone), {"backed": PRICE, "alone": PRICE}).judges
    one = {entry.judge: entry for entry in found}
    assert one["backed"].most == 3 * one["alone"].most
    assert one["backed"].expected == one["alone"].expected


def test_a_judge_that_is_shown_reference_answers_is_forecast_with_them(store: Store) -> None:
    importing.add(store, [Instruction(name, (name * 8,), "r" * 4_000) for name in ("q1", "q2")])
    without, shown = (
        replace(judge(name, max_tokens=4, repair="0"), protocol=name) for name in ("direct", "direct-reference")
    )
    by_judge = forecast(store, planned(store, without, shown), {"direct": PRICE, "direct-reference": PRICE}).judges
    frames = [sum(len(text) for _, _, text in PROTOCOLS[one.protocol].texts(one.options)) for one in (without, shown)]
    more = by_judge[1].input_tokens - by_judge[0].input_tokens
    assert more == pytest.approx(4 * 1_000 + 4 * (frames[1] - frames[0]) // 4, abs=1)


CHEAP_CACHE = TokenPrice(PRICE.input, PRICE.output, cached=PRICE.input // 10)
RESERVED = 500_000


@pytest.fixture
def unlike(tmp_path: Path) -> Iterator[Store]:
    """A store with forty instructions of unlike lengths, each answered by two models."""
    names = [f"q{n:02}" for n in range(40)]
    questions = [Instruction(name, (name * (10 + 5 * (n % 7)),)) for n, name in enumerate(names)]
    ash, birch = (
        [Completion(model, name, model * (200 + 100 * (n % 5))) for n, name in enumerate(names)]
        for model in ("ash", "birch")
    )
    with open_with(tmp_path / "unlike.duckdb", questions, ash, birch) as opened:
        yield opened


def answer(store: Store, made: PlannedCampaign, trials: list[int], *, seed: int, retried: bool = False) -> int:
    """Settle trials with two calls each: half a token a character, a fifth of it cached, half of the replies thought.

    Returns what that cost.
    """
    rng = np.random.default_rng(seed)
    sent = datetime(2026, 1, 1, tzinfo=UTC)

    def fail(error: Exception) -> None:
        raise error

    async def main() -> int:
        recorder = Recorder(store, made.id, 1, group_rows=500, group_seconds=0.001, on_error=fail, workers=4)

        async def record(trial: int, step: int, number: int, reply: Reply | None, cost: int | None) -> None:
            slot = await recorder.announce(trial, step, number, 1, Amount(1, RESERVED, 100))
            fault = Fault.TRANSIENT if reply is None else Fault.NONE
            of = (trial, step, number, 1, sent, 0.5, 0.0, RESERVED, 100, cost, b"d" * 16, fault)
            recorder.attempt(AttemptRecord(*of, reply=reply), slot)

        paid = 0
        for pending in trial_states.load(store, np.array(trials)):
            shown = sum(len(one.text) for one in pending.shown) + len(pending.instruction.turns[0]) + 4 + FRAME
            for step, usual in ((1, 300), (2, 10)):
                given, said = shown // 4, int(usual * rng.uniform(0.8, 1.2))
                cost = CHEAP_CACHE.cost(given, said, given // 5, written_tokens=0)
                reply = Reply("1", "stop", "", given, said, cached_tokens=given // 5, reasoning_tokens=said // 2)
                if retried:
                    await record(pending.id, step, 1, None, None)
                await record(pending.id, step, 1 + retried, reply, cost)
                paid += cost + retried * RESERVED
            recorder.verdict(pending.id, Verdict(b"t" * 16, Status.OK, 1), 0)
        await recorder.close()
        return paid

    return asyncio.run(main())


def in_parts(store: Store, made: PlannedCampaign, first: int, seed: int) -> tuple[list[int], list[int]]:
    trials = np.random.default_rng(seed).permutation(trial_states.pending_trials(store, made.id).trials).tolist()
    return trials[:first], trials[first:]


@pytest.mark.parametrize("retried", [False, True])
def test_what_is_on_record_of_a_judge_says_what_the_rest_takes(unlike: Store, retried: bool) -> None:
    made = planned(unlike, judge("j"))
    pilot, rest = in_parts(unlike, made, 30, 1)
    answer(unlike, made, pilot, seed=1, retried=retried)
    (found,) = forecast(unlike, made, {"j": CHEAP_CACHE}).judges
    assert (found.trials, found.learnt) == (50, 30)
    assert found.calls == 50 * 2 * (1 + retried)
    assert found.waiting == pytest.approx(found.calls * 0.5 / 16)
    assert found.paid_over_price == pytest.approx(1.0, abs=1e-3)
    paid = answer(unlike, made, rest, seed=2, retried=retried)
    assert found.expected == pytest.approx(paid, rel=0.03)
    assert found.low < paid < found.high < found.most
    assert found.high - found.low < 0.1 * paid
    assert found.cached_tokens == pytest.approx(found.input_tokens / 5, rel=0.01)
    assert found.reasoning_tokens == pytest.approx(found.output_tokens / 2, rel=0.02)


def test_low_and_high_hold_nine_times_in_ten(unlike: Store) -> None:
    """Of what a trial takes by chance: texts, and replies of a length of their own."""
    made = planned(unlike, judge("j"))
    paid = answer(unlike, made, trial_states.pending_trials(unlike, made.id).trials.tolist(), seed=1)
    record, rng, hits = on_record(unlike, made.judges), np.random.default_rng(1), 0
    ((number, whole),) = record.items()
    assert int(whole.trials.sum()) == 80
    assert int(whole.paid.sum()) == paid
    for _ in range(400):
        chosen = rng.permutation(40)
        learnt, left = chosen[:10], chosen[10:]
        part = OnRecord(*(getattr(whole, one.name)[learnt] for one in fields(whole)))
        texts = int(whole.characters[left].sum())
        found = judge_forecast(CallCost(made.judges[number], CHEAP_CACHE, part), int(whole.trials[left].sum()), texts)
        hits += found.low <= int(whole.paid[left].sum()) <= found.high
    assert 0.84 < hits / 400 <= 0.97


def test_one_judges_record_says_nothing_of_another_and_few_instructions_say_too_little(unlike: Store) -> None:
    made = planned(unlike, judge("j"), judge("k", max_tokens=300))
    prices = {"j": CHEAP_CACHE, "k": CHEAP_CACHE}
    before = forecast(unlike, made, prices).judges
    mine = (
        trial_states.pending_trials(unlike, made.id)
        .of(min(made.judges, key=lambda one: made.judges[one].name))
        .trials.tolist()
    )
    answer(unlike, made, mine[:6], seed=1)  # two of each instruction
    few = forecast(unlike, made, prices).judges
    assert [one.learnt for one in few] == [0, 0]
    answer(unlike, made, mine[6:12], seed=2)
    after = forecast(unlike, made, prices).judges
    assert [one.learnt for one in after] == [12, 0]
    assert after[1] == before[1]


def test_a_trial_that_began_before_the_attempts_that_are_read_is_no_example(
    unlike: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = planned(unlike, judge("j"))
    answer(unlike, made, trial_states.pending_trials(unlike, made.id).trials.tolist(), seed=1)
    monkeypatch.setattr("venire.storage.plans.usage._ATTEMPTS", 41)
    ((_, record),) = on_record(unlike, made.judges).items()
    assert int(record.trials.sum()) == 20
    assert int(record.calls.sum()) == 40
    monkeypatch.setattr("venire.storage.plans.usage._AT_ONCE", 7)  # and its calls may be read in two parts
    ((_, again),) = on_record(unlike, made.judges).items()
    assert [getattr(again, one.name).tolist() for one in fields(again)] == [
        getattr(record, one.name).tolist() for one in fields(record)
    ]
