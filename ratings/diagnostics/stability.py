"""How firmly a board stands: what becomes of its first places when its instructions are drawn again, and as they came.

Drawing half of the instructions without replacement moves ratings as much as drawing all of them with it (their
variances agree), so the clusters of `bootstrapping` serve: they are exact refits of thousands of draws a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.inference.bootstrap import Replicates, bootstrap_battles, bootstrap_clusters
from venire.ratings.pairwise.bradley_terry import bradley_terry_wins
from venire.ratings.pairwise.components import strong_components_of
from venire.ratings.pairwise.wins import win_counts

__all__ = ["RatingPath", "Volatility", "rating_path", "volatility"]

_TOP = 5


@dataclass(frozen=True, slots=True)
class Volatility:
    """Places under redrawing. `unit` is what was drawn, `units` how many there are, `draws` those with an estimate.

    `leader` has the highest rating, and `stays` is the share of draws in which it has it too; `next_leader` leads most
    often among the others, in the share `next_leads`. `top` names the first models with the share of draws in which
    each keeps its place, `moved` is the mean number of places by which they move.
    """

    leader: str
    stays: float
    next_leader: str
    next_leads: float
    top: tuple[tuple[str, float], ...]
    moved: float
    unit: str
    units: int
    draws: int
    without_estimate: int


@dataclass(frozen=True, slots=True)
class RatingPath:
    """Boards of growing tables: how many judgments each holds, who leads, and ratings in Elo points (tables, models).

    `elo` rows are NaN where a table joins not all models. `since` is the share of tables from which on the last leader
    was the leader of all.
    """

    judgments: tuple[int, ...]
    leader: tuple[str | None, ...]
    elo: NDArray[np.float64]
    since: float


def volatility(data: Comparisons, ratings: Ratings, *, replicates: int = 1000, seed: int = 0) -> Volatility:
    """Draw clusters again (single battles where there are none) and see who keeps what place.

    `ratings` are Bradley-Terry's of the same data, without ridge. Raises `InputError` with fewer than two models or
    units, and as the bootstrap does.
    """
    known = np.flatnonzero(np.isfinite(ratings.logits))
    if len(known) < 2:
        raise InputError("fewer than two models have a rating: no place can change")
    draw = bootstrap_battles if data.cluster is None else bootstrap_clusters
    drawn = draw(data, ratings.logits, replicates=replicates, seed=seed)
    if drawn.units < 2 or not len(drawn.found):
        raise InputError("there is one instruction alone to draw again: what others would say is not known")
    return _places(ratings, known, drawn)


def _places(ratings: Ratings, known: NDArray[np.intp], drawn: Replicates) -> Volatility:
    # Ratings that agree to a rounding stand in the order of names, in the point estimate and in every draw alike.
    point, found = np.round(ratings.logits[known], 9), np.round(drawn.found[:, known], 9)
    order = np.argsort(-point, kind="stable")
    sorted_found = np.argsort(-found, axis=1, kind="stable")
    place = np.argsort(sorted_found, axis=1, kind="stable")
    top = order[:_TOP]
    leads = np.bincount(sorted_found[:, 0], minlength=len(known)) / len(found)
    others = np.where(np.arange(len(known)) == order[0], -1.0, leads)
    follower = int(order[1]) if others.max() <= 0.0 else int(np.argmax(others))
    kept = (place[:, top] == np.arange(len(top))).mean(axis=0)
    names = [ratings.models[code] for code in known.tolist()]
    return Volatility(
        leader=names[order[0]],
        stays=float(leads[order[0]]),
        next_leader=names[follower],
        next_leads=float(leads[follower]),
        top=tuple((names[code], float(share)) for code, share in zip(top.tolist(), kept, strict=True)),
        moved=float(np.abs(place[:, top] - np.arange(len(top))).mean()),
        unit="instructions" if drawn.unit == "cluster" else "battles",
        units=drawn.units,
        draws=len(found),
        without_estimate=drawn.without_estimate,
    )


def rating_path(tables: Sequence[Comparisons]) -> RatingPath:
    """Bradley-Terry ratings of growing tables of the same models, such as the first tenth of the judgments, and so on.

    Raises `InputError` for tables of different models.
    """
    if len({table.models for table in tables}) > 1:
        raise InputError("the tables name different models; give parts of one table")
    leaders: list[str | None] = []
    elo = []
    for table in tables:
        counts = win_counts(table)
        row = np.full(len(table.models), np.nan)
        if len(strong_components_of(counts)) == 1:
            row = bradley_terry_wins(counts).elo
        leaders.append(None if np.isnan(row).any() else table.models[int(np.argmax(np.round(row, 9)))])
        elo.append(row)
    size = len(tables[0].models) if tables else 0
    return RatingPath(tuple(map(len, tables)), tuple(leaders), np.array(elo).reshape(-1, size), _since(leaders))


def _since(leaders: list[str | None]) -> float:
    last = len(leaders)
    while last and leaders[last - 1] is not None and leaders[last - 1] == leaders[-1]:
        last -= 1
    return min(1.0, (last + 1) / len(leaders)) if leaders else 1.0
