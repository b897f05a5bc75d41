"""How well orders agree with what people say of the models: instruction by instruction (micro), and over all (macro).

Source: *LLMs Judge Themselves: A Game-Theoretic Framework for Human-Aligned Evaluation*, arXiv 2510.15746.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError
from venire.ratings.agreement.agreement import MINIMUM_MODELS
from venire.ratings.agreement.coefficient import Coefficient, Statistic, coefficient_of, resample
from venire.ratings.data.statistics import kendall, pearson, ranks, spearman
from venire.ratings.data.validation import check_draws, check_level

__all__ = ["MicroMacro", "medians", "micro_macro"]

_DECIMALS = 9
"""Positions that differ by less are equal: the last bits of a mean make no order."""


@dataclass(frozen=True, slots=True, eq=False)
class MicroMacro:
    """Agreement of positions with one rating a model, 1 at best and about 0 by chance.

    `pearson` and `kendall` (instructions,) are the coefficients of single instructions, NaN where `tied` (all models
    have one position) or `few` (fewer than three rated models have one) left it out. `micro_pearson` and
    `micro_kendall` are their medians, with an interval over instructions drawn again; quartiles are the lower and the
    upper one. `macro_pearson` sets the mean positions (models,) against ratings, `macro_spearman` against their
    ranks, `macro_kendall` (tau-b) against their order. `models` are those that both sides know.
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
        """Both levels, a line each coefficient."""
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

    Positions are turned round, so that agreement is positive; where models without a rating stand between the others,
    these are counted anew. An instruction's Pearson correlation is that of its
    positions with the ranks of the ratings: for an order without ties it is Spearman's. Intervals draw instructions
    again (`replicates` times, by `seed`): they say what other instructions would give, not other models. Raises
    `InputError` for positions of another shape, a rating that is not finite, and fewer than three common models.
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
    table = np.asarray(positions, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(models):
        raise InputError(f"positions has shape {table.shape}; give a row an instruction and a column a model")
    if np.isinf(table).any():
        row, code = np.argwhere(np.isinf(table))[0]
        raise InputError(f"positions, row {row}: {models[code]!r} has {table[row, code]}; NaN is no position")
    return np.asarray(np.round(table, _DECIMALS), dtype=np.float64)


def _shared(models: Sequence[str], reference: Mapping[str, float]) -> NDArray[np.intp]:
    """Codes of the models that have a rating, by name, so that their order changes nothing."""
    common = sorted((name, code) for code, name in enumerate(models) if name in reference)
    if len(common) < MINIMUM_MODELS:
        raise InputError(
            f"{len(common)} models have a reference rating; agreement needs at least {MINIMUM_MODELS}: give both the "
            "same names"
        )
    if wrong := [name for name, _ in common if not np.isfinite(reference[name])]:
        raise InputError(f"reference: the rating of {wrong[0]!r} is {reference[wrong[0]]}; leave it out")
    return np.array([code for _, code in common], dtype=np.intp)


def _among(table: NDArray[np.float64], rated: NDArray[np.intp]) -> NDArray[np.float64]:
    """The positions of the rated models: as they are, or counted anew where others stand between them."""
    ours, there = table[:, rated], np.isfinite(table)
    if there.sum() == there[:, rated].sum():
        return ours
    return np.where(there[:, rated], ranks(np.where(there[:, rated], ours, np.inf)), np.nan)


def _by_instruction(
    ours: NDArray[np.float64], theirs: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Pearson with ranks and Kendall of each row, and which rows have too few models; rows of like models at once."""
    there = np.isfinite(ours)
    few = there.sum(axis=1) < MINIMUM_MODELS
    linear, tau = np.full((2, len(ours)), np.nan)
    kinds, kind = np.unique(there, axis=0, return_inverse=True)
    for number, present in enumerate(kinds):
        if present.sum() < MINIMUM_MODELS:
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
    """The median of the values (instructions,) that there are, each counted as often as a draw says (draws, ...)."""
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
