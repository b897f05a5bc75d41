"""Which pairs of completions were judged already, in any campaign of a store: they are not asked or paid again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from venire.storage.store.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SettledPairs", "settled_pairs"]


@dataclass(frozen=True, slots=True, eq=False)
class SettledPairs:
    """Pairs of completions of which one respondent settled trials: `keys` (pairs,) ascending, and how many `trials`."""

    keys: NDArray[np.int64]
    trials: NDArray[np.int64]

    def of(self, one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many trials (pairs,) of some pairs of completions are settled, in whichever order they are named."""
        wanted = _keys(np.minimum(one, other), np.maximum(one, other))
        if not len(self.keys):
            return np.zeros(len(wanted), dtype=np.int64)
        place = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.asarray(np.where(self.keys[place] == wanted, self.trials[place], 0))


def settled_pairs(store: Store, respondents: Collection[int]) -> Mapping[int, SettledPairs]:
    """What of pairs some respondents have settled, by their numbers."""
    rows = store.arrays("settled_pairs", respondents=sorted(respondents))
    keys = _keys(rows["one"].astype(np.int64), rows["other"].astype(np.int64))
    order = np.argsort(keys)
    found = {}
    for number in respondents:
        mine = order[rows["respondent"][order] == number]
        found[number] = SettledPairs(keys[mine], rows["trials"][mine].astype(np.int64))
    return found


def _keys(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(low << 32 | high)
