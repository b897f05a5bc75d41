"""Texts of others as they may be shown: nothing of them is obeyed by a screen or a picture."""

from __future__ import annotations


def plain(text: str) -> str:
    r"""A name or a provider's message with its control characters shown instead of obeyed.

    >>> print(plain("judge\x1b[2J"))
    judge\x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
