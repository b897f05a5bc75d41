"""What charts of verdicts show beside the figures of a board: rows of plain values, computed when a chart is drawn."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from venire.arena.battles import Battles
from venire.arena.errors import InputError, VenireError
from venire.arena.records import Status
from venire.ratings.agreement.calibration import calibration
from venire.ratings.am_elo.evaluation import evaluate_rows
from venire.ratings.data.judgments import select_battles
from venire.ratings.data.result import Rated
from venire.ratings.data.statistics import student
from venire.ratings.inference.options import Options
from venire.ratings.judges.position import position_effects
from venire.ratings.methods.methods import merge_selected, rate, select_verdicts
from venire.ratings.methods.prediction import predict_rows
from venire.ratings.pairwise.components import largest_group
from venire.ratings.soft_elo.panel import soft_elo_panel

Row = dict[str, Any]

_CUTS = 24
"""Points of a learning curve: one fit each."""

_FOLDS = 5
_BINS = 10
_MIN_IN_A_BIN = 10


@dataclass(frozen=True, slots=True)
class Cost:
    """What was paid in nano-dollars for `count` verdicts of a judge, or completions of a model."""

    name: str
    nano: int
    count: int
    deviation: float | None = None
    """The standard deviation of the price of one in nano-dollars, where it is known."""

    @property
    def dollars(self) -> float:
        """Dollars for each."""
        return self.nano / 1e9 / self.count if self.count else 0.0

    def interval(self, level: float) -> tuple[float, float] | None:
        """The interval of the mean price of one in dollars at `level`; None of fewer than two, or of nothing paid.

        Student's interval of the logarithm of the mean (delta method), whose ends are positive however prices vary.
        """
        if self.deviation is None or self.count < 2 or self.nano <= 0:
            return None
        error = self.deviation / math.sqrt(self.count) / (self.nano / self.count)
        reach = math.exp(float(student.ppf((1.0 + level) / 2.0, self.count - 1.0)) * error)
        return self.dollars / reach, self.dollars * reach


@dataclass(frozen=True, slots=True)
class Costs:
    """What a store has paid: for the verdicts of a campaign's judges, and for completions that it had written."""

    judges: tuple[Cost, ...] = ()
    models: tuple[Cost, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ChartSource:
    """The verdicts behind a board or an audit, for charts that need more than its figures.

    `in_time` reads the same verdicts in the order in which they were given (None: not known), which `sequence` says in
    words; `costs` reads what they and the completions cost. Both are called when a chart is drawn: reading them from a
    store takes as long as the board.
    """

    battles: Battles
    method: str
    options: Options
    in_time: Callable[[], Battles] | None = None
    costs: Callable[[], Costs] | None = None
    sequence: str = "verdicts, in the order in which they were given"


def missing(source: ChartSource | None, kind: str) -> str | None:
    """Why verdicts have no data for a chart of this kind, in words; None where they have."""
    if source is None:
        return "the verdicts behind it were not kept"
    battles = source.battles
    if not (battles.status == Status.OK).any():
        return "there is no readable verdict"
    if battles.ballots is not None and kind in ("position", "learning", "calibration", "reliability"):
        return "its verdicts are ballots, not pairs"
    if kind == "position" and not battles.ordered:
        return "nothing says which answer was shown first"
    if kind == "reliability" and (battles.score is None or battles.human is None):
        return "it takes scores of judges and verdicts of people: columns score_difference and human_winner of a table"
    if kind == "learning" and source.in_time is None:
        return "the order in which these verdicts were given is not known"
    if kind in ("learning", "calibration") and source.options.covariates:
        return "it is drawn of ratings without covariates"
    return None


def cost_rows(models: Sequence[Mapping[str, Any]], costs: Sequence[Cost], level: float) -> list[Row]:
    """Models on one scale by what a completion cost them, the cheapest first, with intervals of both at `level`.

    `models` are rows of a board. Where groups of them were rated apart, the group with the most prices is taken. A
    model is on the frontier where none that costs as little is rated as high.
    """
    price = {one.name: one for one in costs if one.nano > 0 and one.count}
    known = [one for one in models if one.get("elo") is not None and one["model"] in price]
    (largest, _), *_ = Counter(one.get("group") for one in known).most_common(1) or [(None, 0)]
    rows: list[Row] = []
    for one in known:
        if one.get("group") != largest:
            continue
        cost = price[one["model"]]
        lo, hi = cost.interval(level) or (None, None)
        rating = {key: one.get(key) for key in ("model", "elo", "lo", "hi")}
        rows.append({**rating, "cost": cost.dollars, "cost_lo": lo, "cost_hi": hi, "completions": cost.count})
    rows.sort(key=lambda row: (row["cost"], -row["elo"], row["model"]))
    best = -math.inf
    for row in rows:
        row["frontier"] = row["elo"] > best
        best = max(best, row["elo"])
    return rows


def matrix_rows(source: ChartSource, models: Sequence[str] | None = None) -> list[Row]:
    """Of each two of `models` that met: the first one's share of wins, with ties as halves, and how often they met.

    The models are in the order given, by default in that of their shares of all wins.
    """
    counts = merge_selected(source.battles, source.options).comparisons().wins
    place = {name: code for code, name in enumerate(counts.models)}
    wins = counts.matrix()
    met = wins + wins.T
    if models is None:
        share = wins.sum(axis=1) / np.maximum(met.sum(axis=1), 1e-12)
        models = sorted(place, key=lambda name: (-share[place[name]], name))
    there = [name for name in models if name in place]
    return [
        {
            "model": one,
            "other": other,
            "share": float(wins[place[one], place[other]] / met[place[one], place[other]]),
            "judgments": float(met[place[one], place[other]]),
        }
        for one in there
        for other in there
        if met[place[one], place[other]] > 0.0
    ]


def position_rows(source: ChartSource) -> list[Row]:
    """Each judge's share of decisive verdicts for the answer shown first, with its interval, and its flips."""
    rows = []
    for one in position_effects(source.battles):
        if one.first.value is None:
            continue
        bounds = one.first.interval if one.fitted else one.first.share_interval
        lo, hi = bounds(source.options.level)
        rows.append({"judge": one.judge, "first": one.first.value, "lo": lo, "hi": hi, "flips": one.flips.value})
    if not rows:
        raise InputError("no judge has decisive verdicts in both orders")
    return rows


def reliability_rows(source: ChartSource) -> list[Row]:
    """By judge and bin: how often people should agree with its score by its beta, and how often they did."""
    judgments = merge_selected(source.battles, source.options)
    if judgments.score is None or judgments.human is None:
        raise InputError("scores or labels of people are missing")
    found = soft_elo_panel(judgments.comparisons(), judgments.score, judgments.human, errors="none")
    rows = [
        {
            "judge": judge.judge or "all",
            "predicted": float(predicted),
            "observed": float(observed),
            "battles": int(count),
            "ece": judge.reliability.ece,
        }
        for judge in found.judges
        for predicted, observed, count in zip(
            judge.reliability.predicted, judge.reliability.observed, judge.reliability.count, strict=True
        )
    ]
    if not rows:
        raise InputError("no battle was decided by people and a judge alike")
    return rows


def calibration_rows(source: ChartSource) -> tuple[list[Row], Mapping[str, float | int]]:
    """By bin: how often the higher rated model should win a judgment, and how often it did; and the whole error.

    Each judgment is predicted by ratings from four fifths of the others, so that ratings are not held against what they
    were made from.
    """
    options = replace(source.options, replicates=0)
    judgments = merge_selected(source.battles, options)
    selected = select_verdicts(source.battles, options)
    if len(judgments) < 2 * _FOLDS:
        raise InputError(f"too few judgments ({len(judgments)}) to predict some from others")
    predict = partial(predict_rows, selected, judgments, source.method, options)
    stated = evaluate_rows(judgments.y, predict, _FOLDS, options.seed).predicted
    known = np.isfinite(stated)
    if not known.any():
        raise InputError("no judgment can be predicted from the others")
    stated, true = stated[known], judgments.y[known]
    under = stated < 0.5
    stated, true = np.where(under, 1.0 - stated, stated), np.where(under, 1.0 - true, true)
    bins = max(1, min(_BINS, len(stated) // _MIN_IN_A_BIN))
    found = calibration(stated, true, bins=bins, replicates=0, level=options.level, seed=options.seed)
    rows = [
        {"stated": float(p), "seen": float(y), "judgments": int(n)}
        for p, y, n in zip(found.stated, found.came_true, found.rows, strict=True)
    ]
    error = math.nan if found.error.value is None else found.error.value
    return rows, {"error": error, "by_chance": found.by_chance, "judgments": len(stated)}


def learning_rows(source: ChartSource) -> list[Row]:
    """The rating of each model from the first verdicts alone, at some numbers of them; None where it has none yet.

    Ratings are about the mean of the models that have any: as long as some have none, the others keep the mean of their
    last ratings, unless anchors say where they are.
    """
    if source.in_time is None:
        raise InputError("the order in which these verdicts were given is not known")
    battles = source.in_time()
    options = replace(source.options, replicates=0)
    last = _rated_together(rate(battles, source.method, options))
    rows: list[Row] = []
    for count in np.unique(np.linspace(0, len(battles.label), _CUTS + 1).round().astype(int))[1:].tolist():
        try:
            rated = rate(select_battles(battles, np.arange(count)), source.method, options)
        except VenireError:  # too few verdicts for this method yet
            continue
        elo = {name: value for name, value in _rated_together(rated).items() if name in last}
        gap = sum(last[name] - value for name, value in elo.items()) / max(len(elo), 1)
        shift = gap if len(elo) < len(last) and not options.anchors else 0.0
        rows += [
            {"model": name, "verdicts": count, "elo": elo[name] + shift if name in elo else None}
            for name in rated.ratings.models
        ]
    if not last:
        raise InputError("no two models have ratings on one scale")
    return rows


def _rated_together(rated: Rated) -> dict[str, float]:
    """Elo by model, of the largest group of models that were rated together."""
    group = largest_group(rated)
    inside = np.flatnonzero((rated.group == group) & np.isfinite(rated.ratings.elo)) if group is not None else ()
    return {rated.ratings.models[code]: float(rated.ratings.elo[code]) for code in inside}
