"""Krippendorff's alpha, against its author's worked example and its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import t

from venire.arena.errors import InputError
from venire.ratings.agreement import chance_corrected
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
    found = krippendorff_alpha(np.array([first, second]).T)
    assert found.value == pytest.approx(0.692, abs=5e-4)


@given(
    st.lists(st.lists(st.sampled_from([np.nan, 1.0, 2.0, 3.5, 7.0]), min_size=3, max_size=3), min_size=2, max_size=12),
    st.sampled_from(["nominal", "ordinal", "interval"]),
)
def test_any_table_agrees_with_the_definition(rows: list[list[float]], distance: Distance) -> None:
    table = np.array(rows)
    found = krippendorff_alpha(table, distance=distance)
    paired = table[(~np.isnan(table)).sum(axis=1) >= 2]
    if found.value is None:
        assert len(np.unique(paired[~np.isnan(paired)])) < 2
    else:
        assert found.value == pytest.approx(by_definition(paired, distance), abs=1e-9)
        turned = krippendorff_alpha(table[::-1, ::-1], distance=distance)
        assert turned.value == pytest.approx(found.value)


@pytest.mark.parametrize("distance", ["nominal", "ordinal", "interval"])
def test_the_interval_is_that_of_alphas_without_each_cluster(distance: Distance) -> None:
    """Every alpha of the jackknife, made again as a table of its own."""
    table, cluster = np.concatenate([FOUR_OBSERVERS[:10]] * 2), np.repeat(np.arange(10), 2)
    found = krippendorff_alpha(table, distance=distance, cluster=cluster)
    again = np.array([by_definition(table[cluster != gone], distance) for gone in range(10)])
    error = np.sqrt(0.9 * np.sum((again - again.mean()) ** 2))
    assert found.value is not None
    assert found.se == pytest.approx(error)
    root = np.sqrt(1 - found.value)
    reach = t.ppf(0.975, 4.5) * error / (2 * root)
    assert (found.lo, found.hi) == pytest.approx((1 - (root + reach) ** 2, 1 - max(root - reach, 0) ** 2))


def test_nearly_fleiss_kappa_where_nothing_is_missing() -> None:
    table = np.random.default_rng(0).integers(0, 3, (2000, 3))
    table[:, 1] = np.where(np.random.default_rng(1).random(2000) < 0.6, table[:, 0], table[:, 1])
    counts = (table[:, :, None] == np.arange(3)).sum(axis=1)
    alpha, kappa = krippendorff_alpha(table).value, fleiss_kappa_counts(counts).value
    assert alpha is not None
    assert kappa is not None
    assert 1 - alpha == pytest.approx((1 - kappa) * (1 - 1 / 6000), rel=1e-9)


def test_large_numbers_lose_no_digits() -> None:
    near = krippendorff_alpha(FOUR_OBSERVERS + 1e8, distance="interval")
    assert near.value == pytest.approx(0.8491, abs=1e-4)


def test_alpha_that_hangs_on_one_item_has_no_interval_whatever_rounding_leaves_of_it() -> None:
    found = krippendorff_alpha([[0.1, 0.1]] * 19 + [[0.7, 0.7]], distance="interval")
    assert (found.value, found.lo, found.hi) == (pytest.approx(1.0), None, None)


def test_votes_that_agree_throughout_leave_room_below() -> None:
    """The danger: people who agree print "1.000, 1.00 to 1.00"."""
    few, many = (krippendorff_alpha([["a", "a"], ["b", "b"]] * times) for times in (2, 200))
    assert (few.value, many.value, few.hi, many.hi) == (1.0, 1.0, 1.0, 1.0)
    assert few.lo is not None
    assert many.lo is not None
    assert few.lo < -0.5 < 0.95 < many.lo < 1.0


def test_of_very_many_items_some_are_left_out_together(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(4).integers(0, 2, (400, 3))
    rows[:, 1] = rows[:, 0]
    each = krippendorff_alpha(rows)
    monkeypatch.setattr(chance_corrected, "_LEFT_OUT_LIMIT", 100)
    assert krippendorff_alpha(rows).se == pytest.approx(each.se, rel=0.1)


def test_ordered_names_are_taken_in_their_order() -> None:
    names = np.array(["low", "mid", "high"])
    codes = np.array([[0, 0], [1, 2], [2, 2], [0, 1], [1, 1], [0, 2]])
    found = krippendorff_alpha(names[codes], distance="ordinal", categories=["low", "mid", "high"])
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
