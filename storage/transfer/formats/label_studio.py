"""Label Studio: people's votes on pairs, as its JSON export has the tasks of a labelling with the tag Pairwise.

A task's `data` names the two models in `model_a` and `model_b`, the one on the left first.
"""

from __future__ import annotations

from venire.storage.transfer.formats.entry import Format
from venire.storage.transfer.formats.judged import VerdictDialect

LABEL_STUDIO = Format(
    "Votes on pairs from Label Studio's JSON export; a task's data has model_a (left) and model_b.",
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
            note="left is model_a of a task's data; an annotation without a choice was not read",
        ),
    ),
)
