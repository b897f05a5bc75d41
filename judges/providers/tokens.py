"""Tokens counted without asking anybody: to plan by, to reserve by (an upper bound), and to fit a context by."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

__all__ = ["KINDS", "MARGIN", "Count", "Kind", "at_most", "estimate", "weigh", "worst_case"]

Count = Callable[[str], int]
"""From a text to its number of tokens, not too low."""


def estimate(text: str) -> int:
    """About how many tokens a text has: one to four bytes of UTF-8, at least 1.

    Four bytes a token is what byte-pair vocabularies make of English prose. Code and scripts other than Latin have
    fewer bytes to a token, so there this is too low: it is for plans and for replies without a count, not for limits.
    """
    return max(1, -(-len(text.encode(errors="surrogatepass")) // 4))


def worst_case(body: bytes) -> int:
    """As many input tokens as an encoded request can be charged for: one a byte of its body, at least 1.

    A byte-level vocabulary never makes more than one token of a byte, and the few tokens that a vendor adds to each
    message are fewer than the bytes of that message's field names and quotes. Tighter bounds do not hold: English
    has about 5 bytes a token, but dense code 1.8, emoji 1.5 and Amharic 1.1 (cl100k_base). The price of the bound is
    small, since it is settled at the real count with the reply: only what is in flight is reserved too high.
    """
    return max(1, len(body))


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of piece that texts are made of: what finds it, and its tokens, by the piece and by the character."""

    name: str
    pattern: re.Pattern[str]
    example: str
    piece: float
    character: float = 0.0


_CJK = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"


def _kinds(*rows: tuple[str, str, str, float] | tuple[str, str, str, float, float]) -> tuple[Kind, ...]:
    return tuple(Kind(name, re.compile(pattern), example, *tokens) for name, pattern, example, *tokens in rows)


_ASCII = _kinds(
    ("word", "[A-Z]?[a-z]+", "Hello", 0.92, 0.024),
    ("rest of a long word", "(?<=[a-z]{16})[a-z]", "llanfairpwllgwyngyll", 0.25),
    ("capital", "[A-Z](?![a-z])", "HTTP", 0.4),
    ("digits", "[0-9]{1,3}", "2024", 1.2),
    ("space before a digit", " (?=[0-9])", "a 7", 0.9),
    ("line ends", "[\r\n]+", "\n\n", 0.8, 0.06),
    ("spaces", "[ \t]{2,}", "    ", 0.6, 0.01),
    ("punctuation", "[!-/:-@\\[-`{-~]+", "):", 0.7, 0.15),
    ("control", "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", "\x1b", 1.0),
)
_BEYOND = _kinds(
    ("alphabet", "[\x80-\u058f]", "é", 0.6),
    ("other script", "[\u0590-\u1fff\ua000-\uabff\ud7b0-\uf8ff\ufb00-\ufeff]", "ก", 2.0),
    ("sign", "[\u2000-\u2e7f\ufff0-\uffff]", "→", 1.4),
    ("Chinese, Japanese, Korean", f"[{_CJK}]", "語", 1.35),
    ("beyond the first plane", "[\U00010000-\U0010ffff]", "🎉", 3.0),
)
KINDS = (*_ASCII, *_BEYOND)
"""What a text is weighed by. Fitted to cl100k_base; how far it is off stands in docs/long-input.md."""

MARGIN = 1.3
"""The weight of a text times this is not below its count for 99 of 100 texts, in each of three vocabularies."""


def weigh(text: str) -> float:
    """About how many tokens a text has, by the kinds of pieces that it is made of: nearer than `estimate`, and slower.

    A megabyte takes a quarter of a second, whatever stands in it.
    """
    tokens = 0.0
    for kind in _ASCII if text.isascii() else KINDS:
        found = kind.pattern.findall(text)
        tokens += kind.piece * len(found)
        if kind.character:
            tokens += kind.character * sum(map(len, found))
    return tokens


def at_most(text: str) -> int:
    """How many tokens a text has in a vocabulary that is not at hand, with a margin; never more than its bytes."""
    return min(ceil(MARGIN * weigh(text)), len(text.encode(errors="surrogatepass")))
