"""The order of presentation: the only place that converts between first/second and A/B.

From `orient` on, a positive label or score favours model A.
"""

from __future__ import annotations

from typing import TypeVar

from venire.arena.records import Ballot, GeneratedText, Grade, Outcome, Preference, Status, Verdict

T = TypeVar("T")

BOTH_ORDERS = (False, True)
"""The two orders of a battle: A shown first, and swapped, B shown first."""


def arrange(a: T, b: T, swapped: bool) -> tuple[T, T]:
    """What belongs to models A and B, in the order shown.

    >>> [arrange("a", "b", swapped) for swapped in BOTH_ORDERS]
    [('a', 'b'), ('b', 'a')]
    """
    return (b, a) if swapped else (a, b)


def orient(trial: bytes, swapped: bool | None, outcome: Outcome, *, flagged: bool = False) -> Verdict:
    """The verdict of a trial in model terms, from its outcome in the order shown.

    `swapped` is None for a trial that is no order of a battle. Raises TypeError when the outcome was read and is a
    preference there, or is none in a battle.
    """
    rule, reading = outcome.rule, outcome.reading
    if outcome.status is not Status.OK:
        return Verdict(trial, outcome.status, rule=rule, flagged=flagged)
    if isinstance(reading, Preference) == (swapped is None):
        kind = "a battle" if swapped is not None else "a trial that is no battle"
        raise TypeError(f"{kind} cannot end in a {type(reading).__name__}")
    match reading:
        case Grade():
            return Verdict(trial, Status.OK, label=reading.label, rule=rule, flagged=flagged)
        case Ballot():
            return Verdict(trial, Status.OK, places=reading.places, rule=rule, flagged=flagged)
        case GeneratedText():
            return Verdict(trial, Status.OK, answered=True, rule=rule, flagged=flagged)
        case Preference():
            return _in_model_terms(trial, bool(swapped), reading, rule, flagged)
    raise TypeError(f"no verdict is made of {reading!r}")


def _in_model_terms(trial: bytes, swapped: bool, reading: Preference, rule: str, flagged: bool) -> Verdict:
    sign = -1 if swapped else 1
    pairs = [arrange(first, second, swapped) for first, second in reading.criteria]
    return Verdict(
        trial,
        Status.OK,
        label=sign * reading.winner,
        score=None if reading.score is None else sign * reading.score,
        criteria=tuple(value for pair in pairs for value in pair),
        rule=rule,
        flagged=flagged,
    )
