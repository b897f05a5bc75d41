"""Influence of single instructions, judges and models on ratings, and the smallest removal that changes the leader.

To first order a rating moves by the inverse information times the score of the removed rows (the infinitesimal
jackknife, and the first step of arXiv 2011.14999; for ratings from pairs arXiv 2508.11847). Reported results are exact
refits: the first order only selects which of very many units to refit, estimates how far the others usually move a
rating, and orders removals. The number removed is verified to suffice; a smaller set may exist.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from venire.arena.errors import InputError
from venire.arena.scale import POINTS_PER_LOGIT
from venire.ratings.data.clustered import cluster_codes, clustered_error
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.data.statistics import student
from venire.ratings.pairwise.bradley_terry import bradley_terry_wins
from venire.ratings.pairwise.components import SeparatedError, restrict_models
from venire.ratings.pairwise.covariance import inverse_information
from venire.ratings.pairwise.leave_out import LeftOut, without_each_cluster, without_each_judge, without_each_model

Unit = Literal["instruction", "judge", "model"]

Vector = NDArray[np.float64]

RemovalUnit = Literal["judgment", "instruction", "judge"]

_MAX_EXACT = 64
"""Maximum number of units whose effects come from exact refits, which few and heavy units need."""

_SLIGHT = 1e-3
"""The ridge that determines the leader where the remaining data have no finite estimate."""

_NAMED = 20

_MIN_STRETCH = 0.2
"""Ratings without a judge that are narrower than this are another order, and no stretch of it."""


@dataclass(frozen=True, slots=True, eq=False)
class FirstOrderEffects:
    """Influence functions: the first-order effect of each row on all ratings, in logits.

    `bread` (n, n) is the inverse information, `residuals` (rows,) are weighted outcomes minus expectations.
    """

    data: Comparisons
    ratings: Ratings
    bread: NDArray[np.float64]
    residuals: Vector

    def rows(self, contrast: Vector) -> Vector:
        """How far each row (rows,) raises `contrast` (n,) @ ratings: leaving it out lowers that by about so much."""
        pull = self.bread @ contrast
        return np.asarray(self.residuals * (pull[self.data.a] - pull[self.data.b]))

    def units(self, code: NDArray[np.int32], count: int) -> NDArray[np.float64]:
        """How far each of `count` units, given by one code per row, raises each rating: (units, n)."""
        size = len(self.data.models)
        base = code.astype(np.int64) * size
        score = np.bincount(base + self.data.a, self.residuals, count * size)
        score -= np.bincount(base + self.data.b, self.residuals, count * size)
        return np.asarray(score.reshape(count, size) @ self.bread)

    def error(self, contrast: Vector) -> float:
        """Standard error of `contrast` (n,) @ ratings by clusters, or by rows without clusters; NaN with one unit."""
        return _scatter(self.data, self.rows(contrast))


@dataclass(frozen=True, slots=True)
class LeaveOneOutChange:
    """The changes when `name` is left out.

    `change` is the largest change of a rating, in Elo points, with its standard error `se` (NaN for instructions), and
    `model` is its model; `error` is the standard error of that rating with all the data. `leader` leads without `name`,
    `top` states whether the top models are the same. Of instructions, `outlying` is the effect on a rating in multiples
    of its usual size (root mean square), and `distance` how far it is from the mean, in standard deviations on the
    scale of asinh(effect / median size), where long tails are short; both are the maximum over models, NaN for other
    units. `stretch` is the factor by which all ratings are wider without a judge, which is taken out of `change` (else
    1). `change_of_lead` is by how much the old leader's lead over the new one shrinks, with its standard error; None
    where the leader does not change.
    """

    name: str
    change: float
    se: float
    model: str
    error: float
    leader: str
    top: bool
    outlying: float
    distance: float = math.nan
    stretch: float = 1.0
    change_of_lead: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Influence:
    """Refits without each instruction, judge or model: `without`, the largest change first.

    `units` is their number; of very many instructions only the most influential are refitted. `separated` are those
    without which the models have no common estimate. `left_out` are models outside the largest group connected by wins;
    they are excluded. `clusters` is the number of independent units behind the standard errors.
    """

    unit: Unit
    units: int
    ratings: Ratings
    leader: str
    top: tuple[str, ...]
    without: tuple[LeaveOneOutChange, ...]
    separated: tuple[str, ...]
    left_out: tuple[str, ...]
    clusters: int


def rated_together(data: Comparisons) -> Comparisons:
    """The comparisons among the largest group of models that wins connect both ways; among equals, the strongest."""
    groups = data.wins.strong_components() if len(data.models) else []
    if len(groups) <= 1:
        return data
    return restrict_models(data, max(groups, key=len))


def first_order_effects(data: Comparisons, *, ridge: float = 0.0) -> FirstOrderEffects:
    """Fit Bradley-Terry ratings and keep each row's effect on them; raises the errors of `bradley_terry`.

    Models without a comparison are left out of `data`.
    """
    played = data.played > 0.0
    rows = restrict_models(data, np.flatnonzero(played))
    ratings = bradley_terry_wins(rows.wins, ridge=ridge)
    size, logits = len(rows.models), ratings.logits
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    met = np.bincount(rows.a.astype(np.int64) * size + rows.b, weight, size * size)
    totals = met.astype(np.float64).reshape(size, size)
    free = np.ones(size, dtype=np.bool_)
    bread = inverse_information(totals + totals.T, logits, ridge=ridge, free=free, models=rows.models)
    residuals = weight * (rows.y - expit(logits[rows.a] - logits[rows.b]))
    return FirstOrderEffects(rows, ratings, bread, residuals)


def influence(data: Comparisons, unit: Unit, *, ridge: float = 0.0, top: int = 3, most: int = 1000) -> Influence:
    """Leave out each instruction (cluster), judge or model in turn and refit the rest.

    Of more than `most` instructions, only the most influential to first order are refitted. `top` is the number of
    leading places compared. Raises `InputError` without two models connected by wins, or without names of the units.

    >>> from venire.ratings import comparisons, influence
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> influence(data, "model").unit
    'model'
    """
    rows = rated_together(data)
    if len(rows.models) < 2 or not len(rows):
        raise InputError("no two models are joined by wins both ways: there is no rating to hang on anything")
    found = first_order_effects(rows, ridge=ridge)
    rows = found.data
    outlying: Mapping[str, tuple[float, float]] = {}
    if unit == "instruction":
        names = _names(rows.clusters, "instruction")
        outlying = _outlying(found, names)
        chosen = sorted(names, key=lambda name: (-outlying[name][0], name))[:most]
        left = without_each_cluster(rows, chosen=sorted(chosen), ridge=ridge)
    elif unit == "judge":
        names = _names(rows.judges, "judge")
        left = without_each_judge(rows, ridge=ridge)
    else:
        names = rows.models
        left = without_each_model(rows.wins, ridge=ridge)
    order = found.ratings.order
    # Without a model that all others depend on, no pair is left.
    alone = [name for name, rest in left.without.items() if np.count_nonzero(np.isfinite(rest.logits)) < 2]
    joined = [name for name in left.without if name not in set(alone)]
    nothing = (math.nan, math.nan)
    made = [_left(found, left, name, unit, outlying.get(name, nothing), top, ridge) for name in joined]
    return Influence(
        unit=unit,
        units=len(names),
        ratings=found.ratings,
        leader=order[0],
        top=tuple(order[:top]),
        without=tuple(sorted(made, key=lambda one: (-one.change, one.name))),
        separated=tuple(sorted([*left.separated, *alone])),
        left_out=tuple(name for name in data.models if name not in set(rows.models)),
        clusters=cluster_codes(rows.cluster, len(rows))[1],
    )


def outlier_critical_value(units: int, models: int, level: float = 0.99) -> float:
    """Critical value of Grubbs' test for the most outlying of `units` effects on `models` ratings.

    Infinite for fewer than three units, where no outlier can be detected.
    """
    if units < 3:
        return float("inf")
    quantile = float(student.isf((1.0 - level) / (2.0 * units * max(models, 1)), units - 2))
    return (units - 1) / math.sqrt(units) * math.sqrt(quantile**2 / (units - 2 + quantile**2))


def critical_value(looks: int, clusters: int, level: float = 0.95) -> float:
    """Critical value of the largest of `looks` changes in standard errors, two-sided, at 1 - `level`.

    Student's t of `clusters` - 1 degrees of freedom, with Bonferroni's correction. Infinite with a single cluster.
    """
    if clusters < 2:
        return float("inf")
    return float(student.isf((1.0 - level) / (2.0 * max(looks, 1)), clusters - 1))


def _names(names: tuple[str, ...], unit: Unit) -> tuple[str, ...]:
    if len(names) < 2:
        count = f"one named {unit}" if names else f"no named {unit}s"
        raise InputError(f"{count}: leaving one out needs two or more")
    return names


def _outlying(found: FirstOrderEffects, names: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    """Of each instruction its largest effect in multiples of the usual one, and how far it stands apart."""
    assert found.data.cluster is not None
    moved = found.units(found.data.cluster, len(names))
    usual, middle = np.sqrt(np.mean(moved * moved, axis=0)), np.median(np.abs(moved), axis=0)
    ratio = np.divide(np.abs(moved), usual, out=np.zeros_like(moved), where=usual > 1e-12)
    short = np.arcsinh(np.divide(moved, middle, out=np.zeros_like(moved), where=middle > 1e-12))
    spread = short.std(axis=0, ddof=1)
    away = np.abs(short - short.mean(axis=0))
    distance = np.divide(away, spread, out=np.zeros_like(moved), where=spread > 1e-12)
    return dict(zip(names, zip(ratio.max(axis=1).tolist(), distance.max(axis=1).tolist(), strict=True), strict=True))


def _left(
    found: FirstOrderEffects,
    left: LeftOut,
    name: str,
    unit: Unit,
    outlying: tuple[float, float],
    top: int,
    ridge: float,
) -> LeaveOneOutChange:
    after = left.without[name]
    place = {model: code for code, model in enumerate(found.ratings.models)}
    before = found.ratings.logits[[place[model] for model in after.models]]
    both = np.isfinite(after.logits)
    # Both are relative to the mean of the models that both rate.
    old, new = before - before[both].mean(), after.logits - after.logits[both].mean()
    stretch, middle = _stretch(np.where(both, old, 0.0), np.where(both, new, 0.0)) if unit == "judge" else (1.0, 0)
    moved = new / stretch - old
    at = int(np.nanargmax(np.round(np.abs(moved), 10)))
    most = after.models[at]
    was = [model for model in found.ratings.order if unit != "model" or model != name]
    now = after.order
    shift = None
    if unit != "instruction" or now[0] != was[0]:
        shift = _Shift(found, name, unit, ridge)
    ratio = float(new[at] / stretch / old[middle]) if stretch != 1.0 else 0.0
    turned = shift is not None and now[0] != was[0]
    return LeaveOneOutChange(
        name=name,
        change=POINTS_PER_LOGIT * float(abs(moved[at])),
        se=math.nan if shift is None else shift.by(*_parts(after.models, both, at, stretch, middle, ratio))[1],
        model=most,
        error=POINTS_PER_LOGIT * found.error(_contrast(found.ratings.models, {most: 1.0})),
        leader=now[0],
        top=set(now[:top]) == set(was[:top]),
        outlying=outlying[0],
        distance=outlying[1],
        stretch=stretch,
        change_of_lead=shift.by({was[0]: 1.0, now[0]: -1.0}) if turned and shift is not None else None,
    )


def _stretch(old: Vector, new: Vector) -> tuple[float, int]:
    """The factor by which ratings (n,) are wider than others (n,), both about 0, and the model whose ratio it is.

    A sharp judge stretches the ratings of all models, which says nothing of who is better. The factor is that of least
    absolute deviations, the median of new / old by |old|, which one model that a judge favours does not move. It is 1
    where the two hardly agree.
    """
    ratio = np.divide(new, old, out=np.ones_like(old), where=np.abs(old) > 1e-9)
    order = np.argsort(ratio, kind="stable")
    counted = np.cumsum(np.abs(old)[order])
    middle = int(order[np.searchsorted(counted, 0.5 * counted[-1])])
    found = float(ratio[middle])
    return (found, middle) if found > _MIN_STRETCH else (1.0, middle)


def _parts(
    models: tuple[str, ...], both: NDArray[np.bool_], at: int, stretch: float, middle: int, ratio: float
) -> tuple[dict[str, float], dict[str, float]]:
    """Weights of old and of new ratings whose sums differ, to first order, as old[at] and new[at] / stretch do.

    `ratio` is new[at] / stretch over old[middle], by which the stretch, that of the model `middle`, has an error too.
    """

    def centred(place: int) -> Vector:
        weights = np.where(both, -1.0 / both.sum(), 0.0)
        weights[place] += 1.0
        return weights

    whole, part = centred(at), centred(at) / stretch
    if stretch != 1.0:
        whole, part = whole - ratio * centred(middle), part - ratio * centred(middle) / stretch
    return dict(zip(models, whole.tolist(), strict=True)), dict(zip(models, part.tolist(), strict=True))


class _Shift:
    """The part of a rating difference that depends on the removed unit, and its error, in Elo points.

    Both fits share rows, so the error is that of the difference of each row's effects on the two fits.
    """

    def __init__(self, found: FirstOrderEffects, name: str, unit: Unit, ridge: float) -> None:
        data = found.data
        if unit == "model":
            code = data.models.index(name)
            self.kept = (data.a != code) & (data.b != code)
        else:
            names, codes = (data.clusters, data.cluster) if unit == "instruction" else (data.judges, data.judge)
            assert codes is not None
            self.kept = codes != names.index(name)
        self.found, self.rest = found, first_order_effects(data.select(self.kept), ridge=ridge)

    def by(self, shares: Mapping[str, float], after: Mapping[str, float] | None = None) -> tuple[float, float]:
        """A weighted sum of the ratings less one of those without the unit, with its error; weights are alike."""
        whole = _contrast(self.found.ratings.models, shares)
        part = _contrast(self.rest.ratings.models, shares if after is None else after)
        change = whole @ self.found.ratings.logits - part @ self.rest.ratings.logits
        row_effects = self.found.rows(whole)
        row_effects[self.kept] -= self.rest.rows(part)
        return float(POINTS_PER_LOGIT * change), POINTS_PER_LOGIT * _scatter(self.found.data, row_effects)


def _contrast(models: tuple[str, ...], shares: Mapping[str, float]) -> Vector:
    return np.array([shares.get(name, 0.0) for name in models])


def _scatter(data: Comparisons, row_effects: Vector) -> float:
    return clustered_error(row_effects, *cluster_codes(data.cluster, len(row_effects)))


@dataclass(frozen=True, slots=True)
class Removal:
    """Removing `removed` of `units` puts `rival` ahead of `leader`; verified by a refit, so an upper bound.

    `removed` is None where no removal tried changes the winner; `predicted` is the first-order prediction, None where
    it predicts no change. `lead` is in Elo points, with its standard error `se`, of the rival that needs the fewest.
    `names` are the first twenty instructions or judges in the order left out; empty for judgments.
    """

    unit: RemovalUnit
    units: int
    removed: int | None
    predicted: int | None
    leader: str
    rival: str
    lead: float
    se: float
    names: tuple[str, ...] = ()

    @property
    def share(self) -> float | None:
        """`removed` over `units`."""
        return None if self.removed is None else self.removed / self.units


@dataclass(frozen=True, slots=True, eq=False)
class _RemovalUnits:
    """Removable units: the contribution of each to a lead over a rival, and the ratings after removing some."""

    units: int
    names: tuple[str, ...]
    held: Callable[[int], Vector]
    refitted: Callable[[NDArray[np.intp]], Vector]


def smallest_removal(
    data: Comparisons, unit: RemovalUnit = "judgment", *, rivals: int = 3, ridge: float = 0.0
) -> Removal:
    """The smallest removal of judgments (rows), instructions (clusters) or judges found to change the leader.

    The `rivals` that need the fewest removals to first order are tried by exact refits. Raises `InputError` without two
    models connected by wins, and without names of the units.

    >>> from venire.ratings import comparisons, smallest_removal
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> smallest_removal(data).leader
    'a'
    """
    if rivals < 1:
        raise InputError(f"rivals is {rivals}; give 1 or more")
    rows = rated_together(data)
    if len(rows.models) < 2 or not len(rows):
        raise InputError("no two models are joined by wins both ways: nobody leads")
    found = first_order_effects(rows, ridge=ridge)
    order = np.argsort(-np.round(found.ratings.logits, 10), kind="stable").tolist()
    leader, pile = order[0], _removal_units(found, unit, order[0], ridge)
    guesses = []
    for rival in order[1:]:
        lead = float(found.ratings.logits[leader] - found.ratings.logits[rival])
        guesses.append((_first_order(pile.held(rival), lead), lead, rival))
    guesses.sort(key=lambda one: (np.inf if one[0] is None else one[0], one[1], one[2]))
    tried = [_search(found, pile, unit, leader, rival, guess) for guess, _, rival in guesses[:rivals]]
    return min(tried, key=lambda one: (np.inf if one.removed is None else one.removed, one.lead, one.rival))


def _removal_units(found: FirstOrderEffects, unit: RemovalUnit, leader: int, ridge: float) -> _RemovalUnits:
    """The units of a table with each unit's contribution to the lead over a rival, by the rival's code."""
    data = found.data
    if unit == "judgment":
        return _judgments(found, leader, ridge)
    codes, names = (data.cluster, data.clusters) if unit == "instruction" else (data.judge, data.judges)
    if codes is None or len(names) < 2:
        count = f"one named {unit}" if names else f"no named {unit}s"
        raise InputError(f"{count}: leaving some out needs two or more")

    made: dict[bytes, Vector] = {}

    def refitted(gone: NDArray[np.intp]) -> Vector:
        # Rivals that a unit helps alike ask for the same refits.
        if (key := np.sort(gone).tobytes()) not in made:
            made[key] = _refitted(data.select(~np.isin(codes, gone)), ridge)
        return made[key]

    if len(names) > _MAX_EXACT:
        moved = found.units(codes, len(names))
    else:
        logits = [refitted(np.array([one])) for one in range(len(names))]
        moved = found.ratings.logits - np.array(logits)

    def held(rival: int) -> Vector:
        # Infinite where a model has no comparison without the unit; where neither has, it turns none above the other.
        either = np.isfinite(moved[:, leader]) | np.isfinite(moved[:, rival])
        return np.asarray(np.where(either, moved[:, leader], 0.0) - np.where(either, moved[:, rival], 0.0))

    return _RemovalUnits(len(names), names, held, refitted)


def _judgments(found: FirstOrderEffects, leader: int, ridge: float) -> _RemovalUnits:
    """Single rows; equal rows form one cell, so that the cost depends on the distinct rows only."""
    data, size = found.data, len(found.data.models)
    turned = data.a > data.b
    first, second = np.where(turned, data.b, data.a), np.where(turned, data.a, data.b)
    pair = first.astype(np.int64) * size + second
    weight = np.ones(len(data)) if data.weight is None else data.weight
    table = np.stack([pair.astype(np.float64), np.where(turned, 1.0 - data.y, data.y), weight])
    # NumPy sorts one column far faster than three; most outcomes are quarters.
    quarters = 4.0 * table[1]
    if data.weight is None and bool(np.all(quarters == np.rint(quarters))):
        _, at, count = np.unique(5 * pair + quarters.astype(np.int64), return_index=True, return_counts=True)
    else:
        _, at, count = np.unique(table, axis=1, return_index=True, return_counts=True)
    of_pair, y, heavy = table[0][at].astype(np.int64), table[1][at], table[2][at]
    cells = Comparisons(data.models, (of_pair // size).astype(np.int32), (of_pair % size).astype(np.int32), y, heavy)
    residuals = np.where(turned, -found.residuals, found.residuals)[at]
    one_each = FirstOrderEffects(cells, found.ratings, found.bread, residuals)
    ends = np.cumsum(count)

    def held(rival: int) -> Vector:
        contrast = np.zeros(size)
        contrast[leader], contrast[rival] = 1.0, -1.0
        return np.repeat(one_each.rows(contrast), count)

    def refitted(gone: NDArray[np.intp]) -> Vector:
        left = count - np.bincount(np.searchsorted(ends, gone, side="right"), minlength=len(count))
        kept = left > 0
        rest = Comparisons(cells.models, cells.a[kept], cells.b[kept], y[kept], heavy[kept] * left[kept])
        return _refitted(rest, ridge)

    return _RemovalUnits(len(data), (), held, refitted)


def _first_order(held: Vector, lead: float) -> int | None:
    """How many of the most contributing units make up the lead; None where all positive contributions do not."""
    helps = np.sort(held[held > 0.0])[::-1]
    place = int(np.searchsorted(np.cumsum(helps), lead))
    return place + 1 if place < len(helps) else None


def _search(
    found: FirstOrderEffects,
    pile: _RemovalUnits,
    unit: RemovalUnit,
    leader: int,
    rival: int,
    guess: int | None,
) -> Removal:
    held = np.round(pile.held(rival), 12)
    order = np.argsort(-held, kind="stable")[: int(np.count_nonzero(held > 0.0))]

    def turns(number: int) -> bool:
        after = pile.refitted(order[:number])
        return bool(after[rival] > after[leader])

    removed = _min_removed(turns, guess or len(order), min(len(order), pile.units - 1))
    contrast = np.zeros(len(found.data.models))
    contrast[leader], contrast[rival] = 1.0, -1.0
    named = pile.names and removed is not None
    return Removal(
        unit=unit,
        units=pile.units,
        removed=removed,
        predicted=guess,
        leader=found.data.models[leader],
        rival=found.data.models[rival],
        lead=float(POINTS_PER_LOGIT * (contrast @ found.ratings.logits)),
        se=POINTS_PER_LOGIT * found.error(contrast),
        names=tuple(pile.names[code] for code in order[: min(removed or 0, _NAMED)].tolist()) if named else (),
    )


def _min_removed(turns: Callable[[int], bool], guess: int, most: int) -> int | None:
    """The least number up to `most` at which `turns` was found to hold, searched outwards from a guess."""
    low, high = 0, max(1, min(guess, most))
    if most < 1:
        return None
    while not turns(high):
        if high == most:
            return None
        low, high = high, min(most, max(high + 1, high + (high - low) // 4 + 1))
    step = max(1, high // 16)
    while high - low > 1:
        # The guess is close, so the first steps are short.
        middle = max(low + 1, high - step)
        if turns(middle):
            high, step = middle, 2 * step
        else:
            low, step = middle, max(1, (high - middle) // 2)
    return high


def _refitted(data: Comparisons, ridge: float) -> Vector:
    """Ratings in logits (n,); models without a comparison count as last."""
    counts = data.wins
    try:
        ratings = bradley_terry_wins(counts, ridge=ridge)
    except SeparatedError:
        ratings = bradley_terry_wins(counts, ridge=_SLIGHT)
    return np.where(np.isfinite(ratings.logits), ratings.logits, -np.inf)
