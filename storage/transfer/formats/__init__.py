"""File formats, one file each: how a user's data comes in and goes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from venire.arena import registry
from venire.arena.errors import InputError
from venire.arena.hints import setting
from venire.arena.registry import Registry
from venire.arena.wording import suggest
from venire.storage.transfer.formats.entry import ExportWriter, Format
from venire.storage.transfer.formats.judged import ImportedVerdicts, VerdictDialect, likely_dialects, read_judged
from venire.storage.transfer.formats.samples import verdict_table
from venire.storage.transfer.formats.source import TableSource, open_table
from venire.storage.transfer.formats.texts import Reader

__all__ = [
    "FORMATS",
    "TABLE",
    "Format",
    "form_of",
    "guess",
    "read_verdicts",
    "with_dialects",
    "with_texts",
    "with_writers",
]

FORMATS: Registry[Format] = registry.FORMATS
"""Every format of other tools by name."""

TABLE = "table"
"""A table of battles with our own columns, or with others under `--map`; see `battles`."""


def with_texts() -> dict[str, Reader]:
    """Formats of prompts and answers, with what reads them."""
    return {name: entry.read for name, entry in FORMATS.items() if entry.read is not None}


def with_dialects() -> dict[str, tuple[VerdictDialect, ...]]:
    """Formats of verdicts, with the dialects of each."""
    return {name: entry.dialects for name, entry in FORMATS.items() if entry.dialects}


def with_writers() -> dict[str, ExportWriter]:
    """Formats that a store is written in."""
    return {name: entry.write for name, entry in FORMATS.items() if entry.write is not None}


_PLAIN = frozenset({"model_a", "model_b", "winner"})
_BOTH_BAD = ("tie (bothbad)", "both_bad", "bothbad")


def form_of(path: TableSource) -> str | None:
    """The format of prompts and answers that a file is of by its ending or columns; None for any other table.

    Raises InputError for a file that cannot be read.
    """
    if not isinstance(path, Path):
        return None
    if (form := _by_suffix(path)) is not None:
        return form
    with closing((table := open_table(path)).connection):
        return _by_columns(table.columns)


def _by_suffix(path: TableSource) -> str | None:
    if not isinstance(path, Path):
        return None
    return next((name for name, form in FORMATS.items() if path.suffix.lower() in form.suffixes), None)


def _by_columns(columns: Mapping[str, str]) -> str | None:
    there = columns.keys()
    return next((name for name, form in FORMATS.items() if any(signs <= there for signs in form.signs)), None)


def guess(path: TableSource) -> str:
    """The format of a file of verdicts by its columns; `TABLE` where they are those of no other.

    A table of `model_a`, `model_b` and `winner` whose winners speak of both being bad is `chatbot-arena`. Raises
    InputError for a file that cannot be read, and where it may be of several formats.
    """
    if (logs := _by_suffix(path)) is not None:
        return logs
    table = open_table(path)
    try:
        if (logs := _by_columns(table.columns)) is not None and FORMATS[logs].samples is not None:
            return logs
        # What am-ELO and the plainest arena table look like, any table of battles does.
        certain = [
            dialect
            for form in FORMATS.values()
            if form.samples is None
            for dialect in form.dialects
            if _asked(dialect) - _PLAIN - {"judge"}
        ]
        found = sorted({dialect.format for dialect in likely_dialects(certain, table.columns)})
        if len(found) > 1:
            raise InputError(f"{path}: may be {' or '.join(found)}; say which with {setting('form')}")
        if found:
            return found[0]
        if table.columns.keys() >= _PLAIN:
            words = table.execute(f"select distinct {table.label('winner')} from {{table}} limit 20").fetchall()
            found_words = {word for (word,) in words if word}
            if found_words & set(_BOTH_BAD) and found_words <= {*_PLAIN, *_BOTH_BAD, "tie"}:
                return "chatbot-arena"
        return TABLE
    finally:
        table.connection.close()


def _asked(dialect: VerdictDialect) -> set[str]:
    return {dialect.columns[name][0] for name in dialect.needed} | dialect.signs


def read_verdicts(
    paths: Sequence[TableSource],
    form: str | None,
    *,
    mapping: Mapping[str, str] = {},
    values: Mapping[str, str] = {},
    baseline: str | None = None,
    where: Mapping[str, str | Sequence[str]] = {},
) -> ImportedVerdicts | None:
    """Verdicts of files in a format with dialects, guessed from the first file where `form` is None; None for a table.

    `mapping` is from our column names to the files', `values` from words for winners to ours, which tables alone take.
    `baseline` is whom the models met, where the files do not say so.
    `where` keeps the rows that hold given values (`columns.condition`).
    Raises InputError as `guess` and `read_judged` do, and for a format that is not known.
    """
    known, form = with_dialects(), form and FORMATS.named(form)
    if form is not None and form not in known and form != TABLE:
        raise InputError(f"no format {form!r}; {suggest(form, [TABLE, 'ballots', *known])}")
    # A mapping names the columns, so the format need not be guessed; words are those of a table.
    chosen = form or (TABLE if mapping or values else guess(paths[0]))
    if chosen == TABLE:
        return None
    if values:
        raise InputError(
            f"{paths[0]}: {chosen} has words of its own for winners: leave {setting('values')} out, or "
            f"{setting('form')}"
        )
    if baseline is not None and not any(column.given for column in known[chosen]):
        raise InputError(f"{paths[0]}: {chosen} names both models of each verdict: leave {setting('baseline')} out")
    constants = {} if baseline is None else {"model_b": baseline}
    if (samples := FORMATS[chosen].samples) is not None:
        paths = [verdict_table(samples, [path for path in paths if isinstance(path, Path)])]
    found = read_judged(paths, known[chosen], mapping=mapping, constants=constants, where=where)
    return replace(found, guessed=form is None)
