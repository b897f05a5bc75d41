"""Battles that were judged elsewhere, from a plain table, as arrays: one row a verdict.

Columns: `model_a`, `model_b`, `winner` (`model_a`, `model_b` or `tie`; nothing where it could not be read), optional
`judge` and `instruction_id`. Where a mapping gives the two models other column names, those name the winner too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.storage.formats.source import Table, open_table

__all__ = ["UNNAMED_JUDGE", "read_battles"]

UNNAMED_JUDGE = "unnamed"
"""The one judge of a table that has no judge column."""

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
    models = _names(table, "model", ("model_a", "model_b"))
    judges = _names(table, "judge", ("judge",)) if "judge" in theirs else (UNNAMED_JUDGE,)
    instructions = _names(table, "instruction", ("instruction_id",)) if "instruction_id" in theirs else ()
    columns = _codes(table, theirs)
    table.connection.close()
    rows = len(columns["label"])
    return Battles(
        models=models,
        judges=judges,
        instructions=instructions,
        model_a=columns["model_a"].astype(np.int32),
        model_b=columns["model_b"].astype(np.int32),
        judge=columns["judge"].astype(np.int32),
        instruction=columns["instruction"].astype(np.int32),
        repeat=np.ones(rows, np.int32),
        swapped=np.zeros(rows, np.bool_),
        status=columns["status"].astype(np.int8),
        label=columns["label"].astype(np.int8),
        ordered=False,
    )


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


def _names(table: Table, kind: str, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The distinct names in order, kept in a table with their places."""
    union = " union all ".join(f"select {column} as name from battle" for column in columns)
    table.connection.execute(
        f"create temp table {kind}_names as select name, row_number() over (order by name) - 1 as code "
        f"from (select distinct name from ({union}))"
    )
    found = table.connection.execute(f"select name from {kind}_names order by code").fetchnumpy()
    return tuple(found["name"].tolist())


def _codes(table: Table, theirs: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    """The columns of `Battles` in the order of the rows; names as places."""
    sources = {"model_a": "model_names", "model_b": "model_names", "judge": "judge_names"}
    sources |= {"instruction_id": "instruction_names"}
    joins = [f"join {names} n_{name} on n_{name}.name = {name}" for name, names in sources.items() if name in theirs]
    winners = _winners(theirs)
    cases = " ".join(f"when winner = ? then {label}" for label in winners.values())
    columns: dict[str, NDArray[Any]] = table.connection.execute(
        f"select n_model_a.code as model_a, n_model_b.code as model_b, "
        f"{'n_judge.code' if 'judge' in theirs else '0'} as judge, "
        f"{'n_instruction_id.code' if 'instruction_id' in theirs else '-1'} as instruction, "
        f"cast(winner is null as tinyint) as status, case {cases} else 0 end as label "
        f"from battle {' '.join(joins)} order by row",
        list(winners),
    ).fetchnumpy()
    return columns
