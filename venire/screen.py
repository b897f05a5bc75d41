"""Where the commands print: a console, money and time in words, and progress on a terminal or in a log."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from venire.arena.battles import Statistics

__all__ = ["console", "duration", "money", "plain", "progress"]


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


def plain(text: str) -> str:
    """A name or a provider's message with its control characters shown instead of obeyed."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def money(nano: int) -> str:
    """Nano-dollars as dollars."""
    dollars = nano / 1e9
    return f"${dollars:,.2f}" if dollars >= 1 or nano == 0 else f"${dollars:.4f}"


def duration(seconds: float) -> str:
    """Seconds in words."""
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


@contextmanager
def progress(screen: Console) -> Iterator[Callable[[Statistics], None]]:
    """A bar on a terminal; elsewhere a line at every tenth of the way."""
    if not screen.is_terminal:
        last = [-1]

        def line(now: Statistics) -> None:
            tenth = 10 * (now.settled + now.failed) // max(1, now.planned)
            if tenth > last[0]:
                last[0] = tenth
                screen.print(f"  {_told(now)}")

        yield line
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=screen, transient=True) as bar:
        task = bar.add_task("", total=None)

        def move(now: Statistics) -> None:
            bar.update(task, total=now.planned, completed=now.settled + now.failed, description=_counts(now))

        yield move


def _told(now: Statistics) -> str:
    return f"{now.settled + now.failed}/{now.planned} trials, {_counts(now)}, {duration(now.elapsed)}"


def _counts(now: Statistics) -> str:
    return f"{now.calls} calls, {now.in_flight} in flight, {now.retries} retries, {money(now.spent)}"
