"""Krippendorff's alpha, against its author's worked example and its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.ratings.agreement.chance_corrected import Distance, fleiss_kappa_counts, krippendorff_alpha

_ = np.nan
FOUR_OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
        [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
    ]
).T
"""K. Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), section C: 4 observers, 12 units, 41 values."""


def by_definition(table: NDArray[np.float64], distance: Distance) -> float:
    """Alpha from its coincidence matrix, value by value."""
    values = np.unique(table[~np.isnan(table)])
    size = len(values)
    matrix = np.zeros((size, size))
    for row in table:
        present = row[~np.isnan(row)]
        for one in range(len(present)):
            for other in range(len(present)):
                if one != other:
                    cell = np.searchsorted(values, present[one]), np.searchsorted(values, present[other])
                    matrix[cell] += 1 / (len(present) - 1)
    total = matrix.sum(axis=1)
    apart = np.zeros((size, size))
    for one in range(size):
        for other in range(size):
            low, high = min(one, other), max(one, other)
            between = total[low : high + 1].sum() - (total[low] + total[high]) / 2
            ordinal = 0.0 if one == other else between**2
            apart[one, other] = {
                "nominal": float(one != other),
                "ordinal": ordinal,
                "interval": (values[one] - values[other]) ** 2,
            }[distance]
    chance = np.outer(total, total) - np.diag(total)
    return float(1 - (matrix * apart).sum() * (total.sum() - 1) / (chance * apart).sum())


@pytest.mark.parametrize(("distance", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_four_observers_as_published(distance: Distance, alpha: float) -> None:
    found = krippendorff_alpha(FOUR_OBSERVERS, distance=distance)
    assert found.value == pytest.approx(alpha, abs=5e-4)
    assert found.items == 11  # one unit has one value
    again = krippendorff_alpha(np.concatenate([FOUR_OBSERVERS] * 2), distance=distance)
    assert again.lo is not None
    assert again.hi is not None
    assert again.lo < alpha < again.hi


def test_two_observers_as_published() -> None:
    """The same paper, section B: 12 articles, five categories, two observers: 0.692."""
    first = ["a", "a", "b", "b", "d", "c", "c", "c", "e", "d", "d", "a"]
    second = ["b", "a", "b", "b", "b", "c", "c", "c", "e", "d", "d", "d"]
    found = krippendorff_alpha(np.array([first, second]).T, replicates=0)
    assert found.value == pytest.approx(0.692, abs=5e-4)


@given(
    st.lists(st.lists(st.sampled_from([np.nan, 1.0, 2.0, 3.5, 7.0]), min_size=3, max_size=3), min_size=2, max_size=12),
    st.sampled_from(["nominal", "ordinal", "interval"]),
)
def test_any_table_agrees_with_the_definition(rows: list[list[float]], distance: Distance) -> None:
    table = np.array(rows)
    found = krippendorff_alpha(table, distance=distance, replicates=0)
    paired = table[(~np.isnan(table)).sum(axis=1) >= 2]
    if found.value is None:
        assert len(np.unique(paired[~np.isnan(paired)])) < 2
    else:
        assert found.value == pytest.approx(by_definition(paired, distance), abs=1e-9)
        turned = krippendorff_alpha(table[::-1, ::-1], distance=distance, replicates=0)
        assert turned.value == pytest.approx(found.value)


@pytest.mark.parametrize("distance", ["nominal", "ordinal", "interval"])
def test_a_draw_is_the_alpha_of_the_drawn_items(distance: Distance) -> None:
    """Every draw of the bootstrap, made again as a table of its own."""
    table = np.concatenate([FOUR_OBSERVERS[:10]] * 2)
    found = krippendorff_alpha(table, distance=distance, replicates=40, seed=3)
    weights = np.random.default_rng(3).multinomial(20, np.full(20, 0.05), size=40)
    again = [by_definition(np.repeat(table, row, axis=0), distance) for row in weights]
    assert found.se == pytest.approx(np.std(again, ddof=1))
    assert (found.lo, found.hi) == pytest.approx(tuple(np.quantile(again, [0.025, 0.975])))


def test_nearly_fleiss_kappa_where_nothing_is_missing() -> None:
    table = np.random.default_rng(0).integers(0, 3, (2000, 3))
    table[:, 1] = np.where(np.random.default_rng(1).random(2000) < 0.6, table[:, 0], table[:, 1])
    counts = (table[:, :, None] == np.arange(3)).sum(axis=1)
    alpha, kappa = krippendorff_alpha(table, replicates=0).value, fleiss_kappa_counts(counts, replicates=0).value
    assert alpha is not None
    assert kappa is not None
    assert 1 - alpha == pytest.approx((1 - kappa) * (1 - 1 / 6000), rel=1e-9)


def test_large_numbers_lose_no_digits() -> None:
    near = krippendorff_alpha(FOUR_OBSERVERS + 1e8, distance="interval", replicates=0)
    assert near.value == pytest.approx(0.8491, abs=1e-4)


def test_draws_of_one_value_are_undefined_whatever_rounding_leaves_of_it() -> None:
    found = krippendorff_alpha([[0.1, 0.1]] * 19 + [[0.7, 0.7]], distance="interval")
    assert found.undefined == pytest.approx(1000 * 0.95**20, abs=60)
    assert (found.value, found.lo, found.hi) == (pytest.approx(1.0), None, None)


def test_two_votes_bound_nothing() -> None:
    """The danger: two people who agree print "1.000, 1.00 to 1.00"."""
    few, enough = (krippendorff_alpha([["a", "a"], ["b", "b"]] * times) for times in (9, 10))
    assert (few.value, few.lo, few.hi) == (1.0, None, None)
    assert (enough.lo, enough.hi) == (1.0, 1.0)


def test_ordered_names_are_taken_in_their_order() -> None:
    names = np.array(["low", "mid", "high"])
    codes = np.array([[0, 0], [1, 2], [2, 2], [0, 1], [1, 1], [0, 2]])
    found = krippendorff_alpha(names[codes], distance="ordinal", categories=["low", "mid", "high"], replicates=0)
    assert found.value == pytest.approx(by_definition(codes.astype(float), "ordinal"))


def test_what_has_no_alpha_says_why() -> None:
    assert krippendorff_alpha([["a", None], [None, "b"]]).reason == "no item has labels of two judges"
    same = krippendorff_alpha([["a", "a"], ["a", "a"]])
    assert (same.value, same.lo) == (None, None)
    assert same.reason is not None
    with pytest.raises(InputError, match="interval distance needs numbers"):
        krippendorff_alpha([["a", "b"]], distance="interval")
    with pytest.raises(InputError, match="distance is 'ratio'"):
        krippendorff_alpha([["a", "b"]], distance="ratio")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"labels have shape \(2,\)"):
        krippendorff_alpha(["a", "b"])
    with pytest.raises(InputError, match=r"cluster has shape \(1,\)"):
        krippendorff_alpha([["a", "b"], ["a", None]], cluster=["x"])
