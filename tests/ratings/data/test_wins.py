"""Pair counts: every row lands in its cell, whatever its outcome, weight and side."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.ratings.data import wins as module
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.data.wins import WinCounts, count_matrix, win_counts


def naive(data: Comparisons) -> NDArray[np.float64]:
    """What the counts are, row by row, each cell summed without rounding."""
    size = len(data.models)
    terms: list[list[list[float]]] = [[[] for _ in range(size)] for _ in range(size)]
    weight = np.ones(len(data)) if data.weight is None else data.weight
    for a, b, y, counted in zip(data.a.tolist(), data.b.tolist(), data.y.tolist(), weight.tolist(), strict=True):
        terms[a][b].append(y * counted)
        terms[b][a].append((1.0 - y) * counted)
    return np.array([[math.fsum(cell) for cell in row] for row in terms])


@st.composite
def tables(draw: st.DrawFn) -> Comparisons:
    size, rows = draw(st.integers(2, 6)), draw(st.integers(0, 30))
    a = draw(st.lists(st.integers(0, size - 1), min_size=rows, max_size=rows))
    gaps = draw(st.lists(st.integers(1, size - 1), min_size=rows, max_size=rows))
    share = st.sampled_from([0.0, 0.5, 1.0]) if draw(st.booleans()) else st.floats(0.0, 1.0)
    y = draw(st.lists(share, min_size=rows, max_size=rows))
    weight: Any = None
    if draw(st.booleans()):
        weight = draw(st.lists(st.sampled_from([0.0, 0.25, 1.0, 1e12]), min_size=rows, max_size=rows))
    b = [(side + gap) % size for side, gap in zip(a, gaps, strict=True)]
    codes = [np.array(side, dtype=np.int32) for side in (a, b)]
    return comparisons(codes[0], codes[1], y, models=[f"m{code}" for code in range(size)], weight=weight)


@given(data=tables(), sparse=st.booleans())
def test_every_row_lands_in_its_cell(data: Comparisons, sparse: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK", 4)
        patch.setattr(module, "_CELLS", -1 if sparse else 1 << 22)
        counts = win_counts(data)
    wanted = naive(data)
    assert counts.matrix() == pytest.approx(wanted, rel=1e-14, abs=0.0)
    assert np.all(counts.first < counts.second)
    assert np.all((counts.won > 0) | (counts.lost > 0))
    assert counts.played == pytest.approx((wanted + wanted.T).sum(axis=1))
    assert counts.total == pytest.approx(data.total)
    again = count_matrix(counts.matrix(), data.models)
    for column in ("first", "second", "won", "lost"):
        assert getattr(again, column).tolist() == getattr(counts, column).tolist()


def test_many_models_of_whom_few_met_need_no_square_table() -> None:
    size = 50_000
    place = np.arange(size - 1)
    data = comparisons(place, place + 1, np.full(size - 1, 0.25), models=[str(code) for code in range(size)])
    counts = win_counts(data)
    assert len(counts.first) == size - 1
    assert (counts.won.tolist(), counts.lost.tolist()) == ([0.25] * (size - 1), [0.75] * (size - 1))


def test_no_loss_leaves_no_trace_of_one() -> None:
    """Losses taken as all less wins would leave rounding, and a model without a loss would seem to have one."""
    counts = win_counts(comparisons(["a"] * 10, ["b"] * 10, [1.0] * 10, weight=[0.1] * 10))
    assert counts.lost.tolist() == [0.0]


def test_rows_of_weight_zero_leave_no_pair() -> None:
    counts = win_counts(comparisons(["a", "a"], ["b", "c"], [1.0, 0.5], weight=[2.0, 0.0]))
    assert (counts.models, counts.first.tolist(), counts.second.tolist()) == (("a", "b", "c"), [0], [1])
    assert counts.played.tolist() == [2.0, 2.0, 0.0]


def test_a_choice_of_models_keeps_their_pairs() -> None:
    wins = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 4.0], [5.0, 6.0, 0.0]])
    kept = count_matrix(wins, ["a", "b", "c"]).only(np.array([True, False, True]))
    assert (kept.models, kept.matrix().tolist()) == (("a", "c"), [[0.0, 2.0], [5.0, 0.0]])


@pytest.mark.parametrize(
    ("wins", "message"),
    [
        (np.zeros((2, 3)), r"shape \(2, 3\); for 2 models give \(2, 2\)"),
        ([[0.0, -1.0], [0.0, 0.0]], r"wins\[0, 1\] is -1.0: give a finite weight"),
        ([[0.0, 1.0], [math.nan, 0.0]], r"wins\[1, 0\] is nan"),
        ([[0.0, 1.0], [1.0, 2.0]], r"wins\[1, 1\] is 2.0: a model does not meet itself"),
    ],
)
def test_a_matrix_that_counts_nothing_is_refused(wins: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        count_matrix(wins, ["a", "b"])


def test_counts_of_nothing_are_empty() -> None:
    counts = win_counts(comparisons(np.zeros(0, dtype=int), np.zeros(0, dtype=int), [], models=["a"]))
    assert isinstance(counts, WinCounts)
    assert (counts.total, counts.played.tolist(), counts.matrix().tolist()) == (0.0, [0.0], [[0.0]])


def test_a_first_guess_is_near_the_ratings_and_is_none_where_models_lie_far_apart() -> None:
    """Where every model met every other, shares of wins order the models as their ratings do."""
    strength = np.array([1.0, 0.2, -0.4, -0.8])
    share = 1.0 / (1.0 + np.exp(strength - strength[:, None]))
    np.fill_diagonal(share, 0.0)
    guess = count_matrix(1000.0 * share, list("abcd")).guess()
    assert guess - guess.mean() == pytest.approx(strength, abs=0.3)
    assert not count_matrix([[0.0, 1e9], [1.0, 0.0]], ["a", "b"]).guess().any()
    assert not count_matrix(np.zeros((2, 2)), ["a", "b"]).guess().any()


@given(data=tables())
def test_tables_beyond_the_cache_have_the_same_counts(data: Comparisons) -> None:
    """They are counted another way."""
    near = win_counts(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CACHED", 0)
        patch.setattr(module, "_CHUNK", 4)
        far = win_counts(data)
    assert far.matrix() == pytest.approx(near.matrix(), rel=1e-14, abs=0.0)
    if data.weight is None and bool((2.0 * data.y % 1.0 == 0.0).all()):
        assert np.array_equal(far.matrix(), near.matrix())
