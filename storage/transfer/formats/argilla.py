"""Argilla: people's choices between two answers, as its records are exported to JSON."""

from __future__ import annotations

from venire.storage.transfer.formats.entry import Format
from venire.storage.transfer.formats.judged import VerdictDialect

ARGILLA = Format(
    "Choices between two answers in Argilla's records as JSON; the metadata name them in model_a and model_b.",
    dialects=(
        VerdictDialect(
            "argilla",
            "judged_argilla",
            {"winner": ("responses",), "fields": ("fields",), "metadata": ("metadata",), "id": ("id",)},
            ("winner", "fields", "metadata"),
            "the name of one side",
            nested=frozenset({"winner", "fields", "metadata"}),
            note="questions whose answers all name one side or a tie are verdicts, others are left aside",
        ),
    ),
)
