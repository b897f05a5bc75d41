"""Errors of ratings: the sandwich as the textbook writes it, exact in its gauge, never a zero unearned."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.choices import PairErrors
from venire.arena.errors import InputError
from venire.ratings.data import clustered
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.data.judgments import merge_orders
from venire.ratings.data.wins import win_counts
from venire.ratings.pairwise.bradley_terry import bradley_terry, bradley_terry_wins
from venire.ratings.pairwise.covariance import bradley_terry_covariance

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


def board(seed: int, size: int = 5, rows: int = 400, clusters: int = 30, hard: bool = False) -> Comparisons:
    """Weighted comparisons with ties, in a dense graph."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, size, rows)
    b = (a + 1 + rng.integers(0, size - 1, rows)) % size
    truth = np.linspace(1.0, -1.0, size)
    y = (rng.random(rows) < 1.0 / (1.0 + np.exp(truth[b] - truth[a]))).astype(float)
    if not hard:
        y[rng.random(rows) < 0.3] = 0.5
    weight = None if hard else rng.uniform(0.2, 3.0, rows)
    return comparisons(a, b, y, weight=weight, cluster=rng.integers(0, clusters, rows))


def estimate(data: Comparisons) -> Vector:
    return bradley_terry_wins(win_counts(data)).logits


def textbook(data: Comparisons, logits: Vector, ridge: float, errors: PairErrors, held: list[int]) -> Matrix:
    """Row by row, with one model left out of the design, or those that are held."""
    size, rows = len(data.models), len(data)
    design = np.zeros((rows, size))
    design[np.arange(rows), data.a] += 1.0
    design[np.arange(rows), data.b] -= 1.0
    weight = np.ones(rows) if data.weight is None else data.weight
    share = 1.0 / (1.0 + np.exp(-(design @ logits)))
    information = design.T @ ((weight * share * (1.0 - share))[:, None] * design) + ridge * np.eye(size)
    several = held if len(held) > 1 else []
    left = [code for code in range(size) if code not in (several or ([] if ridge else [0]))]
    bread = np.zeros((size, size))
    bread[np.ix_(left, left)] = np.linalg.inv(information[np.ix_(left, left)])
    scores = (weight * (data.y - share))[:, None] * design
    if errors == "cluster":
        assert data.cluster is not None
        scores = np.array([scores[data.cluster == code].sum(axis=0) for code in np.unique(data.cluster)])
    units = len(scores)
    found = bread if errors == "hessian" else bread @ (scores.T @ scores) @ bread * units / (units - 1)
    if several:
        return found
    centre = np.eye(size) - (np.arange(size) == held[0] if held else 1.0 / size)
    return np.asarray(centre @ found @ centre.T)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10_000),
    size=st.integers(2, 6),
    ridge=st.sampled_from([0.0, 0.01, 5.0]),
    errors=st.sampled_from(["cluster", "sandwich", "hessian"]),
    held=st.sampled_from([[], [0], [0, 1]]),
)
def test_it_is_the_textbook_in_every_gauge(
    seed: int, size: int, ridge: float, errors: PairErrors, held: list[int]
) -> None:
    data = board(seed, size, hard=errors == "hessian")
    logits = np.linspace(0.7, -0.7, size)
    fixed = np.isin(np.arange(size), held) if held else None
    if size == 2 and held == [0, 1]:
        return
    found = bradley_terry_covariance(data, logits, ridge=ridge, errors=errors, fixed=fixed)
    assert found.matrix == pytest.approx(textbook(data, logits, ridge, errors, held), rel=1e-9, abs=1e-12)
    assert found.reason is None
    if not held:
        assert found.matrix.sum(axis=1) == pytest.approx(0.0, abs=1e-14)


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), errors=st.sampled_from(["cluster", "sandwich"]))
def test_order_of_rows_models_and_sides_does_not_matter(seed: int, errors: PairErrors) -> None:
    data = board(seed)
    logits = estimate(data)
    found = bradley_terry_covariance(data, logits, errors=errors).matrix
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(data))
    swap = rng.random(len(data)) < 0.5
    name = rng.permutation(len(data.models))
    assert data.weight is not None
    assert data.cluster is not None
    a, b = np.where(swap, data.b, data.a)[order], np.where(swap, data.a, data.b)[order]
    y = np.where(swap, 1.0 - data.y, data.y)[order]
    again = comparisons(name[a], name[b], y, weight=data.weight[order], cluster=data.cluster[order])
    moved = np.empty_like(logits)
    moved[name] = logits
    turned = bradley_terry_covariance(again, moved, errors=errors).matrix
    assert turned[np.ix_(name, name)] == pytest.approx(found, rel=1e-10, abs=1e-15)


def test_a_row_cut_in_two_halves_of_its_weight_changes_nothing_within_its_cluster() -> None:
    data = board(3)
    logits = estimate(data)
    assert data.weight is not None
    assert data.cluster is not None
    halves = comparisons(
        *(np.tile(c, 2) for c in (data.a, data.b, data.y)),
        weight=np.tile(data.weight / 2, 2),
        cluster=np.tile(data.cluster, 2),
    )
    assert bradley_terry_covariance(halves, logits).matrix == pytest.approx(
        bradley_terry_covariance(data, logits).matrix, rel=1e-10
    )


def test_a_cluster_for_each_row_is_the_plain_sandwich() -> None:
    data = board(4)
    alone = comparisons(data.a, data.b, data.y, weight=data.weight, cluster=np.arange(len(data)))
    logits = estimate(data)
    plain = bradley_terry_covariance(data, logits, errors="sandwich")
    clustered = bradley_terry_covariance(alone, logits, errors="cluster")
    assert clustered.matrix == pytest.approx(plain.matrix, rel=1e-10)
    assert (plain.degrees, plain.clusters) == (399.0, 400)
    assert (clustered.degrees, clustered.clusters) == (399.0, 400)


def test_a_difference_has_the_same_error_in_every_gauge() -> None:
    data = board(5)
    logits = estimate(data)
    free = bradley_terry_covariance(data, logits).matrix
    held = bradley_terry_covariance(data, logits, fixed=np.array([False, False, True, False, False])).matrix
    apart = np.array([1.0, 0.0, 0.0, 0.0, -1.0])
    assert apart @ held @ apart == pytest.approx(apart @ free @ apart, rel=1e-10)
    assert held[2].tolist() == [0.0] * 5
    assert held[0, 0] == pytest.approx(free[0, 0] + free[2, 2] - 2 * free[0, 2], rel=1e-10)


def test_two_models_have_the_error_of_a_log_odds() -> None:
    data = comparisons(["a"] * 40, ["b"] * 40, [1.0] * 30 + [0.0] * 10)
    found = bradley_terry_covariance(data, np.array([1.0, -1.0]) * math.log(3) / 2, errors="hessian")
    assert 2 * found.se[0] == pytest.approx(math.sqrt(1 / 30 + 1 / 10))
    assert found.degrees == math.inf


@pytest.mark.parametrize("errors", ["cluster", "sandwich"])
def test_the_scale_of_the_weights_changes_nothing(errors: PairErrors) -> None:
    data = board(6)
    logits = estimate(data)
    assert data.weight is not None
    huge = comparisons(data.a, data.b, data.y, weight=data.weight * 1e12, cluster=data.cluster)
    assert bradley_terry_covariance(huge, logits, errors=errors).matrix == pytest.approx(
        bradley_terry_covariance(data, logits, errors=errors).matrix, rel=1e-9
    )


def test_a_chance_of_one_in_a_billion_keeps_its_digits() -> None:
    """Weight 1e9 of wins and 1 of losses a row: each residual is a share of all but 1, taken from 1."""
    gap = math.log(1e9)
    y, weight = np.array([1.0, 0.0] * 10), np.array([1e9, 1.0] * 10)
    data = comparisons(["a"] * 20, ["b"] * 20, y, weight=weight, cluster=np.arange(20))
    found = bradley_terry_covariance(data, np.array([gap, -gap]) / 2)
    residual = 1.0 / (1.0 + 1e-9)
    information = 10 * (1e9 + 1.0) * 1e-9 / (1.0 + 1e-9) ** 2
    assert 2 * found.se[0] == pytest.approx(math.sqrt(20 * residual**2 * 20 / 19) / information, rel=1e-12)


def test_a_star_of_very_unequal_arms_keeps_its_digits() -> None:
    """The hub is held inside: a constant added to all entries would drown the arm of weight 1e-6."""
    weight = np.array([1e6, 1e6, 1e-6, 1e-6])
    data = comparisons(["a", "b", "a", "c"], ["b", "a", "c", "a"], [1.0] * 4, weight=weight, cluster=[0, 1, 2, 3])
    found = bradley_terry_covariance(data, np.zeros(3), errors="hessian").matrix
    arm = np.array([-1.0, 0.0, 1.0])
    assert arm @ found @ arm == pytest.approx(4 / 2e-6, rel=1e-12)


def test_a_model_without_an_estimate_is_as_if_it_had_not_been_there() -> None:
    data = board(7)
    logits = estimate(data)
    keep = (data.a != 4) & (data.b != 4)
    assert data.weight is not None
    assert data.cluster is not None
    less = comparisons(data.a[keep], data.b[keep], data.y[keep], weight=data.weight[keep], cluster=data.cluster[keep])
    gone = np.append(logits[:4], np.nan)
    found = bradley_terry_covariance(data, gone)
    assert found.matrix[:4, :4] == pytest.approx(bradley_terry_covariance(less, logits[:4]).matrix, rel=1e-10)
    assert np.isnan(found.matrix[4]).all()
    assert np.isnan(found.matrix[:, 4]).all()


def test_many_clusters_are_summed_without_a_dense_table(monkeypatch: pytest.MonkeyPatch) -> None:
    data = board(8)
    logits = estimate(data)
    dense = bradley_terry_covariance(data, logits).matrix
    monkeypatch.setattr(clustered, "_DENSE", 10)
    assert bradley_terry_covariance(data, logits).matrix == pytest.approx(dense, rel=1e-10)


def test_a_cluster_of_weight_zero_is_no_cluster() -> None:
    data = board(9, clusters=30)
    assert data.weight is not None
    weight = np.where(data.cluster == 0, 0.0, data.weight)
    logits = estimate(data)
    found = bradley_terry_covariance(comparisons(data.a, data.b, data.y, weight=weight, cluster=data.cluster), logits)
    assert (found.clusters, found.degrees) == (29, 28.0)


def test_one_cluster_has_no_error_and_says_so() -> None:
    data = board(10, clusters=1)
    found = bradley_terry_covariance(data, estimate(data))
    assert np.isnan(found.matrix).all()
    assert found.reason == "errors cannot be told from one cluster"


def test_few_clusters_are_told() -> None:
    data = board(11, clusters=4)
    found = bradley_terry_covariance(data, estimate(data))
    assert found.reason is not None
    assert found.reason.startswith("4 clusters for 5 models")
    data = board(11, clusters=12)
    assert bradley_terry_covariance(data, estimate(data)).reason == "only 12 clusters: intervals may be too narrow"


@pytest.mark.parametrize("errors", ["cluster", "sandwich"])
def test_ties_alone_never_make_an_error_of_zero(errors: PairErrors) -> None:
    data = comparisons(["a", "b", "c"] * 5, ["b", "c", "a"] * 5, [0.5] * 15, cluster=np.arange(15))
    found = bradley_terry_covariance(data, np.zeros(3), errors=errors)
    assert np.isnan(found.matrix).all()
    assert found.reason is not None
    assert "do not scatter" in found.reason


def test_a_model_without_scatter_is_blank_and_the_others_are_not() -> None:
    data = comparisons(["a", "d"] * 6, ["b", "a"] * 6, [1.0, 0.5, 0.0, 0.5] * 3, cluster=np.arange(12))
    found = bradley_terry_covariance(data, np.zeros(3), fixed=np.array([True, False, False]))
    assert data.models == ("a", "b", "d")
    assert np.isfinite(found.se[:2]).all()
    assert found.se[1] > 0.0
    assert np.isnan(found.matrix[2]).all()
    assert np.isnan(found.matrix[:, 2]).all()


def test_outcomes_that_cancel_within_each_cluster_never_make_an_error_of_zero() -> None:
    data = comparisons(["a", "b"] * 9, ["b", "a"] * 9, [1.0] * 18, cluster=np.repeat(np.arange(9), 2))
    found = bradley_terry_covariance(data, np.zeros(2))
    assert np.isnan(found.matrix).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"errors": "hessian"}, "every outcome is 0 or 1"),
        ({"errors": "hc3"}, "give 'cluster', 'sandwich' or 'hessian'"),
        ({"ridge": -1.0}, "ridge is -1.0"),
        ({"ridge": math.nan}, "ridge is nan"),
        ({"fixed": np.array([True])}, r"fixed has shape \(1,\)"),
        ({"logits": np.zeros(2)}, r"logits has shape \(2,\)"),
    ],
)
def test_what_is_not_possible_is_refused_by_name(change: dict[str, object], words: str) -> None:
    data = board(12)
    with pytest.raises(InputError, match=words):
        bradley_terry_covariance(**({"data": data, "logits": np.zeros(5)} | change))  # type: ignore[arg-type]


def test_comparisons_without_a_cluster_are_told_what_to_ask_for() -> None:
    with pytest.raises(InputError, match="needs comparisons with a cluster"):
        bradley_terry_covariance(comparisons(["a"], ["b"], [0.5]), np.zeros(2))


def test_models_that_never_met_the_others_are_named() -> None:
    data = comparisons(["a", "b", "a", "c"], ["b", "a", "b", "d"], [1.0] * 4)
    with pytest.raises(InputError, match="c, d: never compared with the others"):
        bradley_terry_covariance(data, np.zeros(4), errors="sandwich")
    held = np.array([True, False, True, False])
    found = bradley_terry_covariance(data, np.zeros(4), errors="hessian", fixed=held).matrix
    assert np.diagonal(found).tolist() == pytest.approx([0.0, 4 / 3, 0.0, 4.0])


def test_one_instruction_feeds_many_battles_and_widens_the_errors(
    shared_data: Path, table: Callable[..., Battles]
) -> None:
    """Five judges on 80 questions: errors of independent battles would be far too small."""
    with duckdb.connect() as connection:
        rows = connection.execute(
            "SELECT first, second, verdict, judge, instruction_id, repeat FROM read_parquet(?) WHERE repeat = 1",
            [str(shared_data / "vicuna80_peers" / "judgments.parquet")],
        ).fetchall()
    found = merge_orders(table(rows))
    names = [found.models[code] for code in found.model_a], [found.models[code] for code in found.model_b]
    data = comparisons(*names, found.y, cluster=found.instruction)
    logits = estimate(data)
    clustered = bradley_terry_covariance(data, logits)
    ratio = clustered.se / bradley_terry_covariance(data, logits, errors="sandwich").se
    assert clustered.clusters == 80
    assert ratio.min() > 1.7
    assert ratio.max() < 2.4


def test_nothing_compared_has_no_error() -> None:
    nothing = comparisons(np.zeros(0, int), np.zeros(0, int), np.zeros(0), models=["a"], cluster=np.zeros(0, int))
    found = bradley_terry_covariance(nothing, np.zeros(1))
    assert np.isnan(found.matrix).all()
    assert found.clusters == 0
    nobody = bradley_terry_covariance(board(13), np.full(5, np.nan), errors="sandwich")
    assert np.isnan(nobody.matrix).all()


def test_a_tie_of_no_weight_does_not_forbid_the_errors_of_the_model() -> None:
    decided = comparisons(["a", "b", "a"], ["b", "a", "b"], [1.0, 1.0, 0.0])
    more = comparisons(["a", "b", "a", "a"], ["b", "a", "b", "b"], [1.0, 1.0, 0.0, 0.5], weight=[1.0, 1.0, 1.0, 0.0])
    found, wanted = (bradley_terry_covariance(data, np.zeros(2), errors="hessian").matrix for data in (more, decided))
    assert np.array_equal(found, wanted)


def test_an_anchor_that_met_nobody_holds_nothing() -> None:
    one = comparisons(list("abcabc"), list("bcabca"), [1.0, 0.0, 1.0, 0.5, 1.0, 0.0], models=["a", "b", "c", "z"])
    errors = [
        bradley_terry(one, ridge=5.0, anchors=anchors).se[:3] for anchors in ({"a": 1100.0}, {"a": 1100.0, "z": 1300.0})
    ]
    assert errors[0] == pytest.approx(errors[1])
    assert errors[0][0] == 0.0


def test_a_heavy_win_that_was_expected_does_not_hide_what_the_rare_losses_tell() -> None:
    # Four losses of weight 1 beside a win of 1e13.
    data = comparisons(["a"] * 5, ["b"] * 5, [1.0, 0.0, 0.0, 0.0, 0.0], weight=[1e13, 1.0, 1.0, 1.0, 1.0])
    found = bradley_terry(data, errors="sandwich")
    assert found.diagnostics["errors_reason"] is None
    score = np.array([4.0, -1.0, -1.0, -1.0, -1.0])
    assert found.se == pytest.approx(np.full(2, np.sqrt(score @ score * 5 / 4) / 4.0 / 2.0), rel=1e-6)
