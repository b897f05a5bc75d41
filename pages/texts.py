"""Texts of models as parts of pages: with marks at what was found or differs, and as Markdown that is harmless.

Jinja escapes whatever is not `Markup`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from venire.reports.texts import MAX_SHOWN, clipped, visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_MAX_WORDS = 3_000
_WORDS = re.compile(r"\w+|[^\w\s]")
_PASSAGE = 3
"""So many words or signs in a row make a common passage."""


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
