"""Ranks with bounds that hold together, tied sets, tiers and chances; nothing is separated that cannot be told."""

from __future__ import annotations

import math
import tracemalloc
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import norm, studentized_range

from venire.arena.errors import InputError
from venire.ratings.data.result import Ratings
from venire.ratings.inference import contrasts as module
from venire.ratings.inference.bootstrap import Replicates
from venire.ratings.inference.ranking import rank_interval, ranking

Vector = NDArray[np.float64]


def rated(logits: Any, covariance: Any = None, degrees: float = math.inf) -> Ratings:
    """Ratings of models a, b, c, ...; a vector of variances is made a diagonal covariance."""
    at = np.asarray(logits, dtype=float)
    if covariance is not None:
        covariance = np.asarray(covariance, dtype=float)
        covariance = np.diag(covariance) if covariance.ndim == 1 else covariance
    names = tuple(chr(97 + code) if len(at) <= 26 else f"m{code:03d}" for code in range(len(at)))
    return Ratings("test", names, at, np.full(len(at), 100.0), covariance=covariance, errors="cluster", degrees=degrees)


def centred(size: int, variance: float) -> Vector:
    """The covariance of equally well known models, centred: singular."""
    return variance * (np.eye(size) - 1.0 / size)


def test_the_critical_value_is_that_of_the_studentized_range() -> None:
    """For equal independent errors it is known: Tukey's quantile over root 2."""
    for size, degrees in ((2, math.inf), (5, math.inf), (10, math.inf), (4, 7.0)):
        found = ranking(rated(np.zeros(size), centred(size, 0.3), degrees), draws=40_000)
        assert found.critical == pytest.approx(studentized_range.ppf(0.95, size, degrees) / math.sqrt(2), rel=0.025)


def test_far_models_have_certain_ranks_and_near_ones_share_them() -> None:
    found = ranking(rated([3.0, 0.05, 0.0, -3.0], [0.01] * 4))
    assert found.rank.tolist() == [1, 2, 3, 4]
    assert found.lo.tolist() == [1, 2, 2, 4]
    assert found.hi.tolist() == [1, 3, 3, 4]
    assert found.tier.tolist() == [1, 2, 2, 3]
    assert found.tied("c") == ("b", "c")
    assert found.tied("a") == ("a",)
    assert found.best.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert found.above[1, 2] == pytest.approx(norm.cdf(0.05 / math.sqrt(0.02)))
    assert found.above + found.above.T == pytest.approx(np.ones((4, 4)))


def test_equal_models_share_the_first_rank_and_the_chance_of_being_best() -> None:
    found = ranking(rated(np.zeros(4), centred(4, 0.1)))
    assert found.rank.tolist() == [1, 1, 1, 1]
    assert (found.lo.tolist(), found.hi.tolist()) == ([1] * 4, [4] * 4)
    assert found.tier.tolist() == [1] * 4
    assert found.best == pytest.approx([0.25] * 4, abs=0.02)
    assert found.best.sum() == pytest.approx(1.0)


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), size=st.integers(2, 7))
def test_bounds_hold_the_rank_and_a_shift_or_another_order_changes_nothing(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, size)) * 0.4
    logits, covariance = rng.normal(size=size), root @ root.T
    found = ranking(rated(logits, covariance), draws=2000)
    assert (found.lo <= found.rank).all()
    assert (found.rank <= found.hi).all()
    assert set(np.diff(found.tier[np.argsort(found.rank)]).tolist()) <= {0, 1}
    centre = np.eye(size) - 1.0 / size
    moved = ranking(rated(logits + 5.0, centre @ covariance @ centre), draws=2000)
    assert np.array_equal(moved.rank, found.rank)
    assert moved.above == pytest.approx(found.above, abs=1e-9)
    assert moved.critical == pytest.approx(found.critical, rel=0.08)
    order = rng.permutation(size)
    turned = ranking(rated(logits[order], covariance[np.ix_(order, order)]), draws=2000)
    assert np.array_equal(turned.rank, found.rank[order])
    assert turned.critical == pytest.approx(found.critical, rel=0.08)


def test_one_named_model_has_the_tighter_bounds() -> None:
    ratings = rated(np.linspace(1.1, -1.1, 12), centred(12, 0.02))
    all_, one = ranking(ratings), rank_interval(ratings, "f")
    assert one.critical < all_.critical
    assert (one.rank, one.model, one.level) == (6, "f", 0.95)
    assert all_.lo[5] <= one.lo <= 6 <= one.hi <= all_.hi[5]
    assert one.hi - one.lo < all_.hi[5] - all_.lo[5]


def test_few_degrees_of_freedom_widen_the_bounds() -> None:
    """Never narrower all at once than one difference is by itself."""
    ratings = rated([0.43, -0.43], [0.04, 0.04], degrees=3.0)
    assert ranking(ratings).critical == pytest.approx(3.18, rel=0.05)
    assert ranking(ratings).critical >= ratings.quantile(0.95)
    assert ranking(ratings).hi.tolist() == [2, 2]
    assert ranking(rated([0.43, -0.43], [0.04, 0.04])).hi.tolist() == [1, 2]


def test_a_model_without_an_estimate_or_error_has_no_rank() -> None:
    covariance = np.diag([0.01, np.nan, 0.01])
    covariance[1] = covariance[:, 1] = np.nan
    found = ranking(rated([1.0, np.nan, 0.0], covariance))
    assert found.rank.tolist() == [1, 0, 2]
    assert (found.lo.tolist(), found.hi.tolist(), found.tier.tolist()) == ([1, 0, 2], [1, 0, 2], [1, 0, 2])
    assert np.isnan(found.best).tolist() == [False, True, False]
    assert found.tied("b") == ()
    with pytest.raises(InputError, match="b has no estimate"):
        rank_interval(rated([1.0, np.nan, 0.0], covariance), "b")
    nobody = ranking(rated([1.0, 0.0], np.full((2, 2), np.nan), degrees=math.nan))
    assert nobody.rank.tolist() == [0, 0]


def test_a_difference_whose_error_cannot_be_told_separates_nobody() -> None:
    """Two models that never part in any cluster: their difference has no error, which is no certainty."""
    covariance = np.array([[0.01, 0.01, 0.0], [0.01, 0.01, 0.0], [0.0, 0.0, 0.01]])
    found = ranking(rated([3.0, 2.0, -3.0], covariance))
    assert found.hi.tolist() == [2, 2, 3]
    assert math.isnan(found.above[0, 1])
    assert found.tied("a") == ("a", "b")


def test_held_models_are_known() -> None:
    found = ranking(rated([1.0, 0.5, 0.0], [0.0, 0.0, 0.01]))
    assert found.separated[0, 1]
    assert found.above[0, 1] == 1.0
    assert found.hi.tolist() == [1, 2, 3]


def test_replicates_stand_in_for_the_covariance() -> None:
    rng = np.random.default_rng(1)
    point = np.array([1.0, 0.0, -0.1])
    drawn = point + rng.normal(size=(4000, 3)) * 0.1
    drawn[:7] = np.nan
    replicates = Replicates(("a", "b", "c"), drawn, point, "cluster", 50, 0)
    by_replicates = ranking(rated(point), replicates=replicates)
    by_covariance = ranking(rated(point, [0.01] * 3))
    assert by_replicates.critical == pytest.approx(by_covariance.critical, rel=0.05)
    assert by_replicates.lo.tolist() == by_covariance.lo.tolist() == [1, 2, 2]
    assert by_replicates.above == pytest.approx(by_covariance.above, abs=0.03)
    assert by_replicates.best == pytest.approx(by_covariance.best, abs=0.03)


def test_replicates_without_an_estimate_separate_nobody_where_they_are_many() -> None:
    point = np.array([1.0, 0.0])
    drawn = point + np.random.default_rng(1).normal(size=(100, 2)) * 0.01
    drawn[:6] = [np.inf, -np.inf]
    found = ranking(rated(point), replicates=Replicates(("a", "b"), drawn, point, "cluster", 50, 0))
    assert (found.critical, found.lo.tolist(), found.hi.tolist()) == (np.inf, [1, 1], [2, 2])
    assert np.isnan(found.best).all()


def test_the_same_seed_gives_the_same_figures_whatever_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    ratings = rated(np.linspace(1.0, -1.0, 9), centred(9, 0.02))
    first = ranking(ratings, seed=4)
    monkeypatch.setattr(module, "_ENTRIES", 20)
    assert ranking(ratings, seed=4).critical == first.critical
    assert ranking(ratings, seed=5).critical != first.critical


def test_the_largest_ratio_is_the_largest_over_all_pairs() -> None:
    rng = np.random.default_rng(2)
    root = rng.normal(size=(6, 6))
    ratings = rated(rng.normal(size=6), root @ root.T)
    joint = module.joint_errors(ratings, draws=500)
    pairs = list(combinations(range(6), 2))
    ratio = np.array([np.abs(joint.errors[:, i] - joint.errors[:, j]) / joint.differences[i, j] for i, j in pairs])
    assert module.max_t_quantile(joint, 0.9) == pytest.approx(np.quantile(ratio.max(axis=0), 0.9))
    of_two = [row for row, pair in enumerate(pairs) if 2 in pair]
    assert module.max_t_quantile(joint, 0.9, against=2) == pytest.approx(np.quantile(ratio[of_two].max(axis=0), 0.9))


@pytest.mark.parametrize("anchored", [False, True])
def test_looking_at_the_extremes_alone_misses_no_pair(anchored: bool) -> None:
    rng = np.random.default_rng(6)
    covariance = np.diag(rng.uniform(0.005, 0.05, 120)) + (0.1 if anchored else 0.0)
    joint = module.joint_errors(rated(rng.normal(size=120), covariance), draws=600)
    inverse = np.where(joint.differences > 0.0, 1.0 / np.where(joint.differences > 0.0, joint.differences, 1.0), 0.0)
    found, sure = module._max_t_of_extremes(joint, inverse)
    assert sure.mean() > 0.9
    assert found[sure] == pytest.approx(module._max_t_of_all(joint.errors, inverse)[sure], rel=1e-12)


def test_a_pair_whose_errors_hang_together_is_not_missed_among_many() -> None:
    """Both near their mean, and yet far apart for what little their difference scatters."""
    rng = np.random.default_rng(6)
    root = np.sqrt(0.02) * np.eye(100)
    for code in range(0, 100, 2):
        root[code + 1] = root[code]
        root[code + 1, code + 1] = 0.001
    joint = module.joint_errors(rated(rng.normal(size=100), root @ root.T), draws=400)
    pairs = np.triu_indices(100, 1)
    ratio = np.abs(joint.errors[:, pairs[0]] - joint.errors[:, pairs[1]]) / joint.differences[pairs]
    assert module.max_t_quantile(joint, 0.5) == pytest.approx(np.quantile(ratio.max(axis=1), 0.5), rel=1e-12)


def test_what_replicates_lean_by_counts_as_error() -> None:
    point = np.zeros(2)
    drawn = point + np.random.default_rng(2).normal(size=(2000, 2)) * 0.1
    leaning = drawn + np.array([0.2, -0.2])
    plain, leant = (
        ranking(rated(point), replicates=Replicates(("a", "b"), logits, point, "cluster", 50, 0))
        for logits in (drawn, leaning)
    )
    assert leant.critical > plain.critical + 1.5


def test_many_models_stay_within_memory() -> None:
    ratings = rated(np.linspace(1.0, -1.0, 300), centred(300, 0.02))
    tracemalloc.start()
    ranking(ratings, draws=3000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({"level": 95}, "level is 95"), ({"draws": -1}, "draws is -1"), ({"seed": -1}, "seed -1")],
)
def test_what_is_not_possible_is_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        ranking(rated([0.0, 1.0], [0.1, 0.1]), **arguments)


def test_ratings_without_errors_and_replicates_of_others_are_refused() -> None:
    with pytest.raises(InputError, match="have no covariance: fit them with errors"):
        ranking(rated([0.0, 1.0]))
    others = Replicates(("x", "y"), np.zeros((3, 2)), np.zeros(2), "battle", 9, 0)
    with pytest.raises(InputError, match="replicates are of other models"):
        ranking(rated([0.0, 1.0]), replicates=others)
    with pytest.raises(InputError, match="z is none of the models"):
        rank_interval(rated([0.0, 1.0], [0.1, 0.1]), "z")


def test_true_ranks_lie_within_all_bounds_at_once_as_often_as_promised() -> None:
    """2,000 boards of 6 models, 3 of them equal; at least 95 % keep every rank within its bounds (seen: 0.990)."""
    rng = np.random.default_rng(3)
    truth, kept = np.array([1.0, 0.6, 0.6, 0.6, 0.0, -0.5]), 0
    critical = ranking(rated(truth, centred(6, 0.02))).critical
    best = np.array([1, 2, 2, 2, 5, 6])
    worst = np.array([1, 4, 4, 4, 5, 6])
    for _ in range(2000):
        logits = truth + rng.normal(size=6) * math.sqrt(0.02)
        beyond = logits[:, None] - logits[None, :] > critical * 0.2
        lo, hi = 1 + beyond.sum(axis=0), 6 - beyond.sum(axis=1)
        kept += bool((lo <= worst).all() and (hi >= best).all())
    assert kept > 1900
