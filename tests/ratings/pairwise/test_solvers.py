"""Solvers: each form of the likelihood and each way to a step ends at the same maximum, or says that it did not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_expit

from venire.arena.scale import POINTS_PER_LOGIT
from venire.ratings.data.wins import WinCounts, count_matrix
from venire.ratings.pairwise import solvers
from venire.ratings.pairwise.solvers import DensePairs, NotConvergedError, SparsePairs, climb, curve_of

FORMS = pytest.mark.parametrize("form", ["dense", "blocks", "far", "sparse"])


def likelihood(counts: WinCounts, logits: NDArray[np.float64]) -> float:
    gap = logits[counts.first] - logits[counts.second]
    return float(counts.won @ log_expit(gap) + counts.lost @ log_expit(-gap))


def board(size: int, seed: int, share: float = 1.0) -> WinCounts:
    """Wins both ways between neighbours in a ring and between a share of the other pairs."""
    rng = np.random.default_rng(seed)
    wins = rng.gamma(1.0, 2.0, (size, size))
    met = np.triu(rng.random((size, size)) < share, 1)
    met |= np.eye(size, k=1, dtype=bool)
    met[0, -1] = True
    return count_matrix(np.where(met | met.T, wins, 0.0) * (1 - np.eye(size)), [str(code) for code in range(size)])


def ladder(size: int, reach: int, gap: float) -> tuple[WinCounts, NDArray[np.float64]]:
    """Exact expected counts of neighbours on a ladder, whose maximum is the ladder itself."""
    steps = np.repeat(np.arange(1, reach + 1), size)
    first = np.tile(np.arange(size), reach)
    first, steps = first[first + steps < size], steps[first + steps < size]
    order = np.lexsort((steps, first))
    first, steps = first[order], steps[order]
    behind = 200.0 / (1.0 + np.exp(gap * steps))
    models = tuple(str(code) for code in range(size))
    truth = gap * ((size - 1) / 2 - np.arange(size))
    return WinCounts(models, first, first + steps, behind * np.exp(gap * steps), behind), truth


def curve(form: str, counts: WinCounts, patch: pytest.MonkeyPatch) -> DensePairs | SparsePairs:
    if form == "blocks":
        patch.setattr(solvers, "_BLOCK", 1)
    if form == "far":
        patch.setattr(solvers, "_SPAN", -1.0)
    return SparsePairs(counts) if form == "sparse" else DensePairs(counts)


@FORMS
@settings(max_examples=25)
@given(size=st.integers(2, 7), seed=st.integers(0, 2**32 - 1))
def test_gradient_and_information_agree_with_finite_differences(form: str, size: int, seed: int) -> None:
    counts, step = board(size, seed, 0.5), 1e-5
    at = np.random.default_rng(seed).normal(0, 2, size)
    with pytest.MonkeyPatch.context() as patch:
        local = curve(form, counts, patch).at(at)
        coupling = local.coupling if isinstance(local.coupling, np.ndarray) else local.coupling.toarray()
        information = np.diag(local.diagonal) - coupling
        for place, offset in enumerate(np.eye(size) * step):
            slope = (likelihood(counts, at + offset) - likelihood(counts, at - offset)) / (2 * step)
            assert local.gradient[place] == pytest.approx(slope, abs=1e-5)
            ahead = curve(form, counts, patch).at(at + offset).gradient
            bend = (ahead - curve(form, counts, patch).at(at - offset).gradient) / (2 * step)
            assert information[:, place] == pytest.approx(-bend, abs=1e-5)
    assert np.all(local.turnover >= np.abs(local.gradient))


@pytest.mark.parametrize("ridge", [0.0, 0.7])
def test_a_second_algorithm_finds_the_same_maximum(ridge: float) -> None:
    counts = board(6, 4)
    best = minimize(lambda at: 0.5 * ridge * at @ at - likelihood(counts, at), np.zeros(6), options={"gtol": 1e-8})
    assert climb(DensePairs(counts), np.zeros(6), ridge=ridge).logits == pytest.approx(best.x - best.x.mean(), abs=1e-6)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("share", [1.0, 0.02])
def test_all_ways_to_a_step_end_at_the_same_ratings(
    ridge: float, held: bool, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts, size = board(260, 8, share), 260
    fixed = np.arange(size) % 40 == 3 if held else None
    start = np.where(np.arange(size) % 40 == 3, 0.4, 0.0) if held else np.zeros(size)
    found = []
    for form in (DensePairs, SparsePairs):
        for products in (60, 0):
            monkeypatch.setattr(solvers, "_PRODUCTS", products)
            found.append(climb(form(counts), start, ridge=ridge, fixed=fixed).logits)
    for logits in found[1:]:
        assert logits == pytest.approx(found[0], abs=1e-9)
    if held:
        assert np.all(found[0][fixed] == 0.4)
    else:
        assert abs(found[0].mean()) < 1e-12


@pytest.mark.parametrize(
    ("size", "reach", "gap"),
    [(100, 1, 0.7), (300, 3, 0.7), (1000, 10, 0.7), (1000, 1, 2.0), (100, 1, 7.0), (20_000, 1, 0.05)],
)
def test_ladders_are_exact_to_a_millionth_of_a_point(size: int, reach: int, gap: float) -> None:
    """Optimisers that stop early are wrong by thousands of points where models meet their neighbours only."""
    counts, truth = ladder(size, reach, gap)
    found = climb(curve_of(counts), np.zeros(size))
    assert np.abs(found.logits - truth).max() * POINTS_PER_LOGIT < 1e-6
    assert found.steps <= (10 if gap < 7 else 15)


def test_a_list_of_pairs_is_kept_where_few_of_many_met() -> None:
    assert isinstance(curve_of(ladder(300, 3, 0.7)[0]), SparsePairs)
    assert isinstance(curve_of(ladder(100, 1, 0.7)[0]), DensePairs)
    assert isinstance(curve_of(board(250, 1)), DensePairs)


def test_clusters_that_hardly_meet_are_placed_as_far_as_rounding_lets() -> None:
    """Two pairs of models, and one battle in 1e9 between them: rounding is large beside what joins them."""
    wins = np.zeros((4, 4))
    wins[0, 1], wins[1, 0], wins[2, 3], wins[3, 2] = 0.6, 0.4, 0.5, 0.5
    wins[0, 2], wins[2, 0] = 3e-9, 1e-9
    found = climb(DensePairs(count_matrix(wins, list("abcd"))), np.zeros(4)).logits
    assert found[0] - found[1] == pytest.approx(math.log(1.5), abs=1e-9)
    assert found[0] - found[2] == pytest.approx(math.log(3), abs=1e-5)


@pytest.mark.parametrize("form", [DensePairs, SparsePairs])
def test_a_search_that_stops_short_says_so(
    form: type[DensePairs] | type[SparsePairs], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = count_matrix([[0.0, 30.0], [10.0, 0.0]], ["a", "b"])
    beyond = form(count_matrix([[0.0, 1e300], [1e-300, 0.0]], ["a", "b"]))
    with pytest.raises(NotConvergedError):
        climb(beyond, np.zeros(2))
    monkeypatch.setattr(solvers, "_STEPS", 2)
    with pytest.raises(NotConvergedError, match="after 2 steps"):
        climb(form(counts), np.zeros(2))


@pytest.mark.parametrize("form", [DensePairs, SparsePairs])
def test_a_start_far_from_the_maximum_does_not_run_away(form: type[DensePairs] | type[SparsePairs]) -> None:
    """There the curve is all but flat, and a whole step would leap to the other side and further."""
    found = climb(form(count_matrix([[0.0, 1.0], [1.0, 0.0]], ["a", "b"])), np.array([8.0, -8.0]))
    assert found.logits == pytest.approx([0.0, 0.0], abs=1e-12)
    assert found.steps < 60


@pytest.mark.parametrize("held", [None, 1])
def test_a_step_solves_its_system_and_leaves_the_tables_as_they_were(held: int | None) -> None:
    coupling = np.array([[0.0, 2.0, 1.0], [2.0, 0.0, 0.5], [1.0, 0.5, 0.0]])
    diagonal, gradient = coupling.sum(axis=1) + (held is None), np.array([1.0, -3.0, 2.0])
    before = coupling.copy(), gradient.copy()
    step = solvers._factor(diagonal, coupling, gradient, held)
    assert diagonal * step - coupling @ step == pytest.approx(gradient, abs=1e-14)
    assert np.array_equal(coupling, before[0])
    assert np.array_equal(gradient, before[1])
    assert held is None or step[held] == 0.0
    with pytest.raises(NotConvergedError):
        solvers._factor(np.full(3, 0.1), coupling, gradient, None)
