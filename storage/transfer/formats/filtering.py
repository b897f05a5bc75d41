"""Some rows of a user's table: those whose cells hold, or do not hold, the values that were asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from venire.arena.errors import InputError
from venire.storage.transfer.formats.source import Table

__all__ = ["NOT", "Where", "condition"]

Where = Mapping[str, str | Sequence[str]]
"""Values by column: a row counts when its cell is one of them; under a column followed by `NOT`, when it is none."""

NOT = "!"
_SHOWN = 12


def condition(
    table: Table, where: Where, mapping: Mapping[str, str] = {}, *, strict: bool = True
) -> tuple[str, list[list[str]]]:
    """SQL that holds for the rows asked for, and its parameters; `true` where nothing is asked.

    A column is called as in the file, or by our name where `mapping` gives it one. Cells are compared as text, whole
    numbers without a fraction; the empty text stands for an empty cell. Raises InputError for a column that is not
    there, with those that are, and if `strict` for a value that no row has, with those that occur, and where no row is
    left.
    """
    terms, parameters = [], []
    for key, given in where.items():
        column, unlike = _column(table, key, mapping)
        values = [given] if isinstance(given, str) else list(given)
        if strict:
            _refuse_unknown_values(table, column, values)
        terms.append(f"{'not ' if unlike else ''}list_contains(?::varchar[], {_cell(table, column)})")
        parameters.append(values)
    found = " and ".join(terms) or "true"
    if strict and terms and not _any_row(table, found, parameters):
        words = {key: given if isinstance(given, str) else " or ".join(given) for key, given in where.items()}
        asked = " and ".join(f"{key}={word}" for key, word in words.items())
        raise InputError(f"{table.path}: no row has {asked}; leave a condition of --where out")
    return found, parameters


def _cell(table: Table, column: str) -> str:
    return f"coalesce({table.label(column)}, '')"


def _column(table: Table, key: str, mapping: Mapping[str, str]) -> tuple[str, bool]:
    """The file's column, and whether its values are those to leave out."""
    unlike = key.endswith(NOT) and key not in table.columns
    name = key.removesuffix(NOT) if unlike else key
    theirs = name if name in table.columns else mapping.get(name, name)
    if theirs not in table.columns:
        found = ", ".join(list(table.columns)[:30])
        raise InputError(f'{table.path}: --where names the column "{name}"; columns found: {found}')
    return theirs, unlike


def _refuse_unknown_values(table: Table, column: str, values: Sequence[str]) -> None:
    cell = _cell(table, column)
    with table.errors():
        occurring = {
            value
            for (value,) in table.connection.execute(
                f"select distinct {cell} as value from {table.reader} where list_contains(?::varchar[], value)",
                [*table.parameters, list(values)],
            ).fetchall()
        }
    missing = [value for value in values if value not in occurring]
    if not missing:
        return
    rows = table.execute(f"select {cell} as value from {{table}} group by value order by count(*) desc, value")
    words = [value[:40] or "(empty)" for (value,) in rows.fetchmany(_SHOWN + 1)]
    shown = ", ".join(words[:_SHOWN]) + (", ..." if len(words) > _SHOWN else "")
    what = f'"{missing[0][:60]}"' if missing[0] else "empty"
    raise InputError(f'{table.path}: --where: "{column}" is {what} in no row; it holds: {shown}')


def _any_row(table: Table, found: str, parameters: Sequence[Sequence[str]]) -> bool:
    with table.errors():
        row = table.connection.execute(
            f"select 1 from {table.reader} where {found} limit 1", [*table.parameters, *parameters]
        ).fetchone()
    return row is not None
