"""Verdicts shrunk by one number that people's labels teach: the rivals of `soft-elo` as methods of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from venire.arena.battles import Battles
from venire.ratings.data.judgments import merge_orders
from venire.ratings.inference.options import Options
from venire.ratings.methods.findings import MethodNotes, VerdictConstant
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


def test_every_verdict_counts_as_the_share_that_is_nearest_to_people(sharp: Battles) -> None:
    found = rate(sharp, "smoothed-elo", Options())
    share = found.finding(VerdictConstant).share
    assert share in CONFIDENCES
    assert share < 0.95, "people side with this judge far less often than it decides"
    data = merge_orders(sharp).comparisons()
    targets = smooth_labels(data.y, share)
    assert found.ratings.elo == pytest.approx(human_elo(data, targets, errors="none").elo)
    assert f"{share:.2f}" in found.finding(MethodNotes).notes[0]


def test_ratings_and_their_errors_are_shrunk_by_one_factor(sharp: Battles) -> None:
    hard, found = (rate(sharp, method, Options()) for method in ("hard-elo", "scaled-elo"))
    factor = found.finding(VerdictConstant).factor
    assert factor is not None
    assert 0.1 < factor < 0.8
    assert found.ratings.logits == pytest.approx(factor * hard.ratings.logits)
    assert found.ratings.se == pytest.approx(factor * hard.ratings.se)
