"""Terminal output of batches: what is out, how old it is, and what came of what was sent."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from venire.arena.wording import money, plain
from venire.batches import BatchAtProvider
from venire.render.screen import tabulate
from venire.wording import duration

_STATES = {
    None: "not confirmed",
    "sent": "out",
    "cancelling": "being cancelled",
    "adopted": "perhaps ours",
    "mistaken": "not confirmed",
    "doubted": "in doubt",
}


def show_batches(screen: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    """A table of submissions, documents of `status_document`: state, age, lines, money, the provider's id."""
    head = ("batch", "model", "state", "age", "lines", "collected", "answered", "money", "provider's id")
    tabulate(screen, head, [_cells(one) for one in rows])


def _cells(one: Mapping[str, Any]) -> tuple[str, ...]:
    paid = one["paid"] if one["collected"] == one["lines"] else one["reserved"]
    return (
        plain(one["name"]),
        plain(one["route"].rpartition(" ")[2]),
        _STATES.get(one["kind"], str(one["kind"])),
        duration(_age(one)),
        f"{one['lines']:,}",
        f"{one['collected']:,}",
        f"{one['answered']:,}",
        money(paid) + ("" if paid == one["paid"] else " reserved"),
        plain(one["provider_id"] or ""),
    )


def _age(one: Mapping[str, Any]) -> float:
    """Seconds since it was written; where it is not out any more, until then."""
    end = datetime.now(UTC) if one["open"] else datetime.fromisoformat(one["happened_at"])
    return max(0.0, (end - datetime.fromisoformat(one["written_at"])).total_seconds())


def show_batches_out(screen: Console, rows: Sequence[Mapping[str, Any]], store: str) -> None:
    """One line on what is out, if anything is, and one on each that is in doubt."""
    out = [one for one in rows if one["open"]]
    if out:
        lines, reserved = (sum(one[name] for one in out) for name in ("lines", "reserved"))
        batches = "1 batch" if len(out) == 1 else f"{len(out):,} batches"
        oldest = duration(max(map(_age, out)))
        screen.print(f"  out: {batches} with {lines:,} calls, the oldest for {oldest}; {money(reserved)} reserved")
    for one in out:
        if one["kind"] == "doubted":
            give_up = f"venire batch cancel {shlex.quote(store)} {one['name']} --give-up"
            screen.print(
                f"  in doubt: batch {one['name']} was not confirmed, and {plain(one['detail'])}: its calls wait until "
                f"that has ended, since they could be paid twice. To ask them again all the same: {give_up}",
                soft_wrap=True,
            )


def show_providers(screen: Console, found: Sequence[BatchAtProvider]) -> None:
    """What providers said of batches, a line each."""
    for one in found:
        if one.status is None:
            said = one.problem
        else:
            status = one.status
            word = "being cancelled" if status.cancelling else status.state.value
            said = f"{word}, {status.answered:,} of {one.submission.lines:,} answered, {status.failed:,} failed"
            said += f" ({status.problem})" if status.problem else ""
        screen.print(f"{one.submission.name}: {plain(said)}", soft_wrap=True)
    if not found:
        screen.print("no batch is out")
