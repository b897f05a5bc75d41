"""`venire status`: what a store holds and how far its campaigns are, those that are running too."""

from __future__ import annotations

from pathlib import Path

from venire.cli.options import JSON, STORE


def status(
    store: Path = STORE,
    as_json: bool = JSON,
) -> None:
    """Show what a store holds and how far it is, while a campaign runs too.

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
