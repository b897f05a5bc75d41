"""Verdicts of a table in memory are rated as those of a file, and a board becomes a table again."""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import venire as vn

STRENGTH = {"oak": 3, "elm": 2, "ash": 1}


def verdicts() -> list[dict[str, Any]]:
    draw = random.Random(1)
    found = []
    for item in range(60):
        a, b = draw.sample(list(STRENGTH), 2)
        won = draw.random() < STRENGTH[a] / (STRENGTH[a] + STRENGTH[b])
        found.append(
            {"model_a": a, "model_b": b, "winner": "model_a" if won else "model_b", "instruction_id": item % 20}
        )
    return [*found[:3], {**found[3], "winner": None}, *found[4:]]


def columns() -> dict[str, list[Any]]:
    return {name: [row[name] for row in verdicts()] for name in verdicts()[0]}


def pandas_frame() -> Any:
    return pytest.importorskip("pandas").DataFrame(verdicts()).astype({"instruction_id": "float64"})


def polars_frame() -> Any:
    return pytest.importorskip("polars").DataFrame(verdicts())


def arrow_table() -> Any:
    return pytest.importorskip("pyarrow").Table.from_pylist(verdicts())


class ArrowLike:
    """A table with the methods that are used of Arrow's."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.schema = SimpleNamespace(names=list(columns))
        self.columns = [np.array(column, dtype=object) for column in columns.values()]

    def to_pydict(self) -> None: ...


class PandasLike(dict[str, Any]):
    """A table of columns in which a missing cell is NaN, and so a whole number is a float."""


MAKERS: list[Callable[[], Any]] = [
    verdicts,
    columns,
    lambda: {name: np.array(column, dtype=object) for name, column in columns().items()},
    lambda: PandasLike(columns(), instruction_id=[float(one) for one in columns()["instruction_id"]]),
    lambda: ArrowLike(columns()),
    pandas_frame,
    polars_frame,
    arrow_table,
]


@pytest.mark.parametrize("make", MAKERS)
def test_a_table_in_memory_makes_the_board_of_the_file_with_its_rows(make: Callable[[], Any], tmp_path: Path) -> None:
    path = tmp_path / "votes.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in verdicts()), encoding="utf-8")
    board = vn.rate(make())
    assert board.to_json() == vn.rate(path).to_json()
    assert [row.model for row in board.models] == ["oak", "elm", "ash"]
    assert board.diagnostics.counts.statuses["unreadable"] == 1


def test_other_names_conditions_ballots_and_nested_cells_are_read_as_in_a_file(tmp_path: Path) -> None:
    named = [{**{f"x_{name}": cell for name, cell in row.items()}, "kind": n % 2} for n, row in enumerate(verdicts())]
    mapping = {name: f"x_{name}" for name in verdicts()[0]}
    games = [{"score": "A>B"}, {"score": "B>A"}]
    arena = [{"uid": f"q{n}", "model": "m", "baseline": "b", "judge": "j", "games": games} for n in range(3)]
    ballots = [
        {"model": name, "rank": 1 + (place + n) % 3, "instruction_id": n}
        for n in range(5)
        for place, name in enumerate(STRENGTH)
    ]
    calls: list[tuple[list[dict[str, Any]], dict[str, Any]]] = [
        (named, {"mapping": mapping, "where": {"kind": "1"}}),
        (arena, {}),
        (ballots, {"method": "borda"}),
    ]
    for rows, settings in calls:
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        assert vn.rate(rows, **settings).to_json() == vn.rate(path, **settings).to_json()
    as_floats = [{**row, "kind": 7.0} for row in verdicts()]
    assert vn.rate(as_floats, where={"kind": "7"}).to_json() == vn.rate(verdicts()).to_json()
    assert vn.compare(verdicts(), methods=("bradley-terry", "borda")).kendall == (1.0, 1.0)
    assert vn.audit(columns(), checks=["connectivity"]).findings[0].worry is False


ROW = {"model_a": "oak", "model_b": "elm", "winner": "tie"}


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ([], "nothing was named"),
        (5, "cannot be read from int: give the path"),
        ([ROW, "votes.csv"], "cannot be read from list"),
        ({}, "the table has no columns"),
        ({"model_a": []}, "the table has no rows"),
        ({"model_a": ["oak"], "model_b": []}, 'column "model_b" has 0 rows and "model_a" 1'),
        ({"model_a": "oak"}, 'column "model_a" is str, not a list of cells'),
        ({"left": ["oak"], "right": ["elm"]}, 'no column "model_a"; columns found: left, right.* mapping='),
        ([ROW, {**ROW, "winner": "ash"}], 'the table: row 2: "winner" is "ash"; accepted'),
        ([{**ROW, "model_a": b"oak"}], 'row 1: "model_a" holds bytes'),
        ([{**ROW, "model_a": ["oak"]}], 'column "model_a" holds struct, not text'),
        (SimpleNamespace(collect=None), "give table.collect"),
    ],
)
def test_a_bad_table_is_refused_with_its_column_or_row(table: Any, problem: str) -> None:
    with pytest.raises(vn.InputError, match=problem):
        vn.rate(table)


def test_options_are_keywords() -> None:
    plain = vn.rate(verdicts())
    board = vn.rate(verdicts(), method="bradley-terry", ridge=1.0, ties="drop", anchors={"oak": 1200}, level=0.9)
    options = vn.Options(ridge=1.0, ties="drop", anchors={"oak": 1200}, level=0.9)
    assert board.to_json() == vn.rate(verdicts(), options=options).to_json() != plain.to_json()
    assert vn.rate(verdicts(), level=0.9, options=vn.Options(ridge=1.0)).diagnostics.level == 0.9
    with pytest.raises(vn.InputError, match="level is"):
        vn.rate(verdicts(), level=2)


def test_a_store_that_this_process_has_open_can_be_rated(judged: Callable[..., Path]) -> None:
    path = judged().with_suffix(".duckdb")
    before = vn.rate(path).to_json()
    with vn.open_store(path) as store:
        assert vn.rate(path).to_json() == vn.rate(store).to_json() == before
        assert vn.audit(store, checks=["connectivity"]).findings
        assert store.rows("last_batch")  # it was not closed
    assert vn.rate(store).to_json() == before


def test_a_campaign_names_its_store(judged: Callable[..., Path]) -> None:
    path = judged()
    board = vn.rate(path.with_suffix(".duckdb")).to_json()
    assert vn.rate(path).to_json() == vn.rate(str(path.parent)).to_json() == board
    assert vn.rate(vn.load_campaign(path)).to_json() == board
    assert vn.audit(path, checks=["connectivity"]).findings


def test_a_board_is_rows_and_an_html_table_with_every_text_escaped() -> None:
    board = vn.rate([{**ROW, "model_a": "<b>bold</b>"}, {**ROW, "winner": "oak"}])
    assert [row["model"] for row in board.rows()] == [row.model for row in board.models]
    assert all(list(row) == list(board.rows()[0]) for row in board.rows())
    assert {"elo", "lo", "hi", "rank_lo", "group", "reference"} <= board.rows()[0].keys()
    page = board._repr_html_()
    assert "<b>" not in page
    assert "&lt;b&gt;bold&lt;/b&gt;" in page
    assert "recorded" in page


@pytest.mark.parametrize(
    ("library", "method"), [("pandas", "to_pandas"), ("polars", "to_polars"), ("pyarrow", "to_arrow")]
)
def test_a_board_is_a_table_of_each_library_or_its_absence_is_named(
    library: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = vn.rate(verdicts(), method="elo")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, library, None)
        with pytest.raises(vn.InputError, match=f"needs {library}, which is not installed: pip install {library}"):
            getattr(board, method)()
    pytest.importorskip(library)
    table = getattr(board, method)()
    assert vn.rate(verdicts(), method="elo").rows() == board.rows()
    names = table.schema.names if library == "pyarrow" else list(table.columns)
    models = table["model"].to_pylist() if library == "pyarrow" else table["model"].to_list()
    assert (names, models) == (list(board.rows()[0]), ["oak", "elm", "ash"])


def test_a_model_that_won_everything_is_first_in_every_form_of_a_board_with_a_bound() -> None:
    won = [{"model_a": "zebra", "model_b": name, "winner": "zebra"} for name in STRENGTH for _ in range(5)]
    lost = [{"model_a": "ant", "model_b": name, "winner": name} for name in STRENGTH for _ in range(5)]
    rows = [{**row, "instruction_id": n} for n, row in enumerate([*verdicts(), *won, *lost])]
    board = vn.rate(rows)
    names = [row["model"] for row in board.rows()]
    assert (names[0], names[-1]) == ("zebra", "ant")
    assert names == [row["model"] for row in board.to_json()["models"]]
    assert board.models[0].lo is not None
    page = board._repr_html_()
    assert re.search(rf">1</td><th[^>]*><bdi>zebra</bdi></th><td[^>]*>over {board.models[0].lo:.0f}</td>", page)
    assert re.search("<bdi>ant</bdi></th><td[^>]*>under ", page)
    assert "ridge 0.1" in page
    assert all(row.elo is not None for row in vn.rate(rows, ridge=0.1).models)
