"""Orders that no move of one model makes cheaper, and what new starts add."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ratings.all_orders import ballots_summed, tournament
from venire.ratings.voting.kemeny_blocks import Excess, excess, excess_of, optima
from venire.ratings.voting.kemeny_program import improved, searched, started


def never() -> bool:
    return False


@pytest.mark.parametrize("size", [2, 3, 7, 20])
def test_no_move_of_one_model_helps_any_more(size: int) -> None:
    for seed in range(10):
        block = excess(ballots_summed(size, 5, 0.0, seed), 1e-9)
        order = improved(block, np.random.default_rng(seed).permutation(size), never)
        cost = excess_of(block.table, order)
        assert sorted(order.tolist()) == list(range(size))
        for mover in range(size):
            for place in range(size):
                moved = np.insert(np.delete(order, mover), place, order[mover])
                assert excess_of(block.table, moved) >= cost


def test_a_model_may_go_to_the_very_end() -> None:
    """The first loses by standing below the second alone; it gains by standing below the third, last of all."""
    table = np.zeros((3, 3))
    table[0, 1], table[2, 0], table[1, 2] = 1.0, 2.0, 5.0
    assert improved(Excess(table, 1.0, True, 0.5), np.arange(3), never).tolist() == [1, 2, 0]


def test_the_start_is_by_votes_won_less_votes_lost() -> None:
    weight = np.array([[0.0, 1, 0], [3, 0, 1], [4, 5, 0]])
    assert started(excess(weight, 1e-9)).tolist() == [2, 1, 0]


def test_new_starts_never_cost_more_and_mostly_find_the_best() -> None:
    met = 0
    for seed in range(12):
        block = excess(tournament(12, seed), 1e-9)
        first = improved(block, started(block), never)
        found = searched(block, first, 50, never)
        assert excess_of(block.table, found) <= excess_of(block.table, first)
        assert np.array_equal(found, searched(block, first, 50, never))
        met += excess_of(block.table, found) == optima(block).cost
    assert met >= 11


def test_what_was_found_is_kept_through_starts_that_find_less() -> None:
    block = excess(tournament(25, 1), 1e-9)
    first = improved(block, started(block), never)
    costs = [excess_of(block.table, searched(block, first, starts, never)) for starts in range(15)]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < costs[0]


def test_it_stops_when_it_is_late() -> None:
    block = excess(tournament(12, 0), 1e-9)
    start = np.arange(12)
    assert np.array_equal(improved(block, start, lambda: True), start)
    assert np.array_equal(searched(block, start, 50, lambda: True), start)
