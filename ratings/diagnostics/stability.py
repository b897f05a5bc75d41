"""Stability of a board: under resampled instructions, as instructions arrived, and under other tie rules.

Drawing half of the instructions without replacement varies ratings as much as drawing all with replacement (the
variances agree), so the cluster bootstrap is used: exact refits at thousands of draws per second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.choices import Flips, Merge
from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.judgments import merge_orders
from venire.ratings.data.result import Ratings
from venire.ratings.data.validation import check_level
from venire.ratings.inference.bootstrap import Replicates, bootstrap_battles, bootstrap_clusters
from venire.ratings.pairwise.bradley_terry import bradley_terry, bradley_terry_wins
from venire.ratings.pairwise.components import SeparatedError
from venire.ratings.pairwise.solvers import NotConvergedError
from venire.ratings.pairwise.ties import NoTieParameterError, davidson

_TOP = 5

_WEAK_RIDGE = 1e-3
"""Ridge under which draws without a common estimate have their places: it orders models by who beat whom."""


@dataclass(frozen=True, slots=True)
class Volatility:
    """Positions under resampling. `unit` is the resampled unit, `units` their number, `draws` the number of draws.

    Draws `without_estimate` are among them: models that are infinitely far apart still have places.

    `leader` has the highest rating, and `stays` is the share of draws in which it still has; `next_leader` leads most
    often among the others, in the share `next_leads`. `top` names the first models with the share of draws in which
    each keeps its position, `moved` is the mean number of positions by which they move.
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
    """Boards of growing tables: the number of judgments, the leader, and ratings in Elo points (tables, models).

    `elo` rows are NaN where a table does not connect all models. `since` is the share of tables from which on the final
    leader always led.
    """

    judgments: tuple[int, ...]
    leader: tuple[str | None, ...]
    elo: NDArray[np.float64]
    since: float


def volatility(data: Comparisons, ratings: Ratings, *, replicates: int = 1000, seed: int = 0) -> Volatility:
    """Resample clusters (single battles without clusters) and measure how positions change.

    `ratings` are Bradley-Terry ratings of the same data, without ridge. Raises `InputError` with fewer than two models
    or units, and the errors of the bootstrap.

    >>> from venire.ratings import bradley_terry, comparisons, volatility
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> volatility(data, bradley_terry(data), replicates=50).leader
    'a'
    """
    known = np.flatnonzero(np.isfinite(ratings.logits))
    if len(known) < 2:
        raise InputError("fewer than two models have a rating: no place can change")
    draw = bootstrap_battles if data.cluster is None else bootstrap_clusters
    drawn = draw(data, ratings.logits, replicates=replicates, seed=seed)
    if drawn.units < 2 or not replicates:
        raise InputError("there is one instruction alone to draw again: what others would say is not known")
    without = drawn.without_estimate
    if without:
        drawn = draw(data, ratings.logits, replicates=replicates, seed=seed, ridge=_WEAK_RIDGE)
    return _places(ratings, known, drawn, without)


def _places(ratings: Ratings, known: NDArray[np.intp], drawn: Replicates, without: int) -> Volatility:
    # Ratings that are equal up to rounding are sorted by name, in the point estimate and in every draw.
    point, found = np.round(ratings.logits[known], 9), np.round(drawn.estimates[:, known], 9)
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
        without_estimate=without,
    )


def rating_path(tables: Sequence[Comparisons]) -> RatingPath:
    """Bradley-Terry ratings of growing tables of the same models, for example of each tenth of the judgments.

    Raises `InputError` for tables of different models.

    >>> from venire.ratings import comparisons, rating_path
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> found = rating_path([data, data])
    >>> list(found.leader)
    ['a', 'a']
    """
    if not tables:
        raise InputError("there is no table: give one or more, such as those of the first days")
    if len({table.models for table in tables}) > 1:
        raise InputError("the tables name different models; give parts of one table")
    leaders: list[str | None] = []
    elo = []
    for table in tables:
        counts = table.wins
        row = np.full(len(table.models), np.nan)
        if len(counts.strong_components()) == 1:
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


@dataclass(frozen=True, slots=True)
class TieRule:
    """The board under another tie rule, compared with the board with ties as half a win.

    `leader` is its first model, `moved` the largest change of position and `mover` its model, `shift` the largest
    change in Elo points. `contradicted` are pairs (better model first with ties as half a win) whose order is reversed
    here, although one of the two boards separates them at the level. `reason` explains why there is no board, else
    None.
    """

    rule: str
    leader: str | None = None
    moved: int = 0
    mover: str | None = None
    shift: float = 0.0
    contradicted: tuple[tuple[str, str], ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class TieSensitivity:
    """`leader` of the board with ties as half a win, the share of judgments that are ties or flips, other rules."""

    leader: str
    ties: float
    flips: float
    rules: tuple[TieRule, ...]


def tie_sensitivity(
    battles: Battles, *, merge: Merge = "mean", flips: Flips = "tie", level: float = 0.95
) -> TieSensitivity:
    """Rate verdicts with ties as half a win, then with ties or flips left out, and with ties as an outcome (Davidson).

    Rules that change nothing, because there are no ties or no flips, are left out. Raises `InputError` for an invalid
    level, where the first of these boards does not exist, and the errors of merging.

    >>> from venire.ratings import ballots, tie_sensitivity, to_battles
    >>> given = ballots(list("aaabbbccc") * 2, ["q"] * 9 + ["r"] * 9, list("abc") * 6, [1, 2, 3, 2, 1, 3, 1, 3, 2] * 2)
    >>> found = tie_sensitivity(to_battles(given))
    >>> found.ties
    0.0
    """
    check_level(level)
    judgments = merge_orders(battles, merge, flips=flips)
    data = judgments.comparisons()
    try:
        base = bradley_terry(data)
    except (SeparatedError, NotConvergedError) as error:
        raise InputError(f"no common estimate exists to compare with: {error}") from None
    rules = []
    if (data.y == 0.5).any():
        rules.append(_by_bradley_terry("ties left out", data.select(data.y != 0.5), base, level))
    if judgments.flips and merge != "none":
        dropped = merge_orders(battles, merge, flips="drop").comparisons()
        rules.append(_by_bradley_terry("flips left out", dropped, base, level))
    strict = data if merge == "none" else merge_orders(battles, "strict", flips=flips).comparisons()
    if (strict.y == 0.5).any():
        rules.append(_by_davidson(strict, base, level))
    size = max(len(judgments), 1)
    return TieSensitivity(base.order[0], judgments.ties / size, judgments.flips / size, tuple(rules))


def _by_bradley_terry(rule: str, data: Comparisons, base: Ratings, level: float) -> TieRule:
    try:
        return _beside(rule, base, bradley_terry(data), level)
    except (SeparatedError, NotConvergedError) as error:
        return TieRule(rule, reason=str(error))


def _by_davidson(data: Comparisons, base: Ratings, level: float) -> TieRule:
    rule = "ties as an outcome"
    if not np.isin(data.y, (0.0, 0.5, 1.0)).all():
        return TieRule(rule, reason="outcomes are shares, not wins, ties and losses")
    try:
        return _beside(rule, base, davidson(data).ratings, level)
    except (SeparatedError, NotConvergedError, NoTieParameterError) as error:
        return TieRule(rule, reason=str(error))


def _beside(rule: str, base: Ratings, other: Ratings, level: float) -> TieRule:
    both = np.flatnonzero(np.isfinite(base.logits) & np.isfinite(other.logits))
    if len(both) < 2:
        return TieRule(rule, reason="fewer than two models have a rating under it")
    first, second = (np.round(one.logits[both], 9) for one in (base, other))
    moved = _positions(second) - _positions(first)
    mover = int(np.argmax(np.abs(moved)))
    points = (other.elo - other.elo[both].mean() - base.elo + base.elo[both].mean())[both]
    swapped = (first[:, None] > first[None, :]) & (second[:, None] < second[None, :])
    swapped &= _differ(base, both, level) | _differ(other, both, level)
    names = [base.models[code] for code in both.tolist()]
    return TieRule(
        rule,
        leader=names[int(np.argmax(second))],
        moved=int(abs(moved[mover])),
        mover=names[mover] if moved[mover] else None,
        shift=float(np.abs(points).max()),
        contradicted=tuple((names[one], names[two]) for one, two in np.argwhere(swapped).tolist()),
    )


def _positions(logits: NDArray[np.float64]) -> NDArray[np.intp]:
    return np.argsort(np.argsort(-logits, kind="stable"), kind="stable")


def _differ(ratings: Ratings, codes: NDArray[np.intp], level: float) -> NDArray[np.bool_]:
    """Which pairs (n, n) differ significantly, each pair tested separately."""
    if ratings.covariance is None:
        return np.zeros((len(codes), len(codes)), dtype=np.bool_)
    spread, at = ratings.covariance[np.ix_(codes, codes)], ratings.logits[codes]
    own = np.diagonal(spread)
    error = np.sqrt(np.maximum(own[:, None] + own[None, :] - 2.0 * spread, 0.0))
    return np.asarray(np.abs(at[:, None] - at[None, :]) > ratings.quantile(level) * error, dtype=np.bool_)
