"""What is printed, shown in a notebook or written into a report, as plain records: sentences and tables of texts.

They hold no markup, and names in them as they were given, whatever is in these: each renderer makes texts harmless in
its own way (`venire.render.sections` for a terminal, `reports.html` for a notebook).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["plain", "faint", "worry"]
"""How much a reader should mind: `faint` is what explains the rest."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of what follows; `level` 1 is that of a section, 2 that of a part of it."""

    text: str
    level: int = 1


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A sentence, or some of them."""

    text: str
    severity: Severity = "plain"


@dataclass(frozen=True, slots=True)
class Bullets:
    """Sentences of one kind, one below the other."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: figures, which are never broken, or sentences if `text`.

    On a screen of fewer than `least_width` columns it is left out.
    """

    head: str
    cells: Sequence[str]
    least_width: int = 0
    text: bool = False


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of texts, column by column; column `name` has names, which may be broken anywhere.

    `severities` are those of its rows, where any is not plain. Columns of a `divisible` table that do not fit beside
    its names may stand below, in a table of their own.
    """

    columns: Sequence[Column]
    title: str | None = None
    name: int = 0
    severities: Sequence[Severity] = ()
    divisible: bool = False

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The cells row by row."""
        return list(zip(*(column.cells for column in self.columns), strict=True))


@dataclass(frozen=True, slots=True)
class Gap:
    """An empty line between parts, where the form has lines."""


Block: TypeAlias = Heading | Paragraph | Bullets | TextTable | Gap


def faint(text: str) -> Paragraph:
    """A sentence that explains what is around it."""
    return Paragraph(text, "faint")


def known(columns: Iterable[Column]) -> list[Column]:
    """The columns in which any cell has a text."""
    return [column for column in columns if any(column.cells)]


def columns_of(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Column]:
    """The columns of a table that is given row by row."""
    cells: Sequence[Sequence[str]] = list(zip(*rows, strict=True)) or [()] * len(heads)
    return [Column(*column) for column in zip(heads, cells, strict=True)]
