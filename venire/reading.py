"""Parse existing replies without calling a model: those of any table, and those of a store with current parsers."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Any

from venire.arena.errors import InputError
from venire.arena.records import AnswerGrade, Status
from venire.arena.wording import meant, plain, suggest
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
from venire.reports.board.stored import choose_campaign
from venire.storage.read import frames
from venire.storage.read.readings import ChangedVerdict
from venire.storage.store.opening import open_store
from venire.storage.transfer.formats.annotated import Annotated, open_annotated

_REPORT_EVERY = 500
_GROUPS = ("dialect", "prompt_style")
"""Columns that tell which replies were asked for in the same words; the first that a table has is taken."""
_MAX_STYLES = 50
"""A column of more values tells rows from one another, not prompts."""
_MANY = 0.01
"""Another dialect that reads more than this share of all replies, none of which the chosen one reads, is mentioned."""
_VERDICTS: tuple[VerdictSide, ...] = ("first", "second", "tie")


@dataclass(frozen=True, slots=True)
class ReplyGroup:
    """Replies that are read in one dialect: those with one value in a column, or all; and how many were read."""

    value: str | None
    """What the column says of them; None without a column, and for cells that are empty."""
    dialect: str
    rows: int
    read: int


@dataclass(frozen=True, slots=True)
class ParseSummary:
    """The result of reading a table: dialects and who chose them, rows, and counts of each verdict and rule."""

    table: Path
    out: Path | None
    column: str | None
    """The table's column that tells replies of different prompts from one another."""
    groups: Sequence[ReplyGroup]
    chosen: bool
    rows: int
    verdicts: Mapping[str, int]
    rules: Mapping[str, int]
    reads_more: tuple[str, int] | None = None
    """The dialect that reads most replies of all and how many, where that is more than was read."""

    @property
    def dialect(self) -> str:
        """The dialects that were used, each once."""
        return ", ".join(dict.fromkeys(group.dialect for group in self.groups))

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
            "grouped_by": self.column,
            "groups": [asdict(group) for group in self.groups],
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
    raw: bool = False,
    progress: Callable[[int], None] | None = None,
    note: Callable[[str], None] | None = None,
) -> ParseSummary:
    """Read the column `raw_output` of a table and write the table with the columns `verdict`, `status` and `rule`.

    Where no dialect is named, a column `dialect` names one for each row, and replies with the same `prompt_style` have
    their own; `note` is called with a sentence about each dialect that was chosen. Without `out` the table is written
    to standard output as CSV; there, and in files of CSV and TSV, texts that begin like formulas are neutralised unless
    `raw`. `progress` is called with the number of replies read so far.
    Raises InputError for an invalid table, column, dialect or output path.
    """
    if unknown := set(mapping) - {"raw_output"}:
        raise InputError(f'--map names "{min(unknown)}"; the one column that is read is raw_output')
    if name is not None:
        _dialect(name)  # refused before the table is read
    with closing(open_annotated(path, "raw_output", mapping, out, raw=raw)) as table:
        column = None if name is not None else next((one for one in _GROUPS if one in table.columns), None)
        cells: Iterable[str | None] = repeat(None) if column is None else table.cells(column)
        if column == "prompt_style" and (values := len({*cells})) > _MAX_STYLES:
            if note is not None:
                note(f"{column} has {values:,} values, more than {_MAX_STYLES}: all replies are read in one dialect")
            column, cells = None, repeat(None)
        try:
            groups, notes, readings = _read_groups(_counted(table, progress), cells, column, name)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        if note is not None:
            for sentence in notes:
                note(sentence)
        read = sum(one.verdict is not None for one in readings)
        more = _reads_more(table.texts(), read) if 2 * read <= len(readings) else None
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
            table.write_to(sys.stdout)
            sys.stdout.flush()
    counts = Counter(one.verdict for one in readings)
    used = {rule.name: 0 for group in groups for rule in VERDICT_FORMATS[group.dialect].rules}
    return ParseSummary(
        table=path,
        out=out,
        column=column,
        groups=groups,
        chosen=name is None and column != "dialect",
        rows=len(readings),
        verdicts={verdict: counts[verdict] for verdict in _VERDICTS},
        rules=used | Counter(one.rule for one in readings if one.rule is not None),
        reads_more=more,
    )


def _reads_more(texts: Iterable[str | None], read: int) -> tuple[str, int] | None:
    """The dialect that reads most of some replies, if those are more than `read`."""
    found = Counter(
        name
        for text in texts
        if text is not None
        for name, reading in read_in_every_format(text).items()
        if reading.verdict is not None
    )
    best = found.most_common(1)
    return best[0] if best and best[0][1] > read else None


def _read_groups(
    texts: Iterable[str | None], cells: Iterable[str | None], column: str | None, name: str | None
) -> tuple[list[ReplyGroup], list[str], list[FormatReading]]:
    """Replies read by groups of equal `cells`: the groups, a sentence for each choice, and all readings in order."""
    members: dict[str | None, list[int]] = {}
    tried: list[dict[str, FormatReading]] = []
    for at, (text, cell) in enumerate(zip(texts, cells, strict=False)):
        value = cell or None
        try:
            named = _dialect(value) if column == "dialect" and value else None if name is None else _dialect(name)
        except InputError as error:
            raise InputError(f"row {at + 1}: {error}; or name one for all rows with --dialect") from None
        members.setdefault(value, []).append(at)
        tried.append(_tried(text, named))
    chosen: dict[str | None, str] = {}
    notes: list[str] = []
    for value, rows in members.items():
        where = "" if column is None else f"{column} {'(empty)' if value is None else plain(value)}: "
        if len(tried[rows[0]]) == 1:
            chosen[value] = next(iter(tried[rows[0]]))
        elif (found := _candidates([tried[at] for at in rows])) or len(members) == 1:
            found = [replace(one, example=one.example and rows[one.example - 1] + 1) for one in found]
            try:
                best = choose_format(found, len(rows))
            except InputError as error:
                raise InputError(f"{where}{error}") from None
            chosen[value] = best.name
            beside = _beside(best, found, len(rows))
            notes.append(f"{where}dialect: {best.name}, reads {best.read} of {len(rows)} replies{beside}")
    # A group of which nothing is read, such as refusals, does not stop the others.
    usual = Counter(chosen.values()).most_common(1)
    other = usual[0][0] if usual else choose_format([], len(tried)).name
    readings = [FormatReading()] * len(tried)
    groups = []
    for value, rows in members.items():
        dialect = chosen.get(value, other)
        for at in rows:
            readings[at] = tried[at][dialect]
        groups.append(ReplyGroup(value, dialect, len(rows), sum(readings[at].verdict is not None for at in rows)))
    return groups, notes, readings


def _dialect(name: str) -> VerdictFormat:
    if (known := meant(name, VERDICT_FORMATS)) in VERDICT_FORMATS:
        return VERDICT_FORMATS[known]
    raise InputError(f"no dialect {plain(name)!r}; {suggest(name, VERDICT_FORMATS)}: `venire parse --list`")


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
    named = None if dialect is None else _dialect(dialect)
    tried = [_tried(text, named) for text in texts]
    if named is not None:
        return named, [one[named.name] for one in tried], []
    found = _candidates(tried)
    best = choose_format(found, len(tried))
    return VERDICT_FORMATS[best.name], [one[best.name] for one in tried], found


def _tried(text: str | None, dialect: VerdictFormat | None) -> dict[str, FormatReading]:
    """The readings of one reply by dialect: the one named, or all."""
    if text is None:
        return dict.fromkeys(VERDICT_FORMATS if dialect is None else [dialect.name], FormatReading())
    return read_in_every_format(text) if dialect is None else {dialect.name: read_verdict(text, dialect)}


def _candidates(tried: Sequence[Mapping[str, FormatReading]]) -> list[FormatCandidate]:
    return rank_formats({name: [one[name].verdict for one in tried] for name in VERDICT_FORMATS})


def _beside(best: FormatCandidate, found: Sequence[FormatCandidate], rows: int) -> str:
    against = [one for one in found if one.against]
    same = [one.name for one in found if one is not best and one.read == best.read]
    notes = [f"{one.name} reads {one.read}, {one.against} of them otherwise" for one in against]
    if same:
        notes.append(f"{', '.join(same)} would read the same")
    other = max(found, key=lambda one: one.read - one.both)
    if other.read - other.both > _MANY * rows:
        notes.append(
            f"{other.name} reads {other.read - other.both} of those left: were there several prompts, name each "
            f"reply's in a column {_GROUPS[-1]}, or its dialect in a column {_GROUPS[0]}"
        )
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
