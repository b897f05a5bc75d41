"""Soft-Elo of several judges: a beta for each, whatever scale its scores are on."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.soft_elo.cross_validation import baselines, leave_one_out
from venire.ratings.soft_elo.panel import soft_elo_panel
from venire.ratings.soft_elo.soft_elo import human_elo, soft_elo

Floats = NDArray[np.float64]


def scored(times: float = 1.0, seed: int = 1) -> tuple[Comparisons, Floats, Floats]:
    """Two judges of the same 600 battles, the second's scores stretched, and labels of people on a third of them."""
    rng = np.random.default_rng(seed)
    strength = np.linspace(-1.2, 1.2, 5)
    a = rng.integers(0, 5, 600)
    b = (a + rng.integers(1, 5, 600)) % 5
    gap = strength[a] - strength[b]
    score = np.concatenate([np.round(2.0 * (gap + rng.normal(size=600))) / 2.0 for _ in range(2)])
    score[600:] *= times
    human = np.where(rng.random(600) < 0.35, (rng.random(600) < 1.0 / (1.0 + np.exp(-gap))).astype(float), np.nan)
    item = np.tile(rng.integers(0, 60, 600), 2)
    data = comparisons(
        np.tile(a, 2), np.tile(b, 2), 0.5 + 0.5 * np.sign(score), judge=["x"] * 600 + ["y"] * 600, cluster=item
    )
    return data, score, np.tile(human, 2)


def test_each_judge_has_the_beta_of_its_own_rows() -> None:
    data, score, human = scored()
    found = soft_elo_panel(data, score, human)
    for code, judge in enumerate(found.judges):
        rows = np.flatnonzero(data.judge == code)
        alone = soft_elo(data.select(rows), score[rows], human[rows])
        assert judge.fit.beta == pytest.approx(alone.beta)
        assert judge.reliability.ece == pytest.approx(alone.ece)
        assert judge.rows == 600


def test_a_judge_whose_scores_are_four_times_as_large_changes_nothing() -> None:
    """One beta for both made 0.233 of 0.652."""
    plain, stretched = (soft_elo_panel(*scored(times)) for times in (1.0, 4.0))
    assert stretched.judges[0].fit.beta == pytest.approx(plain.judges[0].fit.beta)
    assert stretched.judges[1].fit.beta == pytest.approx(plain.judges[1].fit.beta / 4.0)
    np.testing.assert_allclose(stretched.ratings.elo, plain.ratings.elo, atol=1e-6)
    np.testing.assert_allclose(stretched.ratings.se, plain.ratings.se, rtol=1e-6)


def test_of_one_judge_it_is_soft_elo() -> None:
    data, score, human = scored()
    rows = np.flatnonzero(data.judge == 0)
    panel, alone = (fit(data.select(rows), score[rows], human[rows]).ratings for fit in (soft_elo_panel, soft_elo))
    np.testing.assert_allclose(panel.elo, alone.elo)
    np.testing.assert_allclose(panel.se, alone.se)


def test_a_judge_without_labels_is_left_out_with_a_warning() -> None:
    data, score, human = scored()
    human[600:] = np.nan
    found = soft_elo_panel(data, score, human)
    assert any(one.startswith("y: ") for one in found.warnings)
    assert np.isnan(found.targets[600:]).all()
    assert np.isfinite(found.targets[:600]).all()
    with pytest.raises(InputError, match="labels of people"):
        soft_elo_panel(data, score, np.full(1200, np.nan))


def test_leaving_models_out_fits_every_beta_anew_on_its_own_scale() -> None:
    plain, wide = scored(1.0), scored(4.0)
    held = [leave_one_out(*table, replicates=0, by_judge=True) for table in (plain, wide)]
    np.testing.assert_allclose(held[1].judge["soft"].elo, held[0].judge["soft"].elo, atol=1e-6)
    np.testing.assert_allclose(held[1].beta, held[0].beta / [1.0, 4.0], rtol=1e-9)
    soft = [baselines(*table, by_judge=True).accuracy["soft"].mae for table in (plain, wide)]
    assert soft[1] == pytest.approx(soft[0], abs=1e-6)
    assert abs(baselines(*wide).accuracy["soft"].mae - soft[0]) > 1.0, "one beta for both is another table"


def test_leaving_a_model_out_of_one_judge_is_as_before() -> None:
    data, score, human = scored()
    rows = np.flatnonzero(data.judge == 0)
    alone, panel = (
        leave_one_out(data.select(rows), score[rows], human[rows], replicates=20, by_judge=one) for one in (False, True)
    )
    np.testing.assert_allclose(panel.judge["soft"].elo, alone.judge["soft"].elo)
    np.testing.assert_allclose(panel.beta[:, 0], alone.beta)


def test_errors_hold_those_of_every_beta() -> None:
    """Fewer labels of one judge make its beta, and with it all ratings, less sure."""
    data, score, human = scored()
    human[700:] = np.nan
    found = soft_elo_panel(data, score, human)
    given = human_elo(data, found.targets)
    np.testing.assert_allclose(found.ratings.elo, given.elo, atol=1e-6)
    apart = np.abs(given.elo - 1000.0) > 50.0  # beta stretches ratings, and moves none in the middle
    assert apart.sum() == 4
    assert np.all(found.ratings.se[apart] > 2.0 * given.se[apart])


@pytest.mark.slow
def test_errors_know_the_betas_of_all_judges() -> None:
    """200 draws of two judges: 95 % intervals hold the ratings of ever more battles in 0.92 to 0.98."""
    held = []
    truth = np.mean([soft_elo_panel(*scored(seed=1000 + seed), errors="none").ratings.elo for seed in range(300)], 0)
    for seed in range(200):
        lo, hi = soft_elo_panel(*scored(seed=5000 + seed)).ratings.interval(0.95)
        held.append(np.mean((lo <= truth) & (truth <= hi)))
    assert 0.92 <= np.mean(held) <= 0.98, np.mean(held)
