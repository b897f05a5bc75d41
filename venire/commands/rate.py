"""`venire rate`: ratings and consistencies from a store or from a table of battles."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer

__all__ = ["rate"]


class TableOrigin(StrEnum):
    """Where the verdicts of a table come from; a store knows by itself."""

    REAL = "real"
    RECORDED = "recorded"
    SIMULATED = "simulated"


class BothBad(StrEnum):
    """What a verdict that both answers are bad counts as."""

    TIE = "tie"
    DROP = "drop"


def rate(
    paths: list[Path] = typer.Argument(
        ..., metavar="PATH...", help="A store, a table (model_a, model_b, winner[, judge, instruction_id]), or files."
    ),
    campaign: str | None = typer.Option(None, "--campaign", help="Which campaign of a store that has several."),
    bootstrap: int = typer.Option(200, "--bootstrap", min=0, help="Replicates behind the intervals."),
    seed: int | None = typer.Option(None, "--seed", help="Seed of the replicates; default: the campaign's own, or 0."),
    mapping: list[str] = typer.Option([], "--map", help="OURS=THEIRS: a column that is called otherwise in the table."),
    origin: TableOrigin | None = typer.Option(
        None, "--origin", help="Where a table's verdicts come from; default: recorded."
    ),
    form: str | None = typer.Option(
        None, "--format", help="What the files are; default: told by their columns. docs/formats.md lists formats."
    ),
    both_bad: BothBad = typer.Option(BothBad.TIE, "--both-bad", help="What a verdict that both are bad counts as."),
    baseline: str | None = typer.Option(None, "--baseline", help="Whom all models met, where the files do not say."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON on standard output and nothing else."),
) -> None:
    """Rate the models and measure the judges.

    Nothing is asked and nothing is paid."""
    from venire.arena.records import Origin
    from venire.commands.options import column_map, write_json
    from venire.leaderboard import show_board
    from venire.rating import rate as rate_path
    from venire.screen import console

    board = rate_path(
        paths,
        campaign=campaign,
        mapping=column_map(mapping),
        origin=None if origin is None else Origin(origin.value),
        replicates=bootstrap,
        seed=seed,
        form=form,
        both_bad=both_bad.value,
        baseline=baseline,
    )
    if as_json:
        write_json(board.to_json())
    else:
        show_board(console(), board)
