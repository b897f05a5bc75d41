"""am-ELO from a table of verdicts to what a leaderboard shows."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.ratings.conftest import Table
from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.am_elo.am_elo import am_elo
from venire.ratings.data.judgments import merge_orders
from venire.ratings.data.result import Rated
from venire.ratings.inference.options import Options
from venire.ratings.methods.findings import (
    AbilityLikelihood,
    AbilitySign,
    DroppedJudges,
    FlipsAs,
    JudgesWithoutAbility,
    MethodNotes,
)
from venire.ratings.methods.methods import METHODS, merge_selected, rate
from venire.reports.comparison import compare

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
    assert rated.finding(AbilitySign).sign == plain.sign
    assert rated.finding(AbilityLikelihood).loglik == plain.loglik


def test_habits_are_shown_with_their_errors_and_rest_on_single_verdicts(table: Table) -> None:
    rated = rate(verdicts(table), "am-elo", Options(habits=("position", "ties")))
    assert set(rated.judge_figures) == {
        "ability",
        "ability_se",
        "ability_lo",
        "ability_hi",
        "ability_position",
        "ability_position_se",
        "ability_ties",
        "ability_ties_se",
    }
    assert rated.finding(FlipsAs).flips_as == "two verdicts"
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
    assert rate(battles, "am-elo", Options(restarts=2)).finding(AbilityLikelihood).restarts["starts"] == 3
    with pytest.raises(InputError, match="am-elo does not take ties"):
        rate(battles, "am-elo", Options(ties="davidson"))


Verdicts = Callable[..., Battles]

STRENGTH = np.linspace(1.5, -1.5, 5)
ABILITY = {"ann": 1.3, "bob": 1.1, "cal": 0.9, "dot": 1.0, "eve": -1.2, "few": 1.0}


@cache
def rows(seed: int = 0) -> tuple[tuple[Any, ...], ...]:
    """Each pair on eight instructions in both orders by every judge, of `few` on two; `eve` is against the others."""
    rng, found = np.random.default_rng(seed), []
    for judge, ability in ABILITY.items():
        for item in range(2 if judge == "few" else 8):
            for a in range(5):
                for b in range(5):
                    if a != b:
                        share = 1 / (1 + np.exp(ability * (STRENGTH[b] - STRENGTH[a])))
                        verdict = "tie" if rng.random() < 0.1 else "first" if rng.random() < share else "second"
                        found.append((f"m{a}", f"m{b}", verdict, judge, f"i{item}"))
    return tuple(found)


def stable(battles: Battles, **told: Any) -> Rated:
    return rate(battles, "stable-arena", Options(**told))


def gone(found: Rated) -> list[tuple[str, int]]:
    return [(one.judge, one.at_pass) for one in found.finding(DroppedJudges).dropped]


def test_who_is_left_out_is_told_those_with_an_ability_first(table: Verdicts) -> None:
    battles = table(rows())
    found = stable(battles)
    eve, few = found.finding(DroppedJudges).dropped
    place = {name: code for code, name in enumerate(found.judges)}
    ability = found.judge_figures["ability"]
    assert (eve.judge, eve.at_pass, eve.verdicts) == ("eve", 1, 80)
    assert eve.ability == ability[place["eve"]] < 0.0
    assert eve.reason == f"ability {eve.ability:.3g}, not above 0"
    assert (few.judge, few.at_pass, few.verdicts, few.reason) == ("few", 0, 20, "20 verdicts, fewer than 50")
    assert np.isnan(few.ability)
    assert np.isnan(ability[place["few"]])
    kept = [place[name] for name in ("ann", "bob", "cal", "dot")]
    assert ability[kept].mean() == pytest.approx(1.0)
    errors = found.judge_figures["ability_se"]
    assert np.isfinite(errors[kept]).all()
    assert np.isnan(errors[[place["eve"], place["few"]]]).all()
    assert found.fits[0]["judgments"] == 4 * 80
    assert (found.finding(DroppedJudges).passes, found.finding(AbilitySign).sign) == (1, "as the majority")
    assert found.finding(JudgesWithoutAbility).no_ability == found.fits[0]["no_ability"] == {}
    json.dumps(found.fits, allow_nan=False)
    data = merge_selected(battles, Options()).comparisons()
    assert data.judge is not None
    alone = am_elo(data.select(np.isin(data.judge, [data.judges.index(name) for name in ("ann", "bob", "cal", "dot")])))
    assert found.ratings.logits == pytest.approx(alone.ratings.logits, abs=1e-9)
    assert found.se == pytest.approx(alone.ratings.se * 400 / np.log(10), abs=1e-6)
    assert found.finding(AbilityLikelihood).loglik == pytest.approx(alone.loglik)


def test_thresholds_and_passes_are_those_told(table: Verdicts) -> None:
    battles = table(rows())
    assert gone(stable(battles, least_verdicts=20)) == [("eve", 1)]
    assert gone(stable(battles, least_verdicts=21)) == [("eve", 1), ("few", 0)]
    crowd = table(rows(5))
    assert gone(stable(crowd, least_ability=1.4)) == [("eve", 1), ("few", 0)]
    assert gone(stable(crowd, least_ability=1.4, until_stable=True)) == [("eve", 1), ("cal", 2), ("few", 0)]
    assert stable(battles, restarts=3).finding(AbilityLikelihood).restarts["starts"] == 4
    assert stable(battles, ability_ridge=5.0).judge_figures["ability"][0] != pytest.approx(
        stable(battles).judge_figures["ability"][0], abs=1e-3
    )
    habits = stable(battles, habits=("position",))
    assert gone(habits) == [("eve", 1), ("few", 0)][: len(gone(habits))]
    assert "ability_position" in habits.judge_figures
    with pytest.raises(InputError, match=r"least_verdicts \(--least-verdicts\), until_stable \(--until-stable\)"):
        rate(battles, "bradley-terry", Options(least_verdicts=10, until_stable=True))


def test_bootstrap_draws_instructions_and_chooses_judges_anew(table: Verdicts) -> None:
    found = stable(table(rows()), replicates=20, least_verdicts=30)
    assert found.ratings.errors == "bootstrap over 8 instructions"
    assert (found.lo < found.ratings.elo).all()
    assert (found.ratings.elo < found.hi).all()
    assert found.without_estimate == 0


def test_without_a_judge_that_may_stay_no_model_is_rated_and_other_methods_are(table: Verdicts) -> None:
    battles = table(rows())
    found = stable(battles, least_verdicts=81)
    assert np.isnan(found.ratings.logits).all()
    assert set(found.reasons) == set(battles.models)
    assert "every judge has fewer than 81 verdicts, the most ann with 80" in found.reasons["m0"]
    both = compare(table(rows()[:20]), ("bradley-terry", "stable-arena"), Options())
    assert [row.rank[1] for row in both.models] == [None] * 5
    assert all(row.rank[0] for row in both.models)


def test_an_undecided_sign_is_a_note_of_the_board(table: Verdicts) -> None:
    turned = {"first": "second", "second": "first", "tie": "tie"}
    plain = [row for row in rows() if row[3] in ("ann", "bob")]
    against = [(*row[:2], turned[row[2]], f"{row[3]}-against", row[4]) for row in plain]
    found = stable(table([*plain, *against]))
    assert gone(found) == []
    (note,) = found.finding(MethodNotes).notes
    assert note.startswith("nobody more is left out for an ability, because its sign is undecided")


def test_a_bootstrap_does_not_hide_that_the_sign_is_undecided(table: Verdicts) -> None:
    """Of coins alone: only the error of the mean ability, which replicates take the place of, tells it."""
    rng = np.random.default_rng(0)
    coins = [
        (*row[:2], str(rng.choice(["first", "second"])), *row[3:]) for row in rows() if row[3] in ("ann", "bob", "cal")
    ]
    found = stable(table(coins), replicates=2)
    assert gone(found) == []
    assert "within 2 errors of 0" in found.finding(AbilitySign).sign
