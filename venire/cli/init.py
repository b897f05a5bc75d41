"""`venire init`: a campaign file to start from."""

from __future__ import annotations

from pathlib import Path

import typer

from venire.cli.judge import JudgingOptions, made_of
from venire.cli.options import with_options


@with_options()
def init(
    folder: Path = typer.Argument(Path("."), help="Where to write; made when it is not there."),
    tables: list[str] = typer.Option(
        [],
        "--from",
        metavar="ANSWERS",
        help="A table of answers, as `venire judge` reads it; several for several.",
    ),
    *,
    wanted: JudgingOptions,
) -> None:
    """Write a campaign file and example tables to start from.

    With a schema beside them from which editors complete the file's keys.

    With --from, the short campaign file and the tables that `venire judge` makes of a table of answers; nothing is
    asked.

    Examples:
      venire init first
      cd first && venire plan campaign.toml
      venire init mine --from answers.csv --judge openai:gpt-4.1-mini --budget 2
    """
    from importlib.resources import files
    from shlex import quote

    from venire.arena.errors import InputError
    from venire.arena.wording import plain
    from venire.configs.publishing import schema_text, template_text

    if tables:
        _from_tables(folder, tables, wanted)
        return
    if wanted != JudgingOptions():
        raise InputError("--judge, --budget, --protocol and --map are for --from ANSWERS: name a table of answers")
    room = files("venire.configs")
    texts = {"campaign.toml": template_text()}
    for name in ("instructions.csv", "completions.csv", "elo.csv"):
        texts[name] = room.joinpath("example", name).read_text(encoding="utf-8")
    texts["campaign.schema.json"] = schema_text()
    if there := [name for name in texts if (folder / name).exists()]:
        raise InputError(f"{folder / there[0]} is there already: name another folder, or move it away")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
        typer.echo(f"wrote {plain(str(folder / name))}")
    typer.echo(f"\nPut your own tables and judges in, then: venire plan {quote(str(folder / 'campaign.toml'))}")


def _from_tables(folder: Path, tables: list[str], wanted: JudgingOptions) -> None:
    from dataclasses import replace
    from shlex import quote

    from venire.arena.errors import InputError
    from venire.arena.wording import plain

    if there := [file for file in folder.glob("*.toml") if file.name in ("campaign.toml", "rehearsal.toml")]:
        raise InputError(f"{there[0]} is there already: name another folder, or go on with `venire run {there[0]}`")
    chosen = wanted if wanted.judges else replace(wanted, judges=["openai:gpt-4.1-mini"])
    made = made_of(tables, chosen, folder, runs=False)
    for sentence in made.changes:
        typer.echo(plain(sentence))
    file = quote(str(made.campaign))
    if not wanted.judges:
        typer.echo(f"its judge is {chosen.judges[0]}, unless you name others there")
    typer.echo(f"\nvenire plan {file}\nvenire run {file}")
