"""Tables of verdicts as tests write them: one row a verdict, in the order shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from venire.arena.battles import Battles
from venire.arena.records import Status
from venire.ratings.comparisons import Comparisons, comparisons

Table = Callable[..., Battles]
Arena = Callable[..., Comparisons]

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


def make_arena(
    seed: int = 0,
    *,
    models: int = 20,
    judges: int = 42,
    rows: int = 4321,
    spread: float = 0.5,
    ties: float = 0.35,
    against: int = 0,
) -> Comparisons:
    """Models m00, ... and judges j00, ... of abilities around 1; the first `against` have -1, the others at least 0.3.

    By default it has the size of the arena that am-ELO's authors studied, and is about as hard to foretell: held-out
    squared errors of 0.126 by m-ELO and 0.122 by am-ELO, there 0.123 and 0.121.
    """
    rng = np.random.default_rng((seed, models, judges))
    strength = 1.8 * rng.standard_normal(models)
    ability = 1.0 + spread * rng.standard_normal(judges)
    if against:
        ability = np.maximum(ability, 0.3)
        ability[:against] = -1.0
    each = min(51, rows // judges)
    judge = np.concatenate([np.repeat(np.arange(judges), each), rng.integers(0, judges, rows - each * judges)])
    a = rng.integers(0, models, rows)
    b = (a + rng.integers(1, models, rows)) % models
    chance = 1.0 / (1.0 + np.exp(-ability[judge] * (strength[a] - strength[b])))
    y = np.where(rng.random(rows) < ties, 0.5, rng.random(rows) < chance)
    names = [f"m{code:02}" for code in range(models)]
    return comparisons(a, b, y, models=names, judge=np.array([f"j{code:02}" for code in judge]))


@pytest.fixture(scope="session")
def arena() -> Arena:
    """Makes comparisons of models by judges of known ability."""
    return make_arena


@pytest.fixture(scope="session")
def table() -> Table:
    """Makes `Battles` of plain rows."""
    return make_table


@pytest.fixture(scope="session")
def arena_sample(shared_data: Path) -> dict[str, Any]:
    """The recorded battles with votes of people, verdicts and scores of a judge: columns by name."""
    path = shared_data / "softelo_sample" / "battles.parquet"
    with duckdb.connect() as connection:
        rows = connection.execute(
            "SELECT model_a, model_b, human_winner, judge_winner, score_difference FROM read_parquet(?)", [str(path)]
        ).fetchall()
    a, b, human, judge, score = zip(*rows, strict=True)
    outcome = {"model_a": 1.0, "tie": 0.5, "model_b": 0.0}
    return {
        "data": comparisons(list(a), list(b), [outcome[name] for name in judge]),
        "human": np.array([outcome[name] for name in human]),
        "score": np.array(score),
    }
