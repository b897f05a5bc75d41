"""Ties as an outcome: the maximum of the written likelihoods, their information, and refusals where there is none."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.pairwise.bradley_terry import bradley_terry
from venire.ratings.pairwise.components import SeparatedError
from venire.ratings.pairwise.ties import NoTieParameterError, TieRatings, davidson, rao_kupper

Method = Callable[..., TieRatings]
METHODS = pytest.mark.parametrize("method", [rao_kupper, davidson])


def shares(method: Method, gap: Any, tie: float) -> tuple[Any, Any, Any]:
    """Win, tie and loss as the papers write them, from worths."""
    first, second = np.exp(gap / 2), np.exp(-gap / 2)
    if method is rao_kupper:
        win, loss = first / (first + tie * second), second / (second + tie * first)
        return win, 1 - win - loss, loss
    total = first + second + tie * np.sqrt(first * second)
    return first / total, tie * np.sqrt(first * second) / total, second / total


def likelihood(method: Method, data: Comparisons, logits: NDArray[np.float64], tie: float) -> float:
    win, level, loss = shares(method, logits[data.a] - logits[data.b], tie)
    outcome = np.where(data.y == 1.0, win, np.where(data.y == 0.5, level, loss))
    weight = np.ones(len(data)) if data.weight is None else data.weight
    return float(weight @ np.log(outcome))


def drawn(method: Method, truth: NDArray[np.float64], tie: float, rows: int, seed: int) -> Comparisons:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, len(truth), rows)
    b = (a + rng.integers(1, len(truth), rows)) % len(truth)
    win, level, _ = shares(method, truth[a] - truth[b], tie)
    chance = rng.random(rows)
    y = np.where(chance < win, 1.0, np.where(chance < win + level, 0.5, 0.0))
    return comparisons(a, b, y, models=[f"m{code}" for code in range(len(truth))])


@METHODS
def test_truth_is_recovered_within_four_standard_errors(method: Method) -> None:
    truth = np.linspace(1.0, -1.0, 6)
    found = method(drawn(method, truth, 1.6, 6000, seed=3))
    assert np.all(np.abs(found.ratings.logits - truth) < 4 * found.ratings.se)
    assert abs(found.tie - 1.6) < 4 * found.tie_se
    assert found.ratings.se.max() < 0.06
    assert found.ratings.diagnostics["gradient"] < 1e-12


@METHODS
@pytest.mark.parametrize("options", [{}, {"ridge": 3.0}, {"anchors": {"m0": 1300.0, "m3": 900.0}}])
def test_a_second_algorithm_finds_the_same_maximum(method: Method, options: dict[str, Any]) -> None:
    data = drawn(method, np.array([0.9, 0.2, 0.0, -1.1]), 1.4, 300, seed=5)
    found = method(data, **options)
    held = {0: found.ratings.logits[0], 3: found.ratings.logits[3]} if "anchors" in options else {0: 0.0}
    free = [code for code in range(4) if code not in held] if "ridge" not in options else list(range(4))

    def place(values: NDArray[np.float64]) -> NDArray[np.float64]:
        logits = np.zeros(4)
        for code, value in held.items():
            logits[code] = value
        logits[free] = values[:-1]
        return logits

    def loss(values: NDArray[np.float64]) -> float:
        logits = place(values)
        tie = math.exp(values[-1]) + (1.0 if method is rao_kupper else 0.0)
        return 0.5 * options.get("ridge", 0.0) * float(logits @ logits) - likelihood(method, data, logits, tie)

    best = minimize(loss, np.zeros(len(free) + 1), method="BFGS", options={"gtol": 1e-7})
    logits = place(best.x)
    if not options:
        logits -= logits.mean()
    assert found.ratings.logits == pytest.approx(logits, abs=1e-5)
    assert found.log_likelihood == pytest.approx(likelihood(method, data, logits, found.tie), abs=1e-5)
    assert found.tie == pytest.approx(math.exp(best.x[-1]) + (method is rao_kupper), abs=1e-5)


@METHODS
def test_errors_are_those_of_the_second_derivatives(method: Method) -> None:
    data = drawn(method, np.array([0.7, 0.0, -0.9]), 1.5, 400, seed=11)
    found = method(data)
    at = np.append(found.ratings.logits[:2] - found.ratings.logits[2], found.tie)
    step = 1e-4

    def value(point: NDArray[np.float64]) -> float:
        return likelihood(method, data, np.append(point[:2], 0.0), point[2])

    corner = [
        [value(at + step * (a * i + b * j)) * a * b for a in (1, -1) for b in (1, -1)]
        for i in np.eye(3)
        for j in np.eye(3)
    ]
    spread = np.linalg.inv(-np.array(corner).sum(axis=1).reshape(3, 3) / (4 * step**2))
    centre = np.array([[2, -1], [-1, 2], [-1, -1]]) / 3
    assert found.ratings.covariance == pytest.approx(centre @ spread[:2, :2] @ centre.T, rel=1e-4, abs=1e-8)
    assert found.tie_se == pytest.approx(math.sqrt(spread[2, 2]), rel=1e-4)
    assert found.ratings.errors == "hessian"


@METHODS
def test_one_anchor_shifts_and_has_no_error(method: Method) -> None:
    data = drawn(method, np.array([0.7, 0.0, -0.9]), 1.5, 400, seed=11)
    free, anchored = method(data), method(data, anchors={"m1": 1500.0})
    assert np.diff(anchored.ratings.logits) == pytest.approx(np.diff(free.ratings.logits))
    assert (anchored.ratings.elo[1], anchored.ratings.se[1]) == (pytest.approx(1500.0), 0.0)
    assert anchored.ratings.covariance is not None
    assert free.ratings.covariance is not None
    for covariance in (free.ratings.covariance, anchored.ratings.covariance):
        gap = np.array([1.0, -1.0, 0.0])
        assert gap @ covariance @ gap == pytest.approx(gap @ free.ratings.covariance @ gap)


@METHODS
def test_anchors_bound_the_tie_parameter_where_wins_contradict_nothing(method: Method) -> None:
    data = comparisons(["a"] * 5, ["b"] * 5, [1, 1, 1, 0.5, 0.5])
    found = method(data, anchors={"a": 1050.0, "b": 1000.0})
    around = [found.tie + step for step in (-0.01, 0.0, 0.01)]
    below, here, above = (likelihood(method, data, found.ratings.logits, tie) for tie in around)
    assert here > max(below, above)
    assert 2.0 * here - below - above == pytest.approx((0.01 / found.tie_se) ** 2, rel=0.01)


@METHODS
def test_sides_orders_and_doubled_rows_do_not_matter(method: Method) -> None:
    data = drawn(method, np.array([0.7, 0.0, -0.9]), 1.5, 200, seed=2)
    wanted = method(data)
    order = np.random.default_rng(1).permutation(200)
    others = [
        comparisons(data.b, data.a, 1 - data.y, models=data.models),
        comparisons(data.a[order], data.b[order], data.y[order], models=data.models),
        comparisons(*(np.tile(side, 2) for side in (data.a, data.b, data.y)), models=data.models, weight=[0.5] * 400),
    ]
    for other in others:
        found = method(other)
        assert found.ratings.logits == pytest.approx(wanted.ratings.logits, abs=1e-10)
        assert (found.tie, found.tie_se) == (pytest.approx(wanted.tie), pytest.approx(wanted.tie_se))


@METHODS
def test_without_ties_it_is_bradley_terry(method: Method) -> None:
    data = comparisons(list("abca"), list("bcac"), [1.0, 1.0, 1.0, 0.0], models=["a", "b", "c", "nobody"])
    found = method(data)
    plain = bradley_terry(data, errors="hessian")
    assert found.ratings.logits[:3] == pytest.approx(plain.logits[:3])
    assert found.ratings.se[:3] == pytest.approx(plain.se[:3])
    assert found.ratings.errors == "hessian"
    assert (found.tie, found.ties) == (1.0 if method is rao_kupper else 0.0, 0.0)
    assert math.isnan(found.tie_se)


@METHODS
def test_a_model_that_never_played_is_left_out(method: Method) -> None:
    rows = ([0, 2, 3, 0, 2], [2, 3, 0, 2, 0], [1.0, 1.0, 1.0, 0.5, 1.0])
    found = method(comparisons(*rows, models=list("axbc"))).ratings
    assert np.isnan(found.logits).tolist() == [False, True, False, False]
    assert np.isnan(found.se).tolist() == [False, True, False, False]
    assert abs(np.nansum(found.logits)) < 1e-12


@METHODS
def test_refusals(method: Method) -> None:
    with pytest.raises(InputError, match=r"y, row 1: 0.75 is not possible: with ties"):
        method(comparisons(["a", "b"], ["b", "a"], [1.0, 0.75]))
    with pytest.raises(SeparatedError):
        method(comparisons(["a", "b"], ["b", "c"], [0.5, 1.0]))
    with pytest.raises(NoTieParameterError):
        method(comparisons(["a", "b"], ["b", "c"], [0.5, 0.5]))
    with pytest.raises(NoTieParameterError):
        method(comparisons(list("abc"), list("bca"), [1.0, 0.5, 0.5]))
    ridged = method(comparisons(list("abc"), list("bca"), [1.0, 0.5, 0.5]), ridge=0.1)
    assert math.isfinite(ridged.tie_se)


@METHODS
@given(outcomes=st.lists(st.sampled_from([-1, 0, 1, 2]), min_size=6, max_size=6))
def test_a_finite_maximum_is_found_exactly_when_there_is_one(method: Method, outcomes: list[int]) -> None:
    """Four models, at most one comparison a pair: a linear programme looks for a way to run off."""
    pairs = [(a, b) for a in range(4) for b in range(a)]
    rows = [(a, b, outcome) for (a, b), outcome in zip(pairs, outcomes, strict=True) if outcome < 2]
    if not any(outcome == 0 for *_, outcome in rows):
        return
    bounds: list[NDArray[np.float64]] = []
    for first, second, result in rows:
        gap, tie = np.zeros(5), np.eye(5)[4]
        gap[first], gap[second] = 1.0, -1.0
        bounds += [-gap * result, tie - gap * result] if result else [gap - tie, -gap - tie]
    way = linprog(np.sum(bounds, axis=0), A_ub=bounds, b_ub=np.zeros(len(bounds)), bounds=[(-1, 1)] * 5)
    a, b, outcome = np.array(rows).T
    data = comparisons(a, b, 0.5 + 0.5 * outcome, models=list("abcd"))
    half = bradley_terry(data, ridge=1.0)
    if "no_estimate" in half.diagnostics:
        return
    if way.fun > -1e-9 and half.diagnostics["components"] == 1:
        assert math.isfinite(method(data).tie)
    else:
        with pytest.raises((SeparatedError, NoTieParameterError)):
            method(data)


@METHODS
@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say(method: Method) -> None:
    """1,000 tables of 500 battles of 5 models; seen: 0.944 and 0.946 of ratings, 0.940 and 0.941 of tie parameters."""
    truth = np.array([0.9, 0.4, 0.0, -0.5, -0.8])
    held, tie_held = 0, 0
    for seed in range(1000):
        found = method(drawn(method, truth, 1.5, 500, seed=seed))
        held += int(np.count_nonzero(np.abs(found.ratings.logits - truth) < 1.96 * found.ratings.se))
        tie_held += abs(found.tie - 1.5) < 1.96 * found.tie_se
    assert 0.935 < held / 5000 < 0.965
    assert 0.925 < tie_held / 1000 < 0.975
