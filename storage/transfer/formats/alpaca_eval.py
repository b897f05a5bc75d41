"""AlpacaEval: annotations, a verdict a row, and model outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

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
from venire.storage.transfer.formats.texts import Record, digest_id, rows

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
        once=True,
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


_HEADER = ",win_rate,standard_error,n_wins,n_wins_base,n_draws,n_total,discrete_win_rate,mode,avg_length"


def parts(connection: duckdb.DuckDBPyConnection, options: ExportOptions) -> Iterator[Part]:
    """The leaderboard against a baseline; in a folder also model outputs and annotations, with the answer shown first.

    Without `baseline` it is the one model that met all others; a folder has no leaderboard where there are several.
    Raises InputError where there are no verdicts, or no such judge or model, and for a single file without baseline.
    """
    if options.ending is not None or options.baseline is not None:
        refuse_without_verdicts(connection)
        refuse_unknown(connection, "written_judges", options.judges, "judge")
    if options.baseline is not None:
        refuse_unknown(connection, "written_contestants", [options.baseline], "model")
    baseline = options.baseline or _common_opponent(connection)
    if baseline is None and options.ending is not None:
        there = ", ".join(name for (name,) in names(connection, "written_contestants"))
        raise InputError(f"a leaderboard compares with one model: name it with --baseline; there are: {there}")
    if baseline is not None:
        judges = options.judges or None
        path = PurePath("leaderboard.csv")
        yield Part(path, "write_alpaca_leaderboard", "csv", baseline=baseline, judges=judges, header=_HEADER)
    if options.ending is None:
        for (model,) in names(connection, "written_models"):
            yield Part(PurePath("model_outputs", f"{file_name(model)}.json"), "write_alpaca_outputs", "list", model)
        yield Part(PurePath("annotations.json"), "write_alpaca_annotations", "list")


def _common_opponent(connection: duckdb.DuckDBPyConnection) -> str | None:
    """The only model that met all others."""
    found = names(connection, "written_baselines")
    return found[0][0] if len(found) == 1 else None


ALPACA_EVAL = Format(
    "Import model outputs of AlpacaEval: instruction, output, generator.",
    read,
    DIALECTS,
    parts,
    endings=("csv",),
    options=frozenset({"baseline", "judges"}),
    signs=(frozenset({"instruction", "output", "generator"}),),
    writes="AlpacaEval's leaderboard against a baseline; in a folder also outputs and annotations.",
)
