"""Replicates are refitted to their own maximum, or named as having none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import log_expit

from venire.arena.errors import InputError
from venire.ratings.inference import refitting
from venire.ratings.inference.refitting import Refits, refits
from venire.ratings.pairwise.bradley_terry import bradley_terry_wins
from venire.ratings.pairwise.components import strong_components

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


def matrix(system: Refits, weights: Vector) -> Matrix:
    size, pairs = len(system.start), len(system.high)
    wins = np.zeros((size, size))
    wins[system.high, system.low], wins[system.low, system.high] = weights[:pairs], weights[pairs:]
    return wins


def plain(wins: Matrix) -> Vector:
    """The ratings of one table, fitted by itself."""
    return bradley_terry_wins(wins, tuple("abcdefgh"[: len(wins)])).logits


def ready(weights: Vector, size: int, *, ridge: float = 0.0, held: tuple[int, ...] = ()) -> Refits:
    """A complete graph of `size` models around the estimate of `weights` (2 * pairs,)."""
    high, low = np.triu_indices(size, 1)
    free = ~np.isin(np.arange(size), held)
    start = np.linspace(0.4, -0.4, size)
    return refits(high, low, weights, weights, start, ridge=ridge, free=free, models=tuple("abcdefgh"[:size]))


@given(seed=st.integers(0, 100_000), size=st.integers(2, 6), mean=st.sampled_from([0.4, 2.0, 50.0]))
def test_every_column_is_the_plain_refit_or_what_a_vanishing_ridge_tends_to(seed: int, size: int, mean: float) -> None:
    rng = np.random.default_rng(seed)
    system = ready(np.full(size * (size - 1), 3.0), size)
    weights = rng.poisson(mean, (size * (size - 1), 10)).astype(float)
    found = system.solve(weights)
    for column in range(10):
        wins = matrix(system, weights[:, column])
        if len(strong_components(wins)) == 1:
            assert found[column] - found[column].mean() == pytest.approx(plain(wins), abs=1e-6)
        else:
            # A ridge that vanishes moves ratings without an estimate away from 0 for ever, each to its side.
            near, far = (
                bradley_terry_wins(wins, tuple("abcdefgh"[:size]), ridge=ridge).logits for ridge in (1e-5, 1e-8)
            )
            assert not np.isfinite(found[column]).any()
            assert ((far - near)[found[column] == np.inf] > 0.5).all()
            assert ((far - near)[found[column] == -np.inf] < -0.5).all()


def test_ratings_about_a_held_model_are_open_only_where_wins_do_not_bound_them() -> None:
    """a only beats b, d only loses to c, e did not play; b and c are joined with each other."""
    high, low = np.triu_indices(5, 1)
    weights = np.zeros(20)
    at = {(one, other): row for row, (one, other) in enumerate(zip(high.tolist(), low.tolist(), strict=True))}
    weights[[at[0, 1], at[2, 3], at[1, 2], 10 + at[1, 2]]] = 3.0
    free = np.arange(5) != 1
    start = np.linspace(0.4, -0.4, 5)
    system = refits(high, low, np.ones(20), np.ones(20), start, ridge=0.0, free=free, models=tuple("abcde"))
    (found,) = system.solve(weights[:, None])
    assert found.tolist() == pytest.approx([np.inf, start[1], start[1], -np.inf, np.nan], abs=1e-6, nan_ok=True)


@settings(max_examples=20)
@given(seed=st.integers(0, 100_000), ridge=st.sampled_from([0.0, 0.3]), far=st.booleans())
def test_the_gradient_is_that_of_the_likelihood(seed: int, ridge: float, far: bool) -> None:
    rng = np.random.default_rng(seed)
    system = ready(np.full(12, 3.0), 4, ridge=ridge)
    weights = rng.uniform(0.5, 3.0, (12, 1))
    at = rng.normal(size=(4, 1)) + (np.array([[400.0], [0.0], [0.0], [0.0]]) if far else 0.0)

    def objective(logits: Matrix) -> float:
        gap = logits[system.high] - logits[system.low]
        pull = ridge / 2 * float(np.sum(logits**2))
        return float(np.sum(weights[:6] * log_expit(gap) + weights[6:] * log_expit(-gap))) - pull

    for place, offset in enumerate(np.eye(4)[:, :, None] * 1e-4):
        slope = (objective(at + offset) - objective(at - offset)) / 2e-4
        assert system.gradient(weights, at)[place, 0] == pytest.approx(slope, abs=1e-5)


def test_a_column_is_the_same_whatever_stands_beside_it() -> None:
    rng = np.random.default_rng(3)
    system = ready(np.full(12, 20.0), 4)
    weights = rng.poisson(20.0, (12, 30)).astype(float)
    beside = weights.copy()
    beside[:, 1:] = rng.poisson(1.0, (12, 29))
    assert np.array_equal(system.solve(weights)[0], system.solve(beside)[0])


@pytest.mark.parametrize("held", [(0,), (0, 3)])
def test_held_models_stay_and_the_others_find_their_place(held: tuple[int, ...]) -> None:
    rng = np.random.default_rng(4)
    system = ready(np.full(12, 20.0), 4, held=held)
    weights = rng.poisson(20.0, (12, 10)).astype(float)
    weights[:, 9] *= 50.0 * rng.random(12)
    found = system.solve(weights)
    assert np.array_equal(found[:, held], np.tile(system.start[list(held)], (10, 1)))
    gradient = system.gradient(weights, found.T)[system.free]
    assert np.abs(gradient).max() < 1e-4
    assert np.abs(gradient / weights.sum(axis=0)).max() < 1e-7


def test_a_ridge_gives_every_column_an_estimate() -> None:
    system = ready(np.full(6, 3.0), 3, ridge=0.5)
    weights = np.array([[9.0, 9.0, 0.0, 0.0, 0.0, 0.0], [0.0] * 6, [5.0, 1.0, 2.0, 2.0, 3.0, 1.0]]).T
    found = system.solve(weights)
    assert np.isfinite(found).all()
    assert found[1] == pytest.approx([0.0, 0.0, 0.0], abs=1e-6)
    assert np.abs(system.gradient(weights, found.T)).max() < 1e-6


def test_steps_that_do_not_shrink_are_left_to_one_refit_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shared information is that of other shares altogether: its steps would run away."""
    system = ready(np.full(6, 3.0), 3)
    weights = np.array([[1e6, 1e6, 1e6, 1.0, 1.0, 1.0], [3.0] * 6]).T
    called: list[int] = []
    newton = Refits._newton
    monkeypatch.setattr(Refits, "_newton", lambda self, column: called.append(1) or newton(self, column))
    found = system.solve(weights[:, [0, 1, 0]])
    assert found[0] == pytest.approx(plain(matrix(system, weights[:, 0])), abs=1e-6)
    assert found[2].tolist() == found[0].tolist()
    assert called == [1], "an equal draw is not refitted again"


def test_a_refit_that_stops_short_is_no_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    system = ready(np.full(6, 3.0), 3)
    weights = np.array([[1e6, 1e6, 1e6, 1.0, 1.0, 1.0], [3.0] * 6]).T
    monkeypatch.setattr(refitting, "_NEWTON_STEPS", 2)
    found = system.solve(weights)
    assert np.isnan(found).all(axis=1).tolist() == [True, False]


def test_a_graph_that_still_hangs_together_is_only_looked_at_where_the_witness_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[int] = []
    components = refitting.connected_components
    monkeypatch.setattr(
        refitting, "connected_components", lambda *graph, **kind: looks.append(1) or components(*graph, **kind)
    )
    chances = np.array([50.0, 1.0, 50.0, 50.0, 1.0, 50.0])
    system = ready(chances, 3)
    assert sorted(system.witness.tolist()) == [0, 2, 3, 5]
    weights = np.array([[9, 0, 9, 9, 0, 9], [0, 9, 9, 9, 9, 9], [0, 0, 9, 9, 9, 9]], dtype=float).T
    found = system.solve(weights)
    assert len(looks) == 2
    assert np.isfinite(found).any(axis=1).tolist() == [True, True, False]


def test_a_table_without_an_estimate_is_refused() -> None:
    with pytest.raises(InputError, match="no finite estimate"):
        ready(np.array([3.0, 3.0, 3.0, 0.0, 0.0, 3.0]), 3)
    # The first never wins: holding another does not help it.
    with pytest.raises(InputError, match="no finite estimate"):
        ready(np.array([0.0, 0.0, 3.0, 3.0, 3.0, 3.0]), 3, held=(1,))


def pair_at(gap: float) -> Refits:
    """Two models with a win each, as if their estimate were `gap` logits to either side."""
    free, weights = np.ones(2, dtype=np.bool_), np.array([1.0, 1.0])
    start = np.array([gap, -gap])
    return refits(np.array([0]), np.array([1]), weights, weights, start, ridge=0.0, free=free, models=("a", "b"))


def test_ratings_hundreds_of_logits_apart_do_not_overflow() -> None:
    at = np.array([[800.0], [-800.0]])
    assert pair_at(1.0).gradient(np.ones((2, 1)), at)[:, 0].tolist() == pytest.approx([-1.0, 1.0])


@pytest.mark.parametrize("gap", [2.0, 4.0, 8.0])
def test_a_start_far_from_the_maximum_does_not_run_away(gap: float) -> None:
    """Where the curve is all but flat, a whole step of Newton's leads thousands of logits too far."""
    assert pair_at(gap).solve(np.ones((2, 1)))[0] == pytest.approx([0.0, 0.0], abs=1e-9)
