"""Ratings with one covariate held equal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.data.style import relative_difference
from venire.ratings.judges.length import adjust_for


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
    assert found.coefficient == pytest.approx(adjust_for(data.select(slice(100, None)), x[100:], "length").coefficient)
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
