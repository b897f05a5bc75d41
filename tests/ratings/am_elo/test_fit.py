"""The likelihood of ratings, abilities and habits: its derivatives, its arrowhead, and where a climb ends."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from venire.ratings.am_elo.fit import Penalty, arrow, maximise, reduced
from venire.ratings.am_elo.likelihood import Cells, Point, cells_of
from venire.ratings.data.comparisons import comparisons

MODELS, JUDGES = 4, 3


def some_cells(habits: str, seed: int = 0) -> Cells:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, MODELS, 120)
    b = (a + rng.integers(1, MODELS, 120)) % MODELS
    y = rng.choice([0.0, 0.5, 1.0], 120)
    data = comparisons(a, b, y, judge=rng.integers(0, JUDGES, 120), weight=rng.uniform(0.5, 2.0, 120))
    first = rng.choice([-1.0, 0.0, 1.0], 120) if "position" in habits else None
    return cells_of(data, first=first, ties="ties" in habits)


def some_point(width: int, seed: int = 1) -> Point:
    rng = np.random.default_rng(seed)
    return Point(rng.normal(size=MODELS), rng.normal(0.5, 1.0, (JUDGES, width)))


def moved(point: Point, step: NDArray[np.float64]) -> Point:
    return Point(point.ratings + step[:MODELS], point.local + step[MODELS:].reshape(point.local.shape))


@pytest.mark.parametrize("habits", ["none", "position", "ties", "position and ties"])
@pytest.mark.parametrize("penalty", [Penalty(), Penalty(0.3, 0.7)])
def test_derivatives_are_those_of_finite_differences(habits: str, penalty: Penalty) -> None:
    cells, width = some_cells(habits), 1 + ("position" in habits) + ("ties" in habits)
    point = some_point(width)
    here, size = arrow(cells, point, penalty), MODELS + JUDGES * width
    steps = 1e-5 * np.eye(size)

    def gradient(at: Point) -> NDArray[np.float64]:
        found = arrow(cells, at, penalty)
        return np.concatenate([found.pull, found.local_pull.ravel()])

    slope = [
        (arrow(cells, moved(point, one), penalty).value - arrow(cells, moved(point, -one), penalty).value) / 2e-5
        for one in steps
    ]
    assert gradient(point) == pytest.approx(np.array(slope), abs=1e-6)
    bend = np.array([(gradient(moved(point, one)) - gradient(moved(point, -one))) / 2e-5 for one in steps])
    whole = np.zeros((size, size))
    whole[:MODELS, :MODELS] = here.head
    whole[:MODELS, MODELS:] = here.wing.reshape(MODELS, -1)
    whole[MODELS:, :MODELS] = whole[:MODELS, MODELS:].T
    for judge in range(JUDGES):
        part = slice(MODELS + judge * width, MODELS + (judge + 1) * width)
        whole[part, part] = here.inner[judge]
    assert whole == pytest.approx(-bend, abs=1e-5)


@pytest.mark.parametrize("habits", ["none", "position and ties"])
def test_taking_the_judges_out_solves_the_whole_system(habits: str) -> None:
    cells, width = some_cells(habits), 3 if "ties" in habits else 1
    penalty = Penalty(0.3, 0.7)
    point = maximise(cells, some_point(width, seed=2), penalty).point
    here = arrow(cells, point, penalty)
    system = reduced(here, point.ratings, penalty)
    assert system is not None
    rng = np.random.default_rng(3)
    step, turn = rng.normal(size=MODELS), rng.normal(size=(JUDGES, width))
    right = here.head @ step + np.einsum("mka,ka->m", here.wing, turn)
    local = np.einsum("mka,m->ka", here.wing, step) + np.einsum("kab,kb->ka", here.inner, turn)
    found = system.solve(right, local)
    assert found[0] == pytest.approx(step, abs=1e-9)
    assert found[1] == pytest.approx(turn, abs=1e-9)


def test_a_climb_ends_where_the_gradient_is_rounding_and_ratings_have_unit_spread() -> None:
    cells = some_cells("none")
    found = maximise(cells, some_point(1))
    assert found.gradient < 1e-11
    assert found.point.ratings.mean() == pytest.approx(0.0, abs=1e-14)
    assert np.sqrt(np.mean(found.point.ratings**2)) == pytest.approx(1.0)
    assert np.abs(arrow(cells, found.point).pull).max() < 1e-9


def test_sums_by_table_and_by_sorting_agree() -> None:
    rng = np.random.default_rng(4)
    a = rng.integers(0, 300, 500)
    b = (a + rng.integers(1, 300, 500)) % 300
    y, judge = rng.choice([0.0, 0.5, 1.0], 500), rng.integers(0, 60, 500)
    sparse = cells_of(comparisons(a, b, y, judge=judge))
    dense = cells_of(comparisons(a, b, y, judge=np.zeros(500, dtype=int)))
    assert len(sparse) > len(dense)
    won = np.zeros((300, 300))
    np.add.at(won, (sparse.upper, sparse.lower), sparse.won)
    again = np.zeros((300, 300))
    np.add.at(again, (dense.upper, dense.lower), dense.won)
    assert won == pytest.approx(again)
    assert np.all(sparse.upper < sparse.lower)
