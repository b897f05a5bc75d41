"""Votes and ballots as tests write them, and elections with known results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from venire.arena.battles import Ballots
from venire.ratings.data.votes import Order, Votes

TENNESSEE = (
    (42, ("Memphis", "Nashville", "Chattanooga", "Knoxville")),
    (26, ("Nashville", "Chattanooga", "Knoxville", "Memphis")),
    (15, ("Chattanooga", "Knoxville", "Nashville", "Memphis")),
    (17, ("Knoxville", "Chattanooga", "Nashville", "Memphis")),
)
"""The capital of Tennessee, by voters in percent who want it near: the common textbook example."""

SCHULZE_45 = tuple(
    (votes, tuple(ranking))
    for votes, ranking in (
        (5, "ACBED"),
        (5, "ADECB"),
        (8, "BEDAC"),
        (3, "CABED"),
        (7, "CAEBD"),
        (2, "CBADE"),
        (7, "DCEBA"),
        (8, "EBADC"),
    )
)
"""45 voters: example 1 of Schulze, arXiv 1804.02973, whose order is E, A, C, B, D."""


def election(rows: Iterable[tuple[float, Sequence[str]]], models: Sequence[str] | None = None) -> Votes:
    """Votes of full rankings, each with the number of voters."""
    given = list(rows)
    names = tuple(models or sorted(given[0][1]))
    weight = np.zeros((len(names), len(names)))
    for count, ranking in given:
        codes = [names.index(name) for name in ranking]
        for place, code in enumerate(codes):
            weight[code, codes[place + 1 :]] += count
    return Votes(names, weight)


@st.composite
def elections(draw: st.DrawFn, models: int = 5) -> Votes:
    """Any table of votes: full or with pairs that never met, whole or fractional, often with ties."""
    size = draw(st.integers(2, models))
    cell = st.sampled_from([0.0, 0.0, 0.5, 1.0, 1.0, 2.0, 3.0, 7.25])
    flat = draw(st.lists(cell, min_size=size * size, max_size=size * size))
    weight = np.array(flat).reshape(size, size)
    np.fill_diagonal(weight, 0.0)
    return Votes(tuple(f"m{code}" for code in range(size)), weight)


def positions(order: Order) -> dict[str, float]:
    """Positions by model."""
    return dict(zip(order.models, order.position.tolist(), strict=True))


def relabelled(votes: Votes, place: NDArray[np.int64]) -> Votes:
    """The same election with models under other codes and names: code i becomes `place[i]`."""
    weight = np.empty_like(votes.weight)
    weight[np.ix_(place, place)] = votes.weight
    return Votes(votes.models, weight)


def ballot_table(rank: Any, *, instruction: Any = None, weight: Any = None) -> Ballots:
    """Ballots of one judge from ranks (ballots, models), each a repeat of its own."""
    table = np.asarray(rank, dtype=np.float64)
    rows, size = table.shape
    asked = np.full(rows, -1) if instruction is None else np.asarray(instruction)
    return Ballots(
        models=tuple(f"m{code}" for code in range(size)),
        judges=("j",),
        instructions=tuple(f"i{code}" for code in range(int(asked.max(initial=-1)) + 1)),
        judge=np.zeros(rows, dtype=np.int32),
        instruction=asked.astype(np.int32),
        repeat=np.arange(1, rows + 1, dtype=np.int32),
        rank=table,
        weight=None if weight is None else np.asarray(weight, dtype=np.float64),
    )
