"""Interim analyses of a campaign, kept after each round of its plan."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from venire.arena.planning import InterimAnalysis, InterimRating
from venire.storage.store.store import Store

__all__ = ["add", "last", "read"]


def add(store: Store, campaign: int, round_number: int, analysis: InterimAnalysis, settled: int = 0) -> None:
    """Keep an interim analysis, made after the round of that number when so many of its trials were settled.

    Figures that are no number or without end are kept as not known. Raises StoreError when the store cannot be written.
    """
    figures = json.dumps(_finite(asdict(analysis)), ensure_ascii=False, allow_nan=False)
    with store.commit() as commit:
        commit.run(
            "insert_interim",
            campaign=campaign,
            round=round_number,
            now=store.clock.wall(),
            settled=settled,
            battles=analysis.battles,
            verdicts=analysis.verdicts,
            nano=analysis.nano,
            stop=analysis.stop,
            figures=figures,
        )


def read(store: Store, campaign: int) -> tuple[tuple[int, InterimAnalysis], ...]:
    """The interim analyses of a plan in force, each with the number of the round it was made after; any thread."""
    return tuple(
        (number, _analysis(figures)) for number, _, figures in store.read("interim_analyses", campaign=campaign)
    )


def last(store: Store, campaign: int) -> tuple[int, int, InterimAnalysis] | None:
    """The last analysis: its round, how many trials were settled then, and what it says; None before the first."""
    rows = store.read("interim_analyses", campaign=campaign)
    return None if not rows else (rows[-1][0], rows[-1][1], _analysis(rows[-1][2]))


def _analysis(figures: str) -> InterimAnalysis:
    found = json.loads(figures)
    models = tuple(InterimRating(**one) for one in found.pop("models"))
    return InterimAnalysis(**found | {"models": models, "warnings": tuple(found["warnings"])})


def _finite(value: Any) -> Any:
    """Plain values, with None for what JSON has no number for."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
