"""Agreement of judges on the same items beyond chance: Cohen's kappa for two of them, Fleiss' for more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from venire.arena.errors import InputError
from venire.ratings.agreement.coefficient import Coefficient, Resampling, coefficient_of, kept_clusters, resample
from venire.ratings.data.labels import labels
from venire.ratings.data.statistics import norm
from venire.ratings.data.validation import check_level

__all__ = ["KappaErrors", "Weighting", "cohen_kappa", "fleiss_kappa", "fleiss_kappa_counts", "unanimity"]

Weighting = Literal["none", "linear", "quadratic"]
KappaErrors = Literal["bootstrap", "asymptotic", "none"]


def cohen_kappa(
    first: ArrayLike,
    second: ArrayLike,
    *,
    weighting: Weighting = "none",
    categories: Sequence[object] | None = None,
    errors: KappaErrors = "bootstrap",
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    cluster: ArrayLike | None = None,
) -> Coefficient:
    """Cohen's kappa (1960) of two judges' labels (items,), weighted by the distance of categories (1968) if asked.

    Items that either left without a label are left out. With a weighting the categories are in the order given, else
    sorted. `errors` "asymptotic" is the variance of Fleiss, Cohen and Everitt (1969), for independent items. Raises
    `InputError` for columns of different lengths and for a choice that does not exist.
    """
    left, right = np.asarray(first), np.asarray(second)
    if left.ndim != 1 or left.shape != right.shape:
        raise InputError(f"first has shape {left.shape}, second {right.shape}; give two columns of one length")
    coded = labels(np.stack([left.astype(object), right.astype(object)], axis=1), categories=categories)
    both = (coded.codes >= 0).all(axis=1)
    pairs, size = coded.codes[both], len(coded.categories)
    close = _closeness(size, weighting)
    _check_errors(errors, cluster)
    if not len(pairs):
        return Coefficient("Cohen's kappa", None, 0, level=level, reason="no item has a label of both judges")
    cell = csr_array(
        (np.ones(len(pairs)), (np.arange(len(pairs)), pairs[:, 0] * size + pairs[:, 1])), (len(pairs), size**2)
    )

    def statistic(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        observed, expected = _chances(np.asarray(weights @ cell).reshape(-1, size, size), close)
        return _beyond(observed, expected)

    table: NDArray[np.float64] = np.asarray(cell.sum(axis=0), dtype=np.float64).reshape(1, size, size)
    observed, expected = _chances(table, close)
    if errors == "asymptotic":
        return _asymptotic(table[0], close, len(pairs), level)
    kept = kept_clusters(cluster, np.asarray(both))
    drawn = replicates if errors == "bootstrap" else 0
    found = resample(statistic, len(pairs), level=level, replicates=drawn, seed=seed, cluster=kept)
    return _coefficient("Cohen's kappa", observed[0], expected[0], len(pairs), found, level)


def fleiss_kappa(
    table: ArrayLike,
    *,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    cluster: ArrayLike | None = None,
) -> Coefficient:
    """Fleiss' kappa (1971) of a table (items, judges) of labels; every item needs the same number of labels.

    Raises `InputError` where the numbers differ: `krippendorff_alpha` takes such a table.
    """
    return fleiss_kappa_counts(labels(table).counts(), level=level, replicates=replicates, seed=seed, cluster=cluster)


def fleiss_kappa_counts(
    counts: ArrayLike,
    *,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    cluster: ArrayLike | None = None,
) -> Coefficient:
    """Fleiss' kappa of `counts` (items, categories): how many judges gave each item each category.

    Raises `InputError` for numbers below 0, and for items with different numbers of judges.
    """
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all() or (table < 0).any():
        raise InputError("counts: give a table of items by categories, of numbers that are 0 or more")
    judges = table.sum(axis=1)
    if not len(table):
        return Coefficient("Fleiss' kappa", None, 0, level=level, reason="there is no item")
    wrong = np.flatnonzero((judges != judges[0]) | (judges < 2))
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"labels, row {row}: {judges[row]:g} labels; Fleiss' kappa needs the same number, 2 or more, for every "
            f"item (row 0 has {judges[0]:g}): leave the item out, or take krippendorff_alpha"
        )
    agreed = ((table * table).sum(axis=1) - judges) / (judges * (judges - 1.0))
    shares = table / judges[0]

    def parts(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        total = weights.sum(axis=1)
        marginal = (weights @ shares) / total[:, None]
        return (weights @ agreed) / total, (marginal * marginal).sum(axis=1)

    observed, expected = parts(np.ones((1, len(table))))
    found = resample(
        lambda weights: _beyond(*parts(weights)),
        len(table),
        level=level,
        replicates=replicates,
        seed=seed,
        cluster=cluster,
    )
    return _coefficient("Fleiss' kappa", observed[0], expected[0], len(table), found, level)


def unanimity(
    table: ArrayLike,
    *,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    cluster: ArrayLike | None = None,
) -> Coefficient:
    """Share of the items (items, judges) on which all judges agree, of those that all of them labelled."""
    codes = labels(table).codes
    full = (codes >= 0).all(axis=1)
    same = (codes[full] == codes[full][:, :1]).all(axis=1).astype(np.float64)
    if not len(same):
        return Coefficient("unanimous share", None, 0, level=level, reason="no item has a label of every judge")
    kept = kept_clusters(cluster, np.asarray(full))
    found = resample(
        lambda weights: (weights @ same) / weights.sum(axis=1),
        len(same),
        level=level,
        replicates=replicates,
        seed=seed,
        cluster=kept,
    )
    return coefficient_of("unanimous share", float(same.mean()), len(same), found, level=level)


def _closeness(size: int, weighting: Weighting) -> NDArray[np.float64]:
    """How far two categories count as agreeing (size, size): 1 on the diagonal."""
    if weighting not in ("none", "linear", "quadratic"):
        raise InputError(f"weighting is {weighting!r}; choose none, linear or quadratic")
    if weighting == "none" or size < 2:
        return np.eye(size)
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size))) / (size - 1.0)
    return np.asarray(1.0 - (apart if weighting == "linear" else apart * apart), dtype=np.float64)


def _check_errors(errors: str, cluster: ArrayLike | None) -> None:
    if errors not in ("bootstrap", "asymptotic", "none"):
        raise InputError(f"errors is {errors!r}; choose bootstrap, asymptotic or none")
    if errors == "asymptotic" and cluster is not None:
        raise InputError('errors "asymptotic" takes items as independent; with cluster choose "bootstrap"')


def _chances(
    tables: NDArray[np.float64], close: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Observed and expected agreement (n,) of tables of counts (n, categories, categories)."""
    share = tables / tables.sum(axis=(1, 2), keepdims=True)
    observed = (share * close).sum(axis=(1, 2))
    expected = np.einsum("ni,ij,nj->n", share.sum(axis=2), close, share.sum(axis=1))
    return observed, expected


def _beyond(observed: NDArray[np.float64], expected: NDArray[np.float64]) -> NDArray[np.float64]:
    """(observed - expected) / (1 - expected); NaN where chance alone agrees always."""
    room = 1.0 - expected
    defined = room > 1e-12
    return np.where(defined, (observed - expected) / np.where(defined, room, 1.0), np.nan)


def _coefficient(
    name: str, observed: float, expected: float, items: int, found: Resampling, level: float
) -> Coefficient:
    value = float(_beyond(np.array([observed]), np.array([expected]))[0])
    none = "all labels are of one category: chance alone agrees always"
    return coefficient_of(
        name, value, items, found, level=level, observed=float(observed), expected=float(expected), undefined=none
    )


def _asymptotic(table: NDArray[np.float64], close: NDArray[np.float64], items: int, level: float) -> Coefficient:
    """Cohen's kappa with the large-sample variance of Fleiss, Cohen and Everitt (1969)."""
    check_level(level)
    name = "Cohen's kappa"
    share = table / table.sum()
    row, column = share.sum(axis=1), share.sum(axis=0)
    observed, expected = float((share * close).sum()), float(row @ close @ column)
    plain = _coefficient(name, observed, expected, items, Resampling(np.zeros(0), 0, 0), level)
    if plain.value is None:
        return plain
    kappa = plain.value
    mean = (close @ column)[:, None] + (row @ close)[None, :]
    spread = float((share * (close - mean * (1.0 - kappa)) ** 2).sum()) - (kappa - expected * (1.0 - kappa)) ** 2
    error = float(np.sqrt(max(spread, 0.0) / items)) / (1.0 - expected)
    half = float(norm.ppf(0.5 + level / 2.0)) * error
    return Coefficient(
        name,
        kappa,
        items,
        observed,
        expected,
        max(-1.0, kappa - half),
        min(1.0, kappa + half),
        error,
        level,
        "asymptotic",
    )
