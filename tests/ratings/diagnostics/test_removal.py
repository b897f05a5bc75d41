"""How little has to be left out until another model leads."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pytest

from tests.ratings.conftest import make_table
from tests.ratings.simulated import campaign
from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.data.judgments import merge_orders
from venire.ratings.diagnostics.influence import smallest_removal
from venire.ratings.pairwise.bradley_terry import bradley_terry
from venire.ratings.pairwise.components import SeparatedError


def pair(won: int, lost: int) -> Comparisons:
    """Two models, each win in an instruction of its own."""
    rows = won + lost
    return comparisons(["a"] * rows, ["b"] * rows, [1.0] * won + [0.0] * lost, cluster=list(range(rows)))


def test_of_two_models_the_least_is_the_surplus_of_wins_and_one() -> None:
    for unit in ("judgment", "instruction"):
        found = smallest_removal(pair(60, 40), unit)
        assert (found.leader, found.rival, found.removed, found.units) == ("a", "b", 21, 100)
        assert found.share == pytest.approx(0.21)


@pytest.mark.parametrize("unit", ["instruction", "judge"])
def test_units_without_which_neither_model_is_compared_turn_no_lead(unit: str) -> None:
    # All battles of a and b are of one unit: without it both are at minus infinity, and their lead is no number.
    first, second = list("aabbaaccbbcc"), list("bbaaccaaccbb")
    wins = [1, 1, 0, 1, 1, 0, 0, 1, 1, 1, 0, 0]
    a, b, y = first + list("ccccdddd"), second + list("ddddcccc"), [*wins, 1, 0, 1, 1, 1, 0, 0, 1]
    units = ["one"] * 12 + ["two", "three"] * 4
    found = smallest_removal(comparisons(a, b, y, cluster=units, judge=units), unit)  # type: ignore[arg-type]
    assert found.leader == "a"
    assert found.removed == 1
    assert found.names == ("one",)
    assert found.rival in ("c", "d")


def test_a_tie_is_worth_half_a_win_so_wins_go_first() -> None:
    rows = comparisons(["a"] * 9, ["b"] * 9, [1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0, 0])
    assert smallest_removal(rows).removed == 2


def test_no_smaller_set_exists_in_small_tables() -> None:
    """All sets of one row fewer are tried: none changes who leads."""
    rng = np.random.default_rng(5)
    for _ in range(6):
        a = rng.integers(0, 3, 24)
        b = (a + rng.integers(1, 3, 24)) % 3
        y = (rng.random(24) < 1.0 / (1.0 + np.exp(0.5 * (a - b)))).astype(float)
        rows = comparisons(a, b, y, models=["a", "b", "c"])
        try:
            found = smallest_removal(rows)
        except InputError:
            continue
        if found.removed is None or not 1 < found.removed <= 3:
            continue
        leads = set()
        for gone in combinations(range(24), found.removed - 1):
            rest = rows.select(np.setdiff1d(np.arange(24), gone))
            try:
                elo = bradley_terry(rest, errors="none").logits
            except SeparatedError:
                continue
            best = np.flatnonzero(elo > np.nanmax(elo) - 1e-9)
            if rows.models.index(found.leader) not in best:
                leads.add(gone)
        # First order is no proof: now and then one row fewer would do.
        assert len(leads) <= 0.04 * 276


def test_what_is_left_out_does_change_who_leads_and_one_less_does_not() -> None:
    rows = merge_orders(campaign(2, instructions=40)).comparisons()
    found = smallest_removal(rows, "instruction")
    assert found.removed is not None
    assert found.removed == len(found.names) > 1
    assert rows.cluster is not None
    for number, leads in ((found.removed, found.rival), (found.removed - 1, found.leader)):
        gone = [rows.clusters.index(name) for name in found.names[:number]]
        rest = bradley_terry(rows.select(~np.isin(rows.cluster, gone)), errors="none")
        assert rows.models[int(np.argmax(rest.logits))] == leads


def test_a_judge_that_decides_alone_is_named() -> None:
    battles = campaign(3, strength=[1.0, 0.4, 0.0, 0.0, -0.4, -1.0], instructions=80)
    label = battles.label.copy()
    label[(battles.judge == 2) & (battles.model_a == 1)] = 1
    label[(battles.judge == 2) & (battles.model_b == 1)] = -1
    found = smallest_removal(merge_orders(replace(battles, label=label)).comparisons(), "judge")
    assert (found.leader, found.rival, found.removed, found.names) == ("m01", "m00", 1, ("judge 2",))


def test_what_one_of_few_judges_holds_is_found_by_leaving_it_out() -> None:
    """Then the guess of one judge is no guess."""
    for seed in range(12):
        found = smallest_removal(
            merge_orders(campaign(seed, judges=3, instructions=12, spread=0.4)).comparisons(), "judge"
        )
        assert (found.predicted == 1) == (found.removed == 1)


def test_rows_in_another_order_turned_or_weighted_alike_change_nothing() -> None:
    rows = merge_orders(campaign(4)).comparisons()
    rng = np.random.default_rng(0)
    turn = rng.random(len(rows)) < 0.5
    turned = replace(
        rows, a=np.where(turn, rows.b, rows.a), b=np.where(turn, rows.a, rows.b), y=np.where(turn, 1 - rows.y, rows.y)
    )
    plain = smallest_removal(rows)
    for other in (rows.select(rng.permutation(len(rows))), turned, replace(rows, weight=np.full(len(rows), 2.5))):
        found = smallest_removal(other)
        assert (found.leader, found.rival, found.removed) == (plain.leader, plain.rival, plain.removed)
        assert (found.lead, found.se) == pytest.approx((plain.lead, plain.se))


def test_shares_as_outcomes_are_left_out_row_by_row() -> None:
    rng = np.random.default_rng(1)
    rows = comparisons(["a"] * 50, ["b"] * 50, 0.55 + 0.3 * (rng.random(50) - 0.5), cluster=list(range(50)))
    found, by_cluster = smallest_removal(rows), smallest_removal(rows, "instruction")
    assert found.removed == by_cluster.removed
    assert found.removed is not None
    kept = np.sort(rows.y)[: 50 - found.removed]
    assert kept.mean() < 0.5 <= np.sort(rows.y)[: 51 - found.removed].mean()


def test_heavy_rows_are_few_and_huge_ones_alone_decide() -> None:
    rows = comparisons(["a"] * 20, ["b"] * 20, [1.0] * 11 + [0.0] * 9, weight=[1e12] + [1.0] * 19)
    assert smallest_removal(rows).removed == 3
    assert smallest_removal(replace(rows, weight=np.array([1.0] * 19 + [0.5]))).removed == 3


def test_a_leader_that_every_verdict_supports_evenly_needs_many() -> None:
    assert smallest_removal(pair(99, 1)).share == pytest.approx(0.99)


def test_without_two_models_or_without_names_there_is_nothing_to_leave_out() -> None:
    with pytest.raises(InputError, match="nobody leads"):
        smallest_removal(comparisons(["a"], ["b"], [1]))
    with pytest.raises(InputError, match="no named judges"):
        smallest_removal(pair(3, 2), "judge")


def test_the_least_removal_on_record(shared_data: Path) -> None:
    """Five models that judge each other: 155 of 4,000 judgments, or 23 of 80 instructions, for another winner."""
    path = shared_data / "vicuna80_peers" / "judgments.parquet"
    with duckdb.connect() as connection:
        sql = "SELECT first, second, verdict, judge, instruction_id, repeat FROM read_parquet(?) WHERE repeat = 1"
        rows = merge_orders(make_table(connection.execute(sql, [str(path)]).fetchall())).comparisons()
    found = smallest_removal(rows), smallest_removal(rows, "instruction"), smallest_removal(rows, "judge")
    assert [(one.leader, one.rival, one.removed) for one in found[:2]] == [
        ("gpt-4", "claude-v1", 155),
        ("gpt-4", "claude-v1", 23),
    ]
    assert found[0].lead == pytest.approx(60.3, abs=0.1)
