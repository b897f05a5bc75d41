"""Which battles can still be asked, which instruction is next, and which pair keeps a design even and connected."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from venire.arena.planning import PlanState

Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Candidates:
    """The battles that nobody asked yet, with models and instructions in the order of their names.

    A policy that coded them as the state does would choose by the order in which they happened to be listed. `models`
    and `instructions` are sorted names, `model_order` and `instruction_order` their places in the state; a pair is
    `a * models + b` with a < b. `pairs` (models, models) is on how many instructions a pair is open, `met` on how
    many it was asked; `used` (instructions,) counts the battles asked on each. `met` is symmetric; `pairs` has a < b
    alone. Battles of two models whose ratings are held fixed add no information, and are no candidates. With `among`
    (models, models) only battles of these pairs are candidates, and only they count as uses of an instruction.
    """

    def __init__(self, state: PlanState, among: Mask | None = None) -> None:
        self.models = tuple(sorted(state.models))
        self.instructions = tuple(sorted(state.instructions))
        self.model_order = _order(state.models)
        self.instruction_order = _order(state.instructions)
        size, texts = len(self.models), len(self.instructions)
        self._square = size * size
        self.held = np.array([name in state.held for name in self.models], dtype=np.bool_)
        self._possible: Mask = np.triu(~(self.held[:, None] & self.held[None, :]), 1)
        if among is not None:
            self._possible &= among
        asked = self._coded(state, state.asked)
        closed = np.union1d(asked, self._coded(state, state.barred))
        self._listed = state.only is not None
        if self._listed:
            open_ = np.setdiff1d(self._coded(state, state.only), closed)
            self._codes = open_[self._possible.ravel()[open_ % self._square]]
            self._left = self._by_instruction(self._codes, texts)
            self.pairs = self._by_pair(self._codes)
        else:
            self._codes = closed[self._possible.ravel()[closed % self._square]]
            self._left = np.count_nonzero(self._possible) - self._by_instruction(self._codes, texts)
            self.pairs = np.where(self._possible, texts, 0) - self._by_pair(self._codes)
        self._starts = np.searchsorted(self._codes, np.arange(texts + 1) * self._square)
        self._known = set(self._codes.tolist())
        self._taken: dict[int, list[int]] = {}
        counted = asked if among is None else asked[self._possible.ravel()[asked % self._square]]
        self.used: Codes = self._by_instruction(counted, texts)
        once = self._by_pair(asked)
        self.met: Codes = once + once.T

    def __len__(self) -> int:
        return int(self._left.sum())

    def least_used(self, rng: np.random.Generator) -> Codes:
        """The instructions asked least often of those with an open battle, the one drawn first and the rest in turn.

        Choosing texts by what they cost would make a sample of short ones, of few instructions: they are used evenly,
        and the price decides among the pairs on each.
        """
        usable = np.flatnonzero(self._left > 0)
        counts = self.used[usable]
        level = usable[counts == counts.min()]
        return np.roll(level, -int(rng.integers(len(level))))

    def open_on(self, instruction: int) -> Mask:
        """The pairs (models, models), a < b, that can be asked on an instruction."""
        here = self._codes[self._starts[instruction] : self._starts[instruction + 1]] - instruction * self._square
        mask = np.zeros_like(self._possible) if self._listed else self._possible.copy()
        mask.ravel()[here] = self._listed
        mask.ravel()[self._taken.get(instruction, [])] = False
        return mask

    def is_open(self, instruction: int, pair: int) -> bool:
        """Whether one pair that is open somewhere can be asked on an instruction."""
        known = instruction * self._square + pair in self._known
        return known == self._listed and pair not in self._taken.get(instruction, ())

    def take(self, instruction: int, pair: int) -> None:
        """Count a battle as asked."""
        a, b = divmod(pair, len(self.models))
        self._taken.setdefault(instruction, []).append(pair)
        self._left[instruction] -= 1
        self.used[instruction] += 1
        self.pairs[a, b] -= 1
        self.met[a, b] += 1
        self.met[b, a] += 1

    def _coded(self, state: PlanState, rows: NDArray[np.int32] | None) -> Codes:
        """Each battle once, as instruction * models^2 + pair, sorted."""
        if rows is None or not len(rows):
            return np.zeros(0, dtype=np.int64)
        place, text = np.argsort(self.model_order), np.argsort(self.instruction_order)
        one, other = place[rows[:, 0]], place[rows[:, 1]]
        pair = np.minimum(one, other) * len(state.models) + np.maximum(one, other)
        return np.asarray(np.unique(text[rows[:, 2]] * self._square + pair), dtype=np.int64)

    def _by_instruction(self, codes: Codes, texts: int) -> Codes:
        return np.bincount(codes // self._square, minlength=texts).astype(np.int64)

    def _by_pair(self, codes: Codes) -> Codes:
        counts = np.bincount(codes % self._square, minlength=self._square).astype(np.int64)
        return counts.reshape(self._possible.shape)


def rounds_of_all(models: int) -> Codes:
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


def components(met: Codes, held: NDArray[np.bool_]) -> NDArray[np.intp]:
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
        self._part = components(candidates.met, candidates.held)
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

    def next_battle(self, level: Codes) -> tuple[int, int]:
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


def _order(names: tuple[str, ...]) -> NDArray[np.intp]:
    """The places of names in sorted order."""
    return np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.intp)
