"""What judgments carry beside the outcome, and their way to comparisons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.data.judgments import Judgments, canonical, merge_orders, select_battles

Table = Callable[..., Battles]

COLUMNS = ("model_a", "model_b", "judge", "instruction", "repeat", "y", "flipped", "readable")
EXTRA = ("first", "weight", "score", "human", "cluster")
BOTH = [("a", "b", "first"), ("b", "a", "second")]


def numbers(*values: float) -> Any:
    return np.array(values, dtype=np.float64)


def test_scores_are_turned_into_model_terms_and_averaged(table: Table) -> None:
    battles = replace(table([*BOTH, ("b", "a", "first", "j", "h")]), score=numbers(2.0, 1.0, 3.0))
    score = merge_orders(battles).score
    assert score is not None
    assert score.tolist() == [-3.0, 0.5]  # instruction h, then i: (2 - 1) / 2


def test_an_order_without_a_number_leaves_it_to_the_other(table: Table) -> None:
    battles = replace(table([*BOTH, ("a", "c", "tie")]), score=numbers(2.0, np.nan, np.nan), human=numbers(1, 0, 0.5))
    merged = merge_orders(battles)
    assert merged.score is not None
    assert merged.human is not None
    assert np.array_equal(merged.score, [2.0, np.nan], equal_nan=True)
    assert merged.human.tolist() == [1.0, 0.5]


def test_what_no_verdict_says_is_none(table: Table) -> None:
    merged = merge_orders(table(BOTH))
    assert (merged.weight, merged.score, merged.human, merged.cluster, merged.features) == (None, None, None, None, {})
    assert merge_orders(table(BOTH, ordered=False)).first is None


def test_weights_are_averaged_and_weigh_the_orders(table: Table) -> None:
    rows = [("a", "b", "first"), ("b", "a", "tie"), ("a", "c", "first"), ("c", "a", "first")]
    merged = merge_orders(replace(table(rows), weight=numbers(3, 1, 0, 0)))
    assert merged.weight is not None
    assert merged.weight.tolist() == [2.0, 0.0]
    assert merged.y.tolist() == [(3 * 1 + 1 * 0.5) / 4, 0.5]


def test_shares_are_averaged_even_where_the_winners_are_opposite(table: Table) -> None:
    battles = replace(table([("a", "b", "first"), ("b", "a", "first")]), outcome=numbers(0.9, 0.7))
    assert merge_orders(battles).y.tolist() == pytest.approx([0.6])
    assert merge_orders(battles).flips == 1
    assert merge_orders(battles, "strict").y.tolist() == [0.5]


def test_flips_can_be_left_out_and_are_counted(table: Table) -> None:
    rows = [("a", "b", "first"), ("b", "a", "first"), ("a", "c", "first"), ("c", "a", "tie")]
    merged = merge_orders(table(rows), flips="drop")
    assert (merged.y.tolist(), merged.dropped, merged.flips, merged.models) == ([0.75], 1, 0, ("a", "b", "c"))
    assert merge_orders(table(rows)).dropped == 0
    with pytest.raises(InputError, match="there are none to drop"):
        merge_orders(table(rows), "none", flips="drop")
    with pytest.raises(InputError, match=r"flips is 'keep'; .*here are: tie, drop"):
        merge_orders(table(rows), flips="keep")  # type: ignore[arg-type]  # wrong on purpose


def test_unmerged_each_verdict_knows_which_model_came_first(table: Table) -> None:
    one = merge_orders(table([("b", "a", "first"), ("a", "b", "tie"), ("b", "a", None)]), "none")
    assert one.first is not None
    assert sorted(zip(one.y.tolist(), one.first.tolist(), strict=True)) == [(0.0, -1), (0.5, 1)]
    assert (one.merged, one.flips, one.unreadable) == (False, 0, 1)
    both = merge_orders(table([*BOTH, ("b", "a", "tie", "j", "h")])).first
    assert both is not None
    assert both.tolist() == [-1, 0]


def test_comparisons_count_models_judges_and_clusters_anew(table: Table) -> None:
    rows = [("a", "b", "first", "k", "x"), ("b", "c", "first", "j", "y"), ("c", "a", "tie", "j", "z")]
    merged = merge_orders(table(rows))
    every = merged.comparisons()
    assert (every.models, every.judges, every.clusters) == (("a", "b", "c"), ("j", "k"), ("x", "y", "z"))
    some = merged.comparisons(["c", "a"])
    assert (some.models, some.judges, some.clusters) == (("c", "a"), ("j",), ("z",))
    assert (some.a.tolist(), some.b.tolist(), some.y.tolist()) == ([1], [0], [0.5])
    assert some.a.dtype == some.b.dtype == np.int32
    assert some.judge is not None
    assert some.cluster is not None
    assert (some.judge.tolist(), some.cluster.tolist()) == ([0], [0])
    later = merged.of_judge("k").comparisons()
    assert later.judge is not None
    assert later.judge.tolist() == [0]
    assert merged.of_judge("k").comparisons().judges == ("k",)
    for call in (lambda: merged.comparisons(["a", "d"]), lambda: merged.of_judge("l")):
        with pytest.raises(InputError, match="here are: "):
            call()
    with pytest.raises(InputError, match="listed twice"):
        merged.comparisons(["a", "a"])


def test_a_table_without_instructions_has_no_clusters(table: Table) -> None:
    data = merge_orders(table(BOTH, named=False)).comparisons()
    assert (data.cluster, data.clusters, len(data)) == (None, (), 2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"outcome": numbers(0.5, 1.5)}, "column outcome, row 1"),
        ({"outcome": numbers(np.nan, 1)}, "column outcome, row 0"),
        ({"weight": numbers(1, -1)}, "column weight, row 1"),
        ({"weight": numbers(1, np.nan)}, "column weight, row 1"),
        ({"score": numbers(1, np.inf)}, "column score, row 1"),
        ({"human": numbers(2, 1)}, "column human, row 0"),
        ({"features": {"length": numbers(0, -np.inf)}}, "column length, row 1"),
        ({"features": {"length": numbers(0)}}, "column length has 1 rows"),
        ({"cluster": np.array([0, 1], dtype=np.int32), "clusters": ("x",)}, "column cluster, row 1"),
    ],
)
def test_numbers_that_cannot_be_meant_are_refused(table: Table, change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        canonical(replace(table(BOTH), **change))


showings = st.tuples(
    st.sampled_from([(x, y) for x in "abc" for y in "abc" if x != y]), st.sampled_from("jk"), st.sampled_from("hi")
)
said = st.tuples(st.sampled_from(["first", "second", "tie", None]), *[st.integers(0, 3)] * 4)
tables = st.dictionaries(showings, said, min_size=1, max_size=24)


def filled(table: Table, found: dict[Any, Any]) -> Battles:
    battles = table([(*models, verdict[0], *rest) for (models, *rest), verdict in found.items()])
    weight, share, score, human = np.array([verdict[1:] for verdict in found.values()], dtype=np.float64).T
    clusters = tuple(reversed(battles.instructions))
    return replace(
        battles,
        outcome=np.where(battles.status == 0, share / 3, np.nan),
        weight=weight,
        score=np.where(score == 3, np.nan, score - 1.0),
        human=np.where(human == 3, np.nan, human / 2),
        features={"length": score - 1.5, "kin": human - 1.0},
        cluster=(len(clusters) - 1 - battles.instruction).astype(np.int32),
        clusters=clusters,
    )


def turned(battles: Battles, rows: Any) -> Battles:
    """The same verdicts with A and B exchanged in some rows."""
    assert battles.outcome is not None
    assert battles.score is not None
    assert battles.human is not None
    return replace(
        battles,
        model_a=np.where(rows, battles.model_b, battles.model_a),
        model_b=np.where(rows, battles.model_a, battles.model_b),
        swapped=battles.swapped ^ rows,
        label=np.where(rows, -battles.label, battles.label),
        outcome=np.where(rows, 1 - battles.outcome, battles.outcome),
        score=np.where(rows, -battles.score, battles.score),
        human=np.where(rows, 1 - battles.human, battles.human),
        features={name: np.where(rows, -column, column) for name, column in battles.features.items()},
    )


def assert_same(one: Judgments, other: Judgments) -> None:
    """Equal but for the last bit of a share: 1 - (1 - x) may differ from x."""
    assert (one.models, one.judges, one.clusters) == (other.models, other.judges, other.clusters)
    for name in (*COLUMNS, *EXTRA):
        mine, theirs = getattr(one, name), getattr(other, name)
        assert (mine is None) == (theirs is None), name
        if mine is not None:
            np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-15, err_msg=name)
    for name, column in one.features.items():
        np.testing.assert_allclose(column, other.features[name], rtol=0, atol=1e-15)


@given(found=tables, data=st.data(), ordered=st.booleans(), merge=st.sampled_from(["mean", "strict", "none"]))
def test_rows_and_sides_may_come_in_any_order(
    table: Table, found: dict[Any, Any], data: Any, ordered: bool, merge: Any
) -> None:
    battles = replace(filled(table, found), ordered=ordered)
    rows = np.array(data.draw(st.permutations(range(len(found)))))
    sides = np.array(data.draw(st.lists(st.booleans(), min_size=len(found), max_size=len(found))))
    one = merge_orders(battles, merge)
    assert_same(one, merge_orders(select_battles(battles, rows), merge))
    assert_same(one, merge_orders(turned(battles, sides), merge))


@given(found=tables)
def test_selected_rows_are_those_of_every_column(table: Table, found: dict[Any, Any]) -> None:
    merged = merge_orders(filled(table, found))
    mask = merged.between(["a", "b"]) if {"a", "b"} <= {*merged.models} else np.zeros(len(merged), dtype=np.bool_)
    some = merged.select(mask)
    places = np.flatnonzero(mask)
    for name in (*COLUMNS, *EXTRA):
        np.testing.assert_array_equal(getattr(some, name), getattr(merged, name)[places])
    np.testing.assert_array_equal(some.features["kin"], merged.features["kin"][places])
    assert len(some) == len(places)
