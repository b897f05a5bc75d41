"""Verdicts, ballots and grades as arrays, which the store passes to ratings and reports; and live counters of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Clustering = Literal["crossed", "cluster", "judge", "none"]
"""Which rows share their noise: those of an instruction (or of a value of the column that a table names) and, where
there are enough of them, those of a respondent, a judge or a person; the first alone; the second alone; none."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Battles:
    """Pairwise verdicts in model terms, one row per verdict; all arrays have the same length.

    `model_a` and `model_b` are codes into `models`, `judge` into `judges`, `instruction` into `instructions`.
    `label` is 1 when A wins, -1 when B wins, 0 for a tie; it is defined only where `status` is 0. `swapped` is True
    where B was shown first. Where a table names no instruction, `instructions` is empty and `instruction` is -1;
    where it does not record the order shown, `ordered` is False.

    Optional columns are None in a table without them: `outcome` (0 to 1, for A; overrides the label), `weight` (0 or
    more), `score` (A minus B on the judge's own scale), `human` (1, 0.5 or 0: people's verdict on A). Within these, NaN
    marks a missing value. `features` are covariates by name, A minus B. `cluster` is a code into `clusters`, which
    replaces the instruction as the unit of clustering where a table names one; `clustering` says which rows share their
    noise. `peers` maps a judge to its model where the two have different names. `ballots` are the rankings that
    these verdicts were derived from, if any. `people` are votes of people on the same models and instructions, each
    annotator a judge; they are no part of the rows.
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
    clustering: Clustering = "cluster"
    peers: Mapping[str, str] = field(default_factory=dict)
    ballots: Ballots | None = None
    people: Battles | None = None


@dataclass(frozen=True, slots=True)
class Statistics:
    """Live counters of a running campaign; times in seconds, money in nano-dollars.

    `round` is the current round of the plan and `phase` names the current phase; 0 and "" where the plan has only one.
    `slowed` describes, for each route that rate-limit responses slow down at present, by how much.
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
    batched: int = 0
    """Calls in batches that are out."""
    seconds_left: float | None = None
    """Of the whole plan, at the pace so far; None while that is not known."""
    rounds: int = 0
    """How many the whole plan may come to; 0 where it has no rounds."""
    at_most: bool = False
    """Whether a rule may end it before."""
    until_budget: bool = False
    """Whether the budget will end it before."""


@dataclass(frozen=True, slots=True, eq=False)
class Ballots:
    """Rankings of models, one row per ballot.

    `judge` (ballots,) are codes into `judges`, `instruction` into `instructions`, `repeat` counts from 1. `rank`
    (ballots, models) is 1 for the best, equal for tied models, infinite for a model that was shown and not ranked
    (below all ranked models, tied with other unranked ones) and NaN for a model that was not on the ballot. `weight`
    (ballots,) is the weight of each; None: 1. Where a table names no instruction, `instructions` is empty and
    `instruction` is -1.
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


GOLD = "gold"
"""What people know of single answers, in place of the protocol by which a judge grades them."""


@dataclass(frozen=True, slots=True, eq=False)
class Grades:
    """Verdicts on single completions, one row each; all arrays (rows,) have the same length.

    `model` are codes into `models`, `judge` into `judges`, `instruction` into `instructions`; `repeat` counts from 1.
    `label` is an `AnswerGrade`, or of a yes-or-no question 1 or 0; it is defined only where `status` is 0. `protocols`
    (judges,) is the question that each judge was asked, `categories` (instructions,) is "" where there is none.
    `clustering` says which rows share their noise, by instruction at least unless it is "none". `truth` is what people
    know of the answer, 1 or 0 for correct, -1 where they do not; None: nobody labelled any. `judge_models` (judges,) is
    the model that each judge is, empty where that is not known. Labels of people count as of judges whose protocol is
    `GOLD`, which follow all others.
    """

    models: tuple[str, ...]
    judges: tuple[str, ...]
    protocols: tuple[str, ...]
    instructions: tuple[str, ...]
    categories: tuple[str, ...]
    model: NDArray[np.int32]
    judge: NDArray[np.int32]
    instruction: NDArray[np.int32]
    repeat: NDArray[np.int32]
    status: NDArray[np.int8]
    label: NDArray[np.int8]
    clustering: Clustering = "cluster"
    truth: NDArray[np.int8] | None = None
    judge_models: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.label)
