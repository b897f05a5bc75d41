"""Agreement of two sets of ratings."""

from __future__ import annotations

import pytest

from venire.ratings.agreement import agreement


def test_a_common_mean_is_taken_over_shared_models_alone() -> None:
    found = agreement({"a": 100.0, "b": 200.0, "c": 330.0, "x": 9000.0}, {"a": 1.0, "b": 101.0, "c": 201.0, "y": -5.0})
    assert found.models == 3
    assert found.mae == pytest.approx((10 + 10 + 20) / 3)
    assert found.spearman == pytest.approx(1.0)
    assert found.pearson == pytest.approx(0.99717, abs=1e-5)


def test_an_order_reversed_is_minus_one() -> None:
    assert agreement({"a": 1.0, "b": 2.0, "c": 4.0}, {"a": 3.0, "b": 2.0, "c": 1.0}).spearman == pytest.approx(-1.0)


def test_two_models_are_too_few() -> None:
    found = agreement({"a": 1.0, "b": 2.0, "c": 3.0}, {"a": 1.0, "b": 2.0})
    assert (found.pearson, found.spearman, found.mae, found.models) == (None, None, None, 2)
    assert found.reason is not None
    assert "at least 3" in found.reason


def test_equal_ratings_have_no_correlation_but_an_error() -> None:
    found = agreement({"a": 5.0, "b": 5.0, "c": 5.0}, {"a": 1.0, "b": 2.0, "c": 3.0})
    assert (found.pearson, found.spearman) == (None, None)
    assert found.mae == pytest.approx(2 / 3)
    assert found.reason is not None
