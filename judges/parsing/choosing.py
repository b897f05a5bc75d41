"""Which dialect a set of replies is written in: the one that reads most of them, unless another one says otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from venire.arena.errors import InputError
from venire.judges.parsing.dialects import Verdict

__all__ = ["Candidate", "candidates", "choose"]

_NEARLY = 0.9
"""A dialect that reads this share of what the best one reads is its rival."""
_DIFFERS = 0.01
"""A rival that reads this share of the replies that both read otherwise makes the choice the user's."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A dialect beside the one that reads most: how many replies it reads, how many both read, how many otherwise."""

    name: str
    read: int
    both: int
    against: int
    example: int | None
    """Row, the first is 1, of the first reply that the two read otherwise."""


def candidates(verdicts: Mapping[str, Sequence[Verdict | None]]) -> list[Candidate]:
    """All dialects that read something, the one that reads most first; of equals the first of the table."""
    counts = {name: sum(verdict is not None for verdict in column) for name, column in verdicts.items()}
    ordered = sorted((name for name in counts if counts[name]), key=lambda name: -counts[name])
    return [_beside(name, counts[name], verdicts[name], verdicts[ordered[0]]) for name in ordered]


def _beside(name: str, read: int, column: Sequence[Verdict | None], best: Sequence[Verdict | None]) -> Candidate:
    both = [at for at, pair in enumerate(zip(column, best, strict=True)) if None not in pair]
    against = [at for at in both if column[at] != best[at]]
    return Candidate(name, read, len(both), len(against), against[0] + 1 if against else None)


def choose(found: Sequence[Candidate], rows: int) -> Candidate:
    """The first candidate; raises InputError where there is none, or where a rival reads the same replies otherwise."""
    if not found:
        raise InputError(
            f"none of the dialects reads any of the {rows} replies; `venire parse --list` shows what they read"
        )
    best = found[0]
    rivals = [
        one
        for one in found[1:]
        if one.against
        and (one.read == best.read or (one.read >= _NEARLY * best.read and one.against >= _DIFFERS * one.both))
    ]
    if rivals:
        told = "; ".join(
            f"{one.name} reads {one.read}, {one.against} of them otherwise (the first in row {one.example})"
            for one in rivals
        )
        raise InputError(
            f"several dialects read these replies and disagree: {best.name} reads {best.read} of {rows}; {told}. "
            f"Name the right one with --dialect"
        )
    return best
