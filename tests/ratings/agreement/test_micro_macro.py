"""Agreement of orders with ratings: each instruction as SciPy has it, medians and means of what there is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, pearsonr, rankdata, spearmanr

from venire.arena.errors import InputError
from venire.ratings.agreement.reference import MicroMacro, medians, micro_macro

MODELS = ("a", "b", "c", "d")
RATING = {"a": 1200.0, "b": 1100.0, "c": 950.0, "d": 700.0}
BEST_FIRST = [1.0, 2.0, 3.0, 4.0]


def figures(found: MicroMacro) -> list[float | None]:
    macro = (found.macro_pearson, found.macro_spearman, found.macro_kendall)
    return [one.value for one in (found.micro_pearson, found.micro_kendall, *macro)]


def test_the_same_order_agrees_wholly_and_the_reverse_not_at_all() -> None:
    same = micro_macro([BEST_FIRST] * 3, MODELS, RATING, replicates=20)
    assert (same.micro_pearson.value, same.micro_kendall.value, same.macro_spearman.value) == (1.0, 1.0, 1.0)
    turned = micro_macro([BEST_FIRST[::-1]] * 3, MODELS, RATING, replicates=20)
    assert (turned.micro_pearson.value, turned.macro_kendall.value) == (-1.0, -1.0)
    assert turned.macro_pearson.value == pytest.approx(-same.macro_pearson.value)
    assert same.macro_pearson.value == pytest.approx(pearsonr([-1, -2, -3, -4], list(RATING.values())).statistic)


def test_each_instruction_is_as_scipy_has_it_whatever_models_it_has() -> None:
    rng = np.random.default_rng(1)
    table = rankdata(rng.integers(0, 4, (60, 4)), axis=1)
    table[rng.random(table.shape) < 0.2] = np.nan
    found = micro_macro(table, MODELS, RATING, replicates=10)
    ratings = np.array([RATING[name] for name in MODELS])
    for row, pearson, kendall in zip(table, found.pearson, found.kendall, strict=True):
        there = np.isfinite(row)
        if there.sum() < 3 or np.ptp(row[there]) == 0.0:
            assert np.isnan([pearson, kendall]).all()
            continue
        assert pearson == pytest.approx(pearsonr(-row[there], rankdata(ratings[there])).statistic)
        assert kendall == pytest.approx(kendalltau(-row[there], ratings[there]).statistic)
    there = np.isfinite(found.pearson)
    assert found.micro_pearson.value == pytest.approx(np.median(found.pearson[there]))
    assert found.pearson_quartiles == pytest.approx(tuple(np.quantile(found.pearson[there], [0.25, 0.75])))
    assert found.instructions + found.tied + found.few == 60


def test_a_full_ranking_has_spearman_of_each_instruction() -> None:
    rng = np.random.default_rng(2)
    table = np.array([rng.permutation(4) + 1.0 for _ in range(12)])
    found = micro_macro(table, MODELS, RATING, replicates=10)
    expected = [spearmanr(-row, [RATING[name] for name in MODELS]).statistic for row in table]
    assert found.pearson == pytest.approx(expected)


def test_instructions_on_which_all_tie_are_left_out_and_counted() -> None:
    nothing = float("nan")
    table = [BEST_FIRST, [2.5] * 4, [1.0, 2.0, nothing, nothing], [2.0, 1.0, 3.0, 4.0]]
    found = micro_macro(table, MODELS, RATING, replicates=10)
    assert (found.instructions, found.tied, found.few) == (2, 1, 1)
    assert found.micro_pearson.value == pytest.approx(0.9)
    assert found.mean_position == pytest.approx([6.5 / 4, 7.5 / 4, 8.5 / 3, 10.5 / 3])
    none = micro_macro([[2.5] * 4], MODELS, RATING, replicates=10)
    assert figures(none) == [None] * 5
    assert none.micro_pearson.reason == "no instruction has one"
    assert none.pearson_quartiles is None


def test_rounding_of_means_makes_no_order() -> None:
    table = np.full((7, 4), 2.5) + np.random.default_rng(3).normal(0.0, 1e-14, (7, 4))
    assert figures(micro_macro(table, MODELS, RATING, replicates=5)) == [None] * 5


def test_macro_weighs_instructions_alike_and_compares_ranks_too() -> None:
    rng = np.random.default_rng(4)
    table = np.array([rng.permutation(4) + 1.0 for _ in range(9)])
    found = micro_macro(table, MODELS, RATING, replicates=10)
    mean, ratings = table.mean(axis=0), [RATING[name] for name in MODELS]
    assert found.macro_pearson.value == pytest.approx(pearsonr(-mean, ratings).statistic)
    assert found.macro_spearman.value == pytest.approx(spearmanr(-mean, ratings).statistic)
    assert found.macro_kendall.value == pytest.approx(kendalltau(-mean, ratings).statistic)


def test_intervals_hold_the_figure_come_from_the_seed_and_narrow_with_instructions() -> None:
    rng = np.random.default_rng(5)
    noisy = rankdata(np.array([0.0, 1.0, 2.0, 3.0]) + rng.normal(0.0, 2.0, (400, 4)), axis=1)
    wide, narrow = (micro_macro(noisy[:rows], MODELS, RATING, replicates=300).macro_pearson for rows in (20, 400))
    assert wide.lo < wide.value < wide.hi
    assert narrow.hi - narrow.lo < 0.5 * (wide.hi - wide.lo)
    again = micro_macro(noisy[:20], MODELS, RATING, replicates=300).macro_pearson
    other = micro_macro(noisy[:20], MODELS, RATING, replicates=300, seed=1).macro_pearson
    assert again == wide
    assert other.value == wide.value
    assert (other.lo, other.hi) != (wide.lo, wide.hi)


@given(
    values=st.lists(st.floats(-1.0, 1.0) | st.just(float("nan")), min_size=1, max_size=12),
    seed=st.integers(0, 1000),
)
def test_a_weighted_median_is_that_of_the_values_written_out(values: list[float], seed: int) -> None:
    weights = np.random.default_rng(seed).integers(0, 3, (4, len(values)))
    for draw, found in zip(weights, medians(np.array(values), weights.astype(float)), strict=True):
        written = [value for value, times in zip(values, draw, strict=True) for _ in range(times) if value == value]
        assert found == pytest.approx(np.median(written)) if written else np.isnan(found)


@settings(max_examples=25)
@given(st.data())
def test_neither_the_order_of_models_nor_of_instructions_changes_anything(data: Any) -> None:
    rows = data.draw(st.lists(st.lists(st.integers(1, 4), min_size=4, max_size=4), min_size=1, max_size=6))
    table = np.array(rows, dtype=float)
    columns, order = data.draw(st.permutations(range(4))), data.draw(st.permutations(range(len(rows))))
    found = micro_macro(table, MODELS, RATING, replicates=5)
    moved = micro_macro(table[np.ix_(order, columns)], [MODELS[code] for code in columns], RATING, replicates=5)
    assert figures(moved) == pytest.approx(figures(found))
    assert moved.models == found.models == MODELS
    assert moved.mean_position == pytest.approx(found.mean_position)


def test_only_models_that_both_know_take_part() -> None:
    table = np.array([[1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 3.0, 4.0]])
    found = micro_macro(table, MODELS, {"d": 1.0, "c": 2.0, "a": 3.0, "z": 9.0}, replicates=5)
    assert found.models == ("a", "c", "d")
    assert found.micro_pearson.value == 1.0


@pytest.mark.parametrize(
    ("positions", "reference", "said"),
    [
        ([[1.0, 2.0]], RATING, "a column a model"),
        ([[1.0, 2.0, 3.0, np.inf]], RATING, "'d' has inf"),
        ([BEST_FIRST], {"a": 1.0, "b": 2.0}, "at least 3"),
        ([BEST_FIRST], {**RATING, "b": float("nan")}, "the rating of 'b' is nan"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    positions: list[list[float]], reference: dict[str, float], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        micro_macro(positions, MODELS, reference)


def test_the_summary_says_both_levels() -> None:
    text = micro_macro([BEST_FIRST] * 2, MODELS, RATING, replicates=5).summary()
    assert text.startswith("4 models, 2 instructions (0 tied, 0 too few)")
    assert "micro pearson: 1.0000" in text
    assert "macro spearman: 1.0000" in text


def test_no_instructions_have_no_figures() -> None:
    assert figures(micro_macro(np.zeros((0, 4)), MODELS, RATING)) == [None] * 5
