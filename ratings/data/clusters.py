"""Sums over clusters: rows of one instruction share what is not the models' doing, so errors count them together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

__all__ = ["grouped", "products"]

_DENSE = 20_000_000  # sums by cluster and model are kept in full up to so many numbers (160 MB)


def grouped(cluster: NDArray[np.int32] | None, rows: int) -> tuple[NDArray[np.int32], int]:
    """Each row's cluster (rows,), numbered without gaps, and how many there are; None: each row is its own."""
    if cluster is None:
        return np.arange(rows, dtype=np.int32), rows
    present = np.bincount(cluster) > 0
    return (np.cumsum(present, dtype=np.int32) - np.int32(1))[cluster], int(present.sum())


def products(
    group: NDArray[np.int32],
    count: int,
    a: NDArray[np.int32],
    of_a: NDArray[np.float64],
    b: NDArray[np.int32],
    of_b: NDArray[np.float64],
    size: int,
    columns: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Sum over `count` groups of the outer product of the group's sums with themselves, (size + k, size + k).

    A row adds `of_a` to the sum of model `a` and `of_b` to that of `b`; `columns` (count, k) are further sums.
    """
    more = np.zeros((count, 0)) if columns is None else columns
    if count * size <= _DENSE:
        place = group.astype(np.int64) * size
        models = np.bincount(place + a, of_a, count * size) + np.bincount(place + b, of_b, count * size)
        sums = np.hstack([models.reshape(count, size), more])
        return np.asarray(sums.T @ sums)
    at = np.concatenate([group, group]), np.concatenate([a, b])
    sparse = coo_array((np.concatenate([of_a, of_b]), at), shape=(count, size)).tocsr()
    across, matrix = sparse.T @ more, np.empty((size + more.shape[1], size + more.shape[1]))
    matrix[:size, :size] = (sparse.T @ sparse).toarray()
    matrix[:size, size:], matrix[size:, :size], matrix[size:, size:] = across, across.T, more.T @ more
    return matrix
