"""A new model is placed on a board that does not move, and its error says what it leaves out or counts in."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.design.placement import fit_board, place_among, place_model
from venire.ratings.pairwise.bradley_terry import bradley_terry

TRUTH = 0.6


def arena(
    seed: int, *, models: int = 8, instructions: int = 40, rows: int = 900, own: int = 80, taste: float = 0.8
) -> Comparisons:
    """A board and a model "new" that met its four best; every instruction has a taste, a fifth of outcomes are ties."""
    rng = np.random.default_rng(seed)
    logits = np.append(np.linspace(-1.2, 1.2, models), TRUTH)
    a = rng.integers(0, models, rows)
    b = (a + rng.integers(1, models, rows)) % models
    a, b = np.append(a, np.full(own, models)), np.append(b, rng.integers(models - 4, models, own))
    cluster = rng.integers(0, instructions, len(a))
    leaning = rng.normal(0.0, taste, (instructions, models + 1))
    gap = logits[a] - logits[b] + leaning[cluster, a] - leaning[cluster, b]
    y = np.where(rng.random(len(a)) < 0.2, 0.5, rng.random(len(a)) < 1.0 / (1.0 + np.exp(-gap)))
    return comparisons(a, b, y, models=[*(f"m{n}" for n in range(models)), "new"], cluster=cluster)


def test_the_others_stay_where_the_board_alone_has_them() -> None:
    data = arena(0)
    found = place_model(data, "new")
    alone = bradley_terry(data.select((data.a != 8) & (data.b != 8)), errors="none")
    assert found.ratings.logits[:8] == pytest.approx(alone.logits[:8], abs=1e-12)
    held = dict(zip(data.models[:8], alone.elo[:8].tolist(), strict=True))
    mine = bradley_terry(data.select((data.a == 8) | (data.b == 8)), anchors=held, errors="none")
    assert found.held.elo == pytest.approx(mine.elo[8], abs=1e-6)
    assert found.measured.elo == found.held.elo
    assert (found.judgments, found.opponents) == (80, 4)


def test_the_error_with_the_board_s_own_is_that_of_leaving_clusters_out() -> None:
    """Each cluster's pull on the rating, found by giving it a little more weight and fitting everything again."""
    data = arena(1)
    found = place_model(data, "new")
    base, pulls, step = found.held.elo, [], 1e-4
    assert data.cluster is not None
    for cluster in range(len(data.clusters)):
        more = replace(data, weight=np.where(data.cluster == cluster, 1.0 + step, 1.0))
        pulls.append((place_model(more, "new").held.elo - base) / step)
    count = len(pulls)
    variance = float(np.square(pulls).sum()) * count / (count - 1)
    mine = data.select((data.a == 8) | (data.b == 8))
    least = max(0.0, found.held.se**2 - _scattered(mine, found.ratings.elo))
    assert found.measured.se**2 == pytest.approx(variance + least, rel=1e-3)
    assert found.measured.se > found.held.se * 0.9


def _scattered(mine: Comparisons, elo: np.ndarray) -> float:
    """The clustered variance of the new model against an exact board, in squared Elo points, without a floor."""
    points = 400.0 / math.log(10.0)
    share = 1.0 / (1.0 + np.exp((elo[mine.b] - elo[mine.a]) / points))
    told = np.where(mine.a == 8, 1.0, -1.0) * (mine.y - share)
    assert mine.cluster is not None
    sums = np.bincount(mine.cluster, told)
    count = len(mine.clusters)
    return float(points**2 * (sums @ sums) / (share * (1.0 - share)).sum() ** 2 * count / (count - 1))


@pytest.mark.slow
def test_the_interval_covers_as_often_as_it_says() -> None:
    truth = 1000.0 + 400.0 / math.log(10.0) * TRUTH
    held = measured = 0
    for seed in range(150):
        found = place_model(arena(seed, taste=0.0, rows=600), "new")
        held += found.held.low <= truth <= found.held.high
        measured += found.measured.low <= truth <= found.measured.high
    assert measured >= held
    assert 137 <= measured <= 150


def test_instructions_that_decide_widen_the_error_beyond_the_model_s_own() -> None:
    data = arena(2, instructions=12, own=200, taste=3.0)
    found = place_model(data, "new")
    mine = data.select((data.a == 8) | (data.b == 8))
    assert found.held.se == pytest.approx(math.sqrt(_scattered(mine, found.ratings.elo)))


def test_a_poor_board_adds_its_error_and_a_good_one_next_to_none() -> None:
    poor, good = (place_model(arena(3, rows=rows, own=400), "new") for rows in (120, 20_000))
    assert poor.measured.se > 1.2 * poor.held.se
    assert good.measured.se == pytest.approx(good.held.se, rel=0.05)


def test_the_joint_fit_stands_in_the_board_s_gauge_and_says_whom_it_moves() -> None:
    data = arena(4)
    found = place_model(data, "new", level=0.5)
    everything = bradley_terry(data)
    assert found.joint is not None
    assert found.moved is not None
    assert found.joint.elo == pytest.approx(everything.elo[8] - everything.elo[:8].mean() + 1000.0, abs=1e-9)
    assert found.moved[:8].mean() == pytest.approx(0.0, abs=1e-9)
    assert np.abs(found.moved[4:8]).max() > 0.0
    wide = place_model(data, "new").joint
    assert wide is not None
    assert wide.high - wide.low > 2.0 * (found.joint.high - found.joint.low)


def test_neither_the_order_of_rows_nor_of_models_matters() -> None:
    data = arena(5)
    rng = np.random.default_rng(0)
    rows, names = rng.permutation(len(data)), rng.permutation(9)
    place = np.argsort(names).astype(np.int32)
    mixed = data.select(rows)
    mixed = replace(mixed, models=tuple(data.models[n] for n in names), a=place[mixed.a], b=place[mixed.b])
    turned = replace(mixed, a=mixed.b, b=mixed.a, y=1.0 - mixed.y)
    one, other = place_model(data, "new"), place_model(turned, "new")
    assert (other.held.elo, other.held.se) == pytest.approx((one.held.elo, one.held.se), abs=1e-8)
    assert (other.measured.se, other.measured.high_any) == pytest.approx((one.measured.se, one.measured.high_any))
    assert [n.model for n in one.neighbours] == [n.model for n in other.neighbours]


def test_ranks_and_neighbours_are_told_with_the_board_s_errors() -> None:
    found = place_model(arena(6), "new", near=1)
    assert found.rank is not None
    assert found.rank.lo <= found.rank.rank <= found.rank.hi
    above, below = found.neighbours
    assert above.elo > found.held.elo > below.elo
    assert above.above < 0.5 < below.above


@pytest.mark.parametrize(("outcome", "word"), [(1.0, "won"), (0.0, "lost")])
def test_a_model_that_only_wins_or_loses_has_one_bound(outcome: float, word: str) -> None:
    data = arena(7, own=30)
    mine = (data.a == 8) | (data.b == 8)
    found = place_model(replace(data, y=np.where(mine, outcome, data.y)), "new")
    assert found.lopsided == word
    assert math.isfinite(found.held.elo)
    ends = (found.held.low, found.held.high)
    assert [math.isinf(one) for one in ends] == ([False, True] if word == "won" else [True, False])
    assert found.joint is None
    assert any("every judgment" in sentence for sentence in found.warnings)
    assert any("no finite maximum" in sentence for sentence in found.warnings)
    bound = (ends[0] if word == "won" else ends[1]) / (400.0 / math.log(10.0))
    rows = data.select(mine)
    opponents = found.ratings.elo[rows.b] / (400.0 / math.log(10.0))
    sign = 1.0 if word == "won" else -1.0
    assert rows.cluster is not None
    shrunk = len(np.unique(rows.cluster)) / len(rows)
    assert shrunk * -np.logaddexp(0.0, -sign * (bound - opponents)).sum() == pytest.approx(math.log(0.05), abs=1e-6)


def test_one_instruction_tells_no_error_and_few_are_said() -> None:
    data = arena(8, own=6)
    mine = (data.a == 8) | (data.b == 8)
    assert data.cluster is not None
    y = np.where(mine, np.arange(len(data)) % 2.0, data.y)
    alone = replace(data, cluster=np.where(mine, 0, data.cluster).astype(np.int32), y=y)
    found = place_model(alone, "new")
    assert math.isinf(found.held.se)
    assert (found.held.low, found.measured.high, found.rank) == (-math.inf, math.inf, None)
    assert "judged on 1 instructions" in found.warnings[0]


def test_a_look_has_the_rating_and_the_error_of_the_whole() -> None:
    data = arena(9)
    found = place_model(data, "new")
    logit, se = place_among(data, "new", fit_board(data, "new"))
    points = 400.0 / math.log(10.0)
    assert (1000.0 + points * logit, points * se) == pytest.approx((found.held.elo, found.held.se))


def test_what_cannot_be_placed_is_refused_in_a_sentence() -> None:
    data = arena(10)
    with pytest.raises(InputError, match="none of the models compared"):
        place_model(data, "nobody")
    with pytest.raises(InputError, match="nothing places it"):
        place_model(data.select((data.a != 8) & (data.b != 8)), "new")
    with pytest.raises(InputError, match="no board"):
        place_model(data.select((data.a == 8) | (data.b == 8)), "new")
    with pytest.raises(InputError, match="level is 95"):
        place_model(data, "new", level=95.0)


@pytest.mark.parametrize("outcome", [0.0, 1.0])
def test_an_interval_of_one_bound_holds_its_own_estimate(outcome: float) -> None:
    """Many wins say more than the prior lets the estimate follow: it would stand below its own lower bound."""
    data = arena(12, instructions=5000, own=400)
    mine = (data.a == 8) | (data.b == 8)
    won = np.where(data.a == 8, outcome, 1.0 - outcome)
    found = place_model(replace(data, y=np.where(mine, won, data.y)), "new")
    for one in (found.held, found.measured):
        assert one.low <= one.elo <= one.high
    if outcome:
        assert found.held.low == found.held.elo


def test_the_best_of_several_placements_has_a_wider_interval_that_holds_for_all() -> None:
    """The danger: a maker places ten variants in turn, and shows the best of them with an interval for one."""
    rng = np.random.default_rng(8)
    strength, held = np.append(np.linspace(-1.0, 1.0, 8), 0.0), 0
    for _ in range(40):
        a, b = np.tile(np.array(list(combinations(range(9), 2))).T, 12)
        item = np.repeat(np.arange(12), 36)
        y = (rng.random(len(a)) < 1.0 / (1.0 + np.exp(strength[b] - strength[a]))).astype(float)
        found = place_model(comparisons(a, b, y, cluster=item), "8")
        one, five = found.best_of(1), found.best_of(5)
        assert one is not None
        assert five is not None
        assert one == pytest.approx((found.measured.low, found.measured.high))
        assert five[0] < one[0] < found.measured.elo < one[1] < five[1]
        held += five[0] <= 1000.0 <= five[1]
    assert held >= 38
