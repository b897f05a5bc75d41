"""How much of what judges said could be read, in each order, and how often the order decided; for eyes and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Console

from venire.render.screen import money, plain, tabulate
from venire.storage.read.readability import Judged, judged
from venire.storage.store.store import Store

__all__ = ["LEAST_READABLE", "judged_json", "show_judged"]

LEAST_READABLE = 0.9
"""A judge of whom less is read is named: its figures are those of the trials it answers in form."""


def judged_json(store: Store, campaign: int) -> list[dict[str, Any]]:
    """Counts and shares by judge, as plain values."""
    return [asdict(one) | {"readable": one.readable, "flip_rate": one.flip_rate} for one in judged(store, campaign)]


def show_judged(screen: Console, store: Store, campaign: int) -> None:
    """A line a judge, and a sentence about each of whom too little can be read."""
    found = judged(store, campaign)
    if not found:
        return
    head = ("judge", "protocol", "settled", "readable", "A first", "B first", "flips", "flagged", "cost")
    tabulate(screen, head, [_row(one) for one in found])
    for one in found:
        if one.readable is not None and one.readable < LEAST_READABLE:
            screen.print(
                f"warning: of judge {plain(one.judge)} ({one.protocol}) only {one.readable:.1%} could be "
                f"read: look at what it writes (venire sql STORE 'select text from reply'), or ask it another way"
            )
    screen.print()


def _row(one: Judged) -> tuple[str, ...]:
    return (
        plain(one.judge),
        one.protocol,
        f"{one.settled:,}",
        "-" if one.readable is None else f"{one.readable:.1%}",
        _share(one.a_first_read, one.a_first),
        _share(one.b_first_read, one.b_first),
        _share(one.flips, one.both_read),
        f"{one.flagged:,}",
        money(one.cost),
    )


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"
