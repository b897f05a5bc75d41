"""The contract of a matchup policy."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from venire.arena.campaigns import PhaseSettings
from venire.arena.planning import Estimates, JudgeHabit, Pick, PlanState
from venire.arena.scale import ELO_MEAN, LOGITS_PER_POINT
from venire.orchestrator.policies import POLICIES

_MODELS = tuple(f"m{n}" for n in range(8))
_INSTRUCTIONS = tuple(f"i{n}" for n in range(12))
_ELO = {model: ELO_MEAN + 60 * n for n, model in enumerate(_MODELS)}


def check_policy(name: str) -> None:
    """Check that a registered policy keeps its contract. Raises AssertionError with the broken rule.

    The same state, phase and seed give the same picks; each is a pair of two models of the field, A before B by name,
    and no pick is repeated. A policy that crosses names no instruction and connects all models. Any other policy names
    an instruction for each pick, skips battles that were asked or are barred, and respects the requested number.

    >>> check_policy("balanced")
    """
    policy = POLICIES[name]
    number = len(_MODELS) * (len(_MODELS) - 1) // 2 if policy.every_pair else 12 if policy.crossed else 40
    phase = PhaseSettings(name, matchups=number, battles=number, coverage=0.5, band=(60.0, 300.0))
    for seed in range(5):
        for state in _states(policy.crossed):
            picks = policy.choose(state, phase, number, np.random.default_rng(seed))
            again = policy.choose(state, phase, number, np.random.default_rng(seed))
            assert picks == again, f"{name}: one seed gives different picks"
            _check_picks(name, picks, number, state, crossed=policy.crossed)


def _check_picks(name: str, picks: list[Pick], number: int, state: PlanState, *, crossed: bool) -> None:
    assert picks, f"{name}: chooses nothing where {number} can be had"
    assert len(picks) <= number, f"{name}: chooses {len(picks)} where {number} were asked for"
    for pick in picks:
        pair = f"{pick.model_a!r} and {pick.model_b!r}"
        assert {pick.model_a, pick.model_b} <= set(state.models), f"{name}: {pair} are not of the field"
        assert pick.model_a < pick.model_b, f"{name}: {pair} are not in the order of their names"
        assert crossed == (pick.instruction is None), f"{name}: its entry says crossed={crossed}, its picks do not"
    where = [(pick.model_a, pick.model_b, pick.instruction) for pick in picks]
    assert len(set(where)) == len(where), f"{name}: chooses a battle twice"
    if crossed:
        assert _joined(picks) == set(state.models), f"{name}: some models are joined to the others by no matchup"
        return
    codes = {(state.models.index(a), state.models.index(b), state.instructions.index(str(i))) for a, b, i in where}
    for what, rows in (("was asked already", state.asked), ("is barred", state.barred)):
        there = set() if rows is None else {tuple(map(int, row)) for row in rows}
        assert not codes & there, f"{name}: chooses a battle that {what}"


def _joined(picks: list[Pick]) -> set[str]:
    """The models that a chain of matchups connects to the first."""
    found, grown = {picks[0].model_a}, True
    while grown:
        more = {one for pick in picks for one in (pick.model_a, pick.model_b) if {pick.model_a, pick.model_b} & found}
        grown = not more <= found
        found |= more
    return found


def _states(crossed: bool) -> list[PlanState]:
    """A state without data and, for battles, a state with some battles asked, ratings and errors."""
    empty = np.zeros((0, 3), np.int32)
    new = PlanState(_MODELS, _ELO, _INSTRUCTIONS, asked=empty, judges=(JudgeHabit(),))
    if crossed:
        return [new]
    asked = np.array([(a, b, (a + b) % 12) for a, b in combinations(range(8), 2)], np.int32)
    logits = np.array([_ELO[model] for model in _MODELS]) * LOGITS_PER_POINT
    known = Estimates(_MODELS, logits - logits.mean(), np.linspace(0.2, 0.6, 8))
    some = PlanState(
        _MODELS,
        _ELO,
        _INSTRUCTIONS,
        logits=known.logits,
        se=known.se,
        asked=asked,
        barred=np.array([(0, 1, 3), (2, 5, 4)], np.int32),
        judges=(JudgeHabit(),),
    )
    return [new, some]
