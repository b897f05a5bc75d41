"""The battles that a plan in force is made of, each once, and how often each is judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from venire.storage.plans.trial_states import parts
from venire.storage.store.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PlannedBattles", "planned_battles"]

_COLUMNS = ("model_a", "model_b", "instruction", "respondent", "repeat")


@dataclass(frozen=True, slots=True, eq=False)
class PlannedBattles:
    """Battles (battles, 3): codes of two `models`, which are sorted by name, and the instruction's number.

    `judgments` (battles,) says how many judges and repeats each is put to, its two orders being one judgment; `judges`
    and `repeats` are how many judges there are, and how often they are asked at most.
    """

    models: tuple[str, ...]
    battles: NDArray[np.int32]
    judgments: NDArray[np.int64]
    judges: int
    repeats: int


def planned_battles(store: Store, campaign: int) -> PlannedBattles:
    """The battles of a campaign's plan, settled ones included; other trials are left out."""
    ((_, last, _),) = store.read("last_rows")
    found = [
        np.unique(np.column_stack([part[name].astype(np.int32) for name in _COLUMNS]), axis=0)
        for part in parts(store, "battles_planned_between", last, campaign=campaign)
    ]
    asked = np.unique(np.concatenate(found), axis=0) if found else np.zeros((0, len(_COLUMNS)), dtype=np.int32)
    battles, judgments = np.unique(asked[:, :3], axis=0, return_counts=True)
    names: dict[int, str] = dict(store.read("model_names"))
    numbers = sorted(np.unique(battles[:, :2]).tolist(), key=names.__getitem__)
    code = np.zeros(max(numbers, default=0) + 1, dtype=np.int32)
    code[numbers] = np.arange(len(numbers))
    battles[:, :2] = np.sort(code[battles[:, :2]], axis=1)
    return PlannedBattles(
        tuple(names[number] for number in numbers),
        battles,
        judgments,
        len(np.unique(asked[:, 3])),
        len(np.unique(asked[:, 4])),
    )
