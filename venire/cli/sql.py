"""`venire sql`: a query on a store, which a running campaign may own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from venire.cli.options import RAW, STORE

if TYPE_CHECKING:
    from venire.storage.read.selecting import Selected


def sql(
    store: Path = STORE,
    query: str | None = typer.Argument(
        None, help="One SELECT; - reads it from standard input. Without it, the tables and views are listed."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print a list of objects on standard output."),
    as_csv: bool = typer.Option(False, "--csv", help="Print comma-separated values on standard output."),
    raw: bool = RAW,
    limit: int | None = typer.Option(
        None, "--limit", min=0, help="Most rows; default 10,000, which is also the most while a campaign runs."
    ),
) -> None:
    """Ask a store in SQL, while a campaign runs too.

    Nothing can be changed that way: one SELECT, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN, for a minute at most.

    Examples:
      venire sql first                             # lists tables and views
      venire sql first "from spend"
      venire sql first "select judge, count(*) from battle group by all" --csv
      venire sql first - < query.sql
    """
    from venire.arena.errors import InputError
    from venire.cli.options import write_json
    from venire.live.client import look
    from venire.render.screen import console
    from venire.render.store import show_relations, show_rows
    from venire.storage.read.selecting import MAX_ROWS, select
    from venire.storage.store.connection import query as named

    if as_json and as_csv:
        raise InputError("choose --json or --csv")
    text = named("relations") if query is None else sys.stdin.read() if query == "-" else query
    most = MAX_ROWS if limit is None else limit
    found = look(store, lambda opened: select(opened, text, most=most), lambda owner: owner.sql(text, most=most))
    if as_json:
        write_json([dict(zip(found.columns, row, strict=True)) for row in found.rows])
    elif as_csv:
        _write_csv(found, raw=raw)
    elif query is None:
        show_relations(console(), found)
    else:
        show_rows(console(), found)
    if found.more:
        console(stderr=True).print(f"the first {len(found.rows):,} rows of more: see --limit")


def _write_csv(found: Selected, *, raw: bool) -> None:
    from venire.render.store import cell_text
    from venire.storage.transfer.delimited import write_rows

    if sys.stdout is not None:  # None where it was closed
        rows = ([None if value is None else cell_text(value, null="") for value in row] for row in found.rows)
        write_rows(sys.stdout, found.columns, rows, raw=raw)
        sys.stdout.flush()
