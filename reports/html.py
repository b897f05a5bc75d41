"""Sections as HTML without a style of its own, as a notebook shows them: every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from venire.arena.wording import plain
from venire.reports.sections import Block, Bullets, Gap, Heading, Paragraph, TextTable


def html(blocks: Iterable[Block]) -> str:
    """The blocks one below the other.

    >>> from venire.reports.sections import TextTable, columns_of, faint
    >>> html([TextTable(columns_of(["model"], [["<b>"]])), faint("a note")])
    '<table><thead><tr><th>model</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table><div>a note</div>'
    """
    return "".join(map(_block, blocks))


def _block(one: Block) -> str:
    match one:
        case Gap():
            return ""
        case Heading(text=text, level=level):
            return f"<h{level + 1}>{_text(text)}</h{level + 1}>"
        case Paragraph(text=text, severity=severity):
            return f"<div><b>{_text(text)}</b></div>" if severity == "worry" else f"<div>{_text(text)}</div>"
        case Bullets(texts=texts):
            return f"<ul>{''.join(f'<li>{_text(text)}</li>' for text in texts)}</ul>"
        case TextTable():
            return _table(one)


def _table(table: TextTable) -> str:
    head = "".join(f"<th>{_text(one.head)}</th>" for one in table.columns)
    caption = "" if not table.title else f"<caption>{_text(table.title)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(map(_row, table.rows))}</tbody></table>"


def _row(cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in cells)}</tr>"


def _text(text: str) -> str:
    return escape(plain(text))
