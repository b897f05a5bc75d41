"""Tables of verdicts as tests write them: one row a verdict, in the order shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.records import Status
from venire.ratings.data.judgments import canonical, merge_orders
from venire.ratings.inference.options import Options
from venire.reports.audit.finding import Case

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


def draw_battles(
    seed: int,
    *,
    models: int = 8,
    instructions: int = 60,
    judges: int = 2,
    gap: float = 0.35,
    share: float = 1.0,
    shared: float = 0.8,
    ties: float = 0.1,
    noise: float = 0.3,
    extra: NDArray[np.float64] | None = None,
    unread: float = 0.01,
) -> Battles:
    """Every pair on a `share` of the instructions, by every judge, in both orders.

    Ratings stand `gap` logits apart. A model does better or worse on an instruction by a normal of sd `shared`, which
    all its battles there have in common, and a judge's two orders differ by one of sd `noise`. `extra` (models, models)
    adds logits to pairs. A share `ties` of verdicts are ties and `unread` were not read.
    """
    rng = np.random.default_rng([77, seed])
    rating = gap * np.arange(models)[::-1]
    one, two = np.triu_indices(models, 1)
    kept = rng.random((len(one), instructions)) < share
    pair, instruction = np.nonzero(kept)
    skill = rating[:, None] + shared * rng.standard_normal((models, instructions))
    z = skill[one[pair], instruction] - skill[two[pair], instruction]
    if extra is not None:
        z = z + extra[one[pair], two[pair]]
    shape = (len(pair), judges, 2)
    score = z[:, None, None] + noise * rng.standard_normal(shape) + rng.logistic(size=(len(pair), judges, 1))
    label = np.where(rng.random(shape) < ties, 0, np.where(score > 0, 1, -1)).astype(np.int8)
    rows = np.broadcast_to(np.arange(len(pair))[:, None, None], shape).ravel()
    lost = rng.random(len(rows)) < unread
    return Battles(
        models=tuple(f"m{code:02d}" for code in range(models)),
        judges=tuple(f"j{code}" for code in range(judges)),
        instructions=tuple(f"i{code:04d}" for code in range(instructions)),
        model_a=one[pair][rows].astype(np.int32),
        model_b=two[pair][rows].astype(np.int32),
        judge=np.broadcast_to(np.arange(judges, dtype=np.int32)[None, :, None], shape).ravel(),
        instruction=instruction[rows].astype(np.int32),
        repeat=np.ones(len(rows), dtype=np.int32),
        swapped=np.broadcast_to(np.array([False, True])[None, None, :], shape).ravel(),
        status=np.where(lost, Status.UNREADABLE, Status.OK).astype(np.int8),
        label=np.where(lost, 0, label.ravel()).astype(np.int8),
    )


def make_case(battles: Battles, **known: Any) -> Case:
    """The case of some verdicts, merged as by default."""
    rows = canonical(battles)
    return Case(rows, merge_orders(rows), Options(), **known)


def make_circle(models: int, strength: float) -> NDArray[np.float64]:
    """Logits (models, models) by which the first three models beat one another in a circle, over their ratings."""
    extra = np.zeros((models, models))
    extra[0, 1] = extra[1, 2] = strength
    extra[0, 2] = -strength
    return extra


@pytest.fixture(scope="session")
def draw() -> Callable[..., Battles]:
    """Draws verdicts from a known truth."""
    return draw_battles


@pytest.fixture(scope="session")
def case() -> Callable[..., Case]:
    """Makes a `Case` of verdicts."""
    return make_case


@pytest.fixture(scope="session")
def circle() -> Callable[[int, float], NDArray[np.float64]]:
    """Logits of a circle of three models."""
    return make_circle
