"""Parse existing replies without calling a model: those of any table, and those of a store with current parsers."""

from __future__ import annotations

import csv
import difflib
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from venire.arena.errors import InputError
from venire.arena.records import AnswerGrade, Status
from venire.boards.rate import choose_campaign
from venire.judges.parsing.verdict_formats import (
    VERDICT_FORMATS,
    FormatCandidate,
    FormatReading,
    VerdictFormat,
    VerdictSide,
    choose_format,
    rank_formats,
    read_in_every_format,
    read_verdict,
)
from venire.orchestrator.run.reparse import Reread, reparse
from venire.storage.read import frames
from venire.storage.read.readings import ChangedVerdict
from venire.storage.store.opening import open_store
from venire.storage.transfer.formats.annotated import Annotated, open_annotated
from venire.wording import plain

__all__ = [
    "ParseSummary",
    "ReparseSummary",
    "dialect_list",
    "example_document",
    "label_word",
    "parse_table",
    "read_again",
    "read_replies",
]

_REPORT_EVERY = 500
_VERDICTS: tuple[VerdictSide, ...] = ("first", "second", "tie")


@dataclass(frozen=True, slots=True)
class ParseSummary:
    """The result of reading a table: the dialect and who chose it, rows, and counts of each verdict and rule."""

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

    def to_json(self) -> dict[str, Any]:
        """The summary as plain JSON values."""
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
    path: Path,
    name: str | None,
    out: Path | None,
    mapping: Mapping[str, str],
    prefix: str = "",
    *,
    progress: Callable[[int], None] | None = None,
    note: Callable[[str], None] | None = None,
) -> ParseSummary:
    """Read the column `raw_output` of a table and write the table with the columns `verdict`, `status` and `rule`.

    Without `out` the table is written to standard output as CSV. `progress` is called with the number of replies read
    so far; where no dialect is named, `note` is called with a sentence about the chosen dialect.
    Raises InputError for an invalid table, column, dialect or output path.
    """
    if unknown := set(mapping) - {"raw_output"}:
        raise InputError(f'--map names "{min(unknown)}"; the one column that is read is raw_output')
    if name is not None:
        _dialect(name)  # refused before the table is read
    with closing(open_annotated(path, "raw_output", mapping, out)) as table:
        try:
            dialect, readings, found = read_replies(_counted(table, progress), name)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        if found and note is not None:
            best = found[0]
            note(f"dialect: {best.name}, reads {best.read} of {len(readings)} replies{_beside(best, found)}")
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
    return ParseSummary(
        table=path,
        out=out,
        dialect=dialect.name,
        chosen=name is None,
        rows=len(readings),
        verdicts={verdict: counts[verdict] for verdict in _VERDICTS},
        rules={rule.name: rules[rule.name] for rule in dialect.rules},
    )


def _dialect(name: str) -> VerdictFormat:
    if name in VERDICT_FORMATS:
        return VERDICT_FORMATS[name]
    near = difflib.get_close_matches(name, VERDICT_FORMATS, n=1)
    hint = f'; is "{near[0]}" meant?' if near else "."
    raise InputError(f'no dialect "{plain(name)}"{hint} There are {", ".join(VERDICT_FORMATS)}: `venire parse --list`')


def _counted(table: Annotated, progress: Callable[[int], None] | None) -> Iterator[str | None]:
    """The replies of a table; `progress` receives the number read at intervals."""
    for count, text in enumerate(table.texts()):
        if progress is not None and count and count % _REPORT_EVERY == 0:
            progress(count)
        yield text


def read_replies(
    texts: Iterable[str | None], dialect: str | None = None
) -> tuple[VerdictFormat, list[FormatReading], list[FormatCandidate]]:
    """The named dialect, or the one that reads most replies; its readings; and all dialects that read any reply.

    None among `texts` is a missing reply. Raises InputError for an unknown dialect, where no dialect reads any reply,
    and where two dialects that read the same replies disagree.
    """
    if dialect is not None:
        known = _dialect(dialect)
        return known, [FormatReading() if text is None else read_verdict(text, known) for text in texts], []
    readings: dict[str, list[FormatReading]] = {name: [] for name in VERDICT_FORMATS}
    for text in texts:
        for name, reading in (
            dict.fromkeys(VERDICT_FORMATS, FormatReading()) if text is None else read_in_every_format(text)
        ).items():
            readings[name].append(reading)
    found = rank_formats({name: [one.verdict for one in column] for name, column in readings.items()})
    best = choose_format(found, len(next(iter(readings.values()))))
    return VERDICT_FORMATS[best.name], readings[best.name], found


def _beside(best: FormatCandidate, found: Sequence[FormatCandidate]) -> str:
    against = [one for one in found if one.against]
    same = [one.name for one in found if one is not best and one.read == best.read]
    notes = [f"{one.name} reads {one.read}, {one.against} of them otherwise" for one in against]
    if same:
        notes.append(f"{', '.join(same)} would read the same")
    return f" ({'; '.join(notes)})" if notes else ""


def dialect_list() -> list[dict[str, Any]]:
    """The table of dialects as plain JSON values, with an example of each rule."""
    return [
        {
            "name": dialect.name,
            "reads": dialect.reads,
            "labels": dict(dialect.labels),
            "rules": [{"name": rule.name, "example": rule.example} for rule in dialect.rules],
        }
        for dialect in VERDICT_FORMATS.values()
    ]


_LABELS = {1: "model_a", 0: "tie", -1: "model_b"}


_GRADES: dict[int, str] = {
    AnswerGrade.CORRECT: "yes",
    AnswerGrade.INCORRECT: "no",
    AnswerGrade.NOT_ATTEMPTED: "not attempted",
}


@dataclass(frozen=True, slots=True)
class ReparseSummary:
    """The result of parsing a store's replies again."""

    store: Path
    campaigns: tuple[str, ...]
    dry: bool
    found: Reread

    def to_json(self) -> dict[str, Any]:
        """The summary as plain JSON values."""
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
                {"earlier": label_word(*one.earlier), "now": label_word(*one.now), "verdicts": one.verdicts}
                for one in compared.changes
            ],
            "rules": [
                {"earlier": before or None, "now": now or None, "verdicts": count}
                for before, now, count in compared.rules
            ],
            "examples": [example_document(one) for one in compared.examples],
        }


def read_again(
    store: Path, campaign: str | None, *, dry: bool, progress: Callable[[int, int], None] = lambda done, of: None
) -> ReparseSummary:
    """Parse the replies of a store's campaign again, or of all its campaigns if none is named.

    `progress` is called with the number of verdicts read and the total. Raises InputError for a store or a campaign
    that does not exist.
    """
    with open_store(store, create=False, to_read=dry) as opened:
        named = [choose_campaign(opened, campaign)] if campaign is not None else list(frames.campaigns(opened))
        chosen = [one for one in named or [choose_campaign(opened, None)] if one.planned]
        found = reparse(opened, [one.id for one in chosen], write=not dry, progress=progress)
        return ReparseSummary(opened.path, tuple(one.name for one in chosen), dry, found)


def label_word(status: int, label: int | None, battle: bool) -> str:
    """A reading as one word: the label of a verdict, or the status of an unreadable reply."""
    return Status(status).name.lower() if label is None else (_LABELS if battle else _GRADES)[label]


def example_document(one: ChangedVerdict) -> dict[str, Any]:
    """A verdict whose reading changed, as plain values."""
    return {
        "judge": one.judge,
        "instruction_id": one.instruction,
        "models": list(one.models),
        "repeat": one.repeat,
        "earlier": label_word(*one.earlier),
        "now": label_word(*one.now),
    }
