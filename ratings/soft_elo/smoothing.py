"""What soft targets have to beat: verdicts pulled towards a tie by one constant, and hard ratings shrunk by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError
from venire.arena.scale import ELO_MEAN
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.soft_elo.beta import HumanTies
from venire.ratings.soft_elo.cross_validation import Accuracy, accuracy, leave_one_out, stretch
from venire.ratings.soft_elo.soft_elo import RIDGE, hard_elo, human_elo, soft_elo

__all__ = ["CONFIDENCES", "Baselines", "baselines", "smoothed"]

CONFIDENCES = tuple(step / 100 for step in range(55, 100, 5))


@dataclass(frozen=True, slots=True, eq=False)
class Baselines:
    """How far each way of using a judge is from people: "hard", "scaled-hard", "smoothed" (the best) and "soft".

    `sweep` is the error by confidence in Elo points, `confidence` the one that was best. That one was chosen by the
    very labels it is measured on, which flatters it a little. `held_out` says whether each model was left out.
    """

    accuracy: Mapping[str, Accuracy]
    sweep: Mapping[float, float]
    confidence: float
    held_out: bool


def smoothed(y: ArrayLike, confidence: float) -> NDArray[np.float64]:
    """Outcomes (rows,) with wins at `confidence`, losses at 1 less it, ties at 0.5, and shares in proportion.

    Raises `InputError` for a confidence that is not within [0.5, 1].
    """
    if not 0.5 <= confidence <= 1.0:
        raise InputError(f"confidence is {confidence}; give 0.5 (every verdict a tie) to 1 (as they are)")
    return np.asarray(0.5 + (np.asarray(y, dtype=np.float64) - 0.5) * (2.0 * confidence - 1.0), dtype=np.float64)


def baselines(
    data: Comparisons,
    score: ArrayLike,
    human: ArrayLike,
    *,
    ridge: float = RIDGE,
    confidences: tuple[float, ...] = CONFIDENCES,
    ties: HumanTies = "drop",
    held_out: bool = True,
) -> Baselines:
    """Compare soft-Elo with hard-Elo, hard-Elo times one constant, and label smoothing over `confidences`.

    Source: the Soft-Elo paper.

    Arguments are as in `soft_elo`. With `held_out` each model is left out in turn; without, all are fitted once on all
    battles and the constant of "scaled-hard" is fitted on the very models that it is measured on. Raises `InputError`.
    """
    if not confidences:
        raise InputError("confidences is empty; give at least one, such as 0.8")
    confidences = tuple(dict.fromkeys(confidences))
    targets = {f"smoothed {confidence}": smoothed(data.y, confidence) for confidence in confidences}
    if held_out:
        found = leave_one_out(data, score, human, ridge=ridge, ties=ties, replicates=0, others=targets)
        people, elo = found.human.elo, {name: placed.elo for name, placed in found.judge.items()}
    else:
        people = human_elo(data, human, ridge=ridge, errors="none").elo
        hard = hard_elo(data, ridge=ridge, errors="none").elo
        elo = {
            "hard": hard,
            "scaled-hard": ELO_MEAN + stretch(people - ELO_MEAN, hard - ELO_MEAN) * (hard - ELO_MEAN),
            "soft": soft_elo(data, score, human, ridge=ridge, ties=ties, errors="none").ratings.elo,
        }
        for confidence in confidences:
            name, share = f"smoothed {confidence}", smoothed(data.y, confidence)
            elo[name] = human_elo(data, share, ridge=ridge, errors="none").elo
    judged = {name: accuracy(people, points) for name, points in elo.items()}
    sweep = {confidence: judged.pop(f"smoothed {confidence}") for confidence in confidences}
    best = min(sweep, key=lambda confidence: sweep[confidence].mae)
    judged["smoothed"] = sweep[best]
    return Baselines(judged, {confidence: found.mae for confidence, found in sweep.items()}, best, held_out)
