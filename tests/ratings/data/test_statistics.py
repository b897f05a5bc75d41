"""Ranks and correlations are those of scipy.stats, row by row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from venire.ratings.data import statistics as correlations
from venire.ratings.data.statistics import kendall, pearson, ranks, spearman

FIGURES = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6).map(lambda value: round(value, 3)))


@given(arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 9)), elements=FIGURES))
def test_ranks_share_their_mean_where_figures_are_equal(rows: np.ndarray) -> None:
    np.testing.assert_array_equal(ranks(rows), stats.rankdata(rows, axis=1))
    np.testing.assert_array_equal(ranks(rows[0]), stats.rankdata(rows[0]))


def test_nothing_has_no_ranks_and_infinite_figures_are_equal() -> None:
    assert ranks(np.empty(0)).shape == (0,)
    assert ranks(np.empty((0, 3))).shape == (0, 3)
    assert ranks(np.empty((2, 0))).shape == (2, 0)
    assert ranks([np.inf, 1.0, np.inf, -np.inf]).tolist() == [3.5, 2.0, 3.5, 1.0]


@given(arrays(np.float64, st.tuples(st.integers(2, 4), st.integers(3, 9)), elements=FIGURES))
def test_each_row_correlates_with_the_column_as_scipy_says(table: np.ndarray) -> None:
    theirs, ours = table[0], table[1:]
    for found, known in ((pearson, stats.pearsonr), (spearman, stats.spearmanr), (kendall, stats.kendalltau)):
        for row, value in zip(ours, found(ours, theirs), strict=True):
            if np.ptp(row) == 0.0 or np.ptp(theirs) == 0.0:
                assert np.isnan(value)
            else:
                assert value == pytest.approx(known(row, theirs).statistic, abs=1e-6)


def test_many_rows_are_taken_in_parts_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    ours, theirs = rng.integers(0, 4, (50, 7)).astype(float), rng.normal(size=7)
    whole = kendall(ours, theirs)
    monkeypatch.setattr(correlations, "_CELLS", 60)
    np.testing.assert_array_equal(kendall(ours, theirs), whole)
