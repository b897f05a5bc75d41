"""What a budget can limit, each unit declared once; what of it calls take; and what shards have of it.

A unit is a field of `BudgetSettings`: the schema of campaign files and their template, the check before each call, the
parts of shards and every sentence about a budget follow from its declaration. What calls take of it is a field of
`Amount` that has the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from operator import add, sub
from typing import Any, NamedTuple

from venire.arena.wording import money


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


class Amount(NamedTuple):
    """What calls take, have taken or may take of each unit of budgets. A tuple, since several are made for a call."""

    calls: int
    money: int
    """In nano-dollars."""
    tokens: int
    """Of requests and replies together."""

    def plus(self, other: Amount) -> Amount:
        """The sum of two amounts."""
        return _amount(map(add, self, other))

    def minus(self, other: Amount) -> Amount:
        """What is left of an amount without another."""
        return _amount(map(sub, self, other))

    def at_least(self, other: Amount) -> Amount:
        """The greater of two amounts, unit by unit."""
        return _amount(map(max, self, other))


_amount = partial(tuple.__new__, Amount)
"""As `Amount._make`, without a step of Python: several sums are made for a call."""
NOTHING = _amount(0 for _ in Amount._fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetUnit:
    """One unit of budgets: its key in `[budget]` and the values that are accepted there, and how amounts are said."""

    since: int
    """The edition of campaign files that brought it: see `configs.fields`."""
    shards: Shards
    template: str
    """Its line in the file that a newcomer starts from."""
    low: int
    high: int
    of: str = ""
    """What the numbers of the file are of, where they may have decimals; empty: they are whole."""
    scale: int = 1
    """How many make 1 in the file, whose numbers are exact in them."""
    noun: str = ""
    """Said behind a number."""
    number: Callable[[int], str] = "{:,}".format
    precise: Callable[[int], str] = "{:,}".format
    """Where a little matters: before a call that is not covered."""
    grain: int = 1
    """What such a number is a multiple of."""
    used: str = "used"
    is_certain: bool = False
    """Whether it is known before a call what that takes, so that what is reserved is as good as used."""
    name: str = ""

    def exact(self, value: Decimal | int) -> int:
        """A number of the file in the smallest parts that are counted."""
        return int(value * self.scale)

    def of_amount(self, amount: Amount) -> int:
        """What an amount has of it."""
        found: int = getattr(amount, self.name)
        return found

    def text(self, value: int, *, precise: bool = False) -> str:
        """So much of it, in words.

        >>> UNITS["calls"].text(1), UNITS["money"].text(2_500_000), UNITS["tokens"].text(12_000)
        ('1 call', '$0.0025', '12,000 tokens')
        """
        noun = self.noun.removesuffix("s") if value == self.scale else self.noun
        return f"{(self.precise if precise else self.number)(value)} {noun}".rstrip()

    def round_up(self, value: int) -> int:
        """The least that precise words can say which is enough for so much."""
        return -(-value // self.grain) * self.grain


def _limit(unit: BudgetUnit) -> Any:
    return field(default=None, metadata={"unit": unit})


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """Limits of a campaign, a judge or a model, across resumptions; None: no limit. Money in nano-dollars."""

    calls: int | None = _limit(
        BudgetUnit(
            since=0,
            shards=Shards.PART,
            template="calls = 2000",
            low=1,
            high=10**12,
            noun="calls",
            is_certain=True,
        )
    )
    money: int | None = _limit(
        BudgetUnit(
            since=0,
            shards=Shards.PART,
            template="money = 1.00           # US dollars",
            low=0,
            high=10**9,
            of="US dollars",
            scale=10**9,
            number=money,
            precise=partial(money, decimals=4),
            grain=10**5,
            used="spent",
        )
    )
    tokens: int | None = _limit(
        BudgetUnit(
            since=1,
            shards=Shards.PART,
            template="# tokens = 2000000     # of requests and replies together",
            low=1,
            high=10**15,
            noun="tokens",
        )
    )

    @staticmethod
    def of_table(table: Mapping[str, Any]) -> BudgetSettings:
        """From a table of limits, as in a file or in stored settings, which have decimal numbers as texts."""
        given = {name: table.get(name) for name in UNITS}
        return BudgetSettings(
            **{name: UNITS[name].exact(Decimal(str(amount))) for name, amount in given.items() if amount is not None}
        )

    @property
    def limited(self) -> tuple[tuple[BudgetUnit, int], ...]:
        """The units that have a limit, with it."""
        limits = ((unit, getattr(self, name)) for name, unit in UNITS.items())
        return tuple((unit, limit) for unit, limit in limits if limit is not None)

    def less(self, amount: Amount) -> BudgetSettings:
        """What is left of the limits, not below nothing."""
        return BudgetSettings(**{unit.name: max(0, limit - unit.of_amount(amount)) for unit, limit in self.limited})

    def texts(self) -> str:
        """Its limits in words; empty where there is none.

        >>> BudgetSettings(calls=1000, money=10**9).texts()
        '1,000 calls and $1.00'
        """
        return " and ".join(unit.text(limit) for unit, limit in self.limited)

    def rows(self, whose: str, used: Amount, reserved: Amount = NOTHING) -> list[dict[str, Any]]:
        """A row of plain values for each limit, money first: what is used of it, reserved and left."""
        found = []
        for unit, limit in sorted(self.limited, key=lambda one: one[0].name != "money"):
            now, held = unit.of_amount(used), unit.of_amount(reserved)
            if unit.is_certain:
                now, held = now + held, 0
            row = {"whose": whose, "unit": unit.name, "limit": limit, "used": now, "reserved": held}
            found.append(row | {"left": max(0, limit - now - held)})
        return found


NO_LIMITS = BudgetSettings()

UNITS: Mapping[str, BudgetUnit] = {
    limit.name: replace(limit.metadata["unit"], name=limit.name) for limit in fields(BudgetSettings)
}
"""Everything that a budget can limit, by its key."""

if tuple(UNITS) != Amount._fields:
    raise TypeError("each unit of BudgetSettings is a field of Amount too, in the same order: what calls take of it")
