"""Who met whom: groups, bridges and the balance of a board, against slow ways of finding them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import comparisons
from venire.ratings.diagnostics.pair_coverage import pair_coverage

Edges = list[tuple[int, int]]


def parts(size: int, edges: Edges, without: int | None = None) -> int:
    kept = [edge for edge in edges if without not in edge]
    graph = coo_array((np.ones(len(kept)), tuple(np.array(kept, dtype=int).reshape(-1, 2).T)), shape=(size, size))
    return int(connected_components(graph, directed=False)[0])


@given(st.integers(2, 8), st.integers(0, 10_000), st.floats(0.2, 0.9))
def test_bridges_and_hinges_are_those_that_removal_shows(size: int, seed: int, dense: float) -> None:
    rng = np.random.default_rng(seed)
    edges = [pair for pair in itertools.combinations(range(size), 2) if rng.random() < dense]
    if not edges:
        return
    a, b = np.array(edges).T
    names = [f"m{code}" for code in range(size)]
    found = pair_coverage(comparisons(a, b, np.full(len(a), 0.5), models=names))
    whole = parts(size, edges)
    bridges = [edge for edge in edges if parts(size, [one for one in edges if one != edge]) > whole]
    assert found.bridges == tuple((names[one], names[two]) for one, two in bridges)
    # Taking a model out leaves it as a part by itself: one part more is what any model's going makes.
    lonely = {code for code in range(size) if not any(code in edge for edge in edges)}
    hinges = [code for code in range(size) if code not in lonely and parts(size, edges, code) > whole + 1]
    assert found.hinges == tuple(names[code] for code in hinges)
    assert found.islands == whole
    assert (found.seen, found.possible) == (len(edges), size * (size - 1) // 2)


def test_a_model_that_two_rings_share_is_a_hinge_without_being_a_bridge() -> None:
    rings = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (2, 4)]
    a, b = np.array(rings).T
    found = pair_coverage(comparisons(a, b, np.full(6, 0.5)))
    assert (found.bridges, found.hinges) == ((), ("2",))


def test_an_even_board_has_balance_one_and_a_star_the_root_of_two() -> None:
    pairs = list(itertools.combinations("abcdef", 2)) * 3
    even = comparisons(*zip(*pairs, strict=True), [0.5] * len(pairs))
    assert pair_coverage(even).balance == pytest.approx(1.0)
    star = comparisons(["hub"] * 40, [f"m{code % 20}" for code in range(40)], [0.5] * 40)
    found = pair_coverage(star)
    assert found.balance == pytest.approx(np.sqrt(2.0))
    assert found.worst is not None
    assert "hub" not in found.worst
    assert found.hinges == ("hub",)
    assert len(found.bridges) == 20


def test_the_worst_difference_is_that_of_the_exact_information_matrix() -> None:
    rng = np.random.default_rng(2)
    a = rng.integers(0, 5, 80)
    b = (a + rng.integers(1, 5, 80)) % 5
    found = pair_coverage(comparisons(a, b, np.full(80, 0.5), weight=rng.integers(1, 5, 80)))
    weight = np.zeros((5, 5))
    rng = np.random.default_rng(2)
    rng.integers(0, 5, 80), rng.integers(1, 5, 80)
    np.add.at(weight, (a, b), rng.integers(1, 5, 80).astype(float))
    weight += weight.T
    net = np.diag(weight.sum(axis=1)) - weight
    best = max(
        float(np.linalg.solve(net[1:, 1:], vector[1:]) @ vector[1:])
        for one, two in itertools.combinations(range(5), 2)
        for vector in [np.eye(5)[one] - np.eye(5)[two]]
    )
    assert found.balance == pytest.approx(np.sqrt(best * (weight.sum() / 2) / 4))


def test_groups_and_islands_are_told_apart_and_have_no_balance() -> None:
    apart = pair_coverage(comparisons(["a", "a", "c", "c"], ["b", "b", "d", "d"], [1, 0, 1, 0]))
    assert (apart.islands, apart.groups, apart.balance) == (2, (("a", "b"), ("c", "d")), np.inf)
    oneway = pair_coverage(comparisons(["a", "a", "b"], ["b", "c", "c"], [1, 1, 1]))
    assert oneway.islands == 1
    assert oneway.groups == (("a",), ("b",), ("c",))
    assert oneway.fewest_of_pair == ("a", "b", 1.0)


def test_nothing_to_look_at_is_said() -> None:
    with pytest.raises(InputError, match="no two models met"):
        pair_coverage(comparisons([], [], [], models=["a", "b"]))
