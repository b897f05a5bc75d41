"""Interval forecast: the expected width of rating intervals, from the design only, before any verdict.

A plan determines the parts of a fit's cluster-robust errors. The number of battles of each pair gives the information.
The pairs on each instruction give the scatter of the scores, given the variance and the correlations of judgments about
the ratings. Growing a plan scales these sums, so each budget has a width and each width a budget. Only designs that
connect all models have widths.

The design effect describes that scatter. A model of independent verdicts treats each as a coin toss with the odds of
the ratings. Real verdicts vary less (two orders are averaged, ties lie in the middle) and are correlated: judges agree
about a battle beyond the ratings, and a completion that is better than its model's others wins all its battles. These
shares are moments of residuals, so they can be measured on a pilot and applied to a plan that is not judged yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from venire.arena.errors import InputError
from venire.arena.scale import POINTS_PER_LOGIT
from venire.ratings.data.judgments import Judgments, combine_keys
from venire.ratings.data.statistics import student
from venire.ratings.data.validation import check_level
from venire.ratings.pairwise.covariance import inverse_laplacian

Codes = NDArray[np.int64]

_PRIOR_PAIRS = 100
"""Number of pairs of judgments that a default counts as, relative to those measured."""
DEFAULT_SPREAD = 1.0
"""Prior standard deviation of the ratings of unjudged models, in the logits of a judge."""
_MAX_SCALE = 2.0**40
_HALVINGS = 80
Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Battles = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class DesignEffect:
    """Design effect: moments of the residuals of judgments, outcome minus expectation.

    `scatter` is their variance over p (1 - p). The others are correlations: of two `judges` about one battle, of the
    `repeats` of one judge about one battle, and of two battles on one instruction that show the same completion of one
    model (`completions`; with the opposite sign where it is on the other side). `judgments` is the number measured; 0:
    a default. `judge_pairs` and `completion_pairs` are the numbers of pairs that these two correlations were measured
    on. `ties` and `flips` are shares of the judgments measured.
    """

    scatter: float
    judges: float
    completions: float
    repeats: float
    judgments: int = 0
    judge_pairs: int = 0
    completion_pairs: int = 0
    ties: float | None = None
    flips: float | None = None


DEFAULT_EFFECT = DesignEffect(scatter=0.5, judges=0.25, completions=0.2, repeats=0.75)
"""The default without measurements: the median of fourteen recorded judges and more (docs/planning.md)."""

DEFAULT_EFFECT_ONE_ORDER = replace(DEFAULT_EFFECT, scatter=0.93)
"""The same default where a battle is shown in one order."""


class JudgeKind(NamedTuple):
    """How far judges may be from the default, as factors: on gaps of ratings in their log odds, on design effects."""

    gaps: float
    scatter: float
    judges: float
    completions: float

    def of(self, effect: DesignEffect) -> tuple[float, DesignEffect]:
        """The factor on gaps, and the effect, as far as the default and not measurements determine them.

        A pilot that spreads its battles thinly has many judgments, and few that share a completion.
        """

        def part(factor: float, measured: int) -> float:
            return float(factor ** np.sqrt(_PRIOR_PAIRS / (_PRIOR_PAIRS + measured)))

        grown = replace(
            effect,
            scatter=effect.scatter * part(self.scatter, effect.judgments),
            judges=min(1.0, effect.judges * part(self.judges, effect.judge_pairs)),
            completions=min(1.0, effect.completions * part(self.completions, effect.completion_pairs)),
        )
        return part(self.gaps, effect.judgments), grown


FLAT, SHARP = JudgeKind(0.35, 0.5, 0.4, 0.5), JudgeKind(1.4, 1.25, 1.4, 1.25)
"""Judges that hardly follow the ratings and often call ties, and decided ones: chosen so that half widths of 80 % of
simulated campaigns are between what both would show (docs/planning.md)."""

_TAIL = 1.2816
"""Standard deviations on either side of the middle 80 % of a normal distribution."""


def design_effect(data: Judgments, logits: Vector, default: DesignEffect = DEFAULT_EFFECT) -> DesignEffect:
    """Design effect of `data` about ratings `logits` (models,), shrunk to `default` as if by 100 more pairs.

    Rows of models without an estimate are left out. Raises `InputError` where the ratings are of other models.
    """
    if logits.shape != (len(data.models),):
        raise InputError(f"logits has shape {logits.shape}; give one value for each of {len(data.models)} models")
    rated = np.isfinite(logits)
    rows = data.select(rated[data.model_a] & rated[data.model_b])
    if not len(rows) or not rows.instructions:
        return default
    share = expit(logits[rows.model_a] - logits[rows.model_b])
    size = np.sqrt(share * (1.0 - share))
    residual = rows.y - share
    # Ratings fitted to the same rows absorb part of the scatter.
    free = len(rows) - (len(np.unique([rows.model_a, rows.model_b])) - 1)
    grown = len(rows) / free if free > 0 else 1.0
    scatter = _shrunken(grown * float(residual @ residual), float(size @ size), len(rows), default.scatter)
    sides = [column.astype(np.int64) for column in (rows.instruction, rows.model_a, rows.model_b)]
    battle = combine_keys(*sides)
    asked = combine_keys(battle, rows.judge.astype(np.int64))
    again, any_judge = _with_same_key(asked, residual, size), _with_same_key(battle, residual, size)
    others = _Sums(*(whole - part for whole, part in zip(any_judge, again, strict=True)))
    shown = _with_shared_completion(sides, battle, residual, size)
    return DesignEffect(
        scatter,
        judges=_correlation(others, scatter, default.judges),
        completions=_correlation(shown, scatter, default.completions),
        repeats=_correlation(again, scatter, default.repeats),
        judgments=len(rows),
        judge_pairs=round(others.pairs),
        completion_pairs=round(shown.pairs),
        ties=float(np.mean((rows.y == 0.5) & ~rows.flipped)),
        flips=float(np.mean(rows.flipped)),
    )


class _Sums(NamedTuple):
    """Over pairs of rows: sum of products of residuals, that sum at a correlation of 1, and the number of pairs."""

    products: float
    sizes: float
    pairs: float


def _with_same_key(key: Codes, residual: Vector, size: Vector) -> _Sums:
    """Over all pairs of rows with one key."""
    group = np.unique(key, return_inverse=True)[1]

    def over_pairs(values: Vector) -> float:
        return 0.5 * float((np.bincount(group, values) ** 2).sum() - values @ values)

    return _Sums(over_pairs(residual), over_pairs(size), over_pairs(np.ones(len(key))))


def _with_shared_completion(sides: list[Codes], battle: Codes, residual: Vector, size: Vector) -> _Sums:
    """Over all pairs of rows that share one completion; the sign is reversed where it is on the other side."""
    first, group = np.unique(battle, return_index=True, return_inverse=True)[1:]
    instruction, a, b = (side[first] for side in sides)
    residuals, sizes, number = (np.bincount(group, values) for values in (residual, size, np.ones(len(group))))
    completion = combine_keys(np.tile(instruction, 2), np.concatenate([a, b]))
    found = _with_same_key(completion, np.concatenate([residuals, -residuals]), np.tile(sizes, 2))
    return found._replace(pairs=_with_same_key(completion, np.tile(number, 2), np.tile(number, 2)).products)


def _shrunken(above: float, below: float, pairs: float, default: float) -> float:
    """A ratio of sums over `pairs` pairs, shrunk to a default that counts as some more pairs."""
    found = above / below if below > 0.0 else default
    return (pairs * found + _PRIOR_PAIRS * default) / (pairs + _PRIOR_PAIRS)


def _correlation(found: _Sums, scatter: float, default: float) -> float:
    """The correlation, at least 0: a negative value is attributed to chance, and a plan should not rely on it."""
    return min(1.0, max(0.0, _shrunken(found.products, scatter * found.sizes, found.pairs, default)))


@dataclass(frozen=True, slots=True, eq=False)
class IntervalForecast:
    """Expected errors of a design, and of the same design at a larger size: see `half_width` and `size_needed`.

    `bread` (n, n) is the inverse information of the design in logits, `alone` (n, n) the scatter of its scores from
    single battles and `shared` (n, n) that from battles that share a completion. `instructions` is the number with a
    battle; `grows` states whether a larger plan has more of them, or more battles on each.
    """

    models: tuple[str, ...]
    bread: Matrix
    alone: Matrix
    shared: Matrix
    instructions: int
    grows: bool
    level: float = 0.95

    def half_width(self, times: float = 1.0) -> Vector:
        """Half the expected interval width (n,) of each model in Elo points, for a plan `times` as large.

        This is the interval of the leaderboard from clustered errors: each rating relative to the mean of all. Infinite
        where only one instruction has battles.
        """
        variance, quantile = self.variance(times), self._quantile(times)
        if quantile == np.inf:
            return np.full(len(self.models), np.inf)
        return np.asarray(POINTS_PER_LOGIT * quantile * np.sqrt(variance))

    def variance(self, times: float = 1.0) -> Vector:
        """The expected variance (n,) of each rating about the mean of all, in square logits."""
        return np.asarray(np.maximum(np.einsum("ij,jk,ik->i", self.bread, self._scatter(times), self.bread), 0.0))

    def criterion(self, aim: Matrix) -> float:
        """The expected variance of the target, in square logits: tr(L V), where `aim` (n, n) is L."""
        together = self.bread @ self._scatter(1.0) @ self.bread
        return max(0.0, float((together * aim).sum()))

    def _scatter(self, times: float) -> Matrix:
        """The scatter of the scores (n, n) of a plan `times` as large, divided by `times` squared."""
        if not times > 0.0:
            raise InputError(f"times is {times}; give how often the plan is made, more than 0")
        return np.asarray(self.alone / times + (self.shared / times if self.grows else self.shared))

    def model_half_width(self, times: float = 1.0) -> Vector:
        """`half_width` (n,) by the model alone, as if judgments were coin tosses; stopping rules compare with it."""
        return np.asarray(POINTS_PER_LOGIT * self._quantile(times) * np.sqrt(np.diagonal(self.bread) / times))

    def _quantile(self, times: float) -> float:
        """Student's t quantile, by the number of instructions of a plan `times` as large; infinite for one."""
        clusters = self.instructions * times if self.grows else float(self.instructions)
        return float(student.ppf(0.5 + self.level / 2.0, clusters - 1.0)) if clusters > 1.0 else np.inf

    def size_needed(self, half: float) -> float | None:
        """The factor by which the plan must grow for the median half width to be `half` Elo points.

        None: more battles on these instructions cannot reach it.
        """
        if not half > 0.0:
            raise InputError(f"half is {half}; give Elo points, more than 0")
        low, high = 1.0 / _MAX_SCALE, _MAX_SCALE
        if float(np.median(self.half_width(high))) > half:
            return None
        for _ in range(_HALVINGS):
            middle = float(np.sqrt(low * high))
            low, high = (middle, high) if float(np.median(self.half_width(middle))) > half else (low, middle)
        return high


def forecast_intervals(
    models: Sequence[str],
    battles: Battles,
    logits: Vector,
    *,
    judges: int = 1,
    repeats: int = 1,
    effect: DesignEffect = DEFAULT_EFFECT,
    grows: bool = True,
    spread: float = DEFAULT_SPREAD,
    level: float = 0.95,
    weight: Vector | None = None,
) -> IntervalForecast:
    """The expected errors of a design: `battles` (battles, 3) are codes of two models and of an instruction.

    `logits` (models,) are the assumed ratings, on the scale of the judges' own log odds. Where a rating is NaN, a
    battle carries the average information for models whose ratings have the standard deviation `spread`. Each of
    `judges` gives `repeats` judgments of each battle. `weight` (battles,) is how often each is judged, once by default.
    Raises `InputError` for impossible numbers, and where battles do not connect all models.
    """
    check_level(level)
    if judges < 1 or repeats < 1 or not spread >= 0.0:
        raise InputError(
            f"judges is {judges}, repeats {repeats} and spread {spread}; give 1 or more, and no less than 0"
        )
    size = len(models)
    if logits.shape != (size,) or (len(battles) and not 0 <= battles[:, :2].min() <= battles[:, :2].max() < size):
        raise InputError(f"logits and battles are of other models than the {size} that were named")
    often = np.ones(len(battles)) if weight is None else np.asarray(weight, dtype=np.float64)
    a, b = battles[:, 0].astype(np.intp), battles[:, 1].astype(np.intp)
    noise = _variance(logits[a] - logits[b], spread)
    each = float(judges * repeats)
    coupling = _symmetric(a, b, each * often * noise, size)
    joined = _symmetric(a, b, often, size) > 0.0  # where ratings are far apart, the information may be 0
    everybody = np.ones(size, dtype=np.bool_)
    bread = inverse_laplacian(coupling, joined, ridge=0.0, free=everybody, models=tuple(models))
    # Per battle: the number of its judgments, corrected for the correlation of repeats and judges.
    again = 1.0 + (repeats - 1) * effect.repeats + (judges - 1) * repeats * effect.judges
    alone = effect.scatter * each * again * _laplacian(_symmetric(a, b, often * noise, size))
    met = _met(battles, np.sqrt(noise) * often, size)
    itself = 2.0 * _laplacian(_symmetric(a, b, often**2 * noise, size))
    # A battle's own scatter includes the merits of both its completions, so each has at most half of it.
    merit = min(effect.completions, 0.5 * again / each)
    shared = effect.scatter * merit * each**2 * (met - itself)
    count = len(np.unique(battles[:, 2][often > 0.0]))
    return IntervalForecast(tuple(models), bread, alone, shared, count, grows, level)


@dataclass(frozen=True, slots=True, eq=False)
class ForecastRange:
    """A forecast, and what it would be of `flat` and of `sharp` judges."""

    expected: IntervalForecast
    flat: IntervalForecast
    sharp: IntervalForecast

    def median(self, times: float = 1.0) -> float:
        """The expected median half width over the models in Elo points, for a plan `times` as large."""
        return float(np.median(self.expected.half_width(times)))

    def band(self, times: float = 1.0) -> tuple[float, float]:
        """Where the median half width over the models is seen in 80 % of campaigns, in Elo points.

        From flat to sharp judges, and wider by how far errors of so few clusters are off themselves.
        """
        middle = self.median(times)
        if not np.isfinite(middle):
            return middle, middle
        clusters = self.expected.instructions * (times if self.expected.grows else 1.0)
        chance = _TAIL / np.sqrt(2.0 * max(clusters - 1.0, 1.0))
        below, above = (
            np.hypot(max(0.0, sign * np.log(float(np.median(edge.half_width(times))) / middle)), chance)
            for sign, edge in ((-1.0, self.flat), (1.0, self.sharp))
        )
        return middle * float(np.exp(-below)), middle * float(np.exp(above))


def forecast_range(
    models: Sequence[str],
    battles: Battles,
    logits: Vector,
    *,
    judges: int = 1,
    repeats: int = 1,
    effect: DesignEffect = DEFAULT_EFFECT,
    grows: bool = True,
    weight: Vector | None = None,
) -> ForecastRange:
    """`forecast_intervals` for judges as expected, and for flat and sharp ones as far as nothing was measured yet."""

    def of(gaps: float, like: DesignEffect) -> IntervalForecast:
        return forecast_intervals(
            models, battles, logits * gaps, judges=judges, repeats=repeats, effect=like, grows=grows,
            spread=DEFAULT_SPREAD * gaps, weight=weight,
        )  # fmt: skip

    return ForecastRange(of(1.0, effect), of(*FLAT.of(effect)), of(*SHARP.of(effect)))


def _variance(gap: Vector, spread: float) -> Vector:
    """p (1 - p) of each battle; for an unknown gap its mean over pairs from a normal distribution of ratings."""
    points, weights = np.polynomial.hermite_e.hermegauss(41)
    drawn = np.sqrt(2.0) * spread * points
    usual = float(weights @ (expit(drawn) * expit(-drawn)) / weights.sum())
    known = np.where(np.isnan(gap), 0.0, gap)
    return np.where(np.isnan(gap), usual, expit(known) * expit(-known))


def _symmetric(a: NDArray[np.intp], b: NDArray[np.intp], value: Vector, size: int) -> Matrix:
    """Sums by pair (n, n), both ways."""
    square = np.bincount(a * size + b, value, size * size).reshape(size, size)
    return np.asarray(square + square.T)


def _laplacian(coupling: Matrix) -> Matrix:
    return np.asarray(np.diag(coupling.sum(axis=1)) - coupling)


def _met(battles: Battles, value: Vector, size: int) -> Matrix:
    """Over instructions, the sum of squares (n, n) of the Laplacian of its battles with these values.

    If each completion on an instruction has a merit, that Laplacian maps the merits to the scores.
    """
    instruction = np.unique(battles[:, 2], return_inverse=True)[1].astype(np.int64)
    a, b = battles[:, 0].astype(np.int64), battles[:, 1].astype(np.int64)
    row = np.concatenate([a, b, a, b])
    column = np.concatenate([a, b, b, a]) + size * np.tile(instruction, 4)
    values = np.concatenate([value, value, -value, -value])
    width = size * (int(instruction.max(initial=0)) + 1)
    merits = csr_array((values, (row, column)), shape=(size, width))
    return np.asarray((merits @ merits.T).toarray())
