"""What a battle would say: gains against the inverse computed anew, ratings to start from, and what L stands for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from venire.arena.campaigns import PhaseSettings
from venire.arena.planning import JudgeHabit, PlanState
from venire.arena.scale import LOGITS_PER_POINT
from venire.orchestrator.policies.information_gain import (
    Knowledge,
    covariance_after,
    information_of_pairs,
    starting_logits,
    wanted,
)

Matrix = NDArray[np.float64]


def posterior(weights: Matrix, counts: NDArray[np.int64], free: NDArray[np.bool_]) -> Matrix:
    """The covariance of the ratings, term by term."""
    size = len(weights)
    precision = np.eye(size)
    for a in range(size):
        for b in range(a):
            apart = np.zeros(size)
            apart[a], apart[b] = 1.0, -1.0
            precision += counts[a, b] * weights[a, b] * np.outer(apart, apart)
    found = np.zeros((size, size))
    found[np.ix_(free, free)] = np.linalg.inv(precision[np.ix_(free, free)])
    return found


@pytest.mark.parametrize("purpose", ["mean", "boundary", "place"])
@pytest.mark.parametrize("held", [0, 3, 5])
def test_a_gain_is_what_the_criterion_loses_by_one_battle_more(purpose: str, held: int) -> None:
    rng = np.random.default_rng(held)
    logits = rng.normal(0.0, 1.0, 6)
    models = tuple("abcdef")
    weights = information_of_pairs(logits, (JudgeHabit(2.0, 0.5, 0.1, 0.3), JudgeHabit(0.7)))
    counts = rng.integers(0, 5, (6, 6))
    counts = np.triu(counts, 1) + np.triu(counts, 1).T
    free = np.arange(6) >= held
    phase = PhaseSettings(purpose=purpose, top=2, place="f")  # type: ignore[arg-type]  # one of the three
    covariance = covariance_after(weights, counts, free)
    assert covariance == pytest.approx(posterior(weights, counts, free), rel=1e-9, abs=1e-12)
    aim = wanted(phase, models, logits, covariance, free, rng)
    knowledge = Knowledge(weights, covariance, aim)
    for _ in range(30):
        now = posterior(weights, counts, free)
        assert knowledge.covariance == pytest.approx(now, rel=1e-9, abs=1e-12)
        gains = knowledge.gains()
        for a, b in ((0, 1), (2, 5), (3, 4)):
            more = counts.copy()
            more[a, b] += 1
            more[b, a] += 1
            expected = float((aim * (now - posterior(weights, more, free))).sum())
            assert gains[a, b] == pytest.approx(expected, rel=1e-8, abs=1e-12)
        a, b = divmod(int(np.argmax(np.triu(gains, 1))), 6)
        knowledge.add(a, b)
        counts[a, b] += 1
        counts[b, a] += 1


def test_a_battle_says_what_both_orders_say_less_what_they_share() -> None:
    habit = JudgeHabit(slope=2.0, bias=0.5, ties=0.25, rho=0.5)
    found = information_of_pairs(np.array([0.3, -0.4]), (habit, habit))
    first, second = (1.0 / (1.0 + math.exp(-sign * 0.5 - 2.0 * 0.7)) for sign in (1, -1))
    both = first * (1 - first) + second * (1 - second)
    assert found[0, 1] == found[1, 0] == pytest.approx(2 * 0.75 * 4.0 * both / 1.5)
    assert found[0, 0] == 0.0


def test_a_judge_nobody_heard_and_orders_that_agree_less_than_chance_count_as_independent() -> None:
    logits = np.array([0.0, 1.0])
    assert np.array_equal(information_of_pairs(logits, ()), information_of_pairs(logits, (JudgeHabit(rho=-0.9),)))


def test_ratings_far_apart_say_nothing_and_do_not_overflow() -> None:
    assert information_of_pairs(np.array([0.0, 1e6]), (JudgeHabit(2.0),))[0, 1] == 0.0


def aimed(phase: PhaseSettings, logits: list[float], error: float, free: list[bool] | None = None) -> Matrix:
    """L for ratings that are each known so well."""
    is_free = np.ones(len(logits), dtype=bool) if free is None else np.array(free)
    covariance = np.diag(np.where(is_free, error**2, 0.0))
    models = tuple("abcdefgh"[: len(logits)])
    return wanted(phase, models, np.array(logits), covariance, is_free, np.random.default_rng(3))


def test_the_boundary_compares_each_of_the_best_with_each_of_the_next() -> None:
    aim = aimed(PhaseSettings(purpose="boundary", top=2), [0.0, 4.0, 1.0, 3.0, 2.0, -1.0], 1e-9)
    expected = np.zeros((6, 6))
    for best in (1, 3):
        for rest in (4, 2):
            apart = np.zeros(6)
            apart[best], apart[rest] = 1.0, -1.0
            expected += np.outer(apart, apart)
    assert np.array_equal(aim, expected)


def test_a_boundary_beyond_the_middle_compares_with_all_that_are_left() -> None:
    aim = aimed(PhaseSettings(purpose="boundary", top=3), [3.0, 2.0, 1.0, 0.0], 1e-9)
    assert np.array_equal(np.diagonal(aim), [1.0, 1.0, 1.0, 3.0])


def test_who_may_be_at_the_boundary_counts_as_far_as_it_may() -> None:
    phase = PhaseSettings(purpose="boundary", top=1)
    aim = aimed(phase, [3.0, 1.0, 1.0, -9.0], 0.1)
    assert aim[0, 1] + aim[0, 2] == pytest.approx(-1.0)
    assert aim[0, 1] == pytest.approx(-0.5, abs=0.15)
    assert aim[3, 3] == 0.0
    assert aim.sum(axis=1) == pytest.approx(np.zeros(4))
    unknown = aimed(phase, [0.0, 0.0, 0.0, 0.0], 1.0)
    assert np.diagonal(unknown) == pytest.approx(np.full(4, 0.5), abs=0.15)


def test_all_ratings_are_wanted_about_their_mean_unless_some_are_held() -> None:
    phase, logits = PhaseSettings(), [0.0, 0.0, 0.0]
    assert aimed(phase, logits, 1.0) == pytest.approx(np.eye(3) - 1 / 3)
    assert np.array_equal(aimed(phase, logits, 1.0, [True, True, False]), np.eye(3))


def start(logits: list[float] | None, elo: dict[str, float]) -> list[float]:
    state = PlanState(tuple("dcba"), elo, logits=None if logits is None else np.array(logits[::-1]))
    return list(starting_logits(state, tuple("abcd")))


def test_what_verdicts_say_comes_first_then_the_reference_on_their_scale_then_the_mean() -> None:
    elo = {"a": 1000.0, "b": 1100.0, "c": 1300.0}
    step = 100.0 * LOGITS_PER_POINT
    assert start([5.0, 6.0, math.nan, math.nan], elo)[:2] == [5.0, 6.0]
    shift = 5.5 - (1050.0 * LOGITS_PER_POINT)
    third = 1300.0 * LOGITS_PER_POINT + shift
    assert start([5.0, 6.0, math.nan, math.nan], elo)[2:] == pytest.approx([third, (11.0 + third) / 3])
    assert np.diff(start(None, elo)) == pytest.approx([step, 2 * step, -4 * step / 3 - step / 3])
    assert start([math.nan] * 4, {}) == [0.0] * 4


def test_a_reference_that_shares_no_model_with_the_estimates_has_no_scale_and_is_left() -> None:
    assert start([5.0, 7.0, math.nan, math.nan], {"c": 1300.0, "d": 1000.0}) == [5.0, 7.0, 6.0, 6.0]


def test_ratings_without_an_end_are_one_logit_beyond_the_last() -> None:
    assert start([math.inf, 2.0, -3.0, -math.inf], {}) == [3.0, 2.0, -3.0, -4.0]
    assert start([math.inf, -2.0, -3.0, -math.inf], {}) == [-1.0, -2.0, -3.0, -4.0]
    assert start([math.inf, math.nan, math.nan, -math.inf], {}) == [1.0, 0.0, 0.0, -1.0]
