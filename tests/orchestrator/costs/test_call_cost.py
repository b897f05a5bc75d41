"""One model of cost: what a forecast says of many trials is what a round is cut by, battle after battle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from venire.arena.budgets import Amount, BudgetSettings
from venire.arena.campaigns import JudgeSettings, LaneSettings, RouteSettings, TokenPrice
from venire.orchestrator.costs.budget import BudgetAccount, BudgetView
from venire.orchestrator.costs.call_cost import CallCost
from venire.orchestrator.costs.coverage import ChargedBattles, affordable
from venire.storage.plans.usage import OnRecord

PRICE = TokenPrice(3_000_000_000, 15_000_000_000, cached=300_000_000)


def judge(dearer: TokenPrice | None = None) -> JudgeSettings:
    routes = [RouteSettings("openai", None, key, "j", price=price) for key, price in (("A", None), ("B", dearer))]
    return JudgeSettings("j", "j", "two-stage", {"max_tokens": "400"}, LaneSettings(tuple(routes)))


def record(instructions: int = 6, *, charged: float = 1.0, replies: int = 90) -> OnRecord:
    """Four trials of each instruction, with calls that were repeated, some tokens from the cache, and one lost call."""
    of = np.arange(1, instructions + 1, dtype=np.int64)
    given, made, cached = 2_000 + 300 * of, replies * 4 + of, 500 + of
    cost = ((given - cached) * PRICE.input + cached * 300_000_000 + made * PRICE.output) / 1e6
    lost = np.where(of == 2, 7_000_000, 0)
    return OnRecord(
        trials=np.full(instructions, 4),
        characters=4_000 + 900 * of,
        calls=np.full(instructions, 9),
        answered=np.full(instructions, 8),
        input=given,
        cached=cached,
        output=made,
        reasoning=0 * of,
        unanswered=lost,
        paid=np.round(charged * cost).astype(np.int64),
        latency=800 * of,
    )


@pytest.mark.parametrize("known", [None, record(4), record()], ids=["expected", "too few", "learned"])
def test_battles_add_up_to_what_the_forecast_expects_of_their_trials(known: OnRecord | None) -> None:
    call = CallCost(judge(), PRICE, known)
    characters = np.array([900.0, 2_400.0, 15_000.0])
    battle, trials = call.battle(2), 2 * len(characters)
    usage, (_, expected, _) = (
        call.usage(trials, 2 * int(characters.sum())),
        call.interval(trials, 2 * int(characters.sum())),
    )
    assert battle.costs(characters).sum() == pytest.approx(expected, rel=1e-4)
    calls, _, tokens = battle.takes(characters).sum(axis=1)
    assert tokens == pytest.approx(usage.input + usage.output, rel=1e-4)
    assert calls == pytest.approx(usage.calls)
    assert bool(call.learned) == (known is not None and len(known.trials) >= 5)


def test_a_round_is_cut_by_what_was_charged_where_that_is_not_the_price() -> None:
    plain, dear = (CallCost(judge(), PRICE, record(charged=by)).battle(2) for by in (1.0, 2.0))
    assert dear.nano == pytest.approx(2.0 * plain.nano, rel=1e-6)
    assert dear.nano_a_character == pytest.approx(2.0 * plain.nano_a_character, rel=1e-6)
    assert (dear.tokens, dear.calls) == (plain.tokens, plain.calls)


def test_the_worst_call_shows_prompt_and_texts_a_byte_a_token_at_the_dearest_route() -> None:
    dearer = replace(PRICE, output=2 * PRICE.output)
    cheap, dear = (CallCost(judge(one), PRICE).worst_call(1_000) for one in (None, dearer))
    assert dear.tokens == cheap.tokens > 1_000 + 400
    assert dear.money - cheap.money == 400 * PRICE.output // 1_000_000
    longer = CallCost(judge(), PRICE).worst_call(1_500)
    assert longer.tokens - cheap.tokens == 500


def test_no_view_expects_more_than_the_worst() -> None:
    for known in (None, record()):
        call = CallCost(judge(), PRICE, known)
        assert call.usage(10, 20_000).cost(PRICE) < call.worst(10, 20_000)


def test_a_list_of_no_battles_is_covered_by_whatever_is_left() -> None:
    cost = CallCost(judge(), PRICE).battle(2)
    view = BudgetView([BudgetAccount("the budget", BudgetSettings(1, 1, 1), Amount(1, 1, 1))])
    assert affordable([ChargedBattles(cost, view, np.zeros(0), np.zeros(0))]) == (None, "")
