"""How well ratings foretell held-out battles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.ratings.am_elo.am_elo import AmElo, am_elo
from venire.ratings.am_elo.evaluation import (
    abilities_prediction,
    auc,
    auc_decisive,
    evaluate,
    evaluate_rows,
    log_loss,
    loss_differences,
    mse,
    predict_from_abilities,
    predict_from_ratings,
)
from venire.ratings.data.clustered import clustered_mean
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.pairwise.bradley_terry import bradley_terry, m_elo
from venire.ratings.pairwise.online import online_elo

Floats = NDArray[np.float64]


def pairwise(y: Floats, p: Floats) -> float:
    """The definition, by all pairs of rows."""
    y, p = np.concatenate([y, 1 - y]), np.concatenate([p, 1 - p])
    above = y[:, None] > y[None, :]
    gap = p[:, None] - p[None, :]
    return float(np.mean(np.where(np.abs(gap) < 1e-9, 0.5, gap > 0)[above]))


def test_area_under_the_curve_is_its_definition() -> None:
    rng = np.random.default_rng(0)
    y, p = rng.choice([0.0, 0.5, 1.0], 150), np.round(rng.random(150), 1)
    assert auc(y, p) == pytest.approx(pairwise(y, p), abs=1e-12)
    won = y != 0.5
    assert auc_decisive(y, p) == pytest.approx(pairwise(y[won], p[won]), abs=1e-12)
    assert auc(1 - y, 1 - p) == pytest.approx(auc(y, p), abs=1e-12)
    assert auc(y, 1 - p) == pytest.approx(1 - auc(y, p), abs=1e-12)
    assert auc(np.array([1.0, 0.0]), np.array([0.9, 0.2])) == 1.0
    assert auc(y, np.full(150, 0.5)) == 0.5


def test_nothing_to_compare_is_nan() -> None:
    assert np.isnan(auc(np.full(4, 0.5), np.full(4, 0.3)))
    assert np.isnan(auc_decisive(np.full(4, 0.5), np.full(4, 0.3)))
    assert np.isnan(mse(np.array([]), np.array([])))


def test_each_row_is_foretold_by_the_other_folds_once() -> None:
    data = comparisons([0, 1, 2] * 20, [1, 2, 0] * 20, np.tile([1.0, 0.5, 0.0], 20), cluster=np.arange(60))
    seen: list[int] = []

    def method(train: Comparisons, test: Comparisons) -> Floats:
        assert train.cluster is not None
        assert test.cluster is not None
        assert sorted([*train.cluster.tolist(), *test.cluster.tolist()]) == list(range(60))
        assert len(test) == 12
        seen.extend(test.cluster.tolist())
        return np.where(test.cluster == 7, np.nan, test.y)

    found = evaluate(data, method)
    assert sorted(seen) == list(range(60))
    assert (found.mse, found.auc, found.rows, found.missing) == (0.0, 1.0, 59, 1)


def test_an_instruction_is_held_out_whole() -> None:
    item = np.repeat(np.arange(13), 7)
    data = comparisons(np.tile([0, 1, 2, 0, 1, 2, 0], 13), np.tile([1, 2, 0, 2, 0, 1, 1], 13), item % 2, cluster=item)
    apart = []

    def method(train: Comparisons, test: Comparisons) -> Floats:
        assert train.cluster is not None
        assert test.cluster is not None
        apart.append(not set(train.cluster.tolist()) & set(test.cluster.tolist()))
        return np.full(len(test), 0.5)

    assert evaluate(data, method).units == 13
    assert apart == [True] * 5
    with pytest.raises(InputError, match="no more than the 13 clusters"):
        evaluate(data, method, folds=14)


def test_differences_of_losses_are_clustered_means_of_rows_that_both_predict() -> None:
    rng = np.random.default_rng(0)
    item = np.repeat(np.arange(20), 6).astype(np.int32)
    y = (rng.random(120) < 0.7).astype(float)
    sure, vague = np.where(np.arange(120) == 5, np.nan, 0.7), np.full(120, 0.6)
    one = evaluate_rows(y, lambda train, test: sure[test], 4, 0, item)
    other = evaluate_rows(y, lambda train, test: vague[test], 4, 0, item)
    found = loss_differences(y, one, other, item)
    kept = np.arange(120) != 5
    by_hand = clustered_mean(((y - 0.7) ** 2 - (y - 0.6) ** 2)[kept], item[kept])
    assert (found["mse"].value, found["mse"].se) == pytest.approx((by_hand.value, by_hand.se))
    assert found["mse"].clusters == 20
    assert found["log_loss"].value == pytest.approx(log_loss(y[kept], sure[kept]) - log_loss(y[kept], vague[kept]))


@pytest.mark.parametrize("folds", [1, 7])
def test_folds_have_to_fit(folds: int) -> None:
    data = comparisons([0, 1, 0], [1, 0, 1], [1, 0, 1])
    with pytest.raises(InputError, match=f"folds is {folds}"):
        evaluate(data, predict_from_ratings(bradley_terry), folds=folds)


def test_probabilities_as_outcomes_have_no_area() -> None:
    with pytest.raises(InputError, match="more than 20 distinct outcomes"):
        auc(np.linspace(0, 1, 40), np.linspace(0, 1, 40))


def test_m_elo_is_bradley_terry_by_another_name() -> None:
    data = comparisons([0, 1, 2, 0], [1, 2, 0, 2], [1, 1, 1, 0.5])
    assert m_elo(data).method == "m-elo"
    assert np.array_equal(m_elo(data, ridge=0.5).logits, bradley_terry(data, ridge=0.5).logits)


def hand_made(ability: list[float], logits: list[float]) -> AmElo:
    """A fit of models a, b, c by judges x, y with these figures."""
    data = comparisons(["a", "b", "c"] * 2, ["b", "c", "a"] * 2, [1, 1, 0.5, 0.5, 0, 1], judge=list("xxxyyy"))
    found = am_elo(data, errors="none")
    return replace(found, ability=np.array(ability), ratings=replace(found.ratings, logits=np.array(logits)))


def test_a_row_is_foretold_by_the_ability_of_its_judge() -> None:
    rows = comparisons(["a", "a", "b", "c"], ["b", "b", "a", "a"], [1, 1, 1, 1], judge=list("xyyx"))
    p = abilities_prediction(hand_made([2.0, -0.5], [1.0, 0.0, np.nan]), rows)
    sigma = 1 / (1 + np.exp(-np.array([2.0, -0.5, 0.5])))
    assert p[:3] == pytest.approx(sigma, abs=1e-12)
    assert np.isnan(p[3])


def test_a_judge_not_known_has_the_mean_ability_and_a_sure_one_is_sure_but_of_equals() -> None:
    rows = comparisons(["a", "a", "c", "a"], ["b", "b", "b", "c"], [1, 1, 1, 1], judge=list("xyyy"))
    p = abilities_prediction(hand_made([np.nan, np.inf], [1.0, 0.0, 0.0]), rows)
    assert p == pytest.approx([1 / (1 + np.exp(-1.0)), 1.0, 0.5, 1.0], abs=1e-12)
    assert abilities_prediction(hand_made([np.nan, -np.inf], [1.0, 0.0, 0.0]), rows)[1:] == pytest.approx(
        [0.0, 0.5, 0.0]
    )


def test_judges_have_to_be_those_of_the_fit() -> None:
    fit = hand_made([1.0, 1.0], [1.0, 0.0, 0.0])
    with pytest.raises(InputError, match="name their judges"):
        abilities_prediction(fit, comparisons(["a"], ["b"], [1]))
    with pytest.raises(InputError, match="the same ones"):
        abilities_prediction(fit, comparisons(["a"], ["b"], [1], judge=["z"]))


def test_a_judge_absent_from_a_training_fold_is_foretold(arena: Callable[..., Comparisons]) -> None:
    data = arena(1, models=5, judges=4, rows=400, spread=0.2)
    assert data.judge is not None
    only = np.argmax(data.judge == 3)
    rows = data.select((data.judge != 3) | (np.arange(len(data)) == only))
    found = evaluate(rows, predict_from_abilities(lambda train: am_elo(train, errors="none")))
    assert found.missing == 0


def test_crowd_votes_foretold_by_elo_m_elo_and_am_elo(shared_data: Path) -> None:
    """Annotators with at least 50 votes: 0.1287 and 0.680 by Elo, 0.1271 and 0.683 by its maximum likelihood,
    0.1208 and 0.705 where abilities are heeded.
    """
    with duckdb.connect() as connection:
        rows = connection.execute(
            "SELECT first, second, verdict, annotator FROM read_parquet(?) WHERE annotator_kind = 'human' "
            "QUALIFY count(*) OVER (PARTITION BY annotator) >= 50",
            [str(shared_data / "llmfao" / "comparisons.parquet")],
        ).fetchall()
    first, second, verdict, annotator = zip(*rows, strict=True)
    outcome = [{"first": 1.0, "tie": 0.5, "second": 0.0}[word] for word in verdict]
    data = comparisons(first, second, outcome, judge=annotator)
    assert (len(data), len(data.models), len(data.judges)) == (7393, 59, 37)
    likelihood = evaluate(data, predict_from_ratings(lambda train: m_elo(train, errors="none")))
    online = evaluate(data, predict_from_ratings(lambda train: online_elo(train, shuffles=20).ratings))
    # Ten drawings of the folds differ by 0.00016 in squared error and 0.0008 in area (standard deviations).
    assert (online.mse, online.auc) == pytest.approx((0.1287, 0.680), abs=3e-3)
    assert (likelihood.mse, likelihood.auc) == pytest.approx((0.1271, 0.683), abs=3e-3)
    assert online.mse == pytest.approx(0.1287, abs=5e-4)
    assert likelihood.mse == pytest.approx(0.1271, abs=5e-4)
    heeded = evaluate(data, predict_from_abilities(lambda train: am_elo(train, errors="none")))
    assert (heeded.mse, heeded.auc) == pytest.approx((0.1208, 0.705), abs=1e-3)
    assert heeded.auc_decisive > 0.80 > likelihood.auc_decisive > online.auc_decisive > 0.76
