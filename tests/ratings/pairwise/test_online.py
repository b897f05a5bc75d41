"""Online Elo: the update, its orders, and what does not change it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.pairwise.online import BETA, MU, SIGMA, TAU, online_elo, random_orders, trueskill

# The package exports functions under the names of their modules.
module: Any = sys.modules["venire.ratings.pairwise.online"]


def battles(rows: int = 400, models: int = 5, seed: int = 0) -> Comparisons:
    rng = np.random.default_rng(seed)
    truth = np.linspace(-1.0, 1.0, models)
    a = rng.integers(0, models, rows)
    b = (a + rng.integers(1, models, rows)) % models
    won = rng.random(rows) < 1.0 / (1.0 + np.exp(truth[b] - truth[a]))
    tied = rng.random(rows) < 0.2
    return comparisons(a, b, np.where(tied, 0.5, won))


def test_two_battles_by_hand() -> None:
    found = online_elo(comparisons(["a", "b"], ["b", "c"], [1.0, 0.5]), k=32, order="given")
    # The first moves a and b by 16; the second then expects b, at 984, to score 0.4770.
    expected = 1.0 / (1.0 + 10.0 ** (16.0 / 400.0))
    change = 32.0 * (0.5 - expected)
    assert found.ratings.elo == pytest.approx([1016.0, 984.0 + change, 1000.0 - change], abs=1e-9)
    assert np.isnan(found.sd).all()
    assert found.order == "given"


def test_the_given_order_matters_and_shuffled_ones_do_not_see_it() -> None:
    data = battles()
    back = replace(data, a=data.a[::-1], b=data.b[::-1], y=data.y[::-1])
    assert np.abs(online_elo(data, order="given").ratings.elo - online_elo(back, order="given").ratings.elo).max() > 0.1
    assert np.array_equal(online_elo(data).ratings.elo, online_elo(back).ratings.elo)


def test_side_by_side_and_one_by_one_are_the_same_update() -> None:
    data = battles()
    order = next(random_orders(len(data), 30, 7))
    together = module._update_ratings(data, 0.02, order)
    apart = np.column_stack([module._update_in_turn(data, 0.02, column) for column in order.T])
    assert np.abs(together - apart).max() < 1e-13


def test_the_size_of_a_group_does_not_change_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    data = battles()
    whole = online_elo(data, shuffles=30)
    monkeypatch.setattr("venire.ratings.pairwise.online._CELLS", 7 * len(data))
    assert online_elo(data, shuffles=30).ratings.logits == pytest.approx(whole.ratings.logits, abs=1e-14)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_neither_row_order_nor_names_nor_sides_matter(seed: int) -> None:
    data, rng = battles(100), np.random.default_rng(seed)
    rows, turn, names = rng.permutation(100), rng.random(100) < 0.5, rng.permutation(5)
    place = np.argsort(names).astype(np.int32)
    a, b = place[data.a], place[data.b]
    other = Comparisons(
        models=tuple(data.models[code] for code in names),
        a=np.where(turn, b, a)[rows],
        b=np.where(turn, a, b)[rows],
        y=np.where(turn, 1.0 - data.y, data.y)[rows],
    )
    first, second = online_elo(data, shuffles=5), online_elo(other, shuffles=5)
    assert second.ratings.logits == pytest.approx(first.ratings.logits[names], abs=1e-12)
    assert second.sd == pytest.approx(first.sd[names], abs=1e-9)


def test_orders_the_models_as_they_were_simulated_and_tells_the_scatter_of_one_order() -> None:
    data = battles(3000)
    found = online_elo(data, shuffles=60)
    assert np.all(np.diff(found.ratings.elo) > 50)
    assert found.ratings.elo.mean() == pytest.approx(1000.0, abs=1e-9)
    singles = [online_elo(data, shuffles=1, seed=seed).ratings.elo for seed in range(60)]
    assert np.std(singles, axis=0, ddof=1) == pytest.approx(found.sd, rel=0.5)
    # Four standard errors of a mean of 60 orders.
    assert np.abs(np.mean(singles, axis=0) - found.ratings.elo).max() < 4 * found.sd.max() * np.sqrt(2 / 60)


def test_weight_zero_leaves_a_battle_out_and_other_weights_are_refused() -> None:
    data = comparisons(["a", "a", "c"], ["b", "b", "d"], [1.0, 1.0, 1.0], weight=[1.0, 1.0, 0.0])
    found = online_elo(data)
    assert found.ratings.battles.tolist() == [2, 2, 0, 0]
    assert np.isnan(found.ratings.elo).tolist() == [False, False, True, True]
    assert set(found.ratings.diagnostics["no_estimate"]) == {"c", "d"}
    with pytest.raises(InputError, match=r"weight, row 1: 0.5 has no meaning to online Elo"):
        online_elo(comparisons(["a", "a"], ["b", "b"], [1, 0], weight=[1.0, 0.5]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0.0}, "k is 0.0"),
        ({"k": 1e9}, "k is 1000000000.0"),
        ({"k": float("nan")}, "k is nan"),
        ({"order": "random"}, "order is 'random'; .*here are: shuffled, given"),
        ({"shuffles": 0}, "shuffles is 0; give 1 or more"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        online_elo(battles(10), **options)


def test_a_huge_k_and_no_battle_at_all_end_in_numbers_or_reasons() -> None:
    assert np.isfinite(online_elo(battles(), k=10_000.0).ratings.elo).all()
    none = online_elo(comparisons(["a"], ["b"], [1.0], weight=[0.0]))
    assert np.isnan(none.ratings.elo).all()


def test_the_scatter_of_two_orders_is_their_distance_over_the_root_of_two() -> None:
    a, b = [0, 1, 2, 0, 1, 2, 0, 1], [1, 2, 0, 2, 0, 1, 1, 2]
    data = comparisons(a, b, [1.0, 1.0, 0.0, 0.5, 1.0, 0.0, 0.0, 1.0])
    one, two = (online_elo(data, k=32.0, shuffles=shuffles, seed=2) for shuffles in (1, 2))
    assert np.isnan(one.sd).all()
    assert two.sd.max() > 0.1
    assert two.sd == pytest.approx(2.0**0.5 * np.abs(one.ratings.elo - two.ratings.elo))


def decisive_battles(rows: int = 600, models: int = 5, seed: int = 0) -> Comparisons:
    rng = np.random.default_rng(seed)
    truth = np.linspace(-1.0, 1.0, models)
    a = rng.integers(0, models, rows)
    b = (a + rng.integers(1, models, rows)) % models
    return comparisons(a, b, (rng.random(rows) < 1.0 / (1.0 + np.exp(truth[b] - truth[a]))).astype(float))


def posterior(mu: float, sd: float, other_mu: float, other_sd: float, won: bool) -> tuple[float, float]:
    """Mean and standard deviation of a skill after a battle, by numerical integration."""
    wide, spread = np.hypot(sd, TAU), np.sqrt(2 * BETA**2 + other_sd**2 + TAU**2)
    sign = 1.0 if won else -1.0

    def moment(power: int) -> float:
        def density(skill: float) -> float:
            return float(skill**power * norm.pdf(skill, mu, wide) * norm.cdf(sign * (skill - other_mu) / spread))

        return float(quad(density, mu - 12 * wide, mu + 12 * wide, epsabs=1e-13, limit=400, points=[mu])[0])

    mass, mean = moment(0), moment(1)
    return mean / mass, float(np.sqrt(moment(2) / mass - (mean / mass) ** 2))


def test_one_battle_moves_both_skills_to_the_moments_of_their_posterior() -> None:
    found = trueskill(comparisons(["a"], ["b"], [1.0]))
    won, lost = posterior(MU, SIGMA, MU, SIGMA, True), posterior(MU, SIGMA, MU, SIGMA, False)
    assert found.mu == pytest.approx([won[0], lost[0]], abs=1e-8)
    assert found.sigma == pytest.approx([won[1], lost[1]], abs=1e-8)
    assert found.sd == pytest.approx([0.0, 0.0], abs=1e-12)


def test_agrees_with_the_trueskill_package() -> None:
    """rate_1vs1 of trueskill 0.4.5 with draw_probability=0, once and again; its normal integral is good to 1e-7."""
    once, twice = (trueskill(comparisons(["a"] * n, ["b"] * n, [1.0] * n)) for n in (1, 2))
    assert once.mu == pytest.approx([29.205473106813677, 20.794526893186323], abs=1e-6)
    assert once.sigma == pytest.approx([7.194816551480743] * 2, abs=1e-6)
    assert twice.mu == pytest.approx([30.98843656246751, 19.01156343753249], abs=1e-6)
    assert twice.sigma == pytest.approx([6.555772290574629] * 2, abs=1e-6)


def test_a_second_battle_starts_from_the_first() -> None:
    found = trueskill(comparisons(["a", "a"], ["b", "b"], [1.0, 1.0]), shuffles=2)
    (up, narrow), (down, other) = posterior(MU, SIGMA, MU, SIGMA, True), posterior(MU, SIGMA, MU, SIGMA, False)
    again = posterior(up, narrow, down, other, True)
    assert (found.mu[0], found.sigma[0]) == pytest.approx(again, abs=1e-7)


def test_sides_rows_and_names_do_not_matter() -> None:
    data, rng = decisive_battles(100), np.random.default_rng(5)
    rows, names = rng.permutation(100), rng.permutation(5)
    place = np.argsort(names).astype(np.int32)
    other = Comparisons(
        models=tuple(data.models[code] for code in names),
        a=place[data.b][rows],
        b=place[data.a][rows],
        y=1 - data.y[rows],
    )
    first, second = trueskill(data, shuffles=7), trueskill(other, shuffles=7)
    assert second.mu == pytest.approx(first.mu[names], abs=1e-12)
    assert second.sigma == pytest.approx(first.sigma[names], abs=1e-12)


def test_recovers_simulated_strengths() -> None:
    data = decisive_battles(6000)
    found = trueskill(data, shuffles=30)
    # The true step between neighbours is 0.5 logits; a pass that keeps drifting scatters, its mean much less.
    assert np.diff(found.ratings.logits) == pytest.approx([0.5] * 4, abs=0.2)
    assert found.ratings.score is found.mu
    assert found.ratings.unit == "mu"
    assert np.all(found.sigma < 2.0)


def test_ties_are_left_out_and_counted() -> None:
    data = decisive_battles(200)
    mixed = replace(data, y=np.where(np.arange(200) < 50, 0.5, data.y))
    alone = replace(data, a=data.a[50:], b=data.b[50:], y=data.y[50:])
    found = trueskill(mixed, shuffles=5)
    assert found.ties == found.ratings.diagnostics["ties_left_out"] == 50
    assert np.array_equal(found.mu, trueskill(alone, shuffles=5).mu)
    with pytest.raises(InputError, match="no decisive comparison"):
        trueskill(replace(data, y=np.full(200, 0.5)))


def test_an_upset_after_a_thousand_wins_stays_finite() -> None:
    found = trueskill(comparisons([0] * 1001, [1] * 1001, [1.0] * 1000 + [0.0]), shuffles=3)
    assert np.isfinite(found.mu).all()
    assert np.isfinite(found.sigma).all()


def test_weights_and_shuffles_are_checked() -> None:
    with pytest.raises(InputError, match=r"weight, row 0: 2\.0 has no meaning to TrueSkill"):
        trueskill(comparisons(["a"], ["b"], [1.0], weight=[2.0]))
    with pytest.raises(InputError, match="shuffles is 0"):
        trueskill(decisive_battles(10), shuffles=0)
    lone = trueskill(comparisons(["a", "c"], ["b", "a"], [1.0, 0.5]), shuffles=2)
    assert lone.ratings.diagnostics["no_estimate"].keys() == {"c"}


def test_the_scatter_of_skills_in_two_orders_is_their_distance_over_the_root_of_two() -> None:
    a, b = [0, 1, 2, 0, 1, 2, 0, 1], [1, 2, 0, 2, 0, 1, 1, 2]
    data = comparisons(a, b, [1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0])
    one, two = (trueskill(data, shuffles=shuffles, seed=2) for shuffles in (1, 2))
    assert np.isnan(one.sd).all()
    assert two.sd.max() > 0.1
    assert two.sd == pytest.approx(2.0**0.5 * np.abs(one.mu - two.mu))


@pytest.mark.parametrize("method", [online_elo, trueskill])
def test_a_negative_seed_is_refused_by_name(method: Callable[..., object]) -> None:
    data = comparisons(["a", "b"], ["b", "a"], [1.0, 1.0])
    with pytest.raises(InputError, match="seed is -1"):
        method(data, seed=-1)
