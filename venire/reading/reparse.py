"""What the command shows of replies that were read again: what changed, for eyes and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from venire.arena.records import Status
from venire.boards.rate import choose_campaign
from venire.orchestrator.run.reparse import Reread, reparse
from venire.render.screen import console, tabulate
from venire.storage.read import frames
from venire.storage.read.readings import Example
from venire.storage.store.opening import open_store
from venire.wording import plain

__all__ = ["Told", "read_again", "show_told"]

_LABELS = {1: "model_a", 0: "tie", -1: "model_b"}
_GRADES = {1: "yes", 0: "no", 2: "not attempted"}


@dataclass(frozen=True, slots=True)
class Told:
    """What came of reading a store's replies again."""

    store: Path
    campaigns: tuple[str, ...]
    dry: bool
    found: Reread

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        compared = self.found.comparison
        return {
            "store": str(self.store),
            "campaigns": list(self.campaigns),
            "parser": self.found.parser,
            "dry_run": self.dry,
            "reading": self.found.reading,
            "verdicts": compared.verdicts,
            "same": compared.same,
            "asked_once_more": compared.unasked,
            "other_scores": compared.scores,
            "changes": [
                {"earlier": _word(*one.earlier), "now": _word(*one.now), "verdicts": one.verdicts}
                for one in compared.changes
            ],
            "rules": [
                {"earlier": before or None, "now": now or None, "verdicts": count}
                for before, now, count in compared.rules
            ],
            "examples": [_example(one) for one in compared.examples],
        }


def read_again(store: Path, campaign: str | None, *, dry: bool) -> Told:
    """Read the replies of a store's campaign again, or of all its campaigns where none is named.

    Raises InputError for a store or a campaign that is not there.
    """
    with open_store(store, create=False) as opened, _bar() as progress:
        named = [choose_campaign(opened, campaign)] if campaign is not None else list(frames.campaigns(opened))
        chosen = [one for one in named or [choose_campaign(opened, None)] if one.planned]
        found = reparse(opened, [one.id for one in chosen], write=not dry, progress=progress)
        return Told(opened.path, tuple(one.name for one in chosen), dry, found)


def show_told(screen: Console, told: Told) -> None:
    """What changed, for eyes."""
    found, compared = told.found, told.found.comparison
    if not found.changed:
        screen.print(f"nothing changed: {_verdicts(compared.verdicts)} read as before with {plain(found.parser)}")
    else:
        screen.print(
            f"read {_verdicts(compared.verdicts)} of {plain(', '.join(told.campaigns))} again with "
            f"{plain(found.parser)}: {compared.same:,} as before, {compared.verdicts - compared.same:,} otherwise"
        )
        _show_changes(screen, found)
    if compared.unasked:
        told_once = f"{_verdicts(compared.unasked)} would take one more call today"
        screen.print(f"\n{told_once}: nobody is asked, and they count as unreadable")
    if compared.examples:
        screen.print("\nfor example:")
        for one in map(_example, compared.examples):
            screen.print(f"  {plain(_line(one))}")
    if told.dry and found.changed:
        screen.print("\ndry run: nothing was written")
    if found.reading is not None:
        screen.print(f"\nwritten as reading {found.reading}, which counts from now on; earlier readings are kept")


def _show_changes(screen: Console, found: Reread) -> None:
    compared = found.comparison
    if compared.changes:
        rows = [(f"{_word(*one.earlier)} -> {_word(*one.now)}", f"{one.verdicts:,}") for one in compared.changes]
        screen.print()
        tabulate(screen, ("earlier -> now", "verdicts"), rows)
    if compared.rules:
        rules = [(f"{before or 'none'} -> {now or 'none'}", f"{count:,}") for before, now, count in compared.rules]
        screen.print()
        tabulate(screen, ("rule: earlier -> now", "verdicts"), rules)
    if compared.scores:
        screen.print(f"\n{_verdicts(compared.scores)} with the same winner and another score")


def _verdicts(count: int) -> str:
    return "1 verdict" if count == 1 else f"{count:,} verdicts"


def _word(status: int, label: int | None, battle: bool) -> str:
    return Status(status).name.lower() if label is None else (_LABELS if battle else _GRADES)[label]


def _example(one: Example) -> dict[str, Any]:
    return {
        "judge": one.judge,
        "instruction_id": one.instruction,
        "models": list(one.models),
        "repeat": one.repeat,
        "earlier": _word(*one.earlier),
        "now": _word(*one.now),
    }


def _line(one: dict[str, Any]) -> str:
    repeat = f", repeat {one['repeat']}" if one["repeat"] > 1 else ""
    what = f"{one['judge']}, {one['instruction_id']}, shown {', '.join(one['models'])}{repeat}"
    return f"{what}: {one['earlier']} -> {one['now']}"


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, nothing elsewhere."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield lambda done, of: None
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("verdicts read again"), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)
