"""A file format, as the registry knows it: what of it can be read, and which files a store is written in.

What is written is selected by queries (storage/queries/formats_out.sql) in the other tool's fields; DuckDB writes it as
JSON, CSV or Parquet, so that no row passes through Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal
from urllib.parse import quote

import duckdb

from venire.arena.choices import KeptPairs
from venire.arena.errors import InputError
from venire.arena.wording import suggest
from venire.storage.store.connection import query
from venire.storage.transfer.formats.judged import VerdictDialect
from venire.storage.transfer.formats.samples import Samples, dialects_of, texts_of
from venire.storage.transfer.formats.texts import Reader


@dataclass(frozen=True, slots=True)
class Format:
    """A file format, an entry of `registry.FORMATS`: what of it can be read and written; each part may be absent.

    `read` yields the instructions and completions of files, and goes through them as often as it is asked to.
    `dialects` are the forms of its verdicts. `write` writes a store: into a folder, or where `endings` has the ending
    of a file's name into that one file; `options` are the fields of `ExportOptions` that it takes. `purpose` is a line
    for `venire formats` and `venire import --help`, `writes` the same for what is written, where that differs. `signs`
    are sets of columns, each of which alone tells a file of its prompts and answers from others; `suffixes` are endings
    of files that are no tables. `samples` yields prompts, answers and grades of logs; `read` and `dialects` are then
    made of it.
    """

    purpose: str = ""
    read: Reader | None = None
    dialects: tuple[VerdictDialect, ...] = ()
    write: ExportWriter | None = None
    endings: tuple[str, ...] = ()
    options: frozenset[str] = frozenset()
    writes: str = ""
    signs: tuple[frozenset[str], ...] = ()
    suffixes: tuple[str, ...] = ()
    samples: Samples | None = None

    @classmethod
    def of_logs(
        cls,
        name: str,
        purpose: str,
        samples: Samples,
        *,
        signs: tuple[frozenset[str], ...],
        judge: str = "",
        suffixes: tuple[str, ...] = (),
    ) -> Format:
        """The format of a tool's logs; `judge` says who gives their grades, empty where there are none."""
        dialects = dialects_of(name, judge) if judge else ()
        return cls(purpose, texts_of(samples), dialects, signs=signs, suffixes=suffixes, samples=samples)


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What an export selects.

    `keep` selects the judgments that become preference pairs, `judges` whose (none: all), and `messages` writes texts
    as lists of messages. `baseline` is the model that a leaderboard compares with, `pair` the two models of one report.
    `ratings` are rows of a board, which the caller computes. `ending` is that of the one file to write, None: a folder.
    """

    keep: KeptPairs = "agreed"
    judges: tuple[str, ...] = ()
    messages: bool = False
    baseline: str | None = None
    pair: tuple[str, str] | None = None
    ratings: Sequence[Mapping[str, Any]] = ()
    ending: str | None = None


_VARIABLES = ("judge", "model", "other", "keep", "baseline", "judges")


@dataclass(frozen=True, slots=True)
class Part:
    """One file of an export: where it goes, the query of its rows, and whom it is of.

    `form` is a JSON list, JSON lines, one JSON object, Parquet or CSV, or text, which `query` then is. `header` is the
    first line of a CSV file where a column's name cannot be one in SQL.
    """

    path: PurePath
    query: str
    form: Literal["list", "lines", "object", "parquet", "csv", "text"] = "lines"
    model: str | None = None
    other: str | None = None
    judge: str | None = None
    keep: str | None = None
    baseline: str | None = None
    judges: tuple[str, ...] | None = None
    header: str | None = None


ExportWriter = Callable[[duckdb.DuckDBPyConnection, ExportOptions], Iterator[Part]]
"""From a prepared connection to the files of a format; exactly one where the options have an `ending`."""


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
    text = query(part.query).replace("{pairs}", query("write_preferences"))
    return text.replace("{judgments}", query("export_judgment").rstrip("; \n"))


def refuse_without_verdicts(connection: duckdb.DuckDBPyConnection) -> None:
    """Raises InputError where there is no verdict on a pair of answers to write, with the tables of other verdicts."""
    if connection.execute("select 1 from written limit 1").fetchone() is not None:
        return
    others = [kind for kind in ("grade", "ballot") if connection.execute(f"select 1 from {kind} limit 1").fetchone()]
    if others:
        raise InputError(f"there are no verdicts on pairs of answers to export; there are others: {', '.join(others)}")
    raise InputError("there are no verdicts on pairs of answers to export: run the campaign first (`venire run`)")


def refuse_unknown(connection: duckdb.DuckDBPyConnection, which: str, given: Sequence[str], what: str) -> None:
    """Raises InputError for a name that a named query of names does not have, with those that it has."""
    there = [name for (name,) in connection.execute(query(which)).fetchall()]
    for name in given:
        if name not in there:
            raise InputError(f"no verdict is of the {what} {name!r}; {suggest(name, there)}")


def file_name(name: str) -> str:
    """A model's or judge's name as that of a file: no folder of its own, and two names stay two."""
    safe = quote(name, safe=" @+=,()[]:")
    return f"%2E{safe[1:]}" if safe.startswith(".") else safe
