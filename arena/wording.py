"""Names and intervals in words, wherever they are shown: on a screen, in a page, in a report, in a picture."""

from __future__ import annotations

import math
from collections.abc import Callable


def plain(text: str) -> str:
    r"""A name or a provider's message with its control characters shown instead of obeyed.

    >>> print(plain("judge\x1b[2J"))
    judge\x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def interval_text(lo: float | None, hi: float | None, write: str | Callable[[float], str] = ".0f") -> str:
    """An interval in words; an end that is None, NaN or infinite is open, and two of them are nothing to write.

    `write` is a format of numbers, or what writes one. Signed ends would run into a dash, so it is "to".

    >>> interval_text(-0.22, 0.97, ".2f"), interval_text(852.3, None), interval_text(None, 1087.0)
    ('-0.22 to 0.97', '852 or more', '1087 or less')
    """
    low, high = (
        None if end is None or not math.isfinite(end) else write(end) if callable(write) else format(end, write)
        for end in (lo, hi)
    )
    if low is None:
        return "" if high is None else f"{high} or less"
    return f"{low} or more" if high is None else f"{low} to {high}"
