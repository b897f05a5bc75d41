"""What is left of a run: by lane, by the pace of late, within the budget, and of all the rounds of a plan."""

from __future__ import annotations

import math
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from venire.arena.battles import Statistics
from venire.arena.budgets import Amount, BudgetSettings
from venire.arena.campaigns import PhaseSettings, PlanSettings, StopSettings
from venire.orchestrator.costs.budget import BudgetAccount
from venire.orchestrator.run.time_left import FutureRounds, TimeLeft, affordable_trials, future_rounds
from venire.wording import time_left

MODELS = ("a", "b", "c", "d")


def judge(name: str, lane: str) -> Any:
    return SimpleNamespace(name=name, lane=SimpleNamespace(identity=lane))


def campaign(*phases: PhaseSettings, stop: StopSettings = StopSettings()) -> Any:
    return SimpleNamespace(plan=PlanSettings(phases, stop=stop), pair_judges=("j", "k"))


def planned(*sizes: int, phase: str = "plan", trials: int = 0) -> Any:
    """A plan of rounds of so many battles, each judged by two judges in both orders."""
    design = SimpleNamespace(models=MODELS, instructions=tuple(map(str, range(100))))
    rounds = [SimpleNamespace(design=SimpleNamespace(size=size, judges=()), phase=phase) for size in sizes]
    judges = {1: judge("j", "fast"), 2: judge("k", "slow")}
    return SimpleNamespace(design=design, rounds=rounds, trials=trials or 4 * sum(sizes), judges=judges)


def begun(plan: Any, future: FutureRounds = FutureRounds(), **missing: int) -> TimeLeft:
    found = TimeLeft(campaign(), {})
    found.begin(plan, {1: missing.get("j", 0), 2: missing.get("k", 0)}, Counter(), follows=False)
    found._future, found._rounds = future, future.rounds
    return found


def test_the_slowest_lane_says_when_a_run_is_through() -> None:
    left = begun(planned(50), j=100, k=100)
    assert left.outlook(0.0, Counter(), math.inf).seconds is None
    assert left.outlook(10.0, Counter(j=50), math.inf).seconds is None, "nothing is known of the slow one"
    assert left.outlook(20.0, Counter(j=100, k=10), math.inf).seconds == 180.0
    assert left.outlook(20.0, Counter(j=100, k=10), math.inf, closed=["slow"]).seconds == 0.0
    assert left.outlook(20.0, Counter(j=100, k=10), math.inf, silent=["k"]).seconds == 0.0


def test_the_pace_is_that_of_the_last_minute() -> None:
    left = begun(planned(500), j=1000)
    done = 0
    for second in range(201):
        done += 5 if second < 100 else 1
        found = left.outlook(float(second), Counter(j=done), math.inf).seconds
    assert found == pytest.approx(1000 - done, rel=0.05)


def test_later_rounds_take_the_pace_of_the_whole_run_with_its_pauses() -> None:
    left = begun(planned(50), FutureRounds(3, 600.0), j=100)
    left.outlook(0.0, Counter(), math.inf)
    found = left.outlook(20.0, Counter(j=100), math.inf)
    assert (found.seconds, found.at_most) == (120.0, False)
    assert left.outlook(50.0, Counter(j=100), math.inf).seconds == 300.0  # it plans
    left = begun(planned(50), FutureRounds(3, 600.0, may_stop=True), j=100)
    left.outlook(0.0, Counter(), math.inf)
    assert left.outlook(20.0, Counter(j=100), math.inf).at_most


def test_a_budget_ends_it_before() -> None:
    account = BudgetAccount("the budget", BudgetSettings(money=300), Amount(10, 100, 0))
    assert affordable_trials(account, 50) == 100.0
    assert affordable_trials(account, 0) == math.inf
    assert affordable_trials(BudgetAccount("b", BudgetSettings()), 50) == math.inf
    left = begun(planned(50), FutureRounds(3, 600.0), j=100)
    left.outlook(0.0, Counter(), math.inf)
    found = left.outlook(10.0, Counter(j=50), 100.0)
    assert (found.seconds, found.until_budget) == (20.0, True)
    assert left.outlook(10.0, Counter(j=50), 25.0).seconds == 5.0


@pytest.mark.parametrize(
    ("phases", "stop", "plan", "expected"),
    [
        ([PhaseSettings("information", battles=300, round=50)], StopSettings(), planned(50), FutureRounds(5, 1000.0)),
        ([PhaseSettings("information", battles=300, round=50)], StopSettings(), planned(300), FutureRounds()),
        ([PhaseSettings("information", round=50)], StopSettings(), planned(50), FutureRounds(11, 2200.0, True)),
        (
            [PhaseSettings("information", battles=300, round=50)],
            StopSettings(battles=100, top=1),
            planned(50),
            FutureRounds(1, 200.0, True),
        ),
        (
            [
                PhaseSettings("information", "first", battles=100, round=50),
                PhaseSettings("information", "next", battles=100, round=100),
            ],
            StopSettings(),
            planned(50, phase="first"),
            FutureRounds(2, 600.0),
        ),
        ([PhaseSettings("all-pairs")], StopSettings(), planned(600), FutureRounds()),
    ],
)
def test_the_rounds_that_may_follow_are_counted(
    phases: list[PhaseSettings], stop: StopSettings, plan: Any, expected: FutureRounds
) -> None:
    assert future_rounds(campaign(*phases, stop=stop), plan, {}) == expected


def test_what_is_left_is_said_honestly() -> None:
    assert time_left(Statistics()) == ""
    assert time_left(Statistics(seconds_left=7800.0, round=3, rounds=12)) == (
        "about 2.2 h left of the whole plan (round 3 of about 12)"
    )
    unknown = time_left(Statistics(seconds_left=None, round=1, rounds=12, at_most=True))
    assert unknown == "time left of the whole plan is not known yet (round 1 of at most 12)"
    assert time_left(Statistics(seconds_left=60.0, until_budget=True)) == "about 60 s until the budget is spent"
