"""Habits of judges beside their abilities: a pull of the first place, and how freely ties are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.ratings.am_elo.am_elo import am_elo
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.pairwise.ties import davidson

TRUTH = np.linspace(1.2, -1.2, 6)
ABILITY = np.array([1.4, 1.0, 0.6])
PLACE = np.array([0.8, -0.5, 0.0])
FREEDOM = np.array([0.3, 1.0, 2.0])


def drawn(rows: int, seed: int, *, ties: bool, place: bool) -> tuple[Comparisons, NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 6, rows)
    b = (a + rng.integers(1, 6, rows)) % 6
    judge, first = rng.integers(0, 3, rows), rng.choice([-1.0, 1.0], rows)
    odds = ABILITY[judge] * (TRUTH[a] - TRUTH[b]) + (PLACE[judge] * first if place else 0.0)
    free = FREEDOM[judge] if ties else np.zeros(rows)
    total = np.exp(odds / 2) + np.exp(-odds / 2) + free
    chance = rng.random(rows) * total
    y = np.where(chance < free, 0.5, np.where(chance < free + np.exp(odds / 2), 1.0, 0.0))
    return comparisons(a, b, y, judge=judge, models=[f"m{code}" for code in range(6)]), first


@pytest.mark.parametrize(("place", "ties"), [(True, False), (False, True), (True, True)])
def test_planted_habits_are_recovered_within_four_standard_errors(place: bool, ties: bool) -> None:
    data, first = drawn(9000, 5, ties=ties, place=place)
    habits: Any = (*(("position",) if place else ()), *(("ties",) if ties else ()))
    found = am_elo(data, habits=habits, first=first)
    scale = ABILITY.mean()
    assert np.all(np.abs(found.ratings.logits - scale * TRUTH) < 4 * found.ratings.se)
    assert np.all(np.abs(found.ability - ABILITY / scale) < 4 * found.ability_se)
    assert found.ratings.se.max() < 0.08
    if place:
        assert found.position is not None
        assert found.position_se is not None
        assert np.all(np.abs(found.position - PLACE) < 4 * found.position_se)
        assert found.position_se.max() < 0.1
    if ties:
        assert found.ties is not None
        assert found.ties_se is not None
        assert np.all(np.abs(found.ties - FREEDOM) < 4 * found.ties_se)
        assert found.ties_se.max() < 0.2


def test_one_judge_with_a_habit_of_ties_is_davidson() -> None:
    data, _ = drawn(900, 6, ties=True, place=False)
    assert data.judge is not None
    one = data.select(data.judge == 1)
    alone = comparisons(one.a, one.b, one.y, judge=["j"] * len(one), models=data.models)
    found, plain = am_elo(alone, habits=("ties",)), davidson(alone)
    assert found.ratings.logits == pytest.approx(plain.ratings.logits, abs=1e-8)
    assert found.loglik == pytest.approx(plain.log_likelihood)
    assert found.ties == pytest.approx([plain.tie])


def test_turning_all_sides_and_orders_changes_nothing() -> None:
    data, first = drawn(800, 7, ties=True, place=True)
    assert data.judge is not None
    turned = comparisons(data.b, data.a, 1 - data.y, judge=data.judge.astype(np.int64), models=data.models)
    plain = am_elo(data, habits=("position", "ties"), first=first)
    other = am_elo(turned, habits=("position", "ties"), first=-first)
    for name in ("ability", "ability_se", "position", "position_se", "ties", "ties_se"):
        assert getattr(other, name) == pytest.approx(getattr(plain, name), abs=1e-9)


def test_a_judge_that_always_takes_the_first_is_fitted_without_the_habit_and_named() -> None:
    data, first = drawn(1200, 8, ties=False, place=True)
    assert data.judge is not None
    y = np.where(data.judge == 2, (first > 0).astype(float), data.y)
    found = am_elo(
        comparisons(data.a, data.b, y, judge=[f"j{code}" for code in data.judge], models=data.models),
        habits=("position",),
        first=first,
    )
    assert found.position is not None
    assert np.isnan(found.position[2])
    assert "fitted without" in found.reasons["j2"]
    assert np.isfinite(found.position[:2]).all()
    assert abs(found.ability[2]) < 4 * found.ability_se[2]


def test_a_judge_without_any_order_has_no_habit_of_place_and_one_without_ties_never_ties() -> None:
    data, first = drawn(1200, 9, ties=True, place=True)
    assert data.judge is not None
    decided = np.where((data.judge == 0) & (data.y == 0.5), 1.0, data.y)
    found = am_elo(
        comparisons(data.a, data.b, decided, judge=data.judge.astype(np.int64), models=data.models),
        habits=("position", "ties"),
        first=np.where(data.judge == 1, 0.0, first),
    )
    assert found.position is not None
    assert found.ties is not None
    assert found.ties_se is not None
    assert np.isnan(found.position).tolist() == [False, True, False]
    assert found.ties[0] == 0.0
    assert np.isnan(found.ties_se).tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0.5] * 4, "gave nothing but ties"),
        ([0.75, 1.0, 0.0, 1.0], "each outcome is a win, a tie or a loss"),
        ([1.0, 1.0, 0.5, 1.0], "how freely it ties has no finite estimate"),
    ],
)
def test_ties_that_tell_nothing_are_refused(y: list[float], message: str) -> None:
    data = comparisons(["a", "b", "c", "a"], ["b", "a", "a", "b"], y, judge=["x"] * 4)
    if message.startswith("how"):
        data = comparisons(["a", "b", "a", "a", "b"], ["b", "c", "c", "b", "a"], [1, 1, 1, 0.5, 0.5], judge=["x"] * 5)
        others = [("y", a, b) for a, b in ("ab", "ba", "bc", "cb", "ac", "ab", "bc")]
        names = np.array(data.models)
        data = comparisons(
            [*names[data.a].tolist(), *(row[1] for row in others)],
            [*names[data.b].tolist(), *(row[2] for row in others)],
            [*data.y.tolist(), *([1.0] * len(others))],
            judge=["x"] * 5 + ["y"] * len(others),
        )
    with pytest.raises(InputError, match=message):
        am_elo(data, habits=("ties",))
