"""The three distributions are those of scipy.stats, which is not imported for them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from venire.ratings.data.statistics import chi2, norm, student

SHARES = st.floats(1e-300, 1.0, exclude_max=True)
DEGREES = st.one_of(st.floats(0.5, 1e6), st.just(np.inf))


@given(SHARES, st.floats(-40.0, 40.0), DEGREES)
def test_each_is_scipy_s(share: float, x: float, degrees: float) -> None:
    assert norm.ppf(share) == pytest.approx(stats.norm.ppf(share), rel=1e-9)
    assert norm.isf(share) == pytest.approx(stats.norm.isf(share), rel=1e-9)
    assert norm.sf(x) == pytest.approx(stats.norm.sf(x), rel=1e-9)
    assert norm.pdf(x) == pytest.approx(stats.norm.pdf(x), rel=1e-9)
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
