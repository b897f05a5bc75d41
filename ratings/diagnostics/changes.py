"""Changes of ratings from one table of comparisons to another: which models changed, beside those that did not.

Ratings are about a mean, so two boards alone say only that models moved apart. Changes are counted from the mean change
of a reference: the models that are not distinguished from one another by their changes, whose ratings thus put both
boards on one scale. Such a scale is purified step by step, as that of the items of two tests is (Kopf, Zeileis and
Strobl 2015, *Anchor selection strategies for DIF analysis*).

The tables are fitted as one: the scores of both are summed by instruction (the sandwich of the stacked equations), so
that instructions that were judged in both are paired. Where different pairs were asked, the lack of fit between pairs
is part of the errors; where the same were, it cancels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from venire.arena.errors import InputError
from venire.arena.scale import POINTS_PER_LOGIT
from venire.ratings.data.clustered import units_of
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.data.validation import check_level, check_seed
from venire.ratings.diagnostics.influence import FirstOrderEffects, first_order_effects, rated_together
from venire.ratings.diagnostics.lack_of_fit import lack_of_fit, laplacian
from venire.ratings.inference.contrasts import JointErrors, joint_errors
from venire.ratings.pairwise.components import restrict_models

_DRAWS = 4_000
"""Draws of the largest of several errors: its quantile is known within 0.03 standard errors."""

_MAX_MODELS = 500
"""Models beyond which pairs are too many to look at for their lack of fit."""

_NO_SCATTER = 1e-12
"""Effect of an instruction on a rating, as a share of that of a row, which is nothing but rounding."""

_MIN_VARIANCE = 0.1
"""Share of the mean variance that any model has at least, so that no single one is the whole reference."""

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RatingChange:
    """The change of a model beside the reference, in Elo points.

    `before` is its rating about the mean of all models, and `now` is on the same scale: that on which the reference did
    not move. `lo` and `hi` bound the `change` of this model alone, NaN like its `se` where no error is known; `changed`
    is a decision about all models together. `reference` states whether the model is part of the reference: one that is
    neither moved apart from the others, but not so clearly that it and no other must have changed.
    """

    model: str
    before: float
    now: float
    change: float
    se: float
    lo: float
    hi: float
    changed: bool
    reference: bool


@dataclass(frozen=True, slots=True)
class RatingChanges:
    """The changes of all `models` that both tables rate together, sorted by name, with intervals of `level`.

    The probability that any unchanged model is called changed is at most 1 - `level`, as long as most models did not
    change. `clusters` are the instructions of each table (rows, where it names none), `shared` are in both; `crossed`
    errors are clustered by judge too.
    """

    models: tuple[RatingChange, ...]
    level: float
    clusters: tuple[int, int]
    shared: int
    crossed: bool


def rating_changes(before: Comparisons, now: Comparisons, *, level: float = 0.95, seed: int = 0) -> RatingChanges:
    """Compare Bradley-Terry ratings of two tables; clusters (instructions) of one name in both are one cluster.

    Raises `InputError` where the tables rate fewer than two models in common, and for impossible numbers.

    >>> from venire.ratings import comparisons, rating_changes
    >>> rng = np.random.default_rng(0)
    >>> a, b, item = np.array([(0, 1, k) for k in range(40)] + [(1, 2, k) for k in range(40)]).T
    >>> tables = [comparisons(a, b, (rng.random(80) < 0.6).astype(float), cluster=item) for _ in range(2)]
    >>> found = rating_changes(*tables)
    >>> found.shared, [row.changed for row in found.models]
    (40, [False, False, False])
    """
    check_level(level)
    check_seed(seed)
    effects = [first_order_effects(table) for table in _common(before, now)]
    moved, clusters, shared = _moved(effects)
    joint = joint_errors(moved, draws=_DRAWS, seed=seed, level=level)
    precision = 1.0 / _quasi_variances(moved)
    changed = apart = np.zeros(len(moved.models), dtype=np.bool_)
    if known := len(joint.known) > 0:
        changed, apart = (_taken_out(moved, joint, precision, level, surely=surely) for surely in (True, False))
    reference = np.ones_like(changed) if changed.all() else ~(changed | apart)
    weights = np.eye(len(precision)) - _shares(precision, reference)
    change = POINTS_PER_LOGIT * (weights @ moved.logits)
    se = POINTS_PER_LOGIT * joint.error(weights) if known else np.full(len(change), np.nan)
    half = np.where(se > 0.0, joint.quantile(level), 0.0) * se
    elo = effects[0].ratings.elo
    columns = (elo, elo + change, change, se, change - half, change + half, changed, reference)
    rows = zip(moved.models, *(column.tolist() for column in columns), strict=True)
    return RatingChanges(
        tuple(RatingChange(*row) for row in rows), level, clusters, shared, crossed=moved.errors == "two-way"
    )


def _common(before: Comparisons, now: Comparisons) -> list[Comparisons]:
    """The rows of each table among the models that both rate together, coded alike."""
    tables, names = [before, now], set(before.models) & set(now.models)
    while True:
        order = sorted(names)
        tables = [restrict_models(one, [one.models.index(name) for name in order]) for one in tables]
        kept = set(rated_together(tables[0]).models) & set(rated_together(tables[1]).models)
        if kept == names:
            break
        names = kept
    if len(names) < 2:
        raise InputError("the two rate no two models in common by wins both ways: their ratings do not compare")
    return tables


def _moved(effects: list[FirstOrderEffects]) -> tuple[Ratings, tuple[int, int], int]:
    """The differences of ratings (in an arbitrary common shift) with their joint errors, and the clusters behind them.

    Degrees of freedom are those of the table with fewer clusters, or with fewer judges where these cross them.
    """
    before, now = effects
    tables = [one.data for one in effects]
    named = [_clusters(table, side) for side, table in zip(("before", "now"), tables, strict=True)]
    code, clusters, shared = _codes_of_both(named)
    judge, judges = None, (0, 0)
    if all(table.crossed and table.cluster is not None for table in tables):
        judge, judges, _ = _codes_of_both([np.array(table.judges, dtype=str)[table.judge] for table in tables])
    gap, size = now.ratings.logits - before.ratings.logits, len(now.ratings.models)
    covariance, degrees, errors = np.full((size, size), np.nan), 1.0, "cluster"
    if min(clusters) > 1:
        units = units_of(code, judge, len(code))
        errors = units.errors
        degrees = min((*clusters, *judges) if units.respondents else clusters) - 1.0

        def scatter(group: NDArray[np.int32], count: int) -> Matrix:
            first, second = np.split(group, [len(named[0])])
            pulled = now.units(second, count) - before.units(first, count)
            return np.asarray(pulled.T @ pulled)

        found = units.covariance(scatter)
        silent = float(np.diagonal(found).max()) <= (_NO_SCATTER * float(np.abs(now.bread).max())) ** 2
        if not silent or np.ptp(gap) == 0.0:
            covariance = found
        if not silent and 2 < size <= _MAX_MODELS:
            added, more = _lack_of_fit(before, now)
            own, extra = float(np.trace(covariance)), float(np.trace(added))
            if extra > 0.0:
                degrees = (own + extra) ** 2 / (own**2 / degrees + extra**2 / more)
                covariance = covariance + added
    moved = Ratings(
        method="change of ratings",
        models=now.ratings.models,
        logits=gap,
        battles=now.ratings.battles,
        covariance=covariance,
        errors=errors,
        degrees=max(degrees, 1.0),
    )
    return moved, clusters, shared


def _clusters(data: Comparisons, side: str) -> NDArray[np.str_]:
    """The name of each row's cluster (rows,); without clusters each row is one, of this table alone."""
    if data.cluster is None:
        return np.char.add(f"{side} ", np.arange(len(data)).astype(str))
    return np.array(data.clusters, dtype=str)[data.cluster]


def _codes_of_both(named: list[NDArray[np.str_]]) -> tuple[NDArray[np.int32], tuple[int, int], int]:
    """Codes of the names of both tables, one table after the other, how many names each has, and how many both have."""
    first, second = (set(np.unique(names).tolist()) for names in named)
    codes = np.unique(np.concatenate(named), return_inverse=True)[1]
    return codes.astype(np.int32), (len(first), len(second)), len(first & second)


def _lack_of_fit(before: FirstOrderEffects, now: FirstOrderEffects) -> tuple[Matrix, int]:
    """What effects of pairs, the same in both tables, add to the errors of the differences; and its degrees of freedom.

    Effects move ratings by the pairs that were asked: as much in both tables where these are the same.
    """
    found = [lack_of_fit(one.data, one.ratings.logits) for one in (before, now)]
    degrees = np.array([one.degrees if np.isfinite(one.spread) else 0 for one in found])
    total = int(degrees.sum())
    if not total:
        return np.zeros_like(now.bread), 0
    variance = float(degrees @ np.nan_to_num([one.spread for one in found]) ** 2) / total
    first, second = _information(before), _information(now)
    across = now.bread @ laplacian(second * first) @ before.bread
    own = sum(one.bread @ laplacian(by**2) @ one.bread for one, by in ((before, first), (now, second)))
    return np.asarray(variance * (own - across - across.T)), total


def _information(effects: FirstOrderEffects) -> Matrix:
    """The information of each pair (models, models)."""
    logits, wins = effects.ratings.logits, effects.data.wins
    gap = logits[wins.first] - logits[wins.second]
    square = np.zeros_like(effects.bread)
    square[wins.first, wins.second] = (wins.won + wins.lost) * expit(gap) * expit(-gap)
    return np.asarray(square + square.T)


def _quasi_variances(moved: Ratings) -> Vector:
    """Variances (models,) whose sums are, by least squares, those of the differences of two models.

    They do not depend on the gauge: Firth and de Menezes 2004, *Quasi-variances*.
    """
    assert moved.covariance is not None
    variance = np.diagonal(moved.covariance)
    size = len(variance)
    if not np.isfinite(variance).all():
        return np.ones(size)
    sums = size * variance + variance.sum() - 2.0 * moved.covariance.sum(axis=1)
    if size == 2:
        return np.full(2, max(sums[0] / 2.0, 1e-300))
    found = (sums - sums.sum() / (2.0 * (size - 1))) / (size - 2)
    return np.asarray(np.maximum(found, max(_MIN_VARIANCE * float(found.mean()), 1e-300)))


def _shares(precision: Vector, inside: NDArray[np.bool_]) -> Vector:
    """What each model (models,) has of the mean of those `inside`.

    By their precision: the largest expected ratio is then that of the model that did change, however uneven errors are.
    """
    share = np.where(inside, precision, 0.0)
    return np.asarray(share / share.sum())


def _taken_out(
    moved: Ratings, joint: JointErrors, precision: Vector, level: float, *, surely: bool
) -> NDArray[np.bool_]:
    """Which models (models,) are apart from the mean of the others, taken out one at a time, the clearest first.

    One that changed pulls a mean that it is part of, and makes others look as if they had changed the other way. So
    what is `surely` apart is so whichever single other model is left out of that mean too. The others stay more than
    half of all models: no model can be said to have changed beside a minority.
    """
    inside = np.ones(len(moved.models), dtype=np.bool_)
    while inside.all() or inside.sum() > len(inside) // 2 + 1:
        ratio, beyond = _ratios(moved, joint, precision, inside, level)
        for code in np.flatnonzero(inside) if surely and inside.sum() > 2 else ():
            if not beyond.any():
                break
            others = inside.copy()
            others[code] = False
            beyond &= _ratios(moved, joint, precision, others, level)[1] | ~others
        if not beyond.any():
            break
        inside[np.argmax(np.where(beyond, ratio, 0.0))] = False
        if inside.sum() < 2:  # of two models that moved apart nobody can say which one did
            return np.ones_like(inside)
    return ~inside


def _ratios(
    moved: Ratings, joint: JointErrors, precision: Vector, inside: NDArray[np.bool_], level: float
) -> tuple[Vector, NDArray[np.bool_]]:
    """Each change beside the mean of those `inside` over its error (models,), and which are beyond chance.

    Chance is the largest ratio of all `inside` (max-t).
    """
    share = _shares(precision, inside)
    se = joint.error(np.eye(len(share)) - share)
    ratio = np.abs(np.divide(moved.logits - share @ moved.logits, se, out=np.zeros_like(se), where=se > 0.0))
    known, critical = inside & (se > 0.0), joint.quantile(level)
    if known.any():
        apart = np.abs(joint.errors[:, known] - (joint.errors @ share)[:, None]) / se[known]
        critical = max(critical, joint.largest(apart.max(axis=1), level))
    return ratio, inside & (ratio > critical)
