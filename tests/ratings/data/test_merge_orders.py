"""Two orders to one judgment."""

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
from venire.ratings.data.judgments import Judgments, canonical, combine_keys, merge_orders, select_battles

Table = Callable[..., Battles]

COLUMNS = ("model_a", "model_b", "judge", "instruction", "repeat", "y", "flipped", "readable")


def same(one: Judgments, other: Judgments) -> bool:
    names = one.models == other.models and one.judges == other.judges and one.instructions == other.instructions
    return names and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in COLUMNS)


def turned(battles: Battles, rows: Any) -> Battles:
    """The same verdicts with A and B exchanged in some rows."""
    return replace(
        battles,
        model_a=np.where(rows, battles.model_b, battles.model_a),
        model_b=np.where(rows, battles.model_a, battles.model_b),
        swapped=battles.swapped ^ rows,
        label=np.where(rows, -battles.label, battles.label),
    )


@pytest.mark.parametrize(
    ("shown_ab", "shown_ba", "mean", "strict", "flipped"),
    [
        ("first", "second", 1.0, 1.0, False),
        ("second", "first", 0.0, 0.0, False),
        ("tie", "tie", 0.5, 0.5, False),
        ("first", "tie", 0.75, 0.5, False),
        ("tie", "second", 0.75, 0.5, False),
        ("second", "tie", 0.25, 0.5, False),
        ("tie", "first", 0.25, 0.5, False),
        ("first", "first", 0.5, 0.5, True),
        ("second", "second", 0.5, 0.5, True),
    ],
)
def test_two_orders_make_one_outcome(
    table: Table, shown_ab: str, shown_ba: str, mean: float, strict: float, flipped: bool
) -> None:
    battles = table([("a", "b", shown_ab), ("b", "a", shown_ba)])
    for merge, expected in (("mean", mean), ("strict", strict)):
        judgments = merge_orders(battles, merge)  # type: ignore[arg-type]  # the loop hides the literal
        assert judgments.y.tolist() == [expected]
        assert judgments.flipped.tolist() == [flipped]
        assert judgments.readable.tolist() == [2]
        assert (judgments.flips, judgments.ties) == (int(flipped), int(expected == 0.5 and not flipped))


def test_one_readable_order_is_used_alone_and_counted(table: Table) -> None:
    judgments = merge_orders(table([("a", "b", "second"), ("b", "a", None), ("a", "c", "tie", "j", "other")]), "strict")
    assert judgments.y.tolist() == [0.0, 0.5]
    assert (judgments.one_order, judgments.unreadable, judgments.flips) == (2, 1, 0)


def test_what_nobody_could_read_is_no_judgment(table: Table) -> None:
    judgments = merge_orders(table([("a", "b", None), ("b", "a", None)]))
    assert (len(judgments), judgments.unreadable) == (0, 2)
    assert judgments.models == ("a", "b")


def test_judges_instructions_and_repeats_are_kept_apart(table: Table) -> None:
    rows = [
        ("a", "b", "first", judge, instruction, repeat)
        for judge in ("j", "k")
        for instruction in ("i", "h")
        for repeat in (1, 2)
    ]
    assert len(merge_orders(table(rows))) == 8


@pytest.mark.parametrize("how", [{"ordered": False}, {"named": False}])
def test_without_orders_or_instructions_each_verdict_is_a_judgment(table: Table, how: dict[str, bool]) -> None:
    judgments = merge_orders(table([("a", "b", "first"), ("b", "a", "first"), ("a", "b", "first")], **how))
    assert judgments.y.tolist() == [0.0, 1.0, 1.0]
    assert not judgments.merged
    assert (judgments.one_order, judgments.flips) == (0, 0)


def test_two_verdicts_on_one_showing_are_refused_by_name(table: Table) -> None:
    with pytest.raises(InputError, match="judge j on a against b, instruction i, in one order and one repeat"):
        merge_orders(table([("a", "b", "first"), ("a", "b", "tie")]))
    assert len(merge_orders(table([("a", "b", "first"), ("a", "b", None)]))) == 1


def test_an_unknown_merge_is_refused_with_the_choices(table: Table) -> None:
    with pytest.raises(InputError, match="mean, strict"):
        merge_orders(table([("a", "b", "first")]), "median")  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model_b": np.array([0, 0], dtype=np.int32)}, "row 0: a meets itself"),
        ({"judge": np.array([0, 7], dtype=np.int32)}, "column judge, row 1"),
        ({"instruction": np.array([0, -1], dtype=np.int32)}, "column instruction, row 1"),
        ({"label": np.array([3, 0], dtype=np.int8)}, "column label, row 0"),
        ({"status": np.array([0, 9], dtype=np.int8)}, "column status, row 1"),
        ({"repeat": np.array([1, -2], dtype=np.int32)}, "column repeat, row 1"),
        ({"label": np.array([1], dtype=np.int8)}, "column label has 1 rows, model_a has 2"),
        ({"models": ("a", "a")}, "listed twice"),
    ],
)
def test_a_table_that_cannot_be_meant_is_refused(table: Table, change: dict[str, Any], words: str) -> None:
    battles = replace(table([("a", "b", "first"), ("b", "a", "first")]), **change)
    with pytest.raises(InputError, match=words):
        canonical(battles)


def test_canonical_form_keeps_who_was_shown_first(table: Table) -> None:
    rows = canonical(table([("b", "a", "first")]))
    assert (rows.models, rows.model_a.tolist(), rows.model_b.tolist()) == (("a", "b"), [0], [1])
    assert (rows.swapped.tolist(), rows.label.tolist()) == ([True], [-1])


verdicts = st.sampled_from(["first", "second", "tie", None])
showings = st.tuples(
    st.sampled_from([(x, y) for x in "abcd" for y in "abcd" if x != y]),
    st.sampled_from("jk"),
    st.sampled_from("hi"),
    st.integers(0, 2),
)
tables = st.dictionaries(showings, verdicts, min_size=1, max_size=40).map(
    lambda found: [(*models, verdict, *rest) for (models, *rest), verdict in found.items()]
)


@given(rows=tables, data=st.data())
def test_rows_sides_and_codes_may_come_in_any_order(table: Table, rows: list[tuple[Any, ...]], data: Any) -> None:
    battles = table(rows)
    shuffled = table(data.draw(st.permutations(rows)))  # new codes, too: names are numbered as they come
    sides = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    for ordered in (True, False):
        one = merge_orders(replace(battles, ordered=ordered))
        assert same(one, merge_orders(replace(shuffled, ordered=ordered)))
        assert same(one, merge_orders(turned(replace(battles, ordered=ordered), sides)))


@given(rows=tables)
def test_every_readable_verdict_counts_once(table: Table, rows: list[tuple[Any, ...]]) -> None:
    judgments = merge_orders(table(rows))
    readable = sum(row[2] is not None for row in rows)
    assert int(judgments.readable.sum()) == readable
    assert judgments.unreadable == len(rows) - readable
    assert set(judgments.y.tolist()) <= {0.0, 0.25, 0.5, 0.75, 1.0}
    assert bool(np.all(judgments.model_a < judgments.model_b))


@given(rows=st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=2, max_size=20), big=st.booleans())
def test_combined_keys_sort_as_their_columns_even_beyond_64_bits(rows: list[tuple[int, ...]], big: bool) -> None:
    scaled = [tuple(value * (2**30 if big else 1) for value in row) for row in rows]
    keys = combine_keys(*(np.array(column) for column in zip(*scaled, strict=True))).tolist()
    assert [scaled.index(row) for row in sorted(scaled)] == [keys.index(key) for key in sorted(keys)]


def test_select_keeps_names_and_takes_rows(table: Table) -> None:
    battles = table([("a", "b", "first"), ("c", "b", "tie")])
    kept = select_battles(battles, np.array([False, True]))
    assert kept.models == battles.models
    assert kept.label.tolist() == [0]
