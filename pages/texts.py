"""Texts of models as parts of pages: with code set apart, with marks at what was found or differs, and as Markdown.

Jinja escapes whatever is not `Markup`. A text shown plain keeps each of its characters: tags are only put around them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup, escape

from venire.reports.texts import MAX_SHOWN, clipped, name, visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_MAX_WORDS = 3_000
_WORDS = re.compile(r"\w+|[^\w\s]")
_PASSAGE = 3
"""So many words or signs in a row make a common passage."""

_FENCE = re.compile(
    r"^[ \t]*(?P<mark>`{3,}|~{3,})[^`\n]*\n(?P<code>.*?)(?:^[ \t]*(?P=mark)[`~]*[ \t]*(?:\n|\Z)|\Z)",
    re.MULTILINE | re.DOTALL,
)
"""A block of code between fences; one that is not closed goes to the end."""

_QUOTED = re.compile(r"(?<!`)`[^`\n]+`(?!`)")
"""Code within a line."""


class _Part(NamedTuple):
    """A part of a text from `start` to `end`, and the tags around it."""

    start: int
    end: int
    opening: str = ""
    closing: str = ""


@dataclass(frozen=True, slots=True)
class Differences:
    """Two texts with the passages marked that only one has, and the share of words in passages that both have."""

    texts: tuple[Markup, Markup]
    common: float


def plain_text(text: str) -> Markup:
    """The beginning of a text as it was written, visible, with its code set apart; an empty one is said to be empty.

    >>> print(plain_text("Use `a<b`"))
    Use <code>`a&lt;b`</code>
    """
    return _tagged(clipped(text), ()) if text else Markup("(empty)")


def first_line(text: str, most: int = 120) -> str:
    """The first line of a text that has letters or figures and is no fence of code, cut with a mark where more follows.

    >>> first_line("# Why\\n\\nBecause.")
    '# Why …'
    """
    lines = [
        line
        for line in text[: 40 * most].splitlines()
        if any(map(str.isalnum, line)) and not line.lstrip().startswith(("```", "~~~"))
    ]
    line = name(lines[0] if lines else text, most)
    return f"{line} …" if len(lines) > 1 and not line.endswith("…") else line


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


def marked_differences(one: str, other: str) -> Differences | None:
    """Two texts with the passages marked that only one of them has; None of texts too long to be compared at once.

    >>> found = marked_differences("A red cat.", "A cat.")
    >>> print(found.texts[0])
    A <mark class="only">red</mark> cat.
    """
    texts = visible(one), visible(other)
    words = [[(found.start(), found.end()) for found in _WORDS.finditer(text)] for text in texts]
    if any(len(side) > _MAX_WORDS for side in words):
        return None
    plain = [[text[start:end] for start, end in side] for text, side in zip(texts, words, strict=True)]
    shared = _passages(_longest_common(*plain), len(plain[0]), len(plain[1]))
    first, second = (
        _tagged(text, _only(side, kept))
        for text, side, kept in zip(texts, words, map(set, _sides(shared)), strict=True)
    )
    return Differences((first, second), 2 * len(shared) / max(1, sum(map(len, words))))


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


def _only(words: Sequence[tuple[int, int]], kept: Collection[int]) -> list[tuple[int, int]]:
    """From where to where words of a text stand that are not kept; neighbours together."""
    found: list[tuple[int, int]] = []
    before = -2
    for index, (start, end) in enumerate(words):
        if index not in kept:
            found.append((found.pop()[0], end) if before == index - 1 else (start, end))
            before = index
    return found


def _tagged(text: str, marks: Sequence[tuple[int, int]]) -> Markup:
    """A text, escaped, with tags around its code and marks over parts of it, which tags of code divide."""
    found, waiting = [], list(reversed(marks))
    for part in _parts(text):
        found.append(part.opening)
        at = part.start
        while waiting and waiting[-1][0] < part.end:
            start, end = waiting.pop()
            if end > part.end:  # the rest is of the parts that follow
                waiting.append((part.end, end))
                end = part.end
            found += [escape(text[at:start]), '<mark class="only">', escape(text[start:end]), "</mark>"]
            at = end
        found += [escape(text[at : part.end]), part.closing]
    return Markup("".join(found))


def _parts(text: str) -> Iterator[_Part]:
    """The parts of a text in order: prose, code within lines, and blocks with their fences."""
    at = 0
    for block in _FENCE.finditer(text):
        yield from _line_parts(text, at, block.start())
        yield _Part(block.start(), block.start("code"), '<pre class="code"><code><span class="fence">', "</span>")
        yield _Part(block.start("code"), block.end("code"))
        yield _Part(block.end("code"), block.end(), '<span class="fence">', "</span></code></pre>")
        at = block.end()
    yield from _line_parts(text, at, len(text))


def _line_parts(text: str, start: int, end: int) -> Iterator[_Part]:
    for quoted in _QUOTED.finditer(text, start, end):
        yield _Part(start, quoted.start())
        yield _Part(quoted.start(), quoted.end(), "<code>", "</code>")
        start = quoted.end()
    yield _Part(start, end)


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
