"""Verdicts of a table in DuckDB as arrays: names become places in a sorted list."""

from __future__ import annotations

import duckdb
import numpy as np

from venire.arena.battles import Battles

__all__ = ["UNNAMED_JUDGE", "encode"]

UNNAMED_JUDGE = "unnamed"
"""The one judge of a table that has no judge column."""


def encode(connection: duckdb.DuckDBPyConnection, *, judge: bool, instruction: bool, ordered: bool) -> Battles:
    """The rows of the temporary table `verdict`, in the order of `row`.

    Its columns are `row`, `model_a`, `model_b`, `judge`, `instruction_id`, `repeat`, `swapped` and `label` (1, 0, -1,
    or null where nothing was read). `judge` and `instruction` say whether those columns hold names; without, all
    verdicts are of `UNNAMED_JUDGE` and no instruction is known.
    """
    models = _names(connection, "model", ("model_a", "model_b"))
    judges = _names(connection, "judge", ("judge",)) if judge else (UNNAMED_JUDGE,)
    instructions = _names(connection, "instruction", ("instruction_id",)) if instruction else ()
    joins = "join model_names a on a.name = model_a join model_names b on b.name = model_b "
    joins += "join judge_names j on j.name = judge " if judge else ""
    joins += "join instruction_names i on i.name = instruction_id " if instruction else ""
    found = connection.execute(
        f"select a.code as model_a, b.code as model_b, {'j.code' if judge else '0'} as judge, "
        f"{'i.code' if instruction else '-1'} as instruction, repeat, swapped, "
        f"cast(label is null as tinyint) as status, coalesce(label, 0) as label from verdict {joins}order by row"
    ).fetchnumpy()
    return Battles(
        models=models,
        judges=judges,
        instructions=instructions,
        model_a=found["model_a"].astype(np.int32),
        model_b=found["model_b"].astype(np.int32),
        judge=found["judge"].astype(np.int32),
        instruction=found["instruction"].astype(np.int32),
        repeat=found["repeat"].astype(np.int32),
        swapped=found["swapped"].astype(np.bool_),
        status=found["status"].astype(np.int8),
        label=found["label"].astype(np.int8),
        ordered=ordered,
    )


def _names(connection: duckdb.DuckDBPyConnection, kind: str, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The distinct names in order, kept in a table with their places."""
    union = " union all ".join(f"select {column} as name from verdict" for column in columns)
    connection.execute(
        f"create or replace temp table {kind}_names as select name, row_number() over (order by name) - 1 as code "
        f"from (select distinct name from ({union}))"
    )
    found = connection.execute(f"select name from {kind}_names order by code").fetchnumpy()
    return tuple(found["name"].tolist())
