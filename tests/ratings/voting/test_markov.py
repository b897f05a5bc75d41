"""The walk of rank centrality: its exact shares, what it leaves for good, and what it recovers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire.arena.errors import InputError
from venire.ratings.data.votes import Votes
from venire.ratings.voting.rules import markov, stationary_log_shares


def names(size: int) -> tuple[str, ...]:
    return tuple(f"m{code}" for code in range(size))


def bradley_terry_shares(strength: np.ndarray, met: np.ndarray) -> np.ndarray:
    return met * strength[:, None] / (strength[:, None] + strength)


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(2, 8))
def test_time_is_in_proportion_to_strength_whoever_met_whom(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    strength, met = np.exp(2 * rng.standard_normal(size)), np.eye(size, k=1)
    met = np.maximum(met, rng.random((size, size)) < 0.3)
    met = np.triu(met, 1) * rng.integers(1, 9, (size, size))
    found = markov(Votes(names(size), bradley_terry_shares(strength, met + met.T)))
    assert found.score == pytest.approx(strength / strength.sum(), rel=1e-9)


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(2, 7))
def test_shares_are_the_limit_of_the_walk_itself(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    rate = rng.random((size, size)) * (rng.random((size, size)) < 0.45)
    np.fill_diagonal(rate, 0.0)
    step = np.eye(size) + (rate - np.diag(rate.sum(axis=1))) / (2.0 * size)
    limit = np.linalg.matrix_power(step, 1 << 40).mean(axis=0)
    assert np.exp(stationary_log_shares(rate)) == pytest.approx(limit, abs=1e-3)
    assert np.exp(stationary_log_shares(rate)) @ step == pytest.approx(np.exp(stationary_log_shares(rate)), abs=1e-12)


def test_what_is_left_for_good_stands_below_by_a_walk_of_its_own() -> None:
    weight = np.array([[0.0, 1, 1, 1], [0, 0, 3, 2], [0, 1, 0, 5], [0, 2, 1, 0]])
    found = markov(Votes(names(4), weight))
    assert found.score == pytest.approx([1.0, 0.0, 0.0, 0.0])
    alone = markov(Votes(names(3), weight[1:, 1:]))
    assert found.position.tolist() == [1.0, *(1.0 + alone.position)]


def test_sets_that_the_walk_cannot_leave_share_by_where_it_begins() -> None:
    # a beats b and c; d and e are an island.
    weight = np.zeros((5, 5))
    weight[0, 1] = weight[0, 2] = 1.0
    weight[3, 4], weight[4, 3] = 3.0, 1.0
    assert markov(Votes(names(5), weight)).score == pytest.approx([0.6, 0, 0, 0.3, 0.1])


def test_a_jump_joins_what_votes_do_not() -> None:
    weight = np.zeros((3, 3))
    weight[0, 1] = weight[1, 2] = 1.0
    found = markov(Votes(names(3), weight), jump=0.3)
    step = np.array([[1.0, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]]) * 0.7 + 0.1
    assert found.score is not None
    assert found.score @ step == pytest.approx(found.score, abs=1e-12)
    assert found.score.min() > 0.0
    with pytest.raises(InputError, match="jump is 1"):
        markov(Votes(names(3), weight), jump=1.0)


def test_small_shares_keep_their_digits() -> None:
    strength = 10.0 ** np.arange(0, -60, -6)
    found = markov(Votes(names(10), bradley_terry_shares(strength, 1.0 - np.eye(10))))
    assert found.score == pytest.approx(strength / strength.sum(), rel=1e-12)


def test_a_ladder_of_lopsided_pairs_has_an_order_or_a_reason() -> None:
    size, shuffled = 60, np.random.default_rng(0).permutation(60)
    weight = (1e12 * np.eye(size, k=1) + np.eye(size, k=-1))[np.ix_(shuffled, shuffled)]
    assert (markov(Votes(names(size), weight)).position - 1.0).tolist() == shuffled.tolist()
    ends = np.r_[size - 1, : size - 1]
    weight = (1e12 * np.eye(size, k=1) + 1e-12 * np.eye(size, k=-1))[np.ix_(ends, ends)]
    with pytest.raises(InputError, match="too one-sided"):
        markov(Votes(names(size), weight))
