"""am-ELO from a table of verdicts to what a leaderboard shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ratings.conftest import Table
from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.am_elo.am_elo import am_elo
from venire.ratings.data.judgments import merge_orders
from venire.ratings.inference.options import Options
from venire.ratings.methods.methods import METHODS, rate

PAIRS = ("ab", "bc", "cd", "ac", "bd", "ad")


def verdicts(table: Table, *more: tuple[Any, ...]) -> Battles:
    """Three judges on eight instructions, both orders, the better model winning most of the time."""
    rng = np.random.default_rng(11)
    rows: list[tuple[Any, ...]] = []
    for judge, sharp in (("x", 0.9), ("y", 0.8), ("z", 0.7)):
        for instruction in range(8):
            for better, worse in PAIRS:
                for first, second in ((better, worse), (worse, better)):
                    right = rng.random() < sharp
                    verdict = "tie" if rng.random() < 0.1 else "first" if right == (first == better) else "second"
                    rows.append((first, second, verdict, judge, f"i{instruction}"))
    return table([*rows, *more])


def test_a_board_has_ratings_with_intervals_and_the_abilities_of_judges(table: Table) -> None:
    battles = verdicts(table)
    rated, plain = rate(battles, "am-elo", Options()), am_elo(merge_orders(battles).comparisons())
    assert rated.ratings.logits == pytest.approx(plain.ratings.logits)
    assert rated.judges == ("x", "y", "z")
    assert rated.judge_figures["ability"] == pytest.approx(plain.ability)
    assert rated.judge_figures["ability_se"] == pytest.approx(plain.ability_se)
    assert np.all(rated.lo < rated.ratings.elo)
    assert np.all(rated.rank_lo >= 1)
    assert rated.diagnostics["sign"] == plain.sign
    assert rated.diagnostics["loglik"] == plain.loglik


def test_habits_are_shown_with_their_errors_and_rest_on_single_verdicts(table: Table) -> None:
    rated = rate(verdicts(table), "am-elo", Options(habits=("position", "ties")))
    assert set(rated.judge_figures) == {
        "ability",
        "ability_se",
        "ability_position",
        "ability_position_se",
        "ability_ties",
        "ability_ties_se",
    }
    assert rated.diagnostics["flips_as"] == "two verdicts"
    assert rated.fits[0]["judgments"] == 3 * 8 * 6 * 2
    assert np.isfinite(rated.judge_figures["ability_position"]).all()


def test_a_judge_that_leans_to_the_first_place_has_a_positive_pull(table: Table) -> None:
    rng = np.random.default_rng(12)
    lean = [
        (first, second, "first" if rng.random() < 0.85 else "second", "w", f"i{instruction}")
        for instruction in range(8)
        for better, worse in PAIRS
        for first, second in ((better, worse), (worse, better))
    ]
    rated = rate(verdicts(table, *lean), "am-elo", Options(habits=("position",)))
    figures = rated.judge_figures
    pull = figures["ability_position"] / figures["ability_position_se"]
    assert pull[rated.judges.index("w")] > 4
    assert np.all(np.abs(np.delete(pull, rated.judges.index("w"))) < 4)


def test_a_habit_of_place_needs_the_order_shown(table: Table) -> None:
    unordered = table([("a", "b", "first", "x"), ("b", "a", "first", "x")], ordered=False)
    with pytest.raises(InputError, match="which completion was shown first"):
        rate(unordered, "am-elo", Options(habits=("position",)))


def test_habits_take_no_rule_for_two_orders(table: Table) -> None:
    for rule in (Options(habits=("position",), merge="strict"), Options(habits=("ties",), flips="drop")):
        with pytest.raises(InputError, match="habits are fitted from single verdicts"):
            rate(verdicts(table), "am-elo", rule)


def test_bootstrap_refits_ratings_and_abilities_together(table: Table) -> None:
    battles = verdicts(table)
    drawn, plain = rate(battles, "am-elo", Options(replicates=40)), rate(battles, "am-elo", Options())
    assert drawn.ratings.errors == "bootstrap over 8 instructions"
    assert np.all(drawn.se / plain.se > 0.4)
    assert np.all(drawn.se / plain.se < 2.5)


def test_models_without_a_finite_rating_are_named_on_the_board(table: Table) -> None:
    champion = [("top", other, "first", judge, "i0") for other in "abcd" for judge in "xyz"]
    rated = rate(verdicts(table, *champion), "am-elo", Options())
    assert set(rated.reasons) == {"top"}
    assert np.isfinite(rated.ratings.logits).sum() == 4
    held = rate(verdicts(table, *champion), "am-elo", Options(ridge=0.1, ability_ridge=1.0))
    assert np.isfinite(held.ratings.logits).all()


def test_nobody_is_rated_where_no_judge_sets_a_scale(table: Table) -> None:
    rated = rate(table([("a", "b", "first", "x"), ("b", "a", "first", "y")]), "am-elo", Options())
    assert np.isnan(rated.ratings.logits).all()
    assert "no judge has a finite ability" in rated.reasons["a"]


def test_am_elo_takes_its_options_and_refuses_others(table: Table) -> None:
    battles = verdicts(table)
    assert (
        METHODS["am-elo"].options
        == {"ridge", "errors", "restarts", "habits", "ability_ridge"} | METHODS["am-elo"].options
    )
    assert rate(battles, "am-elo", Options(restarts=2)).diagnostics["restarts"]["starts"] == 3
    with pytest.raises(InputError, match="am-elo does not take ties"):
        rate(battles, "am-elo", Options(ties="davidson"))
