"""Which trials of a plan are asked first, to learn from: few, of every judge, spread over instructions and models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from venire.arena.records import Shape
from venire.judges import PROTOCOLS
from venire.orchestrator.plan import PlannedCampaign
from venire.storage.standing import parts, standing
from venire.storage.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["pilot_trials"]

_COLUMNS = ("trial", "respondent", "instruction", "model_a", "model_b", "repeat")
_MANY = 1 << 20
"""More than models are ever used, so that instructions come first."""

Rows = Mapping[str, "NDArray[np.int64]"]


def pilot_trials(store: Store, planned: PlannedCampaign, number: int, *, seed: int = 0) -> NDArray[np.int64]:
    """Missing trials (trials,) after which every judge that is asked has `number` of this plan settled, or one more.

    A battle is taken whole, in all its orders, so that it makes a judgment; judges get the same battles as far as they
    have them left. They are drawn with `seed`, always on the instruction, then of the models, that have the fewest. Of
    repeats only the first is asked.
    """
    now = standing(store, planned.id)
    rows = _rows(store, now.planned)
    settled, missing = now.settled[rows["trial"]], now.missing[rows["trial"]] & (rows["repeat"] == 1)
    lacking = {
        respondent: number - int(np.count_nonzero(settled & (rows["respondent"] == respondent)))
        for respondent, judge in sorted(planned.judges.items())
        if judge.recorded is None
    }
    pairs = [one for one in lacking if PROTOCOLS[planned.judges[one].protocol].shape is Shape.PAIR]
    rng = np.random.default_rng(seed)
    found: list[int] = []
    for group in (pairs, *([one] for one in lacking if one not in pairs)):
        of = missing & np.isin(rows["respondent"], group)
        units = np.column_stack([rows[name][of] for name in ("instruction", "model_a", "model_b")])
        if group is not pairs:
            units[:, 1] = units[:, 2] = rows["trial"][of]  # each is one for itself
        rank = _ranks(units, max([0, *(lacking[one] for one in group)]), rng)
        for one in group:
            its = (rows["respondent"][of] == one) & (rank >= 0)
            found += _first(rows["trial"][of][its], rank[its], lacking[one])
    return np.array(found, dtype=np.int64)


def _rows(store: Store, planned: NDArray[np.bool_]) -> Rows:
    """What each planned trial is."""
    columns: dict[str, list[NDArray[np.int64]]] = {name: [] for name in _COLUMNS}
    for part in parts(store, "trials_between", len(planned) - 1):
        kept = planned[part["trial"]]
        for name in _COLUMNS:
            columns[name].append(part[name][kept].astype(np.int64))
    return {name: np.concatenate(found) for name, found in columns.items()}


def _ranks(units: NDArray[np.int64], number: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The place (rows,) of each row's unit among the first so many that are drawn; -1 for the others."""
    distinct, group = np.unique(units, axis=0, return_inverse=True)
    distinct = distinct[drawn := rng.permutation(len(distinct))]
    instruction = np.unique(distinct[:, 0], return_inverse=True)[1]
    models = np.unique(distinct[:, 1:], return_inverse=True)[1].reshape(-1, 2)
    asked = np.zeros(int(instruction.max(initial=-1)) + 1, dtype=np.int64)
    shown = np.zeros(int(models.max(initial=-1)) + 1, dtype=np.int64)
    rank = np.full(len(distinct), -1, dtype=np.int64)
    for place in range(min(number, len(distinct))):
        used = _MANY * asked[instruction] + shown[models[:, 0]] + shown[models[:, 1]]
        used[rank >= 0] = np.iinfo(np.int64).max
        best = int(np.argmin(used))
        rank[best] = place
        asked[instruction[best]] += 1
        shown[models[best]] += 1
    back = np.empty_like(rank)
    back[drawn] = rank
    return np.asarray(back[group])


def _first(trials: NDArray[np.int64], rank: NDArray[np.int64], number: int) -> list[int]:
    """The trials of the first ranks, whole ones, until there are so many."""
    found: list[int] = []
    for place in np.unique(rank).tolist():
        if len(found) >= number:
            break
        found += trials[rank == place].tolist()
    return found
