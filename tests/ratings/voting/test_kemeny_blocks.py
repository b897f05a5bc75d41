"""Blocks: every order of least cost keeps them together and in one order; and the units that weights are counted in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from tests.ratings.all_orders import ballots_summed, tournament, tried
from venire.ratings.data.votes import contradicted, pair_bound
from venire.ratings.voting.kemeny_blocks import blocks, excess_table, order_cost

SMALL = st.integers(1, 6).flatmap(lambda size: hnp.arrays(np.int64, (size, size), elements=st.integers(0, 3)))


@given(SMALL)
def test_every_best_order_has_the_blocks_one_after_the_other(counts: NDArray[np.int64]) -> None:
    weight = counts.astype(np.float64)
    np.fill_diagonal(weight, 0.0)
    found = blocks(excess_table(weight, 1e-9).table)
    for order in tried(weight).orders:
        ends = np.cumsum([len(block) for block in found])[:-1]
        assert [sorted(part) for part in np.split(order, ends)] == [block.tolist() for block in found]


@given(SMALL)
def test_blocks_cannot_be_split_further(counts: NDArray[np.int64]) -> None:
    """Each cut of a block leaves a model below that has as many votes as one above."""
    table = excess_table(counts.astype(np.float64), 1e-9).table
    for block in blocks(table):
        inner = table[np.ix_(block, block)]
        for bits in range(1, (1 << len(block)) - 1):
            top = np.flatnonzero([bits >> code & 1 for code in range(len(block))])
            rest = np.setdiff1d(np.arange(len(block)), top)
            assert not (inner[np.ix_(top, rest)] > 0.0).all()


def test_a_tie_joins_what_a_vote_parts() -> None:
    table = np.zeros((3, 3))
    table[0, 1] = table[0, 2] = 1.0
    assert [block.tolist() for block in blocks(table)] == [[0], [1, 2]]
    table[2, 1] = 0.5
    assert [block.tolist() for block in blocks(table)] == [[0], [2], [1]]
    assert blocks(np.zeros((0, 0))) == []


@pytest.mark.parametrize("part", [1.0, 0.5, 1 / 3, 0.1, 7.0, 1e-9, 1e12])
def test_weights_with_a_common_unit_are_whole_and_cost_what_they_did(part: float) -> None:
    weight = part * ballots_summed(7, 5, 0.0, 1)
    found = excess_table(weight, 1e-9 * max(1.0, weight.sum()))
    order = np.random.default_rng(0).permutation(7)
    paid = pair_bound(weight) + found.scale * order_cost(found.table, order)
    assert paid == pytest.approx(contradicted(weight, order))
    assert found.whole or part == 1e-9
    if found.whole:
        assert np.array_equal(found.table, np.rint(found.table))
        assert np.gcd.reduce(found.table.astype(np.int64).ravel()) == 1


def test_sums_of_thirds_tie_where_the_votes_do() -> None:
    """0.1 + 0.2 is not 0.3 in floats: the last bits of a sum decide nothing."""
    weight = np.array([[0.0, 0.1 + 0.2], [0.3, 0.0]])
    assert not excess_table(weight, 1e-9).table.any()
    weight[0, 1] += 1e-3 * np.pi
    assert excess_table(weight, 1e-9).table[0, 1] > 0.0


def test_weights_without_a_unit_are_not_called_whole() -> None:
    weight = np.random.default_rng(3).random((6, 6))
    found = excess_table(weight, 1e-9)
    assert not found.whole
    assert found.scale * found.table == pytest.approx(np.maximum(weight - weight.T, 0.0))


def test_among_keeps_what_is_between_some() -> None:
    found = excess_table(tournament(5, 0), 1e-9)
    assert np.array_equal(found.among(np.array([3, 1])).table, found.table[[3, 1]][:, [3, 1]])
