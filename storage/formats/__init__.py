"""File formats, one file each: how a user's data comes in and goes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from venire.arena.errors import InputError
from venire.storage.formats import (
    alpaca_eval,
    am_elo,
    arena_hard,
    chatbot_arena,
    llm_comparator,
    mt_bench,
    preferences,
    soft_elo,
    tables,
)
from venire.storage.formats.judged import Dialect, Judged, read_judged, told_apart
from venire.storage.formats.source import open_table
from venire.storage.formats.texts import Reader
from venire.storage.formats.writing import Writer

__all__ = ["FORMATS", "JUDGED", "TABLE", "TEXTS", "WRITERS", "guess", "read_verdicts"]

FORMATS = {"table": tables.read}

TEXTS: dict[str, Reader] = {
    "alpaca-eval": alpaca_eval.read,
    "arena-hard": arena_hard.read,
    "mt-bench": mt_bench.read,
    "chatbot-arena": chatbot_arena.read,
    "llm-comparator": llm_comparator.read,
    "preferences": preferences.read,
}
"""Formats of prompts and answers; a reader goes through its files as often as it is asked to."""

TABLE = "table"
"""A table of battles with our own columns, or with others under `--map`; see `battles`."""

JUDGED: dict[str, tuple[Dialect, ...]] = {
    "alpaca-eval": alpaca_eval.DIALECTS,
    "arena-hard": arena_hard.DIALECTS,
    "mt-bench": mt_bench.DIALECTS,
    "chatbot-arena": chatbot_arena.DIALECTS,
    "soft-elo": soft_elo.DIALECTS,
    "am-elo": am_elo.DIALECTS,
    "llm-comparator": llm_comparator.DIALECTS,
    "preferences": preferences.DIALECTS,
}
"""Formats of verdicts, with the dialects of each."""

WRITERS: dict[str, Writer] = {
    "alpaca-eval": alpaca_eval.parts,
    "arena-hard": arena_hard.parts,
    "mt-bench": mt_bench.parts,
    "chatbot-arena": chatbot_arena.parts,
    "llm-comparator": llm_comparator.parts,
    "preferences": preferences.parts,
    "preferences-messages": preferences.message_parts,
}
"""Formats that a store is written in."""

_PLAIN = frozenset({"model_a", "model_b", "winner"})
_BOTH_BAD = ("tie (bothbad)", "both_bad", "bothbad")


def guess(path: Path) -> str:
    """The format of a file of verdicts by its columns; `TABLE` where they are those of no other.

    A table of `model_a`, `model_b` and `winner` whose winners speak of both being bad is `chatbot-arena`. Raises
    InputError for a file that cannot be read, and where it may be of several formats.
    """
    table = open_table(path)
    try:
        # What am-ELO and the plainest arena table look like, any table of battles does.
        certain = [one for dialects in JUDGED.values() for one in dialects if _asked(one) - _PLAIN - {"judge"}]
        found = sorted({one.format for one in told_apart(certain, table.columns)})
        if len(found) > 1:
            raise InputError(f"{path}: may be {' or '.join(found)}; say which with --format")
        if found:
            return found[0]
        if table.columns.keys() >= _PLAIN:
            words = table.execute(f"select distinct {table.label('winner')} from {{table}} limit 20").fetchall()
            if {word for (word,) in words} & set(_BOTH_BAD):
                return "chatbot-arena"
        return TABLE
    finally:
        table.connection.close()


def _asked(dialect: Dialect) -> set[str]:
    return {dialect.columns[name][0] for name in dialect.needed} | dialect.signs


def read_verdicts(
    paths: Sequence[Path],
    form: str | None,
    *,
    mapping: Mapping[str, str] = {},
    baseline: str | None = None,
    where: Mapping[str, str | Sequence[str]] = {},
) -> Judged | None:
    """Verdicts of files in a format of `JUDGED`, guessed from the first file where `form` is None; None for a table.

    `mapping` is from our column names to the files'. `baseline` is whom the models met, where the files do not say so.
    `where` keeps the rows that hold given values (`filtering.condition`).
    Raises InputError as `guess` and `read_judged` do, and for a format that is not known.
    """
    if form is not None and form not in JUDGED and form != TABLE:
        raise InputError(f"no format {form!r}; there are: {', '.join([TABLE, 'ballots', *JUDGED])}")
    # A mapping says what the columns are, so that nothing is left to guess.
    chosen = form or (TABLE if mapping else guess(paths[0]))
    if chosen == TABLE:
        return None
    if baseline is not None and not any(one.given for one in JUDGED[chosen]):
        raise InputError(f"{paths[0]}: {chosen} names both models of each verdict: leave --baseline out")
    constants = {} if baseline is None else {"model_b": baseline}
    found = read_judged(paths, JUDGED[chosen], mapping=mapping, constants=constants, where=where)
    return replace(found, guessed=form is None)
