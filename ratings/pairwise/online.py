"""Online ratings, updated battle by battle: Elo and TrueSkill, as means over random orders.

An online rating depends on the order of battles, which carries no information about models of constant strength; the
mean over random orders is used instead. Bradley-Terry does not depend on the order and is preferable; these ratings are
included because leaderboards quote them. Elo moves both ratings by K times outcome minus expectation (the am-ELO
paper).

TrueSkill between two players without draws: a skill is a normal distribution that each battle updates to the exact
moments of its posterior (Herbrich, Minka and Graepel 2006). Constants are those of Remeli and Hardt 2026: skills begin
at N(25, (25/3)^2), a performance varies about the skill with standard deviation 25/6, a skill drifts by 25/300 before
each battle.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx

from venire.arena.choices import BattleOrder
from venire.arena.errors import InputError
from venire.arena.scale import POINTS_PER_LOGIT
from venire.arena.wording import suggest
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.data.validation import check_seed

_FEW = 24  # from so many orders on, side by side costs less than one after the other
_CELLS = 10_000_000  # positions of all orders held at once: 40 MB
MU, SIGMA, BETA, TAU = 25.0, 25.0 / 3.0, 25.0 / 6.0, 25.0 / 300.0
_NORMAL_TO_LOGISTIC = 1.702  # Phi(x) is within 0.0095 of sigma(1.702 x) everywhere


@dataclass(frozen=True, slots=True, eq=False)
class OnlineElo:
    """Ratings after the last battle, their mean where there were several orders.

    `sd` (n,) is the standard deviation between orders in Elo points, for one order and not for the mean: the random
    part of a single pass. It is not a standard error of the ratings, since it does not cover sampling of battles.
    """

    ratings: Ratings
    sd: NDArray[np.float64]
    order: BattleOrder
    shuffles: int


def online_elo(
    data: Comparisons, *, k: float = 4.0, order: BattleOrder = "shuffled", shuffles: int = 100, seed: int = 0
) -> OnlineElo:
    """Elo from 1000, each battle moving both ratings by k points times outcome minus expectation; the am-ELO paper.

    `order` "given" processes the rows once in their given order. Raises `InputError` for a k outside (0, 10000], fewer
    than one shuffle, and weights other than 0 and 1.

    >>> from venire.ratings import comparisons, online_elo
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> online_elo(data, shuffles=10).ratings.elo.round().tolist()
    [1004.0, 1000.0, 996.0]
    """
    if not 0.0 < k <= 10_000.0:
        raise InputError(f"k is {k}; give Elo points above 0 and up to 10000")
    if order not in get_args(BattleOrder):
        raise InputError(f"order is {order!r}; {suggest(order, get_args(BattleOrder))}")
    if order == "shuffled" and shuffles < 1:
        raise InputError(f"shuffles is {shuffles}; give 1 or more")
    played, size = _unweighted(data, "online Elo"), len(data.models)
    if order == "given":
        runs = _update_in_turn(played, k / POINTS_PER_LOGIT, np.arange(len(played), dtype=np.int32))[:, None]
    else:
        rows, origin = _sorted_by_name(played)
        runs = np.empty((size, shuffles))
        runs[origin] = np.hstack(
            [_passes(rows, k / POINTS_PER_LOGIT, group) for group in random_orders(len(rows), shuffles, seed)]
        )
    battles = np.bincount(played.a, minlength=size) + np.bincount(played.b, minlength=size)
    runs[battles == 0] = np.nan
    absent = [data.models[code] for code in np.flatnonzero(battles == 0)]
    ratings = Ratings(
        method="elo",
        models=data.models,
        logits=runs.mean(axis=1),
        battles=battles.astype(np.float64),
        diagnostics={
            "k": k,
            "order": order,
            "shuffles": runs.shape[1] if order == "shuffled" else 0,
            "no_estimate": dict.fromkeys(absent, "it has no comparison with a weight above 0"),
        },
    )
    sd = runs.std(axis=1, ddof=1) * POINTS_PER_LOGIT if runs.shape[1] > 1 else np.full(size, np.nan)
    return OnlineElo(ratings=ratings, sd=sd, order=order, shuffles=runs.shape[1] if order == "shuffled" else 0)


def _passes(rows: Comparisons, k: float, order: NDArray[np.int32]) -> NDArray[np.float64]:
    """Ratings in logits (models, orders) after a pass in each of the orders (rows, orders)."""
    if order.shape[1] < _FEW:
        return np.column_stack([_update_in_turn(rows, k, column) for column in order.T])
    return _update_ratings(rows, k, order)


def _update_in_turn(rows: Comparisons, k: float, order: NDArray[np.int32]) -> NDArray[np.float64]:
    """The sequential update on plain lists: arrays are not faster where each battle needs the previous battle."""
    ratings = [0.0] * len(rows.models)
    exp = math.exp
    columns = (rows.a[order].tolist(), rows.b[order].tolist(), rows.y[order].tolist())
    for a, b, y in zip(*columns, strict=True):
        change = k * (y - 1.0 / (1.0 + exp(ratings[b] - ratings[a])))
        ratings[a] += change
        ratings[b] -= change
    return np.array(ratings)


def _update_ratings(rows: Comparisons, k: float, order: NDArray[np.int32]) -> NDArray[np.float64]:
    """The same update in all orders in parallel, one battle of each at a time."""
    lanes = order.shape[1]
    ratings = np.zeros(len(rows.models) * lanes)
    lane, chunk = np.arange(lanes), max(1, 1_000_000 // lanes)
    change = np.empty(lanes)
    for start in range(0, len(order), chunk):
        part = order[start : start + chunk]
        a, b = rows.a[part] * np.int64(lanes) + lane, rows.b[part] * np.int64(lanes) + lane
        for above, below, gain in zip(a, b, k * rows.y[part], strict=True):
            up, down = ratings.take(above), ratings.take(below)
            np.subtract(down, up, out=change)
            np.exp(change, out=change)
            change += 1.0
            np.divide(k, change, out=change)
            np.subtract(gain, change, out=change)
            up += change
            down -= change
            ratings[above], ratings[below] = up, down
    return ratings.reshape(len(rows.models), lanes)


def _unweighted(data: Comparisons, method: str) -> Comparisons:
    """The rows of weight 1; raises `InputError` where a weight is neither 0 nor 1."""
    if data.weight is None:
        return data
    wrong = (data.weight != 0.0) & (data.weight != 1.0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"weight, row {row}: {data.weight[row]} has no meaning to {method}, which takes one battle after another; "
            "give 1 or 0, or rate with Bradley-Terry"
        )
    return replace(data.select(data.weight == 1.0), weight=None)


def _sorted_by_name(data: Comparisons) -> tuple[Comparisons, NDArray[np.intp]]:
    """The same battles sorted by the models' names and outcome, with names sorted and A before B.

    Draws based on them do not depend on how a table is sorted. The second array gives, for each model of the result,
    its index in `data.models`.
    """
    origin = np.array(sorted(range(len(data.models)), key=data.models.__getitem__), dtype=np.intp)
    code = np.empty(len(origin), dtype=np.int32)
    code[origin] = np.arange(len(origin), dtype=np.int32)
    a, b = code[data.a], code[data.b]
    turn = a > b
    a, b, y = np.where(turn, b, a), np.where(turn, a, b), np.where(turn, 1.0 - data.y, data.y)
    rows = np.lexsort((y, b, a))
    names = tuple(data.models[place] for place in origin.tolist())
    return Comparisons(models=names, a=a[rows], b=b[rows], y=y[rows]), origin


def random_orders(rows: int, shuffles: int, seed: int) -> Iterator[NDArray[np.int32]]:
    """Random orders of `rows` battles, several side by side: arrays (rows, group) that hold `shuffles` in total.

    Each has a separate random stream, so that neither the size of a group nor the number of shuffles changes it. Raises
    `InputError` for fewer than one shuffle and a negative seed.
    """
    if shuffles < 1:
        raise InputError(f"shuffles is {shuffles}; give 1 or more")
    check_seed(seed)
    streams = np.random.SeedSequence(seed).spawn(shuffles)
    group = max(1, _CELLS // max(rows, 1))
    for start in range(0, shuffles, group):
        part = streams[start : start + group]
        yield np.column_stack([np.random.default_rng(stream).permutation(rows).astype(np.int32) for stream in part])


@dataclass(frozen=True, slots=True, eq=False)
class TrueSkill:
    """Skills after the last battle, means over orders; `ratings.score` is `mu`.

    `sigma` (n,) is the model's standard deviation of a skill, `sd` (n,) the standard deviation of mu between orders.
    `ties` rows were left out: the model has no draws.
    """

    ratings: Ratings
    mu: NDArray[np.float64]
    sigma: NDArray[np.float64]
    sd: NDArray[np.float64]
    ties: int
    shuffles: int


def trueskill(data: Comparisons, *, shuffles: int = 100, seed: int = 0) -> TrueSkill:
    """TrueSkill, mean over random orders; rows with outcome 0.5 are left out and counted.

    Any other outcome is a win for the side with more than half. Elo points come from P = Phi(d / (sqrt 2 beta)) read as
    a logistic. Raises `InputError` for fewer than one shuffle, and for weights other than 0 and 1.

    >>> from venire.ratings import comparisons, trueskill
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> found = trueskill(data, shuffles=10)
    >>> found.ratings.elo.round().tolist()
    [1162.0, 1016.0, 822.0]
    """
    played, size = _unweighted(data, "TrueSkill"), len(data.models)
    rows, origin = _sorted_by_name(played)
    decisive = rows.y != 0.5
    first = rows.y[decisive] > 0.5
    a, b = rows.a[decisive], rows.b[decisive]
    winner, loser = np.where(first, a, b), np.where(first, b, a)
    skills = [_update_skills(winner, loser, size, group) for group in random_orders(len(winner), shuffles, seed)]
    mu, variance = np.empty((size, shuffles)), np.empty((size, shuffles))
    mu[origin] = np.hstack([skill[0] for skill in skills])
    variance[origin] = np.hstack([skill[1] for skill in skills])
    battles = np.empty(size)
    battles[origin] = np.bincount(winner, minlength=size) + np.bincount(loser, minlength=size)
    mu[battles == 0], variance[battles == 0] = np.nan, np.nan
    mean, ties = mu.mean(axis=1), int(np.count_nonzero(~decisive))
    absent = [data.models[code] for code in np.flatnonzero(battles == 0)]
    ratings = Ratings(
        method="trueskill",
        models=data.models,
        logits=_logits(mean),
        battles=battles,
        score=mean,
        unit="mu",
        diagnostics={
            "shuffles": shuffles,
            "ties_left_out": ties,
            "no_estimate": dict.fromkeys(absent, "it has no decisive comparison with a weight above 0"),
        },
    )
    sd = mu.std(axis=1, ddof=1) if shuffles > 1 else np.full(size, np.nan)
    return TrueSkill(ratings, mean, np.sqrt(variance.mean(axis=1)), sd, ties, shuffles)


def _logits(mu: NDArray[np.float64]) -> NDArray[np.float64]:
    if np.isnan(mu).all():
        raise InputError("there is no decisive comparison with a weight above 0: TrueSkill has nothing to rate")
    return np.asarray((mu - np.nanmean(mu)) * (_NORMAL_TO_LOGISTIC / (math.sqrt(2.0) * BETA)))


def _update_skills(
    winner: NDArray[np.int32], loser: NDArray[np.int32], size: int, order: NDArray[np.int32]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means and variances of the skills (models, orders) after a pass in each of the orders (rows, orders)."""
    lanes = order.shape[1]
    mu, variance = np.full(size * lanes, MU), np.full(size * lanes, SIGMA * SIGMA)
    lane, chunk = np.arange(lanes), max(1, 1_000_000 // lanes)
    for start in range(0, len(order), chunk):
        part = order[start : start + chunk]
        won, lost = winner[part] * np.int64(lanes) + lane, loser[part] * np.int64(lanes) + lane
        for i, j in zip(won, lost, strict=True):
            wide_i, wide_j = variance[i] + TAU * TAU, variance[j] + TAU * TAU
            total = 2.0 * BETA * BETA + wide_i + wide_j
            root = np.sqrt(total)
            ahead = (mu[i] - mu[j]) / root
            # The normal density over its integral, in a form that does not underflow for an upset.
            lift = math.sqrt(2.0 / math.pi) / erfcx(-ahead / math.sqrt(2.0))
            narrow = lift * (lift + ahead) / total
            mu[i] += wide_i * lift / root
            mu[j] -= wide_j * lift / root
            variance[i], variance[j] = wide_i * (1.0 - wide_i * narrow), wide_j * (1.0 - wide_j * narrow)
    return mu.reshape(size, lanes), variance.reshape(size, lanes)
