"""Verdicts of a campaign as tests simulate them: honest judges of one bench, unless told otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.records import Status


def campaign(
    seed: int,
    *,
    models: int = 6,
    judges: int = 3,
    instructions: int = 60,
    battles: int = 6,
    repeats: int = 1,
    strength: Sequence[float] | None = None,
    spread: float = 0.8,
    noise: float = 0.5,
    first: Sequence[float] = (),
    ties: float = 0.1,
    both: bool = True,
) -> Battles:
    """Each judge sees the same battles of each instruction, in both orders unless told otherwise.

    `strength` (models,) are logits, else drawn with deviation `spread`; each model is better or worse at an instruction
    by `noise`. `first` (judges,) are logits for what is shown first.
    """
    rng = np.random.default_rng(seed)
    true = rng.normal(0.0, spread, models) if strength is None else np.asarray(strength, dtype=np.float64)
    at = true + rng.normal(0.0, noise, (instructions, models))
    a = rng.integers(0, models, (instructions, battles))
    b = (a + rng.integers(1, models, a.shape)) % models
    pairs = [
        np.unique(np.sort(np.stack([left, right], axis=1), axis=1), axis=0) for left, right in zip(a, b, strict=True)
    ]
    rows = np.array([(number, low, high) for number, met in enumerate(pairs) for low, high in met], dtype=np.int32)
    shape = (len(rows), judges, repeats, 2 if both else 1)
    instruction, low, high = (np.broadcast_to(rows[:, k, None, None, None], shape).ravel() for k in range(3))
    judge = np.broadcast_to(np.arange(judges, dtype=np.int32)[None, :, None, None], shape).ravel()
    repeat = np.broadcast_to(1 + np.arange(repeats, dtype=np.int32)[None, None, :, None], shape).ravel()
    swapped = rng.random(len(judge)) < 0.5
    if both:
        swapped = np.broadcast_to(np.array([False, True]), shape).ravel()
    lean = np.zeros(judges) if not len(first) else np.asarray(first, dtype=np.float64)
    gap = at[instruction, low] - at[instruction, high] + np.where(swapped, -1.0, 1.0) * lean[judge]
    label: NDArray[np.int8] = np.where(rng.random(len(gap)) < 1.0 / (1.0 + np.exp(-gap)), 1, -1).astype(np.int8)
    label[rng.random(len(gap)) < ties] = 0
    return Battles(
        models=tuple(f"m{code:02}" for code in range(models)),
        judges=tuple(f"judge {code}" for code in range(judges)),
        instructions=tuple(f"i{code:04}" for code in range(instructions)),
        model_a=low.astype(np.int32),
        model_b=high.astype(np.int32),
        judge=judge.astype(np.int32),
        instruction=instruction.astype(np.int32),
        repeat=repeat.astype(np.int32),
        swapped=swapped.copy(),
        status=np.full(len(gap), Status.OK, dtype=np.int8),
        label=label,
    )
