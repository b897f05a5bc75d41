"""Policies that choose battles one at a time: evenly, or by what each would say of the ratings.

Each instruction is drawn evenly from those asked least often so far, and the pair is chosen on it.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from venire.arena.campaigns import PhaseSettings
from venire.arena.planning import Pick, PlanState
from venire.orchestrator.balancing import Evenness, parts
from venire.orchestrator.candidates import Candidates
from venire.orchestrator.informing import Knowledge, information_of_pairs, starting_logits, wanted

__all__ = ["balanced", "information"]

_EVENLY = 10
"""One battle in so many of an adaptive policy is balanced, so that a wrong estimate cannot hide what would mend it."""

Matrix = NDArray[np.float64]


class _Score(Protocol):
    """What an adaptive policy ranks pairs by, told of every choice."""

    def gains(self) -> Matrix:
        """What one more battle of each pair (models, models) is worth; 0: nothing."""
        ...

    def add(self, a: int, b: int) -> None:
        """Count one battle of a pair as asked."""
        ...


def balanced(state: PlanState, phase: PhaseSettings, number: int, rng: np.random.Generator) -> list[Pick]:
    """Battles that use every model, instruction and pair as equally often as can be, given what was asked before.

    From scratch, models and instructions stay within one battle of each other, and pairs too for an even number of
    models (else two); any models - 1 first battles join all models. Only the instructions are drawn.
    """
    candidates = Candidates(state)
    evenness = Evenness(candidates)
    picks: list[Pick] = []
    while len(picks) < number and len(candidates):
        picks.append(_take(candidates, evenness, *evenness.next_battle(candidates.least_used(rng)), "balanced", None))
    return picks


def information(state: PlanState, phase: PhaseSettings, number: int, rng: np.random.Generator) -> list[Pick]:
    """The battles that lower the phase's criterion most for their price, each given those before.

    `gain` is in square logits, per nano-dollar where prices are known. The first round is balanced and joins all
    models, and afterwards one battle in ten is. A model that is placed among others that are joined already has only
    battles of its own. Raises InputError for a purpose that does not fit the models.
    """
    candidates = Candidates(state)
    logits = starting_logits(state, candidates.models)
    aim = wanted(phase, logits, candidates.models, ~candidates.held)
    knowledge = Knowledge(information_of_pairs(logits, state.judges), candidates.met, aim, ~candidates.held)
    if phase.purpose == "place" and phase.place is not None and _rest_is_joined(candidates, phase.place):
        candidates = Candidates(state, about=phase.place)
    return _adaptive(state, candidates, knowledge, "information", number, rng)


def _adaptive(
    state: PlanState, candidates: Candidates, score: _Score, why: str, number: int, rng: np.random.Generator
) -> list[Pick]:
    """The battles worth most by a score for their price, with an even first round and an even part of the others."""
    evenness = Evenness(candidates)
    before = int(candidates.used.sum())
    first = before == 0
    picks: list[Pick] = []
    while len(picks) < number and len(candidates):
        level = candidates.least_used(rng)
        even = first or (before + len(picks)) % _EVENLY == _EVENLY - 1 or not evenness.connected
        best = None if even else _best(score.gains(), candidates, int(level[0]), state)
        if best is None:
            instruction, pair = evenness.next_battle(level)
            pick = _take(candidates, evenness, instruction, pair, "balanced", None)
        else:
            pair, gain = best
            pick = _take(candidates, evenness, int(level[0]), pair, why, gain)
        if not first:
            score.add(*divmod(pair, len(candidates.models)))
        picks.append(pick)
    return picks


def _best(gains: Matrix, candidates: Candidates, instruction: int, state: PlanState) -> tuple[int, float] | None:
    """The pair on an instruction that is worth most, and what; None where none is worth anything."""
    worth = np.where(candidates.open_on(instruction), gains / _prices(state, candidates, instruction), 0.0)
    pair = int(np.argmax(worth))
    gain = float(worth.ravel()[pair])
    return (pair, gain) if gain > 0.0 else None


def _prices(state: PlanState, candidates: Candidates, instruction: int) -> Matrix | float:
    """What a battle of each pair (models, models) costs on an instruction; what costs nothing counts as one."""
    if state.completion_price is None or state.instruction_price is None:
        return 1.0
    text = candidates.instruction_order[instruction]
    each = state.completion_price[candidates.model_order, text]
    prices: Matrix = np.maximum(state.instruction_price[text] + each[:, None] + each[None, :], 1.0)
    return prices


def _take(
    candidates: Candidates, evenness: Evenness, instruction: int, pair: int, why: str, gain: float | None
) -> Pick:
    candidates.take(instruction, pair)
    evenness.add(pair)
    a, b = divmod(pair, len(candidates.models))
    return Pick(candidates.models[a], candidates.models[b], candidates.instructions[instruction], why, gain)


def _rest_is_joined(candidates: Candidates, place: str) -> bool:
    others = np.array([name != place for name in candidates.models], dtype=np.bool_)
    inside = np.ix_(others, others)
    return len(np.unique(parts(candidates.met[inside], candidates.held[others]))) == 1
