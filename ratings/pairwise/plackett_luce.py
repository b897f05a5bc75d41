"""Plackett-Luce ratings of ballots by maximum likelihood: Bradley-Terry for choices among more than two.

Sources: Luce, Individual Choice Behavior (1959); Plackett, The analysis of permutations (1975). A finite maximum exists
exactly when "placed above or tied" leads from every model to every other (Hunter, MM algorithms for generalized
Bradley-Terry models, 2004): the same question as for the pairs of the ballots, and asked before anything is fitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from venire.arena.ballots import Ballots
from venire.arena.errors import InputError
from venire.ratings.data.clusters import grouped
from venire.ratings.data.result import Ratings
from venire.ratings.pairwise.bradley_terry import bradley_terry_wins
from venire.ratings.pairwise.choices import Choices, Places, places
from venire.ratings.pairwise.covariance import Errors, sandwiched
from venire.ratings.pairwise.information import inverse_laplacian
from venire.ratings.pairwise.solvers import Maximum, NotConvergedError, climb

__all__ = ["plackett_luce"]

Vector = NDArray[np.float64]


def plackett_luce(
    ballots: Ballots,
    *,
    ridge: float = 0.0,
    anchors: Mapping[str, float] | None = None,
    errors: Errors | None = None,
) -> Ratings:
    """Maximum-likelihood ratings of the models on ballots; ballots of two models give those of Bradley-Terry.

    Unranked models were left to the end by every choice; a tied group shares its choices (`choices`). `ridge` and
    `anchors` are as in `bradley_terry`. A ballot is one unit, and `errors` None is "cluster" where ballots name
    instructions, else "sandwich". A model that stands on no ballot with another is NaN, and `no_estimate` says so.
    Raises `SeparatedError` when no finite maximum exists and there is no ridge, `InputError`, `NotConvergedError`.
    """
    kind = errors or ("cluster" if ballots.instructions else "sandwich")
    _check(ballots, kind)
    weight = np.ones(len(ballots)) if ballots.weight is None else ballots.weight
    field = places(ballots.rank)
    pairs = Choices(field, weight, len(ballots.models)).wins()
    begin = bradley_terry_wins(pairs, ballots.models, ridge=ridge, anchors=anchors)
    known = np.flatnonzero(begin.battles > 0.0)
    counted = np.flatnonzero((weight > 0.0) & (field.shown > 1) & (field.ranked > 0))
    likelihood = _likelihood(field.part(counted), weight[counted], known, len(ballots.models))
    held = np.isin(ballots.models, list(anchors or ()))
    found = _climb(likelihood, begin.logits[known], held[known], ridge)
    logits = begin.logits.copy()
    logits[known] = found.logits
    if np.count_nonzero(held) == 1:
        logits[known] += (begin.logits - logits)[held]
    rated = replace(
        begin, method="plackett-luce", logits=logits, diagnostics=_notes(begin, likelihood, found, weight[counted])
    )
    if kind == "none":
        return rated
    unit = ballots.instruction[counted] if kind == "cluster" else None
    return _with_errors(rated, likelihood, known, ~held[known], ridge, kind, grouped(unit, len(counted)))


def _check(ballots: Ballots, kind: str) -> None:
    if kind not in get_args(Errors):
        raise InputError(f"errors is {kind!r}; choose one of {', '.join(get_args(Errors))}")
    if kind == "cluster" and not ballots.instructions:
        raise InputError("errors='cluster' needs ballots that name their instruction; use errors='sandwich'")


def _likelihood(field: Places, weight: Vector, known: NDArray[np.intp], size: int) -> Choices:
    """The likelihood with models coded among those `known`: the others met nobody."""
    place = np.zeros(size, dtype=np.intp)
    place[known] = np.arange(len(known))
    return Choices(replace(field, model=place[field.model]), weight, len(known))


def _climb(likelihood: Choices, begin: Vector, held: NDArray[np.bool_], ridge: float) -> Maximum:
    """From the ratings of the pairs, or from equal ones where that leads nowhere; several anchors are held."""
    fixed = held if np.count_nonzero(held) > 1 else None
    plain = np.zeros(len(begin)) if fixed is None else np.where(held, begin, begin[held].mean())
    try:
        return climb(likelihood, begin, ridge=ridge, fixed=fixed)
    except NotConvergedError:
        return climb(likelihood, plain, ridge=ridge, fixed=fixed)


def _notes(begin: Ratings, likelihood: Choices, found: Maximum, weight: Vector) -> dict[str, Any]:
    total = float(weight.sum())
    kept = ("components", "groups", "no_estimate")
    return {
        "log_likelihood": likelihood.log_likelihood(found.logits),
        "iterations": found.steps,
        "gradient": found.gradient / total if total else 0.0,
        "ballots": len(weight),
        **{name: begin.diagnostics[name] for name in kept if name in begin.diagnostics},
    }


def _with_errors(
    rated: Ratings,
    likelihood: Choices,
    known: NDArray[np.intp],
    free: NDArray[np.bool_],
    ridge: float,
    kind: str,
    grouping: tuple[NDArray[np.int32], int],
) -> Ratings:
    """The ratings with their covariance; `grouping` is each ballot's unit and how many there are."""
    names, logits, (unit, units) = tuple(rated.models[code] for code in known), rated.logits[known], grouping
    coupling = likelihood.coupling(logits)
    bread = inverse_laplacian(coupling, coupling > 0.0, ridge=ridge, free=free, models=names)
    matrix, degrees, reason = bread, np.inf, None
    if kind == "hessian" and likelihood.ties:
        raise InputError("errors='hessian' holds only for ballots without ties; use errors='sandwich' or 'cluster'")
    if kind != "hessian":
        scores, most = likelihood.scores(logits, unit, units)
        matrix, degrees, reason = sandwiched(
            bread, scores.T @ scores, units, free=free, models=names, largest=most, errors=kind, unit="ballot"
        )
    spread = np.full((len(rated.models), len(rated.models)), np.nan)
    spread[np.ix_(known, known)] = matrix
    notes = {**rated.diagnostics, "clusters": units, "errors_reason": reason}
    return replace(rated, covariance=spread, errors=kind, degrees=degrees, diagnostics=notes)
