"""How often conformal intervals hold, tried on models that people did rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from venire.arena.errors import InputError
from venire.ratings.data.checks import check_seed
from venire.ratings.soft_elo.conformal import Calibrated, Scale, split_conformal

__all__ = ["Coverage", "split_coverage"]


@dataclass(frozen=True, slots=True)
class Coverage:
    """Share of held-out models whose interval held, over random splits: mean `observed` and its spread `sd`.

    `expected` is rank / (n + 1), what exchangeable models would give; None, and `width` infinite, where intervals are.
    `width` is the median of whole widths in Elo points; `n` models calibrated each of `splits` splits.
    """

    observed: float
    sd: float
    expected: float | None
    width: float
    n: int
    splits: int


def split_coverage(
    residual: ArrayLike,
    se: ArrayLike,
    elo: ArrayLike,
    *,
    human_se: ArrayLike = 0.0,
    alpha: float = 0.1,
    scale: Scale = "total",
    splits: int = 20,
    seed: int = 0,
) -> Coverage:
    """Calibrate on a random half of the models (the smaller), look at the others, and repeat; the Soft-Elo paper.

    Arguments are as in `split_conformal`, of models that people rated; all in Elo points. Splits of the same models
    overlap, so `sd` is no standard error. Raises `InputError`.
    """
    known = Calibrated.of(residual, se, human_se, scale)
    points = np.asarray(elo, dtype=np.float64)
    if splits < 1 or known.n < 2 or points.shape != known.residual.shape:
        raise InputError("give 2 models or more, each with its elo and residual, and 1 split or more")
    check_seed(seed)
    rng, half = np.random.default_rng(seed), known.n // 2
    held, widths, expected = [], [], None
    for _ in range(splits):
        order = rng.permutation(known.n)
        old, new = order[:half], order[half:]
        found = split_conformal(
            known.residual[old],
            known.se[old],
            points[new],
            known.se[new],
            human_se=known.human_se[old],
            elo_human_se=known.human_se[new],
            alpha=alpha,
            scale=scale,
        )
        held.append(float(found.covers(points[new] + known.residual[new]).mean()))
        widths.append(found.high - found.low)
        expected = found.expected
    spread = float(np.std(held, ddof=1)) if splits > 1 else float("nan")
    return Coverage(float(np.mean(held)), spread, expected, float(np.median(np.concatenate(widths))), half, splits)
