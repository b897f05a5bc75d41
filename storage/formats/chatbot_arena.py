"""Chatbot Arena: battles that people voted on, in the forms that were published over the years."""

from __future__ import annotations

from venire.storage.formats.judged import Dialect

__all__ = ["DIALECTS"]

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
