"""Shapes: how many answers a trial shows and what is read of them are facts, from which the rest follows."""

from __future__ import annotations

from collections import Counter

import pytest

from venire.arena.records import Ballot, GeneratedText, Grade, Preference, Reading
from venire.arena.shapes import Shape
from venire.judges import PROTOCOLS


@pytest.mark.parametrize("answers", range(2, 8))
@pytest.mark.parametrize("models", [7, 12, 20])
def test_every_answer_is_dealt_out_and_no_set_shows_one_twice(answers: int, models: int) -> None:
    sets = Shape(answers, Ballot).sets(range(models))
    times = Counter(answer for shown in sets for answer in shown)
    assert all(len(set(shown)) == answers for shown in sets)
    assert set(times) == set(range(models))
    assert sum(times.values()) - models < answers


def test_one_none_and_all_are_sets_too() -> None:
    assert Shape(1, Grade).sets("abc") == [("a",), ("b",), ("c",)]
    assert Shape(None, Ballot).sets("cab") == [("c", "a", "b")]
    assert Shape(0, GeneratedText).sets("abc") == Shape(0, GeneratedText).sets("") == [()]
    assert Shape(1, Grade).sets("") == []


@pytest.mark.parametrize(
    ("answers", "reading"),
    [(1, Preference), (3, Preference), (None, Preference), (2, Grade), (None, Grade), (1, Ballot), (2, GeneratedText)],
)
def test_a_number_of_answers_that_a_reading_cannot_be_of_is_refused(answers: int, reading: type[Reading]) -> None:
    with pytest.raises(ValueError, match=f"{reading.__name__} cannot be read"):
        Shape(answers, reading)


def test_shapes_have_names_of_their_own() -> None:
    assert {str(entry.shape) for entry in PROTOCOLS.values()} == {"none", "edit", "single", "pair", "list"}
    assert str(Shape(3, Ballot)) == "set of 3"
