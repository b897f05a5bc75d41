"""The results that every method returns: ratings with their covariance, and leaderboard entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from venire.arena.scale import ELO_MEAN, POINTS_PER_LOGIT
from venire.arena.wording import interval_text
from venire.ratings.data.statistics import student
from venire.ratings.data.validation import check_level

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """Ratings of `models`, in logits, with their covariance where it is known.

    `logits` (n,) are in `gauge` ("mean 1000", or the anchors); Elo is always 1000 + 400 / ln 10 times them. NaN is a
    model without an estimate. `covariance` (n, n) is that of `logits`, `errors` names its method and `degrees` is its
    degrees of freedom (infinite: a normal distribution). `battles` is the weight of each model's comparisons. `score`
    is the method's own figure if logits are derived from it, and `unit` names it. `diagnostics` holds plain JSON
    values: log-likelihood, iterations, gradient, groups, and dropped data with reasons.
    """

    method: str
    models: tuple[str, ...]
    logits: NDArray[np.float64]
    battles: NDArray[np.float64]
    gauge: str = "mean 1000"
    covariance: NDArray[np.float64] | None = None
    errors: str = "none"
    degrees: float = np.inf
    score: NDArray[np.float64] | None = None
    unit: str | None = None
    diagnostics: Mapping[str, Any] = field(default_factory=dict)

    @property
    def elo(self) -> NDArray[np.float64]:
        """Elo points (n,)."""
        return np.asarray(ELO_MEAN + POINTS_PER_LOGIT * self.logits, dtype=np.float64)

    @property
    def se(self) -> NDArray[np.float64]:
        """Standard errors (n,) in logits; NaN where unknown."""
        if self.covariance is None:
            return np.full(len(self.models), np.nan)
        return np.asarray(np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0)))

    @property
    def order(self) -> list[str]:
        """Names of the rated models, best first; models that are equal up to rounding are sorted by name."""
        logits: NDArray[np.float64] = np.round(self.logits, 9)
        known = np.flatnonzero(np.isfinite(logits)).tolist()
        return [self.models[code] for code in sorted(known, key=lambda code: (-logits[code], self.models[code]))]

    def interval(self, level: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper bound (n,) in Elo points: t quantile times standard error. Raises InputError."""
        half = POINTS_PER_LOGIT * self.quantile(level) * self.se
        return self.elo - half, self.elo + half

    def quantile(self, level: float) -> float:
        """Half the width of a two-sided interval at this level, in standard errors. Raises InputError."""
        check_level(level)
        return float(student.ppf(0.5 + level / 2.0, self.degrees))

    def summary(self) -> str:
        """The ratings as a text table, best first."""
        lo, hi = self.interval()
        order = sorted(range(len(self.models)), key=lambda code: (-np.nan_to_num(self.logits[code], nan=-np.inf), code))
        width = max([5, *(len(name) for name in self.models)])
        head = f"{self.method}, {self.gauge}; errors: {self.errors}"
        lines = [head, f"{'model':<{width}}  {'Elo':>7}  {'se':>6}  {'95 %':>16}  {'battles':>9}"]
        for code in order:
            known = bool(np.isfinite(lo[code]))
            span = interval_text(lo[code], hi[code])
            error = f"{POINTS_PER_LOGIT * self.se[code]:.1f}" if known else ""
            elo = f"{self.elo[code]:.1f}" if np.isfinite(self.logits[code]) else "none"
            lines.append(f"{self.models[code]:<{width}}  {elo:>7}  {error:>6}  {span:>16}  {self.battles[code]:>9g}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, eq=False)
class Rated:
    """Leaderboard entries: ratings with intervals, ranks and tiers; arrays are (models,).

    `lo`, `hi` and `se` are in Elo points, NaN where unknown; an open end is infinite. Ranks and tiers count from 1 and
    are 0 where unknown, `best` is the probability that the true rating is the highest, where known. `group` counts from
    1 in the order of `groups`; ranks and ratings are comparable within a group only. `reasons` explains why a model has
    no rating, `figures` are the method's own figures by name, `without_estimate` counts bootstrap replicates without a
    finite estimate. `findings` are the method's own records (`ratings.methods.findings`). `position` is the place in
    the order of a method that gives an order but no ratings (`votes.Order`), NaN without one. `judge_figures` are a
    method's estimates for `judges`, (judges,) by name.
    """

    ratings: Ratings
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    se: NDArray[np.float64]
    rank_lo: NDArray[np.int64]
    rank_hi: NDArray[np.int64]
    tier: NDArray[np.int64]
    best: NDArray[np.float64]
    group: NDArray[np.int64]
    groups: tuple[tuple[str, ...], ...]
    reasons: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    fits: tuple[Mapping[str, Any], ...] = ()
    without_estimate: int = 0
    findings: tuple[object, ...] = ()
    position: NDArray[np.float64] | None = None
    judges: tuple[str, ...] = ()
    judge_figures: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    def finding(self, kind: type[Record]) -> Record | None:
        """The method's record of a kind, None where it has none."""
        return record_of(self.findings, kind)


def record_of(records: Iterable[object], kind: type[Record]) -> Record | None:
    """The first of some records that is of a kind, None without one."""
    return next((one for one in records if isinstance(one, kind)), None)
