"""OpenAI's vocabularies, from the files that litellm ships within its package: nothing is fetched.

`tiktoken.get_encoding` would ask the network for a file that is not in its cache, so the encodings are made here.
"""

from __future__ import annotations

from base64 import b64decode
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import tiktoken

from venire.judges.providers.tokens import Count, at_most

__all__ = ["ESTIMATE", "counter", "vocabulary_of"]

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
    try:
        name = tiktoken.encoding_name_for_model(model.rpartition("/")[2])
    except KeyError:
        return ESTIMATE
    name = _SAME.get(name, name)
    return name if name in _FILES and _path(name).is_file() else ESTIMATE


def counter(vocabulary: str) -> Count:
    """What counts in a vocabulary: exactly in one that is at hand, else not too low."""
    if vocabulary not in _FILES or not _path(vocabulary).is_file():
        return at_most
    return _exact(vocabulary)


@lru_cache(maxsize=len(_FILES))
def _exact(vocabulary: str) -> Count:
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
