"""What the ratings of the rest would be without one judge, or without one model: exact refits, by subtraction.

Pair counts add up over judges, so a judge is taken out by taking its counts out; a model by leaving out its pairs.
Each refit begins at the ratings of all the data, which are close, and ends at its own maximum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.ratings.bradley_terry import SeparatedError, bradley_terry_wins
from venire.ratings.comparisons import Comparisons
from venire.ratings.result import Ratings
from venire.ratings.wins import WinCounts, win_counts

__all__ = ["LeftOut", "without_each_judge", "without_each_model", "without_judge", "without_model"]


@dataclass(frozen=True, slots=True, eq=False)
class LeftOut:
    """The ratings of all data, and those `without` each name left out.

    `separated` names those without whom the rest has no finite estimate, and the groups into which it then falls.
    """

    everything: Ratings
    without: Mapping[str, Ratings]
    separated: Mapping[str, tuple[tuple[str, ...], ...]]


def without_model(wins: WinCounts, model: str) -> WinCounts:
    """Pair counts of the other models; raises `InputError` for a model that is not there."""
    if model not in wins.models:
        raise InputError(f"no model is called {model!r}; the models are {', '.join(wins.models[:10])}")
    return wins.only(np.array([name != model for name in wins.models]))


def without_judge(data: Comparisons, judge: str) -> WinCounts:
    """Pair counts of the other judges, all models kept; raises `InputError` for a judge that is not there."""
    if judge not in data.judges:
        raise InputError(f"no judge is called {judge!r}; the judges are {', '.join(data.judges[:10]) or 'not named'}")
    code = data.judges.index(judge)
    return next(counts for place, counts in enumerate(_without_judges(data)) if place == code)


def without_each_model(wins: WinCounts, *, ridge: float = 0.0, anchors: Mapping[str, float] | None = None) -> LeftOut:
    """Refit without each model in turn; `ridge` and `anchors` as in `bradley_terry` (an anchor left out holds nothing).

    Raises as `bradley_terry` does where all the data have no estimate.
    """
    everything = bradley_terry_wins(wins, ridge=ridge, anchors=anchors)
    places = np.arange(len(wins.models))
    rest = ((name, without_model(wins, name), places != place) for place, name in enumerate(wins.models))
    return _refit(everything, rest, ridge, anchors)


def without_each_judge(data: Comparisons, *, ridge: float = 0.0, anchors: Mapping[str, float] | None = None) -> LeftOut:
    """Refit without each judge in turn; raises as `without_each_model` does, and `InputError` without judges.

    Where no other judge saw an anchor, nothing hangs on the anchors, and the mean is 1000.
    """
    if data.judge is None:
        raise InputError("the comparisons name no judge: give `judge` to `comparisons`")
    everything = bradley_terry_wins(win_counts(data), ridge=ridge, anchors=anchors)
    all_models = np.ones(len(data.models), dtype=np.bool_)
    rest = ((name, counts, all_models) for name, counts in zip(data.judges, _without_judges(data), strict=True))
    return _refit(everything, rest, ridge, anchors)


def _refit(
    everything: Ratings,
    rest: Iterator[tuple[str, WinCounts, NDArray[np.bool_]]],
    ridge: float,
    anchors: Mapping[str, float] | None,
) -> LeftOut:
    without: dict[str, Ratings] = {}
    separated: dict[str, tuple[tuple[str, ...], ...]] = {}
    for name, counts, kept in rest:
        battles = dict(zip(counts.models, counts.played.tolist(), strict=True))
        held = {model: points for model, points in (anchors or {}).items() if model in battles}
        if not any(battles[model] for model in held):
            held = {}
        try:
            without[name] = bradley_terry_wins(
                counts, ridge=ridge, anchors=held, start=np.nan_to_num(everything.logits[kept])
            )
        except SeparatedError as error:
            separated[name] = error.groups
    return LeftOut(everything, without, separated)


def _without_judges(data: Comparisons) -> Iterator[WinCounts]:
    """Pair counts without each judge, in the order of `data.judges`.

    The judges before and those after are added up: one judge taken from the total would leave rounding where nobody
    else saw a win.
    """
    pairs = win_counts(data)
    size, judges, count = len(data.models), len(data.judges), len(pairs.first)
    keys = pairs.first * size + pairs.second
    key = np.minimum(data.a, data.b).astype(np.int64) * size + np.maximum(data.a, data.b)
    seen = np.isin(key, keys) if data.weight is not None else np.ones(len(key), dtype=np.bool_)
    cell = np.searchsorted(keys, key[seen]) + (0 if data.judge is None else data.judge[seen].astype(np.int64)) * count
    ahead, y = (data.a < data.b)[seen], data.y[seen]
    weight = 1.0 if data.weight is None else data.weight[seen]

    def others(share: NDArray[np.float64]) -> NDArray[np.float64]:
        own = np.bincount(cell, share * weight, judges * count).reshape(judges, count)
        rest = np.zeros((judges, count))
        rest[1:] += np.cumsum(own[:-1], axis=0)
        rest[:-1] += np.cumsum(own[:0:-1], axis=0)[::-1]
        return rest

    won, lost = others(np.where(ahead, y, 1.0 - y)), others(np.where(ahead, 1.0 - y, y))
    for judge in range(judges):
        met = (won[judge] > 0.0) | (lost[judge] > 0.0)
        yield WinCounts(data.models, pairs.first[met], pairs.second[met], won[judge][met], lost[judge][met])
