"""Tables of verdicts as tests write them: one row a verdict, in the order shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from scipy.stats import rankdata

from venire.arena.battles import Battles
from venire.arena.records import Status
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.data.votes import Order, Votes, contradicted, pair_bound

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


def make_peers(
    strength: Sequence[float],
    *,
    slope: Sequence[float] | float = 1.0,
    favour: Sequence[float] | float = 0.0,
    instructions: int = 40,
    taste: float = 0.5,
    ties: float = 0.1,
    seed: int = 0,
) -> Battles:
    """Models that judge each other and themselves, all pairs of all instructions, one verdict each.

    `strength` (models,) are ratings in logits, `slope` and `favour` (models,) each judge's own: the log odds that it
    adds for itself. `taste` is the standard deviation of what all judges see in one answer alike.
    """
    rng, size = np.random.default_rng(seed), len(strength)
    first, second = np.triu_indices(size, 1)
    judge, instruction, pair = (
        grid.ravel()
        for grid in np.meshgrid(np.arange(size), np.arange(instructions), np.arange(len(first)), indexing="ij")
    )
    a, b = first[pair], second[pair]
    level = np.asarray(strength) + taste * rng.standard_normal((instructions, size))
    gap = level[instruction, a] - level[instruction, b]
    own = (a == judge).astype(float) - (b == judge)
    odds = np.broadcast_to(slope, size)[judge] * gap + np.broadcast_to(favour, size)[judge] * own
    label = np.where(rng.random(len(a)) < 1.0 / (1.0 + np.exp(-odds)), 1, -1)
    label[rng.random(len(a)) < ties] = 0
    names = tuple(f"m{code}" for code in range(size))
    return Battles(
        models=names,
        judges=names,
        instructions=tuple(f"q{code:04d}" for code in range(instructions)),
        model_a=a.astype(np.int32),
        model_b=b.astype(np.int32),
        judge=judge.astype(np.int32),
        instruction=instruction.astype(np.int32),
        repeat=np.ones(len(a), dtype=np.int32),
        swapped=np.zeros(len(a), dtype=np.bool_),
        status=np.zeros(len(a), dtype=np.int8),
        label=label.astype(np.int8),
        ordered=False,
    )


@pytest.fixture(scope="session")
def peer_battles() -> Table:
    """Makes `Battles` of simulated models that judge each other."""
    return make_peers


def order_by_points(given: Votes) -> Order:
    """The plainest of voting methods: votes won, over all opponents."""
    points, met = np.round(given.weight.sum(axis=1), 9), (given.weight + given.weight.T).sum(axis=1) > 0.0
    position = np.full(len(points), np.nan)
    position[met] = rankdata(-points[met])
    codes = sorted(range(len(points)), key=lambda code: (not met[code], position[code] if met[code] else 0, code))
    names = tuple(given.models[code] for code in codes)
    cost = contradicted(given.weight, codes)
    return Order("points", given.models, names, position, cost, pair_bound(given.weight), False)


@pytest.fixture(scope="session")
def by_points() -> Callable[[Votes], Order]:
    """Orders models by votes won."""
    return order_by_points
