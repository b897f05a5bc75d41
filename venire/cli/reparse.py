"""`venire reparse`: read the replies on record again with today's parsers."""

from __future__ import annotations

from pathlib import Path

import typer

from venire.cli.options import JSON, STORE


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
