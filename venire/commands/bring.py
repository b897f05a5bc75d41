"""`venire import`: bring instructions, completions and ratings into a store."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer

__all__ = ["app"]

app = typer.Typer(help="Bring instructions, completions and ratings into a store.", no_args_is_help=True)


class Kind(StrEnum):
    """What the rows of a table are."""

    INSTRUCTIONS = "instructions"
    COMPLETIONS = "completions"
    ELO = "elo"


@app.callback()
def _group() -> None:
    """Bring instructions, completions and ratings into a store."""


@app.command()
def table(
    path: Path = typer.Argument(..., help="A Parquet, CSV, TSV or JSON Lines file."),
    kind: Kind = typer.Option(..., "--kind", help="What its rows are."),
    store: Path = typer.Option(..., "--store", help="The store; made when it is not there."),
    mapping: list[str] = typer.Option([], "--map", help="OURS=THEIRS: a column that is called otherwise in the file."),
) -> None:
    """Import a table: all of it, or nothing.

    Columns are instruction_id, instruction[, category, reference]; model, instruction_id, completion; or model, elo.
    """
    from venire.commands.options import column_map
    from venire.storage.formats import FORMATS
    from venire.storage.imports import add
    from venire.storage.store import open_store

    records = FORMATS["table"](path, kind.value, column_map(mapping))
    with open_store(store) as opened:
        added = add(opened, records)
    new = added.instructions + added.completions + added.ratings
    word = {"instructions": "instructions", "completions": "completions", "elo": "ratings"}[kind.value]
    typer.echo(f"{path}: {new} {word} new in {store}, {added.known} known already")
