"""Ratings known before, to hold a board against: a table of `model` and `elo` (or `rating`), or a board of ours."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from venire.arena.errors import InputError
from venire.storage.transfer.formats.source import Table, open_table
from venire.storage.transfer.formats.tables import LARGEST_ELO

__all__ = ["read_reference"]

_COLUMNS = ("elo", "rating")


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
        raise InputError(f"{path}: no model has a rating; give a column elo (or rating) with numbers")
    return found


def _board(path: Path) -> list[tuple[str, Any]] | None:
    """The models of a board in JSON; None for any other file."""
    if path.suffix.lower() != ".json" or not path.is_file():
        return None
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return None  # rows one a line, or no JSON at all: the table's reader says what is wrong
    rows = document.get("models") if isinstance(document, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) and "model" in row for row in rows):
        return None
    return [(str(row["model"]), row.get("elo")) for row in rows]


def _table_rows(path: Path) -> Iterable[tuple[str | None, str | None]]:
    with closing((table := open_table(path)).connection):
        rating = _rating(table)  # first: it says which columns are missing
        cells = f"{table.label('model')}, {table.text(rating)}"
        with table.errors():
            return table.execute(f"select {cells} from {{table}}").fetchall()


def _rating(table: Table) -> str:
    """The column of ratings. Raises `InputError` where it, or the models' column, is missing."""
    there = [name for name in _COLUMNS if name in table.columns]
    if "model" not in table.columns or not there:
        found = ", ".join(list(table.columns)[:30])
        raise InputError(
            f"{table.path}: reference ratings stand in columns model and elo (or rating), or in what "
            f"venire rate --json printed; columns found: {found}"
        )
    return there[0]


def _points(path: Path, number: int, cell: Any) -> float:
    try:
        points = float(cell)
    except (TypeError, ValueError):
        points = math.nan
    if not abs(points) <= LARGEST_ELO:
        raise InputError(
            f'{path}: row {number}: the rating is "{str(cell)[:40]}"; accepted: a number of Elo points within '
            f"+-{LARGEST_ELO:.0f}, or nothing where none is known"
        )
    return points
