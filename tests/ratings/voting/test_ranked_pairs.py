"""Ranked pairs against locking one majority at a time, and what becomes of equal ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.ratings.data.votes import Votes
from venire.ratings.voting.rules import ranked_pairs


def locked_one_by_one(votes: Votes) -> list[int]:
    """Tideman's rule as it is written, for margins that all differ."""
    margin, size = votes.weight - votes.weight.T, len(votes.models)
    locked: set[tuple[int, int]] = set()

    def reaches(start: int, end: int) -> bool:
        return start == end or any(reaches(below, end) for above, below in locked if above == start)

    pairs = [(a, b) for a in range(size) for b in range(size) if margin[a, b] > 0]
    for a, b in sorted(pairs, key=lambda pair: -margin[pair]):
        if not reaches(b, a):
            locked.add((a, b))
    return sorted(range(size), key=lambda code: -sum(reaches(code, other) for other in range(size)))


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(2, 6))
def test_margins_that_differ_are_locked_one_by_one(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    weight = np.triu(rng.permutation(size * size).reshape(size, size) + 1.0, 1)
    turn = rng.random((size, size)) < 0.5
    votes = Votes(
        tuple(f"m{code}" for code in range(size)), np.where(turn, weight, 0.0) + np.where(turn, 0.0, weight).T
    )
    assert [int(name[1:]) for name in ranked_pairs(votes).order] == locked_one_by_one(votes)


def test_majorities_of_one_margin_that_close_a_cycle_fall_together() -> None:
    weight = np.zeros((4, 4))
    for above, below in ("ab", "bc", "ca"):
        weight["abcd".index(above), "abcd".index(below)] = 2.0
    weight[:3, 3] = 1.0
    found = ranked_pairs(Votes(tuple("abcd"), weight))
    assert found.position.tolist() == [2, 2, 2, 4]


def test_equals_on_a_cycle_with_what_is_locked_fall_and_leave_their_model_in_the_middle() -> None:
    # a > b by 3; b > c and c > a by 2 close a cycle with it.
    votes = Votes(tuple("abc"), np.array([[0.0, 3.0, 0.0], [0.0, 0.0, 2.0], [2.0, 0.0, 0.0]]))
    assert ranked_pairs(votes).position.tolist() == [1.0, 3.0, 2.0]


def test_a_majority_that_contradicts_a_larger_one_does_not_pull_down_its_equals() -> None:
    # d > c by 4 and c > a by 3 are locked; a > d by 2 falls, and b > d of the same margin stays.
    weight = np.zeros((4, 4))
    weight[3, 2], weight[2, 0], weight[0, 3], weight[1, 3] = 4.0, 3.0, 2.0, 2.0
    found = ranked_pairs(Votes(tuple("abcd"), weight))
    assert found.order == ("b", "d", "c", "a")
    assert found.score == pytest.approx([-3, 3, -1, 1])
    # d > c > a and b > a are locked. a > d by 2 falls first, and d > b by 2, on a cycle with it alone, stays.
    weight = np.zeros((4, 4))
    weight[3, 2], weight[1, 0], weight[2, 0], weight[0, 3], weight[3, 1] = 5.0, 4.0, 3.0, 2.0, 2.0
    assert ranked_pairs(Votes(tuple("abcd"), weight)).position.tolist() == [4.0, 2.5, 2.5, 1.0]
