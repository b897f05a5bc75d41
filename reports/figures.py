"""Figures beside a board that papers report: prediction of verdicts, robustness, contrasts, places, people's order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError, VenireError
from venire.ratings.agreement.chance_corrected import Coefficient
from venire.ratings.agreement.reference import MicroMacro
from venire.ratings.am_elo.am_elo import am_elo
from venire.ratings.am_elo.evaluation import Evaluation, evaluate_rows
from venire.ratings.am_elo.robustness import Fit, Perturbation, robustness
from venire.ratings.data.judgments import Judgments
from venire.ratings.data.result import Rated
from venire.ratings.inference.contrasts import battles_needed, difference
from venire.ratings.inference.options import Options
from venire.ratings.judges.position import position_audits
from venire.ratings.methods.methods import merge_selected, missing_data, rate, select_verdicts
from venire.ratings.methods.prediction import predict_rows
from venire.ratings.pairwise.bradley_terry import m_elo
from venire.ratings.pairwise.online import online_elo
from venire.ratings.peers.peer_agreement import peer_agreement, truncation
from venire.ratings.voting.kemeny import kemeny_young
from venire.reports.comparison import options_for

_PREDICTED = ("elo", "m-elo", "am-elo")
"""Methods that are held out beside the board's own: those of the am-ELO paper."""

_SEEDS = range(10)
"""Draws of the judges whose verdicts are perturbed."""

_THRESHOLD = 0.0
"""Ability at or below which a judge counts as found."""

_P = 0.05
"""Level of the test that a battle's winner hangs on the order shown."""

_SECONDS = 1.0
"""Time limit for one order of all votes."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What is asked for beside a board; by default nothing.

    `folds` of judgments, each predicted from the others; `steady`, the share of judges whose verdicts are perturbed;
    `contrast`, two models, with `half_width` in Elo points; `positions`, the audit of battles shown several times in
    each order; `people`, agreement of single instructions and of all with the reference, also of truncated rankings.
    """

    folds: int = 0
    steady: float = 0.0
    contrast: tuple[str, str] | None = None
    half_width: float | None = None
    positions: bool = False
    people: bool = False

    def __post_init__(self) -> None:
        if self.folds == 1 or self.folds < 0:
            raise InputError(f"folds is {self.folds}; give 2 or more, such as 5")
        if not 0.0 <= self.steady < 1.0:
            raise InputError(f"steady is {self.steady}; give the share of judges to perturb, such as 0.25")
        if self.half_width is not None and self.contrast is None:
            raise InputError("a half width is that of a contrast: name two models (--contrast A B)")


def figures_of(
    battles: Battles, method: str, options: Options, asked: Figures, reference: Mapping[str, float]
) -> dict[str, Any]:
    """The figures that are asked for as plain JSON values, each under its own key.

    Raises `InputError` where the table lacks what a figure needs, and as `rate` does.
    """
    found: dict[str, Any] = {}
    plain = replace(options, replicates=0)
    if asked.folds:
        found["prediction"] = _prediction(battles, method, plain, asked.folds)
    if asked.steady:
        found["robustness"] = _robustness(merge_selected(battles, plain), asked.steady, plain.seed)
    if asked.contrast:
        found["contrast"] = _contrast(rate(battles, method, plain), asked.contrast, asked.half_width, plain.level)
    if asked.positions:
        found["positions"] = _positions(select_verdicts(battles, plain))
    if asked.people:
        found["people_order"] = _people_order(battles, plain, reference)
    return found


def _prediction(battles: Battles, method: str, options: Options, folds: int) -> dict[str, Any]:
    """Held-out error of the board's method and those of the am-ELO paper, and of even odds."""
    judgments = merge_selected(battles, options)
    names = list(dict.fromkeys([method, *_PREDICTED]))
    rows: list[dict[str, Any]] = [_evaluated("even odds", evaluate_rows(judgments.y, _even, folds, options.seed))]
    left_out = {}
    for name in names:
        if why := missing_data(battles, name, options_for(name, options)):
            left_out[name] = f"needs {why}"
            continue
        predict = partial(predict_rows, select_verdicts(battles, options), judgments, name, options_for(name, options))
        try:
            rows.append(_evaluated(name, evaluate_rows(judgments.y, predict, folds, options.seed)))
        except VenireError as error:
            left_out[name] = str(error)
    return {"folds": folds, "judgments": len(judgments), "methods": rows, "left_out": left_out}


def _even(train: NDArray[np.intp], test: NDArray[np.intp]) -> NDArray[np.float64]:
    return np.full(len(test), 0.5)


def _evaluated(name: str, found: Evaluation) -> dict[str, Any]:
    return {
        "method": name,
        "mse": found.mse,
        "auc": found.auc,
        "auc_decisive": found.auc_decisive,
        "log_loss": found.log_loss,
        "predicted": found.rows,
        "not_predicted": found.missing,
    }


def _robustness(judgments: Judgments, share: float, seed: int) -> dict[str, Any]:
    """How far orders move, and whether judges are found, when some judges' verdicts are perturbed in four ways."""
    data = judgments.comparisons()
    fits: dict[str, Fit] = {
        "elo": lambda rows: online_elo(rows, seed=seed).ratings,
        "m-elo": m_elo,
        "am-elo": am_elo,
    }
    seeds = [seed + number for number in _SEEDS]
    rows: list[dict[str, Any]] = []
    perturbed = 0
    for kind in get_args(Perturbation):
        found = robustness(data, fits, share=share, kind=kind, seeds=seeds, thresholds=(_THRESHOLD,))
        perturbed = found.count
        rows += [
            {
                "method": one["method"],
                "kind": kind,
                "inconsistency": one["inconsistency"],
                "f1": one[f"f1_at_{_THRESHOLD:g}"],
                "draws": one["seeds"],
                "undecided": one["undecided"],
            }
            for one in found.rows()
        ]
    return {"share": share, "perturbed": perturbed, "judges": len(judgments.judges), "methods": rows}


def _contrast(rated: Rated, models: tuple[str, str], half_width: float | None, level: float) -> dict[str, Any]:
    """The difference of two models with its interval, and the battles that it still needs."""
    model, other = models
    found = difference(rated.ratings, model, other, level)
    needed = battles_needed(rated.ratings, model, other, level=level, half_width=half_width)
    return {
        "model": model,
        "other": other,
        "difference": found.estimate,
        "se": found.se,
        "lo": found.lo,
        "hi": found.hi,
        "above": found.above,
        "level": level,
        "half_width": half_width,
        "battles_between": needed.between,
        "battles_in_all": needed.everywhere,
    }


def _positions(battles: Battles) -> dict[str, Any]:
    """The audits of single battles that were shown several times in each order, by judge."""
    audits = position_audits(battles)
    if not audits:
        raise InputError(
            "no judge saw a battle twice or more in each order, so that order and chance cannot be told apart: plan "
            "repeats of both orders"
        )
    rows = []
    for judge in sorted({one.judge for one in audits}):
        own = [one.audit for one in audits if one.judge == judge]
        tested = [one.p_value for one in own if one.p_value is not None]
        rows.append(
            {
                "judge": judge,
                "battles": len(own),
                "flip_rate": _mean([one.flip_rate for one in own]),
                "first": _mean([share for one in own for share in one.first]),
                "between_orders": _mean([one.between_orders for one in own]),
                "tested": len(tested),
                "by_order": sum(p < _P for p in tested),
            }
        )
    return {"p_below": _P, "judges": rows}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return sum(known) / len(known) if known else None


def _people_order(battles: Battles, options: Options, reference: Mapping[str, float]) -> dict[str, Any]:
    """Agreement of the peers' rankings with the reference, micro and macro, and what shorter rankings lose of it."""
    if not reference:
        raise InputError("rankings are held against known ratings: name them with --reference FILE")
    ballots = select_verdicts(battles, options).ballots
    given = merge_selected(battles, options) if ballots is None else ballots
    aggregate = partial(kemeny_young, seconds=_SECONDS)
    found = peer_agreement(given, reference, aggregate, level=options.level, seed=options.seed)
    shared = len(found.together.models)
    cut = truncation(given, reference, range(1, shared), aggregate, level=options.level, seed=options.seed)
    return {
        "models": shared,
        "together": _micro_macro(found.together),
        "judges": {name: _micro_macro(one) for name, one in found.judges.items()},
        "best_judge": found.best_judge,
        "lead": None if found.lead is None else _coefficient(found.lead),
        "truncation": [
            {"best": one.best, "micro_loss": _coefficient(one.micro_loss), "macro_loss": one.macro_loss} for one in cut
        ],
    }


def _micro_macro(found: MicroMacro) -> dict[str, Any]:
    names = ("micro_pearson", "micro_kendall", "macro_pearson", "macro_spearman", "macro_kendall")
    figures = {name: _coefficient(getattr(found, name)) for name in names}
    return {"instructions": found.instructions, "tied": found.tied, "few": found.few, **figures}


def _coefficient(found: Coefficient) -> dict[str, Any]:
    return {"value": _known(found.value), "lo": _known(found.lo), "hi": _known(found.hi)}


def _known(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
