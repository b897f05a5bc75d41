"""Rows of figures as tables: of pandas, polars and Arrow, and of HTML as a notebook shows them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from venire.storage.transfer import memory


class RowTable(ABC):
    """Something with rows of figures, flat dicts of equal keys, that other libraries take as a table.

    Each library is optional; whoever inherits says the rows, with the type of each column.
    """

    __slots__ = ()

    @abstractmethod
    def _table(self) -> tuple[list[dict[str, Any]], Mapping[str, type]]:
        """The rows, None for what is not known, and the type of each column in order: str, int, float or bool."""

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`; raises InputError where pandas is not installed."""
        return memory.to_pandas(*self._table())

    def to_polars(self) -> Any:
        """The rows as a `polars.DataFrame`; raises InputError where polars is not installed."""
        return memory.to_polars(*self._table())

    def to_arrow(self) -> Any:
        """The rows as a `pyarrow.Table`; raises InputError where pyarrow is not installed."""
        return memory.to_arrow(*self._table())


def html_table(heads: Sequence[str], lines: Iterable[Sequence[str]], notes: Iterable[str] = ()) -> str:
    """A table with notes below it as HTML; every text is escaped.

    >>> html_table(["model"], [["<b>"]], ["a note"])
    '<table><thead><tr><th>model</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table><div>a note</div>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>" for cells in lines)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return table + "".join(f"<div>{escape(note)}</div>" for note in notes)
