"""Judgments that were made elsewhere, from a plain table: Parquet, CSV, TSV or JSON Lines.

| column | meaning |
|---|---|
| `instruction_id` | as in the instructions |
| `first`, `second` | the models whose completions stood there; or `model`, where one was shown; or `models`, a list |
| `judge` | optional: who judged; only the rows of one judge are read |
| `repeat` | optional, 1 where there is none |
| `raw_output` | what the judge wrote |
| `verdict` | what was read from it: `first`, `second`, `tie`, or nothing where it could not be read |
| `score_first`, `score_second` | optional: the scores behind the verdict |
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from venire.arena.errors import InputError
from venire.arena.shapes import Shape
from venire.arena.wording import suggest
from venire.storage.transfer.formats.columns import with_ids
from venire.storage.transfer.formats.source import TableFile, open_table

_PAIR, _SINGLE, _SEVERAL = ("first", "second"), ("model",), ("models",)
"""Columns with the models whose completions were shown."""
_SCORES = ("score_first", "score_second")
COLUMNS = (
    "judge",
    "instruction_id",
    *_PAIR,
    *_SINGLE,
    *_SEVERAL,
    "repeat",
    "raw_output",
    "verdict",
    *_SCORES,
)
"""Our names of the columns, for telling which a map may name."""

_ROWS = 2000
_QUOTE = "'"


class RecordedJudgment(NamedTuple):
    """A row: the instruction's id, the models in the order shown, the repeat, and the reply's text."""

    instruction: str
    shown: tuple[str, ...]
    repeat: int
    text: str


def read_recorded(
    path: Path, judge: str, shape: Shape, mapping: Mapping[str, str] = {}, *, verdicts: bool = False
) -> Iterator[RecordedJudgment]:
    """The rows of one judge in the table's order; `mapping` is from our column names to the file's.

    The text is `raw_output`, or with `verdicts` the verdict and both scores; empty where there is none. Raises
    InputError that names file, row (the first data row is 1) and what to do.
    """
    if unknown := sorted(set(mapping) - set(COLUMNS)):
        raise InputError(
            f"{path}: the map names {unknown[0]!r}, which is no column of ours; {suggest(unknown[0], COLUMNS)}"
        )
    table = open_table(path)
    with closing(table.connection):
        yield from _rows(table, judge, shape, with_ids(table, mapping), verdicts)


def _rows(
    table: TableFile, judge: str, shape: Shape, mapping: Mapping[str, str], verdicts: bool
) -> Iterator[RecordedJudgment]:
    cells = _cells(table, shape, mapping, verdicts)
    theirs = {name: _column(table, name, mapping) for name in cells}
    named = ", ".join(f"{cell} as our_{name}" for name, cell in cells.items())
    wanted = f"our_judge = '{judge.replace(_QUOTE, 2 * _QUOTE)}'" if "judge" in cells else "true"
    found = False
    with table.errors():
        result = table.execute(
            f"select row, {', '.join(f'our_{name}' for name in cells)} "
            f"from (select row_number() over () as row, {named} from {{table}}) where {wanted} order by row"
        )
        while rows := result.fetchmany(_ROWS):
            found = True
            for number, *row in rows:
                cell = dict(zip(cells, row, strict=True))
                yield _judged(f"{table.path}: row {number}", cell, shape, theirs, verdicts)
    if not found:
        there = table.execute(f"select distinct {cells['judge']} as judge from {{table}} where judge is not null")
        names = sorted(str(name) for (name,) in there.fetchall())
        raise InputError(f'{table.path}: no row of judge {judge!r} in "{theirs["judge"]}"; {suggest(judge, names)}')


def _cells(table: TableFile, shape: Shape, mapping: Mapping[str, str], verdicts: bool) -> dict[str, str]:
    """SQL for each of our columns that is read."""
    optional = {name for name in COLUMNS if name in mapping or name in table.columns}
    labels = [*sorted(optional & {"judge", "repeat"}), "instruction_id", *_shown_by(shape)]
    texts = ["verdict", *(name for name in _SCORES if name in optional)] if verdicts else ["raw_output"]
    cells = {name: _column(table, name, mapping) for name in (*labels, *texts)}
    ways = {"models": table.json, **dict.fromkeys(texts, table.text)}
    return {name: ways.get(name, table.label)(theirs) for name, theirs in cells.items()}


def _column(table: TableFile, name: str, mapping: Mapping[str, str]) -> str:
    """The file's name of our column; its map, which messages refer to, is in the campaign file."""
    theirs = mapping.get(name, name)
    if theirs not in table.columns:
        raise InputError(
            f'{table.path}: no column "{theirs}"; columns found: {_listed(tuple(table.columns))}. Where another column '
            f'holds it, add to the [[judge]]: map = {{ {name} = "COLUMN" }}'
        )
    return theirs


def _judged(
    where: str, cell: Mapping[str, str | None], shape: Shape, theirs: Mapping[str, str], verdicts: bool
) -> RecordedJudgment:
    def required(name: str) -> str:
        text = cell[name]
        if not text:
            raise InputError(f'{where}: "{theirs[name]}" is empty; fill it in or leave the row out')
        return text

    columns = _shown_by(shape)
    shown = tuple(map(required, columns))
    if columns == _SEVERAL:
        shown = _list(where, shown[0], theirs, shape.answers)
    if len(set(shown)) < len(shown):
        raise InputError(f"{where}: {shown[0]!r} is shown twice; leave the row out")
    repeat = cell.get("repeat") or "1"
    if not repeat.isascii() or not repeat.isdecimal() or not 0 < int(repeat) < 2**15:
        raise InputError(f'{where}: "{theirs["repeat"]}" is {repeat[:40]!r}; accepted: a whole number from 1 on')
    text = _verdict(where, cell, shape, theirs) if verdicts else cell["raw_output"] or ""
    return RecordedJudgment(required("instruction_id"), shown, int(repeat), text)


def _shown_by(shape: Shape) -> tuple[str, ...]:
    if shape.pairwise:
        return _PAIR
    return _SINGLE if shape.answers == 1 else _SEVERAL


def _list(where: str, text: str, theirs: Mapping[str, str], number: int | None) -> tuple[str, ...]:
    """The models in a cell, as many as a trial shows (`number`) where that is fixed."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        found = None
    if not isinstance(found, list) or not found or not all(isinstance(model, str) and model for model in found):
        raise InputError(f'{where}: "{theirs["models"]}" is {text[:60]!r}; accepted: a list of names of models')
    if number is not None and len(found) != number:
        raise InputError(f'{where}: "{theirs["models"]}" has {len(found)} names; accepted: a list of {number}')
    return tuple(found)


def _verdict(where: str, cell: Mapping[str, str | None], shape: Shape, theirs: Mapping[str, str]) -> str:
    """The verdict as the text of a reply, with both scores behind it where both are known."""
    verdict = cell["verdict"] or ""
    if not shape.pairwise or not verdict:
        return verdict
    if verdict not in ("first", "second", "tie"):
        raise InputError(
            f'{where}: "{theirs["verdict"]}" is {verdict[:40]!r}; accepted: first, second, tie, or nothing where it '
            "could not be read"
        )
    scores = [score for name in _SCORES if (score := cell.get(name))]
    for score in scores:
        if not _is_number(score):
            raise InputError(f"{where}: the score {score[:40]!r} is no number")
    return " ".join([verdict, *scores]) if len(scores) == 2 else verdict


def _is_number(text: str) -> bool:
    try:
        return abs(float(text)) < 1e9
    except ValueError:
        return False


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:30]) + (", ..." if len(names) > 30 else "")
