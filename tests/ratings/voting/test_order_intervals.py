"""Places by rows drawn again: whole instructions, what is left out, and how often the intervals hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.data.votes import Order, votes
from venire.ratings.voting.kemeny import kemeny_young
from venire.ratings.voting.order_intervals import OrderDraws, redrawn_positions


def simulated(rng: np.random.Generator, truth: NDArray[np.float64], instructions: int) -> Comparisons:
    """Every pair twice on every instruction; models sway by instruction, a standard deviation of one logit."""
    first, second = (np.tile(side, 2) for side in np.triu_indices(len(truth), 1))
    a, b = np.tile(first, instructions), np.tile(second, instructions)
    item = np.repeat(np.arange(instructions), len(first))
    at = truth + rng.standard_normal((instructions, len(truth)))
    won = rng.random(len(a)) < 1.0 / (1.0 + np.exp(at[item, b] - at[item, a]))
    return comparisons(a, b, won, models=[f"m{code}" for code in range(len(truth))], cluster=item)


def drawn(data: Comparisons, replicates: int, seed: int = 0) -> OrderDraws:
    def refit(rows: NDArray[np.intp]) -> Order:
        return kemeny_young(votes(data.select(rows)))

    return redrawn_positions(data, refit, kemeny_young(votes(data)), replicates=replicates, seed=seed)


def test_intervals_of_places_hold_the_true_place_at_least_as_often_as_they_say() -> None:
    """6 models, 15 tables: of 90 intervals some 85 should hold; whole places are coarse, so more do."""
    rng, truth, held, wide = np.random.default_rng(0), np.linspace(0.6, -0.6, 6), 0, 0
    for _ in range(15):
        found = drawn(simulated(rng, truth, 25), 40).places(0.95)
        held += int(np.count_nonzero((found.lo <= np.arange(1, 7)) & (np.arange(1, 7) <= found.hi)))
        wide += int((found.hi - found.lo).sum())
    assert held >= 82
    assert wide < 90 * 4.0


def test_whole_instructions_are_drawn() -> None:
    """One instruction says ten times that a is better, one ten times that b is: four draws, never a mixture."""
    data = comparisons(["a"] * 20, ["b"] * 20, [1.0] * 10 + [0.0] * 10, cluster=["x"] * 10 + ["y"] * 10)
    found = drawn(data, 400)
    assert (found.unit, found.units) == ("cluster", 2)
    values, counts = np.unique(found.position[:, 0], return_counts=True)
    assert values.tolist() == [1.0, 1.5, 2.0]
    assert counts / 400 == pytest.approx([0.25, 0.5, 0.25], abs=0.07)
    assert found.places(0.95).best == pytest.approx([0.5, 0.5], abs=0.07)


def test_places_are_rounded_outwards_and_equals_share_the_top() -> None:
    position = np.array([[1.5, 1.5, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1.5, 1.5, 3.0]])
    found = OrderDraws(np.array([1.0, 2.0, 3.0]), position, "battle", 9).places(0.95)
    assert found.lo.tolist() == [1, 1, 3]
    assert found.hi.tolist() == [2, 2, 3]
    assert found.best.tolist() == [0.75, 0.25, 0.0]
    assert found.tier.tolist() == [1, 1, 2]


def test_a_tier_begins_where_the_first_of_the_tier_before_is_surely_above() -> None:
    """b is above c in every draw and a in none surely: c parts from a, not from b, and d from c."""
    position = np.array([[1, 2, 3, 4], [2, 1, 3, 4], [1, 2, 3, 4], [2, 1, 3, 4]], dtype=np.float64)
    found = OrderDraws(np.array([1.0, 2.0, 3.0, 4.0]), position, "battle", 9).places(0.9)
    assert found.tier.tolist() == [1, 1, 2, 3]
    position[1::2, 2:] = [4.0, 3.0]
    found = OrderDraws(np.array([1.0, 2.0, 3.0, 4.0]), position, "battle", 9).places(0.9)
    assert found.tier.tolist() == [1, 1, 2, 2]


def test_the_ends_of_an_interval_are_places_that_were_drawn_and_take_in_one_draw_of_twenty() -> None:
    position = np.tile([1.0, 2.0, 3.0], (20, 1))
    position[7] = [3.0, 1.0, 2.0]
    found = OrderDraws(np.array([1.0, 2.0, 3.0]), position, "battle", 9).places(0.95)
    assert (found.lo.tolist(), found.hi.tolist()) == ([1, 1, 2], [3, 2, 3])


def test_draws_without_an_order_may_be_any_order() -> None:
    position = np.tile([1.0, 2.0, 3.0], (20, 1))
    point = np.array([1.0, 2.0, 3.0])
    position[0] = np.nan
    some = OrderDraws(point, position, "battle", 9).places(0.95)
    assert (some.lo.tolist(), some.hi.tolist(), some.tier.tolist()) == ([1, 1, 1], [3, 3, 3], [1, 1, 1])
    assert some.best.tolist() == [1.0, 0.0, 0.0]
    position[1] = np.nan
    assert np.isnan(OrderDraws(point, position, "battle", 9).places(0.95).best).all()


def test_draws_in_which_a_model_has_no_votes_are_counted() -> None:
    data = comparisons(["a", "a", "a", "a", "c"], ["b", "b", "b", "b", "b"], [1, 1, 1, 0, 1])
    found = drawn(data, 500)
    assert (found.unit, found.units) == ("battle", 5)
    assert found.without_estimate / 500 == pytest.approx(0.8**5, abs=0.07)
    assert (found.places(0.95).lo > 0).all()


def test_a_model_without_votes_at_all_has_no_interval_and_spoils_no_draw() -> None:
    data = comparisons([0, 0], [1, 1], [1.0, 1.0], models=["a", "b", "silent"])
    found = drawn(data, 10)
    assert found.without_estimate == 0
    places = found.places(0.95)
    assert (places.lo.tolist(), places.hi.tolist(), places.tier.tolist()) == ([1, 2, 0], [1, 2, 0], [1, 2, 0])
    assert places.best.tolist() == pytest.approx([1.0, 0.0, math.nan], nan_ok=True)


def test_one_cluster_or_a_method_that_fails_tells_nothing() -> None:
    data = comparisons(["a", "b"], ["b", "c"], [1.0, 1.0], cluster=["x", "x"])
    assert not drawn(data, 5).places(0.95).lo.any()
    free = comparisons(["a", "b"], ["b", "c"], [1.0, 1.0])

    def fails(rows: NDArray[np.intp]) -> Order:
        raise InputError("no order of these")

    found = redrawn_positions(free, fails, kemeny_young(votes(free)), replicates=5, seed=0)
    assert found.without_estimate == 5
    assert not found.places(0.95).hi.any()


def test_a_seed_says_which_rows_are_drawn() -> None:
    data = simulated(np.random.default_rng(1), np.linspace(0.3, -0.3, 4), 10)
    one, same, other = drawn(data, 20), drawn(data, 20), drawn(data, 20, seed=1)
    assert np.array_equal(one.position, same.position)
    assert not np.array_equal(one.position, other.position)
