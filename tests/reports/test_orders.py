"""Boards of methods that give an order, or that measure judges: places in place of ratings, figures beside judges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from venire.arena.battles import Battles
from venire.arena.records import Origin
from venire.ratings.data.judgments import Judgments
from venire.ratings.data.result import Rated
from venire.ratings.inference.options import Options
from venire.ratings.methods import methods
from venire.ratings.methods.findings import ContradictedVotes
from venire.ratings.pairwise.components import unrated
from venire.reports.board.board import Board
from venire.reports.board.build import build
from venire.reports.comparison import compare

Table = Callable[..., Battles]

ROWS = [("a", "b", "first", "x"), ("b", "c", "first", "x"), ("c", "a", "first", "y"), ("a", "c", "first", "z")]
COST = ContradictedVotes(("b", "a", "c", "d"), cost=1.0, lower_bound=0.5, proved=False, optimal_orders=None)


def by_place(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """A stand-in: b first, a and c not told apart, and d without votes."""
    place = {"a": 2.5, "b": 1.0, "c": 2.5, "d": np.nan, "e": 4.0}
    blank = unrated(judgments.comparisons(), {"d": "took part in no readable judgment"})
    position = np.array([place[name] for name in blank.ratings.models])
    return replace(blank, position=position, figures={"position": position, "points": -position}, findings=(COST,))


def by_ability(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """A stand-in that measures x, finds y without bound, and does not use z."""
    found = methods.METHODS["bradley-terry"].run(battles, judgments, replace(options, ridge=0.1))
    ability = {"ability": np.array([1.25, np.inf]), "ability_se": np.array([0.5, np.nan])}
    return replace(found, judges=("x", "y"), judge_figures=ability)


@pytest.fixture(autouse=True)
def stand_ins() -> Iterator[None]:
    methods.METHODS.register("places", methods.Method(by_place, "places"))
    methods.METHODS.register("abilities", methods.Method(by_ability, "abilities", frozenset({"restarts"})))
    yield
    for name in ("places", "abilities"):
        methods.METHODS.unregister(name)


@pytest.fixture
def board(table: Table) -> Callable[..., Board]:
    def made(method: str, **options: Any) -> Board:
        battles = replace(table(ROWS), models=(*table(ROWS).models, "d"))
        return build(battles, origins=[Origin.RECORDED], method=method, **options)

    return made


def test_models_stand_by_position_where_there_is_no_rating(board: Callable[..., Board]) -> None:
    found = board("places")
    assert [(row.model, row.position) for row in found.models] == [("b", 1), ("a", 2.5), ("c", 2.5), ("d", None)]
    document = found.to_json()
    assert document["models"][0]["position"] == 1
    assert document["models"][0]["elo"] is None
    assert document["models"][0]["points"] == -1
    assert document["models"][3]["position"] is None
    assert (found.diagnostics.finding(ContradictedVotes), document["diagnostics"]["order"]) == (
        COST,
        ["b", "a", "c", "d"],
    )


def test_a_method_that_rates_has_no_position(board: Callable[..., Board]) -> None:
    assert "position" not in board("win-rate").to_json()["models"][0]


def test_an_order_agrees_with_a_reference_by_ranks_alone(board: Callable[..., Board], table: Table) -> None:
    rows = [*ROWS, ("d", "a", "first", "x"), ("e", "a", "first", "x")]
    known = {"a": 1000.0, "b": 1200.0, "c": 900.0, "e": 950.0}

    def agreed(reference: dict[str, float]) -> Any:
        battles = replace(table(rows), models=("a", "b", "c", "d", "e"))
        made = build(battles, origins=[Origin.RECORDED], method="places", reference=reference)
        return made.to_json()["diagnostics"]["agreement"]

    same = agreed(known)
    assert same["spearman"] == pytest.approx(spearmanr([2.5, 1, 2.5, 4], [-1000, -1200, -900, -950]).statistic)
    assert same["kendall"] == pytest.approx(kendalltau([2.5, 1, 2.5, 4], [-1000, -1200, -900, -950]).statistic)
    assert [same[name] for name in ("mae", "mae_line", "spread", "pearson", "models")] == [None] * 4 + [4]
    turned = agreed({name: -elo for name, elo in known.items()})
    assert turned["spearman"] == pytest.approx(-same["spearman"])


def test_judges_have_the_figures_of_the_method_and_null_where_it_did_not_use_them(board: Callable[..., Board]) -> None:
    found = board("abilities")
    assert found.judge_figures["ability"] == {"x": 1.25, "y": np.inf, "z": None}
    assert found.judge_figures["ability_se"] == {"x": 0.5, "y": None, "z": None}
    judges = {row["judge"]: (row["ability"], row["ability_se"]) for row in found.to_json()["judges"]}
    assert judges == {"x": (1.25, 0.5), "y": (None, None), "z": (None, None)}
    assert "ability" not in board("win-rate").to_json()["judges"][0]


def test_orders_and_ratings_stand_side_by_side_by_rank(table: Table) -> None:
    battles = replace(table(ROWS), models=(*table(ROWS).models, "d"))
    found = compare(battles, ["places", "win-rate"], Options())
    assert [(row.model, row.rank[0], row.elo[0]) for row in found.models] == [
        ("b", 1, None),
        ("a", 2, None),
        ("c", 2, None),
        ("d", None, None),
    ]
    assert found.kendall[0] == pytest.approx(1.0)


def test_options_of_one_method_are_told_to_it_alone_and_to_nobody_else(table: Table) -> None:
    battles = table(ROWS)
    assert compare(battles, ["win-rate", "abilities"], Options(restarts=2)).methods == ("win-rate", "abilities")
    with pytest.raises(Exception, match="none of win-rate, places takes restarts"):
        compare(replace(battles, models=(*battles.models, "d")), ["win-rate", "places"], Options(restarts=2))


def test_what_is_not_heard_is_counted_and_weights_are_told(table: Table) -> None:
    rows = [*ROWS, ("a", "b", "first", "a")]
    told = Options(own_votes="exclude", judge_weights={"y": 2.0, "x": 0.0})
    facts = build(table(rows), origins=[Origin.RECORDED], method="win-rate", options=told).to_json()["diagnostics"]
    assert (facts["own_left_out"], facts["judge_weights"], facts["judgments"]) == (1, {"x": 0.0, "y": 2.0}, 2)
