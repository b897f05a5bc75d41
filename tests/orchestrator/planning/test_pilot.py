"""A pilot asks few trials of the plan itself, of every judge, spread over instructions and models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

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
)
from venire.arena.records import Completion, Instruction
from venire.orchestrator.designs import PlannedCampaign
from venire.orchestrator.planning.pilot import pilot_trials
from venire.orchestrator.planning.plan import plan_campaign
from venire.storage.plans import trial_states
from venire.storage.store.store import Store

MODELS = ("ash", "birch", "cedar", "dogwood")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    names = [f"q{n:02}" for n in range(12)]
    questions = [Instruction(name, (f"Say {name}.",)) for name in names]
    answers = [Completion(model, name, model + name) for model in MODELS for name in names]
    with open_with(tmp_path / "c.duckdb", questions, answers) as opened:
        yield opened


def judge(name: str, protocol: str = "two-stage") -> JudgeSettings:
    lane = LaneSettings((RouteSettings("openai", None, None, name),))
    return JudgeSettings(name, name, protocol, {"max_tokens": "400"}, lane)


def planned(
    store: Store, *judges: JudgeSettings, repeats: int = 1, orders: Literal["both", "random"] = "both"
) -> PlannedCampaign:
    plan = PlanSettings((PhaseSettings("all-pairs", matchups=None),), repeats=repeats, orders=orders)
    path = Path("c.toml")
    return plan_campaign(
        store, CampaignSettings("c", 1, path, store.path, DataSettings(), plan, judges, BudgetSettings(), "", "same")
    )


def shown(store: Store, trials: NDArray[np.int64]) -> list[trial_states.PendingTrial]:
    return trial_states.load(store, trials)


def settle(store: Store, trials: list[int]) -> None:
    with store.commit() as commit:
        commit.run("insert_reading", parser="test", now=store.clock.wall())
        commit.append("verdict", [(trial, 1, 1, "", None, None, None, None, False, False, 0) for trial in trials])


def test_every_judge_is_asked_so_many_on_as_many_instructions_as_there_are(store: Store) -> None:
    made = planned(store, judge("j"), judge("k"))
    trials = pilot_trials(store, made, 24)
    rows = shown(store, trials)
    assert len(set(trials.tolist())) == len(trials) == 48
    for number in made.judges:
        its = [one for one in rows if one.respondent == number]
        assert len(its) == 24
        assert set(Counter(one.instruction_number for one in its).values()) == {2}
        models = Counter(one.model for row in its for one in row.shown)
        assert max(models.values()) - min(models.values()) <= 4


def test_battles_are_whole_and_the_same_for_all_judges(store: Store) -> None:
    made = planned(store, judge("j"), judge("k"))
    rows = shown(store, pilot_trials(store, made, 7))
    battles = Counter((one.instruction_number, frozenset(part.model for part in one.shown)) for one in rows)
    assert set(battles.values()) == {4}  # two orders, two judges
    assert len(battles) == 4  # 7 is no even number: the last battle is taken whole


def test_what_is_settled_counts_and_is_not_asked_again(store: Store) -> None:
    made = planned(store, judge("j"))
    first = pilot_trials(store, made, 6)
    settle(store, first.tolist())
    assert not len(pilot_trials(store, made, 6))
    more = pilot_trials(store, made, 10)
    assert len(more) == 4
    assert not set(more.tolist()) & set(first.tolist())


def test_a_pilot_that_was_stopped_goes_on_with_the_battles_that_it_began(store: Store) -> None:
    made = planned(store, judge("j"), judge("k"))
    rows = shown(store, pilot_trials(store, made, 24))
    battle = {one.id: (one.instruction_number, frozenset(part.model for part in one.shown)) for one in rows}
    begun = set(list(dict.fromkeys(battle.values()))[:5])
    settle(store, [trial for trial, its in battle.items() if its in begun])
    left = {trial for trial, its in battle.items() if its not in begun}
    assert set(pilot_trials(store, made, 24).tolist()) == left


def test_every_judge_has_its_number_though_they_have_unlike_battles_left(store: Store) -> None:
    made = planned(store, judge("j"), judge("k"), orders="random")
    rows = shown(store, trial_states.pending_trials(store, made.id).trials)
    own = {number: [one.id for one in rows if one.respondent == number] for number in made.judges}
    first, second = made.judges
    settle(store, own[first][:30] + own[second][30:60])
    asked = Counter(one.respondent for one in shown(store, pilot_trials(store, made, 66)))
    assert asked == {first: 36, second: 36}


def test_the_first_repeat_alone_is_asked(store: Store) -> None:
    made = planned(store, judge("j"), repeats=3)
    assert {one.repeat for one in shown(store, pilot_trials(store, made, 20))} == {1}


def test_judges_of_single_answers_are_spread_as_well(store: Store) -> None:
    made = planned(store, judge("g", "direct"), judge("l", "listwise"))
    rows = shown(store, pilot_trials(store, made, 12))
    for number in made.judges:
        its = [one for one in rows if one.respondent == number]
        assert len({one.instruction_number for one in its}) == len(its) == 12


def test_a_seed_draws_the_same_and_another_draws_others(store: Store) -> None:
    made = planned(store, judge("j"))
    one, again, other = (pilot_trials(store, made, 12, seed=seed).tolist() for seed in (1, 1, 2))
    assert one == again
    assert set(one) != set(other)


def test_a_pilot_larger_than_the_plan_is_the_plan(store: Store) -> None:
    made = planned(store, judge("j"))
    assert len(pilot_trials(store, made, 10_000)) == made.trials
