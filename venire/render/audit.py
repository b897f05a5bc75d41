"""Terminal output of an audit: worries first, then harmless findings, then checks that could not be made."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from venire.arena.wording import plain
from venire.render.board import show_source_notes, show_table
from venire.render.screen import FAILED
from venire.reports.audit.audit import CHECKS, WORDS, Audit, Word, word
from venire.reports.audit.finding import Finding
from venire.reports.wording import counted

_MARKS: dict[Word, str] = {"worry": "WORRY", "unsure": "unsure", "fine": "fine", "not made": "-"}
_WIDE = 100
"""Columns from which what a check says stands beside its figure; below, under it."""


def show_audit(screen: Console, audit: Audit) -> None:
    """The verdict in one line, then a line or two for each check; into a pipe, one line each."""
    order = sorted(audit.findings, key=lambda one: WORDS.index(word(one)))
    made = sum(one.worry is not None for one in audit.findings)
    counts = {"verdict": audit.rows, "model": audit.models, "judge": audit.judges, "instruction": audit.instructions}
    what = ", ".join(counted(count, name) for name, count in counts.items())
    screen.print(f"Audit   {what}   verdicts: {audit.verdicts}")
    if audit.worries:
        worry = "worries" if len(audit.worries) == 1 else "worry"
        names = ", ".join(one.check for one in audit.worries)
        screen.print(f"{len(audit.worries)} of {made} checks {worry}: {names}")
    else:
        screen.print(f"none of {made} checks worries" if made else "no check could be made")
    source = audit.source
    if "left_aside" in source:
        show_table(screen, source)
    elif source:
        show_source_notes(screen, source)
        screen.print(f"format: {source['format']}; {source['verdicts']} verdicts", style="dim")
    if audit.note:
        screen.print(f"note: {audit.note}")
    screen.print()
    if not screen.is_terminal:
        _as_lines(screen, order)
    elif screen.width >= _WIDE:
        _as_table(screen, order)
    else:
        _as_pairs(screen, order)
    if audit.worries:
        screen.print()
        screen.print(
            "what each threshold rests on: docs/audit.md; names and figures behind a line: --json", style="dim"
        )


def _style(finding: Finding) -> str:
    return FAILED if finding.worry else "dim" if finding.worry is None else ""


def _as_lines(screen: Console, order: list[Finding]) -> None:
    name, bound = max(len(one.check) for one in order), max(len(_bound(one)) for one in order)
    for one in order:
        head = f"{_MARKS[word(one)]:<6}  {one.check:<{name}}  {_figure(one):>7}  {_bound(one):<{bound}}"
        screen.print(f"{head}  {plain(one.says)}")


def _as_table(screen: Console, order: list[Finding]) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    table.add_column("")
    table.add_column("check", no_wrap=True)
    table.add_column("figure", justify="right", no_wrap=True)
    table.add_column("harmless", no_wrap=True)
    table.add_column("what was found", overflow="fold")
    for one in order:
        cells = _MARKS[word(one)], one.check, _figure(one), _bound(one), plain(one.says)
        table.add_row(*cells, style=_style(one))
    screen.print(table)


def _as_pairs(screen: Console, order: list[Finding]) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 1), show_header=False)
    table.add_column("", no_wrap=True)
    table.add_column("", overflow="fold")
    for one in order:
        figure = f"{_figure(one)}, harmless: {_bound(one)}" if _figure(one) else ""
        head = f"{one.check}   {figure}".rstrip()
        table.add_row(_MARKS[word(one)], f"{head}\n{plain(one.says)}", style=_style(one))
    screen.print(table)


def _figure(one: Finding) -> str:
    return "" if one.figure is None else _number(one.figure)


def _bound(one: Finding) -> str:
    if one.threshold is None or one.figure is None:
        return ""
    sign = "<=" if CHECKS[one.check].harmless == "at most" else ">="
    unless = CHECKS[one.check].unless
    return f"{sign} {_number(one.threshold)}" + (f" or {unless}" if unless else "")


def _number(value: float) -> str:
    return f"{value:,.0f}" if (float(value).is_integer() and abs(value) >= 1.0) or value == 0 else f"{value:.3g}"
