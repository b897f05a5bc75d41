"""Verdicts beside right and wrong answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import comparisons
from venire.ratings.diagnostics.accuracy import (
    PAIR_KINDS,
    direct_accuracy,
    pair_kinds,
    paired_preference_shift,
    preference_shift,
    rate_by_kind,
)
from venire.ratings.pairwise.bradley_terry import bradley_terry


def test_kinds_of_pairs() -> None:
    kinds = pair_kinds([1, 0, 1, 0, 2, 1, 2], [0, 1, 1, 0, 1, 2, 2])
    assert [PAIR_KINDS[kind] for kind in kinds] == [
        *["discriminative"] * 2,
        *["non-discriminative"] * 2,
        *["unattempted"] * 3,
    ]


def test_each_kind_is_rated_on_its_own_rows() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, 600)
    b = (a + rng.integers(1, 3, 600)) % 3
    right = np.array([0.3, 0.5, 0.7])
    grade_a, grade_b = (rng.random(600) < right[a]).astype(int), (rng.random(600) < right[b]).astype(int)
    y = np.where(grade_a == grade_b, rng.random(600) < 0.5, grade_a > grade_b).astype(float)
    data = comparisons(a, b, y, cluster=np.arange(600) // 6)
    found = rate_by_kind(data, grade_a, grade_b)
    assert [one.kind for one in found] == ["all", *PAIR_KINDS]
    everything, discriminative, alike, silent = found
    assert everything.rows == discriminative.rows + alike.rows == 600
    assert discriminative.share == discriminative.rows / 600
    rows = grade_a != grade_b
    assert discriminative.ratings is not None
    assert discriminative.ratings.logits == pytest.approx(bradley_terry(data.select(rows)).logits)
    assert np.all(np.diff(discriminative.ratings.logits) > 0.5)
    assert alike.ratings is not None
    assert np.ptp(alike.ratings.logits) < 0.7
    assert (silent.rows, silent.ratings, silent.why) == (0, None, "there is no such pair")


def test_a_kind_without_a_common_estimate_says_why() -> None:
    data = comparisons([0, 0, 1], [1, 1, 0], [1, 1, 0.5])
    found = rate_by_kind(data, [1, 1, 1], [0, 0, 1])
    assert found[0].ratings is not None
    assert found[1].ratings is None
    assert "2 groups" in str(found[1].why)


def test_direct_accuracy_is_among_the_attempted() -> None:
    found = direct_accuracy(["b", "a", "a", "a", "a", "b"], [2, 1, 0, 2, 1, 2])
    assert found.models == ("a", "b")
    assert found.accuracy[0] == pytest.approx(2 / 3)
    assert found.se[0] == pytest.approx(np.std([1, 0, 1], ddof=1) / np.sqrt(3))
    assert np.isnan(found.accuracy[1])
    assert np.isnan(found.se[1])
    assert found.attempted.tolist() == [3, 0]
    assert found.graded.tolist() == [4, 2]


def test_the_published_effect_of_an_echo() -> None:
    """500 pairs: P(A) 0.29 with the echo on A, 0.81 on B; published -0.52 with 95 % from -0.57 to -0.46."""
    found = preference_shift(145, 500, 405, 500)
    assert found.shift == pytest.approx(-0.52)
    assert (found.lo, found.hi) == pytest.approx((-0.57, -0.46), abs=0.005)


def test_newcombe_interval() -> None:
    """Newcombe 1998, table II: 56/70 less 48/80 gives 0.0524 to 0.3339; 10/10 less 0/20 gives 0.6791 to 1."""
    first, last = preference_shift(56, 70, 48, 80), preference_shift(10, 10, 0, 20)
    assert (first.lo, first.hi) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert (last.lo, last.hi) == pytest.approx((0.6791, 1.0), abs=5e-5)
    back = preference_shift(48, 80, 56, 70)
    assert (back.shift, back.lo, back.hi) == pytest.approx((-first.shift, -first.hi, -first.lo))
    wide = preference_shift(56, 70, 48, 80, level=0.99)
    assert wide.lo < first.lo < first.hi < wide.hi


def test_the_interval_covers_the_truth() -> None:
    """95 % intervals over 4,000 draws of 30 and 40 pairs at 0.9 and 0.6."""
    rng = np.random.default_rng(0)
    draws = [
        preference_shift(a, 30, b, 40)
        for a, b in zip(rng.binomial(30, 0.9, 4000), rng.binomial(40, 0.6, 4000), strict=True)
    ]
    assert np.mean([one.lo <= 0.3 <= one.hi for one in draws]) == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pair_kinds([1, -1], [0, 0]), "grade_a, row 1: -1 is not a grade: give 1 correct"),
        (lambda: pair_kinds([1], [0, 0]), "grade_a has 1 rows, grade_b 2"),
        (lambda: rate_by_kind(comparisons([0], [1], [1]), [1, 1], [0, 0]), "2 grades of A and 1 comparisons"),
        (lambda: direct_accuracy(["a"], [1, 0]), "model has 1 rows, grade 2"),
        (lambda: direct_accuracy(["a"], ["A"]), "grade, row 0: A is not a grade"),
        (lambda: direct_accuracy(["a"], [1], [0, 1]), "cluster has 2 rows, grade 1"),
        (lambda: paired_preference_shift([], []), "one row each a pair"),
        (lambda: paired_preference_shift([1], [2]), "shares from 0 to 1"),
        (lambda: paired_preference_shift([1], [1], level=95), "level is 95"),
        (lambda: preference_shift(3, 2, 1, 2), "3 of 2 is not possible"),
        (lambda: preference_shift(0, 0, 1, 2), "0 of 0 is not possible"),
        (lambda: preference_shift(1, 2, 1, 2, level=95), "level is 95"),
    ],
)
def test_bad_input_is_named(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_an_interval_of_accuracy_has_a_width_and_stays_within_0_and_1() -> None:
    """All right, all wrong, one instruction: what Wald's interval gives no width, a bound beyond 1, and no error."""
    found = direct_accuracy(
        ["all"] * 20 + ["none"] * 20 + ["one"], [1] * 20 + [0] * 20 + [1], list(range(20)) * 2 + [0]
    )
    assert found.accuracy.tolist() == [1.0, 0.0, 1.0]
    assert (found.lo[0], found.hi[1]) == pytest.approx((0.820, 0.180), abs=0.001)
    assert (found.hi[0], found.lo[1]) == (1.0, 0.0)
    assert np.isnan([found.lo[2], found.hi[2], found.se[2]]).all()
    wide = direct_accuracy(["all"] * 20, [1] * 20, level=0.99)
    assert wide.lo[0] < found.lo[0]


def test_answers_to_one_instruction_count_together() -> None:
    """Three judges who always agree are no more than one of them."""
    one = direct_accuracy(["a"] * 40, [1, 1, 1, 0] * 10, range(40))
    three = direct_accuracy(["a"] * 120, [1, 1, 1, 0] * 30, list(range(40)) * 3)
    apart = direct_accuracy(["a"] * 120, [1, 1, 1, 0] * 30)
    assert (three.lo[0], three.hi[0]) == pytest.approx((one.lo[0], one.hi[0]), abs=1e-12)
    assert apart.hi[0] - apart.lo[0] < 0.7 * (three.hi[0] - three.lo[0])


@pytest.mark.parametrize(("instructions", "judges", "ease"), [(10, 3, 3.5), (30, 1, 0.0), (60, 3, 3.5)])
def test_intervals_of_accuracy_hold_the_truth(instructions: int, judges: int, ease: float) -> None:
    """500 sets of answers, each graded by judges who err, on instructions of unequal difficulty; a tenth not attempted.

    Student's t about the share holds it in 0.86, 0.94 and 0.91.
    """
    rng = np.random.default_rng(3)

    def correct(sets: int) -> Any:
        margin = rng.normal(ease, 1.5, (sets, instructions, 1)) + rng.logistic(size=(sets, instructions, 1))
        return margin + rng.normal(0.0, 1.5, (sets, instructions, judges)) > 0.0

    truth = float(correct(20_000).mean())
    held = 0
    cluster = np.repeat(np.arange(instructions), judges)
    for right in correct(500):
        grade = np.where(rng.random(right.size) < 0.1, 2, right.ravel())
        found = direct_accuracy(np.zeros(right.size), grade, cluster)
        held += bool(found.lo[0] <= truth <= found.hi[0])
    assert held / 500 > 0.93


def test_a_shift_of_the_same_pairs_is_that_of_their_shares() -> None:
    rng = np.random.default_rng(5)
    taste = rng.normal(0.0, 2.0, 400)
    on_a, on_b = (taste + move + rng.logistic(size=400) > 0 for move in (-0.5, 0.5))
    paired = paired_preference_shift(on_a, on_b)
    apart = preference_shift(float(on_a.sum()), 400, float(on_b.sum()), 400)
    assert paired.shift == pytest.approx(apart.shift)
    assert paired.hi - paired.lo < 0.9 * (apart.hi - apart.lo)  # what pairs have in common cancels
    assert paired.lo < paired.shift < paired.hi
    again = paired_preference_shift(np.repeat(on_a, 3), np.repeat(on_b, 3), np.repeat(np.arange(400), 3))
    assert (again.lo, again.hi) == pytest.approx((paired.lo, paired.hi), abs=1e-9)
    back = paired_preference_shift(on_b, on_a)
    assert (back.lo, back.hi) == pytest.approx((-paired.hi, -paired.lo))


def test_a_shift_of_all_pairs_has_a_width_and_stays_above_minus_1() -> None:
    found = paired_preference_shift([0.0] * 20, [1.0] * 20)
    assert (found.shift, found.lo) == (-1.0, -1.0)
    assert found.hi == pytest.approx(-0.75, abs=0.05)
    one = paired_preference_shift([0.0, 1.0], [1.0, 1.0], [3, 3])
    assert one.shift == -0.5
    assert np.isnan([one.lo, one.hi]).all()


@pytest.mark.parametrize(("instructions", "move"), [(10, 2.0), (30, 0.5), (60, 2.0)])
def test_intervals_of_a_paired_shift_hold_the_truth(instructions: int, move: float) -> None:
    """300 campaigns of three pairs an instruction, each judged in both orders; Student's t holds 0.92 at the first."""
    rng = np.random.default_rng(11)

    def draw(sets: int) -> Any:
        odds = rng.normal(0.5, 1.5, (sets, instructions, 3)) + rng.normal(size=(sets, instructions, 1))
        return [(odds[..., None] + side + rng.logistic(size=(*odds.shape, 2)) > 0).mean(-1) for side in (-move, move)]

    a, b = draw(4000)
    truth = float((a - b).mean())
    cluster = np.repeat(np.arange(instructions), 3)
    found = [paired_preference_shift(x.ravel(), y.ravel(), cluster) for x, y in zip(*draw(300), strict=True)]
    assert np.mean([one.lo <= truth <= one.hi for one in found]) > 0.92


def test_judges_who_all_agree_on_everything_are_no_more_than_one_of_them() -> None:
    """Nothing scatters where all answers are right: the number of instructions counts, not that of grades."""
    one, three = direct_accuracy(["a"] * 20, [1] * 20), direct_accuracy(["a"] * 60, [1] * 60, list(range(20)) * 3)
    assert three.lo[0] == pytest.approx(one.lo[0])
