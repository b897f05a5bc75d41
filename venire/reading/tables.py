"""What `venire parse` does: read the replies of a table in one dialect, and write the table with what was read."""

from __future__ import annotations

import csv
import difflib
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from venire.arena.errors import InputError
from venire.arena.records import Status
from venire.judges.parsing.verdict_formats import (
    DIALECTS,
    Candidate,
    Dialect,
    Reading,
    Verdict,
    candidates,
    choose,
    read,
    read_all,
)
from venire.render.screen import tabulate
from venire.storage.transfer.formats.annotated import Annotated, open_annotated
from venire.wording import plain

__all__ = ["Told", "listing", "parse_table", "show", "show_listing"]

_TOLD_EVERY = 500
_VERDICTS: tuple[Verdict, ...] = ("first", "second", "tie")


@dataclass(frozen=True, slots=True)
class Told:
    """What was read of a table: the dialect and who chose it, rows, and how many of each verdict and rule."""

    table: Path
    out: Path | None
    dialect: str
    chosen: bool
    rows: int
    verdicts: Mapping[str, int]
    rules: Mapping[str, int]

    @property
    def read(self) -> int:
        return sum(self.verdicts.values())

    def to_json(self) -> dict[str, object]:
        """The same as JSON values."""
        return {
            "table": str(self.table),
            "out": None if self.out is None else str(self.out),
            "dialect": self.dialect,
            "dialect_chosen": self.chosen,
            "rows": self.rows,
            "read": self.read,
            "unreadable": self.rows - self.read,
            "verdicts": dict(self.verdicts),
            "rules": dict(self.rules),
        }


def parse_table(
    path: Path, name: str | None, out: Path | None, mapping: Mapping[str, str], prefix: str, aside: Console
) -> Told:
    """Read the column `raw_output` of a table and write the table with the columns `verdict`, `status` and `rule`.

    Without `out` it goes to standard output as CSV. Where no dialect is named, which one was chosen is told `aside`.
    Raises InputError for a table, a column, a dialect or a place that is none.
    """
    if unknown := set(mapping) - {"raw_output"}:
        raise InputError(f'--map names "{min(unknown)}"; the one column that is read is raw_output')
    dialect = None if name is None else _dialect(name)
    with closing(open_annotated(path, "raw_output", mapping, out)) as table:
        if dialect is not None:
            readings = [Reading() if text is None else read(text, dialect) for text in _counted(table, aside)]
        else:
            dialect, readings = _chosen(path, table, aside)
        table.add(
            {
                f"{prefix}verdict": [one.verdict for one in readings],
                f"{prefix}status": [one.status.name.lower() for one in readings],
                f"{prefix}rule": [one.rule for one in readings],
            }
        )
        if out is not None:
            table.write(out)
        elif sys.stdout is not None:  # None where it was closed
            csv.writer(sys.stdout, lineterminator="\n").writerows(table.lines())
            sys.stdout.flush()
    counts = Counter(one.verdict for one in readings)
    rules = Counter(one.rule for one in readings if one.status is Status.OK)
    return Told(
        table=path,
        out=out,
        dialect=dialect.name,
        chosen=name is None,
        rows=len(readings),
        verdicts={verdict: counts[verdict] for verdict in _VERDICTS},
        rules={rule.name: rules[rule.name] for rule in dialect.rules},
    )


def _dialect(name: str) -> Dialect:
    if name in DIALECTS:
        return DIALECTS[name]
    near = difflib.get_close_matches(name, DIALECTS, n=1)
    hint = f'; is "{near[0]}" meant?' if near else "."
    raise InputError(f'no dialect "{plain(name)}"{hint} There are {", ".join(DIALECTS)}: `venire parse --list`')


def _counted(table: Annotated, aside: Console) -> Iterator[str | None]:
    """The replies of a table; on a terminal it is told aside how many were read."""
    if not aside.is_terminal:
        yield from table.texts()
        return
    with aside.status("reading replies") as status:
        for count, text in enumerate(table.texts()):
            if count and count % _TOLD_EVERY == 0:
                status.update(f"reading replies: {count:,}")
            yield text


def _chosen(path: Path, table: Annotated, aside: Console) -> tuple[Dialect, list[Reading]]:
    """The dialect that reads most, and its readings; tells aside which it is and what others read."""
    readings: dict[str, list[Reading]] = {name: [] for name in DIALECTS}
    for text in _counted(table, aside):
        for name, reading in (dict.fromkeys(DIALECTS, Reading()) if text is None else read_all(text)).items():
            readings[name].append(reading)
    rows = len(next(iter(readings.values())))
    found = candidates({name: [one.verdict for one in column] for name, column in readings.items()})
    try:
        best = choose(found, rows)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    aside.print(f"dialect: {best.name}, reads {best.read} of {rows} replies{_beside(best, found)}")
    return DIALECTS[best.name], readings[best.name]


def _beside(best: Candidate, found: Sequence[Candidate]) -> str:
    against = [one for one in found if one.against]
    same = [one.name for one in found if one is not best and one.read == best.read]
    told = [f"{one.name} reads {one.read}, {one.against} of them otherwise" for one in against]
    if same:
        told.append(f"{', '.join(same)} would read the same")
    return f" ({'; '.join(told)})" if told else ""


def show(screen: Console, told: Told) -> None:
    """Print what was read: verdicts, then rules."""
    screen.print(f"{told.out}: {told.rows} rows, {told.read} read, {told.rows - told.read} unreadable")
    screen.print(", ".join(f"{verdict} {count}" for verdict, count in told.verdicts.items()))
    rows = [(rule, f"{count:,}") for rule, count in told.rules.items() if count]
    if rows:
        tabulate(screen, (f"rule of {told.dialect}", "replies"), rows)


def listing() -> list[dict[str, object]]:
    """The table of dialects as JSON values."""
    return [
        {
            "name": dialect.name,
            "reads": dialect.reads,
            "labels": dict(dialect.labels),
            "rules": [{"name": rule.name, "example": rule.example} for rule in dialect.rules],
        }
        for dialect in DIALECTS.values()
    ]


def show_listing(screen: Console) -> None:
    """Print the table of dialects, an example of each rule with the verdict that is read from it."""
    for dialect in DIALECTS.values():
        screen.print(f"{dialect.name}: {dialect.reads}")
        for rule in dialect.rules:
            verdict = read(rule.example, dialect).verdict
            screen.print(f"  {rule.name:<13} {verdict!s:<7} {rule.example!r}")
