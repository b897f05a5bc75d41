"""Ballots as arrays: what the store or a table of rankings hands to ratings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Ballots"]


@dataclass(frozen=True, slots=True, eq=False)
class Ballots:
    """Rankings of models, one row a ballot.

    `judge` (ballots,) are codes into `judges`, `instruction` into `instructions`, `repeat` counts from 1. `rank`
    (ballots, models) is 1 for the best, equal for tied models, infinite for a model that was shown and not ranked
    (below all that were, tied with others of its kind) and NaN for one that was not on the ballot. `weight` (ballots,)
    is what each counts; None: one. Where a table names no instruction, `instructions` is empty and `instruction` is -1.
    """

    models: tuple[str, ...]
    judges: tuple[str, ...]
    instructions: tuple[str, ...]
    judge: NDArray[np.int32]
    instruction: NDArray[np.int32]
    repeat: NDArray[np.int32]
    rank: NDArray[np.float64]
    weight: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.rank)
