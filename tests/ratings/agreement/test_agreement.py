"""Agreement of two sets of ratings."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm, pearsonr
from scipy.stats import t as student

from venire.arena.errors import InputError
from venire.ratings.agreement.reference import agreement


def named(values: NDArray[np.float64]) -> dict[str, float]:
    return {f"m{place:02d}": float(value) for place, value in enumerate(values)}


def test_a_common_mean_is_taken_over_shared_models_alone() -> None:
    ours = {"a": 100.0, "b": 200.0, "c": 330.0, "d": 400.0, "x": 9000.0}
    found = agreement(ours, {"a": 1.0, "b": 101.0, "c": 201.0, "d": 301.0, "y": -5.0})
    assert found.models == 4
    assert found.mae == pytest.approx((7.5 + 7.5 + 22.5 + 7.5) / 4)
    assert found.spearman == pytest.approx(1.0)
    assert found.pearson == pytest.approx(0.99411, abs=1e-5)


def test_an_order_reversed_is_minus_one() -> None:
    turned = agreement({"a": 1.0, "b": 2.0, "c": 4.0, "d": 5.0}, {"a": 3.0, "b": 2.0, "c": 1.0, "d": 0.0})
    assert turned.spearman == pytest.approx(-1.0)


def test_three_models_are_too_few() -> None:
    found = agreement({"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}, {"a": 1.0, "b": 2.0, "c": 3.0})
    assert (found.pearson, found.spearman, found.mae, found.models) == (None, None, None, 3)
    assert found.reason is not None
    assert "at least 4" in found.reason


def test_equal_ratings_have_no_correlation_but_an_error() -> None:
    found = agreement(dict.fromkeys("abcd", 5.0), {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0})
    assert (found.pearson, found.spearman, found.spread) == (None, None, None)
    assert found.mae == pytest.approx(1.0)
    assert found.reason is not None


def test_kendall_counts_pairs_in_the_other_order() -> None:
    found = agreement({"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}, {"a": 1.0, "b": 3.0, "c": 2.0, "d": 4.0})
    assert found.kendall == pytest.approx(4 / 6)  # one pair of six is reversed
    assert found.distance == pytest.approx(1 / 6)


def test_tied_ratings_are_those_of_tau_b() -> None:
    found = agreement({"a": 1.0, "b": 1.0, "c": 3.0, "d": 4.0}, {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0})
    assert found.kendall == pytest.approx(5 / np.sqrt(5 * 6))


def test_the_error_after_the_best_line_knows_no_unit() -> None:
    rng = np.random.default_rng(5)
    ours = rng.normal(size=9)
    theirs = ours + 0.3 * rng.normal(size=9)
    found = agreement(named(1000.0 + 290.0 * ours), named(theirs))
    slope, intercept = np.polyfit(ours, theirs, 1)
    assert found.mae_line == pytest.approx(np.abs(theirs - intercept - slope * ours).mean())
    assert found.spread == pytest.approx(290.0 * ours.std() / theirs.std())


def test_pearsons_interval_is_fishers() -> None:
    rng = np.random.default_rng(3)
    ours = rng.normal(size=20)
    theirs = ours + rng.normal(size=20)
    found = agreement(named(ours), named(theirs))
    expected = pearsonr(ours, theirs).confidence_interval(0.95)
    assert found.intervals["pearson"] == pytest.approx((expected.low, expected.high))
    assert found.notes == ()
    low, high = found.intervals["kendall"]
    assert found.intervals["distance"] == pytest.approx(((1 - high) / 2, (1 - low) / 2))


def test_the_other_intervals_are_as_published() -> None:
    rng = np.random.default_rng(3)
    ours = rng.normal(size=20)
    theirs = ours + rng.normal(size=20)
    found = agreement(named(ours), named(theirs), level=0.9)
    assert found.spearman is not None
    assert found.kendall is not None
    for name, value, variance in (
        ("spearman", found.spearman, (1 + found.spearman**2 / 2) / 17),
        ("kendall", found.kendall, 0.437 / 16),
    ):
        half = norm.ppf(0.95) * np.sqrt(variance)
        bounds = np.tanh(np.arctanh(value) - half), np.tanh(np.arctanh(value) + half)
        assert found.intervals[name] == pytest.approx(bounds)
    apart = np.abs(ours - ours.mean() - theirs + theirs.mean())
    half = student.ppf(0.95, 19) * apart.std(ddof=1) / np.sqrt(20)
    centre = apart.mean() * np.sqrt(20 / 19)
    assert found.intervals["mae"] == pytest.approx((centre - half, centre + half))


def test_few_models_are_said_to_be_few() -> None:
    found = agreement({"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}, {"a": 1.0, "b": 2.0, "c": 4.0, "d": 3.5})
    assert found.notes[0].startswith("4 models are few: unrelated ratings reach a Pearson correlation of 0.95 in 5%")
    assert any(note == "no interval for kendall: 5 models are needed" for note in found.notes)
    assert "kendall" not in found.intervals


def test_a_perfect_order_has_no_interval_rather_than_one_of_no_width() -> None:
    rising = {name: float(place**2) for place, name in enumerate("abcdefghijkl")}
    found = agreement(rising, {name: float(place) for place, name in enumerate("abcdefghijkl")})
    assert found.spearman == pytest.approx(1.0)
    assert set(found.intervals) == {"mae", "pearson"}
    assert any("spearman" in note for note in found.notes)


def test_the_order_of_models_and_a_shift_change_nothing() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = named(rng.normal(size=12)), named(rng.normal(size=12))
    turned = agreement(dict(reversed(ours.items())), {name: value + 300.0 for name, value in theirs.items()})
    plain = agreement(ours, theirs)
    assert turned.mae == pytest.approx(plain.mae)
    assert turned.intervals.keys() == plain.intervals.keys()
    for name, interval in plain.intervals.items():
        assert turned.intervals[name] == pytest.approx(interval)


def test_a_rating_that_is_not_finite_is_named() -> None:
    with pytest.raises(InputError, match=r"reference: the rating of 'b' is nan"):
        agreement({"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}, {"a": 1.0, "b": float("nan"), "c": 2.0, "d": 3.0})
    with pytest.raises(InputError, match="level is 95"):
        agreement({}, {}, level=95)


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """2,000 normal samples of 15 models with correlation 0.9: Pearson 0.95, Spearman 0.94, Kendall 0.92, error 0.91."""
    rng = np.random.default_rng(0)
    rho, models, runs = 0.9, 15, 2000
    truth = {
        "pearson": rho,
        "spearman": 6 / np.pi * np.arcsin(rho / 2),
        "kendall": 2 / np.pi * np.arcsin(rho),
        "mae": np.sqrt(2 - 2 * rho) * np.sqrt(2 / np.pi),
    }
    held = dict.fromkeys(truth, 0)
    for _ in range(runs):
        ours = rng.normal(size=models)
        theirs = rho * ours + np.sqrt(1 - rho**2) * rng.normal(size=models)
        found = agreement(named(ours), named(theirs))
        for name, value in truth.items():
            low, high = found.intervals.get(name, (1.0, 1.0))
            held[name] += low <= value <= high
    shares = {name: count / runs for name, count in held.items()}
    least = {"pearson": 0.93, "spearman": 0.92, "kendall": 0.90, "mae": 0.89}
    assert all(least[name] <= shares[name] <= 0.98 for name in truth), shares


def test_ratings_that_differ_by_rounding_have_no_correlation() -> None:
    alike = {"a": 1000.0, "b": 1000.0 + 2e-13, "c": 1000.0, "d": 1000.0}
    found = agreement(alike, {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0})
    assert (found.pearson, found.kendall) == (None, None)
    assert found.reason == "all ratings of one side are equal: no correlation exists"
