"""Battles with a known truth, drawn with a seed: what every figure is computed from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.scale import POINTS_PER_LOGIT
from venire.ratings import Comparisons, comparisons

Vector = NDArray[np.float64]


def sigma(x: Any) -> Any:
    """The logistic function."""
    return 1.0 / (1.0 + np.exp(-np.asarray(x, dtype=np.float64)))


def all_pairs(models: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every two of so many models, the lower code first."""
    first, second = np.triu_indices(models, 1)
    return first.astype(np.int64), second.astype(np.int64)


def instructed(strength: Vector, instructions: int, rng: np.random.Generator, sway: float = 0.0) -> Comparisons:
    """Every pair twice on every instruction, which helps or harms each model by a normal `sway` (logits)."""
    a, b = (np.tile(side, 2 * instructions) for side in all_pairs(len(strength)))
    instruction = np.repeat(np.arange(instructions), len(a) // instructions)
    shift = rng.normal(0.0, sway, (instructions, len(strength)))
    gap = (strength[a] + shift[instruction, a]) - (strength[b] + shift[instruction, b])
    won = rng.random(len(a)) < sigma(gap)
    return comparisons(a, b, won.astype(float), cluster=instruction)


def battles_of_judges(
    slope: Vector, pull: Vector, ties: Vector, elo: Vector, instructions: int, rng: np.random.Generator
) -> Battles:
    """Verdicts of judges in both orders: sigma(slope * gap + pull), where no habit makes it a tie.

    `slope`, `pull` to the first place (log odds) and share of `ties` have one entry a judge, `elo` one a model.
    """
    a, b = all_pairs(len(elo))
    judge, pair, instruction, swapped = (axis.ravel() for axis in np.indices((len(slope), len(a), instructions, 2)))
    gap = (elo[a] - elo[b])[pair] / POINTS_PER_LOGIT
    place = np.where(swapped == 1, -1.0, 1.0)
    won = rng.random(len(gap)) < sigma(slope[judge] * gap + pull[judge] * place)
    label = np.where(rng.random(len(gap)) < ties[judge], 0, np.where(won, 1, -1))
    names = [tuple(f"{word} {code:03d}" for code in range(size)) for word, size in _sizes(elo, slope, instructions)]
    return Battles(
        names[0],
        names[1],
        names[2],
        a[pair].astype(np.int32),
        b[pair].astype(np.int32),
        judge.astype(np.int32),
        instruction.astype(np.int32),
        np.zeros(len(gap), np.int32),
        swapped == 1,
        np.zeros(len(gap), np.int8),
        label.astype(np.int8),
    )


def _sizes(elo: Vector, slope: Vector, instructions: int) -> tuple[tuple[str, int], ...]:
    return (("model", len(elo)), ("judge", len(slope)), ("question", instructions))
