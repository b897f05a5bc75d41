"""AlpacaEval: annotations, a verdict a row, and model outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

import duckdb

from venire.arena.records import Completion, Instruction
from venire.storage.transfer.formats.entry import Format, Part, file_name, names
from venire.storage.transfer.formats.judged import VerdictDialect
from venire.storage.transfer.formats.texts import Record, digest_id, rows

__all__ = ["ALPACA_EVAL"]

DIALECTS = (
    VerdictDialect(
        "alpaca-eval",
        "judged_alpaca_eval",
        {
            "model_a": ("generator_1",),
            "model_b": ("generator_2",),
            "winner": ("preference",),
            "judge": ("annotator",),
            "instruction": ("instruction",),
        },
        ("model_a", "model_b", "winner"),
        "a number from 1 (output_1) to 2 (output_2), 0 or 1.5 for a draw",
        note="a preference between 1 and 2 counts as a whole win of the nearer side",
    ),
)


def read(paths: Sequence[Path]) -> Iterator[Record]:
    """Instructions and completions of model outputs: `instruction`, `output`, `generator`, optional `input`, `dataset`.

    An instruction's id is a digest of its text, since the file has none; `input` follows the instruction after an empty
    line. Raises InputError that names file, row and column.
    """
    for path in paths:
        for row in rows(path, ("instruction", "input", "output", "generator", "dataset")):
            prompt = row.text("instruction")
            text = f"{prompt}\n\n{row.text('input')}" if row.cells.get("input") else prompt
            yield Instruction(digest_id([text]), (text,), None, row.cells.get("dataset") or "")
            if "output" not in row:
                raise row.error('"output" is missing or null; an empty text is allowed')
            yield Completion(row.text("generator"), digest_id([text]), row.cells["output"] or "")


def parts(connection: duckdb.DuckDBPyConnection, keep: str) -> Iterator[Part]:
    """Model outputs, a file a model, and annotations, a verdict a row with `output_1` as it was shown first."""
    for (model,) in names(connection, "written_models"):
        yield Part(PurePath("model_outputs", f"{file_name(model)}.json"), "write_alpaca_outputs", "list", model)
    yield Part(PurePath("annotations.json"), "write_alpaca_annotations", "list")


ALPACA_EVAL = Format("Import model outputs of AlpacaEval: instruction, output, generator.", read, DIALECTS, parts)
