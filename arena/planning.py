"""What a plan is made from, what a policy chooses, and what an interim analysis of a running campaign finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from venire.arena.battles import Battles
    from venire.arena.campaigns import PhaseSettings


@dataclass(frozen=True, slots=True)
class JudgeHabit:
    """How one judge's verdicts depend on ratings, as far as is known; the defaults are those of a judge without any.

    `slope` is in its own log odds per logit of the ratings, `bias` in log odds towards the first place, `ties` is the
    share of judgments that are ties, `rho` the correlation of its verdicts in both orders of a battle.
    """

    slope: float = 1.0
    bias: float = 0.0
    ties: float = 0.0
    rho: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """Ratings (models,) in logits, of any gauge, with their standard errors; NaN where nothing is known yet.

    `judges` by name; one that is missing has the habits of `JudgeHabit()`. `held` are models whose ratings are fixed.
    """

    models: tuple[str, ...]
    logits: NDArray[np.float64]
    se: NDArray[np.float64]
    judges: Mapping[str, JudgeHabit] = field(default_factory=dict)
    held: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class PlanState:
    """What a policy may know. Models and instructions are coded by their places in the tuples.

    `elo` are reference ratings in Elo points, where known. `logits` and `se` (models,) are estimates by the verdicts
    so far; NaN: none; None: none were asked for. `asked` (battles, 3) are the battles planned already, each once, as
    codes of models A < B and of the instruction; `barred` (battles, 3) those that cannot be asked (equal texts).
    `only` (battles, 3), where given, are the only ones that can. `judges` are those that will be asked.
    `instruction_price` (instructions,) and `completion_price` (models, instructions) are nano-dollars: a battle of A
    and B on i costs `instruction_price[i] + completion_price[A, i] + completion_price[B, i]` for all judges and orders
    together; None: every battle costs the same. `held` are models whose ratings are fixed where they are known.
    """

    models: tuple[str, ...]
    elo: Mapping[str, float]
    instructions: tuple[str, ...] = ()
    logits: NDArray[np.float64] | None = None
    se: NDArray[np.float64] | None = None
    asked: NDArray[np.int32] | None = None
    barred: NDArray[np.int32] | None = None
    only: NDArray[np.int32] | None = None
    judges: tuple[JudgeHabit, ...] = ()
    instruction_price: NDArray[np.float64] | None = None
    completion_price: NDArray[np.float64] | None = None
    held: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Pick:
    """What a policy chose: a pair of models (A < B by name) on one instruction, or on all of the plan (None).

    `why` names the reason in a word: the policy's name, or "balanced" for the part of an adaptive round that is.
    `gain` is what the policy ranked it by, in its own unit; None: it ranks nothing.
    """

    model_a: str
    model_b: str
    instruction: str | None = None
    why: str = ""
    gain: float | None = None


Choose = Callable[["PlanState", "PhaseSettings", int, "np.random.Generator"], "list[Pick]"]
"""From what is known to what is judged next: so many matchups of a policy that crosses, else so many battles."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A matchup policy, an entry of `registry.POLICIES`.

    `choose` is a pure function, seeded by the generator that it is given. `crossed` matchups go to all instructions of
    the plan, others are battles. `adaptive` policies want to see verdicts between two rounds. Policies with `needs_elo`
    are refused where a model has no reference rating. One that takes `every_pair` is given no number of matchups.
    `settings` are keys of a phase that it takes beside those of all policies.
    """

    choose: Choose
    crossed: bool
    adaptive: bool = False
    needs_elo: bool = False
    every_pair: bool = False
    settings: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class InterimRating:
    """One model at an interim analysis, in Elo points: `low` and `high` hold at this one alone, the others at all.

    None: not known yet, or without end. `battles` are its judged battles; `starved`: too few to be rated well.
    """

    model: str
    elo: float | None
    se: float | None
    low: float | None
    high: float | None
    low_any: float | None
    high_any: float | None
    battles: int
    starved: bool = False


@dataclass(frozen=True, slots=True)
class InterimAnalysis:
    """An interim analysis: what verdicts say of a campaign after a round, and at its end.

    `half_width` is the largest half of an interval to stop by in Elo points, `open` how many pairs of models are not
    yet decided for the rule that asks for an order; None where it cannot be said or no rule asks. `stop` says in a
    sentence why no more is planned; None: go on.
    """

    battles: int
    verdicts: int
    instructions: int
    nano: int
    models: tuple[InterimRating, ...] = ()
    half_width: float | None = None
    open: int | None = None
    level: float = 0.95
    stop: str | None = None
    warnings: tuple[str, ...] = ()


class Steering(Protocol):
    """How verdicts become what a policy may know, and whether they are enough: the planner knows no statistics."""

    def estimate(self, battles: Battles) -> Estimates:
        """Ratings and judges' habits by the verdicts given, for the next round."""
        ...

    def analyse(self, battles: Battles, nano_usd: int) -> InterimAnalysis:
        """An interim analysis of the verdicts so far, which cost `nano_usd` nano-dollars, and whether to stop."""
        ...
