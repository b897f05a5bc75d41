"""`venire export`: verdicts, texts and ratings as files: tables, pairs for training, files of another tool."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.arena import registry
from venire.arena.choices import KeptPairs
from venire.arena.errors import InputError
from venire.cli.help import METHOD, exported_names, names_of
from venire.cli.options import JSON, RAW, STORE, with_options
from venire.cli.verdict_options import RatingOptions

if TYPE_CHECKING:
    from venire.storage.transfer.formats.entry import ExportOptions

_OF_PAIRS = "Of preferences alone"
_OF_OTHERS = "Of one kind alone"


@dataclass(frozen=True)
class ToolOptions:
    """What files of other tools hold: fields of `storage.transfer.formats.entry.ExportOptions`."""

    keep: Annotated[
        KeptPairs,
        typer.Option(
            "--keep",
            rich_help_panel=_OF_PAIRS,
            help="Judgments: agreed (both orders say the same), decided (all that were read), every (each verdict a "
            "pair).",
        ),
    ] = "agreed"
    messages: Annotated[
        bool,
        typer.Option("--messages", rich_help_panel=_OF_PAIRS, help="Prompt and answers as lists of messages."),
    ] = False
    judges: Annotated[
        list[str],
        typer.Option(
            "--judge", rich_help_panel=_OF_OTHERS, help="preferences, alpaca-eval: of these judges; default all."
        ),
    ] = field(default_factory=list)
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", rich_help_panel=_OF_OTHERS, help="alpaca-eval: the model that others are compared with."
        ),
    ] = None
    pair: Annotated[
        tuple[str, str],
        typer.Option(
            "--pair",
            show_default=False,
            metavar="A B",
            rich_help_panel=_OF_OTHERS,
            help="llm-comparator: the two models of the report.",
        ),
    ] = ("", "")

    def options(self, ratings: list[dict[str, Any]]) -> ExportOptions:
        """The options of a format that is written, with the rows of a board."""
        from venire.storage.transfer.formats.entry import ExportOptions

        pair = self.pair if any(self.pair) else None
        return ExportOptions(self.keep, tuple(self.judges), self.messages, self.baseline, pair, ratings=tuple(ratings))

    def refuse_for_tables(self) -> None:
        """Raises InputError for an option that was given, of which tables take none."""
        plain = ToolOptions()
        spelt = {"judges": "--judge", "messages": "--messages", "baseline": "--baseline", "pair": "--pair"}
        for name, flag in (spelt | {"keep": "--keep"}).items():
            if getattr(self, name) != getattr(plain, name):
                raise InputError(f"tables do not take {flag}: leave it out")


@with_options()
def export(
    store: Path = STORE,
    what: list[str] = typer.Argument(
        ..., autocompletion=exported_names, help="What to write; any table or view of the store too."
    ),
    out: Path = typer.Option(
        ..., "-o", "--out", help="The file, whose ending says what it is (.parquet, .csv, .jsonl, .json), or a folder."
    ),
    campaign: str | None = typer.Option(None, "--campaign", help="Only what belongs to this campaign."),
    form: str | None = typer.Option(
        None, "--format", help="Of tables in a folder: parquet (default), csv, jsonl or arrow."
    ),
    *,
    chosen: ToolOptions,
    method: str | None = typer.Option(
        None,
        "--method",
        autocompletion=names_of(registry.METHODS),
        rich_help_panel=METHOD,
        help="ratings, dataset: how models are rated; default as `venire rate`, as are the options below.",
    ),
    rating: RatingOptions,
    raw: bool = RAW,
    force: bool = typer.Option(False, "--force", help="Replace what is there already."),
    as_json: bool = JSON,
) -> None:
    """Write what a store holds as files for others.

    Tables, preference pairs, a dataset, another tool's files. Each file gets its name only when it is whole.

    Examples:
      venire export first battles -o battles.parquet
      venire export first preferences --judge gpt-4.1 -o pairs.jsonl
      venire export first dataset -o my-dataset
      venire export first alpaca-eval --baseline oak -o leaderboard.csv
    """
    from dataclasses import asdict

    from venire.cli.options import write_json
    from venire.storage.transfer.exporting import RATINGS, export_format, export_tables
    from venire.storage.transfer.formats import with_writers

    tools = [one for one in what if one in with_writers()]
    if tools and len(what) > 1:
        raise InputError(f"{tools[0]} has files of its own: export it by itself")
    if not {RATINGS, "dataset"} & set(what):
        _refuse_to_rate(method, rating)
    ratings: list[dict[str, Any]] = []
    if RATINGS in what:
        ratings = _ratings(store, campaign, method, rating)
    if tools:
        if form is not None:
            raise InputError(f"--format is for tables; {tools[0]} has files of its own: leave it out")
        if tools[0] == "dataset":
            ratings = _ratings_if_any(store, campaign, method, rating)
        made = export_format(
            store, out, tools[0], campaign=campaign, options=chosen.options(ratings), force=force, raw=raw
        )
    else:
        chosen.refuse_for_tables()
        made = export_tables(store, out, what, form=form, campaign=campaign, ratings=ratings, force=force, raw=raw)
    if as_json:
        write_json({"store": str(store), "files": [asdict(one) for one in made]})
    else:
        for one in made:
            typer.echo(f"{one.path}: {one.rows:,} rows, {one.bytes / 1e3:,.0f} kB")


def _refuse_to_rate(method: str | None, rating: RatingOptions) -> None:
    """Raises InputError for an option of ratings that was given, where none are written."""
    from venire.ratings.inference.options import option_flag

    plain = RatingOptions()
    given = [option_flag(name) for name in vars(plain) if getattr(rating, name) != getattr(plain, name)]
    if method is not None or given:
        first = "--method" if method is not None else given[0]
        raise InputError(f"{first} is for ratings and dataset: leave it out")


def _ratings(store: Path, campaign: str | None, method: str | None, rating: RatingOptions) -> list[dict[str, Any]]:
    """The rows of the board, each with the method and the origin of its verdicts."""
    from venire.reports.board.source import VerdictSource

    verdicts, options = rating.read(VerdictSource((store,), campaign))
    board = verdicts.board(method, options)
    more = {"method": board.method, "level": board.diagnostics.level, "verdicts": board.verdicts}
    return [{**row, **more} for row in board.rows()]


def _ratings_if_any(
    store: Path, campaign: str | None, method: str | None, rating: RatingOptions
) -> list[dict[str, Any]]:
    """The same for a dataset, which can do without: the reason is then reported."""
    try:
        return _ratings(store, campaign, method, rating)
    except InputError as error:
        if method is not None or rating != RatingOptions():
            raise
        typer.echo(f"written without ratings: {error}", err=True)
        return []
