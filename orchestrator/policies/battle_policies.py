"""Policies that choose battles one at a time: evenly, or by the information that each would add about the ratings.

Each instruction is drawn evenly from those asked least often so far, and the pair is chosen on it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from venire.arena.campaigns import PhaseSettings
from venire.arena.planning import Pick, PlanState, Policy
from venire.arena.scale import LOGITS_PER_POINT
from venire.orchestrator.policies.candidates import Candidates, Evenness, components
from venire.orchestrator.policies.information_gain import (
    OPPONENT_SD,
    PRIOR,
    Knowledge,
    covariance_after,
    information_of_pairs,
    starting_logits,
    wanted,
)
from venire.orchestrator.policies.matchup_policies import connected

_EVENLY = 10
"""One battle in so many of an adaptive policy is balanced, so that a wrong estimate cannot hide what would mend it."""

Matrix = NDArray[np.float64]


class _Score(Protocol):
    """What an adaptive policy ranks pairs by, updated with every choice."""

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
        instruction, pair = evenness.next_battle(candidates.least_used(rng))
        evenness.add(pair)
        picks.append(_take(candidates, instruction, pair, "balanced", None))
    return picks


def information(state: PlanState, phase: PhaseSettings, number: int, rng: np.random.Generator) -> list[Pick]:
    """The battles that lower the phase's criterion most for their price, each given those before.

    `gain` is in square logits, per nano-dollar of what a battle of the pair costs on average where prices are known.
    The first round is balanced and joins all models, and afterwards one battle in ten is. A model that is placed among
    others that are joined already has only battles of its own, whatever they cost, with several opponents of about its
    level. Raises InputError for a purpose that does not fit the models.
    """
    candidates = Candidates(state)
    if phase.purpose == "place":
        # The cheapest opponents answer in few words. By judges that like length they stand below what they would be
        # with people, and the error of how far they do would all go to the one model that is placed.
        state = replace(state, instruction_price=None, completion_price=None)
    logits = starting_logits(state, candidates.models)
    weights, free = information_of_pairs(logits, state.judges), ~candidates.held
    prior = np.where(candidates.held, OPPONENT_SD, PRIOR)
    if phase.purpose == "place":
        free = np.ones_like(free)  # no rating is updated, but a rating's prediction for one pair is uncertain
    covariance = covariance_after(weights, candidates.met, free, prior)
    aim = wanted(phase, candidates.models, logits, covariance, ~candidates.held, rng)
    knowledge = Knowledge(weights, covariance, aim)
    if phase.purpose == "place" and phase.place is not None and _rest_is_joined(candidates, phase.place):
        its = np.array([name == phase.place for name in candidates.models], dtype=np.bool_)
        candidates = Candidates(state, its[:, None] | its[None, :])
    return _adaptive(state, candidates, knowledge, "information", number, rng)


def near_tie(state: PlanState, phase: PhaseSettings, number: int, rng: np.random.Generator) -> list[Pick]:
    """Battles of the `phase.matchups` closest pairs, which connect all models; each equally often.

    `gain` is the gap in Elo points, as estimated, else by the reference. Where neither is known of any model, the
    battles are balanced.
    """
    if not state.elo and (state.logits is None or not np.isfinite(state.logits).any()):
        return balanced(state, phase, number, rng)
    everything = Candidates(state)
    models, logits = everything.models, starting_logits(state, everything.models)
    gaps = np.abs(logits[:, None] - logits[None, :]) / LOGITS_PER_POINT
    pairs = [(float(gaps[a, b]), a, b) for a, b in combinations(range(len(models)), 2)]
    ranked = [Pick(models[a], models[b], gain=apart) for apart, a, b in sorted(pairs)]
    among = np.zeros(gaps.shape, dtype=np.bool_)
    for one in connected(ranked, state, phase, max(phase.matchups or len(ranked), len(models) - 1)):
        among[models.index(one.model_a), models.index(one.model_b)] = True
    candidates = Candidates(state, among)
    picks: list[Pick] = []
    while len(picks) < number and len(candidates):
        instruction = int(candidates.least_used(rng)[0])
        left = np.flatnonzero(candidates.open_on(instruction))
        pair = int(left[np.lexsort((gaps.ravel()[left], candidates.met.ravel()[left]))[0]])
        picks.append(_take(candidates, instruction, pair, "near-tie", float(gaps.ravel()[pair])))
    return picks


class _GapError:
    """p (1 - p) (se_a^2 + se_b^2) / (1 + gap), the gap in log odds of the judges; errors shrink with every choice."""

    def __init__(self, state: PlanState, candidates: Candidates) -> None:
        logits = starting_logits(state, candidates.models)
        slope = float(np.mean([abs(judge.slope) for judge in state.judges])) if state.judges else 1.0
        gap = slope * np.abs(logits[:, None] - logits[None, :])
        less = np.exp(-gap)
        self._shares = less / (1.0 + less) ** 2 / (1.0 + gap)
        self._weights = information_of_pairs(logits, state.judges)
        se = np.full(len(logits), np.nan) if state.se is None else state.se[candidates.model_order]
        self._variance = np.where(np.isfinite(se), se, PRIOR) ** 2
        self._variance[candidates.held] = 0.0

    def gains(self) -> Matrix:
        worth: Matrix = self._shares * (self._variance[:, None] + self._variance[None, :])
        return worth

    def add(self, a: int, b: int) -> None:
        for model in (a, b):
            self._variance[model] /= 1.0 + self._weights[a, b] * self._variance[model]


def gap_error(state: PlanState, phase: PhaseSettings, number: int, rng: np.random.Generator) -> list[Pick]:
    """Battles by a simple rule, close pairs of uncertain ratings first, whatever they cost: a yardstick.

    `gain` is what the rule gives. First round and even part are those of `information`.
    """
    candidates = Candidates(state)
    return _adaptive(state, candidates, _GapError(state, candidates), "gap-error", number, rng, priced=False)


def _adaptive(
    state: PlanState,
    candidates: Candidates,
    score: _Score,
    why: str,
    number: int,
    rng: np.random.Generator,
    *,
    priced: bool = True,
) -> list[Pick]:
    """The battles worth most by a score for their price, with an even first round and an even part of the others."""
    evenness = Evenness(candidates)
    prices = _prices(state, candidates) if priced else 1.0
    before = int(candidates.used.sum())
    first = before == 0
    picks: list[Pick] = []
    while len(picks) < number and len(candidates):
        level = candidates.least_used(rng)
        even = first or (before + len(picks)) % _EVENLY == _EVENLY - 1 or not evenness.connected
        best = None if even else _best(score.gains() / prices, candidates, int(level[0]))
        if best is None:
            instruction, pair = evenness.next_battle(level)
            pick = _take(candidates, instruction, pair, "balanced", None)
        else:
            pair, gain = best
            pick = _take(candidates, int(level[0]), pair, why, gain)
        evenness.add(pair)
        if not first:
            score.add(*divmod(pair, len(candidates.models)))
        picks.append(pick)
    return picks


def _best(gains: Matrix, candidates: Candidates, instruction: int) -> tuple[int, float] | None:
    """The pair on an instruction that is worth most, and what; None where none is worth anything."""
    worth = np.where(candidates.open_on(instruction), gains, 0.0)
    pair = int(np.argmax(worth))
    gain = float(worth.ravel()[pair])
    return (pair, gain) if gain > 0.0 else None


def _prices(state: PlanState, candidates: Candidates) -> Matrix | float:
    """What a battle of each pair (models, models) costs over all instructions; what costs nothing counts as one.

    On one instruction the cheapest pair is that with the shortest answers there, so that a model would be asked about
    where it said little: judges that like length would rate it by that.
    """
    if state.completion_price is None or state.instruction_price is None:
        return 1.0
    shown = state.completion_price[np.ix_(candidates.model_order, candidates.instruction_order)]
    each = shown.sum(axis=1) / np.maximum(np.count_nonzero(shown, axis=1), 1)
    prices: Matrix = np.maximum(state.instruction_price.mean() + each[:, None] + each[None, :], 1.0)
    return prices


def _take(candidates: Candidates, instruction: int, pair: int, why: str, gain: float | None) -> Pick:
    candidates.take(instruction, pair)
    a, b = divmod(pair, len(candidates.models))
    return Pick(candidates.models[a], candidates.models[b], candidates.instructions[instruction], why, gain)


def _rest_is_joined(candidates: Candidates, place: str) -> bool:
    others = np.array([name != place for name in candidates.models], dtype=np.bool_)
    inside = np.ix_(others, others)
    return len(np.unique(components(candidates.met[inside], candidates.held[others]))) == 1


BALANCED = Policy(balanced, crossed=False)
NEAR_TIE = Policy(near_tie, crossed=False, adaptive=True)
INFORMATION = Policy(information, crossed=False, adaptive=True, settings=frozenset({"purpose"}))
GAP_ERROR = Policy(gap_error, crossed=False, adaptive=True)
