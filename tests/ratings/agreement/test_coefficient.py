"""The bootstrap over items that agreement coefficients share."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.ratings.agreement import chance_corrected
from venire.ratings.agreement.chance_corrected import resample

VALUES = np.random.default_rng(5).normal(size=40)


def mean(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(weights @ VALUES / weights.sum(axis=1))


def test_draws_have_the_spread_of_a_mean() -> None:
    found = resample(mean, 40, level=0.95, replicates=4000, seed=0)
    assert found.se == pytest.approx(VALUES.std() / np.sqrt(40), rel=0.05)
    low, high = found.percentile(0.9)
    assert low is not None
    assert high is not None
    assert high - low == pytest.approx(2 * 1.645 * VALUES.std() / np.sqrt(40), rel=0.08)


def test_the_same_seed_draws_the_same_whatever_fits_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = resample(mean, 40, level=0.95, replicates=50, seed=7)
    monkeypatch.setattr(chance_corrected, "_BLOCK", 100)
    assert resample(mean, 40, level=0.95, replicates=50, seed=7).values == pytest.approx(whole.values)
    assert resample(mean, 40, level=0.95, replicates=50, seed=8).values != pytest.approx(whole.values)


def test_whole_clusters_are_drawn() -> None:
    cluster = np.repeat(["y", "x", "z"], [5, 5, 30])
    seen = []

    def statistic(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        seen.append(weights)
        return mean(weights)

    resample(statistic, 40, level=0.95, replicates=30, seed=0, cluster=cluster)
    drawn = np.concatenate(seen)
    by_name = np.random.default_rng(0).multinomial(3, np.full(3, 1 / 3), size=30)
    assert drawn.tolist() == by_name[:, [1] * 5 + [0] * 5 + [2] * 30].tolist()


def test_draws_without_a_value_are_counted_and_left_out() -> None:
    found = resample(lambda weights: np.where(weights[:, 0] == 0, np.nan, 1.0), 4, level=0.95, replicates=200, seed=0)
    assert found.undefined > 20
    assert len(found.values) + found.undefined == 200
    nothing = resample(lambda weights: np.full(len(weights), np.nan), 4, level=0.95, replicates=5, seed=0)
    assert (nothing.percentile(0.95), nothing.se) == ((None, None), None)


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(InputError, match="level is 95"):
        resample(mean, 40, level=95, replicates=1, seed=0)
    with pytest.raises(InputError, match="replicates is -1"):
        resample(mean, 40, level=0.9, replicates=-1, seed=0)
    with pytest.raises(InputError, match=r"cluster has shape \(3,\)"):
        resample(mean, 40, level=0.9, replicates=1, seed=0, cluster=[1, 2, 3])
