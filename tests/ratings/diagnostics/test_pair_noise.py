"""Noise of pairs has the variance that the data show, and no order of rows moves it."""

from __future__ import annotations

import numpy as np
import pytest

from venire.ratings.data.comparisons import comparisons
from venire.ratings.diagnostics.goodness_of_fit import pair_noise, tail_probability


def test_draws_have_the_variance_of_sums_over_clusters() -> None:
    rng = np.random.default_rng(3)
    cluster = np.repeat(np.arange(40), 5)
    y = (rng.random(200) < 0.6).astype(float)
    data = comparisons(["a"] * 200, ["b"] * 200, y, cluster=cluster)
    noise = pair_noise(data, np.array([0.2, -0.2]))
    p = 1.0 / (1.0 + np.exp(-0.4))
    sums = np.bincount(cluster, y - p)
    assert noise.variance == pytest.approx((sums**2).sum() * 40 / 39)
    assert noise.even == pytest.approx((np.bincount(cluster, y - 0.5) ** 2).sum() * 40 / 39)
    drawn = np.concatenate(list(noise.draws(4000, 0)), axis=1)
    assert drawn.shape == (1, 4000)
    assert drawn.var() == pytest.approx(float(noise.variance[0]), rel=0.1)


def test_rows_may_come_in_any_order_and_from_either_side() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 3, 60), np.zeros(60, dtype=int)
    b = (a + 1 + rng.integers(0, 2, 60)) % 3
    y = rng.integers(0, 3, 60) / 2
    at, order, turn = np.array([0.3, 0.0, -0.3]), rng.permutation(60), rng.random(60) < 0.5
    one = pair_noise(comparisons(a, b, y), at)
    two = pair_noise(
        comparisons(np.where(turn, b, a)[order], np.where(turn, a, b)[order], np.where(turn, 1 - y, y)[order]), at
    )
    assert np.allclose(one.won, two.won)
    for left, right in zip(one.draws(70, 1), two.draws(70, 1), strict=True):
        assert np.allclose(left, right)


def test_the_first_draws_are_the_same_however_many_are_asked_for() -> None:
    data = comparisons(["a", "a", "b"], ["b", "b", "a"], [1, 0, 1])
    noise = pair_noise(data, np.zeros(2))
    few = np.concatenate(list(noise.draws(10, 5)), axis=1)
    many = np.concatenate(list(noise.draws(200, 5)), axis=1)
    assert np.array_equal(few, many[:, :10])


def test_many_units_are_taken_together_without_losing_variance() -> None:
    rng = np.random.default_rng(6)
    data = comparisons(["a"] * 5000, ["b"] * 5000, (rng.random(5000) < 0.5).astype(float))
    noise = pair_noise(data, np.zeros(2))
    assert noise.residuals.shape == (1, 2000)
    assert noise.variance == pytest.approx(1250.0, rel=0.15)


def test_a_p_value_is_never_nought_and_counts_equals() -> None:
    assert tail_probability(3.0, np.array([1.0, 2.0, 3.0, 4.0])) == pytest.approx(3 / 5)
    assert tail_probability(9.0, np.zeros(99)) == pytest.approx(0.01)
