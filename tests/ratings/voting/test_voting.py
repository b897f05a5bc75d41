"""What voting methods promise, each held to what is known of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.ratings.elections import SCHULZE_45, TENNESSEE, election, elections, positions, relabelled
from venire.ratings.data.votes import Order, Votes, contradicted
from venire.ratings.voting.rules import borda, copeland, markov, minimax, ranked_pairs, schulze

Method = Callable[[Votes], Order]

ALL: tuple[Method, ...] = (borda, copeland, minimax, ranked_pairs, schulze, markov)
CONDORCET: tuple[Method, ...] = (copeland, minimax, ranked_pairs, schulze)
SMITH: tuple[Method, ...] = (copeland, ranked_pairs, schulze)

each = pytest.mark.parametrize("method", ALL, ids=lambda method: method.__name__)


def won(votes: Votes) -> NDArray[np.bool_]:
    """Which pairs have a majority for the first."""
    return np.asarray(votes.weight > votes.weight.T)


def full(votes: Votes) -> Votes:
    """The same election with a vote in every pair: who never met is tied."""
    weight = votes.weight + 1.0
    np.fill_diagonal(weight, 0.0)
    return Votes(votes.models, weight)


def smith(votes: Votes) -> set[int]:
    """The smallest set whose members beat all others: grown from each model by whoever is not beaten."""
    beaten, found = won(votes), []
    for code in range(len(beaten)):
        inside = {code}
        while more := {
            other for other in range(len(beaten)) for one in inside if other not in inside and not beaten[one, other]
        }:
            inside |= more
        found.append(inside)
    return min(found, key=len)


@settings(max_examples=20)
@given(votes=elections(), seed=st.integers(0, 1000))
@each
def test_codes_and_names_decide_nothing(method: Method, votes: Votes, seed: int) -> None:
    place = np.random.default_rng(seed).permutation(len(votes.models))
    assert method(relabelled(votes, place)).position[place] == pytest.approx(method(votes).position, nan_ok=True)


@settings(max_examples=20)
@given(votes=elections(), scale=st.sampled_from([1e-9, 3.0, 1e12]))
@each
def test_what_a_vote_weighs_in_all_decides_nothing(method: Method, votes: Votes, scale: float) -> None:
    scaled = method(Votes(votes.models, scale * votes.weight))
    assert scaled.position == pytest.approx(method(votes).position, nan_ok=True)


@settings(max_examples=20)
@given(votes=elections())
@each
def test_an_order_is_what_it_says(method: Method, votes: Votes) -> None:
    found = method(votes)
    assert sorted(found.order) == list(votes.models)
    place = positions(found)
    known = [name for name in found.order if not np.isnan(place[name])]
    idle = set(np.flatnonzero((votes.weight + votes.weight.T).sum(axis=1) == 0.0).tolist())
    assert {name for name in votes.models if np.isnan(place[name])} == {f"m{code}" for code in idle}
    assert list(found.order[: len(known)]) == sorted(known, key=lambda name: (place[name], name))
    assert sum(place[name] for name in known) == pytest.approx(len(known) * (len(known) + 1) / 2)
    assert found.cost == contradicted(votes.weight, [votes.models.index(name) for name in found.order])
    assert found.cost >= found.lower_bound - votes.tolerance
    assert found.proved == (found.cost <= found.lower_bound + votes.tolerance)
    assert found.optimal_orders is None


@given(votes=elections(), winner=st.integers(0, 4))
@pytest.mark.parametrize("method", CONDORCET)
def test_who_beats_every_other_comes_first_alone(method: Method, votes: Votes, winner: int) -> None:
    code, weight = winner % len(votes.models), votes.weight.copy()
    weight[code] = weight[:, code] + 0.5
    weight[code, code] = 0.0
    assert method(Votes(votes.models, weight)).position[code] == 1.0
    if method is not minimax:
        assert method(Votes(votes.models, weight.T)).position[code] == len(votes.models)


@given(votes=elections())
@pytest.mark.parametrize("method", SMITH)
def test_the_smallest_set_that_beats_all_others_comes_before_them(method: Method, votes: Votes) -> None:
    counted, found = full(votes), method(full(votes))
    inside = smith(counted)
    outside = set(range(len(votes.models))) - inside
    assert all(found.position[one] < found.position[other] for one in inside for other in outside)


@given(votes=elections(), raised=st.integers(0, 4), past=st.integers(0, 4), by=st.sampled_from([0.25, 1.0, 5.0]))
@each
def test_a_sole_winner_that_gains_votes_stays_the_winner(
    method: Method, votes: Votes, raised: int, past: int, by: float
) -> None:
    counted = full(votes)
    up, down = raised % len(votes.models), past % len(votes.models)
    gain = min(by, float(counted.weight[down, up]))
    if up == down or method(counted).position[up] != 1.0:
        return
    weight = counted.weight.copy()
    weight[up, down] += gain
    weight[down, up] -= gain
    assert method(Votes(votes.models, weight)).position[up] == 1.0


@settings(max_examples=20)
@given(votes=elections())
@pytest.mark.parametrize("method", [borda, copeland, ranked_pairs, schulze])
def test_votes_turned_around_turn_the_order_around(method: Method, votes: Votes) -> None:
    forth, back = method(votes), method(Votes(votes.models, votes.weight.T))
    known = int(np.count_nonzero(~np.isnan(forth.position)))
    assert back.position == pytest.approx(known + 1 - forth.position, nan_ok=True)


@pytest.mark.parametrize(
    ("method", "order"),
    [
        (borda, "Nashville Chattanooga Memphis Knoxville"),
        (copeland, "Nashville Chattanooga Knoxville Memphis"),
        (minimax, "Nashville Memphis Chattanooga Knoxville"),
        (ranked_pairs, "Nashville Chattanooga Knoxville Memphis"),
        (schulze, "Nashville Chattanooga Knoxville Memphis"),
        (markov, "Nashville Chattanooga Memphis Knoxville"),
    ],
)
def test_the_capital_of_tennessee(method: Method, order: str) -> None:
    found = method(election(TENNESSEE))
    assert list(found.order) == order.split()
    assert sorted(found.position.tolist()) == [1, 2, 3, 4]


def test_the_45_voters_of_schulze() -> None:
    votes = election(SCHULZE_45)
    assert "".join(schulze(votes).order) == "EACBD"
    assert "".join(ranked_pairs(votes).order) == "ACEBD"
    assert "".join(minimax(votes).order)[0] == "E"


@pytest.mark.parametrize("method", [schulze, ranked_pairs])
def test_a_clone_of_the_winner_takes_nothing_from_it(method: Method) -> None:
    """Two near copies of one model stand side by side on every ballot; Borda's order turns with them."""
    rows = ((3, "ABC"), (2, "BCA"), (2, "CAB"))
    plain = election(rows)
    cloned = election([(votes, ranking.replace("B", "XYB")) for votes, ranking in rows], models="ABCXY")
    assert [name for name in method(cloned).order if name in "ABC"] == list(method(plain).order)
    before, after = (borda(votes) for votes in (plain, cloned))
    assert [name for name in after.order if name in "ABC"] != list(before.order)


@each
def test_two_models_one_model_and_none(method: Method) -> None:
    two = method(Votes(("a", "b"), np.array([[0.0, 1.0], [2.0, 0.0]])))
    assert two.order == ("b", "a")
    assert two.proved
    assert two.cost == 1.0
    tied = method(Votes(("a", "b"), np.array([[0.0, 1.5], [1.5, 0.0]])))
    assert tied.position.tolist() == [1.5, 1.5]
    assert tied.order == ("a", "b")
    one = method(Votes(("a",), np.zeros((1, 1))))
    assert one.order == ("a",)
    assert np.isnan(one.position).all()
    assert method(Votes((), np.zeros((0, 0)))).order == ()


@each
def test_all_ties_leave_all_models_equal(method: Method) -> None:
    found = method(Votes(tuple("abcd"), 2.5 * (1.0 - np.eye(4))))
    assert found.position.tolist() == [2.5] * 4
    assert found.proved


@each
def test_a_model_without_votes_stands_last_and_nowhere(method: Method) -> None:
    weight = np.zeros((3, 3))
    weight[1, 2] = 2.0
    found = method(Votes(("idle", "best", "worst"), weight))
    assert found.order == ("best", "worst", "idle")
    assert found.position == pytest.approx([np.nan, 1.0, 2.0], nan_ok=True)
    assert found.score is not None
    assert np.isnan(found.score[0])


@each
def test_the_last_bits_of_sums_make_no_difference(method: Method) -> None:
    rng = np.random.default_rng(3)
    votes = full(Votes(tuple("abcdef"), rng.integers(0, 4, (6, 6)).astype(float)))
    noisy = replace(votes, weight=votes.weight * (1.0 + 1e-15 * rng.standard_normal((6, 6))))
    assert method(noisy).position.tolist() == method(votes).position.tolist()


@each
def test_a_heavy_pair_does_not_blind_the_others(method: Method) -> None:
    weight = np.zeros((4, 4))
    weight[0, 1], weight[1, 0] = 1e12, 1.0
    weight[1, 2] = weight[2, 3] = 1e12
    assert method(Votes(tuple("abcd"), weight)).order == ("a", "b", "c", "d")
