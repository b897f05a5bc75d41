"""Conformal intervals for what people would say of a model that only a judge has seen.

What the judge got wrong on models that people know says how wrong it may be on the next one, provided that the next
one is like them: exchangeable. Nothing is assumed about the shape of these errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError
from venire.ratings.inference.exchangeability import drift, shortage, strangers

__all__ = ["Calibrated", "Conformal", "Scale", "conformal_rank", "leave_one_out_conformal", "split_conformal"]

Scale = Literal["total", "se", "none"]


@dataclass(frozen=True, slots=True, eq=False)
class Conformal:
    """Intervals `low` to `high` (models,) in Elo points around `elo` (models,); infinite where none can be given.

    `quantile` (models,) is the score of rank `rank` among `n` calibration models, times `scale` (models,) half the
    width. `tau` (models,) is what errors of measurement do not explain. `expected` is the coverage rank / (n + 1) that
    holds on average over models; None where the interval is infinite. `warnings` belong beside the intervals.
    """

    elo: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    quantile: NDArray[np.float64]
    scale: NDArray[np.float64]
    tau: NDArray[np.float64]
    n: int
    rank: int
    alpha: float
    expected: float | None
    method: str
    warnings: tuple[str, ...] = ()

    def covers(self, human: ArrayLike) -> NDArray[np.bool_]:
        """Whether each interval holds the rating by people (models,)."""
        truth = np.asarray(human, dtype=np.float64)
        return np.asarray((truth >= self.low) & (truth <= self.high))


def conformal_rank(n: int, alpha: float) -> int:
    """Which of n sorted scores bounds the next with probability 1 - alpha at least; n + 1 stands for infinity.

    The 1e-12 keeps (99 + 1) * 0.55 at 55, where floating point says a little more. Raises `InputError`.
    """
    if not 0.0 < alpha < 1.0:
        raise InputError(f"alpha is {alpha}; give a share between 0 and 1, such as 0.1")
    return min(math.ceil((n + 1) * (1.0 - alpha) - 1e-12), n + 1)


def split_conformal(
    residual: ArrayLike,
    se: ArrayLike,
    elo: ArrayLike,
    elo_se: ArrayLike,
    *,
    human_se: ArrayLike = 0.0,
    elo_human_se: ArrayLike = 0.0,
    alpha: float = 0.1,
    scale: Scale = "total",
    calibration_elo: ArrayLike | None = None,
    family: Sequence[str] | None = None,
    calibration_family: Sequence[str] | None = None,
) -> Conformal:
    """Intervals for models that people did not rate, calibrated on some that they did. All in Elo points.

    Source: the Soft-Elo paper.

    `residual` (n,) is human less judge of the calibration models, `se` (n,) the error of the judge's rating,
    `human_se` (n,) that of people's (0: unknown). `elo` (models,) are the judge's ratings of new models, `elo_se` their
    errors; `elo_human_se` is the error that people's rating of them would have, where an interval is to hold that
    measurement rather than the truth behind it. `scale` "total" divides residuals by the root of se^2 +
    human_se^2 + tau^2, "se" by se alone as in the paper, which covers too little where new models have smaller errors
    than the calibration models, "none" by 1. `calibration_elo`, `family` and `calibration_family` are for warnings
    alone. Raises `InputError`.
    """
    known = Calibrated.of(residual, se, human_se, scale)
    points = np.atleast_1d(np.asarray(elo, dtype=np.float64))
    errors, people = _column("elo_se", elo_se, points), _column("elo_human_se", elo_human_se, points)
    if calibration_elo is not None:
        calibration_elo = _column("calibration_elo", calibration_elo, known.residual)
    rank = conformal_rank(known.n, alpha)
    tau = known.tau()
    width = known.width(errors, people, tau)
    quantile = _smallest(known.scores(tau), rank)
    said = (
        *shortage(known.n, rank, alpha),
        *strangers(points, calibration_elo, family, calibration_family),
        *drift(known.residual, calibration_elo),
    )
    return _intervals(
        points, np.full(len(points), quantile), width, np.full(len(points), tau), known.n, rank, alpha, said
    )


def leave_one_out_conformal(
    residual: ArrayLike,
    se: ArrayLike,
    elo: ArrayLike,
    *,
    human_se: ArrayLike = 0.0,
    alpha: float = 0.1,
    scale: Scale = "total",
) -> Conformal:
    """The interval of each model (n,), calibrated on all the others: all but one of the models that people know.

    Arguments are as in `split_conformal`, of the same n models. Each interval keeps the guarantee of a split with
    n - 1 calibration models, on average over models; the intervals of two models share their calibration and are not
    independent, so the observed share scatters more than a binomial. Raises `InputError`.
    """
    known = Calibrated.of(residual, se, human_se, scale)
    points = _column("elo", elo, known.residual)
    count = known.n
    rank = conformal_rank(count - 1, alpha)
    quantile, tau, width = np.empty(count), np.empty(count), np.empty(count)
    for code in range(count):
        others = known.without(code)
        tau[code] = others.tau()
        quantile[code] = _smallest(others.scores(float(tau[code])), rank)
        width[code] = known.width(known.se[code], known.human_se[code], float(tau[code]))
    said = (*shortage(count - 1, rank, alpha), *drift(known.residual, points))
    return _intervals(points, quantile, width, tau, count - 1, rank, alpha, said, "leave-one-out")


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """Checked figures of calibration models (n,)."""

    residual: NDArray[np.float64]
    se: NDArray[np.float64]
    human_se: NDArray[np.float64]
    scale: Scale

    @classmethod
    def of(cls, residual: ArrayLike, se: ArrayLike, human_se: ArrayLike, scale: Scale) -> Calibrated:
        """Check the columns; a single number stands for all models. Raises `InputError`."""
        if scale not in get_args(Scale):
            raise InputError(f"scale is {scale!r}; give one of {', '.join(get_args(Scale))}")
        found = np.asarray(residual, dtype=np.float64)
        if found.ndim != 1 or not np.isfinite(found).all():
            raise InputError(
                "residual: give one finite number a calibration model; leave out those people did not rate"
            )
        errors, people = _column("se", se, found), _column("human_se", human_se, found)
        if scale == "se" and not (errors > 0.0).all():
            raise InputError("scale 'se' divides by the error of every calibration model: one of them is 0")
        return cls(found, errors, people, scale)

    @property
    def n(self) -> int:
        """How many calibration models there are."""
        return len(self.residual)

    def without(self, code: int) -> Calibrated:
        """All but one of them."""
        keep = np.arange(self.n) != code
        return Calibrated(self.residual[keep], self.se[keep], self.human_se[keep], self.scale)

    def tau(self) -> float:
        """The spread of residuals (Elo points) that errors of measurement leave unexplained; 0 without models."""
        if not self.n or self.scale != "total":
            return 0.0
        return math.sqrt(max(0.0, float(np.mean(self.residual**2 - self.se**2 - self.human_se**2))))

    def width(self, se: ArrayLike, human_se: ArrayLike, tau: float) -> NDArray[np.float64]:
        """What residuals of models with these errors are divided by."""
        own, people = np.asarray(se, dtype=np.float64), np.asarray(human_se, dtype=np.float64)
        if self.scale == "none":
            return np.ones_like(own)
        return own if self.scale == "se" else np.asarray(np.sqrt(own**2 + people**2 + tau**2))

    def scores(self, tau: float) -> NDArray[np.float64]:
        """Absolute residuals (n,) in units of `width`; infinite where that is 0 and the residual is not."""
        width = self.width(self.se, self.human_se, tau)
        size = np.abs(self.residual)
        return np.divide(size, width, out=np.where(size > 0.0, np.inf, 0.0), where=width > 0.0)


def _smallest(scores: NDArray[np.float64], rank: int) -> float:
    return math.inf if rank > len(scores) else float(np.partition(scores, rank - 1)[rank - 1])


def _column(argument: str, values: ArrayLike, like: NDArray[np.float64]) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        array = np.full(len(like), float(array))
    if array.shape != like.shape or not np.isfinite(array).all() or (argument.endswith("se") and (array < 0.0).any()):
        rule = "finite and not negative" if argument.endswith("se") else "finite"
        raise InputError(f"{argument}: give one number a model ({len(like)}), each {rule}")
    return array


def _intervals(
    elo: NDArray[np.float64],
    quantile: NDArray[np.float64],
    scale: NDArray[np.float64],
    tau: NDArray[np.float64],
    n: int,
    rank: int,
    alpha: float,
    warnings: tuple[str, ...],
    method: str = "split",
) -> Conformal:
    half = np.full(len(elo), np.inf) if rank > n else quantile * scale
    expected = None if rank > n else rank / (n + 1)
    return Conformal(elo, elo - half, elo + half, quantile, scale, tau, n, rank, alpha, expected, method, warnings)
