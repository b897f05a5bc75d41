"""am-ELO: the maximum of the written likelihood, judges and models without a finite one, errors, habits, sign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit

from venire.arena.errors import InputError
from venire.arena.scale import POINTS_PER_LOGIT
from venire.ratings.am_elo.am_elo import AmElo, am_elo, best_optimum, fit_problem
from venire.ratings.am_elo.fit import Penalty
from venire.ratings.am_elo.standard_errors import standard_errors_of
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.pairwise.bradley_terry import bradley_terry


def drawn(
    truth: Sequence[float], ability: Sequence[float], rows: int, seed: int, *, ties: float = 0.0, clusters: int = 0
) -> Comparisons:
    """Verdicts of judges with these abilities on random pairs; a share of them is ties whatever the gap."""
    rng = np.random.default_rng(seed)
    logits, theta = np.asarray(truth, dtype=float), np.asarray(ability, dtype=float)
    a = rng.integers(0, len(logits), rows)
    b = (a + rng.integers(1, len(logits), rows)) % len(logits)
    judge = rng.integers(0, len(theta), rows)
    y = (rng.random(rows) < expit(theta[judge] * (logits[a] - logits[b]))).astype(float)
    y[rng.random(rows) < ties] = 0.5
    cluster = rng.integers(0, clusters, rows) if clusters else None
    models = [f"m{code:02d}" for code in range(len(logits))]
    return comparisons(a, b, y, models=models, judge=[f"j{code:02d}" for code in judge], cluster=cluster)


def likelihood(data: Comparisons, logits: NDArray[np.float64], ability: NDArray[np.float64]) -> float:
    """The log-likelihood as the paper writes it, row by row."""
    assert data.judge is not None
    share = expit(ability[data.judge] * (logits[data.a] - logits[data.b]))
    weight = np.ones(len(data)) if data.weight is None else data.weight
    return float(weight @ (data.y * np.log(share) + (1 - data.y) * np.log1p(-share)))


def flipped(data: Comparisons, judges: Sequence[str]) -> Comparisons:
    """The same table with all verdicts of some judges turned."""
    assert data.judge is not None
    turned = np.isin(np.array(data.judges)[data.judge], list(judges))
    return comparisons(
        data.a,
        data.b,
        np.where(turned, 1 - data.y, data.y),
        models=data.models,
        weight=data.weight,
        judge=[data.judges[code] for code in data.judge],
    )


def table(*rows: tuple[Any, ...]) -> Comparisons:
    """Comparisons from (judge, winner, loser) or (judge, model, other, y)."""
    y = [row[3] if len(row) > 3 else 1.0 for row in rows]
    return comparisons([row[1] for row in rows], [row[2] for row in rows], y, judge=[row[0] for row in rows])


def field_of(*more: tuple[Any, ...]) -> Comparisons:
    """Three judges with verdicts of both kinds on a field of four, and more rows."""
    rows: list[tuple[Any, ...]] = []
    for judge, wins in (("x", 3), ("y", 4), ("z", 2)):
        for better, worse in ("ab", "bc", "cd", "ac", "bd", "ad"):
            rows += [(judge, better, worse)] * wins + [(judge, worse, better)]
    return table(*rows, *more)


ABILITY = (1.6, 1.2, 1.0, 0.7, 0.5, -0.6)


def test_truth_is_recovered_within_four_standard_errors() -> None:
    truth, ability = np.linspace(1.2, -1.2, 8), np.array(ABILITY)
    found = am_elo(drawn(truth, ability, 12_000, seed=1), errors="hessian")
    scale = ability.mean()
    assert np.all(np.abs(found.ratings.logits - scale * truth) < 4 * found.ratings.se)
    assert np.all(np.abs(found.ability - ability / scale) < 4 * found.ability_se)
    assert found.ability.mean() == pytest.approx(1.0)
    assert found.ratings.se.max() < 0.06
    assert found.ability_se.max() < 0.12
    assert found.sign == "as the majority"
    lo, hi = found.ability_interval()
    assert hi - lo == pytest.approx(2 * 1.959964 * found.ability_se), "no clusters, no further factor"
    few = replace(found, degrees=7.0)
    lo, hi = few.ability_interval()
    assert hi - lo == pytest.approx(2 * 2.364624 * np.sqrt(8 / 6) * found.ability_se)
    assert found.separated == ()


@pytest.mark.parametrize("seed", range(6))
def test_no_other_optimiser_finds_a_higher_likelihood_from_many_starts(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    data = drawn(rng.normal(size=7), rng.normal(0.8, 0.7, 9), 700, seed, ties=0.2)
    found = am_elo(data, restarts=3)
    assert data.judge is not None
    assert found.loglik == pytest.approx(likelihood(data, found.ratings.logits, found.ability), abs=1e-9)
    assert found.ratings.diagnostics["gradient"] < 1e-11
    size = len(data.models)
    judge = data.judge

    def loss(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        gap = point[data.a] - point[data.b]
        theta = point[size:][judge]
        miss = expit(theta * gap) - data.y
        slope = np.bincount(data.a, miss * theta, size) - np.bincount(data.b, miss * theta, size)
        value = float(np.sum(np.logaddexp(0, theta * gap) - data.y * theta * gap))
        return value, np.concatenate([slope, np.bincount(judge, miss * gap, len(data.judges))])

    best = min(
        minimize(loss, rng.normal(size=size + len(data.judges)), jac=True, method="BFGS", options={"gtol": 1e-7}).fun
        for _ in range(8)
    )
    assert -found.loglik <= best + 1e-6
    assert found.restarts.starts == 4
    assert found.restarts.optima[0][0] == found.loglik
    assert sum(times for _, times in found.restarts.optima) + found.restarts.failed == 4


def test_one_judge_is_bradley_terry() -> None:
    data = drawn([0.8, 0.3, 0.0, -1.1], [1.3], 400, seed=2)
    found, plain = am_elo(data, errors="sandwich"), bradley_terry(data, errors="sandwich")
    assert found.ratings.logits == pytest.approx(plain.logits, abs=1e-9)
    assert found.ability.tolist() == [pytest.approx(1.0)]
    assert found.loglik == pytest.approx(plain.diagnostics["log_likelihood"])
    assert found.ratings.covariance == pytest.approx(plain.covariance, abs=1e-9)
    assert found.sign == "as the majority"


def test_turning_all_verdicts_of_some_judges_only_turns_the_sign_of_their_abilities() -> None:
    data = drawn([1.0, 0.6, 0.1, -0.5, -1.2], [1.5, 1.2, 1.0, 0.8, 0.6, 0.4], 3000, seed=3, ties=0.1)
    found, turned = am_elo(data, errors="none"), am_elo(flipped(data, ["j01", "j04"]), errors="none")
    assert turned.loglik == pytest.approx(found.loglik, abs=1e-8)
    sign = np.where(np.isin(data.judges, ["j01", "j04"]), -1.0, 1.0)
    scale = turned.ability[0] / found.ability[0]
    assert turned.ability == pytest.approx(sign * scale * found.ability, abs=1e-8)
    assert turned.ratings.logits * scale == pytest.approx(found.ratings.logits, abs=1e-8)


@settings(max_examples=25)
@given(st.integers(0, 2**31), st.booleans())
def test_order_of_rows_and_names_and_sides_changes_nothing(seed: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    data = drawn(rng.normal(size=5), rng.normal(1.0, 0.5, 4), 300, seed, ties=0.2)
    assert data.judge is not None
    weight = rng.integers(1, 5, len(data)).astype(float) if weighted else np.ones(len(data))
    a, b = (np.array(data.models)[codes].tolist() for codes in (data.a, data.b))
    judge = np.array(data.judges)[data.judge].tolist()
    plain = am_elo(comparisons(a, b, data.y, judge=judge, weight=weight))
    order, turn = rng.permutation(len(data)), rng.random(len(data)) < 0.5
    names = [f"q{place}" for place in rng.permutation(5)]
    renamed = dict(zip(data.models, names, strict=True))
    other_judges = {name: f"k{place}" for name, place in zip(data.judges, rng.permutation(4).tolist(), strict=True)}
    other = am_elo(
        comparisons(
            [renamed[b[row] if turn[row] else a[row]] for row in order],
            [renamed[a[row] if turn[row] else b[row]] for row in order],
            np.where(turn, 1 - data.y, data.y)[order],
            judge=[other_judges[judge[row]] for row in order],
            weight=weight[order],
        )
    )
    assert other.loglik == pytest.approx(plain.loglik, rel=1e-10)
    assert other.sign.split(":")[0] == plain.sign.split(":")[0]
    for code, name in enumerate(plain.ratings.models):
        there = other.ratings.models.index(renamed[name])
        assert other.ratings.logits[there] == pytest.approx(plain.ratings.logits[code], abs=1e-6, nan_ok=True)
        assert other.ratings.se[there] == pytest.approx(plain.ratings.se[code], rel=1e-5, nan_ok=True)
    for code, name in enumerate(plain.judges):
        there = other.judges.index(other_judges[name])
        assert other.ability[there] == pytest.approx(plain.ability[code], abs=1e-6, nan_ok=True)
        assert other.ability_se[there] == pytest.approx(plain.ability_se[code], rel=1e-5, nan_ok=True)


def test_recorded_votes_of_people_reach_the_best_likelihood_known(shared_data: Path) -> None:
    path = str(shared_data / "llmfao" / "comparisons.parquet")
    with duckdb.connect() as connection:
        rows = connection.execute(
            "SELECT annotator, first, second, verdict FROM read_parquet(?) WHERE annotator_kind = 'human' "
            "QUALIFY count(*) OVER (PARTITION BY annotator) >= 50",
            [path],
        ).fetchall()
    judge, first, second, verdict = zip(*rows, strict=True)
    outcome = {"first": 1.0, "tie": 0.5, "second": 0.0}
    y = [outcome[one] for one in verdict]
    data = comparisons(list(first), list(second), y, judge=[str(one) for one in judge])
    found = am_elo(data, restarts=5)
    assert (len(data), len(data.models), len(data.judges)) == (7393, 59, 37)
    assert -found.loglik == pytest.approx(4627.7775, abs=1e-4)
    assert found.restarts.optima == ((pytest.approx(found.loglik), 6),)
    assert found.sign == "as the majority"
    assert int((found.ability < 0).sum()) == 4
    assert found.ability.max() == pytest.approx(2.1062, abs=1e-4)
    assert found.ability.min() == pytest.approx(-0.5323, abs=1e-4)


# Judges without a finite ability


@pytest.mark.parametrize(("winner", "loser", "ability"), [("a", "d", np.inf), ("d", "a", -np.inf)])
def test_a_judge_with_one_verdict_is_named_and_moves_nobody(winner: str, loser: str, ability: float) -> None:
    plain, found = am_elo(field_of()), am_elo(field_of(("one", winner, loser)))
    assert found.separated == ("one",)
    assert found.ability[found.judges.index("one")] == ability
    assert "its verdicts all" in found.reasons["one"]
    assert found.ratings.logits == pytest.approx(plain.ratings.logits, abs=1e-9)
    assert found.ability[np.isfinite(found.ability)] == pytest.approx(plain.ability, abs=1e-9)
    assert found.loglik == pytest.approx(plain.loglik)
    assert found.ratings.se == pytest.approx(plain.ratings.se, rel=0.05)


def test_a_judge_that_never_contradicts_the_order_is_infinite_and_the_others_are_fitted_without_it() -> None:
    perfect = [("perfect", *pair) for pair in ("ab", "bc", "cd", "ac", "bd", "ad") for _ in range(3)]
    reverse = [("reverse", *pair) for pair in ("ba", "dc", "da")]
    plain, found = am_elo(field_of()), am_elo(field_of(*perfect, *reverse))
    assert dict(zip(found.judges, found.ability.tolist(), strict=True))["perfect"] == np.inf
    assert dict(zip(found.judges, found.ability.tolist(), strict=True))["reverse"] == -np.inf
    assert found.separated == ("perfect", "reverse")
    assert found.ratings.logits == pytest.approx(plain.ratings.logits, abs=1e-9)
    assert np.isnan(found.ability_se[found.judges.index("perfect")])


def test_a_judge_whose_order_holds_models_equal_is_at_the_edge_and_the_likelihood_is_the_limit() -> None:
    firm = [("firm", *pair) for pair in ("ab", "bd", "ad") for _ in range(9)] + [("firm", "d", "c")] * 9
    data = field_of(*firm)
    found = am_elo(data, restarts=4)
    assert found.separated == ("firm",)
    assert "come out equal" in found.reasons["firm"]
    c, d = (found.ratings.logits[data.models.index(name)] for name in "cd")
    assert c == pytest.approx(d, abs=2e-3)
    rest = data.select(
        np.array([data.judges[code] != "firm" for code in (data.judge if data.judge is not None else [])])
    )
    assert rest.judge is not None
    judge = rest.judge

    def loss(point: NDArray[np.float64]) -> float:
        logits = np.array([point[0], point[1], 0.0, 0.0])
        ability = np.insert(np.append(1.0, point[2:]), data.judges.index("firm"), 0.0)
        share = expit(ability[judge] * (logits[rest.a] - logits[rest.b]))
        return -float(rest.y @ np.log(share) + (1 - rest.y) @ np.log1p(-share))

    held = minimize(loss, [1.0, 0.5, 1.0, 1.0], method="BFGS", options={"gtol": 1e-6})
    assert -found.loglik == pytest.approx(held.fun, abs=2e-3)


def test_a_judge_of_nothing_but_ties_has_ability_zero_and_no_error() -> None:
    ties = [("even", *pair, 0.5) for pair in ("ab", "bc", "cd", "ac", "bd", "ad")]
    plain, found = am_elo(field_of()), am_elo(field_of(*ties))
    place = found.judges.index("even")
    assert found.ability[place] == pytest.approx(0.0, abs=1e-9)
    assert np.isnan(found.ability_se[place])
    others = np.delete(found.ability, place)
    assert others / others.mean() == pytest.approx(plain.ability, abs=1e-8)


def test_all_ties_are_equal_models_and_no_abilities() -> None:
    data = table(("x", "a", "b", 0.5), ("y", "b", "c", 0.5), ("x", "c", "a", 0.5), ("y", "a", "b", 0.5))
    found = am_elo(data)
    assert am_elo(data, ridge=0.1).ratings.logits == pytest.approx(np.zeros(3), abs=1e-12)
    assert found.ratings.logits == pytest.approx(np.zeros(3), abs=1e-12)
    assert np.isnan(found.ability).all()
    assert set(found.reasons.values()) == {"it compared only models of equal ratings"}
    assert found.sign.startswith("undecided: no judge")
    assert np.isnan(found.ratings.se).all()


def test_two_models_need_a_judge_that_contradicts_itself() -> None:
    one_way = am_elo(table(("x", "a", "b"), ("y", "b", "a"), ("y", "b", "a")))
    assert np.isnan(one_way.ratings.logits).all()
    assert "no judge has a finite ability" in one_way.ratings.diagnostics["no_estimate"]["a"]
    found = am_elo(table(*[("x", "a", "b")] * 3, ("x", "b", "a"), ("y", "b", "a")))
    assert found.ratings.logits[0] - found.ratings.logits[1] == pytest.approx(np.log(3))
    assert found.ability.tolist() == [pytest.approx(1.0), -np.inf]


# Models without a finite rating


def test_islands_and_undefeated_models_are_named_and_the_rest_is_rated() -> None:
    champion = [("x", "top", name) for name in "abcd"] + [("y", "top", "a")]
    island = [("x", "p", "q"), ("y", "q", "p")]
    plain, found = am_elo(field_of()), am_elo(field_of(*champion, *island))
    why = found.ratings.diagnostics["no_estimate"]
    assert set(why) == {"top", "p", "q"}
    assert why["top"].startswith("won every judgment it took part in")
    assert "no chain of wins" in why["p"]
    rated = np.isfinite(found.ratings.logits)
    assert [name for name, there in zip(found.ratings.models, rated, strict=True) if there] == ["a", "b", "c", "d"]
    assert found.ratings.logits[rated] == pytest.approx(plain.ratings.logits, abs=1e-9)
    assert np.isnan(found.ratings.se[~rated]).all()


def test_a_loss_by_a_judge_of_negative_ability_is_a_win() -> None:
    contrary = [("w", worse, better) for better, worse in ("ab", "bc", "cd", "ac", "bd", "ad") for _ in range(3)]
    contrary += [("w", better, worse) for better, worse in ("ab", "bc", "cd", "ac", "bd", "ad")]
    data = field_of(*contrary, ("x", "top", "a"), ("y", "top", "b"), ("w", "a", "top"))
    found = am_elo(data)
    assert found.ability[found.judges.index("w")] < 0
    why = found.ratings.diagnostics["no_estimate"]
    assert set(why) == {"top"}
    assert "negative ability" in why["top"]


# Sign


def test_judges_that_cancel_out_leave_the_sign_undecided() -> None:
    data = drawn([1.0, 0.4, -0.3, -1.1], [1.0, 1.1, -1.0, -1.05], 2000, seed=4)
    found = am_elo(data)
    assert found.sign.startswith("undecided: the mean ability is within 2 errors of 0")
    assert found.ability.mean() == pytest.approx(1.0)


def test_a_majority_by_votes_against_the_mean_leaves_the_sign_undecided() -> None:
    strong = drawn([1.0, 0.4, -0.3, -1.1], [4.0], 300, seed=5)
    weak = drawn([-1.0, -0.4, 0.3, 1.1], [0.5], 4000, seed=6)
    both = comparisons(
        np.concatenate([strong.a, weak.a]),
        np.concatenate([strong.b, weak.b]),
        np.concatenate([strong.y, weak.y]),
        judge=["strong"] * len(strong) + ["weak"] * len(weak),
    )
    found = am_elo(both)
    assert "judges with 93% of the verdicts have a negative one" in found.sign


def test_a_mean_of_nothing_keeps_numbers_finite() -> None:
    rows = [("x", *pair) for pair in ("ab", "bc", "ac") for _ in range(3)] + [("x", "b", "a"), ("x", "c", "b")]
    mirror = [("y", row[2], row[1]) for row in rows]
    found = am_elo(table(*rows, *mirror))
    assert "mean size is 1 instead" in found.sign
    assert np.abs(found.ability) == pytest.approx([1.0, 1.0])
    assert np.isfinite(found.ratings.logits).all()


# Penalties


@pytest.mark.parametrize(("ridge", "ability_ridge"), [(0.7, 0.9), (0.0, 2.0), (0.05, 0.0)])
def test_penalties_give_the_maximum_of_the_penalised_likelihood(ridge: float, ability_ridge: float) -> None:
    data = drawn([0.9, 0.2, -0.1, -1.0], [1.5, 0.8, 0.6], 150, seed=7)
    found = am_elo(data, ridge=ridge, ability_ridge=ability_ridge)

    def loss(point: NDArray[np.float64]) -> float:
        logits, ability = point[:4], point[4:].copy()
        if ability_ridge == 0.0:
            ability += 1.0 - ability.mean()
        held = 0.5 * ridge * float(logits @ logits) + 0.5 * ability_ridge * float(((ability - 1) ** 2).sum())
        return held - likelihood(data, logits, ability)

    best = minimize(loss, np.append(found.ratings.logits, found.ability), method="BFGS", options={"gtol": 1e-8})
    ability = best.x[4:] + (1.0 - best.x[4:].mean() if ability_ridge == 0.0 else 0.0)
    mean = ability.mean()
    assert found.ability == pytest.approx(ability / mean, abs=1e-4)
    assert found.ratings.logits == pytest.approx(mean * (best.x[:4] - best.x[:4].mean()), abs=1e-4)


def test_both_penalties_give_finite_answers_always() -> None:
    for data in (table(("x", "a", "b")), field_of(("one", "a", "d"), ("x", "top", "a"), ("x", "p", "q"))):
        found = am_elo(data, ridge=0.1, ability_ridge=1.0)
        assert np.isfinite(found.ratings.logits).all()
        assert np.isfinite(found.ability).all()
        assert found.separated == ()


# Extremes and refusals


def test_weights_of_a_million_million_count_as_rows_do() -> None:
    data = field_of()
    heavy = comparisons(
        data.a,
        data.b,
        data.y,
        models=data.models,
        weight=np.full(len(data), 1e12),
        judge=[data.judges[code] for code in (data.judge if data.judge is not None else [])],
    )
    plain, found = am_elo(data), am_elo(heavy)
    assert found.ratings.logits == pytest.approx(plain.ratings.logits, abs=1e-9)
    assert found.ratings.se == pytest.approx(plain.ratings.se, rel=1e-6)
    assert found.ability_se == pytest.approx(plain.ability_se, rel=1e-6)


def test_one_model_or_no_rows_have_no_ratings_and_say_why() -> None:
    empty = comparisons([], [], [], models=["a", "b"], judge=[])
    assert set(am_elo(empty).ratings.diagnostics["no_estimate"].values()) == {"took part in no readable judgment"}
    nobody = comparisons(["a"], ["b"], [1.0], judge=["x"], weight=[0.0])
    assert np.isnan(am_elo(nobody).ratings.logits).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ridge": -1.0}, "ridge is -1.0"),
        ({"ability_ridge": float("nan")}, "ability_ridge is nan"),
        ({"restarts": -1}, "restarts is -1"),
        ({"errors": "guess"}, "errors is 'guess'"),
        ({"errors": "cluster"}, "needs comparisons with a cluster"),
        ({"habits": ("mood",)}, "habit is 'mood'"),
        ({"habits": ("position",)}, "which answer was shown first"),
        ({"habits": ("position",), "first": [1.0]}, "first has shape"),
        ({"habits": ("position",), "first": [2.0] + [1.0] * 71}, "first, row 0"),
    ],
)
def test_what_cannot_be_is_refused_in_words(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        am_elo(field_of(), **options)
    with pytest.raises(InputError, match="these comparisons name none"):
        am_elo(comparisons(["a"], ["b"], [1.0]))


# Errors


def reported(found: AmElo) -> NDArray[np.float64]:
    return np.concatenate([found.ratings.logits, found.ability])


@pytest.mark.parametrize("kind", ["sandwich", "cluster", "hessian"])
def test_errors_are_those_of_the_whole_information_written_out(kind: str) -> None:
    """All parameters at once, one rating and one ability held, brought into the gauge by its derivative."""
    data = drawn(
        [1.0, 0.3, -0.2, -1.1], [1.4, 0.9, -0.5], 400, seed=8, clusters=30, ties=0.0 if kind == "hessian" else 0.2
    )
    found = am_elo(data, errors=kind)  # type: ignore[arg-type]
    assert data.judge is not None
    assert data.cluster is not None
    size, point = 4, reported(found)

    def rows(at: NDArray[np.float64]) -> NDArray[np.float64]:
        share = expit(at[size:][data.judge] * (at[data.a] - at[data.b]))
        return np.asarray(data.y * np.log(share) + (1 - data.y) * np.log1p(-share))

    step = 1e-5
    unit = np.eye(len(point)) * step
    scores = np.array([(rows(point + one) - rows(point - one)) / (2 * step) for one in unit]).T
    wide = 20 * unit
    hessian = np.array(
        [
            [
                (rows(point + i + j) - rows(point + i - j) - rows(point - i + j) + rows(point - i - j)).sum()
                for j in wide
            ]
            for i in wide
        ]
    ) / (4 * (20 * step) ** 2)
    free = [code for code in range(len(point)) if code not in (0, size)]
    inverse = np.linalg.inv(-hessian[np.ix_(free, free)])
    if kind == "hessian":
        spread = inverse
    else:
        unit_of = data.cluster if kind == "cluster" else np.arange(len(data))
        sums = np.zeros((unit_of.max() + 1, len(free)))
        np.add.at(sums, unit_of, scores[:, free])
        count = len(np.unique(unit_of))
        spread = inverse @ (sums.T @ sums) @ inverse * count / (count - 1)

    def gauge(at: NDArray[np.float64]) -> NDArray[np.float64]:
        mean = at[size:].mean()
        return np.concatenate([(at[:size] - at[:size].mean()) * mean, at[size:] / mean])

    turn = np.array([(gauge(point + one) - gauge(point - one)) / (2 * step) for one in unit]).T[:, free]
    whole = turn @ spread @ turn.T
    assert found.ratings.covariance == pytest.approx(whole[:size, :size], rel=1e-4, abs=1e-6)
    assert found.ability_se == pytest.approx(np.sqrt(np.diagonal(whole)[size:]), rel=1e-4)
    assert found.ratings.errors == kind

    def mean(at: NDArray[np.float64]) -> float:
        return float(at[size:].mean() * np.std(at[:size]))

    limit, _ = best_optimum(fit_problem(data, 0.0, 0.0, (), None), 0, 0)
    assert limit is not None
    told = standard_errors_of(limit, data, None, Penalty(), np.ones(3, dtype=np.bool_), kind)  # type: ignore[arg-type]
    lean = np.array([(mean(point + one) - mean(point - one)) / (2 * step) for one in unit])[free]
    assert told.mean == pytest.approx(np.sqrt(lean @ spread @ lean), rel=1e-4)


def test_errors_by_hessian_are_refused_where_outcomes_are_not_decisive() -> None:
    with pytest.raises(InputError, match="holds for outcomes 0 and 1 alone"):
        am_elo(field_of(("x", "a", "b", 0.5)), errors="hessian")


def test_a_judge_heard_on_one_instruction_has_an_ability_without_an_error() -> None:
    data = drawn([1.0, 0.3, -0.2, -1.1], [1.4, 0.9, 1.0], 600, seed=10, clusters=20)
    assert data.judge is not None
    assert data.cluster is not None
    lone = np.where(data.judge == 2, 0, data.cluster)
    found = am_elo(
        comparisons(data.a, data.b, data.y, models=data.models, judge=data.judge.astype(np.int64), cluster=lone)
    )
    assert np.isfinite(found.ability).all()
    assert np.isnan(found.ability_se).tolist() == [False, False, True]


def test_one_instruction_has_no_errors_and_says_so() -> None:
    data = field_of()
    lone = comparisons(
        data.a,
        data.b,
        data.y,
        models=data.models,
        judge=list(map(str, data.judge)),
        cluster=["i"] * len(data),  # type: ignore[arg-type]
    )
    found = am_elo(lone)
    assert np.isnan(found.ratings.se).all()
    assert found.ratings.diagnostics["errors_reason"] == "errors cannot be told from one cluster"


# What ability is


def test_a_decided_judge_that_is_wrong_is_consistent_and_has_little_ability() -> None:
    """It always prefers the same of two models, by an order of its own that has little to do with the common one."""
    truth = np.linspace(1.5, -1.5, 6)
    rng = np.random.default_rng(9)
    own = truth[[2, 4, 0, 5, 1, 3]]
    columns: dict[str, list[Any]] = {"judge": [], "a": [], "b": [], "y": []}
    for name, order, slope in (("wrong", own, 4.0), *((f"good{code}", truth, 1.0) for code in range(4))):
        a = rng.integers(0, 6, 900)
        b = (a + rng.integers(1, 6, 900)) % 6
        columns["judge"] += [name] * 900
        columns["a"] += a.tolist()
        columns["b"] += b.tolist()
        columns["y"] += (rng.random(900) < expit(slope * (order[a] - order[b]))).astype(float).tolist()
    data = comparisons(columns["a"], columns["b"], columns["y"], judge=columns["judge"])
    found = am_elo(data)
    place = found.judges.index("wrong")
    assert abs(found.ability[place]) < 0.5
    assert np.delete(found.ability, place).min() > 0.9
    assert np.corrcoef(found.ratings.logits, truth)[0, 1] > 0.99
    assert found.ratings.elo.max() - found.ratings.elo.min() > 0.7 * POINTS_PER_LOGIT * 3
    assert data.judge is not None
    kept = data.select(data.judge == place)
    share = np.array([kept.y[(kept.a == i) & (kept.b == j)].mean() for i in range(6) for j in range(6) if i != j])
    assert 1 - 4 * float((share * (1 - share)).mean()) > 0.7
    assert float(logit(0.75)) > 0


def test_five_judges_widen_ratings_and_leave_their_abilities_as_they_are() -> None:
    rng = np.random.default_rng(4)
    judge, item, a, b = (column.ravel() for column in np.indices((6, 20, 4, 4)))
    judge, item, a, b = (column[a < b] for column in (judge, item, a, b))
    taste, slope = 0.6 * rng.normal(size=(6, 4)) - np.arange(4), np.linspace(0.5, 1.5, 6)
    odds = slope[judge] * (taste[judge, a] - taste[judge, b])
    y = (rng.random((2, len(odds))) < expit(odds)).mean(axis=0)
    these = comparisons(a, b, y, judge=judge, cluster=item)
    of_these, of_others = am_elo(these), am_elo(replace(these, crossed=True))
    assert (of_these.ratings.errors, of_others.ratings.errors) == ("cluster", "two-way")
    assert (of_these.ratings.degrees, of_others.ratings.degrees) == (19.0, 5.0)
    assert of_others.ratings.diagnostics["respondents"] == 6
    assert np.mean(of_others.ratings.se / of_these.ratings.se) > 1.5
    np.testing.assert_array_equal(of_others.ability_se, of_these.ability_se)
    np.testing.assert_array_equal(of_others.ability_interval(), of_these.ability_interval())
    few = these.select(judge < 4)
    np.testing.assert_array_equal(am_elo(replace(few, crossed=True)).ratings.se, am_elo(few).ratings.se)
