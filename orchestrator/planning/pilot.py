"""Which trials of a plan are asked first, to learn from: few, of every judge, spread over instructions and models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from venire.orchestrator.designs import PlannedCampaign
from venire.storage.plans.trial_states import parts, trial_states
from venire.storage.store.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray

_COLUMNS = ("trial", "respondent", "instruction", "model_a", "model_b", "repeat")
_MANY = 1 << 20
"""More than models are ever used, so that instructions come first."""

_SPREAD = 2_000
"""Places that are spread with care, each of which takes a look at all; after so many any order is even enough."""

Rows = Mapping[str, "NDArray[np.int64]"]


def pilot_trials(store: Store, planned: PlannedCampaign, number: int, *, seed: int = 0) -> NDArray[np.int64]:
    """Missing trials (trials,) after which every judge that is asked has `number` of this plan settled, or one more.

    A battle is taken whole, in all its orders, so that it makes a judgment; judges get the same battles as far as they
    have them left. The order in which battles are taken depends on the plan and `seed` alone, so that a pilot which was
    stopped goes on with what it began: always on the instruction, then of the models, that have the fewest. Of repeats
    only the first is asked.
    """
    now = trial_states(store, planned.id)
    rows = _rows(store, now.planned)
    settled = now.settled[rows["trial"]]
    lacking = {
        respondent: number - int(np.count_nonzero(settled & (rows["respondent"] == respondent)))
        for respondent, judge in sorted(planned.judges.items())
        if judge.recorded is None
    }
    pairs = [number for number in lacking if planned.judges[number].shape.pairwise]
    rng = np.random.default_rng(seed)
    found: list[int] = []
    for group in (pairs, *([number] for number in lacking if number not in pairs)):
        of = (rows["repeat"] == 1) & np.isin(rows["respondent"], group)
        units = np.column_stack([rows[name][of] for name in ("instruction", "model_a", "model_b")])
        if group is not pairs:
            units[:, 1] = units[:, 2] = rows["trial"][of]  # each is one for itself
        trials = rows["trial"][of]
        found += _taken(units, trials, rows["respondent"][of], now.missing[trials], lacking, rng)
    return np.array(found, dtype=np.int64)


def _rows(store: Store, planned: NDArray[np.bool_]) -> Rows:
    """What each planned trial is."""
    columns: dict[str, list[NDArray[np.int64]]] = {name: [] for name in _COLUMNS}
    for part in parts(store, "trials_between", len(planned) - 1):
        kept = planned[part["trial"]]
        for name in _COLUMNS:
            columns[name].append(part[name][kept].astype(np.int64))
    return {name: np.concatenate(found) for name, found in columns.items()}


def _taken(
    units: NDArray[np.int64],
    trials: NDArray[np.int64],
    respondents: NDArray[np.int64],
    missing: NDArray[np.bool_],
    lacking: Mapping[int, int],
    rng: np.random.Generator,
) -> list[int]:
    """Missing trials of whole units, as these are drawn, until no judge of these rows lacks any or none is left."""
    distinct, group = np.unique(units, axis=0, return_inverse=True)
    by_unit = np.argsort(group, kind="stable")
    ends = np.cumsum(np.bincount(group, minlength=len(distinct)))
    left = {number: lacking[number] for number in np.unique(respondents).tolist()}
    found: list[int] = []
    for place in _drawn(distinct, rng):
        wants = {one for one, count in left.items() if count > 0}
        if not wants:
            break
        for row in by_unit[ends[place - 1] if place else 0 : ends[place]].tolist():
            if missing[row] and (one := int(respondents[row])) in wants:
                found.append(int(trials[row]))
                left[one] -= 1
    return found


def _drawn(units: NDArray[np.int64], rng: np.random.Generator) -> Iterator[int]:
    """Places of distinct units (units, instruction and two models) in the order in which they are taken."""
    order = rng.permutation(len(units))
    instruction = np.unique(units[order, 0], return_inverse=True)[1]
    models = np.unique(units[order, 1:], return_inverse=True)[1].reshape(-1, 2)
    asked = np.zeros(int(instruction.max(initial=-1)) + 1, dtype=np.int64)
    shown = np.zeros(int(models.max(initial=-1)) + 1, dtype=np.int64)
    taken = np.zeros(len(units), dtype=np.bool_)
    for _ in range(min(_SPREAD, len(units))):
        used = _MANY * asked[instruction] + shown[models[:, 0]] + shown[models[:, 1]]
        used[taken] = np.iinfo(np.int64).max
        best = int(np.argmin(used))
        taken[best] = True
        asked[instruction[best]] += 1
        shown[models[best]] += 1
        yield int(order[best])
    yield from order[~taken].tolist()
