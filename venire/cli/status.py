"""`venire status` and `venire watch`: how far the campaigns of a store are, once or while one runs."""

from __future__ import annotations

from pathlib import Path

import typer

from venire.cli.options import JSON, STORE


def status(
    store: Path = STORE,
    as_json: bool = JSON,
) -> None:
    """Show how far campaigns are, while one runs too.

    What the store holds, was paid, failed and is left.

    Examples:
      venire status first
      venire status first/campaign.duckdb --json
    """
    from venire.cli.options import write_json
    from venire.live.client import current_status
    from venire.render.screen import console
    from venire.render.status import show_status

    facts = current_status(store)
    if as_json:
        write_json(facts)
    else:
        show_status(console(), facts)


def watch(
    store: Path = STORE,
    interval: float = typer.Option(1.0, "--interval", min=0.1, max=3600.0, help="Seconds between two looks."),
    page: bool = typer.Option(False, "--open", help="Open the page of the run in a browser, if it serves one."),
) -> None:
    """Follow the campaign that runs on a store.

    Ctrl-C ends the watching, never the campaign.

    Examples:
      venire watch first
      venire watch first/campaign.duckdb --interval 5
      venire watch first --open
    """
    import os
    import shlex

    from venire.live.client import Owner, look
    from venire.render.screen import console
    from venire.render.status import open_page, show_run, show_status
    from venire.status import status_document
    from venire.storage.store.store import Store

    screen = console()
    command = f"venire serve {shlex.quote(os.path.relpath(store))}"

    def nothing_runs(opened: Store) -> bool:
        show_status(screen, status_document(opened) | {"live": None})
        screen.print(f"\nno run is going on; its pages: {command}" if page else "\nno run is going on")
        return True

    def running(owner: Owner) -> bool:
        if page:
            open_page(screen, owner, command)
        return show_run(screen, owner, interval)

    try:
        announced = look(store, nothing_runs, running)
    except KeyboardInterrupt:
        screen.print("no longer watching; the run goes on")
        return
    if not announced:
        raise typer.Exit(1)
