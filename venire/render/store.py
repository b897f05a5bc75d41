"""What is looked up in a store, for eyes: checks, merges, rows of a query, and its tables."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console

from venire.arena.wording import money, plain
from venire.render.screen import tabulate
from venire.storage.care.checking import Checked
from venire.storage.read.selecting import Selected
from venire.storage.transfer.merging import KINDS, Merged

_SHORTEST_CELL = 20
"""Columns that a cell keeps on the narrowest terminal."""
_GAP = "  "


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
    kinds = [kind for kind in KINDS if kind != "votes" or made.rows[kind]]
    head = ("store", *kinds, "paid")
    rows = [(plain(one.path), *(f"{one.rows[kind]:,}" for kind in kinds), money(one.paid)) for one in made.sources]
    rows.append((plain(made.path), *(f"{made.rows[kind]:,}" for kind in kinds), money(made.paid_in_all)))
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


def show_rows(screen: Console, found: Selected) -> None:
    """A table where it fits the terminal, or where there is none; else a block for each row, a line for each cell.

    On a terminal what is longer than a line is cut, with a mark.
    """
    names = [plain(name) for name in found.columns]
    rows = [[plain(cell_text(value, null="NULL")) for value in row] for row in found.rows]
    room = screen.width - max(map(cell_len, names), default=0) - len(_GAP)
    cut = screen.is_terminal and any(cell_len(cell) > room for row in rows for cell in row)
    if cut:
        rows = [[_cut(cell, max(room, _SHORTEST_CELL)) for cell in row] for row in rows]
    widths = [max(map(cell_len, cells)) for cells in zip(names, *rows, strict=True)]
    if sum(widths) + len(_GAP) * (len(widths) - 1) <= screen.width or not screen.is_terminal:
        numbers = [_all_numbers(values) for values in zip(*found.rows, strict=True)] or [False] * len(names)
        for cells in (names, *rows):
            screen.print(_line(cells, widths, numbers), soft_wrap=True)
    else:
        head = max(map(cell_len, names))
        for number, row in enumerate(rows, start=1):
            screen.print(f"{'' if number == 1 else chr(10)}row {number}", style="dim")
            for name, cell in zip(names, row, strict=True):
                screen.print(f"{name}{' ' * (head - cell_len(name))}{_GAP}{cell}", soft_wrap=True)
    whole = "; longer cells end in ...: --json and --csv have them whole" if cut else ""
    screen.print(f"{len(rows):,} {'row' if len(rows) == 1 else 'rows'}{whole}", style="dim")


def _cut(cell: str, room: int) -> str:
    """A cell of at most so many columns of the screen."""
    return cell if cell_len(cell) <= room else set_cell_size(cell, room - 3).rstrip() + "..."


def _all_numbers(values: Sequence[Any]) -> bool:
    return all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values)


def _line(cells: Sequence[str], widths: Sequence[int], numbers: Sequence[bool]) -> str:
    padded = []
    for cell, width, number in zip(cells, widths, numbers, strict=True):
        space = " " * (width - cell_len(cell))
        padded.append(space + cell if number else cell + space)
    return _GAP.join(padded).rstrip()


def show_relations(screen: Console, found: Selected) -> None:
    """The tables and views of a store with their columns."""

    width = screen.width if screen.is_terminal else 10**6
    for kind in ("view", "table"):
        screen.print(f"{kind}s", style="bold")
        for name, _, columns, types in (row for row in found.rows if row[1] == kind):
            described = ", ".join(f"{column} {of}" for column, of in zip(columns, types, strict=True))
            for line in textwrap.wrap(f"  {name}: {described}", width, subsequent_indent="    "):
                screen.print(line)


def cell_text(value: Any, *, null: str) -> str:
    """A value as a cell: what is nested as JSON, nothing as `null`."""
    if value is None:
        return null
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
