"""Arena-Hard: judgments of a model against a baseline in both orders, questions and answers."""

from __future__ import annotations

from venire.storage.formats.judged import Dialect
from venire.storage.formats.mt_bench import read

__all__ = ["DIALECTS", "read"]
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
        given=frozenset({"model_b"}),
        ordered=True,
        note="A>>B counts as one win, as A>B does",
    ),
)
