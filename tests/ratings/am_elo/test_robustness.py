"""Ratings that heed judges' abilities stand spoilt judges better than those that do not, and find these judges."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.arena.errors import InputError
from venire.ratings.am_elo.am_elo import am_elo
from venire.ratings.am_elo.robustness import Perturbation, Robustness, f1_score, inconsistency, robustness
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.pairwise.bradley_terry import m_elo
from venire.ratings.pairwise.components import SeparatedError
from venire.ratings.pairwise.online import online_elo

Arena = Callable[..., Comparisons]
KINDS: tuple[Perturbation, ...] = ("random", "equal", "flip", "mixed")


def online(data: Comparisons) -> Ratings:
    return online_elo(data, shuffles=10).ratings


def likely(data: Comparisons) -> Ratings:
    return m_elo(data, errors="none")


METHODS = {"elo": online, "m-elo": likely, "am-elo": am_elo}


@given(
    st.lists(st.tuples(*[st.sampled_from([-1.0, 0.0, 0.5, 2.0, np.inf, np.nan])] * 2), min_size=0, max_size=7),
)
def test_inconsistency_is_its_definition(pairs: list[tuple[float, float]]) -> None:
    one, other = (np.array([pair[side] for pair in pairs], dtype=np.float64) for side in (0, 1))
    known = [pair for pair in pairs if not np.isnan(pair).any()]
    apart = []
    for i, j in combinations(known, 2):
        signs = [(i[side] > j[side]) - (i[side] < j[side]) for side in (0, 1)]
        apart.append(abs(signs[0] - signs[1]) / 2)
    found = inconsistency(one, other)
    assert np.isnan(found) if not apart else found == pytest.approx(np.mean(apart))
    assert inconsistency(other, one) == pytest.approx(found, nan_ok=True)


def test_inconsistency_runs_from_the_same_order_to_the_reverse() -> None:
    ratings = np.array([3.0, 1.0, 2.0])
    assert (inconsistency(ratings, 10 * ratings), inconsistency(ratings, -ratings)) == (0.0, 1.0)
    assert inconsistency(ratings, np.zeros(3)) == 0.5
    assert inconsistency(np.zeros(3), 1e-12 * ratings) == 0.0
    with pytest.raises(InputError, match="shapes"):
        inconsistency(ratings, ratings[:2])


def test_f1_counts_false_alarms_and_misses() -> None:
    assert f1_score(["a", "b"], ["b", "a"]) == 1.0
    assert f1_score(["a", "b", "c"], ["a"]) == pytest.approx(0.5)
    assert f1_score(["a"], ["a", "b", "c"]) == pytest.approx(0.5)
    assert f1_score(["a"], ["b"]) == f1_score([], ["b"]) == f1_score(["a"], []) == 0.0
    assert np.isnan(f1_score([], []))


def test_turned_judges_change_nothing_where_abilities_are_heeded(arena: Arena) -> None:
    """Flipping a judge turns its ability's sign and leaves the likelihood as it is."""
    found = robustness(arena(1), METHODS, share=0.25, kind="flip", seeds=range(4))
    elo, likelihood, heeded = found.inconsistency
    assert heeded.tolist() == [0.0, 0.0, 0.0, 0.0]
    assert min(elo.mean(), likelihood.mean()) > 0.02
    assert np.isnan(found.f1[:2]).all()
    assert (found.f1[2] > 0.8).all()


@pytest.mark.parametrize("kind", KINDS)
def test_arena_of_the_size_of_the_paper(arena: Arena, kind: Perturbation) -> None:
    """Ten draws of a quarter of the judges: well below Elo's inconsistency except for ties, F1 about 0.9."""
    found = robustness(arena(0), METHODS, share=0.25, kind=kind, thresholds=(0.0, 0.21))
    rows = {str(row["method"]): row for row in found.rows()}
    unlike = {name: float(row["inconsistency"] or 0.0) for name, row in rows.items()}
    if kind == "equal":  # ties move no order much: neither method is steadier
        assert max(unlike.values()) < 0.04
    else:
        assert unlike["am-elo"] < 0.55 * min(unlike["elo"], unlike["m-elo"])
    assert rows["am-elo"]["undecided"] == 0
    assert float(rows["am-elo"]["f1_at_0"] or 0.0) > 0.85
    assert float(rows["am-elo"]["f1_at_0.21"] or 0.0) > 0.85
    assert rows["elo"] == {
        "method": "elo",
        "kind": kind,
        "perturbed": 10,
        "seeds": 10,
        "inconsistency": unlike["elo"],
        "f1_at_0": None,
        "f1_at_0.21": None,
        "undecided": 0,
    }


@pytest.mark.slow
def test_many_arenas_of_the_size_of_the_paper(arena: Arena) -> None:
    """Eight arenas, a tenth, a quarter and two fifths of the judges, five draws of each.

    The paper saw an inconsistency of about 30 % of Elo's (all kinds but ties) and F1 of 0.90 at 0 and 0.95 at 0.21.
    Here 0.21 finds no more than 0 does: what it adds are judges that are weak by nature.
    """
    studies: dict[Perturbation, list[Robustness]] = {kind: [] for kind in KINDS}
    for seed in range(8):
        for kind in KINDS:
            for share in (0.1, 0.25, 0.4):
                studies[kind].append(
                    robustness(arena(seed), METHODS, share=share, kind=kind, seeds=range(5), thresholds=(0.0, 0.21))
                )
    for kind, found in studies.items():
        elo, _, heeded = np.mean([one.inconsistency for one in found], axis=(0, 2))
        low, high = {"flip": (0.0, 0.0), "equal": (0.6, 1.1)}.get(kind, (0.25, 0.4))
        assert low <= heeded / elo <= high, kind
        assert np.mean([one.f1[2] for one in found], axis=(0, 2)) == pytest.approx([0.914, 0.900], abs=0.03)
        assert np.mean([one.undecided[2] for one in found]) < 0.05


def test_draws_are_those_of_their_seeds(arena: Arena) -> None:
    data = arena(2, models=6, judges=10, rows=600)
    one, again, later = (
        robustness(data, {"m-elo": likely}, kind="mixed", seeds=seeds) for seeds in ((4, 5, 6), (4, 5, 6), (5,))
    )
    assert np.array_equal(one.inconsistency, again.inconsistency)
    assert one.inconsistency[0, 1] == later.inconsistency[0, 0]
    assert len(set(one.inconsistency[0])) > 1
    assert (one.count, one.seeds, one.methods) == (2, (4, 5, 6), ("m-elo",))


def test_each_seed_spoils_the_same_judge_otherwise(arena: Arena) -> None:
    found = robustness(arena(4, judges=2, rows=900), {"m-elo": likely}, share=0.5, kind="random", seeds=range(6))
    assert len(set(found.inconsistency[0])) > 2


def test_a_method_without_an_estimate_is_told_and_does_not_stop_the_others(arena: Arena) -> None:
    data = arena(2, models=6, judges=10, rows=600)

    def picky(table: Comparisons) -> Ratings:
        if table is not data:
            raise SeparatedError((("m00",), ("m01",)))
        return likely(table)

    found = robustness(data, {"picky": picky, "m-elo": likely}, seeds=range(3))
    picked, whole = found.rows()
    assert (picked["seeds"], picked["inconsistency"]) == (0, None)
    assert whole["seeds"] == 3


def test_a_sign_that_nobody_can_tell_is_counted(arena: Arena) -> None:
    found = robustness(arena(3, judges=20, rows=3000, spread=0.0), {"am": am_elo}, share=0.5, seeds=range(2))
    assert found.undecided.tolist() == [[True, True]]


def test_what_is_not_possible_is_said(arena: Arena) -> None:
    data = arena(2, models=6, judges=10, rows=600)
    for share in (0.0, 0.01, 0.99, 1.0, float("nan")):
        with pytest.raises(InputError, match=rf"share is {share}: of 10 judges"):
            robustness(data, METHODS, share=share)
    with pytest.raises(InputError, match="name no judge"):
        robustness(comparisons([0, 1], [1, 0], [1.0, 1.0]), METHODS)
    with pytest.raises(InputError, match="seed is -2"):
        robustness(data, METHODS, seeds=(-2,))
    with pytest.raises(SeparatedError):
        robustness(comparisons([0, 0], [1, 1], [1.0, 1.0], judge=["a", "b"]), METHODS, share=0.5)
