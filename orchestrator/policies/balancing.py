"""Even designs: every model, every pair and every instruction as often as any other, and all models joined."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from venire.orchestrator.policies.candidates import Candidates

__all__ = ["Evenness", "parts", "rounds_of_all"]

Counts = NDArray[np.int64]


def rounds_of_all(models: int) -> Counts:
    """In which round of a tournament of all against all each pair meets (models, models), by the circle method.

    A round has every model once, but for one that sits out where their number is odd, and two rounds in a row join all
    models: a design that follows it is even and connected wherever it is cut short.
    """
    codes = np.arange(models)
    period = max(models - 1 + models % 2, 1)
    found = (codes[:, None] + codes[None, :]) % period
    if models % 2 == 0:
        found[:, -1] = found[-1, :] = 2 * codes % period
    return found


def parts(met: Counts, held: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Equal numbers (models,) for models that battles `met` (models, models) join; `held` ones are joined already."""
    size = len(met)
    near = (met > 0) | (held[:, None] & held[None, :]) | np.eye(size, dtype=np.bool_)
    found = np.arange(size)
    while True:
        lower = np.where(near, found[None, :], size).min(axis=1, initial=size)
        if np.array_equal(lower, found):
            return found
        found = lower


class Evenness:
    """What each pair would add to evenness, given all that was asked: the model that was asked least comes first."""

    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates
        self._battles = candidates.met.sum(axis=1)
        self._turn = rounds_of_all(len(candidates.models)).ravel()
        self._part = parts(candidates.met, candidates.held)
        self._connected = False

    @property
    def connected(self) -> bool:
        """Whether what was asked joins all models, as far as what can be asked allows."""
        if not self._connected:
            apart = self._part[:, None] != self._part[None, :]
            self._connected = not bool((apart & (self._candidates.pairs > 0)).any())
        return self._connected

    def add(self, pair: int) -> None:
        """Count one battle of a pair."""
        a, b = divmod(pair, len(self._battles))
        self._battles[[a, b]] += 1
        if self._part[a] != self._part[b]:
            self._part[self._part == self._part[b]] = self._part[a]

    def next_battle(self, level: Counts) -> tuple[int, int]:
        """An instruction and the pair on it that evens out best; `level` are instructions as good as one another."""
        best = self._best(self._candidates.pairs > 0)
        for instruction in level.tolist():
            if self._candidates.is_open(instruction, best):
                return instruction, best
        return int(level[0]), self._best(self._candidates.open_on(int(level[0])))

    def _best(self, mask: NDArray[np.bool_]) -> int:
        """The first of the open pairs by: joins what is apart, its models' fewest battles, both, its own, its turn."""
        if not self.connected:
            apart = mask & (self._part[:, None] != self._part[None, :])
            mask = apart if apart.any() else mask
        least = self._battles == self._battles.min()
        starved = mask & (least[:, None] | least[None, :])
        left = np.flatnonzero(starved if starved.any() else mask)
        a, b = np.divmod(left, len(least))
        one, other = self._battles[a], self._battles[b]
        low, both = np.minimum(one, other), one + other
        left = left[(low == low.min()) & (both == both[low == low.min()].min())]
        met = self._candidates.met.ravel()[left]
        left = left[met == met.min()]
        return int(left[np.argmin(self._turn[left])])
