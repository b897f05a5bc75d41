"""Means of clustered rows."""

from __future__ import annotations

import numpy as np
import pytest

from venire.arena.errors import InputError
from venire.ratings.data.clustered import clustered_difference, clustered_mean


def test_rows_of_their_own_have_the_textbook_error() -> None:
    rows = np.array([1.0, 0.0, 0.0, 1.0, 1.0])
    found = clustered_mean(rows)
    assert found.value == pytest.approx(0.6)
    assert found.se == pytest.approx(rows.std(ddof=1) / np.sqrt(5))
    assert found.interval() == pytest.approx((0.6 - 2.776445 * found.se, 0.6 + 2.776445 * found.se))


def test_copies_within_clusters_change_nothing() -> None:
    rows, names = np.array([0.2, 0.9, 0.4]), np.array(["x", "y", "z"])
    one, other = clustered_mean(rows), clustered_mean(np.repeat(rows, 7), np.repeat(names, 7))
    assert (other.value, other.se, other.clusters) == pytest.approx((one.value, one.se, 3))
    heavy = clustered_mean(rows, names, [7.0, 7.0, 7.0])
    assert (heavy.value, heavy.se) == pytest.approx((one.value, one.se))


def test_a_gap_within_clusters_has_the_error_of_paired_differences() -> None:
    first, second = np.array([0.2, 0.9, 0.4, 0.6]), np.array([0.1, 0.5, 0.5, 0.3])
    names = np.arange(4)
    found = clustered_difference(first, second, names, names)
    assert found.value == pytest.approx(float((first - second).mean()))
    assert found.se == pytest.approx(float((first - second).std(ddof=1) / 2.0))
    apart = clustered_difference(first, second)
    assert apart.clusters == 8


def test_intervals_of_few_clusters_hold_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(400):
        rows = rng.normal(size=12).repeat(5) + rng.normal(size=60)
        low, high = clustered_mean(rows, np.arange(12).repeat(5)).interval()
        assert low is not None
        assert high is not None
        held += low <= 0.0 <= high
    assert 0.92 <= held / 400 <= 0.98


def test_a_row_without_weight_is_no_further_cluster() -> None:
    """It would make the one cluster that is there look certain."""
    assert clustered_mean([1.0, 0.0, 0.5], [0, 0, 1], [1.0, 1.0, 0.0]).se is None
    values = [0.2, 0.9, 0.4, 0.7]
    assert clustered_mean([*values, 9.0], weight=[1.0, 1.0, 1.0, 1.0, 0.0]) == clustered_mean(values)


def test_nothing_and_one_cluster_say_so() -> None:
    assert clustered_mean([]).value is None
    assert clustered_difference([1.0], []).value is None
    lone = clustered_mean([1.0, 0.0], [3, 3])
    assert (lone.value, lone.se, lone.beyond(0.2)) == (0.5, None, 0.0)
    assert clustered_mean([1.0, 1.0, 1.0]).beyond(0.5) == float("inf")
    with pytest.raises(InputError, match="one length"):
        clustered_mean([1.0], [1, 2])
