"""What a campaign may spend: checked before each call, settled after it, in integers of nano-dollars."""

from __future__ import annotations

import asyncio

from venire.arena.campaigns import Budget
from venire.arena.errors import BudgetReachedError

__all__ = ["Purse"]


class Purse:
    """The money and calls of one campaign: spent plus reserved never exceeds the limits.

    `spent` and `calls` start with what the campaign paid in earlier runs; calls whose cost is not known count at what
    was reserved for them. `reserve` has no await in it, so no two workers can pass the check together.
    """

    def __init__(self, limits: Budget, *, spent: int = 0, calls: int = 0) -> None:
        self._limits = limits
        self.spent = spent
        self.calls = calls
        self.reserved = 0
        self._freed = asyncio.Event()

    async def reserve_when_free(self, worst: int) -> None:
        """As `reserve`, but while only what others have reserved is in the way, wait until some of it is settled."""
        while True:
            try:
                return self.reserve(worst)
            except BudgetReachedError:
                if self._limits.money is None or self.reserved == 0 or self.spent + worst > self._limits.money:
                    raise
                if self._limits.calls is not None and self.calls >= self._limits.calls:
                    raise
            self._freed.clear()
            await self._freed.wait()

    def reserve(self, worst: int) -> None:
        """Set aside one call and its worst-case price. Raises BudgetReachedError when that could exceed a limit."""
        if self._limits.calls is not None and self.calls + 1 > self._limits.calls:
            raise BudgetReachedError(f"the budget of {self._limits.calls} calls is reached")
        if self._limits.money is not None and self.spent + self.reserved + worst > self._limits.money:
            raise BudgetReachedError(
                f"the budget of ${self._limits.money / 1e9:.4f} does not cover the next call: ${self.spent / 1e9:.4f} "
                f"spent, ${self.reserved / 1e9:.4f} reserved, up to ${worst / 1e9:.4f} needed"
            )
        self.calls += 1
        self.reserved += worst

    def settle(self, worst: int, paid: int | None) -> None:
        """Turn a reservation into what was paid, in nano-dollars; None: not known, counted at the reservation."""
        self.reserved -= worst
        self.spent += worst if paid is None else paid
        self._freed.set()

    def release(self, worst: int) -> None:
        """Give a reservation back: the call was not sent."""
        self.reserved -= worst
        self.calls -= 1
        self._freed.set()
