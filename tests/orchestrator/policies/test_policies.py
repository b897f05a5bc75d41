"""Matchup policies: how many matchups, which ones, and that nobody is left apart (arXiv 2509.23510)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parameters import slow_after
from venire.arena.campaigns import PhaseSettings
from venire.arena.errors import InputError
from venire.arena.planning import PlanState
from venire.arena.records import Matchup
from venire.orchestrator.policies import POLICIES
from venire.orchestrator.policies.matchup_policies import gap

CHOOSING = ("widest-gap", "random", "banded-gap", "half-banded")
CROSSED = [name for name, policy in POLICIES.items() if policy.crossed]


def named(elos: Sequence[float]) -> PlanState:
    models = tuple(f"m{n:03}" for n in range(len(elos)))
    return PlanState(models, dict(zip(models, elos, strict=True)))


def take(
    policy: str,
    state: PlanState,
    number: int | None,
    coverage: float = 0.3,
    seed: int = 7,
    band: tuple[float, float] = (0.0, 3000.0),
) -> list[Matchup]:
    phase = PhaseSettings(policy, matchups=number, coverage=coverage, band=band)
    wanted = len(state.models) * (len(state.models) - 1) // 2 if number is None else number
    picks = POLICIES[policy].choose(state, phase, wanted, np.random.default_rng(seed))
    return [Matchup(one.model_a, one.model_b, gap(state, one.model_a, one.model_b)) for one in picks]


def field(seed: int, models: int) -> PlanState:
    return named([float(elo) for elo in np.random.default_rng(seed).normal(1100, 150, models)])


def parts(models: Iterable[str], matchups: Iterable[Matchup]) -> int:
    """How many groups of models no matchup joins, by walking from model to model."""
    near: dict[str, set[str]] = {model: set() for model in models}
    for one in matchups:
        near[one.model_a].add(one.model_b)
        near[one.model_b].add(one.model_a)
    found = 0
    while near:
        found += 1
        walk = [next(iter(near))]
        while walk:
            walk += near.pop(walk.pop(), ())
    return found


def used(matchups: Iterable[Matchup]) -> Counter[str]:
    return Counter(model for one in matchups for model in (one.model_a, one.model_b))


def cap(number: int, models: int, coverage: float) -> int:
    return max(math.floor(coverage * number + 1e-9), math.ceil(2 * number / models), 2)


elos = st.lists(st.floats(0, 3000), min_size=2, max_size=30)


@st.composite
def tasks(draw: st.DrawFn) -> tuple[PlanState, int, float]:
    """A field, a number of matchups that can connect it, and a coverage."""
    state = named(draw(elos))
    models = len(state.models)
    number = draw(st.integers(models - 1, models * (models - 1) // 2 + 3))
    return state, number, draw(st.sampled_from([0.05, 0.2, 0.3, 0.5, 1.0]))


@pytest.mark.parametrize("policy", CHOOSING)
@given(task=tasks(), seed=st.integers(0, 2**32))
def test_a_plan_is_connected_canonical_without_duplicates_and_within_its_coverage(
    policy: str, task: tuple[PlanState, int, float], seed: int
) -> None:
    state, number, coverage = task
    wanted = min(number, math.comb(len(state.models), 2))
    plan = take(policy, state, number, coverage, seed)
    assert parts(state.models, plan) == 1
    assert len({(one.model_a, one.model_b) for one in plan}) == len(plan) <= wanted
    assert all(one.model_a < one.model_b for one in plan)
    most = max(used(plan).values())
    assert most <= cap(wanted, len(state.models), coverage)
    assert len(plan) == wanted or most == cap(wanted, len(state.models), coverage)


@pytest.mark.parametrize("policy", CHOOSING)
@given(task=tasks())
def test_a_plan_without_a_limit_on_coverage_has_exactly_the_number_wanted_or_all_pairs(
    policy: str, task: tuple[PlanState, int, float]
) -> None:
    state, number, _ = task
    assert len(take(policy, state, number, coverage=1.0)) == min(number, math.comb(len(state.models), 2))


@pytest.mark.parametrize("policy", CHOOSING)
@pytest.mark.parametrize(("models", "number"), [(5, 8), (10, 20), (10, 30), (15, 30), (20, 30), (20, 50), (30, 50)])
def test_the_usual_plans_have_exactly_the_number_wanted(policy: str, models: int, number: int) -> None:
    for seed in range(20):
        assert len(take(policy, field(seed, models), number, seed=seed)) == number


@pytest.mark.parametrize("policy", CROSSED)
@given(task=tasks(), seed=st.integers(0, 2**32), shuffle=st.randoms(use_true_random=False))
def test_a_seed_means_one_plan_whatever_the_order_of_the_models(
    policy: str, task: tuple[PlanState, int, float], seed: int, shuffle: object
) -> None:
    state, number, coverage = task
    plan = take(policy, state, number, coverage, seed)
    models = list(state.models)
    shuffle.shuffle(models)  # type: ignore[attr-defined]  # hypothesis hands out a random.Random
    other = PlanState(tuple(models), {model: state.elo[model] for model in models})
    again = take(policy, other, number, coverage, seed)
    assert [(one.model_a, one.model_b, one.gap) for one in again] == [
        (one.model_a, one.model_b, one.gap) for one in plan
    ]


def test_random_matchups_differ_by_seed() -> None:
    state = field(1, 12)
    assert len({tuple(take("random", state, 20, seed=seed)) for seed in range(10)}) == 10


def test_widest_gap_does_not_depend_on_the_seed() -> None:
    assert take("widest-gap", field(1, 12), 20, seed=1) == take("widest-gap", field(1, 12), 20, seed=2)


@given(task=tasks())
def test_widest_gap_takes_the_widest_and_only_as_many_joining_matchups_as_needed(
    task: tuple[PlanState, int, float],
) -> None:
    state, number, _ = task
    pairs = [Matchup(a, b, abs(state.elo[a] - state.elo[b])) for a, b in combinations(state.models, 2)]
    ranked = sorted(pairs, key=lambda one: (-(one.gap or 0.0), one.model_a, one.model_b))
    wanted = min(number, len(ranked))
    picks = max(n for n in range(wanted + 1) if n + parts(state.models, ranked[:n]) - 1 <= wanted)
    expected = ranked[:picks]
    for one in ranked[picks:]:
        if parts(state.models, [*expected, one]) < parts(state.models, expected):
            expected.append(one)
    assert take("widest-gap", state, number, coverage=1.0) == expected


def test_widest_gap_takes_simply_the_widest_where_they_connect_by_themselves() -> None:
    state = named([0, 10, 30, 100])
    plan = take("widest-gap", state, 3, coverage=1.0)
    assert [(one.model_a, one.model_b, one.gap) for one in plan] == [
        ("m000", "m003", 100),
        ("m001", "m003", 90),
        ("m002", "m003", 70),
    ]


def test_a_joining_matchup_is_counted_within_the_number_and_is_the_widest_that_joins() -> None:
    state = named([0, 1, 500, 1000, 1001])
    plan = take("widest-gap", state, 5, coverage=1.0)
    assert [(one.model_a, one.model_b) for one in plan] == [
        ("m000", "m004"),
        ("m000", "m003"),
        ("m001", "m004"),
        ("m001", "m003"),
        ("m002", "m004"),
    ]


def test_a_plan_is_listed_in_the_order_of_its_ranking() -> None:
    gaps = [one.gap or 0.0 for one in take("widest-gap", field(3, 20), 30)]
    assert gaps == sorted(gaps, reverse=True)


@pytest.mark.parametrize("policy", CHOOSING)
@given(state=elos.filter(lambda given: len(given) > 2).map(named), data=st.data())
def test_too_few_matchups_to_connect_the_models_are_refused(policy: str, state: PlanState, data: st.DataObject) -> None:
    number = data.draw(st.integers(1, len(state.models) - 2))
    with pytest.raises(InputError, match=rf"matchups = {number} cannot connect {len(state.models)} models"):
        take(policy, state, number)


@pytest.mark.parametrize("policy", CHOOSING)
def test_without_a_number_all_pairs_are_taken(policy: str) -> None:
    state = field(5, 9)
    assert {(one.model_a, one.model_b) for one in take(policy, state, None, coverage=1.0)} == set(
        combinations(state.models, 2)
    )


def test_all_pairs_is_complete_whatever_the_number_and_coverage() -> None:
    state = field(5, 9)
    plan = take("all-pairs", state, 3, coverage=0.01)
    assert [(one.model_a, one.model_b) for one in plan] == list(combinations(state.models, 2))


def test_policies_that_do_not_need_elo_plan_models_without_it_and_know_no_gap_then() -> None:
    state = PlanState(("a", "b", "c"), {"a": 1000.0, "b": 1200.0})
    for policy in (name for name in CROSSED if not POLICIES[name].needs_elo):
        assert {(one.model_a, one.model_b): one.gap for one in take(policy, state, 3, coverage=1.0)} == {
            ("a", "b"): 200.0,
            ("a", "c"): None,
            ("b", "c"): None,
        }


@pytest.mark.parametrize("policy", slow_after(1, *CHOOSING))
@pytest.mark.timeout(20)
def test_a_thousand_matchups_among_two_hundred_models_are_planned_at_once(policy: str) -> None:
    state = field(1, 200)
    plan = take(policy, state, 1000)
    assert len(plan) == 1000
    assert parts(state.models, plan) == 1


BAND = (60.0, 200.0)


def inside(plan: Iterable[Matchup]) -> list[bool]:
    return [BAND[0] <= (one.gap or 0.0) <= BAND[1] for one in plan]


def test_banded_matchups_are_within_the_band_but_for_those_that_join_the_rest() -> None:
    plan = take("banded-gap", field(3, 20), 30, band=BAND)
    assert len(plan) == 30
    assert parts([f"m{n:03}" for n in range(20)], plan) == 1
    assert sum(inside(plan)) >= 29
    assert all(inside(take("banded-gap", named([0.0, 100.0, 200.0, 300.0, 400.0]), 4, band=BAND)))


def test_banded_matchups_are_drawn_by_the_seed() -> None:
    assert len({tuple(take("banded-gap", field(1, 12), 20, seed=seed, band=BAND)) for seed in range(5)}) == 5


def test_a_model_that_no_band_reaches_is_joined_by_the_gap_nearest_to_it() -> None:
    plan = take("banded-gap", named([0.0, 100.0, 200.0, 1000.0]), 4, band=BAND)
    assert [(one.model_a, one.model_b) for one in plan if not inside([one])[0]] == [("m002", "m003")]


def test_half_banded_matchups_are_half_the_widest_and_half_within_the_band() -> None:
    state = field(3, 20)
    plan = take("half-banded", state, 30, coverage=1.0, band=BAND)
    widest = {(one.model_a, one.model_b) for one in take("widest-gap", state, 190, coverage=1.0)[:15]}
    assert parts(state.models, plan) == 1
    assert 13 <= sum((one.model_a, one.model_b) in widest for one in plan) <= 15
    assert sum(inside(plan)) >= 13


def test_a_band_without_any_matchup_is_refused() -> None:
    with pytest.raises(InputError, match=r"band = \[60, 200\]: no two of the 3 models"):
        take("banded-gap", named([0.0, 10.0, 1000.0]), 3, band=BAND)
