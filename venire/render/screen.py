"""Where the commands print: a console, tables, and progress on a terminal or in a log."""

from __future__ import annotations

import io
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column, Table

from venire.arena.battles import Statistics
from venire.arena.wording import money, plain
from venire.wording import duration, is_reported_round, retries, time_left

FAILED = "bold red"
"""The style of what failed or worries; the words say so too, since pipes and NO_COLOR have none."""


def console(*, stderr: bool = False) -> Console:
    """A console as wide as its terminal, or 130 columns where there is none; brackets are shown as they stand."""
    stream = (sys.stderr if stderr else sys.stdout) or io.StringIO()  # None where it was closed
    return Console(
        file=stream,
        width=None if stream.isatty() else 130,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=not stream.isatty(),
    )


_GAP = 2
_SHORTEST_NAME = 8
_BETWEEN_TURNS = 60.0
"""Seconds after a line that says a lane is slowed, or is no more, in which the contrary has no line of its own."""
_ROOM_FOR_A_BAR = 120


def tabulate(
    screen: Console,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    name: int = 0,
    title: str | None = None,
    unless_all: str | None = None,
) -> None:
    """Print a table of figures, all but column `name` to the right, without cutting a word of them.

    Where the screen is too narrow, headings are broken between words, then names anywhere; at last rows become lines.
    Columns in which every cell is `unless_all`, such as a price of nothing, are left out.
    """
    columns = [one for one in zip(head, *rows, strict=True) if unless_all is None or {*one[1:]} != {unless_all}]
    head, *rows = zip(*columns, strict=True)
    full = [max(map(cell_len, column)) for column in columns]
    tight = [max(cell_len(word) for cell in column for word in cell.split() or [""]) for column in columns]
    room = screen.width - _GAP * (len(columns) - 1)
    for widths in (full, tight):
        left = room - sum(widths) + widths[name]
        if left >= min(full[name], _SHORTEST_NAME):
            break
    else:
        _as_lines(screen, head, rows, name, title)
        return
    if title is not None:  # a table's own title is broken at the width of the table
        screen.print(title, style="italic")
    table = Table(box=None, pad_edge=False, padding=(0, _GAP // 2))
    for number, (heading, width) in enumerate(zip(head, widths, strict=True)):
        if number == name:
            table.add_column(heading, width=min(full[name], left), overflow="fold")
        else:
            table.add_column(heading, width=width, justify="right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    screen.print(table)


def _as_lines(
    screen: Console, head: Sequence[str], rows: Sequence[Sequence[str]], name: int, title: str | None
) -> None:
    if title is not None:
        screen.print(title)
    for row in rows:
        figures = [f"{heading} {cell}".strip() for heading, cell in zip(head, row, strict=True) if cell]
        figures[name : name + 1] = []
        screen.print(f"{row[name]}: {', '.join(figures)}")


def warning_printer(screen: Console) -> Callable[[str], None]:
    """Prints sentences about what goes wrong, a line each."""
    return lambda message: screen.print(plain(message))


@contextmanager
def progress(screen: Console) -> Iterator[Callable[[Statistics], None]]:
    """A bar on a terminal; elsewhere a line at every tenth of the way, of rounds those alone that are reported.

    A line too says that rate-limit responses begin to slow a lane, or do so no more: the next tenth may be hours off.
    """
    if not screen.is_terminal:
        last, shown_slowed, quiet_until = (0, -1), False, 0.0

        def line(now: Statistics) -> None:
            nonlocal last, shown_slowed, quiet_until
            tenth = (now.round, 10 * (now.settled + now.failed) // max(1, now.planned))
            turned = bool(now.slowed) != shown_slowed and now.elapsed >= quiet_until
            due = tenth > last and (not now.round or is_reported_round(now.round))
            last = max(last, tenth)
            if turned or due:
                if bool(now.slowed) != shown_slowed:
                    shown_slowed, quiet_until = bool(now.slowed), now.elapsed + _BETWEEN_TURNS
                screen.print(f"  {_progress_line(now)}")

        yield line
        return
    whole = [Column(no_wrap=True) for _ in range(2)]  # on a narrow screen the bar gives way, and no figure
    columns = (
        *([BarColumn()] if screen.width >= _ROOM_FOR_A_BAR else []),
        MofNCompleteColumn(table_column=whole[0]),
        TextColumn("{task.description}", table_column=Column(no_wrap=False, overflow="fold")),
        TimeElapsedColumn(table_column=whole[1]),
        TextColumn("{task.fields[left]}", table_column=Column(no_wrap=False, overflow="fold")),
    )
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("", total=None, left="")

        def move(now: Statistics) -> None:
            done = now.settled + now.failed
            bar.update(task, total=now.planned, completed=done, description=_counts(now), left=time_left(now))

        yield move


@contextmanager
def counting(screen: Console, what: str) -> Iterator[Callable[[int, int], None]]:
    """How many of how many are done, and how long the rest takes at this pace.

    A bar on a terminal; elsewhere a line at every tenth of the way.
    """
    if not screen.is_terminal:
        last, began = [-1], monotonic()

        def line(done: int, whole: int) -> None:
            if 10 * done // whole > last[0]:
                last[0] = 10 * done // whole
                left = duration((monotonic() - began) / max(1, done) * (whole - done))
                screen.print(f"  {done}/{whole} {what}{f', about {left} left' if done < whole else ''}")

        yield line
        return
    with Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(what),
        TimeElapsedColumn(),
        TextColumn("about"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=screen,
        transient=True,
    ) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, whole: bar.update(task, total=whole, completed=done)


def _progress_line(now: Statistics) -> str:
    words = time_left(now)
    left = f", {words}" if words else ""
    return f"{now.settled + now.failed:,}/{now.planned:,} trials, {_counts(now)}, {duration(now.elapsed)}{left}"


def _counts(now: Statistics) -> str:
    round_now = f"round {now.round}, {plain(now.phase)}: " if now.round else ""
    out = f"{now.in_flight:,} in flight" + (f", {now.batched:,} in batches" if now.batched else "")
    counts = f"{round_now}{now.calls:,} calls, {out}, {retries(now.retries)}, {money(now.spent)}"
    return "; ".join((counts, *map(plain, now.slowed)))


def show_pages_hint(screen: Console, store: Path) -> None:
    """The command that shows every call of a store on pages."""
    screen.print(f"to read every call: venire serve {plain(shlex.quote(os.path.relpath(store)))}")
