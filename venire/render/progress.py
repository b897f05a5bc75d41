"""A run as its watchers see it: bars on a terminal, a line now and then elsewhere, a sentence at its end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from time import monotonic
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from venire.live.client import Owner, SilentOwnerError
from venire.render.interim import told_last
from venire.render.screen import duration, money, plain, retries

__all__ = ["show_run"]

_JUDGES_SHARE = 20
"""The progress of judges is a query of the store: it may take one part in so many of the time."""


def show_run(screen: Console, owner: Owner, interval: float) -> bool:
    """Look on until the run ends, and say how it did; whether it told so itself.

    Raises SilentOwnerError where nobody answers from the start.
    """
    last: dict[str, Any] | None = None
    told: list[str] = []
    try:
        with Live(console=screen, auto_refresh=False) if screen.is_terminal else contextlib.nullcontext() as live:
            for last, judges, known in _looks(owner, interval):
                if live is not None:
                    live.update(_picture(last, judges, known), refresh=True)
                elif not last["ended"]:
                    screen.print(f"{_done(last)}, {_counts(last)}")
                    if known != told:
                        screen.print("\n".join(known))
                        told = known
    except SilentOwnerError:
        if last is None:
            raise
        screen.print(f"the run has ended without notice, last seen at {_done(last)}: the same `venire run` goes on")
        return False
    assert last is not None  # the owner sends one line at least
    ending = last["ending"] or "an error stopped it"
    screen.print(f"the run has ended: {ending}; {_done(last)}, {last['calls']:,} calls, {money(last['spent'])}")
    return True


def _looks(owner: Owner, interval: float) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]], list[str]]]:
    """The counters as often as wanted, each with the latest known progress of the judges and look at the plan."""
    judges: list[dict[str, Any]] = []
    known: list[str] = []
    next_look = 0.0
    for now in owner.watch(interval):
        if (begun := monotonic()) >= next_look and not now["ended"]:
            with contextlib.suppress(SilentOwnerError):  # the run may be ending: its last line is still to come
                found = [one for one in owner.status()["campaigns"] if one["campaign"] == now["campaign"]]
                judges = found[0]["judges"] if found else []
                known = [plain(line) for line in told_last(found[0]["plan"])] if found else []
            next_look = begun + _JUDGES_SHARE * (monotonic() - begun)
        yield now, [] if now["ended"] else judges, known  # progress would be that of some seconds before the end


def _done(now: dict[str, Any]) -> str:
    failed = f", {now['failed']:,} failed" if now["failed"] else ""
    return f"{now['settled']:,} of {now['planned']:,} trials settled{failed}"


def _counts(now: dict[str, Any]) -> str:
    left = now["seconds_left"]
    waits = f"{now['waits']:,} waits of {now['waited'] / now['waits']:.2f} s" if now["waits"] else "0 waits"
    part = f"round {now['round']}, {plain(now['phase'])}: " if now.get("round") else ""
    return (
        f"{part}{now['calls']:,} calls, {now['calls_per_second']:,.3g} a second, {now['in_flight']:,} in flight, "
        f"{waits}, {retries(now['retries'])}, {money(now['spent'])}, {duration(now['elapsed'])}"
        + ("" if left is None or now["ended"] else f", about {duration(left)} left{' of this round' if part else ''}")
        + "".join(f"\n{plain(sentence)}" for sentence in now.get("slowed", ()) if not now["ended"])
    )


def _picture(now: dict[str, Any], judges: list[dict[str, Any]], known: list[str]) -> RenderableType:
    bars = Table.grid(padding=(0, 2))
    bars.add_column(overflow="fold", max_width=40)
    bars.add_column(width=24)
    bars.add_column(justify="right", no_wrap=True)
    bars.add_column(justify="right", no_wrap=True)
    whole = {"judge": now["campaign"], **now}
    for number, one in enumerate((whole, *judges)):
        done = one["settled"] + one["failed"]
        bars.add_row(
            Text(("  " if number else "") + plain(one["judge"]), style="" if number else "bold"),
            ProgressBar(total=max(1, one["planned"]), completed=done, width=24),
            f"{done:,}/{one['planned']:,}",
            f"{one['failed']:,} failed" if one["failed"] else "",
        )
    return Group(bars, Text(_counts(now)), *(Text(line) for line in known))
