"""Sections as HTML without a style of its own, for notebooks and pages: every text is escaped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape

from venire.arena.wording import plain
from venire.reports.sections import (
    Block,
    Bullets,
    CellLink,
    Chart,
    Column,
    Definitions,
    Detail,
    Gap,
    Heading,
    Matrix,
    MatrixCell,
    Paragraph,
    TextTable,
    Verbatim,
)

_MANY = 7
"""Columns above which a divisible table is marked as one of many, for smaller letters."""
_WIDE = 16
"""Columns above which a matrix is marked as wide, for smaller letters on paper."""
_BADGES = {"worry": "bad", "unsure": "warn", "fine": "on"}


def html(
    blocks: Iterable[Block], *, shown: Callable[[str], str] = plain, pictures: Mapping[str, str] | None = None
) -> str:
    """The blocks one below the other; `shown` makes visible what a text hides, `pictures` is HTML by names of charts.

    >>> from venire.reports.sections import faint
    >>> html([faint("a <b>")])
    '<p class="faint">a &lt;b&gt;</p>'
    """

    def text(content: str) -> str:
        return escape(shown(content))

    def block(one: Block) -> str:
        match one:
            case Heading(mark=mark):
                return f"<h3>{f'{_badge(mark, text)} ' if mark else ''}{text(one.text)}</h3>"
            case Gap():
                return ""
            case Paragraph(below_width=width) if width:
                return ""
            case Paragraph(severity="worry"):
                return f"<p><strong>{text(one.text)}</strong></p>"
            case Paragraph(severity="faint"):
                return f'<p class="faint">{text(one.text)}</p>'
            case Paragraph():
                return f"<p>{text(one.text)}</p>"
            case Bullets(texts=texts):
                return f"<ul>{''.join(f'<li>{text(line)}</li>' for line in texts)}</ul>"
            case Definitions(terms=terms):
                return (
                    f"<dl>{''.join(f'<dt>{text(key)}</dt><dd>{text(words)}</dd>' for key, words in terms.items())}</dl>"
                )
            case Verbatim(label=label):
                return f'<pre class="text" tabindex="0" role="region" aria-label="{text(label)}">{text(one.text)}</pre>'
            case Chart(name=name):
                return (pictures or {}).get(name, "")
            case Detail(blocks=inner):
                return "".join(map(block, inner))
            case TextTable():
                return _table(one, text)
            case Matrix():
                return _matrix(one, text)

    return "".join(map(block, blocks))


def _table(table: TextTable, text: Callable[[str], str]) -> str:
    label = text(table.label or table.title or table.columns[0].head)
    classes = ["" if index == table.name or column.text else ' class="n"' for index, column in enumerate(table.columns)]
    heads = "".join(
        f'<th scope="col"{kind}>{text(column.head)}</th>' for kind, column in zip(classes, table.columns, strict=True)
    )
    cells = [
        _cells(column, _stacked(column, kind, text) if table.stacked else kind, text, named=index == table.name)
        for index, (kind, column) in enumerate(zip(classes, table.columns, strict=True))
    ]
    rows = "".join(f"<tr>{''.join(row)}</tr>" for row in zip(*cells, strict=True))
    kind = ' class="many"' if table.divisible and len(table.columns) > _MANY else ' class="stack"' * table.stacked
    caption = f"<caption>{text(table.title)}</caption>" if table.title else ""
    return _scrolled(label, kind, f"{caption}<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody>")


def _stacked(column: Column, kind: str, text: Callable[[str], str]) -> str:
    """What a cell says of its column where it stands below others."""
    if column.badges:
        return ' class="mark"'
    return f'{kind} data-head="{text(column.head)}"' if kind else ""


def _scrolled(label: str, kind: str, inner: str) -> str:
    return f'<div class="scroll" role="region" aria-label="{label}" tabindex="0"><table{kind}>{inner}</table></div>'


def _badge(word: str, text: Callable[[str], str]) -> str:
    return f'<span class="badge {_BADGES.get(word, "")}">{text(word)}</span>'


def _linked(inner: str, address: str, words: str = "") -> str:
    spoken = f' aria-label="{words}"' if words else ""
    return f'<a href="{escape(address)}"{spoken}>{inner}</a>' if address else inner


def _matrix(matrix: Matrix, text: Callable[[str], str]) -> str:
    names = [f"<bdi>{text(name)}</bdi>" for name in matrix.names]
    heads = [f'<th scope="col"><bdi>{text(head)}</bdi></th>' for head in matrix.heads]
    if matrix.numbered:
        names = [f"{number} {name}" for number, name in enumerate(names, start=1)]
        heads = [f'<th scope="col" title="{text(head)}">{number}</th>' for number, head in enumerate(matrix.heads, 1)]

    def cell(one: MatrixCell | None) -> str:
        if one is None:
            return '<td class="same"></td>'
        below = f"<br><small>{text(one.below)}</small>" if matrix.numbered else f" <small>({text(one.below)})</small>"
        inner = _linked(text(one.text) + (below if one.below else ""), one.address, text(one.words))
        return f'<td class="{"none" if one.shade is None else f"heat{one.shade}"}">{inner}</td>'

    rows = "".join(
        f'<tr><th scope="row">{name}</th>{"".join(map(cell, row))}</tr>'
        for name, row in zip(names, matrix.cells, strict=True)
    )
    wide = " wide" if matrix.numbered and len(names) > _WIDE else ""
    inner = f"<thead><tr><td></td>{''.join(heads)}</tr></thead><tbody>{rows}</tbody>"
    return _scrolled(text(matrix.label), f' class="matrix{wide}"', inner)


def _cells(column: Column, kind: str, text: Callable[[str], str], *, named: bool) -> list[str]:
    found = []
    links: Sequence[Sequence[CellLink]] = column.links or [()] * len(column.cells)
    for (cell, more, marked), below in zip(column.parts, links, strict=True):
        inner = f'<span class="out">{text(cell)}</span>' if marked else text(cell)
        inner = f"<bdi>{inner}</bdi>" if named else _badge(cell, text) if column.badges else inner
        inner += f"<br><small>{text(more)}</small>" if more else ""
        inner = "<br>".join([*([inner] if inner else []), *(_linked(text(one.words), one.address) for one in below)])
        found.append(f'<th scope="row">{inner}</th>' if named else f"<td{kind}>{inner}</td>")
    return found
