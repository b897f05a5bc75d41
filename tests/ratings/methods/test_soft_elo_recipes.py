"""Verdicts shrunk by one number that people's labels teach: the rivals of `soft-elo` as methods of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from tests.ratings.conftest import make_table
from venire.arena.battles import Battles
from venire.ratings.data.judgments import merge_orders
from venire.ratings.inference.options import Options
from venire.ratings.methods.findings import MethodNotes, SoftEloByPeople, SoftEloFit, VerdictConstant
from venire.ratings.methods.methods import rate
from venire.ratings.soft_elo.cross_validation import CONFIDENCES, smooth_labels
from venire.ratings.soft_elo.soft_elo import human_elo

Table = Callable[..., Battles]


@pytest.fixture
def sharp(table: Table) -> Battles:
    """A judge who is much more decided than people are, without scores, on 240 battles of six models."""
    rng = np.random.default_rng(5)
    strength = np.linspace(-1.0, 1.0, 6)
    rows: list[tuple[Any, ...]] = []
    human = []
    for item in range(240):
        a, b = rng.choice(6, 2, replace=False)
        gap = strength[a] - strength[b]
        rows.append((f"m{a}", f"m{b}", "first" if gap * 3 + rng.logistic() > 0 else "second", "j", f"i{item}"))
        human.append(float(gap + rng.logistic() > 0))
    return replace(table(rows, ordered=False), human=np.array(human))


@pytest.fixture(scope="module")
def scored() -> Battles:
    """A judge whose scores are four times people's log odds, on 1,400 battles of fourteen models; people also tie."""
    rng = np.random.default_rng(8)
    strength = np.linspace(-1.0, 1.0, 14)
    a = rng.integers(0, 14, 1400)
    b = (a + rng.integers(1, 14, 1400)) % 14
    logit = strength[a] - strength[b] + rng.normal(0, 0.5, 1400)
    score = 4.0 * (logit + rng.normal(0, 0.3, 1400))
    said = (rng.random(1400) < expit(logit)).astype(float)
    rows = [
        (f"m{one:02}", f"m{two:02}", "first" if value > 0 else "second", "j", f"i{item}")
        for item, (one, two, value) in enumerate(zip(a, b, score, strict=True))
    ]
    found = make_table(rows, ordered=False)
    return replace(found, score=score, human=np.where(rng.random(1400) < 0.2, 0.5, said))


def test_every_verdict_counts_as_the_share_that_is_nearest_to_people(sharp: Battles) -> None:
    found = rate(sharp, "smoothed-elo", Options())
    share = found.finding(VerdictConstant).share
    assert share in CONFIDENCES
    assert share < 0.95, "people side with this judge far less often than it decides"
    data = merge_orders(sharp).comparisons()
    targets = smooth_labels(data.y, share)
    assert found.ratings.elo == pytest.approx(human_elo(data, targets, errors="none").elo)
    assert f"{share:.2f}" in found.finding(MethodNotes).notes[0]


def test_ties_of_people_and_a_second_model_left_out_are_options(scored: Battles) -> None:
    plain, half, jackknife = (
        rate(scored, "soft-elo", Options(**{name: value}))
        for name, value in (("human_ties", "drop"), ("human_ties", "half"), ("conformal", "jackknife+"))
    )
    beta = [found.finding(SoftEloFit).beta for found in (plain, half)]
    assert None not in beta
    assert beta[1] < beta[0], "a tie pulls the slope down"
    facts = [found.finding(SoftEloByPeople).conformal for found in (plain, jackknife)]
    assert [one.method for one in facts] == ["leave-one-out", "jackknife+"]
    assert facts[0].splits.keys() == {"hard", "soft"}
    assert (facts[0].splits["soft"].n, facts[0].splits["soft"].splits) == (9, 5), "70 % of 14 models, rounded down"
    assert not np.array_equal(plain.figures["conformal_lo"], jackknife.figures["conformal_lo"])


def test_a_judge_is_also_held_to_its_scores_as_log_odds(scored: Battles) -> None:
    (judge,) = rate(scored, "soft-elo", Options()).finding(SoftEloByPeople).judges_by_people
    assert judge.ece_unscaled > judge.ece, "scores are four times too far apart"


def test_ratings_and_their_errors_are_shrunk_by_one_factor(sharp: Battles) -> None:
    hard, found = (rate(sharp, method, Options()) for method in ("hard-elo", "scaled-elo"))
    factor = found.finding(VerdictConstant).factor
    assert factor is not None
    assert 0.1 < factor < 0.8
    assert found.ratings.logits == pytest.approx(factor * hard.ratings.logits)
    assert found.ratings.se == pytest.approx(factor * hard.ratings.se)
