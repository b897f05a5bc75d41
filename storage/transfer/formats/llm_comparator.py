"""LLM Comparator: one report of two models, with the ratings of each example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import duckdb

from venire.arena.records import Completion, Instruction
from venire.storage.transfer.formats.entry import Format, Part, file_name, names
from venire.storage.transfer.formats.judged import VerdictDialect
from venire.storage.transfer.formats.texts import Record, TextRow, digest_id, rows

__all__ = ["LLM_COMPARATOR"]

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
            names = [str(one.get("name") or "") for one in models]
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
    if isinstance(value, list) and all(one.get("type") == "text" for one in value):
        value = "".join(str(one.get("data") or "") for one in value)
    if not isinstance(value, str):
        raise row.error(f'"{name}" of the example is no text; leave it out')
    return value


def parts(connection: duckdb.DuckDBPyConnection, keep: str) -> Iterator[Part]:
    """A report for each two models that met."""
    for first, second in names(connection, "written_pairs"):
        path = PurePath(f"{file_name(first)} - {file_name(second)}.json")
        yield Part(path, "write_llm_comparator", "object", first, second)


LLM_COMPARATOR = Format("Import the prompts and answers of LLM Comparator's reports.", read, DIALECTS, parts)
