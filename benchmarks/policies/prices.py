"""The use of prices by `information` with recorded reply lengths: errors of ratings for the same money.

VENIRE_DATA=... python benchmarks/policies/prices.py [--profile gpt-4-0125-preview] [--purpose mean] [--seeds 10]
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from venire.arena.scale import ELO_MEAN, LOGITS_PER_POINT

sys.path.insert(0, str(Path(__file__).parent.parent / "placing"))
from field import Field, nano_dollars, read_field

from venire.arena.battles import Battles
from venire.arena.campaigns import PhaseSettings
from venire.arena.planning import PlanState
from venire.orchestrator.policies import POLICIES
from venire.placement.backtest import joined
from venire.ratings.data.judgments import merge_orders
from venire.ratings.judges.habits import planning_habits
from venire.ratings.pairwise.bradley_terry import bradley_terry

_SYSTEMS, _TEXTS, _ROUND = 16, 200, 100
_RIDGE = 0.05
"""A weak ridge that only keeps the rating of a system that lost everything finite."""


@dataclass(frozen=True)
class Seen:
    """Errors in Elo points of all ratings against those from all battles, after removing a common scale factor."""

    error: float
    unstretched: float
    stretch: float
    battles: int


def some_systems(data: Path, seed: int) -> Field:
    """Sixteen systems drawn at random, on instructions drawn at random."""
    field = read_field(data, _TEXTS, seed)
    kept = np.sort(np.random.default_rng([seed, 1]).choice(len(field.models), _SYSTEMS, replace=False))
    models = tuple(field.models[code] for code in kept)
    return replace(field, models=models, elo=field.elo[kept], completions=field.completions[kept])


def rated(battles: Battles, models: tuple[str, ...]) -> NDArray[np.float64]:
    """Elo points (models,) by Bradley-Terry; the mean for a model without a battle."""
    found = bradley_terry(merge_orders(battles).comparisons(), ridge=_RIDGE, errors="none")
    place = dict(zip(found.models, found.elo.tolist(), strict=True))
    return np.array([place.get(name, 1000.0) for name in models])


def run(field: Field, row: str, profile: str, phase: PhaseSettings, seed: int, *, priced: bool) -> tuple[Battles, int]:
    """Battles in rounds, for the money of 1,200 average battles."""
    fixed, each = nano_dollars(field, row, field.models, field.names)
    left = 1200 * (2 * each.mean() + fixed.mean())
    state = PlanState(field.models, {}, field.names, asked=np.zeros((0, 3), dtype=np.int32))
    if priced:
        state = replace(state, instruction_price=fixed, completion_price=each)
    told: Battles | None = None
    place, text = ({name: code for code, name in enumerate(names)} for names in (field.models, field.names))
    while True:
        assert state.asked is not None
        rng = np.random.default_rng([seed, len(state.asked)])
        picks = POLICIES[phase.policy].choose(state, phase, _ROUND, rng)
        rows = np.array([(place[one.model_a], place[one.model_b], text[str(one.instruction)]) for one in picks])
        cost = np.cumsum(fixed[rows[:, 2]] + each[rows[:, 0], rows[:, 2]] + each[rows[:, 1], rows[:, 2]])
        bought = int(np.searchsorted(cost, left, side="right"))
        left -= cost[bought - 1] if bought else 0.0
        if bought:
            new = field.judged(rows[:bought], profile, seed)
            told = new if told is None else joined(told, new)
        assert told is not None
        asked = np.vstack([state.asked, rows[:bought]]).astype(np.int32)
        if bought < _ROUND:
            return told, len(asked)
        logits = (rated(told, field.models) - ELO_MEAN) * LOGITS_PER_POINT
        habits = tuple(planning_habits(told, field.models, logits).values())
        state = replace(state, asked=asked, logits=logits, se=np.full(len(logits), 0.2), judges=habits)


def compared(field: Field, given: argparse.Namespace, seed: int) -> Iterator[tuple[str, Seen]]:
    """Each way to choose battles, against the ratings from all battles of all pairs."""
    a, b = np.triu_indices(len(field.models), 1)
    texts = np.arange(len(field.names))
    grid = np.column_stack([np.repeat(a, len(texts)), np.repeat(b, len(texts)), np.tile(texts, len(a))])
    truth = rated(field.judged(grid, given.profile, seed), field.models)
    for name, policy, priced in (
        ("information, priced", "information", True),
        ("information, as if all cost the same", "information", False),
        ("balanced", "balanced", False),
    ):
        phase = PhaseSettings(policy=policy, purpose=given.purpose, top=3)
        told, battles = run(field, given.row, given.profile, phase, seed, priced=priced)
        found = rated(told, field.models)
        apart = truth - truth.mean()
        stretch = float((found - found.mean()) @ apart / (apart @ apart))
        yield (
            name,
            Seen(
                float(np.sqrt(np.mean((found - truth) ** 2))),
                float(np.sqrt(np.mean(((found - found.mean()) / stretch - apart) ** 2))),
                stretch,
                battles,
            ),
        )


def main() -> None:
    """Print a table, means over seeds with their spread."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", default="gpt-4-0125-preview")
    parser.add_argument("--purpose", default="mean", choices=["mean", "boundary"])
    parser.add_argument("--row", default="gpt-4.1", help="the row of the price table that a battle is paid by")
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    seen: dict[str, list[Seen]] = {}
    for seed in range(1, given.seeds + 1):
        for name, one in compared(some_systems(Path(os.environ["VENIRE_DATA"]), seed), given, seed):
            seen.setdefault(name, []).append(one)
    out = sys.stdout.write
    out(f"verdicts: simulated by {given.profile}; purpose {given.purpose}; {given.seeds} seeds\n\n")
    out("| battles by | error (least to most) | without its stretch | stretch | battles |\n|---|---|---|---|---|\n")
    for name, rows in seen.items():
        error = [one.error for one in rows]
        out(
            f"| {name} | {np.mean(error):.1f} ({min(error):.1f} to {max(error):.1f}) "
            f"| {np.mean([one.unstretched for one in rows]):.1f} | {np.mean([one.stretch for one in rows]):.2f} "
            f"| {np.mean([one.battles for one in rows]):.0f} |\n"
        )


if __name__ == "__main__":
    main()
