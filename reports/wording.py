"""Lists and numbers in sentences."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["counted", "elo_text", "few"]


def few(names: Sequence[str], most: int = 5) -> str:
    """The first names, and how many more there are, so that a long list does not fill the screen."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def counted(number: int, word: str) -> str:
    """A number with its word in the singular or the plural."""
    return f"{number:,} {word}" + ("" if number == 1 else "s")


def elo_text(elo: float | None, lo: float | None, hi: float | None) -> str:
    """A rating in whole Elo points or, where it is None, the one bound that it has.

    >>> elo_text(None, 1490.2, None)
    'over 1490'
    """
    if elo is not None:
        return f"{elo:.0f}"
    return f"over {lo:.0f}" if lo is not None else f"under {hi:.0f}" if hi is not None else "none"
