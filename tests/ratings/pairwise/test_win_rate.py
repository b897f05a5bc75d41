"""Win rates and their errors."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.pairwise.win_rate import against_baseline, win_rate, win_rate_balanced


def battles(rows: int = 300, models: int = 4, seed: int = 0, clusters: int = 25) -> Comparisons:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, models, rows)
    b = (a + rng.integers(1, models, rows)) % models
    y, weight = rng.choice([0.0, 0.5, 1.0], rows), rng.random(rows) + 0.1
    return comparisons(a, b, y, weight=weight, cluster=rng.integers(0, clusters, rows))


def test_raw_and_balanced_by_hand() -> None:
    # a beats b three times of four, and loses its one battle with c.
    data = comparisons(list("aaaac"), list("bbbba"), [1, 1, 1, 0, 1])
    assert win_rate(data).rate == pytest.approx([3 / 5, 1 / 4, 1.0])
    assert win_rate_balanced(data).rate == pytest.approx([(3 / 4 + 0) / 2, 1 / 4, 1.0])


def test_alike_numbers_of_battles_make_both_the_same() -> None:
    a, b = np.triu_indices(4, 1)
    y = np.random.default_rng(0).choice([0.0, 0.5, 1.0], 60)
    data = comparisons(np.tile(a, 10), np.tile(b, 10), y, cluster=np.repeat(np.arange(10), 6))
    raw, balanced = win_rate(data), win_rate_balanced(data)
    assert balanced.rate == pytest.approx(raw.rate)
    assert raw.rate.mean() == pytest.approx(0.5)


@pytest.mark.parametrize("method", [win_rate, win_rate_balanced])
def test_errors_are_those_of_drawing_whole_clusters(method: type) -> None:
    data, rng = battles(1200, clusters=60, seed=2), np.random.default_rng(1)
    assert data.cluster is not None
    assert data.weight is not None
    members = [np.flatnonzero(data.cluster == code) for code in range(60)]
    drawn = []
    for _ in range(400):
        rows = np.concatenate([members[code] for code in rng.integers(0, 60, 60)])
        again = Comparisons(data.models, data.a[rows], data.b[rows], data.y[rows], data.weight[rows])
        drawn.append(method(again).rate)
    found = method(data)
    assert np.std(drawn, axis=0) == pytest.approx(found.se, rel=0.15)
    assert np.corrcoef(np.transpose(drawn))[0, 1] == pytest.approx(
        found.covariance[0, 1] / found.se[0] / found.se[1], abs=0.15
    )


def test_errors_of_rows_on_their_own_by_hand() -> None:
    # a: four battles with b, two with c.
    data = comparisons(list("aaaaaa"), list("bbbbcc"), [1, 1, 0, 1, 0.5, 0])
    raw, balanced = win_rate(data), win_rate_balanced(data)
    assert raw.se[0] == pytest.approx(np.std(data.y, ddof=1) / np.sqrt(6))
    assert raw.se[1] == pytest.approx(np.std([0, 0, 1, 0], ddof=1) / 2)
    # Each opponent counts a half; each row leans from the share against its own opponent.
    with_b, with_c = np.sum((data.y[:4] - 0.75) ** 2) / 8**2, np.sum((data.y[4:] - 0.25) ** 2) / 4**2
    assert balanced.se[0] == pytest.approx(np.sqrt((with_b + with_c) * 6 / 5))
    assert balanced.se[1] == pytest.approx(raw.se[1])


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from([win_rate, win_rate_balanced]))
def test_neither_row_order_nor_names_nor_sides_nor_halved_doubles_matter(seed: int, method: type) -> None:
    data, rng = battles(80), np.random.default_rng(seed)
    assert data.cluster is not None
    assert data.weight is not None
    rows, turn, names = rng.permutation(80), rng.random(80) < 0.5, rng.permutation(4)
    place = np.argsort(names).astype(np.int32)
    a, b = place[data.a], place[data.b]
    twice = np.concatenate([rows, rows[:30]])
    share = np.where(np.isin(twice, rows[:30]), 0.5, 1.0)
    other = Comparisons(
        models=tuple(data.models[code] for code in names),
        a=np.where(turn, b, a)[twice],
        b=np.where(turn, a, b)[twice],
        y=np.where(turn, 1.0 - data.y, data.y)[twice],
        weight=data.weight[twice] * share,
        cluster=data.cluster[twice],
        clusters=data.clusters,
    )
    first, second = method(data), method(other)
    assert second.rate == pytest.approx(first.rate[names], abs=1e-12)
    assert second.se == pytest.approx(first.se[names], abs=1e-12)
    assert second.ratings.logits == pytest.approx(first.ratings.logits[names], abs=1e-10)


def test_errors_of_logits_follow_from_those_of_rates() -> None:
    data = battles()
    found, step = win_rate(data), 1e-6
    slopes = []
    for direction in np.eye(4):
        odds = [np.log(rate / (1 - rate)) for rate in (found.rate + step * direction, found.rate - step * direction)]
        slopes.append((odds[0] - odds[0].mean() - odds[1] + odds[1].mean()) / (2 * step))
    turned = np.array(slopes).T
    assert found.ratings.covariance == pytest.approx(turned @ found.covariance @ turned.T, rel=1e-6)
    assert found.ratings.logits.mean() == pytest.approx(0.0, abs=1e-12)


def test_rates_of_all_and_nothing_have_no_logits_and_say_why() -> None:
    data = comparisons(list("aab"), list("bcc"), [1, 1, 0.5], weight=[1, 1, 1], models=list("abcd"))
    found = win_rate(data)
    assert found.rate[:3] == pytest.approx([1.0, 0.25, 0.25])
    assert np.isnan(found.rate[3])
    assert np.isnan(found.ratings.logits).tolist() == [True, False, False, True]
    assert found.ratings.diagnostics["no_estimate"] == {
        "a": "a win rate of 1 has infinite log odds",
        "d": "it has no comparison with a weight above 0",
    }
    assert found.ratings.unit == "win rate"
    assert np.isnan(win_rate(comparisons(["a"], ["b"], [1])).ratings.logits).all()


def test_intervals_are_t_on_log_odds_by_each_models_clusters() -> None:
    data = battles()
    found, beside = win_rate(data), against_baseline(data, "0")
    lo, hi = found.interval(0.9)
    spread = found.rate * (1.0 - found.rate)
    half = t.ppf(0.95, found.units - 1) * found.se / spread
    assert np.log(hi / (1.0 - hi)) - np.log(lo / (1.0 - lo)) == pytest.approx(2.0 * half)
    assert ((lo < found.rate) & (found.rate < hi)).all()
    low, high = beside.interval()
    assert ((low < beside.rate) & (beside.rate < high)).all()
    assert np.isnan(win_rate(comparisons(["a"], ["b"], [1])).interval()[0]).all()


def test_a_baseline_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match=r"baseline gpt-9 is not among the models; .*here are: 0, 1"):
        against_baseline(battles(), "gpt-9")


def test_alpaca_eval_win_rates_and_errors(shared_data: Path) -> None:
    folder = shared_data / "alpaca_eval"
    with duckdb.connect() as connection:
        rows = connection.execute(
            "SELECT model, prob_model_beats_baseline, instruction_id FROM read_parquet(?)",
            [str(folder / "judgments.parquet")],
        ).fetchall()
        published = connection.execute(
            "SELECT name, win_rate, standard_error FROM (SELECT model AS name, * FROM read_parquet(?)) "
            "WHERE has_judgments",
            [str(folder / "models.parquet")],
        ).fetchall()
    model, y, instruction = zip(*rows, strict=True)
    # Sides alternate, as the baseline may stand on either.
    turn = np.arange(len(rows)) % 2 == 0
    baseline = np.full(len(rows), "gpt4_1106_preview")
    data = comparisons(
        np.where(turn, baseline, model),
        np.where(turn, model, baseline),
        np.where(turn, 1.0 - np.array(y), y),
        cluster=instruction,
    )
    found = against_baseline(data, "gpt4_1106_preview")
    figures = dict(zip(found.models, np.column_stack([found.rate, found.se]).tolist(), strict=True))
    assert len(published) == len(figures) == 20
    for name, rate, error in published:
        assert figures[name] == pytest.approx([rate / 100, error / 100], abs=1e-11)
    assert np.multiply(figures["alpaca-7b"], 100) == pytest.approx([2.591451, 0.487086], abs=1e-6)


def test_what_does_not_scatter_has_no_error_and_the_reason_names_it() -> None:
    ties = win_rate(comparisons(list("abcabc"), list("bcabca"), [0.5] * 6))
    assert np.isnan(ties.se).all()
    assert "that of a, b, c cannot be told" in ties.ratings.diagnostics["errors_reason"]
    once = comparisons(list("abcadd"), list("bcabab"), [1.0, 1.0, 1.0, 0.0, 0.0, 1.0], cluster=list("pqrstt"))
    found = win_rate(once)
    assert np.isnan(found.se).tolist() == [False, False, False, True]
    assert np.isnan(found.ratings.se).all()
    assert "that of d cannot be told" in found.ratings.diagnostics["errors_reason"]
    assert win_rate(battles()).ratings.diagnostics["errors_reason"] is None


def test_the_model_of_the_fewest_clusters_gives_the_degrees_of_freedom() -> None:
    data = comparisons(list("abababcc"), list("bababaab"), [1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0], cluster=range(8))
    assert win_rate(data).ratings.degrees == 1.0  # c met others in 2 of the 8 clusters
