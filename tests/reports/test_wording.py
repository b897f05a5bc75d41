"""Lists and numbers in sentences."""

from __future__ import annotations

from venire.arena.wording import few
from venire.reports.wording import counted


def test_a_crowd_is_named_by_its_first_and_their_number() -> None:
    names = ["a", "b", "c"]
    assert (few(names, 2), few(names, 3), few([])) == ("a, b and 1 more", "a, b, c", "")


def test_one_is_singular_and_thousands_are_set_apart() -> None:
    assert (counted(1, "judge"), counted(0, "judge"), counted(1200, "row")) == ("1 judge", "0 judges", "1,200 rows")
