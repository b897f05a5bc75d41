"""Names, money and intervals in words, wherever they are shown: on a screen, in a page, in a report, in a picture."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches


def plain(text: str) -> str:
    r"""A name or a provider's message with its control characters shown instead of obeyed.

    >>> print(plain("judge\x1b[2J"))
    judge\x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def few(names: Sequence[str], most: int = 5) -> str:
    """The first names, and how many more there are, so that a long list does not fill the screen."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def suggest(word: object, names: Iterable[str]) -> str:
    """The end of a sentence about a word that is none of some names: what was probably meant, and what there is.

    Case, hyphens and underscores make no difference to what is near; of long lists the first thirty are named.

    >>> suggest("balancd", ["balanced", "random"])
    "did you mean 'balanced'? There are: balanced, random"
    >>> suggest("?", ["balanced"]), suggest("?", [])
    ('there is: balanced', 'there is none')
    """
    known = list(dict.fromkeys(names))
    if not known:
        return "there is none"
    listed = f"{'is' if len(known) == 1 else 'are'}: {plain(few(known, 30))}"
    near = nearest(str(word), known)
    return f"there {listed}" if near is None else f"did you mean {near!r}? There {listed}"


def nearest(word: str, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The name that is most like a word, from `cutoff` on as difflib measures it, or the first that holds it.

    None where there is none.

    >>> nearest("Bradley_Terry", ["bradley-terry", "elo"]), nearest("alpaca", ["alpaca-eval", "json"]), nearest("x", [])
    ('bradley-terry', 'alpaca-eval', None)
    """
    folded: dict[str, str] = {}
    for name in names:
        folded.setdefault(_folded(name), name)
    close = get_close_matches(_folded(word), folded, n=1, cutoff=cutoff)
    holding = (name for name in folded if len(word) > 2 and _folded(word) in name)
    found = next(iter(close), None) or next(holding, None)
    return None if found is None else folded[found]


def meant(word: str, names: Iterable[str]) -> str:
    """The name that a word is but for case, spaces, hyphens and underscores; the word where there is none.

    >>> meant("Bradley_Terry", ["bradley-terry", "elo"]), meant("bt", ["elo"])
    ('bradley-terry', 'bt')
    """
    folded = _folded(word)
    return next((name for name in names if _folded(name) == folded), word)


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]+", "-", name.casefold().strip())


def money(nano: int, decimals: int | None = None) -> str:
    """Nano-dollars as dollars: with two decimals, four below a dollar, and more where they say two digits of it.

    `decimals` are as many as there are at least.

    >>> money(12_345_000_000), money(2_500_000), money(49_300), money(1_234_500_000, 4)
    ('$12.35', '$0.0025', '$0.000049', '$1.2345')
    """
    if nano == 0:
        return "$0.00"
    dollars = nano / 1e9
    least = decimals or (2 if abs(dollars) >= 1 else 4)
    whole, part = f"{dollars:,.{max(least, 1 - math.floor(math.log10(abs(dollars))))}f}".split(".")
    return f"${whole}.{part[:least]}{part[least:].rstrip('0')}"


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
