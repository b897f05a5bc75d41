"""Replies read again, for eyes: of a table, and of a store by today's parsers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from venire.arena.wording import plain
from venire.judges.parsing.verdict_formats import VERDICT_FORMATS, read_verdict
from venire.orchestrator.run.reparse import Reread
from venire.reading import ParseSummary, ReparseSummary, example_document, label_word
from venire.render.screen import tabulate


def show_parsed(screen: Console, summary: ParseSummary) -> None:
    """Print what was read: verdicts, then rules."""
    screen.print(f"{summary.out}: {summary.rows} rows, {summary.read} read, {summary.rows - summary.read} unreadable")
    screen.print(", ".join(f"{verdict} {count}" for verdict, count in summary.verdicts.items()))
    if summary.column is not None:
        lines = [
            (plain(one.value or "(empty)"), one.dialect, f"{one.rows:,}", f"{one.read:,}") for one in summary.groups
        ]
        tabulate(screen, (plain(summary.column), "dialect", "replies", "read"), lines)
    rows = [(rule, f"{count:,}") for rule, count in summary.rules.items() if count]
    if rows:
        tabulate(screen, (f"rule of {summary.dialect}", "replies"), rows)


def show_dialects(screen: Console) -> None:
    """Print the table of dialects, an example of each rule with the verdict that is read from it."""
    for dialect in VERDICT_FORMATS.values():
        screen.print(f"{dialect.name}: {dialect.reads}")
        for rule in dialect.rules:
            verdict = read_verdict(rule.example, dialect).verdict
            screen.print(f"  {rule.name:<13} {verdict!s:<7} {rule.example!r}")


@contextmanager
def parse_progress(screen: Console) -> Iterator[Callable[[int], None]]:
    """How many replies were read, on a terminal; nothing elsewhere."""
    if not screen.is_terminal:
        yield lambda count: None
        return
    with screen.status("reading replies") as status:
        yield lambda count: status.update(f"reading replies: {count:,}")


def show_reparsed(screen: Console, summary: ReparseSummary) -> None:
    """What reads otherwise now, with examples."""
    found, compared = summary.found, summary.found.comparison
    if not found.changed:
        screen.print(f"nothing changed: {_verdicts(compared.verdicts)} read as before with {plain(found.parser)}")
    else:
        screen.print(
            f"read {_verdicts(compared.verdicts)} of {plain(', '.join(summary.campaigns))} again with "
            f"{plain(found.parser)}: {compared.same:,} as before, {compared.verdicts - compared.same:,} otherwise"
        )
        _show_changes(screen, found)
    if compared.unasked:
        unasked = f"{_verdicts(compared.unasked)} would take one more call today"
        screen.print(f"\n{unasked}: nobody is asked, and they count as unreadable")
    if compared.examples:
        screen.print("\nfor example:")
        for one in map(example_document, compared.examples):
            screen.print(f"  {plain(_line(one))}")
    if summary.dry and found.changed:
        screen.print("\ndry run: nothing was written")
    if found.reading is not None:
        screen.print(f"\nwritten as reading {found.reading}, which counts from now on; earlier readings are kept")


def _show_changes(screen: Console, found: Reread) -> None:
    compared = found.comparison
    if compared.changes:
        words = [(label_word(*one.earlier), label_word(*one.now), one.verdicts) for one in compared.changes]
        rows = [(f"{earlier} -> {now}", f"{count:,}") for earlier, now, count in words]
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


def _line(one: dict[str, Any]) -> str:
    repeat = f", repeat {one['repeat']}" if one["repeat"] > 1 else ""
    what = f"{one['judge']}, {one['instruction_id']}, shown {', '.join(one['models'])}{repeat}"
    return f"{what}: {one['earlier']} -> {one['now']}"


@contextmanager
def reread_progress(screen: Console) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, nothing elsewhere."""
    if not screen.is_terminal:
        yield lambda done, of: None
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("verdicts read again"), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)
