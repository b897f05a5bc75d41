"""What the order shown does to judges and rankings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

from tests.ratings.conftest import make_table
from tests.ratings.simulated import campaign
from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.judges.position import adjust_for_position, position_bias, position_effects

Table = Callable[..., Battles]


def test_counts_by_hand() -> None:
    rows = [
        ("a", "b", "first", "j", "x"),
        ("b", "a", "first", "j", "x"),
        ("a", "b", "first", "j", "y"),
        ("b", "a", "second", "j", "y"),
        ("a", "b", "second", "j", "z"),
        ("b", "a", "second", "j", "z"),
        ("a", "b", "tie", "j", "w"),
        ("b", "a", "first", "j", "w"),
    ]
    (found,) = position_effects(make_table(rows))
    assert found.first.value == found.counted == pytest.approx(4 / 7)
    assert found.flips.value == pytest.approx(0.5)
    assert (found.to_first, found.to_second, found.fitted) == (1, 1, False)
    assert found.again.value is None
    assert found.excess.value is None


def test_a_judge_that_is_merely_unsure_flips_as_often_as_it_changes_its_mind() -> None:
    unsure, placed = (
        position_effects(campaign(1, judges=1, repeats=4, instructions=150, first=(lean,), ties=0.0))[0]
        for lean in (0.0, 1.0)
    )
    assert unsure.excess.value == pytest.approx(0.0, abs=3.0 * (unsure.excess.se or 0.0))
    assert unsure.flips.value == pytest.approx(unsure.again.value, abs=0.03)
    assert placed.excess.beyond(0.0) > 5.0
    assert (placed.excess.value or 0.0) > 0.05


def test_where_one_order_was_shown_the_effect_is_fitted_beside_strength() -> None:
    """The better model stands first in three battles of four: counting would call that an effect."""
    battles = campaign(2, judges=1, instructions=400, ties=0.0, noise=0.0, strength=[1.5, 1.0, 0.5, 0.0, -0.5, -1.0])
    rng = np.random.default_rng(3)
    first_of_each = np.flatnonzero(~battles.swapped)
    shown = rng.random(len(first_of_each)) < 0.25
    rows = first_of_each + shown
    one_order = replace(
        battles,
        **{
            name: getattr(battles, name)[rows]
            for name in ("model_a", "model_b", "judge", "instruction", "repeat", "swapped", "status", "label")
        },
    )
    (found,) = position_effects(one_order)
    counted = np.mean((one_order.label > 0) ^ one_order.swapped)
    assert counted > 0.6
    assert found.fitted
    assert found.counted == pytest.approx(counted)
    assert found.first.value == pytest.approx(0.5, abs=3.0 * (found.first.se or 0.0))
    (leaning,) = position_effects(replace(one_order, label=np.where(one_order.swapped, -1, 1).astype(np.int8)))
    assert leaning.reason is not None


def test_the_effect_that_was_put_in_is_found_and_held_equal() -> None:
    battles = campaign(5, judges=1, instructions=600, first=(0.7,), ties=0.0, noise=0.0)
    found = adjust_for_position(battles)
    assert found.coefficient == pytest.approx(0.7, abs=3.0 * found.se)
    assert found.se < 0.1
    (effect,) = position_effects(battles)
    assert effect.first.value == pytest.approx(0.64, abs=0.03)


def test_a_table_without_orders_has_none_to_look_at() -> None:
    battles = replace(campaign(1), ordered=False)
    with pytest.raises(InputError, match="no order to look at"):
        position_effects(battles)
    with pytest.raises(InputError, match="no place to hold equal"):
        adjust_for_position(battles)


def test_turned_sides_and_shuffled_rows_change_nothing() -> None:
    battles = campaign(4, repeats=2, instructions=20)
    order = np.random.default_rng(0).permutation(len(battles.label))
    names = ("model_a", "model_b", "judge", "instruction", "repeat", "swapped", "status", "label")
    other = replace(battles, **{name: getattr(battles, name)[order] for name in names})
    other = replace(
        other,
        model_a=other.model_b,
        model_b=other.model_a,
        swapped=~other.swapped,
        label=(-other.label).astype(np.int8),
    )
    for one, two in zip(position_effects(battles), position_effects(other), strict=True):
        assert one.first.value == pytest.approx(two.first.value)
        assert one.first.se == pytest.approx(two.first.se)
        assert one.excess.value == pytest.approx(two.excess.value)


def test_recorded_judges_turn_with_the_order_far_more_than_between_tries(shared_data: Path) -> None:
    path = shared_data / "devbench_repeats" / "judgments.parquet"
    with duckdb.connect() as connection:
        sql = "SELECT first, second, verdict, judge, instruction_id, repeat FROM read_parquet(?)"
        battles = make_table(connection.execute(sql, [str(path)]).fetchall())
    found = {one.judge: one for one in position_effects(battles)}
    haiku, sonnet = found["claude-3-haiku-20240307"], found["claude-3-sonnet-20240229"]
    assert (haiku.first.value, sonnet.first.value) == pytest.approx((0.1019, 0.4190), abs=1e-4)
    assert (haiku.flips.value, haiku.again.value) == pytest.approx((0.8241, 0.1944), abs=1e-4)
    assert haiku.excess.beyond(0.0) > 10.0
    # Every fourth row of this table, from which a fit begins, leads nowhere: it begins anew from equal ratings.
    assert adjust_for_position(battles).coefficient == pytest.approx(-0.5415, abs=1e-4)


def test_first_places_and_flips_of_recorded_peers(shared_data: Path, table: Table) -> None:
    path = shared_data / "vicuna80_peers" / "judgments.parquet"
    with duckdb.connect() as connection:
        rows = connection.execute(
            "SELECT first, second, verdict, judge, instruction_id, repeat FROM read_parquet(?) WHERE repeat = 1",
            [str(path)],
        ).fetchall()
    found = {each.judge: each for each in position_bias(table(rows))}
    first = {judge: each.first.value for judge, each in found.items()}
    flips = {judge: each.flips.value for judge, each in found.items()}
    assert first == pytest.approx(
        {"bard": 0.81205, "claude-v1": 0.36215, "gpt-3.5-turbo": 0.48995, "gpt-4": 0.62353, "vicuna-13b": 0.40631},
        abs=1e-4,
    )
    assert flips == pytest.approx(
        {"bard": 0.5925, "claude-v1": 0.31, "gpt-3.5-turbo": 0.08375, "gpt-4": 0.14375, "vicuna-13b": 0.5925}, abs=1e-4
    )
    assert found["gpt-4"].flips.n == 800
    assert found["gpt-3.5-turbo"].first.low < 0.5 < found["gpt-3.5-turbo"].first.high


def test_a_table_without_orders_has_no_position(table: Table) -> None:
    with pytest.raises(InputError, match="shown first"):
        position_bias(table([("x", "y", "first")], ordered=False))


def test_verdicts_that_cannot_be_read_and_single_orders_count_for_nothing(table: Table) -> None:
    rows = [("x", "y", "first", "j", "1"), ("y", "x", None, "j", "1"), ("x", "y", "tie", "j", "2")]
    (found,) = position_bias(table(rows))
    assert (found.first.value, found.first.n) == (1.0, 1)
    assert (found.flips.value, found.flips.n) == (None, 0)
