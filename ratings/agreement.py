"""How well estimated ratings agree with reference ratings of the same models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import pearsonr, spearmanr

__all__ = ["MINIMUM_MODELS", "Agreement", "agreement"]

MINIMUM_MODELS = 3


@dataclass(frozen=True, slots=True)
class Agreement:
    """Correlations and mean absolute error in Elo points over `models` shared models.

    A figure is None where it means nothing, and `reason` then says why.
    """

    pearson: float | None
    spearman: float | None
    mae: float | None
    models: int
    reason: str | None = None


def agreement(estimated: Mapping[str, float], reference: Mapping[str, float]) -> Agreement:
    """Pearson, Spearman and mean absolute error between two sets of Elo points, over the models that both name.

    The error is taken after both are put on a common mean over these models, since only differences mean anything.
    """
    shared = sorted(estimated.keys() & reference.keys())
    if len(shared) < MINIMUM_MODELS:
        reason = f"{len(shared)} models have both ratings; agreement needs at least {MINIMUM_MODELS}"
        return Agreement(None, None, None, len(shared), reason)
    ours = np.array([estimated[name] for name in shared], dtype=np.float64)
    theirs = np.array([reference[name] for name in shared], dtype=np.float64)
    mae = float(np.abs((ours - ours.mean()) - (theirs - theirs.mean())).mean())
    if np.ptp(ours) == 0 or np.ptp(theirs) == 0:
        return Agreement(None, None, mae, len(shared), "all ratings of one side are equal: no correlation exists")
    return Agreement(
        pearson=float(pearsonr(ours, theirs).statistic),
        spearman=float(spearmanr(ours, theirs).statistic),
        mae=mae,
        models=len(shared),
    )
