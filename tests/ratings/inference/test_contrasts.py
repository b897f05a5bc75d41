"""Differences and weighted sums of ratings, with intervals that hold one by one or all together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from venire.arena.errors import InputError
from venire.arena.scale import POINTS_PER_LOGIT
from venire.ratings.data.comparisons import comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.inference.contrasts import (
    battles_needed,
    contrast,
    difference,
    simultaneous,
    simultaneous_differences,
)
from venire.ratings.pairwise.bradley_terry import bradley_terry


def rated(logits: Any, covariance: Any, degrees: float = math.inf, battles: float = 100.0) -> Ratings:
    at, spread = np.asarray(logits, dtype=float), np.asarray(covariance, dtype=float)
    spread = np.diag(spread) if spread.ndim == 1 else spread
    names = tuple("abcdefgh"[: len(at)])
    return Ratings("test", names, at, np.full(len(at), battles), covariance=spread, degrees=degrees)


def test_a_difference_has_the_error_of_both_less_what_they_share() -> None:
    covariance = [[0.04, 0.01, 0.0], [0.01, 0.09, 0.0], [0.0, 0.0, 0.01]]
    found = difference(rated([0.5, 0.1, 0.0], covariance, degrees=9.0), "a", "b")
    se = math.sqrt(0.11)
    reach = student.ppf(0.975, 9.0)
    assert found.estimate == pytest.approx(0.4 * POINTS_PER_LOGIT)
    assert found.se == pytest.approx(se * POINTS_PER_LOGIT)
    assert found.lo == pytest.approx((0.4 - reach * se) * POINTS_PER_LOGIT)
    assert found.hi == pytest.approx((0.4 + reach * se) * POINTS_PER_LOGIT)
    assert found.above == pytest.approx(student.cdf(0.4 / se, 9.0))


def test_any_weighted_sum_has_an_interval() -> None:
    ratings = rated([0.6, 0.2, -0.1, 0.0], [0.01, 0.02, 0.03, 0.04])
    found = contrast(ratings, {"a": 0.5, "b": 0.5, "d": -1.0}, 0.9)
    assert found.estimate == pytest.approx(0.4 * POINTS_PER_LOGIT)
    assert found.se == pytest.approx(math.sqrt(0.0025 + 0.005 + 0.04) * POINTS_PER_LOGIT)
    assert found.hi - found.estimate == pytest.approx(norm.ppf(0.95) * found.se)
    assert contrast(ratings, {"a": 1.0}).estimate == pytest.approx(ratings.elo[0] - 1000.0)


def test_held_models_have_an_exact_difference_and_an_error_that_cannot_be_told_is_none() -> None:
    found = difference(rated([1.0, 0.5, 0.0], [0.0, 0.0, 0.1]), "a", "b")
    assert (found.se, found.lo, found.above) == (0.0, found.estimate, 1.0)
    blank = difference(rated([1.0, 0.5], [[0.1, 0.1], [0.1, 0.1]]), "a", "b")
    assert math.isnan(blank.se)
    assert math.isnan(blank.lo)
    assert math.isnan(blank.above)
    assert blank.estimate == pytest.approx(0.5 * POINTS_PER_LOGIT)


def test_intervals_of_many_are_wider_than_of_one_and_narrower_than_by_bonferroni() -> None:
    size = 6
    ratings = rated(np.linspace(1, -1, size), 0.05 * (np.eye(size) - 1 / size))
    pairs = [{ratings.models[i]: 1.0, ratings.models[j]: -1.0} for i in range(size) for j in range(i + 1, size)]
    found = simultaneous(ratings, pairs)
    assert norm.ppf(0.975) < found.critical < norm.ppf(1 - 0.025 / len(pairs))
    critical, lo, hi = simultaneous_differences(ratings)
    assert found.critical == pytest.approx(critical)
    assert (found.contrasts[0].lo, found.contrasts[0].hi) == pytest.approx((lo[0, 1], hi[0, 1]))
    assert lo == pytest.approx(-hi.T)
    alone = simultaneous(ratings, pairs[:1])
    assert alone.critical == pytest.approx(norm.ppf(0.975), rel=0.03)
    assert simultaneous(ratings, pairs, seed=1).critical != found.critical


def test_battles_needed_between_two_models_bring_their_error_down_to_what_separates_them() -> None:
    """Adding m battles of information p(1 - p) to 1 / se^2 leaves the difference just 1.96 errors from 0."""
    ratings = rated([0.1, -0.1], [0.05, 0.05], battles=80.0)
    found = battles_needed(ratings, "a", "b")
    share = 1.0 / (1.0 + math.exp(-0.2))
    left = 1.0 / math.sqrt(1.0 / 0.1 + found.between * share * (1.0 - share))
    assert 0.2 / left == pytest.approx(1.96, rel=1e-3)
    assert found.everywhere == math.ceil(80 * (0.1 * 1.959964**2 / 0.04 - 1))
    assert battles_needed(ratings, "b", "a") == found
    assert battles_needed(ratings, "a", "b", power=0.8).between > 1.8 * found.between
    assert battles_needed(ratings, "a", "b", inflation=3.0).between == pytest.approx(3 * found.between, abs=3)


def test_battles_needed_for_a_width() -> None:
    ratings = rated([0.1, -0.1], [0.05, 0.05])
    found = battles_needed(ratings, "a", "b", half_width=20.0)
    share = 1.0 / (1.0 + math.exp(-0.2))
    left = 1.0 / math.sqrt(1.0 / 0.1 + found.between * share * (1.0 - share))
    assert 1.959964 * left * POINTS_PER_LOGIT == pytest.approx(20.0, rel=1e-3)


def test_battles_needed_may_be_none_or_never_enough_or_unknown() -> None:
    assert battles_needed(rated([1.0, -1.0], [0.01, 0.01]), "a", "b").between == 0.0
    assert battles_needed(rated([0.0, 0.0], [0.01, 0.01]), "a", "b").everywhere == math.inf
    assert math.isnan(battles_needed(rated([1.0, 0.5], [[0.1, 0.1], [0.1, 0.1]]), "a", "b").between)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda r: difference(r, "a", "a"), "cannot be compared with itself"),
        (lambda r: difference(r, "a", "z"), "z is none of the models rated; there are: a, b, c"),
        (lambda r: difference(r, "a", "c"), "c has no estimate"),
        (lambda r: contrast(r, {"a": math.nan}), "the coefficient of a is nan"),
        (lambda r: contrast(r, {"a": 1.0}, 2.0), "level is 2.0"),
        (lambda r: battles_needed(r, "a", "b", power=1.0), "give a power between 0 and 1"),
        (lambda r: battles_needed(r, "a", "b", half_width=0.0), "positive inflation and half_width"),
    ],
)
def test_what_is_not_possible_is_refused_by_name(call: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call(rated([1.0, 0.0, math.nan], [0.1, 0.1, math.nan]))


def test_intervals_that_hold_together_are_never_narrower_than_one_alone() -> None:
    ratings = bradley_terry(comparisons(list("abcabc"), list("bcabca"), [1.0, 1.0, 1.0, 0.0, 1.0, 0.0]))
    for seed in range(20):  # one draw is a poor quantile, and often far too low
        found = simultaneous(ratings, [{"a": 1.0, "b": -1.0}], draws=1, seed=seed)
        assert found.critical >= ratings.quantile(0.95)
