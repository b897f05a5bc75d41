"""Policies that choose battles: what can be asked, evenly, once, and where it says most of the ratings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.parameters import slow_after
from venire.arena.campaigns import PhaseSettings
from venire.arena.errors import InputError
from venire.arena.planning import JudgeHabit, Pick, PlanState
from venire.orchestrator.policies import POLICIES
from venire.orchestrator.policies.candidates import components
from venire.orchestrator.policies.information_gain import information_of_pairs

BATTLES = [name for name, policy in POLICIES.items() if not policy.crossed]
ADAPTIVE = ["information", "gap-error"]


def field(models: int, instructions: int, seed: int = 0) -> PlanState:
    """A field that was estimated already."""
    rng = np.random.default_rng(seed)
    names = tuple(f"m{n:02}" for n in range(models))
    return PlanState(
        names,
        dict(zip(names, rng.normal(1000.0, 150.0, models).tolist(), strict=True)),
        tuple(f"i{n:02}" for n in range(instructions)),
        logits=rng.normal(0.0, 1.0, models),
        se=rng.uniform(0.1, 0.5, models),
        judges=(JudgeHabit(2.0, 0.4, 0.1, 0.3),),
    )


def choose(policy: str, state: PlanState, number: int, seed: int = 7, **phase: object) -> list[Pick]:
    settled = replace(PhaseSettings(policy, place=state.models[0]), **phase)  # type: ignore[arg-type]  # any of its fields
    return POLICIES[policy].choose(state, settled, number, np.random.default_rng(seed))


def coded(state: PlanState, picks: Sequence[Pick]) -> NDArray[np.int32]:
    """What was picked as rows of codes, as the planner keeps it."""
    rows = [
        (state.models.index(p.model_a), state.models.index(p.model_b), state.instructions.index(str(p.instruction)))
        for p in picks
    ]
    return np.array(rows, dtype=np.int32).reshape(-1, 3)


def after(state: PlanState, picks: Sequence[Pick]) -> PlanState:
    before = np.zeros((0, 3), dtype=np.int32) if state.asked is None else state.asked
    return replace(state, asked=np.concatenate([before, coded(state, picks)]))


def groups(state: PlanState, picks: Sequence[Pick]) -> int:
    met = np.zeros((len(state.models),) * 2, dtype=np.int64)
    for a, b, _ in coded(state, picks):
        met[a, b] = met[b, a] = 1
    return len(set(components(met, np.zeros(len(met), dtype=bool)).tolist()))


def spread(counts: Counter[str], names: Sequence[str]) -> int:
    return max(counts[name] for name in names) - min(counts[name] for name in names)


@pytest.mark.parametrize("policy", BATTLES)
@given(data=st.data())
def test_battles_are_in_bounds_canonical_and_never_asked_twice(policy: str, data: st.DataObject) -> None:
    models, texts = data.draw(st.integers(2, 8)), data.draw(st.integers(1, 6))
    state = field(models, texts, data.draw(st.integers(0, 9)))
    everything = choose("balanced", state, 10_000)
    assert len(everything) == math.comb(models, 2) * texts
    cut = data.draw(st.integers(0, len(everything)))
    barred = data.draw(st.integers(0, len(everything) - cut))
    state = after(state, everything[:cut])
    state = replace(state, barred=coded(state, everything[cut : cut + barred]))
    number = data.draw(st.integers(0, len(everything) + 5))
    picks = choose(policy, state, number, purpose=data.draw(st.sampled_from(["mean", "place"])))
    assert all(p.model_a < p.model_b and p.why in (policy, "balanced") for p in picks)
    open_ = {(p.model_a, p.model_b, p.instruction) for p in everything[cut + barred :]}
    chosen = [(p.model_a, p.model_b, p.instruction) for p in picks]
    assert len(chosen) == len(set(chosen)) <= number
    assert set(chosen) <= open_
    if policy in ("balanced", "gap-error"):
        assert len(chosen) == min(number, len(open_))


@pytest.mark.parametrize("policy", BATTLES)
@pytest.mark.parametrize("purpose", ["mean", "boundary", "place"])
def test_only_the_battles_of_a_list_are_asked_where_there_is_one(policy: str, purpose: str) -> None:
    state = field(8, 20)
    listed = choose("balanced", state, 200)
    state = after(replace(state, only=coded(state, listed)), listed[:50])
    allowed = {(p.model_a, p.model_b, p.instruction) for p in listed[50:]}
    picks = choose(policy, state, 60, purpose=purpose)
    assert picks
    assert {(p.model_a, p.model_b, p.instruction) for p in picks} <= allowed


@pytest.mark.parametrize("policy", BATTLES)
def test_nothing_is_chosen_where_nothing_is_left(policy: str) -> None:
    state = field(5, 3)
    assert choose(policy, after(state, choose("balanced", state, 1000)), 10) == []
    assert choose(policy, replace(state, instructions=()), 10) == []
    assert choose(policy, state, 0) == []


@pytest.mark.parametrize("policy", BATTLES)
def test_two_models_and_one_instruction_make_one_battle(policy: str) -> None:
    picks = choose(policy, field(2, 1), 10)
    assert [(p.model_a, p.model_b, p.instruction) for p in picks] == [("m00", "m01", "i00")]


@pytest.mark.parametrize("policy", BATTLES)
@pytest.mark.parametrize("models", [2, 3, 7, 12])
def test_a_first_round_joins_all_models(policy: str, models: int) -> None:
    state = field(models, 30)
    number = min(30, math.comb(models, 2)) if policy == "near-tie" else models - 1
    assert groups(state, choose(policy, state, number)) == 1


@pytest.mark.parametrize("policy", ["balanced", *ADAPTIVE])
def test_models_that_are_apart_are_joined_before_anything_else(policy: str) -> None:
    state = field(9, 30)
    islands = [p for p in choose("balanced", state, 500) if (p.model_a < "m04") == (p.model_b < "m04")]
    islands = [p for p in islands if "m08" not in (p.model_a, p.model_b)]
    picks = choose(policy, after(state, islands), 2)
    assert groups(state, [*islands, *picks]) == 1
    assert {p.why for p in picks} == {"balanced"}


@pytest.mark.parametrize(("models", "texts"), [(2, 5), (4, 60), (6, 40), (20, 400), (3, 30), (7, 60), (9, 100)])
def test_balanced_uses_models_pairs_and_instructions_equally_often_at_every_moment(models: int, texts: int) -> None:
    state = field(models, texts)
    used: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    every = [f"{a} {b}" for a in state.models for b in state.models if a < b]
    for pick in choose("balanced", state, texts):
        used.update([pick.model_a, pick.model_b, str(pick.instruction)])
        pairs[f"{pick.model_a} {pick.model_b}"] += 1
        assert spread(used, state.models) <= 1
        assert spread(used, state.instructions) <= 1
        assert spread(pairs, every) <= 1


@pytest.mark.parametrize(("models", "texts"), [(5, 10), (10, 10), (11, 13), (20, 12)])
def test_balanced_stays_nearly_even_when_instructions_are_used_again(models: int, texts: int) -> None:
    state = field(models, texts)
    half = math.comb(models, 2) * texts // 2
    picks = choose("balanced", state, half)
    used = Counter(name for p in picks for name in (p.model_a, p.model_b, str(p.instruction)))
    assert spread(used, state.instructions) <= 1
    assert spread(used, state.models) <= 2


def test_balanced_in_rounds_is_as_even_as_at_once() -> None:
    state = field(10, 100)
    for n in range(9):
        state = after(state, choose("balanced", state, 11, seed=n))
    assert state.asked is not None
    used = Counter(state.models[code] for code in state.asked[:, :2].ravel())
    assert len(state.asked) == 99
    assert spread(used, state.models) <= 1


def test_balanced_makes_up_for_what_was_uneven_before() -> None:
    state = field(6, 80)
    first = [p for p in choose("balanced", state, 300) if "m05" not in (p.model_a, p.model_b)]
    picks = choose("balanced", after(state, first), 40)
    assert all("m05" in (p.model_a, p.model_b) for p in picks)


@pytest.mark.parametrize("policy", ADAPTIVE)
def test_the_first_round_is_balanced_and_a_tenth_of_every_later_one(policy: str) -> None:
    state = field(8, 50)
    first = choose(policy, state, 40)
    assert {p.why for p in first} == {"balanced"}
    assert all(p.gain is None for p in first)
    second = choose(policy, after(state, first), 100)
    assert Counter(p.why for p in second) == {policy: 90, "balanced": 10}
    assert all((p.gain is None) == (p.why == "balanced") for p in second)


@pytest.mark.parametrize("policy", BATTLES)
def test_a_seed_means_one_plan_whatever_the_order_of_models_and_instructions(policy: str) -> None:
    state = field(9, 20)
    state = after(state, choose("balanced", state, 30))
    rng = np.random.default_rng(1)
    prices = rng.uniform(1e3, 1e4, (9, 20)), rng.uniform(1e3, 1e4, 20)
    state = replace(state, completion_price=prices[0], instruction_price=prices[1])
    assert state.asked is not None
    assert state.logits is not None
    assert state.se is not None
    models, texts = rng.permutation(9), rng.permutation(20)
    back, again = np.argsort(models), np.argsort(texts)
    other = replace(
        state,
        models=tuple(state.models[n] for n in models),
        instructions=tuple(state.instructions[n] for n in texts),
        logits=state.logits[models],
        se=state.se[models],
        asked=np.stack([back[state.asked[:, 1]], back[state.asked[:, 0]], again[state.asked[:, 2]]], axis=1)[::-1],
        completion_price=prices[0][np.ix_(models, texts)],
        instruction_price=prices[1][texts],
    )
    for purpose in ("mean", "boundary", "place"):
        expected = choose(policy, state, 50, purpose=purpose, place="m03")
        found = choose(policy, other, 50, purpose=purpose, place="m03")
        assert [replace(p, gain=None) for p in found] == [replace(p, gain=None) for p in expected]
        assert [p.gain or 0.0 for p in found] == pytest.approx([p.gain or 0.0 for p in expected], rel=1e-9)


@pytest.mark.parametrize("policy", BATTLES)
def test_a_seed_draws_instructions_and_not_pairs(policy: str) -> None:
    state = field(8, 400)
    state = after(state, choose("balanced", state, 30))
    plans = [choose(policy, state, 60, seed=seed) for seed in (1, 2)]
    assert [(p.model_a, p.model_b) for p in plans[0]] == [(p.model_a, p.model_b) for p in plans[1]]
    assert [p.instruction for p in plans[0]] != [p.instruction for p in plans[1]]


@pytest.mark.parametrize("policy", BATTLES)
def test_instructions_are_used_equally_often_whatever_they_cost(policy: str) -> None:
    state = field(8, 25)
    state = after(state, choose("balanced", state, 25))
    cheap = np.where(np.arange(25) < 5, 1.0, 1e9)
    state = replace(state, completion_price=np.full((8, 25), 1.0), instruction_price=cheap)
    used = Counter(str(p.instruction) for p in choose(policy, state, 75))
    assert spread(used, state.instructions) == 0


def test_a_dear_model_is_asked_about_less() -> None:
    state = field(8, 100)
    state = after(replace(state, logits=np.zeros(8)), choose("balanced", state, 56))
    price = np.full((8, 100), 1e4)
    price[2] = 1e6
    for priced in (False, True):
        costs = {"completion_price": price, "instruction_price": np.zeros(100)} if priced else {}
        picks = choose("information", replace(state, **costs), 200)
        theirs = sum("m02" in (p.model_a, p.model_b) for p in picks if p.why == "information")
        assert (theirs < 10) if priced else (theirs > 30)


@pytest.mark.parametrize("purpose", ["mean", "boundary"])
def test_short_answers_are_not_sought_for_their_price(purpose: str) -> None:
    state = field(8, 60)
    state = after(state, choose("balanced", state, 56))
    rng = np.random.default_rng(3)
    price = rng.uniform(1.0, 100.0, (8, 60))
    dealt = rng.permuted(price, axis=1)
    picks = [
        choose("information", replace(state, completion_price=one, instruction_price=np.ones(60)), 90, purpose=purpose)
        for one in (price, dealt)
    ]
    met = [[(p.model_a, p.model_b, p.instruction) for p in some] for some in picks]
    assert met[0] == met[1]


def test_free_judges_cost_nothing_and_are_planned_for_all_the_same() -> None:
    state = field(6, 40)
    state = after(state, choose("balanced", state, 20))
    free = replace(state, completion_price=np.zeros((6, 40)), instruction_price=np.zeros(40))
    assert choose("information", free, 50) == choose("information", state, 50)


@pytest.mark.parametrize("purpose", ["mean", "boundary", "place"])
def test_battles_of_models_that_are_held_are_never_asked(purpose: str) -> None:
    state = replace(field(8, 30), held=frozenset(f"m0{n}" for n in range(1, 8)))
    for policy in BATTLES:
        picks = choose(policy, state, 60, purpose=purpose)
        assert picks
        assert all("m00" in (p.model_a, p.model_b) for p in picks)


def test_a_model_that_is_placed_meets_several_opponents_of_about_its_own_level_whatever_they_cost() -> None:
    state = field(12, 200)
    state = replace(state, logits=np.linspace(-3.0, 3.0, 12), held=frozenset(state.models[1:]))
    state = after(state, choose("information", state, 11, purpose="place"))
    every = choose("information", state, 100, purpose="place")
    picks = [p for p in every if p.why == "information"]
    assert len(picks) == 90
    met = Counter(p.model_b for p in picks)
    assert set(met) == {"m01", "m02", "m03"}
    assert max(met.values()) < 60
    dear = replace(state, completion_price=np.geomspace(1e9, 1e3, 12 * 200).reshape(12, 200))
    dear = replace(dear, instruction_price=np.zeros(200))
    assert choose("information", dear, 100, purpose="place") == every


def test_a_model_that_is_placed_among_judged_ones_has_only_battles_of_its_own() -> None:
    state = field(10, 60)
    others = [p for p in choose("balanced", state, 600) if "m04" not in (p.model_a, p.model_b)]
    first = choose("information", after(state, others), 9, purpose="place", place="m04")
    assert {p.why for p in first} == {"balanced"}
    assert {name for p in first for name in (p.model_a, p.model_b)} == set(state.models)
    second = choose("information", after(state, [*others, *first]), 40, purpose="place", place="m04")
    assert all("m04" in (p.model_a, p.model_b) for p in [*first, *second])


def test_the_boundary_of_the_best_is_where_they_meet() -> None:
    state = replace(field(12, 200), logits=np.arange(12) / 2.0)
    state = after(state, choose("balanced", state, 66))
    picks = choose("information", state, 200, purpose="boundary", top=3)
    near = [p for p in picks if p.model_a >= "m06" and p.model_b >= "m06"]
    assert len(near) > 150


def test_near_ties_are_the_closest_pairs_that_join_all_models_evenly() -> None:
    state = replace(field(6, 90), logits=np.array([0.0, 0.1, 0.3, 0.7, 1.5, 3.1]))
    picks = choose("near-tie", state, 70, matchups=7)
    counts = Counter((p.model_a, p.model_b) for p in picks)
    chain = {(f"m0{n}", f"m0{n + 1}") for n in range(5)}
    assert set(counts) == chain | {("m00", "m02"), ("m01", "m03")}
    assert set(counts.values()) == {10}
    assert [p.gain for p in picks[:2]] == pytest.approx([0.1 * 400 / math.log(10), 0.2 * 400 / math.log(10)])


def test_without_any_rating_near_ties_are_balanced() -> None:
    state = replace(field(6, 30), elo={}, logits=np.full(6, np.nan))
    assert choose("near-tie", state, 30) == choose("balanced", state, 30)


@pytest.mark.parametrize("policy", BATTLES)
@pytest.mark.parametrize("logits", [None, [math.nan] * 6, [-math.inf, 0.0, 40.0, -700.0, math.nan, math.inf]])
@pytest.mark.parametrize("known", [True, False])
def test_unknown_and_separated_ratings_make_plans_too(policy: str, logits: list[float] | None, known: bool) -> None:
    state = field(6, 30)
    state = after(state, choose("balanced", state, 12))
    state = replace(state, logits=None if logits is None else np.array(logits), se=np.full(6, np.nan))
    picks = choose(policy, state if known else replace(state, elo={}), 40)
    assert len(picks) == 40
    assert all(p.gain is None or math.isfinite(p.gain) for p in picks)


def test_purposes_that_do_not_fit_the_field_are_refused() -> None:
    state = field(4, 10)
    for options, message in (
        ({"purpose": "boundary", "top": 4}, "top = 4"),
        ({"purpose": "place", "place": "x"}, "'x'"),
    ):
        with pytest.raises(InputError, match=message):
            choose("information", state, 5, **options)


@pytest.mark.parametrize("policy", slow_after(1, *sorted(BATTLES, key=lambda policy: policy != "information")))
@pytest.mark.timeout(60)
def test_a_thousand_battles_among_two_hundred_models_are_planned_at_once(policy: str) -> None:
    state = field(200, 1000)
    rows = np.random.default_rng(2).permuted(np.tile(np.arange(200, dtype=np.int32), (1000, 1)), axis=1)[:, :3]
    assert len(choose(policy, replace(state, asked=rows), 1000)) == 1000


def test_the_yardstick_is_its_rule_with_errors_that_shrink_by_what_was_chosen() -> None:
    state = field(6, 400)
    state = after(state, choose("balanced", state, 30))
    assert state.logits is not None
    assert state.se is not None
    picks = choose("gap-error", state, 60)
    gap = 2.0 * np.abs(state.logits[:, None] - state.logits[None, :])  # the judge's slope is 2
    chance = 1.0 / (1.0 + np.exp(-gap))
    information = information_of_pairs(state.logits, state.judges)
    variance = state.se**2
    for pick, (a, b, _) in zip(picks, coded(state, picks), strict=True):
        worth = np.triu(chance * (1 - chance) * (variance[:, None] + variance[None, :]) / (1.0 + gap), 1)
        if pick.why == "gap-error":
            assert divmod(int(np.argmax(worth)), 6) == (a, b)
            assert pick.gain == pytest.approx(worth[a, b], rel=1e-9)
        variance[[a, b]] = 1.0 / (1.0 / variance[[a, b]] + information[a, b])
