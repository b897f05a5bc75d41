"""Results of queries that are read again before anything is written: most of a small query's time is its planning."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any, TypeVar, cast

from venire.storage.store.connection import words_read

T = TypeVar("T")

_MAX_VALUES = 4_096
"""The most values of rows that are kept, and of a list among the parameters of what is kept."""

_MAX_BYTES = 1 << 20
"""The most bytes of one result that is kept, about."""

_MAX_TOTAL = 8 << 20
"""The most bytes of all of them; where there is no room for another, all are dropped."""

_VALUE_BYTES = 64
"""Bytes of a value in a row beside its characters, about."""


class _Kept(dict[tuple[Any, ...], tuple[Any, int]]):
    """Results by query, form and parameters, each with the bytes that it takes."""

    size = 0


class ResultCache:
    """Small results of queries, kept until a table that they were read from is written; for any thread.

    A store is the only writer of its file, so nothing that was read changes before it commits. A result goes where its
    query found the others when it began: one that was read before a commit and arrives after it is nobody's.
    """

    def __init__(self) -> None:
        self._kept = _Kept()

    def clear(self) -> None:
        """Forget everything."""
        self._kept = _Kept()

    def forget(self, tables: Collection[str]) -> None:
        """Forget what was read from some tables, after a commit that wrote them and that readers see."""
        after = _Kept()
        for key, (result, size) in self._kept.copy().items():
            if words_read(key[0]).isdisjoint(tables):
                after[key] = result, size
                after.size += size
        self._kept = after

    def get(self, name: str, parameters: Mapping[str, Any], take: Hashable, run: Callable[[], T]) -> T:
        """The result of a named query, taken in some form, of `run` where it is not kept; not to be changed."""
        kept = self._kept
        values = parameters.values()
        if any(isinstance(value, list) and len(value) > _MAX_VALUES for value in values):  # hardly asked for twice
            return run()
        key = (name, take, *parameters, *(tuple(value) if isinstance(value, list) else value for value in values))
        found = kept.get(key)
        if found is not None:
            return cast(T, found[0])
        result = run()
        size = _size(result)
        if size > _MAX_BYTES:
            return result
        if kept.size + size > _MAX_TOTAL:
            self.clear()
        kept[key] = result, size
        kept.size += size
        return result


def _size(result: Any) -> int:
    """Bytes of rows, or of arrays by name, about; more than are kept where that is known without counting them."""
    if isinstance(result, dict):
        return sum(_MAX_BYTES + 1 if column.dtype.hasobject else column.nbytes for column in result.values())
    if result and len(result) * len(result[0]) > _MAX_VALUES:
        return _MAX_BYTES + 1
    return sum(_VALUE_BYTES + (len(value) if isinstance(value, str | bytes) else 0) for row in result for value in row)
