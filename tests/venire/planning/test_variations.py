"""What `venire simulate` compares: which rows there are, who judges in them, and how large their plans are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from venire.arena.budgets import BudgetSettings
from venire.arena.campaigns import CampaignSettings
from venire.arena.errors import InputError
from venire.configs.loading import load_campaign
from venire.experiments.contestants import made_up
from venire.experiments.variations import Axes, Variation, campaign_of, cross, simulated

Load = Callable[[str], CampaignSettings]

JUDGES = """
[[judge]]
name = "one"
model = "simulated/gpt-4-0613@4"
[[judge]]
name = "two"
model = "simulated/claude-3-opus@4"
protocol = "binary"
logprobs = true
"""
PLAN = "[plan]\npolicy = 'random'\nmatchups = 12\ninstructions = 6\n"
FIELD = made_up(6, 50)


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def write(text: str) -> CampaignSettings:
        path = tmp_path / "c.toml"
        path.write_text(text, encoding="utf-8")
        return load_campaign(path)

    return write


def test_options_are_crossed_and_without_any_a_second_policy_stands_beside_the_file(load: Load) -> None:
    campaign = load(PLAN + JUDGES)
    rows = cross(Axes(policies=("random", "all-pairs"), judges=(1, 2), budgets=((100, None), (200, None))), campaign)
    assert len(rows) == 8
    assert rows[0] == Variation("random", judges=1, calls=100)
    assert rows[0].name == "random, 1 judge, 100 calls"
    alone = cross(Axes(), campaign)
    assert alone[0] == Variation()
    assert alone[0].name == "as the file says"
    assert len(alone) == 2
    assert alone[1].policy not in (None, "random")
    assert [row.money for row in cross(Axes(budgets=((None, 10**9),)), campaign)] == [10**9, 10**9]
    assert len(cross(Axes(policies=("random", "random")), campaign)) == 1


def test_words_that_nothing_is_called_by_are_refused_with_those_that_are(load: Load) -> None:
    campaign = load(PLAN + JUDGES)
    with pytest.raises(InputError, match=r"no such policy; .*here are: .*widest-gap"):
        cross(Axes(policies=("widest",)), campaign)
    with pytest.raises(InputError, match="no protocol that rates models; there are: two-stage"):
        cross(Axes(protocols=("direct",)), campaign)
    with pytest.raises(InputError, match="names 2"):
        cross(Axes(judges=(3,)), campaign)


REAL = """
[[judge]]
model = "openai/gpt-4-0613"
key_variable = "KEY"
base_url = "https://one.example.com/v1"
requests_per_minute = 60
price = { input = 1.0, output = 2.0 }
[[judge]]
name = "other"
model = "m-2"
key_variable = "KEY"
base_url = "https://one.example.com/v1"
free = true
"""


def test_real_judges_are_replaced_by_their_namesake_or_on_request_and_it_is_said(load: Load) -> None:
    campaign = load(PLAN + REAL)
    with pytest.raises(InputError, match="'other' is a real model, 'm-2', and nothing real is asked"):
        simulated(campaign, [])
    first, second = simulated(campaign, ["bard"])
    assert (first.profile, second.profile) == ("gpt-4-0613", "bard")
    assert "gpt-4-0613 stands for openai/gpt-4-0613" in first.notes
    assert first.judge.model == "simulated/gpt-4-0613@0"
    assert first.judge.lane.routes[0].base_url is None
    assert first.judge.lane.routes[0].key_variable is None
    assert first.judge.lane.limits.requests_per_minute == 60
    assert first.judge.price is not None
    assert first.judge.price.input == 1_000_000_000
    named = simulated(campaign, ["other=vicuna-13b", "openai/gpt-4-0613=bard"])
    assert [one.profile for one in named] == ["bard", "vicuna-13b"]
    twins = simulated(campaign, ["other=gpt-4-0613"])
    assert [one.judge.model for one in twins] == ["simulated/gpt-4-0613@0", "simulated/gpt-4-0613@1"]
    assert any("agree less" in note for note in twins[1].notes)
    with pytest.raises(InputError, match="no such profile"):
        simulated(campaign, ["gpt-9"])
    with pytest.raises(InputError, match="names no judge 'nobody'"):
        simulated(campaign, ["nobody=bard"])


def test_seeds_differ_between_runs_and_are_shared_by_judges_and_variations(load: Load) -> None:
    campaign = load(PLAN + JUDGES)
    seats = simulated(campaign, [])
    plain, varied = (campaign_of(campaign, seats, FIELD, row, 0, None) for row in (Variation(), Variation("all-pairs")))
    later = campaign_of(campaign, seats, FIELD, Variation(), 1, None)
    assert [one.model for one in plain.judges] == [one.model for one in varied.judges]
    assert {one.model.rsplit("@")[-1] for one in plain.judges} == {"4"}
    assert {one.model.rsplit("@")[-1] for one in later.judges} == {"1000007"}
    assert (plain.seed, later.seed) == (0, 1)
    assert plain.data.completions is None
    assert plain.data.models == FIELD.models


def test_policies_are_compared_on_as_many_battles_as_the_file_plans(load: Load) -> None:
    campaign = load(PLAN + JUDGES)
    seats = simulated(campaign, [])
    wide = campaign_of(campaign, seats, FIELD, Variation("all-pairs"), 0, None)
    assert wide.plan.instructions == round(12 * 6 / 15)
    assert campaign_of(campaign, seats, FIELD, Variation(), 0, 36).plan.instructions == 3
    limited = campaign_of(campaign, seats, FIELD, Variation("all-pairs", calls=500), 0, None)
    assert limited.budget == BudgetSettings(calls=500)
    assert limited.plan.instructions is None  # until the calls are used up


def test_a_protocol_takes_its_own_options_alone_and_fewer_judges_are_the_first(load: Load) -> None:
    campaign = load(PLAN + JUDGES)
    seats = simulated(campaign, [])
    both = campaign_of(campaign, seats, FIELD, Variation(protocol="two-stage"), 0, None)
    assert [one.protocol for one in both.judges] == ["two-stage", "two-stage"]
    assert "logprobs" not in both.judges[1].options
    assert [one.name for one in campaign_of(campaign, seats, FIELD, Variation(judges=1), 0, None).judges] == ["one"]
    assert campaign_of(campaign, seats, FIELD, Variation(orders="random"), 0, None).plan.orders == "random"


def test_limits_of_judges_and_models_go_with_who_stands_for_them(load: Load) -> None:
    limits = "[budget]\ncalls = 900\n[budget.judge.other]\ncalls = 40\n[budget.model.'m-2']\ncalls = 50\n"
    campaign = load(PLAN + REAL + limits)
    seats = simulated(campaign, ["bard"])
    found = campaign_of(campaign, seats, FIELD, Variation(), 0, None)
    assert found.budget.calls == 900
    assert found.judge_budgets == {"other": BudgetSettings(calls=40)}
    assert found.model_budgets == {"simulated/bard@0": BudgetSettings(calls=50)}
    other = campaign_of(campaign, seats, FIELD, Variation(calls=70), 0, None)
    assert (other.budget, other.judge_budgets, other.model_budgets) == (BudgetSettings(calls=70), {}, {})


def test_money_that_nobody_would_be_paid_is_refused(load: Load) -> None:
    campaign = load(PLAN + '[[judge]]\nmodel = "simulated/bard@1"\n')
    with pytest.raises(InputError, match="all judges are free"):
        campaign_of(campaign, simulated(campaign, []), FIELD, Variation(money=10**9), 0, None)
