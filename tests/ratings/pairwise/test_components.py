"""Existence: groups from pair counts are those of the matrix, and models that are held count as one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from venire.ratings.data.wins import count_matrix
from venire.ratings.pairwise.components import SeparatedError, strong_components, weak_components

NAMES = list("abcdef")


@given(beats=st.lists(st.sampled_from([0.0, 0.0, 1e-300, 1.0]), min_size=36, max_size=36))
def test_groups_of_pair_counts_are_those_of_the_matrix(beats: list[float]) -> None:
    wins = np.array(beats).reshape(6, 6) * (1 - np.eye(6))
    counts = count_matrix(wins, NAMES)
    found = [group.tolist() for group in counts.strong_components()]
    assert found == [group.tolist() for group in strong_components(wins)]
    assert weak_components(counts) == connected_components(wins > 0, directed=False)[0]
    held = np.array([True, False, True, False, True, False])
    joined = wins.copy()
    joined[np.ix_(held, held)] = 1.0
    np.fill_diagonal(joined, 0.0)
    assert {tuple(group) for group in counts.strong_components(held)} == {
        tuple(group) for group in strong_components(joined)
    }


def test_a_long_chain_of_wins_both_ways_is_one_group() -> None:
    size = 500
    wins = np.eye(size, k=1) + np.eye(size, k=-1)
    assert len(count_matrix(wins, [str(code) for code in range(size)]).strong_components()) == 1
    wins[249, 250] = 0.0
    found = count_matrix(wins, [str(code) for code in range(size)]).strong_components()
    assert [group[0] for group in found] == [250, 0]


def test_a_message_names_a_few_of_many() -> None:
    error = SeparatedError(tuple((str(code),) for code in range(40)))
    assert str(error).startswith("the models fall into 40 groups")
    assert len(str(error)) < 250
    with pytest.raises(SeparatedError):
        raise error
