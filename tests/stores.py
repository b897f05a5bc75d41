"""Reading a store's file as a user's own DuckDB would, for tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import duckdb


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
