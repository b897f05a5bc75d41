"""Lack of fit between pairs: how far pairs depart from one rating a model, and what that does to ratings.

With ratings R, pair p has log odds x_p R + e_p, e_p an effect of the pair that no rating explains: a model that beats
another more often than their strengths say, a judge that errs now and then however clear the battle. Where all pairs
are asked equally often, the effects are part of what is rated. Where some pairs are asked, ratings lean towards the
effects of these, and errors by instructions alone do not know it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from venire.arena.scale import POINTS_PER_LOGIT
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.data.validation import finite_or_none, model_column
from venire.ratings.diagnostics.goodness_of_fit import PairNoise, pair_noise
from venire.ratings.pairwise.covariance import inverse_information

_MAX_MODELS = 500
"""Models beyond which pairs are too many to look at by default."""

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class LackOfFit:
    """The effects of pairs, and the errors that they add to ratings of all pairs.

    `spread` is the standard deviation of the effects in logits, 0 where pairs scatter no more than their battles, NaN
    where nothing is left to see it by. `degrees` is the number of asked pairs beyond those that the ratings need,
    `asked` of `possible` pairs were asked. `covariance` (models, models) in logits, about the mean of all models, is
    what the effects add: of the ratings less those that all pairs, asked equally often, would give. It is 0 for an even
    design and NaN for models without a rating.
    """

    spread: float
    degrees: int
    asked: int
    possible: int
    covariance: Matrix


def lack_of_fit(data: Comparisons, logits: Vector, *, ridge: float = 0.0) -> LackOfFit:
    """The lack of fit of ratings `logits` (models,), NaN for models without one, at their maximum under `ridge`.

    The spread is the method of moments of meta-regression (DerSimonian and Laird 1986; Thompson and Sharp 1999): each
    pair is a study, its battles scatter by phi p (1 - p), phi being the scatter of instructions within pairs over what
    independent battles would have. Effects are taken as equally wide for all pairs.

    >>> from venire.ratings import bradley_terry, comparisons, lack_of_fit
    >>> data = comparisons(list("abca" * 9), list("bcab" * 9), [1, 1, 1, 0, 1, 0, 1, 1, 0] * 4)
    >>> found = lack_of_fit(data, bradley_terry(data).logits)
    >>> found.degrees, found.asked, found.possible
    (1, 3, 3)
    """
    logits = model_column("logits", logits, data.models)
    rated = np.flatnonzero(np.isfinite(logits))
    at, size = logits[rated], len(rated)
    noise = pair_noise(data, logits)
    information = noise.total * noise.expected * (1.0 - noise.expected)
    free = np.ones(size, dtype=np.bool_)
    totals = _square(noise, noise.total, size)
    bread = inverse_information(totals, at, ridge=ridge, free=free, models=noise.models)
    degrees = len(information) - size + 1
    spread = _spread(noise, information, bread, degrees, size)
    whole = expit(at[:, None] - at) * expit(at - at[:, None])
    np.fill_diagonal(whole, 0.0)
    even = inverse_information(np.ones((size, size)), at, ridge=0.0, free=free, models=noise.models)
    across = bread @ laplacian(_square(noise, information, size) * whole) @ even
    added = bread @ laplacian(_square(noise, information**2, size)) @ bread + even @ laplacian(whole**2) @ even
    covariance = np.full((len(logits), len(logits)), np.nan)
    covariance[np.ix_(rated, rated)] = np.nan_to_num(spread) ** 2 * (added - across - across.T)
    return LackOfFit(spread, degrees, len(information), size * (size - 1) // 2, covariance)


def with_lack_of_fit(
    ratings: Ratings, data: Comparisons, *, ridge: float = 0.0, anchors: Collection[str] = ()
) -> Ratings:
    """Bradley-Terry ratings whose errors include the lack of fit between pairs, so that they are about all pairs.

    Degrees of freedom are those of the sum of both variances (Satterthwaite 1946). `diagnostics["lack_of_fit"]` has the
    spread in Elo points, its degrees of freedom, and the factor by which errors were `widened`.
    Ratings without robust errors, with several anchors, or of more than 500 models are returned as they are.

    >>> from venire.ratings import bradley_terry, comparisons, with_lack_of_fit
    >>> data = comparisons(list("abca" * 9), list("bcab" * 9), [1, 1, 1, 0, 1, 0, 1, 1, 0] * 4)
    >>> with_lack_of_fit(bradley_terry(data), data).diagnostics["lack_of_fit"]["degrees"]
    1
    """
    held = np.isin(ratings.models, list(anchors))
    robust = ratings.covariance is not None and ratings.errors in ("cluster", "two-way", "sandwich")
    rated = int(np.isfinite(ratings.logits).sum())
    if ratings.covariance is None or not robust or held.sum() > 1 or not 2 <= rated <= _MAX_MODELS:
        return ratings
    found = lack_of_fit(data, ratings.logits, ridge=ridge)
    facts = {"spread": finite_or_none(POINTS_PER_LOGIT * found.spread), "degrees": found.degrees}
    if not found.spread > 0.0:
        return replace(ratings, diagnostics={**ratings.diagnostics, "lack_of_fit": {**facts, "widened": 1.0}})
    added = found.covariance
    if held.any():  # ratings are about the anchor, not about the mean of all
        one = int(np.argmax(held))
        added = added - added[one] - added[:, one][:, None] + added[one, one]
    known = np.isfinite(np.diagonal(ratings.covariance))
    own, more = (float(np.diagonal(one)[known].sum()) for one in (ratings.covariance, added))
    if not own > 0.0:
        return ratings
    facts["widened"] = finite_or_none(np.sqrt((own + more) / own))
    return replace(
        ratings,
        covariance=ratings.covariance + added,
        degrees=(own + more) ** 2 / (own**2 / ratings.degrees + more**2 / found.degrees),
        diagnostics={**ratings.diagnostics, "lack_of_fit": facts},
    )


def _spread(noise: PairNoise, information: Vector, bread: Matrix, degrees: int, size: int) -> float:
    """The standard deviation of effects, NaN where no pair is left over or no pair was asked on two instructions."""
    residuals = noise.residuals.tocsr()
    units = np.diff(residuals.indptr).astype(np.float64)
    sums = np.asarray(residuals.sum(axis=1)).ravel()
    squares = np.asarray(residuals.power(2).sum(axis=1)).ravel()
    several = units > 1.0
    if degrees < 1 or not several.any():
        return np.nan
    within = (squares - sums**2 / np.maximum(units, 1.0)) * units / np.maximum(units - 1.0, 1.0)
    phi = float(within[several].sum() / information[several].sum())
    scale = float(information.sum() - np.sum(bread * laplacian(_square(noise, information**2, size))))
    if phi <= 0.0 or scale <= 1e-9 * information.sum():
        return np.nan
    chi_square = float(np.sum(sums**2 / information)) / phi
    return float(np.sqrt(max(0.0, (chi_square - degrees) * phi / scale)))


def _square(noise: PairNoise, values: Vector, size: int) -> Matrix:
    """Values of pairs (pairs,) as a symmetric matrix (size, size)."""
    square = np.zeros((size, size))
    square[noise.first, noise.second] = square[noise.second, noise.first] = values
    return square


def laplacian(weight: Matrix) -> Matrix:
    """Sum over pairs of weight times x x', x being +1 at one model and -1 at the other."""
    return np.diag(weight.sum(axis=1)) - weight
