"""Battles from columns are those that a store gives, and what is wrong in a column is named with its row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from venire.arena.errors import InputError
from venire.arena.records import Status
from venire.ratings import battles, merge_orders


def test_columns_become_battles_as_a_store_gives_them() -> None:
    found = battles(
        ["b", "a"], ["a", "c"], [1, np.nan], judge=["y", "x"], instruction=[7, 7], swapped=[True, False], repeat=[1, 2]
    )
    assert found.models == ("a", "b", "c")
    assert found.judges == ("x", "y")
    assert found.instructions == ("7",)
    assert found.status.tolist() == [Status.OK, Status.UNREADABLE]
    assert found.label[0] == 1
    assert found.swapped.tolist() == [True, False]
    assert found.repeat.tolist() == [1, 2]
    assert found.ordered


def test_without_orders_judges_and_instructions_nothing_is_made_up() -> None:
    found = battles(["a"], ["b"], [0.5])
    assert not found.ordered
    assert found.instructions == ()
    assert found.instruction.tolist() == [-1]
    assert merge_orders(found).y.tolist() == [0.5]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"y": [1, 0.3]}, "y, row 1: 0.3 is not possible"),
        ({"y": ["x", 1]}, "y, row 0: 'x' is not a number"),
        ({"y": [1]}, "y has shape"),
        ({"swapped": [1, 0]}, "swapped: give 2 values"),
        ({"swapped": [True]}, "swapped: give 2 values"),
        ({"repeat": [1, 0]}, "repeat, row 1: 0"),
        ({"judge": ["x"]}, "judge has 1 rows"),
        ({"model_b": ["b", "a"]}, "model_b, row 1: "),
    ],
)
def test_what_is_wrong_is_named_with_its_row(given: dict[str, Any], told: str) -> None:
    columns: dict[str, Any] = {"model_a": ["a", "a"], "model_b": ["b", "c"], "y": [1, 0], **given}
    with pytest.raises(InputError, match=told.replace("(", r"\(")):
        battles(**columns)
