"""Sections on what verdicts were read from: what files were taken for, and what became of their rows."""

from __future__ import annotations

from collections.abc import Iterator

from venire.arena.wording import few
from venire.reports.sections import Block, Paragraph, faint
from venire.storage.transfer.formats.source import ImportReading, TableReading


def source_sections(source: TableReading | ImportReading) -> Iterator[Block]:
    """What of the reading of files or a table changes ratings or intervals, and faintly how they were read."""
    for note in source.notes:
        yield Paragraph(f"note: {note}")
    yield from _of_table(source) if isinstance(source, TableReading) else _of_files(source)


def _of_table(source: TableReading) -> Iterator[Block]:
    """What a table calls otherwise than we do, and what of it was not read."""
    if source.columns:
        yield faint("columns: " + ", ".join(f"{theirs} as {ours}" for ours, theirs in source.columns.items()))
    if source.values:
        words = (f"{theirs} as {ours or 'not read'}" for theirs, ours in source.values.items())
        yield faint("winners: " + ", ".join(words))
    if source.left_aside:
        yield faint(f"columns left aside: {few(source.left_aside)}")


def _of_files(source: ImportReading) -> Iterator[Block]:
    by = "by its columns; another: --format" if source.guessed else "as told"
    yield faint(f"format: {source.format} ({by}); {source.verdicts} verdicts")
    if source.both_bad:
        counted = "counted as ties; --both-bad drop" if source.both_bad_as == "tie" else "left out; --both-bad tie"
        other = "leaves them out" if source.both_bad_as == "tie" else "counts them"
        yield Paragraph(f"both bad: {source.both_bad}, {counted} {other}")
    if source.itself:
        yield Paragraph(f"left out: {source.itself} rows in which a model meets itself")
    if source.note:
        yield faint(f"note: {source.note}")
