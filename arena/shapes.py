"""The shape of a trial: how many completions it shows and what its verdict is. All that differs by it is derived here.

What is chosen, planned, forecast and printed asks a shape for what it needs, and never which of some kinds it is: a
protocol that shows three answers, or seven, is planned like those that there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from venire.arena.records import Ballot, GeneratedText, Grade, Preference, Reading

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shape:
    """How many completions of an instruction a trial shows, and the kind of reading that its reply gives.

    `answers` is None where all models of the plan are shown at once. A preference is between two, which are a battle: a
    policy chooses it, and it is shown in both orders or in a drawn one. A grade is of one. A ballot ranks two or more,
    or all, in a drawn order. A text is written about none, or as an edited copy of one. Raises ValueError for a number
    that a reading cannot be of.

    >>> Shape(3, Ballot).sets(["d", "b", "e", "a", "c"])
    [('d', 'b', 'e'), ('a', 'c', 'd')]
    """

    answers: int | None
    reading: type[Reading]

    def __post_init__(self) -> None:
        few = 2 if self.answers is None else self.answers  # where all are shown, there are two at least
        able = {Preference: self.answers == 2, Grade: few == 1, Ballot: few >= 2, GeneratedText: few in (0, 1)}
        if not able[self.reading]:
            shown = "all answers" if self.answers is None else f"{self.answers} answers"
            raise ValueError(f"a {self.reading.__name__} cannot be read of a trial that shows {shown}")

    def __str__(self) -> str:
        if self.pairwise:
            return "pair"
        if self.answers is None:
            return "list"
        return {0: "none", 1: "edit" if self.writes else "single"}.get(self.answers, f"set of {self.answers}")

    @property
    def pairwise(self) -> bool:
        """Whether a trial is an order of a battle: rounds choose it, and both orders make a judgment."""
        return self.reading is Preference

    @property
    def ranks(self) -> bool:
        """Whether a verdict is a ballot."""
        return self.reading is Ballot

    @property
    def grades(self) -> bool:
        """Whether a verdict is a grade of one completion."""
        return self.reading is Grade

    @property
    def writes(self) -> bool:
        """Whether the reply is a completion, and judges nothing."""
        return self.reading is GeneratedText

    @property
    def rates(self) -> bool:
        """Whether a verdict sets one model above another, so that models can be rated."""
        return self.pairwise or self.ranks

    def size(self, models: int) -> int:
        """How many completions a trial shows where there are so many models."""
        return models if self.answers is None else self.answers

    def sets(self, order: Sequence[T]) -> list[tuple[T, ...]]:
        """What each trial on an instruction shows, in the order shown, of all its completions in the `order` drawn.

        They are dealt out, so that each is shown once; a last set that would be too small begins anew. Where nothing is
        shown there is one trial. Not for battles, which a policy chooses.
        """
        size = self.size(len(order))
        if self.answers == 0:
            return [()]
        starts = range(0, len(order), max(size, 1))
        return [tuple(order[(start + n) % len(order)] for n in range(size)) for start in starts]

    def trials(self, models: int, matchups: int, orders: int = 2) -> int:
        """How many trials one judge is asked on an instruction with completions of so many models."""
        return orders * matchups if self.pairwise else len(self.sets(range(models)))
