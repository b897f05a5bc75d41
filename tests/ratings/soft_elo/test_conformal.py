"""Conformal intervals hold as often as they say, are infinite where they must be, and say what they rest on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire.arena.errors import InputError
from venire.ratings.soft_elo.conformal import conformal_rank, leave_one_out_conformal, split_conformal


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
@settings(max_examples=100, deadline=None)
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
        ("residual: give one finite", {"residual": [1.0, np.nan, 1.0]}),
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
