"""Ratings with covariates: the maximum, its errors, and what has no maximum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.pairwise import regression
from venire.ratings.pairwise.components import SeparatedError
from venire.ratings.pairwise.covariance import Errors
from venire.ratings.pairwise.covariates import covariates, position_covariate
from venire.ratings.pairwise.regression import CovariateSeparatedError, derivatives, regression_rows, residuals

Floats = NDArray[np.float64]


def simulated(
    rows: int = 4000, models: int = 6, k: int = 3, seed: int = 0, clusters: int = 0
) -> tuple[Comparisons, Floats, Floats, Floats]:
    """Comparisons with covariates, and the truth: ratings with mean 0 and coefficients."""
    rng = np.random.default_rng(seed)
    truth, weights = rng.normal(0.0, 1.0, models), rng.normal(0.0, 0.5, k)
    truth -= truth.mean()
    a = rng.integers(0, models, rows)
    b = (a + rng.integers(1, models, rows)) % models
    x = rng.normal(0.3, 1.0, (rows, k))
    won = rng.random(rows) < 1.0 / (1.0 + np.exp(-(truth[a] - truth[b] + x @ weights)))
    cluster = rng.integers(0, clusters, rows) if clusters else None
    return comparisons(a, b, won.astype(float), cluster=cluster), x, truth, weights


NAMES = ("length", "headers", "bold")


def by_hand(data: Comparisons, x: Floats, ridge: float = 0.0) -> Floats:
    """The same maximum by another algorithm on dense rows, model 0 held at 0 where nothing else fixes the gauge."""
    size = len(data.models)
    rows = np.zeros((len(data), size + x.shape[1]))
    rows[np.arange(len(data)), data.a] += 1.0
    rows[np.arange(len(data)), data.b] -= 1.0
    rows[:, size:] = x
    weight = np.ones(len(data)) if data.weight is None else data.weight

    def loss(point: Floats) -> tuple[float, Floats]:
        z = rows @ point
        p = 1.0 / (1.0 + np.exp(-z))
        value = np.sum(weight * (np.logaddexp(0.0, z) - data.y * z)) + ridge / 2 * point[:size] @ point[:size]
        gradient = rows.T @ (weight * (p - data.y))
        gradient[:size] += ridge * point[:size]
        return float(value), gradient

    found: Floats = minimize(loss, np.zeros(rows.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-7}).x
    found[:size] -= found[:size].mean()
    return found


def test_recovers_what_was_planted() -> None:
    data, x, truth, weights = simulated(40_000)
    found = covariates(data, x, NAMES)
    assert np.abs(found.coefficients - weights).max() < 4 * found.se.max() < 0.1
    assert np.abs(found.ratings.logits - truth).max() < 4 * found.ratings.se.max() < 0.15
    assert found.log_likelihood > found.plain_log_likelihood
    assert found.ratings.diagnostics["gradient"] < 1e-12
    # Leaving the covariates out shrinks the ratings: noise that nobody explained.
    assert np.std(found.plain.logits) < np.std(found.ratings.logits)


@pytest.mark.parametrize("ridge", [0.0, 3.0])
def test_a_second_algorithm_finds_the_same_maximum(ridge: float) -> None:
    data, x, _, _ = simulated(500)
    rng = np.random.default_rng(4)
    data = replace(data, y=np.round(rng.random(500) * 4) / 4, weight=rng.random(500) * 3)
    found = covariates(data, x * [1e-3, 1.0, 1e3], NAMES, ridge=ridge)
    other = by_hand(data, x, ridge)
    assert np.abs(found.ratings.logits - other[:6]).max() < 1e-5
    assert np.abs(found.coefficients * [1e-3, 1.0, 1e3] - other[6:]).max() < 1e-5


def test_gradient_and_information_are_the_derivatives_of_the_log_likelihood() -> None:
    data, x, _, _ = simulated(300)
    rows = regression_rows(6, data.a, data.b, x, data.y, np.linspace(0.1, 2.0, 300))
    rng, step = np.random.default_rng(1), 1e-5
    point = rng.normal(0.0, 0.5, 9)
    gradient, information = derivatives(rows, point)
    for direction in np.eye(9):
        ahead, behind = point + step * direction, point - step * direction
        slope = (residuals(rows, ahead)[1] - residuals(rows, behind)[1]) / (2 * step)
        curve = (derivatives(rows, ahead)[0] - derivatives(rows, behind)[0]) / (2 * step)
        assert gradient @ direction == pytest.approx(slope, abs=1e-6)
        assert -information @ direction == pytest.approx(curve, abs=1e-6)


def test_many_rows_start_from_a_sample_and_end_at_the_same_maximum() -> None:
    data, x, _, _ = simulated(30_000)
    found = covariates(data, x, NAMES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regression, "_STRIDES", ())
        whole = covariates(data, x, NAMES)
    assert found.ratings.logits == pytest.approx(whole.ratings.logits, abs=1e-11)
    assert found.ratings.diagnostics["iterations"] < whole.ratings.diagnostics["iterations"]
    surprise = residuals(
        regression_rows(6, data.a, data.b, x, data.y), np.concatenate([found.ratings.logits, found.coefficients])
    )
    assert np.abs(surprise[0] @ x).max() < 1e-9
    assert found.ratings.diagnostics["iterations"] <= 4


@given(st.integers(0, 2**32 - 1))
def test_neither_row_order_nor_names_nor_sides_nor_halved_doubles_matter(seed: int) -> None:
    data, x, _, _ = simulated(120, models=3, seed=1, clusters=15)
    rng = np.random.default_rng(seed)
    first = covariates(data, x, NAMES)
    rows, turn, names = rng.permutation(120), rng.random(120) < 0.5, rng.permutation(3)
    place = np.argsort(names).astype(np.int32)
    a, b = place[data.a], place[data.b]
    twice = np.concatenate([rows, rows[:40]])
    weight = np.where(np.isin(twice, rows[:40]), 0.5, 1.0)
    assert data.cluster is not None
    other = Comparisons(
        models=tuple(data.models[code] for code in names),
        a=np.where(turn, b, a)[twice],
        b=np.where(turn, a, b)[twice],
        y=np.where(turn, 1.0 - data.y, data.y)[twice],
        weight=weight,
        cluster=data.cluster[twice],
        clusters=data.clusters,
    )
    second = covariates(other, np.where(turn[:, None], -x, x)[twice], NAMES)
    assert second.ratings.logits == pytest.approx(first.ratings.logits[names], abs=1e-9)
    assert second.ratings.se == pytest.approx(first.ratings.se[names], abs=1e-9)
    assert second.coefficients == pytest.approx(first.coefficients, abs=1e-9)
    assert second.se == pytest.approx(first.se, abs=1e-9)
    assert second.log_likelihood == pytest.approx(first.log_likelihood, abs=1e-9)


@pytest.mark.parametrize("kind", ["cluster", "sandwich", "hessian"])
def test_errors_are_those_of_the_formula(kind: Any) -> None:
    data, x, _, _ = simulated(400, clusters=30)
    found = covariates(data, x, NAMES, errors=kind)
    point = np.concatenate([found.ratings.logits, found.coefficients])
    rows = np.zeros((400, 9))
    rows[np.arange(400), data.a] += 1.0
    rows[np.arange(400), data.b] -= 1.0
    rows[:, 6:] = x
    p = 1.0 / (1.0 + np.exp(-rows @ point))
    # Model 0 held at 0, then centred: a gauge fixed in another way.
    free = np.delete(rows, 0, axis=1)
    inverse = np.linalg.inv((free * (p * (1 - p))[:, None]).T @ free)
    scores = free * (data.y - p)[:, None]
    if kind == "cluster":
        assert data.cluster is not None
        scores = np.array([scores[data.cluster == code].sum(axis=0) for code in range(30)])
    sandwich = inverse @ scores.T @ scores @ inverse * len(scores) / (len(scores) - 1)
    covariance = inverse if kind == "hessian" else sandwich
    centre = np.zeros((9, 8))
    centre[1:6, :5], centre[6:, 5:] = np.eye(5), np.eye(3)
    centre[:6, :5] -= 1 / 6
    expected = centre @ covariance @ centre.T
    assert found.ratings.covariance == pytest.approx(expected[:6, :6], abs=1e-8)
    assert found.covariance == pytest.approx(expected[6:, 6:], abs=1e-8)
    assert found.ratings.degrees == {"cluster": 29, "sandwich": 399, "hessian": np.inf}[kind]


def test_many_clusters_are_summed_without_a_table_of_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    data, x, _, _ = simulated(400, clusters=300)
    whole = covariates(data, x, NAMES)
    monkeypatch.setattr("venire.ratings.data.clustered._DENSE", 0)
    sparse = covariates(data, x, NAMES)
    assert sparse.ratings.se == pytest.approx(whole.ratings.se, rel=1e-9)
    assert sparse.se == pytest.approx(whole.se, rel=1e-9)


def test_position_is_a_column_of_its_own() -> None:
    rng = np.random.default_rng(3)
    swapped = rng.random(4000) < 0.5
    a, b = np.zeros(4000, dtype=int), np.ones(4000, dtype=int)
    z = 0.5 + 0.8 * np.where(swapped, -1.0, 1.0)
    y = (rng.random(4000) < 1 / (1 + np.exp(-z))).astype(float)
    found = covariates(comparisons(a, b, y), position_covariate(swapped)[:, None], ["position"])
    assert found.coefficients[0] == pytest.approx(0.8, abs=4 * found.se[0])
    assert np.diff(found.ratings.logits)[0] == pytest.approx(-0.5, abs=0.2)
    assert found.p_values[0] < 1e-6


def test_a_column_of_zeros_is_left_out_and_changes_nothing() -> None:
    data, x, _, _ = simulated(500)
    found = covariates(data, np.insert(x, 1, 0.0, axis=1), ["length", "flag", "headers", "bold"])
    plain = covariates(data, x, NAMES)
    assert np.isnan(found.coefficients[1])
    assert np.isnan(found.se[1])
    assert found.ratings.diagnostics["left_out"] == {"flag": "it is 0 in every row"}
    assert np.delete(found.coefficients, 1) == pytest.approx(plain.coefficients, abs=1e-12)
    assert found.ratings.models == found.plain.models == data.models
    nothing = covariates(data, np.zeros((500, 1)), ["flag"])
    assert nothing.ratings.logits == pytest.approx(nothing.plain.logits, abs=1e-12)
    assert nothing.kendall == pytest.approx(1.0)


def test_a_column_that_follows_from_models_or_columns_is_refused_by_name() -> None:
    data, x, _, _ = simulated(500)
    fixed = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0])
    with pytest.raises(InputError, match="covariate size: it follows from which models meet"):
        covariates(data, np.column_stack([x, fixed[data.a] - fixed[data.b]]), [*NAMES, "size"])
    with pytest.raises(InputError, match="covariate both: it is a combination of length, headers, bold"):
        covariates(data, np.column_stack([x, x[:, 0] - 2e3 * x[:, 2]]), [*NAMES, "both"])
    # A constant says that the side called A wins more often: no battle of one side alone can tell that from strength.
    with pytest.raises(InputError, match="covariate one: it follows"):
        covariates(comparisons([0, 0, 0], [1, 1, 1], [1, 0, 1]), np.ones((3, 1)), ["one"])
    assert np.isfinite(covariates(data, np.ones((500, 1)), ["one"]).coefficients[0])


def test_a_column_that_almost_follows_from_the_models_is_told_by_its_own_share() -> None:
    data, x, _, _ = simulated(3000, k=1)
    fixed = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0])
    near = fixed[data.a] - fixed[data.b] + 0.1 * np.random.default_rng(2).normal(size=3000)
    found = covariates(data, np.column_stack([x, near]), ["free", "near"], errors="hessian")
    share = found.ratings.diagnostics["own_information"]
    assert share["free"] > 0.95
    assert share["near"] == pytest.approx(0.01 / np.mean(near**2), rel=0.2)
    # The other column is as well known as it would be alone.
    alone = covariates(data, x, ["free"], errors="hessian")
    assert alone.se[0] == pytest.approx(found.se[0], rel=0.05)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_a_covariate_that_separates_is_named_and_not_returned(scale: float) -> None:
    data, x, _, _ = simulated(500)
    flag = np.where(np.arange(500) < 12, 2.0 * data.y - 1.0, 0.0)
    with pytest.raises(CovariateSeparatedError, match=r"without one exception, along \+1 flag") as caught:
        covariates(data, np.column_stack([x[:, 0], scale * flag]), ["length", "flag"])
    assert caught.value.direction == {"flag": 1.0}
    whole = np.column_stack([x[:, 0], scale * (2.0 * data.y - 1.0)])
    with pytest.raises(CovariateSeparatedError):
        covariates(data, whole, ["length", "flag"])
    with pytest.raises(CovariateSeparatedError):
        covariates(data, whole, ["length", "flag"], ridge=1.0)


def test_one_exception_makes_a_coefficient_finite_however_rare() -> None:
    data, x, _, _ = simulated(500)
    flag = np.where(np.arange(500) < 12, 2.0 * data.y - 1.0, 0.0)
    flag[0] = -flag[0]
    weight = np.ones(500)
    weight[0] = 1e-9
    found = covariates(replace(data, weight=weight), np.column_stack([x[:, 0], flag]), ["length", "flag"])
    assert 15.0 < found.coefficients[1] < 30.0


def test_models_without_a_common_estimate_are_named() -> None:
    data = comparisons(["a", "a", "c", "c"], ["b", "b", "d", "d"], [1, 0, 1, 0])
    x = np.array([[1.0], [0.5], [-0.3], [0.2]])
    with pytest.raises(SeparatedError, match="2 groups"):
        covariates(data, x, ["length"])
    assert np.isfinite(covariates(data, x, ["length"], ridge=0.1).ratings.logits).all()


def test_a_model_that_never_played_is_nan_and_the_rest_is_rated() -> None:
    data, x, _, _ = simulated(200)
    weight = np.where((data.a == 2) | (data.b == 2), 0.0, 1.0)
    found = covariates(replace(data, weight=weight), x, NAMES)
    assert np.isnan(found.ratings.logits).tolist() == [False, False, True, False, False, False]
    assert np.nansum(found.ratings.logits) == pytest.approx(0.0, abs=1e-12)
    assert list(found.ratings.diagnostics["no_estimate"]) == ["2"]
    assert found.ratings.battles[2] == 0
    assert "none" in found.ratings.summary()


def test_extremes() -> None:
    x = np.array([[1.0], [-1.0], [2.0]])
    ties = covariates(comparisons([0, 0, 1], [1, 1, 0], [0.5, 0.5, 0.5]), x, ["length"])
    assert ties.ratings.logits == pytest.approx([0.0, 0.0], abs=1e-12)
    assert np.isnan(ties.kendall)
    heavy = comparisons([0, 0], [1, 1], [1e-9, 1e-9], weight=[1e12, 1e12])
    found = covariates(heavy, np.array([[1.0], [-1.0]]), ["length"])
    assert np.diff(found.ratings.logits)[0] == pytest.approx(np.log((1 - 1e-9) / 1e-9), abs=1e-7)
    assert found.coefficients[0] == pytest.approx(0.0, abs=1e-7)
    one = covariates(comparisons([0], [1], [0.7], cluster=[0]), np.zeros((1, 1)), ["length"])
    assert one.ratings.covariance is None
    assert one.ratings.diagnostics["errors_reason"].startswith("there is one cluster only")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda d, x: covariates(d, x[:, :2], NAMES),
            r"x has shape \(60, 2\); give 60 rows and one column for each of 3",
        ),
        (lambda d, x: covariates(d, x, ["a", "a", "b"]), "a covariate is listed twice"),
        (lambda d, x: covariates(d, np.where(x == x[7, 1], np.nan, x), NAMES), "covariate headers, row 7: nan"),
        (lambda d, x: covariates(d, x, NAMES, ridge=-1.0), "ridge is -1.0"),
        (lambda d, x: covariates(d, x, NAMES, errors="robust"), "errors is 'robust'; .*here are: cluster"),
        (lambda d, x: covariates(d, x, NAMES, errors="cluster"), "the comparisons name no cluster"),
        (lambda d, x: covariates(replace(d, y=d.y * 0.5), x, NAMES, errors="hessian"), "outcomes 0 and 1 alone"),
        (lambda d, x: covariates(replace(d, weight=np.zeros(60)), x, NAMES), "no comparison with a weight above 0"),
    ],
)
def test_bad_input_is_named(call: Any, message: str) -> None:
    data, x, _, _ = simulated(60)
    with pytest.raises(InputError, match=message):
        call(data, x)


def swayed(rng: np.random.Generator, clusters: int) -> tuple[Comparisons, Floats]:
    """Twelve rows a cluster that share most of a covariate, and a push that no covariate explains."""
    cluster = np.repeat(np.arange(clusters), 12)
    size, truth = len(cluster), np.array([-0.6, -0.2, 0.2, 0.6])
    a = rng.integers(0, 4, size)
    b = (a + rng.integers(1, 4, size)) % 4
    x = rng.normal(0.0, 1.0, clusters)[cluster] + rng.normal(0.0, 0.3, size)
    z = truth[a] - truth[b] + 0.5 * x + rng.normal(0.0, 0.8, clusters)[cluster]
    y = (rng.random(size) < 1.0 / (1.0 + np.exp(-z))).astype(float)
    return comparisons(a, b, y, cluster=cluster), x[:, None]


@pytest.mark.slow
@pytest.mark.parametrize("clusters", [20, 60])
def test_clustered_intervals_cover_a_coefficient_where_rows_of_an_instruction_sway_together(clusters: int) -> None:
    """Share of 95 % intervals that hold the limit, seen in 2,000 runs of 20, 60 and 200 instructions: the coefficient
    0.928, 0.949, 0.947 by cluster and 0.818, 0.839, 0.836 by row; ratings, of which no instruction favours one, 0.95
    either way. Here 400 runs, which scatter by 0.011."""
    rng = np.random.default_rng(clusters)
    # The push flattens every slope alike: what estimates tend to is found from many rows.
    limit = covariates(*swayed(np.random.default_rng(1), 100_000), ["x"], errors="none")
    kinds: tuple[Errors, ...] = ("cluster", "sandwich")
    inside = np.zeros((400, 2, 2))
    for run in range(400):
        data, x = swayed(rng, clusters)
        for column, kind in enumerate(kinds):
            found = covariates(data, x, ["x"], errors=kind)
            lo, hi = found.interval()
            low, high = found.ratings.interval()
            inside[run, column] = (
                lo[0] <= limit.coefficients[0] <= hi[0],
                np.mean((low <= limit.ratings.elo) & (limit.ratings.elo <= high)),
            )
    by_cluster, by_row = inside.mean(axis=0)
    assert by_cluster == pytest.approx([0.928 if clusters == 20 else 0.948, 0.95], abs=0.03)
    assert by_row[0] < 0.88


def test_a_tie_of_no_weight_does_not_forbid_the_errors_of_the_model() -> None:
    a, b, y = list("abcabcabca"), list("bcabcabcab"), [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.5]
    x = np.array([[0.1], [0.5], [-0.3], [-0.2], [0.7], [0.2], [-0.6], [0.4], [-0.1], [0.3]])
    found = covariates(comparisons(a, b, y, weight=[1.0] * 9 + [0.0]), x, ["length"], errors="hessian")
    decided = comparisons(a[:9], b[:9], y[:9])
    assert found.se == pytest.approx(covariates(decided, x[:9], ["length"], errors="hessian").se)


@pytest.mark.parametrize("kind", ["cluster", "sandwich"])
def test_outcomes_that_do_not_scatter_have_no_error_rather_than_none_at_all(kind: Errors) -> None:
    data = comparisons(list("abcabc"), list("bcabca"), [0.5] * 6, cluster=list(range(6)))
    x = np.array([[0.1], [0.5], [-0.3], [-0.2], [0.7], [0.2]])
    found = covariates(data, x, ["length"], errors=kind)
    assert np.isnan(found.se).all()
    assert np.isnan(found.ratings.se).all()
    assert np.isnan(found.p_values).all()
    assert found.ratings.diagnostics["errors_reason"] == (
        "outcomes do not scatter between units, so that no error can be told: a, b, c, length"
    )
