"""`venire serve`: pages of stores at rest, to read every call."""

from __future__ import annotations

from pathlib import Path

import typer

__all__ = ["serve"]


def serve(
    stores: list[Path] = typer.Argument(..., metavar="STORE...", help="Stores, campaign files, or their folders."),
    at: str = typer.Option(
        "", "--at", metavar="HOST:PORT", help="Where to listen; a host asks for a token. 127.0.0.1:8377 unless given."
    ),
) -> None:
    """Serve pages of stores: boards, judges, every call, until Ctrl-C.

    Nothing is written. A store is open while somebody looks at it; half a minute later a run can begin on it.
    A campaign that runs shows its own pages with `venire run FILE --serve`.

    Examples:
      venire serve first
      venire serve first/campaign.duckdb second.duckdb --at 127.0.0.1:9000
      venire serve first --at 0.0.0.0:8377       # prints a link that works once
    """
    import asyncio

    from venire.arena.errors import InputError
    from venire.cli.options import named_stores
    from venire.live.guard import Guard, parse_address
    from venire.live.library import Library
    from venire.live.page_maker import refuse_without_packages
    from venire.live.pages import Pages
    from venire.live.server import serve_pages
    from venire.loops import stop_on_signals
    from venire.orchestrator.recording.ending import StopRequest
    from venire.render.screen import console
    from venire.wording import plain

    refuse_without_packages()
    guard = Guard.of(parse_address(at or None))
    paths = named_stores(stores)
    if missing := [path for path in paths if not path.is_file()]:
        raise InputError(f"there is no store {missing[0]}: `venire run FILE` makes one")
    pages = Pages(Library.of_paths(paths), guard)
    screen = console(stderr=True)

    async def go() -> None:
        stop = StopRequest()
        with stop_on_signals(stop, None):
            async with serve_pages(pages):
                screen.print(f"pages: {plain(guard.link())}", soft_wrap=True)
                screen.print("Ctrl-C ends this")
                await stop.gently.wait()

    asyncio.run(go())
