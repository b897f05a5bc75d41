"""What a judge says of a model that people did not rate: each model in turn is left out and placed among the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError
from venire.arena.scale import ELO_MEAN, POINTS_PER_LOGIT
from venire.ratings.data.checks import check_seed
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.statistics import spearman
from venire.ratings.soft_elo.beta import HumanTies
from venire.ratings.soft_elo.holding_out import Field, Own, field_of, islands
from venire.ratings.soft_elo.soft_elo import RIDGE

__all__ = ["Accuracy", "LeaveOneOut", "Placed", "accuracy", "leave_one_out", "stretch"]

Unit = Literal["battle", "instruction"]


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How far ratings by a judge are from those of people, in Elo points, over `models` models.

    `slope` is that of the residual (judge - human) on human Elo: above 0 the judge stretches the scale. `quartiles`
    are the mean residuals from the weakest quarter of models to the strongest. None where too few models are rated.
    """

    mae: float
    spearman: float | None
    slope: float | None
    quartiles: tuple[float, ...]
    models: int


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Each model's rating `elo` (n,) among the others, and its standard error `se` (n,), both in Elo points."""

    elo: NDArray[np.float64]
    se: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class LeaveOneOut:
    """Each of `models` placed among all others by people and by judge, none of whose fits saw its battles.

    `judge` holds "hard", "soft" and "scaled-hard" (hard times one constant fitted on the anchors), and whatever other
    targets were asked for. `beta` (n,) is what the labels without the model gave. `anchor` (n,) says which models
    people and judge have both rated: only these are anchors, the others are placed alone and have no human Elo.
    """

    models: tuple[str, ...]
    human: Placed
    judge: Mapping[str, Placed]
    beta: NDArray[np.float64]
    anchor: NDArray[np.bool_]
    battles: NDArray[np.float64]
    ridge: float
    replicates: int
    cluster: Unit
    warnings: tuple[str, ...] = ()

    def residual(self, signal: str = "soft") -> NDArray[np.float64]:
        """Human less judge (n,) in Elo points, each in the gauge of the same anchors; NaN without a human rating."""
        return np.asarray(self.human.elo - self.judge[signal].elo, dtype=np.float64)

    def accuracy(self, signal: str = "soft") -> Accuracy:
        """How far this signal is from people; `signal` is a key of `judge`."""
        return accuracy(self.human.elo, self.judge[signal].elo)


def accuracy(human: NDArray[np.float64], judge: NDArray[np.float64]) -> Accuracy:
    """Error, order and stretch of `judge` (n,) against `human` (n,), in Elo points of one gauge; NaN is left out.

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
    seed: int = 0,
) -> LeaveOneOut:
    """Leave one model out in the reference gauge; the Soft-Elo paper.

    For each model, people, hard verdicts (`data.y`) and soft targets are fitted apart on the battles of the other
    anchors, each centred over these; its own rating is then one number against fixed anchors with the same `ridge`,
    and beta is fitted without any label of people that involves it. `score` and `human` are as in `soft_elo`; `others`
    names more targets (rows,) for A to be placed alike. Errors come from `replicates` resamples of the model's own
    battles, or of their instructions, the same draws for every signal; 0 leaves them out. Raises `InputError`.
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
    field = field_of(data, score, human, others or {}, ridge=ridge, ties=ties, parity=parity)
    count = len(data.models)
    logits = {name: np.full((count, replicates + 1), np.nan) for name in (*field.targets, "soft", "scaled-hard")}
    beta = np.full(count, np.nan)
    for code, place_of in enumerate(np.argsort(np.argsort(np.array(data.models)))):
        rng = np.random.default_rng([seed, int(place_of)])
        beta[code], found = _one(field, code, _draws(field, code, cluster, replicates, rng))
        for name, columns in found.items():
            logits[name][code] = columns
    logits["human"][~field.anchor] = np.nan
    placed = {name: _placed(columns) for name, columns in logits.items()}
    battles = field.wins["hard"].played
    human_elo = placed.pop("human")
    said = (*islands(field), *_silent(beta))
    return LeaveOneOut(data.models, human_elo, placed, beta, field.anchor, battles, ridge, replicates, cluster, said)


@dataclass(frozen=True, slots=True, eq=False)
class _Draws:
    """Battles of one model, what is drawn together, and how often: (units, columns), the first column once each."""

    own: Own
    unit: NDArray[np.intp]
    counts: NDArray[np.float64]


def _draws(field: Field, code: int, cluster: Unit, replicates: int, rng: np.random.Generator) -> _Draws:
    own = field.own(code)
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


def _one(field: Field, code: int, draws: _Draws) -> tuple[float, dict[str, NDArray[np.float64]]]:
    """Beta without this model's labels, and its rating in logits (columns,) in every signal."""
    beta = field.beta(code)
    soft = field.soft(beta)
    found, anchors = {}, {}
    for name, targets in (*field.targets.items(), ("soft", soft)):
        wins = field.wins_of(soft) if name == "soft" else field.wins[name]
        near = field.start["human" if name == "soft" else name]
        anchors[name] = field.rate(wins, (code,), near)
        guess = float(near[code])
        found[name] = field.place(draws.own, targets, anchors[name], draws.unit, draws.counts, guess)
    scale = stretch(anchors["human"], anchors["hard"])
    found["scaled-hard"] = scale * found["hard"]
    return beta, found


def stretch(human: NDArray[np.float64], judge: NDArray[np.float64]) -> float:
    """The constant that best turns centred ratings of a judge (n,) into those of people, by least squares.

    NaN is left out; 1 where the judge rates all alike.
    """
    both = np.isfinite(human) & np.isfinite(judge)
    across = float(judge[both] @ judge[both])
    return float(human[both] @ judge[both]) / across if across > 0.0 else 1.0


def _placed(columns: NDArray[np.float64]) -> Placed:
    """The first column (n,) as Elo points, the spread of the others as its error."""
    resampled = columns[:, 1:]
    known = np.isfinite(resampled).sum(axis=1)
    error = np.full(len(columns), np.nan)
    for code in np.flatnonzero(known > 1):
        error[code] = POINTS_PER_LOGIT * float(np.nanstd(resampled[code], ddof=1))
    return Placed(ELO_MEAN + POINTS_PER_LOGIT * columns[:, 0], error)


def _silent(beta: NDArray[np.float64]) -> tuple[str, ...]:
    said = []
    if np.isnan(beta).any():
        said.append(f"beta could not be found without {np.isnan(beta).sum()} of {len(beta)} models: no soft rating")
    if np.isinf(beta).any():
        said.append(f"beta has no finite optimum without {np.isinf(beta).sum()} of {len(beta)} models")
    if (beta <= 0.0).any():
        said.append(f"beta is 0 or below without {(beta <= 0.0).sum()} of {len(beta)} models")
    return tuple(said)
