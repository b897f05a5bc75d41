"""From verdicts to ratings with intervals, by name: what is drawn, what is left out, and how often intervals hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from venire.arena.battles import Battles
from venire.arena.scale import to_elo
from venire.ratings.data.result import Rated
from venire.ratings.inference.options import Options
from venire.ratings.methods.methods import rate

Table = Callable[..., Battles]
Rows = list[tuple[Any, ...]]


def simulated(rng: np.random.Generator, truth: Any, instructions: int, sway: float = 0.0) -> Rows:
    """Every pair on every instruction in both orders; `sway` moves each model on each instruction, in logits."""
    rows = []
    for item in range(instructions):
        at = truth + sway * rng.standard_normal(len(truth))
        for a in range(len(truth)):
            for b in range(a + 1, len(truth)):
                share = 1 / (1 + math.exp(at[b] - at[a]))
                for first, second in ((a, b), (b, a)):
                    won = (rng.random() < share) == (first == a)
                    rows.append((f"m{first:03d}", f"m{second:03d}", "first" if won else "second", "j", f"i{item}"))
    return rows


def drawn(battles: Battles, replicates: int, **told: Any) -> Rated:
    return rate(battles, "bradley-terry", Options(replicates=replicates, **told))


def test_instructions_are_drawn_where_there_are_any_and_battles_elsewhere(table: Table) -> None:
    rows = simulated(np.random.default_rng(3), np.linspace(1, -1, 4), 20)
    assert drawn(table(rows), 20).ratings.errors == "bootstrap over 20 instructions"
    assert drawn(table(rows, named=False), 20).ratings.errors == f"bootstrap over {len(rows)} battles"


@pytest.mark.parametrize("replicates", [0, 100])
def test_intervals_over_instructions_hold_the_truth_as_often_as_they_say(table: Table, replicates: int) -> None:
    """5 models, 40 tables of 40 instructions that sway all battles alike: 200 intervals, some 190 must hold."""
    rng = np.random.default_rng(2)
    truth = np.linspace(0.8, -0.8, 5)
    shown = np.array([1 / (1 + np.exp(-(d + math.sqrt(2) * rng.standard_normal(200_000)))) for d in np.diff(truth)])
    centre = to_elo(np.cumsum(np.concatenate([[0.0], np.log(shown.mean(axis=1) / (1 - shown.mean(axis=1)))])))
    held = 0
    for _ in range(40):
        found = drawn(table(simulated(rng, truth, 40, sway=1.0)), replicates)
        held += int(np.count_nonzero((found.lo <= centre) & (centre <= found.hi)))
    assert 174 <= held <= 199


def test_replicates_without_an_estimate_are_counted_and_open_their_side(table: Table) -> None:
    rows = [("a", "b", "first", "j", f"i{item}") for item in range(4)] + [("a", "b", "second", "j", "i4")]
    found = drawn(table(rows), 400)
    assert found.without_estimate / 400 == pytest.approx(0.8**5 + 0.2**5, abs=0.07)
    assert found.lo.tolist() == pytest.approx([964.8, -np.inf], abs=40.0)
    assert found.hi.tolist() == pytest.approx([np.inf, 1035.2], abs=40.0)
    assert np.isnan(found.se).all()


def test_ties_that_no_longer_join_all_models_are_no_estimate(table: Table) -> None:
    """At the start of such a fit the gradient is zero already: it would pass for an estimate."""
    found = drawn(table([("a", "b", "tie", "j", "x"), ("b", "c", "tie", "j", "y")]), 400)
    assert found.without_estimate / 400 == pytest.approx(0.5, abs=0.1)


def test_battles_drawn_again_have_the_error_of_their_share(table: Table) -> None:
    """120 wins of 200: the log odds have a standard error of 1 / sqrt(200 * 0.6 * 0.4), half of it on each side."""
    rows = [("a", "b", "first")] * 120 + [("a", "b", "second")] * 80
    found = drawn(table(rows, named=False), 4000)
    error = 1.96 * 400 / math.log(10) / math.sqrt(200 * 0.6 * 0.4) / 2
    centre = 1000 + 200 * math.log10(1.5)
    assert (found.lo[0], found.hi[0]) == pytest.approx((centre - error, centre + error), abs=3.0)


def test_all_ties_have_an_interval_of_no_width_from_draws_and_none_from_a_formula(table: Table) -> None:
    """Draws of equal rows are equal; the formula sees that nothing scatters, and says that it cannot tell."""
    ties = table([("a", "b", "tie", "j", item) for item in "xyz"])
    found = drawn(ties, 20)
    assert found.lo.tolist() == found.hi.tolist() == [1000.0, 1000.0]
    assert np.isnan(drawn(ties, 0).lo).all()


def test_each_group_is_drawn_by_the_instructions_it_was_judged_on(table: Table) -> None:
    """The other group's instructions say nothing of it: a draw of its own five always leaves it an estimate."""
    rows = simulated(np.random.default_rng(3), np.linspace(1, -1, 4), 20)
    apart = [("x", "y", "tie", "j", f"z{item}") for item in range(5)]
    found = drawn(table(rows + apart), 100)
    assert found.groups == (("m000", "m001", "m002", "m003"), ("x", "y"))
    assert found.without_estimate == 0
    alone = drawn(table(rows), 100)
    for column in ("lo", "hi", "se", "rank_lo", "rank_hi", "tier", "best"):
        assert getattr(found, column)[:4].tolist() == getattr(alone, column).tolist(), column


@pytest.mark.parametrize("method", ["bradley-terry", "elo", "win-rate"])
def test_nothing_to_draw_is_no_interval(table: Table, method: str) -> None:
    found = rate(table([("a", "b", None)]), method, Options(replicates=5))
    assert np.isnan(found.lo).all()


def test_draws_with_ties_as_an_outcome_are_of_the_instructions_that_a_group_has(table: Table) -> None:
    """Codes of the other group's instructions stay in the table; to draw them would draw nothing."""
    pairs = [("a", "b"), ("b", "c"), ("c", "a")]
    said = ("first", "second", "tie", "first", "tie", "second", "first")
    rows = [(*pair, said[(2 * k + item) % 7], "j", f"i{item}") for k, pair in enumerate(pairs) for item in range(6)]
    told = Options(replicates=20, ties="davidson", merge="strict")
    alone = rate(table(rows), "bradley-terry", told)
    others = [("x", "y", ("first", "second", "tie")[item % 3], "j", f"z{item}") for item in range(40)]
    beside = rate(table([*rows, *others]), "bradley-terry", told)
    place = [beside.ratings.models.index(name) for name in "abc"]
    assert alone.lo.tolist() == beside.lo[place].tolist()
    assert np.isfinite(alone.lo).all()
