"""TrueSkill: one battle against its integrals, orders, and what it leaves out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.pairwise.online import BETA, MU, SIGMA, TAU, trueskill


def battles(rows: int = 600, models: int = 5, seed: int = 0) -> Comparisons:
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
    data, rng = battles(100), np.random.default_rng(5)
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
    data = battles(6000)
    found = trueskill(data, shuffles=30)
    # The true step between neighbours is 0.5 logits; a pass that keeps drifting scatters, its mean much less.
    assert np.diff(found.ratings.logits) == pytest.approx([0.5] * 4, abs=0.2)
    assert found.ratings.score is found.mu
    assert found.ratings.unit == "mu"
    assert np.all(found.sigma < 2.0)


def test_ties_are_left_out_and_counted() -> None:
    data = battles(200)
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
        trueskill(battles(10), shuffles=0)
    lone = trueskill(comparisons(["a", "c"], ["b", "a"], [1.0, 0.5]), shuffles=2)
    assert lone.ratings.diagnostics["no_estimate"].keys() == {"c"}


def test_the_scatter_of_two_orders_is_their_distance_over_the_root_of_two() -> None:
    a, b = [0, 1, 2, 0, 1, 2, 0, 1], [1, 2, 0, 2, 0, 1, 1, 2]
    data = comparisons(a, b, [1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0])
    one, two = (trueskill(data, shuffles=shuffles, seed=2) for shuffles in (1, 2))
    assert np.isnan(one.sd).all()
    assert two.sd.max() > 0.1
    assert two.sd == pytest.approx(2.0**0.5 * np.abs(one.mu - two.mu))
