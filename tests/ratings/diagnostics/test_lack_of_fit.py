"""Lack of fit between pairs, and what it adds to errors, against matrices written out by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import expit

from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.diagnostics.lack_of_fit import lack_of_fit, with_lack_of_fit
from venire.ratings.inference.contrasts import difference
from venire.ratings.pairwise.bradley_terry import bradley_terry

STRENGTH = np.linspace(-1.0, 1.0, 7)


def asked(pairs: list[tuple[int, int]], instructions: int, spread: float, seed: int) -> Comparisons:
    """Battles of pairs whose log odds depart from the strengths by normal effects of this spread."""
    rng = np.random.default_rng(seed)
    a, b = np.repeat(np.array(pairs), instructions, axis=0).T
    effect = np.repeat(spread * rng.normal(size=len(pairs)), instructions)
    y = rng.random(len(a)) < expit(STRENGTH[a] - STRENGTH[b] + effect)
    instruction = np.tile(np.arange(instructions), len(pairs))
    return comparisons(a, b, y.astype(float), models=[f"m{code}" for code in range(7)], cluster=instruction)


EVERY = list(itertools.combinations(range(7), 2))
UNEVEN = [*EVERY[:12], (3, 6), (4, 5), (5, 6)]


def test_what_effects_add_is_the_difference_of_two_weighted_least_squares() -> None:
    data = asked(UNEVEN, 40, 0.6, 1)
    logits = bradley_terry(data).logits
    found = lack_of_fit(data, logits)
    design = np.zeros((len(EVERY), 7))
    design[np.arange(len(EVERY)), [a for a, _ in EVERY]] = 1.0
    design[np.arange(len(EVERY)), [b for _, b in EVERY]] = -1.0
    p = expit(design @ logits)
    information = p * (1.0 - p)
    number = np.array([40.0 if pair in UNEVEN else 0.0 for pair in EVERY])
    lean = [
        np.linalg.pinv(design.T @ np.diag(weight) @ design) @ design.T @ np.diag(weight)
        for weight in (number * information, information)
    ]
    error = lean[0] - lean[1]
    assert found.spread > 0.2
    np.testing.assert_allclose(found.covariance, found.spread**2 * error @ error.T, rtol=1e-6, atol=1e-12)
    assert (found.degrees, found.asked, found.possible) == (9, 15, 21)


def test_all_pairs_asked_equally_often_have_nothing_to_add() -> None:
    data = asked(EVERY, 40, 0.8, 2)
    found = lack_of_fit(data, bradley_terry(data).logits)
    assert found.spread > 0.4
    np.testing.assert_allclose(found.covariance, 0.0, atol=1e-9)
    ratings = bradley_terry(data)
    np.testing.assert_allclose(with_lack_of_fit(ratings, data).se, ratings.se, rtol=1e-6)


@pytest.mark.parametrize("spread", [0.0, 0.4, 0.8])
def test_the_spread_is_found(spread: float) -> None:
    found = []
    for seed in range(30):
        data = asked(UNEVEN, 150, spread, 100 + seed)
        found.append(lack_of_fit(data, bradley_terry(data).logits).spread ** 2)
    assert abs(np.mean(found) - spread**2) < 0.03 + 0.15 * spread**2


def test_a_chain_of_pairs_cannot_show_any_lack_of_fit() -> None:
    data = asked([(code, code + 1) for code in range(6)], 40, 0.8, 3)
    found = lack_of_fit(data, bradley_terry(data).logits)
    assert np.isnan(found.spread)
    assert found.degrees == 0
    ratings = bradley_terry(data)
    widened = with_lack_of_fit(ratings, data)
    np.testing.assert_array_equal(widened.se, ratings.se)
    assert widened.diagnostics["lack_of_fit"]["spread"] is None


def test_errors_of_an_uneven_design_grow_and_degrees_fall() -> None:
    data = asked(UNEVEN, 150, 0.8, 4)
    ratings = bradley_terry(data)
    widened = with_lack_of_fit(ratings, data)
    assert (widened.se > ratings.se).all()
    assert widened.degrees < ratings.degrees
    assert widened.diagnostics["lack_of_fit"]["widened"] > 1.2


def test_an_anchor_keeps_an_error_of_zero() -> None:
    data = asked(UNEVEN, 150, 0.8, 4)
    ratings = bradley_terry(data, anchors={"m2": 1000.0})
    widened = with_lack_of_fit(ratings, data, anchors=["m2"])
    assert widened.se[2] == pytest.approx(0.0, abs=1e-9)
    assert (np.delete(widened.se, 2) > np.delete(ratings.se, 2)).all()
    free = with_lack_of_fit(bradley_terry(data), data)
    one, other = difference(widened, "m0", "m5"), difference(free, "m0", "m5")
    assert (one.estimate, one.se) == pytest.approx((other.estimate, other.se), rel=1e-6)


def test_ratings_without_robust_errors_or_on_a_given_scale_stay_as_they_are() -> None:
    data = asked(UNEVEN, 40, 0.8, 5)
    for ratings, anchors in (
        (bradley_terry(data, errors="hessian"), ()),
        (bradley_terry(data, errors="none"), ()),
        (bradley_terry(data), ("m0", "m1")),
    ):
        assert with_lack_of_fit(ratings, data, anchors=anchors) is ratings
