"""A look says what is known, never more; a campaign stops by the first rule that holds, and by no mistake."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.ratings.simulated import campaign
from venire.arena.battles import Battles
from venire.arena.campaigns import StopSettings
from venire.arena.errors import InputError
from venire.arena.planning import InterimAnalysis
from venire.arena.scale import POINTS_PER_LOGIT
from venire.ratings.data.judgments import merge_orders, select_battles
from venire.ratings.data.statistics import student
from venire.ratings.design.stopping import MIN_BATTLES, evidence, interim_analysis
from venire.ratings.inference.any_time import PAIR_SCALE, any_time_interval, decide_top_k, stopping_half_width
from venire.ratings.inference.options import Options
from venire.ratings.methods.methods import rate
from venire.ratings.pairwise.bradley_terry import bradley_terry
from venire.ratings.pairwise.covariance import model_covariance

Table = Callable[..., Battles]

ORDERED = (0.9, 0.5, 0.1, -0.3, -0.7, -1.1)


def analyse(battles: Battles, /, **rules: Any) -> InterimAnalysis:
    return interim_analysis(battles, battles.models, StopSettings(**rules))


def won_by(*pairs: tuple[str, str], times: int = 30) -> list[tuple[str, str, str, str, str]]:
    """So many battles of each pair, each on its own instruction, all won by the first named."""
    return [(a, b, "first", "j", f"{a}{b}{number}") for a, b in pairs for number in range(times)]


def test_ratings_and_errors_are_those_of_venire_rate() -> None:
    table = campaign(3, judges=2)
    board = rate(table, "bradley-terry", Options())
    rows = analyse(table).models
    assert [one.model for one in rows] == list(board.ratings.models)
    assert np.allclose([one.elo or 0.0 for one in rows], board.ratings.elo, rtol=0.0, atol=1e-9)
    assert np.allclose([one.se or 0.0 for one in rows], board.se, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize(("judges", "noise", "held"), [(1, 0.0, True), (4, 2.0, False)])
def test_intervals_are_those_that_may_be_stopped_by(judges: int, noise: float, held: bool) -> None:
    table = campaign(4, judges=judges, noise=noise)
    data = merge_orders(table).comparisons()
    found = bradley_terry(data)
    floor = np.sqrt(np.diagonal(model_covariance(data, found.logits)))
    half = stopping_half_width(found.se, floor, 60) * POINTS_PER_LOGIT
    assert (floor > found.se).all() == held
    lo, _ = any_time_interval(found.logits, np.maximum(found.se, floor))
    now = analyse(table)
    for code, one in enumerate(now.models):
        assert one.elo is not None
        assert one.low is not None
        assert one.high is not None
        assert one.low_any is not None
        assert one.high - one.elo == pytest.approx(half[code]) == one.elo - one.low
        assert one.low_any == pytest.approx(1000.0 + POINTS_PER_LOGIT * lo[code])
        assert one.low_any < one.low
    assert now.half_width == pytest.approx(half.max())


def test_a_battle_is_counted_once_whoever_judged_it_and_in_whatever_order() -> None:
    both, one = campaign(5, judges=3, repeats=2), campaign(5, judges=1, both=False)
    assert analyse(both).battles == analyse(one).battles
    assert [row.battles for row in analyse(both).models] == [row.battles for row in analyse(one).models]
    assert analyse(both).verdicts == len(both.label) == 12 * len(one.label)
    assert sum(row.battles for row in analyse(both).models) == 2 * analyse(both).battles


def test_unreadable_verdicts_are_no_battles() -> None:
    table = campaign(6, judges=1)
    status = table.status.copy()
    status[: len(status) // 2] = 1
    now = analyse(replace(table, status=status))
    assert now.verdicts == len(status) - len(status) // 2
    assert now.battles == evidence(select_battles(table, status == 0)).judged < analyse(table).battles
    assert now.instructions < 60


def test_models_without_a_verdict_are_there_and_starved() -> None:
    now = interim_analysis(
        campaign(7), ("absent", *campaign(7).models), StopSettings(half_width=1e6, top=1, ranks=True)
    )
    absent = now.models[0]
    assert (absent.model, absent.elo, absent.low, absent.low_any, absent.battles) == ("absent", None, None, None, 0)
    assert absent.starved
    assert not any(one.starved for one in now.models[1:])
    assert now.half_width is None
    assert now.stop is None
    assert "absent" in now.warnings[0]


def test_a_look_at_nothing_says_so_and_does_not_stop(table: Table) -> None:
    rules = StopSettings(half_width=1e6, top=1, ranks=True, indifference=1e6)
    empty = select_battles(campaign(8), np.zeros(0, dtype=np.intp))
    for nothing in (empty, table([("a", "b", None)])):
        now = interim_analysis(nothing, ("a", "b", "c"), rules)
        assert now.stop is None
        assert now.half_width is None
        assert now.open is not None
        assert now.open > 0
        assert all(one.elo is None and one.starved for one in now.models)
        assert now.warnings == ("no verdict could be read yet",)


def test_islands_have_no_common_scale_and_stop_nothing(table: Table) -> None:
    pairs = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"), ("x", "y"), ("y", "x")]
    now = analyse(table(won_by(*pairs)), half_width=1e6, ranks=True, indifference=1e6)
    assert [one.elo is None for one in now.models] == [False, False, False, True, True]
    assert now.half_width is None
    assert now.stop is None
    assert now.open == 6  # every pair across the water
    assert "x, y" in now.warnings[0]


def test_a_model_that_lost_everything_has_no_rating_yet_holds_up_no_order_for_ever(table: Table) -> None:
    near = [("a", "b"), ("b", "a")]
    few = table([*won_by(*near, times=400), *won_by(("a", "z"), ("b", "z"), times=3)])
    now = analyse(few, half_width=1e6, top=2, indifference=15.0)
    assert now.models[2].elo is None
    assert now.models[2].starved
    assert now.half_width is None
    assert now.stop is None
    assert now.open == 2
    assert now.models[2].low is None
    assert now.models[2].high is not None
    many = table([*won_by(*near, times=400), *won_by(("a", "z"), ("b", "z"), times=200)])
    now = analyse(many, half_width=1e6, top=2, indifference=15.0)
    assert now.models[2].elo is None
    assert now.half_width is None
    assert now.open == 0
    assert now.stop is not None
    assert "best 2 are known: a, b" in now.stop


def test_nothing_that_is_known_stops_on_fewer_than_twenty_instructions() -> None:
    rules: dict[str, Any] = {"half_width": 1e6, "top": 3, "ranks": True, "indifference": 1e6}
    short = analyse(campaign(9, instructions=19, battles=12, judges=5), **rules)
    assert short.half_width is None
    assert short.stop is None
    assert short.open == 9
    assert "19 instructions" in short.warnings[-1]
    assert analyse(campaign(9, instructions=20, battles=12, judges=5), **rules).stop is not None


def test_the_first_rule_that_holds_is_named() -> None:
    table = campaign(10, instructions=300, judges=2, strength=ORDERED, noise=0.0)
    now = analyse(table)
    assert now.stop is None
    assert now.open is None
    assert now.half_width is not None
    battles, width = now.battles, now.half_width
    assert analyse(table, battles=battles + 1, half_width=width - 0.1).stop is None
    assert "battles" in str(analyse(table, battles=battles, half_width=width + 0.1).stop)
    assert "interval" in str(analyse(table, battles=battles + 1, half_width=width + 0.1, top=1).stop)
    assert "best is known: m00" in str(analyse(table, top=1, ranks=True, indifference=400.0).stop)
    assert "order of all 6 models" in str(analyse(table, ranks=True, indifference=400.0).stop)


def test_the_top_is_known_when_its_pairs_are_and_the_order_when_all_are() -> None:
    table = campaign(11, instructions=100, judges=1, strength=ORDERED, noise=0.0)
    data = merge_orders(table).comparisons()
    plain = decide_top_k(bradley_terry(data), 3, indifference=15.0)
    now = analyse(table, top=3)
    assert now.open is not None
    assert now.open >= len(plain.open)
    whole = analyse(table, ranks=True)
    assert whole.open is not None
    assert whole.open > now.open
    assert analyse(table, top=3, ranks=True).open == now.open
    assert analyse(table, ranks=True, indifference=1000.0).open == 0


def test_a_pair_is_known_once_its_interval_at_all_looks_is_above_the_indifference() -> None:
    table = campaign(17, instructions=200, models=2, judges=1, battles=1, strength=(0.02, 0.0))
    low, high = sorted(analyse(table).models, key=lambda one: one.elo or 0.0)
    assert low.elo is not None
    assert high.elo is not None
    assert high.high is not None
    error = 2.0 * (high.high - high.elo) / student.ppf(0.975, analyse(table).instructions - 1)  # of the difference
    gap = (high.elo - low.elo) / POINTS_PER_LOGIT
    lo, _ = any_time_interval(gap, error / POINTS_PER_LOGIT, tau=PAIR_SCALE)
    reach = -float(lo) * POINTS_PER_LOGIT
    assert reach > 0.0
    assert analyse(table, top=1, indifference=reach + 0.01).open == 0
    assert analyse(table, top=1, indifference=reach - 0.01).open == 1


def test_more_pairs_share_one_chance_of_a_miss() -> None:
    table = campaign(12, instructions=400, judges=1, strength=(2.0, 0.0, -0.05, -0.1, -0.15, -0.2), noise=0.0)
    one, five = analyse(table, top=1, indifference=0.0), analyse(table, top=5, indifference=0.0)
    assert one.stop is not None
    assert five.open is not None
    assert five.open > 0
    equal = campaign(13, instructions=100, models=2, judges=1, strength=(0.0, 0.0))
    assert analyse(equal, top=1, indifference=10.0).stop is None


def test_a_look_depends_on_neither_rows_nor_names_order() -> None:
    table = campaign(14)
    turned = select_battles(table, np.random.default_rng(1).permutation(len(table.label)))
    assert analyse(turned, top=2, ranks=True) == analyse(table, top=2, ranks=True)
    swapped = replace(
        turned, model_a=turned.model_b, model_b=turned.model_a, label=-turned.label, swapped=~turned.swapped
    )
    assert analyse(swapped, top=2, ranks=True) == analyse(table, top=2, ranks=True)


def test_a_starved_model_is_one_with_few_battles() -> None:
    table = campaign(15)
    last = np.flatnonzero((table.model_a == 5) | (table.model_b == 5))
    keep = np.ones(len(table.label), dtype=np.bool_)
    keep[last] = False
    names = {(int(table.instruction[row]), int(table.model_a[row] + table.model_b[row])) for row in last}
    chosen = sorted(names)[: MIN_BATTLES - 1]
    for row in last.tolist():
        keep[row] = (int(table.instruction[row]), int(table.model_a[row] + table.model_b[row])) in chosen
    hungry = analyse(select_battles(table, keep)).models[5]
    assert hungry.battles == MIN_BATTLES - 1
    assert hungry.starved
    assert not analyse(table).models[5].starved


@pytest.mark.parametrize(
    ("rules", "named"),
    [({"top": 6}, "top is 6"), ({"half_width": 0.0}, "half_width"), ({"indifference": -1.0}, "indifference")],
)
def test_a_rule_that_can_never_hold_is_refused(rules: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        analyse(campaign(16), **rules)


def test_an_order_of_models_that_only_won_or_lost_is_known_in_the_end(table: Table) -> None:
    """Else a campaign of two unlike models spends all its money on what its first hundred battles said."""
    few, many = (analyse(table(won_by(("a", "b"), times=n)), top=1, ranks=True, indifference=0.0) for n in (20, 100))
    assert (few.stop, few.open) == (None, 1)
    assert many.open == 0
    assert many.stop is not None
    assert many.models[0].elo is None
    fewer = analyse(table([("a", "b", "first", f"j{n // 19}", f"{n % 19}") for n in range(500)]), top=1)
    assert fewer.stop is None  # nineteen instructions, however often


def test_many_judges_of_one_battle_are_no_proof_of_an_order(table: Table) -> None:
    """A model on whom all agree has no scatter to tell what judges share: its battles count, not its judges."""
    near = won_by(("a", "b"), ("b", "a"), times=200)
    asked = [("a", "z", "first", f"j{judge}", f"ab{n}") for n in range(3) for judge in range(60)]
    asked += [("b", "z", "first", f"j{judge}", f"ab{n}") for n in range(3) for judge in range(60)]
    now = analyse(table([*near, *asked]), top=2, indifference=15.0)
    assert now.models[2].elo is None
    assert now.open == 2
    assert now.stop is None


def test_verdicts_without_any_scatter_stop_nothing_and_it_is_said(table: Table) -> None:
    now = analyse(
        table([("a", "b", "tie", "j", f"{n}") for n in range(300)]), half_width=1e6, ranks=True, indifference=1e6
    )
    assert now.models[0].elo == pytest.approx(1000.0)
    assert now.models[0].low is None
    assert now.stop is None
    assert "does not scatter: a, b" in now.warnings[0]
