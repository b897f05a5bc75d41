"""Agreement of judges with people, against the figures of single columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from venire.ratings.agreement.chance_corrected import human_kappa
from venire.ratings.agreement.people_agreement import people_agreement
from venire.ratings.data.battles import battles
from venire.ratings.data.judgments import merge_orders


def test_a_judge_is_held_against_every_vote_on_its_battles() -> None:
    rng = np.random.default_rng(2)
    items = [f"q{number}" for number in range(120)]
    truth = rng.integers(0, 2, 120).astype(float)
    keen = np.where(rng.random(120) < 0.85, truth, 1 - truth)
    dull = rng.integers(0, 2, 120).astype(float)
    judged = battles(
        ["a"] * 240,
        ["b"] * 240,
        np.concatenate([keen, dull]),
        judge=["keen"] * 120 + ["dull"] * 120,
        instruction=items * 2,
    )
    ann, bob = (np.where(rng.random(120) < 0.9, truth, 1 - truth) for _ in range(2))
    people = battles(
        ["a"] * 200,
        ["b"] * 200,
        np.concatenate([ann, bob[:80]]),
        judge=["ann"] * 120 + ["bob"] * 80,
        instruction=items + items[:80],
    )
    found = people_agreement(merge_orders(judged), people)
    by_name = {one.judge: one for one in found.judges}
    assert (by_name["keen"].battles, by_name["keen"].votes) == (120, 200)
    y, human = np.concatenate([keen, keen[:80]]), np.concatenate([ann, bob[:80]])
    assert by_name["keen"].agreement == pytest.approx(np.mean(y == human))
    assert by_name["keen"].kappa.value == pytest.approx(human_kappa(y, human).value)
    assert by_name["keen"].kappa.value > 0.5 > abs(by_name["dull"].kappa.value)
    assert found.among.value == pytest.approx(2 * np.mean(ann[:80] == bob[:80]) - 1, abs=0.05)
    assert found.alpha.value < found.among.value


def test_alpha_takes_people_for_one_judge_by_their_mean_vote() -> None:
    judge = battles(["a"] * 4, ["b"] * 4, [1, 1, 0, 0], judge=["j"] * 4, instruction=list("wxyz"))
    crowd = battles(
        ["a"] * 12, ["b"] * 12, [1, 1, 0] * 2 + [0, 0, 1] * 2, judge=list("ABC") * 4, instruction=list("wwwxxxyyyzzz")
    )
    found = people_agreement(merge_orders(judge), crowd)
    assert found.alpha.value == pytest.approx(1.0), "the majority is always the judge's side"
    assert found.among.value is not None
    assert found.among.value < 0.5
    assert found.judges[0].agreement == pytest.approx(2.0 / 3.0)
    called = merge_orders(replace(judge, judges=("people",)))
    assert people_agreement(called, crowd).alpha.value == pytest.approx(1.0)


def test_ties_count_in_kappa_and_in_no_share_of_winners() -> None:
    """Two people differ on one battle, and one of them ties the other, as the judge does."""
    judge = battles(["a", "a"], ["b", "c"], [1, 0.5], judge=["j", "j"], instruction=["q", "r"])
    people = battles(["b", "a", "c"], ["a", "b", "a"], [1, 1, 0.5], judge=["A", "B", "A"], instruction=["q", "q", "r"])
    found = people_agreement(merge_orders(judge), people)
    (one,) = found.judges
    assert (one.battles, one.votes, one.decided, one.agreement) == (2, 3, 2, 0.5)
    assert one.kappa.observed == pytest.approx(2.0 / 3.0), "a tie of both agrees"
    assert found.among.items == 1, "one battle has two annotators"
    voted = battles(["a"], ["c"], [1], judge=["A"], instruction=["r"])
    (tied,) = people_agreement(merge_orders(judge), voted).judges
    assert (tied.votes, tied.decided, tied.agreement, tied.agreement_lo) == (1, 0, None, None)


def test_people_are_held_against_one_another_as_judges_are() -> None:
    rng = np.random.default_rng(3)
    items = [f"q{number}" for number in range(90)]
    truth = rng.integers(0, 2, 90).astype(float)
    ann, bob = (np.where(rng.random(90) < 0.9, truth, 1 - truth) for _ in range(2))
    cat = rng.integers(0, 2, 90).astype(float)
    judged = merge_orders(battles(["a"] * 90, ["b"] * 90, truth, judge=["j"] * 90, instruction=items))
    people = battles(
        ["a"] * 270, ["b"] * 270, np.concatenate([ann, bob, cat]),
        judge=["ann"] * 90 + ["bob"] * 90 + ["cat"] * 90, instruction=items * 3,
    )  # fmt: skip
    found = people_agreement(judged, people)
    by_name = {one.judge: one for one in found.annotators}
    assert (by_name["cat"].battles, by_name["cat"].votes) == (90, 180)
    assert by_name["cat"].agreement == pytest.approx(np.mean([cat == ann, cat == bob]))
    expected = human_kappa(np.tile(ann, 2), np.concatenate([bob, cat])).value
    assert by_name["ann"].kappa.value == pytest.approx(expected)
    assert by_name["ann"].kappa.value > 0.3 > abs(by_name["cat"].kappa.value)
    assert found.together is not None
    assert (found.together.battles, found.together.votes) == (90, 540)
    assert found.together.agreement == pytest.approx(np.mean([ann == bob, ann == cat, bob == cat]))
    assert found.together.agreement_lo < found.together.agreement < found.together.agreement_hi
    assert found.together.kappa.value == pytest.approx(found.among.value, abs=0.01)


def test_one_person_s_votes_on_one_battle_are_no_agreement_of_people() -> None:
    judge = merge_orders(battles(["a", "a"], ["b", "b"], [1, 0], judge=["j", "j"], instruction=["q", "r"]))
    people = battles(["a", "a"], ["b", "b"], [1, 1], judge=["A", "A"], instruction=["q", "q"], repeat=[1, 2])
    found = people_agreement(judge, people)
    assert found.together is None
    assert found.annotators == ()
