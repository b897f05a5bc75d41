"""LLM Comparator: one report of two models, with the ratings of each example."""

from __future__ import annotations

from venire.storage.formats.judged import Dialect

__all__ = ["DIALECTS"]

DIALECTS = (
    Dialect(
        "llm-comparator",
        "judged_llm_comparator",
        {"models": ("models",), "examples": ("examples",)},
        ("models", "examples"),
        "a number, positive where A is better",
        nested=frozenset({"models", "examples"}),
        ordered=True,
        note="a rating counts by its sign; an example without ratings by its score",
    ),
)
