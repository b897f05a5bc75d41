"""AlpacaEval: annotations, a verdict a row, and model outputs."""

from __future__ import annotations

from venire.storage.formats.judged import Dialect

__all__ = ["DIALECTS"]

DIALECTS = (
    Dialect(
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
