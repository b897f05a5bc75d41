"""MT-bench: judgments of pairs in both orders, grades of single answers, votes of people, questions and answers."""

from __future__ import annotations

from venire.storage.formats.judged import Dialect

__all__ = ["DIALECTS"]

_JUDGE, _QUESTION, _TURN = ("judge",), ("question_id",), ("turn",)

DIALECTS = (
    Dialect(
        "mt-bench",
        "judged_mt_bench_pairs",
        {
            "model_a": ("model_1",),
            "model_b": ("model_2",),
            "winner": ("g1_winner",),
            "second": ("g2_winner",),
            "judge": _JUDGE,
            "instruction_id": _QUESTION,
        },
        ("model_a", "model_b", "winner", "second", "judge", "instruction_id"),
        "model_1, model_2, tie, error",
        nested=frozenset({"judge"}),
        ordered=True,
        note="the turns of a question count as repeats of it",
    ),
    Dialect(
        "mt-bench",
        "judged_mt_bench_scores",
        {"model": ("model",), "winner": ("score",), "judge": _JUDGE, "instruction_id": _QUESTION, "turn": _TURN},
        ("model", "winner", "judge", "instruction_id", "turn"),
        "a number, -1 where no grade was read",
        nested=frozenset({"judge"}),
        note="verdicts were made from grades: the higher of two answers wins, within 0.1 they tie",
    ),
    Dialect(
        "mt-bench",
        "judged_chatbot_arena",
        {
            "model_a": ("model_a",),
            "model_b": ("model_b",),
            "winner": ("winner",),
            "judge": _JUDGE,
            "instruction_id": _QUESTION,
            "turn": _TURN,
        },
        ("model_a", "model_b", "winner", "judge", "instruction_id", "turn"),
        "model_a, model_b, tie, tie (inconsistent)",
        absent=frozenset({"tstamp", "anony", "language"}),
    ),
)
