"""What `venire store` prints for eyes."""

from __future__ import annotations

import shlex
from pathlib import Path

from rich.console import Console

from venire.render.screen import tabulate
from venire.storage.care.checking import Checked
from venire.storage.transfer.merging import KINDS, Merged
from venire.wording import money, plain

__all__ = ["show_checked", "show_merged"]


def show_checked(screen: Console, store: Path, found: Checked) -> None:
    """One line for each thing that was looked at, then notes and accounts."""
    for one in found.findings:
        looked = "" if one.looked is None else f" (of {one.looked:,} looked at; all: --full)"
        if one.count:
            screen.print(f"problem  {one.what}: not so for {one.count:,}{looked}, such as {plain(one.example or '')}")
        else:
            screen.print(f"ok       {one.what}{looked}")
    for note in found.notes:
        example = f", such as {plain(note.example)}" if note.example else ""
        screen.print(f"note     {plain(note.what)}" + (f": {note.count:,}{example}" if example else ""))
    for campaign, nano in found.paid.items():
        screen.print(f"paid     {money(nano)} by {plain(campaign)}")
    wrong = sum(1 for one in found.findings if one.count)
    screen.print(f"\n{plain(str(store))}: " + ("all is well" if found.sound else f"problems: {wrong}"))


def show_merged(screen: Console, made: Merged) -> None:
    """What came from where, what several stores had, and what was paid in all."""
    head = ("store", *KINDS, "paid")
    rows = [(plain(one.path), *(f"{one.rows[kind]:,}" for kind in KINDS), money(one.paid)) for one in made.sources]
    rows.append((plain(made.path), *(f"{made.rows[kind]:,}" for kind in KINDS), money(made.paid_in_all)))
    tabulate(screen, head, rows)
    screen.print(f"\n{made.shared_attempts:,} calls were on record in several stores and count once")
    if made.doubles:
        screen.print(f"{made.doubles:,} steps have more than one answer: the first sent counts, all are kept and paid")
    for campaign, nano in made.paid.items():
        screen.print(f"paid {money(nano)} by {plain(campaign)}")
    if made.mixed:
        screen.print(
            f"{made.mixed:,} settled trials have replies of several stores: read their verdicts again with "
            f"`venire reparse {shlex.quote(made.path)}`"
        )
