"""Which matchups and battles to judge: seeded pure functions from what is known to what is judged next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from venire.arena.campaigns import PhaseSettings
from venire.arena.planning import Pick, PlanState
from venire.orchestrator.battle_policies import balanced, gap_error, information, near_tie
from venire.orchestrator.crossing import all_pairs, banded_gap, gap, half_banded, random_pairs, widest_gap

__all__ = ["POLICIES", "Choose", "Policy", "gap"]

Choose = Callable[[PlanState, PhaseSettings, int, np.random.Generator], list[Pick]]
"""From what is known to what is judged next: so many matchups of a policy that crosses, else so many battles."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A way to choose: `crossed` matchups go to all instructions of the plan, others are battles.

    `adaptive` policies want to see verdicts between two rounds; `needs_elo`: models without a reference are refused.
    """

    choose: Choose
    crossed: bool
    adaptive: bool = False
    needs_elo: bool = False


POLICIES: dict[str, Policy] = {
    "widest-gap": Policy(widest_gap, crossed=True, needs_elo=True),
    "banded-gap": Policy(banded_gap, crossed=True, needs_elo=True),
    "half-banded": Policy(half_banded, crossed=True, needs_elo=True),
    "random": Policy(random_pairs, crossed=True),
    "all-pairs": Policy(all_pairs, crossed=True),
    "balanced": Policy(balanced, crossed=False),
    "near-tie": Policy(near_tie, crossed=False, adaptive=True),
    "information": Policy(information, crossed=False, adaptive=True),
    "gap-error": Policy(gap_error, crossed=False, adaptive=True),
}
"""Every policy by the name used in a campaign file."""
