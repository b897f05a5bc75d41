"""A model among fixed anchors stands where its ridged likelihood is greatest, in every resample."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from venire.ratings.data.comparisons import comparisons
from venire.ratings.soft_elo.soft_elo import clip_targets, place_against_anchors, with_targets


def test_expected_wins_are_the_wins_less_the_pull_of_the_ridge() -> None:
    rng = np.random.default_rng(0)
    anchors, won, lost = rng.normal(0, 1, 6), rng.random((6, 50)) * 9, rng.random((6, 50)) * 9
    rating = place_against_anchors(anchors, won, lost, 0.01)
    share = expit(rating - anchors[:, None])
    assert won.sum(axis=0) - 0.01 * rating == pytest.approx(((won + lost) * share).sum(axis=0), abs=1e-9)


@pytest.mark.parametrize(("won", "lost"), [(1e12, 0.0), (0.0, 1e12), (1e-9, 0.0), (1e12, 1e-9), (1.0, 1e-9)])
def test_extremes_converge(won: float, lost: float) -> None:
    anchor = np.array([3.0])
    rating = place_against_anchors(anchor, np.array([[won]]), np.array([[lost]]), 0.01)[0]
    gap = rating - 3.0
    assert won * expit(-gap) - lost * expit(gap) == pytest.approx(0.01 * rating, rel=1e-6)


def test_no_battles_is_no_rating_and_leaves_other_columns_alone() -> None:
    won, lost = np.array([[2.0, 0.0]]), np.array([[1.0, 0.0]])
    found = place_against_anchors(np.array([0.0]), won, lost, 1e-9)
    assert found[0] == pytest.approx(np.log(2.0), abs=1e-6)
    assert np.isnan(found[1])


def test_other_targets_keep_the_columns_of_the_rows_that_have_one() -> None:
    data = comparisons(
        ["x", "y", "x"], ["y", "z", "z"], [1, 0, 1], weight=[1, 2, 3], cluster=[5, 6, 5], judge=list("jkj")
    )
    kept = with_targets(data, np.array([0.25, np.nan, 0.75]))
    assert (kept.a.tolist(), kept.b.tolist(), kept.y.tolist()) == ([0, 0], [1, 2], [0.25, 0.75])
    assert kept.weight is not None
    assert kept.cluster is not None
    assert kept.judge is not None
    assert (kept.weight.tolist(), kept.cluster.tolist(), kept.judge.tolist()) == ([1.0, 3.0], [0, 0], [0, 0])
    assert with_targets(data, data.y).models == data.models


def test_clipping_is_for_parity_alone() -> None:
    targets = np.array([0.0, 0.3, 1.0])
    assert clip_targets(targets, False) is targets
    assert clip_targets(targets, True).tolist() == [1e-6, 0.3, 1 - 1e-6]
