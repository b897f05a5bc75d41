"""Jackknife+ intervals: every calibration model is left out in turn, beside the model that is to be placed.

A split calibrates on half of the models; here all of them calibrate, and each sees the new model by ratings that it
had no part in (Barber, Candes, Ramdas and Tibshirani, 2021: it covers 1 - 2 alpha at least, and about 1 - alpha).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError
from venire.arena.scale import ELO_MEAN, POINTS_PER_LOGIT
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.inference.exchangeability import shortage
from venire.ratings.soft_elo.beta import HumanTies
from venire.ratings.soft_elo.conformal import Calibrated, Conformal, Scale, conformal_rank
from venire.ratings.soft_elo.holding_out import Field, field_of
from venire.ratings.soft_elo.placing import place
from venire.ratings.soft_elo.soft_elo import RIDGE

__all__ = ["LeaveTwoOut", "jackknife_plus", "leave_two_out"]


@dataclass(frozen=True, slots=True, eq=False)
class LeaveTwoOut:
    """Ratings in Elo points of model i where i and j are both left out: `human` and `judge` [i, j] (n, n).

    The diagonal leaves out i alone. `anchor` (n,) marks the models that people and judge both rated; NaN in `human`
    for the others.
    """

    models: tuple[str, ...]
    human: NDArray[np.float64]
    judge: NDArray[np.float64]
    anchor: NDArray[np.bool_]


def leave_two_out(
    data: Comparisons,
    score: ArrayLike,
    human: ArrayLike,
    *,
    signal: Literal["hard", "soft"] = "soft",
    ridge: float = RIDGE,
    ties: HumanTies = "drop",
    parity: bool = False,
) -> LeaveTwoOut:
    """Place every model with every other one left out as well; arguments are as in `leave_one_out`.

    The cost is that of models^2 / 2 fits. Raises `InputError`.
    """
    if signal not in ("hard", "soft"):
        raise InputError(f"signal is {signal!r}; give 'hard' or 'soft'")
    field = field_of(data, score, human, {}, ridge=ridge, ties=ties, parity=parity)
    if np.count_nonzero(field.anchor) < 4:
        raise InputError("leaving two models out needs at least 4 that people and judge both rated")
    count = len(data.models)
    people, judge = np.full((count, count), np.nan), np.full((count, count), np.nan)
    for one in range(count):
        for two in range(one, count):
            for table, (first, second) in zip((people, judge), _pair(field, one, two, signal), strict=True):
                table[one, two], table[two, one] = first, second
    people[~field.anchor] = np.nan
    return LeaveTwoOut(data.models, people, judge, field.anchor)


def _pair(field: Field, one: int, two: int, signal: str) -> list[tuple[float, float]]:
    """Elo of `one` and of `two` by people, then by the judge, where both are left out."""
    out, found = (one, two), []
    for name in ("human", signal):
        wins = field.wins_of(field.soft(field.beta(*out))) if name == "soft" else field.wins[name]
        near = field.start["human" if name == "soft" else name]
        anchors, table = field.rate(wins, out, near), wins.matrix()
        rest = np.flatnonzero(np.isfinite(anchors))
        placed = []
        for code in out:
            won, lost = table[code, rest, None], table[rest, code, None]
            logit = place(anchors[rest], won, lost, field.ridge, float(near[code]))[0]
            placed.append(ELO_MEAN + POINTS_PER_LOGIT * float(logit))
        found.append((placed[0], placed[1]))
    return found


def jackknife_plus(
    ratings: LeaveTwoOut,
    se: ArrayLike,
    *,
    human_se: ArrayLike = 0.0,
    alpha: float = 0.1,
    scale: Scale = "total",
) -> Conformal:
    """The interval of every model (n,), calibrated on all the other anchors; all in Elo points.

    `se` and `human_se` (n,) are the errors of the ratings by judge and people, as in `split_conformal`. `elo` of the
    result is the rating with the model alone left out; `quantile` is NaN, since the two ends are found apart. A model
    that people did not rate is placed by every anchor; NaN in `human_se`, as `leave_one_out` has it there, is unknown
    and counts as 0. Raises `InputError`.
    """
    count = len(ratings.models)
    own, people = _errors("se", se, count), np.nan_to_num(_errors("human_se", human_se, count))
    low, high = np.full(count, -np.inf), np.full(count, np.inf)
    tau, width = np.full(count, np.nan), np.full(count, np.nan)
    fewest = int(np.count_nonzero(ratings.anchor)) - int(ratings.anchor.any())
    for code in range(count):
        others = np.flatnonzero(ratings.anchor & (np.arange(count) != code))
        residual = ratings.human[others, code] - ratings.judge[others, code]
        known = Calibrated.of(residual, own[others], people[others], scale)
        tau[code] = known.tau()
        width[code] = known.width(own[code], people[code], float(tau[code]))
        reach = known.scores(float(tau[code])) * width[code]
        rank, seen = conformal_rank(len(others), alpha), ratings.judge[code, others]
        if rank <= len(others):
            low[code] = -np.partition(reach - seen, rank - 1)[rank - 1]
            high[code] = np.partition(seen + reach, rank - 1)[rank - 1]
    rank = conformal_rank(fewest, alpha)
    expected = None if rank > fewest else rank / (fewest + 1)
    said = shortage(fewest, rank, alpha)
    blank, elo = np.full(count, math.nan), np.diagonal(ratings.judge).copy()
    return Conformal(elo, low, high, blank, width, tau, fewest, rank, alpha, expected, "jackknife+", said)


def _errors(argument: str, values: ArrayLike, count: int) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim and array.shape != (count,):
        raise InputError(f"{argument} has shape {array.shape}; give one number a model ({count}), or one for all")
    return np.broadcast_to(array, (count,))
