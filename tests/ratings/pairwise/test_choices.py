"""The likelihood of rankings as choices: by hand, by finite differences, and in what it leaves out."""

from __future__ import annotations

from itertools import permutations
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from venire.ratings.pairwise.plackett_luce import ChoiceLikelihood, ranked_places
from venire.ratings.pairwise.solvers import NotConvergedError

INF, NAN = np.inf, np.nan

EXAMPLES = np.array(
    [
        [1, 2, 3, 4, 5],
        [3, 1, 2, INF, INF],
        [INF, INF, 1, INF, INF],
        [1, 1, 3, 4, 4],
        [2, 2, 2, 1, INF],
        [NAN, 1, 1, NAN, 3],
        [1, 1, 1, 1, 1],
        [NAN, NAN, 2, 1, NAN],
        [2, NAN, 1, INF, INF],
        [4, 5, 1, 1, 1],
    ],
    dtype=np.float64,
)


def likelihood(rank: NDArray[np.float64], weight: NDArray[np.float64] | None = None) -> ChoiceLikelihood:
    return ChoiceLikelihood(ranked_places(rank), np.ones(len(rank)) if weight is None else weight, rank.shape[1])


def by_hand(rank: NDArray[np.float64], logits: NDArray[np.float64]) -> float:
    """Group by group and stage by stage, as the rule is written."""
    power, total = np.exp(logits), 0.0
    for level in sorted(set(rank[np.isfinite(rank)].tolist())):
        group, below = np.flatnonzero(rank == level), np.flatnonzero(rank > level)
        stages = len(group) - (0 if len(below) else 1)
        for stage in range(stages):
            share = (len(group) - stage) / len(group)
            total += logits[group].mean() - np.log(power[below].sum() + share * power[group].sum())
    return float(total)


def test_places_of_ties_unranked_and_absent_models() -> None:
    found = ranked_places(np.array([[2, 1, 2, INF, INF], [NAN, 1, INF, NAN, 2]], dtype=np.float64))
    assert found.model[:, 0].tolist() == [1, 0, 2, 3, 4]
    assert found.start[:, 0].tolist() == [0, 1, 1, 3, 3]
    assert found.end[:, 0].tolist() == [1, 3, 3, 5, 5]
    assert found.model[:3, 1].tolist() == [1, 4, 2]
    assert found.there[:, 1].tolist() == [True, True, True, False, False]
    assert (found.ranked.tolist(), found.shown.tolist()) == ([3, 2], [5, 3])


@pytest.mark.parametrize("row", range(len(EXAMPLES)))
def test_the_log_likelihood_is_the_rule_as_written(row: int) -> None:
    logits = np.random.default_rng(row).standard_normal(5)
    assert likelihood(EXAMPLES[[row]]).log_likelihood(logits) == pytest.approx(
        by_hand(EXAMPLES[row], logits), abs=1e-12
    )


def test_chances_of_all_full_rankings_add_up_to_one() -> None:
    logits = np.array([0.7, -1.1, 0.2, 0.0])
    chances = [
        np.exp(likelihood(np.argsort(order).astype(float)[None] + 1).log_likelihood(logits))
        for order in permutations(range(4))
    ]
    assert len(chances) == factorial(4)
    assert sum(chances) == pytest.approx(1.0, abs=1e-12)


def test_an_unranked_rest_has_the_chance_of_all_its_orders() -> None:
    logits = np.array([0.7, -1.1, 0.2, 0.0])
    top = np.exp(likelihood(np.array([[1, INF, 2, INF]])).log_likelihood(logits))
    whole = np.array([[1, 3, 2, 4], [1, 4, 2, 3]], dtype=np.float64)
    assert top == pytest.approx(sum(np.exp(likelihood(one[None]).log_likelihood(logits)) for one in whole))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_slopes_and_curvature_are_those_of_the_log_likelihood(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, len(EXAMPLES), 6)
    curve = likelihood(EXAMPLES[rows], rng.random(6) + 0.1)
    at, step = 1.5 * rng.standard_normal(5), 1e-5
    local = curve.at(at)
    slopes = [
        (curve.log_likelihood(at + shift) - curve.log_likelihood(at - shift)) / (2 * step) for shift in step * np.eye(5)
    ]
    assert local.gradient == pytest.approx(np.array(slopes), abs=1e-8)
    bends = np.array([(curve.at(at + shift).gradient - curve.at(at - shift).gradient) for shift in step * np.eye(5)])
    information = np.diag(local.diagonal) - np.asarray(local.coupling)
    assert information == pytest.approx(-bends / (2 * step), abs=1e-8)
    assert np.linalg.eigvalsh(information).min() > -1e-12
    assert np.all(local.turnover >= np.abs(local.gradient) - 1e-12)


def test_scores_of_units_add_up_to_the_slopes() -> None:
    curve, at = likelihood(EXAMPLES), np.linspace(1, -1, 5)
    unit = np.array([0, 1, 1, 2, 2, 2, 3, 3, 0, 1], dtype=np.int32)
    scores, most = curve.scores(at, unit, 4)
    assert scores.sum(axis=0) == pytest.approx(curve.at(at).gradient, abs=1e-12)
    assert scores[3] == pytest.approx(likelihood(EXAMPLES[[6, 7]]).at(at).gradient, abs=1e-12)
    assert 0.0 < most < 5.0


def test_wins_are_those_of_all_pairs_with_a_ranked_model() -> None:
    expected = np.zeros((5, 5))
    for rank in EXAMPLES:
        for a in range(5):
            for b in range(5):
                if a != b and np.isfinite(min(rank[a], rank[b])):
                    expected[a, b] += 1.0 if rank[a] < rank[b] else 0.5 if rank[a] == rank[b] else 0.0
    assert likelihood(EXAMPLES).wins().tolist() == expected.tolist()


def test_many_ballots_are_the_sum_of_their_parts() -> None:
    rng = np.random.default_rng(0)
    rank = EXAMPLES[rng.integers(0, len(EXAMPLES), 3000)]
    at, counts = np.linspace(1, -1, 5), np.zeros(len(EXAMPLES))
    for one in rank:
        counts += [np.array_equal(one, example, equal_nan=True) for example in EXAMPLES]
    whole, weighted = likelihood(rank).at(at), likelihood(EXAMPLES, counts).at(at)
    assert whole.gradient == pytest.approx(weighted.gradient, abs=1e-9)
    assert whole.diagonal == pytest.approx(weighted.diagonal, rel=1e-12)


def test_ratings_out_of_reach_are_refused() -> None:
    with pytest.raises(NotConvergedError, match="give a ridge"):
        likelihood(EXAMPLES).at(np.array([0.0, 0.0, 301.0, 0.0, 0.0]))
