"""`venire place`: a new model put on a board that is judged already, for as much money as you say."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from venire.arena.hints import command_words
from venire.cli.help import battle_policies
from venire.cli.options import (
    JSON,
    EnvFile,
    Notify,
    NotifyCommand,
    RetryFailed,
    Serve,
    Yes,
    named_store,
    with_options,
)


@dataclass(frozen=True)
class PlaceOptions:
    """How a model is placed: fields of `PlaceSettings`."""

    budget: Annotated[
        float | None, typer.Option("--budget", help="Dollars it may cost in all, earlier runs included.")
    ] = None
    completions: Annotated[
        Path | None, typer.Option("--completions", help="A table of its completions, imported first.")
    ] = None
    elo: Annotated[
        float | None, typer.Option("--elo", help="Its Elo by people's votes, where known; simulated judges need it.")
    ] = None
    campaign: Annotated[
        str | None, typer.Option("--campaign", help="The board's campaign, where there are several.")
    ] = None
    judges: Annotated[
        list[str], typer.Option("--judge", help="Ask this judge of the board alone; may be repeated.")
    ] = field(default_factory=list)
    half_width: Annotated[
        float | None,
        typer.Option("--half-width", help="Stop at half an interval so narrow, in Elo, the board being held."),
    ] = None
    battles: Annotated[int | None, typer.Option("--battles", min=1, help="Stop after so many battles.")] = None
    instructions: Annotated[int | None, typer.Option("--instructions", min=2, help="Draw so many; all by default.")] = (
        None
    )
    policy: Annotated[str, typer.Option("--policy", autocompletion=battle_policies, help="How battles are chosen.")] = (
        "information"
    )
    round_size: Annotated[int, typer.Option("--round", min=1, help="Battles between two looks.")] = 10
    level: Annotated[float, typer.Option("--level", help="Level of the judge's interval, such as 0.95.")] = 0.95
    alpha: Annotated[float, typer.Option("--alpha", help="Chance of a miss of the interval on people's scale.")] = 0.1
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Draws instructions; another seed is another placement.")
    ] = 0


@with_options()
def place(
    model: str = typer.Argument(..., help="The new model, as its completions name it."),
    on: Path = typer.Option(..., "--on", callback=named_store, help="The store with the board, or its campaign file."),
    *,
    placing: PlaceOptions,
    yes: Yes = False,
    env_file: EnvFile = None,
    retry_failed: RetryFailed = False,
    serve: Serve = None,
    notify: Notify = None,
    notify_command: NotifyCommand = None,
    as_json: bool = JSON,
) -> None:
    """Place a new model on a judged board.

    Its rating comes from battles with models chosen for what they tell; nobody else moves. Ctrl-C stops it safely; the
    same command goes on, and with a larger budget adds to it.

    Columns of --completions are instruction_id, or a prompt that is in the store word for word; completion or response;
    and model, unless all are of MODEL.

    Exit codes: 0 placed (the budget spent or not), 1 error, 2 input, 3 budget reached before any verdict, 4 done with
    failed steps, 5 nothing could be read, 130 interrupted or declined.

    Examples:
      venire place MODEL --on first --budget 1.00
      venire place MODEL --on first --completions new.csv --budget 1.00 --half-width 30
      venire place MODEL --on first --battles 60 --judge gpt-4-0613
      venire place MODEL --on first --battles 60 --elo 1000  # simulated judges
    """
    from functools import partial

    from venire.cli.options import agree, environment, notify_target, page_guard, write_json
    from venire.orchestrator.recording.ending import EXIT_CODES, Ending
    from venire.placement.board import prepare
    from venire.placement.settings import PlaceSettings
    from venire.render.place import run_placement
    from venire.render.screen import console, warning_printer
    from venire.render.sections import show
    from venire.telemetry import observe

    screen, environ = console(stderr=True), environment(env_file)
    with command_words(judges="--judge"):
        prepared = prepare(PlaceSettings.of(model, on, **vars(placing)))
        target = notify_target(notify, notify_command, environ, on, prepared.campaign)
        with observe(warning_printer(screen), notify=target) as observers:
            found, code = run_placement(
                screen,
                prepared,
                agree=partial(agree, yes=yes),
                retry_failed=retry_failed,
                environ=environ,
                observers=observers,
                guard=page_guard(serve),
            )
    if as_json and found is not None:
        write_json(found.to_json())
    elif as_json and code != EXIT_CODES[Ending.INTERRUPTED]:
        write_json({"model": model, "held": None, "people": None})
    elif found is not None:
        show(console(), found.sections())
    raise typer.Exit(code)
