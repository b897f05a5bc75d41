"""Stores of tests: making one of texts, and reading its file as a user's own DuckDB would."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from venire.arena.clock import Clock
from venire.arena.records import Completion, Instruction, Rating
from venire.storage.store.opening import open_store
from venire.storage.store.store import Store
from venire.storage.transfer import importing

_FILLED: dict[str, bytes] = {}
"""Stores by the records that they hold."""


def open_with(path: Path, *tables: Sequence[Instruction | Completion | Rating], clock: Clock | None = None) -> Store:
    """A new store that holds these records, open: a copy of the first that was made of them."""
    made = repr(tables)
    if made not in _FILLED:
        with open_store(path, clock=clock) as store:
            for records in tables:
                importing.add(store, records)
        _FILLED[made] = path.read_bytes()
    path.write_bytes(_FILLED[made])
    return open_store(path, clock=clock)


@cache
def _shared() -> duckdb.DuckDBPyConnection:
    """One DuckDB for all of a worker's tests: to start one takes longer than to attach a store."""
    return duckdb.connect(config={"threads": 1})


def rows_of(store: Path, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """Rows of a store that nobody has open."""
    with _shared().cursor() as cursor:
        cursor.execute(f"attach '{store}' as venire (read_only)")
        try:
            return cursor.execute("use venire").execute(sql, values).fetchall()
        finally:
            cursor.execute("use memory").execute("detach venire")
