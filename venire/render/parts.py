"""Lists of parts that a registry holds: rating methods and file formats."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from venire.arena.wording import plain
from venire.ratings.inference.options import option_flag
from venire.ratings.methods.methods import Method
from venire.storage.transfer.exporting import FORMS, RATINGS, TABLES
from venire.storage.transfer.formats.entry import Format

_VERBS = {"texts": "import", "verdicts": "rate", "written": "export"}


def show_methods(screen: Console, methods: Mapping[str, Method]) -> None:
    """A line for each rating method, with its own options below."""
    width = max(map(len, methods))
    for name, one in methods.items():
        screen.print(f"{name:<{width}}  {plain(one.purpose)}")
        if one.options:
            own = ", ".join(option_flag(option) for option in sorted(one.options))
            screen.print(f"{'':<{width}}  takes {own}", style="dim")
    screen.print("\nvenire rate PATH --method NAME; assumptions and failures of each: docs/ratings.md", style="dim")


def show_formats(screen: Console, formats: Mapping[str, Format]) -> None:
    """A line for each format, with the verbs that take it."""
    width = max(map(len, formats))
    for name, one in formats.items():
        verbs = [verb for use, verb in _VERBS.items() if format_uses(one)[use]]
        screen.print(f"{name:<{width}}  {plain(one.purpose)}")
        if one.writes:
            screen.print(f"{'':<{width}}  {plain(one.writes)}")
        places = " or ".join([*(f".{ending}" for ending in one.endings), "a folder"])
        written = f" ({places})" if one.write is not None else ""
        screen.print(f"{'':<{width}}  for venire {', '.join(verbs)}{written}", style="dim")
    tables = f"{', '.join((*TABLES, RATINGS))} as {', '.join(f'.{form}' for form in FORMS)}"
    screen.print(f"\nvenire export writes tables as well: {tables}", style="dim")
    screen.print("fields of each: docs/formats.md; tables of our own columns need no format", style="dim")


def format_uses(form: Format) -> dict[str, bool]:
    """What of a format is read, texts or verdicts, and whether a store is written in it."""
    return {"texts": form.read is not None, "verdicts": bool(form.dialects), "written": form.write is not None}
