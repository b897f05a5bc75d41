"""`venire sql`: a query on a store, which a running campaign may own."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from venire.storage.read.selecting import Selected

__all__ = ["sql"]

_GAP = "  "


def sql(
    store: Path = typer.Argument(..., help="The store."),
    query: str | None = typer.Argument(
        None, help="One SELECT; - reads it from standard input. Without it, the tables and views are listed."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print a list of objects on standard output."),
    as_csv: bool = typer.Option(False, "--csv", help="Print comma-separated values on standard output."),
    limit: int | None = typer.Option(
        None, "--limit", min=0, help="Most rows; default 10,000, which is also the most while a campaign runs."
    ),
) -> None:
    """Ask a store in SQL, while a campaign runs too.

    Nothing can be changed that way: one SELECT, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN, for a minute at most.
    """
    from venire.arena.errors import InputError
    from venire.cli.options import write_json
    from venire.live.client import look
    from venire.render.screen import console
    from venire.storage.read.selecting import MOST_ROWS, select
    from venire.storage.store.connection import query as named

    if as_json and as_csv:
        raise InputError("choose --json or --csv")
    text = named("relations") if query is None else sys.stdin.read() if query == "-" else query
    most = MOST_ROWS if limit is None else limit
    found = look(store, lambda opened: select(opened, text, most=most), lambda owner: owner.sql(text, most=most))
    if as_json:
        write_json([dict(zip(found.columns, row, strict=True)) for row in found.rows])
    elif as_csv:
        _write_csv(found)
    elif query is None:
        _show_relations(found)
    else:
        _show(found)
    if found.more:
        console(stderr=True).print(f"the first {len(found.rows):,} rows of more: see --limit")


def _write_csv(found: Selected) -> None:
    if sys.stdout is not None:  # None where it was closed
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(found.columns)
        writer.writerows([_text(value, null="") for value in row] for row in found.rows)
        sys.stdout.flush()


def _text(value: Any, *, null: str) -> str:
    """A value as a cell: what is nested as JSON, nothing as `null`."""
    import json

    if value is None:
        return null
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _show(found: Selected) -> None:
    """A table where it fits the terminal, or where there is none; else a block of lines for each row."""
    from rich.cells import cell_len

    from venire.render.screen import console
    from venire.wording import plain

    screen = console()
    names = [plain(name) for name in found.columns]
    rows = [[plain(_text(value, null="NULL")) for value in row] for row in found.rows]
    widths = [max(map(cell_len, cells)) for cells in zip(names, *rows, strict=True)]
    if sum(widths) + len(_GAP) * (len(widths) - 1) <= screen.width or not screen.is_terminal:
        numbers = [_all_numbers(values) for values in zip(*found.rows, strict=True)] or [False] * len(names)
        for cells in (names, *rows):
            screen.print(_line(cells, widths, numbers), soft_wrap=True)
    else:
        head = max(map(cell_len, names))
        for number, row in enumerate(rows, start=1):
            screen.print(f"{'' if number == 1 else chr(10)}row {number}", style="dim")
            for name, cell in zip(names, row, strict=True):
                screen.print(f"{name}{' ' * (head - cell_len(name))}{_GAP}{cell}", soft_wrap=True)
    screen.print(f"{len(rows):,} {'row' if len(rows) == 1 else 'rows'}", style="dim")


def _all_numbers(values: Sequence[Any]) -> bool:
    return all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values)


def _line(cells: Sequence[str], widths: Sequence[int], numbers: Sequence[bool]) -> str:
    from rich.cells import cell_len

    padded = []
    for cell, width, number in zip(cells, widths, numbers, strict=True):
        space = " " * (width - cell_len(cell))
        padded.append(space + cell if number else cell + space)
    return _GAP.join(padded).rstrip()


def _show_relations(found: Selected) -> None:
    import textwrap

    from venire.render.screen import console

    screen = console()
    width = screen.width if screen.is_terminal else 10**6
    for kind in ("view", "table"):
        screen.print(f"{kind}s", style="bold")
        for name, _, columns, types in (row for row in found.rows if row[1] == kind):
            told = ", ".join(f"{column} {of}" for column, of in zip(columns, types, strict=True))
            for line in textwrap.wrap(f"  {name}: {told}", width, subsequent_indent="    "):
                screen.print(line)
