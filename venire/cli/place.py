"""`venire place`: a new model put on a board that is judged already, for as much money as you say."""

from __future__ import annotations

from pathlib import Path

import typer

from venire.cli.help import battle_policies
from venire.cli.options import ENV_FILE, JSON, SERVE, YES, named_store


def place(
    model: str = typer.Argument(..., help="The new model, as its completions name it."),
    on: Path = typer.Option(..., "--on", callback=named_store, help="The store with the board, or its campaign file."),
    budget: float | None = typer.Option(None, "--budget", help="Dollars it may cost in all, earlier runs included."),
    completions: Path | None = typer.Option(None, "--completions", help="Its completions, imported first."),
    elo: float | None = typer.Option(
        None, "--elo", help="Its Elo by people's votes, where known; simulated judges need it."
    ),
    campaign: str | None = typer.Option(None, "--campaign", help="The board's campaign, where there are several."),
    judge: list[str] = typer.Option([], "--judge", help="Ask this judge of the board alone; may be repeated."),
    half_width: float | None = typer.Option(
        None, "--half-width", help="Stop at half an interval so narrow, in Elo, the board being held."
    ),
    battles: int | None = typer.Option(None, "--battles", min=1, help="Stop after so many battles."),
    instructions: int | None = typer.Option(None, "--instructions", min=2, help="Draw so many; all by default."),
    policy: str = typer.Option(
        "information", "--policy", autocompletion=battle_policies, help="How battles are chosen."
    ),
    round_size: int = typer.Option(10, "--round", min=1, help="Battles between two looks."),
    level: float = typer.Option(0.95, "--level", help="Level of the judge's interval, such as 0.95."),
    alpha: float = typer.Option(0.1, "--alpha", help="Chance of a miss of the interval on people's scale."),
    seed: int = typer.Option(0, "--seed", min=0, help="Draws instructions; another seed is another placement."),
    yes: bool = YES,
    env_file: Path | None = ENV_FILE,
    retry_failed: bool = typer.Option(False, "--retry-failed", help="Try steps that used up their attempts again."),
    serve: str | None = SERVE,
    as_json: bool = JSON,
) -> None:
    """Place a new model on a judged board.

    Its rating comes from battles with models chosen for what they tell; nobody else moves. Ctrl-C stops it safely; the
    same command goes on, and with a larger budget adds to it.

    Exit codes: 0 placed (the budget spent or not), 1 error, 2 input, 3 budget reached before any verdict, 4 done with
    failed steps, 5 nothing could be read, 130 interrupted or declined.

    Examples:
      venire place MODEL --on first --budget 1.00
      venire place MODEL --on first --completions new.csv --budget 1.00 --half-width 30
      venire place MODEL --on first --battles 60 --judge gpt-4-0613
    """
    from functools import partial

    from venire.cli.options import agree, environment, page_guard, write_json
    from venire.orchestrator.recording.ending import Ending
    from venire.placement.board import PlaceSettings
    from venire.render.outcome import EXIT_CODES
    from venire.render.place import run_placement
    from venire.render.screen import console
    from venire.render.sections import show

    settings = PlaceSettings(
        store=on,
        model=model,
        money=None if budget is None else round(budget * 1e9),
        campaign=campaign,
        judges=tuple(sorted(set(judge))),
        completions=completions,
        policy=policy,
        seed=seed,
        half_width=half_width,
        battles=battles,
        instructions=instructions,
        round=round_size,
        level=level,
        alpha=alpha,
        elo=elo,
    )
    screen = console(stderr=True)
    found, code = run_placement(
        screen,
        settings,
        agree=partial(agree, yes=yes),
        retry_failed=retry_failed,
        environ=environment(env_file),
        guard=page_guard(serve),
    )
    if as_json and found is not None:
        write_json(found.to_json())
    elif as_json and code != EXIT_CODES[Ending.INTERRUPTED]:
        write_json({"model": model, "held": None, "people": None})
    elif found is not None:
        show(console(), found.sections())
    raise typer.Exit(code)
