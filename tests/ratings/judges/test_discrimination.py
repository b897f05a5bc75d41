"""Slopes of judges: planted ones are found, the fit is a maximum, and what has none is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.judges import discrimination as module
from venire.ratings.judges.consistency import consistency
from venire.ratings.judges.discrimination import (
    Discrimination,
    derivatives,
    discrimination,
    fit_slopes,
    gap_rows,
    log_posterior,
    score_reliability,
)

Table = Callable[..., Battles]

Columns = tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.bool_], NDArray[np.intp]]


def planted(
    slopes: list[float], *, seed: int, pull: float = 0.5, pairs: int = 30, items: int = 40, shared: float = 0.0
) -> Columns:
    """Verdicts in both orders of judges with known slopes; `shared` is the sd of what an instruction adds to all."""
    rng = np.random.default_rng(seed)
    gap, taste = rng.normal(0.0, 1.0, pairs), rng.normal(0.0, shared, items) if shared else np.zeros(items)
    grid = np.meshgrid(np.arange(len(slopes)), np.arange(pairs), np.arange(items), [1.0, -1.0], indexing="ij")
    judge, pair, item, side = (axis.ravel() for axis in grid)
    judge, pair, item = judge.astype(np.intp), pair.astype(np.intp), item.astype(np.intp)
    x = side * gap[pair]
    won = rng.random(len(x)) < expit(pull + np.array(slopes)[judge] * x + side * taste[item])
    return judge, x, won, item


def fitted(columns: Columns, judges: int, **options: Any) -> Discrimination:
    judge, gap, won, item = columns
    names = [f"j{k}" for k in range(judges)]
    return discrimination(judge, gap, won, judges=names, instruction=item, **options)


def test_planted_slopes_and_pulls_are_found_within_their_errors() -> None:
    """Ten tables of 6 judges: the mean of squared errors over their variances is that of 60 draws, 1 +- 0.18."""
    slopes = [-0.5, 0.0, 0.5, 1.0, 2.0, 3.0]
    found = [fitted(planted(slopes, seed=seed), 6) for seed in range(10)]
    errors = np.array([(one.ml - slopes) / one.ml_se for one in found])
    assert 0.5 < np.mean(errors**2) < 1.7
    assert np.abs(np.mean([one.ml for one in found], axis=0) - slopes).max() < 0.08
    assert np.abs(np.mean([one.position for one in found], axis=0) - 0.5).max() < 0.1
    assert found[0].prior == "empirical Bayes"
    assert found[0].mu == pytest.approx(1.0, abs=0.1)
    assert found[0].tau == pytest.approx(np.std(slopes), abs=0.1)


def test_shrunk_slopes_lie_between_their_own_and_the_mean() -> None:
    found = fitted(planted([0.2, 0.8, 1.0, 1.4, 2.5], seed=1, items=3), 5)
    away, own = found.theta - found.mu, found.ml - found.mu
    assert np.all(np.abs(away) < np.abs(own))
    assert np.all(np.sign(away) == np.sign(own))


def test_the_prior_is_a_fixed_point() -> None:
    """mu is the mean of the shrunk slopes, tau^2 the mean of their squared distance plus their own variance."""
    judge, gap, won, item = planted([0.2, 0.8, 1.0, 1.4, 2.5], seed=2, items=5)
    found = fitted((judge, gap, won, item), 5)
    values, value = np.unique(gap, return_inverse=True)
    rows = gap_rows(judge, value, values, item, np.ones_like(judge), 1 * won, judges=5, ordered=True)
    again = fit_slopes(rows, mean=found.mu, precision=found.tau**-2)
    assert again.theta == pytest.approx(found.theta, abs=1e-9)
    assert again.theta.mean() == pytest.approx(found.mu, abs=1e-6)
    spread = np.mean((again.theta - found.mu) ** 2 + again.covariance[:, 1, 1])
    assert spread == pytest.approx(found.tau**2, abs=1e-6)


def test_few_judges_have_a_fixed_prior() -> None:
    found = fitted(planted([1.0, 2.0], seed=1), 2)
    assert (found.mu, found.tau, found.prior) == (1.5, 1.0, "fixed, fewer than 5 judges")


def test_derivatives_are_those_of_the_objective() -> None:
    judge, gap, won, item = planted([0.5, 2.0], seed=4, items=4)
    values, value = np.unique(gap, return_inverse=True)
    rows = gap_rows(judge, value, values, item, np.ones_like(judge), 1 * won, judges=2, ordered=True)
    at, step = np.array([[0.3, -0.2], [1.1, 0.7]]), 1e-5

    def objective(b: NDArray[np.float64], theta: NDArray[np.float64]) -> NDArray[np.float64]:
        return log_posterior(rows, b, theta, 1.5, 0.7)

    gradient, information = derivatives(rows, at[0], at[1], 1.5, 0.7)
    for place in range(2):
        shift = np.zeros((2, 2))
        shift[place] = step
        up, down = at + shift, at - shift
        slope = (objective(up[0], up[1]) - objective(down[0], down[1])) / (2 * step)
        assert gradient[:, place] == pytest.approx(slope, rel=1e-6)
        bend = derivatives(rows, up[0], up[1], 1.5, 0.7)[0] - derivatives(rows, down[0], down[1], 1.5, 0.7)[0]
        assert -information[:, place] == pytest.approx(bend / (2 * step), rel=1e-6)


def test_a_general_optimiser_finds_the_same_maximum() -> None:
    judge, gap, won, _ = planted([1.3], seed=5, items=6)
    found = fitted((judge, gap, won, np.arange(len(judge))), 1)

    def loss(at: NDArray[np.float64]) -> float:
        logit = at[0] + at[1] * gap
        return float(-np.sum(log_expit(np.where(won, logit, -logit))) + at[0] ** 2 / 50)

    best = minimize(loss, np.zeros(2), method="BFGS", options={"gtol": 1e-8})
    assert found.ml[0] == pytest.approx(best.x[1], abs=1e-5)


def test_a_judge_that_always_follows_the_gap_is_named_at_its_ceiling() -> None:
    gap = np.array([1.0, -1.0, 2.0, -2.0])
    columns = (np.array([0, 0, 0, 0, 1, 1, 1, 1]), np.tile(gap, 2), np.append(gap > 0, gap < 0), np.arange(8))
    found = fitted(columns, 2)
    assert (found.ceiling, found.floor) == (("j0",), ("j1",))
    assert found.ml.tolist() == [np.inf, -np.inf]
    assert np.isnan(found.ml_se).all()
    assert found.theta[0] > 1.5 > found.theta[1]
    assert "every verdict follows the gap: j0" in found.summary()


def test_a_judge_that_always_says_first_has_no_slope_to_speak_of() -> None:
    judge, gap, won, item = planted([1.0], seed=1)
    found = fitted((judge, gap, np.ones_like(won), item), 1)
    assert found.ml[0] == pytest.approx(0.0, abs=0.2)
    assert found.position[0] > 5
    assert found.ceiling == ()


def test_a_judge_without_a_decisive_verdict_has_nothing() -> None:
    judge, gap, won, item = planted([1.0, 2.0], seed=1)
    found = fitted((2 * judge, gap, won, item), 3)
    assert np.isnan([found.theta[1], found.se[1], found.ml[1], found.position[1]]).all()
    assert found.verdicts.tolist() == [2400, 0, 2400]
    assert found.reliability is None


def test_gaps_of_nothing_leave_the_prior_alone() -> None:
    found = discrimination([0, 0], [0.0, 1e-17], [True, False], judges=["j"])
    assert np.isnan(found.ml[0])
    assert found.theta[0] == pytest.approx(1.5)


def test_what_an_instruction_does_to_all_its_verdicts_is_in_the_error() -> None:
    """With a taste shared by all pairs of an instruction, independent errors are too small."""
    slopes = [0.5, 1.0, 1.5, 2.0, 2.5]
    found = [planted(slopes, seed=seed, pull=0.0, shared=1.5, items=25) for seed in range(12)]
    mine = [fitted(columns, 5) for columns in found]
    alone = [discrimination(*columns[:3], judges=mine[0].judges) for columns in found]
    scatter = np.array([one.ml for one in mine]).std(axis=0, ddof=1).mean()
    clustered = np.mean([one.ml_se for one in mine])
    assert clustered > 1.1 * np.mean([one.ml_se for one in alone])
    assert clustered == pytest.approx(scatter, rel=0.35)


@settings(max_examples=25)
@given(data=st.data())
def test_order_of_rows_and_sides_do_not_matter(data: st.DataObject) -> None:
    judge, gap, won, item = planted([0.5, 2.0], seed=7, pairs=4, items=3)
    order = np.array(data.draw(st.permutations(range(len(judge)))))
    plain, other = (
        fitted((judge, gap, won, item), 2),
        fitted((judge[order], gap[order], won[order], item[order]), 2),
    )
    assert other.ml.tolist() == plain.ml.tolist()
    assert other.ml_se.tolist() == plain.ml_se.tolist()
    turned = fitted((judge, -gap, ~won, item), 2)
    assert turned.ml == pytest.approx(plain.ml, abs=1e-9)
    assert turned.position == pytest.approx(-plain.position, abs=1e-9)
    halved = fitted((judge, gap / 2, won, item), 2)
    assert halved.ml == pytest.approx(2 * plain.ml, rel=1e-9)


def test_extreme_gaps_and_counts_still_settle() -> None:
    gap = np.repeat([40.0, -40.0, 1e-6, -1e-6], 1000)
    won = (gap > 0) ^ (np.arange(4000) % 999 == 0)
    found = discrimination(np.zeros(4000, dtype=int), gap, won, judges=["j"])
    assert np.isfinite(found.ml[0])


def test_reliability_by_hand() -> None:
    assert score_reliability([1.0, 2.0, 3.0], [0.5, 0.5, 0.5]) == pytest.approx(0.75)
    assert score_reliability([1.0, 2.0, np.inf], [0.5, 0.5, np.nan]) is None
    assert score_reliability([1.0, 1.0, 1.0], [0.5, 0.5, 0.5]) is None
    values, errors = np.random.default_rng(0).normal(size=(2, 2000))
    assert score_reliability(values, np.ones(2000)) == pytest.approx(0.0, abs=0.1)
    assert score_reliability(values * 3 + errors, np.ones(2000)) == pytest.approx(0.9, abs=0.02)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (([[0]], [1.0], [True]), "judge has shape"),
        (([0, 0], [1.0], [True, True]), "gap has shape"),
        (([0, 1], [1.0, 1.0], [True, True]), "judge, row 1: 1 stands for none of the 1 judges"),
        (([0, 0], [1.0, 1.0], [1.0, 0.5]), "first_won, row 1: 0.5"),
    ],
)
def test_bad_columns_are_named(columns: tuple[Any, ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        discrimination(*columns, judges=["j"])


def test_a_judge_is_never_measured_by_its_own_verdicts(table: Table) -> None:
    """Without known ratings the gaps come from the others: what a judge says changes no gap of its own."""
    rng = np.random.default_rng(0)
    rows = [
        (x, y, "first" if rng.random() < expit(theta * (ord(y) - ord(x)) / 2) else "second", judge, f"i{item}")
        for judge, theta in (("j", 1.0), ("k", 2.0), ("m", 1.5))
        for item in range(30)
        for x, y in (("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"), ("a", "c"), ("c", "a"))
    ]
    found = consistency(table(rows))
    assert found.gaps == "other judges"
    turn = {"first": "second", "second": "first"}
    against = consistency(table([(*r[:2], turn[r[2]], *r[3:]) if r[3] == "j" else r for r in rows]))
    slope, turned = found.judges[0].discrimination_ml, against.judges[0].discrimination_ml
    assert slope is not None
    assert turned == pytest.approx(-slope, abs=1e-9)
    alone = consistency(table([r for r in rows if r[3] == "j"]))
    assert (alone.gaps, alone.judges[0].discrimination) == ("none", None)
    known = consistency(table([r for r in rows if r[3] == "j"]), elo={"a": 1100.0, "c": 900.0})
    assert known.gaps == "elo"
    assert known.slopes is not None
    assert known.slopes.verdicts.tolist() == [60]


def test_judges_who_hardly_differ_settle_in_a_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their variance goes to 0, which the plain iteration approaches for hours."""
    rounds = 0
    plain = module.fit_slopes

    def counted(*words: Any, **named: Any) -> Any:
        nonlocal rounds
        rounds += 1
        return plain(*words, **named)

    monkeypatch.setattr(module, "fit_slopes", counted)
    found = fitted(planted([0.4] * 20, seed=3, pairs=10, items=5), 20)
    assert rounds < 300
    assert found.tau < 0.3
    assert found.theta == pytest.approx(np.full(20, found.mu), abs=0.5)


def test_the_mean_and_variance_of_slopes_are_the_fixed_point_of_their_definition() -> None:
    columns = planted([-0.5, 0.5, 1.0, 1.5, 2.5], seed=7)
    found = fitted(columns, 5)
    judge, gap, won, item = columns
    gaps, value = np.unique(gap, return_inverse=True)
    rows = gap_rows(
        judge, value, gaps, item, np.ones(len(gap), dtype=np.intp), won.astype(np.intp), judges=5, ordered=True
    )
    shrunk = fit_slopes(rows, mean=found.mu, precision=found.tau**-2)
    assert shrunk.theta.mean() == pytest.approx(found.mu, abs=1e-6)
    spread = np.mean((shrunk.theta - shrunk.theta.mean()) ** 2 + shrunk.covariance[:, 1, 1])
    assert spread == pytest.approx(found.tau**2, abs=1e-6)


def test_errors_of_slopes_have_the_factor_of_few_instructions() -> None:
    """Two instructions, no place: the influences of both cancel, so that the error is twice the size of one."""
    gap, won = np.array([1.0, 1.0, 2.0, 1.0, 1.0, 2.0]), np.array([1, 1, 0, 1, 0, 1])
    found = discrimination(np.zeros(6, int), gap, won, judges=["j"], instruction=[0, 0, 0, 1, 1, 1], ordered=False)
    share = 1.0 / (1.0 + np.exp(-found.ml[0] * gap))
    influence = ((won - share) * gap)[:3].sum() / (share * (1.0 - share) * gap**2).sum()
    assert found.ml_se[0] == pytest.approx(2.0 * abs(influence))
    assert abs(influence) > 0.01
