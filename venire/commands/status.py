"""`venire status`: what a store holds and how far its campaigns are."""

from __future__ import annotations

from pathlib import Path

import typer

__all__ = ["status"]


def status(
    store: Path = typer.Argument(..., help="The store."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON on standard output and nothing else."),
) -> None:
    """Show what a store holds and how far it is."""
    from venire.commands.options import write_json
    from venire.screen import console
    from venire.show import show_status, status_json
    from venire.storage.store import open_store

    with open_store(store, create=False) as opened:
        if as_json:
            write_json(status_json(opened))
        else:
            show_status(console(), opened)
