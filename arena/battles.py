"""Verdicts and ballots as arrays: what the store hands to ratings and reports; and live counters of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Ballots", "Battles", "Statistics"]


@dataclass(frozen=True, slots=True)
class Battles:
    """Pairwise verdicts in model terms, one row a verdict; all arrays have the same length.

    `model_a` and `model_b` are codes into `models`, `judge` into `judges`, `instruction` into `instructions`.
    `label` is 1 when A wins, -1 when B wins, 0 for a tie, and means nothing unless `status` is 0. `swapped` says
    whether B was shown first. Where a table names no instruction, `instructions` is empty and `instruction` is -1;
    where it does not know the order shown, `ordered` is False.

    What only some tables know is None where it is not: `outcome` (0 to 1, for A; overrides the label), `weight` (0 or
    more), `score` (A less B on the judge's own scale), `human` (1, 0.5 or 0: what people said of A). Within these, NaN
    is a row that does not say. `features` are covariates by name, of A less B. `cluster` is a code into `clusters`:
    what rows share in place of their instruction, where a table names it; `clustered` False says that they share
    nothing. `peers` says which of the models a judge is, where it goes by another name than the judge's own. `ballots`
    are the rankings that these verdicts were made from, where they were.
    """

    models: tuple[str, ...]
    judges: tuple[str, ...]
    instructions: tuple[str, ...]
    model_a: NDArray[np.int32]
    model_b: NDArray[np.int32]
    judge: NDArray[np.int32]
    instruction: NDArray[np.int32]
    repeat: NDArray[np.int32]
    swapped: NDArray[np.bool_]
    status: NDArray[np.int8]
    label: NDArray[np.int8]
    ordered: bool = True
    outcome: NDArray[np.float64] | None = None
    weight: NDArray[np.float64] | None = None
    score: NDArray[np.float64] | None = None
    human: NDArray[np.float64] | None = None
    features: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    cluster: NDArray[np.int32] | None = None
    clusters: tuple[str, ...] = ()
    clustered: bool = True
    peers: Mapping[str, str] = field(default_factory=dict)
    ballots: Ballots | None = None


@dataclass(frozen=True, slots=True)
class Statistics:
    """Live counters of a running campaign; times in seconds, money in nano-dollars.

    `round` counts the rounds of its plan and `phase` names the part that it is in; 0 and "" where it has only one.
    `slowed` says of each route that rate-limit responses slow down at present how much.
    """

    planned: int = 0
    settled: int = 0
    failed: int = 0
    calls: int = 0
    answered: int = 0
    retries: int = 0
    in_flight: int = 0
    waits: int = 0
    waited: float = 0.0
    spent: int = 0
    elapsed: float = 0.0
    round: int = 0
    phase: str = ""
    slowed: tuple[str, ...] = ()


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
