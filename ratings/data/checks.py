"""What many methods refuse in the same words: a level, how often and from where to draw; and what they do not know."""

from __future__ import annotations

import math

from venire.arena.errors import InputError

__all__ = ["check_draws", "check_level", "check_seed", "finite"]


def check_level(level: float) -> None:
    """Raise `InputError` for a level of intervals outside (0, 1), such as 95 for 95 %."""
    if not 0.0 < level < 1.0:
        raise InputError(f"level is {level}; give a share between 0 and 1, such as 0.95")


def check_draws(replicates: int, seed: int) -> None:
    """Raise `InputError` for a negative number of replicates, or a negative seed."""
    if replicates < 0:
        raise InputError(f"replicates is {replicates}; give 0 for none, or a number such as 1000")
    check_seed(seed)


def check_seed(seed: int) -> None:
    """Raise `InputError` for a negative seed, which no generator of NumPy takes."""
    if seed < 0:
        raise InputError(f"seed is {seed}; give a number that is not negative")


def finite(value: float) -> float | None:
    """A figure as results and JSON have it: None for one that is not finite."""
    return float(value) if math.isfinite(value) else None
