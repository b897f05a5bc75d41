"""Tables in memory: those of pandas, polars, Arrow and plain Python as verdicts to read, and rows as such tables.

None of these libraries is needed, and none is imported for reading: a table is known by its methods.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError

_MISSING = ("NAType", "NaTType")


@dataclass(frozen=True, slots=True, eq=False)
class MemoryTable:
    """A table in memory, with its cells as text (None where missing), lists and structures as JSON.

    `cells` holds the columns by position (`c0`, `c1`, ...), `columns` their names with the SQL type that a file of JSON
    Lines with the same values would have.
    """

    cells: Mapping[str, NDArray[np.object_]]
    columns: Mapping[str, str]
    called: str = "the table"
    """The name by which messages call it."""

    def __str__(self) -> str:
        return self.called

    def __len__(self) -> int:
        return len(next(iter(self.cells.values()), ()))

    @property
    def name(self) -> str:
        """The name under which a connection knows the table."""
        return f"memory_{id(self)}"


def is_table(source: object) -> bool:
    """Whether an object is a table that `memory_table` reads: not a path, a list of paths or a store."""
    if isinstance(source, Mapping):
        return True
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        return bool(source) and all(isinstance(row, Mapping) for row in source)
    arrow_or_polars = any(hasattr(source, name) for name in ("to_pydict", "iter_columns", "collect"))
    return arrow_or_polars or (hasattr(source, "notna") and hasattr(source, "columns"))


def is_missing(value: object) -> bool:
    """Whether a cell holds nothing: None, NaN, or what pandas has in their place."""
    return value is None or (isinstance(value, float) and math.isnan(value)) or type(value).__name__ in _MISSING


def memory_table(source: Any, needed: str = "model_a, model_b and winner", called: str = "the table") -> MemoryTable:
    """A source for which `is_table` holds, as `MemoryTable`: of a list of dicts, each is a row.

    Raises InputError for a lazy table, columns of different lengths, a name of two columns, and bytes in a cell.

    >>> list(memory_table([{"model_a": "oak", "n": 7.0}, {"model_a": "elm"}]).cells["c1"])
    ['7', None]
    """
    named = _columns(source)
    if twice := [name for number, (name, _) in enumerate(named) if name in dict(named[:number])]:
        raise InputError(f'the table: two columns are named "{twice[0]}"; rename one')
    cells: dict[str, NDArray[np.object_]] = {}
    columns = {}
    for number, (name, values) in enumerate(named):
        listed = _listed(values, name)
        if len(listed) != len(cells.get("c0", listed)):
            raise InputError(
                f'the table: column "{name}" has {len(listed)} rows and "{named[0][0]}" {len(cells["c0"])}; give all '
                "columns the same length"
            )
        column = np.empty(len(listed), dtype=np.object_)
        column[:] = [_text(value, name, row) for row, value in enumerate(listed, start=1)]
        nested = any(isinstance(value, Mapping | list | tuple | np.ndarray) for value in listed)
        cells[f"c{number}"], columns[name] = column, "STRUCT" if nested else "VARCHAR"
    if not columns:
        raise InputError(f"the table has no columns: give it {needed}")
    return MemoryTable(cells, columns, called)


def _columns(source: Any) -> list[tuple[str, Any]]:
    """Names and values of the columns, in order."""
    if isinstance(source, Mapping):
        return [(str(name), values) for name, values in source.items()]
    if isinstance(source, Sequence):
        names = dict.fromkeys(name for row in source for name in row)
        return [(str(name), [row.get(name) for row in source]) for name in names]
    if hasattr(source, "to_pydict"):
        return list(zip(source.schema.names, source.columns, strict=True))
    if hasattr(source, "iter_columns"):
        return [(column.name, column) for column in source.iter_columns()]
    if hasattr(source, "collect"):
        raise InputError("the table is lazy, its rows were not read yet: give table.collect()")
    return [(str(name), values) for name, values in source.items()]


def _listed(values: Any, name: str) -> list[Any]:
    for method in ("to_pylist", "to_list", "tolist"):  # Arrow; pandas and polars; NumPy
        if hasattr(values, method):
            found = getattr(values, method)()
            return found if isinstance(found, list) else [found]
    if isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping):
        return list(values)
    raise InputError(
        f'the table: column "{name}" is {type(values).__name__}, not a list of cells; give one value a row'
    )


def _text(value: Any, name: str, row: int) -> str | None:
    """A cell as text; whole numbers as plain digits, so that 7, 7.0 and '7' meet."""
    if isinstance(value, str):
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if is_missing(value):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e18 else repr(value)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, default=str)
    if isinstance(value, bytes | bytearray | memoryview):
        raise InputError(f'the table: row {row}: "{name}" holds bytes, not text; decode them')
    return str(value)


_PANDAS = {str: "object", int: "Int64", float: "float64", bool: "boolean"}
_POLARS = {str: "String", int: "Int64", float: "Float64", bool: "Boolean"}
_ARROW = {str: "string", int: "int64", float: "float64", bool: "bool_"}


def to_pandas(rows: Sequence[Mapping[str, Any]], kinds: Mapping[str, type]) -> Any:
    """Rows as a `pandas.DataFrame` with the columns of `kinds` (str, int, float or bool); InputError without pandas."""
    pandas = _library("pandas", "to_pandas")
    return pandas.DataFrame(
        {name: pandas.Series([row[name] for row in rows], dtype=_PANDAS[kind]) for name, kind in kinds.items()}
    )


def to_polars(rows: Sequence[Mapping[str, Any]], kinds: Mapping[str, type]) -> Any:
    """Rows as a `polars.DataFrame` with the columns of `kinds` (str, int, float or bool); InputError without polars."""
    polars = _library("polars", "to_polars")
    schema = {name: getattr(polars, _POLARS[kind]) for name, kind in kinds.items()}
    return polars.DataFrame({name: [row[name] for row in rows] for name in kinds}, schema=schema)


def to_arrow(rows: Sequence[Mapping[str, Any]], kinds: Mapping[str, type]) -> Any:
    """Rows as a `pyarrow.Table` with the columns of `kinds` (str, int, float or bool); InputError without pyarrow."""
    arrow = _library("pyarrow", "to_arrow")
    schema = arrow.schema([(name, getattr(arrow, _ARROW[kind])()) for name, kind in kinds.items()])
    return arrow.table({name: [row[name] for row in rows] for name in kinds}, schema=schema)


def _library(name: str, what: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise InputError(f"{what} needs {name}, which is not installed: pip install {name}") from None
