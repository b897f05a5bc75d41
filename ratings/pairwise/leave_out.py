"""Leave-one-out refits: ratings without one judge, one cluster or one model, exact, by subtraction of pair counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.data.wins import WinCounts
from venire.ratings.pairwise.bradley_terry import bradley_terry_wins
from venire.ratings.pairwise.components import SeparatedError

_ENTRIES = 1 << 22
"""Counts of units and pairs held at once, wins and losses each (32 MB)."""


@dataclass(frozen=True, slots=True, eq=False)
class LeftOut:
    """The ratings of all data, and those `without` each name.

    `separated` maps names without which the rest has no finite estimate to the groups that then remain.
    """

    everything: Ratings
    without: Mapping[str, Ratings]
    separated: Mapping[str, tuple[tuple[str, ...], ...]]


def without_model(wins: WinCounts, model: str) -> WinCounts:
    """Pair counts of the other models; raises `InputError` for an unknown model.

    >>> from venire.ratings import comparisons, win_counts, without_model
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> without_model(win_counts(data), "c").models
    ('a', 'b')
    """
    if model not in wins.models:
        raise InputError(f"no model is called {model!r}; the models are {', '.join(wins.models[:10])}")
    return wins.only(np.array([name != model for name in wins.models]))


def without_judge(data: Comparisons, judge: str) -> WinCounts:
    """Pair counts of the other judges, with all models; raises `InputError` for an unknown judge.

    >>> from venire.ratings import comparisons, without_judge
    >>> data = comparisons(["a", "b"], ["b", "c"], [1, 0], judge=["x", "y"])
    >>> without_judge(data, "y").won.tolist()
    [1.0]
    """
    if judge not in data.judges:
        raise InputError(f"no judge is called {judge!r}; the judges are {', '.join(data.judges[:10]) or 'not named'}")
    code = data.judges.index(judge)
    return next(_without(data, data.judge, len(data.judges), np.array([code])))


def without_each_model(wins: WinCounts, *, ridge: float = 0.0, anchors: Mapping[str, float] | None = None) -> LeftOut:
    """Refit without each model in turn; `ridge` and `anchors` as in `bradley_terry` (an anchor left out has no effect).

    Raises as `bradley_terry` does where all the data have no estimate.

    >>> from venire.ratings import comparisons, win_counts, without_each_model
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> sorted(without_each_model(win_counts(data), ridge=0.1).without)
    ['a', 'b', 'c']
    """
    everything = bradley_terry_wins(wins, ridge=ridge, anchors=anchors)
    places = np.arange(len(wins.models))
    rest = ((name, without_model(wins, name), places != index) for index, name in enumerate(wins.models))
    return _refit(everything, rest, ridge, anchors)


def without_each_judge(data: Comparisons, *, ridge: float = 0.0, anchors: Mapping[str, float] | None = None) -> LeftOut:
    """Refit without each judge in turn; raises as `without_each_model` does, and `InputError` without judges.

    Where no other judge saw an anchor, the anchors have no effect, and the mean is 1000.

    >>> from venire.ratings import comparisons, without_each_judge
    >>> data = comparisons(list("abc"), list("bca"), [1, 0, 1], judge=list("xyx"))
    >>> sorted(without_each_judge(data, ridge=0.1).without)
    ['x', 'y']
    """
    if data.judge is None:
        raise InputError("the comparisons name no judge: give `judge` to `comparisons`")
    everything = bradley_terry_wins(data.wins, ridge=ridge, anchors=anchors)
    all_models = np.ones(len(data.models), dtype=np.bool_)
    rest = (
        (name, counts, all_models)
        for name, counts in zip(data.judges, _without(data, data.judge, len(data.judges)), strict=True)
    )
    return _refit(everything, rest, ridge, anchors)


def without_each_cluster(
    data: Comparisons,
    *,
    chosen: Sequence[str] | None = None,
    ridge: float = 0.0,
    anchors: Mapping[str, float] | None = None,
) -> LeftOut:
    """Refit without each cluster (an instruction) in turn, or each of those `chosen` by name.

    Raises as `without_each_judge` does, and `InputError` without clusters and for an unknown name.
    """
    if data.cluster is None:
        raise InputError("the comparisons name no cluster: give `cluster` to `comparisons`")
    place = {name: code for code, name in enumerate(data.clusters)}
    names = data.clusters if chosen is None else tuple(chosen)
    if strange := [name for name in names if name not in place]:
        raise InputError(f"no cluster is called {strange[0]!r}; the clusters are {', '.join(data.clusters[:10])}")
    codes = np.array([place[name] for name in names], dtype=np.intp)
    everything = bradley_terry_wins(data.wins, ridge=ridge, anchors=anchors)
    all_models = np.ones(len(data.models), dtype=np.bool_)
    counts = _without(data, data.cluster, len(data.clusters), codes)
    return _refit(everything, ((n, c, all_models) for n, c in zip(names, counts, strict=True)), ridge, anchors)


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


def _without(
    data: Comparisons, code: NDArray[np.int32] | None, units: int, chosen: NDArray[np.intp] | None = None
) -> Iterator[WinCounts]:
    """Pair counts without each unit (`code` is each row's unit), or each of those `chosen`, in their order.

    The units before and after are summed: subtracting a unit from the total would leave rounding errors where no other
    unit has a win. Units are processed in parts, since the table of all units and pairs may be large.
    """
    pairs = data.wins
    models, count = len(data.models), len(pairs.first)
    keys = pairs.first * models + pairs.second
    key = np.minimum(data.a, data.b).astype(np.int64) * models + np.maximum(data.a, data.b)
    seen = np.isin(key, keys) if data.weight is not None else np.ones(len(key), dtype=np.bool_)
    cell = np.searchsorted(keys, key[seen])
    unit = np.zeros(len(cell), dtype=np.int64) if code is None else code[seen].astype(np.int64)
    ahead, y = (data.a < data.b)[seen], data.y[seen]
    weight = 1.0 if data.weight is None else data.weight[seen]
    shares = [np.where(ahead, y, 1.0 - y) * weight, np.where(ahead, 1.0 - y, y) * weight]
    wanted = np.arange(units) if chosen is None else chosen
    step = max(1, _ENTRIES // max(count, 1))
    for start in range(0, len(wanted), step):
        block = wanted[start : start + step]
        place = np.full(units, len(block), dtype=np.int64)
        place[block] = np.arange(len(block))
        slot, size = place[unit] * count + cell, (len(block) + 1) * count
        won, lost = (_others(np.bincount(slot, share, size).astype(np.float64), len(block)) for share in shares)
        for one in range(len(block)):
            met = (won[one] > 0.0) | (lost[one] > 0.0)
            yield WinCounts(data.models, pairs.first[met], pairs.second[met], won[one][met], lost[one][met])


def _others(sums: NDArray[np.float64], units: int) -> NDArray[np.float64]:
    """For each of the units (units, pairs) the sum of all others; the last row of `sums` belongs to no unit."""
    own = sums.reshape(units + 1, -1)
    rest = np.repeat(own[-1:], units, axis=0)
    rest[1:] += np.cumsum(own[: units - 1], axis=0)
    rest[:-1] += np.cumsum(own[units - 1 : 0 : -1], axis=0)[::-1]
    return rest
