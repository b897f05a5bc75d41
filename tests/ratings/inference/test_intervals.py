"""From ratings to what a leaderboard shows: any method drawn again, an anchor's errors, groups side by side."""

from __future__ import annotations

import numpy as np
import pytest

from venire.arena.errors import InputError
from venire.arena.scale import POINTS_PER_LOGIT
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.inference.bootstrap import bootstrap_clusters
from venire.ratings.inference.intervals import bootstrap_refits, with_intervals
from venire.ratings.inference.options import Options
from venire.ratings.pairwise.bradley_terry import bradley_terry
from venire.ratings.pairwise.components import rate_groups, restrict_models
from venire.ratings.pairwise.win_rate import win_rate


def simulated(seed: int = 0, rows: int = 1200, models: int = 4) -> Comparisons:
    rng = np.random.default_rng(seed)
    truth = np.linspace(0.6, -0.6, models)
    a = rng.integers(0, models, rows)
    b = (a + rng.integers(1, models, rows)) % models
    y = (rng.random(rows) < 1.0 / (1.0 + np.exp(truth[b] - truth[a]))).astype(float)
    return comparisons(a, b, y, cluster=rng.integers(0, 30, rows))


def test_drawing_again_by_refits_has_the_errors_of_the_fast_way() -> None:
    data = simulated()
    point = bradley_terry(data, errors="none")
    slow = bootstrap_refits(
        data, lambda rows: bradley_terry(data.select(rows), errors="none"), point, replicates=400, seed=1
    )
    fast = bootstrap_clusters(data, point.logits, replicates=2000, seed=2)
    assert (slow.unit, slow.units) == ("cluster", 30)
    assert slow.se == pytest.approx(fast.se, rel=0.15)


def test_drawing_again_takes_whole_clusters_and_only_those_there_are() -> None:
    data = simulated(rows=90)
    seen = []

    def refit(rows: np.ndarray) -> Ratings:
        seen.append(rows)
        return win_rate(data.select(rows)).ratings

    bootstrap_refits(data, refit, win_rate(data).ratings, replicates=5, seed=0)
    assert data.cluster is not None
    size = np.bincount(data.cluster)
    for rows in seen:
        times = np.bincount(data.cluster[rows], minlength=len(size))
        assert not (times % np.maximum(size, 1)).any()
        assert (times // np.maximum(size, 1)).sum() == np.count_nonzero(size)


def test_a_draw_that_cannot_be_fitted_is_counted_and_left_out() -> None:
    data = comparisons(["a", "a", "b"], ["b", "b", "a"], [1.0, 0.0, 0.5], cluster=["x", "y", "z"])

    def refit(rows: np.ndarray) -> Ratings:
        return bradley_terry(data.select(rows), errors="none")

    found = bootstrap_refits(data, refit, refit(np.arange(3)), replicates=200, seed=0)
    # Only draws of x alone or of y alone have no estimate: 2 of 27.
    assert found.without_estimate / 200 == pytest.approx(2 / 27, abs=0.05)


def test_an_anchor_has_no_error_and_the_others_those_of_their_difference_to_it() -> None:
    data = simulated()
    free = bradley_terry(data)
    shown = with_intervals(free, data, Options(anchors={"1": 1100.0}))
    assert shown.ratings.gauge == "anchored: 1 = 1100"
    assert shown.ratings.elo[1] == pytest.approx(1100.0)
    assert shown.se[1] == pytest.approx(0.0, abs=1e-6)
    assert free.covariance is not None
    spread = free.covariance
    difference = spread[0, 0] + spread[1, 1] - 2.0 * spread[0, 1]
    assert shown.se[0] == pytest.approx(POINTS_PER_LOGIT * np.sqrt(difference))
    held = bradley_terry(data, anchors={"1": 1100.0})
    assert shown.se == pytest.approx(POINTS_PER_LOGIT * held.se, abs=1e-6)
    drawn = with_intervals(free, data, Options(anchors={"1": 1100.0}, replicates=400))
    assert (drawn.lo[1], drawn.hi[1]) == (pytest.approx(1100.0), pytest.approx(1100.0))
    assert drawn.se == pytest.approx(shown.se, rel=0.25, abs=1e-6)


def test_an_anchor_without_a_rating_and_several_of_them_are_refused() -> None:
    data = simulated()
    rated = win_rate(data).ratings
    with pytest.raises(InputError, match="one anchor"):
        with_intervals(rated, data, Options(anchors={"0": 1.0, "1": 2.0}))
    unknown = Ratings("m", ("a", "b"), np.array([np.nan, 0.0]), np.ones(2))
    with pytest.raises(InputError, match="anchor a has no rating"):
        with_intervals(unknown, data, Options(anchors={"a": 1000.0}))


def test_groups_are_rated_with_their_own_rows_and_put_where_they_belong() -> None:
    data = comparisons(["a", "c", "b", "d", "d", "e"], ["b", "d", "a", "c", "c", "a"], [1.0, 1.0, 1.0, 1.0, 1.0, 0.0])
    groups = [np.array([0, 1]), np.array([2, 3]), np.array([4])]
    found = rate_groups(
        data, groups, lambda part: with_intervals(bradley_terry(part), part, Options()), lambda code: f"{code} is alone"
    )
    assert found.reasons == {"e": "4 is alone"}
    assert found.group.tolist() == [1, 1, 2, 2, 3]
    assert found.ratings.logits[:2].tolist() == pytest.approx([0.0, 0.0], abs=1e-9)
    assert found.ratings.logits[3] > 0 > found.ratings.logits[2]
    assert np.isnan(found.ratings.logits[4])
    assert found.ratings.battles.tolist() == [3.0, 2.0, 3.0, 3.0, 1.0]
    assert [fit["judgments"] for fit in found.fits] == [2, 3]
    assert found.ratings.gauge == "mean 1000 in each group"
    held = Options(anchors={"c": 1200.0})
    found = rate_groups(data, groups, lambda part: with_intervals(bradley_terry(part), part, held), lambda code: "")
    assert found.ratings.gauge == "mean 1000 in each group; group 2 anchored: c = 1200"


def test_rows_among_some_models_keep_their_clusters_and_weights() -> None:
    data = comparisons(
        ["a", "b", "c"], ["b", "c", "a"], [1.0, 0.5, 0.0], weight=[1.0, 2.0, 3.0], cluster=["x", "y", "z"]
    )
    found = restrict_models(data, [2, 0])
    assert (found.models, found.a.tolist(), found.b.tolist()) == (("c", "a"), [0], [1])
    assert found.weight is not None
    assert found.cluster is not None
    assert (found.weight.tolist(), [found.clusters[code] for code in found.cluster]) == ([3.0], ["z"])
