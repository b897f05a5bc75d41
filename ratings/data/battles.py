"""Battles from plain columns: one verdict a row, with the order shown where it is known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.records import Status
from venire.ratings.data.ballots import numbers_of, repeats_of
from venire.ratings.data.comparisons import comparisons

_UNNAMED = "unnamed"


def battles(
    model_a: Any,
    model_b: Any,
    y: ArrayLike,
    *,
    judge: Any = None,
    instruction: Any = None,
    swapped: ArrayLike | None = None,
    repeat: ArrayLike | None = None,
) -> Battles:
    """Battles from columns (rows,), one verdict a row: the input of estimators that need judges, orders or repeats.

    `y` is 1 where the judge prefers A, 0 where it prefers B, 0.5 for a tie and NaN for an unreadable verdict.
    `swapped` is True where B was shown first; None: the order shown is not known. `judge` and `instruction` are names
    or integers; None: one judge, no instructions. `repeat` counts from 1. Raises `InputError` that names the argument
    and the row (the first is 0).

    >>> from venire.ratings import battles
    >>> found = battles(["a", "a"], ["b", "b"], [1, 0.5], judge=["x", "x"], swapped=[False, True])
    >>> found.models, found.label.tolist()
    (('a', 'b'), [1, 0])
    """
    outcome = numbers_of("y", y, len(model_a))
    unreadable = np.isnan(outcome)
    known = comparisons(model_a, model_b, np.where(unreadable, 0.5, outcome), cluster=instruction, judge=judge)
    rows = len(known)
    partly = ~unreadable & (outcome != 0) & (outcome != 0.5) & (outcome != 1)
    if partly.any():
        row = int(np.argmax(partly))
        raise InputError(f"y, row {row}: {outcome[row]:g} is not possible: give 1, 0.5 or 0, or NaN if unreadable")
    second_first = np.zeros(rows, dtype=np.bool_) if swapped is None else np.asarray(swapped)
    if second_first.shape != (rows,) or second_first.dtype != np.bool_:
        raise InputError(f"swapped: give {rows} values, True where B was shown first and False where A was")
    return Battles(
        models=known.models,
        judges=known.judges or (_UNNAMED,),
        instructions=known.clusters,
        model_a=known.a,
        model_b=known.b,
        judge=np.zeros(rows, dtype=np.int32) if known.judge is None else known.judge,
        instruction=np.full(rows, -1, dtype=np.int32) if known.cluster is None else known.cluster,
        repeat=repeats_of(repeat, rows),
        swapped=second_first,
        status=np.where(unreadable, Status.UNREADABLE, Status.OK).astype(np.int8),
        label=np.where(unreadable, 0, np.sign(outcome - 0.5)).astype(np.int8),
        ordered=swapped is not None,
    )
