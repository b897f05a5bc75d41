"""Chatbot Arena: battles that people voted on, in the forms that were published over the years."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import md5
from pathlib import Path, PurePath

import duckdb

from venire.arena.records import Completion, Instruction
from venire.storage.transfer.formats.entry import Format
from venire.storage.transfer.formats.judged import Dialect
from venire.storage.transfer.formats.texts import Record, Row, digest_id, joined, messages, rows, turns_of
from venire.storage.transfer.formats.writing import Part

__all__ = ["CHATBOT_ARENA"]

_MODELS = {"model_a": ("model_a",), "model_b": ("model_b",)}
_BATTLE = {"judge": ("judge",), "instruction_id": ("question_id", "id")}
_WORDS = "model_a, model_b, tie, tie (bothbad), both_bad"

DIALECTS = (
    Dialect(
        "chatbot-arena",
        "judged_chatbot_arena",
        {**_MODELS, "winner": ("winner",), **_BATTLE},
        ("model_a", "model_b", "winner", "instruction_id"),
        _WORDS,
        signs=frozenset({"conversation_a"}),
    ),
    Dialect(
        "chatbot-arena",
        "judged_chatbot_arena",
        {**_MODELS, "winner": ("winner",), **_BATTLE, "time": ("tstamp", "timestamp")},
        ("model_a", "model_b", "winner", "time"),
        _WORDS,
    ),
    Dialect(
        "chatbot-arena",
        "judged_arena_flags",
        {
            **_MODELS,
            "won_a": ("winner_model_a",),
            "won_b": ("winner_model_b",),
            "tied": ("winner_tie",),
            **_BATTLE,
        },
        ("model_a", "model_b", "won_a", "won_b", "tied"),
        "1 in one of winner_model_a, winner_model_b and winner_tie",
    ),
    Dialect(
        "chatbot-arena",
        "judged_comparia",
        {
            "model_a": ("model_a_name",),
            "model_b": ("model_b_name",),
            "winner": ("chosen_model_name",),
            "equal": ("both_equal",),
            "judge": ("judge",),
            "instruction_id": ("conversation_pair_id", "id"),
        },
        ("model_a", "model_b", "winner", "equal"),
        "one of the two models' names",
    ),
    # By name only: a table of these three columns is a table like any other.
    Dialect(
        "chatbot-arena",
        "judged_chatbot_arena",
        {**_MODELS, "winner": ("winner",), **_BATTLE},
        ("model_a", "model_b", "winner"),
        _WORDS,
    ),
)


def read(paths: Sequence[Path]) -> Iterator[Record]:
    """Instructions and completions of battles: conversations, or `prompt`, `response_a`, `response_b`.

    An instruction is all that the person said, under a digest of it, since a battle's id is no prompt's. Where a model
    answered one prompt in several ways, its answers are samples. Raises InputError that names file, row and column.
    """
    samples: Counter[tuple[str, str]] = Counter()
    known: set[bytes] = set()
    names = ("model_a", "model_b", "conversation_a", "conversation_b", "prompt", "response_a", "response_b")
    for path in paths:
        for row in rows(path, names):
            for side in "ab":
                model = row.text(f"model_{side}")
                prompt, answer = _talk(row, side)
                name, text = digest_id(prompt), joined(answer)
                if text is None:
                    raise row.error('an answer has a line "[turn 1]" or the like, by which turns are told apart')
                yield Instruction(name, prompt)
                mark = md5("\n".join((model, name, text)).encode(), usedforsecurity=False).digest()
                if mark in known:
                    continue
                known.add(mark)
                samples[model, name] += 1
                yield Completion(model, name, text, samples[model, name])


def _talk(row: Row, side: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the person said and what the model answered, turn by turn."""
    said = messages(row, f"conversation_{side}")
    if said is None:
        return turns_of(row, "prompt"), turns_of(row, f"response_{side}")
    spoken = tuple(tuple(text for who, text in said if who == role) for role in ("user", "assistant"))
    if not spoken[0] or not spoken[1]:
        raise row.error(f'"conversation_{side}" has no turn of a user or of an assistant; leave the row out')
    return spoken[0], spoken[1]


def parts(connection: duckdb.DuckDBPyConnection, keep: str) -> Iterator[Part]:
    """Battles, a verdict a row with `model_a` as it was shown first."""
    yield Part(PurePath("battles.json"), "write_chatbot_arena", "list")


CHATBOT_ARENA = Format("Import the prompts and answers of Chatbot Arena battles.", read, DIALECTS, parts)
