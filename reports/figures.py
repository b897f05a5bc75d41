"""Figures beside a board that papers report: prediction of verdicts, robustness, contrasts, places, people's order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError, VenireError
from venire.arena.hints import setting
from venire.arena.keywords import check_fields
from venire.ratings.agreement.chance_corrected import Coefficient
from venire.ratings.agreement.reference import MicroMacro
from venire.ratings.am_elo.am_elo import am_elo
from venire.ratings.am_elo.ascent import EPOCHS, LEARNING_RATE, GradientAscents, gradient_ascents
from venire.ratings.am_elo.evaluation import evaluate_rows, loss_differences
from venire.ratings.am_elo.robustness import Fit, Perturbation, mean_known, robustness
from venire.ratings.data.judgments import Judgments
from venire.ratings.data.result import Rated
from venire.ratings.data.statistics import BoundedFigure
from venire.ratings.inference.contrasts import battles_needed, difference
from venire.ratings.inference.options import Options
from venire.ratings.judges.matchup_ablation import MatchupAblation, matchup_ablation
from venire.ratings.judges.position import position_audits
from venire.ratings.methods.learning_curve import LearningCurve, learning_curve
from venire.ratings.methods.methods import merge_selected, missing_data, rate, select_verdicts
from venire.ratings.methods.prediction import predict_rows
from venire.ratings.pairwise.bradley_terry import m_elo
from venire.ratings.pairwise.online import online_elo
from venire.ratings.peers.peer_agreement import peer_agreement, truncation
from venire.ratings.voting.kemeny import kemeny_young
from venire.ratings.voting.rules import borda, copeland, minimax, ranked_pairs, schulze
from venire.reports.comparison import options_for
from venire.reports.json_values import OPTIONAL

_PREDICTED = ("elo", "m-elo", "am-elo")
"""Methods that are held out beside the board's own: those of the am-ELO paper."""

_SEEDS = range(10)
"""Draws of the judges whose verdicts are perturbed."""

_P = 0.05
"""Level of the test that a battle's winner hangs on the order shown."""

_RIVALS = {"borda": borda, "copeland": copeland, "minimax": minimax, "ranked-pairs": ranked_pairs, "schulze": schulze}
"""Rules of voting that Kemeny-Young's orders of single instructions are held beside."""

_SECONDS = 1.0
"""Time limit for one order of all votes."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What is asked for beside a board; by default nothing.

    `folds` of judgments, each predicted from the others; `steady`, the share of judges whose verdicts are
    perturbed, of whom those with an ability of `threshold` or less (mean 1) count as found; `ascents`, so many starts
    of am-ELO's gradient ascent, with its `learning_rate` and `epochs`; `contrast`, two models, with `half_width` in Elo
    points; `positions`, the audit of battles shown several times in each order; `people`, agreement of single
    instructions and of all with the reference, also of truncated rankings; `ablation`, how judges' consistency predicts
    their Elo by number and kind of matchups; `learning_curve`, how near the order by a share of the battles is to that
    by all, and to what is known.
    """

    folds: int = 0
    steady: float = 0.0
    threshold: float = 0.0
    ascents: int = 0
    learning_rate: float = LEARNING_RATE
    epochs: int = EPOCHS
    contrast: tuple[str, str] | None = None
    half_width: float | None = None
    positions: bool = False
    people: bool = False
    ablation: bool = False
    learning_curve: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        if self.folds == 1 or self.folds < 0:
            raise InputError(f"folds is {self.folds}; give 2 or more, such as 5")
        if not 0.0 <= self.steady < 1.0:
            raise InputError(f"steady is {self.steady}; give the share of judges to perturb, such as 0.25")
        if not 0.0 <= self.threshold < float("inf"):
            raise InputError(f"threshold is {self.threshold}; give an ability of 0 or more, such as 0.2")
        if self.threshold and not self.steady:
            raise InputError(
                "a threshold is that of judges found among perturbed ones: name their share (--steady 0.25)"
            )
        if self.ascents == 1 or self.ascents < 0:
            raise InputError(f"ascents is {self.ascents}; give 2 starts or more, such as 5")
        if self.epochs < 1:
            raise InputError(f"epochs is {self.epochs}; give 1 or more, such as {EPOCHS}")
        if not 0.0 < self.learning_rate < float("inf"):
            raise InputError(f"learning_rate is {self.learning_rate}; give more than 0, such as {LEARNING_RATE}")
        if not self.ascents and (self.learning_rate, self.epochs) != (LEARNING_RATE, EPOCHS):
            raise InputError("learning rate and epochs are of gradient ascents: name their starts (--ascents 5)")
        if self.half_width is not None and self.contrast is None:
            raise InputError(
                f"{setting('half_width')} is that of a contrast: name two models with {setting('contrast')}"
            )


@dataclass(frozen=True, slots=True)
class PredictedBy:
    """The errors of a method on held-out judgments, over those that it `predicted`.

    `mse_difference` and `log_loss_difference` are its errors less those of the method that it is beside, with
    intervals, over judgments that both predict; None for that method itself.
    """

    method: str
    mse: float
    auc: float
    auc_decisive: float
    log_loss: float
    predicted: int
    not_predicted: int
    mse_difference: BoundedFigure | None
    log_loss_difference: BoundedFigure | None


@dataclass(frozen=True, slots=True)
class HeldOutPrediction:
    """The board's method and those of the am-ELO paper on held-out judgments, and why others are left out.

    `instructions` (None: judgments without any) are what folds are made of, and the units of intervals at `level`.
    Differences are beside one method: the board's, if it predicts.
    """

    folds: int
    judgments: int
    instructions: int | None
    level: float
    beside: str | None
    methods: tuple[PredictedBy, ...]
    left_out: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PerturbedOrder:
    """How far a method's order moves under one kind of perturbation, and how well it names the judges."""

    method: str
    kind: str
    inconsistency: float | None
    f1: float | None
    draws: int
    undecided: int


@dataclass(frozen=True, slots=True)
class PerturbedJudges:
    """What becomes of orders when the verdicts of a share of judges are perturbed.

    A judge with an ability of `threshold` or less counts as found.
    """

    share: float
    threshold: float
    perturbed: int
    judges: int
    methods: tuple[PerturbedOrder, ...]


@dataclass(frozen=True, slots=True)
class ModelContrast:
    """The difference of two models in Elo points with its interval, and the battles that it still needs."""

    model: str
    other: str
    difference: float
    se: float
    lo: float
    hi: float
    above: float
    level: float
    half_width: float | None
    battles_between: float | None
    battles_in_all: float | None


@dataclass(frozen=True, slots=True)
class JudgePositions:
    """A judge's battles that were shown several times in each order: means, and tests of order against winner."""

    judge: str
    battles: int
    flip_rate: float | None
    first: float | None
    between_orders: float | None
    tested: int
    by_order: int


@dataclass(frozen=True, slots=True)
class RepeatedPositions:
    """The audits of single battles by judge, and the level of their tests."""

    p_below: float
    judges: tuple[JudgePositions, ...]


@dataclass(frozen=True, slots=True)
class RankingAgreement:
    """Agreement of rankings with the reference over single instructions (micro) and over all together (macro)."""

    instructions: int
    tied: int
    few: int
    micro_pearson: BoundedFigure
    micro_kendall: BoundedFigure
    macro_pearson: BoundedFigure
    macro_spearman: BoundedFigure
    macro_kendall: BoundedFigure


@dataclass(frozen=True, slots=True)
class TruncatedRanking:
    """The share of the correlation that rankings of the `best` alone lose."""

    best: int
    micro_loss: BoundedFigure
    macro_loss: float | None


@dataclass(frozen=True, slots=True)
class PeopleOrder:
    """Rankings of all judges together and of each against the reference, and what shorter rankings lose.

    `together` is by Kemeny-Young, `rivals` by other rules of voting.
    """

    models: int
    together: RankingAgreement
    rivals: Mapping[str, RankingAgreement]
    judges: Mapping[str, RankingAgreement]
    best_judge: str | None
    lead: BoundedFigure | None
    truncation: tuple[TruncatedRanking, ...]


@dataclass(frozen=True, slots=True)
class FigureResults:
    """The figures beside a board; None is what was not asked for."""

    prediction: HeldOutPrediction | None = field(default=None, metadata=OPTIONAL)
    robustness: PerturbedJudges | None = field(default=None, metadata=OPTIONAL)
    ascents: GradientAscents | None = field(default=None, metadata=OPTIONAL)
    contrast: ModelContrast | None = field(default=None, metadata=OPTIONAL)
    positions: RepeatedPositions | None = field(default=None, metadata=OPTIONAL)
    people_order: PeopleOrder | None = field(default=None, metadata=OPTIONAL)
    ablation: MatchupAblation | None = field(default=None, metadata=OPTIONAL)
    learning_curve: LearningCurve | None = field(default=None, metadata=OPTIONAL)


class FigureSource(Protocol):
    """What is known of the models and judges of some verdicts beside these: Elo and family by name."""

    @property
    def reference(self) -> Mapping[str, float]: ...
    @property
    def judge_elo(self) -> Mapping[str, float]: ...
    @property
    def families(self) -> Mapping[str, str]: ...
    @property
    def judge_families(self) -> Mapping[str, str]: ...

    def outside_orders(self, level: float) -> Mapping[str, tuple[str, Mapping[str, float]]]:
        """What is known of the models from elsewhere: a source and values by model, by name."""
        ...


def _ablation(battles: Battles, seed: int, of: FigureSource) -> MatchupAblation:
    judge_elo = {**of.reference, **of.judge_elo}  # a judge that is one of the models has its rating
    return matchup_ablation(
        battles, of.reference, judge_elo, families=of.families, judge_families=of.judge_families, seed=seed
    )


def figures_of(battles: Battles, method: str, options: Options, asked: Figures, of: FigureSource) -> FigureResults:
    """The figures that are asked for, of `battles` and of what is known of models and judges.

    Raises `InputError` where the table lacks what a figure needs, and as `rate` does.
    """
    plain = replace(options, replicates=0)
    contrast = None
    if asked.contrast:
        contrast = _contrast(rate(battles, method, plain), asked.contrast, asked.half_width, plain.level)
    return FigureResults(
        prediction=_prediction(battles, method, plain, asked.folds) if asked.folds else None,
        robustness=_robustness(merge_selected(battles, plain), asked, plain.seed) if asked.steady else None,
        ascents=_ascents(merge_selected(battles, plain), asked, plain.seed) if asked.ascents else None,
        contrast=contrast,
        positions=_positions(select_verdicts(battles, plain)) if asked.positions else None,
        people_order=_people_order(battles, plain, of.reference) if asked.people else None,
        learning_curve=learning_curve(battles, method, plain, of.outside_orders(plain.level))
        if asked.learning_curve
        else None,
        ablation=_ablation(battles, plain.seed, of) if asked.ablation else None,
    )


def _prediction(battles: Battles, method: str, options: Options, folds: int) -> HeldOutPrediction:
    """Held-out error of the board's method and those of the am-ELO paper, and of even odds."""
    judgments = merge_selected(battles, options)
    y, cluster = judgments.y, judgments.comparisons().cluster
    names = list(dict.fromkeys([method, *_PREDICTED]))
    found = {"even odds": evaluate_rows(y, _even, folds, options.seed, cluster)}
    left_out = {}
    for name in names:
        if why := missing_data(battles, name, options_for(name, options)):
            left_out[name] = f"needs {why}"
            continue
        predict = partial(predict_rows, select_verdicts(battles, options), judgments, name, options_for(name, options))
        try:
            found[name] = evaluate_rows(y, predict, folds, options.seed, cluster)
        except VenireError as error:
            left_out[name] = str(error)
    beside = next((name for name in names if name in found), None)
    rows = []
    for name, one in found.items():
        less: dict[str, BoundedFigure | None] = {"mse": None, "log_loss": None}
        if beside is not None and name != beside:
            differences = loss_differences(y, one, found[beside], cluster)
            less = {key: BoundedFigure(mean.value, *mean.interval(options.level)) for key, mean in differences.items()}
        rows.append(
            PredictedBy(
                method=name,
                mse=one.mse,
                auc=one.auc,
                auc_decisive=one.auc_decisive,
                log_loss=one.log_loss,
                predicted=one.rows,
                not_predicted=one.missing,
                mse_difference=less["mse"],
                log_loss_difference=less["log_loss"],
            )
        )
    instructions = None if cluster is None else found["even odds"].units
    return HeldOutPrediction(folds, len(judgments), instructions, options.level, beside, tuple(rows), left_out)


def _even(train: NDArray[np.intp], test: NDArray[np.intp]) -> NDArray[np.float64]:
    return np.full(len(test), 0.5)


def _robustness(judgments: Judgments, asked: Figures, seed: int) -> PerturbedJudges:
    """How far orders move, and whether judges are found, when some judges' verdicts are perturbed in four ways."""
    data = judgments.comparisons()
    fits: dict[str, Fit] = {
        "elo": lambda rows: online_elo(rows, seed=seed).ratings,
        "m-elo": m_elo,
        "am-elo": am_elo,
    }
    seeds = [seed + number for number in _SEEDS]
    rows: list[PerturbedOrder] = []
    perturbed = 0
    for kind in get_args(Perturbation):
        found = robustness(data, fits, share=asked.steady, kind=kind, seeds=seeds, thresholds=(asked.threshold,))
        perturbed = found.count
        rows += [
            PerturbedOrder(
                method=name,
                kind=kind,
                inconsistency=mean_known(found.inconsistency[row]),
                f1=mean_known(found.f1[row, 0]),
                draws=int(np.isfinite(found.inconsistency[row]).sum()),
                undecided=int(found.undecided[row].sum()),
            )
            for row, name in enumerate(found.methods)
        ]
    return PerturbedJudges(asked.steady, asked.threshold, perturbed, len(judgments.judges), tuple(rows))


def _ascents(judgments: Judgments, asked: Figures, seed: int) -> GradientAscents:
    return gradient_ascents(
        judgments.comparisons(),
        starts=asked.ascents,
        learning_rate=asked.learning_rate,
        epochs=asked.epochs,
        seed=seed,
    )


def _contrast(rated: Rated, models: tuple[str, str], half_width: float | None, level: float) -> ModelContrast:
    """The difference of two models with its interval, and the battles that it still needs."""
    model, other = models
    found = difference(rated.ratings, model, other, level)
    needed = battles_needed(rated.ratings, model, other, level=level, half_width=half_width)
    return ModelContrast(
        model=model,
        other=other,
        difference=found.estimate,
        se=found.se,
        lo=found.lo,
        hi=found.hi,
        above=found.above,
        level=level,
        half_width=half_width,
        battles_between=needed.between,
        battles_in_all=needed.everywhere,
    )


def _positions(battles: Battles) -> RepeatedPositions:
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
            JudgePositions(
                judge=judge,
                battles=len(own),
                flip_rate=_mean([one.flip_rate for one in own]),
                first=_mean([share for one in own for share in one.first]),
                between_orders=_mean([one.between_orders for one in own]),
                tested=len(tested),
                by_order=sum(p < _P for p in tested),
            )
        )
    return RepeatedPositions(_P, tuple(rows))


def _mean(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return sum(known) / len(known) if known else None


def _people_order(battles: Battles, options: Options, reference: Mapping[str, float]) -> PeopleOrder:
    """Agreement of the peers' rankings with the reference, micro and macro, and what shorter rankings lose of it."""
    if not reference:
        raise InputError("rankings are held against known ratings: name them with --reference FILE")
    ballots = select_verdicts(battles, options).ballots
    given = merge_selected(battles, options) if ballots is None else ballots
    aggregate = partial(kemeny_young, seconds=_SECONDS)
    found = peer_agreement(given, reference, aggregate, rivals=_RIVALS, level=options.level, seed=options.seed)
    shared = len(found.together.models)
    cut = truncation(given, reference, range(1, shared), aggregate, level=options.level, seed=options.seed)
    return PeopleOrder(
        models=shared,
        together=_micro_macro(found.together),
        rivals={name: _micro_macro(one) for name, one in found.rivals.items()},
        judges={name: _micro_macro(one) for name, one in found.judges.items()},
        best_judge=found.best_judge,
        lead=None if found.lead is None else _bounded(found.lead),
        truncation=tuple(TruncatedRanking(one.best, _bounded(one.micro_loss), one.macro_loss) for one in cut),
    )


def _micro_macro(found: MicroMacro) -> RankingAgreement:
    return RankingAgreement(
        instructions=found.instructions,
        tied=found.tied,
        few=found.few,
        micro_pearson=_bounded(found.micro_pearson),
        micro_kendall=_bounded(found.micro_kendall),
        macro_pearson=_bounded(found.macro_pearson),
        macro_spearman=_bounded(found.macro_spearman),
        macro_kendall=_bounded(found.macro_kendall),
    )


def _bounded(found: Coefficient) -> BoundedFigure:
    return BoundedFigure(_known(found.value), _known(found.lo), _known(found.hi))


def _known(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
