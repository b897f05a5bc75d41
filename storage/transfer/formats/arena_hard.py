"""Arena-Hard: judgments of a model against a baseline in both orders, questions and answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

import duckdb

from venire.storage.transfer.formats.entry import Format
from venire.storage.transfer.formats.judged import Dialect
from venire.storage.transfer.formats.mt_bench import read
from venire.storage.transfer.formats.writing import Part, file_name, names

__all__ = ["ARENA_HARD"]
# Its questions and answers grew out of MT-bench's, and one reader knows both.

DIALECTS = (
    Dialect(
        "arena-hard",
        "judged_arena_hard",
        {
            "model_a": ("model",),
            "model_b": ("baseline",),
            "winner": ("games",),
            "judge": ("judge",),
            "instruction_id": ("uid", "question_id"),
        },
        ("model_a", "model_b", "winner", "judge", "instruction_id"),
        "A>>B, A>B, A=B, B>A, B>>A",
        nested=frozenset({"winner"}),
        lists=frozenset({"winner"}),
        given=frozenset({"model_b"}),
        ordered=True,
        note="A>>B counts as one win, as A>B does",
    ),
)


def parts(connection: duckdb.DuckDBPyConnection, keep: str) -> Iterator[Part]:
    """Questions, answers and judgments in Arena-Hard's folders; the baseline is whom all met, or each pair's A."""
    yield Part(PurePath("question.jsonl"), "write_arena_hard_questions")
    for (model,) in names(connection, "told_models"):
        yield Part(PurePath("model_answer", f"{file_name(model)}.jsonl"), "write_arena_hard_answers", model=model)
    for (judge,) in names(connection, "told_judges"):
        for (model,) in names(connection, "told_judged_models", judge=judge):
            path = PurePath("model_judgment", file_name(judge), f"{file_name(model)}.jsonl")
            yield Part(path, "write_arena_hard_judgments", model=model, judge=judge)


ARENA_HARD = Format(
    "Import questions and answers of Arena-Hard: question.jsonl, model_answer/*.jsonl.", read, DIALECTS, parts
)
