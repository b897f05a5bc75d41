"""Kemeny-Young: the least cost, all orders that have it, and never a proof that is none."""

from __future__ import annotations

import math
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.ratings.all_orders import ballots_summed, named, tournament, tried
from venire.arena.errors import InputError
from venire.ratings.data.comparisons import comparisons
from venire.ratings.data.votes import Votes, contradicted, pair_bound, votes
from venire.ratings.voting.kemeny import kemeny_young

Matrix = NDArray[np.float64]


@st.composite
def profiles(draw: st.DrawFn, largest: int = 6) -> Matrix:
    """Few different weights, so that ties and equal costs are common; thirds do not add up exactly in floats."""
    size = draw(st.integers(1, largest))
    weights = st.sampled_from([0.0, 0.0, 0.5, 1.0, 1.0, 2.0, 1 / 3, 0.1 + 0.2, 0.3])
    rows = draw(st.lists(weights, min_size=size * size, max_size=size * size))
    weight = np.array(rows).reshape(size, size)
    np.fill_diagonal(weight, 0.0)
    return weight


def codes(order: tuple[str, ...]) -> list[int]:
    return [int(name[1:]) for name in order]


@given(profiles())
def test_cost_number_and_mean_places_are_those_of_all_orders_tried(weight: Matrix) -> None:
    found, truth = kemeny_young(named(weight)), tried(weight)
    assert found.cost == pytest.approx(truth.cost, abs=1e-9)
    assert found.proved
    assert found.lower_bound == found.cost == contradicted(weight, codes(found.order))
    heard = weight.any(axis=0) | weight.any(axis=1)
    voted = np.flatnonzero(heard)
    among = tried(weight[np.ix_(voted, voted)])
    assert found.optimal_orders == len(among.orders)
    assert found.position[heard] == pytest.approx(among.position)
    assert np.isnan(found.position[~heard]).all()


@pytest.mark.parametrize("seed", range(3))
def test_eight_models_are_as_all_40320_orders_say(seed: int) -> None:
    weight = np.random.default_rng(seed).integers(0, 4, (8, 8)).astype(np.float64)
    np.fill_diagonal(weight, 0.0)
    found, truth = kemeny_young(named(weight)), tried(weight)
    assert (found.cost, found.optimal_orders) == (truth.cost, len(truth.orders))
    assert tuple(codes(found.order)) in truth.orders
    assert found.position == pytest.approx(truth.position)


@given(profiles(), st.randoms(use_true_random=False))
def test_neither_the_order_of_models_nor_their_names_matter(weight: Matrix, random: object) -> None:
    size = len(weight)
    moved = np.random.default_rng(size).permutation(size)
    plain = named(weight)
    other = Votes(tuple(plain.models[code] for code in moved), weight[np.ix_(moved, moved)])
    found, again = kemeny_young(plain), kemeny_young(other)
    assert found.order == again.order
    assert found.cost == pytest.approx(again.cost)
    assert np.array_equal(found.position[moved], again.position, equal_nan=True)
    renamed = kemeny_young(Votes(tuple(f"x{size - code}" for code in range(size)), weight))
    assert np.array_equal(found.position, renamed.position, equal_nan=True)


@given(profiles())
def test_votes_turned_round_turn_the_order_round(weight: Matrix) -> None:
    found, turned = kemeny_young(named(weight)), kemeny_young(named(weight.T.copy()))
    assert turned.cost == pytest.approx(found.cost)
    assert turned.optimal_orders == found.optimal_orders
    count = np.isfinite(found.position).sum()
    assert turned.position == pytest.approx(count + 1 - found.position, nan_ok=True)


@pytest.mark.parametrize("factor", [1e-100, 1e-12, 1e-6, 1 / 3, 1e12])
def test_a_common_factor_of_all_weights_changes_nothing(factor: float) -> None:
    weight = ballots_summed(9, 4, 0.0, 2)
    found, scaled = kemeny_young(named(weight)), kemeny_young(named(factor * weight))
    assert scaled.order == found.order
    assert scaled.position.tolist() == found.position.tolist()
    assert scaled.optimal_orders == found.optimal_orders
    assert scaled.cost / factor == pytest.approx(found.cost)
    assert scaled.proved


def test_a_single_vote_counts_beside_pairs_of_many() -> None:
    weight = np.array([[0.0, 1.0, 1e12], [0.0, 0.0, 1e12], [1e12, 1e12, 0.0]])
    found = kemeny_young(named(weight))
    assert found.cost == 2e12
    assert found.order.index("m00") < found.order.index("m01")


def test_a_circle_has_three_orders_of_equal_places() -> None:
    found = kemeny_young(named(np.array([[0.0, 2, 1], [1, 0, 2], [2, 1, 0]])))
    assert (found.cost, found.optimal_orders) == (4.0, 3)
    assert found.position.tolist() == [2.0, 2.0, 2.0]
    assert found.order == ("m00", "m01", "m02")


def test_the_order_shown_is_the_best_one_nearest_to_the_mean_places() -> None:
    """c beats a and b, which nobody tells apart; d loses to all but beats none: a before b by name alone."""
    models = ("d", "b", "a", "c")
    weight = np.zeros((4, 4))
    for winner, loser in ((3, 1), (3, 2), (3, 0), (1, 0), (2, 0)):
        weight[winner, loser] = 1.0
    found = kemeny_young(Votes(models, weight))
    assert found.order == ("c", "a", "b", "d")
    assert found.position.tolist() == [4.0, 2.5, 2.5, 1.0]
    assert found.optimal_orders == 2


def test_models_without_votes_stand_last_by_name_and_have_no_place() -> None:
    weight = np.zeros((4, 4))
    weight[3, 1] = 1.0
    found = kemeny_young(Votes(("z", "b", "a", "d"), weight))
    assert found.order == ("d", "b", "a", "z")
    assert found.position.tolist() == pytest.approx([math.nan, 2.0, math.nan, 1.0], nan_ok=True)
    assert found.optimal_orders == 1


@pytest.mark.parametrize("size", [0, 1, 2])
def test_nothing_to_put_in_order_is_an_order(size: int) -> None:
    found = kemeny_young(named(np.zeros((size, size))))
    assert (found.cost, found.proved, found.optimal_orders) == (0.0, True, 1)
    assert len(found.order) == size
    assert np.isnan(found.position).all()


def test_nothing_but_ties_tells_nobody_apart_however_many_models_there_are() -> None:
    found = kemeny_young(named(np.ones((60, 60)) - np.eye(60)))
    assert found.optimal_orders == math.factorial(60)
    assert set(found.position.tolist()) == {30.5}
    assert (found.cost, found.proved) == (1770.0, True)


def test_one_ballot_is_its_own_order() -> None:
    order = np.random.default_rng(4).permutation(30)
    rank = np.argsort(order)
    found = kemeny_young(named((rank[:, None] < rank[None, :]).astype(np.float64)))
    assert codes(found.order) == order.tolist()
    assert (found.cost, found.optimal_orders) == (0.0, 1)


def test_agreement_with_noise_gives_back_the_order_agreed_on() -> None:
    found = kemeny_young(named(ballots_summed(12, 400, 0.5, 5)))
    assert codes(found.order) == list(range(12))
    assert found.proved


def test_a_large_block_that_majorities_split_is_solved_in_parts() -> None:
    """A chain of 60 models that meet neighbours alone: all pairs else tie, which makes one block of them."""
    weight = np.zeros((60, 60))
    weight[np.arange(59), np.arange(1, 60)] = 1.0
    found = kemeny_young(named(weight))
    assert codes(found.order) == list(range(60))
    assert (found.cost, found.proved, found.optimal_orders) == (0.0, True, None)
    weight[59, 0] = 1.0
    assert kemeny_young(named(weight)).cost == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_forty_models_of_random_ballots_are_proved(seed: int) -> None:
    weight = ballots_summed(40, 25, 0.0, seed)
    found = kemeny_young(named(weight))
    assert found.proved
    assert found.lower_bound == found.cost == contradicted(weight, codes(found.order)) >= pair_bound(weight)
    assert found.optimal_orders is None
    assert sorted(found.position.tolist()) == list(range(1, 41))


def test_no_time_gives_the_best_order_met_and_does_not_call_it_proved() -> None:
    """The clock stands at its end from the second look on."""
    weight = tournament(30, 0)
    looks = iter([0.0])
    found = kemeny_young(named(weight), seconds=1.0, clock=lambda: next(looks, 2.0))
    assert not found.proved
    assert pair_bound(weight) <= found.lower_bound < found.cost == contradicted(weight, codes(found.order))


@pytest.mark.parametrize("looks", [3, 10, 30, 100, 300])
def test_time_may_end_at_any_moment(looks: int) -> None:
    """Two large circles one above the other, and the time ends after so many looks at the clock."""
    one, other = tournament(21, 1), ballots_summed(20, 5, 0.0, 1)
    weight = np.zeros((41, 41))
    weight[:21, :21], weight[21:, 21:], weight[:21, 21:] = one, other, 7.0
    seen = 0

    def clock() -> float:
        nonlocal seen
        seen += 1
        return 0.0 if seen <= looks else 1e9

    best = kemeny_young(named(weight))
    found = kemeny_young(named(weight), seconds=3600.0, clock=clock)
    assert best.proved
    assert found.lower_bound <= best.cost <= found.cost
    assert found.proved == (found.lower_bound == found.cost)
    assert found.proved <= (found.cost == best.cost)
    assert max(codes(found.order)[:21]) == 20


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
def test_weights_that_are_none_are_refused_by_the_pair(wrong: float) -> None:
    weight = np.zeros((3, 3))
    weight[0, 2] = wrong
    with pytest.raises(InputError, match=r"weight of m00 over m02 is .*; give a finite weight, 0 or more"):
        kemeny_young(named(weight))


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InputError, match="seconds is 0"):
        kemeny_young(named(np.zeros((2, 2))), seconds=0.0)
    with pytest.raises(InputError, match=r"weight has shape \(2, 3\); give a row and a column for each of 2 models"):
        kemeny_young(Votes(("a", "b"), np.zeros((2, 3))))


def test_votes_are_left_as_they_are() -> None:
    weight = np.ones((3, 3))
    kemeny_young(named(weight))
    assert (weight == 1.0).all()


@pytest.fixture(scope="module")
def peers(shared_data: Path) -> dict[str, Matrix]:
    """By question the votes of five models on each other, both orders of each pair; and their names."""
    path = shared_data / "vicuna80_peers" / "judgments.parquet"
    with duckdb.connect() as connection:
        rows = connection.execute(
            "SELECT instruction_id, first, second, verdict FROM read_parquet(?) WHERE repeat = 1 ORDER BY ALL",
            [str(path)],
        ).fetchall()
    share = {"first": 1.0, "tie": 0.5, "second": 0.0}
    names = sorted({row[1] for row in rows})
    found = {}
    for question in {row[0] for row in rows}:
        there = [row for row in rows if row[0] == question]
        _, first, second, verdict = zip(*there, strict=True)
        data = comparisons(list(first), list(second), [share[one] for one in verdict], models=names)
        found[str(question)] = votes(data).weight
    return found


def test_several_orders_are_the_best_on_a_third_of_the_recorded_questions(peers: dict[str, Matrix]) -> None:
    assert len(peers) == 80
    orders = {question: kemeny_young(named(weight)) for question, weight in peers.items()}
    for question, weight in peers.items():
        truth = tried(weight)
        assert (orders[question].cost, orders[question].optimal_orders) == (truth.cost, len(truth.orders))
        assert orders[question].position == pytest.approx(truth.position)
    several = sum(order.optimal_orders != 1 for order in orders.values())
    assert several == 26


def test_all_recorded_peers_agree_on_one_order(peers: dict[str, Matrix]) -> None:
    models = ("bard", "claude-v1", "gpt-3.5-turbo", "gpt-4", "vicuna-13b")
    found = kemeny_young(Votes(models, sum(peers.values(), np.zeros((5, 5)))))
    assert found.order == ("gpt-4", "claude-v1", "vicuna-13b", "gpt-3.5-turbo", "bard")
    assert (found.proved, found.optimal_orders) == (True, 1)
