"""Models that no chain of wins joins both ways are rated apart, each group in a gauge of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings

__all__ = ["Rated", "among", "joined", "largest", "unrated"]

_MEAN = "mean 1000"


@dataclass(frozen=True, slots=True, eq=False)
class Rated:
    """Ratings as a leaderboard shows them; arrays are (models,).

    `lo`, `hi` and `se` are in Elo points, NaN where unknown; ranks and tiers count from 1 and are 0 where unknown,
    `best` is the chance that the true rating is the highest, as far as it is known. `group` counts
    from 1 in the order of `groups`; ranks and ratings compare within a group alone. `reasons` says why a model has no
    rating, `figures` are the method's own figures by name, `without_estimate` the bootstrap replicates left out.
    `position` is the place in the order of a method that gives an order and no ratings (`order.Order`), NaN without
    one. `judge_figures` are what a method found of `judges`, (judges,) by name.
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
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    position: NDArray[np.float64] | None = None
    judges: tuple[str, ...] = ()
    judge_figures: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)


def among(data: Comparisons, codes: Sequence[int] | NDArray[np.intp]) -> Comparisons:
    """The comparisons between some models, given by codes in the order wanted; clusters and judges keep their codes."""
    place = np.full(len(data.models), -1, dtype=np.int32)
    place[codes] = np.arange(len(codes), dtype=np.int32)
    rows = data.select((place[data.a] >= 0) & (place[data.b] >= 0))
    return replace(rows, models=tuple(data.models[code] for code in codes), a=place[rows.a], b=place[rows.b])


def joined(
    data: Comparisons,
    groups: Sequence[NDArray[np.intp]],
    rate: Callable[[Comparisons], Rated],
    alone: Callable[[int], str],
) -> Rated:
    """Rate each group of codes apart and put the results side by side; `alone` says why a single model has none.

    Raises what `rate` raises.
    """
    found = {number: rate(among(data, codes)) for number, codes in enumerate(groups, start=1) if len(codes) > 1}
    blank, size = unrated(data, {}), len(data.models)
    logits = np.full(size, np.nan)
    figures: dict[str, NDArray[np.float64]] = {}
    reasons: dict[str, str] = {}
    for number, codes in enumerate(groups, start=1):
        blank.group[codes] = number
        part = found.get(number)
        if part is None:
            reasons[data.models[int(codes[0])]] = alone(int(codes[0]))
            continue
        logits[codes] = part.ratings.logits
        for column in ("lo", "hi", "se", "rank_lo", "rank_hi", "tier", "best"):
            getattr(blank, column)[codes] = getattr(part, column)
        reasons |= part.reasons
        for name, figure in part.figures.items():
            figures.setdefault(name, np.full(size, np.nan))[codes] = figure
    first = next(iter(found.values()), None)
    whole = replace(
        blank.ratings,
        method="" if first is None else first.ratings.method,
        logits=logits,
        gauge=_MEAN if len(groups) < 2 else _gauge(found),
        errors="none" if first is None else first.ratings.errors,
        degrees=np.inf if first is None else first.ratings.degrees,
    )
    return replace(
        blank,
        ratings=whole,
        groups=tuple(tuple(data.models[code] for code in codes) for codes in groups),
        reasons=reasons,
        figures=figures,
        fits=tuple({**fit, "group": number} for number, part in found.items() for fit in part.fits),
        without_estimate=max((part.without_estimate for part in found.values()), default=0),
    )


def _gauge(found: Mapping[int, Rated]) -> str:
    """What ratings of groups are counted from: an anchor holds its own group alone."""
    held = [f"; group {number} {part.ratings.gauge}" for number, part in found.items() if part.ratings.gauge != _MEAN]
    return f"{_MEAN} in each group{''.join(held)}"


def largest(rated: Rated) -> int | None:
    """Number of the group with the most models rated or in an order; of equals, the first. None where there is none."""
    there = np.isfinite(rated.ratings.logits if rated.position is None else rated.position)
    sizes = np.bincount(rated.group[there], minlength=1)
    return int(np.argmax(sizes)) if sizes.any() else None


def unrated(data: Comparisons, reasons: Mapping[str, str]) -> Rated:
    """A table of models without any rating; `reasons` says why by the model's name."""
    size = len(data.models)
    nothing, lo, hi, se, best = (np.full(size, np.nan) for _ in range(5))
    rank_lo, rank_hi, tier = (np.zeros(size, dtype=np.int64) for _ in range(3))
    return Rated(
        ratings=Ratings(method="none", models=data.models, logits=nothing, battles=data.played),
        lo=lo,
        hi=hi,
        se=se,
        rank_lo=rank_lo,
        rank_hi=rank_hi,
        tier=tier,
        best=best,
        group=np.ones(size, dtype=np.int64),
        groups=(data.models,) if size else (),
        reasons=reasons,
    )
