"""Ratings with one covariate held equal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from scipy.stats import pearsonr
from scipy.stats import t as student

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.data.style import relative_difference
from venire.ratings.judges.length import adjust_for, length_bias, partial_correlation


def table(seed: int = 0, weight: float = 0.6) -> tuple[Comparisons, np.ndarray]:
    """Model d is no better than a, but longer: without length held equal it leads."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, 4000)
    b = (a + rng.integers(1, 4, 4000)) % 4
    x = rng.normal(size=4000) + 1.5 * ((a == 3).astype(float) - (b == 3))
    true = np.array([0.3, 0.0, -0.3, 0.0])
    y = rng.random(4000) < 1.0 / (1.0 + np.exp(true[b] - true[a] - weight * x))
    return comparisons(a, b, y.astype(float), models=["a", "b", "c", "d"], cluster=rng.integers(0, 200, 4000)), x


def test_what_was_put_in_is_found_and_the_order_mended() -> None:
    data, x = table()
    found = adjust_for(data, x, "length", scaled=False)
    assert found.coefficient == pytest.approx(0.6, abs=3.0 * found.se)
    assert found.leaders == ("d", "a")
    assert "d" in found.moved
    assert found.clear > 10.0
    assert 0.1 < found.own_information < 1.0


def test_scaled_it_is_the_weight_of_a_usual_difference() -> None:
    data, x = table()
    plain, scaled = adjust_for(data, x, "length", scaled=False), adjust_for(data, 7.0 * x, "length")
    assert scaled.coefficient == pytest.approx(plain.coefficient * float(np.sqrt(np.mean(x * x))))
    assert scaled.clear == pytest.approx(plain.clear)
    assert scaled.equal.logits == pytest.approx(plain.equal.logits)


def test_rows_that_do_not_say_and_models_that_are_not_joined_are_left_out() -> None:
    data, x = table()
    unknown = x.copy()
    unknown[:100] = np.nan
    found = adjust_for(data, unknown, "length")
    assert found.rows == 3900
    assert found.coefficient == pytest.approx(
        adjust_for(data.select(np.arange(100, len(data))), x[100:], "length").coefficient
    )
    alone = comparisons([*np.array(list("abcd"))[data.a], "z"], [*np.array(list("abcd"))[data.b], "a"], [*data.y, 1.0])
    assert adjust_for(alone, [*x, 0.5], "length").plain.models == ("a", "b", "c", "d")


def test_a_covariate_that_says_nothing_is_refused() -> None:
    data, x = table()
    with pytest.raises(InputError, match="the same on both sides"):
        adjust_for(data, np.zeros(4000), "length")
    with pytest.raises(InputError, match="give one number for each of 4000"):
        adjust_for(data, x[:5], "length")
    with pytest.raises(InputError, match="no two models are joined"):
        adjust_for(replace(data, y=np.ones(4000)).select(data.a < data.b), x[data.a < data.b], "length")
    with pytest.raises(InputError, match="no two models are joined"):
        adjust_for(data, np.full(4000, np.nan), "length")


def test_the_recorded_length_effect(shared_data: Path) -> None:
    """AlpacaEval: longer answers win, and much of it is left when models are held equal."""
    folder = shared_data / "alpaca_eval"
    with duckdb.connect() as connection:
        rows = connection.execute(
            "SELECT j.model, prob_model_beats_baseline, c.n_chars, b.n_chars, j.instruction_id FROM read_parquet(?) j "
            "JOIN read_parquet(?) c ON c.model = j.model AND c.instruction_id = j.instruction_id "
            "JOIN read_parquet(?) b ON b.model = 'gpt4_1106_preview' AND b.instruction_id = j.instruction_id",
            [
                str(folder / "judgments.parquet"),
                str(folder / "completions.parquet"),
                str(folder / "completions.parquet"),
            ],
        ).fetchall()
    model, y, ours, theirs, unit = zip(*rows, strict=True)
    data = comparisons(list(model), ["gpt4_1106_preview"] * len(y), list(y), cluster=list(unit))
    found = adjust_for(data, relative_difference(ours, theirs), "length")
    assert 0.3 < found.coefficient < 1.5
    assert found.clear > 5.0


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
        ("cluster has shape", lambda: length_bias([1.0, 0.0], [1.0, 2.0], cluster=["x"])),
        ("one number a model", lambda: partial_correlation([1.0], [1.0, 2.0], [1.0])),
    ],
)
def test_bad_columns_are_named(said: str, call: Callable[[], object]) -> None:
    with pytest.raises(InputError, match=said):
        call()
