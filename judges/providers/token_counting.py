"""Tokens counted without asking anybody: to plan by, to reserve by (an upper bound), and to fit a context by.

OpenAI's vocabularies are read from the files that litellm ships within its package: nothing is fetched.
`tiktoken.get_encoding` would ask the network for a file that is not in its cache, so the encodings are made here.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from math import ceil
from pathlib import Path

TokenCounter = Callable[[str], int]
"""From a text to its number of tokens, not too low."""


def estimate(text: str) -> int:
    """About how many tokens a text has: one to four bytes of UTF-8, at least 1.

    Four bytes a token is what byte-pair vocabularies make of English prose. Code and scripts other than Latin have
    fewer bytes to a token, so there this is too low: it is for plans and for replies without a count, not for limits.

    >>> estimate("The Nile is the longest.")
    6
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
class TokenKind:
    """A kind of piece that texts are made of: what finds it, and its tokens, by the piece and by the character."""

    name: str
    pattern: re.Pattern[str]
    example: str
    piece: float
    character: float = 0.0


_CJK = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"


def _kinds(*rows: tuple[str, str, str, float] | tuple[str, str, str, float, float]) -> tuple[TokenKind, ...]:
    return tuple(TokenKind(name, re.compile(pattern), example, *tokens) for name, pattern, example, *tokens in rows)


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
TOKEN_KINDS = (*_ASCII, *_BEYOND)
"""The weights of pieces of a text. Fitted to cl100k_base; docs/prompts.md gives the error."""

MARGIN = 1.3
"""The weight of a text times this is not below its count for 99 of 100 texts, in each of three vocabularies."""


def estimate_by_pieces(text: str) -> float:
    """About how many tokens a text has, by the kinds of pieces that it is made of: nearer than `estimate`, and slower.

    A megabyte takes a quarter of a second, whatever its content.
    """
    tokens = 0.0
    for kind in _ASCII if text.isascii() else TOKEN_KINDS:
        found = kind.pattern.findall(text)
        tokens += kind.piece * len(found)
        if kind.character:
            tokens += kind.character * sum(map(len, found))
    return tokens


def estimate_at_most(text: str) -> int:
    """How many tokens a text has in a vocabulary that is not at hand, with a margin; never more than its bytes."""
    return min(ceil(MARGIN * estimate_by_pieces(text)), len(text.encode(errors="surrogatepass")))


ESTIMATE = "estimate"
"""The name of counting without a vocabulary."""

_FOLDER = ("litellm_core_utils", "tokenizers")
_FILES = {
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
}
_SAME = {"o200k_harmony": "o200k_base"}

# How each vocabulary splits a text before it merges bytes, as OpenAI publishes it in tiktoken_ext.openai_public.
_ENDING = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_PATTERNS = {
    "cl100k_base": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
        r"|\s+(?!\S)|\s"
    ),
    "o200k_base": "|".join(
        (
            rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]*[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]+{_ENDING}",
            rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]+[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]*{_ENDING}",
            r"\p{N}{1,3}",
            r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
            r"\s*[\r\n]+",
            r"\s+(?!\S)",
            r"\s+",
        )
    ),
}


def vocabulary_of(model: str) -> str:
    """The vocabulary that a model's texts are counted in: one of OpenAI's where it has that, else `ESTIMATE`."""
    import tiktoken  # a twentieth of a second, which few commands need

    try:
        name = tiktoken.encoding_name_for_model(model.rpartition("/")[2])
    except KeyError:
        return ESTIMATE
    name = _SAME.get(name, name)
    return name if name in _FILES and _path(name).is_file() else ESTIMATE


def counter(vocabulary: str) -> TokenCounter:
    """What counts in a vocabulary: exactly in one that is at hand, else not too low."""
    if vocabulary not in _FILES or not _path(vocabulary).is_file():
        return estimate_at_most
    return _exact(vocabulary)


@lru_cache(maxsize=len(_FILES))
def _exact(vocabulary: str) -> TokenCounter:
    import tiktoken

    lines = _path(vocabulary).read_bytes().splitlines()
    ranks = {b64decode(token): int(rank) for token, rank in (line.split() for line in lines)}
    encoding = tiktoken.Encoding(vocabulary, pat_str=_PATTERNS[vocabulary], mergeable_ranks=ranks, special_tokens={})

    def count(text: str) -> int:
        return len(encoding.encode_ordinary(text))

    return count


def _path(vocabulary: str) -> Path:
    package = find_spec("litellm")
    assert package is not None  # a dependency
    assert package.origin is not None
    return Path(package.origin).parent.joinpath(*_FOLDER, _FILES[vocabulary])
