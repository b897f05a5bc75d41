"""Sections on a terminal or in a pipe: no word of a figure is cut, and nothing in a text steers the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rich import table as rich_table
from rich.cells import cell_len
from rich.console import Console

from venire.arena.wording import plain
from venire.render.screen import FAILED, tabulate
from venire.reports.sections import (
    Block,
    Bullets,
    Column,
    Definitions,
    Detail,
    Gap,
    Heading,
    Matrix,
    Paragraph,
    Severity,
    TextTable,
    Verbatim,
)

_STYLES: dict[Severity, str] = {"plain": "", "faint": "dim", "worry": FAILED}
_BESIDE = 100
"""Columns from which a text stands beside its row's figures; below, under them."""


def show(screen: Console, blocks: Iterable[Block]) -> None:
    """Print each block, one below the other."""
    for one in blocks:
        match one:
            case Gap():
                screen.print()
            case Heading(text=text, mark=mark):
                screen.print(plain(f"{mark} {text}".strip()), style="italic")
            case Paragraph(below_width=width) if 0 < width <= screen.width:
                pass
            case Paragraph(text=text, severity=severity):
                screen.print(plain(text), style=_STYLES[severity])
            case Bullets(texts=texts):
                for text in texts:
                    screen.print(f"  {plain(text)}")
            case Verbatim(text=text):
                screen.print(plain(text))
            case Definitions(terms=terms):
                for term, words in terms.items():
                    screen.print(plain(f"  {term}: {words}"))
            case Detail(blocks=inner):
                show(screen, inner)
            case TextTable():
                _show_table(screen, one)
            case Matrix():
                _show_table(screen, one.table)


def _show_table(screen: Console, table: TextTable) -> None:
    shown = [column for column in table.columns if screen.width >= column.least_width]
    columns = [
        replace(column, head=plain(column.head), cells=[*map(plain, column.in_line)], below=()) for column in shown
    ]
    if any(column.text for column in columns):
        _show_texts(screen, replace(table, columns=columns))
        return
    title = None if table.title is None else plain(table.title)
    for part in _divided(columns, screen.width) if table.divisible else [columns]:
        rows = list(zip(*(column.cells for column in part), strict=True))
        tabulate(screen, [column.head for column in part], rows, name=table.name, title=title)
        title = title and ""


def _divided(columns: Sequence[Column], width: int) -> Iterator[list[Column]]:
    """The first column with as many of the others as fit beside it, one at least, and again with those that follow."""
    names, *others = columns
    part = [names]
    left = room = width - min(_width(names), width // 3)  # longer names are broken
    for column in others:
        size = 2 + _width(column)
        if len(part) > 1 and size > left:
            yield part
            part, left = [names], room
        part.append(column)
        left -= size
    yield part


def _width(column: Column) -> int:
    return max(map(cell_len, (column.head, *column.cells)))


def _show_texts(screen: Console, table: TextTable) -> None:
    """A table with a column of texts: into a pipe a line a row, on a narrow screen each text below its figures.

    The first columns are a mark and a name, the last is the text.
    """
    mark, _, *figures, text = table.columns
    severities = table.severities or ["plain"] * len(table.rows)
    if not screen.is_terminal:
        widths = [max(map(cell_len, column.cells)) for column in table.columns]
        for row in table.rows:
            screen.print("  ".join(map(str.ljust, row, widths)).rstrip())
        return
    beside = screen.width >= _BESIDE
    grid = rich_table.Table(box=None, pad_edge=False, padding=(0, 1), show_header=beside)
    for column in table.columns if beside else (mark, text):
        grid.add_column(column.head, no_wrap=not column.text, overflow="fold")
    for severity, row in zip(severities, table.rows, strict=True):
        cells = list(row)
        if not beside:
            said = ", ".join(f"{column.head} {cell}" for column, cell in zip(figures, row[2:-1], strict=True) if cell)
            cells = [row[0], f"{row[1]}   {said}".rstrip() + f"\n{row[-1]}"]
        grid.add_row(*cells, style=_STYLES[severity])
    screen.print(grid)
