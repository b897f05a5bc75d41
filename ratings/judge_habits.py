"""What stands beside a judge's consistency: ties, flips, first places, readable verdicts, and its own family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.records import Status
from venire.ratings.matchup_shares import dense_codes, outcomes
from venire.ratings.merging import merge_orders, select

__all__ = ["Habits", "habits", "own_family_rows"]


@dataclass(frozen=True, slots=True)
class Habits:
    """Shares of each judge, in the order of `judges`; None where there is nothing to take one from."""

    judges: tuple[str, ...]
    ties: list[float | None]
    flips: list[float | None]
    first: list[float | None]
    readable: list[float | None]
    verdicts: list[int]
    own_family: list[int]


def own_family_rows(
    rows: Battles, families: Mapping[str, str] | None, judge_families: Mapping[str, str] | None
) -> NDArray[np.bool_]:
    """Which rows show a judge a model of its own family; a judge is of the family of the model of its name."""
    of_model = dict(families or {})
    of_judge = {**of_model, **(judge_families or {})}
    codes = {family: code for code, family in enumerate({*of_model.values(), *of_judge.values()})}
    model = np.array([codes[of_model[name]] if name in of_model else -1 for name in rows.models], dtype=np.int64)
    judge = np.array([codes[of_judge[name]] if name in of_judge else -2 for name in rows.judges], dtype=np.int64)
    if not (np.isin(judge, model)).any():
        return np.zeros(len(rows.judge), dtype=np.bool_)
    mine = judge[rows.judge]
    return np.asarray((model[rows.model_a] == mine) | (model[rows.model_b] == mine), dtype=np.bool_)


def habits(rows: Battles, kin: NDArray[np.bool_]) -> Habits:
    """Count a canonical table, the rows of kin (rows,) apart; raises `InputError` for two verdicts on one showing."""
    judges = len(rows.judges)
    used = ~kin
    ok = used & (rows.status == Status.OK)
    judge, swapped = rows.judge[ok], rows.swapped[ok]
    side = np.sign(outcomes(rows.label[ok], None if rows.outcome is None else rows.outcome[ok]) - 0.5).astype(np.int8)
    decisive = side != 0
    first = decisive & ((side > 0) ^ swapped)
    readable = np.bincount(judge, minlength=judges)
    decided = np.bincount(judge, decisive, judges).astype(np.intp)
    opposite, both = _flips(rows, ok, side)
    return Habits(
        judges=rows.judges,
        ties=_ratios(readable - decided, readable),
        flips=_ratios(opposite, both),
        first=_ratios(np.bincount(judge, first, judges), decided if rows.ordered else decided * 0),
        readable=_ratios(readable, np.bincount(rows.judge, used, judges)),
        verdicts=readable.tolist(),
        own_family=np.bincount(rows.judge, kin, judges).astype(np.intp).tolist(),
    )


def _flips(rows: Battles, ok: NDArray[np.bool_], side: NDArray[np.int8]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Judgments of each judge whose two orders chose opposite winners, and judgments that were read in both orders."""
    judges = len(rows.judges)
    nothing = np.zeros(judges, dtype=np.intp)
    if not rows.ordered or not rows.instructions or not ok.any():
        return nothing, nothing
    judge = rows.judge[ok].astype(np.int64)
    key, size = judge, judges
    repeats = int(rows.repeat[ok].max()) + 1
    for column, codes in (
        (rows.model_a, len(rows.models)),
        (rows.model_b, len(rows.models)),
        (rows.instruction, len(rows.instructions)),
        (rows.repeat, repeats),
    ):
        key, found = dense_codes(key * codes + column[ok], size * codes)
        size = len(found)
    slot = 2 * key + rows.swapped[ok]
    count = np.bincount(slot, minlength=2 * size)
    if count.max() > 1:
        merge_orders(select(rows, ok))
    total = np.bincount(slot, side, 2 * size)
    owner = np.empty(size, dtype=np.int64)
    owner[key] = judge
    both = (count[0::2] > 0) & (count[1::2] > 0)
    opposite = total[0::2] * total[1::2] < 0
    return np.bincount(owner[opposite], minlength=judges), np.bincount(owner[both], minlength=judges)


def _ratios(part: NDArray[np.floating | np.integer], whole: NDArray[np.floating | np.integer]) -> list[float | None]:
    return [float(p) / float(w) if w else None for p, w in zip(part, whole, strict=True)]
