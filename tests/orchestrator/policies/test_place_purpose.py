"""A model is placed by battles that hang on no text's length: the cheapest answers would all be its opponents'."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from venire.arena.campaigns import PhaseSettings
from venire.arena.planning import PlanState
from venire.orchestrator.policies import POLICIES


def test_short_answers_of_opponents_are_not_sought_for_their_price() -> None:
    names = tuple(f"m{n}" for n in range(6))
    rng = np.random.default_rng(0)
    prices = rng.uniform(1.0, 100.0, (6, 40))
    state = PlanState(
        names,
        {},
        tuple(f"i{n:02}" for n in range(40)),
        np.array([-1.0, -0.5, 0.0, 0.1, 0.5, 1.0]),
        np.array([0.0, 0.0, 0.0, 0.5, 0.0, 0.0]),
        np.array([[2, 3, 0]], dtype=np.int32),
        held=frozenset(names) - {"m3"},
    )
    phase = PhaseSettings(policy="information", purpose="place", place="m3")
    priced = replace(state, instruction_price=np.ones(40), completion_price=prices)
    found, free = (POLICIES["information"].choose(one, phase, 30, np.random.default_rng(1)) for one in (priced, state))
    assert found == free
    assert {"m3"} < {name for one in found for name in (one.model_a, one.model_b)}
