"""Intervals, standard errors and ranks of a leaderboard, by formula or from bootstrap replicates of any method."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError, VenireError
from venire.arena.scale import ELO_MEAN, POINTS_PER_LOGIT
from venire.ratings.data.clustered import cluster_codes
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Rated, Ratings
from venire.ratings.inference.bootstrap import Replicates, bootstrap_battles, bootstrap_clusters
from venire.ratings.inference.options import Options
from venire.ratings.inference.ranking import Ranking, ranking
from venire.ratings.pairwise.covariance import Errors

_MAX_MODELS_WITH_ERRORS = 2_000
"""Number of models above which joint errors and ranks take minutes and are computed on request only."""

Refit = Callable[[NDArray[np.intp]], Ratings]
"""The ratings of some rows of the table, by position; a row may occur several times."""


def with_intervals(
    ratings: Ratings,
    data: Comparisons,
    options: Options,
    *,
    ridge: float = 0.0,
    refit: Refit | None = None,
    figures: Mapping[str, NDArray[np.float64]] | None = None,
    findings: Sequence[object] = (),
) -> Rated:
    """The ratings with intervals, errors and ranks; models that were rated together are one group.

    Under `options.replicates` rows are resampled, by cluster where the data has clusters, and refitted by `refit`, or
    as Bradley-Terry with this ridge. Otherwise intervals come from the covariance, and without one there are none.
    `findings` are the method's own records. Raises the errors of refitting the whole table.
    """
    anchor, drawn = _anchor(ratings, options.anchors), None
    if options.replicates:
        drawn = _replicates(ratings, data, options, ridge, refit)
    ratings = _shifted(ratings, anchor)
    if drawn is None:
        lo, hi = ratings.interval(options.level)
    else:
        drawn = _moved(drawn, ratings, anchor)
        lo, hi = drawn.interval(options.level)
        unit = "instructions" if drawn.unit == "cluster" else "battles"
        errors = f"bootstrap over {drawn.units} {unit}"
        ratings = replace(ratings, covariance=drawn.covariance, errors=errors, degrees=np.inf)
    rated = np.isfinite(ratings.logits)
    known = ratings.covariance is not None and (len(rated) <= _MAX_MODELS_WITH_ERRORS or options.errors is not None)
    ranks = ranking(ratings, level=options.level, seed=options.seed, replicates=drawn) if known else None
    return Rated(
        ratings=ratings,
        lo=lo,
        hi=hi,
        # Half an interval that is open has no length: an error beside it would be of the other replicates alone.
        se=np.where(np.isinf(lo) | np.isinf(hi), np.nan, POINTS_PER_LOGIT * ratings.se),
        **_places(ratings, ranks),
        group=rated.astype(np.int64),
        groups=(tuple(name for name, known in zip(ratings.models, rated.tolist(), strict=True) if known),),
        reasons=dict(ratings.diagnostics.get("no_estimate", {})),
        figures=dict(figures or {}),
        fits=({**_fit(ratings, data), **_without_errors(ratings, options, drawn)},),
        without_estimate=0 if drawn is None else drawn.without_estimate,
        findings=tuple(findings),
    )


def errors_for(data: Comparisons, options: Options) -> Errors | None:
    """The kind of errors to fit: none where replicates give them, or where a board is too large for the default."""
    if options.replicates or (options.errors is None and len(data.models) > _MAX_MODELS_WITH_ERRORS):
        return "none"
    return options.errors


def anchor_shift(ratings: Ratings, anchors: Mapping[str, float]) -> float:
    """Elo points to add to all ratings so that a single anchor has its given value; 0 without one."""
    there = [name for name in ratings.models if name in anchors]
    if len(there) != 1:
        return 0.0
    return float(anchors[there[0]] - ratings.elo[ratings.models.index(there[0])])


def bootstrap_refits(data: Comparisons, refit: Refit, point: Ratings, *, replicates: int, seed: int) -> Replicates:
    """Resample rows, or whole clusters if there are any, and fit each draw by `refit`; slow, but for any method.

    A draw that cannot be fitted is NaN, and so is a draw that misses a model: intervals are open to both sides of it.
    """
    drawn = draw_rows(data, replicates=replicates, seed=seed)
    return Replicates(
        models=point.models,
        logits=evaluate_draws(drawn, lambda rows: refit(rows).logits, point.logits, replicates),
        point=point.logits,
        unit=drawn.unit,
        units=drawn.units,
        seed=seed,
    )


@dataclass(frozen=True, slots=True)
class RowDraws:
    """Resampled tables: the `rows` of each, by position; `unit` is the resampled unit, `units` their number."""

    rows: Iterator[NDArray[np.intp]]
    unit: Literal["battle", "cluster"]
    units: int


def draw_rows(data: Comparisons, *, replicates: int, seed: int) -> RowDraws:
    """Rows, or whole clusters if there are any, drawn with replacement, as many as the table has (also none)."""
    rng = np.random.default_rng(seed)
    unit, size = cluster_codes(data.cluster, len(data))
    parts = np.split(np.argsort(unit, kind="stable"), np.cumsum(np.bincount(unit, minlength=size))[:-1])
    rows = (
        np.concatenate([parts[one] for one in rng.integers(0, size, size)]) for _ in range(replicates if size else 0)
    )
    return RowDraws(rows, "battle" if data.cluster is None else "cluster", size)


def evaluate_draws(
    drawn: RowDraws,
    figures: Callable[[NDArray[np.intp]], NDArray[np.float64]],
    point: NDArray[np.float64],
    replicates: int,
) -> NDArray[np.float64]:
    """The `figures` (models,) of each draw (replicates, models): NaN where it lacks a model that `point` has."""
    known = np.isfinite(point)
    found = np.full((replicates, len(point)), np.nan)
    for row, rows in zip(found, drawn.rows, strict=False):
        try:
            values = figures(rows)
        except VenireError:
            continue
        if np.isfinite(values[known]).all():
            row[:] = values
    return found


def _without_errors(ratings: Ratings, options: Options, drawn: Replicates | None) -> dict[str, str]:
    """The reason why there are no errors, if there are none."""
    if drawn is not None and drawn.units < 2:
        return {"errors_reason": "no errors: all judgments are of one cluster, so nothing can be drawn again"}
    if ratings.covariance is not None:
        return {}
    if options.errors is None and len(ratings.models) > _MAX_MODELS_WITH_ERRORS:
        return {
            "errors_reason": f"no errors: for more than {_MAX_MODELS_WITH_ERRORS} models at once they take minutes; "
            "ask for them with --errors or --bootstrap"
        }
    return {"errors_reason": f"no errors: {ratings.method} has none by formula here; --bootstrap 200 draws them"}


def _places(ratings: Ratings, ranks: Ranking | None) -> dict[str, Any]:
    """Ranks, tiers and probabilities of being best; unknown where ratings have no errors."""
    if ranks is not None:
        return {"rank_lo": ranks.lo, "rank_hi": ranks.hi, "tier": ranks.tier, "best": ranks.best}
    nothing = np.zeros(len(ratings.models), dtype=np.int64)
    return {"rank_lo": nothing, "rank_hi": nothing, "tier": nothing, "best": np.full(len(nothing), np.nan)}


def _anchor(ratings: Ratings, anchors: Mapping[str, float]) -> tuple[int, float] | None:
    """The index of a single anchor, which only shifts the gauge, and its logits; None without an anchor.

    Raises `InputError` for several anchors, which not every method can hold, and for an anchor without a rating.
    """
    there = {name: points for name, points in anchors.items() if name in ratings.models}
    if not there or ratings.gauge != "mean 1000":
        return None
    if len(there) > 1:
        raise InputError(f"{ratings.method} holds one anchor: name one, or choose bradley-terry")
    ((name, points),) = there.items()
    index = ratings.models.index(name)
    if not np.isfinite(ratings.logits[index]):
        raise InputError(f"the anchor {name} has no rating, so nothing can hang on it: name another")
    return index, (points - ELO_MEAN) / POINTS_PER_LOGIT


def _shifted(ratings: Ratings, anchor: tuple[int, float] | None) -> Ratings:
    """The same ratings with the anchor at its given value; errors are then those of differences to it."""
    if anchor is None:
        return ratings
    place, logit = anchor
    spread = ratings.covariance
    if spread is not None:
        spread = spread - spread[[place]] - spread[:, [place]] + spread[place, place]
    points = ELO_MEAN + POINTS_PER_LOGIT * logit
    return replace(
        ratings,
        logits=ratings.logits - ratings.logits[place] + logit,
        covariance=spread,
        gauge=f"anchored: {ratings.models[place]} = {points:g}",
    )


def _moved(drawn: Replicates, ratings: Ratings, anchor: tuple[int, float] | None) -> Replicates:
    """The same replicates in the gauge of the ratings that they were drawn around."""
    if anchor is None:
        return drawn
    place, logit = anchor
    return replace(drawn, logits=drawn.logits - drawn.logits[:, [place]] + logit, point=ratings.logits)


def _replicates(ratings: Ratings, data: Comparisons, options: Options, ridge: float, refit: Refit | None) -> Replicates:
    if refit is not None:
        return bootstrap_refits(data, refit, ratings, replicates=options.replicates, seed=options.seed)
    held = np.isin(ratings.models, list(options.anchors))
    bootstrap = bootstrap_battles if data.cluster is None else bootstrap_clusters
    return bootstrap(data, ratings.logits, replicates=options.replicates, seed=options.seed, ridge=ridge, fixed=held)


def _fit(ratings: Ratings, data: Comparisons) -> dict[str, Any]:
    facts = {key: value for key, value in ratings.diagnostics.items() if key != "no_estimate"}
    return {"group": 1, "models": int(np.count_nonzero(np.isfinite(ratings.logits))), "judgments": len(data), **facts}
