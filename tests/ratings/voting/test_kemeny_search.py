"""Orders that no move of one model makes cheaper, and what new starts add."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ratings.all_orders import ballots_summed, tournament
from venire.ratings.voting.kemeny_blocks import Excess, excess_table, optimal_orders, order_cost
from venire.ratings.voting.kemeny_program import borda_start, local_search, random_restarts


def never() -> bool:
    return False


@pytest.mark.parametrize("size", [2, 3, 7, 20])
def test_no_move_of_one_model_helps_any_more(size: int) -> None:
    for seed in range(10):
        block = excess_table(ballots_summed(size, 5, 0.0, seed), 1e-9)
        order = local_search(block, np.random.default_rng(seed).permutation(size), never)
        cost = order_cost(block.table, order)
        assert sorted(order.tolist()) == list(range(size))
        for mover in range(size):
            for place in range(size):
                moved = np.insert(np.delete(order, mover), place, order[mover])
                assert order_cost(block.table, moved) >= cost


def test_a_model_may_go_to_the_very_end() -> None:
    """The first loses by standing below the second alone; it gains by standing below the third, last of all."""
    table = np.zeros((3, 3))
    table[0, 1], table[2, 0], table[1, 2] = 1.0, 2.0, 5.0
    assert local_search(Excess(table, 1.0, True, 0.5), np.arange(3), never).tolist() == [1, 2, 0]


def test_the_start_is_by_votes_won_less_votes_lost() -> None:
    weight = np.array([[0.0, 1, 0], [3, 0, 1], [4, 5, 0]])
    assert borda_start(excess_table(weight, 1e-9)).tolist() == [2, 1, 0]


def test_new_starts_never_cost_more_and_mostly_find_the_best() -> None:
    met = 0
    for seed in range(12):
        block = excess_table(tournament(12, seed), 1e-9)
        first = local_search(block, borda_start(block), never)
        found = random_restarts(block, first, 50, never)
        assert order_cost(block.table, found) <= order_cost(block.table, first)
        assert np.array_equal(found, random_restarts(block, first, 50, never))
        met += order_cost(block.table, found) == optimal_orders(block).cost
    assert met >= 11


def test_what_was_found_is_kept_through_starts_that_find_less() -> None:
    block = excess_table(tournament(25, 1), 1e-9)
    first = local_search(block, borda_start(block), never)
    costs = [order_cost(block.table, random_restarts(block, first, starts, never)) for starts in range(15)]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < costs[0]


def test_it_stops_when_it_is_late() -> None:
    block = excess_table(tournament(12, 0), 1e-9)
    start = np.arange(12)
    assert np.array_equal(local_search(block, start, lambda: True), start)
    assert np.array_equal(random_restarts(block, start, 50, lambda: True), start)
