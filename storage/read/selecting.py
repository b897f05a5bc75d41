"""Other people's SQL on an open store: it reads what is in the store, and can do nothing else.

A campaign may be writing through the same DuckDB at the same time. Four things keep a query from harming it: one
SELECT is let in and its table functions are on a list; it runs in a read-only transaction; the store's connection was
shut to files once the store was attached; and a query that takes too long or too much memory is
interrupted, because the writer would be refused memory just as the query would.
"""

from __future__ import annotations

import json
import math
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from time import monotonic
from typing import Any

import duckdb

from venire.arena.errors import InputError
from venire.storage.store.connection import query
from venire.storage.store.store import Store

__all__ = ["MAX_ROWS", "Selected", "select"]

MAX_ROWS = 10_000
"""Rows that a query brings by default."""

_FETCHED = 500
_MAX_CHARACTERS = 64 << 20
_GLANCE_SECONDS = 0.01
_STATEMENTS = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
_EXPLAIN = re.compile(r"\s*explain\b\s*(analyze\b)?\s*(\([^)]*\))?", re.IGNORECASE)

_ONLY_READ = "a store is only read here, by one SELECT, DESCRIBE, SHOW, SUMMARIZE, or EXPLAIN of a SELECT"
_TABLE_FUNCTIONS = frozenset(
    [
        "generate_series",
        "json_each",
        "json_tree",
        "range",
        "repeat",
        "unnest",
        "duckdb_columns",
        "duckdb_constraints",
        "duckdb_functions",
        "duckdb_indexes",
        "duckdb_keywords",
        "duckdb_memory",
        "duckdb_settings",
        "duckdb_tables",
        "duckdb_types",
        "duckdb_views",
        "pragma_database_size",
        "pragma_storage_info",
        "pragma_table_info",
        "pragma_version",
    ]
)
"""Functions that a query may read from. Of the others some act (`checkpoint()`), read files, or run a text as SQL."""


@dataclass(frozen=True, slots=True)
class Selected:
    """What a query brought: names of its columns, all different, and rows of values that JSON can carry.

    `more` says that there were more rows than were asked for.
    """

    columns: tuple[str, ...]
    rows: list[list[Any]]
    more: bool = False


def select(
    store: Store,
    text: str,
    *,
    most: int = MAX_ROWS,
    seconds: float = 60.0,
    memory: int | None = None,
    given_up: threading.Event | None = None,
) -> Selected:
    """At most `most` rows of one SELECT, EXPLAIN, DESCRIBE, SHOW or SUMMARIZE; safe in any thread.

    It is interrupted after so many seconds, at more than `memory` bytes, and when `given_up` is set, which it is at
    the end in any case. Blobs come as hexadecimal digits, times in ISO 8601, decimals, NaN and infinities as texts.

    Raises InputError for a query that is not let in, is wrong, or was interrupted.
    """
    with store.cursor() as cursor, store.cursor() as glance:
        _check(cursor, text)
        guard = _Guard(cursor, seconds, memory, given_up or threading.Event(), lambda: _memory(glance))
        try:
            with guard.watching():
                cursor.execute(query("begin_reading"))
                cursor.execute(text)
                return _fetch(cursor, most)
        except duckdb.InterruptException as error:
            raise InputError(guard.why or "the query was interrupted") from error
        except duckdb.Error as error:
            raise InputError(_message(error)) from error


def _check(cursor: duckdb.DuckDBPyConnection, text: str) -> None:
    """Raises InputError unless the text is one statement that reads, and reads from tables and known functions."""
    try:
        statements = cursor.extract_statements(text)
        if len(statements) != 1:
            raise InputError(f"one query at a time, and this is {len(statements)}")
        (statement,) = statements
        if statement.type not in _STATEMENTS:
            kind = "PIVOT" if statement.type is duckdb.StatementType.MULTI else statement.type.name.replace("_", " ")
            raise InputError(f"{_ONLY_READ}; this is {kind}")
        plain = statement.query
        if statement.type is duckdb.StatementType.EXPLAIN:
            plain = _EXPLAIN.sub("", plain, count=1)
        (serialized,) = cursor.execute(query("syntax_tree"), {"text": plain}).fetchall()
    except duckdb.Error as error:
        raise InputError(_message(error)) from error
    tree = json.loads(serialized[0])
    if tree["error"]:
        raise InputError(f"{_ONLY_READ}; this explains something else")
    for name in _functions(tree):
        if name.lower() not in _TABLE_FUNCTIONS:
            raise InputError(f"the function {name}() is not let in here: read from the tables and views of the store")


def _functions(tree: Any) -> Iterator[str]:
    """Names of the table functions in a syntax tree."""
    if isinstance(tree, dict):
        if tree.get("type") == "TABLE_FUNCTION":
            yield tree["function"]["function_name"]
        tree = list(tree.values())
    if isinstance(tree, list):
        for branch in tree:
            yield from _functions(branch)


@dataclass(slots=True)
class _Guard:
    """Interrupts a query from a thread of its own, and knows why it did."""

    cursor: duckdb.DuckDBPyConnection
    seconds: float
    memory: int | None
    given_up: threading.Event
    in_use: Callable[[], int]
    why: str = ""
    _ended: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def watching(self) -> Iterator[None]:
        thread = threading.Thread(target=self._watch, name="venire-sql-guard", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            self.given_up.set()
            thread.join()

    def _watch(self) -> None:
        why = self._wait()
        if not self._ended.is_set():
            self.why = why
            self.cursor.interrupt()

    def _wait(self) -> str:
        """Return when there is a reason to interrupt the query, or when it has ended."""
        if self.memory is None:
            given_up = self.given_up.wait(self.seconds)
        else:
            before, deadline = self.in_use(), monotonic() + self.seconds
            while not (given_up := self.given_up.wait(_GLANCE_SECONDS)) and monotonic() < deadline:
                if self.in_use() - before > self.memory:
                    return (
                        f"the query was stopped at {self.memory >> 20} MB of memory, which the running campaign needs: "
                        "narrow it, or ask when no campaign is running"
                    )
        if given_up:
            return "the query was given up"
        return f"the query was stopped after {self.seconds:g} s: narrow it"


def _memory(cursor: duckdb.DuckDBPyConnection) -> int:
    try:
        (row,) = cursor.execute(query("memory_in_use")).fetchall()
    except duckdb.OutOfMemoryException:
        return sys.maxsize
    return int(row[0])


def _fetch(cursor: duckdb.DuckDBPyConnection, most: int) -> Selected:
    columns = _different([str(column[0]) for column in cursor.description or ()])
    rows: list[list[Any]] = []
    characters = 0
    while characters < _MAX_CHARACTERS:
        if not (chunk := cursor.fetchmany(min(_FETCHED, most + 1 - len(rows)))):
            return Selected(columns, rows)
        for row in chunk:
            if len(rows) == most:
                return Selected(columns, rows, more=True)
            rows.append([_plain(value) for value in row])
            characters += sum(len(value) for value in rows[-1] if isinstance(value, str))
    return Selected(columns, rows, more=cursor.fetchone() is not None)


def _different(names: list[str]) -> tuple[str, ...]:
    """Column names without a repetition, so that a row can be an object: a, a -> a, a_2."""
    found: list[str] = []
    for name in names:
        other, number = name, 1
        while other in found:
            number += 1
            other = f"{name}_{number}"
        found.append(other)
    return tuple(found)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return str(value)


def _message(error: duckdb.Error) -> str:
    """DuckDB's message: its first lines with the place in the query, without its advice on settings."""
    if isinstance(error, duckdb.TransactionException):  # a SELECT that would write in a part of it
        return _ONLY_READ
    head, _, advice = str(error).partition("Possible solutions")
    lines = [line.rstrip() for line in head.splitlines()]
    return "\n".join(line for line in lines if line)[: 200 if advice else 2000]
