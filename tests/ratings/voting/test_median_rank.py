"""Median places: ties, unranked models, ballots of some models, and weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ratings.elections import ballot_table
from venire.ratings.voting.rules import median_rank, weighted_median

INF, NAN = np.inf, np.nan


def test_medians_by_hand_with_ties_and_a_truncated_ballot() -> None:
    rank = np.array([[1, 2, 3, 4], [1, 1, 3, 4], [2, 1, INF, INF]])
    found = median_rank(ballot_table(rank))
    # Places: m0 1, 1.5, 2; m1 2, 1.5, 1; m2 3, 3, 3.5; m3 4, 4, 3.5.
    assert found.score == pytest.approx([1.5, 1.5, 3.0, 4.0])
    assert found.position.tolist() == [1.5, 1.5, 3.0, 4.0]
    assert found.order == ("m0", "m1", "m2", "m3")
    assert found.unit == "median place"


def test_a_place_on_a_short_ballot_is_stretched_to_the_field() -> None:
    rank = np.array([[1, 2, NAN, NAN], [NAN, NAN, 1, 2], [NAN, 1, 2, 3]])
    found = median_rank(ballot_table(rank))
    one, two = 0.5 + 4 * 0.5 / 2, 0.5 + 4 * 1.5 / 2
    assert found.score == pytest.approx([one, (two + 0.5 + 4 / 6) / 2, (one + 2.5) / 2, (two + 0.5 + 10 / 3) / 2])


def test_ballots_that_say_nothing_are_left_out() -> None:
    rank = np.array([[1, 2, NAN], [INF, INF, INF], [NAN, 1, NAN], [2, NAN, 1]])
    found = median_rank(ballot_table(rank))
    assert found.score == pytest.approx([(1.25 + 2.75) / 2, 2.75, 1.25])


@pytest.mark.parametrize(
    ("values", "weight", "median"),
    [
        ([3, 1, 2], [1, 1, 1], 2),
        ([4, 1, 2, 3], [1, 1, 1, 1], 2.5),
        ([1, 2, 3], [5, 1, 1], 1),
        ([1, 2], [1, 1], 1.5),
        ([1, 2], [1, 1 + 1e-6], 2),
        ([1, 5, 9], [0.1, 0.2, 0.3], 7),
        ([7], [1e12], 7),
    ],
)
def test_weighted_medians_by_hand(values: list[float], weight: list[float], median: float) -> None:
    assert weighted_median(np.array(values, dtype=float), np.array(weight, dtype=float)) == median


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_rows_and_names_decide_nothing_weights_are_copies_and_turning_all_turns_the_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = np.argsort(rng.random((7, 4)), axis=1) + 1.0
    weight, rows, place = rng.integers(1, 4, 7), rng.permutation(7), rng.permutation(4)
    known = median_rank(ballot_table(rank, weight=weight)).position
    assert (
        median_rank(ballot_table(rank[rows][:, place], weight=weight[rows])).position.tolist() == known[place].tolist()
    )
    assert median_rank(ballot_table(np.repeat(rank, weight, axis=0))).position.tolist() == known.tolist()
    assert median_rank(ballot_table(5.0 - rank, weight=weight)).position.tolist() == (5.0 - known).tolist()


def test_one_model_and_no_ballot_have_no_position() -> None:
    assert np.isnan(median_rank(ballot_table(np.array([[1.0]]))).position).all()
    assert np.isnan(median_rank(ballot_table(np.zeros((0, 3)))).position).all()


def test_the_cost_is_that_of_the_pairs_of_the_ballots() -> None:
    rank = np.array([[1, 2, 3], [1, 3, 2], [3, 1, 2]], dtype=float)
    found = median_rank(ballot_table(rank))
    assert found.order == ("m0", "m1", "m2")
    assert (found.cost, found.lower_bound, found.proved) == (3.0, 3.0, True)
