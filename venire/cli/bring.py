"""`venire import`: bring instructions, completions, ratings and people's votes into a store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
import typer.main

from venire.arena.choices import TableKind
from venire.cli.help import HELP, Verb, VerbGroup
from venire.cli.options import JSON, named_store, with_options
from venire.cli.verdict_options import TableOptions

if TYPE_CHECKING:
    from venire.storage.transfer.formats.texts import Reader


_STORE = typer.Option(
    ..., "--store", callback=named_store, help="The store, or its campaign file; made when it is not there."
)


class _Formats(VerbGroup):
    """Has a command for each format of texts as well; formats are loaded when one of their commands is looked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        from venire.storage.transfer.formats import with_texts

        return [*super().list_commands(ctx), *with_texts()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        from venire.storage.transfer.formats import FORMATS

        found = super().get_command(ctx, cmd_name)
        if found is None and cmd_name in FORMATS and (read := FORMATS[cmd_name].read) is not None:
            form = FORMATS[cmd_name]
            one = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
            one.command(cmd_name, cls=Verb, context_settings=HELP, help=form.purpose + _example(cmd_name))(
                _texts_command(cmd_name, read)
            )
            found = typer.main.get_command(one)
        return found


app = typer.Typer(cls=_Formats, help="Bring texts, ratings and people's votes into a store.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Bring texts, ratings and people's votes into a store."""


@app.command(cls=Verb)
def table(
    path: Path = typer.Argument(..., help="A Parquet, CSV, TSV or JSON Lines file."),
    kind: TableKind = typer.Option(..., "--kind", help="What its rows are."),
    store: Path = _STORE,
    mapping: list[str] = typer.Option([], "--map", help="OURS=THEIRS: a column that is called otherwise in the file."),
) -> None:
    """Import a table: all of it, or nothing.

    Columns are instruction_id, instruction[, category, reference]; model, instruction_id or prompt (its text, word for
    word), completion or response; or model, elo.

    Examples:
      venire import table instructions.csv --kind instructions --store first
      venire import table ratings.csv --kind elo --map elo=arena_elo --store first
    """
    from venire.cli.verdict_options import column_map
    from venire.orchestrator.run.reparse import screen
    from venire.storage.store.opening import open_store
    from venire.storage.transfer.formats import tables
    from venire.storage.transfer.importing import add

    records = tables.read(path, kind, column_map(mapping))
    with open_store(store) as opened:
        added = add(opened, records)
        screen(opened)
    new = added.instructions + added.completions + added.ratings
    word = {"instructions": "instructions", "completions": "completions", "elo": "ratings"}[kind]
    typer.echo(f"{path}: {new} {word} new in {store}, {added.known} known already")


@app.command(cls=Verb)
@with_options()
def votes(
    paths: list[Path] = typer.Argument(
        ...,
        metavar="FILE...",
        help="Tables that a page of `venire annotate` handed out, or of model_a, model_b, winner, instruction_id[, "
        "annotator, note].",
    ),
    name: str = typer.Option(..., "--as", metavar="NAME", help="What these people are called from now on."),
    store: Path = _STORE,
    *,
    table: TableOptions,
    as_json: bool = JSON,
) -> None:
    """Import what people said of pairs of completions: all of the files, or nothing.

    Any pairs and instructions of the store, any number of annotators. The same file twice adds nothing.

    Examples:
      venire import votes votes-*.csv --as crowd --store first    # of the pages of `venire annotate`
      venire import votes votes.csv --as crowd --store first
      venire import votes votes.parquet --as experts --map annotator=rater --where kind=expert --store first
    """
    from dataclasses import asdict

    from venire.arena.wording import few, plain
    from venire.cli.options import write_json
    from venire.cli.verdict_options import column_map, value_map, where
    from venire.reports.wording import counted
    from venire.storage.store.opening import open_store
    from venire.storage.transfer.formats.files import files_of
    from venire.storage.transfer.votes import add_votes, read_votes

    given = [
        read_votes(
            path,
            table.form,
            mapping=column_map(table.mapping),
            values=value_map(table.values),
            where=where(table.where),
            both_bad=table.both_bad or "tie",
        )
        for path in files_of(paths)
    ]
    with open_store(store, create=False) as opened:
        added = add_votes(opened, name, *given)
    aside = list(dict.fromkeys(column for one in given for column in one.left_aside))
    remarks = list(dict.fromkeys(remark for one in given for remark in one.remarks))
    if as_json:
        write_json({"store": str(store), "people": name, **asdict(added), "left_aside": aside, "remarks": remarks})
        return
    names = [str(path) for path in paths]
    notes = f", {counted(added.notes, 'note')} kept" if added.notes else ""
    without = f", {added.without_winner} rows without a winner left out" if added.without_winner else ""
    typer.echo(
        f"{plain(few(names, 3))}: {added.votes:,} votes of {plain(name)} new in {store} ({added.annotators:,} new "
        f"annotators), {added.known:,} known already{notes}{without}"
    )
    for remark in remarks:
        typer.echo(f"note: {plain(remark)}")
    if aside:
        typer.echo(f"columns left aside: {plain(few(aside))}")


@app.command(cls=Verb)
def grades(
    paths: list[Path] = typer.Argument(
        ..., metavar="FILE...", help="Tables of instruction_id, model, correct[, annotator]."
    ),
    name: str = typer.Option(..., "--as", metavar="NAME", help="What these people are called from now on."),
    store: Path = _STORE,
    mapping: list[str] = typer.Option([], "--map", help="OURS=THEIRS: a column that is called otherwise in the file."),
    as_json: bool = JSON,
) -> None:
    """Import which answers are right: gold labels, by which accuracy is known, or corrected for judges' errors.

    Labels of all answers are the accuracy that ratings and judges are held against. Labels of some of those that judges
    grade, drawn by chance, 5 right and 5 wrong ones at least, correct the judges. The same file twice adds nothing.

    Examples:
      venire import grades gold.csv --as experts --store first
      venire import grades gold.csv --as experts --map correct=is_right --store first
    """
    from dataclasses import asdict

    from venire.arena.wording import few, plain
    from venire.cli.options import write_json
    from venire.cli.verdict_options import column_map
    from venire.reports.wording import counted
    from venire.storage.store.opening import open_store
    from venire.storage.transfer.formats.files import files_of
    from venire.storage.transfer.gold import add_gold, read_gold

    given = [read_gold(path, column_map(mapping)) for path in files_of(paths)]
    with open_store(store, create=False) as opened:
        added = add_gold(opened, name, *given)
    if as_json:
        write_json({"store": str(store), "people": name, **asdict(added)})
        return
    without = f", {counted(added.unlabelled, 'row')} without a label left out" if added.unlabelled else ""
    typer.echo(
        f"{plain(few([str(path) for path in paths], 3))}: {added.labels:,} labels of {plain(name)} new in {store} "
        f"({added.annotators:,} new annotators), {added.known:,} known already{without}"
    )


_PATHS = typer.Argument(..., metavar="PATH...", help="Files of this format, in any order.")


_SHOWN = 3


def _example(form: str) -> str:
    return (
        f"\n\nExamples:\n  venire import {form} one.json two.json --store first"
        f"\n  venire import {form} one.json --store first --json"
    )


def _texts_command(form: str, read: Reader) -> Callable[..., None]:
    """The command that imports files of a format."""

    def command(paths: list[Path] = _PATHS, store: Path = _STORE, as_json: bool = JSON) -> None:
        _texts(form, read, paths, store, as_json)

    return command


def _texts(form: str, read: Reader, paths: list[Path], store: Path, as_json: bool) -> None:
    """All files of one format, or nothing of them; says what was new and which rows hold no text."""
    from venire.arena.wording import plain
    from venire.cli.options import write_json
    from venire.orchestrator.run.reparse import screen
    from venire.storage.store.opening import open_store
    from venire.storage.transfer.formats.files import files_of
    from venire.storage.transfer.importing import add_texts

    paths = files_of(paths)
    for path in paths:
        next(read([path]), None)  # a file that is none of these makes no store
    with open_store(store) as opened:
        added = add_texts(opened, read, paths)
        screen(opened)
    if as_json:
        counts = {"instructions": added.instructions, "completions": added.completions, "known": added.known}
        skipped = [{"path": str(one.path), "row": one.row, "why": one.why} for one in added.skipped]
        write_json({"store": str(store), "format": form, **counts, "skipped": skipped})
        return
    new = f"{added.instructions} instructions and {added.completions} completions new"
    typer.echo(f"{store}: {new}, {added.known} known already")
    for one in added.skipped[:_SHOWN]:
        typer.echo(plain(f"left out: {one.path}: row {one.row}: {one.why}"))
    if len(added.skipped) > _SHOWN:
        typer.echo(f"left out: {len(added.skipped) - _SHOWN} more rows of that kind (--json lists them)")
