"""Verdicts of a table in DuckDB as arrays: names become places in a sorted list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles

__all__ = ["UNNAMED_JUDGE", "encode", "plain_numbers"]

UNNAMED_JUDGE = "unnamed"
"""The one judge of a table that has no judge column."""


def encode(
    connection: duckdb.DuckDBPyConnection,
    *,
    judge: bool,
    instruction: bool,
    ordered: bool,
    cluster: bool = False,
    numbers: Sequence[str] = (),
    features: Mapping[str, str] = {},
) -> Battles:
    """The rows of the temporary table `verdict`, in the order of `row`.

    Its columns are `row`, `model_a`, `model_b`, `judge`, `instruction_id`, `repeat`, `swapped` and `label` (1, 0, -1,
    or null where nothing was read). `judge`, `instruction` and `cluster` say whether those columns hold names; without,
    all verdicts are of `UNNAMED_JUDGE`, no instruction is known and no other cluster. `numbers` are columns that it has
    of `outcome`, `weight`, `score` and `human`, `features` its columns by the name of the covariate; null is NaN, and
    a column without any number is left out.
    """
    models = _names(connection, "model", ("model_a", "model_b"))
    judges = _names(connection, "judge", ("judge",)) if judge else (UNNAMED_JUDGE,)
    instructions = _names(connection, "instruction", ("instruction_id",)) if instruction else ()
    clusters = _names(connection, "cluster", ("cluster",)) if cluster else ()
    joins = "join model_names a on a.name = model_a join model_names b on b.name = model_b "
    joins += "join judge_names j on j.name = judge " if judge else ""
    joins += "join instruction_names i on i.name = instruction_id " if instruction else ""
    joins += "join cluster_names c on c.name = cluster " if cluster else ""
    more = "".join(f", cast({column} as double) as {column}" for column in [*numbers, *features.values()])
    found = connection.execute(
        f"select a.code as model_a, b.code as model_b, {'j.code' if judge else '0'} as judge, "
        f"{'i.code' if instruction else '-1'} as instruction, {'c.code' if cluster else '-1'} as cluster, repeat, "
        f"swapped, cast(label is null as tinyint) as status, coalesce(label, 0) as label{more} "
        f"from verdict {joins}order by row"
    ).fetchnumpy()
    known = {name: plain_numbers(found[name]) for name in numbers}
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
        cluster=found["cluster"].astype(np.int32) if cluster else None,
        clusters=clusters,
        features={name: _numbers(found[column]) for name, column in features.items()},
        outcome=known.get("outcome"),
        weight=known.get("weight"),
        score=known.get("score"),
        human=known.get("human"),
    )


def plain_numbers(column: Any) -> NDArray[np.float64] | None:
    """A fetched column as floats, NaN where it is null; None where no row has a number."""
    values = _numbers(column)
    return None if bool(np.isnan(values).all()) else values


def _numbers(column: Any) -> NDArray[np.float64]:
    return np.asarray(np.ma.filled(np.ma.asarray(column, dtype=np.float64), np.nan))


def _names(connection: duckdb.DuckDBPyConnection, kind: str, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The distinct names in order, kept in a table with their places."""
    union = " union all ".join(f"select {column} as name from verdict" for column in columns)
    connection.execute(
        f"create or replace temp table {kind}_names as select name, row_number() over (order by name) - 1 as code "
        f"from (select distinct name from ({union}))"
    )
    found = connection.execute(f"select name from {kind}_names order by code").fetchnumpy()
    return tuple(found["name"].tolist())
