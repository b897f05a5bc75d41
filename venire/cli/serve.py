"""`venire serve`: pages of stores, at rest or while a campaign runs, to read every call."""

from __future__ import annotations

from pathlib import Path

import typer

from venire.arena.choices import AnnotationSample

_VOTES = "Of votes alone"


def serve(
    stores: list[Path] = typer.Argument(..., metavar="STORE...", help="Stores, campaign files, or their folders."),
    at: str = typer.Option(
        "", "--at", metavar="HOST:PORT", help="Where to listen; a host asks for a token. 127.0.0.1:8377 unless given."
    ),
    annotate: bool = typer.Option(
        False, "--annotate", help="Let people vote blind on the stores; their votes are written there."
    ),
    people: str = typer.Option(
        "people", "--as", metavar="NAME", rich_help_panel=_VOTES, help="What the people who vote are called."
    ),
    sample: AnnotationSample = typer.Option(
        "random", "--sample", rich_help_panel=_VOTES, help="Which battles they vote on, as `venire annotate` has them."
    ),
    count: int | None = typer.Option(
        None, "--count", min=1, rich_help_panel=_VOTES, help="Battles for each; default: 100, or all there are."
    ),
    seed: int | None = typer.Option(
        None, "--seed", min=0, rich_help_panel=_VOTES, help="Of sample, order and sides; default: the campaign's own."
    ),
) -> None:
    """Serve pages of stores: boards, judges, every call.

    Until Ctrl-C. Start it before, during or after a run: it follows every run on these stores, and hides from none.
    Nothing is written, unless people vote, and a store is given up as soon as another command asks for it.

    Examples:
      venire serve first
      venire serve first/campaign.duckdb second.duckdb --at 127.0.0.1:9000
      venire serve first --at 0.0.0.0:8377       # prints a link that works once
      venire serve first --annotate --as crowd   # people vote at the address that it prints
    """
    import asyncio

    from venire.arena.errors import InputError
    from venire.arena.wording import plain
    from venire.cli.options import named_stores
    from venire.live.guard import Guard, parse_address
    from venire.live.library import Library
    from venire.live.page_maker import refuse_without_packages
    from venire.live.pages import Pages
    from venire.live.server import serve_pages
    from venire.live.voting import Voting, refuse_not_writable
    from venire.loops import stop_on_signals
    from venire.orchestrator.recording.ending import StopRequest
    from venire.render.screen import console
    from venire.storage.transfer.casting import group_name

    refuse_without_packages()
    guard = Guard.of(parse_address(at or None))
    paths = named_stores(stores)
    missing = [path for path in paths if not path.is_file()]
    if wrong := [path for path in missing if not path.parent.is_dir() or path in stores]:
        raise InputError(f"there is no store {wrong[0]}: `venire run FILE` makes one, whose file can be named before")
    voting = None
    if annotate:
        refuse_not_writable(paths)
        voting = Voting(group_name(people), sample, count, seed)
    elif (people, sample, count, seed) != ("people", "random", None, None):
        raise InputError("--as, --sample, --count and --seed are for votes: add --annotate, or leave them out")
    pages = Pages(Library.of_paths(paths), guard, voting=voting)
    screen = console(stderr=True)

    async def go() -> None:
        stop = StopRequest()
        with stop_on_signals(stop, None):
            async with serve_pages(pages):
                screen.print(f"pages: {plain(guard.link())}", soft_wrap=True)
                for slug in pages.library.stores if voting is not None else ():
                    screen.print(f"votes: {plain(guard.page(f'/s/{slug}/annotate'))}", soft_wrap=True)
                for path in missing:
                    screen.print(
                        f"no store {plain(str(path))} yet: its pages come when a run has begun", soft_wrap=True
                    )
                screen.print("Ctrl-C ends this")
                await stop.gently.wait()

    asyncio.run(go())
