"""Soft-Elo, hard-Elo and the ratings of people are the ridged optimum, and match the recorded battles' figures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from venire.arena.errors import InputError
from venire.arena.scale import to_elo
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.soft_elo.soft_elo import (
    clip_targets,
    hard_elo,
    human_elo,
    place_against_anchors,
    soft_elo,
    with_targets,
)


def by_rows(data: Comparisons, y: Any, ridge: float) -> Any:
    """The way of the method's authors: L-BFGS over every row."""
    size = len(data.models)

    def objective(ratings: Any) -> tuple[float, Any]:
        gap = ratings[data.a] - ratings[data.b]
        excess = expit(gap) - y
        value = -np.sum(y * log_expit(gap) + (1 - y) * log_expit(-gap)) + ridge / 2 * ratings @ ratings
        return value, np.bincount(data.a, excess, size) - np.bincount(data.b, excess, size) + ridge * ratings

    found = minimize(objective, np.zeros(size), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9})
    return to_elo(found.x)


def simulated(rows: int, models: int, seed: int = 0, beta: float = 0.5) -> tuple[Comparisons, Any, Any, Any]:
    """Battles, scores whose calibrated probability has slope `beta`, labels of people, true logits."""
    rng = np.random.default_rng(seed)
    truth = np.linspace(-1.2, 1.2, models)
    a = rng.integers(0, models, rows)
    b = (a + rng.integers(1, models, rows)) % models
    gap = truth[a] - truth[b]
    human = (rng.random(rows) < expit(gap)).astype(float)
    score = np.round(gap / beta * 12) / 12
    return comparisons(a, b, np.where(score > 0, 1.0, np.where(score < 0, 0.0, 0.5))), score, human, truth


def test_recorded_battles_give_the_figures_of_their_description(arena_sample: dict[str, Any]) -> None:
    data, score, human = arena_sample["data"], arena_sample["score"], arena_sample["human"]
    people, hard, soft = human_elo(data, human), hard_elo(data), soft_elo(data, score, human)
    assert dict(zip(people.models, people.elo, strict=True))["gpt-4o-2024-05-13"] == pytest.approx(1145.64, abs=0.01)
    assert np.abs(hard.elo - people.elo).mean() == pytest.approx(53.79, abs=0.01)
    assert np.abs(soft.ratings.elo - people.elo).mean() == pytest.approx(17.03, abs=0.01)
    assert soft.ratings.elo == pytest.approx(by_rows(data, soft.targets, 0.01), abs=1e-3)
    assert soft.ece == pytest.approx(0.059874, abs=1e-6)
    assert soft.warnings == ()
    said = soft.ratings.diagnostics
    assert (said["beta"], said["n_fit"], said["ece"]) == (soft.beta, soft.n_fit, soft.ece)
    assert (soft.beta, soft.n_fit) == (pytest.approx(0.652204, abs=1e-6), 639)


def test_parity_with_the_authors_moves_ratings_by_thousandths(arena_sample: dict[str, Any]) -> None:
    data = arena_sample["data"]
    plain, clipped = hard_elo(data).elo, hard_elo(data, parity=True).elo
    assert clipped == pytest.approx(by_rows(data, np.clip(data.y, 1e-6, 1 - 1e-6), 0.01), abs=1e-3)
    assert 0.0 < np.abs(plain - clipped).max() < 0.01


def test_soft_targets_recover_people_s_scale_where_hard_ones_stretch_it() -> None:
    data, score, human, truth = simulated(40_000, 8)
    soft, hard = soft_elo(data, score, human), hard_elo(data)
    assert np.abs(soft.ratings.elo - to_elo(truth)).max() < 15.0
    assert np.abs(hard.elo - to_elo(truth)).max() > 200.0


@given(seed=st.integers(0, 2**32 - 1), known=st.floats(0.2, 1.0))
@settings(max_examples=30)
def test_row_order_model_order_sides_and_copies_change_nothing(seed: int, known: float) -> None:
    data, score, human, _ = simulated(80, 4, seed % 1000)
    rng = np.random.default_rng(seed)
    human = np.where(rng.random(80) < known, human, np.nan)
    score = score + rng.normal(0, 1, 80)
    expected = soft_elo(data, score, human).ratings.elo
    order, names = rng.permutation(80), rng.permutation(4)
    back = np.argsort(names).astype(np.int32)
    shuffled = replace(data, a=back[data.a[order]], b=back[data.b[order]], y=data.y[order])
    assert soft_elo(shuffled, score[order], human[order]).ratings.elo == pytest.approx(expected[names], abs=1e-6)
    swapped = replace(data, a=data.b, b=data.a, y=1 - data.y)
    assert soft_elo(swapped, -score, 1 - human).ratings.elo == pytest.approx(expected, abs=1e-6)
    twice = replace(data, a=np.tile(data.a, 2), b=np.tile(data.b, 2), y=np.tile(data.y, 2), weight=np.full(160, 0.5))
    assert soft_elo(twice, np.tile(score, 2), np.tile(human, 2)).ratings.elo == pytest.approx(expected, abs=1e-6)


def test_rows_without_a_score_are_left_out_and_counted() -> None:
    data, score, human, _ = simulated(300, 4)
    gone = score.copy()
    gone[:100] = np.nan
    found = soft_elo(data, gone, human)
    kept = comparisons(data.a[100:], data.b[100:], data.y[100:], models=data.models)
    assert found.ratings.elo == pytest.approx(soft_elo(kept, score[100:], human[100:]).ratings.elo, abs=1e-9)
    assert found.ratings.diagnostics["without_score"] == 100
    assert np.isnan(found.targets[:100]).all()


def test_a_given_beta_needs_no_label() -> None:
    data, score, human, _ = simulated(300, 4)
    fitted = soft_elo(data, score, human)
    given_beta = soft_elo(data, score, np.full(300, np.nan), beta=fitted.beta)
    assert given_beta.ratings.elo == pytest.approx(fitted.ratings.elo, abs=1e-9)
    assert "beta was given, not fitted" in given_beta.warnings


def test_labels_that_always_side_with_the_scores_are_said_and_rated_as_hard() -> None:
    data, score, _, _ = simulated(300, 4)
    found = soft_elo(data, score, data.y)
    assert "no finite optimum" in found.warnings[0]
    assert found.ratings.elo == pytest.approx(hard_elo(data).elo, abs=1e-9)


@pytest.mark.parametrize("weight", [1e-9, 1.0, 1e12])
def test_two_models_and_one_battle_have_finite_ratings(weight: float) -> None:
    data = comparisons(["x"], ["y"], [1.0], weight=[weight])
    found = hard_elo(data)
    gap = (found.logits[0] - found.logits[1]) / 2
    assert gap * 0.01 == pytest.approx(weight * expit(-2 * gap), rel=1e-6)


def test_all_ties_are_all_equal_and_a_model_without_battles_has_no_rating() -> None:
    data = comparisons(["x", "y"], ["y", "z"], [0.5, 0.5], models=["x", "y", "z", "idle"])
    assert hard_elo(data).elo[:3] == pytest.approx([1000.0] * 3, abs=1e-9)
    assert np.isnan(hard_elo(data).logits[3])


def test_bad_input_is_named() -> None:
    data, score, human, _ = simulated(10, 3)
    with pytest.raises(InputError, match="ridge is 0"):
        hard_elo(data, ridge=0.0)
    with pytest.raises(InputError, match="no row has one"):
        soft_elo(data, np.full(10, np.nan), human)
    with pytest.raises(InputError, match="labels of people"):
        soft_elo(data, score, np.full(10, np.nan))
    with pytest.raises(InputError, match="the comparisons have 10 rows"):
        soft_elo(data, score[:9], human)
    with pytest.raises(InputError, match="beta is nan"):
        soft_elo(data, score, human, beta=np.nan)


def test_a_given_beta_that_turns_scores_about_is_said() -> None:
    data, score, human, _ = simulated(10, 3)
    assert any("against themselves" in said for said in soft_elo(data, score, human, beta=-1.0).warnings)
    assert not any("against themselves" in said for said in soft_elo(data, score, human, beta=1.0).warnings)


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


def scattered(rows: int, seed: int, *, labelled: float, clusters: int | None = None) -> tuple[Comparisons, Any, Any]:
    """Battles of five models whose scores scatter about the gap, labels of people for a part of them."""
    rng = np.random.default_rng(seed)
    truth = np.linspace(-1.5, 1.5, 5)
    a = rng.integers(0, 5, rows)
    b = (a + rng.integers(1, 5, rows)) % 5
    score = truth[a] - truth[b] + rng.normal(size=rows)
    human = np.where(rng.random(rows) < labelled, rng.random(rows) < expit(0.8 * score), np.nan)
    cluster = None if clusters is None else rng.integers(0, clusters, rows)
    return comparisons(a, b, (score > 0).astype(float), cluster=cluster), score, human


@pytest.mark.parametrize("clusters", [None, 40])
def test_errors_are_those_of_leaving_out_one_unit_and_fitting_beta_anew(clusters: int | None) -> None:
    """The danger: with beta taken as known, 95 % intervals hold the truth in 0.56 to 0.86 of cases."""
    data, score, human = scattered(320, 3, labelled=0.5, clusters=clusters)
    units = np.arange(320) if clusters is None else data.cluster
    assert units is not None
    left = []
    for unit in np.unique(units):
        kept = units != unit
        left.append(soft_elo(data.select(kept), score[kept], human[kept], errors="none").ratings.logits)
    count = len(left)
    spread = np.cov(np.array(left), rowvar=False, bias=True) * (count - 1)
    found = soft_elo(data, score, human).ratings
    assert found.covariance is not None
    assert np.sqrt(np.diag(found.covariance)) == pytest.approx(np.sqrt(np.diag(spread)), rel=0.06)
    known = soft_elo(data, score, human, beta=float(found.diagnostics["beta"])).ratings
    assert known.se[[0, -1]].max() < 0.7 * found.se[[0, -1]].min()
