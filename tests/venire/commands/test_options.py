"""Arguments that several verbs share: what a user may write, and what is said of a slip."""

from __future__ import annotations

from typing import get_args

import pytest

from venire.arena.choices import Habit
from venire.arena.errors import InputError
from venire.cli.options import anchors, where
from venire.cli.rate import HabitChoice


def test_an_anchor_is_a_model_and_its_rating_and_the_name_may_hold_an_equals_sign() -> None:
    assert anchors(["gpt-4=1250", "org/m=v2=-3.5"]) == {"gpt-4": 1250.0, "org/m=v2": -3.5}
    assert anchors(["a=1", "a=1.0"]) == {"a": 1.0}
    assert anchors([]) == {}


@pytest.mark.parametrize("given", ["gpt-4", "=1250", "gpt-4=", "gpt-4=high", "gpt-4=nan", "gpt-4=inf", ""])
def test_an_anchor_without_a_model_or_a_number_is_refused(given: str) -> None:
    with pytest.raises(InputError, match="--anchor takes MODEL=ELO, as in --anchor gpt-4=1250, and got"):
        anchors(["a=1", given])


def test_a_model_is_anchored_once() -> None:
    with pytest.raises(InputError, match="--anchor gives a both 1 and 2 Elo points"):
        anchors(["a=1", "a=2"])


def test_conditions_are_gathered_by_column() -> None:
    given = ["kind=human", "kind=llm", "judge!=x", "note=a=b", "note!="]
    assert where(given) == {"kind": ("human", "llm"), "judge!": ("x",), "note": ("a=b",), "note!": ("",)}
    assert where([]) == {}


@pytest.mark.parametrize("given", ["kind", "=human", "!=human", ""])
def test_a_condition_without_a_column_is_refused(given: str) -> None:
    with pytest.raises(InputError, match="--where takes COLUMN=VALUE or COLUMN!=VALUE"):
        where([given])


def test_every_habit_of_judges_can_be_named_on_the_command_line() -> None:
    assert [one.value for one in HabitChoice] == list(get_args(Habit))
