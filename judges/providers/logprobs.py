"""Log-probabilities in an answer: the likeliest tokens at the first places of its text.

What does not fit is passed over, never an error: the call is paid, and its text can be read without. Nor is it
guessed which places are the text's: some servers list the tokens of a model's thoughts before them
(https://github.com/sgl-project/sglang/issues/25055), where a digit may be anything but the verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Places = tuple[tuple[tuple[str, float], ...], ...]

MAX_PLACES = 16
"""Places kept of one reply; the others are in its raw text."""

_UNLIKELY = -9999.0
"""Stands for "very unlikely" at OpenAI, and is no probability."""
_MAX_ENDS = 2
"""Tokens after the text that say that it has ended."""


def read_content(listed: object, text: str) -> Places:
    """Places from the field `logprobs` of a choice in OpenAI's form, of chat completions or of the older completions.

    `text` is the message without thoughts. Empty where nothing is reported, or nothing that fits the text.
    """
    if not isinstance(listed, dict):
        return ()
    if isinstance(content := listed.get("content"), list):
        return _aligned(_members(content, "token"), _members(content, "top_logprobs"), text, "token", "logprob")
    tokens, tops = listed.get("tokens"), listed.get("top_logprobs")
    if isinstance(tokens, list) and isinstance(tops, list):
        return _aligned(tokens, tops, text, "token", "logprob")
    return ()


def read_candidates(listed: object, text: str) -> Places:
    """Places from the field `logprobsResult` of a candidate in Gemini's form; see `read_content`."""
    if not isinstance(listed, dict):
        return ()
    chosen, tops = listed.get("chosenCandidates"), listed.get("topCandidates")
    if not isinstance(chosen, list) or not isinstance(tops, list):
        return ()
    return _aligned(_members(chosen, "token"), _members(tops, "candidates"), text, "token", "logProbability")


def _members(entries: Sequence[object], name: str) -> list[object]:
    return [entry.get(name) if isinstance(entry, dict) else None for entry in entries]


def _aligned(tokens: Sequence[object], tops: Sequence[object], text: str, token: str, value: str) -> Places:
    """The places of the text; none where the tokens do not end with it. Tokens may have more places than `tops`."""
    said = [token for token in tokens if isinstance(token, str)]
    start, end = _bounds(said, text.strip()) if len(said) == len(tokens) else (0, 0)
    shown = range(start, min(end, start + MAX_PLACES))
    found = tuple(_place(tops[place], token, value) if place < len(tops) else () for place in shown)
    return found if any(found) else ()


def _place(listed: object, token: str, value: str) -> tuple[tuple[str, float], ...]:
    """The tokens of a place, in a list or as names, whose numbers can be logarithms of probabilities; a nan is not."""
    pairs: Iterable[tuple[object, Any]] = ()
    if isinstance(listed, list):
        pairs = ((entry.get(token), entry.get(value)) for entry in listed if isinstance(entry, dict))
    elif isinstance(listed, dict):
        pairs = listed.items()
    return tuple(
        (name, float(number))
        for name, number in pairs
        if isinstance(name, str) and type(number) in (int, float) and _UNLIKELY < number <= 0
    )


def _bounds(tokens: Sequence[str], text: str) -> tuple[int, int]:
    """The place of the text's first token, white space before it passed over, and the one after its last; or 0, 0."""
    for end in range(len(tokens), max(len(tokens) - _MAX_ENDS - 1, 0), -1):
        whole = "".join(tokens[:end]).rstrip()
        if not text or not whole.endswith(text):
            continue
        begin, at = len(whole) - len(text), 0
        for index, token in enumerate(tokens):
            if at + len(token) > begin:
                return (index, end) if at + len(token) - len(token.lstrip()) == begin else (0, 0)
            at += len(token)
    return 0, 0
