"""What a planner believes of models follows what is there: verdicts, a reference, or nothing."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.special import expit

from venire.arena.scale import to_logits
from venire.ratings.data.judgments import Judgments
from venire.ratings.design.priors import SLOPE, prior_ratings

NAMES = ("ash", "birch", "cedar", "dogwood")
ELO = {"ash": 900.0, "birch": 1000.0, "cedar": 1050.0, "dogwood": 1150.0}


def judged(number: int, slope: float, seed: int = 1) -> Judgments:
    """Coins with the odds of the reference times a slope, pair after pair."""
    rng = np.random.default_rng(seed)
    pairs = np.array(list(combinations(range(4), 2)))[np.arange(number) % 6]
    logits = slope * to_logits(np.array([ELO[name] for name in NAMES]))
    a, b = pairs.astype(np.int32).T
    zeros = np.zeros(number, dtype=np.int32)
    won = rng.random(number) < expit(logits[a] - logits[b])
    return Judgments(
        NAMES,
        ("j",),
        tuple(f"q{n:04}" for n in range(number)),
        a,
        b,
        zeros,
        np.arange(number, dtype=np.int32),
        zeros + 1,
        won.astype(np.float64),
        np.zeros(number, dtype=np.bool_),
        np.full(number, 2, dtype=np.int8),
        "mean",
        True,
        0,
    )


def test_without_anything_nothing_is_believed() -> None:
    found = prior_ratings(NAMES)
    assert found.source == "nothing"
    assert np.isnan(found.logits).all()


def test_a_reference_is_believed_as_steeply_as_usual_judges_see_it() -> None:
    found = prior_ratings(NAMES, None, ELO)
    assert (found.source, found.slope, found.judgments) == ("reference", SLOPE, 0)
    np.testing.assert_allclose(found.logits, SLOPE * to_logits(np.array(list(ELO.values()))))


def test_few_verdicts_say_how_steeply_and_many_are_believed() -> None:
    steep, flat = (prior_ratings(NAMES, judged(39, slope), ELO) for slope in (6.0, 0.0))
    assert steep.source == flat.source == "reference"
    assert steep.slope is not None
    assert flat.slope is not None
    assert steep.slope > 2.2 > SLOPE > 1.2 > flat.slope
    many = prior_ratings(NAMES, judged(4000, 3.0), ELO)
    assert (many.source, many.judgments, many.slope) == ("verdicts", 4000, None)
    np.testing.assert_allclose(many.logits, 3.0 * to_logits(np.array(list(ELO.values()))), atol=0.25)


def test_the_slope_is_the_likeliest_one() -> None:
    """The derivative of the log posterior is 0 there."""
    data = judged(30, 2.5)
    slope = prior_ratings(NAMES, data, ELO).slope
    assert slope is not None
    logits = to_logits(np.array(list(ELO.values())))
    gap = logits[data.model_a] - logits[data.model_b]
    assert gap @ (data.y - expit(slope * gap)) == pytest.approx((slope - SLOPE) / 0.49, abs=1e-9)


def test_verdicts_without_a_reference_are_believed_however_few() -> None:
    found = prior_ratings((*NAMES, "elm"), judged(6, 1.0), {"ash": 1000.0})
    assert found.source == "verdicts"
    assert np.isnan(found.logits[4])
    assert np.isfinite(found.logits[:4]).all()


def test_a_model_without_a_reference_stays_unknown_beside_those_that_have_one() -> None:
    found = prior_ratings((*NAMES, "elm"), None, ELO)
    assert np.isnan(found.logits[4])
    assert np.isfinite(found.logits[:4]).all()
