"""Texts of models as they are shown: data, never a trick of the writing direction, on one line where it is a name.

What escaping leaves are characters that change how their neighbours are shown (bidirectional marks, controls, zero
widths) and texts of any length: both are made visible and short here.
"""

from __future__ import annotations

import re
from functools import lru_cache

MAX_SHOWN = 20_000
"""Characters of one text that a page shows; the whole of it can be downloaded."""

_NAME = 80
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_KEPT = {"\u202f": "\u00a0", "\ufe0f": "\ufe0f", "\u200d": "\u200d"}
"""A narrow space is a space; what joins and colours emoji stays."""
_MARKS = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_STACKED = re.compile(f"({_MARKS}{{4}}){_MARKS}+")
"""More than four marks on one letter, which would be painted over the lines above and below."""


def visible(text: str) -> str:
    """A text with what cannot be seen as its code point, so that it is shown as it is and moves nothing else.

    >>> visible("a\\x00b\\u202ec")
    'a\u2400b[U+202E]c'
    """
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _STACKED.sub(r"\1", _HIDDEN.sub(_shown, text))


def _shown(found: re.Match[str]) -> str:
    character = found[0]
    if character in _KEPT:
        return _KEPT[character]
    code = ord(character)
    return chr(0x2400 + code) if code < 0x20 else f"[U+{code:04X}]"


def clipped(text: str, most: int = MAX_SHOWN) -> str:
    """The beginning of a text, visible, with an ellipsis where it goes on."""
    return visible(text[:most]) + ("…" if len(text) > most else "")


@lru_cache(4096)
def name(text: str | None, most: int = _NAME) -> str:
    """A name on one line; an empty one is said to be empty.

    >>> name("")
    '(empty)'
    """
    if text is None:
        return "–"
    return clipped(" ".join(text[: 4 * most].split()), most) or "(empty)"
