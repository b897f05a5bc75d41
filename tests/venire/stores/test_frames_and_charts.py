"""Frames, HTML and charts of what a store gives: boards, audits, placements and comparisons."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import venire as vn
from venire.arena.battles import Battles
from venire.arena.wording import money
from venire.storage.read.frames import battles_in_time, campaigns

LIBRARIES = [("pandas", "to_pandas"), ("polars", "to_polars"), ("pyarrow", "to_arrow")]


@pytest.fixture
def store(judged: Callable[..., Path]) -> Path:
    return judged().with_suffix(".duckdb")


def placed(store: Path) -> Any:
    with vn.open_store(store) as opened:
        name = vn.rate(opened).models[-1].model
    found = vn.place(name, on=store, battles=12)
    assert found is not None
    return found


def columns(table: Any) -> dict[str, list[Any]]:
    """The columns of a table of any of the libraries, with None for what is missing."""
    if hasattr(table, "to_pydict"):
        return dict(table.to_pydict())
    if hasattr(table, "iter_columns"):
        return {one.name: one.to_list() for one in table.iter_columns()}
    whole = table.astype(object).where(table.notna(), None)
    return {name: list(whole[name]) for name in whole.columns}


MADE: list[Any] = []


@pytest.fixture
def results(store: Path) -> list[Any]:
    """A board, an audit, a placement and a comparison, made once for all tests that read them."""
    if not MADE:
        compared = vn.compare(store, methods=("bradley-terry", "kemeny"))
        MADE.extend([vn.rate(store), vn.audit(store), placed(store), compared])
    return MADE


def test_a_library_that_is_not_installed_is_named(results: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for library, method in LIBRARIES:
        monkeypatch.setitem(sys.modules, library, None)
        for one in results:
            with pytest.raises(vn.InputError, match=f"needs {library}, which is not installed: pip install {library}"):
                getattr(one, method)()


@pytest.mark.parametrize(("library", "method"), LIBRARIES)
def test_each_result_is_a_table_of_each_library(library: str, method: str, results: list[Any]) -> None:
    pytest.importorskip(library)
    board, audit, place, compared = (columns(getattr(one, method)()) for one in results)
    assert board["model"] == [row["model"] for row in results[0].rows()]
    assert audit["check"] == [one.check for one in results[1].findings]
    assert audit["worry"] == [one.worry for one in results[1].findings]
    assert place["elo"] == pytest.approx([row["elo"] for row in results[2].rows()])
    assert compared["kemeny elo"] == [None] * len(compared["model"])


def test_each_result_shows_itself_in_a_notebook_with_every_text_escaped(results: list[Any]) -> None:
    board, audit, placement, _ = results
    assert board.models[0].model in board._repr_html_()
    assert all(f"<bdi>{one.check}</bdi>" in audit._repr_html_() for one in audit.findings)
    assert "<bdi>the board held</bdi>" in placement._repr_html_()
    names = ("<i>one</i>", "two")
    rows = [{"model_a": names[n % 2], "model_b": names[1 - n % 2], "winner": names[n % 3 % 2]} for n in range(12)]
    compared = vn.compare(rows, methods=("bradley-terry", "borda"))
    for one in (vn.audit(rows), compared):
        assert "<i>" not in one._repr_html_()
    assert "&lt;i&gt;one" in compared._repr_html_()


def test_worries_come_first_in_an_audit_s_page(results: list[Any]) -> None:
    page = results[1]._repr_html_()
    words = [cell.split("</td>")[0] for cell in page.split('<tr><td class="n">')[1:]]
    order = ("WORRY", "unsure", "fine", "-")
    assert words == sorted(words, key=order.index)


def test_the_kinds_of_a_store_s_board_are_drawn_and_its_session_has_the_same(judged: Callable[..., Path]) -> None:
    path = judged()
    board = vn.rate(path)
    with vn.Session(path) as session:
        same = session.board()
        inside = same.plot("learning").to_json()
    for kind in ("leaderboard", "matrix", "intervals", "judges", "position"):
        assert json.loads(board.plot(kind).to_json())["$schema"]
    assert inside == board.plot("learning").to_json()


def test_learning_is_in_the_order_in_which_verdicts_were_given(store: Path) -> None:
    with vn.open_store(store) as opened:
        timed = battles_in_time(opened, campaigns(opened)[0].id)
    given = dict(zip(keys(timed.battles), timed.seconds.tolist(), strict=True))
    for one in (vn.rate(store), vn.audit(store)):
        assert one.evidence is not None
        assert one.evidence.in_time is not None
        times = [given[key] for key in keys(one.evidence.in_time())]
        assert times == sorted(given.values())
        assert times[0] < times[-1]


def keys(battles: Battles) -> list[tuple[Any, ...]]:
    """What was shown to whom, one a verdict."""
    names = zip(battles.model_a, battles.model_b, battles.judge, battles.instruction, strict=True)
    models = [
        ({battles.models[a], battles.models[b]}, battles.judges[judge], battles.instructions[text])
        for a, b, judge, text in names
    ]
    first = np.where(battles.swapped, battles.model_b, battles.model_a)
    return [
        (*sorted(both), judge, text, battles.models[code])
        for (both, judge, text), code in zip(models, first, strict=True)
    ]


def test_cost_is_drawn_where_a_call_had_a_price(judged: Callable[..., Path]) -> None:
    with pytest.raises(vn.InputError, match="no cost chart: no call cost anything"):
        vn.rate(judged()).plot("cost")
    priced = vn.rate(judged(name="priced.toml", instructions=1, judge="price = { input = 3.0, output = 15.0 }"))
    assert priced.evidence is not None
    assert priced.evidence.costs is not None
    costs = priced.evidence.costs().judges
    assert sum(one.count for one in costs) == priced.diagnostics.counts.verdicts
    assert f"Cost of judges: {money(sum(one.nano for one in costs))} in all" in priced.plot("cost").to_json()


def test_a_placement_draws_the_board_with_the_model_its_ratings_and_people_s_scale(results: list[Any]) -> None:
    placement = results[2]
    board = json.loads(placement.plot("leaderboard").to_json())
    assert placement.settings.model in json.dumps(board["title"])
    bases = [row["basis"] for row in placement.rows()]
    assert bases[:2] == ["held", "held with the board's error"]
    assert all(name in placement.plot("intervals").to_json() for name in bases)
    with pytest.raises(vn.InputError, match="this placement has no learning chart; this placement draws leaderboard"):
        placement.plot("learning")


def test_each_result_is_its_rows_and_prints_its_beginning_in_ten_lines(results: list[Any]) -> None:
    for one in results:
        assert list(one) == one.rows()
        assert len(one) == len(one.rows()) > 0
        assert all(row.keys() == one.rows()[0].keys() for row in one)
        assert one.to_json()
        lines = repr(one).splitlines()
        assert 2 < len(lines) <= 10
        assert max(map(len, lines)) <= 100
    board, audit, *_ = results
    assert all(row.model in repr(board) for row in board.models[:5])
    assert "rows()" in repr(audit)


def test_names_in_what_a_result_prints_steer_no_terminal() -> None:
    rows = [{"model_a": "a\x1b[31m", "model_b": "b" * 200, "winner": "tie"} for _ in range(4)]
    shown = repr(vn.rate(rows, ridge=1.0))
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_a_chart_without_a_kind_is_the_first_that_there_is_data_for(results: list[Any]) -> None:
    for one, kind in zip(results[:3], ("leaderboard", "matrix", "leaderboard"), strict=True):
        assert one.plot().to_json() == one.plot(kind).to_json()


def test_a_method_is_understood_as_python_would_spell_it(store: Path) -> None:
    board = vn.rate(store, method="Bradley_Terry")
    assert board.method == "bradley-terry"
    assert vn.compare(store, methods=["m_elo", "kemeny"]).methods == ("m-elo", "kemeny")
    assert [one.verdict for one in vn.parse(["[[A]]"], dialect="MT_bench")] == ["first"]
