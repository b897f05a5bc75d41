"""Bootstrap intervals: reproducible, blind to the order of rows, and honest about what they leave out."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings import inference
from venire.ratings.bradley_terry import SeparatedError, fit
from venire.ratings.inference import Bootstrap, bootstrap, percentiles, resample
from venire.ratings.merging import merge_orders
from venire.ratings.scale import to_elo

Table = Callable[..., Battles]


def simulated(rng: np.random.Generator, truth: Any, instructions: int, sway: float = 0.0) -> list[tuple[Any, ...]]:
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


def printed(found: Bootstrap) -> str:
    return json.dumps([found.models, found.lo.tolist(), found.hi.tolist(), found.without_estimate])


@pytest.fixture(scope="module")
def rows() -> list[tuple[Any, ...]]:
    return simulated(np.random.default_rng(3), np.linspace(1, -1, 4), 20)


def test_one_seed_gives_one_interval_and_another_seed_another(table: Table, rows: list[tuple[Any, ...]]) -> None:
    judgments = merge_orders(table(rows))
    assert printed(bootstrap(judgments, seed=5)) == printed(bootstrap(judgments, seed=5))
    assert printed(bootstrap(judgments, seed=5)) != printed(bootstrap(judgments, seed=6))


@pytest.mark.parametrize("named", [True, False])
@settings(deadline=None, max_examples=10)
@given(data=st.data())
def test_order_of_rows_does_not_change_one_bit(
    table: Table, rows: list[tuple[Any, ...]], named: bool, data: st.DataObject
) -> None:
    few = [*rows[:60], ("m000", "m001", "tie", "k", "i1", 9)]
    shuffled = data.draw(st.permutations(few))
    one = bootstrap(merge_orders(table(few, named=named)), replicates=30)
    other = bootstrap(merge_orders(table(shuffled, named=named)), replicates=30)
    assert printed(one) == printed(other)


def test_each_replicate_is_the_fit_of_its_instructions_repeated(table: Table, rows: list[tuple[Any, ...]]) -> None:
    """The sums by pair and the warm start must give what a fit of the drawn rows gives."""
    judgments = merge_orders(table(rows))
    drawn = resample(judgments.judge, judgments.model_a, judgments.y, judgments.instruction, replicates=40, seed=11)
    assert drawn.weights.sum(axis=1).tolist() == [20.0] * 40
    elo = []
    for weights in drawn.weights:
        named = {name: int(weights[code]) for code, name in enumerate(judgments.instructions)}
        copies = [(*row[:4], f"{row[4]}/{copy}") for row in rows for copy in range(named[row[4]])]
        elo.append(to_elo(fit(merge_orders(table(copies)), judgments.models).ratings))
    found = bootstrap(judgments, replicates=40, seed=11)
    lo, hi = np.quantile(elo, [0.025, 0.975], axis=0)
    assert found.lo == pytest.approx(lo, abs=1e-6)
    assert found.hi == pytest.approx(hi, abs=1e-6)


def test_instructions_are_drawn_where_there_are_any_and_battles_elsewhere(
    table: Table, rows: list[tuple[Any, ...]]
) -> None:
    by_instruction = bootstrap(merge_orders(table(rows)), replicates=20)
    by_battle = bootstrap(merge_orders(table(rows, named=False)), replicates=20)
    assert (by_instruction.unit, by_instruction.units) == ("instruction", 20)
    assert (by_battle.unit, by_battle.units) == ("battle", len(rows))


def test_intervals_over_instructions_hold_the_truth_as_often_as_they_say(table: Table) -> None:
    """5 models, 40 tables of 40 instructions that sway all battles alike: 200 intervals, some 190 must hold."""
    rng = np.random.default_rng(2)
    truth = np.linspace(0.8, -0.8, 5)
    shown = np.array([1 / (1 + np.exp(-(d + math.sqrt(2) * rng.standard_normal(200_000)))) for d in np.diff(truth)])
    centre = to_elo(np.cumsum(np.concatenate([[0.0], np.log(shown.mean(axis=1) / (1 - shown.mean(axis=1)))])))
    held = 0
    for _ in range(40):
        found = bootstrap(merge_orders(table(simulated(rng, truth, 40, sway=1.0))), replicates=100)
        held += int(np.count_nonzero((found.lo <= centre) & (centre <= found.hi)))
    assert 174 <= held <= 199


def test_replicates_without_an_estimate_are_left_out_and_counted(table: Table) -> None:
    rows = [("a", "b", "first", "j", f"i{item}") for item in range(4)] + [("a", "b", "second", "j", "i4")]
    found = bootstrap(merge_orders(table(rows)), replicates=400)
    assert found.without_estimate / 400 == pytest.approx(0.8**5 + 0.2**5, abs=0.07)
    assert bool(np.all(np.isfinite(found.lo)) and np.all(found.lo <= found.hi))


def test_ties_that_no_longer_join_all_models_are_no_estimate(table: Table) -> None:
    """At the start of such a fit the gradient is zero already: it would pass for an estimate."""
    found = bootstrap(merge_orders(table([("a", "b", "tie", "j", "x"), ("b", "c", "tie", "j", "y")])), replicates=400)
    assert found.without_estimate / 400 == pytest.approx(0.5, abs=0.1)


def test_battles_drawn_again_have_the_error_of_their_share(table: Table) -> None:
    """120 wins of 200: the log odds have a standard error of 1 / sqrt(200 * 0.6 * 0.4), half of it on each side."""
    rows = [("a", "b", "first")] * 120 + [("a", "b", "second")] * 80
    found = bootstrap(merge_orders(table(rows, named=False)), replicates=4000)
    error = 1.96 * 400 / math.log(10) / math.sqrt(200 * 0.6 * 0.4) / 2
    centre = 1000 + 200 * math.log10(1.5)
    assert (found.lo[0], found.hi[0]) == pytest.approx((centre - error, centre + error), abs=3.0)


def test_a_fit_that_stops_short_counts_as_no_estimate(
    table: Table, rows: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stops(*_: object) -> None:
        raise inference.NotConvergedError("short")

    monkeypatch.setattr(inference, "maximise", stops)
    found = bootstrap(merge_orders(table(rows)), replicates=10)
    assert found.without_estimate == 10
    assert bool(np.isnan(found.lo).all())


def test_one_instruction_allows_no_interval(table: Table) -> None:
    found = bootstrap(merge_orders(table([("a", "b", "tie"), ("b", "a", "first")])), replicates=50)
    assert found.units == 1
    assert bool(np.isnan(found.lo).all() and np.isnan(found.hi).all())


def test_all_ties_have_an_interval_of_no_width(table: Table) -> None:
    found = bootstrap(merge_orders(table([("a", "b", "tie", "j", item) for item in "xyz"])), replicates=20)
    assert found.lo.tolist() == found.hi.tolist() == [1000.0, 1000.0]


def test_no_replicates_are_no_interval_and_a_negative_number_is_refused(
    table: Table, rows: list[tuple[Any, ...]]
) -> None:
    judgments = merge_orders(table(rows))
    assert bool(np.isnan(bootstrap(judgments, replicates=0).lo).all())
    with pytest.raises(InputError, match="replicates is -1"):
        bootstrap(judgments, replicates=-1)
    with pytest.raises(InputError, match="seed is -1"):
        bootstrap(judgments, seed=-1)


def test_a_group_is_drawn_with_the_instructions_of_all(table: Table, rows: list[tuple[Any, ...]]) -> None:
    """Groups of one board share their draws, so that what is left out of one does not shift those of another."""
    apart = [("x", "y", "tie", "j", f"z{item}") for item in range(5)]
    judgments = merge_orders(table(rows + apart))
    with pytest.raises(SeparatedError):
        bootstrap(judgments)
    found = bootstrap(judgments, ["x", "y"], replicates=500)
    assert found.units == 25
    assert found.without_estimate / 500 == pytest.approx(0.8**25, abs=0.02)


def test_a_hundred_models_survive_in_blocks(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    rows = [
        (f"m{a:03d}", f"m{b:03d}", ("first", "second", "tie")[rng.integers(3)], "j", f"i{item}", item)
        for item in range(30)
        for a, b in (rng.permutation(100)[:2] for _ in range(60))
    ]
    judgments = merge_orders(table(dict.fromkeys(rows), ordered=False))
    whole = bootstrap(judgments, replicates=20)
    monkeypatch.setattr(inference, "_BLOCK", 1)
    assert printed(bootstrap(judgments, replicates=20)) == printed(whole)
    assert len(whole.models) == 100


def test_percentiles_need_two_replicates() -> None:
    lo, hi = percentiles(np.array([[1.0], [2.0], [3.0]]), 0.5)
    assert (lo.tolist(), hi.tolist()) == ([1.5], [2.5])
    assert bool(np.isnan(percentiles(np.array([[1.0]]), 0.5)[0]).all())
