"""Lists and numbers in sentences."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["counted", "few"]


def few(names: Sequence[str], most: int = 5) -> str:
    """The first names, and how many more there are, so that a long list does not fill the screen."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def counted(number: int, word: str) -> str:
    """A number with its word in the singular or the plural."""
    return f"{number:,} {word}" + ("" if number == 1 else "s")
