"""`venire report`: what a board comes to, in one file that one can publish."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.arena.hints import command_words
from venire.arena.registry import METHODS
from venire.cli.help import METHOD, READ, names_of, verdict_formats
from venire.cli.options import named_stores, with_options
from venire.cli.verdict_options import RatedSource, RatingOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from venire.ratings.inference.options import Options
    from venire.reports.board.board import Board
    from venire.reports.board.source import VerdictSource
    from venire.reports.board.verdicts import Verdicts

    Rated = tuple[Verdicts, Options, Board]


class ReportForm(StrEnum):
    """What a report is written as."""

    HTML = "html"
    MD = "md"
    JSON = "json"


@dataclass(frozen=True)
class ReportedSource(RatedSource):
    """A source whose format is `--file-format`, since `--format` is the report's own."""

    form: Annotated[
        str | None,
        typer.Option(
            "--file-format",
            rich_help_panel=READ,
            autocompletion=verdict_formats,
            help="The format of the files that are read; default: by their columns.",
        ),
    ] = None


@with_options()
def report(
    paths: list[Path] = typer.Argument(
        ...,
        metavar="PATH...",
        callback=named_stores,
        help="A store, its campaign file or the folder of that file; a table of battles or ballots, or files of "
        "another format, as of `venire rate`.",
    ),
    out: Path | None = typer.Option(None, "--out", "-o", help="The file to write; - is standard output."),
    output: ReportForm | None = typer.Option(
        None, "--format", help="Default: by the end of the file's name, else html; md is for a pull request."
    ),
    method: str | None = typer.Option(
        None, "--method", autocompletion=names_of(METHODS), rich_help_panel=METHOD, help="As of `venire rate`."
    ),
    against: Path | None = typer.Option(
        None, "--against", metavar="PATH", help="An earlier store or table: differences, with intervals."
    ),
    against_campaign: str | None = typer.Option(
        None,
        "--against-campaign",
        metavar="NAME",
        help="Which campaign of that store, which may be the same one; default: as --campaign.",
    ),
    split: str | None = typer.Option(
        None,
        "--split",
        metavar="COLUMN=VALUE",
        help='Differences within the source: these verdicts are "before", all others "now". Of a store: judge=, '
        "category=, before=DATE.",
    ),
    figures: Path | None = typer.Option(
        None, "--figures", metavar="FOLDER", help="Also each chart there: SVG, PNG and its Vega-Lite specification."
    ),
    *,
    source: ReportedSource,
    rating: RatingOptions,
) -> None:
    """Write a report: who leads, how sure that is, what to doubt.

    And by which judges, at what cost. One HTML file without scripts that fetches nothing; or Markdown, or the same as
    one JSON document. Nothing is asked and nothing is paid.

    Examples:
      venire report first -o report.html
      venire report first -o report.html --figures figures
      venire report first -o report.html --split judge=gpt-4o
      venire report votes.csv --map winner=preferred -o votes.html
    """
    from dataclasses import replace

    from venire.arena.errors import InputError

    read_from = source.source(paths)
    if against_campaign is not None and against is None:
        raise InputError("--against-campaign names a campaign of a store: name the store with --against PATH")
    if split is not None and against is not None:
        raise InputError("--split compares parts of what is reported, --against two sources: give one of them")
    earlier = None
    if against is not None:
        store = named_stores([against])[0]
        earlier = replace(read_from, paths=(store,), campaign=against_campaign or source.campaign)
    with command_words(form="--file-format"):

        def make() -> Rated:
            verdicts, options = rating.read(read_from)
            verdicts.refuse_grades_alone()
            return verdicts, options, verdicts.board(method, options)

        board = write_report(read_from, out, output, make, before=earlier, split=split)
        if figures is not None:
            from venire.pages.chart_files import write_figures

            drawn = write_figures(board, figures)
            typer.echo(f"{figures}: {', '.join(drawn)}", err=True)


def write_report(
    source: VerdictSource,
    out: Path | None,
    form: ReportForm | None,
    make: Callable[[], Rated],
    *,
    before: VerdictSource | None = None,
    split: str | None = None,
) -> Board:
    """Make a report and write it to a file or to standard output; the board that it is of.

    `make` gives it, once the file is known to be one that can be written, with its verdicts and options. Raises
    InputError for HTML without a file, for a file that is one of the sources, and as `report_document` does.
    """
    import shlex
    import sys

    from venire.arena.errors import InputError

    chosen = form or _form_of(out)
    if chosen is ReportForm.HTML and out is None:
        raise InputError("a report in HTML goes to a file: add -o report.html (or -o - for standard output)")
    to_file = out is not None and str(out) != "-"
    if out is not None and to_file:
        if any(isinstance(one, Path) and one.resolve() == out.resolve() for one in source.paths):
            raise InputError(f"{out} is what the report is made of: write it to another file")
        if out.is_dir() or not out.resolve().parent.is_dir():
            raise InputError(f"{out}: name a file in a folder that is there")
    _need_extra()
    from venire.reports.documents.changes import changes_section, split_section
    from venire.reports.documents.report import report_document

    command = shlex.join(["venire", *sys.argv[1:]])
    with source.opened():
        verdicts, options, board = make()
        document = report_document(source, options=options, command=command, made=(verdicts, board))
        if before is not None:
            document["changes"] = changes_section(source, before, board.method, options)
        elif split is not None:
            document["changes"] = split_section(source, split, board.method, options)
    text = _rendered(document, chosen)
    if out is not None and to_file:
        part = out.with_name(out.name + ".part")
        part.write_text(text, encoding="utf-8", errors="replace")
        part.replace(out)
        typer.echo(f"{out} ({len(text.encode('utf-8', 'replace')) / 1e3:,.0f} kB)", err=True)
    else:
        typer.echo(text.encode("utf-8", "replace").decode("utf-8"), nl=not text.endswith("\n"))
    return board


def _form_of(out: Path | None) -> ReportForm:
    suffix = "" if out is None else out.suffix.lower()
    return {".md": ReportForm.MD, ".json": ReportForm.JSON}.get(suffix, ReportForm.HTML)


def _need_extra() -> None:
    from importlib.util import find_spec

    from venire.arena.errors import InputError

    if missing := [name for name in ("jinja2", "markupsafe") if find_spec(name) is None]:
        raise InputError(f"a report needs {', '.join(missing)}: pip install 'venire[report]'")


def _rendered(document: dict[str, Any], form: ReportForm) -> str:
    if form is ReportForm.JSON:
        import json

        return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if form is ReportForm.MD:
        from venire.pages.report_page import report_markdown

        return report_markdown(document)
    from venire.pages.report_page import report_html

    return report_html(document)
