"""Time for planning one large round."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from venire.arena.campaigns import PhaseSettings
from venire.arena.planning import JudgeHabit, PlanState
from venire.orchestrator.policies import POLICIES

_MODELS, _TEXTS, _BATTLES = 200, 1000, 1000
_REPEATS = 3


def seconds_of_a_round() -> Iterator[tuple[str, int, float]]:
    """Policy, battles asked before, and CPU seconds of the fastest of three calls."""
    for policy, entry in POLICIES.items():
        for before in (0, 100_000):
            if entry.crossed and before:
                continue
            state = _state(before)
            best = float("inf")
            for _ in range(_REPEATS):
                start = time.process_time()
                entry.choose(state, PhaseSettings(policy), _BATTLES, np.random.default_rng(1))
                best = min(best, time.process_time() - start)
            yield policy, before, best


def _state(before: int) -> PlanState:
    rng = np.random.default_rng(0)
    models = tuple(f"m{n:03}" for n in range(_MODELS))
    one, other = np.triu_indices(_MODELS, 1)
    drawn = rng.choice(len(one) * _TEXTS, before, replace=False)
    pair, text = np.divmod(drawn, _TEXTS)
    return PlanState(
        models,
        dict(zip(models, rng.normal(1000.0, 150.0, _MODELS).tolist(), strict=True)),
        tuple(f"i{n:04}" for n in range(_TEXTS)),
        logits=rng.normal(0.0, 1.0, _MODELS) if before else None,
        se=np.full(_MODELS, 0.2),
        asked=np.stack([one[pair], other[pair], text], axis=1).astype(np.int32),
        judges=(JudgeHabit(2.0, 0.3, 0.1, 0.4),) * 3,
        instruction_price=rng.uniform(1e4, 1e5, _TEXTS),
        completion_price=rng.uniform(1e4, 1e5, (_MODELS, _TEXTS)),
    )
