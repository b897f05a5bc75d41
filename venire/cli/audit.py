"""`venire audit`: when not to believe a leaderboard."""

from __future__ import annotations

from pathlib import Path

import typer

from venire.cli.help import INTERVALS, JUDGMENTS, check_names
from venire.cli.options import JSON, named_stores, with_options
from venire.cli.verdict_options import Flipped, Merged, Seed, SourceOptions


@with_options()
def audit(
    paths: list[Path] = typer.Argument(
        ...,
        metavar="PATH...",
        callback=named_stores,
        help="A store, its campaign file or the folder of that file; a table (model_a, model_b, winner[, judge, "
        "instruction_id]), or files.",
    ),
    check: list[str] = typer.Option(
        [], "--check", autocompletion=check_names, help="Run this check alone; several times for several."
    ),
    strict: bool = typer.Option(False, "--strict", help="End with exit code 1 when a check worries."),
    *,
    source: SourceOptions,
    covariate: list[str] = typer.Option(
        [],
        "--covariate",
        rich_help_panel=JUDGMENTS,
        help="Column of A's length less B's; a store knows the lengths of its answers.",
    ),
    level: float = typer.Option(
        0.95, "--level", rich_help_panel=INTERVALS, help="Of intervals and of what is told apart."
    ),
    merge: Merged = "mean",
    flips: Flipped = "tie",
    bootstrap: int = typer.Option(
        0, "--bootstrap", rich_help_panel=INTERVALS, min=0, help="Redrawn boards for the first place; 0 makes 1000."
    ),
    seed: Seed = None,
    as_json: bool = JSON,
) -> None:
    """Say when not to believe the leaderboard.

    Every check of the data, with its figure and threshold. Nothing is asked and nothing is paid. Exit code 0 even when
    a check worries, unless --strict.

    Examples:
      venire audit first
      venire audit votes.csv --check transitivity --check length
      venire audit first --strict                   # exit code 1 when a check worries
    """
    from venire.cli.options import write_json
    from venire.ratings.inference.options import Options
    from venire.reports.audit.cases import audited

    options = Options(
        merge=merge,
        flips=flips,
        level=level,
        replicates=bootstrap,
        seed=seed or 0,
        covariates=tuple(covariate),
    )
    found = audited(source.source(paths), options, check, own_seed=seed is None)
    if as_json:
        write_json(found.to_json())
    else:
        from venire.render.screen import console
        from venire.render.sections import show
        from venire.reports.sections import Gap, faint

        hint = "what each threshold rests on: docs/audit.md; names and figures behind a line: --json"
        show(console(), [*found.sections(), *((Gap(), faint(hint)) if found.worries else ())])
    if strict and found.worries:
        raise typer.Exit(1)
