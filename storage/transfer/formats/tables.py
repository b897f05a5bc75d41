"""Instructions, completions and ratings from a plain table: Parquet, CSV, TSV or JSON Lines.

| kind | columns |
|---|---|
| instructions | `instruction_id`, `instruction`, optional `category`, `reference` |
| completions | `model`, `instruction_id`, `completion` |
| elo | `model`, `elo`; a model without an Elo is left out |
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, NamedTuple

from venire.arena.errors import InputError
from venire.arena.records import Completion, Instruction, Rating
from venire.storage.transfer.formats.source import Table, open_table

__all__ = ["LARGEST_ELO", "Kind", "read", "unrated"]

Kind = Literal["instructions", "completions", "elo"]
_ROWS = 1000


class _Columns(NamedTuple):
    """Our columns of one kind: `unique` make a row's identity, `labels` are ids and names, `texts` are other text."""

    unique: tuple[str, ...]
    labels: tuple[str, ...]
    texts: tuple[str, ...]
    optional: tuple[str, ...] = ()


_COLUMNS: dict[str, _Columns] = {
    "instructions": _Columns(
        ("instruction_id",), ("instruction_id",), ("instruction",), optional=("category", "reference")
    ),
    "completions": _Columns(("model", "instruction_id"), ("model", "instruction_id"), ("completion",)),
    "elo": _Columns(("model",), ("model",), ("elo",)),
}


def read(path: Path, kind: Kind, mapping: Mapping[str, str] = {}) -> Iterator[Instruction | Completion | Rating]:
    """Records of a table file in its order, streamed; `mapping` is from our column names to the file's.

    Columns and duplicates are checked at once, single cells as they are reached. Rows of kind elo without an Elo
    yield nothing (`unrated` counts them). Raises InputError that names file, row (the first data row is 1) and what
    to do.
    """
    table, theirs = _open(path, kind, mapping)
    _refuse_duplicates(table, kind, theirs)
    return _records(table, kind, theirs)


def unrated(path: Path, mapping: Mapping[str, str] = {}) -> int:
    """How many rows of an elo table have no Elo."""
    table, theirs = _open(path, "elo", mapping)
    row = table.execute(f"select count(*) from {{table}} where {table.text(theirs['elo'])} is null").fetchone()
    table.connection.close()
    return int(row[0]) if row else 0


def _open(path: Path, kind: Kind, mapping: Mapping[str, str]) -> tuple[Table, dict[str, str]]:
    """The table, and our column names to the file's: all that are needed, and the optional ones that are there."""
    columns = _COLUMNS[kind]
    needed = [*columns.labels, *columns.texts]
    unknown = sorted(set(mapping) - {*needed, *columns.optional})
    if unknown:
        accepted = ", ".join([*needed, *columns.optional])
        raise InputError(
            f'{path}: --map names "{unknown[0]}", which is no column of ours for {kind}; those are {accepted}'
        )
    table = open_table(path)
    there = [name for name in columns.optional if name in mapping or name in table.columns]
    return table, {name: table.column(name, mapping) for name in [*needed, *there]}


def _refuse_duplicates(table: Table, kind: Kind, theirs: Mapping[str, str]) -> None:
    unique = _COLUMNS[kind].unique
    keys = [f"{table.label(theirs[name])} as k{position}" for position, name in enumerate(unique)]
    names = ", ".join(f"k{position}" for position in range(len(unique)))
    counted = f"{table.text(theirs['elo'])} is not null" if kind == "elo" else "true"
    found = table.execute(
        f"select {names}, min(row, 2) from "
        f"(select row_number() over () as row, {', '.join(keys)}, {counted} as counted from {{table}}) "
        f"where counted and k0 is not null group by {names} having count(*) > 1 order by min(row) limit 1"
    ).fetchone()
    if found is not None:
        *key, rows = found
        what = ", ".join(f'{theirs[name]} "{value}"' for name, value in zip(unique, key, strict=True))
        raise InputError(f"{table.path}: {what} stands in row {rows[0]} and again in row {rows[1]}; keep one of them")


def _records(table: Table, kind: Kind, theirs: Mapping[str, str]) -> Iterator[Instruction | Completion | Rating]:
    labels = _COLUMNS[kind].labels
    cells = [table.label(column) if name in labels else table.text(column) for name, column in theirs.items()]
    made = 0
    with closing(table.connection):
        result = table.execute(f"select {', '.join(cells)} from {{table}}")
        for number, row in enumerate(_rows(table, result), start=1):
            record = _record(table, kind, number, dict(zip(theirs, row, strict=True)), theirs)
            if record is not None:
                made += 1
                yield record
    if not made:
        raise InputError(
            f'{table.path}: column "{theirs["elo"]}" is empty in every row; name another: --map elo=COLUMN'
        )


def _rows(table: Table, result: Any) -> Iterator[tuple[str | None, ...]]:
    while True:
        with table.errors():
            rows = result.fetchmany(_ROWS)
        if not rows:
            return
        yield from rows


def _record(
    table: Table, kind: Kind, number: int, cell: dict[str, str | None], theirs: Mapping[str, str]
) -> Instruction | Completion | Rating | None:
    def required(name: str) -> str:
        text = cell[name]
        if not text:
            raise InputError(f'{table.path}: row {number}: "{theirs[name]}" is empty; fill it in or leave the row out')
        return text

    if kind == "instructions":
        category, reference = cell.get("category") or "", cell.get("reference") or None
        return Instruction(required("instruction_id"), (required("instruction"),), reference, category)
    if kind == "completions":
        text = "" if table.delimited and cell["completion"] is None else cell["completion"]
        if text is None:
            raise InputError(f'{table.path}: row {number}: "{theirs["completion"]}" is null; an empty text is allowed')
        return Completion(required("model"), required("instruction_id"), text)
    if cell["elo"] is None:
        return None
    return Rating(required("model"), _elo(table, number, cell["elo"], theirs["elo"]))


LARGEST_ELO = 100_000.0
"""As in a campaign file: what lies beyond is a mistake, and its gaps would not fit their column."""


def _elo(table: Table, number: int, text: str, column: str) -> float:
    try:
        elo = float(text)
    except ValueError:
        elo = math.nan
    if not abs(elo) <= LARGEST_ELO:
        raise InputError(
            f'{table.path}: row {number}: "{column}" is "{text[:40]}"; accepted: a number of Elo points within '
            f"+-{LARGEST_ELO:.0f}, or nothing where none is known"
        )
    return elo
