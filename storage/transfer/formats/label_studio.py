"""Label Studio: people's votes on pairs, as its exports have the tasks of a labelling with the tag Pairwise.

A task's `data` names the two models in `model_a` and `model_b`, the one on the left first.
"""

from __future__ import annotations

from venire.storage.transfer.formats.columns import INSTRUCTION_IDS, INSTRUCTION_TEXTS
from venire.storage.transfer.formats.entry import Format
from venire.storage.transfer.formats.judged import VerdictDialect

_NOTE = "left is model_a of a task's data; an annotation without a choice was not read"

LABEL_STUDIO = Format(
    "Votes on pairs from Label Studio's exports, JSON, JSON_MIN or CSV; a task has model_a (left) and model_b.",
    dialects=(
        VerdictDialect(
            "label-studio",
            "judged_label_studio",
            {"task": ("id",), "data": ("data",), "annotations": ("annotations",)},
            ("data", "annotations"),
            "left, right",
            nested=frozenset({"data", "annotations"}),
            lists=frozenset({"annotations"}),
            ordered=True,
            once=True,
            note=_NOTE,
        ),
        VerdictDialect(
            "label-studio",
            "judged_label_studio_rows",
            {
                "model_a": ("model_a",),
                "model_b": ("model_b",),
                "winner": ("pairwise", "pw", "comparison", "preference", "choice"),
                "judge": ("annotator",),
                "instruction_id": (*INSTRUCTION_IDS, *INSTRUCTION_TEXTS, "id"),
            },
            ("model_a", "model_b", "winner"),
            "left, right",
            nested=frozenset({"winner"}),
            signs=frozenset({"annotation_id", "lead_time"}),
            ordered=True,
            note=_NOTE,
        ),
    ),
)
