"""What a board says of judges that are models themselves, and when it says nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from venire.arena.battles import Battles
from venire.arena.records import Origin
from venire.ratings.data.ballots import ballots, to_battles
from venire.ratings.inference.options import Options
from venire.reports.board.build import build

Table = Callable[..., Battles]


@pytest.fixture(scope="module")
def battles(table: Table) -> Battles:
    """Three models judge each other and themselves on 24 instructions; a takes its own side, but on the first."""
    rng = np.random.default_rng(1)
    strength = {"a": 0.6, "b": 0.0, "c": -0.6}
    rows = []
    for item in range(24):
        for judge in "abc":
            for one, other in ("ab", "ac", "bc"):
                odds = strength[one] - strength[other] + rng.logistic(0.0, 1.0)
                said = "first" if odds > 0.2 else "second" if odds < -0.2 else "tie"
                favour = judge == one == "a"
                rows.append((one, other, ("first" if item else "second") if favour else said, judge, f"q{item}"))
    return table(rows)


def peers(battles: Battles, **options: Any) -> Any:
    board = build(battles, origins=[Origin.RECORDED], options=Options(**options))
    return json.loads(json.dumps(board.to_json(), allow_nan=False))["diagnostics"].get("peers")


def test_each_model_that_judges_has_its_gap_its_odds_and_what_its_votes_move(battles: Battles) -> None:
    found = peers(battles)
    assert (found["unit"], found["level"], found["left_out"]) == ("positions", 0.95, 0)
    assert [row["model"] for row in found["models"]] == ["a", "b", "c"]
    a = found["models"][0]
    assert a["se_minus_pe"] == pytest.approx(a["self_evaluation"] - a["peer_evaluation"], abs=1e-5)
    assert a["se_minus_pe_lo"] < a["se_minus_pe"] < a["se_minus_pe_hi"] < 0.0
    assert a["own_odds"] > 0.0
    assert a["sie_minus_sfe"] == a["sie"] - a["sfe"]
    assert list(a) == [
        "model", "judges", "self_evaluation", "peer_evaluation", "se_minus_pe", "se_minus_pe_se", "se_minus_pe_lo",
        "se_minus_pe_hi", "instructions", "own_odds", "own_odds_se", "own_odds_lo", "own_odds_hi", "own_odds_reason",
        "slope", "sie", "sfe", "sie_minus_sfe",
    ]  # fmt: skip


def test_the_level_is_the_boards(battles: Battles) -> None:
    wide, narrow = (peers(battles, level=level)["models"][0] for level in (0.99, 0.5))
    assert wide["se_minus_pe_lo"] < narrow["se_minus_pe_lo"] < narrow["se_minus_pe_hi"] < wide["se_minus_pe_hi"]


def test_two_judges_must_be_models_and_one_must_have_judged_itself(battles: Battles) -> None:
    assert peers(replace(battles, judges=("a", "ann", "bob"))) is None
    assert len(peers(replace(battles, judges=("a", "ann", "b")))["models"]) == 2
    assert len(peers(replace(battles, judges=("x", "y", "z"), peers={"x": "c", "z": "a"}))["models"]) == 2
    assert peers(battles, own_votes="exclude") is None


def test_rankings_say_it_by_their_positions() -> None:
    rows = [
        (judge, f"q{item}", model, place)
        for item in range(6)
        for judge, order in (("a", "abc"), ("b", "bac" if item % 2 else "abc"), ("c", "acb"))
        for place, model in enumerate(order, 1)
    ]
    judge, asked, model, place = (list(column) for column in zip(*rows, strict=True))
    found = peers(to_battles(ballots(judge, asked, model, place)))
    rows_by = {row["model"]: row for row in found["models"]}
    assert rows_by["c"]["self_evaluation"] == 2.0
    assert rows_by["c"]["peer_evaluation"] == 3.0
    assert "no finite figure" in rows_by["a"]["own_odds_reason"]


def test_ballots_of_the_best_alone_have_positions_and_no_missing_pairs() -> None:
    rows = [(judge, f"q{item}", model, 1) for item in range(4) for judge, model in (("a", "a"), ("b", "b"), ("c", "a"))]
    rows += [("c", f"q{item}", "c", float("nan")) for item in range(4)]
    judge, asked, model, place = (list(column) for column in zip(*rows, strict=True))
    found = peers(to_battles(ballots(judge, asked, model, place)))
    assert (found["unit"], found["left_out"]) == ("positions", 0)
    assert [row["self_evaluation"] for row in found["models"]] == [1.0, 1.0, 2.5]


def test_islands_and_winners_of_everything_have_a_board_and_a_reason(table: Table) -> None:
    rows = [("a", "b", "first", judge, f"q{item}") for item in range(3) for judge in "ab"]
    rows += [("c", "d", "second", judge, f"q{item}") for item in range(3) for judge in "cd"]
    found = peers(table(rows))
    assert {row["own_odds"] for row in found["models"]} == {None}
    assert all("no chain of wins" in row["own_odds_reason"] for row in found["models"])
