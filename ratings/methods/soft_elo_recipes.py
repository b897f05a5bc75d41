"""Recipes of Soft-Elo and its relatives, from judgments to a rated table; `methods` lists them by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.ratings.data.judgments import Judgments
from venire.ratings.data.result import Rated
from venire.ratings.inference.intervals import anchor_shift, errors_for, with_intervals
from venire.ratings.inference.options import Options
from venire.ratings.methods.methods import JUDGE_OPTIONS, Method
from venire.ratings.soft_elo.conformal import leave_one_out_conformal
from venire.ratings.soft_elo.cross_validation import LeaveOneOut, accuracy, leave_one_out
from venire.ratings.soft_elo.soft_elo import RIDGE, hard_elo, human_elo, soft_elo

__all__ = [
    "HARD_ELO",
    "HUMAN_ELO",
    "SOFT_ELO",
    "by_hard_elo",
    "by_human_elo",
    "by_soft_elo",
]

_ALPHA = 0.1


def by_human_elo(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """Bradley-Terry with a small ridge on human labels."""
    data, human, ridge = judgments.comparisons(), _known(judgments.human), _ridge(options)
    return with_intervals(
        human_elo(data, human, ridge=ridge, errors=errors_for(data, options)),
        data,
        options,
        refit=lambda rows: human_elo(data.select(rows), human[rows], ridge=ridge, errors="none"),
    )


def by_hard_elo(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """Bradley-Terry with a small ridge on a judge's verdicts."""
    data, ridge = judgments.comparisons(), _ridge(options)
    found = hard_elo(data, ridge=ridge, errors=errors_for(data, options))
    return with_intervals(found, data, options, ridge=ridge)


def by_soft_elo(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """Soft-Elo, with each model placed among the others and its conformal interval."""
    data, ridge = judgments.comparisons(), _ridge(options)
    score, human = _known(judgments.score), _known(judgments.human)
    found = soft_elo(data, score, human, ridge=ridge, errors=errors_for(data, options))
    held = leave_one_out(
        data, score, human, ridge=ridge, seed=options.seed, cluster="battle" if data.cluster is None else "instruction"
    )
    figures, comparison = _against_people(held)
    shift = anchor_shift(found.ratings, options.anchors)
    figures = {name: column + shift for name, column in figures.items()}
    return with_intervals(
        found.ratings,
        data,
        options,
        refit=lambda rows: soft_elo(data.select(rows), score[rows], human[rows], ridge=ridge, errors="none").ratings,
        figures=figures,
        more={
            "beta": found.beta,
            "n_fit": found.n_fit,
            "ece": found.ece,
            "notes": [*found.warnings, *held.warnings],
            **comparison,
        },
    )


def _against_people(held: LeaveOneOut) -> tuple[Mapping[str, NDArray[np.float64]], dict[str, Any]]:
    """Each model's leave-one-out ratings by people and judge, and the interval calibrated on the others."""
    placed, anchors = held.judge["soft"], np.flatnonzero(held.anchor)
    figures = {"human_elo": held.human.elo, "placed_elo": placed.elo}
    if len(anchors) < 2:
        return figures, {"leave_one_out": None, "conformal": None}
    found = leave_one_out_conformal(
        held.residual("soft")[anchors],
        placed.se[anchors],
        placed.elo[anchors],
        human_se=held.human.se[anchors],
        alpha=_ALPHA,
    )
    for name, bound in (("conformal_lo", found.low), ("conformal_hi", found.high)):
        column = np.full(len(held.models), np.nan)
        column[anchors] = np.where(np.isfinite(bound), bound, np.nan)
        figures[name] = column
    comparison = {
        "leave_one_out": {
            name: asdict(accuracy(held.human.elo[anchors], one.elo[anchors])) for name, one in held.judge.items()
        },
        "conformal": {
            "alpha": found.alpha,
            "expected": found.expected,
            "observed": float(found.covers(held.human.elo[anchors]).mean()),
            "n": found.n,
            "warnings": list(found.warnings),
        },
    }
    return figures, comparison


def _ridge(options: Options) -> float:
    return RIDGE if options.ridge is None else options.ridge


def _known(column: NDArray[np.float64] | None) -> NDArray[np.float64]:
    assert column is not None, "`needs` has seen to it"
    return column


SOFT_ELO = Method(
    by_soft_elo,
    "the same on calibrated probabilities, with conformal intervals",
    frozenset({"ridge", "errors"}),
    ("score", "human"),
)
HARD_ELO = Method(by_hard_elo, "the same on verdicts, with a slight ridge", frozenset({"ridge", "errors"}))
HUMAN_ELO = Method(
    by_human_elo, "the same on what people said", frozenset({"ridge", "errors"}), ("human",), ignores=JUDGE_OPTIONS
)
