"""The reliability of a judge's probability is that of the battles which people and judge decided."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from venire.arena.errors import InputError
from venire.ratings.soft_elo.reliability import reliability


def by_hand(score: Any, human: Any, beta: float) -> float:
    used = (score != 0) & (human != 0.5)
    share, sided = expit(beta * np.abs(score[used])), np.where(score[used] > 0, human[used], 1 - human[used])
    order = np.argsort(share, kind="stable")
    parts = np.array_split(order, 10)
    return sum(len(part) * abs(share[part].mean() - sided[part].mean()) for part in parts) / len(order)


def simulated(rows: int, slope: float, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    score = np.round(rng.normal(0, 2, rows) * 6) / 6
    human = (rng.random(rows) < expit(slope * score)).astype(float)
    return score, np.where(rng.random(rows) < 0.2, 0.5, human)


@pytest.mark.parametrize("beta", [0.3, 0.7, 2.0])
def test_ten_bins_of_a_stable_sort_give_the_error_that_a_loop_gives(beta: float) -> None:
    score, human = simulated(1234, 0.7)
    assert reliability(score, human, beta).ece == pytest.approx(by_hand(score, human, beta), abs=1e-12)


def test_a_true_probability_is_calibrated_and_a_stretched_one_is_not() -> None:
    score, human = simulated(50_000, 0.7)
    assert reliability(score, human, 0.7).ece < 0.01
    assert reliability(score, human, 2.0).ece > 0.08


def test_agreement_grows_with_the_score_of_a_good_judge() -> None:
    score, human = simulated(20_000, 0.7)
    found = reliability(score, human, 0.7)
    assert np.all(np.diff(found.size) > 0)
    assert found.observed[-1] > 0.9 > 0.6 > found.observed[0]
    assert (found.count.sum(), found.warnings) == (found.battles, ())
    assert found.trend > 20


def test_a_flat_curve_and_a_small_beta_are_warned_of() -> None:
    rng = np.random.default_rng(0)
    score = np.round(rng.normal(0, 2, 3000) * 6) / 6
    human = (rng.random(3000) < np.where(score > 0, 0.6, 0.4)).astype(float)
    assert any("flat" in said for said in reliability(score, human, 0.2).warnings)
    assert any("beta is small" in said for said in reliability(score, human, 0.05).warnings)


def test_verdicts_that_tie_are_left_out_and_weights_count() -> None:
    score, human = simulated(500, 0.7)
    y = np.where(np.abs(score) < 1, 0.5, np.where(score > 0, 1.0, 0.0))
    kept = np.abs(score) >= 1
    assert reliability(score, human, 0.7, y=y).ece == pytest.approx(reliability(score[kept], human[kept], 0.7).ece)
    doubled = reliability(score, human, 0.7, weight=np.full(500, 2.0))
    assert doubled.ece == pytest.approx(reliability(score, human, 0.7).ece)


def test_nothing_decided_is_said() -> None:
    found = reliability([0.0, 1.0], [1.0, 0.5], 0.7)
    assert np.isnan(found.ece)
    assert "no battle was decided" in found.warnings[0]


def test_a_negative_beta_is_sorted_by_its_probability() -> None:
    score, human = simulated(1000, -0.5)
    found = reliability(score, human, -0.5)
    assert np.all(np.diff(found.predicted) >= 0)
    assert found.ece == pytest.approx(by_hand(score, human, -0.5), abs=0.02)


def test_no_bins_are_refused() -> None:
    with pytest.raises(InputError, match="bins is 0"):
        reliability([1.0], [1.0], 0.5, bins=0)
