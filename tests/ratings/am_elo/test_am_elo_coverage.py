"""Intervals of am-ELO hold the truth as often as they say, in simulated arenas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from venire.ratings.am_elo.am_elo import am_elo
from venire.ratings.data.comparisons import comparisons

TRUTH = np.linspace(1.0, -1.0, 5)
ABILITY = np.array([1.5, 1.0, 0.8, 0.6]) / 0.975


@pytest.mark.slow
@pytest.mark.parametrize("push", [0.0, 0.7])
def test_intervals_by_instruction_hold_what_they_say(push: float) -> None:
    """150 runs of 20 instructions: shares of 95 % intervals that hold the truth, or its mean where there is a push."""
    rng = np.random.default_rng(1)
    upper, lower = np.triu_indices(5, 1)
    a, b = (np.tile(np.repeat(side, 4), 20) for side in (upper, lower))
    judge, cluster = np.tile(np.arange(4), 200), np.repeat(np.arange(20), 40)
    logits, abilities, widths, ability_widths = [], [], [], []
    for _ in range(150):
        sway = rng.normal(0.0, push, (20, 5))
        odds = ABILITY[judge] * (TRUTH[a] - TRUTH[b] + sway[cluster, a] - sway[cluster, b])
        y = (rng.random(len(odds)) < expit(odds)).astype(float)
        found = am_elo(comparisons(a, b, y, judge=judge, cluster=cluster, models=list("abcde")))
        quantile = found.ratings.quantile(0.95)
        logits.append(found.ratings.logits)
        abilities.append(found.ability)
        widths.append(quantile * found.ratings.se)
        ability_widths.append(quantile * found.ability_se)
    centre = np.mean(logits, axis=0) if push else TRUTH
    ability_centre = np.mean(abilities, axis=0) if push else ABILITY
    assert 0.92 < np.mean(np.abs(np.array(logits) - centre) < widths) < 0.98
    assert 0.90 < np.mean(np.abs(np.array(abilities) - ability_centre) < ability_widths) < 0.98
