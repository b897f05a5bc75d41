"""Positions on ballots and orders of single instructions: the same for pairs as for the ballots that say as much."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from venire.ratings.data.ballots import (
    ballot_votes,
    ballots,
    ballots_from_judgments,
    select_ballots,
    to_battles,
    truncated,
)
from venire.ratings.data.judgments import merge_orders
from venire.ratings.data.votes import votes
from venire.ratings.peers.peer_evaluation import (
    by_judge,
    complete,
    order_by,
    orders_by_instruction,
    placings,
    self_free,
)

Make = Callable[..., Any]
NAN = float("nan")


def test_tied_models_share_places_and_unranked_ones_those_below() -> None:
    given = ballots(["j"] * 5, ["q"] * 5, list("abcde"), [1, 2, 2, NAN, NAN])
    assert placings(given).position.tolist() == [[1.0, 2.5, 2.5, 4.5, 4.5]]


def test_a_model_that_was_not_shown_has_no_position_and_moves_none() -> None:
    given = ballots(["j"] * 3 + ["k"] * 2, ["q"] * 5, list("abc") + list("ac"), [3, 1, 2, 1, 2], unranked="absent")
    assert np.array_equal(placings(given).position, [[3.0, 1.0, 2.0], [1.0, NAN, 2.0]], equal_nan=True)


def test_repeats_of_a_judge_are_one_opinion_and_count_by_their_weight() -> None:
    given = ballots(["j"] * 4, ["q"] * 4, list("abab"), [1, 2, 2, 1], repeat=[1, 1, 2, 2], weight=[3, 3, 1, 1])
    seen = placings(given)
    assert seen.position == pytest.approx(np.array([[1.25, 1.75]]))
    assert seen.weight == pytest.approx([2.0])
    assert len(placings(replace(given, weight=np.zeros(2))).position) == 0


def test_each_instruction_has_the_order_of_its_own_votes(peer_battles: Make, by_points: Any) -> None:
    judgments = merge_orders(peer_battles((1.0, 0.3, -0.3, -1.0), instructions=7, seed=1))
    found = orders_by_instruction(by_points, judgments)
    for code in range(7):
        alone = judgments.select(judgments.instruction == code)
        assert found[code] == pytest.approx(by_points(votes(alone.comparisons())).position)
    cast = ballots_from_judgments(judgments)
    for code, row in enumerate(orders_by_instruction(by_points, cast)):
        assert row == pytest.approx(by_points(ballot_votes(select_ballots(cast, cast.instruction == code))).position)


def test_ballots_and_their_pairs_give_the_same_orders(by_points: Any) -> None:
    rng = np.random.default_rng(2)
    ranks = np.concatenate([rng.permutation(4) + 1 for _ in range(15)])
    judge, asked = np.repeat(np.tile(list("xyz"), 5), 4), np.repeat(np.repeat(list("12345"), 3), 4)
    given = ballots(judge, asked, np.tile(list("abcd"), 15), ranks)
    pairs = merge_orders(to_battles(given))
    assert orders_by_instruction(by_points, given) == pytest.approx(orders_by_instruction(by_points, pairs))
    assert order_by(by_points, given).position == pytest.approx(order_by(by_points, pairs).position)
    assert complete(pairs)[1:] == (0, 15)
    both = by_judge(given), by_judge(pairs)
    assert list(both[0]) == list(both[1]) == ["x", "y", "z"]
    for name in both[0]:
        assert both[0][name] == pytest.approx(both[1][name])


def test_an_instruction_and_a_model_without_votes_have_no_position(peer_battles: Make, by_points: Any) -> None:
    judgments = merge_orders(peer_battles((0.5, 0.0, -0.5), instructions=3, seed=3))
    kept = (judgments.instruction != 1) & ((judgments.instruction != 2) | (judgments.model_b != 2))
    found = orders_by_instruction(by_points, judgments.select(kept))
    assert np.isnan(found).tolist() == [[False] * 3, [True] * 3, [False, False, True]]


def test_where_no_instruction_is_named_all_is_of_one(by_points: Any) -> None:
    given = ballots(["x"] * 3 + ["y"] * 3, None, list("abc") * 2, [1, 2, 3, 1, 3, 2])
    assert orders_by_instruction(by_points, given) == pytest.approx(np.array([[1.0, 2.5, 2.5]]))
    assert by_judge(given)["y"].tolist() == [[1.0, 3.0, 2.0]]


def test_a_judge_of_some_pairs_alone_has_no_positions_there(peer_battles: Make) -> None:
    judgments = merge_orders(peer_battles((0.5, 0.0, -0.5), instructions=2, seed=4))
    first = (judgments.judge == 0) & (judgments.instruction == 0)
    some = judgments.select(~(first & (judgments.model_a == 0) & (judgments.model_b == 1)))
    assert complete(some)[1:] == (1, 6)
    assert np.isnan(by_judge(some)["m0"]).all(axis=1).tolist() == [True, False]
    assert by_judge(judgments.select((judgments.model_a == 0) & ((judgments.model_b == 1) | first))) != {}
    # Two pairs of three models are no ballot.
    assert by_judge(judgments.select(judgments.model_a == 0)) == {}
    assert complete(judgments.select(judgments.model_a == 0)) == (None, 6, 6)


def test_without_own_verdicts_nobody_speaks_of_itself(peer_battles: Make) -> None:
    judgments = merge_orders(peer_battles((0.5, 0.0, -0.5), instructions=2, seed=5))
    free = self_free(judgments, {})
    assert len(free) == 6
    assert not np.any((free.judge == free.model_a) | (free.judge == free.model_b))
    assert len(self_free(replace(judgments, judges=("x", "y", "z")), {"x": "m0"})) == 14
    cast = self_free(ballots_from_judgments(judgments), {})
    assert np.isnan(cast.rank[np.arange(6), cast.judge]).all()


def test_cut_ballots_tie_what_is_below(by_points: Any) -> None:
    given = ballots(["j"] * 4, ["q"] * 4, list("abcd"), [2, 1, 4, 3])
    assert placings(truncated(given, 1)).position.tolist() == [[3.0, 1.0, 3.0, 3.0]]
    assert orders_by_instruction(by_points, truncated(given, 2)).tolist() == [[2.0, 1.0, 3.5, 3.5]]
