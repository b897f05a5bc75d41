"""WildBench: a judge's score of each answer, from 1 to 10."""

from __future__ import annotations

from venire.storage.transfer.formats.entry import Format
from venire.storage.transfer.formats.judged import VerdictDialect

WILDBENCH = Format(
    "The scores of WildBench: a judge's score of each answer.",
    dialects=(
        VerdictDialect(
            "wildbench",
            "judged_grades",
            {
                "model": ("model_test",),
                "winner": ("score",),
                "judge": ("judge",),
                "instruction_id": ("session_id",),
                "turn": ("turn",),
            },
            ("model", "winner", "instruction_id"),
            "a number, N/A where no score was read",
            note="verdicts were made from scores: the higher of two answers wins, within 0.1 they tie",
            tied=0.1,
            unparsed=-1.0,
        ),
    ),
)
