"""`venire prompts`: read the texts that judges are asked with, and see what one will be sent."""

from __future__ import annotations

from pathlib import Path

import typer

from venire.cli.help import Verb, VerbGroup
from venire.cli.options import FILE, JSON

app = typer.Typer(cls=VerbGroup, help="Read the prompts of judges, and what one will be sent.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Read the prompts of judges, and what one will be sent. Nobody is asked."""


@app.command("list", cls=Verb)
def list_(as_json: bool = JSON) -> None:
    """List every prompt with its variables, its purpose and the digest that is part of a judge's key.

    Examples:
      venire prompts list
      venire prompts list --json
    """
    from venire.cli.options import write_json
    from venire.prompts import known_prompts
    from venire.render.prompts import show_prompts
    from venire.render.screen import console

    found = known_prompts()
    if as_json:
        write_json(found)
    else:
        show_prompts(console(), found)


@app.command(cls=Verb)
def show(
    name: str = typer.Argument(..., help="PROTOCOL, or PROTOCOL/NAME for one of its prompts."),
    as_json: bool = JSON,
) -> None:
    """Show a prompt as its file stands: a header, a line of dashes, and the text that is sent.

    Examples:
      venire prompts show two-stage
      venire prompts show binary --json
    """
    from venire.cli.options import write_json
    from venire.prompts import prompt_sources
    from venire.render.prompts import show_sources
    from venire.render.screen import console

    found = prompt_sources(name)
    if as_json:
        write_json(found)
    else:
        show_sources(console(), found)


@app.command(cls=Verb)
def diff(file: Path = FILE, as_json: bool = JSON) -> None:
    """Show how a campaign's prompts differ from Venire's own, and from those its store was planned with.

    Examples:
      venire prompts diff first/campaign.toml
      venire prompts diff first/campaign.toml --json
    """
    from dataclasses import asdict

    from venire.cli.options import write_json
    from venire.configs.loading import load_campaign
    from venire.orchestrator.planning.respondents import with_contexts
    from venire.prompts import prompt_differences
    from venire.render.prompts import show_differences
    from venire.render.screen import console

    found, notes = prompt_differences(with_contexts(load_campaign(file)))
    if as_json:
        write_json({"differences": [asdict(one) for one in found], "told": notes})
    else:
        show_differences(console(), found, notes)


@app.command(cls=Verb)
def render(
    file: Path = FILE,
    trial: str | None = typer.Option(None, "--trial", help="Its number, or the first digits of its key; default: 1st."),
    step: int | None = typer.Option(None, "--step", min=1, help="Which request; default: the last that can be told."),
    contestants: bool = typer.Option(False, "--contestants", help="Trials of the contestants instead of the judges."),
    as_json: bool = JSON,
) -> None:
    """Show exactly what a judge will be sent for a trial, with the replies on record up to there.

    A plan in the store is only read; without one the data is imported and the plan written.

    Examples:
      venire prompts render first/campaign.toml
      venire prompts render first/campaign.toml --trial 12 --step 1
    """
    from venire.cli.options import write_json
    from venire.configs.loading import load_campaign
    from venire.orchestrator.planning.respondents import generation, with_contexts
    from venire.prompts import render_request
    from venire.render.prompts import show_request
    from venire.render.screen import console

    campaign = with_contexts(load_campaign(file))
    found = render_request(generation(campaign) if contestants else campaign, trial, step)
    if as_json:
        write_json(found.to_json())
    else:
        show_request(console(), found)
