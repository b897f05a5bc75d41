"""Models that judge each other: the gap between what each says of itself and what others say, and what it moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

from venire.arena.errors import InputError
from venire.ratings.data.ballots import ballots, ballots_from_judgments, to_battles
from venire.ratings.data.judgments import merge_orders
from venire.ratings.peers.peer_evaluation import PeerEvaluation, PeerRow, peer_evaluation
from venire.storage.transfer.formats.battles import read_battles

Make = Callable[..., Any]


def row(found: PeerEvaluation, model: str) -> PeerRow:
    return next(one for one in found.models if one.model == model)


@pytest.fixture
def cast() -> Any:
    """Two instructions, models a, b, c that judge and c's friend d who does not rank itself: it is no model."""
    ranks = {
        "q1": {"a": (1, 2, 3), "b": (2, 1, 3), "c": (3, 2, 1), "d": (2, 1, 3)},
        "q2": {"a": (1, 3, 2), "b": (1, 3, 2), "c": (2, 3, 1), "d": (1, 2, 3)},
    }
    rows = [
        (judge, asked, model, place)
        for asked, by in ranks.items()
        for judge, places in by.items()
        for model, place in zip("abc", places, strict=True)
    ]
    judge, asked, model, place = zip(*rows, strict=True)
    return ballots(list(judge), list(asked), list(model), list(place))


def test_the_gap_is_own_position_less_the_others_mean_instruction_by_instruction(cast: Any, by_points: Any) -> None:
    found = peer_evaluation(cast, by_points)
    assert (found.unit, found.left_out, [one.model for one in found.models]) == ("positions", 0, ["a", "b", "c"])
    c = row(found, "c")
    # By c 1 and 1; by the others 3, 3, 3 and 2, 2, 3.
    others = np.array([3.0, 7.0 / 3.0])
    gaps = 1.0 - others
    assert (c.self_evaluation, c.peer_evaluation) == (1.0, pytest.approx(others.mean()))
    assert c.gap.value == pytest.approx(gaps.mean())
    assert c.gap.se == pytest.approx(gaps.std(ddof=1) / np.sqrt(2.0))
    assert c.gap.hi - c.gap.value == pytest.approx(student.ppf(0.975, 1) * c.gap.se)
    assert c.gap.value < 0.0  # it favours itself: 1 is the best position
    assert c.gap.instructions == 2


def cast_by(orders: Mapping[str, str], asked: str | None = "q") -> Any:
    """One ballot a judge: its models in order, the best first."""
    rows = [(judge, model, place) for judge, order in orders.items() for place, model in enumerate(order, 1)]
    judge, model, place = (list(column) for column in zip(*rows, strict=True))
    return ballots(judge, None if asked is None else [asked] * len(rows), model, place)


def test_leaving_own_votes_out_moves_a_model_that_favours_itself_down(by_points: Any) -> None:
    found = peer_evaluation(cast_by({"x": "yxz", "y": "yxz", "z": "xyz", "w": "xyz"}, None), by_points)
    assert (row(found, "x").sie, row(found, "y").sie) == (1.5, 1.5)
    y = row(found, "y")
    assert (y.sfe, y.moved) == (2.0, -0.5)
    assert (y.gap.value, y.gap.se) == (pytest.approx(1.0 - 5.0 / 3.0), None)
    assert found.warnings == ()


def test_more_than_half_a_position_is_a_warning_with_its_direction(by_points: Any) -> None:
    given = cast_by({"y": "yxz", "y2": "yxz", "u": "yxz", "v": "xyz", "w": "xyz"})
    found = peer_evaluation(given, by_points, peers={"y2": "y"})
    (y,) = found.models
    assert (y.judges, y.sie, y.sfe, y.moved, y.moved_micro.value) == (("y", "y2"), 1.0, 2.0, -1.0, -1.0)
    assert [text[:55] for text in found.warnings] == [
        "y stands 1.00 positions better in the order of all verd",
        "y stands 1.00 positions better on an average instructio",
    ]


def test_pairs_and_the_ballots_made_of_them_have_the_same_gaps(peer_battles: Make, by_points: Any) -> None:
    judgments = merge_orders(peer_battles((0.8, 0.0, -0.8), favour=0.7, instructions=30, seed=1))
    pairs, cast = (peer_evaluation(given, by_points) for given in (judgments, ballots_from_judgments(judgments)))
    for one, other in zip(pairs.models, cast.models, strict=True):
        assert one.gap == other.gap


def test_own_verdicts_are_known_by_name_or_as_told(peer_battles: Make, by_points: Any) -> None:
    battles = peer_battles((0.8, 0.0, -0.8), instructions=10, seed=2)
    renamed = merge_orders(replace(battles, judges=("x", "y", "z")))
    with pytest.raises(InputError, match="no judge is one of the models"):
        peer_evaluation(renamed, by_points)
    told = peer_evaluation(renamed, by_points, peers={"x": "m0", "y": "m1", "z": "m2"})
    plain = peer_evaluation(merge_orders(battles), by_points)
    assert [one.gap for one in told.models] == [one.gap for one in plain.models]
    assert row(told, "m1").judges == ("y",)
    both = peer_evaluation(renamed, by_points, peers={"x": "m0", "y": "m0"})
    assert row(both, "m0").judges == ("x", "y")
    assert [one.model for one in both.models] == ["m0"]


def test_where_judges_saw_some_pairs_alone_the_unit_is_points_lost_on_the_same_pairs(
    peer_battles: Make, by_points: Any
) -> None:
    judgments = merge_orders(peer_battles((0.8, 0.2, -0.2, -0.8), favour=1.0, instructions=400, seed=3))
    rng = np.random.default_rng(4)
    some = judgments.select(rng.random(len(judgments)) < 0.5)
    found = peer_evaluation(some, by_points)
    assert found.unit == "share of points lost"
    whole = peer_evaluation(judgments, by_points, unit="share of points lost")
    for one, other in zip(found.models, whole.models, strict=True):
        assert one.gap.value == pytest.approx(other.gap.value, abs=3.5 * one.gap.se)
        assert -1.0 < one.gap.value < 0.0
        assert one.self_evaluation - one.peer_evaluation == pytest.approx(one.gap.value)


def test_a_few_missing_pairs_cost_their_instruction_and_are_counted(peer_battles: Make, by_points: Any) -> None:
    judgments = merge_orders(peer_battles((0.8, 0.2, -0.2, -0.8), instructions=20, seed=5))
    gone = (judgments.judge == 1) & (judgments.instruction == 4) & (judgments.model_a == 0) & (judgments.model_b == 1)
    found = peer_evaluation(judgments.select(~gone), by_points)
    assert (found.unit, found.left_out) == ("positions", 1)
    assert row(found, "m1").gap.instructions == 19
    assert row(found, "m0").gap.instructions == 20


def test_positions_out_of_fewer_models_are_not_compared(cast: Any, by_points: Any) -> None:
    rank = cast.rank.copy()
    rank[(cast.judge == 3) & (cast.instruction == 0), 1] = np.nan
    found = peer_evaluation(replace(cast, rank=rank), by_points)
    assert found.left_out == 1
    assert row(found, "c").peer_evaluation == pytest.approx((3.0 + 7.0 / 3.0) / 2.0)


def test_places_among_fewer_models_are_no_move(by_points: Any) -> None:
    """On q2 nobody but c speaks of c: without its own votes there are two models left, and other places."""
    rows = [(j, "q1", m, r) for j in "abc" for r, m in enumerate("abc", 1)]
    rows += [("c", "q2", m, r) for r, m in enumerate("cab", 1)] + [("a", "q2", m, r) for r, m in enumerate("ba", 1)]
    judge, asked, model, rank = (list(column) for column in zip(*rows, strict=True))
    found = peer_evaluation(ballots(judge, asked, model, rank, unranked="absent"), by_points)
    assert [one.moved_micro.instructions for one in found.models] == [1, 1, 1]


def test_so_few_instructions_that_agree_by_chance_have_no_interval(by_points: Any) -> None:
    def of(instructions: int) -> PeerRow:
        rows = [(j, f"q{i}", m, r) for i in range(instructions) for j in "abx" for r, m in enumerate("abc", 1)]
        judge, asked, model, rank = zip(*rows, strict=True)
        return peer_evaluation(ballots(list(judge), list(asked), list(model), list(rank)), by_points).models[0]

    assert (of(3).gap.value, of(3).gap.lo) == (0.0, None)
    assert (of(8).gap.lo, of(8).gap.hi) == (0.0, 0.0)


def test_rows_names_and_units_change_nothing(peer_battles: Make, by_points: Any) -> None:
    judgments = merge_orders(peer_battles((0.8, 0.0, -0.8), instructions=12, seed=6))
    found = peer_evaluation(judgments, by_points)
    mixed = judgments.select(np.random.default_rng(7).permutation(len(judgments)))
    heavy = replace(judgments, weight=np.full(len(judgments), 1e12))
    for other in (peer_evaluation(mixed, by_points), peer_evaluation(heavy, by_points)):
        for one, two in zip(found.models, other.models, strict=True):
            assert one.gap.value == pytest.approx(two.gap.value)
            assert (one.moved, one.moved_micro.value) == (two.moved, pytest.approx(two.moved_micro.value))
    assert [one.odds.value for one in peer_evaluation(mixed, by_points).models] == pytest.approx(
        [one.odds.value for one in found.models]
    )


@settings(max_examples=10)
@given(order=st.permutations(range(3)), seed=st.integers(0, 50))
def test_new_names_and_sides_change_names_alone(peer_battles: Make, by_points: Any, order: Any, seed: int) -> None:
    battles = peer_battles((0.8, 0.0, -0.8), instructions=8, seed=seed)
    names = tuple("xyz"[code] for code in order)
    turned = replace(
        battles, models=names, judges=names, model_a=battles.model_b, model_b=battles.model_a, label=-battles.label
    )
    found, other = (peer_evaluation(merge_orders(one), by_points) for one in (battles, turned))
    for old, new in zip(("m0", "m1", "m2"), names, strict=True):
        one, two = row(found, old), row(other, new)
        assert (one.gap.value, one.gap.se) == (pytest.approx(two.gap.value), pytest.approx(two.gap.se))
        assert (one.sie, one.sfe) == (two.sie, two.sfe)
        assert one.odds.value == pytest.approx(two.odds.value, abs=1e-6)


def test_two_models_and_nothing_but_ties_have_what_can_be_had(peer_battles: Make, by_points: Any) -> None:
    two = peer_evaluation(merge_orders(peer_battles((0.5, -0.5), instructions=9, seed=1)), by_points)
    assert [one.odds.value is None for one in two.models] == [True, True]
    tied = peer_evaluation(merge_orders(peer_battles((0.5, 0.0, -0.5), ties=1.0, instructions=9)), by_points)
    for one in tied.models:
        assert (one.gap.value, one.sie, one.moved) == (0.0, 2.0, 0.0)
        assert one.odds.value == pytest.approx(0.0)


def test_a_judge_alone_and_one_ballot_have_what_can_be_had(by_points: Any) -> None:
    found = peer_evaluation(ballots(["a"] * 3, ["q"] * 3, list("abc"), [1, 2, 3]), by_points)
    (a,) = found.models
    assert (a.self_evaluation, a.gap.value, a.gap.instructions, a.odds.value) == (None, None, 0, None)
    assert a.sie == 1.0
    assert (a.sfe, a.moved) == (None, None)


@pytest.mark.parametrize(("unit", "said"), [("places", "here are: "), ("share of points lost", "no points")])
def test_a_unit_that_is_not_there_is_refused(cast: Any, by_points: Any, unit: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        peer_evaluation(cast, by_points, unit=unit)


def test_recorded_peers_do_not_favour_themselves_beyond_their_sharpness(shared_data: Path, by_points: Any) -> None:
    judgments = merge_orders(read_battles(shared_data / "vicuna80_peers" / "judgments.parquet", where={"repeat": "1"}))
    found = peer_evaluation(judgments)  # by Kemeny
    assert (found.unit, found.left_out, found.warnings) == ("positions", 0, ())
    for one in found.models:
        assert abs(one.odds.value) < 2.0 * one.odds.se
        assert one.moved == 0.0
        assert abs(one.moved_micro.value) < 0.11
    by_borda = peer_evaluation(judgments, by_points)
    assert [one.moved for one in by_borda.models] == [0.0, 0.0, 1.0, 0.0, -1.0]
    gpt = row(found, "gpt-4")
    # Sharper than the others, and the best: the plain gap is large, the odds are not.
    assert (gpt.gap.value, gpt.gap.se) == (pytest.approx(-0.4578, abs=1e-4), pytest.approx(0.0738, abs=1e-4))
    assert (gpt.odds.value, gpt.odds.se) == (pytest.approx(0.2212, abs=1e-4), pytest.approx(0.1312, abs=1e-4))
    assert to_battles(ballots_from_judgments(judgments)).ballots is not None
