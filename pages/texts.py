"""Texts of models as a page shows them: data, never markup, a link, or a trick of the writing direction.

Jinja escapes whatever is not `Markup`. What escaping leaves are characters that change how their neighbours are shown
(bidirectional marks, controls, zero widths) and texts of any length: both are made visible and short here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

MAX_SHOWN = 20_000
"""Characters of one text that a page shows; the whole of it can be downloaded."""

_NAME = 80
_MAX_WORDS = 3_000
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_KEPT = {"\u202f": "\u00a0", "\ufe0f": "\ufe0f", "\u200d": "\u200d"}
"""A narrow space is a space; what joins and colours emoji stays."""
_MARKS = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_STACKED = re.compile(f"({_MARKS}{{4}}){_MARKS}+")
"""More than four marks on one letter, which would be painted over the lines above and below."""
_WORDS = re.compile(r"\w+|[^\w\s]")
_PASSAGE = 3
"""So many words or signs in a row make a common passage."""


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


def with_hits(text: str, wanted: str, around: int = 120) -> Markup:
    """The part of a text around the first place that holds another text, that place marked."""
    place = text.lower().find(wanted.lower())
    if place < 0:  # lower case can be longer than the letter that it is of
        return escape(clipped(text, 2 * around))
    start, end = max(0, place - around), place + len(wanted)
    before, hit, after = text[start:place], text[place:end], text[end : end + around]
    return Markup("{}{}<mark>{}</mark>{}{}").format(
        "…" if start else "",
        visible(before),
        clipped(hit, 400),
        visible(after),
        "…" if end + around < len(text) else "",
    )


def marked_differences(one: str, other: str) -> tuple[Markup, Markup] | None:
    """Two texts with the passages marked that only one of them has; None of texts too long to be compared at once.

    >>> print(marked_differences("A red cat.", "A cat.")[0])
    A <mark class="only">red</mark> cat.
    """
    texts = visible(one), visible(other)
    words = [[(found.start(), found.end()) for found in _WORDS.finditer(text)] for text in texts]
    if any(len(side) > _MAX_WORDS for side in words):
        return None
    plain = [[text[start:end] for start, end in side] for text, side in zip(texts, words, strict=True)]
    shared = _passages(_longest_common(*plain), len(plain[0]), len(plain[1]))
    first, second = (
        _marked(text, side, kept) for text, side, kept in zip(texts, words, map(set, _sides(shared)), strict=True)
    )
    return first, second


def _longest_common(one: Sequence[str], other: Sequence[str]) -> list[tuple[int, int]]:
    """Places in both of a longest common subsequence, in the bits of whole numbers (Hyyrö 2004).

    Milliseconds for any two texts of 3,000 words, where difflib takes minutes if they are made for it.
    """
    bits: dict[str, int] = {}
    for place, word in enumerate(one):
        bits[word] = bits.get(word, 0) | 1 << place
    rest = whole = (1 << len(one)) - 1
    rows = []
    for word in other:
        hit = rest & bits.get(word, 0)
        rest = ((rest + hit) | (rest - hit)) & whole
        rows.append(rest)
    found, a, b = [], len(one), len(other)
    while a and b:
        if rows[b - 1] >> (a - 1) & 1:
            a -= 1
            continue
        b -= 1
        if b == 0 or rows[b - 1] >> (a - 1) & 1:
            a -= 1
            found.append((a, b))
    return found[::-1]


def _passages(shared: Sequence[tuple[int, int]], first: int, second: int) -> list[tuple[int, int]]:
    """Common words that stand together, or at an end of both texts: a lone "the" says nothing."""
    runs: list[list[tuple[int, int]]] = []
    for a, b in shared:
        if runs and runs[-1][-1] == (a - 1, b - 1):
            runs[-1].append((a, b))
        else:
            runs.append([(a, b)])
    ends = (0, 0), (first - 1, second - 1)
    return [pair for run in runs if len(run) >= _PASSAGE or run[0] == ends[0] or run[-1] == ends[1] for pair in run]


def _sides(pairs: Sequence[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [a for a, _ in pairs], [b for _, b in pairs]


def _marked(text: str, words: Sequence[tuple[int, int]], kept: Collection[int]) -> Markup:
    """A text with its words marked but those that are kept; neighbours under one mark."""
    parts, end, place = [], 0, 0
    while place < len(words):
        last = place
        if place not in kept:
            while last + 1 < len(words) and last + 1 not in kept:
                last += 1
            parts += [escape(text[end : words[place][0]]), Markup('<mark class="only">{}</mark>')]
            parts[-1] = parts[-1].format(text[words[place][0] : words[last][1]])
            end = words[last][1]
        place = last + 1
    return Markup("").join([*parts, escape(text[end:])])


@lru_cache(1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").enable("strikethrough")
    # a text of a model is never a link's target, and nothing is fetched for it: both stay as they were written
    return parser.disable(["link", "image", "autolink", "html_inline", "html_block", "reference"])


_TAGS = {
    "p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li",
    "h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip
_HEADINGS = re.compile(r"<(/?)h[1-6]>")
"""A heading of a model is none of the page: who listens to the page would get lost."""


@lru_cache(64)
def markdown(text: str) -> Markup:
    """A text's Markdown as HTML of plain tags: no links, no images, no HTML of its own, no attributes.

    Rendered by markdown-it-py and then cleaned by nh3, so that either alone would do. Raises ImportError without them.
    """
    import nh3

    rendered = _parser().render(visible(text[:MAX_SHOWN]))
    cleaned = nh3.clean(rendered, tags=_TAGS, attributes={}, link_rel=None, strip_comments=True)
    return Markup(_HEADINGS.sub(lambda found: "</strong></p>" if found[1] else "<p><strong>", cleaned))
