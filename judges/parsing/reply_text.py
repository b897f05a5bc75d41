"""The text of a reply that is its judge's own: without thoughts (reasoning blocks) and without quotations.

A completion may hold the sentence "The final answer is [[A]]", and a judge that quotes it has decided nothing. Text
between quotation marks, in a code block, after `>` or between our own fences is therefore masked before any rule is
applied. Where a block is not closed, the judge's own part is unknown, and the reply is not read.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

MAX_LINE = 80
"""A line that only states a verdict is short."""

MASK = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Replaces a quotation, so that the text before it does not join the text after it."""

_TAG = re.compile(r"<(/?)(think|thinking|thoughts?|reasoning|analysis)>", re.IGNORECASE)
_BLOCK = re.compile(r"(?:`{3,60}|~{3,60})")
_FENCE = re.compile(r"<<<([0-9a-f]{16})")
_PAIRS = {"“": "”", "„": "“”", "«": "»", "‘": "’", "`": "`", '"': '"', "'": "'"}
_MARK = re.compile("[“„«‘`\"']")
_ENDS = frozenset(".!?)]%")
_DRESS = " \t\"'`*_.()[]{}#:=!,“”‘’"
_LEAD = re.compile(
    r"(?:(?:my|the|final|overall|is|answer|verdict|choice|decision|preference|output|winner|judge?ment)\W{0,6}){1,6}",
    re.IGNORECASE,
)
_MAX_LABEL = 12


@dataclass(frozen=True, slots=True)
class ReplyText:
    """A judge's own words."""

    text: str
    """The reply as it came."""
    lines: tuple[str, ...]
    """Its own lines that hold a word, quotations masked."""
    unmasked: tuple[str, ...]
    """All its own lines with their quotations, for forms that are written with quotation marks."""
    block: str | None
    """What the block of code holds that ends the reply, if one does."""


def read_reply_text(text: str) -> ReplyText | None:
    """A reply without thoughts and quotations, or None where a tag, a fence or a block of code is left open.

    A reply that is one block of code and nothing else was put there by its judge: its lines count.

    >>> read_reply_text("<think>A is short.</think>B is better.").lines
    ('B is better.',)
    """
    said = _strip_thoughts(text)
    parts = None if said is None else _blocks(said)
    if parts is None:
        return None
    lines, block = parts
    if block is not None and not any(_has_word(line) or MASK in line for line in lines):
        lines = block.splitlines()
    own = [line.strip() for line in lines]
    masked = mask_quotations("\n".join(own)).split("\n")
    return ReplyText(text, tuple(line for line in masked if _has_word(line) or MASK in line), tuple(own), block)


def _has_word(line: str) -> bool:
    return any(character.isalnum() for character in line)


def _strip_thoughts(text: str) -> str | None:
    """The text without closed blocks of thoughts, wherever they stand; None when a tag is left open or unopened."""
    kept: list[str] = []
    start, open_tag = 0, ""
    for tag in _TAG.finditer(text):
        closes, name = tag.group(1), tag.group(2).lower()
        if not open_tag and not closes:
            kept.append(text[start : tag.start()])
            open_tag = name
        elif closes and name == open_tag:
            start, open_tag = tag.end(), ""
        else:
            return None
    return None if open_tag else " ".join([*kept, text[start:]])


def _blocks(text: str) -> tuple[list[str], str | None] | None:
    """The lines outside of blocks, and the last block of code when nothing follows it; None for an open block."""
    outside: list[str] = []
    inside: list[str] = []
    closing, block = "", None
    for line in text.splitlines():
        bare = line.strip()
        if closing:
            if bare == closing or (closing[0] in "`~" and not bare.strip(closing[0]) and len(bare) >= len(closing)):
                block = "\n".join(inside) if closing[0] in "`~" else None
                closing, inside = "", []
            else:
                inside.append(line)
        elif fence := _FENCE.search(line):
            closing = fence.group(1) + ">>>"
            outside.append(line[: fence.start()] + MASK)
        elif (mark := _BLOCK.match(bare)) and mark.group()[0] not in bare[mark.end() :]:
            closing = mark.group()
        elif bare.startswith(">"):
            outside.append(MASK)
        else:
            outside.append(line)
            block = None if bare else block
    return None if closing else (outside, block)


def mask_quotations(text: str) -> str:
    """The text with quotations masked, line by line the same number of lines.

    A mark opens a quotation where a word could begin and closes it where one could end, so that apostrophes and inches
    are none. One that never closes hides the rest, but for a single mark, which is an apostrophe then.
    """
    kept: list[str] = []
    start = free = 0
    closings = {mark: _closings(text, mark) for mark in set(_PAIRS.values()) if mark in text}
    alone = text.strip(_DRESS + "\n")
    for mark in _MARK.finditer(text):
        at = mark.start()
        if at < free or not _opens(text, at):
            continue
        ends = closings.get(_PAIRS[mark.group()], [])
        found = bisect_right(ends, at)
        if found == len(ends) and mark.group() in "'‘`":
            continue
        end = ends[found] if found < len(ends) else len(text) - 1
        if found == len(ends) or not _is_label(text, at, end, alone):
            kept.append(text[start:at] + MASK + "\n" * text.count("\n", at, end + 1))
            start = end + 1
        free = end + 1
    return "".join([*kept, text[start:]])


def _opens(text: str, at: int) -> bool:
    if text[at] not in "\"'":
        return True
    before, after = text[at - 1 : at] if at else "", text[at + 1 : at + 2]
    return not (before.isalnum() or before in _ENDS) and not (after.isspace() or not after)


def _closings(text: str, mark: str) -> list[int]:
    """Where a mark may close a quotation: anywhere, or for one that is an apostrophe too, at the end of a word."""
    places = [found.start() for found in re.finditer(re.escape(mark), text)]
    if mark not in "\"'’":
        return places
    return [at for at in places if not text[at + 1 : at + 2].isalnum() and not text[at - 1 : at].isspace()]


def _is_label(text: str, at: int, end: int, alone: str) -> bool:
    """Whether the marks are dress of a label: alone in the reply, or behind words such as `Final answer:`."""
    label = text[at + 1 : end]
    if not 0 < len(label) <= _MAX_LABEL or any(map(str.isspace, label)):
        return False
    if label.strip(_DRESS) == alone:
        return True
    begin = max(0, at - MAX_LINE)
    line_end = text.rfind("\n", begin, at)
    if line_end < 0 < begin:
        return False
    return _LEAD.fullmatch(text[line_end + 1 : at].lstrip(_DRESS)) is not None


def without_thoughts(text: str) -> str | None:
    """The text without leading blocks of thoughts; None when a part of some is left in it."""
    start, open_tag = 0, ""
    for tag in _TAG.finditer(text):
        closes, name = tag.group(1), tag.group(2).lower()
        if open_tag:
            if closes and name == open_tag:
                start, open_tag = tag.end(), ""
        elif closes or text[start : tag.start()].strip():
            return None
        else:
            open_tag = name
    return None if open_tag else text[start:]


def without_leading_thoughts(text: str) -> str:
    """The text after its thoughts, nothing where they do not end; a tag that an answer speaks of later is left."""
    said = without_thoughts(text)
    if said is not None:
        return text if said == text else said.lstrip()
    return "" if text.lstrip().startswith("<") else text
