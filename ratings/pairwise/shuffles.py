"""Battles in many random orders: what methods that take one battle after another are averaged over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.ratings.data.checks import check_seed
from venire.ratings.data.comparisons import Comparisons

__all__ = ["by_name", "orders", "single_battles"]

_CELLS = 10_000_000  # positions of all orders held at once: 40 MB


def single_battles(data: Comparisons, method: str) -> Comparisons:
    """The rows that count; raises `InputError` where one has a weight that is neither 0 nor 1."""
    if data.weight is None:
        return data
    wrong = (data.weight != 0.0) & (data.weight != 1.0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"weight, row {row}: {data.weight[row]} has no meaning to {method}, which takes one battle after another; "
            "give 1 or 0, or rate with Bradley-Terry"
        )
    return replace(data.select(data.weight == 1.0), weight=None)


def by_name(data: Comparisons) -> tuple[Comparisons, NDArray[np.intp]]:
    """The same battles sorted by the models' names and outcome, with names sorted and A before B.

    Draws made on them do not depend on how a table happens to be sorted. The second array gives, for each model of the
    result, its place in `data.models`.
    """
    origin = np.array(sorted(range(len(data.models)), key=data.models.__getitem__), dtype=np.intp)
    code = np.empty(len(origin), dtype=np.int32)
    code[origin] = np.arange(len(origin), dtype=np.int32)
    a, b = code[data.a], code[data.b]
    turn = a > b
    a, b, y = np.where(turn, b, a), np.where(turn, a, b), np.where(turn, 1.0 - data.y, data.y)
    rows = np.lexsort((y, b, a))
    names = tuple(data.models[place] for place in origin.tolist())
    return Comparisons(models=names, a=a[rows], b=b[rows], y=y[rows]), origin


def orders(rows: int, shuffles: int, seed: int) -> Iterator[NDArray[np.int32]]:
    """Random orders of `rows` battles, several side by side: arrays (rows, group) that hold `shuffles` in all.

    Each has a stream of its own, so that neither the size of a group nor the number of shuffles changes it. Raises
    `InputError` for fewer than one shuffle and a negative seed.
    """
    if shuffles < 1:
        raise InputError(f"shuffles is {shuffles}; give 1 or more")
    check_seed(seed)
    streams = np.random.SeedSequence(seed).spawn(shuffles)
    group = max(1, _CELLS // max(rows, 1))
    for start in range(0, shuffles, group):
        part = streams[start : start + group]
        yield np.column_stack([np.random.default_rng(stream).permutation(rows).astype(np.int32) for stream in part])
