"""Recipes of Soft-Elo and its relatives, from judgments to a rated table; `methods` lists them by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.scale import ELO_MEAN
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.judgments import Judgments, merge_orders
from venire.ratings.data.people import human_labels
from venire.ratings.data.result import Rated, Ratings
from venire.ratings.inference.intervals import anchor_shift, errors_for, with_intervals
from venire.ratings.inference.options import Options
from venire.ratings.methods.findings import (
    ConformalCoverage,
    JudgeByPeople,
    MethodNotes,
    ReliabilityCurve,
    SignalAccuracy,
    SoftEloByPeople,
    SoftEloFit,
    VerdictConstant,
)
from venire.ratings.methods.methods import JUDGE_OPTIONS, Method
from venire.ratings.soft_elo.conformal import (
    Coverage,
    LeaveTwoOut,
    jackknife_plus,
    leave_one_out_conformal,
    leave_two_out,
    split_coverage,
)
from venire.ratings.soft_elo.cross_validation import (
    WAYS,
    Accuracy,
    LeaveOneOut,
    Unit,
    accuracy,
    baselines,
    judge_codes,
    least_squares_scale,
    leave_one_out,
    smooth_labels,
)
from venire.ratings.soft_elo.panel import SoftEloPanel, soft_elo_panel
from venire.ratings.soft_elo.soft_elo import RIDGE, hard_elo, human_elo, rate_targets

_ALPHA = 0.1
_SPLITS = 5
_CALIBRATION_SHARE = 0.7
_FEWEST_OF_TWO = 4
"""Models that are needed for two to be left out."""


def by_human_elo(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """Bradley-Terry with a small ridge on human labels, or on people's votes where a table has both."""
    if battles.people is None:
        data, human = judgments.comparisons(), _known(judgments.human)
        if not np.array_equal(human, data.y):  # beside verdicts: of whom a label is, a column does not say
            data = replace(data, crossed=False)
    else:
        votes = merge_orders(battles.people)
        judged = [name for name in judgments.models if name in votes.models]
        data = votes.comparisons(judged)
        human = data.y
    ridge = _ridge(options)
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
    """Soft-Elo, one beta a judge, with each model placed among the others and its conformal interval."""
    data, score, human, judgment = _labelled(battles, judgments)
    ridge = _ridge(options)
    ties = options.human_ties
    found = soft_elo_panel(data, score, human, ridge=ridge, errors=errors_for(data, options), ties=ties)
    unit: Unit = "battle" if data.cluster is None else "instruction"
    held = leave_one_out(data, score, human, ridge=ridge, seed=options.seed, cluster=unit, by_judge=True, ties=ties)
    both = options.conformal == "jackknife+" and np.count_nonzero(held.anchor) >= _FEWEST_OF_TWO
    pairs = leave_two_out(data, score, human, ridge=ridge, ties=ties, by_judge=True) if both else None
    figures, held_out, conformal = _against_people(held, pairs, options.seed)
    judges, judge_notes = _by_judge(found, data, score, human, judgment, options)
    shift = anchor_shift(found.ratings, options.anchors)
    figures = {name: column + shift for name, column in figures.items()}
    one = found.judges[0].fit.beta if len(found.judges) == 1 else None
    rated = with_intervals(
        found.ratings,
        data,
        options,
        refit=lambda rows: (
            soft_elo_panel(data.select(rows), score[rows], human[rows], ridge=ridge, errors="none", ties=ties).ratings
        ),
        figures=figures,
        findings=[
            SoftEloFit(one, found.n_fit, found.ece),
            MethodNotes((*found.warnings, *held.warnings, *judge_notes)),
            SoftEloByPeople(held_out, conformal, _baselines(data, score, human, options), judges),
        ],
    )
    return replace(rated, judges=tuple(judge.judge for judge in found.judges), judge_figures=_judge_figures(found))


def by_smoothed_elo(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """Bradley-Terry on verdicts that count as one share of a win, the one nearest to people with models left out."""
    data, ridge = judgments.comparisons(), _ridge(options)
    share = baselines(*_with_scores(battles, judgments), ridge=ridge).confidence
    targets = smooth_labels(data.y, share)
    errors = errors_for(data, options)
    return with_intervals(
        rate_targets("smoothed-elo", data, targets, ridge, False, None, errors),
        data,
        options,
        refit=lambda rows: rate_targets("smoothed-elo", data.select(rows), targets[rows], ridge, False, None, "none"),
        findings=[VerdictConstant(share=share), MethodNotes((_SHARE.format(share=share),))],
    )


def by_scaled_elo(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """Ratings from verdicts times one constant, the one that brings them nearest to people's by least squares."""
    data, ridge = judgments.comparisons(), _ridge(options)
    labelled, _, human = _with_scores(battles, judgments)
    people = human_elo(labelled, human, ridge=ridge, errors="none")
    fitted = hard_elo(labelled, ridge=ridge, errors="none")
    factor = least_squares_scale(people.logits, fitted.logits)

    def scaled(ratings: Ratings) -> Ratings:
        covariance = None if ratings.covariance is None else factor**2 * ratings.covariance
        return replace(ratings, method="scaled-elo", logits=factor * ratings.logits, covariance=covariance)

    return with_intervals(
        scaled(hard_elo(data, ridge=ridge, errors=errors_for(data, options))),
        data,
        options,
        refit=lambda rows: scaled(hard_elo(data.select(rows), ridge=ridge, errors="none")),
        findings=[VerdictConstant(factor=factor), MethodNotes((_FACTOR.format(factor=factor),))],
    )


_SHARE = "a win counts as {share:.2f} of one: of nine shares the nearest to people; intervals hold it fixed"
_FACTOR = "ratings from verdicts times {factor:.2f}, which is nearest to people; intervals hold it fixed"


def _with_scores(
    battles: Battles, judgments: Judgments
) -> tuple[Comparisons, NDArray[np.float64], NDArray[np.float64]]:
    """Comparisons with scores and labels of people (rows,); verdicts stand for scores where a table has none."""
    if judgments.score is None:
        judgments = replace(judgments, score=2.0 * judgments.comparisons().y - 1.0)
    data, score, human, _ = _labelled(battles, judgments)
    return data, score, human


def _labelled(
    battles: Battles, judgments: Judgments
) -> tuple[Comparisons, NDArray[np.float64], NDArray[np.float64], NDArray[np.intp]]:
    """Comparisons with scores, human labels and judgments (rows,): the table's own labels, or people's votes.

    Of votes there is a row for each; `judgment` is the position of the one that it labels.
    """
    score = _known(judgments.score)
    if battles.people is None:
        return judgments.comparisons(), score, _known(judgments.human), np.arange(len(judgments))
    labels = human_labels(judgments, battles.people)
    if not labels.labelled:
        raise InputError(
            "people voted on none of the battles that were judged: votes are joined by the two models and the "
            "instruction"
        )
    return labels.comparisons(judgments), score[labels.rows], labels.human, labels.rows


def _judge_figures(found: SoftEloPanel) -> dict[str, NDArray[np.float64]]:
    fits = [judge.fit for judge in found.judges]
    return {
        "beta": np.array([fit.beta for fit in fits]),
        "beta_se": np.array([fit.se for fit in fits]),
        "ece": np.array([judge.reliability.ece for judge in found.judges]),
    }


def _baselines(
    data: Comparisons, score: NDArray[np.float64], human: NDArray[np.float64], options: Options
) -> SignalAccuracy | None:
    """Each way of using the judges, every model left out in turn: hard, scaled, smoothed and soft; None if too few."""
    try:
        found = baselines(data, score, human, ridge=_ridge(options), ties=options.human_ties, by_judge=True)
    except InputError:
        return None
    hard, scaled, smoothed, soft = (found.accuracy[way] for way in WAYS)
    return SignalAccuracy(found.confidence, hard, scaled, smoothed, soft, found.nearest)


def _by_judge(
    found: SoftEloPanel,
    data: Comparisons,
    score: NDArray[np.float64],
    human: NDArray[np.float64],
    judgment: NDArray[np.intp],
    options: Options,
) -> tuple[tuple[JudgeByPeople, ...], list[str]]:
    """What is known of each judge beside people, and notes on judges who cannot be held out."""
    rows, notes, codes = [], [], judge_codes(data)
    for judge in found.judges:
        own = np.flatnonzero(codes == (data.judges.index(judge.judge) if data.judges else 0))
        table = data.select(own)
        alone = replace(table, judge=None, judges=())
        against = _baselines(alone, score[own], human[own], options)
        if against is None and len(found.judges) > 1:
            notes.append(f"{judge.judge}: too few models have its scores and votes of people to leave one out")
        trust = judge.reliability
        rows.append(
            JudgeByPeople(
                judge=judge.judge,
                beta=judge.fit.beta,
                beta_se=judge.fit.se,
                n_fit=judge.fit.n_fit,
                battles=len(np.unique(judgment[own[~np.isnan(score[own])]])),
                ece=trust.ece,
                ece_unscaled=judge.unscaled,
                leave_one_out=against,
                reliability=ReliabilityCurve(
                    battles=trust.battles,
                    agreement=trust.agreement,
                    trend=trust.trend,
                    predicted=trust.predicted.tolist(),
                    observed=trust.observed.tolist(),
                    score=trust.size.tolist(),
                    count=trust.count.tolist(),
                ),
                warnings=tuple(judge.warnings),
            )
        )
    return tuple(rows), notes


def _against_people(
    held: LeaveOneOut, pairs: LeaveTwoOut | None, seed: int
) -> tuple[Mapping[str, NDArray[np.float64]], Mapping[str, Accuracy] | None, ConformalCoverage | None]:
    """Each model's leave-one-out ratings by people and judge, and the interval calibrated on the others.

    `pairs` are ratings with two models left out, for jackknife+.
    """
    placed, anchors = held.judge["soft"], np.flatnonzero(held.anchor)
    figures = {"human_elo": held.human.elo, "placed_elo": placed.elo}
    if len(anchors) < 2:
        return figures, None, None
    # A model without which no beta is found has no rating, and no error that others could be held against.
    residual = held.residual("soft")[anchors]
    known = np.isfinite(residual)
    points = np.where(known, placed.elo[anchors], ELO_MEAN)
    if pairs is None:
        errors = np.where(known, placed.se[anchors], 0.0)
        found = leave_one_out_conformal(residual, errors, points, human_se=held.human.se[anchors], alpha=_ALPHA)
        low, high, covers = found.low, found.high, found.covers(held.human.elo[anchors])
    else:
        found = jackknife_plus(pairs, np.nan_to_num(placed.se), human_se=held.human.se, alpha=_ALPHA)
        low, high, covers = found.low[anchors], found.high[anchors], found.covers(held.human.elo)[anchors]
    for name, bound in (("conformal_lo", low), ("conformal_hi", high)):
        column = np.full(len(held.models), np.nan)
        column[anchors] = np.where(known & np.isfinite(bound), bound, np.nan)
        figures[name] = column
    held_out = {name: accuracy(held.human.elo[anchors], one.elo[anchors]) for name, one in held.judge.items()}
    observed = float(covers[known].mean()) if known.any() else None
    coverage = ConformalCoverage(
        found.alpha, found.expected, observed, found.n, found.method, _by_splits(held, anchors, seed), found.warnings
    )
    return figures, held_out, coverage


def _by_splits(held: LeaveOneOut, anchors: NDArray[np.intp], seed: int) -> dict[str, Coverage]:
    """What intervals calibrated on 70 % of the models do on the others, for hard and soft ratings; the paper's table 3.

    Signals with an unplaced model, and splits that leave no model to test or an infinite interval, are left out.
    """
    found = {}
    for signal in ("hard", "soft"):
        residual, placed = held.residual(signal)[anchors], held.judge[signal]
        if not np.isfinite(residual).all():
            continue
        coverage = split_coverage(
            residual,
            placed.se[anchors],
            placed.elo[anchors],
            human_se=held.human.se[anchors],
            alpha=_ALPHA,
            splits=_SPLITS,
            share=_CALIBRATION_SHARE,
            seed=seed,
        )
        if np.isfinite(coverage.width):
            found[signal] = coverage
    return found


def _ridge(options: Options) -> float:
    return RIDGE if options.ridge is None else options.ridge


def _known(column: NDArray[np.float64] | None) -> NDArray[np.float64]:
    assert column is not None, "`needs` has seen to it"
    return column


SOFT_ELO = Method(
    by_soft_elo,
    "the same on calibrated probabilities, with conformal intervals",
    frozenset({"ridge", "errors", "human_ties", "conformal"}),
    ("score", "human"),
)
SMOOTHED_ELO = Method(
    by_smoothed_elo,
    "the same on verdicts that count as one share of a win, learned from people",
    frozenset({"ridge", "errors"}),
    ("human",),
)
SCALED_ELO = Method(
    by_scaled_elo,
    "the same on verdicts, times one constant learned from people",
    frozenset({"ridge", "errors"}),
    ("human",),
)
HARD_ELO = Method(by_hard_elo, "the same on verdicts, with a slight ridge", frozenset({"ridge", "errors"}))
HUMAN_ELO = Method(
    by_human_elo,
    "the same on what people said",
    frozenset({"ridge", "errors"}),
    ("human",),
    ignores=JUDGE_OPTIONS,
    of_people=True,
)
