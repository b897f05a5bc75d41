"""Stores with little in them, or with votes on some models alone: each verb says what there is, or why nothing is."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import venire as vn
from venire.arena.records import Origin
from venire.configs.loading import load_campaign
from venire.pages.report_page import report_html, report_markdown
from venire.reports.board.source import verdict_source
from venire.reports.documents.report import report_document
from venire.reports.plots import plotted_kinds
from venire.session import Session
from venire.storage.store.opening import open_store

Venire = Callable[..., Any]
Write = Callable[..., Path]

EXPORTED = ("battles", "judgments", "replies", "ratings", "preferences", "alpaca-eval", "llm-comparator", "dataset")


@pytest.fixture
def planned(write_campaign: Write) -> Path:
    """A campaign that was planned, of which nothing was asked."""
    path = write_campaign()
    with Session(load_campaign(path)):
        pass
    return path.with_suffix(".duckdb")


@pytest.fixture
def voted(venire: Venire, judged: Write, folder: Path) -> Path:
    """A judged campaign on six models, with people's votes on three of them."""
    path = judged()
    first = json.loads((folder / "instructions.jsonl").read_text(encoding="utf-8").splitlines()[0])["instruction_id"]
    lines = ["annotator,instruction_id,model_a,model_b,winner"]
    for number in range(6):
        for a, b in (("solid", "strong"), ("strong", "terse"), ("solid", "terse")):
            lines.append(f"p{number},{first},{a},{b},{('model_a', 'model_b', 'tie')[(number + len(a)) % 3]}")
    votes = folder / "votes.csv"
    votes.write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = venire("import", "votes", votes, "--as", "crowd", "--store", path)
    assert done.code == 0, done.err
    return path.with_suffix(".duckdb")


@pytest.mark.parametrize("is_planned", [False, True], ids=["empty", "planned"])
def test_an_export_of_nothing_is_a_sentence(venire: Venire, is_planned: bool, tmp_path: Path, request: Any) -> None:
    store = request.getfixturevalue("planned") if is_planned else tmp_path / "empty.duckdb"
    open_store(store).close()
    for number, what in enumerate(EXPORTED):
        ending = (".jsonl", ".csv", "")[(number + is_planned) % 3]  # that a format refuses one is among test_export's
        done = venire("export", store, what, "-o", tmp_path / f"{what}{ending}")
        assert done.code in (0, 2), done.err
        assert not done.code or len(done.err.strip()) > 20
    refused = venire("export", store, "ratings", "-o", tmp_path / "r.csv")
    assert refused.code == 2
    assert not is_planned or "rated model to export" in refused.err


def test_a_plan_of_which_nothing_was_asked_has_a_report_that_says_so(venire: Venire, planned: Path) -> None:
    document = venire("report", planned, "--format", "json").json()
    assert document["answer"]["leader"] is None
    assert document["answer"]["sentence"].startswith("No model can be rated")
    assert document["answer"]["sentence"] in unescape(report_html(document))
    assert "No model can be rated" in report_markdown(document)
    assert vn.audit(planned)._repr_html_()


def test_where_no_verdict_could_be_read_nobody_leads() -> None:
    pairs = [{"model_a": "alpha", "model_b": b, "winner": "", "judge": "j", "instruction": b} for b in ("beta", "c")]
    document = report_document(verdict_source(pairs, origin=Origin.RECORDED))
    assert document["answer"]["leader"] is None
    assert document["answer"]["sentence"].startswith("Nobody leads: no verdict could be read")
    assert document["answer"]["sentence"] in unescape(report_html(document))


def test_methods_are_compared_where_people_voted_on_some_models_alone(venire: Venire, voted: Path) -> None:
    found = venire("rate", voted, "--compare", "--method", "bradley-terry", "--method", "human-elo", "--json").json()
    ranks = {one["model"]: one["rank"] for one in found["models"]}
    assert {name for name, one in ranks.items() if one["human-elo"] is not None} <= {"solid", "strong", "terse"}
    assert {one["bradley-terry"] for one in ranks.values()} == {1, 2, 3, 4, 5, 6}
    alone = {
        one["model"]: one["elo"] for one in venire("rate", voted, "--method", "human-elo", "--json").json()["models"]
    }
    assert {one["model"]: one["elo"]["human-elo"] for one in found["models"] if one["model"] in alone} == alone
    document = venire("report", voted, "--format", "json").json()
    assert "human-elo" in document["methods"]["methods"]
    assert "human-elo" in report_html(document)


def test_every_chart_of_them_is_drawn_or_refused_in_words(planned: Path, voted: Path) -> None:
    drawn: set[str] = set()
    refused: list[tuple[str, str]] = []
    for made in (vn.rate(planned), vn.audit(planned), vn.rate(voted), vn.audit(voted)):
        for kind in (one for one in plotted_kinds() if one not in drawn):
            try:
                assert made.plot(kind).to_json()
            except vn.InputError as error:
                refused.append((kind, str(error)))
            else:
                drawn.add(kind)
    assert drawn >= {"leaderboard", "matrix", "intervals", "judges", "position"}
    assert all(f"no {kind} chart" in text for kind, text in refused)
