"""Whether a new model is like those that an interval was calibrated on: what can be seen of it, in sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError

__all__ = ["FEW", "drift", "shortage", "strangers"]

FEW = 9
"""Calibration models below which intervals at 90 % are infinite, and at other levels hang on single models."""


def shortage(n: int, rank: int, alpha: float) -> tuple[str, ...]:
    """A sentence where `n` calibration models are too few for this alpha, or few at all; none is an empty tuple."""
    if rank > n:
        least = math.ceil((1.0 - alpha) / alpha - 1e-12)
        return (
            f"{n} calibration models are too few for alpha {alpha:g}: the intervals are infinite; {least} would do",
        )
    if n < FEW:
        return (f"only {n} calibration models: one of them more or less moves every interval",)
    return ()


def strangers(
    elo: NDArray[np.float64],
    calibration_elo: ArrayLike | None,
    family: Sequence[str] | None,
    calibration_family: Sequence[str] | None,
) -> tuple[str, ...]:
    """Sentences on new models rated beyond all calibration models, or of a family that these do not have.

    `elo` (models,) and `calibration_elo` (n,) are ratings by the judge. Raises `InputError` for a family too few.
    """
    said = []
    if calibration_elo is not None and np.size(calibration_elo):
        known = np.asarray(calibration_elo, dtype=np.float64)
        outside = (elo < known.min()) | (elo > known.max())
        said += [
            f"model {code}: {elo[code]:.0f} Elo is outside the {known.min():.0f} to {known.max():.0f} of calibration"
            for code in np.flatnonzero(outside)
        ]
    if family is not None and calibration_family is not None:
        if len(family) != len(elo):
            raise InputError(f"family has {len(family)} names, elo {len(elo)} models; give one name a model")
        absent = sorted(set(family) - set(calibration_family))
        said += [f"no calibration model is of the family {name}" for name in absent]
    return tuple(said)


def drift(residual: NDArray[np.float64], rating: ArrayLike | None) -> tuple[str, ...]:
    """A sentence where residuals (n,) hang on the rating (n,): correlation beyond 2 / sqrt(n).

    Raises `InputError` for columns of two lengths.
    """
    if rating is None or len(residual) < 3:
        return ()
    elo = np.asarray(rating, dtype=np.float64)
    if elo.shape != residual.shape:
        raise InputError(f"calibration_elo has shape {elo.shape}, residual {residual.shape}; give one a model")
    if np.ptp(elo) == 0.0 or np.ptp(residual) == 0.0:
        return ()
    found = float(np.corrcoef(elo, residual)[0, 1])
    if abs(found) <= 2.0 / math.sqrt(len(residual)):
        return ()
    return (f"residuals hang on the rating (correlation {found:+.2f}): models at one end are covered less than others",)
