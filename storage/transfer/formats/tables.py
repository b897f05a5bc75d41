"""Instructions, completions and ratings from a plain table: Parquet, CSV, TSV or JSON Lines.

| kind | columns |
|---|---|
| instructions | `instruction_id`, `instruction`, optional `category`, `reference` |
| completions | `model`, `instruction_id` (or its text in `prompt`), `completion` (or `response`) |
| elo | `model`, `elo`; a model without an Elo is left out |

Reference ratings, to hold a board against, are a table of `model` and `elo` (or `rating`, or `score`), or a board of
ours.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from venire.arena.choices import TableKind
from venire.arena.errors import InputError
from venire.arena.hints import setting, setting_of
from venire.arena.records import Completion, Instruction, Rating
from venire.arena.wording import suggest
from venire.storage.transfer.formats.columns import answers_hint, with_answers, with_ids
from venire.storage.transfer.formats.source import MissingColumnError, TableFile, open_table

_ROWS = 1000


class _KindColumns(NamedTuple):
    """Our columns of one kind: `unique` make a row's identity, `labels` are ids and names, `texts` are other text."""

    unique: tuple[str, ...]
    labels: tuple[str, ...]
    texts: tuple[str, ...]
    optional: tuple[str, ...] = ()


_COLUMNS: dict[str, _KindColumns] = {
    "instructions": _KindColumns(
        ("instruction_id",), ("instruction_id",), ("instruction",), optional=("category", "reference")
    ),
    "completions": _KindColumns(
        ("model", "instruction_id", "variant"), ("model", "instruction_id"), ("completion",), optional=("variant",)
    ),
    "elo": _KindColumns(("model",), ("model",), ("elo",)),
}


def read(
    path: Path, kind: TableKind, mapping: Mapping[str, str] = {}, *, model: str | None = None
) -> Iterator[Instruction | Completion | Rating]:
    """Records of a table file in its order, streamed; `mapping` is from our column names to the file's.

    Completions of a table without ids of instructions name them by their texts; those of a table without a column of
    models are `model`'s, where it is given.

    Columns and duplicates are checked at once, single cells as they are reached. Rows of kind elo without an Elo
    yield nothing (`unrated` counts them). Raises InputError that names file, row (the first data row is 1) and what
    to do.
    """
    table, theirs = _open(path, kind, mapping, model)
    _refuse_duplicates(table, kind, theirs)
    return _records(table, kind, theirs, model)


def unrated(path: Path, mapping: Mapping[str, str] = {}) -> int:
    """How many rows of an elo table have no Elo."""
    table, theirs = _open(path, "elo", mapping)
    row = table.execute(f"select count(*) from {{table}} where {table.text(theirs['elo'])} is null").fetchone()
    table.connection.close()
    return int(row[0]) if row else 0


def _open(
    path: Path, kind: TableKind, mapping: Mapping[str, str], model: str | None = None
) -> tuple[TableFile, dict[str, str]]:
    """The table, and our column names to the file's: all that are needed, and the optional ones that are there."""
    columns = _COLUMNS[kind]
    needed = [*columns.labels, *columns.texts]
    unknown = sorted(set(mapping) - {*needed, *columns.optional})
    if unknown:
        raise InputError(
            f'{path}: {setting("mapping")} names "{unknown[0]}", which is no column of ours for {kind}; '
            f"{suggest(unknown[0], [*needed, *columns.optional])}"
        )
    table = open_table(path)
    mapping = with_answers(table, mapping) if kind == "completions" else with_ids(table, mapping)
    if model is not None and "model" not in {*mapping, *table.columns}:
        needed.remove("model")
    there = [name for name in columns.optional if name in mapping or name in table.columns]
    try:
        return table, {name: table.column(name, mapping) for name in [*needed, *there]}
    except MissingColumnError:
        if kind != "elo" and (hint := answers_hint(table)) is not None:
            raise InputError(f"{table.path}: {hint}") from None
        raise


def _refuse_duplicates(table: TableFile, kind: TableKind, theirs: Mapping[str, str]) -> None:
    unique = [name for name in _COLUMNS[kind].unique if name in theirs]
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
        if kind == "instructions" and (hint := answers_hint(table)) is not None:
            raise InputError(f"{table.path}: row {rows[1]} has the instruction of row {rows[0]}: the table {hint}")
        what = ", ".join(f'{theirs[name]} "{value}"' for name, value in zip(unique, key, strict=True))
        raise InputError(f"{table.path}: {what} stands in row {rows[0]} and again in row {rows[1]}; keep one of them")


def _records(
    table: TableFile, kind: TableKind, theirs: Mapping[str, str], model: str | None
) -> Iterator[Instruction | Completion | Rating]:
    labels = _COLUMNS[kind].labels
    cells = [table.label(column) if name in labels else table.text(column) for name, column in theirs.items()]
    made = 0
    with closing(table.connection):
        result = table.execute(f"select {', '.join(cells)} from {{table}}")
        for number, row in enumerate(_rows(table, result), start=1):
            record = _record(table, kind, number, {"model": model, **dict(zip(theirs, row, strict=True))}, theirs)
            if record is not None:
                made += 1
                yield record
    if not made:
        raise InputError(
            f'{table.path}: column "{theirs["elo"]}" is empty in every row; name another: '
            f"{setting_of('mapping', 'elo', 'COLUMN')}"
        )


def _rows(table: TableFile, result: Any) -> Iterator[tuple[str | None, ...]]:
    while True:
        with table.errors():
            rows = result.fetchmany(_ROWS)
        if not rows:
            return
        yield from rows


def _record(
    table: TableFile, kind: TableKind, number: int, cell: dict[str, str | None], theirs: Mapping[str, str]
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
        return Completion(required("model"), required("instruction_id"), text, variant=cell.get("variant") or "")
    if cell["elo"] is None:
        return None
    return Rating(required("model"), _elo(table, number, cell["elo"], theirs["elo"]))


MAX_ELO = 100_000.0
"""As in a campaign file: what lies beyond is a mistake, and its gaps would not fit their column."""


def _elo(table: TableFile, number: int, text: str, column: str) -> float:
    try:
        elo = float(text)
    except ValueError:
        elo = math.nan
    if not abs(elo) <= MAX_ELO:
        raise InputError(
            f'{table.path}: row {number}: "{column}" is "{text[:40]}"; accepted: a number of Elo points within '
            f"+-{MAX_ELO:.0f}, or nothing where none is known"
        )
    return elo


_RATING_COLUMNS = ("elo", "rating", "score")


def read_reference(path: Path) -> dict[str, float]:
    """Elo points by model, of a table file or of what `venire rate --json` printed; models without a rating are left
    out.

    Raises `InputError` that names file, row or model, and what to do.
    """
    board = _board(path)
    rows = _table_rows(path) if board is None else board
    found: dict[str, float] = {}
    for number, (model, cell) in enumerate(rows, start=1):
        if not model:
            raise InputError(f'{path}: row {number}: "model" is empty; fill it in or leave the row out')
        if cell is None or cell == "":
            continue
        if model in found:
            raise InputError(f'{path}: row {number}: "{model}" has a rating in an earlier row; keep one of them')
        found[model] = _points(path, number, cell)
    if not found:
        raise InputError(f"{path}: no model has a rating; give a column elo (or rating, or score) with numbers")
    return found


def _board(path: Path) -> list[tuple[str, Any]] | None:
    """The models of a board in JSON; None for any other file."""
    if path.suffix.lower() != ".json" or not path.is_file():
        return None
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return None  # one row per line, or no JSON at all: the table's reader reports the error
    rows = document.get("models") if isinstance(document, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) and "model" in row for row in rows):
        return None
    return [(str(row["model"]), row.get("elo")) for row in rows]


def _table_rows(path: Path) -> Iterable[tuple[str | None, str | None]]:
    with closing((table := open_table(path)).connection):
        rating = _rating(table)  # first: it reports missing columns
        cells = f"{table.name('model')}, {table.text(rating)}"
        with table.errors():
            return table.execute(f"select {cells} from {{table}}").fetchall()


def _rating(table: TableFile) -> str:
    """The column of ratings. Raises `InputError` where it, or the models' column, is missing."""
    there = [name for name in _RATING_COLUMNS if name in table.columns]
    if "model" not in table.columns or not there:
        found = ", ".join(list(table.columns)[:30])
        raise InputError(
            f"{table.path}: reference ratings stand in columns model and elo (or rating, or score), or in what "
            f"venire rate --json printed; columns found: {found}"
        )
    return there[0]


def _points(path: Path, number: int, cell: Any) -> float:
    try:
        points = float(cell)
    except (TypeError, ValueError):
        points = math.nan
    if not abs(points) <= MAX_ELO:
        raise InputError(
            f'{path}: row {number}: the rating is "{str(cell)[:40]}"; accepted: a number of Elo points within '
            f"+-{MAX_ELO:.0f}, or nothing where none is known"
        )
    return points
