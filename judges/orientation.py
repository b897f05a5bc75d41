"""The only place that knows first from second. From `orient` on, a positive label or score favours model A."""

from __future__ import annotations

from typing import TypeVar

from venire.arena.records import Outcome, Preference, Status, Verdict

__all__ = ["BOTH_ORDERS", "arrange", "orient"]

T = TypeVar("T")

BOTH_ORDERS = (False, True)
"""The two orders of a battle: A shown first, and swapped, B shown first."""


def arrange(a: T, b: T, swapped: bool) -> tuple[T, T]:
    """What belongs to models A and B, in the order shown."""
    return (b, a) if swapped else (a, b)


def orient(trial: bytes, swapped: bool, outcome: Outcome) -> Verdict:
    """The verdict of a pairwise trial in model terms, from its outcome in the order shown.

    Raises TypeError when the outcome was read and is not a preference.
    """
    if outcome.status is not Status.OK:
        return Verdict(trial, outcome.status, rule=outcome.rule)
    reading = outcome.reading
    if not isinstance(reading, Preference):
        raise TypeError(f"a pairwise trial ends in a preference, not in {type(reading).__name__}")
    sign = -1 if swapped else 1
    pairs = [arrange(first, second, swapped) for first, second in reading.criteria]
    return Verdict(
        trial,
        Status.OK,
        label=sign * reading.winner,
        score=None if reading.score is None else sign * reading.score,
        criteria=tuple(value for pair in pairs for value in pair),
        rule=outcome.rule,
    )
