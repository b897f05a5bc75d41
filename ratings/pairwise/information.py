"""The inverse of the Bradley-Terry information, in an exact gauge."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from venire.arena.errors import InputError

__all__ = ["inverse_information", "inverse_laplacian"]

_SINGULAR = "the ratings are too far apart for an error in double precision: give a ridge"

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


def inverse_information(
    totals: Matrix, logits: Vector, *, ridge: float, free: NDArray[np.bool_], models: tuple[str, ...]
) -> Matrix:
    """Inverse (n, n) of the information at `logits` (n,), from the weight of all comparisons of each pair (n, n).

    With every model `free` equal shifts are taken out; otherwise rows and columns of fixed models are 0. One fixed
    model is no more than a gauge: a ridge pulls towards the mean as if none were. Several are held where they are, and
    a ridge pulls the others towards 0. A fixed model that met nobody, beside others that did, holds nothing. Raises
    `InputError` where models hang on no comparison with the rest.
    """
    gap = logits[:, None] - logits[None, :]
    coupling = totals * expit(gap) * expit(-gap)
    np.fill_diagonal(coupling, 0.0)
    return inverse_laplacian(coupling, totals > 0.0, ridge=ridge, free=free, models=models)


def inverse_laplacian(
    coupling: Matrix, joined: NDArray[np.bool_], *, ridge: float, free: NDArray[np.bool_], models: tuple[str, ...]
) -> Matrix:
    """The same of an information matrix given by minus its entries off the diagonal; its rows add up to the ridge.

    `coupling` (n, n) has a diagonal of 0, `joined` (n, n) says which models were compared, where 0 may be underflow.
    """
    met = free | joined.any(axis=1)
    if not met.all() and not free[met].all():
        return _among(met, coupling, joined, ridge=ridge, free=free, models=models)
    if np.count_nonzero(~free) == 1:
        centred = inverse_laplacian(coupling, joined, ridge=ridge, free=np.ones_like(free), models=models)
        return _about(centred, int(np.argmin(free)))
    size = len(coupling)
    inverse = np.zeros((size, size))
    if not free.any():
        return inverse
    if ridge == 0.0:
        _refuse_islands(joined, free, models)
    information = -coupling
    np.fill_diagonal(information, ridge + coupling.sum(axis=1))
    shifts = bool(free.all())
    inside = free.copy()
    if shifts and ridge > 0.0:
        information += np.trace(information) / size**2
    elif shifts:
        # Any one model may be held; the one that is known best costs the fewest digits.
        inside[np.argmax(np.diagonal(information))] = False
    if not inside.any():
        return inverse
    inner = information[np.ix_(inside, inside)]
    if not bool(np.all(np.diagonal(inner) > 0.0)):
        raise InputError(_SINGULAR)
    # Ratings far apart make diagonals of unlike sizes: scaled to ones, they cost no digits.
    scale = 1.0 / np.sqrt(np.diagonal(inner))
    try:
        factor = cho_factor(inner * scale[:, None] * scale[None, :], lower=True, overwrite_a=True)
    except LinAlgError as error:
        raise InputError(_SINGULAR) from error
    inverse[np.ix_(inside, inside)] = cho_solve(factor, np.diag(scale)) * scale[:, None]
    if shifts:
        inverse -= inverse.mean(axis=0)[None, :]
        inverse -= inverse.mean(axis=1)[:, None]
    return 0.5 * (inverse + inverse.T)


def _among(
    met: NDArray[np.bool_],
    coupling: Matrix,
    joined: NDArray[np.bool_],
    *,
    ridge: float,
    free: NDArray[np.bool_],
    models: tuple[str, ...],
) -> Matrix:
    """The inverse of the models in `met` alone, and zeros for the others, which are fixed and idle."""
    inside, inverse = np.ix_(met, met), np.zeros_like(coupling)
    names = tuple(name for name, stays in zip(models, met.tolist(), strict=True) if stays)
    inverse[inside] = inverse_laplacian(coupling[inside], joined[inside], ridge=ridge, free=free[met], models=names)
    return inverse


def _about(centred: Matrix, anchor: int) -> Matrix:
    """The covariance of differences to one model, which itself has none."""
    found = centred - centred[anchor] - centred[:, anchor, None] + centred[anchor, anchor]
    found[anchor], found[:, anchor] = 0.0, 0.0
    return np.asarray(found)


def _refuse_islands(joined: NDArray[np.bool_], free: NDArray[np.bool_], models: tuple[str, ...]) -> None:
    """Without a ridge, comparisons must lead from every free model to every other, or to a fixed one."""
    graph = joined.copy()
    held = np.flatnonzero(~free)
    graph[np.ix_(held, held)] = True
    count, part = connected_components(graph.astype(np.float64), directed=False)
    if count > 1:
        counts = np.bincount(part)
        alone = [
            models[code] for code in np.flatnonzero(part != part[held[0]] if len(held) else part != counts.argmax())
        ]
        shown = ", ".join(alone[:5]) + (f" and {len(alone) - 5} more" if len(alone) > 5 else "")
        raise InputError(f"{shown}: never compared with the others; rate them apart, or give a ridge")
