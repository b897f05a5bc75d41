"""Sections as Markdown, short: what is a detail of a page is left out, and every text is escaped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from venire.arena.wording import plain
from venire.reports.sections import (
    Block,
    Bullets,
    CellLink,
    Column,
    Definitions,
    Detail,
    Heading,
    Matrix,
    Paragraph,
    Section,
    TextTable,
    Verbatim,
)

_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#!|~$&]|:(?=[\w+-]+:)|^[-+=])")
"""What Markdown reads as markup; the last of it at the start of a line alone."""
_WORD = re.compile(r"[^\s|`\"'()]+")
_LINK = re.compile(r"(?i)@|\b(www|https?|ftp|mailto|xmpp)[.:]")
"""What sites turn into links and mentions after Markdown was read, where an escape is no help."""
_NUMBERED = re.compile(r"^(\d+)([.)])(?=\s|$)")


def plain_markdown(text: str) -> str:
    """A text that Markdown shows as it is, on one line; names and addresses that would become links are code.

    So a name that is copied is the name, as it would not be with a character that nobody sees.

    >>> print(plain_markdown("*a* <b> | [c](d), m@1: 2"))
    \\*a\\* \\<b\\> \\| \\[c\\]\\(d\\), `m@1`: 2
    """
    words, parts, end = " ".join(text.split()), [], 0
    for word in _WORD.finditer(words):
        name = word.group().rstrip(".,:;!?")
        if _LINK.search(name):
            parts += [_escaped(words[end : word.start()]), f"`{name}`"]
            end = word.start() + len(name)
    return "".join([*parts, _escaped(words[end:])])


def _escaped(words: str) -> str:
    return _NUMBERED.sub(r"\1\\\2", _MARKUP.sub(r"\\\1", words))


def markdown(sections: Iterable[Section], *, shown: Callable[[str], str] = plain) -> str:
    """The sections with their titles, without those of details alone; `shown` makes visible what a text hides.

    >>> print(markdown([Section("left-out", "Left out", [Paragraph("*all*")])]))
    ## Left out
    <BLANKLINE>
    \\*all\\*
    """

    def text(content: str) -> str:
        return plain_markdown(shown(content))

    def blocks(inside: Iterable[Block]) -> Iterator[str]:
        for one in inside:
            match one:
                case Heading(mark=mark):
                    yield f"### {f'**{text(mark)}** ' if mark else ''}{text(one.text)}"
                case Paragraph(below_width=width) if width:
                    pass
                case Paragraph(severity="worry"):
                    yield f"**{text(one.text)}**"
                case Paragraph() | Verbatim():
                    yield text(one.text)
                case Bullets(texts=texts):
                    yield "\n".join(f"- {text(line)}" for line in texts)
                case Definitions(terms=terms):
                    yield "\n".join(f"- {text(f'{term}: {words}')}" for term, words in terms.items())
                case TextTable():
                    yield _table(one, text)
                case Matrix():
                    yield _table(one.table, text)
                case Detail(instead=instead):
                    yield from blocks(instead)

    parts = [(section.title, list(blocks(section.blocks))) for section in sections]
    return "\n\n".join(part for title, inside in parts if inside for part in (f"## {text(title)}", *inside))


def _table(table: TextTable, text: Callable[[str], str]) -> str:
    heads = [text(column.head) for column in table.columns]
    rule = ["---" if index == table.name or column.text else "---:" for index, column in enumerate(table.columns)]
    lines = [heads, rule, *zip(*(_cells(column, text) for column in table.columns), strict=True)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cells(column: Column, text: Callable[[str], str]) -> Iterator[str]:
    links: Sequence[Sequence[CellLink]] = column.links or [()] * len(column.cells)
    for (cell, more, marked), below in zip(column.parts, links, strict=True):
        escaped = text(cell)
        shown = (f"**{escaped}**" if marked else escaped) + (f" ({text(more)})" if more else "")
        yield ", ".join([*([shown] if shown else []), *(text(one.words) for one in below)])
