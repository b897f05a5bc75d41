"""Whom a policy asks about must not move the ratings of a judge that is no Bradley-Terry judge, nor their errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from tests.ratings.simulated import campaign
from venire.arena.scale import POINTS_PER_LOGIT
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.data.judgments import merge_orders
from venire.ratings.inference.options import Options
from venire.ratings.methods.findings import Lapse
from venire.ratings.methods.methods import rate
from venire.ratings.pairwise.balanced_pairs import balanced_pairs
from venire.ratings.pairwise.bradley_terry import bradley_terry
from venire.ratings.pairwise.components import SeparatedError

Matrix = NDArray[np.float64]

FIELD = np.array([-3.0, -2.0, -1.2, -0.3, 0.4, 1.1, 2.0, 3.0])
FIRST, SECOND = np.triu_indices(8, 1)
NEAR = np.where(np.abs(FIELD[FIRST] - FIELD[SECOND]) < 1.5, 20.0, 1.0)
EVEN = np.ones(28)
GAP = FIELD[FIRST] - FIELD[SECOND]


def normal(lapse: float) -> Matrix:
    return np.asarray(0.5 * lapse + (1.0 - lapse) * ndtr(GAP / 1.702))


def told(share: Matrix, asked: Matrix) -> Comparisons:
    """What pairs would say in the long run: each a row, asked so often."""
    names = [f"m{code}" for code in range(8)]
    return comparisons([names[one] for one in FIRST], [names[one] for one in SECOND], share, weight=1000.0 * asked)


@pytest.mark.parametrize(("lapse", "moved"), [(0.0, 20.0), (0.05, 10.0), (0.15, 40.0)])
def test_the_pairs_that_were_asked_do_not_move_ratings(lapse: float, moved: float) -> None:
    share = normal(lapse)
    asked, evenly = (balanced_pairs(told(share, weight)) for weight in (NEAR, EVEN))
    plain, plainly = (bradley_terry(told(share, weight), errors="none") for weight in (NEAR, EVEN))
    assert np.abs(asked.ratings.elo - evenly.ratings.elo).max() < 1.0
    assert np.abs(plain.elo - plainly.elo).max() > moved
    assert asked.lapse == pytest.approx(lapse, abs=0.001)


def test_pairs_asked_evenly_are_rated_as_bradley_terry_rates_them() -> None:
    data = told(normal(0.08), EVEN)
    assert np.abs(balanced_pairs(data).ratings.elo - bradley_terry(data, errors="none").elo).max() < 0.5


def test_a_judge_of_another_curve_is_followed_better_than_by_bradley_terry_if_it_lapses() -> None:
    share = 0.05 + 0.9 * expit(GAP)
    off, plainly_off = (
        np.abs(fit(told(share, NEAR)) - bradley_terry(told(share, EVEN), errors="none").elo).max()
        for fit in (lambda data: balanced_pairs(data).ratings.elo, lambda data: bradley_terry(data, errors="none").elo)
    )
    assert off < 0.5 * plainly_off


def drawn(seed: int) -> Comparisons:
    """Battles of a lapsing judge, each instruction with a taste of its own for every model, near pairs above all."""
    rng = np.random.default_rng(seed)
    pair = rng.choice(28, 900, p=NEAR / NEAR.sum())
    on = rng.integers(0, 150, 900)
    at = FIELD + 0.7 * rng.standard_normal((150, 8))
    share = ndtr((at[on, FIRST[pair]] - at[on, SECOND[pair]]) / 1.702)
    won = np.where(rng.random(900) < 0.1, 0.5, rng.random(900) < share)
    names = np.array([f"m{code}" for code in range(8)])
    return comparisons(names[FIRST[pair]].tolist(), names[SECOND[pair]].tolist(), won, cluster=on)


def test_errors_are_as_large_as_ratings_scatter() -> None:
    found = [balanced_pairs(drawn(seed)) for seed in range(80)]
    scatter = np.std([one.ratings.elo for one in found], axis=0, ddof=1)
    errors = np.mean([POINTS_PER_LOGIT * one.ratings.se for one in found], axis=0)
    floor = np.mean([POINTS_PER_LOGIT * np.sqrt(np.diagonal(one.floor)) for one in found], axis=0)
    assert float(np.mean(errors / scatter)) == pytest.approx(1.0, abs=0.08)
    assert (np.abs(errors / scatter - 1.0) < 0.3).all()
    assert 1.0 < float(np.mean(floor / scatter)) < 1.4  # ties as half a win scatter less than coins do


def test_an_uncertain_lapse_widens_the_errors_of_the_ends() -> None:
    found = balanced_pairs(drawn(1))
    wide = POINTS_PER_LOGIT * found.ratings.se
    assert wide[[0, -1]].min() > 1.5 * wide[2:6].max()


def test_neither_order_nor_names_nor_sides_move_anything() -> None:
    data, rng = drawn(2), np.random.default_rng(1)
    point = balanced_pairs(data).ratings
    shuffled = balanced_pairs(data.select(rng.permutation(len(data)))).ratings
    turned = balanced_pairs(replace(data, a=data.b, b=data.a, y=1.0 - data.y)).ratings
    lost = balanced_pairs(replace(data, y=1.0 - data.y)).ratings
    back = np.arange(8)[::-1].astype(np.int32)
    renamed = balanced_pairs(replace(data, a=back[data.a], b=back[data.b])).ratings
    for other, sign, order in (
        (shuffled, 1, slice(None)),
        (turned, 1, slice(None)),
        (lost, -1, slice(None)),
        (renamed, 1, back),
    ):
        assert np.allclose(sign * other.logits[order], point.logits, rtol=0.0, atol=1e-8)
        assert np.allclose(other.se[order], point.se, rtol=1e-7, atol=0.0)


def test_a_weight_of_three_is_three_rows_but_for_their_errors() -> None:
    data = drawn(3)
    thrice = balanced_pairs(data.select(np.repeat(np.arange(len(data)), 3))).ratings
    weighed = balanced_pairs(replace(data, weight=np.full(len(data), 3.0))).ratings
    assert np.allclose(thrice.logits, weighed.logits, rtol=0.0, atol=1e-8)
    assert np.allclose(thrice.se, weighed.se, rtol=1e-7, atol=0.0)


def test_few_verdicts_on_a_wide_field_still_have_a_maximum() -> None:
    rated = 0
    for seed in range(40):
        size, spread = 2 + seed % 10, (0.3, 1.0, 3.0, 6.0)[seed % 4]
        data = merge_orders(campaign(seed, models=size, judges=1, instructions=30, spread=spread)).comparisons()
        try:
            bradley_terry(data, errors="none")
        except SeparatedError:
            with pytest.raises(SeparatedError):
                balanced_pairs(data)
            continue
        found, rated = balanced_pairs(data), rated + 1
        assert np.isfinite(found.ratings.elo).all()
        assert abs(found.ratings.logits.sum()) < 1e-9
        assert np.isfinite(found.floor).all()
        assert 0.0 <= found.lapse < 0.6
    assert rated > 20


def test_two_models_have_one_pair_which_is_always_even() -> None:
    data = comparisons(["a"] * 50, ["b"] * 50, [1.0] * 35 + [0.0] * 15, cluster=range(50))
    found, plain = balanced_pairs(data), bradley_terry(data)
    assert np.allclose(found.ratings.elo, plain.elo, rtol=0.0, atol=1.0)
    assert np.allclose(found.ratings.se, plain.se, rtol=0.03, atol=0.0)


def test_a_model_without_a_comparison_has_no_rating() -> None:
    data = drawn(4)
    found = balanced_pairs(replace(data, models=(*data.models, "zz")))
    assert np.isnan(found.ratings.logits[-1])
    assert np.isnan(found.floor[-1]).all()
    assert np.allclose(found.ratings.logits[:-1], balanced_pairs(data).ratings.logits)
    assert found.ratings.diagnostics["no_estimate"] == {"zz": "no comparison"}


def test_venire_rate_gives_them_by_name_with_the_lapse() -> None:
    table = campaign(5, instructions=100)
    board = rate(table, "even-pairs", Options())
    found = balanced_pairs(merge_orders(table).comparisons())
    assert np.allclose(board.ratings.elo, found.ratings.elo)
    assert np.allclose(board.se, POINTS_PER_LOGIT * found.ratings.se)
    assert board.findings[0] == Lapse(found.lapse)
    again = rate(table, "even-pairs", Options(replicates=40, seed=1))
    assert np.allclose(again.se, board.se, rtol=0.3)
    moved = rate(table, "even-pairs", Options(anchors={"m00": 1234.0}))
    assert moved.ratings.elo[0] == pytest.approx(1234.0)
