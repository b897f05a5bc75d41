"""Intervals hold as often as they say when whole arenas are simulated, from battles to intervals.

People's strengths are normal with sd 0.6 logits; the judge sees each moved by a normal of 0.12 logits (21 Elo points),
and its scores are noisy. The target is people's rating of the model left out. Figures seen are in docs/ratings.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.soft_elo.conformal import (
    Scale,
    jackknife_plus,
    leave_one_out_conformal,
    leave_two_out,
    split_conformal,
)
from venire.ratings.soft_elo.cross_validation import leave_one_out


def arena(models: int, each: int, last: float, seed: int) -> tuple[Comparisons, Any, Any]:
    """About `each` battles a model, `last` times as many for the last one: comparisons, scores, labels of people."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, 0.6, models)
    seen = truth + rng.normal(0, 0.12, models)
    rows = models * each // 2
    a = rng.integers(0, models, rows)
    b = (a + rng.integers(1, models, rows)) % models
    more = int(each * (last - 1))
    a, b = np.r_[a, np.full(more, models - 1)], np.r_[b, rng.integers(0, models - 1, more)]
    human = (rng.random(len(a)) < expit(truth[a] - truth[b])).astype(float)
    score = np.round(2 * (seen[a] - seen[b] + rng.normal(0, 1.2, len(a))) * 6) / 6
    return comparisons(a, b, np.where(score > 0, 1.0, np.where(score < 0, 0.0, 0.5))), score, human


def held(models: int, each: int, last: float, scale: Scale, seed: int) -> tuple[bool, bool, bool]:
    """Whether the last model's interval holds: split, leave-one-out, jackknife+."""
    data, score, human = arena(models, each, last, seed)
    placed = leave_one_out(data, score, human, replicates=100, seed=seed)
    judge, people, residual = placed.judge["soft"], placed.human, placed.residual()
    half = np.random.default_rng(seed).permutation(models - 1)[: models // 2]
    split = split_conformal(
        residual[half],
        judge.se[half],
        judge.elo[-1:],
        judge.se[-1:],
        human_se=people.se[half],
        elo_human_se=people.se[-1:],
        scale=scale,
    )
    alone = leave_one_out_conformal(residual, judge.se, judge.elo, human_se=people.se, scale=scale)
    both = jackknife_plus(leave_two_out(data, score, human), judge.se, human_se=people.se, scale=scale)
    target = people.elo
    return bool(split.covers(target[-1:])[0]), bool(alone.covers(target)[-1]), bool(both.covers(target)[-1])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("last", [1.0, 8.0])
def test_intervals_of_simulated_arenas_hold_nine_times_in_ten(last: float) -> None:
    share = np.mean([held(20, 120, last, "total", seed) for seed in range(100)], axis=0)
    assert np.all(share > 0.82), share


@pytest.mark.slow
def test_the_paper_s_scale_covers_too_little_where_the_new_model_is_known_better() -> None:
    """In 10,000 draws: 0.91 at equal errors, 0.72 at half, 0.46 at a quarter; "total" stays at 0.91, 0.89 and 0.88."""

    def coverage(scale: Scale, factor: float) -> float:
        rng, covered = np.random.default_rng(0), []
        for _ in range(2000):
            se, human_se = rng.uniform(10, 30, 21), rng.uniform(8, 16, 21)
            se[20] *= factor
            residual = rng.normal(0, np.sqrt(se**2 + human_se**2 + 20.0**2))
            found = split_conformal(
                residual[:20],
                se[:20],
                [1000.0],
                se[20:],
                human_se=human_se[:20],
                elo_human_se=human_se[20:],
                scale=scale,
            )
            covered.append(found.covers(1000.0 + residual[20:])[0])
        return float(np.mean(covered))

    assert [coverage("se", factor) for factor in (1.0, 0.5, 0.25)] == pytest.approx([0.91, 0.72, 0.46], abs=0.03)
    assert [coverage("total", factor) for factor in (1.0, 0.5, 0.25)] == pytest.approx([0.91, 0.89, 0.88], abs=0.03)
