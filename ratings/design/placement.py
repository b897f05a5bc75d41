"""Placement of one new model among models that are already rated, from few verdicts on their scale.

The board is fitted without the new model and then held, so that placing a model does not move the others. Its rating
solves `sum of (outcome - sigma(R - R_opponent)) = 0`. Its standard error is given twice: as if the board were exact
(`held`), and including the board's own errors and shared instructions (`measured`), by stacking both estimating
equations (two-step M-estimation; "A Note on Two-Step Estimation", Murphy and Topel 1985, by clusters). A joint fit of
all verdicts, in which all ratings move, is given for comparison (`joint`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from venire.arena.errors import InputError
from venire.arena.scale import ELO_MEAN, POINTS_PER_LOGIT
from venire.ratings.data.clustered import cluster_codes, outer_products_by_cluster
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.data.statistics import student
from venire.ratings.data.validation import check_level
from venire.ratings.inference.any_time import MIN_CLUSTERS, any_time_interval
from venire.ratings.inference.contrasts import difference
from venire.ratings.inference.ranking import RankInterval, rank_interval
from venire.ratings.pairwise.bradley_terry import bradley_terry
from venire.ratings.pairwise.components import SeparatedError
from venire.ratings.pairwise.covariance import model_covariance, rated_rows
from venire.ratings.soft_elo.soft_elo import place_against_anchors

_PRIOR_SD = 1.0
"""Prior standard deviation in logits about the board's mean, where a model's verdicts give no finite rating."""

_FINEST = 1e-10

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PlacedElo:
    """A rating in Elo points with its standard error; `low` to `high` is the interval for one predetermined look.

    `low_any` to `high_any` holds simultaneously at all looks. A missing bound is infinite.
    """

    elo: float
    se: float
    low: float
    high: float
    low_any: float
    high_any: float


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A neighbour of the new model in the order: its `elo`, and the probability that the new model is above it."""

    model: str
    elo: float
    above: float


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """The position of `model` on a board whose mean is 1000 Elo points without it, at `level`.

    `held` treats the board as exact, `measured` includes its errors, `joint` is from a joint fit of all verdicts in the
    same gauge (None: that fit has no finite maximum; `warnings` reports it). `ratings` holds the board and the new
    model with the covariance behind `measured`; `moved` (models,) is how far the joint fit moves each of the board's
    models in Elo points. `judgments`, `instructions` and `opponents` are counts for the new model. `lopsided` means
    that it won ("won") or lost ("lost") everything: its rating is then shrunk towards the mean, and one bound is
    infinite.
    """

    model: str
    held: PlacedElo
    measured: PlacedElo
    joint: PlacedElo | None
    ratings: Ratings
    moved: Vector | None
    rank: RankInterval | None
    neighbours: tuple[Neighbour, ...]
    judgments: int
    instructions: int
    opponents: int
    level: float
    lopsided: Literal["won", "lost"] | None = None
    warnings: tuple[str, ...] = ()

    def best_of(self, number: int) -> tuple[float, float] | None:
        """The interval of `measured` in Elo points that holds for each of `number` placements at once (Bonferroni).

        So it holds for the one that is kept because it came out best. None without a finite interval.
        """
        one = self.measured
        if not (math.isfinite(one.low) and math.isfinite(one.high)):
            return None
        tail = (1.0 - self.level) / (2.0 * number)
        half = float(student.isf(tail, self.instructions - 1.0)) * one.se
        return one.elo - half, one.elo + half


@dataclass(frozen=True, slots=True, eq=False)
class _NewModelBattles:
    """The new model's own rows against rated opponents: `against` (rows,) are codes of the board's models."""

    against: NDArray[np.intp]
    y: Vector
    weight: Vector
    group: NDArray[np.int32]
    clusters: int


def fit_board(data: Comparisons, model: str) -> Ratings:
    """Ratings of all models except `model`, from the rows without it, mean 1000.

    Raises `SeparatedError` where these rows alone have no finite fit, and `InputError` where there are none.
    """
    code = _code(data, model)
    rows = data.select((data.a != code) & (data.b != code))
    if not len(rows):
        raise InputError(f"no verdicts among the models beside {model}: there is no board to place it on")
    return bradley_terry(rows, errors="none")


def place_model(data: Comparisons, model: str, *, level: float = 0.95, seed: int = 0, near: int = 2) -> Placement:
    """Place `model` among the others by all rows of `data`; rows without it form the board; docs/placing.md.

    `near` is the number of neighbours on either side, `seed` that of the error draws for ranks. Raises `InputError` for
    a model without comparisons against rated models, and the errors of `fit_board`.

    >>> from venire.ratings import comparisons, place_model
    >>> data = comparisons(list("aba") * 20, list("bcc") * 20, [1, 1, 0, 0, 1, 1] * 10, judge=list("xy") * 30)
    >>> found = place_model(data, "c")
    >>> found.model, [one.model for one in found.neighbours]
    ('c', ['a', 'b'])
    """
    check_level(level)
    board = fit_board(data, model)
    own = _own(data, model, board)
    logit, lopsided = _rating(own, board.logits)
    held_se = _held_se(own, board.logits, logit)
    ratings = _extended(data, model, board, own, logit, held_se)
    joint, moved, why = _joint(data, model, board, level)
    held = _points(logit, held_se, own.clusters - 1.0, level)
    whole = float(ratings.se[_code(data, model)])
    measured = _points(logit, whole, own.clusters - 1.0, level)
    if lopsided is not None:
        end = _end(own, board.logits, logit, lopsided, level)
        held, measured = (_opened(one, lopsided, end) for one in (held, measured))
    rank = rank_interval(ratings, model, level=level, seed=seed) if math.isfinite(whole) else None
    warnings = (*_warnings(model, own, lopsided, board), *why)
    against = len(np.unique(own.against))
    return Placement(
        model, held, measured, joint, ratings, moved, rank, _neighbours(ratings, model, near), len(own.y),
        own.clusters, against, level, lopsided, warnings,
    )  # fmt: skip


def place_among(data: Comparisons, model: str, board: Ratings) -> tuple[float, float]:
    """The logit of `model` against a held board, and its standard error, for an interim look between rounds.

    The error is clustered and never below the model's own; infinite with one instruction. Raises `InputError`.
    """
    own = _own(data, model, board)
    logit, _ = _rating(own, board.logits)
    return logit, _held_se(own, board.logits, logit)


def _code(data: Comparisons, model: str) -> int:
    if model not in data.models:
        raise InputError(f"{model} is none of the models compared: {', '.join(data.models[:10])}")
    return data.models.index(model)


def _own(data: Comparisons, model: str, board: Ratings) -> _NewModelBattles:
    code = _code(data, model)
    mine = data.select((data.a == code) | (data.b == code))
    first = mine.a == code
    against = np.where(first, mine.b, mine.a).astype(np.intp)
    weight = np.ones(len(mine)) if mine.weight is None else mine.weight
    keep = np.isfinite(board.logits[against]) & (weight > 0.0)
    if not keep.any():
        raise InputError(f"{model} has no verdict against a model that the board rates: nothing places it")
    y = np.where(first, mine.y, 1.0 - mine.y)[keep]
    group, clusters = cluster_codes(None if mine.cluster is None else mine.cluster[keep], int(keep.sum()))
    return _NewModelBattles(against[keep], y, weight[keep], group, clusters)


def _rating(own: _NewModelBattles, logits: Vector) -> tuple[float, Literal["won", "lost"] | None]:
    """The maximum likelihood rating from its own rows; shrunk to the board's mean if all are won or all lost."""
    opponents, at = np.unique(own.against, return_inverse=True)
    won = np.bincount(at, own.weight * own.y, len(opponents)).astype(np.float64)[:, None]
    lost = np.bincount(at, own.weight * (1.0 - own.y), len(opponents)).astype(np.float64)[:, None]
    lopsided: Literal["won", "lost"] | None = None
    if not (won.sum() > 0.0 and lost.sum() > 0.0):
        lopsided = "lost" if lost.sum() > 0.0 else "won"
    ridge = 1.0 / _PRIOR_SD**2 if lopsided else 1e-12 * float(own.weight.sum())
    return float(place_against_anchors(logits[opponents], won, lost, ridge)[0]), lopsided


def _held_se(own: _NewModelBattles, logits: Vector, logit: float) -> float:
    """The error against an exact board: cluster-robust, and at least the model-based error."""
    share = expit(logit - logits[own.against])
    bread = 1.0 / float((own.weight * share * (1.0 - share)).sum())
    if own.clusters < 2:
        return math.inf
    score = np.bincount(own.group, own.weight * (own.y - share), own.clusters)
    scatter = bread**2 * float(score @ score) * own.clusters / (own.clusters - 1)
    return math.sqrt(max(scatter, bread))


def _extended(
    data: Comparisons, model: str, board: Ratings, own: _NewModelBattles, logit: float, held_se: float
) -> Ratings:
    """The board and the new model with their joint covariance: the board's errors move the placed model too.

    The rating follows its opponents: dR / dR_j = information against j over all of it. Scores are summed by cluster
    over the board's and the model's rows together, so instructions that both share are counted as shared.
    """
    code = _code(data, model)
    mine = (data.a == code) | (data.b == code)
    logits = board.logits.copy()
    logits[code] = logit
    bread = _stacked_bread(data.select(~mine), board, own, code, logit)
    rows = rated_rows(data, logits)
    rated = np.flatnonzero(np.isfinite(logits))
    at, new = logits[rated], int(np.searchsorted(rated, code))
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    scores = weight * (rows.y - expit(at[rows.a] - at[rows.b]))
    of_new = (rows.a == new) | (rows.b == new)
    group, count = cluster_codes(rows.cluster, len(rows))
    meat = outer_products_by_cluster(
        group, count, rows.a, np.where(of_new & (rows.a != new), 0.0, scores),
        rows.b, np.where(of_new & (rows.b != new), 0.0, -scores), len(rated),
    )  # fmt: skip
    inner = np.full((len(rated), len(rated)), np.nan)
    if count > 1 and math.isfinite(held_se):
        inner = bread @ meat @ bread.T * (count / (count - 1))
        # the part of its own rows is no less than in `held`
        inner[new, new] += max(0.0, held_se**2 - _own_part(meat, bread, new, count))
    covariance = np.full((len(logits), len(logits)), np.nan)
    covariance[np.ix_(rated, rated)] = 0.5 * (inner + inner.T)
    notes = {name: fact for name, fact in board.diagnostics.items() if name != "no_estimate"} | {"placed": model}
    battles = board.battles.copy()
    battles[code] = float(own.weight.sum())
    return replace(
        board, logits=logits, battles=battles, covariance=covariance, errors="cluster",
        gauge=f"mean 1000 without {model}", degrees=max(own.clusters - 1.0, 1.0), diagnostics=notes,
    )  # fmt: skip


def _own_part(meat: NDArray[np.float64], bread: NDArray[np.float64], new: int, count: int) -> float:
    return float(bread[new, new] ** 2 * meat[new, new]) * count / (count - 1)


def _stacked_bread(
    rest: Comparisons, board: Ratings, own: _NewModelBattles, code: int, logit: float
) -> NDArray[np.float64]:
    """The inverse of both estimating equations' slopes: of the board alone, and of the new model given the board."""
    rated = np.flatnonzero(np.isfinite(board.logits) | (np.arange(len(board.logits)) == code))
    inner = model_covariance(rest, board.logits)
    inner[code, :], inner[:, code] = 0.0, 0.0
    share = expit(logit - board.logits[own.against])
    information = own.weight * share * (1.0 - share)
    pull = np.bincount(own.against, information, len(board.logits)) / information.sum()
    inner[code, rated] = pull[rated] @ inner[np.ix_(rated, rated)]
    inner[code, code] = 1.0 / information.sum()
    return np.asarray(inner[np.ix_(rated, rated)])


def _joint(
    data: Comparisons, model: str, board: Ratings, level: float
) -> tuple[PlacedElo | None, Vector | None, tuple[str, ...]]:
    """The joint fit, shifted so that the board's models keep the mean that they have without the new model."""
    code = _code(data, model)
    try:
        found = bradley_terry(data)
    except SeparatedError:
        return None, None, ("a fit of all verdicts together has no finite maximum: only the held board is shown",)
    among = np.isfinite(board.logits)
    weights = np.where(among, -1.0 / among.sum(), 0.0)
    shift = float(weights[among] @ found.logits[among])
    moved = np.where(among, POINTS_PER_LOGIT * (found.logits + shift - board.logits), np.nan)
    weights[code] += 1.0
    known = np.isfinite(found.logits)
    se = math.nan
    if found.covariance is not None:
        se = math.sqrt(max(0.0, float(weights[known] @ found.covariance[np.ix_(known, known)] @ weights[known])))
    return _points(float(found.logits[code]) + shift, se, found.degrees, level), moved, ()


def _points(logit: float, se: float, degrees: float, level: float) -> PlacedElo:
    if not math.isfinite(se):
        return PlacedElo(ELO_MEAN + POINTS_PER_LOGIT * logit, se, -math.inf, math.inf, -math.inf, math.inf)
    half = float(student.ppf(0.5 + level / 2.0, degrees)) * se
    low, high = any_time_interval(np.array([logit]), np.array([se]), level=level)
    bounds = (logit - half, logit + half, float(low[0]), float(high[0]))
    return PlacedElo(
        ELO_MEAN + POINTS_PER_LOGIT * logit, POINTS_PER_LOGIT * se,
        *(ELO_MEAN + POINTS_PER_LOGIT * bound for bound in bounds),
    )  # fmt: skip


def _end(own: _NewModelBattles, logits: Vector, logit: float, lopsided: str, level: float) -> float:
    """The finite bound in logits of a model that only won, or only lost: beyond it, this result was too unlikely.

    All rows of one instruction together count as one, since a shared effect may have decided them.
    """
    sign = 1.0 if lopsided == "won" else -1.0
    each = own.weight * own.clusters / own.weight.sum()
    wanted = math.log(1.0 - level)

    def chance(at: float) -> float:
        return -float(each @ np.logaddexp(0.0, -sign * (at - logits[own.against])))

    near, far = logit, logit
    while chance(far) > wanted:
        far -= sign
    while chance(near) < wanted:
        near += sign
    while abs(near - far) > _FINEST:
        middle = 0.5 * (near + far)
        near, far = (middle, far) if chance(middle) > wanted else (near, middle)
    return 0.5 * (near + far)


def _opened(one: PlacedElo, lopsided: str, end: float) -> PlacedElo:
    """An interval with one bound that always includes the estimate: after many wins it may exceed the shrunk rating."""
    bound = ELO_MEAN + POINTS_PER_LOGIT * end
    if lopsided == "won":
        return replace(one, low=min(bound, one.elo), high=math.inf, low_any=-math.inf, high_any=math.inf)
    return replace(one, low=-math.inf, high=max(bound, one.elo), low_any=-math.inf, high_any=math.inf)


def _neighbours(ratings: Ratings, model: str, near: int) -> tuple[Neighbour, ...]:
    """The neighbouring models in the order, best first, with the probability that the model is above each."""
    order = ratings.order
    at = order.index(model)
    named = [*order[max(0, at - near) : at], *order[at + 1 : at + 1 + near]]
    elo = dict(zip(ratings.models, ratings.elo.tolist(), strict=True))
    finite = bool(np.isfinite(ratings.se[ratings.models.index(model)]))
    return tuple(
        Neighbour(one, elo[one], difference(ratings, model, one).above if finite else math.nan) for one in named
    )


def _warnings(model: str, own: _NewModelBattles, lopsided: str | None, board: Ratings) -> tuple[str, ...]:
    warnings = []
    if lopsided is not None:
        end = "upper" if lopsided == "won" else "lower"
        warnings.append(f"{model} {lopsided} every judgment: its rating has no {end} bound, and is pulled to the mean")
    if own.clusters < MIN_CLUSTERS:
        warnings.append(
            f"{model} was judged on {own.clusters} instructions: with fewer than {MIN_CLUSTERS} "
            "its error is uncertain itself"
        )
    unrated = int((~np.isfinite(board.logits)).sum()) - 1
    if unrated > 0:
        warnings.append(f"{unrated} models of the store have no rating on the board, and are no part of this")
    return tuple(warnings)
