"""Interim analysis of the verdicts so far, with fixed and anytime-valid intervals, and the stopping rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from venire.arena.battles import Battles
from venire.arena.campaigns import StopSettings
from venire.arena.errors import InputError
from venire.arena.planning import InterimAnalysis, InterimRating
from venire.arena.scale import ELO_MEAN, POINTS_PER_LOGIT
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.judgments import Judgments, combine_keys, merge_orders
from venire.ratings.data.result import Ratings
from venire.ratings.data.statistics import student
from venire.ratings.data.validation import check_level
from venire.ratings.data.wins import WinCounts
from venire.ratings.inference.any_time import MIN_CLUSTERS, PAIR_SCALE, any_time_interval, stopping_half_width
from venire.ratings.inference.contrasts import joint_errors
from venire.ratings.inference.one_sided import one_sided
from venire.ratings.pairwise.balanced_pairs import balanced_pairs
from venire.ratings.pairwise.bradley_terry import bradley_terry, bradley_terry_wins
from venire.ratings.pairwise.components import restrict_models
from venire.ratings.pairwise.covariance import covariance_and_floor, model_covariance
from venire.ratings.pairwise.solvers import NotConvergedError

MIN_BATTLES = 5
"""A model with fewer judged battles is starved: its rating is hardly more than its prior."""

PRIOR = 1.0
"""The ridge that gives models without a win or loss a rating: a prior of one logit about the mean."""

_NAMED = 5

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Verdicts as comparisons of all `models` (n,), and how often each was judged.

    `battles` (n,) counts distinct pairs and instructions with a readable verdict, `judged` all of them, `verdicts` the
    readable verdicts, `instructions` the instructions with one.
    """

    data: Comparisons
    battles: NDArray[np.intp]
    judged: int
    verdicts: int
    instructions: int

    @property
    def models(self) -> tuple[str, ...]:
        """Names, sorted."""
        return self.data.models


@dataclass(frozen=True, slots=True, eq=False)
class _CurrentRatings:
    """The models rated together: logits (n,), NaN for the others, and the clustered and the larger error.

    `differences` (n, n) are the larger errors of differences. `clusters` is the number behind them, `reason` explains a
    failed fit.
    """

    logits: Vector
    se: Vector
    larger: Vector
    differences: Matrix
    clusters: int
    reason: str | None = None


def check_stop(stop: StopSettings, models: Sequence[str]) -> None:
    """Raise `InputError` for a rule that can never hold for these models, or with an impossible number."""
    check_level(stop.level)
    if not stop.indifference >= 0.0:
        raise InputError(f"[plan.stop] indifference is {stop.indifference}; give Elo points, 0 or more")
    if stop.half_width is not None and not stop.half_width > 0.0:
        raise InputError(f"[plan.stop] half_width is {stop.half_width}; give Elo points above 0")
    if stop.top is not None and not 1 <= stop.top < len(models):
        raise InputError(
            f"[plan.stop] top is {stop.top}, of {len(models)} models; give a number from 1 to {len(models) - 1}"
        )


def evidence(battles: Battles, models: Sequence[str] = ()) -> Evidence:
    """Verdicts as evidence on `models` and on further models that they name; a model without a verdict has no row.

    Raises `InputError` as `merge_orders` does.
    """
    judgments = merge_orders(battles)
    found = judgments.comparisons()
    names = tuple(sorted({*models, *found.models}))
    place = {name: code for code, name in enumerate(names)}
    codes = np.array([place[name] for name in found.models], dtype=np.int32)
    data = replace(found, models=names, a=codes[found.a], b=codes[found.b])
    a, b, on = _battles(data, judgments)
    return Evidence(
        data=data,
        battles=np.bincount(np.concatenate([a, b]), minlength=len(names)),
        judged=len(a),
        verdicts=int(judgments.readable.sum()) if len(judgments) else 0,
        instructions=int(np.count_nonzero(np.bincount(on))) if judgments.instructions else 0,
    )


def interim_analysis(
    battles: Battles, models: Sequence[str], stop: StopSettings, *, nano: int = 0, even: bool = False
) -> InterimAnalysis:
    """Interim analysis of `models`: current ratings, and the first rule of `stop` that holds; docs/planning.md.

    The rules, in this order: the number of judged battles, the width of every model's interval, the top models known,
    the whole order known. The last three need 20 instructions. Any verdicts give a result. `even` rates as if all pairs
    had been asked equally often, for battles that were chosen adaptively. Raises `InputError` for a rule that can never
    hold.

    >>> from venire.arena.campaigns import StopSettings
    >>> from venire.ratings import battles, interim_analysis
    >>> rng = np.random.default_rng(0)
    >>> a, b = np.array([(0, 1), (1, 2), (0, 2)] * 160).T
    >>> y = (rng.random(480) < 0.7).astype(float)
    >>> asked = battles(a, b, y, instruction=np.arange(480) // 6, swapped=np.arange(480) % 6 > 2)
    >>> found = interim_analysis(asked, asked.models, StopSettings(battles=400))
    >>> found.battles, round(found.half_width, 1)
    (240, 38.6)
    """
    seen = evidence(battles, models)
    check_stop(stop, seen.models)
    now, main = _current_ratings(seen.data, even)
    rows = _interim_ratings(seen, now, stop.level)
    widest = _half_width(now, stop.level)
    undecided = _undecided(seen, now, main, stop)
    analysis = InterimAnalysis(
        battles=seen.judged,
        verdicts=seen.verdicts,
        instructions=seen.instructions,
        nano=nano,
        models=rows,
        half_width=widest,
        open=min((count for count, _ in undecided.values()), default=None),
        level=stop.level,
        warnings=_warnings(seen, now),
    )
    return replace(analysis, stop=_reason(analysis, stop, undecided))


def _battles(data: Comparisons, judgments: Judgments) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Both models and the instruction of every battle once, whatever its judges and repeats."""
    if not judgments.instructions:
        return data.a, data.b, judgments.instruction
    key = combine_keys(data.a, data.b, judgments.instruction)
    _, first = np.unique(key, return_index=True)
    return data.a[first], data.b[first], judgments.instruction[first]


def _current_ratings(data: Comparisons, even: bool) -> tuple[_CurrentRatings, NDArray[np.bool_]]:
    """Ratings of the largest set of models that can be rated together, and its mask (n,)."""
    size = len(data.models)
    nothing, main = np.full(size, np.nan), np.zeros(size, dtype=np.bool_)
    blank = _CurrentRatings(nothing, nothing, nothing, np.full((size, size), np.nan), 0)
    counts = data.wins
    codes = max(counts.strong_components() if len(data) else [], key=len, default=np.zeros(0, dtype=np.intp))
    if len(codes) < 2:
        return blank, main
    main[codes] = True
    part = restrict_models(data, codes)
    try:
        ratings, own = _rated(part, even)
    except (NotConvergedError, InputError) as error:  # ratings too far apart for double precision
        return replace(blank, reason=str(error)), np.zeros_like(main)
    joint = joint_errors(ratings, draws=0)
    clustered = np.full((len(codes), len(codes)), np.nan)
    clustered[np.ix_(joint.known, joint.known)] = joint.differences
    logits, se, larger, differences = nothing.copy(), nothing.copy(), nothing.copy(), blank.differences.copy()
    logits[codes], se[codes] = ratings.logits, ratings.se
    larger[codes] = np.maximum(ratings.se, np.sqrt(np.diagonal(own)))
    differences[np.ix_(codes, codes)] = np.maximum(clustered, _differences(own))
    return _CurrentRatings(logits, se, larger, differences, ratings.diagnostics["clusters"]), main


def _rated(data: Comparisons, even: bool) -> tuple[Ratings, Matrix]:
    """Ratings with their clustered covariance, and the covariance (n, n) that is the model's own."""
    if even:
        found = balanced_pairs(data)
        return found.ratings, found.floor
    plain = bradley_terry_wins(data.wins)
    clustered, own = covariance_and_floor(data, plain.logits)
    notes = {**plain.diagnostics, "clusters": clustered.clusters}
    return replace(plain, covariance=clustered.matrix, degrees=clustered.degrees, diagnostics=notes), own


def _differences(covariance: Matrix) -> Matrix:
    """Errors (n, n) of the differences of two models."""
    variance = np.diagonal(covariance)
    return np.asarray(np.sqrt(np.maximum(variance[:, None] + variance[None, :] - 2.0 * covariance, 0.0)))


def _interim_ratings(seen: Evidence, now: _CurrentRatings, level: float) -> tuple[InterimRating, ...]:
    """Every model with its intervals in Elo points, sorted by name.

    A model that only beat or only lost to the rated ones has one bound at this analysis, and no rating.
    """
    known = np.isfinite(now.logits)
    quantile = float(student.ppf(0.5 + level / 2.0, now.clusters - 1)) if now.clusters > 1 else np.nan
    low_any, high_any = any_time_interval(now.logits, now.larger, level=level)
    elo = ELO_MEAN + POINTS_PER_LOGIT * now.logits
    low, high = (elo + sign * POINTS_PER_LOGIT * quantile * now.larger for sign in (-1.0, 1.0))
    for name, side in one_sided(seen.data, elo, level=level).items() if not known.all() and known.any() else ():
        if side.bound is not None:
            (low if side.above else high)[seen.data.models.index(name)] = side.bound
    columns = (
        elo,
        POINTS_PER_LOGIT * now.se,
        low,
        high,
        ELO_MEAN + POINTS_PER_LOGIT * low_any,
        ELO_MEAN + POINTS_PER_LOGIT * high_any,
    )
    starved = (seen.battles < MIN_BATTLES) | ~known
    rows = zip(
        seen.models,
        *([value if np.isfinite(value) else None for value in column.tolist()] for column in columns),
        seen.battles.tolist(),
        starved.tolist(),
        strict=True,
    )
    return tuple(InterimRating(*row) for row in rows)


def _half_width(now: _CurrentRatings, level: float) -> float | None:
    """Half the widest interval in Elo points; None while a model has no interval, or below 20 instructions."""
    half = stopping_half_width(now.larger, now.larger, now.clusters, level=level).max(initial=-np.inf)
    return float(POINTS_PER_LOGIT * half) if np.isfinite(half) else None


def _undecided(
    seen: Evidence, now: _CurrentRatings, main: NDArray[np.bool_], stop: StopSettings
) -> dict[str, tuple[int, tuple[str, ...]]]:
    """For each rule about an order: the number of undecided pairs, and the models involved, best first."""
    if stop.top is None and not stop.ranks:
        return {}
    data, size = seen.data, len(seen.models)
    logits, gap, se = _gaps(data, now, main)
    order = np.argsort(-np.where(np.isfinite(logits), logits, -np.inf), kind="stable")
    gap, se = gap[np.ix_(order, order)], se[np.ix_(order, order)]
    better, worse = np.triu_indices(size, 1)
    found: dict[str, tuple[int, tuple[str, ...]]] = {}
    rules = [("ranks", size)] if stop.ranks else []
    clusters = now.clusters if main.any() else seen.instructions
    for rule, first in ([("top", stop.top)] if stop.top is not None else []) + rules:
        asked = (better < first) & (worse >= first) if rule == "top" else better < first
        pairs = better[asked], worse[asked]
        open_ = _open(gap[pairs], se[pairs], stop) if clusters >= MIN_CLUSTERS else len(pairs[0])
        found[rule] = open_, tuple(data.models[code] for code in order[:first].tolist())
    return found


def _open(gap: Vector, se: Vector, stop: StopSettings) -> int:
    """Number of undecided pairs: those whose first model may still be worse by more than the indifference.

    The error probability is divided among all pairs.
    """
    lo, _ = any_time_interval(gap, se, level=stop.level, tau=PAIR_SCALE, among=max(1, len(gap)))
    return int(np.count_nonzero(~(lo * POINTS_PER_LOGIT > -stop.indifference)))


def _gaps(data: Comparisons, now: _CurrentRatings, main: NDArray[np.bool_]) -> tuple[Vector, Matrix, Matrix]:
    """Ratings (n,) to order by, and the difference of every pair (n, n) with its error, in logits; NaN: unknown.

    A model that has won or lost everything has no finite rating, but must not block an order for ever. Its pairs use
    the rating under the prior, which is closer to the others than the verdicts indicate, with the corresponding error.
    There a battle counts once, however many judges it had: model-based errors would treat judges as independent.
    """
    size = len(data.models)
    logits = now.logits
    gap, se = logits[:, None] - logits[None, :], now.differences
    if main.all() or not len(data) or now.reason is not None:
        return logits, gap, se
    data = _equal_battles(data)
    counts = data.wins
    drawn = bradley_terry(data, ridge=PRIOR, errors="none").logits
    own = _differences(model_covariance(data, drawn, ridge=PRIOR))
    part = _parts(size, counts)
    there = np.isfinite(drawn)
    judged = (part[:, None] == part[None, :]) & there[:, None] & there[None, :] & ~(main[:, None] & main[None, :])
    gap = np.where(judged, drawn[:, None] - drawn[None, :], gap)
    return drawn, gap, np.where(judged, own, se)


def _equal_battles(data: Comparisons) -> Comparisons:
    """The same rows, reweighted so that all rows of one battle together have weight 1."""
    if data.cluster is None:
        return data
    _, battle, times = np.unique(combine_keys(data.a, data.b, data.cluster), return_inverse=True, return_counts=True)
    return replace(data, weight=1.0 / times[battle])


def _parts(size: int, counts: WinCounts) -> NDArray[np.int32]:
    """For each model (n,) the index of its connected component of comparisons."""
    edges = coo_array((np.ones(len(counts.first)), (counts.first, counts.second)), shape=(size, size)).tocsr()
    return np.asarray(connected_components(edges, directed=False)[1], dtype=np.int32)


def _reason(
    analysis: InterimAnalysis, stop: StopSettings, undecided: dict[str, tuple[int, tuple[str, ...]]]
) -> str | None:
    """The sentence of the first rule that holds; None: none does."""
    if stop.battles is not None and analysis.battles >= stop.battles:
        return f"{analysis.battles:,} battles are judged, and {stop.battles:,} were asked for"
    if stop.half_width is not None and analysis.half_width is not None and analysis.half_width <= stop.half_width:
        return (
            f"every interval reaches {analysis.half_width:.1f} Elo points or less to each side, "
            f"and {stop.half_width:g} were asked for"
        )
    for rule, (open_, names) in undecided.items():
        if not open_ and rule == "top":
            best = f"the best is known: {names[0]}" if len(names) == 1 else f"the best {len(names)} are known: "
            listed = "" if len(names) == 1 else _few(sorted(names))
            return f"{best}{listed}; no other is better by more than {stop.indifference:g} Elo points"
        if not open_:
            return f"the order of all {len(names)} models is known up to {stop.indifference:g} Elo points"
    return None


def _warnings(seen: Evidence, now: _CurrentRatings) -> tuple[str, ...]:
    """Reasons why an interim analysis cannot answer everything."""
    if not seen.judged:
        return ("no verdict could be read yet",)
    if now.reason is not None:
        return (now.reason,)
    known, met, few = np.isfinite(now.logits), seen.battles > 0, seen.battles < MIN_BATTLES
    many = ~few & (now.clusters >= MIN_CLUSTERS)
    checks = (
        ("not judged yet", ~met),
        ("no rating yet, as no chain of wins joins them with the others both ways", met & ~known),
        (f"judged in fewer than {MIN_BATTLES} battles", known & few),
        ("no error can be told, as what was judged does not scatter", known & ~np.isfinite(now.larger) & many),
    )
    warnings = [
        f"{what}: {_few([seen.models[code] for code in np.flatnonzero(which).tolist()])}"
        for what, which in checks
        if which.any()
    ]
    if 0 < now.clusters < MIN_CLUSTERS:
        on = "1 instruction" if now.clusters == 1 else f"{now.clusters} instructions"
        warnings.append(f"on {on}; with fewer than {MIN_CLUSTERS} nothing stops by what is known")
    return tuple(warnings)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
