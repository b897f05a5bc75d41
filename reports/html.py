"""Sections as HTML without a style of its own, for notebooks and pages: every text is escaped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from html import escape

from venire.arena.wording import plain
from venire.reports.sections import (
    Block,
    Bullets,
    Chart,
    Column,
    Definitions,
    Detail,
    Gap,
    Heading,
    Paragraph,
    TextTable,
    Verbatim,
)

_MANY = 7
"""Columns above which a divisible table is marked as one of many, for smaller letters."""
_BADGES = {"worry": "bad", "unsure": "warn"}


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
                badge = f'<span class="badge {_BADGES.get(mark, "")}">{text(mark)}</span> ' if mark else ""
                return f"<h3>{badge}{text(one.text)}</h3>"
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

    return "".join(map(block, blocks))


def _table(table: TextTable, text: Callable[[str], str]) -> str:
    label = text(table.label or table.title or table.columns[0].head)
    classes = ["" if index == table.name or column.text else ' class="n"' for index, column in enumerate(table.columns)]
    heads = "".join(
        f'<th scope="col"{kind}>{text(column.head)}</th>' for kind, column in zip(classes, table.columns, strict=True)
    )
    cells = [
        _cells(column, kind, text, named=index == table.name)
        for index, (kind, column) in enumerate(zip(classes, table.columns, strict=True))
    ]
    rows = "".join(f"<tr>{''.join(row)}</tr>" for row in zip(*cells, strict=True))
    kind = ' class="many"' if table.divisible and len(table.columns) > _MANY else ""
    caption = f"<caption>{text(table.title)}</caption>" if table.title else ""
    return (
        f'<div class="scroll" role="region" aria-label="{label}" tabindex="0"><table{kind}>{caption}'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _cells(column: Column, kind: str, text: Callable[[str], str], *, named: bool) -> list[str]:
    found = []
    for cell, more, marked in column.parts:
        inner = f'<span class="out">{text(cell)}</span>' if marked else text(cell)
        inner = f"<bdi>{inner}</bdi>" if named else inner
        inner += f"<br><small>{text(more)}</small>" if more else ""
        found.append(f'<th scope="row">{inner}</th>' if named else f"<td{kind}>{inner}</td>")
    return found
