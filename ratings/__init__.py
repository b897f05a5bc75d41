"""Ratings from verdicts: arrays in, frozen results out; no files, no network."""

from __future__ import annotations

from venire.ratings.agreement import Agreement, agreement
from venire.ratings.bradley_terry import (
    BradleyTerry,
    NotConvergedError,
    SeparatedError,
    fit,
    separated_groups,
    win_matrix,
)
from venire.ratings.consistency import Consistency, JudgeConsistency, consistency
from venire.ratings.inference import Bootstrap, bootstrap
from venire.ratings.merging import Judgments, Merge, merge_orders
from venire.ratings.scale import to_elo, to_logits

__all__ = [
    "Agreement",
    "Bootstrap",
    "BradleyTerry",
    "Consistency",
    "JudgeConsistency",
    "Judgments",
    "Merge",
    "NotConvergedError",
    "SeparatedError",
    "agreement",
    "bootstrap",
    "consistency",
    "fit",
    "merge_orders",
    "separated_groups",
    "to_elo",
    "to_logits",
    "win_matrix",
]
