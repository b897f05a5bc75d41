"""`venire watch`: look on while a campaign runs."""

from __future__ import annotations

from pathlib import Path

import typer

from venire.cli.options import STORE

__all__ = ["watch"]


def watch(
    store: Path = STORE,
    interval: float = typer.Option(1.0, "--interval", min=0.1, max=3600.0, help="Seconds between two looks."),
) -> None:
    """Watch the campaign that runs on a store; Ctrl-C ends the watching, never the campaign.

    Examples:
      venire watch first
      venire watch first/campaign.duckdb --interval 5
    """
    from venire.live.client import look
    from venire.render.screen import console
    from venire.render.status import show_run, show_status
    from venire.status import status_document
    from venire.storage.store.store import Store

    screen = console()

    def nothing_runs(opened: Store) -> bool:
        show_status(screen, status_document(opened) | {"live": None})
        screen.print("\nno run is going on")
        return True

    try:
        announced = look(store, nothing_runs, lambda owner: show_run(screen, owner, interval))
    except KeyboardInterrupt:
        screen.print("no longer watching; the run goes on")
        return
    if not announced:
        raise typer.Exit(1)
