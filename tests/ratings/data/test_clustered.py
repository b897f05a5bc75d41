"""Means of clustered rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from venire.arena.errors import InputError
from venire.ratings.data.clustered import clustered_difference, clustered_mean, units_of
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.pairwise.bradley_terry import bradley_terry


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


def crossed(respondents: int, seed: int = 0) -> Comparisons:
    """Votes of respondents on the instructions of all."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, 40 * respondents)
    b = (a + rng.integers(1, 4, len(a))) % 4
    y = (rng.random(len(a)) < 0.5 + 0.1 * (b - a)).astype(float)
    who, asked = rng.integers(0, respondents, len(a)), rng.integers(0, 25, len(a))
    return comparisons(a, b, y, cluster=asked, judge=who, crossed=True)


def test_crossed_units_add_both_and_take_away_what_both_count() -> None:
    data = crossed(6)
    one, two = bradley_terry(replace(data, crossed=False)), bradley_terry(data)
    assert data.judge is not None
    assert data.cluster is not None
    cells = np.unique(data.judge.astype(np.int64) * 25 + data.cluster, return_inverse=True)[1].astype(np.int32)
    by_judge, by_cell = (
        bradley_terry(replace(data, crossed=False, cluster=code)).covariance for code in (data.judge, cells)
    )
    assert by_judge is not None
    assert one.covariance is not None
    assert two.covariance == pytest.approx(one.covariance + by_judge - by_cell)
    assert (one.errors, two.errors, two.degrees) == ("cluster", "two-way", 5.0)
    assert (two.diagnostics["clusters"], two.diagnostics["respondents"]) == (25, 6)


def test_a_difference_of_covariances_is_never_negative() -> None:
    """Respondents who agree more than chance has them would take more away than there is."""
    units = units_of(np.arange(10, dtype=np.int32) // 2, np.arange(10, dtype=np.int32) % 5, 10)
    found = units.covariance(lambda _, count: np.diag([1.0, -1.0]) if count == 10 else np.zeros((2, 2)))
    assert np.linalg.eigvalsh(found).min() >= 0.0


def test_few_respondents_are_not_crossed() -> None:
    few = bradley_terry(crossed(4))
    assert (few.errors, few.degrees) == ("cluster", 24.0)
    rows = replace(crossed(6), cluster=None)
    assert bradley_terry(rows).errors == "sandwich"
