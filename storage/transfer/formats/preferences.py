"""Preference pairs: a prompt, the answer that was chosen and the one that was rejected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Literal

import duckdb

from venire.arena.errors import InputError
from venire.arena.records import Completion, Instruction
from venire.storage.store.connection import query
from venire.storage.transfer.formats.entry import (
    ExportOptions,
    Format,
    Part,
    refuse_unknown,
    refuse_without_verdicts,
    statement,
)
from venire.storage.transfer.formats.judged import VerdictDialect
from venire.storage.transfer.formats.texts import Record, TextRow, digest_id, message_turn, messages, rows

DIALECTS = (
    VerdictDialect(
        "preferences",
        "judged_preferences",
        {
            "model_a": ("chosen_model", "chosen-model"),
            "model_b": ("rejected_model", "rejected-model"),
            "prompt": ("prompt",),
            "judge": ("judge",),
            "instruction_id": ("instruction_id",),
        },
        ("model_a", "model_b"),
        "",
        nested=frozenset({"prompt"}),
        signs=frozenset({"chosen", "rejected"}),
    ),
)


_CELLS = ("instruction_id", "category", "prompt", "chosen", "rejected")
_SIDES = ("chosen", "rejected")


def read(paths: Sequence[Path]) -> Iterator[Record]:
    """Instructions and completions of pairs, texts or lists of messages; the prompt may stand within the answers.

    The models are `chosen_model` and `rejected_model`, or `chosen` and `rejected` where the file does not name them. A
    turn of the prompt that is not the user's begins with its role in brackets. Raises InputError that names file, row
    and column.
    """
    models = tuple(name for side in _SIDES for name in (f"{side}_model", f"{side}-model"))
    for path in paths:
        for row in rows(path, (*_CELLS, *models)):
            pair = [_answer(row, side) for side in _SIDES]
            within = [prompt for prompt, _ in pair if prompt]
            turns = _prompt(row) if "prompt" in row else within[0] if within else ()
            if not turns:
                raise row.error("there is no prompt, neither by itself nor within the answers")
            if any(other != within[0] for other in within):
                raise row.error("the answers follow different prompts; leave the row out")
            name = row.cells.get("instruction_id") or digest_id(turns)
            yield Instruction(name, turns, None, row.cells.get("category") or "")
            for side, (_, text) in zip(_SIDES, pair, strict=True):
                model = row.cells.get(f"{side}_model") or row.cells.get(f"{side}-model") or side
                yield Completion(model, name, text)


def _prompt(row: TextRow) -> tuple[str, ...]:
    said = messages(row, "prompt")
    return (row.text("prompt"),) if said is None else tuple(map(message_turn, said))


def _answer(row: TextRow, side: str) -> tuple[tuple[str, ...], str]:
    """The prompt that precedes an answer, if any, and the answer."""
    said = messages(row, side)
    if said is None:
        if side not in row:
            raise row.error(f'"{side}" is missing or null; an empty text is allowed')
        return (), row.cells[side] or ""
    if not said or said[-1][0] != "assistant":
        raise row.error(f'"{side}" does not end with a message of the assistant; leave the row out')
    return tuple(map(message_turn, said[:-1])), said[-1][1]


_FORMS: Mapping[str, Literal["lines", "csv", "parquet"]] = {"jsonl": "lines", "csv": "csv", "parquet": "parquet"}


def parts(connection: duckdb.DuckDBPyConnection, options: ExportOptions) -> Iterator[Part]:
    """One file of pairs, in the columns that TRL's trainers read and then who was chosen, by whom.

    Raises InputError where there are no verdicts, no judge of that name, and no pair, with what keeps them out.
    """
    refuse_without_verdicts(connection)
    refuse_unknown(connection, "written_judges", options.judges, "judge")
    ending = options.ending or "jsonl"
    if options.messages and ending == "csv":
        raise InputError("lists of messages do not fit into CSV: name a file that ends with .parquet or .jsonl")
    part = Part(
        PurePath(f"preferences.{ending}"),
        "write_preferences_messages" if options.messages else "write_preferences",
        _FORMS[ending],
        keep=options.keep,
        judges=options.judges or None,
    )
    if connection.execute(f"select 1 from ({statement(connection, part)}) limit 1").fetchone() is None:
        raise InputError(_why_none(connection, options.keep))
    yield part


def _why_none(connection: duckdb.DuckDBPyConnection, keep: str) -> str:
    """Why no pair is left, from the counts of `preference_orders`."""
    ((judgments, both, read, agreed, won, decided),) = connection.execute(query("preference_orders")).fetchall()
    if keep == "agreed" and both == 0:
        said = f"no preference pairs: none of {judgments:,} judgments was asked in both orders"
        return f"{said}; --keep decided takes what one order says"
    counts = f"{both:,} have both orders, {read:,} both read, {agreed:,} agree, {won:,} of these on a winner"
    said = f"no preference pairs: of {judgments:,} judgments {counts}"
    if keep == "agreed" and decided:
        return f"{said}; --keep decided takes those that favour an answer in sum"
    return f"{said}; where judges disagree, --judge NAME takes one of them"


PREFERENCES = Format(
    "Import preference pairs: prompt, chosen, rejected, texts or lists of messages.",
    read,
    DIALECTS,
    parts,
    endings=tuple(_FORMS),
    options=frozenset({"keep", "judges", "messages"}),
    signs=(frozenset({"chosen", "rejected"}),),
    writes="Pairs of a chosen and a rejected answer for DPO, in TRL's columns.",
)
