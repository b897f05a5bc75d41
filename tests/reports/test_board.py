"""The board: what it shows, what it refuses, and that equal verdicts make equal bytes."""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.records import Origin
from venire.ratings.data.judgments import select_battles
from venire.ratings.inference.options import Options
from venire.render.sections import show
from venire.reports.board.build import build
from venire.reports.comparison import compare

Table = Callable[..., Battles]
Rows = list[tuple[Any, ...]]

SIMULATED = [Origin.SIMULATED]
COLUMNS = ["model", "elo", "logit", "lo", "hi", "se", "rank_lo", "rank_hi", "battles", "tier", "best"]


def printed(battles: Battles, method: str = "bradley-terry", options: Any = None, **known: Any) -> str:
    told = Options(**(options or {}))
    return json.dumps(
        build(battles, origins=SIMULATED, method=method, options=told, **known).to_json(), allow_nan=False
    )


def board(battles: Battles, method: str = "bradley-terry", options: Any = None, **known: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(printed(battles, method, options, **known))
    return found


@pytest.fixture(scope="module")
def rows() -> Rows:
    """Five models on fifteen instructions, both orders, two judges; the first models are the better ones."""
    rng = np.random.default_rng(4)
    return [
        (first, second, rng.choice(["first", "second", "tie"], p=_odds(first, second)), judge, f"i{item}")
        for item in range(15)
        for first in "abcde"
        for second in "abcde"
        for judge in ("j", "k")
        if first != second
    ]


def _odds(first: str, second: str) -> list[float]:
    share = 1 / (1 + math.exp(0.4 * (ord(first) - ord(second))))
    return [0.8 * share, 0.8 * (1 - share), 0.2]


def test_a_plain_board_has_its_shape(table: Table, rows: Rows) -> None:
    found = board(table(rows), reference={"a": 1100.0, "c": 1000.0, "e": 900.0, "z": 0.0})
    assert list(found) == ["method", "gauge", "verdicts", "models", "judges", "diagnostics"]
    assert (found["method"], found["gauge"], found["verdicts"]) == ("bradley-terry", "mean 1000", "simulated")
    assert [row["model"] for row in found["models"]] == ["a", "b", "c", "d", "e"]
    assert list(found["models"][0]) == [*COLUMNS, "reference"]
    assert list(found["models"][1]) == COLUMNS
    assert sum(row["elo"] for row in found["models"]) == pytest.approx(5000.0, abs=1e-5)
    assert all(row["lo"] < row["elo"] < row["hi"] for row in found["models"])
    assert {row["battles"] for row in found["models"]} == {120}
    assert [row["judge"] for row in found["judges"]] == ["j", "k"]
    assert {"judge", "consistency", "decisive", "ties", "flips", "first"} <= set(found["judges"][0])


def test_diagnostics_add_up(table: Table, rows: Rows) -> None:
    spoilt = [(*row[:2], None, *row[3:]) if place % 50 == 0 else row for place, row in enumerate(rows)]
    found = board(table(spoilt), options={"replicates": 40, "seed": 9})["diagnostics"]
    assert found["statuses"]["ok"] + found["statuses"]["unreadable"] == len(rows)
    assert set(found["statuses"]) == {"ok", "unreadable", "refused", "truncated", "filtered", "too_long"}
    assert found["unreadable"] == found["one_order"] == 12
    assert found["judgments"] == found["fits"][0]["judgments"] == 300
    assert (found["groups"], found["components"]) == ([["a", "b", "c", "d", "e"]], 1)
    assert found["flips"] > 0
    assert found["ties"] > 0
    assert (found["reason"], found["no_estimate"], found["between_groups"]) == (None, {}, 0)
    assert found["bootstrap"] == {"replicates": 40, "without_estimate": 0, "seed": 9}
    assert found["jackknife"] == {"unit": "instruction", "units": 15, "level": 0.95}


def test_agreement_says_where_the_verdicts_come_from(table: Table, rows: Rows) -> None:
    known = {"a": 1100.0, "b": 1060.0, "c": 1000.0, "e": 900.0}
    found = board(table(rows), reference=known)["diagnostics"]["agreement"]
    assert (found["models"], found["spearman"], found["verdicts"]) == (4, 1.0, "simulated")
    assert list(found) == [
        "pearson", "spearman", "kendall", "mae", "mae_line", "spread", "models", "intervals", "level", "verdicts"
    ]  # fmt: skip
    assert list(found["intervals"]) == ["pearson"]  # a perfect order does not show its own error


@pytest.mark.parametrize(("times", "same"), [(1.0, True), (3.0, False), (0.002, False)])
def test_an_error_in_points_is_given_where_both_are_in_one_unit(
    table: Table, rows: Rows, times: float, same: bool
) -> None:
    plain = {row["model"]: row["elo"] for row in board(table(rows))["models"]}
    known = {name: times * (elo - 1000.0) + 5.0 * place for place, (name, elo) in enumerate(plain.items())}
    found = board(table(rows), reference=known)["diagnostics"]["agreement"]
    assert (found["mae"] is not None) == same
    assert found["mae_line"] < 10.0
    out = io.StringIO()
    show(Console(file=out, width=200), build(table(rows), origins=SIMULATED, reference=known).sections())
    shown = " ".join(out.getvalue().split())
    assert ("wide as the reference's" in shown) != same
    assert "reference: 5 models, Pearson" in shown


@pytest.mark.parametrize(
    ("reference", "words"),
    [(None, "no reference"), ({"a": 1.0, "b": 2.0, "c": 3.0}, "at least 4"), ({"q": 1.0}, "at least 4")],
)
def test_agreement_with_too_little_is_null_with_a_reason(
    table: Table, rows: Rows, reference: dict[str, float] | None, words: str
) -> None:
    found = board(table(rows), reference=reference)["diagnostics"]
    assert found["agreement"] is None
    assert words in found["agreement_reason"]


def test_origins_do_not_mix(table: Table, rows: Rows) -> None:
    with pytest.raises(InputError, match=r"recorded, simulated.*one origin at a time"):
        build(table(rows), origins=[Origin.SIMULATED, Origin.RECORDED])
    with pytest.raises(InputError, match="not given"):
        build(table(rows), origins=[])
    assert build(table(rows), origins=[Origin.REAL, Origin.REAL]).verdicts == "real"


def test_unknown_methods_are_refused_with_the_choices(table: Table, rows: Rows) -> None:
    with pytest.raises(InputError, match="here are: bradley-terry"):
        board(table(rows), "elon")
    with pytest.raises(InputError, match="choose one of mean, strict"):
        board(table(rows), options={"merge": "both"})


@settings(max_examples=10)
@given(data=st.data())
def test_the_same_verdicts_make_the_same_bytes(table: Table, rows: Rows, data: st.DataObject) -> None:
    for ordered, named in ((True, True), (False, True), (True, False)):
        few = rows[:150]
        battles = table(few, ordered=ordered, named=named)
        shuffled = table(data.draw(st.permutations(few)), ordered=ordered, named=named)
        assert printed(battles, options={"replicates": 20}) == printed(shuffled, options={"replicates": 20})
        other_side = replace(
            battles,
            model_a=battles.model_b,
            model_b=battles.model_a,
            swapped=~battles.swapped,
            label=-battles.label,
        )
        assert printed(battles, options={"replicates": 20}) == printed(other_side, options={"replicates": 20})


def test_another_seed_moves_intervals_and_not_ratings(table: Table, rows: Rows) -> None:
    one, other = (board(table(rows), options={"replicates": 30, "seed": seed}) for seed in (1, 2))
    assert [row["elo"] for row in one["models"]] == [row["elo"] for row in other["models"]]
    assert [row["lo"] for row in one["models"]] != [row["lo"] for row in other["models"]]


def test_groups_are_rated_apart_and_named(table: Table) -> None:
    rows = [("top", "a", "first", "j", "x"), ("a", "b", "tie", "j", "x"), ("a", "b", "first", "j", "y")]
    rows += [("p", "q", "tie", "j", "x"), ("p", "q", "first", "j", "y"), ("p", "q", "second", "j", "z")]
    found = board(table(rows), reference={"a": 1.0, "b": 0.0, "p": 3.0})
    models = {row["model"]: row for row in found["models"]}
    assert found["gauge"] == "mean 1000 in each group"
    assert (models["top"]["elo"], models["top"]["lo"], models["top"]["battles"]) == (None, None, 1)
    assert models["a"]["elo"] + models["b"]["elo"] == pytest.approx(2000.0)
    assert models["a"]["elo"] == pytest.approx(1000 + 200 * math.log10(3))
    assert models["p"]["elo"] == models["q"]["elo"] == 1000.0
    groups = found["diagnostics"]["groups"]
    assert groups == [["p", "q"], ["top"], ["a", "b"]]
    assert all(name in groups[row["group"] - 1] for name, row in models.items())
    assert [row["model"] for row in found["models"]] == ["a", "p", "q", "b", "top"]
    diagnostics = found["diagnostics"]
    assert (diagnostics["components"], diagnostics["between_groups"], diagnostics["judgments"]) == (2, 1, 6)
    assert diagnostics["no_estimate"] == {"top": "won every judgment it took part in: no finite rating exists"}


def test_who_won_everything_stands_on_top_and_who_lost_everything_at_the_bottom(table: Table) -> None:
    rows = [("a", "b", winner, "j", f"i{n}") for n, winner in enumerate(["first", "second", "first"] * 4)]
    rows += [(name, other, "first", "j", f"i{n}") for name in ["top"] for other in ("a", "b", "low") for n in range(12)]
    rows += [(name, "low", "first", "j", f"i{n}") for name in ("a", "b") for n in range(12)]
    for method in ("bradley-terry", "m-elo", "am-elo", "win-rate"):
        found = board(table(rows), method=method)["models"]
        assert [row["model"] for row in found] == ["top", "a", "b", "low"], method
        top, low = found[0], found[-1]
        assert (top["elo"], top["hi"], low["elo"], low["lo"]) == (None, None, None, None)
        if method == "win-rate":
            assert (top["lo"], low["hi"]) == (None, None), "performance against the field is another scale"
        else:
            assert top["lo"] > low["hi"]
    with_prior = board(table(rows), options={"ridge": 0.1})["models"]
    assert [row["model"] for row in with_prior] == ["top", "a", "b", "low"]
    assert all(row["elo"] is not None for row in with_prior)


def test_models_without_a_rating_are_in_the_order_of_their_wins(table: Table) -> None:
    items = [f"i{n}" for n in range(60)]
    chain = [(one, other, "first", "j", item) for one, other in ("zc", "ca", "za") for item in items]
    for method in ("bradley-terry", "am-elo", "stable-arena", "even-pairs"):
        found = board(table(chain), method=method)["models"]
        assert [(row["model"], row["elo"]) for row in found] == [("z", None), ("c", None), ("a", None)], method
    even = [("a", "b", winner, "j", f"i{n}") for n, winner in enumerate(["first", "second", "first"] * 20)]
    tops = [(one, other, "first", "j", item) for one, other in ("zy", "za", "zb", "ya", "yb") for item in items]
    lows = [(one, other, "first", "j", item) for one, other in ("ae", "be", "ac", "bc", "ec") for item in items]
    for method in ("bradley-terry", "am-elo"):
        found = board(table([*even, *tops, *lows]), method=method)["models"]
        assert [row["model"] for row in found] == ["z", "y", "a", "b", "e", "c"], method


def test_a_comparison_ranks_who_won_everything_first_under_every_method(table: Table) -> None:
    items = [f"i{n}" for n in range(60)]
    even = [("a", "b", winner, "j", f"i{n}") for n, winner in enumerate(["first", "second", "first"] * 20)]
    pairs = [(one, other, "first", "j", item) for one, other in ("za", "zb", "ac", "bc") for item in items]
    found = compare(table([*even, *pairs]), ("bradley-terry", "am-elo", "win-rate", "elo", "borda"), Options())
    assert [row.model for row in found.models] == ["z", "a", "b", "c"]
    assert [row.rank for row in found.models] == [(place,) * 5 for place in (1, 2, 3, 4)]
    assert found.models[0].elo[0] is None
    chain = [(one, other, "first", "j", item) for one, other in ("zc", "ca", "za") for item in items]
    rows = compare(table(chain), ("bradley-terry", "m-elo"), Options()).models
    assert [(row.model, row.rank) for row in rows] == [("z", (None, None)), ("c", (None, None)), ("a", (None, None))]


@pytest.mark.parametrize(
    ("method", "remedy"),
    [
        ("bradley-terry", "\n--ridge 0.1, a weak prior"),
        ("win-rate", "\n--method bradley-terry --ridge 0.1"),
        ("am-elo", "\n--method bradley-terry --ridge 0.1"),
        ("elo", ""),
        ("borda", ""),
    ],
)
def test_a_board_with_models_without_a_rating_names_the_remedy(table: Table, method: str, remedy: str) -> None:
    rows = [(one, other, "first", "j", f"i{n}") for one, other in ("zc", "ca", "za") for n in range(60)]
    out = io.StringIO()
    show(Console(file=out, width=120), build(table(rows), origins=SIMULATED, method=method).sections())
    assert ("ridge" in out.getvalue()) is bool(remedy)
    assert remedy in out.getvalue()
    if remedy:
        fixed = board(table(rows), options={"ridge": 0.1})["models"]
        assert [row["model"] for row in fixed if row["elo"] is not None] == ["z", "c", "a"]


def test_agreement_stays_within_the_largest_group(table: Table, rows: Rows) -> None:
    apart = [*rows, ("p", "q", "tie"), ("loser", "a", "second")]
    found = board(table(apart), reference={"a": 3.0, "b": 2.0, "c": 1.5, "e": 1.0, "p": 9.0, "loser": 0.0})[
        "diagnostics"
    ]
    assert found["agreement"]["models"] == 4
    assert found["groups"][found["agreement"]["group"] - 1] == ["a", "b", "c", "d", "e"]


def test_why_a_model_has_no_rating_is_said(table: Table) -> None:
    chain = [("a", "b", "first"), ("b", "c", "first"), ("d", "a", None)]
    found = board(table(chain))
    reasons = found["diagnostics"]["no_estimate"]
    assert [row["elo"] for row in found["models"]] == [None] * 4
    assert [row["model"] for row in found["models"]] == ["a", "b", "c", "d"]
    assert reasons["a"].startswith("won every")
    assert reasons["b"].startswith("no chain of wins")
    assert reasons["c"].startswith("lost every")
    assert reasons["d"].startswith("took part in no readable")


def test_a_fit_that_stops_short_leaves_a_reason(table: Table, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["venire.ratings.pairwise.solvers"], "_STEPS", 1)
    found = board(table(rows), reference={"a": 1.0})
    assert {row["elo"] for row in found["models"]} == {None}
    assert "after 1 steps" in found["diagnostics"]["no_estimate"]["a"]
    assert found["diagnostics"]["agreement_reason"] == "no model could be rated"


def test_nothing_judged_is_an_empty_board_with_a_reason(table: Table) -> None:
    found = json.loads(json.dumps(build(table([]), origins=[]).to_json(), allow_nan=False))
    assert (found["models"], found["judges"], found["verdicts"]) == ([], [], None)
    assert "no readable verdict" in found["diagnostics"]["reason"]
    assert build(table([], named=False), origins=SIMULATED).verdicts == "simulated"


def test_nothing_readable_shows_who_was_asked(table: Table) -> None:
    found = board(table([("a", "b", None), ("b", "a", None)]))
    assert [(row["model"], row["elo"], row["battles"]) for row in found["models"]] == [("a", None, 0), ("b", None, 0)]
    assert found["judges"][0]["readable"] == 0.0
    assert found["diagnostics"]["unreadable"] == 2


def test_families_reach_the_judges(table: Table, rows: Rows) -> None:
    found = board(table(rows), families={"a": "f"}, judge_families={"j": "f"})["judges"]
    assert [row["own_family"] for row in found] == [120, 0]


def test_strict_merging_is_named_and_makes_more_ties(table: Table, rows: Rows) -> None:
    mean, strict = (board(table(rows), options={"merge": merge})["diagnostics"] for merge in ("mean", "strict"))
    assert (mean["merge"], strict["merge"]) == ("mean", "strict")
    assert strict["ties"] > mean["ties"]
    assert strict["flips"] == mean["flips"]


def test_recorded_peers_come_out_as_published(shared_data: Path, table: Table) -> None:
    query = "SELECT first, second, verdict, judge, instruction_id, repeat FROM read_parquet(?) WHERE repeat = 1"
    with duckdb.connect() as connection:
        recorded = connection.execute(query, [str(shared_data / "vicuna80_peers" / "judgments.parquet")]).fetchall()
    battles = table(recorded)
    by_gpt_4 = select_battles(battles, battles.judge == battles.judges.index("gpt-4"))
    found = build(by_gpt_4, origins=[Origin.RECORDED]).to_json()
    assert [row["model"] for row in found["models"]] == ["gpt-4", "claude-v1", "vicuna-13b", "gpt-3.5-turbo", "bard"]
    assert [row["elo"] for row in found["models"]] == pytest.approx(
        [1276.07, 1146.46, 886.24, 881.77, 809.46], abs=0.05
    )
    assert all(row["lo"] < row["elo"] < row["hi"] for row in found["models"])
    assert found["verdicts"] == "recorded"
    assert found["diagnostics"]["flips"] == 115


def test_scores_of_judges_are_held_to_their_own_elo_where_four_are_known(table: Table) -> None:
    rng = np.random.default_rng(8)
    rows = []
    for name, slope in (("keen", 2.0), ("fair", 1.0), ("slow", 0.6), ("dull", 0.3)):
        for item in range(40):
            for place, first in enumerate("abcd"):
                for other, second in enumerate("abcd"):
                    if first != second:
                        share = 1.0 / (1.0 + math.exp(slope * (place - other)))
                        rows.append((first, second, "first" if rng.random() < share else "second", name, f"i{item}"))
    elo = {"keen": 1300.0, "fair": 1100.0, "slow": 1000.0, "dull": 950.0}
    found = board(table(rows), judge_elo=elo)["diagnostics"]["elo_from_consistency"]
    assert [one["score"] for one in found] == ["consistency", "decisive", "corrected", "discrimination"]
    for one in found:
        assert one["verdicts"] == "simulated"
        assert one["all"]["spearman"] == 1.0
        assert one["all"]["slope"] > 0
    few = board(table(rows), judge_elo={"keen": 1300.0, "fair": 1100.0, "slow": 1000.0})["diagnostics"]
    assert "elo_from_consistency" not in few
