"""The best order of a large block by linear programs, against all subsets and against other ways to time's end."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult

from tests.ratings.all_orders import ballots_summed, tournament
from venire.ratings.voting import kemeny_program
from venire.ratings.voting.kemeny_blocks import Excess, excess_table, optimal_orders, order_cost
from venire.ratings.voting.kemeny_program import optimal_order


def always() -> float:
    return 60.0


@pytest.mark.parametrize("size", [3, 8, 13])
def test_two_algorithms_find_the_same_least_cost(size: int) -> None:
    for seed in range(6):
        for weight in (tournament(size, seed), ballots_summed(size, 6, 0.1, seed)):
            block = excess_table(weight, 1e-9)
            found = optimal_order(block, always)
            assert found.cost == found.bound == optimal_orders(block).cost == order_cost(block.table, found.order)


@pytest.mark.parametrize("seed", range(3))
def test_weights_without_a_unit_are_proved_too(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weight = rng.random((13, 13)) * ballots_summed(13, 3, 0.0, seed)
    block = excess_table(weight, 1e-9 * weight.sum())
    assert not block.whole
    found, exact = optimal_order(block, always), optimal_orders(block)
    assert found.cost == pytest.approx(exact.cost, abs=block.tolerance)
    assert found.cost - found.bound <= block.tolerance
    assert found.bound <= exact.cost + 1e-9


@pytest.fixture(params=["whole", "not whole"])
def unsettled(request: pytest.FixtureRequest) -> Excess:
    """Blocks that linear programs alone do not settle."""
    if request.param == "whole":
        return excess_table(tournament(18, 2), 1e-9)
    weight = tournament(12, 15) * np.random.default_rng(15).random((12, 12))
    return excess_table(weight, 1e-9 * weight.sum())


def settled(block: Excess, order: NDArray[np.intp]) -> kemeny_program._Program:
    """What linear programs show of a block where only this order is known."""
    program = kemeny_program._Program(block)
    program.offer(order)
    kemeny_program._cutting_planes(program, always)
    program.order, program.cost = order, order_cost(block.table, order)
    return program


def test_whole_numbers_prove_what_linear_programs_do_not(unsettled: Excess) -> None:
    best = optimal_orders(unsettled)
    assert not settled(unsettled, best.order).proved
    found = optimal_order(unsettled, always)
    assert found.cost == pytest.approx(best.cost, abs=unsettled.tolerance)
    assert found.cost - found.bound <= unsettled.tolerance
    assert found.bound <= best.cost + 1e-9


def test_whole_numbers_find_the_best_order_from_any_other(unsettled: Excess) -> None:
    program = settled(unsettled, np.arange(len(unsettled.table)))
    while not program.proved and kemeny_program._integer_program(program, always):
        pass
    assert program.proved
    assert program.cost == pytest.approx(optimal_orders(unsettled).cost, abs=unsettled.tolerance)


def test_an_order_that_costs_a_little_more_than_the_best_is_not_proved(unsettled: Excess) -> None:
    """Two neighbours of the best order are swapped, those that cost least: there is one unit to be found."""
    best = optimal_orders(unsettled)
    swaps = [np.insert(np.delete(best.order, at), at + 1, best.order[at]) for at in range(len(best.order) - 1)]
    near = min(swaps, key=lambda one: order_cost(unsettled.table, one))
    program = settled(unsettled, near)
    assert program.cost > best.cost + unsettled.tolerance
    while not program.proved and kemeny_program._integer_program(program, always):
        pass
    assert program.cost == pytest.approx(best.cost, abs=unsettled.tolerance)


@pytest.mark.parametrize("seed", range(5))
def test_no_multipliers_make_a_bound_that_an_order_goes_below(seed: int) -> None:
    """Any signs, any sizes, any rows: multipliers of no use make a weak bound, never a false one."""
    rng = np.random.default_rng(seed)
    agreed = excess_table(10.0 * np.tril(np.ones((6, 6)), -1) + np.triu(rng.random((6, 6)), 1), 1e-9)
    for block in (agreed, excess_table(tournament(6, seed), 1e-9), excess_table(ballots_summed(6, 4, 0.0, seed), 1e-9)):
        program, truth = kemeny_program._Program(block), optimal_orders(block).cost
        program.circles = np.array([one for one in permutations(range(6), 3) if one[0] == min(one)], dtype=np.intp)
        for size in (1e-3, 0.1, 1.0, 30.0):
            multipliers = size * rng.normal(size=len(program.circles)) * (rng.random(len(program.circles)) < 0.2)
            assert program.below(multipliers) <= truth + 1e-9
            assert program.below(np.abs(multipliers)) <= truth + 1e-9


def test_a_solver_that_gives_up_leaves_the_best_order_met_and_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    block = excess_table(tournament(18, 2), 1e-9)
    truth = optimal_orders(block).cost
    given_up = OptimizeResult(status=1, x=None, mip_dual_bound=None)
    monkeypatch.setattr("scipy.optimize.milp", lambda *_, **__: given_up)
    found = optimal_order(block, always)
    assert found.bound < truth <= found.cost
    monkeypatch.setattr("scipy.optimize.linprog", lambda *_, **__: given_up)
    assert optimal_order(block, always).bound == 0.0


def test_the_solver_is_told_how_many_seconds_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[float] = []
    given_up = OptimizeResult(status=1, x=None, mip_dual_bound=None)

    def solver(*_: object, options: dict[str, float], **__: object) -> OptimizeResult:
        told.append(options["time_limit"])
        return given_up

    monkeypatch.setattr("scipy.optimize.linprog", solver)
    monkeypatch.setattr("scipy.optimize.milp", solver)
    optimal_order(excess_table(tournament(20, 0), 1e-9), lambda: 7.5)
    assert len(told) == 2
    assert all(0.0 < seconds <= 7.5 for seconds in told)


def test_equal_blocks_have_equal_orders() -> None:
    block = excess_table(tournament(21, 1), 1e-9)
    assert np.array_equal(optimal_order(block, always).order, optimal_order(block, always).order)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_tournaments_of_25_are_proved(seed: int) -> None:
    found = optimal_order(excess_table(tournament(25, seed), 1e-9), always)
    assert found.cost == found.bound
