"""Conformal intervals hold as often as they say, are infinite where they must be, and say what they rest on."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.soft_elo.conformal import (
    LeaveTwoOut,
    conformal_rank,
    jackknife_plus,
    leave_one_out_conformal,
    leave_two_out,
    split_conformal,
    split_coverage,
)
from venire.ratings.soft_elo.cross_validation import leave_one_out


def field(models: int, seed: int, tau: float = 20.0) -> tuple[Any, Any, Any, Any]:
    """Human less judge, the errors of both, and the judge's Elo: errors of measurement upon a spread of tau."""
    rng = np.random.default_rng(seed)
    se, human_se = rng.uniform(5, 30, models), rng.uniform(5, 20, models)
    residual = rng.normal(0, np.sqrt(se**2 + human_se**2 + tau**2))
    return residual, se, human_se, rng.normal(1000, 100, models)


@pytest.mark.parametrize(
    ("n", "alpha", "rank"), [(9, 0.1, 9), (19, 0.1, 18), (8, 0.1, 9), (7, 0.1, 8), (4, 0.2, 4), (99, 0.45, 55)]
)
def test_the_rank_is_exact_where_floating_point_is_not(n: int, alpha: float, rank: int) -> None:
    assert conformal_rank(n, alpha) == rank


def test_the_interval_is_the_score_of_its_rank_times_the_new_model_s_scale() -> None:
    residual, se, human_se, _ = field(19, 0)
    found = split_conformal(residual, se, [1100.0], [12.0], human_se=human_se, elo_human_se=9.0)
    tau = math.sqrt(max(0.0, np.mean(residual**2 - se**2 - human_se**2)))
    scores = np.sort(np.abs(residual) / np.sqrt(se**2 + human_se**2 + tau**2))
    half = scores[17] * math.sqrt(12.0**2 + 9.0**2 + tau**2)
    assert (found.low[0], found.high[0]) == pytest.approx((1100 - half, 1100 + half))
    assert (found.tau[0], found.n, found.rank, found.expected) == (pytest.approx(tau), 19, 18, 0.9)


def test_a_calibration_model_without_a_rating_counts_as_farther_off_than_any() -> None:
    """The danger: folds that fail are left out, and the interval is as narrow as if they had gone well."""
    residual, se, human_se, elo = field(19, 0)
    residual[3] = np.nan
    found = split_conformal(residual, se, [1100.0], [12.0], human_se=human_se, calibration_elo=elo)
    others = np.arange(19) != 3
    tau = math.sqrt(max(0.0, np.mean((residual**2 - se**2 - human_se**2)[others])))
    scores = np.sort((np.abs(residual) / np.sqrt(se**2 + human_se**2 + tau**2))[others])
    assert found.quantile[0] == pytest.approx(scores[17])
    residual[:2] = np.nan
    assert np.isinf(split_conformal(residual, se, [1100.0], [12.0], human_se=human_se).high).all()


def test_the_paper_s_scale_divides_by_the_judge_s_error_alone() -> None:
    residual, se, human_se, _ = field(19, 1)
    found = split_conformal(residual, se, [1000.0, 1100.0], [10.0, 20.0], human_se=human_se, scale="se")
    q = np.sort(np.abs(residual) / se)[17]
    assert found.high - found.elo == pytest.approx([10 * q, 20 * q])


@pytest.mark.parametrize("n", [0, 1, 8])
def test_too_few_calibration_models_give_infinite_intervals_and_say_so(n: int) -> None:
    residual, se, _, _ = field(n, 2)
    found = split_conformal(residual, se, [1000.0], [10.0])
    assert (found.low[0], found.high[0], found.expected) == (-math.inf, math.inf, None)
    assert "infinite; 9 would do" in found.warnings[0]


def test_no_calibration_model_has_no_range_to_be_outside_of() -> None:
    found = split_conformal([], [], [1000.0], [1.0], calibration_elo=[])
    assert np.isinf(found.high).all()
    assert [sentence for sentence in found.warnings if "outside" in sentence] == []


def test_few_calibration_models_are_warned_of_where_the_interval_is_finite() -> None:
    residual, se, _, _ = field(5, 2)
    found = split_conformal(residual, se, [1000.0], [10.0], alpha=0.2)
    assert np.isfinite(found.high[0])
    assert "only 5 calibration models" in found.warnings[0]


def test_a_stranger_is_warned_of() -> None:
    residual, se, _, elo = field(30, 3)
    found = split_conformal(
        residual,
        se,
        [elo.max() + 1, 1000.0],
        10.0,
        calibration_elo=elo,
        family=["x", "y"],
        calibration_family=["y"] * 30,
    )
    assert len(found.warnings) == 2
    assert "outside the" in found.warnings[0]
    assert "family x" in found.warnings[1]


def test_residuals_that_hang_on_the_rating_are_warned_of() -> None:
    _, se, _, elo = field(30, 4)
    found = split_conformal((elo - 1000) * 0.5, se, [1000.0], [10.0], calibration_elo=elo)
    assert any("correlation +1.00" in said for said in found.warnings)
    assert leave_one_out_conformal((elo - 1000) * 0.5, se, elo).warnings == found.warnings


@pytest.mark.parametrize(("correlation", "warned"), [(0.49, False), (0.51, True)])
def test_the_limit_of_that_correlation_is_two_over_the_root_of_the_models(correlation: float, warned: bool) -> None:
    rng = np.random.default_rng(0)
    rating = rng.normal(0, 1, 16)
    rating -= rating.mean()
    other = rng.normal(0, 1, 16)
    other -= other.mean() + rating * (other @ rating) / (rating @ rating)
    unit = [column / np.sqrt(column @ column) for column in (rating, other)]
    residual = correlation * unit[0] + np.sqrt(1 - correlation**2) * unit[1]
    found = split_conformal(residual, 1.0, [0.0], 1.0, calibration_elo=rating)
    assert any("hang on the rating" in said for said in found.warnings) is warned


def test_leaving_one_out_is_a_split_with_one_new_model() -> None:
    residual, se, human_se, elo = field(25, 5)
    found = leave_one_out_conformal(residual, se, elo, human_se=human_se)
    for code in (0, 24):
        rest = np.arange(25) != code
        split = split_conformal(
            residual[rest], se[rest], elo[code], se[code], human_se=human_se[rest], elo_human_se=human_se[code]
        )
        assert (found.low[code], found.high[code]) == pytest.approx((split.low[0], split.high[0]))
    assert (found.n, found.rank, found.expected) == (24, 23, 0.92)


@given(
    residual=st.lists(st.floats(-200, 200), min_size=9, max_size=40),
    alpha=st.floats(0.1, 0.5),
    shift=st.floats(-500, 500),
    seed=st.integers(0, 2**32 - 1),
)
def test_order_sign_and_gauge_change_nothing_and_less_alpha_is_never_narrower(
    residual: list[float], alpha: float, shift: float, seed: int
) -> None:
    errors = np.linspace(5, 20, len(residual))
    expected = split_conformal(residual, errors, [1000.0], [10.0], alpha=alpha)
    order = np.random.default_rng(seed).permutation(len(residual))
    for found in (
        split_conformal(np.array(residual)[order], errors[order], [1000.0 + shift], [10.0], alpha=alpha),
        split_conformal(-np.array(residual), errors, [1000.0 + shift], [10.0], alpha=alpha),
    ):
        assert found.high - found.elo == pytest.approx(expected.high - expected.elo, rel=1e-9, abs=1e-9)
    wider = split_conformal(residual, errors, [1000.0], [10.0], alpha=alpha / 2)
    assert wider.high[0] >= expected.high[0]


def test_no_error_and_no_residual_is_no_trouble() -> None:
    still = split_conformal(np.zeros(9), 0.0, [1000.0], 0.0)
    assert (still.low[0], still.high[0]) == (1000.0, 1000.0)
    residual, se = np.r_[np.full(9, 1.0), 5.0], np.r_[np.full(9, 50.0), 0.0]
    odd = split_conformal(residual, se, [1000.0], [1.0])
    assert odd.quantile[0] == np.inf


@pytest.mark.parametrize("scale", ["total", "none"])
def test_nine_in_ten_new_models_are_covered(scale: Any) -> None:
    held = []
    for seed in range(300):
        residual, se, human_se, elo = field(39, seed)
        found = split_conformal(
            residual[:19], se[:19], elo[19:], se[19:], human_se=human_se[:19], elo_human_se=human_se[19:], scale=scale
        )
        held.append(found.covers(elo[19:] + residual[19:]).mean())
    assert np.mean(held) == pytest.approx(0.9, abs=0.02)


@pytest.mark.parametrize(
    ("said", "arguments"),
    [
        ("alpha is 0", {"alpha": 0.0}),
        ("scale is 'sd'", {"scale": "sd"}),
        ("se: give one number a model", {"se": [1.0, np.nan, 1.0]}),
        ("se: give one number a model", {"se": [1.0, -1.0, 1.0]}),
        ("residual: give one finite", {"residual": [1.0, np.inf, 1.0]}),
        ("divides by the error", {"se": [1.0, 0.0, 1.0], "scale": "se"}),
        ("family has 2 names", {"family": ["x", "y"], "calibration_family": ["x"] * 3}),
        ("calibration_elo: give one number a model", {"calibration_elo": [1.0, 2.0]}),
        ("calibration_elo: give one number a model", {"calibration_elo": [1.0, np.nan, 2.0]}),
    ],
)
def test_bad_input_is_named(said: str, arguments: dict[str, Any]) -> None:
    good: dict[str, Any] = {"residual": [1.0, 2.0, 3.0], "se": [1.0, 1.0, 1.0], "elo": [1000.0], "elo_se": [1.0]}
    with pytest.raises(InputError, match=said):
        split_conformal(**{**good, **arguments})


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


def test_bad_input_of_the_jackknife_is_named() -> None:
    data, score, human = simulated(60, 3)
    with pytest.raises(InputError, match="at least 4"):
        leave_two_out(data, score, human)
    with pytest.raises(InputError, match="signal is 'other'"):
        leave_two_out(data, score, human, signal="other")  # type: ignore[arg-type]
    ratings = LeaveTwoOut(tuple("abcd"), np.zeros((4, 4)), np.zeros((4, 4)), np.ones(4, dtype=bool))
    with pytest.raises(InputError, match=r"human_se has shape \(3,\)"):
        jackknife_plus(ratings, 1.0, human_se=[1.0, 2.0, 3.0])


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
