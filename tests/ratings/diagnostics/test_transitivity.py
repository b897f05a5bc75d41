"""Circles of wins are found, and those that chance makes are not called intransitivity."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.diagnostics.transitivity import transitivity
from venire.ratings.pairwise.bradley_terry import bradley_terry


def majorities(wins: np.ndarray, each: int = 6) -> Comparisons:
    """Each pair meets a few times; entry [i, j] is how often i wins."""
    size = len(wins)
    a, b, y = [], [], []
    for one, two in itertools.combinations(range(size), 2):
        for number in range(each):
            a.append(f"m{one}")
            b.append(f"m{two}")
            y.append(1.0 if number < wins[one, two] else 0.0)
    return comparisons(a, b, y)


def by_hand(wins: np.ndarray, each: int) -> tuple[int, int]:
    triads = cyclic = 0
    ahead = {(i, j): wins[i, j] * 2 - each for i, j in itertools.combinations(range(len(wins)), 2)}
    for i, j, k in itertools.combinations(range(len(wins)), 3):
        sides = ahead[i, j], ahead[j, k], ahead[i, k]
        if all(sides):
            triads += 1
            cyclic += (sides[0] > 0) == (sides[1] > 0) != (sides[2] > 0)
    return triads, cyclic


@settings(max_examples=30)
@given(st.integers(3, 6), st.integers(0, 10_000))
def test_triads_are_counted_as_by_hand_in_any_order_of_rows_and_sides(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    wins = rng.integers(1, 6, (size, size))  # of 6: every model both wins and loses
    data = majorities(wins)
    triads, cyclic = by_hand(wins, 6)
    ratings = bradley_terry(data)
    if not triads:
        with pytest.raises(InputError, match="no triad"):
            transitivity(data, ratings, draws=5)
        return
    found = transitivity(data, ratings, draws=20)
    assert (found.triads, found.cyclic) == (triads, cyclic)
    order = rng.permutation(len(data))
    turn = rng.random(len(data)) < 0.5
    other = data.select(order)
    again = comparisons(
        [data.models[code] for code in np.where(turn, other.b, other.a)],
        [data.models[code] for code in np.where(turn, other.a, other.b)],
        np.where(turn, 1.0 - other.y, other.y),
    )
    mixed = transitivity(again, bradley_terry(again), draws=20)
    assert (mixed.triads, mixed.cyclic) == (triads, cyclic)
    assert [one.models for one in mixed.strongest] == [one.models for one in found.strongest]
    assert mixed.expected == pytest.approx(found.expected, abs=0.02)


def test_a_circle_of_three_is_named_with_its_shares_and_its_chance() -> None:
    wins = np.zeros((4, 4))
    wins[0, 1], wins[1, 2], wins[0, 2] = 90, 80, 30
    wins[0, 3] = wins[1, 3] = wins[2, 3] = 80
    data = majorities(wins, 100)
    found = transitivity(data, bradley_terry(data), draws=200)
    (clearest,) = found.strongest
    assert clearest.models == ("m0", "m1", "m2")
    assert clearest.shares == pytest.approx((0.9, 0.8, 0.7))
    # 20 wins more than half of 100 rows, whose sd about a half is 5: 4 standard errors; 8 circles could be.
    assert clearest.weakest == pytest.approx(4.0, rel=0.01)
    assert 1e-4 < clearest.p_value < 1e-3
    assert found.zeta == pytest.approx(0.5)  # of 4 models at most 2 circles
    assert found.share == 0.25


def test_five_models_that_all_beat_two_others_have_no_consistence_at_all() -> None:
    wins = np.zeros((5, 5))
    for one, two in itertools.combinations(range(5), 2):
        wins[one, two] = 5 if (two - one) % 5 in (1, 2) else 1
    found = transitivity(majorities(wins), bradley_terry(majorities(wins)), draws=20)
    assert (found.cyclic, found.zeta) == (5, 0.0)


def test_of_two_circles_the_one_whose_least_step_is_clearer_comes_first() -> None:
    wins = np.full((6, 6), 50.0)
    wins[:3, 3:] = 80
    wins[0, 1], wins[1, 2], wins[0, 2] = 95, 95, 44
    wins[3, 4], wins[4, 5], wins[3, 5] = 70, 70, 30
    found = transitivity(majorities(wins, 100), bradley_terry(majorities(wins, 100)), draws=5)
    assert [one.models for one in found.strongest] == [("m3", "m4", "m5"), ("m0", "m1", "m2")]


def test_chance_is_reckoned_from_ratings_drawn_in_by_their_errors() -> None:
    def excess(seed: int) -> float:
        rng = np.random.default_rng(seed)
        one, two = (np.repeat(side, 7) for side in np.triu_indices(10, 1))
        data = comparisons(one, two, (rng.random(len(one)) < 0.5).astype(float))
        return transitivity(data, bradley_terry(data), draws=60).excess

    assert abs(np.mean([excess(seed) for seed in range(25)])) < 0.015


def test_no_zeta_without_every_majority_and_a_unanimous_pair_is_no_proof() -> None:
    wins = np.array([[0, 3, 1, 5], [0, 0, 5, 5], [0, 0, 0, 5], [0, 0, 0, 0]])
    found = transitivity(majorities(wins), bradley_terry(majorities(wins)), draws=20)
    assert found.zeta is None
    lone = comparisons(["a", "b", "c"], ["b", "c", "a"], [1, 1, 1])
    (circle,) = transitivity(lone, bradley_terry(lone), draws=20).strongest
    assert circle.p_value > 0.01


def test_noise_is_no_intransitivity_but_a_rough_field_is() -> None:
    def p_value(rough: float, seed: int, gap: float) -> float:
        rng = np.random.default_rng(seed)
        one, two = np.triu_indices(12, 1)
        chance = 1.0 / (1.0 + np.exp(-gap * (two - one) - rough * rng.standard_normal(len(one))))
        a, b = np.repeat(one, 40), np.repeat(two, 40)
        data = comparisons(a, b, (rng.random(len(a)) < np.repeat(chance, 40)).astype(float))
        return transitivity(data, bradley_terry(data), draws=199).p_value

    assert min(p_value(0.0, seed, gap) for seed in range(6) for gap in (0.0, 0.1)) > 0.01
    assert max(p_value(1.2, seed, 0.3) for seed in range(6)) < 0.01


def test_of_a_large_field_those_with_the_most_battles_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(transitivity.__globals__, "_MAX_MODELS", 4)
    wins = np.full((6, 6), 3)
    wins[:4, :4] = 4
    data = majorities(wins, 6)
    more = comparisons(
        [data.models[code] for code in data.a] + ["m0", "m1"],
        [data.models[code] for code in data.b] + ["m2", "m3"],
        [*data.y, 1.0, 0.0],
    )
    assert transitivity(more, bradley_terry(more), draws=5).models == 4


def test_draws_and_seeds_are_checked() -> None:
    data = majorities(np.full((3, 3), 4))
    with pytest.raises(InputError, match="seed"):
        transitivity(data, bradley_terry(data), seed=-1)
