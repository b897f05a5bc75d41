"""How shards divide what a campaign may do."""

from __future__ import annotations

from enum import Enum
from fractions import Fraction


class Shards(Enum):
    """What the shards of a campaign have of the value of a key."""

    WHOLE = "whole"
    """Each has the whole of it."""
    PART = "part"
    """Each has its part; counts are rounded down, so that together they are never more than the whole."""


def part_of(value: int | float, part: Fraction) -> int | float:
    """What a shard that does a part of a campaign has of a value that shards divide.

    >>> part_of(10, Fraction(1, 3)), part_of(0.5, Fraction(1, 4))
    (3, 0.125)
    """
    return int(value * part) if isinstance(value, int) else value * float(part)
