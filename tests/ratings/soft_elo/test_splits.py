"""Coverage over random splits is what intervals on the held-out half show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from venire.arena.errors import InputError
from venire.ratings.soft_elo.conformal import split_coverage
from venire.ratings.soft_elo.cross_validation import leave_one_out


def test_exchangeable_models_are_covered_as_expected() -> None:
    rng = np.random.default_rng(0)
    found = [split_coverage(rng.normal(0, 20, 60), 5.0, np.full(60, 1000.0), seed=seed) for seed in range(60)]
    assert found[0].expected == pytest.approx(28 / 31)
    assert np.mean([each.observed for each in found]) == pytest.approx(28 / 31, abs=0.02)
    assert found[0].width == pytest.approx(2 * 1.645 * 20, rel=0.4)
    assert (found[0].n, found[0].splits) == (30, 20)


def test_the_same_seed_splits_alike() -> None:
    residual = np.random.default_rng(1).normal(0, 20, 41)
    first, second, other = (split_coverage(residual, 5.0, residual, seed=seed) for seed in (1, 1, 2))
    assert first == second != other
    assert (first.n, first.expected) == (20, pytest.approx(19 / 21))


def test_recorded_battles_are_too_few_for_a_split_at_nine_in_ten(arena_sample: dict[str, Any]) -> None:
    placed = leave_one_out(arena_sample["data"], arena_sample["score"], arena_sample["human"])
    narrow, wide = placed.judge["soft"], placed.judge["hard"]
    at_90 = split_coverage(placed.residual(), narrow.se, narrow.elo, human_se=placed.human.se)
    assert (at_90.expected, at_90.width, at_90.observed, at_90.n) == (None, np.inf, 1.0, 7)
    at_80, hard = (
        split_coverage(placed.residual(signal), by.se, by.elo, human_se=placed.human.se, alpha=0.2)
        for signal, by in (("soft", narrow), ("hard", wide))
    )
    assert at_80.expected == 0.875
    assert at_80.observed == pytest.approx(0.875, abs=0.08)
    assert at_80.width < 0.5 * hard.width


def test_too_few_models_are_refused() -> None:
    with pytest.raises(InputError, match="2 models or more"):
        split_coverage([1.0], 1.0, [1000.0])
