"""Whether judges change while a campaign runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.ratings.simulated import campaign
from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.records import Status
from venire.ratings.judges.drift import Drift, drift, rating_drift

COLUMNS = ("model_a", "model_b", "judge", "instruction", "repeat", "swapped", "status", "label")


def at_random(battles: Battles, seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).random(len(battles.label)) * 1e5


def strongest(found: tuple[Drift, ...]) -> Drift:
    return max(found, key=lambda one: one.change.beyond(0.0))


def test_a_judge_that_turns_to_the_first_place_late_is_found_at_its_cut() -> None:
    battles = campaign(1, instructions=120, judges=3)
    when = at_random(battles)
    late = (battles.judge == 1) & (when > 5e4) & (np.random.default_rng(1).random(len(when)) < 0.5)
    label = np.where(late, np.where(battles.swapped, -1, 1), battles.label).astype(np.int8)
    found = strongest(drift(replace(battles, label=label), when))
    assert (found.judge, found.habit, found.cut) == ("judge 1", "first place", 0.5)
    assert found.matched
    assert found.change.value == pytest.approx(0.25, abs=0.1)
    assert found.late - found.early > 0.15


@pytest.mark.parametrize(("habit", "status", "label"), [("readable", Status.UNREADABLE, 0), ("ties", Status.OK, 0)])
def test_ties_and_lost_verdicts_that_grow_are_found(habit: str, status: Status, label: int) -> None:
    battles = campaign(2, instructions=120, judges=1)
    when = at_random(battles)
    late = (when > 7.5e4) & (np.random.default_rng(1).random(len(when)) < 0.4)
    changed = replace(
        battles,
        status=np.where(late, status, battles.status).astype(np.int8),
        label=np.where(late, label, battles.label).astype(np.int8),
    )
    found = strongest(drift(changed, when))
    assert (found.habit, found.cut, found.matched) == (habit, 0.75, False)
    assert (found.change.value or 0.0) * (1.0 if habit == "ties" else -1.0) > 0.25


def test_a_plan_that_asks_one_pair_after_another_is_no_drift() -> None:
    """Rows sorted by pair: judges tie more on close pairs, which stand late."""
    battles = campaign(3, models=5, strength=[2.0, 1.5, 0.0, 0.0, 0.0], instructions=150, judges=1, ties=0.0)
    order = np.lexsort((battles.swapped, battles.instruction, battles.model_b, battles.model_a))
    by_pair = replace(battles, **{name: getattr(battles, name)[order] for name in COLUMNS})
    close = (by_pair.model_a >= 2) & (np.random.default_rng(0).random(len(order)) < 0.5)
    tied = replace(by_pair, label=np.where(close, 0, by_pair.label).astype(np.int8))
    assert all(one.change.beyond(0.0) < 4.0 for one in drift(tied))


def test_harder_instructions_late_are_no_drift_of_a_judge_beside_others() -> None:
    battles = campaign(4, instructions=150, judges=3, ties=0.0)
    hard = (battles.instruction >= 75) & (np.random.default_rng(0).random(len(battles.label)) < 0.5)
    order = np.argsort(battles.instruction, kind="stable")
    tied = replace(battles, label=np.where(hard, 0, battles.label).astype(np.int8))
    by_time = replace(tied, **{name: getattr(tied, name)[order] for name in COLUMNS})
    ties = [one for one in drift(by_time) if one.habit == "ties" and one.cut == 0.5]
    assert all(one.late - one.early > 0.4 for one in ties)
    assert all(one.matched and one.change.beyond(0.0) < 3.5 for one in ties)


def test_changes_of_an_honest_judge_have_errors_that_hold() -> None:
    """Of 500 changes about 5 % are beyond two standard errors."""
    beyond = []
    for seed in range(15):
        battles = campaign(100 + seed, instructions=40, judges=3)
        beyond += [one.change.beyond(0.0) > 2.02 for one in drift(battles, at_random(battles, seed))]
    assert len(beyond) > 400
    assert 0.02 < np.mean(beyond) < 0.085


def test_too_few_instructions_say_nothing() -> None:
    battles = campaign(1, instructions=15)
    assert drift(battles, at_random(battles)) == ()
    with pytest.raises(InputError, match="too few to tell a change of ratings"):
        rating_drift(battles, at_random(battles))


def test_ratings_that_change_halfway_are_named() -> None:
    battles = campaign(5, strength=[0.5, 0.0, 0.0, 0.0, 0.0, -0.5], instructions=200)
    when = at_random(battles)
    late = (when > 5e4) & (np.random.default_rng(2).random(len(when)) < 0.6)
    label = battles.label.copy()
    label[late & (battles.model_a == 3)] = 1
    label[late & (battles.model_b == 3)] = -1
    found = rating_drift(replace(battles, label=label), when)
    assert found.model == "m03"
    assert found.leaders == ("m00", "m03")
    assert found.points > 5.0 * found.se > 0.0


def test_both_orders_of_a_battle_are_taken_together_whatever_place_does() -> None:
    """The file holds one order of all battles after the other, and the judge likes the first place."""
    battles = campaign(6, strength=[0.5, 0.0, -0.5], models=3, instructions=200, first=(1.5, 1.5, 1.5))
    # Of each battle, the order that shows the model of the higher number first comes first.
    order = np.argsort(~battles.swapped, kind="stable")
    found = rating_drift(replace(battles, **{name: getattr(battles, name)[order] for name in COLUMNS}))
    assert abs(found.points) < 4.0 * found.se


def test_times_of_another_length_are_refused_and_unknown_ones_left_out() -> None:
    battles = campaign(1)
    with pytest.raises(InputError, match="give a time for each"):
        drift(battles, [1.0, 2.0])
    when = at_random(battles)
    when[:50] = np.nan
    assert drift(battles, when)
    with pytest.raises(InputError, match="no two models in common"):
        rating_drift(battles, np.where(np.arange(len(when)) < 3, when + 1, np.nan))
