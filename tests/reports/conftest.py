"""Tables of verdicts as tests write them: one row a verdict, in the order shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from venire.arena.battles import Battles
from venire.arena.records import Status

Table = Callable[..., Battles]

_LABEL = {"first": 1, "tie": 0, "second": -1, None: 0}


def _codes(names: list[str]) -> tuple[tuple[str, ...], Any]:
    distinct = tuple(dict.fromkeys(names))
    place = {name: code for code, name in enumerate(distinct)}
    return distinct, np.array([place[name] for name in names], dtype=np.int32)


def make_table(rows: Iterable[tuple[Any, ...]], *, ordered: bool = True, named: bool = True) -> Battles:
    """Battles from (first, second, verdict, judge, instruction, repeat); the last three may be left out."""
    full = [(*row, *("j", "i", 1)[len(row) - 3 :]) for row in rows]
    models, side = _codes([row[0] for row in full] + [row[1] for row in full])
    judges, judge = _codes([str(row[3]) for row in full])
    instructions, instruction = _codes([str(row[4]) for row in full])
    size = len(full)
    return Battles(
        models=models,
        judges=judges,
        instructions=instructions if named else (),
        model_a=side[:size],
        model_b=side[size:],
        judge=judge,
        instruction=instruction if named else np.full(size, -1, dtype=np.int32),
        repeat=np.array([row[5] for row in full], dtype=np.int32),
        swapped=np.zeros(size, dtype=np.bool_),
        status=np.array([Status.UNREADABLE if row[2] is None else Status.OK for row in full], dtype=np.int8),
        label=np.array([_LABEL[row[2]] for row in full], dtype=np.int8),
        ordered=ordered,
    )


@pytest.fixture(scope="session")
def table() -> Table:
    """Makes `Battles` of plain rows."""
    return make_table
