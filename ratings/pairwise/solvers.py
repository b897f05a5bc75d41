"""Newton's method for ratings from pair counts, to the limit of double precision.

Up to some hundred models the linear system of a step is solved by Cholesky factorisation; above, by conjugate
gradients, which need only a few products on well connected boards. Where they stall (long ladders), the system is
factored. Large sparse tables of pairs are kept as a list of pairs throughout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.linalg import splu
from scipy.special import expit

from venire.arena.errors import VenireError
from venire.ratings.data.wins import WinCounts

_TOLERANCE = 1e-12
_ROUNDING = 8.0 * float(np.finfo(np.float64).eps)
_STEPS = 200
_DIRECT = 200
"""Number of models up to which a step is solved directly by Cholesky factorisation."""
_SQUARE = 4000
"""Number of models beyond which a matrix of all pairs takes too much memory."""
_PRODUCTS = 60
"""Products with the matrix after which conjugate gradients count as stalled."""
_BLOCK = 1 << 15
"""Numbers processed at a time."""
_SPAN = 300.0
"""Largest distance of ratings from 0 in logits for which products of exponentials fit into double precision."""


class NotConvergedError(VenireError):
    """The optimiser stopped short of the maximum: the counts are too extreme for double precision."""


@dataclass(frozen=True, slots=True, eq=False)
class Local:
    """A log-likelihood near one point: the information matrix is `diagonal` (n,) minus `coupling` (n, n).

    `turnover` (n,) is the sum of the terms whose difference is `gradient` (n,): rounding is relative to it.
    """

    gradient: NDArray[np.float64]
    turnover: NDArray[np.float64]
    diagonal: NDArray[np.float64]
    coupling: NDArray[np.float64] | csr_array


class Curve(Protocol):
    """A log-likelihood of `size` ratings."""

    @property
    def size(self) -> int: ...

    def at(self, logits: NDArray[np.float64]) -> Local: ...


class DensePairs:
    """The Bradley-Terry likelihood of a matrix of pair counts; `coupling` holds until the next call of `at`."""

    def __init__(self, counts: WinCounts) -> None:
        self.size = len(counts.models)
        self._wins = counts.matrix()
        self._played = self._wins + self._wins.T
        self._coupling = np.empty_like(self._wins)

    def at(self, logits: NDArray[np.float64]) -> Local:
        """Wins minus expected wins, term by term: in a difference of totals a rare loss would vanish in rounding.

        A few rows at a time, so that intermediate results stay in the processor's cache.
        """
        if self.size and np.abs(logits).max() > _SPAN:
            return self._far(logits)
        power = np.exp(logits)
        gains, losses = np.empty(self.size), np.zeros(self.size)
        rows = max(1, _BLOCK // max(self.size, 1))
        share, surprise = np.empty((rows, self.size)), np.empty((rows, self.size))
        for start in range(0, self.size, rows):
            part = slice(start, min(start + rows, self.size))
            inverse, surprised = share[: part.stop - start], surprise[: part.stop - start]
            np.add(power[part, None], power, out=inverse)
            np.divide(1.0, inverse, out=inverse)
            np.multiply(self._wins[part], inverse, out=surprised)
            gains[part] = surprised @ power
            losses += surprised.sum(axis=0)
            inverse *= inverse
            inverse *= power
            inverse *= power[part, None]
            np.multiply(self._played[part], inverse, out=self._coupling[part])
        losses *= power
        return Local(gains - losses, gains + losses, self._coupling.sum(axis=1), self._coupling)

    def _far(self, logits: NDArray[np.float64]) -> Local:
        share = expit(logits[:, None] - logits)
        surprise = self._wins * share.T
        coupling = self._played * share * share.T
        gains, losses = surprise.sum(axis=1), surprise.sum(axis=0)
        return Local(gains - losses, gains + losses, coupling.sum(axis=1), coupling)


class SparsePairs:
    """The same likelihood stored as a list of pairs."""

    def __init__(self, counts: WinCounts) -> None:
        self.size = len(counts.models)
        self._first, self._second, self._won, self._lost = counts.first, counts.second, counts.won, counts.lost
        pairs = np.arange(len(counts.first))
        ends = (np.concatenate([counts.first, counts.second]), np.concatenate([counts.second, counts.first]))
        table = coo_array((np.concatenate([pairs, pairs]), ends), shape=(self.size, self.size)).tocsr()
        self._slots, self._columns, self._rows = table.data, table.indices, table.indptr

    def at(self, logits: NDArray[np.float64]) -> Local:
        gap = logits[self._first] - logits[self._second]
        ahead, behind = expit(gap), expit(-gap)
        won, lost = self._won * behind, self._lost * ahead
        gains = self._sum(won, lost)
        losses = self._sum(lost, won)
        bend = (self._won + self._lost) * ahead * behind
        coupling = csr_array((bend[self._slots], self._columns, self._rows), shape=(self.size, self.size))
        return Local(gains - losses, gains + losses, self._sum(bend, bend), coupling)

    def _sum(self, first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
        sums = np.bincount(self._first, first, self.size) + np.bincount(self._second, second, self.size)
        return np.asarray(sums, dtype=np.float64)


def curve_of(counts: WinCounts) -> Curve:
    """The likelihood of pair counts, as a matrix, or as a list of pairs where few of many models met."""
    size = len(counts.models)
    few = size > _DIRECT and (10 * len(counts.first) < size * size or size > _SQUARE)
    return SparsePairs(counts) if few else DensePairs(counts)


@dataclass(frozen=True, slots=True, eq=False)
class Maximum:
    """The maximum of a log-likelihood: `logits` (n,), the steps taken, and the largest entry of the gradient."""

    logits: NDArray[np.float64]
    steps: int
    gradient: float


def climb(
    curve: Curve, start: NDArray[np.float64], *, ridge: float = 0.0, fixed: NDArray[np.bool_] | None = None
) -> Maximum:
    """Newton's method from `start` (n,) to the maximum, which must exist; ratings in `fixed` (n,) do not change.

    A step is halved when the slope along it at its end is negative and steeper than at its start. Stops when each
    model's gradient is within 1e-12 of its own information, which is never more than its weight, or is rounding. Where
    neither a ridge nor `fixed` determines the level of the ratings, their mean is 0. Raises `NotConvergedError`.
    """
    free = np.arange(curve.size) if fixed is None else np.flatnonzero(~fixed)
    floating = fixed is None and ridge == 0.0
    logits = start - start.mean() if floating and curve.size else start.astype(np.float64)
    solve = _Solver(len(free), floating)
    step, slope, scale = np.zeros(len(free)), np.inf, 1.0
    for iteration in range(_STEPS):
        local = _with_ridge(curve.at(logits), logits, ridge)
        gradient, diagonal = local.gradient[free], local.diagonal[free]
        if np.all(np.abs(gradient) <= _TOLERANCE * diagonal + _ROUNDING * local.turnover[free]):
            return Maximum(logits, iteration, float(np.abs(gradient).max(initial=0.0)))
        if -(gradient @ step) > 0.9 * slope and scale > 1e-6:
            scale *= 0.5
            logits[free] -= scale * step
            continue
        coupling = local.coupling if len(free) == curve.size else local.coupling[free][:, free]
        step = solve(diagonal, coupling, gradient)
        slope, scale = float(gradient @ step), 1.0
        logits = logits.copy()
        logits[free] += step
        if floating:
            logits -= logits.mean()
    raise NotConvergedError(f"the gradient was not zero after {_STEPS} steps")


def _with_ridge(local: Local, logits: NDArray[np.float64], ridge: float) -> Local:
    if ridge == 0.0:
        return local
    pull = ridge * logits
    return Local(local.gradient - pull, local.turnover + np.abs(pull), local.diagonal + ridge, local.coupling)


class _Solver:
    """Solve the system of a Newton step; once conjugate gradients have stalled, all later steps use factorisation.

    Where nothing fixes the level of the ratings the matrix is singular along equal shifts, and the gradient sums to 0
    up to rounding. The model with the most information is then held: its equation follows from the others, and rounding
    matters least in it.
    """

    def __init__(self, size: int, floating: bool) -> None:
        self._floating = floating
        self._direct = size <= _DIRECT

    def __call__(
        self, diagonal: NDArray[np.float64], coupling: NDArray[np.float64] | csr_array, gradient: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        if not (np.all(diagonal > 0.0) and np.all(np.isfinite(diagonal))):
            raise NotConvergedError("the information matrix is singular in double precision")
        held = int(np.argmax(diagonal)) if self._floating and len(diagonal) else None
        if not self._direct:
            step = _conjugate(diagonal, coupling, gradient)
            if step is not None:
                return step
            self._direct = True
        if isinstance(coupling, csr_array):
            return _factor_sparse(diagonal, coupling, gradient, held)
        return _factor(diagonal, coupling, gradient, held)


def _conjugate(
    diagonal: NDArray[np.float64],
    coupling: NDArray[np.float64] | csr_array,
    gradient: NDArray[np.float64],
) -> NDArray[np.float64] | None:
    """The step by conjugate gradients, as exact as useful at this distance from the maximum; None if they stall."""
    step, rest = np.zeros(len(gradient)), gradient.copy()
    scaled = rest / diagonal
    direction, energy = scaled, float(rest @ scaled)
    enough = energy * min(0.05, float(np.abs(scaled).max())) ** 2
    for _ in range(_PRODUCTS):
        image = diagonal * direction - coupling @ direction
        bend = float(direction @ image)
        if not bend > 0.0:
            return None
        step += energy / bend * direction
        rest -= energy / bend * image
        scaled = rest / diagonal
        before, energy = energy, float(rest @ scaled)
        if energy <= enough:
            return step
        direction = scaled + energy / before * direction
    return None


def _factor(
    diagonal: NDArray[np.float64], coupling: NDArray[np.float64], gradient: NDArray[np.float64], held: int | None
) -> NDArray[np.float64]:
    """The step by Cholesky factorisation; the rating of the model in `held` does not change."""
    right = gradient.copy()
    if not len(right):
        return right
    information = -coupling
    np.einsum("ii->i", information)[:] += diagonal
    if held is not None:
        information[held], information[:, held] = 0.0, 0.0
        information[held, held], right[held] = diagonal[held], 0.0
    # LAPACK is called directly: SciPy's checks take longer than solving systems of some ten models.
    _, step, failed = dposv(information.T, right, lower=False, overwrite_a=True)
    if failed or not np.all(np.isfinite(step)):
        raise NotConvergedError("the information matrix is singular in double precision")
    return np.asarray(step)


def _factor_sparse(
    diagonal: NDArray[np.float64], coupling: csr_array, gradient: NDArray[np.float64], held: int | None
) -> NDArray[np.float64]:
    """`_factor` for a list of pairs."""
    kept = np.arange(len(gradient))
    if held is not None:
        kept = np.delete(kept, held)
    information = (diags_array(diagonal) - coupling).tocsc()[kept][:, kept]
    try:
        factors = splu(information.tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
    except RuntimeError as error:
        raise NotConvergedError("the information matrix is singular in double precision") from error
    step = np.zeros(len(gradient))
    step[kept] = factors.solve(gradient[kept])
    return step
