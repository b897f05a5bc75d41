"""Biases that were planted are found, and a judge without them shows none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from scipy.stats import pearsonr, ttest_ind
from scipy.stats import t as student

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.agreement.chance_corrected import human_kappa
from venire.ratings.judges.length import length_bias, partial_correlation
from venire.ratings.judges.position import position_bias
from venire.ratings.peers.self_preference import family_excess

Table = Callable[..., Battles]


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


def test_the_longer_answer_wins_near_ties_as_often_as_planted() -> None:
    rng = np.random.default_rng(0)
    length, score = rng.normal(0, 100, 20_000), np.round(rng.normal(0, 2, 20_000) * 6) / 6
    pushed = np.where(rng.random(20_000) < 0.62, np.sign(length), -np.sign(length))
    side = np.where(np.abs(score) <= 0.5, pushed, np.sign(score))
    people = (rng.random(20_000) < 0.5).astype(float)
    found = length_bias((side + 1) / 2, length, score, human=people)
    assert found.near.low < 0.62 < found.near.high
    assert found.near.n == np.count_nonzero(np.abs(score) <= 0.5)
    assert found.human.low < 0.5 < found.human.high
    assert found.all.value < found.near.value


def test_ties_equal_lengths_and_gaps_in_the_data_are_no_cases() -> None:
    found = length_bias([1.0, 0.5, 1.0, 0.0, np.nan], [5.0, 5.0, 0.0, np.nan, 3.0], [0.1] * 5)
    assert (found.near.value, found.near.n, found.human.n) == (1.0, 1, 0)


def test_intervals_of_copied_cases_are_those_of_the_cases() -> None:
    rng = np.random.default_rng(1)
    y, length = (rng.random(300) < 0.6).astype(float), rng.normal(0, 1, 300)
    once = length_bias(y, length, cluster=np.arange(300)).all
    copies = length_bias(np.tile(y, 5), np.tile(length, 5), cluster=np.tile(np.arange(300), 5)).all
    assert (copies.low, copies.high) == pytest.approx((once.low, once.high), abs=1e-3)
    alone = length_bias(np.tile(y, 5), np.tile(length, 5)).all
    assert alone.high - alone.low < 0.5 * (once.high - once.low)


def test_wilson_s_interval_is_the_published_one() -> None:
    """7 of 10: 0.3968 to 0.8922 (Wilson, without continuity correction)."""
    share = length_bias([1.0] * 7 + [0.0] * 3, np.ones(10)).all
    assert (share.low, share.high) == pytest.approx((0.39678, 0.89221), abs=1e-4)


def test_a_judge_s_own_family_stands_out_and_generosity_does_not() -> None:
    rng = np.random.default_rng(2)
    families = ["a"] * 6 + ["b"] * 6 + ["c"] * 12
    scores = rng.normal(7, 1, 24) + rng.normal(0, 0.1, (5, 24))
    scores[0] += 2.0
    scores[1, 6:12] += 0.5
    found = {each.judge: each for each in family_excess(scores, list("vwxyz"), ["a", "b", "c", "c", "d"], families)}
    assert found["v"].low < 0.0 < found["v"].high
    assert 0.3 < found["w"].low < 0.5 < found["w"].high < 0.7
    assert (found["z"].excess, found["z"].own, found["z"].others) == (None, 0, 24)
    deviation = scores[1] - np.median(np.delete(scores, 1, axis=0), axis=0)
    interval = ttest_ind(deviation[6:12], np.delete(deviation, range(6, 12)), equal_var=False).confidence_interval()
    assert (found["w"].low, found["w"].high) == pytest.approx((interval.low, interval.high))


def test_kappa_with_people_is_that_of_sides(arena_sample: dict[str, Any]) -> None:
    y, human = arena_sample["data"].y, arena_sample["human"]
    found = human_kappa(y, human, replicates=0)
    assert found.observed == pytest.approx(0.506)
    chance = sum(np.mean(y == side) * np.mean(human == side) for side in (0.0, 0.5, 1.0))
    assert found.value == pytest.approx((0.506 - chance) / (1 - chance))
    halved = np.where(y == 1.0, 0.75, y)
    assert human_kappa(halved, np.where(np.arange(1000) < 10, np.nan, human), replicates=0).items == 990


def test_the_partial_correlation_takes_the_rating_out_of_both() -> None:
    rng = np.random.default_rng(3)
    elo = rng.normal(1000, 100, 400)
    length = 3 * elo + rng.normal(0, 100, 400)
    none = partial_correlation(0.4 * elo + rng.normal(0, 10, 400), length, elo)
    assert none.low < 0.0 < none.high
    assert none.p_value > 0.01
    residual = 0.4 * elo + 0.05 * length + rng.normal(0, 10, 400)
    some = partial_correlation(residual, length, elo)
    r = {
        name: pearsonr(*pair).statistic
        for name, pair in {"rl": (residual, length), "re": (residual, elo), "le": (length, elo)}.items()
    }
    expected = (r["rl"] - r["re"] * r["le"]) / np.sqrt((1 - r["re"] ** 2) * (1 - r["le"] ** 2))
    assert some.value == pytest.approx(expected)
    assert some.low < some.value < some.high
    assert some.p_value < 1e-6


def test_a_partial_correlation_has_one_degree_of_freedom_less_than_a_plain_one() -> None:
    """The p-value is that of the slope of `length` in a regression with `elo` beside it: n - 3 degrees."""
    rng = np.random.default_rng(3)
    elo, length, noise = rng.normal(0, 1, (3, 9))
    residual = elo + 0.5 * length + noise
    table = np.column_stack([np.ones(9), length, elo])
    slope, left = np.linalg.lstsq(table, residual)[:2]
    error = np.sqrt(left[0] / 6 * np.linalg.inv(table.T @ table)[1, 1])
    found = partial_correlation(residual, length, elo)
    assert found.value is not None
    assert found.low is not None
    assert found.p_value == pytest.approx(2 * student.sf(abs(slope[1] / error), 6))
    assert np.arctanh(found.value) - np.arctanh(found.low) == pytest.approx(1.959964 / np.sqrt(9 - 4), rel=1e-6)


def test_correlations_that_do_not_exist_are_none() -> None:
    line = np.arange(8.0)
    assert partial_correlation(line, line[::-1], line).value is None
    assert partial_correlation(line[:4], line[:4] ** 2, line[:4]).value is None
    assert partial_correlation(line**2, line**3, np.zeros(8)).value == pytest.approx(
        pearsonr(line**2, line**3).statistic
    )


@pytest.mark.parametrize(
    ("said", "call"),
    [
        ("y has shape", lambda: length_bias([1.0], [1.0, 2.0])),
        ("one number a row", lambda: length_bias([1.0], [1.0], [1.0, 2.0])),
        ("scores has shape", lambda: family_excess([[1.0]], ["x"], ["a"], ["a", "b"])),
        ("y has shape", lambda: human_kappa([1.0], [1.0, 0.0])),
        ("cluster has shape", lambda: human_kappa([1.0, 0.0], [1.0, 0.0], cluster=["x"])),
        ("cluster has shape", lambda: length_bias([1.0, 0.0], [1.0, 2.0], cluster=["x"])),
        ("one number a model", lambda: partial_correlation([1.0], [1.0, 2.0], [1.0])),
    ],
)
def test_bad_input_is_named(said: str, call: Callable[[], object]) -> None:
    with pytest.raises(InputError, match=said):
        call()
