"""Preference pairs: a prompt, the answer that was chosen and the one that was rejected."""

from __future__ import annotations

from venire.storage.formats.judged import Dialect

__all__ = ["DIALECTS"]

DIALECTS = (
    Dialect(
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
