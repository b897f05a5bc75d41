"""Jackknife+ places every model by anchors that a second model had no part in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from scipy.special import expit

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.soft_elo.conformal import LeaveTwoOut, jackknife_plus, leave_two_out
from venire.ratings.soft_elo.cross_validation import leave_one_out


def simulated(rows: int, models: int, seed: int = 0) -> tuple[Comparisons, Any, Any]:
    rng = np.random.default_rng(seed)
    truth = np.linspace(-1.0, 1.0, models)
    a = rng.integers(0, models, rows)
    b = (a + rng.integers(1, models, rows)) % models
    gap = truth[a] - truth[b]
    score = np.round((gap + rng.normal(0, 1, rows)) * 12) / 12
    human = (rng.random(rows) < expit(gap)).astype(float)
    return comparisons(a, b, np.where(score > 0, 1.0, np.where(score < 0, 0.0, 0.5))), score, human


@pytest.mark.parametrize("signal", ["hard", "soft"])
def test_two_left_out_is_one_left_out_of_the_battles_without_the_other(signal: Literal["hard", "soft"]) -> None:
    data, score, human = simulated(400, 5)
    found = leave_two_out(data, score, human, signal=signal)
    single = leave_one_out(data, score, human, replicates=0)
    assert np.diagonal(found.judge) == pytest.approx(single.judge[signal].elo, abs=1e-7)
    for out in range(5):
        rows = (data.a != out) & (data.b != out)
        rest = replace(data, a=data.a[rows], b=data.b[rows], y=data.y[rows])
        alone = leave_one_out(rest, score[rows], human[rows], replicates=0)
        kept = np.arange(5) != out
        assert found.judge[kept, out] == pytest.approx(alone.judge[signal].elo[kept], abs=1e-7)
        assert found.human[kept, out] == pytest.approx(alone.human.elo[kept], abs=1e-7)


def test_the_two_ends_are_order_statistics_of_what_each_anchor_says() -> None:
    rng = np.random.default_rng(0)
    human, judge = rng.normal(1000, 50, (12, 12)), rng.normal(1000, 50, (12, 12))
    models = tuple("abcdefghijkl")
    found = jackknife_plus(LeaveTwoOut(models, human, judge, np.ones(12, dtype=bool)), 1.0, scale="none")
    others = np.arange(1, 12)
    reach = np.abs(human[others, 0] - judge[others, 0])
    assert found.low[0] == np.sort(judge[0, others] - reach)[1 - 1]
    assert found.high[0] == np.sort(judge[0, others] + reach)[11 - 1]
    assert (found.n, found.rank, found.method) == (11, 11, "jackknife+")


def test_a_model_that_nobody_rated_is_calibrated_on_all_others() -> None:
    data, score, human = simulated(3000, 11)
    human = np.where((data.a == 10) | (data.b == 10), np.nan, human)
    ratings = leave_two_out(data, score, human)
    found = jackknife_plus(ratings, 10.0)
    assert np.isnan(ratings.human[10]).all()
    assert np.isfinite(found.high[10])
    assert found.low[10] < found.elo[10] < found.high[10]
    assert found.n == 9
    # What leave_one_out says of its error by people is NaN; unknown is 0, not an interval of NaN.
    unknown = jackknife_plus(ratings, 10.0, human_se=np.where(np.arange(11) == 10, np.nan, 0.0))
    assert unknown.high.tolist() == found.high.tolist()


def test_too_few_anchors_are_infinite_and_said() -> None:
    data, score, human = simulated(400, 5)
    found = jackknife_plus(leave_two_out(data, score, human), 10.0)
    assert np.isinf(found.high).all()
    assert found.expected is None
    assert "infinite" in found.warnings[0]


def test_recorded_battles_are_covered_by_intervals_half_as_wide_as_those_of_hard_ratings(
    arena_sample: dict[str, Any],
) -> None:
    data, score, human = arena_sample["data"], arena_sample["score"], arena_sample["human"]
    placed = leave_one_out(data, score, human)
    width = {}
    for signal in ("hard", "soft"):
        ratings = leave_two_out(data, score, human, signal=signal)  # type: ignore[arg-type]
        found = jackknife_plus(ratings, placed.judge[signal].se, human_se=placed.human.se)
        assert found.covers(placed.human.elo).sum() >= 12
        width[signal] = float(np.median(found.high - found.low))
    assert width["soft"] < 0.5 * width["hard"]


def test_bad_input_is_named() -> None:
    data, score, human = simulated(60, 3)
    with pytest.raises(InputError, match="at least 4"):
        leave_two_out(data, score, human)
    with pytest.raises(InputError, match="signal is 'other'"):
        leave_two_out(data, score, human, signal="other")  # type: ignore[arg-type]
    ratings = LeaveTwoOut(tuple("abcd"), np.zeros((4, 4)), np.zeros((4, 4)), np.ones(4, dtype=bool))
    with pytest.raises(InputError, match=r"human_se has shape \(3,\)"):
        jackknife_plus(ratings, 1.0, human_se=[1.0, 2.0, 3.0])
