"""The best design over pairs: that nothing beats it, that it says how near it is, and what it is worth on a field."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from venire.arena.campaigns import PhaseSettings
from venire.arena.errors import InputError
from venire.arena.planning import JudgeHabit, Pick, PlanState
from venire.orchestrator.policies import information_gain
from venire.orchestrator.policies.matchup_policies import connected
from venire.ratings.design import optimal_design as module
from venire.ratings.design.optimal_design import OptimalDesign, optimal_design, pair_information
from venire.ratings.pairwise.solvers import NotConvergedError

ELO = (815.2, 841.6, 864.1, 898.1, 907.5, 922.2, 926.3, 942.8, 953.0, 960.0)
ELO += (1007.3, 1015.5, 1046.0, 1052.4, 1071.0, 1087.4, 1123.2, 1159.5, 1178.4, 1228.6)
"""Twenty recorded systems by people's votes."""
FIELD = np.array(ELO) * math.log(10) / 400


def even(models: int) -> NDArray[np.float64]:
    return np.ones((models, models)) - np.eye(models)


def matchups(number: int, *, widest: bool) -> NDArray[np.float64]:
    """One battle of each of so many closest pairs that join all models, or of the widest."""
    models = tuple(f"m{n:02}" for n in range(20))
    state = PlanState(models, dict(zip(models, ELO, strict=True)))
    pairs = [Pick(models[a], models[b], gain=ELO[b] - ELO[a]) for a, b in combinations(range(20), 2)]
    ranked = sorted(pairs, key=lambda pick: pick.gain or 0.0, reverse=widest)
    counts = np.zeros((20, 20))
    for one in connected(ranked, state, PhaseSettings(), number):
        counts[models.index(one.model_a), models.index(one.model_b)] = 1.0
    return counts


@pytest.mark.parametrize(("slope", "share"), [(1.0, 0.9483), (2.0, 0.8062), (2.6, 0.7290)])
def test_all_ratings_need_fewer_verdicts_than_balanced_the_sharper_the_judge(slope: float, share: float) -> None:
    found = optimal_design(FIELD, judges=(JudgeHabit(slope),))
    assert found.efficiency(even(20)) == pytest.approx(share, abs=0.002)


@pytest.mark.parametrize(("slope", "share"), [(1.0, 0.213), (2.0, 0.157), (2.6, 0.134)])
def test_the_boundary_of_the_best_three_needs_a_fifth_of_the_balanced_verdicts_or_less(
    slope: float, share: float
) -> None:
    found = optimal_design(FIELD, judges=(JudgeHabit(slope),), purpose="boundary")
    assert found.efficiency(even(20)) == pytest.approx(share, abs=0.002)


@pytest.mark.parametrize(("slope", "lowest", "highest"), [(1.0, 1.37, 1.53), (2.0, 2.23, 2.98), (2.6, 2.88, 4.09)])
def test_a_model_at_an_end_is_placed_by_anchors_near_it(slope: float, lowest: float, highest: float) -> None:
    for place, ratio in ((0, lowest), (19, highest)):
        found = optimal_design(FIELD, judges=(JudgeHabit(slope),), purpose="place", place=place)
        its = even(20)
        its[[n for n in range(20) if n != place]] = 0.0
        assert 1.0 / found.efficiency(its) == pytest.approx(ratio, abs=0.01)


@pytest.mark.parametrize(("slope", "near", "wide"), [(1.0, 3.75, 2.73), (2.0, 2.66, 6.17), (2.6, 2.17, 11.39)])
def test_the_forty_closest_and_widest_pairs_need_many_times_the_balanced_verdicts(
    slope: float, near: float, wide: float
) -> None:
    found = optimal_design(FIELD, judges=(JudgeHabit(slope),))
    balanced = found.efficiency(even(20))
    assert balanced / found.efficiency(matchups(40, widest=False)) == pytest.approx(near, abs=0.01)
    assert balanced / found.efficiency(matchups(40, widest=True)) == pytest.approx(wide, abs=0.01)


@pytest.mark.parametrize("purpose", ["mean", "boundary"])
@pytest.mark.parametrize("seed", range(3))
def test_no_other_design_is_below_the_bound(purpose: module._Purpose, seed: int) -> None:
    rng = np.random.default_rng(seed)
    judges = (JudgeHabit(float(rng.uniform(0.5, 3.0)), float(rng.normal()), 0.1, 0.3),)
    found = optimal_design(rng.normal(0.0, 1.0, 6), judges=judges, purpose=purpose, top=2)
    assert found.limit * (1.0 - 1e-3) <= found.bound <= found.limit * (1.0 + 1e-12)
    assert found.criterion(found.weights) == pytest.approx(found.limit, rel=1e-6)
    for _ in range(50):
        other = np.triu(rng.dirichlet(np.full(36, 0.2)).reshape(6, 6), 1)
        if other.any():
            assert found.criterion(other / other.sum()) >= found.bound * (1.0 - 1e-6)


def test_the_criterion_is_the_variance_of_the_differences_that_are_wanted() -> None:
    found = optimal_design([0.0, 1.0, 2.5], judges=(JudgeHabit(2.0),), purpose="boundary", top=1)
    counts = np.array([[0, 7, 3], [0, 0, 9], [0, 0, 0]])
    both = counts + counts.T
    fisher = np.diag((both * found.information).sum(axis=1)) - both * found.information
    held = np.linalg.inv(fisher[:2, :2])
    assert found.criterion(counts) == pytest.approx(held[1, 1], rel=1e-12)  # the best is the third, the next the second
    assert found.criterion(both) == pytest.approx(held[1, 1], rel=1e-12)
    assert found.criterion(5 * counts) == pytest.approx(held[1, 1] / 5, rel=1e-12)


def test_equal_ratings_are_judged_evenly() -> None:
    found = optimal_design([0.0] * 5)
    assert found.weights[np.triu_indices(5, 1)] == pytest.approx(np.full(10, 0.1))
    assert found.limit == pytest.approx(4 * 4.0)  # five models, each pair one tenth of one half
    assert found.steps == 0


def test_the_order_of_the_models_moves_only_their_names() -> None:
    ratings, order = np.random.default_rng(3).normal(0.0, 1.0, 8), np.random.default_rng(4).permutation(8)
    one, other = optimal_design(ratings), optimal_design(ratings[order])
    assert other.limit == pytest.approx(one.limit, rel=1e-9)
    assert other.weights == pytest.approx(one.weights[np.ix_(order, order)], abs=1e-9)


def test_battles_that_do_not_join_what_is_compared_say_nothing_of_it() -> None:
    found = optimal_design([3.0, 2.0, 1.0, 0.0], purpose="boundary", top=1)
    assert found.criterion([[0, 5, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]) < math.inf
    assert found.criterion([[0, 0, 5, 0], [0, 0, 0, 5], [0, 0, 0, 0], [0, 0, 0, 0]]) == math.inf
    assert found.efficiency(np.zeros((4, 4))) == 0.0
    placed = optimal_design([3.0, 2.0, 1.0, 0.0], purpose="place", place=0)
    assert placed.criterion([[0, 0, 0, 0], [0, 0, 5, 0], [0, 0, 0, 0], [0, 0, 0, 0]]) == math.inf


@pytest.mark.parametrize("seed", range(3))
def test_the_planner_and_the_limit_weigh_battles_alike(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ratings = rng.normal(0.0, 3.0, 7)
    judges = [JudgeHabit(float(rng.normal(1, 1)), float(rng.normal()), 0.2, rho) for rho in (-0.3, 0.0, 0.6)]
    theirs = information_gain.information_of_pairs(ratings, judges)
    assert pair_information(ratings, judges) == pytest.approx(theirs, rel=1e-12)
    assert pair_information(ratings) == pytest.approx(information_gain.information_of_pairs(ratings, ()), rel=1e-12)


def test_ratings_far_apart_have_a_best_design_too() -> None:
    found = optimal_design(np.linspace(0.0, 40.0, 20))
    assert found.limit >= found.bound >= found.limit * 0.999


def test_a_search_that_does_not_end_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STEPS", 3)
    with pytest.raises(NotConvergedError, match="bound after 3 steps"):
        optimal_design(FIELD)


@pytest.mark.parametrize(
    ("ratings", "options", "message"),
    [
        ([0.0], {}, "two models or more"),
        ([0.0, math.nan], {}, "finite"),
        ([0.0, 1.0], {"tolerance": 0.0}, "tolerance is 0"),
        ([0.0, 1.0], {"purpose": "boundary", "top": 2}, "give 1 to 1"),
        ([0.0, 1.0], {"purpose": "place"}, "place is None"),
        ([0.0, 1.0], {"purpose": "place", "place": 2}, "0 to 1"),
        ([0.0, 1e4], {"purpose": "place", "place": 0}, "too far"),
    ],
)
def test_what_makes_no_design_is_refused(ratings: list[float], options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        optimal_design(ratings, **options)  # type: ignore[arg-type]  # options of several kinds in one table


def test_counts_of_another_field_are_refused() -> None:
    found: OptimalDesign = optimal_design([0.0, 1.0, 2.0])
    for counts in (np.ones((2, 2)), -np.ones((3, 3)), np.full((3, 3), np.nan)):
        with pytest.raises(InputError, match="counts of battles"):
            found.criterion(counts)


@pytest.mark.parametrize("judge", [JudgeHabit(ties=1.0), JudgeHabit(slope=0.0)])
def test_judges_that_say_nothing_are_not_taken_for_ratings_too_far_apart(judge: JudgeHabit) -> None:
    with pytest.raises(InputError, match="no battle says anything"):
        module.optimal_design([0.0, 1.0, 2.0], judges=(judge,))
