"""Results with rows of figures: as tables of pandas, polars and Arrow, and as Python or a notebook shows them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from venire.arena.wording import plain
from venire.reports.html import html
from venire.reports.sections import Block, Paragraph, TextTable
from venire.storage.transfer import memory

_REPR_LINES = 10
_REPR_WIDTH = 100


class RowTable(ABC):
    """Something with rows of figures, flat dicts of equal keys, that other libraries take as a table.

    It is iterated row by row, and its length is the number of rows. Each library is optional; whoever inherits has the
    rows, with the type of each column, and the sections that are printed.
    """

    __slots__ = ()

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """The rows, one flat dict each, not rounded; None for what is not known."""

    @abstractmethod
    def _columns(self) -> Mapping[str, type]:
        """The type of each column in order: str, int, float or bool."""

    def __len__(self) -> int:
        return len(self.rows())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows())

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`; raises InputError where pandas is not installed."""
        return memory.to_pandas(self.rows(), self._columns())

    def to_polars(self) -> Any:
        """The rows as a `polars.DataFrame`; raises InputError where polars is not installed."""
        return memory.to_polars(self.rows(), self._columns())

    def to_arrow(self) -> Any:
        """The rows as a `pyarrow.Table`; raises InputError where pyarrow is not installed."""
        return memory.to_arrow(self.rows(), self._columns())

    @abstractmethod
    def sections(self) -> Iterable[Block]:
        """What is printed of it, and shown in a notebook."""

    def __repr__(self) -> str:
        """The beginning of its sections, in ten lines."""
        return excerpt(self.sections())

    def _repr_html_(self) -> str:
        """The sections as HTML for notebooks, with all texts escaped."""
        return html(self.sections())


def excerpt(blocks: Iterable[Block]) -> str:
    """The sentences before the first table, and that table's title and beginning, in ten short lines."""
    lines: list[str] = []
    for block in blocks:
        if isinstance(block, TextTable):
            lines = [*filter(None, [block.title]), *lines][: _REPR_LINES // 2]
            lines += _lines(block, _REPR_LINES - len(lines))
            break
        if isinstance(block, Paragraph):
            lines.append(block.text)
    return "\n".join(_clipped(lines[:_REPR_LINES]))


def _clipped(lines: Iterable[str]) -> Iterator[str]:
    for line in map(plain, lines):
        yield line if len(line) <= _REPR_WIDTH else f"{line[: _REPR_WIDTH - 1]}\N{HORIZONTAL ELLIPSIS}"


def _lines(table: TextTable, most: int) -> Iterator[str]:
    """The head of a table and as many of its rows as have room; the last line says how many are left."""
    columns = [one for one in table.columns if one.least_width <= _REPR_WIDTH]
    count = len(columns[0].cells)
    shown = count if count < most else most - 2
    cells = [[plain(cell) for cell in (one.head, *one.in_line[:shown])] for one in columns]
    widths = [max(map(len, column)) for column in cells]
    for row in zip(*cells, strict=True):
        aligned = (
            cell.ljust(width) if number == table.name or columns[number].text else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(aligned).rstrip()
    if count > shown:
        yield f"... {count - shown:,} more: rows(), to_pandas()"
