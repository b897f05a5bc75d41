"""What stands beside a judge's consistency: ties, flips, first places, readable verdicts, and its own family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.ratings.data.judgments import merge_orders, select
from venire.ratings.judges.matchups import Coded, Tally

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
    """Which rows (rows,) show a judge a model of its own family.

    `families` maps models to their family, `judge_families` judges; a judge that it does not name is of the family of
    the model of its name.
    """
    of_model = dict(families or {})
    of_judge = {**of_model, **(judge_families or {})}
    codes = {family: code for code, family in enumerate({*of_model.values(), *of_judge.values()})}
    model = np.array([codes[of_model[name]] if name in of_model else -1 for name in rows.models], dtype=np.int64)
    judge = np.array([codes[of_judge[name]] if name in of_judge else -2 for name in rows.judges], dtype=np.int64)
    if not (np.isin(judge, model)).any():
        return np.zeros(len(rows.judge), dtype=np.bool_)
    mine = judge[rows.judge]
    return np.asarray((model[rows.model_a] == mine) | (model[rows.model_b] == mine), dtype=np.bool_)


def habits(rows: Battles, kin: NDArray[np.bool_], used: Coded, counted: Tally | None) -> Habits:
    """Count a canonical table; `used` are its readable rows outside `kin` (rows,), `counted` their tally.

    Raises `InputError` for two verdicts on one showing.
    """
    judges = len(rows.judges)
    decisive = used.y != 0.5
    first = decisive & ((used.y > 0.5) ^ used.swapped)
    readable = np.bincount(used.judge, minlength=judges)
    decided = np.bincount(used.judge[decisive], minlength=judges)
    opposite, both = _flips(rows, kin, used, counted)
    asked = np.bincount(rows.judge, minlength=judges)
    own = np.bincount(rows.judge[kin], minlength=judges)
    return Habits(
        judges=rows.judges,
        ties=_ratios(readable - decided, readable),
        flips=_ratios(opposite, both),
        first=_ratios(np.bincount(used.judge[first], minlength=judges), decided if rows.ordered else decided * 0),
        readable=_ratios(readable, asked - own),
        verdicts=readable.tolist(),
        own_family=own.tolist(),
    )


def _flips(
    rows: Battles, kin: NDArray[np.bool_], used: Coded, counted: Tally | None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Judgments of each judge whose two orders chose opposite winners, and judgments that were read in both orders."""
    judges = len(rows.judges)
    if not used.ordered or counted is None or not len(used):
        return np.zeros(judges, dtype=np.intp), np.zeros(judges, dtype=np.intp)
    once = bool((rows.repeat == rows.repeat[0]).all()) and int(counted.count.max()) == 1
    if once:
        side = 2 * counted.won + counted.ties - counted.count
        opposite = counted.judge[side[:, 0] * side[:, 1] < 0]
        both = counted.judge[counted.count.min(axis=1) > 0]
    else:
        # Repeats have to be told apart, and two verdicts on one showing refused: judgments do both.
        judgments = merge_orders(select_battles(rows, ~kin))
        codes = judgments.judge.astype(np.intp)
        opposite, both = codes[judgments.flipped], codes[judgments.readable == 2]
    return np.bincount(opposite, minlength=judges), np.bincount(both, minlength=judges)


def _ratios(part: NDArray[np.intp], whole: NDArray[np.intp]) -> list[float | None]:
    return [int(p) / int(w) if w else None for p, w in zip(part, whole, strict=True)]
