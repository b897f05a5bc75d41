"""A model among fixed anchors stands where its ridged likelihood is greatest, in every resample."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from venire.ratings.placing import clipped, pair_wins, place, rate_wins


def test_expected_wins_are_the_wins_less_the_pull_of_the_ridge() -> None:
    rng = np.random.default_rng(0)
    anchors, won, lost = rng.normal(0, 1, 6), rng.random((6, 50)) * 9, rng.random((6, 50)) * 9
    rating = place(anchors, won, lost, 0.01)
    share = expit(rating - anchors[:, None])
    assert won.sum(axis=0) - 0.01 * rating == pytest.approx(((won + lost) * share).sum(axis=0), abs=1e-9)


@pytest.mark.parametrize(("won", "lost"), [(1e12, 0.0), (0.0, 1e12), (1e-9, 0.0), (1e12, 1e-9), (1.0, 1e-9)])
def test_extremes_converge(won: float, lost: float) -> None:
    anchor = np.array([3.0])
    rating = place(anchor, np.array([[won]]), np.array([[lost]]), 0.01)[0]
    gap = rating - 3.0
    assert won * expit(-gap) - lost * expit(gap) == pytest.approx(0.01 * rating, rel=1e-6)


def test_no_battles_is_no_rating_and_leaves_other_columns_alone() -> None:
    won, lost = np.array([[2.0, 0.0]]), np.array([[1.0, 0.0]])
    found = place(np.array([0.0]), won, lost, 1e-9)
    assert found[0] == pytest.approx(np.log(2.0), abs=1e-6)
    assert np.isnan(found[1])


def test_a_start_changes_nothing_but_the_steps() -> None:
    rng = np.random.default_rng(0)
    wins = rng.random((6, 6)) * 20
    np.fill_diagonal(wins, 0.0)
    cold, steps = rate_wins(wins, 0.01)
    warm, fewer = rate_wins(wins, 0.01, cold + 0.01)
    assert warm == pytest.approx(cold, abs=1e-10)
    assert fewer < steps


def test_a_ladder_whose_rungs_never_lose_converges() -> None:
    wins = np.diag(np.full(40, 100.0), -1)
    ratings, _ = rate_wins(wins, 1e-6)
    assert np.all(np.diff(ratings) > 0)
    share = expit(ratings[:, None] - ratings)
    surprise = wins * share.T
    assert surprise.sum(axis=1) - surprise.sum(axis=0) == pytest.approx(1e-6 * ratings, abs=1e-10)


def test_a_small_chance_is_not_lost_in_the_total() -> None:
    a, b = np.array([0, 0], dtype=np.int32), np.array([1, 1], dtype=np.int32)
    wins = pair_wins(a, b, np.array([1.0 - 2**-40, np.nan]), np.array([1e6, 1.0]), 2)
    assert wins[1, 0] == 1e6 * 2**-40
    assert wins.sum() == pytest.approx(1e6)


def test_clipping_is_for_parity_alone() -> None:
    targets = np.array([0.0, 0.3, 1.0])
    assert clipped(targets, False) is targets
    assert clipped(targets, True).tolist() == [1e-6, 0.3, 1 - 1e-6]
