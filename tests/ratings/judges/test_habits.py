"""What the planner is told of judges comes from their verdicts, and is modest where these are few."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.ratings.simulated import campaign
from venire.arena.battles import Battles
from venire.arena.planning import JudgeHabit
from venire.ratings.data.judgments import select_battles
from venire.ratings.judges.habits import planning_habits

STRENGTH = np.linspace(-1.5, 1.5, 6)


def habits(table: Battles, strength: np.ndarray = STRENGTH) -> dict[str, JudgeHabit]:
    return planning_habits(table, table.models, strength)


def of_judge(table: Battles, judge: int, slope: float, seed: int) -> Battles:
    """The same battles with the verdicts of one judge drawn anew, at this slope."""
    rng = np.random.default_rng(seed)
    gap = slope * (STRENGTH[table.model_a] - STRENGTH[table.model_b])
    drawn = np.where(rng.random(len(gap)) < 1.0 / (1.0 + np.exp(-gap)), 1, -1)
    return replace(table, label=np.where(table.judge == judge, drawn, table.label).astype(np.int8))


def test_a_lone_judge_has_a_slope_of_one_whatever_drew_the_ratings_together() -> None:
    table = campaign(1, judges=1, strength=STRENGTH, noise=0.0, ties=0.0)
    for factor in (0.5, 1.0, 2.0):
        assert habits(table, factor * STRENGTH)["judge 0"].slope == pytest.approx(1.0)


def test_slopes_of_judges_are_found_relative_to_their_mean() -> None:
    table = campaign(2, judges=2, strength=STRENGTH, noise=0.0, ties=0.0, instructions=1500)
    table = of_judge(of_judge(table, 0, 0.5, 3), 1, 1.5, 4)
    found = habits(table)
    assert found["judge 0"].slope == pytest.approx(0.5, abs=0.06)
    assert found["judge 1"].slope == pytest.approx(1.5, abs=0.06)
    few = habits(select_battles(table, np.arange(len(table.label)) < 8))
    assert all(abs(one.slope - 1.0) < 0.3 for one in few.values())


def test_the_pull_to_the_first_place_is_found_with_its_sign() -> None:
    table = campaign(5, judges=2, strength=STRENGTH, noise=0.0, ties=0.0, instructions=1000, first=(0.8, -0.4))
    found = habits(table)
    assert found["judge 0"].bias == pytest.approx(0.8, abs=0.1)
    assert found["judge 1"].bias == pytest.approx(-0.4, abs=0.1)
    few = habits(select_battles(table, np.arange(len(table.label)) < 8))
    assert all(abs(one.bias) < 0.3 for one in few.values())


def test_ties_are_counted_and_drawn_towards_none() -> None:
    table = campaign(6, judges=1, ties=0.3, instructions=500)
    assert habits(table)["judge 0"].ties == pytest.approx(0.3, abs=0.03)
    share = float(np.mean(table.label[:10] == 0))
    assert habits(select_battles(table, np.arange(10)))["judge 0"].ties == pytest.approx(share * 10 / 30)


def test_what_both_orders_share_beyond_the_ratings_is_found() -> None:
    alike = campaign(7, judges=1, strength=STRENGTH, noise=2.0, ties=0.0, instructions=600)
    apart = campaign(7, judges=1, strength=STRENGTH, noise=0.0, ties=0.0, instructions=600)
    label, seen = alike.label.copy(), alike.swapped
    label[seen] = label[~seen]  # rows of a battle stand in pairs: both orders say the same
    assert habits(replace(alike, label=label))["judge 0"].rho == pytest.approx(1.0, abs=0.02)
    assert habits(apart)["judge 0"].rho == pytest.approx(0.0, abs=0.04)
    assert 0.1 < habits(alike)["judge 0"].rho < 0.6
    label[seen] = -label[~seen]
    assert habits(replace(alike, label=label))["judge 0"].rho == -0.5


def test_what_is_not_there_is_not_told_of() -> None:
    table = campaign(8, judges=2)
    assert habits(select_battles(table, table.judge == 1)).keys() == {"judge 1"}
    unreadable = replace(table, status=np.ones_like(table.status))
    assert habits(unreadable) == {}
    assert planning_habits(table, table.models, np.full(6, np.nan)) == {}
    assert all(one.bias == 0.0 and one.rho == 0.0 for one in habits(replace(table, ordered=False)).values())


def test_habits_depend_on_neither_rows_nor_names_order() -> None:
    table = campaign(9, first=(0.5, 0.0, -0.5))
    turned = select_battles(table, np.random.default_rng(1).permutation(len(table.label)))
    turned = replace(
        turned, model_a=turned.model_b, model_b=turned.model_a, label=-turned.label, swapped=~turned.swapped
    )
    one, other = habits(table), habits(turned)
    for judge, habit in one.items():
        assert habit.slope == pytest.approx(other[judge].slope, abs=1e-9)
        assert habit.bias == pytest.approx(other[judge].bias, abs=1e-9)
        assert (habit.ties, habit.rho) == pytest.approx((other[judge].ties, other[judge].rho), abs=1e-9)
