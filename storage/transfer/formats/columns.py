"""Columns of a table of verdicts as arrays: which rows count, names as codes, and covariates.

Names become indices into a sorted list. A covariate NAME is in two columns, `NAME_a` and `NAME_b` (or `NAME_first` and
`NAME_second`), of figures that are not negative, and becomes `(a - b) / (a + b)`, 0 where both are 0, divided by its
standard deviation; or it is in one column NAME, which is taken as it is. Nothing is centred, and the deviation is
taken about 0: so neither depends on which model a table calls A.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.hints import setting, setting_of
from venire.storage.transfer.formats.source import TableFile

UNNAMED_JUDGE = "unnamed"
"""The one judge of a table that has no judge column."""


INSTRUCTION_IDS = ("instruction_id", "question_id", "prompt_id", "item_id", "sample_id", "task_id")
"""What tables call the id of an instruction, ours first."""

INSTRUCTION_TEXTS = ("instruction", "prompt", "question")
"""What tables call the text of an instruction, ours first."""

ANSWER_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "instruction": (*INSTRUCTION_TEXTS, "input", "query", "task", "user_prompt", "user"),
    "model": ("model", "model_name", "model_id", "generator", "candidate", "contestant", "llm", "system"),
    "completion": (
        *("completion", "response", "output", "answer", "generation", "generated_text", "prediction", "reply"),
        *("model_output", "model_response", "response_text", "text"),
    ),
    "instruction_id": (*INSTRUCTION_IDS, "id", "uid", "idx", "index"),
    "category": ("category", "domain", "topic", "subject"),
    "reference": (
        *("reference", "reference_answer", "ground_truth", "gold", "gold_answer", "expected", "expected_output"),
        *("expected_answer", "ideal", "target"),
    ),
    "input": ("input",),
    "messages": ("messages", "conversation", "conversations"),
    "gathered": ("completions", "responses", "outputs", "answers", "generations"),
}
"""What tables of answers call each of our columns, the surest name first."""

_SYNONYMS = {
    "judge": ("annotator", "worker", "voter", "rater"),
    "instruction_id": (*INSTRUCTION_IDS[1:], *INSTRUCTION_TEXTS, "uid"),
}
"""What other tables call our columns, the surest first: an id, then a text, then `uid`, which may number the rows."""


RESPONDENTS = ("judge", *_SYNONYMS["judge"])
"""What tables call whoever gave a verdict, ours first."""


def with_synonyms(table: TableFile, mapping: Mapping[str, str]) -> Mapping[str, str]:
    """The mapping with the file's columns of judges and instructions where those are called otherwise.

    A column that the mapping names comes first.
    """
    found = dict(mapping)
    for ours in _SYNONYMS:
        theirs = column_of(table, ours, {*found.values()})
        if ours not in found and theirs not in (None, ours):
            found[ours] = theirs
    return found


def column_of(table: TableFile, ours: str, taken: Collection[str] = ()) -> str | None:
    """The file's column of judges or instructions that is not taken: of our name in any letters, else a synonym."""
    return column_named(table, (ours, *_SYNONYMS.get(ours, ())), taken)


def with_ids(table: TableFile, mapping: Mapping[str, str]) -> Mapping[str, str]:
    """The mapping with the file's column of ids of instructions, where it has one of some name."""
    names = ["instruction_id", *(name for name in _SYNONYMS["instruction_id"] if name not in INSTRUCTION_TEXTS)]
    ids = _named(table, names)
    return {"instruction_id": ids[0], **mapping} if ids else mapping


def with_answers(table: TableFile, mapping: Mapping[str, str]) -> Mapping[str, str]:
    """The mapping with the file's columns of models and answers, and of texts of instructions where it has no ids."""
    found = dict(with_ids(table, mapping))
    names = {"model": "model", "completion": "completion", "instruction_id": "instruction"}
    for ours, answers in names.items():
        if ours not in found and ours not in table.columns:
            theirs = column_named(table, ANSWER_COLUMNS[answers], {*found.values()})
            found |= {} if theirs is None else {ours: theirs}
    return found


def with_text(table: TableFile, mapping: Mapping[str, str]) -> Mapping[str, str]:
    """The mapping with the file's column of texts of instructions, where it has one of some name."""
    texts = _named(table, INSTRUCTION_TEXTS)
    return {"instruction": texts[0], **mapping} if texts else mapping


def answers_hint(table: TableFile) -> str | None:
    """What to do with a table that has a prompt, a model and an answer in each row; None for any other table."""
    if any(column_named(table, ANSWER_COLUMNS[ours]) is None for ours in ("instruction", "model", "completion")):
        return None
    file = shlex.quote(str(table.path)) if isinstance(table.path, Path) else "FILE"
    return (
        f"holds answers to judge: `venire judge {file}` makes a leaderboard of it, and `venire init FOLDER --from "
        f"{file}` the tables of a campaign"
    )


def column_named(table: TableFile, names: Sequence[str], taken: Collection[str] = ()) -> str | None:
    """The file's column that is called by the first of these names, in any letters, and is not taken."""
    return next((name for name in _named(table, names) if name not in taken), None)


def _named(table: TableFile, names: Sequence[str]) -> list[str]:
    """The file's columns that are called so, in any letters."""
    respelt = table.respelt(names, {})
    return [name for name in (respelt.get(column, column) for column in names) if name in table.columns]


def name_cell(table: TableFile, ours: str, theirs: str) -> str:
    """SQL for a column of ids or names; an instruction may be known by its text, or by its messages as JSON."""
    return table.name(theirs) if ours != "instruction_id" or not table.nested(theirs) else table.json(theirs)


def instruction_note(theirs: str | None) -> str | None:
    """What was taken as the instruction, which decides how wide intervals are; None for a column of our own name."""
    if theirs is None:
        other = setting_of("mapping", "instruction_id", "COLUMN")
        return (
            "no column names the instruction, so each row counts as independent: where several rows are on one "
            f"question, intervals are too narrow; name its column with {other}"
        )
    if theirs == "instruction_id":
        return None
    return (
        f"taken as the instruction: {theirs}; rows of one instruction share their noise (another column: "
        f"{setting_of('mapping', 'instruction_id', 'COLUMN')})"
    )


def repeated_note(lines: int) -> str:
    """That lines which stand again word for word were not counted again."""
    return (
        f"{lines:,} line{' stands' if lines == 1 else 's stand'} again, word for word, and "
        f"{'was' if lines == 1 else 'were'} counted once"
    )


def padded_note(rows: int) -> str:
    """That names were read without the spaces around them."""
    return f"spaces around names were left out, in {rows:,} row{'' if rows == 1 else 's'}"


def padded_cell(table: TableFile, columns: Iterable[str]) -> str:
    """SQL for whether any of these columns of names has spaces around it."""
    return (
        " or ".join(f"coalesce({table.name(column)} <> {table.label(column)}, false)" for column in columns) or "false"
    )


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


Where = Mapping[str, str | Sequence[str]]
"""Values by column: a row counts when its cell is one of them; under a column followed by `NOT`, when it is none."""

NOT = "!"
_SHOWN = 12


def condition(
    table: TableFile, where: Where, mapping: Mapping[str, str] = {}, *, strict: bool = True
) -> tuple[str, list[list[str]]]:
    """SQL that holds for the rows asked for, and its parameters; `true` where nothing is asked.

    A column is called as in the file, or by our name where `mapping` gives it one. Cells are compared as text, whole
    numbers without a fraction; the empty text denotes an empty cell. Raises InputError for a column that is not
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
        raise InputError(f"{table.path}: no row has {asked}; leave a condition of {setting('where')} out")
    return found, parameters


def _cell(table: TableFile, column: str) -> str:
    return f"coalesce({table.label(column)}, '')"


def _column(table: TableFile, key: str, mapping: Mapping[str, str]) -> tuple[str, bool]:
    """The file's column, and whether its values are those to leave out."""
    unlike = key.endswith(NOT) and key not in table.columns
    name = key.removesuffix(NOT) if unlike else key
    theirs = name if name in table.columns else mapping.get(name, name)
    if theirs not in table.columns:
        found = ", ".join(list(table.columns)[:30])
        raise InputError(f'{table.path}: {setting("where")} names the column "{name}"; columns found: {found}')
    return theirs, unlike


def _refuse_unknown_values(table: TableFile, column: str, values: Sequence[str]) -> None:
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
    raise InputError(f'{table.path}: {setting("where")}: "{column}" is {what} in no row; it holds: {shown}')


def _any_row(table: TableFile, found: str, parameters: Sequence[Sequence[str]]) -> bool:
    with table.errors():
        row = table.connection.execute(
            f"select 1 from {table.reader} where {found} limit 1", [*table.parameters, *parameters]
        ).fetchone()
    return row is not None


_SIDES = (("a", "b"), ("first", "second"))


def columns_of(
    table: TableFile, features: Sequence[str], mapping: Mapping[str, str] = {}
) -> dict[str, tuple[str, ...]]:
    """The file's one or two columns of each covariate. Raises InputError for one that is not there."""
    found: dict[str, tuple[str, ...]] = {}
    for name in features:
        ways = [*(tuple(f"{name}_{side}" for side in sides) for sides in _SIDES), (name,)]
        way = next((way for way in ways if all(column in mapping or column in table.columns for column in way)), None)
        if way is None:
            raise InputError(
                f'{table.path}: no columns "{name}_a" and "{name}_b" and no column "{name}" for the covariate {name}; '
                f"columns found: {', '.join(list(table.columns)[:30])}"
            )
        found[name] = tuple(table.column(column, mapping) for column in way)
    return found


def feature_cells(table: TableFile, covariates: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Names and SQL of what a table of verdicts needs: `x0`, `x1`, ... and beside them the cells they are made of."""
    cells = {}
    for number, columns in enumerate(covariates.values()):
        given = [table.cell(column) for column in columns]
        sides = [f"try_cast({cell} as double)" for cell in given]
        x = sides[0]
        if len(sides) == 2:
            a, b = sides
            x = f"case when {a} < 0 or {b} < 0 then null when {a} + {b} = 0 then 0 else ({a} - {b}) / ({a} + {b}) end"
        cells[f"x{number}"] = f"cast({x} as double)"
        cells |= {f"x{number}_{side}": cell for side, cell in enumerate(given)}
    return cells


def scaled(
    values: Mapping[str, NDArray[np.float64]], covariates: Mapping[str, Sequence[str]], rows: NDArray[np.bool_]
) -> dict[str, NDArray[np.float64]]:
    """The covariates, those of two columns divided by their deviation over the rows; one that is 0 there stays."""
    found = dict(values)
    for name, columns in covariates.items():
        spread = float(np.sqrt(np.mean(np.square(values[name][rows])))) if rows.any() else 0.0
        if len(columns) == 2 and spread > 0.0:
            found[name] = values[name] / spread
    return found


def refuse_bad_features(table: TableFile, covariates: Mapping[str, Sequence[str]]) -> None:
    """Raises InputError for the first row whose figure is missing, is no number, or is negative beside another."""
    for number, columns in enumerate(covariates.values()):
        two = len(columns) == 2
        for side, column in enumerate(columns):
            cell = f"x{number}_{side}"
            figure = f"try_cast({cell} as double)"
            fine = f"coalesce(isfinite({figure}){f' and {figure} >= 0' if two else ''}, false)"
            row = table.connection.execute(
                f"select row, cast({cell} as varchar) from verdict where not {fine} order by row limit 1"
            ).fetchone()
            if row is not None:
                kind = "a number, 0 or more" if two else "a number"
                raise InputError(
                    f'{table.path}: row {row[0]}: "{column}" is "{(row[1] or "")[:60]}"; accepted: {kind}; fill it in '
                    "or leave the row out"
                )
