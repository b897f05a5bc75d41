"""Alias tables hold the law of Poisson to the resolution of a random word."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import poisson

from venire.ratings.inference import bootstrap as module
from venire.ratings.inference.bootstrap import poisson_counts


@pytest.mark.parametrize("count", [1, 2, 3, 17, 67, 400, 5000])
def test_a_table_is_the_law(count: int) -> None:
    tables = poisson_counts(np.full(200, count))
    size = len(tables.threshold)
    assert size == 1 << int(tables.bits[0])
    keep = tables.threshold / (1 << (32 - int(tables.bits[0])))
    chance = np.bincount(tables.pick[0::2].astype(int), keep / size, 2 * count + 200)
    chance += np.bincount(tables.pick[1::2].astype(int), (1.0 - keep) / size, 2 * count + 200)
    assert chance == pytest.approx(poisson.pmf(np.arange(2 * count + 200), count), abs=1e-7)


@pytest.mark.parametrize("tables_pay", [100, 0])
def test_draws_have_the_mean_and_variance_of_each_count(monkeypatch: pytest.MonkeyPatch, tables_pay: int) -> None:
    monkeypatch.setattr(module, "_TABLES_PAY", tables_pay)
    counts = np.tile([1, 5, 67, 67, 300], 30)
    tables = poisson_counts(counts)
    assert bool(len(tables.pick)) == bool(tables_pay)
    drawn = tables.draw(np.random.default_rng(1), slice(0, 150), 2000)
    assert drawn.shape == (150, 2000)
    assert np.abs((drawn.mean(axis=1) - counts) / np.sqrt(counts / 2000)).max() < 4.5
    assert drawn.var(axis=1) / counts == pytest.approx(1.0, abs=0.16)
    assert np.abs(np.corrcoef(drawn[:20])[np.triu_indices(20, 1)]).max() < 0.1


def test_draws_do_not_depend_on_how_they_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = poisson_counts(np.tile([1, 5, 67], 50))
    whole = tables.draw(np.random.default_rng(1), slice(0, 150), 64)
    monkeypatch.setattr(module, "_CHUNK", 7 * 64)
    rng = np.random.default_rng(1)
    parts = [tables.draw(rng, slice(start, start + 30), 64) for start in range(0, 150, 30)]
    assert np.array_equal(np.concatenate(parts), whole)
