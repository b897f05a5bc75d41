"""Plackett-Luce: Bradley-Terry on pairs, simulated truth, errors that hold, and when there is no estimate."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from math import factorial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.ratings.elections import ballot_table
from venire.arena.errors import InputError
from venire.ratings.data.comparisons import comparisons
from venire.ratings.pairwise.bradley_terry import bradley_terry
from venire.ratings.pairwise.components import SeparatedError
from venire.ratings.pairwise.plackett_luce import ChoiceLikelihood, plackett_luce, ranked_places
from venire.ratings.pairwise.solvers import NotConvergedError

INF, NAN = np.inf, np.nan
TRUTH = np.array([1.2, 0.5, 0.1, -0.6, -1.2])


def drawn(ballots: int, seed: int, truth: NDArray[np.float64] = TRUTH, sway: float = 0.0) -> NDArray[np.float64]:
    """Rankings under Plackett-Luce; `sway` moves each model on each run of four ballots, in logits."""
    rng = np.random.default_rng(seed)
    moved = np.repeat(sway * rng.standard_normal((-(-ballots // 4), len(truth))), 4, axis=0)[:ballots]
    order = np.argsort(-(truth + moved + rng.gumbel(size=(ballots, len(truth)))), axis=1)
    return np.argsort(order, axis=1) + 1.0


def of_pairs(rows: int, seed: int) -> tuple[Any, Any]:
    """The same battles with ties and weights, as ballots of two and as comparisons."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, rows)
    b = (a + rng.integers(1, 4, rows)) % 4
    y, weight, cluster = rng.choice([0.0, 0.5, 1.0], rows), rng.random(rows) + 0.1, rng.integers(0, 30, rows)
    rank = np.full((rows, 4), NAN)
    rank[np.arange(rows), a] = np.where(y == 0.0, 2.0, 1.0)
    rank[np.arange(rows), b] = np.where(y == 1.0, 2.0, 1.0)
    names = [f"m{code}" for code in range(4)]
    table = ballot_table(rank, instruction=cluster, weight=weight)
    return table, comparisons(a, b, y, models=names, weight=weight, cluster=cluster)


@pytest.mark.parametrize(
    "told", [{}, {"ridge": 0.5}, {"anchors": {"m1": 1100.0}}, {"anchors": {"m1": 1100.0, "m2": 950.0}}]
)
@pytest.mark.parametrize("errors", ["cluster", "sandwich"])
def test_ballots_of_two_give_bradley_terry(told: dict[str, Any], errors: Any) -> None:
    ballots, pairs = of_pairs(400, 5)
    found, known = plackett_luce(ballots, errors=errors, **told), bradley_terry(pairs, errors=errors, **told)
    assert found.logits == pytest.approx(known.logits, abs=1e-10)
    assert found.covariance == pytest.approx(known.covariance, rel=1e-8, abs=1e-14)
    assert (found.degrees, found.gauge, found.errors) == (known.degrees, known.gauge, errors)
    assert found.battles == pytest.approx(known.battles)
    assert found.diagnostics["log_likelihood"] == pytest.approx(known.diagnostics["log_likelihood"])


def test_the_errors_of_the_model_are_those_of_bradley_terry_too() -> None:
    ballots, pairs = of_pairs(300, 2)
    decided = pairs.y != 0.5
    ballots = ballot_table(ballots.rank[decided])
    known = bradley_terry(replace(pairs.select(decided), weight=None), errors="hessian")
    assert plackett_luce(ballots, errors="hessian").covariance == pytest.approx(known.covariance, rel=1e-9)


@pytest.mark.parametrize("best", [5, 2, 1])
def test_simulated_truth_is_recovered_from_full_and_from_truncated_ballots(best: int) -> None:
    rank = drawn(20_000, seed=best)
    found = plackett_luce(ballot_table(np.where(rank > best, INF, rank)))
    z = (found.logits - TRUTH) / found.se
    assert np.abs(found.logits - TRUTH).max() < 0.05
    assert np.abs(z).max() < 3.5
    assert found.elo.mean() == pytest.approx(1000.0)


def test_truth_is_recovered_from_ballots_of_some_models_each() -> None:
    rank = drawn(20_000, seed=9)
    hidden = np.argsort(np.random.default_rng(1).random(rank.shape), axis=1) < 2
    found = plackett_luce(ballot_table(np.where(hidden, NAN, rank)))
    assert np.abs(found.logits - TRUTH).max() < 0.05


def test_ranks_count_as_an_order_alone() -> None:
    rank = drawn(300, seed=4)
    assert plackett_luce(ballot_table(rank)).logits.tolist() == plackett_luce(ballot_table(rank**2)).logits.tolist()


def test_errors_by_instruction_are_those_of_drawing_instructions() -> None:
    rank, asked = drawn(240, seed=3, sway=0.8), np.arange(240) // 4
    found = plackett_luce(ballot_table(rank, instruction=asked))
    rng = np.random.default_rng(0)
    again = []
    for _ in range(150):
        rows = np.concatenate([np.arange(4 * code, 4 * code + 4) for code in rng.integers(0, 60, 60)])
        again.append(plackett_luce(ballot_table(rank[rows]), errors="none").logits)
    assert found.se == pytest.approx(np.std(again, axis=0), rel=0.25)
    assert found.errors == "cluster"
    assert found.degrees == 59
    assert np.all(found.se > plackett_luce(ballot_table(rank)).se)


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """200 elections of 400 ballots of the best three: 1000 intervals of 95 %, one in twenty misses."""
    held = 0
    for seed in range(200):
        rank = drawn(400, seed=seed)
        lo, hi = plackett_luce(ballot_table(np.where(rank > 3, INF, rank))).interval()
        elo = 1000 + 400 / np.log(10) * TRUTH
        held += int(np.count_nonzero((lo <= elo) & (elo <= hi)))
    assert 930 <= held <= 970


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1))
def test_neither_ballot_order_nor_names_matter_and_a_weight_counts_as_copies(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = np.ceil(drawn(60, seed=1) / rng.integers(1, 3, (60, 1)))
    rank[rng.random(60) < 0.3, 4] = NAN
    weight = rng.integers(1, 4, 60)
    known = plackett_luce(ballot_table(rank, weight=weight))
    rows, place = rng.permutation(60), rng.permutation(5)
    moved = plackett_luce(ballot_table(rank[rows][:, place], weight=weight[rows]))
    assert moved.logits == pytest.approx(known.logits[place], abs=1e-10)
    assert moved.se == pytest.approx(known.se[place], rel=1e-8)
    copies = plackett_luce(ballot_table(np.repeat(rank, weight, axis=0)), errors="none")
    assert copies.logits == pytest.approx(known.logits, abs=1e-10)


def test_models_that_no_chain_joins_are_named_and_a_ridge_joins_them() -> None:
    rank = np.array([[1, 2, 3, 4], [2, 1, 3, 4], [1, 2, 4, 3]], dtype=np.float64)
    with pytest.raises(SeparatedError) as caught:
        plackett_luce(ballot_table(rank))
    assert caught.value.groups == (("m0", "m1"), ("m2", "m3"))
    found = plackett_luce(ballot_table(rank), ridge=0.1)
    assert list(np.argsort(-found.logits)) == [0, 1, 2, 3]
    assert found.diagnostics["groups"] == [["m0", "m1"], ["m2", "m3"]]


def test_unranked_models_say_nothing_of_one_another() -> None:
    rank = np.array([[1, 2, INF, INF], [2, 1, INF, INF]])
    with pytest.raises(SeparatedError) as caught:
        plackett_luce(ballot_table(rank))
    assert caught.value.groups == (("m0", "m1"), ("m2",), ("m3",))


def test_a_model_that_met_nobody_has_no_estimate_and_idle_ballots_change_nothing() -> None:
    rank = drawn(200, seed=6)
    known = plackett_luce(ballot_table(rank))
    more = np.full((4, 6), NAN)
    more[0, 5], more[1, :] = 1.0, INF
    more[2, 0], more[3, 1] = 1.0, INF
    found = plackett_luce(ballot_table(np.vstack([np.hstack([rank, np.full((200, 1), NAN)]), more])))
    assert found.logits == pytest.approx([*known.logits, NAN], nan_ok=True)
    assert found.se == pytest.approx([*known.se, NAN], nan_ok=True)
    assert found.diagnostics["no_estimate"] == {"m5": "no comparison"}
    assert found.diagnostics["ballots"] == 200


def test_all_ties_and_heavy_weights() -> None:
    tied = plackett_luce(ballot_table(np.ones((5, 3))))
    assert tied.logits == pytest.approx(np.zeros(3), abs=1e-15)
    assert np.isnan(tied.se).all()
    assert "do not scatter" in tied.diagnostics["errors_reason"]
    heavy = np.array([[1, 2, 3], [3, 2, 1]], dtype=np.float64)
    found = plackett_luce(ballot_table(heavy, weight=[1e12, 1.0]), errors="none")
    # The light ballot passes over the first model twice, and over the second once.
    assert -np.diff(found.logits) == pytest.approx(np.log([1e12 / 2, 1e12]), rel=1e-9)
    assert found.diagnostics["gradient"] < 1e-15


def test_one_ballot_has_ratings_only_where_it_ties_and_never_errors() -> None:
    found = plackett_luce(ballot_table(np.array([[1.0, 1.0, NAN]])))
    assert found.logits == pytest.approx([0.0, 0.0, NAN], nan_ok=True)
    assert found.diagnostics["errors_reason"] == "errors cannot be told from one ballot"
    with pytest.raises(SeparatedError):
        plackett_luce(ballot_table(np.array([[1.0, 2.0]])))


def test_what_is_refused_is_named() -> None:
    table = ballot_table(np.array([[1.0, 1.0], [1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(InputError, match="errors='cluster' needs ballots"):
        plackett_luce(table, errors="cluster")
    with pytest.raises(InputError, match="without ties"):
        plackett_luce(table, errors="hessian")
    with pytest.raises(InputError, match="errors is 'exact'"):
        plackett_luce(table, errors="exact")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no model is called 'x'"):
        plackett_luce(table, anchors={"x": 1000.0})
    with pytest.raises(InputError, match="ridge is -1"):
        plackett_luce(table, ridge=-1.0)


def test_ratings_are_those_of_choix() -> None:
    """Figures of choix 0.4.1: ilsr_rankings, ilsr_top1, with tol 1e-13."""
    orders = [(0, 1, 2, 3), (1, 0, 3, 2), (2, 0, 1), (3, 1), (0, 2, 3, 1), (1, 3, 2, 0), (0, 1, 3), (2, 3, 0, 1)]
    rank = np.full((len(orders), 4), NAN)
    for row, order in zip(rank, orders, strict=True):
        row[list(order)] = np.arange(1, len(order) + 1)
    assert plackett_luce(ballot_table(rank)).logits == pytest.approx(
        [0.401895403624, -0.374367967535, 0.182634567553, -0.210162003641], abs=1e-9
    )
    first = [(0, [1, 2, 3]), (1, [0, 3]), (2, [0, 1, 3]), (3, [1, 2]), (0, [2, 3]), (1, [2]), (2, [3])]
    rank = np.full((len(first), 4), NAN)
    for row, (best, others) in zip(rank, first, strict=True):
        row[best], row[others] = 1.0, INF
    assert plackett_luce(ballot_table(rank)).logits == pytest.approx(
        [0.684489336787, 0.248394445563, -0.164473701643, -0.768410080708], abs=1e-9
    )


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


@settings(max_examples=25)
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
    scores, most = curve.scores(at, unit, 4), curve.largest_score(at)
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
