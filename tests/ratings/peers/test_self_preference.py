"""What a model adds for itself: found where it was planted, and not where a judge is merely sharp."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.stats import ttest_ind

from venire.arena.errors import InputError
from venire.ratings.data.judgments import Judgments, merge_orders
from venire.ratings.data.models import model_of_judge, own_models
from venire.ratings.peers.self_preference import (
    OddsRows,
    SelfPreferenceOdds,
    derivatives,
    family_excess,
    log_likelihood,
    self_preference_odds,
)

Make = Callable[..., Any]
STRENGTH = (1.2, 0.5, 0.0, -0.5, -1.2)


def odds_of(judgments: Judgments, model: str = "m0", **options: Any) -> SelfPreferenceOdds:
    own = own_models(judgments.judges, judgments.models)
    return self_preference_odds(judgments, own, **options)[judgments.judges.index(model)]


def test_what_was_planted_is_found_and_nothing_else(peer_battles: Make) -> None:
    favour, slope = (1.0, 0.0, -0.8, 0.0, 0.0), (2.0, 1.0, 1.5, 0.5, 1.0)
    judgments = merge_orders(
        peer_battles(STRENGTH, slope=slope, favour=favour, instructions=600, taste=0.3, ties=0.0, seed=3)
    )
    by_code = self_preference_odds(judgments, np.eye(5, dtype=np.bool_))
    for model, planted in enumerate(favour):
        found = by_code[model]
        assert abs(found.value - planted) < 3.0 * found.se + 0.05, found
        assert found.favours_own is ({1.0: True, -0.8: False}.get(planted))
        assert found.slope == pytest.approx(slope[model] / 1.2, rel=0.25)


def test_a_sharp_judge_of_a_strong_model_does_not_favour_itself(peer_battles: Make) -> None:
    """It says far more for itself than dull judges say; that is its sharpness."""
    judgments = merge_orders(
        peer_battles(STRENGTH, slope=(3.0, 0.7, 0.7, 0.7, 0.7), instructions=300, ties=0.0, taste=0.2, seed=4)
    )
    found = odds_of(judgments)
    assert found.favours_own is None
    assert found.slope > 2.0


def test_a_taste_for_length_is_no_favour_where_lengths_are_known(peer_battles: Make) -> None:
    """Its own answers are the longest, and it alone likes long ones: without lengths that looks like favour."""
    battles = peer_battles(STRENGTH, instructions=200, ties=0.0, taste=0.0, seed=5)
    rng = np.random.default_rng(11)
    written = np.array([1.0, 0.0, 0.2, -0.4, -0.8]) + 0.6 * rng.normal(size=(200, 5))
    item = battles.instruction
    length = written[item, battles.model_a] - written[item, battles.model_b]
    liking = np.where(battles.judge == 0, 1.2, 0.0)
    gap = np.array(STRENGTH)[battles.model_a] - np.array(STRENGTH)[battles.model_b]
    label = np.where(rng.random(len(gap)) < 1.0 / (1.0 + np.exp(-gap - liking * length)), 1, -1).astype(np.int8)
    judgments = merge_orders(replace(battles, label=label, features={"length": length}))
    assert odds_of(judgments).favours_own is True
    held = odds_of(judgments, held=["length"])
    assert held.favours_own is None
    assert abs(held.value) < 2.5 * held.se
    plain = self_preference_odds(judgments, np.eye(5, dtype=np.bool_))
    known = self_preference_odds(judgments, np.eye(5, dtype=np.bool_), held=["length"])
    assert known[2].value == pytest.approx(plain[2].value, abs=0.25)


def test_favour_is_found_beside_a_taste(peer_battles: Make) -> None:
    favour = (0.9, 0.0, 0.0, 0.0, 0.0)
    battles = peer_battles(STRENGTH, favour=favour, instructions=300, ties=0.0, taste=0.0, seed=7)
    rng = np.random.default_rng(8)
    length = rng.normal(size=len(battles.label)) + 0.3 * (battles.model_a == 0) - 0.3 * (battles.model_b == 0)
    found = odds_of(merge_orders(replace(battles, features={"length": length})), held=["length"])
    assert found.favours_own is True
    assert abs(found.value - 0.9) < 3.0 * found.se


def test_its_error_is_that_of_instructions_drawn_again(peer_battles: Make) -> None:
    judgments = merge_orders(
        peer_battles(STRENGTH, slope=(2.0, 1.0, 1.0, 1.0, 1.0), instructions=60, taste=1.0, seed=5)
    )
    found, rng = odds_of(judgments), np.random.default_rng(6)
    parts = [np.flatnonzero(judgments.instruction == code) for code in range(60)]
    draws = [
        odds_of(judgments.select(np.concatenate([parts[code] for code in rng.integers(0, 60, 60)]))).value
        for _ in range(70)
    ]
    assert found.se == pytest.approx(np.std(draws), rel=0.3)
    assert found.hi - found.value == pytest.approx(2.001 * found.se, rel=1e-3)  # Student's, 59 degrees


def test_the_noise_of_ratings_by_others_is_in_the_error(peer_battles: Make) -> None:
    """With few others, much of what looks like favour is their error."""
    battles = peer_battles(STRENGTH, instructions=80, seed=7)
    judgments = merge_orders(battles)
    few = judgments.select((judgments.judge == 0) | (judgments.instruction < 12))
    assert odds_of(few).se > 1.3 * odds_of(judgments).se


@settings(max_examples=8)
@given(st.integers(0, 500))
def test_derivatives_are_those_of_the_likelihood(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, 12)
    rows = OddsRows(
        models=4,
        slopes=3,
        owners=2,
        a=a,
        b=(a + rng.integers(1, 4, 12)) % 4,
        y=rng.random(12),
        weight=rng.random(12) + 0.1,
        slope=rng.integers(0, 3, 12),
        odds=rng.integers(0, 2, 12),
        side=rng.integers(-1, 2, 12).astype(float),
        x=rng.normal(size=(12, 2)),
    )
    point = rng.normal(0.3, 0.7, rows.size)
    gradient, table = derivatives(point, rows)
    assert gradient == pytest.approx(approx_fprime(point, log_likelihood, 1e-7, rows), abs=1e-5)
    for axis in range(rows.size):
        slope = approx_fprime(point, lambda at, axis=axis: derivatives(at, rows)[0][axis], 1e-7)
        assert -table[axis] == pytest.approx(slope, abs=1e-5)


def test_weights_count_as_copies_and_large_ones_are_no_trouble(peer_battles: Make) -> None:
    judgments = merge_orders(peer_battles(STRENGTH, instructions=20, seed=8))
    times = np.random.default_rng(9).integers(0, 3, len(judgments))
    weighted = odds_of(replace(judgments, weight=times.astype(float)))
    copied = odds_of(judgments.select(np.repeat(np.arange(len(judgments)), times)))
    assert (weighted.value, weighted.se) == pytest.approx((copied.value, copied.se))
    large, larger = (odds_of(replace(judgments, weight=unit * times)) for unit in (1e6, 1e12))
    assert (large.value, large.se) == pytest.approx((larger.value, larger.se), rel=1e-5)
    assert large.value == pytest.approx(weighted.value, abs=0.3 * weighted.se)  # the prior is outweighed


def test_rows_in_another_order_and_models_under_other_names_have_the_same_odds(peer_battles: Make) -> None:
    judgments = merge_orders(peer_battles(STRENGTH, instructions=15, seed=10))
    mixed = judgments.select(np.random.default_rng(11).permutation(len(judgments)))
    assert odds_of(mixed).value == pytest.approx(odds_of(judgments).value)
    turned = merge_orders(peer_battles(STRENGTH[::-1], instructions=15, seed=10))
    assert odds_of(turned, "m4").value is not None


@pytest.mark.parametrize(
    ("favour", "word"),
    [(50.0, "all of its verdicts on its own are wins"), (-50.0, "all of its verdicts on its own are losses")],
)
def test_a_model_that_always_names_itself_has_no_finite_figure(peer_battles: Make, favour: float, word: str) -> None:
    found = odds_of(merge_orders(peer_battles(STRENGTH, favour=(favour, 0, 0, 0, 0), ties=0.0, instructions=10)))
    assert (found.value, found.favours_own) == (None, None)
    assert word in found.reason


def test_a_model_without_a_finite_figure_moves_nobody_elses(peer_battles: Make) -> None:
    judgments = merge_orders(peer_battles(STRENGTH, favour=(50.0, 0, 0, 0, 0), ties=0.0, instructions=20, seed=16))
    itself = (judgments.judge == 0) & (judgments.model_a == 0)
    whole, without = (
        self_preference_odds(given, np.eye(5, dtype=np.bool_)) for given in (judgments, judgments.select(~itself))
    )
    for code in range(1, 5):
        assert whole[code].value == pytest.approx(without[code].value)
        assert whole[code].se == pytest.approx(without[code].se)


def test_what_cannot_be_had_is_said(peer_battles: Make) -> None:
    judgments = merge_orders(peer_battles(STRENGTH, instructions=10, seed=12))
    alone = odds_of(judgments.select(judgments.judge == 0))
    assert (alone.value, alone.reason) == (None, "no judge of other models judged its own")
    two = merge_orders(peer_battles((0.5, -0.5), instructions=10, seed=13))
    assert two.models == ("m0", "m1")
    assert odds_of(two).value is None
    no_own = judgments.select((judgments.judge != 0) | ((judgments.model_a != 0) & (judgments.model_b != 0)))
    assert "did not judge its own" in odds_of(no_own).reason
    one = judgments.select(judgments.instruction == 3)
    assert odds_of(one).se is None or odds_of(one).value is None
    assert "no common ratings" in odds_of(judgments.select(judgments.y == 1.0)).reason


def test_a_judge_that_follows_the_ratings_without_exception_has_a_finite_slope(peer_battles: Make) -> None:
    """Without a prior on slopes its own would grow for ever."""
    judgments = merge_orders(peer_battles(STRENGTH, instructions=30, ties=0.0, seed=14))
    found = self_preference_odds(
        replace(judgments, y=np.where(judgments.judge == 2, 1.0, judgments.y)), np.eye(5, dtype=np.bool_)
    )
    assert found[2].slope > 2.0
    assert all(found[code].se < 1.0 for code in (0, 1, 3, 4))
    assert abs(found[2].value) < 3.0


def test_between_three_models_slopes_do_not_run_away(peer_battles: Make) -> None:
    for seed in range(12):
        found = self_preference_odds(
            merge_orders(peer_battles((0.6, 0.0, -0.6), instructions=25, seed=seed)), np.eye(3, dtype=np.bool_)
        )
        for one in found.values():
            assert one.reason is None
            assert abs(one.value) < 4.0 * one.se
            assert 0.0 < one.slope < 3.0


def test_judges_that_are_no_models_help_and_have_no_figure(peer_battles: Make) -> None:
    battles = peer_battles(STRENGTH, instructions=40, seed=15)
    named = replace(battles, judges=("m0", "m1", "ann", "bob", "eve"))
    judgments = merge_orders(named)
    names = judgments.judges, judgments.models, {"bob": "m3"}
    assert set(self_preference_odds(judgments, own_models(*names), together=model_of_judge(*names))) == {0, 1, 3}
    found = self_preference_odds(judgments, own_models(*names))
    assert {judgments.judges[code] for code in found} == {"m0", "m1", "bob"}
    assert all(one.se is not None for one in found.values())


@pytest.mark.slow
@pytest.mark.parametrize(("instructions", "favour"), [(30, 0.0), (30, 0.8), (100, 0.0)])
def test_intervals_hold_the_truth_as_often_as_they_say(peer_battles: Make, instructions: int, favour: float) -> None:
    """The truth is that of very many instructions: answers differ, so that odds over all of them are smaller."""
    slope, planted = (2.0, 0.7, 1.0, 1.0, 1.0), (favour, 0.0, 0.0, 0.0, 0.0)
    options: dict[str, Any] = {"slope": slope, "favour": planted, "taste": 0.8}
    truth = odds_of(merge_orders(peer_battles(STRENGTH, instructions=20_000, seed=1, **options))).value
    held = 0
    for seed in range(300):
        found = odds_of(merge_orders(peer_battles(STRENGTH, instructions=instructions, seed=seed + 2, **options)))
        held += found.lo <= truth <= found.hi
    assert 0.92 <= held / 300 <= 0.98


def test_a_judge_s_own_family_stands_out_and_generosity_does_not() -> None:
    rng = np.random.default_rng(2)
    families = ["a"] * 6 + ["b"] * 6 + ["c"] * 12
    scores = rng.normal(7, 1, 24) + rng.normal(0, 0.1, (5, 24))
    scores[0] += 2.0
    scores[1, 6:12] += 0.5
    found = {each.judge: each for each in family_excess(scores, list("vwxyz"), ["a", "b", "c", "c", "d"], families)}
    assert found["v"].low < 0.0 < found["v"].high
    assert 0.3 < found["w"].low < 0.5 < found["w"].high < 0.7
    assert (found["z"].excess, found["z"].own, found["z"].others) == (None, 0, 24)
    deviation = scores[1] - np.median(np.delete(scores, 1, axis=0), axis=0)
    interval = ttest_ind(deviation[6:12], np.delete(deviation, range(6, 12)), equal_var=False).confidence_interval()
    assert (found["w"].low, found["w"].high) == pytest.approx((interval.low, interval.high))


@pytest.mark.parametrize(
    ("said", "call"),
    [
        ("scores has shape", lambda: family_excess([[1.0]], ["x"], ["a"], ["a", "b"])),
    ],
)
def test_bad_columns_are_named(said: str, call: Callable[[], object]) -> None:
    with pytest.raises(InputError, match=said):
        call()
