"""Another rule for ties is noticed where it turns a clear order round, and not otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.diagnostics.stability import tie_sensitivity

Table = Callable[..., Battles]


def rows(first: str, second: str, wins: int, ties: int, losses: int, start: int = 0) -> list[tuple[Any, ...]]:
    """One order a battle, one instruction each."""
    words = ["first"] * wins + ["tie"] * ties + ["second"] * losses
    return [(first, second, word, "j", f"{first}{second}{start + place}") for place, word in enumerate(words)]


def test_a_model_that_ties_with_all_rises_when_ties_are_left_out(table: Table) -> None:
    # Against c, a draws nearly always and wins the rest; b wins often and never draws: by half wins b is the better.
    battles = table(
        rows("a", "c", 12, 188, 1) + rows("b", "c", 140, 0, 60) + rows("a", "b", 30, 60, 30, 500), ordered=False
    )
    found = tie_sensitivity(battles)
    dropped = next(rule for rule in found.rules if rule.rule == "ties left out")
    assert found.leader == "b"
    assert dropped.leader == "a"
    assert dropped.contradicted == (("b", "a"),)
    assert (dropped.moved, dropped.shift > 50) == (1, True)


def test_without_ties_or_flips_no_rule_matters(table: Table) -> None:
    found = tie_sensitivity(table(rows("a", "b", 5, 0, 3)))
    assert (found.rules, found.ties, found.flips) == ((), 0.0, 0.0)


def test_close_models_that_change_places_contradict_nothing(table: Table) -> None:
    battles = table(rows("a", "b", 5, 4, 5) + rows("a", "c", 5, 2, 3) + rows("b", "c", 4, 5, 2), ordered=False)
    found = tie_sensitivity(battles)
    assert found.rules
    assert all(rule.contradicted == () for rule in found.rules)


def test_flips_are_a_rule_of_their_own_where_orders_are_known(table: Table) -> None:
    both = [
        (one, two, word, "j", f"i{number}")
        for number in range(6)
        for one, two, word in (("a", "b", "first"), ("b", "a", "first" if number < 3 else "second"))
    ]
    found = tie_sensitivity(table([*both, ("a", "b", "second", "j", "x")]))
    assert found.flips == pytest.approx(3 / 7)
    assert [rule.rule for rule in found.rules] == ["ties left out", "flips left out", "ties as an outcome"]


def test_a_rule_without_a_board_says_why_and_a_board_that_does_not_exist_is_refused(table: Table) -> None:
    found = tie_sensitivity(table(rows("a", "b", 3, 1, 0)))
    assert "groups without wins both ways" in str(found.rules[0].reason)
    with pytest.raises(InputError, match="no common estimate"):
        tie_sensitivity(table(rows("a", "b", 3, 0, 0)))
