"""`venire generate` and `venire edit`: ask contestants for completions, or editors for edited copies of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from venire.cli.options import FILE, with_options
from venire.cli.run import AskOptions, ask_missing

if TYPE_CHECKING:
    from venire.arena.campaigns import CampaignSettings

_Retry = Annotated[bool, typer.Option("--retry-failed", help="Try what used up its attempts again.")]


@dataclass(frozen=True)
class ContestantOptions(AskOptions):
    """How contestants are asked."""

    amend: Annotated[bool, typer.Option("--amend", help="Accept contestants that changed since calls were made.")] = (
        False
    )
    retry_failed: _Retry = False
    speed: Annotated[
        float,
        typer.Option(
            "--speed", min=0.0, help="For simulated contestants: divide their latency by this; 0 is no waiting."
        ),
    ] = 0.0


@dataclass(frozen=True)
class EditorOptions(AskOptions):
    """How editors are asked."""

    amend: Annotated[bool, typer.Option("--amend", help="Accept editors that changed since calls were made.")] = False
    retry_failed: _Retry = False
    speed: Annotated[
        float,
        typer.Option("--speed", min=0.0, help="For simulated editors: divide their latency by this; 0 is no waiting."),
    ] = 0.0


@with_options()
def generate(context: typer.Context, file: Path = FILE, *, start: ContestantOptions) -> None:
    """Ask contestants to answer the instructions.

    `venire run` then judges what they wrote. Ctrl-C stops it safely; the same command goes on. Exit codes as of `venire
    run`.

    Examples:
      venire generate first/campaign.toml
      venire generate first/campaign.toml --yes --retry-failed
    """
    from venire.orchestrator.planning.respondents import generation

    _ask(context, file, start, generation)


@with_options()
def edit(context: typer.Context, file: Path = FILE, *, start: EditorOptions) -> None:
    """Ask editors for copies of completions with one change each.

    `venire run` then judges both. Ctrl-C stops it safely; the same command goes on. Exit codes as of `venire run`.

    Examples:
      venire edit first/campaign.toml
      venire edit first/campaign.toml --yes --retry-failed
    """
    from venire.orchestrator.planning.respondents import editing

    _ask(context, file, start, editing)


def _ask(
    context: typer.Context, file: Path, start: AskOptions, writers: Callable[[CampaignSettings], CampaignSettings]
) -> None:
    """Ask the `writers` of a campaign, which are a campaign themselves. Raises typer.Exit with the exit code."""
    from venire.cli.options import again, environment, notify_target, page_guard
    from venire.configs.loading import load_campaign
    from venire.embedded import Embedded
    from venire.render.screen import console, warning_printer
    from venire.session import Session
    from venire.telemetry import observe

    environ, guard = environment(start.env_file), page_guard(start.serve)
    whole = load_campaign(file)
    campaign = writers(whole)
    target = notify_target(start.notify, start.notify_command, environ, file, whole)
    watching = observe(warning_printer(console(stderr=True)), lines=start.events, notify=target)
    with watching as observers, Session(campaign, amend=start.amend, spends=True, options=again(context)) as session:
        embedded = Embedded(start.speed)
        raise typer.Exit(ask_missing(session, start, embedded, observers, environ=environ, guard=guard))
