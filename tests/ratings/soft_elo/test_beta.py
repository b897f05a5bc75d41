"""Beta is the optimum of its likelihood, and where there is none it says so."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_expit

from venire.arena.errors import InputError
from venire.ratings.soft_elo.beta import beta_likelihood, fit_beta, maximise_beta, score_grid


def simulated(rows: int, beta: float, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    score = np.round(rng.normal(0.0, 2.0, rows) * 6) / 6
    return score, (rng.random(rows) < expit(beta * score)).astype(float)


def by_rows(score: Any, human: Any) -> float:
    """The way of the method's authors: a bounded search that visits every row."""
    found = minimize_scalar(
        lambda beta: -np.sum(human * log_expit(beta * score) + (1 - human) * log_expit(-beta * score)),
        bounds=(1e-3, 50.0),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return float(found.x)


def test_recorded_battles_give_the_figures_of_their_description(arena_sample: dict[str, Any]) -> None:
    found = fit_beta(arena_sample["score"], arena_sample["human"])
    assert found.beta == pytest.approx(0.652204, abs=1e-6)
    assert found.log_likelihood == pytest.approx(-301.17377, abs=1e-5)
    assert (found.n_fit, found.warnings) == (639, ())


def test_ties_as_half_a_win_shrink_beta(arena_sample: dict[str, Any]) -> None:
    found = fit_beta(arena_sample["score"], arena_sample["human"], ties="half")
    assert (found.beta, found.n_fit) == (pytest.approx(0.384217, abs=1e-6), 1000)


@pytest.mark.parametrize("truth", [0.05, 0.6, 3.0])
def test_a_planted_beta_is_found_within_four_of_its_errors(truth: float) -> None:
    score, human = simulated(20_000, truth)
    found = fit_beta(score, human)
    assert abs(found.beta - truth) < 4 * found.se
    assert found.beta == pytest.approx(by_rows(score, human), rel=1e-6)


def test_errors_are_those_that_many_samples_show() -> None:
    found = [fit_beta(*simulated(500, 0.6, seed)) for seed in range(300)]
    seen = np.std([fit.beta for fit in found])
    assert np.mean([fit.se for fit in found]) == pytest.approx(seen, rel=0.12)


def test_errors_by_cluster_grow_when_rows_are_copies() -> None:
    score, human = simulated(400, 0.6)
    once = fit_beta(score, human)
    copies = fit_beta(np.tile(score, 4), np.tile(human, 4), cluster=np.tile(np.arange(400, dtype=np.int32), 4))
    assert copies.beta == pytest.approx(once.beta, rel=1e-12)
    assert copies.se == pytest.approx(once.se * np.sqrt(400 / 399), rel=1e-9)


def test_slope_is_zero_and_the_likelihood_falls_on_either_side() -> None:
    size, battles, sided = np.array([0.5, 1.0, 4.0]), np.array([5.0, 7.0, 9.0]), np.array([2.0, 5.0, 7.5])
    beta, _ = maximise_beta(size, battles, sided)
    top = beta_likelihood(size, battles, sided, beta)
    step = 1e-5
    ahead, behind = (beta_likelihood(size, battles, sided, beta + move) for move in (step, -step))
    assert (ahead - behind) / (2 * step) == pytest.approx(0.0, abs=1e-7)
    assert max(ahead, behind) < top


@given(
    score=hnp.arrays(float, 30, elements=st.integers(-30, 30).map(lambda whole: whole / 6)),
    human=hnp.arrays(float, 30, elements=st.sampled_from([0.0, 0.5, 1.0, np.nan])),
    unit=st.sampled_from([1e-6, 1.0, 1e6]),
    seed=st.integers(0, 2**32 - 1),
)
def test_order_sides_unit_and_copies_change_nothing(score: Any, human: Any, unit: float, seed: int) -> None:
    found = fit_beta(score, human)
    order = np.random.default_rng(seed).permutation(30)
    side = np.where(np.arange(30) % 2 == 0, 1.0, -1.0)
    others = (
        fit_beta(score[order], human[order]).beta,
        fit_beta(score * side, np.where(side > 0, human, 1 - human)).beta,
        fit_beta(score * unit, human).beta * unit,
        fit_beta(np.tile(score, 2), np.tile(human, 2), weight=np.full(60, 0.5)).beta,
    )
    assert others == pytest.approx([found.beta] * 4, rel=1e-9, abs=1e-12, nan_ok=True)


def test_what_has_no_finite_optimum_is_said() -> None:
    score = np.array([1.0, 2.0, -1.0])
    always, never = fit_beta(score, [1, 1, 0]), fit_beta(score, [0, 0, 1])
    assert (always.beta, never.beta) == (np.inf, -np.inf)
    assert "always sided" in always.warnings[0]
    assert "never sided" in never.warnings[0]
    assert "cannot be found" in fit_beta([0.0, 1.0], [1.0, 0.5]).warnings[0]


def test_a_judge_that_people_contradict_is_said() -> None:
    score, human = simulated(500, -0.4)
    found = fit_beta(score, human)
    assert found.beta < -0.2
    assert "do not side" in found.warnings[0]
    assert fit_beta([1.0, 1.0], [1.0, 0.0]).beta == 0.0


@pytest.mark.parametrize("weight", [1e-12, 1e12])
def test_extreme_weights_and_near_certainty_are_no_trouble(weight: float) -> None:
    size, battles = np.array([1.0, 2.0]), np.array([1.0, 1.0]) * weight
    beta, _ = maximise_beta(size, battles, battles * (1.0 - 1e-9))
    assert float(expit(-beta) + 2 * expit(-2 * beta)) == pytest.approx(3e-9, rel=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(maximise_beta(size, battles, battles * np.array([1.0, 1.0 - 1e-15]))[0])


def test_probabilities_are_those_of_each_row_and_their_limits() -> None:
    score = np.array([0.3, -0.3, 0.0, 0.1 + 0.2, -7.0])
    grid = score_grid(score)
    assert len(grid.size) == 3
    assert grid.probabilities(0.8) == pytest.approx(expit(0.8 * score), abs=1e-12)
    assert grid.probabilities(np.inf).tolist() == [1.0, 0.0, 0.5, 1.0, 0.0]
    assert grid.probabilities(-np.inf).tolist() == [0.0, 1.0, 0.5, 0.0, 1.0]
    assert grid.probabilities(np.nan).tolist() == [0.5] * 5


@pytest.mark.parametrize(
    ("score", "human", "said"),
    [
        ([1.0, np.inf], [1.0, 0.0], "score, row 1"),
        ([1.0, 2.0], [1.0, 3.0], "human, row 1"),
        ([1.0, 2.0], [1.0], "human has shape"),
    ],
)
def test_bad_columns_are_refused_by_row(score: Any, human: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        fit_beta(score, human)


@pytest.mark.parametrize(
    ("beside", "said"),
    [
        ({"weight": np.ones(3)}, r"weight has shape \(3,\)"),
        ({"weight": np.array([1.0, -1.0])}, "weight, row 1: -1.0"),
        ({"weight": np.array([np.nan, 1.0])}, "weight, row 0: nan"),
        ({"cluster": np.zeros(3, np.int32)}, r"cluster has shape \(3,\)"),
        ({"cluster": np.array([0, -1], np.int32)}, "cluster, row 1: -1"),
    ],
)
def test_bad_weights_and_clusters_are_refused_by_row(beside: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        fit_beta([1.0, -1.0], [1.0, 1.0], **beside)


def test_an_unknown_way_with_ties_is_refused() -> None:
    with pytest.raises(InputError, match="'drop' or 'half'"):
        fit_beta([1.0], [1.0], ties="keep")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "score",
    [
        np.arange(-60, 61) / 12,
        np.r_[np.arange(600) % 5 / 7, 0.1],
        np.array([0.0, 1e-9, 1.0, -1.0]),
        np.random.default_rng(0).normal(0, 1, 700),
        np.round(np.random.default_rng(1).normal(0, 1, 2000) * 12) / 12 * 1e-200,
        np.zeros(3),
        np.full(3, -2.5),
        np.empty(0),
    ],
)
def test_every_score_keeps_its_size_and_side_on_any_grid(score: Any) -> None:
    grid = score_grid(score)
    assert np.where(grid.negative, -1, 1) * grid.size[grid.code] == pytest.approx(
        score, abs=1e-12 * float(np.abs(score).max(initial=0.0)) + 1e-300
    )
    assert np.all(np.diff(grid.size) > 0)
    assert len(np.unique(grid.code)) == len(grid.size)
