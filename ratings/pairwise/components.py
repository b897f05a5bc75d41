"""Connected components of the graph of wins: existence of ratings, and rating each component separately.

A finite maximum exists if and only if wins lead from every model to every other (Ford 1957); this is checked before
fitting, not detected from a diverging optimiser. Models held at known ratings cannot diverge from one another, so here
they count as one. Components that no chain of wins connects are rated separately, each in a separate gauge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from venire.arena.errors import VenireError
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Rated, Ratings
from venire.ratings.data.wins import WinCounts, edges, ordered_groups

_MEAN = "mean 1000"


class SeparatedError(VenireError):
    """No finite estimate exists; `groups` holds the names of the models that can be rated together, strongest first."""

    def __init__(self, groups: tuple[tuple[str, ...], ...]) -> None:
        shown = "; ".join(_few(group) for group in groups[:5]) + ("; ..." if len(groups) > 5 else "")
        super().__init__(
            f"the models fall into {len(groups)} groups without wins both ways between them: {shown}; "
            "rate each group apart, or judge more battles between them"
        )
        self.groups = groups


def strong_components(wins: NDArray[np.float64]) -> list[NDArray[np.intp]]:
    """Strongly connected components of the graph of wins, from pair counts (n, n): models that can be rated together.

    Each holds ascending positions. A group that only beats another group comes before it; if wins do not determine the
    order, the larger group comes first, then the group with the smaller position.
    """
    winner, loser = np.nonzero(wins)
    return ordered_groups(len(wins), winner, loser)


def weak_components(counts: WinCounts) -> int:
    """Number of weakly connected components: sets of models that were never compared with one another."""
    if counts.joins_all(np.ones(len(counts.first), dtype=np.bool_)):
        return 1
    return int(connected_components(edges(len(counts.models), counts.first, counts.second), directed=False)[0])


def tie_parameter_exists(
    counts: WinCounts,
    won: NDArray[np.float64],
    lost: NDArray[np.float64],
    tied: NDArray[np.float64],
    *,
    ridged: bool,
    fixed: NDArray[np.bool_] | None = None,
) -> bool:
    """Whether the tie parameter is finite, given that the ratings themselves exist and there is a tie.

    It is not finite if there are ratings in which each win is by a step or more and each tie within a step: scaling
    these up, together with the tie parameter, increases the likelihood without limit. This is a system of difference
    constraints, which is feasible if and only if no cycle has more wins than ties. Wins that contradict one another
    already form a cycle of this kind. Models marked in `fixed` (n,) cannot be scaled apart and count as one. A ridge
    holds the ratings, so any win is enough.
    """
    size, up, down = len(counts.models), won > 0.0, lost > 0.0
    winner = np.concatenate([counts.first[up], counts.second[down]])
    loser = np.concatenate([counts.second[up], counts.first[down]])
    if ridged or not len(winner):
        return len(winner) > 0
    if connected_components(edges(size, winner, loser), directed=True, connection="strong")[0] < size:
        return True
    tie = tied > 0.0
    held = np.zeros(0, dtype=np.intp) if fixed is None else np.flatnonzero(fixed)
    above = np.concatenate([winner, counts.first[tie], counts.second[tie], held])
    below = np.concatenate([loser, counts.second[tie], counts.first[tie], np.roll(held, 1)])
    step = np.repeat([1, -1, 0], [len(winner), len(above) - len(winner) - len(held), len(held)])
    height = np.zeros(size, dtype=np.int64)
    for _ in range(size):
        raised = height.copy()
        np.maximum.at(raised, above, height[below] + step)
        if np.array_equal(raised, height):
            return False
        height = raised
    return True


def _few(group: Sequence[str]) -> str:
    return ", ".join(group[:5]) + (f" and {len(group) - 5} more" if len(group) > 5 else "")


def restrict_models(data: Comparisons, codes: Sequence[int] | NDArray[np.intp]) -> Comparisons:
    """The comparisons between some models, given by codes in the desired order; clusters and judges keep codes."""
    if np.array_equal(codes, np.arange(len(data.models))):
        return data  # with what was counted of it
    place = np.full(len(data.models), -1, dtype=np.int32)
    place[codes] = np.arange(len(codes), dtype=np.int32)
    rows = data.select((place[data.a] >= 0) & (place[data.b] >= 0))
    return replace(rows, models=tuple(data.models[code] for code in codes), a=place[rows.a], b=place[rows.b])


def rate_groups(
    data: Comparisons,
    groups: Sequence[NDArray[np.intp]],
    rate: Callable[[Comparisons], Rated],
    alone: Callable[[int], str],
) -> Rated:
    """Rate each group of codes separately and join the results; `alone` explains why a group of one has no rating.

    Raises what `rate` raises.
    """
    found = {
        number: rate(restrict_models(data, codes)) for number, codes in enumerate(groups, start=1) if len(codes) > 1
    }
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
        errors="none" if first is None else _errors(found),
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


def _errors(found: Mapping[int, Rated]) -> str:
    """The name of the groups' errors; not two-way where a group has too few respondents for it."""
    names = dict.fromkeys(part.ratings.errors for part in found.values())
    return "cluster" if names.keys() == {"cluster", "two-way"} else next(iter(names))


def _gauge(found: Mapping[int, Rated]) -> str:
    """The gauge of the groups' ratings: an anchor applies to its own group only."""
    held = [f"; group {number} {part.ratings.gauge}" for number, part in found.items() if part.ratings.gauge != _MEAN]
    return f"{_MEAN} in each group{''.join(held)}"


def largest_group(rated: Rated) -> int | None:
    """Number of the group with the most rated or ordered models; among equals, the first. None without a group."""
    there = np.isfinite(rated.ratings.logits if rated.position is None else rated.position)
    sizes = np.bincount(rated.group[there], minlength=1)
    return int(np.argmax(sizes)) if sizes.any() else None


def ranked_values(rated: Rated) -> dict[str, float]:
    """The values that rank the largest group rated together, by model, higher being better; rounded to six decimals.

    Places of an order are negated. Values that print alike are equal, since the last bits must not decide.
    """
    group = largest_group(rated)
    value = rated.ratings.elo if rated.position is None else -rated.position
    inside = np.flatnonzero((rated.group == group) & np.isfinite(value)) if group is not None else ()
    return {rated.ratings.models[place]: round(float(value[place]), 6) for place in inside}


def unrated(data: Comparisons, reasons: Mapping[str, str]) -> Rated:
    """A table of models without any rating; `reasons` explains it by the model's name."""
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
