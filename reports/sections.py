"""What is printed, shown in a notebook or written into a report, as plain records: sentences and tables of texts.

They hold no markup, and names in them as they were given, whatever is in these: each renderer makes texts harmless in
its own way (`venire.render.sections` for a terminal, `reports.html`, `reports.markdown`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["plain", "faint", "worry"]
"""How much a reader should mind: `faint` is what explains the rest."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of a part of a section; `mark` is a word that is set off before it, such as `worry`."""

    text: str
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A sentence, or some of them; with `below_width` for screens of fewer columns alone."""

    text: str
    severity: Severity = "plain"
    below_width: int = 0


@dataclass(frozen=True, slots=True)
class Bullets:
    """Sentences of one kind, one below the other."""

    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class CellLink:
    """Words that lead to an address of the page's site; a form without addresses has the words alone."""

    words: str
    address: str


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: figures, which are never broken, or sentences if `text`.

    On a screen of fewer than `least_width` columns it is left out. `below` has an addition to each cell, such as an
    interval, which stands below it or in brackets; `marked` says which cells are set off. Cells of `badges` are words
    of a verdict, such as `worry`. On a page `links` stand below each cell.
    """

    head: str
    cells: Sequence[str]
    least_width: int = 0
    text: bool = False
    below: Sequence[str] = ()
    marked: Sequence[bool] = ()
    badges: bool = False
    links: Sequence[Sequence[CellLink]] = ()

    @property
    def parts(self) -> list[tuple[str, str, bool]]:
        """Each cell with what stands below it, and whether it is set off."""
        size = len(self.cells)
        return list(zip(self.cells, self.below or [""] * size, self.marked or [False] * size, strict=True))

    @property
    def in_line(self) -> list[str]:
        """The cells with what stands below them in brackets, and the words of their links."""
        texts = [f"{cell} ({more})" if more else cell for cell, more, _ in self.parts]
        words = [", ".join(link.words for link in links) for links in self.links] or [""] * len(texts)
        return [", ".join(filter(None, both)) for both in zip(texts, words, strict=True)]


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of texts, column by column; column `name` has names, which may be broken anywhere.

    `severities` are those of its rows, where any is not plain. Columns of a `divisible` table that do not fit beside
    its names may stand below, in a table of their own. `label` names a table without a title for who hears it. On a
    page for a narrow screen the cells of a `stacked` table stand below one another, row by row.
    """

    columns: Sequence[Column]
    title: str | None = None
    name: int = 0
    severities: Sequence[Severity] = ()
    divisible: bool = False
    label: str = ""
    stacked: bool = False

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The cells row by row."""
        return list(zip(*(column.in_line for column in self.columns), strict=True))


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """What a matrix says of its row and column, with an addition; `shade` is from 0 to 10, None without a figure.

    On a page it leads to `address`; `words` say for who hears it what the row, the column and the figures are.
    """

    text: str
    below: str = ""
    shade: int | None = None
    address: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Each of some names against each other one, by row and column; None is a name against itself.

    `heads` are the names as heads of columns; where a page has `numbered` rows and columns, numbers stand for them.
    """

    label: str
    heads: Sequence[str]
    names: Sequence[str]
    cells: Sequence[Sequence[MatrixCell | None]]
    numbered: bool = False

    @property
    def table(self) -> TextTable:
        """The same as a table of texts, for a form without shades."""
        columns = [Column("", self.names)]
        for head, cells in zip(self.heads, zip(*self.cells, strict=True), strict=True):
            texts = ["" if cell is None else cell.text for cell in cells]
            columns.append(Column(head, texts, below=["" if cell is None else cell.below for cell in cells]))
        return TextTable(columns, label=self.label, divisible=True)


@dataclass(frozen=True, slots=True)
class Gap:
    """An empty line between parts, where the form has lines."""


@dataclass(frozen=True, slots=True)
class Definitions:
    """Terms with what they mean."""

    terms: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Verbatim:
    """A text that is shown as it was written, such as a command; `label` names it."""

    text: str
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture by its name; a form that is given none of that name is without it."""

    name: str


@dataclass(frozen=True, slots=True)
class Detail:
    """What a page has and a short form does not, which has `instead`."""

    blocks: Sequence[Block]
    instead: Sequence[Block] = ()


Block: TypeAlias = Heading | Paragraph | Bullets | TextTable | Matrix | Gap | Definitions | Verbatim | Chart | Detail


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document with its title; `key` is its address in there."""

    key: str
    title: str
    blocks: Sequence[Block]


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
