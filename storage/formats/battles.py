"""Battles that were judged elsewhere, from a plain table, as arrays: one row a verdict.

Columns: `model_a`, `model_b`, `winner` (`model_a`, `model_b` or `tie`; nothing where it could not be read), optional
`judge` and `instruction_id`. Where a mapping gives the two models other column names, those name the winner too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.storage.formats.encoding import UNNAMED_JUDGE, encode
from venire.storage.formats.source import Table, open_table

__all__ = ["UNNAMED_JUDGE", "read_battles"]

_NEEDED = ("model_a", "model_b", "winner")
_OPTIONAL = ("judge", "instruction_id")


def read_battles(path: Path, mapping: Mapping[str, str] = {}) -> Battles:
    """Verdicts of a table file, in its order; `mapping` is from our column names to the file's.

    The order shown is not known (`ordered` is False), `repeat` is 1, a row without a winner has status 1. Without a
    judge column all verdicts are of the judge `UNNAMED_JUDGE`. Raises InputError that names file, row (the first
    data row is 1) and value.
    """
    unknown = sorted(set(mapping) - {*_NEEDED, *_OPTIONAL})
    if unknown:
        accepted = ", ".join([*_NEEDED, *_OPTIONAL])
        raise InputError(
            f'{path}: --map names "{unknown[0]}", which is no column of ours for battles; those are {accepted}'
        )
    table = open_table(path)
    there = [name for name in _OPTIONAL if name in mapping or name in table.columns]
    theirs = {name: table.column(name, mapping) for name in [*_NEEDED, *there]}
    _load(table, theirs)
    _refuse_bad_rows(table, theirs)
    _label(table, theirs)
    battles = encode(table.connection, judge="judge" in theirs, instruction="instruction_id" in theirs, ordered=False)
    table.connection.close()
    return battles


def _load(table: Table, theirs: Mapping[str, str]) -> None:
    """Names as text in a temporary table, so that the file is parsed once."""
    cells = [f"{table.label(column)} as {name}" for name, column in theirs.items()]
    table.execute(f"create temp table battle as select row_number() over () as row, {', '.join(cells)} from {{table}}")


def _winners(theirs: Mapping[str, str]) -> dict[str, int]:
    """What a winner may be called, and its label; the file's own column names come first."""
    return {"model_a": 1, "model_b": -1, "tie": 0} | {theirs["model_a"]: 1, theirs["model_b"]: -1}


def _refuse_bad_rows(table: Table, theirs: Mapping[str, str]) -> None:
    named = [name for name in theirs if name != "winner"]
    winners = _winners(theirs)
    places = ", ".join("?" for _ in winners)
    found = table.connection.execute(
        f"select row, {', '.join(theirs)} from battle where model_a = model_b or winner not in ({places}) "
        f"or {' or '.join(f'coalesce({name}, {chr(39) * 2}) = {chr(39) * 2}' for name in named)} order by row limit 1",
        list(winners),
    ).fetchone()
    if found is None:
        return
    number, cell = found[0], dict(zip(theirs, found[1:], strict=True))
    empty = [theirs[name] for name in named if not cell[name]]
    if empty:
        problem = f'"{empty[0]}" is empty; fill it in or leave the row out'
    elif cell["model_a"] == cell["model_b"]:
        problem = f'"{cell["model_a"]}" meets itself; leave the row out'
    else:
        problem = f'"{theirs["winner"]}" is "{cell["winner"][:60]}"; accepted: {", ".join(winners)}, or nothing'
    raise InputError(f"{table.path}: row {number}: {problem}")


def _label(table: Table, theirs: Mapping[str, str]) -> None:
    """The table `verdict` that `encode` reads."""
    winners = _winners(theirs)
    cases = " ".join(f"when winner = ? then {label}" for label in winners.values())
    absent = ", ".join(f"null as {name}" for name in _OPTIONAL if name not in theirs)
    table.connection.execute(
        f"create temp table verdict as select *{', ' if absent else ''}{absent}, 1 as repeat, false as swapped, "
        f"cast(case {cases} end as tinyint) as label from battle",
        list(winners),
    )
