"""`venire plan`: what a campaign will ask and cost, before it does."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from venire.arena.errors import InputError
from venire.cli.options import FILE, JSON, EnvFile, again, confirm, environment, write_json


def plan(
    context: typer.Context,
    file: Path = FILE,
    amend: bool = typer.Option(False, "--amend", help="Accept a file that changed since calls were made."),
    pilot: int | None = typer.Option(
        None, "--pilot", min=1, help="Ask so many trials of the plan for each judge first, and learn from them."
    ),
    yes: bool = typer.Option(False, "--yes", "-y", help="Do not ask before a pilot spends."),
    env_file: EnvFile = None,
    explain: bool = typer.Option(
        False, "--explain", help="Say why each of the first matchups was chosen, and what the best design could do."
    ),
    print_config: bool = typer.Option(
        False, "--print-config", help="Show the file with all its defaults instead, headers masked; nothing is written."
    ),
    as_json: bool = JSON,
) -> None:
    """Show what a campaign will ask and cost, before it does.

    And how wide its intervals will be. The data is imported and the plan written into the store; nobody is asked but by
    --pilot, whose trials are part of the plan and are not paid again.

    Examples:
      venire plan first/campaign.toml
      venire plan first/campaign.toml --explain
      venire plan first/campaign.toml --print-config
      venire plan first/campaign.toml --pilot 10    # asks ten trials of each judge, and learns from them
    """
    from venire.configs.loading import load_campaign
    from venire.configs.publishing import resolved_text
    from venire.forecasts.intervals import intervals_document, plan_intervals
    from venire.forecasts.plan import design_limit, explanation, plan_document, reasons
    from venire.orchestrator.recording.ending import EXIT_CODES
    from venire.render.outcome import run_pilot
    from venire.render.plan import show_intervals, show_plan, show_reasons
    from venire.render.screen import console
    from venire.session import Session

    if print_config:
        typer.echo(resolved_text(file), nl=False)
        return
    code = 0
    with Session(load_campaign(file), amend=amend, spends=True, options=again(context)) as session:
        if pilot is not None:
            ask = None if yes else _agree_to_pilot
            environ = environment(env_file)
            code = EXIT_CODES[run_pilot(console(stderr=True), session, pilot, agree=ask, environ=environ)]
        forecast = session.forecast()
        intervals = plan_intervals(session, forecast)
        if as_json:
            document = plan_document(session, forecast) | {"widths": intervals_document(intervals)}
            why = {"explain": explanation(reasons(session), design_limit(session, intervals))} if explain else {}
            write_json(document | why)
        else:
            screen = console()
            show_plan(screen, session, forecast)
            show_intervals(screen, intervals)
            if explain:
                show_reasons(screen, reasons(session), design_limit(session, intervals))
    raise typer.Exit(code)


def _agree_to_pilot(what: str) -> None:
    if not sys.stdin.isatty():
        raise InputError(f"a pilot asks {what}, and nobody is there to agree: add --yes")
    confirm(f"Ask {what}?")
