"""All orders of least cost of a small block: how many, and how often each model stands where."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from tests.ratings.all_orders import ballots_summed, tournament, tried
from venire.ratings.voting.kemeny_blocks import MAX_MODELS, Excess, excess_table, optimal_orders, order_cost


@given(st.integers(1, 6).flatmap(lambda size: hnp.arrays(np.int64, (size, size), elements=st.integers(0, 2))))
def test_they_are_those_of_all_orders_tried(counts: NDArray[np.int64]) -> None:
    table = np.maximum(counts - counts.T, 0).astype(np.float64)
    found, truth = optimal_orders(Excess(table, 1.0, True, 0.5)), tried(table)
    assert (found.cost, found.count) == (truth.cost, len(truth.orders))
    assert found.position == pytest.approx(truth.position)
    assert tuple(found.order.tolist()) in truth.orders


def test_of_several_best_orders_the_one_shown_follows_the_mean_places() -> None:
    """Going down, no model that could stand here as well has a smaller mean place."""
    for seed in range(20):
        table = tournament(6, seed)
        found, truth = optimal_orders(excess_table(table, 1e-9)), tried(table)
        shown = tuple(found.order.tolist())
        for place in range(6):
            here = {order[place] for order in truth.orders if order[:place] == shown[:place]}
            assert shown[place] == min(here, key=lambda code: (round(truth.position[code], 9), code))


def test_models_that_all_tie_have_every_order_exactly_counted_up_to_the_largest_block() -> None:
    found = optimal_orders(Excess(np.zeros((MAX_MODELS, MAX_MODELS)), 1.0, True, 0.5))
    assert found.count == math.factorial(MAX_MODELS) < 2**53
    assert found.position == pytest.approx(np.full(MAX_MODELS, (MAX_MODELS + 1) / 2))
    assert found.order.tolist() == list(range(MAX_MODELS))


def test_the_largest_block_costs_what_its_order_does() -> None:
    table = excess_table(ballots_summed(MAX_MODELS, 9, 0.0, 0), 1e-9)
    found = optimal_orders(table)
    assert found.cost == order_cost(table.table, found.order)
    turned = optimal_orders(Excess(table.table.T.copy(), 1.0, True, 0.5))
    assert (turned.cost, turned.count) == (found.cost, found.count)
    assert turned.position == pytest.approx(MAX_MODELS + 1 - found.position)
