"""Battles that were judged elsewhere, from a plain table, as arrays: one row a verdict.

Columns: `model_a`, `model_b`, `winner` (`model_a`, `model_b`, `tie`, or a name of one of the two; nothing where it
could not be read). A table that knows the order shown has `first`, `second`, `verdict` instead. `score`, the
first-named model's share from 0 to 1, may replace the winner. Optional are `judge`, `instruction_id`, `repeat`,
`weight`, `score_difference` and `human_winner`. Where a mapping gives the two models other column names, those name
the winner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.records import Status
from venire.storage.store.connection import query
from venire.storage.transfer.formats.columns import (
    UNNAMED_JUDGE,
    columns_of,
    condition,
    encode,
    feature_cells,
    refuse_bad_features,
    scaled,
)
from venire.storage.transfer.formats.source import TableFile, TableSource, open_table

__all__ = ["UNNAMED_JUDGE", "read_battles", "read_numbered_battles"]

_PLAIN = ("model_a", "model_b", "winner")
_SHOWN = ("first", "second", "verdict")
_SHARE = "score"
_OPTIONAL = ("judge", "instruction_id", "repeat", "weight", "score_difference", "human_winner")
_NAMES = ("model_a", "model_b", "winner", "judge", "instruction_id", "cluster", "human_winner")
"""Columns of names; the others hold numbers."""

_CELLS = {
    "repeat": "repeat_cell",
    "weight": "weight_cell",
    _SHARE: "outcome_cell",
    "score_difference": "score_cell",
    "human_winner": "human_cell",
}
"""Our columns that are kept as they stand until they are checked."""

_ACCEPTED = {
    _SHARE: "a number from 0 to 1, or nothing where the verdict was not read",
    "repeat": "a whole number from 1 on",
    "weight": "a number, 0 or more",
    "score_difference": "a number, or nothing where there is none",
}


def read_battles(
    path: TableSource,
    mapping: Mapping[str, str] = {},
    *,
    where: Mapping[str, str | Sequence[str]] = {},
    features: Sequence[str] = (),
    cluster: str | None = None,
) -> Battles:
    """Verdicts of a table file, in its order; `mapping` is from our column names to the file's.

    `where` keeps the rows that hold given values (`columns.condition`), `features` are covariates to read
    (`covariates`), `cluster` is a column of the file whose rows belong together in place of an instruction's ("none":
    no rows do). The order shown is known (`ordered`) where the table names `first` and `second`; what a judge said of
    one showing more than once is then numbered in `repeat`, unless the file does so. A row without a winner has status
    1. Without a judge column all verdicts are of the judge `UNNAMED_JUDGE`. Raises InputError that names file, row (the
    first data row is 1) and value.
    """
    return read_numbered_battles(path, mapping, where=where, features=features, cluster=cluster)[0]


def read_numbered_battles(
    path: TableSource,
    mapping: Mapping[str, str] = {},
    *,
    where: Mapping[str, str | Sequence[str]] = {},
    features: Sequence[str] = (),
    cluster: str | None = None,
) -> tuple[Battles, NDArray[np.int64]]:
    """`read_battles`, and the number (verdicts,) of each verdict's row in the file, for messages about it."""
    _refuse_unknown(path, mapping, features)
    with closing((table := open_table(path)).connection):
        mapping = _respelt(table, mapping)
        sides, apart = _sides(table, mapping), cluster == "none" and cluster not in table.columns
        theirs = _columns(table, sides, mapping, None if apart else cluster)
        covariates = columns_of(table, features, mapping)
        words = _words(sides, theirs)
        _load(table, theirs, words, feature_cells(table, covariates), condition(table, where, mapping))
        _refuse_bad_row(table, theirs, words, sides)
        refuse_bad_features(table, covariates)
        battles = encode(
            table.connection,
            judge="judge" in theirs,
            instruction="instruction_id" in theirs,
            ordered=sides == _SHOWN,
            cluster="cluster" in theirs,
            numbers=[ours for ours, name in _NUMBERS.items() if name in theirs],
            features={name: f"x{number}" for number, name in enumerate(covariates)},
        )
        found = table.connection.execute("select row from verdict order by row").fetchnumpy()
    battles = replace(
        battles, clustered=not apart, features=scaled(battles.features, covariates, battles.status == Status.OK)
    )
    if battles.ordered and "repeat" not in theirs:
        battles = _numbered(battles)
    return battles, np.asarray(found["row"], dtype=np.int64)


_NUMBERS = {"outcome": _SHARE, "weight": "weight", "score": "score_difference", "human": "human_winner"}


def _refuse_unknown(path: TableSource, mapping: Mapping[str, str], features: Sequence[str]) -> None:
    sides = [f"{name}_{side}" for name in features for side in ("a", "b", "first", "second")]
    known = [*_PLAIN, *_OPTIONAL, _SHARE, *_SHOWN, *features, *sides]
    unknown = sorted(set(mapping) - set(known))
    if unknown:
        raise InputError(
            f'{path}: --map names "{unknown[0]}", which is no column of ours for battles; those are {", ".join(known)}'
        )
    said = [name for name in ("winner", "verdict", _SHARE) if name in mapping]
    mixed = [name for name in (*_PLAIN[:2], *_SHOWN[:2]) if name in mapping]
    for names in (said, mixed if {*mixed} & {*_PLAIN} and {*mixed} & {*_SHOWN} else []):
        if len(names) > 1:
            raise InputError(f"{path}: --map names both {names[0]} and {names[-1]}; a table has one of them")


def _respelt(table: TableFile, mapping: Mapping[str, str]) -> Mapping[str, str]:
    """The mapping with names in other letters; of models and winner only where the file has none in ours."""
    forms = {*_PLAIN, *_SHOWN}
    for sides in () if forms & {*table.columns, *mapping} else (_PLAIN, _SHOWN):
        found = table.respelt(sides, mapping)
        if {*sides} <= found.keys():
            return table.respelt(_OPTIONAL, found)
    return table.respelt(_OPTIONAL, mapping)


def _sides(table: TableFile, mapping: Mapping[str, str]) -> tuple[str, str, str]:
    """Our names of the two models and of the winner: as A and B, or in the order shown."""
    for sides in (_PLAIN, _SHOWN):
        if set(mapping) & set(sides[:2]):
            return sides
    if "verdict" in mapping:
        return _SHOWN
    there = table.columns.keys()
    if there >= set(_SHOWN[:2]) and not (there >= set(_PLAIN[:2]) and ("winner" in there or "verdict" not in there)):
        return _SHOWN
    return _PLAIN


def _columns(
    table: TableFile, sides: tuple[str, str, str], mapping: Mapping[str, str], cluster: str | None
) -> dict[str, str]:
    """The file's names of our columns, those that are there; raises InputError for one that is needed and missing."""
    if not {*sides[:2]} & {*table.columns, *mapping}:
        raise InputError(f"{table.missing(sides[0], mapping)}; a table of ballots needs the columns model and rank")
    theirs = {ours: table.column(name, mapping) for ours, name in zip(_PLAIN, sides[:2], strict=False)}
    said = next((name for name in (sides[2], "winner", "verdict") if name in mapping), None)
    said = said or next((name for name in (sides[2], "winner", "verdict") if name in table.columns), None)
    if _SHARE in mapping or (said is None and _SHARE in table.columns):
        theirs[_SHARE] = table.column(_SHARE, mapping)
    else:
        theirs["winner"] = table.column(said or sides[2], mapping)
    for name in _OPTIONAL:
        if name in mapping or name in table.columns:
            theirs[name] = table.column(name, mapping)
    if cluster is not None:
        name = cluster if cluster in table.columns else mapping.get(cluster, cluster)
        if name not in table.columns:
            found = ", ".join(list(table.columns)[:30])
            raise InputError(f'{table.path}: --cluster names the column "{name}"; columns found: {found}')
        theirs["cluster"] = name
    return theirs


def _load(
    table: TableFile,
    theirs: Mapping[str, str],
    words: Mapping[str, int],
    features: Mapping[str, str],
    kept: tuple[str, list[list[str]]],
) -> None:
    """The table `verdict` that `encode` reads, with the cells behind it: the file is parsed once."""
    cells = {_CELLS.get(name, name): "null::varchar" for name in [*_NAMES, *_CELLS]}
    for name, column in theirs.items():
        cells[_CELLS.get(name, name)] = table.label(column) if name in _NAMES else table.cell(column)
    cells |= features
    chosen = ", ".join(f"{cell} as {name}" for name, cell in cells.items())
    battle = f"select row_number() over () as row, {kept[0]} as kept, {chosen} from {table.reader}"
    of_side = [[word for word, label in words.items() if label == side] for side in (1, -1)]
    with table.errors():
        table.connection.execute(
            f"create temp table verdict as with battle as (select * exclude (kept) from ({battle}) where kept) "
            f"{query('battles_verdicts')}",
            [*kept[1], *table.parameters, *of_side, *of_side],
        )


def _words(sides: tuple[str, str, str], theirs: Mapping[str, str]) -> dict[str, int]:
    """What a winner may be called, and its label; the file's own column names come first."""
    return {sides[0]: 1, sides[1]: -1, "tie": 0} | {theirs["model_a"]: 1, theirs["model_b"]: -1}


def _refuse_bad_row(
    table: TableFile, theirs: Mapping[str, str], words: Mapping[str, int], sides: tuple[str, str, str]
) -> None:
    found = table.connection.execute(query("battles_bad_row"), {"there": list(theirs)}).fetchone()
    if found is None:
        return
    row, place, cell = found
    column = theirs.get({"named": "winner", "human_named": "human_winner"}.get(place, place), "")
    if place == "itself":
        problem = f'"{cell}" meets itself; leave the row out'
    elif place in ("named", "human_named"):
        what = "a word for a winner and the name of the other model"
        problem = f'"{column}" is "{cell}", {what}; write {sides[0]}, {sides[1]} or tie'
    elif not cell and place not in _ACCEPTED:
        problem = f'"{column}" is empty; fill it in or leave the row out'
    elif place in _ACCEPTED:
        problem = f'"{column}" is "{(cell or "")[:60]}"; accepted: {_ACCEPTED[place]}'
    else:
        problem = f'"{column}" is "{cell[:60]}"; accepted: {", ".join(words)}, a name of the two models, or nothing'
        if place == "winner" and cell in ("1", "0", "0.5", "1.0", "0.0"):
            problem += f"; shares of the first named, from 0 to 1, are read with --map {_SHARE}={column}"
    raise InputError(f"{table.path}: row {row}: {problem}")


def _numbered(battles: Battles) -> Battles:
    """The same verdicts, those of one judge on one showing numbered as repeats in the order of the rows."""
    pairs = len(battles.models) ** 2
    showing = battles.model_a.astype(np.int64) * len(battles.models) + battles.model_b
    asked = (battles.instruction.astype(np.int64) + 1) * len(battles.judges) + battles.judge
    if (int(asked.max(initial=0)) + 1) * pairs >= 2**63:
        asked = np.unique(asked, return_inverse=True)[1].astype(np.int64)  # at most one a row, which leaves room
    key = asked * pairs + showing
    order = np.argsort(key, kind="stable")  # rows of one showing keep their order
    place = np.arange(len(key))
    fresh = np.ones(len(key), dtype=np.bool_)
    fresh[1:] = np.diff(key[order]) != 0
    repeat = np.empty(len(key), dtype=np.int32)
    repeat[order] = place - np.maximum.accumulate(np.where(fresh, place, 0)) + 1
    return replace(battles, repeat=repeat)
