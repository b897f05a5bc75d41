"""Other people's SQL on an open store: it reads what is in the store, and can do nothing else.

A campaign may be writing through the same DuckDB at the same time. Five things keep a query from harming it: one
SELECT is let in and its table functions are on a list; it runs in a read-only transaction; the store's connection was
shut to files once the store was attached; a query that takes too long or too much memory is interrupted, because the
writer would be refused memory just as the query would; and no single value may be large, neither where a function makes
it of a number (DuckDB counts no memory of those, and does not stop meanwhile) nor where it would become Python objects.
"""

from __future__ import annotations

import json
import math
import re
import resource
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
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

MAX_ROWS = 10_000
"""Rows that a query brings by default."""

_MAX_CHARACTERS = 32 << 20
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


_COUNTS: Mapping[str, int | None] = {
    "array_resize": 1,
    "bar": None,
    "generate_series": None,
    "list_resize": 1,
    "lpad": 1,
    "range": None,
    "repeat": 1,
    "rpad": 1,
    "to_base": None,
}
"""Functions that make a value as large as a number says: the place of that number, None where all are numbers."""

_MAX_COUNT = 10_000
"""Of all such numbers in a query together: DuckDB makes 2,048 values at a time."""

_FORMATS = frozenset(["format", "printf"])
_WIDTH = re.compile(r"\d{4}|\*|\{[^}]*\{")
"""In a format, a width of thousands, or one that is an argument."""

_MAX_TEXT = 32 << 20
_MAX_NESTED = 4 << 20
_MAX_ELEMENTS = 1 << 20
"""Of one value: bytes of a text or blob; of anything nested, bytes as text, and elements of its list."""

_TEXTS = ("VARCHAR", "BLOB", "BIT", "BIGNUM", "ENUM")


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
        bounded = _bounded(cursor, *_check(cursor, text))
        guard = _Guard(cursor, seconds, memory, given_up or threading.Event(), lambda: _memory(glance))
        try:
            with guard.watching():
                cursor.execute(query("begin_reading"))
                cursor.execute(bounded.text)
                return _fetch(cursor, most, bounded.columns)
        except duckdb.InterruptException as error:
            raise InputError(guard.why or "the query was interrupted") from error
        except duckdb.Error as error:
            raise InputError(_message(error, above=bounded.above)) from error


def _check(cursor: duckdb.DuckDBPyConnection, text: str) -> tuple[str, bool]:
    """The one statement of a text, and whether it explains a query.

    Raises InputError unless it reads, reads from tables and known functions, and makes no large values of numbers.
    """
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
    count = 1
    for name, arguments in _functions(tree):
        if arguments is None:
            if name not in _TABLE_FUNCTIONS:
                raise InputError(
                    f"the function {name}() is not let in here: read from the tables and views of the store"
                )
        elif name in _COUNTS:
            count *= _count(arguments, _COUNTS[name])
        elif name in _FORMATS and not _is_short_format(arguments):
            count = _MAX_COUNT + 1
        if count > _MAX_COUNT:
            raise InputError(
                f"{name}() could make a value too large for memory: give it numbers, not columns, of {_MAX_COUNT:,} at "
                "most in all; rows come from `from range(...)`"
            )
    return statement.query, statement.type is duckdb.StatementType.EXPLAIN


def _functions(tree: Any) -> Iterator[tuple[str, list[Any] | None]]:
    """Names of the functions in a syntax tree with their arguments, None of a function that rows are read from."""
    if isinstance(tree, dict):
        if tree.get("type") == "TABLE_FUNCTION":
            yield tree["function"]["function_name"].lower(), None
            tree = {**tree, "type": "", "function": tree["function"]["arguments"]}
        elif "function_name" in tree:
            yield tree["function_name"].lower(), [one["expression"] for one in tree["arguments"]]
        tree = list(tree.values())
    if isinstance(tree, list):
        for branch in tree:
            yield from _functions(branch)


def _literal(argument: Any) -> tuple[str, str]:
    """Kind and text of a constant, both empty of anything else."""
    found = argument.get("literal") if isinstance(argument, dict) else None
    return (str(found.get("kind", "")), str(found.get("text", ""))) if isinstance(found, dict) else ("", "")


def _count(arguments: list[Any], place: int | None) -> int:
    """What the number at a place, or all of them together, let a function make; too much where it is no number."""
    numbers = [int(text) if kind == "INTEGER" else None for kind, text in map(_literal, arguments)]
    chosen = numbers if place is None else numbers[place : place + 1]
    known = [abs(one) for one in chosen if one is not None]
    return max(1, sum(known)) if known and len(known) == len(chosen) else _MAX_COUNT + 1


def _is_short_format(arguments: list[Any]) -> bool:
    kind, text = _literal(arguments[0]) if arguments else ("", "")
    return kind == "STRING" and not _WIDTH.search(text)


@dataclass(frozen=True, slots=True)
class _Bounded:
    """A query whose values are refused where they are large, and the names of its columns, if they were replaced."""

    text: str
    columns: tuple[str, ...] | None = None
    above: int = 0
    """Lines that were put above the query."""


def _bounded(cursor: duckdb.DuckDBPyConnection, text: str, explains: bool) -> _Bounded:
    """The query around a query: Python makes objects of a value as a whole, tens of times as large.

    Raises InputError for a query that DuckDB does not take.
    """
    if explains:
        return _Bounded(text)
    inner = text.strip().rstrip(";")
    try:
        described = cursor.execute(f"describe\n{inner}").fetchall()
    except duckdb.Error as error:
        raise InputError(_message(error, above=1)) from error
    names = [f"c{number}" for number in range(len(described))]
    chosen = ", ".join(_bounded_column(name, row[1]) for name, row in zip(names, described, strict=True))
    whole = f"select {chosen} from (\n{inner}\n) as asked({', '.join(names)})"
    return _Bounded(whole, tuple(str(row[0]) for row in described), above=1)


def _bounded_column(name: str, kind: str) -> str:
    if kind.startswith(_TEXTS):
        large = (
            f"octet_length({name}::blob) > {_MAX_TEXT}" if kind == "BLOB" else f"strlen({name}::varchar) > {_MAX_TEXT}"
        )
    elif kind.endswith("]"):
        large = f"len({name}) > {_MAX_ELEMENTS} or strlen({name}::varchar) > {_MAX_NESTED}"
    elif ("(" in kind and not kind.startswith("DECIMAL")) or kind in ("JSON", "VARIANT"):
        large = f"strlen({name}::varchar) > {_MAX_NESTED}"
    else:
        return name
    return f"case when {large} then error('a value of the answer is too large: ask for a part of it') else {name} end"


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
            before, resident, deadline = self.in_use(), _resident(), monotonic() + self.seconds
            while not (given_up := self.given_up.wait(_GLANCE_SECONDS)) and monotonic() < deadline:
                if self.in_use() - before > self.memory or _resident() - resident > self.memory:
                    return (
                        f"the query was stopped at {self.memory >> 20} MB of memory, which the running campaign needs: "
                        "narrow it, or ask when no campaign is running"
                    )
        if given_up:
            return "the query was given up"
        return f"the query was stopped after {self.seconds:g} s: narrow it"


def _resident() -> int:
    """Bytes of memory that this process has, with what DuckDB does not count; 0 where the system does not report it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def _memory(cursor: duckdb.DuckDBPyConnection) -> int:
    try:
        (row,) = cursor.execute(query("memory_in_use")).fetchall()
    except duckdb.OutOfMemoryException:
        return sys.maxsize
    return int(row[0])


def _fetch(cursor: duckdb.DuckDBPyConnection, most: int, names: tuple[str, ...] | None) -> Selected:
    columns = _different([str(column[0]) for column in cursor.description or ()] if names is None else list(names))
    rows: list[list[Any]] = []
    characters = 0
    while characters < _MAX_CHARACTERS:
        if (row := cursor.fetchone()) is None:
            return Selected(columns, rows)
        if len(rows) == most:
            return Selected(columns, rows, more=True)
        rows.append([_plain(value) for value in row])
        characters += sum(map(_characters, rows[-1]))
    return Selected(columns, rows, more=cursor.fetchone() is not None)


def _characters(value: Any) -> int:
    """About what a value takes as text."""
    if isinstance(value, dict):
        return sum(len(key) + _characters(inner) for key, inner in value.items())
    if isinstance(value, list):
        return sum(map(_characters, value))
    return len(value) if isinstance(value, str) else 8


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


_PLACE = re.compile(r"^LINE (\d+):", re.MULTILINE)


def _message(error: duckdb.Error, *, above: int = 0) -> str:
    """DuckDB's message: its first lines with the place in the query, without its advice on settings.

    `above` is the number of lines that were put above the query.
    """
    if isinstance(error, duckdb.TransactionException):  # a SELECT that would write in a part of it
        return _ONLY_READ
    head, _, advice = str(error).partition("Possible solutions")
    head = _PLACE.sub(lambda found: f"LINE {int(found[1]) - above}:", head)
    lines = [line.rstrip() for line in head.splitlines()]
    return "\n".join(line for line in lines if line)[: 200 if advice else 2000]
