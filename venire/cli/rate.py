"""`venire rate`: ratings and consistencies from a store or from a table of battles."""

from __future__ import annotations

from pathlib import Path

import typer

from venire.arena.registry import METHODS
from venire.cli.help import METHOD, READ, names_of
from venire.cli.options import JSON, named_stores, with_options
from venire.cli.report import write_report
from venire.cli.verdict_options import FigureOptions, RatedSource, RatingOptions


@with_options(human="accuracy_baseline", cluster="replicates")
def rate(
    paths: list[Path] = typer.Argument(
        ...,
        metavar="PATH...",
        callback=named_stores,
        help="A store, its campaign file or the folder of that file; a table of battles (model_a, model_b, winner) or "
        "of ballots (model, rank), each with judge and instruction_id if there are any; or files of another format.",
    ),
    method: list[str] = typer.Option(
        [],
        "--method",
        autocompletion=names_of(METHODS),
        rich_help_panel=METHOD,
        help="Default bradley-terry, and even-pairs of a campaign whose pairs were chosen by what was known; "
        "--compare shows all that apply; several with it. `venire methods` describes them.",
    ),
    compare: bool = typer.Option(
        False, "--compare", rich_help_panel=METHOD, help="Methods side by side: those named, or all that apply."
    ),
    as_json: bool = JSON,
    *,
    source: RatedSource,
    accuracy_baseline: list[float] = typer.Option(
        [0.0],
        "--accuracy-baseline",
        metavar="SHARE",
        rich_help_panel=READ,
        help="Where answers were graded: the share that guessing gets right; models not above it are filtered. "
        "Several: filters side by side.",
    ),
    rating: RatingOptions,
    figures: FigureOptions,
    report: Path | None = typer.Option(
        None, "--report", metavar="FILE", help="Also write a report: .html, .md or .json (venire report)."
    ),
) -> None:
    """Rate the models and measure the judges.

    Nothing is asked and nothing is paid.

    Examples:
      venire rate first
      venire rate first --anchor gpt-4=1250 --bootstrap 1000
      venire rate votes.parquet --map model_a=left --map model_b=right --map winner=preferred
      venire rate first --compare --reference people.csv
    """
    from venire.arena.errors import InputError
    from venire.cli.options import write_json
    from venire.render.screen import console, show_pages_hint
    from venire.render.sections import show

    read_from = source.source(paths)
    verdicts, options = rating.read(read_from)
    if report is not None:
        _refuse_for_report(method, compare)
    asked = figures.figures()
    if compare:
        if figures != FigureOptions():
            raise InputError("--compare shows ratings alone: leave --folds, --steady, --contrast and the like out")
        comparison = verdicts.compare(method, options)
        if as_json:
            write_json(comparison.to_json())
        else:
            show(console(), comparison.sections())
        return
    if len(method) > 1:
        raise InputError("--method was given more than once: add --compare to see methods side by side")
    board = verdicts.board(method[0] if method else None, options, accuracy_baseline=accuracy_baseline, figures=asked)
    if as_json:
        write_json(board.to_json())
    else:
        screen = console()
        show(screen, board.sections())
        if read_from.store is not None:
            show_pages_hint(console(stderr=True), read_from.store)
    if report is not None:
        write_report(read_from, report, None, lambda: (verdicts, options, board))


def _refuse_for_report(methods: list[str], compare: bool) -> None:
    """Raises InputError where a report would be of another board than the one that is shown."""
    from venire.arena.errors import InputError

    if compare or len(methods) > 1:
        raise InputError("--report is of one method and compares others by itself: leave --compare out")
