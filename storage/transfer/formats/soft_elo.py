"""Tables of Soft-Elo: a person's vote, a judge's verdict, and the judge's scores of both answers on criteria."""

from __future__ import annotations

from venire.storage.transfer.formats.entry import Format
from venire.storage.transfer.formats.judged import Dialect

__all__ = ["SOFT_ELO"]

_MODELS = {"model_a": ("model_a",), "model_b": ("model_b",)}
_ABOUT = {"judge": ("judge",), "instruction_id": ("instruction_id_hash", "battle_id")}
_WHOSE = "the judge's verdicts; the people's with --map winner={}"

DIALECTS = (
    Dialect(
        "soft-elo",
        "judged_soft_elo",
        {
            **_MODELS,
            "winner": ("judge_pref",),
            "scores_a": ("scores_a",),
            "scores_b": ("scores_b",),
            "human": ("human_pref",),
            **_ABOUT,
        },
        ("model_a", "model_b", "winner", "scores_a", "scores_b"),
        "a number from 0 (A) to 1 (B), 0.5 for a tie",
        nested=frozenset({"scores_a", "scores_b"}),
        note=_WHOSE.format("human_pref"),
    ),
    Dialect(
        "soft-elo",
        "judged_soft_elo_words",
        {
            **_MODELS,
            "winner": ("judge_winner",),
            "difference": ("score_difference",),
            "human": ("human_winner",),
            **_ABOUT,
        },
        ("model_a", "model_b", "winner", "difference"),
        "model_a, model_b, tie",
        note=_WHOSE.format("human_winner"),
    ),
)


SOFT_ELO = Format(dialects=DIALECTS)
