"""Leave-one-model-out cross-validation of a judge against people: each model is left out and placed among the rest.

Tables of every signal are computed once; fits without some models follow by subtraction. The baselines for soft targets
are label smoothing, which shrinks verdicts towards a tie by one constant, and hard ratings shrunk by one constant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from venire.arena.choices import HumanTies
from venire.arena.errors import InputError
from venire.arena.scale import ELO_MEAN, POINTS_PER_LOGIT
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.statistics import spearman
from venire.ratings.data.validation import check_seed, float_array
from venire.ratings.data.wins import WinCounts
from venire.ratings.pairwise.components import weak_components
from venire.ratings.pairwise.solvers import climb, curve_of
from venire.ratings.soft_elo.beta import ScoreGrid, beta_of, label_column, score_column, score_grid
from venire.ratings.soft_elo.soft_elo import (
    RIDGE,
    clip_targets,
    hard_elo,
    human_elo,
    place_against_anchors,
    soft_elo,
    with_targets,
)

Unit = Literal["battle", "instruction"]

_MIN_ANCHORS = 3
_MIN_COMPARED = 4


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How far ratings by a judge are from those of people, in Elo points, over `models` models.

    `slope` is that of the residual (judge - human) on human Elo: above 0 the judge's scale is too wide. `quartiles` are
    the mean residuals from the weakest quarter of models to the strongest. None where too few models are rated.
    """

    mae: float
    spearman: float | None
    slope: float | None
    quartiles: tuple[float, ...]
    models: int


@dataclass(frozen=True, slots=True, eq=False)
class PlacedRatings:
    """Each model's rating `elo` (n,) among the others, and its standard error `se` (n,), both in Elo points."""

    elo: NDArray[np.float64]
    se: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class LeaveOneOut:
    """Each of `models` placed among all others by people and by judge, none of whose fits saw its battles.

    `judge` contains "hard", "soft" and "scaled-hard" (hard times one constant fitted on the anchors), and any other
    requested targets. `beta` (n,) is the estimate from the labels without the model; with one for each judge it is (n,
    judges). `anchor` (n,) marks models that people and judge have both rated: only these are anchors; the others are
    placed separately and have no human Elo.
    """

    models: tuple[str, ...]
    human: PlacedRatings
    judge: Mapping[str, PlacedRatings]
    beta: NDArray[np.float64]
    anchor: NDArray[np.bool_]
    battles: NDArray[np.float64]
    ridge: float
    replicates: int
    cluster: Unit
    warnings: tuple[str, ...] = ()

    def residual(self, signal: str = "soft") -> NDArray[np.float64]:
        """Human minus judge (n,) in Elo points, each in the gauge of the same anchors; NaN without a human rating."""
        return np.asarray(self.human.elo - self.judge[signal].elo, dtype=np.float64)

    def accuracy(self, signal: str = "soft") -> Accuracy:
        """The accuracy of this signal against people; `signal` is a key of `judge`."""
        return accuracy(self.human.elo, self.judge[signal].elo)


def accuracy(human: NDArray[np.float64], judge: NDArray[np.float64]) -> Accuracy:
    """Error, order and scale of `judge` (n,) against `human` (n,), in Elo points of one gauge; NaN is left out.

    Raises `InputError` where no model has both ratings.
    """
    both = np.isfinite(human) & np.isfinite(judge)
    people, excess = human[both], (judge - human)[both]
    count = len(people)
    if not count:
        raise InputError("no model has a rating by people and by the judge: there is nothing to compare")
    spread = count > 2 and np.ptp(people) > 0.0 and np.ptp(judge[both]) > 0.0
    across = people - people.mean()
    order = np.argsort(people, kind="stable")
    return Accuracy(
        mae=float(np.abs(excess).mean()),
        spearman=float(spearman(people[None], judge[both])[0]) if spread else None,
        slope=float(across @ excess / (across @ across)) if spread else None,
        quartiles=tuple(float(excess[part].mean()) for part in np.array_split(order, 4)) if count >= 4 else (),
        models=count,
    )


def leave_one_out(
    data: Comparisons,
    score: ArrayLike,
    human: ArrayLike,
    *,
    ridge: float = RIDGE,
    replicates: int = 200,
    cluster: Unit = "battle",
    ties: HumanTies = "drop",
    others: Mapping[str, ArrayLike] | None = None,
    parity: bool = False,
    by_judge: bool = False,
    seed: int = 0,
) -> LeaveOneOut:
    """Leave one model out in the reference gauge; the Soft-Elo paper.

    For each model, people, hard verdicts (`data.y`) and soft targets are fitted separately on the battles of the other
    anchors, each centred over these. Its own rating is then one parameter against fixed anchors with the same `ridge`,
    and beta is fitted without any human label that involves it. `score` and `human` are as in `soft_elo`; `others`
    names more targets (rows,) for A that are placed in the same way; `by_judge` fits one beta for each judge.
    Errors come from `replicates` resamples of the model's own battles, or of their instructions, with the same draws
    for every signal; 0 omits them. Raises `InputError`.

    >>> from venire.ratings import comparisons, leave_one_out
    >>> data = comparisons(list("aababcabc") * 4, list("bbcccabca") * 4, [1, 0, 1, 1, 0, 0, 1, 1, 0] * 4)
    >>> score = np.tile([2.0, -1.0, 1.5, 2.0, -0.5, -2.0, 1.0, 0.5, -1.0], 4)
    >>> human = np.tile([1, 0, 1, 1, 1, 0, 1, 0, 0], 4)
    >>> found = leave_one_out(data, score, human, replicates=20)
    >>> found.models
    ('a', 'b', 'c')
    """
    if get_args(Unit).count(cluster) == 0:
        raise InputError(f"cluster is {cluster!r}; give 'battle' or 'instruction'")
    if cluster == "instruction" and data.cluster is None:
        raise InputError("cluster is 'instruction', but the comparisons have no clusters: give `cluster` to them")
    if not (ridge > 0.0 and np.isfinite(ridge)):
        raise InputError(f"ridge is {ridge}; give a number above 0: a model that wins all its battles needs one")
    if replicates < 0 or replicates == 1:
        raise InputError(f"replicates is {replicates}; give 2 or more, or 0 for no errors")
    check_seed(seed)
    field = hold_out(data, score, human, others or {}, ridge=ridge, ties=ties, parity=parity, by_judge=by_judge)
    count = len(data.models)
    logits = {name: np.full((count, replicates + 1), np.nan) for name in (*field.targets, "soft", "scaled-hard")}
    beta = np.full((count, len(field.grids)), np.nan)
    for code, place_of in enumerate(np.argsort(np.argsort(np.array(data.models)))):
        rng = np.random.default_rng([seed, int(place_of)])
        beta[code], found = _one(field, code, _draws(field, code, cluster, replicates, rng))
        for name, columns in found.items():
            logits[name][code] = columns
    logits["human"][~field.anchor] = np.nan
    placed = {name: _placed(columns) for name, columns in logits.items()}
    battles = field.wins["hard"].played
    human_elo = placed.pop("human")
    warnings = (*_component_warnings(field), *_beta_warnings(beta))
    known = beta if by_judge else beta[:, 0]
    return LeaveOneOut(
        data.models, human_elo, placed, known, field.anchor, battles, ridge, replicates, cluster, warnings
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Draws:
    """Battles of one model, their resampling units, and counts (units, columns); the first column is all ones."""

    own: ModelBattles
    unit: NDArray[np.intp]
    counts: NDArray[np.float64]


def _draws(field: HoldOut, code: int, cluster: Unit, replicates: int, rng: np.random.Generator) -> _Draws:
    own = field.battles_of(code)
    if cluster == "instruction" and field.data.cluster is not None:
        names, unit = np.unique(field.data.cluster[own.rows], return_inverse=True)
        units = len(names)
    else:
        units = len(own.rows)
        unit = np.arange(units)
    counts = np.ones((units, replicates + 1))
    if units and replicates:
        drawn = rng.integers(0, units, (units, replicates)) * replicates + np.arange(replicates)
        counts[:, 1:] = np.bincount(drawn.ravel(), minlength=units * replicates).reshape(units, replicates)
    return _Draws(own, unit, counts)


def _one(field: HoldOut, code: int, draws: _Draws) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
    """Beta (judges,) without this model's labels, and its rating in logits (columns,) in every signal."""
    beta = field.beta(code)
    soft = field.soft(beta)
    found, anchors = {}, {}
    for name, targets in (*field.targets.items(), ("soft", soft)):
        wins = field.wins_of(soft) if name == "soft" else field.wins[name]
        near = field.start["human" if name == "soft" else name]
        anchors[name] = field.rate(wins, (code,), near)
        guess = float(near[code])
        found[name] = field.place(draws.own, targets, anchors[name], draws.unit, draws.counts, guess)
    scale = least_squares_scale(anchors["human"], anchors["hard"])
    found["scaled-hard"] = scale * found["hard"]
    return beta, found


def least_squares_scale(human: NDArray[np.float64], judge: NDArray[np.float64]) -> float:
    """The constant that best maps centred ratings of a judge (n,) to those of people, by least squares.

    NaN is left out; 1 where all ratings of the judge are equal.
    """
    both = np.isfinite(human) & np.isfinite(judge)
    across = float(judge[both] @ judge[both])
    return float(human[both] @ judge[both]) / across if across > 0.0 else 1.0


def _placed(columns: NDArray[np.float64]) -> PlacedRatings:
    """The first column (n,) as Elo points, the spread of the others as its error."""
    resampled = columns[:, 1:]
    known = np.isfinite(resampled).sum(axis=1)
    error = np.full(len(columns), np.nan)
    for code in np.flatnonzero(known > 1):
        error[code] = POINTS_PER_LOGIT * float(np.nanstd(resampled[code], ddof=1))
    return PlacedRatings(ELO_MEAN + POINTS_PER_LOGIT * columns[:, 0], error)


def _beta_warnings(beta: NDArray[np.float64]) -> tuple[str, ...]:
    """Warnings about betas (models, judges) without one model each; a judge who never has one is no news here."""
    warnings = []
    never = np.isnan(beta).all(axis=0) & (beta.shape[1] > 1)
    lost = (np.isnan(beta) & ~never).any(axis=1).sum()
    endless, against = np.isinf(beta).any(axis=1).sum(), (beta <= 0.0).any(axis=1).sum()
    if lost:
        warnings.append(f"beta could not be found without {lost} of {len(beta)} models: no soft rating")
    if endless:
        warnings.append(f"beta has no finite optimum without {endless} of {len(beta)} models")
    if against:
        warnings.append(f"beta is 0 or below without {against} of {len(beta)} models")
    return tuple(warnings)


@dataclass(frozen=True, slots=True, eq=False)
class ModelBattles:
    """The battles of one model against anchors: their rows, the opponent in each, and the side of the model."""

    rows: NDArray[np.intp]
    opponent: NDArray[np.int32]
    first: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class HoldOut:
    """Validated rows with their targets for A by signal, NaN where a signal is missing; soft targets are recomputed.

    `judge` (rows,) is the code of the grid in `grids` that has a row's score, in the order of the rows: one beta is
    fitted for each. `wins` are the pair counts of each fixed signal, `start` its ratings with all models.
    """

    data: Comparisons
    targets: Mapping[str, NDArray[np.float64]]
    grids: tuple[ScoreGrid, ...]
    judge: NDArray[np.intp]
    scored: NDArray[np.bool_]
    ridge: float
    ties: HumanTies
    parity: bool
    wins: Mapping[str, WinCounts]
    start: Mapping[str, NDArray[np.float64]]
    anchor: NDArray[np.bool_]

    def involving(self, *out: int) -> NDArray[np.bool_]:
        """Rows (rows,) that involve one of these models."""
        rows = np.zeros(len(self.data), dtype=np.bool_)
        for code in out:
            rows |= (self.data.a == code) | (self.data.b == code)
        return rows

    def beta(self, *out: int) -> NDArray[np.float64]:
        """Betas (judges,) from the human labels that involve none of these models; NaN where not informative."""
        labels = np.where(self.scored & ~self.involving(*out), self.targets["human"], np.nan)
        weight = self.data.weight
        if len(self.grids) == 1:
            return np.array([beta_of(self.grids[0], labels, weight=weight, ties=self.ties).beta])
        own = [np.flatnonzero(self.judge == code) for code in range(len(self.grids))]
        weights = [None if weight is None else weight[rows] for rows in own]
        return np.array(
            [
                beta_of(grid, labels[rows], weight=mass, ties=self.ties).beta
                for grid, rows, mass in zip(self.grids, own, weights, strict=True)
            ]
        )

    def soft(self, beta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Soft targets (rows,) at these betas (judges,); NaN without a score, and where a judge's beta is NaN."""
        found = np.full(len(self.data), np.nan)
        for code, (grid, value) in enumerate(zip(self.grids, beta.tolist(), strict=True)):
            if not np.isnan(value):
                found[self.judge == code] = grid.probabilities(value)
        return np.where(self.scored, found, np.nan)

    def rate(self, wins: WinCounts, out: tuple[int, ...], start: NDArray[np.float64]) -> NDArray[np.float64]:
        """Ratings (n,) in logits of the anchors except `out`, with mean 0 over these; NaN for all others."""
        kept = self.anchor.copy()
        kept[list(out)] = False
        logits = climb(curve_of(wins.only(kept)), start[kept], ridge=self.ridge).logits
        rated = np.full(len(kept), np.nan)
        rated[kept] = logits - logits.mean()
        return rated

    def wins_of(self, targets: NDArray[np.float64]) -> WinCounts:
        """Pair counts of targets (rows,)."""
        return with_targets(self.data, clip_targets(targets, self.parity)).wins

    def battles_of(self, code: int, *out: int) -> ModelBattles:
        """The battles of model `code` against the anchors that are not in `out`."""
        opponents = self.anchor.copy()
        opponents[[code, *out]] = False
        first = (self.data.a == code) & opponents[self.data.b]
        rows = np.flatnonzero(first | ((self.data.b == code) & opponents[self.data.a]))
        side = first[rows]
        return ModelBattles(rows, np.where(side, self.data.b[rows], self.data.a[rows]), side)

    def place(
        self,
        own: ModelBattles,
        targets: NDArray[np.float64],
        anchors: NDArray[np.float64],
        unit: NDArray[np.intp],
        counts: NDArray[np.float64],
        start: float = 0.0,
    ) -> NDArray[np.float64]:
        """Ratings (columns,) in logits of one model against fixed `anchors` (n,), one for each column of `counts`.

        `unit` (own rows,) is the resampling unit of each row, `counts` (units, columns) how often each was drawn.
        """
        clipped = clip_targets(targets[own.rows], self.parity)
        outcome = np.where(own.first, clipped, 1.0 - clipped)
        order = np.argsort(own.opponent, kind="stable")
        order = order[~np.isnan(outcome[order])]
        present, starts = np.unique(own.opponent[order], return_index=True)
        if not len(present):
            return np.full(counts.shape[1], np.nan)
        drawn, outcome = counts[unit[order]], outcome[order]
        if self.data.weight is not None:
            drawn *= self.data.weight[own.rows[order], None]
        won = np.add.reduceat(drawn * outcome[:, None], starts, axis=0)
        lost = np.add.reduceat(drawn * (1.0 - outcome)[:, None], starts, axis=0)
        return place_against_anchors(anchors[present], won, lost, self.ridge, start)


def hold_out(
    data: Comparisons,
    score: ArrayLike,
    human: ArrayLike,
    others: Mapping[str, ArrayLike],
    *,
    ridge: float,
    ties: HumanTies,
    parity: bool,
    by_judge: bool = False,
) -> HoldOut:
    """Validate the columns, count the pairs, and find the possible anchors: models with battles in every signal.

    `by_judge` gives each judge of `data` a beta of its own. Raises `InputError` where there are fewer than three.
    """
    scores, size = score_column(score, len(data)), len(data.models)
    targets = {"human": label_column(human, len(data)), "hard": data.y}
    for name, column in others.items():
        if name in ("human", "hard", "soft", "scaled-hard"):
            raise InputError(f"others: {name!r} is a signal already; choose another name")
        targets[name] = label_column(column, len(data))
    scored = ~np.isnan(scores)
    wins = {name: with_targets(data, clip_targets(column, parity)).wins for name, column in targets.items()}
    seen = with_targets(data, np.where(scored, 0.5, np.nan)).wins
    anchor = np.logical_and.reduce([table.played > 0.0 for table in (*wins.values(), seen)])
    if np.count_nonzero(anchor) < _MIN_ANCHORS:
        raise InputError(
            f"{np.count_nonzero(anchor)} models have battles with labels of people, verdicts and scores; "
            f"leaving one out needs at least {_MIN_ANCHORS}"
        )
    start = {name: climb(curve_of(table), np.zeros(size), ridge=ridge).logits for name, table in wins.items()}
    judge = judge_codes(data) if by_judge else np.zeros(len(data), dtype=np.intp)
    plain = np.where(scored, scores, 0.0)
    grids = tuple(score_grid(plain[judge == code]) for code in range(int(judge.max(initial=0)) + 1))
    return HoldOut(data, targets, grids, judge, scored, ridge, ties, parity, wins, start, anchor)


def judge_codes(data: Comparisons) -> NDArray[np.intp]:
    """The judge of each row (rows,) as a code into `data.judges`; 0 throughout where no judge is known."""
    return np.zeros(len(data), dtype=np.intp) if data.judge is None else data.judge.astype(np.intp)


def _component_warnings(field: HoldOut) -> tuple[str, ...]:
    """A warning for each signal whose anchors are not connected: only the ridge relates the parts."""
    parts = {name: weak_components(wins.only(field.anchor)) for name, wins in field.wins.items()}
    return tuple(
        f"{name}: the anchors fall into {count} parts that never met; only the ridge places these to one another"
        for name, count in parts.items()
        if count > 1
    )


CONFIDENCES = tuple(step / 100 for step in range(55, 100, 5))
WAYS = ("hard", "scaled-hard", "smoothed", "soft")
"""Ways to use a judge's verdicts: as they are, times one constant, shrunk towards a tie, or as calibrated scores."""


@dataclass(frozen=True, slots=True)
class NearestWay:
    """Which way to use a judge is nearest to people, by errors of models that no constant of the way has seen.

    `mae` are mean absolute errors by way, in Elo points over `models` models; the confidence of "smoothed" is chosen
    for each model by the others. `nearer` is how much nearer `way` is than `than`, "soft" or, where that is the
    nearest, the one that follows it, between `lo` and `hi`: an interval of 95 % for all comparisons with `than` at
    once, about other models like these. `differs` states whether it excludes 0.
    """

    way: str
    mae: Mapping[str, float]
    than: str
    nearer: float
    lo: float
    hi: float
    models: int

    @property
    def differs(self) -> bool:
        """Whether the nearest way is distinguished from `than`."""
        return self.lo > 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Baselines:
    """The accuracy of each way of using a judge: "hard", "scaled-hard", "smoothed" (the best) and "soft".

    `sweep` is the error by confidence in Elo points, `confidence` the best confidence. It is chosen on the same labels
    on which it is measured, so its error is slightly optimistic; `nearest` compares the ways without that, and is None
    where models were not left out or are fewer than four. `held_out` states whether each model was left out.
    """

    accuracy: Mapping[str, Accuracy]
    sweep: Mapping[float, float]
    confidence: float
    held_out: bool
    nearest: NearestWay | None = None


def nearest_way(errors: Mapping[str, NDArray[np.float64]], level: float = 0.95) -> NearestWay | None:
    """The way with the least mean of absolute `errors` (models,), compared with "soft"; None for fewer than 4 models.

    The interval is that of a mean of paired differences, one a model, with Bonferroni's correction for the choice among
    the other ways. NaN leaves a model out of all ways.
    """
    table = np.array([errors[way] for way in WAYS])
    table = table[:, np.isfinite(table).all(axis=0)]
    count = table.shape[1]
    if count < _MIN_COMPARED:
        return None
    mae = dict(zip(WAYS, table.mean(axis=1).tolist(), strict=True))
    first, second = sorted(WAYS, key=lambda way: (mae[way], WAYS.index(way)))[:2]
    than = second if first == "soft" else "soft"
    difference = table[WAYS.index(than)] - table[WAYS.index(first)]
    tail = (1.0 - level) / (2.0 * (len(WAYS) - 1))
    half = float(stdtrit(count - 1, 1.0 - tail)) * float(difference.std(ddof=1)) / math.sqrt(count)
    middle = float(difference.mean())
    return NearestWay(first, mae, than, middle, middle - half, middle + half, count)


def _errors_by_way(
    people: NDArray[np.float64], elo: Mapping[str, NDArray[np.float64]], confidences: tuple[float, ...]
) -> dict[str, NDArray[np.float64]]:
    """Absolute errors (models,) by way; of smoothed verdicts each model's by the confidence that is best without it."""
    errors = {way: np.abs(elo[way] - people) for way in WAYS if way != "smoothed"}
    swept = np.array([np.abs(elo[f"smoothed {confidence}"] - people) for confidence in confidences])
    known = np.isfinite(swept).all(axis=0)
    others = np.where(known, swept, 0.0).sum(axis=1)[:, None] - np.where(known, swept, 0.0)
    errors["smoothed"] = np.take_along_axis(swept, others.argmin(axis=0)[None], axis=0)[0]
    return errors


def smooth_labels(y: ArrayLike, confidence: float) -> NDArray[np.float64]:
    """Label smoothing: outcomes (rows,), wins at c = `confidence`, losses at 1 - c, ties at 0.5, shares in proportion.

    Raises `InputError` for a confidence that is not within [0.5, 1].

    >>> from venire.ratings import smooth_labels
    >>> smooth_labels(np.array([1.0, 0.5, 0.0]), 0.9).round(2).tolist()
    [0.9, 0.5, 0.1]
    """
    if not 0.5 <= confidence <= 1.0:
        raise InputError(f"confidence is {confidence}; give 0.5 (every verdict a tie) to 1 (as they are)")
    return np.asarray(0.5 + (float_array("y", y) - 0.5) * (2.0 * confidence - 1.0), dtype=np.float64)


def baselines(
    data: Comparisons,
    score: ArrayLike,
    human: ArrayLike,
    *,
    ridge: float = RIDGE,
    confidences: tuple[float, ...] = CONFIDENCES,
    ties: HumanTies = "drop",
    by_judge: bool = False,
    held_out: bool = True,
) -> Baselines:
    """Compare soft-Elo with hard-Elo, hard-Elo times one constant, and label smoothing over `confidences`.

    Source: the Soft-Elo paper.

    Arguments are as in `soft_elo`; `by_judge`, for which `held_out` is needed, fits one beta for each judge. With
    `held_out` each model is left out in turn; without it, all are fitted once on all battles and the constant of
    "scaled-hard" is fitted on the same models on which it is measured. Raises `InputError`.

    >>> from venire.ratings import baselines, comparisons
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> score, human = [2.0, -1.0, 1.5, 2.0, -0.5, -2.0], [1, 0, 1, 1, 1, 0]
    >>> found = baselines(data, score, human, held_out=False)
    >>> sorted(found.accuracy)
    ['hard', 'scaled-hard', 'smoothed', 'soft']
    """
    if not confidences:
        raise InputError("confidences is empty; give at least one, such as 0.8")
    confidences = tuple(dict.fromkeys(confidences))
    targets = {f"smoothed {confidence}": smooth_labels(data.y, confidence) for confidence in confidences}
    if held_out:
        found = leave_one_out(
            data, score, human, ridge=ridge, ties=ties, replicates=0, others=targets, by_judge=by_judge
        )
        people, elo = found.human.elo, {name: placed.elo for name, placed in found.judge.items()}
    else:
        people = human_elo(data, human, ridge=ridge, errors="none").elo
        hard = hard_elo(data, ridge=ridge, errors="none").elo
        elo = {
            "hard": hard,
            "scaled-hard": ELO_MEAN + least_squares_scale(people - ELO_MEAN, hard - ELO_MEAN) * (hard - ELO_MEAN),
            "soft": soft_elo(data, score, human, ridge=ridge, ties=ties, errors="none").ratings.elo,
        }
        for confidence in confidences:
            name, share = f"smoothed {confidence}", smooth_labels(data.y, confidence)
            elo[name] = human_elo(data, share, ridge=ridge, errors="none").elo
    judged = {name: accuracy(people, points) for name, points in elo.items()}
    sweep = {confidence: judged.pop(f"smoothed {confidence}") for confidence in confidences}
    best = min(sweep, key=lambda confidence: sweep[confidence].mae)
    judged["smoothed"] = sweep[best]
    nearest = nearest_way(_errors_by_way(people, elo, confidences)) if held_out else None
    return Baselines(judged, {confidence: found.mae for confidence, found in sweep.items()}, best, held_out, nearest)
