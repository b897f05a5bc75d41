"""Krippendorff's alpha: agreement of any number of judges, with labels missing and categories near or far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError
from venire.ratings.agreement.coefficient import Coefficient, coefficient_of, kept_clusters, resample
from venire.ratings.data.labels import Labels, labels

__all__ = ["Distance", "krippendorff_alpha"]

Distance = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(
    table: ArrayLike,
    *,
    distance: Distance = "nominal",
    categories: Sequence[object] | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    cluster: ArrayLike | None = None,
) -> Coefficient:
    """Krippendorff's alpha of a table (items, judges) of labels; None, NaN and "" are missing.

    alpha = 1 - observed / expected disagreement over pairs of labels of one item, and of any two. An item with fewer
    than two labels is left out. "ordinal" takes categories in the order given, else sorted; "interval" needs numbers.
    The bootstrap draws whole items, or clusters of them. Raises `InputError` for a distance that does not fit.
    """
    if distance not in ("nominal", "ordinal", "interval"):
        raise InputError(f"distance is {distance!r}; choose nominal, ordinal or interval")
    coded = labels(table, categories=categories)
    counts = coded.counts()
    paired = counts.sum(axis=1) >= 2
    counts = counts[paired]
    if not len(counts):
        none = "no item has labels of two judges"
        return Coefficient(f"Krippendorff's alpha ({distance})", None, 0, level=level, reason=none)
    points = _points(coded, distance)

    def parts(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return _nominal(counts, weights) if points is None else _distances(counts, weights, points, distance)

    observed, expected = parts(np.ones((1, len(counts))))
    kept = kept_clusters(cluster, paired)
    drawn = resample(
        lambda weights: _alpha(*parts(weights)),
        len(counts),
        level=level,
        replicates=replicates,
        seed=seed,
        cluster=kept,
    )
    return coefficient_of(
        f"Krippendorff's alpha ({distance})",
        float(_alpha(observed, expected)[0]),
        len(counts),
        drawn,
        level=level,
        observed=float(observed[0]),
        expected=float(expected[0]),
        undefined="all labels are equal: nothing could have disagreed",
    )


def _points(coded: Labels, distance: Distance) -> NDArray[np.float64] | None:
    """Where categories stand on a line (categories,); None for nominal ones."""
    if distance == "nominal":
        return None
    if distance == "ordinal":
        return np.arange(len(coded.categories), dtype=np.float64)
    if coded.values is None:
        raise InputError("labels: the interval distance needs numbers; choose ordinal or nominal for names")
    # Large values with small differences would lose digits in the squares.
    return np.asarray(coded.values - coded.values.mean(), dtype=np.float64)


def _alpha(observed: NDArray[np.float64], expected: NDArray[np.float64]) -> NDArray[np.float64]:
    defined = expected > 0.0
    return np.where(defined, 1.0 - observed / np.where(defined, expected, 1.0), np.nan)


def _nominal(
    counts: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Observed and expected share (n,) of pairs with different labels, for weights (n, items)."""
    size = counts.sum(axis=1)
    apart = (size * size - (counts * counts).sum(axis=1)) / (size - 1.0)
    total, marginal = weights @ size, weights @ counts
    return (weights @ apart) / total, (total * total - (marginal * marginal).sum(axis=1)) / (total * (total - 1.0))


def _distances(
    counts: NDArray[np.float64], weights: NDArray[np.float64], points: NDArray[np.float64], distance: Distance
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same for squared distances on a line.

    The ordinal distance of two categories, the labels between them with half of both ends, is the difference of their
    mid-ranks, so it is the interval distance on ranks that each draw has of its own.
    """
    size = counts.sum(axis=1)
    total, marginal = weights @ size, weights @ counts
    place = np.broadcast_to(points, marginal.shape)
    if distance == "ordinal":
        place = np.cumsum(marginal, axis=1) - marginal / 2.0 - total[:, None] / 2.0
    share = 2.0 / (size - 1.0)
    squares = ((weights * (share * size)) @ counts) * place * place
    sums = counts @ (place.T if distance == "ordinal" else points[:, None])
    within = squares.sum(axis=1) - ((weights * share).T * (sums * sums)).sum(axis=0)
    mean = (marginal * place).sum(axis=1)
    between = 2.0 * (total * (marginal * place * place).sum(axis=1) - mean * mean)
    # Labels of one value only: rounding must not pass for a spread, or a draw of them gets an alpha of noise.
    between = np.where(np.count_nonzero(marginal, axis=1) > 1, between, 0.0)
    return within / total, between / (total * (total - 1.0))
