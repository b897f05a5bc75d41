"""What verdicts follow beside the answers, and judges as a panel: honest campaigns, and planted faults."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.ratings.agreement.test_judge_agreement import spoiled
from tests.ratings.peers.test_family_preference import favoured
from tests.ratings.simulated import campaign
from venire.arena.battles import Battles
from venire.ratings.data.judgments import merge_orders, select_battles
from venire.reports.audit.audit import word
from venire.reports.audit.bias import check_length, check_order, check_own_family
from venire.reports.audit.finding import Case, Finding
from venire.reports.audit.panel import check_agreement, check_alike, check_coins, check_drift, check_people

Check = Callable[[Case], Finding]
CHECKS: tuple[Check, ...] = (check_order, check_length, check_own_family, check_drift, check_agreement, check_alike)


def lengthy(battles: Battles, seed: int = 0) -> NDArray[np.float64]:
    """Length of A's answer less B's; each model has one answer an instruction."""
    of = np.random.default_rng(seed).normal(0.0, 1.0, (len(battles.instructions), len(battles.models)))
    return np.asarray(of[battles.instruction, battles.model_a] - of[battles.instruction, battles.model_b])


def case(battles: Battles, seed: int = 0) -> Case:
    """Judges that are two of the models, one of a model's family, and others; times at random; lengths."""
    peers = {"judge 0": "m00", "judge 1": "m01"}
    told = replace(battles, features={"length": lengthy(battles, seed)}, peers=peers)
    when = np.random.default_rng(seed).random(len(battles.label)) * 1e5
    return Case(
        told, merge_orders(told), families={"m02": "x"}, judge_families={"judge 2": "x"}, seconds=when, planned=None
    )


def test_a_judge_of_places_is_named() -> None:
    found = check_order(case(campaign(1, first=(0.0, 1.2, 0.0))))
    assert found.worry is True
    assert found.says.startswith("judge 1 gives 68%")
    assert "first place and turns" in found.says
    assert found.details["judges"][0]["judge"] == "judge 1"
    assert found.details["place_held_equal"]["logits"] > 0.1
    second = check_order(case(campaign(1, first=(0.0, -1.2, 0.0))))
    assert "second place" in second.says


def test_a_share_that_was_fitted_says_so_beside_the_one_that_was_given() -> None:
    """With one order alone, the better model may have stood first: a reader who counts finds another share."""
    found = check_order(case(campaign(1, both=False, instructions=200, first=(0.0, -0.9, 0.0))))
    (mine,) = [row for row in found.details["judges"] if row["judge"] == "judge 1"]
    assert mine["fitted"] is True
    shares = f"{1.0 - mine['first']:.0%}", f"{1.0 - mine['counted']:.0%}"
    said = "judge 1 gives {} of verdicts between equals (fitted) to the second place, {} of those that were given"
    assert found.says.startswith(said.format(*shares))


def test_winners_that_change_without_flips_are_told() -> None:
    found = check_order(case(campaign(1, first=(1.0, 1.0, 1.0))))
    assert {"leader", "leader_without_flips"} <= set(found.details)


def test_longer_answers_that_win_are_told_with_what_it_changes() -> None:
    battles = campaign(2, instructions=150)
    gap = lengthy(battles)
    rng = np.random.default_rng(1)
    label = np.where(rng.random(len(gap)) < 0.3, np.sign(gap), battles.label).astype(np.int8)
    found = check_length(case(replace(battles, label=label)))
    assert found.worry is True
    assert found.says.startswith("the longer answer wins far more often than")
    assert "with length held equal" in found.says
    shorter = check_length(case(replace(battles, label=np.where(label == np.sign(gap), -label, label).astype(np.int8))))
    assert shorter.says.startswith("the shorter answer wins")


def test_a_column_of_lengths_goes_by_several_names() -> None:
    battles = campaign(2)
    for name in ("n_chars", "answer_length", "words"):
        told = replace(battles, features={"style": np.zeros(len(battles.label)), name: lengthy(battles)})
        assert check_length(Case(told, merge_orders(told))).details["column"] == name
    nothing = check_length(Case(battles, merge_orders(battles)))
    assert nothing.worry is None
    assert "--covariate length" in nothing.says


def test_a_judge_that_favours_its_own_is_named_with_what_others_give() -> None:
    battles = campaign(3, judges=4, instructions=150)
    assert check_own_family(case(battles)).worry is False
    found = check_own_family(case(favoured(battles, 2, (2,), 0.3)))
    assert found.worry is True
    assert found.says.startswith("judge 2 gives m02")
    assert found.says.endswith("it favours its own")


def test_a_judge_that_changes_halfway_is_named() -> None:
    looked = case(campaign(4, instructions=120))
    assert check_drift(looked).worry is False
    assert looked.seconds is not None
    late = (looked.battles.judge == 1) & (looked.seconds > 5e4)
    late &= np.random.default_rng(1).random(len(late)) < 0.5
    battles = replace(looked.battles, label=np.where(late, 0, looked.battles.label).astype(np.int8))
    found = check_drift(replace(looked, battles=battles, judgments=merge_orders(battles)))
    assert found.worry is True
    assert "judge 1's share of ties" in found.says
    assert "in time" in found.says


def test_a_file_that_is_sorted_is_no_drift() -> None:
    """Rows sorted by verdict change from the first to the last; without times nobody knows that they did in time."""
    battles = campaign(4, instructions=120)
    by_verdict = select_battles(battles, np.argsort(battles.label, kind="stable"))
    found = check_drift(Case(by_verdict, merge_orders(by_verdict)))
    assert found.worry is None
    assert found.says.startswith("no times are known, and rows may be sorted; after")
    assert "first rows to the last" in found.says
    assert found.details["by"] == "row"
    told = check_drift(Case(by_verdict, merge_orders(by_verdict), seconds=np.arange(float(len(by_verdict.label)))))
    assert told.worry is True


def test_a_judge_that_draws_lots_is_named() -> None:
    battles = campaign(5, judges=5, instructions=100)
    honest = check_agreement(case(battles))
    assert (honest.worry, honest.threshold, word(honest)) == (False, 0.667, "unsure")
    assert "below 0.667" in honest.says
    found = check_agreement(case(spoiled(battles, 3, None, 1.0)))
    assert found.worry is True
    assert found.says.startswith("judge 3 agrees least")
    lots = battles
    for judge in range(5):
        lots = spoiled(lots, judge, None, 1.0)
    rng = np.random.default_rng(0)
    none = check_agreement(case(replace(battles, label=rng.choice([-1, 1], len(battles.label)).astype(np.int8))))
    assert none.worry is True
    assert "hardly more than chance" in none.says


def test_a_judge_that_decides_like_a_coin_is_named() -> None:
    battles = campaign(5, judges=5, instructions=100)
    honest = check_coins(case(battles))
    assert (honest.worry, word(honest)) == (False, "fine")
    assert (honest.figure or 0.0) > 0.1
    found = check_coins(case(spoiled(battles, 3, None, 1.0)))
    assert found.worry is True
    assert found.says.startswith("judge 3's verdicts in both orders agree by")
    assert "no better than a coin" in found.says


def test_two_judges_that_copy_one_another_are_named() -> None:
    battles = campaign(6, judges=5, instructions=100)
    assert check_alike(case(battles)).worry is False
    found = check_alike(case(spoiled(battles, 4, 1, 0.8)))
    assert found.worry is True
    assert found.says.startswith("judge 1 and judge 4 agree")
    assert check_alike(case(campaign(6, judges=3))).worry is None


@pytest.mark.parametrize("check", CHECKS)
def test_what_cannot_be_looked_at_is_none_with_a_reason(check: Check) -> None:
    empty = select_battles(campaign(1), np.zeros(0, dtype=np.intp))
    ones: list[Case] = [Case(empty, merge_orders(empty))]
    alone = replace(campaign(1, judges=1, instructions=5), instructions=(), ordered=False)
    alone = replace(alone, instruction=np.full(len(alone.label), -1, dtype=np.int32))
    ones.append(Case(alone, merge_orders(alone)))
    for one in ones:
        found = check(one)
        assert found.worry is not True
        assert found.says
    assert check(ones[0]).worry is None


def test_details_are_plain_json_without_nan() -> None:
    for check in CHECKS:
        for judges in (1, 5):
            json.dumps(check(case(campaign(1, judges=judges))).details, allow_nan=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape",
    [
        {"judges": 5},
        {"models": 10, "instructions": 200, "battles": 12, "judges": 4},
        {"models": 4, "judges": 6, "instructions": 25},
        {"judges": 5, "both": False, "instructions": 100},
        {"judges": 5, "repeats": 3, "instructions": 40},
        {"judges": 5, "noise": 2.0, "first": (0.2, -0.2, 0.0, 0.1, 0.0)},
    ],
)
def test_honest_verdicts_seldom_worry(shape: dict[str, Any]) -> None:
    """At most 5 % of campaigns: 6 of 40 would be chance in 1 of 70 tries."""
    alarms: dict[str, int] = {}
    for seed in range(40):
        looked = case(campaign(2000 + seed, **shape), seed)
        for check in CHECKS:
            found = check(looked)
            alarms[found.check] = alarms.get(found.check, 0) + (found.worry is True)
    assert max(alarms.values()) <= 5, alarms


@pytest.mark.slow
def test_planted_faults_are_found_nearly_always() -> None:
    """Six faults in 20 campaigns each of 60 instructions, 5 judges and 1,530 judgments or so."""
    seen = dict.fromkeys(("order-effects", "length", "own-family", "drift", "judge-agreement", "alike-judges"), 0)
    for seed in range(20):
        battles = campaign(3000 + seed, judges=5)
        rng = np.random.default_rng(seed)
        looked = case(battles, seed)
        assert looked.seconds is not None
        gap = looked.battles.features["length"]
        longer = np.where(rng.random(len(gap)) < 0.25, np.sign(gap), battles.label).astype(np.int8)
        late = (battles.judge == 1) & (looked.seconds > 5e4) & (rng.random(len(gap)) < 0.5)
        changed = replace(battles, label=np.where(late, 0, battles.label).astype(np.int8))
        found = (
            check_order(case(campaign(3000 + seed, judges=5, first=(0.0, 0.9, 0.0, 0.0, 0.0)), seed)),
            check_length(case(replace(battles, label=longer), seed)),
            check_own_family(case(favoured(battles, 2, (2,), 0.4), seed)),
            check_drift(case(changed, seed)),
            check_agreement(case(spoiled(battles, 3, None, 1.0), seed)),
            check_alike(case(spoiled(battles, 4, 1, 0.8), seed)),
        )
        for one in found:
            seen[one.check] += one.worry is True
    assert min(seen.values()) >= 16, seen


def beside_people(seed: int, *, noise: float, judge: str = "judge 1") -> Case:
    """A campaign one of whose judges stands for people; a share `noise` of another's verdicts is drawn by lot."""
    table = campaign(seed, instructions=300)
    rng = np.random.default_rng(seed)
    theirs = table.judge == table.judges.index("judge 0")
    lots = (table.judge == table.judges.index(judge)) & (rng.random(len(theirs)) < noise)
    label = np.where(lots, rng.integers(-1, 2, len(theirs)), table.label).astype(np.int8)
    spoilt = replace(table, label=label)
    people = select_battles(spoilt, theirs)
    judges = replace(select_battles(spoilt, ~theirs), people=people)
    return Case(judges, merge_orders(judges))


def test_a_judge_that_does_not_side_with_people_is_named() -> None:
    honest, odd = check_people(beside_people(3, noise=0.0)), check_people(beside_people(3, noise=1.0))
    assert (honest.worry, odd.worry) == (False, True)
    assert honest.figure is not None
    assert odd.figure is not None
    assert odd.figure < 0.55 < honest.figure
    assert odd.says.startswith("judge 1 names people's winner in ")
    assert odd.says.endswith("hardly more often than lots would")
    (first, second) = odd.details["judges"]
    assert first["judge"] == "judge 1"
    assert first["lo"] < 0.5 < first["hi"] < 0.55 < second["agreement"]


def test_people_who_tie_often_are_no_worry() -> None:
    """Their kappa with any judge is small, and so it is among themselves: most of their ties are not the judge's."""
    given = beside_people(2, noise=0.0)
    people = given.battles.people
    assert people is not None
    ties = np.random.default_rng(3).random(len(people.label)) < 0.8
    tied = replace(people, label=np.where(ties, 0, people.label).astype(np.int8))
    found = check_people(replace(given, battles=replace(given.battles, people=tied)))
    assert found.worry is False
    assert found.details["judges"][0]["kappa"] < 0.1


def test_without_enough_votes_nothing_is_said_of_people() -> None:
    given = beside_people(2, noise=1.0)
    assert given.battles.people is not None
    few = replace(given.battles, people=select_battles(given.battles.people, np.arange(10)))
    assert check_people(replace(given, battles=few)).says == "no judge shares 30 decided votes with people"
    none = check_people(replace(given, battles=replace(given.battles, people=None)))
    assert none.worry is None
    assert "venire import votes" in none.says


def test_people_are_one_of_the_judges_and_not_said_to_judge_by_nothing() -> None:
    """Where people differ from judges who agree, the judges' common taste may be the fault."""
    given = beside_people(2, noise=0.0)
    people = given.battles.people
    assert people is not None
    lots = np.random.default_rng(1).integers(-1, 2, len(people.label)).astype(np.int8)
    apart = replace(given.battles, people=replace(people, label=lots))
    found = check_agreement(replace(given, battles=apart))
    assert found.worry is True
    assert found.says.startswith("people agrees least with the others")
    assert found.says.endswith("judges share what people do not see, or these vote by lot")
