"""Bradley-Terry ratings by maximum likelihood: P(i beats j) = sigma(R_i - R_j).

The likelihood is linear in the outcome, so the matrix of pair counts W[i, j] = weight by which i beat j is all that a
fit needs, whatever the number of judgments. A finite maximum exists exactly when every model can be reached from
every other along wins (Ford 1957); this is checked before fitting, never discovered by an optimiser that ran away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit, log_expit

from venire.arena.errors import InputError
from venire.ratings.comparisons import Comparisons
from venire.ratings.covariance import Errors, bradley_terry_covariance
from venire.ratings.existence import (
    SeparatedError,
    count_components,
    groups_of,
    has_estimate,
    strong_groups,
    weak_components,
)
from venire.ratings.merging import Judgments
from venire.ratings.result import Ratings
from venire.ratings.scale import ELO_MEAN, POINTS_PER_LOGIT
from venire.ratings.solvers import NotConvergedError, climb, curve_of
from venire.ratings.wins import WinCounts, count_matrix, win_counts

__all__ = [
    "BradleyTerry",
    "Errors",
    "NotConvergedError",
    "SeparatedError",
    "bradley_terry",
    "bradley_terry_wins",
    "count_components",
    "derivatives",
    "fit",
    "fit_wins",
    "has_estimate",
    "log_likelihood",
    "maximise",
    "separated_groups",
    "strong_groups",
    "win_matrix",
]

_TOLERANCE = 1e-12
_STEPS = 200


def bradley_terry(
    data: Comparisons,
    *,
    ridge: float = 0.0,
    anchors: Mapping[str, float] | None = None,
    errors: Errors | None = None,
) -> Ratings:
    """Maximum-likelihood ratings of the models compared; outcomes between 0 and 1 count in their shares.

    `ridge` is lambda in lambda / 2 |R|^2, taken from the summed log-likelihood. `anchors` maps names to Elo points: one
    shifts all ratings to meet it; several are held there, and the others are fitted around them. A model without a
    comparison is NaN, and `diagnostics["no_estimate"]` says so. `errors` None is "cluster" where the data has clusters,
    else "sandwich"; what they cannot say is in `diagnostics["errors_reason"]`. Raises `SeparatedError`, which names the
    groups, when no finite maximum exists and there is no ridge, `InputError`, and `NotConvergedError`.
    """
    kind = errors or ("sandwich" if data.cluster is None else "cluster")
    found = _rate(win_counts(data), ridge=ridge, anchors=anchors)
    if kind == "none":
        return found
    held = np.isin(data.models, list(anchors or ()))
    spread = bradley_terry_covariance(data, found.logits, ridge=ridge, errors=kind, fixed=held)
    notes = {**found.diagnostics, "clusters": spread.clusters, "errors_reason": spread.reason}
    return replace(found, covariance=spread.matrix, errors=kind, degrees=spread.degrees, diagnostics=notes)


def bradley_terry_wins(
    wins: WinCounts | ArrayLike,
    models: Sequence[str] = (),
    *,
    ridge: float = 0.0,
    anchors: Mapping[str, float] | None = None,
    start: NDArray[np.float64] | None = None,
) -> Ratings:
    """The same from pair counts: `WinCounts`, or a matrix (n, n) with [i, j] the weight by which `models` i beat j.

    `start` (n,) are logits to begin from, such as those of a similar table. Raises as `bradley_terry` does.
    """
    counts = wins if isinstance(wins, WinCounts) else count_matrix(wins, models)
    return _rate(counts, ridge=ridge, anchors=anchors, start=start)


def _rate(
    counts: WinCounts,
    *,
    ridge: float,
    anchors: Mapping[str, float] | None,
    start: NDArray[np.float64] | None = None,
) -> Ratings:
    """Fit what can be fitted, and say what was left out."""
    if not counts.models:
        raise InputError("there is no model to rate")
    if not (ridge >= 0.0 and np.isfinite(ridge)):
        raise InputError(f"ridge is {ridge}; give a number that is 0 or more")
    battles = counts.played
    known, anchored = battles > 0.0, _anchored(counts.models, battles, anchors)
    inside = counts if known.all() else counts.only(known)
    held = np.isfinite(anchored[known])
    several = np.count_nonzero(held) > 1
    groups = groups_of(inside, held if several else None)
    if ridge == 0.0 and len(groups) > 1:
        raise SeparatedError(_named(inside.models, groups))
    begin = np.zeros(len(inside.models)) if start is None else np.nan_to_num(start[known])
    if several:
        begin = np.where(held, anchored[known], begin + anchored[known][held].mean())
    found = climb(curve_of(inside), begin, ridge=ridge, fixed=held if several else None)
    logits = anchored.copy()
    logits[known] = found.logits
    if np.count_nonzero(held) == 1:
        logits[known] += (anchored[known] - found.logits)[held]
    notes: dict[str, Any] = {
        "log_likelihood": counts_log_likelihood(inside, found.logits),
        "iterations": found.steps,
        "gradient": found.gradient / inside.total if inside.total else 0.0,
        "pairs": len(inside.first),
        "components": 1 if len(groups) == 1 and not several else weak_components(inside),
    }
    if len(groups) > 1:
        notes["groups"] = [list(group) for group in _named(inside.models, groups)]
    if not known.all():
        notes["no_estimate"] = {counts.models[code]: "no comparison" for code in np.flatnonzero(~known).tolist()}
    return Ratings("bradley-terry", counts.models, logits, battles, _gauge(anchors), diagnostics=notes)


def counts_log_likelihood(counts: WinCounts, logits: NDArray[np.float64]) -> float:
    """Log-likelihood of ratings in logits (n,) under pair counts."""
    gap = logits[counts.first] - logits[counts.second]
    tail = np.log1p(np.exp(-np.abs(gap)))
    return -float(counts.won @ (np.maximum(-gap, 0.0) + tail) + counts.lost @ (np.maximum(gap, 0.0) + tail))


def _anchored(
    models: tuple[str, ...], battles: NDArray[np.float64], anchors: Mapping[str, float] | None
) -> NDArray[np.float64]:
    """The ratings of the anchors in logits (n,), NaN for the others; raises `InputError`."""
    held = np.full(len(models), np.nan)
    place = {name: code for code, name in enumerate(models)}
    for name, points in (anchors or {}).items():
        if name not in place:
            raise InputError(f"anchors: no model is called {name!r}; the models are {', '.join(models[:10])}")
        if not np.isfinite(points):
            raise InputError(f"anchors: {name!r} has {points} Elo points; give a finite number")
        held[place[name]] = (points - ELO_MEAN) / POINTS_PER_LOGIT
    if anchors and battles.any() and not battles[np.isfinite(held)].any():
        raise InputError(f"anchors: {', '.join(sorted(anchors)[:10])} met no other model, so nothing hangs on them")
    return held


def _gauge(anchors: Mapping[str, float] | None) -> str:
    if not anchors:
        return "mean 1000"
    shown = ", ".join(f"{name} = {points:g}" for name, points in list(anchors.items())[:3])
    return f"anchored: {shown}" + (f" and {len(anchors) - 3} more" if len(anchors) > 3 else "")


def _named(models: tuple[str, ...], groups: Sequence[NDArray[np.intp]]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(models[code] for code in group.tolist()) for group in groups)


@dataclass(frozen=True, slots=True, eq=False)
class BradleyTerry:
    """A fit at its maximum: `ratings` in logits with mean 0, in the order of `models`.

    `gradient` is the largest entry of the gradient over the total weight, `pairs` the number of distinct pairs
    judged, `battles` the weight of each model's judgments (their number, where each has weight one).
    """

    models: tuple[str, ...]
    ratings: NDArray[np.float64]
    log_likelihood: float
    iterations: int
    gradient: float
    pairs: int
    battles: NDArray[np.float64]


def win_matrix(judgments: Judgments, models: Sequence[str] | None = None) -> NDArray[np.float64]:
    """Pair counts (models, models): entry [i, j] is the weight by which i beat j, a tie being half a win to each.

    `models` names those to keep, in the order wanted; judgments with any other model are left out.
    """
    names = judgments.models if models is None else tuple(models)
    place = np.full(len(judgments.models), -1, dtype=np.int64)
    known = {name: code for code, name in enumerate(judgments.models)}
    place[[known[name] for name in names]] = np.arange(len(names))
    a, b = place[judgments.model_a], place[judgments.model_b]
    inside = (a >= 0) & (b >= 0)
    a, b, y, size = a[inside], b[inside], judgments.y[inside], len(names)
    wins = np.bincount(a * size + b, y, size * size) + np.bincount(b * size + a, 1.0 - y, size * size)
    return np.asarray(wins.reshape(size, size), dtype=np.float64)


def separated_groups(judgments: Judgments) -> tuple[tuple[str, ...], ...]:
    """The names of the models that can be rated together, group by group, ordered as `strong_groups` does."""
    return tuple(tuple(judgments.models[code] for code in group) for group in strong_groups(win_matrix(judgments)))


def log_likelihood(wins: NDArray[np.float64], ratings: NDArray[np.float64]) -> float:
    """Log-likelihood of ratings in logits (n,) under pair counts (n, n)."""
    return float(np.sum(wins * log_expit(ratings[:, None] - ratings[None, :])))


def derivatives(
    wins: NDArray[np.float64], ratings: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gradient (n,) of the log-likelihood and the information matrix (n, n), which is minus its Hessian."""
    share = expit(ratings[:, None] - ratings[None, :])
    surprise = wins * share.T
    information = -(wins + wins.T) * share * share.T
    np.fill_diagonal(information, 0.0)
    np.fill_diagonal(information, -information.sum(axis=1))
    # Wins less expected wins, term by term: one total taken from the other would drown a rare loss in rounding.
    return surprise.sum(axis=1) - surprise.sum(axis=0), information


def maximise(
    wins: NDArray[np.float64], start: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.float64], int, float]:
    """Newton's method on pair counts (n, n) whose maximum exists; ratings in logits with mean 0, steps, gradient.

    The information matrix is singular along equal shifts; adding one constant to all its entries fixes that
    direction alone and leaves every other solution as it is. A step is halved when the slope along it at its end
    points back more steeply than it pointed ahead. Stops when each model's gradient is within 1e-12 of its own
    information, which is never more than its weight. Raises `NotConvergedError`.
    """
    size = len(wins)
    total = float(wins.sum())
    ratings = np.zeros(size) if start is None else start - start.mean()
    step, slope, scale = np.zeros(size), np.inf, 1.0
    for iteration in range(_STEPS):
        gradient, information = derivatives(wins, ratings)
        if np.all(np.abs(gradient) <= _TOLERANCE * np.diagonal(information)):
            return ratings - ratings.mean(), iteration, float(np.abs(gradient).max()) / total if total else 0.0
        if -(gradient @ step) > 0.9 * slope and scale > 1e-6:
            scale *= 0.5
            ratings = ratings - scale * step
            continue
        information += np.trace(information) / size**2
        try:
            step = cho_solve(cho_factor(information, lower=True, overwrite_a=True), gradient)
        except LinAlgError as error:
            raise NotConvergedError("the information matrix is singular in double precision") from error
        slope, scale = float(gradient @ step), 1.0
        ratings = ratings + step
        ratings -= ratings.mean()
    raise NotConvergedError(f"the gradient was not zero after {_STEPS} steps")


def fit_wins(wins: NDArray[np.float64], models: Sequence[str]) -> BradleyTerry:
    """Fit pair counts (n, n) with [i, j] the weight by which i beat j; raises as `fit` does."""
    names = tuple(models)
    if not names:
        raise InputError("there is no model to rate")
    groups = strong_groups(wins)
    if len(groups) > 1:
        raise SeparatedError(tuple(tuple(names[code] for code in group) for group in groups))
    ratings, iterations, gradient = maximise(wins)
    played = wins + wins.T
    return BradleyTerry(
        models=names,
        ratings=ratings,
        log_likelihood=log_likelihood(wins, ratings),
        iterations=iterations,
        gradient=gradient,
        pairs=int(np.count_nonzero(np.triu(played, 1))),
        battles=played.sum(axis=1),
    )


def fit(judgments: Judgments, models: Sequence[str] | None = None) -> BradleyTerry:
    """Maximum-likelihood ratings of the models named (default: all), ties as half a win to each; SPEC 7.

    Raises `SeparatedError`, which names the groups, when no finite estimate exists, `InputError` when there is no
    model, and `NotConvergedError` when double precision does not reach the maximum.
    """
    names = judgments.models if models is None else tuple(models)
    return fit_wins(win_matrix(judgments, names), names)
