"""`venire parse` and `venire reparse`: read verdicts out of a table of replies, or again out of those on record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from venire.cli.help import dialect_names
from venire.cli.options import JSON, RAW, STORE

if TYPE_CHECKING:
    from venire.reading import ParseSummary


def parse(
    table: Path | None = typer.Argument(None, help="A table with a column raw_output: CSV, TSV, JSON Lines, Parquet."),
    dialect: str | None = typer.Option(
        None, "--dialect", autocompletion=dialect_names, help="How the replies are written; default: guessed."
    ),
    out: Path | None = typer.Option(None, "--out", "-o", help="Write here, in the form that its name says."),
    listing: bool = typer.Option(False, "--list", help="Show the dialects with an example of each rule."),
    mapping: list[str] = typer.Option([], "--map", help="raw_output=THEIRS: the column is called otherwise."),
    prefix: str = typer.Option("", "--prefix", help="Goes before the names of the new columns."),
    raw: bool = RAW,
    as_json: bool = typer.Option(False, "--json", help="With -o or --list: print JSON and nothing else."),
) -> None:
    """Read verdicts out of a table of replies.

    Adds the columns verdict, status and rule. Exit codes: 0 most replies were read, 2 input, 5 half or less were.
    Nobody is asked. What names no verdict, or two, is unreadable. Without -o it goes to standard output as CSV.

    Examples:
      venire parse replies.csv -o verdicts.csv
      venire parse replies.jsonl --map raw_output=reply --json -o verdicts.parquet
      venire parse --list
    """
    from venire.arena.errors import InputError
    from venire.cli.options import write_json
    from venire.cli.verdict_options import column_map
    from venire.reading import dialect_list, parse_table
    from venire.render.reading import parse_progress, show_dialects, show_parsed
    from venire.render.screen import console

    if listing:
        if as_json:
            write_json(dialect_list())
        else:
            show_dialects(console())
        return
    if table is None:
        raise InputError("name a table with a column raw_output, or --list to see the dialects")
    if as_json and out is None:
        raise InputError("--json shows a summary, and needs -o FILE for the table itself")
    aside = console(stderr=True)
    with parse_progress(aside) as progress:
        summary = parse_table(
            table,
            dialect,
            out,
            column_map(mapping),
            prefix,
            raw=raw,
            progress=progress,
            note=lambda one: aside.print(one),
        )
    if out is not None and as_json:
        write_json(summary.to_json())
    elif out is not None:
        show_parsed(console(), summary)
    if 2 * summary.read <= summary.rows and summary.rows:
        aside.print(f"{summary.read:,} of {summary.rows:,} replies were read{_other_dialect(summary)}")
        raise typer.Exit(5)


def _other_dialect(summary: ParseSummary) -> str:
    """The command that reads with the dialect that reads more, or where to look for one."""
    import shlex

    if summary.reads_more is None:
        return ": see `venire parse --list` for what each dialect reads"
    name, read = summary.reads_more
    target = "" if summary.out is None else f" -o {shlex.quote(str(summary.out))}"
    command = f"venire parse {shlex.quote(str(summary.table))} --dialect {name}{target}"
    return f"; {name} reads {read:,}: {command}"


def reparse(
    store: Path = STORE,
    campaign: str | None = typer.Option(None, "--campaign", help="Only this campaign; default: all of the store."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Show what would change and write nothing."),
    as_json: bool = JSON,
) -> None:
    """Read the replies on record again with today's parsers.

    Nothing is asked and nothing is paid. What reads differently is shown and appended; earlier readings are kept.

    Examples:
      venire reparse first --dry-run
      venire reparse first
    """
    from venire.cli.options import write_json
    from venire.reading import read_again
    from venire.render.reading import reread_progress, show_reparsed
    from venire.render.screen import console

    with reread_progress(console(stderr=True)) as progress:
        summary = read_again(store, campaign, dry=dry_run, progress=progress)
    if as_json:
        write_json(summary.to_json())
    else:
        show_reparsed(console(), summary)
