"""The Elo scale."""

from __future__ import annotations

import math

import numpy as np
import pytest

from venire.arena.scale import to_elo, to_logits


def test_odds_of_ten_to_one_are_400_points_around_a_mean_of_1000() -> None:
    assert to_elo(np.array([math.log(10.0), 0.0])) == pytest.approx([1200.0, 800.0])


def test_each_row_of_replicates_has_its_own_mean() -> None:
    elo = to_elo(np.array([[0.0, 1.0, 5.0], [7.0, -1.0, 2.0]]))
    assert elo.mean(axis=1) == pytest.approx([1000.0, 1000.0])


def test_there_and_back_keeps_differences_and_centres() -> None:
    logits = np.array([3.0, -1.0, 0.5])
    assert to_logits(to_elo(logits)) == pytest.approx(logits - logits.mean())
