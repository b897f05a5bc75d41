"""`venire init`: a campaign file to start from."""

from __future__ import annotations

from pathlib import Path

import typer


def init(
    folder: Path = typer.Argument(Path("."), help="Where to write; made when it is not there."),
) -> None:
    """Write a campaign file, example tables, and a schema from which editors complete keys.

    Examples:
      venire init first
      cd first && venire plan campaign.toml
    """
    from importlib.resources import files
    from shlex import quote

    from venire.arena.errors import InputError
    from venire.arena.wording import plain
    from venire.configs.publishing import schema_text, template_text

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
