"""Agreement of ratings and orders with a reference, such as people's ratings of the same models.

`agreement` compares one set of ratings with the reference; `micro_macro` compares orders instruction by instruction
(micro) and over all instructions (macro), as *LLMs Judge Themselves: A Game-Theoretic Framework for Human-Aligned
Evaluation*, arXiv 2510.15746, does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError
from venire.ratings.agreement.chance_corrected import Coefficient, Statistic, coefficient_of, resample
from venire.ratings.data.statistics import (
    FEWEST_FOR_CORRELATION,
    FEWEST_FOR_INTERVAL,
    correlation_interval,
    kendall,
    least_squares,
    pearson,
    ranks,
    spearman,
    student,
)
from venire.ratings.data.validation import check_draws, check_level, float_array

_FEWEST_PLACES = 3
"""Models with a position on an instruction below which it says nothing of order."""

_FEW_MODELS = 10
"""Below this number of models a high correlation is common by chance, and the result notes this."""

_DECIMALS = 9
"""Positions that differ by less are equal: rounding error of a mean must not create an order."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Correlations and mean absolute error in Elo points over `models` shared models.

    A figure is None where it is undefined; `reason` then explains why. `kendall` is tau-b; `distance` is (1 - tau) / 2,
    which without ties is the share of pairs in opposite order. `spread` is how many times as wide as the reference's
    the ratings are spread (standard deviations), and `mae_line` the mean absolute error of the reference from its least
    squares line on the ratings: far from a spread of 1, `mae` says little else than the spread. `intervals` maps a
    figure's name to its lower and upper bound at `level`; `notes` explains why an interval is missing or unreliable.
    """

    pearson: float | None
    spearman: float | None
    mae: float | None
    models: int
    reason: str | None = None
    kendall: float | None = None
    distance: float | None = None
    spread: float | None = None
    mae_line: float | None = None
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    level: float = 0.95


def agreement(estimated: Mapping[str, float], reference: Mapping[str, float], *, level: float = 0.95) -> Agreement:
    """Pearson, Spearman, Kendall and mean absolute error between two sets of Elo points, over shared models.

    The error is computed after both are shifted to a common mean over these models, since only differences are
    meaningful. Intervals describe the variation over other models of the same kind, not the errors of the ratings
    themselves; fewer than four models have no figures. Raises `InputError` for a level outside (0, 1) and for a rating
    that is not finite.

    >>> from venire.ratings import agreement
    >>> found = agreement({"a": 1100, "b": 1000, "c": 900, "d": 950}, {"a": 1200, "b": 1010, "c": 890, "d": 900})
    >>> round(found.spearman, 3), round(found.mae, 1)
    (1.0, 43.8)
    """
    check_level(level)
    shared = sorted(estimated.keys() & reference.keys())
    if len(shared) < FEWEST_FOR_CORRELATION:
        reason = f"{len(shared)} models have both ratings; agreement needs at least {FEWEST_FOR_CORRELATION}"
        return Agreement(None, None, None, len(shared), reason, level=level)
    ours = _finite("estimated", estimated, shared)
    theirs = _finite("reference", reference, shared)
    errors = np.abs((ours - ours.mean()) - (theirs - theirs.mean()))
    mae, intervals = float(errors.mean()), {"mae": _mae_interval(errors, level)}
    if _alike(ours) or _alike(theirs):
        reason = "all ratings of one side are equal: no correlation exists"
        return Agreement(None, None, mae, len(shared), reason, intervals=intervals, level=level)
    found = {
        "pearson": float(pearson(ours[None], theirs)[0]),
        "spearman": float(spearman(ours[None], theirs)[0]),
        "kendall": float(kendall(ours[None], theirs)[0]),
    }
    for name, value in found.items():
        interval = correlation_interval(name, value, len(shared), level)
        if interval is not None:
            intervals[name] = interval
    if "kendall" in intervals:
        low, high = intervals["kendall"]
        intervals["distance"] = ((1.0 - high) / 2.0, (1.0 - low) / 2.0)
    return Agreement(
        pearson=found["pearson"],
        spearman=found["spearman"],
        mae=mae,
        models=len(shared),
        kendall=found["kendall"],
        distance=(1.0 - found["kendall"]) / 2.0,
        spread=float(ours.std() / theirs.std()),
        mae_line=float(np.abs(least_squares(ours, theirs)[2]).mean()),
        intervals=intervals,
        notes=_notes(found, intervals, len(shared), level),
        level=level,
    )


def _alike(ratings: NDArray[np.float64]) -> bool:
    """Whether ratings differ only by the rounding error of a fit, so that their correlation would be noise."""
    return bool(np.ptp(ratings) <= 1e-12 * np.abs(ratings).max())


def _finite(argument: str, ratings: Mapping[str, float], names: list[str]) -> NDArray[np.float64]:
    values = np.array([ratings[name] for name in names], dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        name = names[int(wrong[0])]
        raise InputError(f"{argument}: the rating of {name!r} is {ratings[name]}; leave models without a rating out")
    return values


def _mae_interval(errors: NDArray[np.float64], level: float) -> tuple[float, float]:
    """Student's t interval of the mean error, after undoing the shrinkage caused by removing the common mean.

    Removing the mean of n values shrinks each by the factor sqrt(1 - 1/n). The percentile bootstrap covers less: 0.70
    against 0.87 with 5 models, 0.88 against 0.91 with 15.
    """
    models = len(errors)
    centre = float(errors.mean()) * float(np.sqrt(models / (models - 1)))
    error = float(errors.std(ddof=1)) / float(np.sqrt(models))
    half = float(student.ppf(0.5 + level / 2.0, models - 1)) * error
    return max(0.0, centre - half), centre + half


def _notes(
    found: dict[str, float], intervals: dict[str, tuple[float, float]], models: int, level: float
) -> tuple[str, ...]:
    notes = []
    if models < _FEW_MODELS:
        chance = _by_chance(models, level)
        notes.append(
            f"{models} models are few: unrelated ratings reach a Pearson correlation of {chance:.2f} "
            f"in {1.0 - level:.0%} of cases"
        )
    for name, value in found.items():
        if name not in intervals:
            few = f"{FEWEST_FOR_INTERVAL[name]} models are needed"
            why = (
                few
                if models < FEWEST_FOR_INTERVAL[name]
                else f"at {value:+.0f} its error cannot be told from these models"
            )
            notes.append(f"no interval for {name}: {why}")
    return tuple(notes)


def _by_chance(models: int, level: float) -> float:
    """The absolute value of Pearson's r that unrelated normal ratings exceed in 1 - level of cases (two-sided)."""
    t = float(student.ppf(0.5 + level / 2.0, models - 2))
    return t / float(np.sqrt(models - 2 + t * t))


@dataclass(frozen=True, slots=True, eq=False)
class MicroMacro:
    """Agreement of positions with one rating per model; at most 1, and about 0 by chance.

    `pearson` and `kendall` (instructions,) are the coefficients of single instructions, NaN where the instruction is
    excluded as `tied` (all models have the same position) or `few` (fewer than three rated models have a position).
    `micro_pearson` and `micro_kendall` are their medians, with a bootstrap interval over instructions; quartiles are
    the lower and the upper one. `macro_pearson` compares the mean positions (models,) with the ratings,
    `macro_spearman` with their ranks, `macro_kendall` (tau-b) with their order. `models` are those present on both
    sides.
    """

    models: tuple[str, ...]
    instructions: int
    tied: int
    few: int
    pearson: NDArray[np.float64]
    kendall: NDArray[np.float64]
    micro_pearson: Coefficient
    micro_kendall: Coefficient
    pearson_quartiles: tuple[float, float] | None
    kendall_quartiles: tuple[float, float] | None
    mean_position: NDArray[np.float64]
    macro_pearson: Coefficient
    macro_spearman: Coefficient
    macro_kendall: Coefficient

    def summary(self) -> str:
        """Both levels, one line per coefficient."""
        lines = [f"{len(self.models)} models, {self.instructions} instructions ({self.tied} tied, {self.few} too few)"]
        for one, quartiles in (
            (self.micro_pearson, self.pearson_quartiles),
            (self.micro_kendall, self.kendall_quartiles),
        ):
            spread = "" if quartiles is None else f"; quartiles {quartiles[0]:.3f} and {quartiles[1]:.3f}"
            lines.append(one.summary() + spread)
        return "\n".join([*lines, *(one.summary() for one in (self.macro_pearson, self.macro_spearman))])


def micro_macro(
    positions: ArrayLike,
    models: Sequence[str],
    reference: Mapping[str, float],
    *,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
) -> MicroMacro:
    """Compare `positions` (instructions, models), 1 for the best and NaN where there is none, with ratings by model.

    Positions are negated, so that agreement is positive. Where models without a rating lie between the others, the
    positions of the others are renumbered. An instruction's Pearson correlation is that of its positions with the ranks
    of the ratings: for an order without ties it is Spearman's. Intervals resample instructions (`replicates` times,
    with `seed`): they describe the variation over instructions, not over models. Raises `InputError` for positions of
    another shape, a rating that is not finite, and fewer than three common models.

    >>> from venire.ratings import micro_macro
    >>> found = micro_macro([[1, 2, 3], [1, 3, 2], [2, 1, 3]], list("abc"), {"a": 3, "b": 2, "c": 1}, replicates=100)
    >>> found.models
    ('a', 'b', 'c')
    """
    check_level(level)
    check_draws(replicates, seed)
    table, rated = _table(positions, models), _shared(models, reference)
    ours, theirs = _among(table, rated), np.array([reference[models[code]] for code in rated], dtype=np.float64)
    pearson, kendall, few = _by_instruction(ours, theirs)
    defined = np.isfinite(pearson)

    def drawn(name: str, value: float, statistic: Statistic, undefined: str) -> Coefficient:
        found = resample(statistic, len(ours), level=level, replicates=replicates, seed=seed)
        return coefficient_of(name, value, int(defined.sum()), found, level=level, undefined=undefined)

    def median(name: str, values: NDArray[np.float64]) -> Coefficient:
        return drawn(name, _middle(values), lambda weights: medians(values, weights), "no instruction has one")

    def macro(name: str) -> Coefficient:
        def statistic(weights: NDArray[np.float64]) -> NDArray[np.float64]:
            return _correlations(name, _means(ours, weights), theirs)

        (value,) = statistic(np.ones((1, len(ours))))
        return drawn(f"macro {name}", float(value), statistic, "a model has no position, or all of one side are equal")

    return MicroMacro(
        models=tuple(models[code] for code in rated),
        instructions=int(defined.sum()),
        tied=int(np.count_nonzero(~defined & ~few)),
        few=int(np.count_nonzero(few)),
        pearson=pearson,
        kendall=kendall,
        micro_pearson=median("micro pearson", pearson),
        micro_kendall=median("micro kendall", kendall),
        pearson_quartiles=_quartiles(pearson),
        kendall_quartiles=_quartiles(kendall),
        mean_position=_means(ours, np.ones((1, len(ours))))[0],
        macro_pearson=macro("pearson"),
        macro_spearman=macro("spearman"),
        macro_kendall=macro("kendall"),
    )


def _table(positions: ArrayLike, models: Sequence[str]) -> NDArray[np.float64]:
    table = float_array("positions", positions)
    if table.ndim != 2 or table.shape[1] != len(models):
        raise InputError(f"positions has shape {table.shape}; give a row an instruction and a column a model")
    if np.isinf(table).any():
        row, code = np.argwhere(np.isinf(table))[0]
        raise InputError(f"positions, row {row}: {models[code]!r} has {table[row, code]}; NaN is no position")
    return np.asarray(np.round(table, _DECIMALS), dtype=np.float64)


def _shared(models: Sequence[str], reference: Mapping[str, float]) -> NDArray[np.intp]:
    """Codes of the models that have a rating, sorted by name, so that the input order has no effect."""
    common = sorted((name, code) for code, name in enumerate(models) if name in reference)
    if len(common) < _FEWEST_PLACES:
        raise InputError(
            f"{len(common)} models have a reference rating; agreement needs at least {_FEWEST_PLACES}: give both the "
            "same names"
        )
    if wrong := [name for name, _ in common if not np.isfinite(reference[name])]:
        raise InputError(f"reference: the rating of {wrong[0]!r} is {reference[wrong[0]]}; leave it out")
    return np.array([code for _, code in common], dtype=np.intp)


def _among(table: NDArray[np.float64], rated: NDArray[np.intp]) -> NDArray[np.float64]:
    """The positions of the rated models, renumbered where unrated models lie between them."""
    ours, there = table[:, rated], np.isfinite(table)
    if there.sum() == there[:, rated].sum():
        return ours
    return np.where(there[:, rated], ranks(np.where(there[:, rated], ours, np.inf)), np.nan)


def _by_instruction(
    ours: NDArray[np.float64], theirs: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Pearson with ranks and Kendall per row, and rows with too few models; rows with equal models are batched."""
    there = np.isfinite(ours)
    few = there.sum(axis=1) < _FEWEST_PLACES
    linear, tau = np.full((2, len(ours)), np.nan)
    kinds, kind = np.unique(there, axis=0, return_inverse=True)
    for number, present in enumerate(kinds):
        if present.sum() < _FEWEST_PLACES:
            continue
        rows = kind == number
        part = ours[np.ix_(rows, present)]
        linear[rows] = pearson(-part, ranks(theirs[present]))
        tau[rows] = kendall(-part, theirs[present])
    return linear, tau, few


def _correlations(name: str, positions: NDArray[np.float64], theirs: NDArray[np.float64]) -> NDArray[np.float64]:
    """One correlation of each row of mean positions (rows, models) with ratings; NaN where a model has none."""
    whole = np.isfinite(positions).all(axis=1)
    found = np.full(len(positions), np.nan)
    part = -positions[whole]
    if name == "pearson":
        found[whole] = pearson(part, theirs)
    elif name == "spearman":
        found[whole] = spearman(part, theirs)
    else:
        found[whole] = kendall(part, theirs)
    return found


def _means(ours: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean positions (draws, models) under weights of instructions (draws, instructions); NaN without any."""
    there = np.isfinite(ours)
    total = weights @ there.astype(np.float64)
    sums = weights @ np.where(there, ours, 0.0)
    means = np.where(total > 0.0, sums / np.where(total > 0.0, total, 1.0), np.nan)
    return np.asarray(np.round(means, _DECIMALS), dtype=np.float64)


def medians(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The median of the non-missing values (instructions,), weighted by how often a draw contains each (draws, ...)."""
    there = np.flatnonzero(np.isfinite(values))
    order = there[np.argsort(values[there], kind="stable")]
    counted = np.cumsum(weights[:, order], axis=1)
    total = counted[:, -1] if len(order) else np.zeros(len(weights))
    found = np.full(len(weights), np.nan)
    some = total > 0.0
    ordered, counted, total = values[order], counted[some], total[some]
    lower = (counted > np.floor((total - 1.0) / 2.0)[:, None]).argmax(axis=1) if some.any() else np.zeros(0, int)
    upper = (counted > np.floor(total / 2.0)[:, None]).argmax(axis=1) if some.any() else np.zeros(0, int)
    found[some] = (ordered[lower] + ordered[upper]) / 2.0 if some.any() else found[some]
    return found


def _middle(values: NDArray[np.float64]) -> float:
    there = values[np.isfinite(values)]
    return float(np.median(there)) if len(there) else float("nan")


def _quartiles(values: NDArray[np.float64]) -> tuple[float, float] | None:
    there = values[np.isfinite(values)]
    if not len(there):
        return None
    lower, upper = np.quantile(there, [0.25, 0.75])
    return float(lower), float(upper)
