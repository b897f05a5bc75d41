"""Bradley-Terry ratings by maximum likelihood: P(i beats j) = sigma(R_i - R_j).

The log-likelihood is linear in the outcome, so the matrix of pair counts W[i, j] = weight by which i beat j is
sufficient, whatever the number of judgments. A finite maximum exists if and only if every model can be reached from
every other along wins (Ford 1957); this is checked before fitting, not detected from a diverging optimiser. m-ELO, the
am-ELO paper's Elo at its maximum instead of one pass of updates, is the same model under another name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError
from venire.arena.scale import ELO_MEAN, POINTS_PER_LOGIT
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.data.wins import WinCounts, count_matrix
from venire.ratings.pairwise.components import SeparatedError, weak_components
from venire.ratings.pairwise.covariance import Errors, FittedOutcomes, bradley_terry_covariance
from venire.ratings.pairwise.solvers import Maximum, NotConvergedError, climb, curve_of


def bradley_terry(
    data: Comparisons,
    *,
    ridge: float = 0.0,
    anchors: Mapping[str, float] | None = None,
    errors: Errors | None = None,
    fitted: FittedOutcomes | None = None,
) -> Ratings:
    """Maximum-likelihood ratings of the models compared; outcomes between 0 and 1 count as fractional wins.

    `ridge` is lambda in lambda / 2 |R|^2, subtracted from the summed log-likelihood. `anchors` maps names to Elo
    points: a single anchor shifts all ratings to match it; several are held there, and the others are fitted around
    them. A model without a comparison is NaN and listed in `diagnostics["no_estimate"]`. `errors` None is "cluster"
    where the data has clusters, else "sandwich"; limitations of the errors are in `diagnostics["errors_reason"]`.
    `fitted` says how outcomes depend on parameters that were fitted to the same rows, whose errors are then included.
    Raises `SeparatedError`, which names the groups, when no finite maximum exists and there is no ridge, `InputError`,
    and `NotConvergedError`.

    >>> from venire.ratings import bradley_terry, comparisons
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> bradley_terry(data).elo.round(1).tolist()
    [1131.4, 1000.0, 868.6]
    """
    kind = errors or data.errors
    found = _rate(data.wins, ridge=ridge, anchors=anchors)
    if kind == "none":
        return found
    held = np.isin(data.models, list(anchors or ()))
    spread = bradley_terry_covariance(data, found.logits, ridge=ridge, errors=kind, fixed=held, fitted=fitted)
    return spread.of(found)


def bradley_terry_wins(
    wins: WinCounts | ArrayLike,
    models: Sequence[str] = (),
    *,
    ridge: float = 0.0,
    anchors: Mapping[str, float] | None = None,
    start: NDArray[np.float64] | None = None,
) -> Ratings:
    """`bradley_terry` from pair counts: `WinCounts`, or a matrix (n, n) with [i, j] the weight by which i beat j.

    `start` (n,) are initial logits, for example those of a similar table. Raises the errors of `bradley_terry`.

    >>> from venire.ratings import bradley_terry_wins, comparisons, win_counts
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> bradley_terry_wins(win_counts(data)).elo.round(1).tolist()
    [1131.4, 1000.0, 868.6]
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
    """Fit the models that can be fitted, and record those left out."""
    if not counts.models:
        raise InputError("there is no model to rate")
    if not (ridge >= 0.0 and np.isfinite(ridge)):
        raise InputError(f"ridge is {ridge}; give a number that is 0 or more")
    if start is not None and start.shape != (len(counts.models),):
        raise InputError(f"start has shape {start.shape}; give one rating for each of {len(counts.models)} models")
    battles = counts.played
    known, anchored = battles > 0.0, _anchored(counts.models, battles, anchors)
    inside = counts if known.all() else counts.only(known)
    held = np.isfinite(anchored[known])
    several = np.count_nonzero(held) > 1
    groups = inside.strong_components(held if several else None)
    if ridge == 0.0 and len(groups) > 1:
        raise SeparatedError(_named(inside.models, groups))
    begin = inside.guess() if start is None else np.nan_to_num(start[known])
    found = _climb(inside, begin, anchored[known] if several else None, ridge)
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


def _climb(
    counts: WinCounts, begin: NDArray[np.float64], anchored: NDArray[np.float64] | None, ridge: float
) -> Maximum:
    """Maximise from `begin` (n,), or from equal ratings if that fails; anchors (n,), NaN for the others, are held."""
    curve, fixed = curve_of(counts), None if anchored is None else np.isfinite(anchored)
    for start in (begin, np.zeros(len(begin))) if begin.any() else (begin,):
        if anchored is not None and fixed is not None:
            start = np.where(fixed, anchored, start + anchored[fixed].mean())
        try:
            return climb(curve, start, ridge=ridge, fixed=fixed)
        except NotConvergedError as error:
            failed = error
    raise failed


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


def m_elo(data: Comparisons, **options: Any) -> Ratings:
    """Bradley-Terry ratings under the name that am-ELO's authors use; options and errors are those of `bradley_terry`.

    >>> from venire.ratings import comparisons, m_elo
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> m_elo(data).elo.round(1).tolist()
    [1131.4, 1000.0, 868.6]
    """
    return replace(bradley_terry(data, **options), method="m-elo")
