"""What ratings do when one instruction, judge or model is left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ratings.simulated import campaign
from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.data.judgments import merge_orders
from venire.ratings.diagnostics.influence import (
    Unit,
    critical_value,
    first_order_effects,
    influence,
    outlier_critical_value,
    rated_together,
)
from venire.ratings.pairwise.bradley_terry import bradley_terry


def data(seed: int = 1, **more: float) -> Comparisons:
    return merge_orders(campaign(seed, instructions=30, **more)).comparisons()  # type: ignore[arg-type]


def without(rows: Comparisons, unit: Unit, name: str) -> Comparisons:
    if unit == "model":
        code = rows.models.index(name)
        return rows.select((rows.a != code) & (rows.b != code))
    if unit == "judge":
        assert rows.judge is not None
        return rows.select(rows.judge != rows.judges.index(name))
    assert rows.cluster is not None
    return rows.select(rows.cluster != rows.clusters.index(name))


@pytest.mark.parametrize("unit", ["instruction", "judge", "model"])
def test_each_change_is_that_of_a_fit_on_the_other_rows(unit: Unit) -> None:
    rows = data()
    found = influence(rows, unit)
    whole = bradley_terry(rows, errors="none").elo
    assert len(found.without) == found.units == {"instruction": 30, "judge": 3, "model": 6}[unit]
    for left in found.without:
        rest = bradley_terry(without(rows, unit, left.name), errors="none").elo
        both = np.isfinite(rest)
        moved = (rest - rest[both].mean()) / left.stretch - (whole - whole[both].mean())
        assert left.change == pytest.approx(float(np.nanmax(np.abs(moved))), abs=1e-6)
        assert abs(moved[rows.models.index(left.model)]) == pytest.approx(left.change, abs=1e-6)
        assert left.leader == rows.models[int(np.nanargmax(rest))]
    assert [left.change for left in found.without] == sorted((left.change for left in found.without), reverse=True)


def test_a_stretch_of_all_ratings_is_no_change_of_any() -> None:
    """A judge that draws lots narrows all ratings: without it they are wider, and nobody is better."""
    wins = {("a", "b"): 12, ("b", "a"): 4, ("b", "c"): 12, ("c", "b"): 4, ("a", "c"): 14, ("c", "a"): 2}
    rows = [(a, b, 1.0, "keen") for (a, b), count in wins.items() for _ in range(count)]
    rows += [(a, b, 0.5, "dull") for a, b in ("ab", "bc", "ac") for _ in range(16)]
    a, b, y, judge = zip(*rows, strict=True)
    found = influence(comparisons(a, b, y, judge=judge), "judge")
    left = next(one for one in found.without if one.name == "dull")
    assert left.stretch == pytest.approx(2.37, abs=0.1)
    assert left.change < 15.0


def test_effects_are_the_derivative_of_ratings_with_respect_to_weights() -> None:
    rows = data()
    found = first_order_effects(rows)
    contrast = np.array([1.0, -0.5, 0.0, -0.5, 0.25, -0.25])
    told = found.rows(contrast)
    for row in (0, 17, 100):
        weight = np.ones(len(rows))
        sides = []
        for step in (1e-4, -1e-4):
            weight[row] = 1.0 + step
            sides.append(contrast @ bradley_terry(replace(rows, weight=weight), errors="none").logits)
        assert told[row] == pytest.approx((sides[0] - sides[1]) / 2e-4, rel=1e-5)
    assert rows.cluster is not None
    units = found.units(rows.cluster, len(rows.clusters)) @ contrast
    assert units == pytest.approx(np.bincount(rows.cluster, told))


def test_the_error_of_a_difference_is_the_clustered_one() -> None:
    rows = data()
    found, whole = first_order_effects(rows), bradley_terry(rows, errors="cluster")
    assert whole.covariance is not None
    contrast = np.array([1.0, 0.0, -1.0, 0.0, 0.0, 0.0])
    assert found.error(contrast) == pytest.approx(float(np.sqrt(contrast @ whole.covariance @ contrast)))


def test_a_judge_that_crowns_another_is_named_with_the_error_of_its_share() -> None:
    """Two honest judges see m00 ahead; a third gives every battle to m01."""
    battles = campaign(3, strength=[1.0, 0.4, 0.0, 0.0, -0.4, -1.0], instructions=80)
    bought = battles.judge == 2
    label = battles.label.copy()
    label[bought & (battles.model_a == 1)] = 1
    label[bought & (battles.model_b == 1)] = -1
    found = influence(merge_orders(replace(battles, label=label)).comparisons(), "judge")
    left = next(one for one in found.without if one.name == "judge 2")
    assert (found.leader, left.leader, left.model) == ("m01", "m00", "m01")
    assert left.change_of_lead is not None
    change, error = left.change_of_lead
    assert change > 5.0 * error > 0.0


def test_the_error_of_a_judge_s_share_is_that_of_leaving_out_instructions() -> None:
    """The jackknife over instructions: both fits anew without each of them."""
    battles = campaign(3, strength=[0.8, 0.4, 0.0, 0.0, -0.4, -0.8], instructions=60)
    label = battles.label.copy()
    label[(battles.judge == 2) & (battles.model_a == 1)] = 1
    label[(battles.judge == 2) & (battles.model_b == 1)] = -1
    rows = merge_orders(replace(battles, label=label)).comparisons()
    left = next(one for one in influence(rows, "judge").without if one.name == "judge 2")
    assert left.change_of_lead is not None
    changes = []
    assert rows.cluster is not None
    for code in range(60):
        part = rows.select(rows.cluster != code)
        whole, rest = (bradley_terry(one, errors="none").elo for one in (part, without(part, "judge", "judge 2")))
        changes.append((whole[1] - whole[0]) - (rest[1] - rest[0]))
    spread = np.array(changes) - np.mean(changes)
    assert left.change_of_lead[1] == pytest.approx(float(np.sqrt(spread @ spread * 59 / 60)), rel=0.1)


def test_only_the_most_influential_of_very_many_instructions_are_refitted() -> None:
    rows = data(noise=1.0)
    everything, some = influence(rows, "instruction"), influence(rows, "instruction", most=8)
    assert (len(some.without), some.units) == (8, 30)
    assert some.without[0].name in {left.name for left in everything.without[:3]}


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_rows_in_another_order_and_turned_sides_change_nothing(seed: int) -> None:
    rows = data(seed % 5)
    rng = np.random.default_rng(seed)
    shuffled = rows.select(rng.permutation(len(rows)))
    turn = rng.random(len(rows)) < 0.5
    y = np.where(turn, 1.0 - shuffled.y, shuffled.y)
    turned = replace(shuffled, a=np.where(turn, shuffled.b, shuffled.a), b=np.where(turn, shuffled.a, shuffled.b), y=y)
    for unit in ("instruction", "judge"):
        one, other = influence(rows, unit), influence(turned, unit)
        assert {left.name: round(left.change, 6) for left in one.without} == {
            left.name: round(left.change, 6) for left in other.without
        }


def test_a_model_that_all_others_hang_on_is_listed_as_such() -> None:
    rows = comparisons(list("hhhhhh"), list("aabbcc"), [1, 0, 1, 0, 0, 1])
    found = influence(rows, "model")
    assert found.separated == ("h",)
    assert {left.name for left in found.without} == {"a", "b", "c"}


def test_models_outside_the_largest_group_take_no_part() -> None:
    rows = comparisons(list("aabbx"), list("bbaaa"), [1, 1, 1, 0, 1], cluster=[1, 2, 3, 4, 5])
    assert rated_together(rows).models == ("a", "b")
    assert influence(rows, "instruction").left_out == ("x",)


def test_what_cannot_be_left_out_is_said() -> None:
    lone = comparisons(["a", "b"], ["b", "a"], [1, 1])
    with pytest.raises(InputError, match="no named judges"):
        influence(lone, "judge")
    with pytest.raises(InputError, match="one named judge: leaving one out needs two"):
        influence(comparisons(["a", "b"], ["b", "a"], [1, 1], judge=["x", "x"]), "judge")
    with pytest.raises(InputError, match="no two models are joined"):
        influence(comparisons(["a"], ["b"], [1]), "model")
    with pytest.raises(InputError, match="no two models are joined"):
        influence(comparisons([], [], []), "model")


def test_how_far_the_most_outlying_goes_by_chance() -> None:
    """Grubbs' two-sided critical value of 20 normal numbers at 1 % is 3.001 for deviations from an estimated mean."""
    assert outlier_critical_value(20, 1) == pytest.approx(3.001, abs=0.001)
    assert outlier_critical_value(20, 5) > outlier_critical_value(20, 1)
    assert outlier_critical_value(2, 1) == float("inf")


def test_how_far_the_largest_of_several_changes_goes_by_chance() -> None:
    assert critical_value(1, 10**9) == pytest.approx(1.96, abs=0.001)
    assert critical_value(5, 10**9) == pytest.approx(2.576, abs=0.001)
    assert critical_value(1, 11) == pytest.approx(2.228, abs=0.001)
    assert critical_value(1, 1) == float("inf")
