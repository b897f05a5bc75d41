"""Ranks and correlations are those of scipy.stats, row by row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from venire.ratings.data import statistics as correlations
from venire.ratings.data.statistics import chi2, kendall, norm, pearson, ranks, spearman, student

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


SHARES = st.floats(1e-300, 1.0, exclude_max=True)
DEGREES = st.one_of(st.floats(0.5, 1e6), st.just(np.inf))


@given(SHARES, st.floats(-40.0, 40.0), DEGREES)
def test_each_is_scipy_s(share: float, x: float, degrees: float) -> None:
    assert norm.ppf(share) == pytest.approx(stats.norm.ppf(share), rel=1e-9)
    assert norm.isf(share) == pytest.approx(stats.norm.isf(share), rel=1e-9)
    assert norm.sf(x) == pytest.approx(stats.norm.sf(x), rel=1e-9)
    assert student.ppf(share, degrees) == pytest.approx(stats.t.ppf(share, degrees), rel=1e-9)
    assert student.isf(share, degrees) == pytest.approx(stats.t.isf(share, degrees), rel=1e-9)
    assert student.cdf(x, degrees) == pytest.approx(stats.t.cdf(x, degrees), rel=1e-9)
    assert student.sf(x, degrees) == pytest.approx(stats.t.sf(x, degrees), rel=1e-9)
    if np.isfinite(degrees):
        assert chi2.sf(x, degrees) == pytest.approx(stats.chi2.sf(x, degrees), rel=1e-9)


def test_arrays_go_through_whole_and_the_ends_are_infinite() -> None:
    shares, degrees = np.array([0.0, 0.025, 0.5, 0.975, 1.0]), np.array([3.0, 4.0, 5.0, np.inf, 2.0])
    np.testing.assert_allclose(student.ppf(shares, degrees), stats.t.ppf(shares, degrees), rtol=1e-12)
    np.testing.assert_allclose(student.isf(shares, degrees), stats.t.isf(shares, degrees), rtol=1e-12)
    np.testing.assert_allclose(norm.sf(np.array([-np.inf, 0.0, np.inf])), [1.0, 0.5, 0.0])


def test_degrees_without_a_distribution_give_no_figure() -> None:
    assert np.isnan(student.ppf(0.975, 0.0))
    assert np.isnan(student.sf(1.0, -1.0))
    assert np.isnan(chi2.sf(1.0, 0))
    assert np.isnan(student.cdf(np.nan, 3.0))
