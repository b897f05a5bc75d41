"""`venire generate`: ask the contestants of a campaign file for completions, and go on where the last run stopped."""

from __future__ import annotations

from pathlib import Path

import typer

from venire.cli.options import ENV_FILE, FILE, SERVE, YES


def generate(
    context: typer.Context,
    file: Path = FILE,
    yes: bool = YES,
    env_file: Path | None = ENV_FILE,
    amend: bool = typer.Option(False, "--amend", help="Accept contestants that changed since calls were made."),
    retry_failed: bool = typer.Option(False, "--retry-failed", help="Try what used up its attempts again."),
    speed: float = typer.Option(
        0.0, "--speed", min=0.0, help="For simulated contestants: divide their latency by this; 0 is no waiting."
    ),
    events: Path | None = typer.Option(None, "--events", help="Append what happens to this file, as JSON lines."),
    serve: str | None = SERVE,
) -> None:
    """Ask contestants to answer the instructions; `venire run` then judges what they wrote.

    Ctrl-C stops it safely; the same command goes on. Exit codes as of `venire run`.

    Examples:
      venire generate first/campaign.toml
      venire generate first/campaign.toml --yes --retry-failed
    """
    from venire.cli.options import again, agree, environment, page_guard
    from venire.configs.loading import load_campaign
    from venire.orchestrator.planning.respondents import generation
    from venire.render.outcome import show_outcome
    from venire.render.plan import show_plan
    from venire.render.screen import console, warning_printer
    from venire.session import Embedded, Session
    from venire.telemetry import observe

    screen = console(stderr=True)
    environ = environment(env_file)
    guard = page_guard(serve)
    campaign = generation(load_campaign(file))
    watching = observe(warning_printer(screen), lines=events, otel=None, metrics_port=None)
    with watching as observers, Session(campaign, amend=amend, spends=True, options=again(context)) as session:
        if retry_failed and (cleared := session.retry_failed()):
            screen.print(f"{cleared} failed steps will be tried again")
        show_plan(screen, session)
        agree(session, yes=yes)
        raise typer.Exit(show_outcome(session, screen, Embedded(speed), observers, environ=environ, guard=guard))
