"""What infinitely many verdicts of simulated judges would say: the truth that an interval of theirs is about.

It is not the Elo by people's votes that drives the judges: these have slopes, ties and tastes of their own, and a
Bradley-Terry fit puts them on the judges' scale. It is what the fit tends to when every pair of models is judged on
ever more instructions like those of the field, in both orders, by every judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from venire.arena.records import Shape
from venire.arena.scale import LOGITS_PER_POINT
from venire.experiments.contestants import Field
from venire.judges import PROTOCOLS
from venire.ratings.data.statistics import norm
from venire.ratings.pairwise.bradley_terry import bradley_terry_wins
from venire.simulation.judge import Profile

__all__ = ["Habit", "known_slope", "long_run", "shares"]

_POINTS = 64
_CLIP = 2.0


@dataclass(frozen=True, slots=True)
class Habit:
    """One judge of a simulation: its profile, its protocol, and the share of its judgments that can be read."""

    profile: Profile
    protocol: str
    readable: float = 1.0


def known_slope(profile: Profile) -> float:
    """How steeply a judge's verdicts follow people's log odds: its slope over the spread of all that pulls it else."""
    noise = profile.sigma_item**2 + profile.sigma_order**2 + profile.sigma_position**2
    return profile.slope / sqrt(noise + (np.pi * profile.temperature) ** 2 / 3.0)


def shares(habit: Habit, gaps: NDArray[np.float64], log_ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of the first model (pairs,) in judgments of both orders, ties as halves.

    `gaps` (pairs,) in Elo points, `log_ratios` (pairs or 1, any) as of `Field`. The formula is that of
    `simulation.judge`, with its normal draws integrated and its logistic one summed over quantiles.
    """
    one = habit.profile
    binary = habit.protocol == "binary"
    band, tied = (0.0, 0.0) if binary else (one.tie_band, one.item_tie)
    points = (np.arange(_POINTS) + 0.5) / _POINTS
    drawn = one.temperature * np.log(points / (1.0 - points))
    spread = sqrt(one.sigma_item**2 + one.sigma_order**2 + one.sigma_position**2)
    mean = one.slope * gaps[:, None] * LOGITS_PER_POINT + one.length * np.clip(log_ratios, -_CLIP, _CLIP)
    found = np.zeros(mean.shape)
    for pull in (one.position, -one.position):
        for noise in drawn.tolist():
            z = mean + pull + noise
            found += norm.sf((band - z) / spread) + norm.sf((-band - z) / spread)
    share = found.mean(axis=1) / (4.0 * _POINTS)
    return np.asarray((1.0 - tied) * share + 0.5 * tied, dtype=np.float64)


def long_run(field: Field, habits: Sequence[Habit]) -> NDArray[np.float64] | None:
    """Logits (models,) of mean 0, in the order of `field.models`; None where a judge ranks lists.

    How lists are ordered in the long run is not worked out here.
    """
    if any(PROTOCOLS[habit.protocol].shape is not Shape.PAIR for habit in habits):
        return None
    weight = np.array([habit.readable for habit in habits])
    share = weight @ np.array([shares(habit, field.gaps, field.log_ratios) for habit in habits]) / weight.sum()
    first, second = field.pairs.T
    wins = np.zeros((len(field.elo), len(field.elo)))
    wins[first, second], wins[second, first] = share, 1.0 - share
    logits = bradley_terry_wins(wins, field.models).logits
    return np.asarray(logits - logits.mean(), dtype=np.float64)
