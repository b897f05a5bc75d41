"""`venire audit`: when not to believe a leaderboard."""

from __future__ import annotations

from pathlib import Path

import typer

from venire.cli.rate import BothBad, Flips, Merge, TableOrigin

__all__ = ["audit"]


def audit(
    paths: list[Path] = typer.Argument(
        ..., metavar="PATH...", help="A store, a table (model_a, model_b, winner[, judge, instruction_id]), or files."
    ),
    check: list[str] = typer.Option([], "--check", help="Run this check alone; several times for several."),
    strict: bool = typer.Option(False, "--strict", help="End with exit code 1 when a check worries."),
    campaign: str | None = typer.Option(None, "--campaign", help="Which campaign of a store that has several."),
    mapping: list[str] = typer.Option([], "--map", help="OURS=THEIRS: a column that is called otherwise in the table."),
    where: list[str] = typer.Option([], "--where", help="COLUMN=VALUE: keep these rows of a table."),
    cluster: str | None = typer.Option(
        None, "--cluster", help="Column whose rows share their noise; default instruction_id, or none."
    ),
    covariate: list[str] = typer.Option(
        [], "--covariate", help="Column of A's length less B's; a store knows the lengths of its answers."
    ),
    level: float = typer.Option(0.95, "--level", help="Of intervals and of what is told apart."),
    merge: Merge = typer.Option(Merge.MEAN, "--merge", help="A tie and a win of both orders: half a win, or a tie."),
    flips: Flips = typer.Option(Flips.TIE, "--flips", help="Orders with opposite winners."),
    bootstrap: int = typer.Option(0, "--bootstrap", min=0, help="Redrawn boards for the first place; 0 makes 1000."),
    seed: int | None = typer.Option(None, "--seed", help="Of all random draws; default: the campaign's own, or 0."),
    origin: TableOrigin | None = typer.Option(
        None, "--origin", help="Where a table's verdicts come from; default: recorded."
    ),
    form: str | None = typer.Option(
        None, "--format", help="What the files are; default: told by their columns. docs/formats.md lists formats."
    ),
    both_bad: BothBad | None = typer.Option(
        None, "--both-bad", help="What a verdict that both are bad counts as; default: tie."
    ),
    baseline: str | None = typer.Option(None, "--baseline", help="Whom all models met, where the files do not say."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON on standard output and nothing else."),
) -> None:
    """Say when not to believe the leaderboard: every check of the data, with its figure and threshold.

    Nothing is asked and nothing is paid. Exit code 0 even when a check worries, unless --strict."""
    from venire.arena.records import Origin
    from venire.boards.audit import audited
    from venire.boards.rate import Source
    from venire.cli.options import column_map, write_json
    from venire.cli.options import where as conditions
    from venire.ratings.inference.options import Options
    from venire.render.audit import show_audit
    from venire.render.screen import console

    source = Source(
        tuple(paths),
        campaign=campaign,
        mapping=column_map(mapping),
        where=conditions(where),
        cluster=cluster,
        origin=None if origin is None else Origin(origin.value),
        form=form,
        both_bad=None if both_bad is None else both_bad.value,
        baseline=baseline,
    )
    options = Options(
        merge=merge.value,
        flips=flips.value,
        level=level,
        replicates=bootstrap,
        seed=seed or 0,
        covariates=tuple(covariate),
    )
    found = audited(source, options, check, own_seed=seed is None)
    if as_json:
        write_json(found.to_json())
    else:
        show_audit(console(), found)
    if strict and found.worries:
        raise typer.Exit(1)
