"""A bootstrap whose every replicate is exact, drawn by battle or by instruction, the same for the same seed."""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import poisson

from venire.arena.errors import InputError
from venire.arena.scale import POINTS_PER_LOGIT
from venire.orchestrator.engines.ray_tasks import RayExecutor
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.data.wins import win_counts
from venire.ratings.inference import bootstrap as module
from venire.ratings.inference.bootstrap import Replicates, bootstrap_battles, bootstrap_clusters, poisson_counts
from venire.ratings.inference.refitting import Refits
from venire.ratings.pairwise.bradley_terry import bradley_terry, bradley_terry_wins
from venire.ratings.pairwise.covariance import bradley_terry_covariance

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Bootstrap = Callable[..., Replicates]

BOTH = pytest.mark.parametrize("bootstrap", [bootstrap_battles, bootstrap_clusters])


def board(
    seed: int, size: int = 5, rows: int = 600, clusters: int = 60, kind: str = "hard", spread: float = 1.0
) -> Comparisons:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, size, rows)
    b = (a + 1 + rng.integers(0, size - 1, rows)) % size
    truth = np.linspace(spread, -spread, size)
    share = 1.0 / (1.0 + np.exp(truth[b] - truth[a]))
    y = (rng.random(rows) < share).astype(float)
    y[rng.random(rows) < 0.2] = 0.5
    if kind == "soft":
        y = np.clip(share + rng.normal(0.0, 0.2, rows), 0.0, 1.0)
    weight = rng.choice([0.0, 0.5, 2.0], rows) if kind == "weighted" else None
    return comparisons(a, b, y, weight=weight, cluster=rng.integers(0, clusters, rows))


def estimate(data: Comparisons) -> Vector:
    return bradley_terry_wins(win_counts(data)).logits


@BOTH
@pytest.mark.parametrize("kind", ["hard", "soft", "weighted"])
def test_every_replicate_is_at_its_own_maximum(
    monkeypatch: pytest.MonkeyPatch, bootstrap: Bootstrap, kind: str
) -> None:
    drawn: list[tuple[Refits, Matrix]] = []
    solve = Refits.solve
    monkeypatch.setattr(Refits, "solve", lambda self, weights: drawn.append((self, weights)) or solve(self, weights))
    data = board(1, kind=kind)
    found = bootstrap(data, estimate(data), replicates=100, seed=3)
    assert found.without_estimate == 0
    weights = np.concatenate([block for _, block in drawn], axis=1)
    system = drawn[0][0]
    assert weights.shape == (20, 100)
    gradient = system.gradient(weights, found.logits.T)
    assert np.abs(gradient / weights.sum(axis=0)).max() < 1e-7
    wins = np.zeros((5, 5))
    wins[system.high, system.low], wins[system.low, system.high] = weights[:10, 7], weights[10:, 7]
    assert found.logits[7] == pytest.approx(bradley_terry_wins(wins, data.models).logits, abs=1e-6)
    assert found.logits.sum(axis=1) == pytest.approx(0.0, abs=1e-12)


@BOTH
@pytest.mark.parametrize("kind", ["hard", "soft", "weighted"])
def test_the_scatter_is_that_of_the_sandwich(bootstrap: Bootstrap, kind: str) -> None:
    """2,000 replicates have a standard error of 1.6 % a model; the mean over models stays within 3 %."""
    data = board(2, size=6, rows=4000, clusters=400, kind=kind)
    logits = estimate(data)
    errors = "sandwich" if bootstrap is bootstrap_battles else "cluster"
    ratio = bootstrap(data, logits, replicates=2000).se / bradley_terry_covariance(data, logits, errors=errors).se
    assert ratio.mean() == pytest.approx(1.0, abs=0.03)
    assert np.abs(ratio - 1.0).max() < 0.08


@BOTH
def test_the_first_replicates_are_the_same_however_many_are_asked_for(bootstrap: Bootstrap) -> None:
    data = board(3)
    logits = estimate(data)
    many = bootstrap(data, logits, replicates=150, seed=5).logits
    assert np.array_equal(bootstrap(data, logits, replicates=10, seed=5).logits, many[:10])
    assert np.array_equal(bootstrap(data, logits, replicates=64, seed=5).logits, many[:64])
    assert not np.isclose(bootstrap(data, logits, replicates=10, seed=6).logits, many[:10]).any()
    assert not np.isclose(many[:64], many[64:128]).any()


@BOTH
@pytest.mark.parametrize("kind", ["hard", "weighted"])
def test_draws_do_not_depend_on_sizes_of_blocks(
    monkeypatch: pytest.MonkeyPatch, bootstrap: Bootstrap, kind: str
) -> None:
    data = board(4, kind=kind)
    logits = estimate(data)
    whole = bootstrap(data, logits, replicates=80).logits
    monkeypatch.setattr(module, "_CELLS", 7)
    monkeypatch.setattr(module, "_ENTRIES", 5 * 60)
    assert bootstrap(data, logits, replicates=80).logits == pytest.approx(whole, abs=1e-12)


def same_bytes(executor: Executor) -> bool:
    """Whether blocks drawn by an executor make the bytes of those drawn here, the last one not being full."""
    for data in (board(4), board(4, kind="weighted")):
        for bootstrap in (bootstrap_battles, bootstrap_clusters):
            found = bootstrap(data, estimate(data), replicates=150, seed=3, executor=executor)
            if found.logits.tobytes() != bootstrap(data, estimate(data), replicates=150, seed=3).logits.tobytes():
                return False
    return True


def test_processes_draw_the_same_replicates() -> None:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert same_bytes(pool)


@pytest.mark.ray
def test_ray_draws_the_same_replicates(ray_cluster: Any) -> None:
    with RayExecutor(ray_cluster) as executor:
        assert same_bytes(executor)


@BOTH
def test_what_an_executor_raises_is_raised(bootstrap: Bootstrap) -> None:
    """One that is shut down takes no call."""
    data = board(4)
    executor = ProcessPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(RuntimeError, match="after shutdown"):
        bootstrap(data, estimate(data), executor=executor)


@BOTH
@pytest.mark.parametrize("kind", ["hard", "weighted"])
def test_order_of_rows_and_sides_does_not_matter(bootstrap: Bootstrap, kind: str) -> None:
    data = board(5, kind=kind)
    logits = estimate(data)
    rng = np.random.default_rng(5)
    order, swap = rng.permutation(len(data)), rng.random(len(data)) < 0.5
    assert data.cluster is not None
    again = comparisons(
        np.where(swap, data.b, data.a)[order],
        np.where(swap, data.a, data.b)[order],
        np.where(swap, 1.0 - data.y, data.y)[order],
        weight=None if data.weight is None else data.weight[order],
        cluster=data.cluster[order],
    )
    assert bootstrap(again, logits, replicates=70).logits == pytest.approx(
        bootstrap(data, logits, replicates=70).logits, abs=1e-9
    )


def test_clusters_are_drawn_whole_and_as_many_as_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each cluster meets on a pair of its own: how often the pair counts is how often its cluster was drawn."""
    drawn: list[Matrix] = []
    solve = Refits.solve
    monkeypatch.setattr(Refits, "solve", lambda self, weights: drawn.append(weights) or solve(self, weights))
    pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]
    rows = [(a, b, y, code) for code, (a, b) in enumerate(pairs) for y in (0.0, 1.0, 1.0)]
    a, b, y, cluster = (np.array(column) for column in zip(*rows, strict=True))
    data = comparisons(a, b, y, cluster=cluster)
    found = bootstrap_clusters(data, estimate(data), replicates=64)
    times = drawn[0][:6] / 2.0
    assert np.array_equal(times, drawn[0][6:])
    assert times.sum(axis=0).tolist() == [6.0] * 64
    assert (found.unit, found.units) == ("cluster", 6)


def test_a_replicate_is_the_fit_of_its_clusters_repeated() -> None:
    """The sums by pair and the shared steps must give what a fit of the drawn rows gives; the draws are the seed's."""
    data = board(11, rows=300, clusters=40)
    found = bootstrap_clusters(data, estimate(data), replicates=5, seed=11)
    rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence([11, 0])))
    assert data.cluster is not None
    for logits in found.logits:
        rows = np.concatenate([np.flatnonzero(data.cluster == code) for code in rng.integers(0, 40, 40)])
        assert logits == pytest.approx(estimate(data.select(rows)), abs=1e-6)


@BOTH
def test_replicates_that_fall_apart_are_counted_and_open_the_intervals(bootstrap: Bootstrap) -> None:
    """The best model lost once in all: a replicate has that loss with a chance of about 0.63."""
    data = comparisons(
        ["a"] * 9 + ["b"] * 18, ["b"] * 9 + ["c"] * 18, [1.0] * 8 + [0.0] + [1.0, 0.0] * 9, cluster=np.arange(27)
    )
    found = bootstrap(data, estimate(data), replicates=1000)
    assert 320 < found.without_estimate < 420
    assert (~np.isfinite(found.logits)).any(axis=1).sum() == found.without_estimate
    assert len(found.estimates) == 1000 - found.without_estimate
    assert np.isfinite(found.se).all()
    lo, hi = found.interval()
    assert hi[0] == np.inf
    assert 800.0 < lo[0] < 1300.0
    assert lo[2] == -np.inf
    inner = found.interval(0.2)
    assert np.isfinite(inner[0][0])
    assert np.isfinite(inner[1][0])


@BOTH
def test_one_win_of_three_is_open_to_both_sides(bootstrap: Bootstrap) -> None:
    data = comparisons(list("aaa"), list("bbb"), [1.0, 0.0, 0.0], cluster=[0, 1, 2])
    found = bootstrap(data, estimate(data), replicates=200)
    assert found.without_estimate > 50
    assert [bound.tolist() for bound in found.interval()] == [[-np.inf, -np.inf], [np.inf, np.inf]]


@BOTH
def test_a_held_model_does_not_move_and_a_ridge_always_has_an_estimate(bootstrap: Bootstrap) -> None:
    data = comparisons(["a"] * 6 + ["b"] * 6, ["b"] * 6 + ["c"] * 6, [1.0] * 12, cluster=np.arange(12))
    logits = np.array([1.0, 0.0, -1.0])
    found = bootstrap(data, logits, replicates=70, ridge=0.5, fixed=np.array([True, False, False]))
    assert found.without_estimate == 0
    assert found.logits[:, 0].tolist() == [1.0] * 70
    assert found.logits[:, 1].std() > 0.05


@BOTH
@pytest.mark.parametrize("ridge", [0.0, 3.0])
def test_one_held_model_is_no_more_than_a_gauge(bootstrap: Bootstrap, ridge: float) -> None:
    data = board(11)
    free = bootstrap(data, estimate(data), replicates=70, ridge=ridge).logits
    held = np.arange(5) == 3
    anchored = bootstrap(data, estimate(data) + 7.0, replicates=70, ridge=ridge, fixed=held).logits
    assert anchored - anchored[:, [3]] == pytest.approx(free - free[:, [3]], abs=1e-9)
    assert np.unique(anchored[:, 3]).tolist() == [(estimate(data) + 7.0)[3]]


@BOTH
def test_a_model_without_an_estimate_is_left_out(bootstrap: Bootstrap) -> None:
    data = board(6)
    keep = (data.a != 4) & (data.b != 4)
    assert data.cluster is not None
    less = comparisons(data.a[keep], data.b[keep], data.y[keep], cluster=data.cluster[keep])
    logits = estimate(less)
    found = bootstrap(data, np.append(logits, np.nan), replicates=70)
    assert np.isnan(found.logits[:, 4]).all()
    assert found.without_estimate == 0
    assert np.array_equal(found.logits[:, :4], bootstrap(less, logits, replicates=70).logits)
    assert math.isnan(found.se[4])
    assert math.isnan(found.interval()[0][4])


@BOTH
def test_intervals_are_percentiles_or_their_mirror_image(bootstrap: Bootstrap) -> None:
    data = board(7)
    logits = estimate(data)
    found = bootstrap(data, logits, replicates=200)
    lo, hi = found.interval(0.8)
    assert lo == pytest.approx(1000 + POINTS_PER_LOGIT * np.quantile(found.logits, 0.1, axis=0))
    assert hi == pytest.approx(1000 + POINTS_PER_LOGIT * np.quantile(found.logits, 0.9, axis=0))
    basic_lo, basic_hi = found.interval(0.8, kind="basic")
    elo = 1000 + POINTS_PER_LOGIT * logits
    assert basic_lo == pytest.approx(2 * elo - hi)
    assert basic_hi == pytest.approx(2 * elo - lo)
    assert found.se == pytest.approx(found.logits.std(axis=0, ddof=1))


def test_one_unit_or_no_replicate_has_no_interval() -> None:
    one = comparisons(["a", "b"], ["b", "a"], [1.0, 1.0], cluster=[0, 0])
    assert np.isnan(bootstrap_clusters(one, np.zeros(2), replicates=50).interval()[0]).all()
    assert np.isnan(bootstrap_clusters(one, np.zeros(2), replicates=50).se).all()
    data = board(8)
    none = bootstrap_battles(data, estimate(data), replicates=0)
    assert none.logits.shape == (0, 5)
    assert np.isnan(none.interval()[1]).all()
    assert none.without_estimate == 0
    assert np.isnan(bootstrap_battles(data, estimate(data), replicates=1).interval()[0]).all()


@BOTH
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"replicates": -1}, "replicates is -1"),
        ({"seed": -1}, "seed is -1"),
        ({"ridge": -1.0}, "ridge is -1.0"),
        ({"ridge": float("nan")}, "ridge is nan"),
        ({"fixed": np.array([True])}, r"fixed has shape \(1,\)"),
    ],
)
def test_what_is_not_possible_is_refused_by_name(bootstrap: Bootstrap, change: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        bootstrap(board(9), np.zeros(5), **change)


@BOTH
def test_an_anchor_that_met_nobody_holds_nothing(bootstrap: Bootstrap) -> None:
    data = replace(board(9), models=(*board(9).models, "idle"))
    first = data.models[0]
    one, two = {first: 1100.0}, {first: 1100.0, "idle": 1300.0}
    found = [
        bootstrap(
            data,
            bradley_terry(data, ridge=5.0, anchors=anchors, errors="none").logits,
            replicates=40,
            ridge=5.0,
            fixed=np.isin(data.models, list(anchors)),
        )
        for anchors in (one, two)
    ]
    assert np.allclose(found[0].logits[:, :5], found[1].logits[:, :5], atol=1e-6)
    assert np.isnan(found[0].logits[:, 5]).all()
    assert found[1].interval()[0][5] == pytest.approx(1300.0)


def test_a_battle_of_no_weight_is_no_unit() -> None:
    data = comparisons(["a", "a"], ["b", "b"], [0.5, 1.0], weight=[1.0, 0.0])
    found = bootstrap_battles(data, np.zeros(2), replicates=20)
    assert found.units == 1
    assert np.isnan(found.se).all()


def test_other_refusals_say_what_to_do() -> None:
    data = comparisons(["a", "b"], ["b", "a"], [1.0, 1.0])
    with pytest.raises(InputError, match="use bootstrap_battles"):
        bootstrap_clusters(data, np.zeros(2))
    found = bootstrap_battles(data, np.zeros(2), replicates=5)
    with pytest.raises(InputError, match=r"level is 95"):
        found.interval(95)
    with pytest.raises(InputError, match="kind is 'bca'"):
        found.interval(kind="bca")  # type: ignore[arg-type]


@pytest.mark.slow
@BOTH
def test_a_million_battles_of_a_hundred_models_scatter_as_the_sandwich_says(bootstrap: Bootstrap) -> None:
    """Mean over models within 1 %; single models scatter by the 2.2 % that 1,000 replicates leave."""
    data = board(10, size=100, rows=1_000_000, clusters=2000)
    logits = estimate(data)
    errors = "sandwich" if bootstrap is bootstrap_battles else "cluster"
    found = bootstrap(data, logits, replicates=1000)
    ratio = found.se / bradley_terry_covariance(data, logits, errors=errors).se
    assert found.without_estimate == 0
    assert ratio.mean() == pytest.approx(1.0, abs=0.01)
    assert np.abs(ratio - 1.0).max() < 0.08


@pytest.mark.parametrize("count", [1, 2, 3, 17, 67, 400, 5000])
def test_a_table_is_the_law(count: int) -> None:
    tables = poisson_counts(np.full(200, count))
    size = len(tables.threshold)
    assert size == 1 << int(tables.bits[0])
    keep = tables.threshold / (1 << (32 - int(tables.bits[0])))
    chance = np.bincount(tables.pick[0::2].astype(int), keep / size, 2 * count + 200)
    chance += np.bincount(tables.pick[1::2].astype(int), (1.0 - keep) / size, 2 * count + 200)
    assert chance == pytest.approx(poisson.pmf(np.arange(2 * count + 200), count), abs=1e-7)


@pytest.mark.parametrize("tables_pay", [100, 0])
def test_draws_have_the_mean_and_variance_of_each_count(monkeypatch: pytest.MonkeyPatch, tables_pay: int) -> None:
    monkeypatch.setattr(module, "_TABLES_PAY", tables_pay)
    counts = np.tile([1, 5, 67, 67, 300], 30)
    tables = poisson_counts(counts)
    assert bool(len(tables.pick)) == bool(tables_pay)
    drawn = tables.draw(np.random.default_rng(1), slice(0, 150), 2000)
    assert drawn.shape == (150, 2000)
    assert np.abs((drawn.mean(axis=1) - counts) / np.sqrt(counts / 2000)).max() < 4.5
    assert drawn.var(axis=1) / counts == pytest.approx(1.0, abs=0.16)
    assert np.abs(np.corrcoef(drawn[:20])[np.triu_indices(20, 1)]).max() < 0.1


def test_draws_do_not_depend_on_how_they_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = poisson_counts(np.tile([1, 5, 67], 50))
    whole = tables.draw(np.random.default_rng(1), slice(0, 150), 64)
    monkeypatch.setattr(module, "_CHUNK", 7 * 64)
    rng = np.random.default_rng(1)
    parts = [tables.draw(rng, slice(start, start + 30), 64) for start in range(0, 150, 30)]
    assert np.array_equal(np.concatenate(parts), whole)
