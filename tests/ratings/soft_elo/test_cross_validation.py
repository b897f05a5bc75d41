"""A model left out is placed by fits that never saw its battles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_expit, stdtrit

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.soft_elo.beta import fit_beta
from venire.ratings.soft_elo.cross_validation import (
    CONFIDENCES,
    LeaveOneOut,
    accuracy,
    baselines,
    least_squares_scale,
    leave_one_out,
    nearest_way,
    smooth_labels,
)

POINTS = 400 / np.log(10)


def placed_by_rows(data: Comparisons, y: Any, code: int) -> float:
    """The authors' way, one model: L-BFGS over the rows without it, then a bounded search over its own."""
    rest = (data.a != code) & (data.b != code)
    size, a, b, known = len(data.models), data.a[rest], data.b[rest], y[rest]

    def objective(ratings: Any) -> tuple[float, Any]:
        gap = ratings[a] - ratings[b]
        excess = expit(gap) - known
        value = -np.sum(known * log_expit(gap) + (1 - known) * log_expit(-gap)) + 0.005 * ratings @ ratings
        return value, np.bincount(a, excess, size) - np.bincount(b, excess, size) + 0.01 * ratings

    found = minimize(objective, np.zeros(size), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9}).x
    anchors = found - np.delete(found, code).mean()
    side = data.a[~rest] == code
    other = anchors[np.where(side, data.b[~rest], data.a[~rest])]
    won = np.where(side, y[~rest], 1 - y[~rest])
    own = minimize_scalar(
        lambda at: -np.sum(won * log_expit(at - other) + (1 - won) * log_expit(other - at)) + 0.005 * at * at,
        bounds=(-10, 10),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return 1000 + POINTS * float(own.x)


def simulated(rows: int, models: int, seed: int = 0) -> tuple[Comparisons, Any, Any]:
    rng = np.random.default_rng(seed)
    truth = np.linspace(-1.0, 1.0, models)
    a = rng.integers(0, models, rows)
    b = (a + rng.integers(1, models, rows)) % models
    gap = truth[a] - truth[b]
    human = (rng.random(rows) < expit(gap)).astype(float)
    score = np.round((gap + rng.normal(0, 1, rows)) * 12) / 12
    y = np.where(score > 0, 1.0, np.where(score < 0, 0.0, 0.5))
    return comparisons(a, b, y, cluster=np.arange(rows) // 5), score, human


@pytest.fixture(scope="module")
def recorded(arena_sample: dict[str, Any]) -> LeaveOneOut:
    return leave_one_out(arena_sample["data"], arena_sample["score"], arena_sample["human"])


def test_every_signal_is_what_a_search_over_rows_finds(arena_sample: dict[str, Any], recorded: LeaveOneOut) -> None:
    data, score, human = arena_sample["data"], arena_sample["score"], arena_sample["human"]
    for code in range(14):
        without = (data.a != code) & (data.b != code)
        beta = fit_beta(score[without], human[without]).beta
        assert recorded.beta[code] == pytest.approx(beta, rel=1e-12)
        for signal, y in (("hard", data.y), ("soft", expit(beta * score))):
            assert recorded.judge[signal].elo[code] == pytest.approx(placed_by_rows(data, y, code), abs=1e-3)
        assert recorded.human.elo[code] == pytest.approx(placed_by_rows(data, human, code), abs=1e-3)


def test_recorded_battles_soft_ratings_are_nearer_to_people_and_less_stretched(recorded: LeaveOneOut) -> None:
    hard, scaled, soft = (recorded.accuracy(signal) for signal in ("hard", "scaled-hard", "soft"))
    assert (hard.mae, scaled.mae, soft.mae) == pytest.approx((57.63, 24.01, 19.54), abs=0.01)
    assert (hard.slope, soft.slope) == pytest.approx((0.6265, 0.0397), abs=1e-4)
    assert (hard.spearman, soft.spearman) == pytest.approx((0.9604, 0.9692), abs=1e-4)
    assert hard.quartiles[0] < -60 < 60 < hard.quartiles[3]
    assert (len(soft.quartiles), soft.models, recorded.warnings) == (4, 14, ())


def test_residual_is_human_less_judge(recorded: LeaveOneOut) -> None:
    assert recorded.residual("hard") == pytest.approx(recorded.human.elo - recorded.judge["hard"].elo)
    assert np.abs(recorded.residual()).mean() == pytest.approx(recorded.accuracy().mae)


def test_errors_are_those_of_the_curvature_where_battles_are_independent() -> None:
    data, score, human = simulated(3000, 5)
    found = leave_one_out(data, score, human, replicates=600)
    truth = np.linspace(-1.0, 1.0, 5)
    for code in range(5):
        rows = (data.a == code) | (data.b == code)
        other = np.where(data.a == code, data.b, data.a)[rows]
        share = expit(truth[code] - truth[other])
        model_based = POINTS / np.sqrt(np.sum(share * (1 - share)))
        assert found.human.se[code] == pytest.approx(model_based, rel=0.12)


def test_errors_by_instruction_grow_when_battles_repeat() -> None:
    data, score, human = simulated(600, 4)
    copied = replace(
        data,
        a=np.tile(data.a, 4),
        b=np.tile(data.b, 4),
        y=np.tile(data.y, 4),
        cluster=np.tile(np.arange(600, dtype=np.int32), 4),
        clusters=tuple(str(row) for row in range(600)),
    )
    four = np.tile(score, 4), np.tile(human, 4)
    once = leave_one_out(data, score, human, replicates=400).human.se
    clustered = leave_one_out(copied, *four, cluster="instruction", replicates=400).human.se
    assert clustered == pytest.approx(once, rel=0.15)
    assert leave_one_out(copied, *four, replicates=400).human.se == pytest.approx(once / 2, rel=0.15)


def test_the_same_seed_draws_the_same_and_no_replicates_draw_nothing() -> None:
    data, score, human = simulated(300, 4)
    first, second = (leave_one_out(data, score, human, replicates=20, seed=3) for _ in range(2))
    assert np.array_equal(first.judge["soft"].se, second.judge["soft"].se)
    other = leave_one_out(data, score, human, replicates=20, seed=4)
    assert not np.array_equal(first.judge["soft"].se, other.judge["soft"].se)
    none = leave_one_out(data, score, human, replicates=0)
    assert np.isnan(none.judge["soft"].se).all()
    assert none.judge["soft"].elo == pytest.approx(first.judge["soft"].elo, abs=1e-9)


def test_model_order_and_sides_change_nothing() -> None:
    data, score, human = simulated(300, 4)
    expected = leave_one_out(data, score, human, replicates=0)
    names = np.array([2, 0, 3, 1])
    back = np.argsort(names).astype(np.int32)
    turned = replace(data, a=back[data.b], b=back[data.a], y=1 - data.y, models=tuple(data.models[n] for n in names))
    found = leave_one_out(turned, -score, 1 - human, replicates=0)
    assert found.human.elo == pytest.approx(expected.human.elo[names], abs=1e-7)
    assert found.judge["soft"].elo == pytest.approx(expected.judge["soft"].elo[names], abs=1e-7)


def test_a_model_that_nobody_labelled_is_placed_and_is_no_anchor() -> None:
    data, score, human = simulated(2000, 5)
    full = leave_one_out(data, score, human, replicates=0)
    human = np.where((data.a == 4) | (data.b == 4), np.nan, human)
    found = leave_one_out(data, score, human, replicates=0)
    assert found.anchor.tolist() == [True, True, True, True, False]
    assert np.isnan(found.human.elo[4])
    assert found.judge["soft"].elo[4] == pytest.approx(full.judge["soft"].elo[4], abs=1e-6)
    assert found.accuracy().models == 4
    without = replace(data, **{name: getattr(data, name)[(data.a != 4) & (data.b != 4)] for name in ("a", "b", "y")})
    rows = (data.a != 4) & (data.b != 4)
    alone = leave_one_out(replace(without, cluster=None), score[rows], human[rows], replicates=0)
    assert found.judge["hard"].elo[:4] == pytest.approx(alone.judge["hard"].elo[:4], abs=1e-6)


def test_other_targets_are_placed_alike() -> None:
    data, score, human = simulated(300, 4)
    found = leave_one_out(data, score, human, replicates=10, others={"again": data.y})
    assert np.array_equal(found.judge["again"].elo, found.judge["hard"].elo)
    assert np.array_equal(found.judge["again"].se, found.judge["hard"].se)


def test_anchors_in_parts_are_warned_of() -> None:
    a, b = [0, 1, 2, 3, 4, 5] * 4, [1, 2, 0, 4, 5, 3] * 4
    rng = np.random.default_rng(0)
    score, human = rng.normal(0, 1, 24), rng.integers(0, 2, 24).astype(float)
    found = leave_one_out(comparisons(a, b, (score > 0).astype(float)), score, human, replicates=0)
    assert any("2 parts" in said for said in found.warnings)


def test_accuracy_of_a_stretched_scale() -> None:
    human = np.array([900.0, 950.0, 1000.0, 1050.0, 1100.0, np.nan])
    found = accuracy(human, 1000 + 1.5 * (human - 1000))
    assert (found.mae, found.slope, found.spearman) == pytest.approx((30.0, 0.5, 1.0))
    assert (found.models, len(found.quartiles)) == (5, 4)
    few = accuracy(human[:2], human[:2])
    assert (few.spearman, few.slope, few.quartiles) == (None, None, ())
    assert least_squares_scale((human - 1000) / 2, human - 1000) == pytest.approx(0.5)
    assert least_squares_scale(human - 1000, np.zeros(6)) == 1.0


def test_bad_input_is_named() -> None:
    data, score, human = simulated(60, 3)
    bare = replace(data, cluster=None)
    for said, arguments in {
        "cluster is 'day'": {"cluster": "day"},
        "ridge is 0": {"ridge": 0.0},
        "replicates is 1": {"replicates": 1},
        "is a signal already": {"others": {"soft": data.y}},
    }.items():
        with pytest.raises(InputError, match=said):
            leave_one_out(data, score, human, **arguments)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="have no clusters"):
        leave_one_out(bare, score, human, cluster="instruction")
    with pytest.raises(InputError, match="0 models have battles"):
        leave_one_out(data, score, np.full(60, np.nan))
    with pytest.raises(InputError, match="nothing to compare"):
        accuracy(np.array([np.nan]), np.array([1.0]))


def test_the_sweep_is_from_55_to_95_in_steps_of_5() -> None:
    assert CONFIDENCES == (0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


def test_recorded_battles_give_the_errors_of_every_baseline(arena_sample: dict[str, Any]) -> None:
    found = baselines(arena_sample["data"], arena_sample["score"], arena_sample["human"], held_out=False)
    mae = {name: accuracy.mae for name, accuracy in found.accuracy.items()}
    assert mae == pytest.approx({"hard": 53.79, "scaled-hard": 19.39, "smoothed": 19.89, "soft": 17.03}, abs=0.01)
    assert (found.confidence, found.held_out) == (0.8, False)
    assert list(found.sweep) == list(CONFIDENCES)


def test_soft_ratings_also_lead_where_every_model_is_left_out(arena_sample: dict[str, Any]) -> None:
    found = baselines(arena_sample["data"], arena_sample["score"], arena_sample["human"])
    mae = {name: accuracy.mae for name, accuracy in found.accuracy.items()}
    assert mae == pytest.approx({"hard": 57.63, "scaled-hard": 24.01, "smoothed": 21.72, "soft": 19.54}, abs=0.01)
    assert (found.confidence, found.held_out) == (0.8, True)


def test_the_nearest_way_is_chosen_by_models_that_its_constants_have_not_seen(arena_sample: dict[str, Any]) -> None:
    found = baselines(arena_sample["data"], arena_sample["score"], arena_sample["human"])
    nearest = found.nearest
    assert nearest is not None
    assert (nearest.way, nearest.than, nearest.differs, nearest.models) == ("soft", "scaled-hard", False, 14)
    assert nearest.mae["smoothed"] == pytest.approx(27.16, abs=0.01), "the best constant of a sweep flatters: 21.72"
    assert nearest.mae["soft"] == pytest.approx(found.accuracy["soft"].mae)


def test_a_way_is_said_to_be_nearer_by_the_paired_errors_of_models() -> None:
    errors = {"hard": [90.0, 80, 70, 60, 50], "scaled-hard": [12.0, 9, 11, 8, 10], "soft": [30.0, 25, 28, 26, 31]}
    errors["smoothed"] = [40.0, np.nan, 40, 40, 40]
    found = nearest_way({way: np.array(values) for way, values in errors.items()})
    assert found is not None
    assert (found.way, found.than, found.models, found.differs) == ("scaled-hard", "soft", 4, True)
    difference = np.array([18.0, 17.0, 18.0, 21.0])
    half = stdtrit(3, 1.0 - 0.05 / 6.0) * difference.std(ddof=1) / 2.0
    assert (found.lo, found.nearer, found.hi) == pytest.approx((18.5 - half, 18.5, 18.5 + half))
    assert nearest_way({way: np.ones(3) for way in errors}) is None


def test_smoothed_verdicts_keep_ties_and_shares_in_proportion() -> None:
    assert smooth_labels([1.0, 0.5, 0.0, 0.75], 0.8) == pytest.approx([0.8, 0.5, 0.2, 0.65])
    assert np.array_equal(smooth_labels([1.0, 0.0], 1.0), [1.0, 0.0])


def test_bad_confidences_are_refused(arena_sample: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"confidence is 0\.4"):
        smooth_labels([1.0], 0.4)
    with pytest.raises(InputError, match="confidences is empty"):
        baselines(arena_sample["data"], arena_sample["score"], arena_sample["human"], confidences=())


def test_confidences_that_look_alike_are_each_tried_once() -> None:
    data = comparisons(["a", "b", "c"], ["b", "c", "a"], [1.0, 0.0, 1.0])
    found = baselines(data, [1.0, -1.0, 1.0], [1.0, 1.0, 1.0], confidences=(0.8, 0.8, 0.80000001), held_out=False)
    assert list(found.sweep) == [0.8, 0.80000001]
