"""What rating methods find besides ratings: one record a finding, whose fields are keys of a board's JSON document.

A method from elsewhere adds frozen dataclasses of its own in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from venire.ratings.am_elo.stable_arena import DroppedJudge
from venire.ratings.soft_elo.conformal import Coverage
from venire.ratings.soft_elo.cross_validation import Accuracy, NearestWay


@dataclass(frozen=True, slots=True)
class MethodNotes:
    """What a reader of the ratings must know of this fit, in sentences."""

    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Components:
    """The number of weakly connected components, and judgments between groups that were rated apart."""

    components: int
    between_groups: int


@dataclass(frozen=True, slots=True)
class TieParameter:
    """The parameter of ties with its standard error."""

    tie: float
    tie_se: float


@dataclass(frozen=True, slots=True)
class Lapse:
    """The share of judgments that follow no rating."""

    lapse: float


@dataclass(frozen=True, slots=True)
class TiesLeftOut:
    """The number of ties that the method has no use for."""

    ties_left_out: int


@dataclass(frozen=True, slots=True)
class FlipsAs:
    """What a flip counts as where the method does not merge orders."""

    flips_as: str


@dataclass(frozen=True, slots=True)
class CovariateEffect:
    """A covariate's coefficient, in log odds a unit of it, with error, interval and p value; None where unknown."""

    name: str
    coefficient: float | None
    se: float | None
    lo: float | None
    hi: float | None
    p: float | None


@dataclass(frozen=True, slots=True)
class CovariateEffects:
    """What each covariate is worth; the order and the likelihood of ratings without them."""

    covariates: tuple[CovariateEffect, ...]
    kendall_without: float | None
    log_likelihood_without: float


@dataclass(frozen=True, slots=True)
class ContradictedVotes:
    """The `cost` of an order, which is the weight of votes that it contradicts, and whether less was ruled out."""

    order: tuple[str, ...]
    cost: float | None
    lower_bound: float | None
    proved: bool
    optimal_orders: int | None


@dataclass(frozen=True, slots=True)
class AbilityLikelihood:
    """The log-likelihood of a fit of abilities, and what other starts came to."""

    loglik: float
    restarts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AbilitySign:
    """How the sign of all abilities was decided; it begins with "undecided" where it was not."""

    sign: str


@dataclass(frozen=True, slots=True)
class JudgesWithoutAbility:
    """Judges whose ability is infinite, and the reason of each that has no finite one."""

    separated: tuple[str, ...]
    no_ability: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DroppedJudges:
    """Judges left out, those with an ability first, and the number of fits after which some were."""

    dropped: tuple[DroppedJudge, ...]
    passes: int


@dataclass(frozen=True, slots=True)
class SoftEloFit:
    """The slope of a single judge (None of several), the rows with a label, and the expected calibration error."""

    beta: float | None
    n_fit: int
    ece: float


@dataclass(frozen=True, slots=True)
class ConformalCoverage:
    """The share of models that conformal intervals are `expected` to hold, and that they `observed`ly hold.

    `method` is how they were calibrated. `splits` holds, for "hard" and "soft", what intervals do that are calibrated
    on 70 % of the models and tested on the others, over five such splits.
    """

    alpha: float
    expected: float | None
    observed: float | None
    n: int
    method: str
    splits: Mapping[str, Coverage]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SignalAccuracy:
    """How far ratings are from people's, every model left out in turn, by the way in which judges are used.

    `nearest` says which way to take; None where too few models have both.
    """

    confidence: float
    hard: Accuracy
    scaled_hard: Accuracy = field(metadata={"key": "scaled-hard"})
    smoothed: Accuracy
    soft: Accuracy
    nearest: NearestWay | None


@dataclass(frozen=True, slots=True)
class VerdictConstant:
    """The one number of a method that shrinks verdicts, learned from people's labels: a `share` of a win that every
    verdict counts as, or a `factor` of all ratings; the other is None."""

    share: float | None = None
    factor: float | None = None


@dataclass(frozen=True, slots=True)
class ReliabilityCurve:
    """A judge's calibration in bins of score: (bins,) predicted and observed shares, sizes and counts."""

    battles: int
    agreement: float
    trend: float
    predicted: list[float]
    observed: list[float]
    score: list[float]
    count: list[int]


@dataclass(frozen=True, slots=True)
class JudgeByPeople:
    """One judge's calibration on people's labels; `leave_one_out` is None where too few models have both.

    `ece` is the expected calibration error of its probabilities, `ece_unscaled` what it would be with beta 1.
    """

    judge: str
    beta: float
    beta_se: float
    n_fit: int
    battles: int
    ece: float
    ece_unscaled: float
    leave_one_out: SignalAccuracy | None
    reliability: ReliabilityCurve
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SoftEloByPeople:
    """Soft-Elo beside people: models left out one at a time, conformal intervals, and each judge by itself."""

    leave_one_out: Mapping[str, Accuracy] | None
    conformal: ConformalCoverage | None
    baselines: SignalAccuracy | None
    judges_by_people: tuple[JudgeByPeople, ...]
