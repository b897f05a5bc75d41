"""Gold labels on their way into a store: what people know, or say, of single completions; all of a file, or nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from venire.arena.errors import InputError
from venire.arena.records import AnswerGrade, Origin
from venire.storage.store.connection import Row
from venire.storage.store.store import Commit, Store
from venire.storage.transfer.casting import group_name, group_number
from venire.storage.transfer.formats.columns import with_ids
from venire.storage.transfer.formats.source import open_table

_COLUMNS = ("instruction_id", "model", "correct", "annotator")

_WORDS = {
    **dict.fromkeys(("1", "true", "yes", "correct", "right"), AnswerGrade.CORRECT),
    **dict.fromkeys(("0", "false", "no", "incorrect", "wrong"), AnswerGrade.INCORRECT),
    **dict.fromkeys(("2", "not attempted", "not_attempted"), AnswerGrade.NOT_ATTEMPTED),
}
"""What the column `correct` may hold, in any case."""


@dataclass(frozen=True, slots=True)
class GoldFile:
    """Labels as a file has them: row, annotator (None: the group itself), instruction, model and `AnswerGrade`."""

    path: Path
    rows: Sequence[tuple[int, str | None, str, str, AnswerGrade]]
    unlabelled: int


@dataclass(frozen=True, slots=True)
class AddedGold:
    """What an import brought: new labels and annotators, labels known already, and rows without one."""

    labels: int
    annotators: int
    known: int
    unlabelled: int


def read_gold(path: Path, mapping: Mapping[str, str] = {}) -> GoldFile:
    """The labels of a table of `instruction_id`, `model`, `correct` and, where there is one, `annotator`.

    `mapping` is from our column names to the file's. A cell of `correct` is yes, true, 1 or correct, the opposites, or
    `not attempted`; a row without one is counted and left out. Raises InputError that names file, row and value.
    """
    if unknown := sorted(set(mapping) - set(_COLUMNS)):
        raise InputError(f"{path}: --map names {unknown[0]!r}; a column of gold labels is one of {', '.join(_COLUMNS)}")
    with closing((table := open_table(path)).connection):
        mapping = with_ids(table, mapping)
        needed = [table.column(name, mapping) for name in _COLUMNS[:3]]
        named = "annotator" in mapping or "annotator" in table.columns
        annotator = table.name(table.column("annotator", mapping)) if named else "null"
        instruction, model, correct = needed
        found = table.execute(
            f"select row_number() over (), {annotator}, {table.label(instruction)}, {table.name(model)}, "
            f"lower(trim({table.label(correct)})) from {{table}}"
        ).fetchall()
    rows = []
    for row, name, *of, word in found:
        if not word:
            continue
        for value, column in zip(of, ("instruction_id", "model"), strict=True):
            if not value:
                raise InputError(f"{path}: row {row} has a label and no {column}: give it one, or leave the row out")
        if word not in _WORDS:
            raise InputError(
                f'{path}: row {row}: "{correct}" is "{word[:60]}"; accepted: true or false, 1 or 0, yes or no, correct '
                "or incorrect, not attempted, or nothing"
            )
        rows.append((int(row), name, *of, _WORDS[word]))
    if not rows:
        raise InputError(f'{path}: "{correct}" is empty in every row: there is no label to import')
    return GoldFile(path, rows, len(found) - len(rows))


def add_gold(store: Store, name: str, *given: GoldFile, origin: Origin = Origin.PEOPLE) -> AddedGold:
    """Bring labels into a store under the name of a group of people; what is there already is left as it is.

    A label is about a model's first answer as it came. A file without annotators holds the labels of one, called as the
    group. Raises InputError, with nothing imported, for an answer that the store does not have, for two labels of one
    annotator on one answer that differ, and for a group of another origin.
    """
    group_name(name)
    with store.commit() as commit:
        added = [_add(store, commit, name, one, origin) for one in given]
    return AddedGold(*(sum(getattr(one, field) for one in added) for field in AddedGold.__slots__))


def _add(store: Store, commit: Commit, name: str, given: GoldFile, origin: Origin) -> AddedGold:
    commit.run("stage_gold")
    staged: list[Row] = [(row, who or name, *of, int(label)) for row, who, *of, label in given.rows]
    appender = store.connection.appender("staged_gold")
    appender.append_rows(staged)
    appender.flush()
    _refuse_bad(store, given)
    people = group_number(store, commit, name, origin, given.path)
    if clash := store.rows("clashing_gold", people=people):
        row, who, instruction, model, label = clash[0]
        raise InputError(
            f"{given.path}: row {row}: {who!r} labelled the answer of {model!r} on instruction {instruction!r} "
            f"{AnswerGrade(label).name.lower().replace('_', ' ')} already: nothing was imported"
        )
    before = commit.written
    commit.run("insert_graders", people=people)
    annotators, before = commit.written - before, commit.written
    commit.run("insert_gold", people=people, batch=commit.batch)
    labels = commit.written - before
    if labels:
        detail = json.dumps({"people": name, "file": given.path.name, "labels": labels}, ensure_ascii=False)
        commit.run(
            "insert_event", now=store.clock.wall(), campaign=None, kind="gold", detail=detail, batch=commit.batch
        )
    return AddedGold(labels, annotators, len({row[1:4] for row in staged}) - labels, given.unlabelled)


def _refuse_bad(store: Store, given: GoldFile) -> None:
    """Raises InputError for an answer that the store does not have, and for contradictions within the file."""
    if unknown := store.rows("unknown_gold"):
        row, instruction, model, has_model, has_instruction = unknown[0]
        lacks = "has no answer of it"
        if not has_model:
            lacks = f"does not have the model {model!r}"
        elif not has_instruction:
            lacks = f"does not have the instruction {instruction!r}"
        raise InputError(
            f"{given.path}: row {row}: {model!r} on instruction {instruction!r}: the store {lacks}: nothing was "
            "imported; give both the same names, or leave the row out"
        )
    if repeated := store.rows("repeated_gold"):
        row, first, who, instruction, model = repeated[0]
        raise InputError(
            f"{given.path}: row {row}: {who!r} labels the answer of {model!r} on instruction {instruction!r} otherwise "
            f"than in row {first}: nothing was imported; keep one of them, or name each annotator"
        )
