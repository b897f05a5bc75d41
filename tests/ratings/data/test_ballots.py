"""Ballots from columns, to pairs, and from pairs back: a mistake here turns every order that is made of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire.arena.battles import Ballots, Battles
from venire.arena.errors import InputError
from venire.arena.records import Status
from venire.ratings.data.ballots import (
    ballot_votes,
    ballots,
    ballots_from_judgments,
    count_incomplete,
    select_ballots,
    to_battles,
    truncated,
    without_own,
)
from venire.ratings.data.judgments import merge_orders
from venire.ratings.data.votes import votes
from venire.ratings.pairwise.bradley_terry import bradley_terry

Table = Callable[..., Battles]
BELOW = math.inf


def ranks(found: Ballots) -> list[dict[str, float]]:
    """Each ballot as ranks by model, of those on it."""
    return [
        {name: rank for name, rank in zip(found.models, row, strict=True) if not math.isnan(rank)}
        for row in found.rank.tolist()
    ]


def one(*rank: float, **told: Any) -> Ballots:
    """One ballot of models a, b, c, ... with these ranks."""
    size = len(rank)
    return ballots(["j"] * size, ["i"] * size, list("abcdefghij"[:size]), list(rank), **told)


def test_a_ballot_is_a_judge_an_instruction_and_a_repeat() -> None:
    found = ballots(["y", "x", "x", "x"], [2, 1, 1, 1], ["a", "a", "a", "b"], [1, 1, 2, 1], repeat=[1, 1, 2, 2])
    assert (found.judges, found.instructions, found.models) == (("x", "y"), ("1", "2"), ("a", "b"))
    assert (found.judge.tolist(), found.instruction.tolist(), found.repeat.tolist()) == (
        [0, 0, 1],
        [0, 0, 1],
        [1, 2, 1],
    )
    assert ranks(found) == [{"a": 1, "b": BELOW}, {"a": 2, "b": 1}, {"a": 1}]


@pytest.mark.parametrize(
    ("given", "kept"),
    [([3, 7, 5], [1, 3, 2]), ([1, 2, 2], [1, 2, 2]), ([2, 2, 9], [1, 1, 3]), ([1.5, 1.5, math.nan], [1, 1, BELOW])],
)
def test_ranks_are_any_numbers_and_become_places(given: list[float], kept: list[float]) -> None:
    assert one(*given).rank.tolist() == [kept]


def test_what_a_ballot_leaves_out_is_below_where_others_show_it_and_never_the_judge_itself() -> None:
    columns = (["x", "x", "c", "c", "z"], ["1", "1", "1", "1", "2"], ["a", "c", "a", "b", "a"], [1, 2, 1, 2, 1])
    assert ranks(ballots(*columns)) == [{"a": 1, "b": 2}, {"a": 1, "b": BELOW, "c": 2}, {"a": 1}]
    assert ranks(ballots(*columns, unranked="absent")) == [{"a": 1, "b": 2}, {"a": 1, "c": 2}, {"a": 1}]


def test_without_instructions_each_judge_has_one_ballot_and_its_rows_share_their_noise() -> None:
    found = ballots(["x", "x", "y", "y"], None, ["a", "b", "a", "b"], [1, 2, 2, 1])
    assert (len(found), found.instructions, found.instruction.tolist()) == (2, (), [-1, -1])
    pairs = merge_orders(to_battles(found)).comparisons()
    assert pairs.clusters == ("x, repeat 1", "y, repeat 1")
    assert pairs.cluster is not None
    assert sorted(pairs.cluster.tolist()) == [0, 1]
    assert ballots(None, None, ["a", "b"], [1, 2]).judges == ("unnamed",)


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"model": ["a", "a"], "rank": [1, 2]}, "model, row 1: 'a' stands on this ballot in row 0 already"),
        ({"model": ["a", "b"], "rank": [1, 0]}, "rank, row 1: 0 is not possible: give a number above 0"),
        ({"model": ["a", "b"], "rank": [1, -math.inf]}, "rank, row 1: -inf is not possible"),
        ({"model": ["a", "b"], "rank": [1, "best"]}, "rank, row 1: 'best' is not a number"),
        ({"model": ["a", "b"], "rank": [1]}, "rank has shape (1,), model has 2 rows"),
        ({"model": ["a", None], "rank": [1, 2]}, "model, row 1: None is not possible: give a name"),
        ({"model": ["a", "b"], "rank": [1, 2], "judge": ["x"]}, "judge has 1 rows, model has 2"),
        ({"model": ["a", "b"], "rank": [1, 2], "repeat": [1, 1.5]}, "repeat, row 1: 1.5 is not possible"),
        ({"model": ["a", "b"], "rank": [1, 2], "repeat": [0, 1]}, "repeat, row 0: 0 is not possible"),
        ({"model": ["a", "b"], "rank": [1, 2], "weight": [1, -1]}, "weight, row 1: -1 is not possible"),
        (
            {"model": ["a", "b"], "rank": [1, 2], "weight": [1, 2]},
            "weight, row 1: 2, and 1 in row 0 of the same ballot",
        ),
        ({"model": ["a", "b"], "rank": [1, 2], "unranked": "last"}, "unranked is 'last'; "),
    ],
)
def test_what_cannot_be_meant_is_refused_by_argument_and_row(columns: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as refused:
        ballots(**{"judge": ["x"] * 2, "instruction": ["i"] * 2, **columns})
    assert str(refused.value).startswith(told)


def test_unranked_models_are_tied_in_votes_and_unsaid_in_pairs() -> None:
    found = one(1, math.nan, math.nan)
    assert ballot_votes(found).weight.tolist() == [[0, 1, 1], [0, 0, 0.5], [0, 0.5, 0]]
    pairs = to_battles(found)
    assert list(zip(pairs.model_a.tolist(), pairs.model_b.tolist(), pairs.label.tolist(), strict=True)) == [
        (0, 1, 1),
        (0, 2, 1),
    ]


def test_a_ballot_that_ranks_nothing_is_unreadable_in_all_its_pairs_and_says_nothing() -> None:
    both = ballots(["x", "x", "y", "y"], None, ["a", "b", "a", "b"], [1, 2, math.nan, math.nan])
    pairs = to_battles(both)
    assert pairs.status.tolist() == [Status.OK, Status.UNREADABLE]
    assert to_battles(both, np.array([0, Status.REFUSED], dtype=np.int8)).status.tolist() == [Status.OK, Status.REFUSED]
    assert ballot_votes(both).weight.tolist() == [[0, 1], [0, 0]]
    assert pairs.ballots is not None
    assert len(pairs.ballots) == 1


@st.composite
def some_ballots(draw: st.DrawFn) -> Ballots:
    """Up to six ballots of up to five models, with ties, models left unranked and models left out."""
    size, count = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    cell = st.sampled_from([1.0, 2.0, 3.0, 4.0, math.nan, None])
    rows = [
        (f"j{draw(st.integers(0, 2))}", f"i{draw(st.integers(0, 2))}", f"m{model}", rank, number)
        for number in range(1, count + 1)
        for model in range(size)
        if (rank := draw(cell)) is not None
    ]
    judge, instruction, model, rank, repeat = zip(*rows, strict=True) if rows else ((),) * 5
    weight = draw(st.sampled_from([None, 1e12, 0.5]))
    more = None if weight is None else [weight * (1 + number) for number in repeat]
    return ballots(
        list(judge), list(instruction), list(model), list(rank), repeat=list(repeat), weight=more, unranked="absent"
    )


@settings(max_examples=30)
@given(some_ballots())
def test_votes_are_the_sum_over_ballots_and_pairs(found: Ballots) -> None:
    expected = np.zeros((len(found.models), len(found.models)))
    for number, row in enumerate(found.rank.tolist()):
        heavy = 1.0 if found.weight is None else found.weight[number]
        for a, first in enumerate(row):
            for b, second in enumerate(row):
                if a != b and any(rank < BELOW for rank in row):
                    expected[a, b] += heavy * (1.0 if first < second else 0.5 if first == second else 0.0)
    np.testing.assert_allclose(ballot_votes(found).weight, expected, rtol=1e-12)


@settings(max_examples=30)
@given(some_ballots())
def test_pairs_give_the_votes_of_ballots_save_ties_of_two_unranked(found: Ballots) -> None:
    whole = replace_unranked(found)
    data = merge_orders(to_battles(whole)).comparisons()
    np.testing.assert_allclose(votes(data).weight, ballot_votes(whole).weight, rtol=1e-12)
    margins = votes(merge_orders(to_battles(found)).comparisons()).weight
    tied = ballot_votes(found).weight
    np.testing.assert_allclose(margins - margins.T, tied - tied.T, rtol=1e-9, atol=1e-9 * max(1.0, tied.sum()))


def replace_unranked(found: Ballots) -> Ballots:
    """The same ballots with unranked models taken off."""
    rows = np.nonzero(np.isfinite(found.rank))
    judge, instruction = np.array(found.judges, dtype=object), np.array(found.instructions, dtype=object)
    return ballots(
        judge[found.judge[rows[0]]].tolist(),
        instruction[found.instruction[rows[0]]].tolist(),
        np.array(found.models, dtype=object)[rows[1]].tolist(),
        found.rank[rows],
        repeat=found.repeat[rows[0]],
        weight=None if found.weight is None else found.weight[rows[0]],
        unranked="absent",
    )


@settings(max_examples=30)
@given(st.data())
def test_the_order_of_rows_means_nothing(data: st.DataObject) -> None:
    rows = [
        (judge, instruction, model, data.draw(st.integers(1, 4)))
        for judge in ("a", "j")
        for instruction in range(2)
        for model in "abc"
        if data.draw(st.booleans())
    ]
    mixed = data.draw(st.permutations(rows))
    plain, other = (ballots(*map(list, zip(*one, strict=True))) if one else None for one in (rows, mixed))
    if plain is None or other is None:
        return
    for name in ("models", "judges", "instructions"):
        assert getattr(plain, name) == getattr(other, name)
    for name in ("judge", "instruction", "repeat", "rank"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(other, name))


def test_cut_ballots_rank_the_best_with_all_that_tie_at_the_end() -> None:
    assert truncated(one(1, 2, 2, 4), 1).rank.tolist() == [[1, BELOW, BELOW, BELOW]]
    assert truncated(one(1, 2, 2, 4), 2).rank.tolist() == [[1, 2, 2, BELOW]]
    with pytest.raises(InputError, match="best is 0; give 1 or more"):
        truncated(one(1, 2), 0)


def test_what_judges_say_of_themselves_is_taken_off_and_places_close_up() -> None:
    found = ballots(["a", "a", "a", "z", "z"], None, ["a", "b", "c", "a", "b"], [1, 2, 3, 2, 1])
    assert ranks(without_own(found, {})) == [{"b": 1, "c": 2}, {"a": 2, "b": 1, "c": BELOW}]
    assert ranks(without_own(found, {"z": "b"})) == [{"b": 1, "c": 2}, {"a": 1, "c": BELOW}]


def test_selected_ballots_keep_their_names() -> None:
    found = ballots(["x", "x", "y"], None, ["a", "b", "a"], [1, 2, 1], weight=[2, 2, 3])
    kept = select_ballots(found, np.array([False, True]))
    assert (kept.judges, kept.judge.tolist(), len(kept)) == (("x", "y"), [1], 1)
    assert kept.weight is not None
    assert kept.weight.tolist() == [3]


def test_judgments_of_all_pairs_become_a_ballot_and_others_are_counted(table: Table) -> None:
    rows = [
        *[(a, b, "first", "x", "1") for a, b in ("ab", "ac", "bc")],
        *[(b, a, "second", "x", "1") for a, b in ("ab", "ac", "bc")],
        *[(a, b, "tie", "y", "1") for a, b in ("ab", "bc")],
        ("b", "a", "first", "y", "2"),
    ]
    judgments = merge_orders(table(rows))
    assert ranks(ballots_from_judgments(judgments)) == [{"a": 1, "b": 2, "c": 3}, {"a": 2, "b": 1}]
    assert count_incomplete(judgments) == 1
    with pytest.raises(InputError, match="no ballot can be made of these judgments"):
        ballots_from_judgments(merge_orders(table(rows[6:8])))


@settings(max_examples=30)
@given(st.lists(st.permutations("abcd"), min_size=1, max_size=4))
def test_ballots_survive_the_way_to_pairs_and_back(orders: list[list[str]]) -> None:
    count = len(orders)
    found = ballots(
        [name for number in range(count) for name in [f"j{number}"] * 4],
        ["i"] * 4 * count,
        [name for order in orders for name in order],
        [1, 2, 3, 4] * count,
    )
    back = ballots_from_judgments(merge_orders(to_battles(found)))
    np.testing.assert_array_equal(back.rank, found.rank)


def test_ratings_of_best_two_ballots_are_those_of_the_truth() -> None:
    """Ballots drawn by Luce's rule of choice, cut to the best two of ten: each rating within 5 of its errors."""
    rng, truth = np.random.default_rng(4), np.linspace(1.0, -1.0, 10)
    order = np.argsort(-(truth + rng.gumbel(size=(4000, 10))), axis=1)
    full = ballots(
        None,
        np.repeat(np.arange(4000), 10),
        [f"m{code}" for code in order.ravel()],
        np.tile(np.arange(1, 11), 4000),
    )
    found = bradley_terry(merge_orders(to_battles(truncated(full, 2))).comparisons())
    assert np.abs(found.logits - truth).max() < 0.12
    assert np.all(np.abs(found.logits - truth) < 5 * found.se)
    tied = votes(merge_orders(to_battles(full)).comparisons())
    np.testing.assert_array_equal(tied.weight, ballot_votes(full).weight)
