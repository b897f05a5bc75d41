"""Figures beside a board: each against the library's own, or against what was planted."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.am_elo.am_elo import am_elo
from venire.ratings.am_elo.ascent import gradient_ascents
from venire.ratings.am_elo.evaluation import evaluate, predict_from_abilities, predict_from_ratings
from venire.ratings.data.battles import battles
from venire.ratings.data.judgments import merge_orders
from venire.ratings.inference.contrasts import difference
from venire.ratings.inference.options import Options
from venire.ratings.judges.consistency import consistency
from venire.ratings.judges.elo_from_consistency import elo_from_consistency
from venire.ratings.methods.methods import rate
from venire.ratings.pairwise.bradley_terry import bradley_terry
from venire.ratings.pairwise.online import online_elo
from venire.reports.board.verdicts import Verdicts
from venire.reports.figure_tables import figure_tables
from venire.reports.figures import FigureResults, Figures, figures_of
from venire.reports.json_values import json_values


def campaign(slopes: tuple[float, ...] = (2.0, 1.0, 0.3, 1.0), repeats: int = 1, place: float = 0.0) -> Battles:
    """All pairs of five models on 30 instructions in both orders by judges of these slopes."""
    rng = np.random.default_rng(7)
    item, a, b, judge, order, repeat = (
        column.ravel()
        for column in np.meshgrid(
            np.arange(30), np.arange(5), np.arange(5), np.arange(len(slopes)), [0, 1], np.arange(1, repeats + 1)
        )
    )
    kept = a < b
    item, a, b, judge, order, repeat = (column[kept] for column in (item, a, b, judge, order, repeat))
    odds = np.array(slopes)[judge] * 0.5 * (b - a) + np.where(order == 0, place, -place)
    y = (rng.random(len(odds)) < 1.0 / (1.0 + np.exp(-odds))).astype(float)
    names = [f"m{code}" for code in range(5)]
    return battles(
        [names[code] for code in a],
        [names[code] for code in b],
        y,
        judge=[f"j{code}" for code in judge],
        instruction=item,
        swapped=order == 1,
        repeat=repeat,
    )


def found(
    asked: Figures,
    table: Battles | None = None,
    method: str = "bradley-terry",
    known: dict[str, Any] | None = None,
    **options: Any,
) -> Any:
    table = table or campaign()
    figures = figures_of(table, method, Options(**options), asked, Verdicts(table, [], **known or {}))
    json.dumps(json_values(figures), allow_nan=False)
    return figures


def test_an_ablation_is_of_the_widest_the_narrowest_and_random_matchups() -> None:
    elo = {f"m{code}": 1000.0 - 100.0 * code for code in range(5)}
    judges = {"j0": 1300.0, "j1": 1150.0, "j2": 1000.0, "j3": 1150.0}
    rows = found(Figures(ablation=True), known={"reference": elo, "judge_elo": judges}).ablation.rows
    assert [(row.choice, row.matchups) for row in rows] == [
        ("widest", 5),
        ("narrowest", 5),
        ("random", 5),
        ("all", 10),
        ("all, by gap", 10),
    ]
    assert all(row.pearson > 0.8 for row in rows), "sharper judges have the higher Elo"
    everything = next(row for row in rows if row.choice == "all")
    table = campaign()
    line = elo_from_consistency(consistency(table, elo=elo), judges, score="consistency").all
    assert everything.pearson == pytest.approx(line.pearson)
    assert everything.mae_left_out == pytest.approx(line.mae_left_out)
    gap = elo_from_consistency(consistency(table, elo=elo, weights="gap"), judges, score="consistency").all
    assert rows[-1].pearson == pytest.approx(gap.pearson)


def test_a_learning_curve_comes_near_to_the_order_of_all_battles() -> None:
    elo = {f"m{code}": 1000.0 - 100.0 * code for code in range(5)}
    curve = found(Figures(learning_curve=True), known={"reference": elo}).learning_curve
    assert [point.share for point in curve.points] == [0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0]
    assert [point.battles for point in curve.points] == [15, 30, 60, 90, 150, 210, 300], "both orders, all judges"
    assert curve.points[0].whole.value < curve.points[3].whole.value <= curve.points[-1].whole.value == 1.0
    assert curve.points[0].whole.lo < curve.points[0].whole.value
    assert curve.points[-1].known["reference"].value == 1.0
    assert list(curve.known) == ["reference"]


def test_an_ablation_without_elo_of_judges_or_models_is_refused() -> None:
    with pytest.raises(InputError, match="0 judges have an Elo"):
        found(Figures(ablation=True))
    with pytest.raises(InputError, match="0 matchups of models with an Elo"):
        found(Figures(ablation=True), known={"judge_elo": {f"j{code}": 1000.0 + code for code in range(4)}})


def test_nothing_is_made_that_is_not_asked_for() -> None:
    assert found(Figures()) == FigureResults()


def test_held_out_figures_are_those_of_cross_validation() -> None:
    shown = found(Figures(folds=5), seed=3).prediction
    rows = {one.method: one for one in shown.methods}
    data = merge_orders(campaign()).comparisons()
    for name, predict in (
        ("bradley-terry", predict_from_ratings(bradley_terry)),
        ("am-elo", predict_from_abilities(am_elo)),
    ):
        expected = evaluate(data, predict, folds=5, seed=3)
        assert (rows[name].mse, rows[name].auc) == pytest.approx((expected.mse, expected.auc))
        assert rows[name].log_loss == pytest.approx(expected.log_loss)
    assert rows["am-elo"].log_loss < rows["bradley-terry"].log_loss < rows["even odds"].log_loss
    assert rows["even odds"].log_loss == pytest.approx(np.log(2.0))


def test_instructions_are_held_out_whole_and_differences_have_their_errors() -> None:
    shown = found(Figures(folds=5), seed=3, level=0.9).prediction
    assert (shown.instructions, shown.level, shown.beside) == (30, 0.9, "bradley-terry")
    rows = {one.method: one for one in shown.methods}
    assert rows["bradley-terry"].log_loss_difference is None
    for name, row in rows.items():
        if name != "bradley-terry":
            less = row.log_loss_difference
            assert less.value == pytest.approx(row.log_loss - rows["bradley-terry"].log_loss)
            assert less.lo <= less.value <= less.hi
    assert rows["even odds"].log_loss_difference.lo > 0.0
    (table,) = figure_tables(FigureResults(prediction=shown))
    assert "of 30 instructions" in table.title
    with pytest.raises(InputError, match="no more than the 30"):
        found(Figures(folds=31))


def test_a_method_that_cannot_predict_is_named() -> None:
    shown = found(Figures(folds=3), method="borda").prediction
    assert "no probability" in shown.left_out["borda"]
    assert {one.method for one in shown.methods} == {"even odds", "elo", "m-elo", "am-elo"}


def test_a_judge_whose_verdicts_are_reversed_is_found_by_its_ability() -> None:
    shown = found(Figures(steady=0.25)).robustness
    assert (shown.perturbed, shown.judges, len(shown.methods)) == (1, 4, 12)
    flipped = {one.method: one for one in shown.methods if one.kind == "flip"}
    assert flipped["am-elo"].f1 > 0.8
    assert flipped["m-elo"].f1 is None
    assert flipped["am-elo"].inconsistency <= flipped["elo"].inconsistency


def test_ascents_are_held_against_the_maximum_that_the_method_finds() -> None:
    shown = found(Figures(ascents=3, epochs=200), seed=2)
    data = merge_orders(campaign()).comparisons()
    assert shown.ascents == gradient_ascents(data, starts=3, epochs=200, seed=2)
    assert shown.ascents.log_likelihood == pytest.approx(am_elo(data).loglik)
    (table,) = figure_tables(shown)
    assert [row[:2] for row in table.rows] == [
        ("gradient", "no"),
        ("gradient", "yes"),
        ("adam", "no"),
        ("adam", "yes"),
    ]


def test_a_contrast_is_a_difference_with_the_battles_that_it_needs() -> None:
    shown = found(Figures(contrast=("m4", "m1"), half_width=5.0)).contrast
    expected = difference(rate(campaign(), "bradley-terry", Options()).ratings, "m4", "m1")
    assert (shown.difference, shown.lo, shown.hi) == pytest.approx((expected.estimate, expected.lo, expected.hi))
    assert shown.battles_in_all > shown.battles_between > 0
    assert found(Figures(contrast=("m4", "m1"), half_width=5000.0)).contrast.battles_between == 0


def test_battles_shown_often_in_each_order_are_audited_by_judge() -> None:
    shown = found(Figures(positions=True), campaign(slopes=(1.0, 1.0), repeats=5, place=3.0)).positions.judges
    assert [one.judge for one in shown] == ["j0", "j1"]
    for one in shown:
        assert one.battles == 300
        assert one.first > 0.85
        assert one.by_order > 100
    with pytest.raises(InputError, match="plan repeats of both orders"):
        found(Figures(positions=True), campaign())


def test_elo_in_the_given_order_is_one_pass_over_the_rows() -> None:
    table = battles(["a", "b", "a", "c"], ["b", "c", "c", "b"], [1.0, 1.0, 0.0, 1.0])
    expected = online_elo(merge_orders(table).comparisons().select(np.arange(4)), order="given")
    given = rate(table, "elo", Options(order="given")).ratings
    by_hand = dict.fromkeys("abc", 1000.0)
    for a, b, y in (("a", "b", 1.0), ("b", "c", 1.0), ("a", "c", 0.0), ("c", "b", 1.0)):
        moved = 4.0 * (y - 1.0 / (1.0 + 10.0 ** ((by_hand[b] - by_hand[a]) / 400.0)))
        by_hand[a], by_hand[b] = by_hand[a] + moved, by_hand[b] - moved
    assert dict(zip(given.models, given.elo.tolist(), strict=True)) == pytest.approx(by_hand)
    turned = battles(["c", "a", "b", "a"], ["b", "c", "c", "b"], [1.0, 0.0, 1.0, 1.0])
    assert rate(turned, "elo", Options(order="given")).ratings.elo.tolist() != given.elo.tolist()
    assert expected.ratings.models == given.models


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"folds": 1}, "give 2 or more"),
        ({"steady": 1.0}, "share of judges"),
        ({"half_width": 5.0}, "name two models"),
        ({"ascents": 1}, "give 2 starts or more"),
        ({"epochs": 10}, "name their starts"),
    ],
)
def test_what_cannot_be_meant_is_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Figures(**asked)


def test_rankings_need_known_ratings() -> None:
    with pytest.raises(InputError, match="--reference FILE"):
        found(Figures(people=True))
