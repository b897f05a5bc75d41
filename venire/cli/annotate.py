"""`venire annotate`: a blind page on which people vote, in one file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from venire.arena.choices import AnnotationSample
from venire.cli.options import JSON, STORE, with_options, write_json
from venire.cli.verdict_options import Campaign

if TYPE_CHECKING:
    from venire.annotation import AnnotationPages, VotesNeeded


@dataclass(frozen=True)
class PageOptions:
    """What is on the pages: keywords of `annotation.annotation_pages`."""

    sample: Annotated[
        AnnotationSample,
        typer.Option(
            "--sample",
            help="Battles by chance, those on which judges differ most, or those of models whose order is least "
            "certain.",
        ),
    ] = "random"
    count: Annotated[
        int | None, typer.Option("--count", min=1, help="Battles on a page; default: 100, or all there are.")
    ] = None
    annotators: Annotated[
        int, typer.Option("--annotators", min=1, max=999, help="Make a page for each of so many people.")
    ] = 1
    overlap: Annotated[
        float,
        typer.Option("--overlap", min=0.0, max=1.0, help="Share of the battles of a page that are on all pages."),
    ] = 0.2
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, help="Of sample, order and sides; default: the campaign's own, or 0."),
    ] = None


@with_options()
def annotate(
    store: Path = STORE,
    output: Path = typer.Option(
        Path("page.html"), "--output", "-o", help="The page; of several annotators page-1.html, page-2.html and so on."
    ),
    *,
    pages: PageOptions,
    width: float | None = typer.Option(
        None, "--width", help="Make no page: say how many votes an interval of agreement so wide needs, such as 0.1."
    ),
    human: str | None = typer.Option(
        None,
        "--human",
        metavar="NAME",
        help="With --width: the people whose votes it learns from; default: the only ones.",
    ),
    campaign: Campaign = None,
    force: bool = typer.Option(False, "--force", help="Replace pages that are there already."),
    as_json: bool = JSON,
) -> None:
    """Make a page on which people vote blindly.

    They do not see whose answers they read. One file, without a server: it keeps votes in the reader's browser and
    hands out a table, which `venire import votes` takes in.

    Examples:
      venire annotate first -o page.html
      venire annotate first -o page.html --sample disputed --count 40
      venire annotate first -o page.html --annotators 3 --overlap 0.2
      venire annotate first --width 0.1    # how many votes that takes
    """
    from venire.annotation import annotation_pages, votes_needed
    from venire.arena.errors import InputError
    from venire.live.page_maker import refuse_without_packages
    from venire.storage.store.opening import reading

    if width is not None:
        with reading(store) as opened:
            needed = votes_needed(opened, width, campaign=campaign, human=human)
        _show_needed(needed, as_json)
        return
    if human is not None:
        raise InputError("--human says whose votes --width learns from: add --width, or leave it out")
    refuse_without_packages()
    people = range(1, pages.annotators + 1)
    paths = [output] if len(people) == 1 else [_numbered(output, number) for number in people]
    _refuse_there(paths, force)
    with reading(store) as opened:
        made = annotation_pages(opened, campaign=campaign, **vars(pages))
    for path, page in zip(paths, made.pages, strict=True):
        path.write_text(page.html, encoding="utf-8")
    if as_json:
        write_json(_document(made, paths, pages.sample))
        return
    _show(made, paths, pages.sample, store)


def _refuse_there(paths: list[Path], force: bool) -> None:
    """Raises InputError for a page that is there: somebody may be voting on it, and another would ask other battles."""
    from venire.arena.errors import InputError

    for path in paths:
        if path.is_dir():
            raise InputError(f"{path} is a folder: name a file in it, such as {path / 'page.html'}")
        if not path.parent.is_dir():
            raise InputError(f"the folder {path.parent} of the page {path.name} does not exist: make it first")
        if path.exists() and not force:
            raise InputError(f"{path} is there already: name another file with -o, or replace it with --force")


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}-{number}{path.suffix}")


def _document(made: AnnotationPages, paths: list[Path], sample: str) -> dict[str, object]:
    return {
        "pages": [{"file": str(path), "page": page.digest} for path, page in zip(paths, made.pages, strict=True)],
        "sample": sample,
        "count": made.count,
        "shared": made.shared,
        "battles": made.battles,
        "available": made.available,
        "instructions": made.instructions,
        "appearances": dict(sorted(made.appearances.items())),
        "judged": made.judged,
    }


def _show(made: AnnotationPages, paths: list[Path], sample: str, store: Path) -> None:
    from shlex import quote

    from venire.arena.wording import plain
    from venire.reports.wording import counted

    for path in paths:
        common = f", {made.shared} of them on every page" if len(paths) > 1 else ""
        typer.echo(f"{plain(str(path))}: {counted(made.count, 'battle')}{common}, {path.stat().st_size / 1000:,.0f} kB")
    seen = made.appearances.values()
    which = "judged battles" if made.judged else "battles, none of them judged"
    typer.echo(
        f"{sample}: {made.battles:,} of {made.available:,} {which}, on {counted(made.instructions, 'instruction')}; "
        f"each of {len(seen)} models in {min(seen)} to {max(seen)}"
    )
    if made.high is not None:
        what = "judges differ on" if sample == "disputed" else "of models whose order is not certain at 95 %:"
        typer.echo(f"{what} {made.high:,} of them")
    typer.echo(f"then: venire import votes TABLE... --as NAME --store {quote(str(store))}")


def _show_needed(needed: VotesNeeded, as_json: bool) -> None:
    from dataclasses import asdict

    from venire.arena.wording import plain

    if as_json:
        write_json(asdict(needed))
        return
    typer.echo(f"same winner as a judge, an interval {needed.width:g} wide at 95 %:")
    for judge, votes in needed.by_judge.items():
        typer.echo(f"  {plain(judge)}: {votes:,} votes, by the agreement of the {needed.measured:,} that there are")
    for share, votes in needed.beforehand.items() if not needed.by_judge else ():
        typer.echo(
            f"  {votes:,} votes if they agree in {share:.0%}; more where an instruction has several votes, or ties"
        )
    typer.echo("ratings by people, half of the models within:")
    for half, number in needed.ratings.items():
        reached = "not reached by more votes on these instructions" if number is None else f"{number:,} votes"
        typer.echo(f"  {half:.0f} Elo points: {reached}")
    typer.echo(f"there are {needed.available:,} battles to vote on; beyond them several people vote on one")
