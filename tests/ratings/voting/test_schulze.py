"""Strongest paths against all paths, and what equal paths leave open."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given

from tests.ratings.elections import SCHULZE_45, election, elections
from venire.ratings.data.votes import Votes
from venire.ratings.voting.rules import levels, margins, schulze, strongest_paths


@given(votes=elections(models=5))
def test_strongest_paths_are_those_of_all_paths(votes: Votes) -> None:
    level, size = levels(votes), len(votes.models)
    best = np.zeros((size, size), dtype=np.int64)
    for length in range(2, size + 1):
        for path in permutations(range(size), length):
            strength = min(level[one, other] for one, other in pairwise(path))
            best[path[0], path[-1]] = max(best[path[0], path[-1]], strength)
    assert strongest_paths(level).tolist() == best.tolist()


def test_paths_of_the_45_voters_are_as_published() -> None:
    votes = election(SCHULZE_45)
    # The published strengths are winning votes: of 45, a margin m is (45 + m) / 2 votes.
    level = levels(votes)
    by_level = {int(step): margin for step, margin in zip(level.ravel(), margins(votes).ravel(), strict=True) if step}
    path = strongest_paths(level)
    strength = [[0 if a == b else (45 + by_level[int(path[a, b])]) / 2 for b in range(5)] for a in range(5)]
    assert strength == [
        [0, 28, 28, 30, 24],
        [25, 0, 28, 33, 24],
        [25, 29, 0, 29, 24],
        [25, 28, 28, 0, 24],
        [25, 28, 28, 31, 0],
    ]


def test_equal_paths_leave_models_equal() -> None:
    cycle = Votes(tuple("abcd"), np.array([[0, 2, 1, 3], [1, 0, 2, 3], [2, 1, 0, 3], [0, 0, 0, 0]], dtype=float))
    found = schulze(cycle)
    assert found.position.tolist() == [2, 2, 2, 4]
    assert found.score == pytest.approx([1, 1, 1, -3])
