"""File formats, one file each: how a user's data comes in and goes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from venire.arena import registry
from venire.arena.errors import InputError
from venire.arena.hints import setting
from venire.arena.registry import Registry
from venire.arena.wording import suggest
from venire.storage.transfer.formats.entry import ExportWriter, Format
from venire.storage.transfer.formats.judged import ImportedVerdicts, VerdictDialect, likely_dialects, read_judged
from venire.storage.transfer.formats.source import TableSource, open_table
from venire.storage.transfer.formats.texts import Reader

__all__ = ["FORMATS", "TABLE", "Format", "guess", "read_verdicts", "with_dialects", "with_texts", "with_writers"]

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


def guess(path: TableSource) -> str:
    """The format of a file of verdicts by its columns; `TABLE` where they are those of no other.

    A table of `model_a`, `model_b` and `winner` whose winners speak of both being bad is `chatbot-arena`. Raises
    InputError for a file that cannot be read, and where it may be of several formats.
    """
    table = open_table(path)
    try:
        # What am-ELO and the plainest arena table look like, any table of battles does.
        certain = [
            dialect
            for dialects in with_dialects().values()
            for dialect in dialects
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
    found = read_judged(paths, known[chosen], mapping=mapping, constants=constants, where=where)
    return replace(found, guessed=form is None)
