"""LLM Comparator: one report of two models, with the ratings of each example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import duckdb

from venire.arena.errors import InputError
from venire.arena.records import Completion, Instruction
from venire.storage.transfer.formats.entry import (
    ExportOptions,
    Format,
    Part,
    file_name,
    names,
    refuse_unknown,
    refuse_without_verdicts,
)
from venire.storage.transfer.formats.judged import VerdictDialect
from venire.storage.transfer.formats.texts import Record, TextRow, digest_id, rows

DIALECTS = (
    VerdictDialect(
        "llm-comparator",
        "judged_llm_comparator",
        {"models": ("models",), "examples": ("examples",)},
        ("models", "examples"),
        "a number, positive where A is better",
        nested=frozenset({"models", "examples"}),
        lists=frozenset({"models", "examples"}),
        ordered=True,
        note="a rating counts by its sign; an example without ratings by its score",
    ),
)


def read(paths: Sequence[Path]) -> Iterator[Record]:
    """Instructions and completions of reports; an instruction's category is its first tag.

    Raises InputError that names the file and the example (the first is 1).
    """
    for path in paths:
        for report in rows(path, ("models", "examples")):
            models, examples = report.value("models"), report.value("examples")
            if not isinstance(models, list) or len(models) != 2 or not isinstance(examples, list):
                raise report.error("not a report: two models and a list of examples are needed")
            names = [str(model.get("name") or "") for model in models]
            for number, example in enumerate(examples, start=1):
                yield from _example(TextRow(path, number, {}), names, example)


def _example(row: TextRow, models: Sequence[str], example: Mapping[str, Any]) -> Iterator[Record]:
    prompt = _text(row, example, "input_text")
    name, tags = digest_id([prompt]), example.get("tags") or [""]
    yield Instruction(name, (prompt,), None, str(tags[0]))
    for model, side in zip(models, "ab", strict=True):
        if not model:
            raise row.error(f"model {side.upper()} has no name; give it one under models")
        yield Completion(model, name, _text(row, example, f"output_text_{side}"))


def _text(row: TextRow, example: Mapping[str, Any], name: str) -> str:
    """A text, or the texts of its chunks."""
    value = example.get(name)
    if isinstance(value, list) and all(part.get("type") == "text" for part in value):
        value = "".join(str(part.get("data") or "") for part in value)
    if not isinstance(value, str):
        raise row.error(f'"{name}" of the example is no text; leave it out')
    return value


def parts(connection: duckdb.DuckDBPyConnection, options: ExportOptions) -> Iterator[Part]:
    """A report for each two models that met, or for those of `pair`.

    Raises InputError where there are no verdicts, for a pair that never met, and for one file of several pairs.
    """
    refuse_without_verdicts(connection)
    met = names(connection, "written_pairs")
    if options.pair is not None:
        met = [pair for pair in met if set(pair) == set(options.pair)]
        if not met:
            refuse_unknown(connection, "written_contestants", options.pair, "model")
            raise InputError(f"{options.pair[0]} and {options.pair[1]} never met: name two models that were compared")
    if options.ending is not None and len(met) > 1:
        there = ", ".join(name for (name,) in names(connection, "written_contestants"))
        raise InputError(
            f"one report is of two models, and {len(met)} pairs met: name one with --pair A B, or a folder for all; "
            f"models: {there}"
        )
    for first, second in met:
        path = PurePath(f"{file_name(first)} - {file_name(second)}.json")
        yield Part(path, "write_llm_comparator", "object", first, second)


LLM_COMPARATOR = Format(
    "Import the prompts and answers of LLM Comparator's reports.",
    read,
    DIALECTS,
    parts,
    endings=("json",),
    options=frozenset({"pair"}),
    signs=(frozenset({"models", "examples"}),),
    writes="LLM Comparator's report of two models; in a folder one of every two that met.",
)
