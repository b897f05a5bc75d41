"""A file format, as the registry knows it: what of it can be read, and which files a store is written in.

What is written is selected by queries (storage/queries/formats_out.sql) in the other tool's fields; DuckDB writes it as
JSON, so that no row passes through Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal
from urllib.parse import quote

import duckdb

from venire.storage.store.connection import query
from venire.storage.transfer.formats.judged import VerdictDialect
from venire.storage.transfer.formats.texts import Reader

__all__ = ["ExportWriter", "Format", "Part", "file_name", "names", "prepare", "statement"]


@dataclass(frozen=True, slots=True)
class Format:
    """A file format, an entry of `registry.FORMATS`: what of it can be read and written; each part may be absent.

    `read` yields the instructions and completions of files, and goes through them as often as it is asked to.
    `dialects` are the forms of its verdicts. `write` writes a store. `purpose` is a line for
    `venire formats` and `venire import --help`.
    """

    purpose: str = ""
    read: Reader | None = None
    dialects: tuple[VerdictDialect, ...] = ()
    write: ExportWriter | None = None


_VARIABLES = ("judge", "model", "other", "keep")


@dataclass(frozen=True, slots=True)
class Part:
    """One file of an export: where it goes, the query of its rows, and whom it is of; `form` is list or lines."""

    path: PurePath
    query: str
    form: Literal["list", "lines", "object"] = "lines"
    model: str | None = None
    other: str | None = None
    judge: str | None = None
    keep: str | None = None


ExportWriter = Callable[[duckdb.DuckDBPyConnection, str], Iterator[Part]]
"""From a prepared connection and a choice of `KeptPairs` to the files of a format."""


def prepare(connection: duckdb.DuckDBPyConnection) -> None:
    """Makes the views that the queries read from, over the store that is in use; `campaign_name` cuts them."""
    for name in ("written_battles", "written_judgments", "written_answers"):
        connection.execute(query(name))


def names(connection: duckdb.DuckDBPyConnection, which: str, *, judge: str | None = None) -> list[tuple[str, ...]]:
    """The rows of a named query of names, such as `written_models`."""
    connection.execute("set variable written_judge = $judge", {"judge": judge})
    return connection.execute(query(which)).fetchall()


def statement(connection: duckdb.DuckDBPyConnection, part: Part) -> str:
    """The query of a part, with its variables set."""
    for name in _VARIABLES:
        connection.execute(f"set variable written_{name} = $value", {"value": getattr(part, name)})
    return query(part.query).replace("{pairs}", query("write_preferences"))


def file_name(name: str) -> str:
    """A model's or judge's name as that of a file: no folder of its own, and two names stay two."""
    safe = quote(name, safe=" @+=,()[]:")
    return f"%2E{safe[1:]}" if safe.startswith(".") else safe
