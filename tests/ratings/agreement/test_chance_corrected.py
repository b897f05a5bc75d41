"""Cohen's and Fleiss' kappa, against published worked examples and recorded judgments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.ratings.agreement.chance_corrected import (
    cohen_kappa,
    fleiss_kappa,
    fleiss_kappa_counts,
    human_kappa,
    unanimity,
)

DIAGNOSES = np.array([[75, 1, 4], [5, 4, 1], [0, 0, 10]])
"""Two psychiatrists and 100 patients: J. L. Fleiss, Statistical Methods for Rates and Proportions, 2nd ed. (1981),
table 13.1; kappa 0.68, standard error 0.087."""

FOURTEEN = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]
"""Fourteen judges, ten items, five categories: the worked example of Wikipedia's article on Fleiss' kappa, 0.210."""


def columns(table: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    row, column = np.indices(table.shape)
    return np.repeat(row.ravel(), table.ravel()), np.repeat(column.ravel(), table.ravel())


@pytest.fixture(scope="module")
def people(shared_data: Path) -> NDArray[Any]:
    """Labels of three people for 999 pairs."""
    file = str(shared_data / "pandalm" / "judgments.parquet")
    query = (
        "SELECT list(verdict ORDER BY annotator) FROM read_parquet(?) WHERE annotator_kind = 'human' "
        "GROUP BY pair_id ORDER BY pair_id"
    )
    with duckdb.connect() as connection:
        return np.array([row[0] for row in connection.execute(query, [file]).fetchall()])


def test_two_psychiatrists_as_published() -> None:
    found = cohen_kappa(*columns(DIAGNOSES), errors="asymptotic")
    assert (found.observed, found.expected) == (pytest.approx(0.89), pytest.approx(0.66))
    assert found.value == pytest.approx(0.68, abs=0.005)
    assert found.se == pytest.approx(0.087, abs=0.001)
    left_out = cohen_kappa(*columns(DIAGNOSES))
    assert left_out.se == pytest.approx(found.se, rel=0.06)
    assert left_out.errors == "jackknife"


def test_a_two_by_two_table_as_published() -> None:
    """Wikipedia's article on Cohen's kappa: 50 proposals, both yes 20, both no 15, 5 and 10 apart: 0.4."""
    assert cohen_kappa(*columns(np.array([[20, 5], [10, 15]]))).value == pytest.approx(0.4)


def test_weights_by_distance_by_their_definition() -> None:
    first, second = columns(DIAGNOSES)
    for weighting, power in (("linear", 1), ("quadratic", 2)):
        apart = np.abs(np.subtract.outer(range(3), range(3))) ** power
        share = DIAGNOSES / 100
        chance = np.outer(share.sum(axis=1), share.sum(axis=0))
        expected = 1 - (apart * share).sum() / (apart * chance).sum()
        found = cohen_kappa(first, second, weighting=weighting)  # type: ignore[arg-type]
        assert found.value == pytest.approx(expected)


def test_the_asymptotic_error_is_that_of_the_delta_method() -> None:
    """A numerical derivative of kappa by each cell gives the same variance, weighted or not."""
    first, second = columns(DIAGNOSES)
    share = DIAGNOSES / 100

    def kappa(table: NDArray[np.float64], close: NDArray[np.float64]) -> float:
        chance = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
        return float(((close * table).sum() - (close * chance).sum()) / (table.sum() - (close * chance).sum()))

    for weighting, close in (("none", np.eye(3)), ("linear", 1 - np.abs(np.subtract.outer(range(3), range(3))) / 2)):
        slope = np.zeros((3, 3))
        for cell in np.ndindex(3, 3):
            step = np.zeros((3, 3))
            step[cell] = 1e-6
            slope[cell] = (kappa(share + step, close) - kappa(share - step, close)) / 2e-6
        variance = ((share * slope**2).sum() - (share * slope).sum() ** 2) / 100
        found = cohen_kappa(first, second, weighting=weighting, errors="asymptotic")  # type: ignore[arg-type]
        assert found.se == pytest.approx(np.sqrt(variance), rel=1e-6)


def test_fourteen_judges_as_published() -> None:
    found = fleiss_kappa_counts(FOURTEEN)
    assert found.value == pytest.approx(0.20993, abs=1e-5)
    assert found.observed == pytest.approx(0.378, abs=5e-4)
    assert found.expected == pytest.approx(0.213, abs=5e-4)


def test_three_people_as_recorded(people: NDArray[Any]) -> None:
    assert fleiss_kappa(people).value == pytest.approx(0.86418, abs=1e-4)
    whole = unanimity(people)
    assert (whole.value, whole.items) == (pytest.approx(0.87988, abs=1e-4), 999)
    pairs = {(0, 1): (0.91291, 0.8520), (0, 2): (0.92893, 0.8789), (1, 2): (0.91792, 0.8617)}
    for (one, other), (same, kappa) in pairs.items():
        found = cohen_kappa(people[:, one], people[:, other])
        assert found.observed == pytest.approx(same, abs=1e-4)
        assert found.value == pytest.approx(kappa, abs=1e-4)
        sure = cohen_kappa(people[:, one], people[:, other], errors="asymptotic")
        assert (found.lo, found.hi) == (pytest.approx(sure.lo, abs=0.004), pytest.approx(sure.hi, abs=0.004))


def test_two_models_agree_in_some_pairs_as_recorded(shared_data: Path) -> None:
    query = (
        "SELECT a.verdict, b.verdict FROM read_parquet($1) a JOIN read_parquet($1) b USING (pair_id) "
        "WHERE a.annotator = 'gpt-4' AND b.annotator = 'gpt-3.5-turbo-instruct'"
    )
    with duckdb.connect() as connection:
        rows = connection.execute(query, [str(shared_data / "llmfao" / "comparisons.parquet")]).fetchall()
    found = cohen_kappa(*np.array(rows).T)
    assert (found.items, found.observed) == (3236, pytest.approx(0.5396, abs=1e-4))


def test_a_judge_agrees_with_people_as_recorded(shared_data: Path) -> None:
    """Both decisive: a judge's two orders summed, the votes of people summed."""
    signed = "CASE WHEN verdict = 'tie' THEN 0 WHEN (verdict = 'first') = (first < second) THEN 1 ELSE -1 END"
    item = "instruction_id, least(first, second) AS a, greatest(first, second) AS b"
    query = (
        f"WITH j AS (SELECT {item}, sign(sum({signed})) AS side FROM read_parquet($1) "
        f"WHERE repeat = 1 AND judge = $3 GROUP BY ALL), "
        f"h AS (SELECT {item}, sign(sum({signed})) AS side FROM read_parquet($2) GROUP BY ALL) "
        "SELECT j.side, h.side FROM j JOIN h USING (instruction_id, a, b) WHERE j.side <> 0 AND h.side <> 0"
    )
    folder = shared_data / "vicuna80_peers"
    files = [str(folder / "judgments.parquet"), str(folder / "human_votes.parquet")]
    recorded = {
        "gpt-4": (0.8256, 579),
        "claude-v1": (0.8176, 488),
        "gpt-3.5-turbo": (0.8127, 598),
        "bard": (0.8375, 283),
        "vicuna-13b": (0.7088, 285),
    }
    with duckdb.connect() as connection:
        for judge, (share, items) in recorded.items():
            rows = np.array(connection.execute(query, [*files, judge]).fetchall())
            found = cohen_kappa(rows[:, 0], rows[:, 1])
            assert (found.items, found.observed) == (items, pytest.approx(share, abs=1e-4))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30), st.permutations("xyz"))
def test_neither_names_nor_sides_nor_the_order_of_items_matter(pairs: list[tuple[int, int]], names: list[str]) -> None:
    first, second = np.array(pairs).T
    plain = cohen_kappa(first, second)
    renamed = np.array(names)
    for other in (
        cohen_kappa(second, first),
        cohen_kappa(first[::-1], second[::-1]),
        cohen_kappa(renamed[first], renamed[second]),
    ):
        assert other.value == (None if plain.value is None else pytest.approx(plain.value))


def test_an_item_that_one_judge_left_out_is_left_out() -> None:
    first, second = ["a", "b", "a", None, ""], ["a", "b", None, "b", "a"]
    found = cohen_kappa(first, second)
    assert (found.items, found.value) == (2, pytest.approx(1.0))
    assert cohen_kappa([None], ["a"]).reason == "no item has a label of both judges"


def test_one_category_alone_has_no_kappa_and_says_why() -> None:
    for found in (cohen_kappa(["a"] * 5, ["a"] * 5), fleiss_kappa([["a", "a"]] * 5)):
        assert (found.value, found.lo, found.hi) == (None, None, None)
        assert found.reason is not None
        assert "one category" in found.reason
        assert "none (all labels" in found.summary()


def test_clusters_widen_the_interval_where_items_repeat() -> None:
    first, second = columns(DIAGNOSES)
    eight = np.repeat(first, 8), np.repeat(second, 8)
    cluster = np.repeat(np.arange(100), 8)
    plain, apart = cohen_kappa(*eight), cohen_kappa(*eight, cluster=cluster)
    assert plain.se is not None
    assert apart.se == pytest.approx(plain.se * np.sqrt(8), rel=0.1)


def test_what_fits_no_coefficient_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="row 1: 1 labels; Fleiss' kappa needs the same number"):
        fleiss_kappa([["a", "b"], ["a", None]])
    with pytest.raises(InputError, match=r"first has shape \(2,\), second \(1,\)"):
        cohen_kappa(["a", "b"], ["a"])
    with pytest.raises(InputError, match="weighting is 'cubic'"):
        cohen_kappa(["a"], ["a"], weighting="cubic")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="errors is 'cluster'"):
        cohen_kappa(["a"], ["a"], errors="cluster")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="row 1: 'c' is not in categories"):
        cohen_kappa(["a", "c"], ["a", "a"], categories=["a", "b"])
    with pytest.raises(InputError, match="listed twice"):
        cohen_kappa(["a"], ["a"], categories=["a", "a"])
    with pytest.raises(InputError, match="counts: give a table"):
        fleiss_kappa_counts([[1, -1]])
    with pytest.raises(InputError, match="takes items as independent"):
        cohen_kappa(["a"], ["a"], errors="asymptotic", cluster=[0])


def test_kappa_with_people_is_that_of_sides(arena_sample: dict[str, Any]) -> None:
    y, human = arena_sample["data"].y, arena_sample["human"]
    found = human_kappa(y, human)
    assert found.observed == pytest.approx(0.506)
    chance = sum(np.mean(y == side) * np.mean(human == side) for side in (0.0, 0.5, 1.0))
    assert found.value == pytest.approx((0.506 - chance) / (1 - chance))
    halved = np.where(y == 1.0, 0.75, y)
    assert human_kappa(halved, np.where(np.arange(1000) < 10, np.nan, human)).items == 990


@pytest.mark.parametrize(
    ("said", "call"),
    [
        ("y has shape", lambda: human_kappa([1.0], [1.0, 0.0])),
        ("cluster has shape", lambda: human_kappa([1.0, 0.0], [1.0, 0.0], cluster=["x"])),
    ],
)
def test_bad_columns_are_named(said: str, call: Callable[[], object]) -> None:
    with pytest.raises(InputError, match=said):
        call()
