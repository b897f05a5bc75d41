"""`venire batch`: the batches of a store that are out, and ending them."""

from __future__ import annotations

from pathlib import Path

import typer

from venire.cli.help import Verb, VerbGroup
from venire.cli.options import JSON, STORE, EnvFile

app = typer.Typer(cls=VerbGroup, help="See the batches of a store, and cancel them.", no_args_is_help=True)

_NAME = typer.Argument(None, metavar="[BATCH]", help="One batch, by our name of it or the provider's; default: all.")


@app.callback()
def _group() -> None:
    """See the batches of a store, and cancel them. `venire run` sends and collects them."""


@app.command("status", cls=Verb, hidden=True)
@app.command("list", cls=Verb)
def list_(
    store: Path = STORE,
    refresh: bool = typer.Option(False, "--refresh", help="Ask the providers how those are that are out."),
    env_file: EnvFile = None,
    as_json: bool = JSON,
) -> None:
    """Show every batch of a store, those that are out and those that were collected.

    Examples:
      venire batch list first
      venire batch list first/campaign.duckdb --refresh
    """
    from venire.cli.options import environment, write_json
    from venire.live.client import current_status
    from venire.render.batches import show_batches, show_providers
    from venire.render.screen import console

    if refresh:
        from venire.batches import ask_providers

        found = ask_providers(store, environ=environment(env_file))
        if as_json:
            write_json([one.to_json() for one in found])
        else:
            show_providers(console(), found)
        return
    rows = [one for campaign in current_status(store)["campaigns"] for one in campaign["batches"]]
    if as_json:
        write_json(rows)
    elif rows:
        show_batches(console(), rows)
    else:
        console().print('no batch was sent: a judge with transport = "batch" is asked by batches')


@app.command(cls=Verb)
def cancel(
    store: Path = STORE,
    name: str | None = _NAME,
    give_up: bool = typer.Option(
        False, "--give-up", help="Count a batch that is in doubt as paid, and ask its calls again."
    ),
    env_file: EnvFile = None,
    as_json: bool = JSON,
) -> None:
    """Ask providers to end batches that are out.

    What was answered by then is taken in by the next `venire run`, which asks the rest again. Ends with exit code 1
    where one could not be cancelled.

    Examples:
      venire batch cancel first
      venire batch cancel first venire-0123456789abcdef
    """
    from venire.batches import cancel as cancel_batches
    from venire.cli.options import environment, write_json
    from venire.render.batches import show_providers
    from venire.render.screen import console

    found = cancel_batches(store, name, give_up=give_up, environ=environment(env_file))
    if as_json:
        write_json([one.to_json() for one in found])
    else:
        show_providers(console(), found)
    if any(one.status is None and not one.closed for one in found):
        raise typer.Exit(1)
