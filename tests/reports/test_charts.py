"""Charts of boards and audits: each kind is drawn from its data, or says in a sentence why it is not."""

from __future__ import annotations

import json
import random
import sys
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import venire as vn
from venire.pages.chart_files import write_figures
from venire.pages.report_page import report_html
from venire.reports.board.source import VerdictSource
from venire.reports.chart_data import Cost, Costs, calibration_rows, cost_rows, learning_rows, matrix_rows
from venire.reports.charts import Panel, intervals, spread_labels
from venire.reports.documents.report import report_document
from venire.reports.planes import PlaneAxis, plane
from venire.reports.plots import CHARTS, ChartKind, Drawing, plotted_kinds
from venire.reports.sections import Chart, Section

MODELS = ('always <b>wins</b> {{x}} "', "b:Q", "c", "always loses")


def votes() -> list[dict[str, Any]]:
    """Both orders of all pairs by two judges: the first model wins all, the last loses all, the others vary."""
    rng = random.Random(1)
    return [
        {
            "first": MODELS[b if swapped else a],
            "second": MODELS[a if swapped else b],
            "verdict": MODELS[a if a == 0 or b == 3 or rng.random() < 0.6 else b],
            "judge": judge,
            "instruction_id": n,
        }
        for n in range(12)
        for a in range(4)
        for b in range(a + 1, 4)
        for judge in ("x", "y")
        for swapped in (False, True)
    ]


def texts(node: Any) -> list[str]:
    """Every text of a specification."""
    if isinstance(node, str):
        return [node]
    return (
        [text for one in (node.values() if isinstance(node, dict) else node) for text in texts(one)]
        if isinstance(node, list | dict)
        else []
    )


def test_no_chart_holds_a_character_that_ends_who_draws_it() -> None:
    """A control character in a name aborted the process that drew SVG."""
    renamed = json.loads(json.dumps(votes()).replace("b:Q", "b\\u0001\\u001b").replace('"x"', '"x\\u0002"'))
    board = vn.rate(renamed)
    drawn = 0
    for kind in plotted_kinds():
        with suppress(vn.InputError):
            shown = texts(specification(board.plot(kind)))
            assert all(text.isprintable() for text in shown)
            drawn += any("\\x01" in text or "\\x02" in text for text in shown)
    assert drawn >= 5


@pytest.fixture(scope="module")
def board() -> vn.Board:
    return vn.rate(votes())


def specification(chart: Any) -> dict[str, Any]:
    """What altair makes of a chart, checked against the schema of Vega-Lite."""
    found: dict[str, Any] = json.loads(chart.to_json())
    return found


def parts(node: Any) -> list[dict[str, Any]]:
    """Every layer and column of a specification."""
    if isinstance(node, list):
        return [part for one in node for part in parts(one)]
    if not isinstance(node, dict):
        return []
    inner = [part for key in ("layer", "hconcat") for part in parts(node.get(key, []))]
    return [node, *inner]


def values(node: dict[str, Any], whole: dict[str, Any]) -> list[dict[str, Any]]:
    data = node.get("data", {})
    found: list[dict[str, Any]] = data["values"] if "values" in data else whole["datasets"][data["name"]]
    return found


DRAWN = ("leaderboard", "matrix", "intervals", "judges", "position", "learning", "calibration")


@pytest.mark.parametrize("kind", DRAWN)
def test_a_board_draws_what_its_verdicts_hold_and_names_are_data(board: vn.Board, kind: str) -> None:
    whole = specification(board.plot(kind))
    rows = [row for part in parts(whole) if "data" in part for row in values(part, whole)]
    assert rows
    assert not any("always" in json.dumps(part.get("transform", "")) for part in parts(whole))


def test_a_kind_without_data_is_a_sentence_that_names_those_that_are_drawn(board: vn.Board) -> None:
    with pytest.raises(
        vn.InputError, match=r"no reliability chart: it takes scores.*; this board draws leaderboard, mat"
    ):
        board.plot("reliability")
    with pytest.raises(vn.InputError, match="no cost chart: only a store knows"):
        board.plot("cost")
    with pytest.raises(vn.InputError, match="there is no chart 'pie'; this board draws leaderboard"):
        board.plot("pie")
    with pytest.raises(vn.InputError, match="no learning chart: no model has a rating by kemeny"):
        vn.rate(votes(), method="kemeny").plot("learning")
    with pytest.raises(vn.InputError, match="this audit has no leaderboard chart; this audit draws matrix, judges"):
        vn.audit(votes(), checks=["connectivity"]).plot("leaderboard")
    kept = replace(board, evidence=None)
    with pytest.raises(
        vn.InputError, match="the verdicts behind it were not kept; this board draws leaderboard, inter"
    ):
        kept.plot("matrix")


def test_without_altair_the_sentence_says_what_to_install(board: vn.Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    for kind in ("leaderboard", "matrix", "learning", "calibration"):
        with pytest.raises(vn.InputError, match=r"needs altair.*pip install altair"):
            board.plot(kind)


def test_an_infinite_end_is_marked_at_the_edge_of_a_scale_that_holds_all_others(board: vn.Board) -> None:
    best, worst = board.models[0], board.models[-1]
    assert (best.lo is not None, best.hi, worst.lo, worst.hi is not None) == (True, None, None, True)
    whole = specification(board.plot("leaderboard"))
    rows = {row["model"]: row for part in parts(whole) if "data" in part for row in values(part, whole)}
    low, high = rows[worst.model]["_lo"], rows[best.model]["_hi"]
    assert rows[best.model]["_above"]
    assert rows[worst.model]["_below"]
    assert not any(rows[one.model]["_above"] or rows[one.model]["_below"] for one in board.models[1:-1])
    known = [end for one in board.models for end in (one.lo, one.hi, one.elo) if end is not None]
    assert low < min(known) < max(known) < high
    domains = {
        tuple(part["encoding"]["x"]["scale"]["domain"])
        for part in parts(whole)
        if "scale" in str(part) and "domain" in part.get("encoding", {}).get("x", {}).get("scale", {})
    }
    assert domains == {(low, high)}


def test_an_order_is_a_leaderboard_of_places() -> None:
    board = vn.rate(votes(), method="kemeny")
    whole = specification(board.plot("leaderboard"))
    rows = [row for part in parts(whole) if "data" in part for row in values(part, whole) if "position" in row]
    assert {row["model"]: row["position"] for row in rows} == {one.model: one.position for one in board.models}
    with pytest.raises(vn.InputError, match="no model has a rating"):
        vn.rate([{"model_a": "oak", "model_b": "elm", "winner": "oak"}]).plot("leaderboard")


def test_the_matrix_has_both_shares_of_each_pair_in_the_order_of_the_board(board: vn.Board) -> None:
    assert board.evidence is not None
    rows = matrix_rows(board.evidence, [one.model for one in board.models])
    share = {(row["model"], row["other"]): row["share"] for row in rows}
    assert share[MODELS[0], MODELS[3]] == 1.0
    assert all(share[a, b] + share[b, a] == pytest.approx(1.0) for a, b in share)
    assert list(dict.fromkeys(row["model"] for row in rows)) == [one.model for one in board.models]


def test_learning_ends_at_the_ratings_of_the_board(board: vn.Board) -> None:
    assert board.evidence is not None
    rows = learning_rows(board.evidence)
    last = {row["model"]: row["elo"] for row in rows if row["verdicts"] == len(votes())}
    assert last["c"] == pytest.approx(next(one.elo for one in board.models if one.model == "c"))
    assert last[MODELS[0]] is None
    assert len({row["verdicts"] for row in rows}) > 10


def test_models_that_come_late_do_not_move_the_others_in_a_learning_curve() -> None:
    early = [{"model_a": "a", "model_b": "b", "winner": "ab"[n % 2]} for n in range(60)]
    late = [{"model_a": "ab"[n % 2], "model_b": "c", "winner": "c" if n % 4 < 2 else "ab"[n % 2]} for n in range(60)]
    strong = [{"model_a": "c", "model_b": "d", "winner": "d" if n % 10 else "c"} for n in range(60)]
    board = vn.rate([*early, *late, *strong])
    assert board.evidence is not None
    rows = [row for row in learning_rows(board.evidence) if row["model"] == "a" and row["elo"] is not None]
    assert len({row["verdicts"] for row in rows}) > 12
    assert max(row["elo"] for row in rows) - min(row["elo"] for row in rows) < 60.0  # and d takes 95 from the mean


def test_calibration_is_of_judgments_that_the_ratings_have_not_seen(board: vn.Board) -> None:
    assert board.evidence is not None
    rows, whole = calibration_rows(board.evidence)
    assert sum(row["judgments"] for row in rows) == whole["judgments"] <= len(votes()) / 2
    assert all(0.5 <= row["stated"] <= 1.0 for row in rows)


def test_reliability_is_drawn_of_scores_and_labels_of_people() -> None:
    rng = random.Random(2)
    rows = [
        {
            "model_a": "oak",
            "model_b": "elm",
            "winner": "model_a" if gap > 0 else "model_b",
            "score_difference": gap,
            "human_winner": "model_a" if gap + rng.gauss(0, 1) > 0 else "model_b",
            "judge": "x",
        }
        for gap in (rng.gauss(0.2, 1) for _ in range(200))
    ]
    whole = specification(vn.rate(rows).plot("reliability"))
    binned = [row for part in parts(whole) if "data" in part for row in values(part, whole) if "judge" in row]
    assert sum({row["x"]: row["rows"] for row in binned}.values()) == 200


def test_cost_is_of_completions_where_they_were_paid_for_else_of_judges(board: vn.Board) -> None:
    assert board.evidence is not None
    judges = (Cost("x", 3_000_000_000, 100), Cost("y", 0, 100))
    models = (Cost("b:Q", 20_000_000, 10), Cost("c", 5_000_000, 10), Cost("unknown", 1, 1))

    def drawn(costs: Costs) -> str:
        made = replace(board, evidence=replace(board.evidence, costs=lambda: costs))  # type: ignore[type-var]
        return json.dumps(specification(made.plot("cost")))

    assert "$3.00 in all" in drawn(Costs(judges, ()))
    assert "Rating against cost" in drawn(Costs(judges, models))
    with pytest.raises(vn.InputError, match="no call cost anything"):
        drawn(Costs((Cost("x", 0, 100),), ()))


def test_names_beside_lines_keep_their_distance() -> None:
    for places, height in (([10.0, 12.0, 13.0], 100.0), ([95.0, 96.0, 97.0], 100.0), ([0.0] * 7, 91.0)):
        found = spread_labels(places, height)
        assert all(below - above >= 13.0 for above, below in pairwise(found))
        assert max(found) <= height


def test_a_kind_that_is_declared_once_is_found_on_each_road(
    board: vn.Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`plot`, a report's figures and reports have no lists of their own."""
    rows = [{"name": "b:Q", "lo": 1.0, "value": 2.0, "hi": 3.0}]
    axis = PlaneAxis("seen", "value", "lo", "hi", str)
    kind = ChartKind(
        "tally",
        verdicts=Drawing(lambda plotted: intervals(rows, "name", [Panel("seen", "value", "lo", "hi")], "Tally")),
        report=lambda document: {**plane(rows, "name", axis, axis), "title": "Tally", "words": "a tally of verdicts"},
    )
    for name in tuple(CHARTS):
        monkeypatch.delitem(CHARTS, name)
    monkeypatch.setitem(CHARTS, "tally", kind)
    for made in (board, vn.audit(votes(), checks=["connectivity"])):
        assert "b:Q" in made.plot("tally").to_json()
        with pytest.raises(vn.InputError, match="draws tally"):
            made.plot("pie")
    assert write_figures(board, tmp_path) == ("tally",)
    assert {one.name for one in tmp_path.iterdir()} == {"tally.json", "tally.svg", "tally.png"}
    table = tmp_path / "votes.json"
    table.write_text(json.dumps(votes()), encoding="utf-8")
    document = report_document(VerdictSource((table,)))
    section = Section("tally", "Tally", [Chart("tally")])
    monkeypatch.setattr("venire.pages.report_page.report_sections", lambda document: [section])
    assert "a tally of verdicts" in report_html(document)


def test_all_kinds_are_known() -> None:
    assert len(plotted_kinds()) == 9
    assert set(DRAWN) | {"reliability", "cost"} == set(plotted_kinds())


def test_the_interval_of_a_cost_holds_the_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(4)
    held = 0
    for _ in range(400):
        prices = rng.lognormal(10.0, 0.6, 16)
        low, high = Cost("a", round(prices.sum()), 16, float(prices.std(ddof=1))).interval(0.95) or (0.0, 0.0)
        assert 0.0 < low < high
        held += low < np.exp(10.0 + 0.6**2 / 2) / 1e9 < high
    assert 0.90 < held / 400 < 0.98
    assert Cost("a", 5, 1, None).interval(0.95) is None
    assert Cost("a", 0, 5, 0.0).interval(0.95) is None


def test_costs_are_of_models_on_one_scale_and_their_frontier_never_falls() -> None:
    models = [{"model": name, "elo": elo, "group": group} for name, elo, group in ROWS_OF_GROUPS]
    rows = cost_rows(
        models, [Cost(name, nano, 4) for name, nano in zip("abcdef", (9, 8, 40, 20, 30, 0), strict=True)], 0.9
    )
    assert [one["model"] for one in rows] == ["d", "e", "c"]
    assert [one["frontier"] for one in rows] == [True, False, True]
    assert cost_rows([], [], 0.95) == []


ROWS_OF_GROUPS = [
    ("a", 1900.0, 1),
    ("b", 1800.0, 1),
    ("c", 1300.0, 2),
    ("d", 1200.0, 2),
    ("e", 1100.0, 2),
    ("f", 900.0, 2),
]
