"""Tables of am-ELO: who judged, which two models, and who won."""

from __future__ import annotations

from venire.storage.transfer.formats.entry import Format
from venire.storage.transfer.formats.judged import Dialect

__all__ = ["AM_ELO"]

DIALECTS = (
    Dialect(
        "am-elo",
        "judged_am_elo",
        {
            "model_a": ("model_a",),
            "model_b": ("model_b",),
            "winner": ("winner",),
            "judge": ("judge",),
            "instruction_id": ("question_id", "instruction_id"),
        },
        ("model_a", "model_b", "winner", "judge"),
        "model_a, model_b, tie, tie (bothbad), or 1 for A, 0 for B, 0.5 for a tie",
    ),
)


AM_ELO = Format(dialects=DIALECTS)
