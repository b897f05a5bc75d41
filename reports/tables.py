"""Results with rows of figures: as tables of pandas, polars and Arrow, and as a notebook shows them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from venire.reports.html import html
from venire.reports.sections import Block
from venire.storage.transfer import memory


class RowTable(ABC):
    """Something with rows of figures, flat dicts of equal keys, that other libraries take as a table.

    Each library is optional; whoever inherits has the rows, with the type of each column, and the sections that are
    printed.
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

    @abstractmethod
    def sections(self) -> Iterable[Block]:
        """What is printed of it, and shown in a notebook."""

    def _repr_html_(self) -> str:
        """The sections as HTML for notebooks, with all texts escaped."""
        return html(self.sections())
