"""A check of the audit is declared once: one that is added to the registry is found on every road without more."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from rich.console import Console

import venire
from venire.live.library import Library
from venire.pages.registry import PAGES
from venire.pages.report_page import report_html, report_markdown
from venire.pages.views import audit as audit_view
from venire.render.sections import show
from venire.reports.audit.audit import CHECKS
from venire.reports.audit.finding import Calls, Case, Check, CheckResult, check
from venire.reports.board.source import VerdictSource
from venire.reports.documents.boards import audit_document, read_for_audit, read_for_board
from venire.reports.documents.report import report_document

DOCS = Path(__file__).resolve().parent.parent.parent / "docs" / "audit.md"


@check("wet-paint", "at most", 0.25, "Is the paint dry?", unless="rain", scope="judges", calls=("flips",))
def wet_paint(case: Case) -> CheckResult:
    return CheckResult(True, 0.5, f"the paint of {len(case.battles.judges)} judges <b>is wet</b>")


@pytest.fixture
def store(judged: Callable[..., Path]) -> Iterator[Path]:
    every = dict(CHECKS)
    for name in set(CHECKS) - {"connectivity", "order-effects"}:
        del CHECKS[name]  # the others take time, and are not what is looked at
    CHECKS["wet-paint"] = wet_paint
    yield judged().with_suffix(".duckdb")
    CHECKS.clear()
    CHECKS.update(every)  # in their order


def text_of(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_python_json_terminal_and_notebook_have_a_check_that_was_added(store: Path) -> None:
    found = venire.audit(store)
    assert "wet-paint" in [one.check for one in found.worries]
    (row,) = [one for one in found.to_json()["findings"] if one["check"] == "wet-paint"]
    assert (row["threshold"], row["harmless"], row["unless"], row["word"]) == (0.25, "at most", "rain", "worry")
    stream = io.StringIO()
    show(Console(file=stream, width=200), found.sections())
    assert re.search(r"WORRY +wet-paint +0.5 +<= 0.25 or rain +the paint of \d judges <b>is wet</b>", stream.getvalue())
    assert "&lt;b&gt;is wet&lt;/b&gt;" in found._repr_html_()


def test_pages_have_a_check_that_was_added_with_its_question_and_its_calls(store: Path) -> None:
    library = Library.of_paths([store])
    (served,) = library.stores.values()
    with served.store() as opened:
        here = served.context(opened, 1, token="", live=None)
        here.table.refresh(at_once=True)
        document = audit_document(*read_for_audit(opened, here.campaign))
        board = read_for_board(opened, here.campaign, None, "", "")[0].board().to_json()
        asked = replace(here, board=lambda: board, audit=lambda: document, audit_at_hand=lambda: document)
        page, judges = PAGES["audit"].html(asked), PAGES["judges"].html(asked)
        link = here.links.calls(flipped=True)
    library.close()
    (line,) = [one for one in page.split("<tr>") if "wet-paint" in one]
    assert "Is the paint dry?" in line
    assert "at most 0.25 or rain" in text_of(line)
    assert link.replace("&", "&amp;") in line
    for one in (page, judges):
        assert "Is the paint dry?" in one
        assert "&lt;b&gt;is wet&lt;/b&gt;" in one


def test_reports_have_a_check_that_was_added(store: Path) -> None:
    document = report_document(VerdictSource((store,)))
    assert document["audit"]["findings"][0]["asks"] == "Is the paint dry?"
    page, markdown = report_html(document), report_markdown(document)
    assert "&lt;b&gt;is wet&lt;/b&gt;" in page
    assert "Is the paint dry?" in page
    assert "Is the paint dry?" in markdown
    assert "<b>is wet" not in markdown


def test_every_set_of_calls_that_a_check_may_name_has_a_link() -> None:
    assert set(audit_view.CALLS) == set(get_args(Calls))


def test_the_documentation_lists_every_check_in_order_with_its_threshold() -> None:
    rows = [line.split(" | ") for line in DOCS.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    told = {row[0].strip("|` "): row[1] for row in rows[: len(CHECKS)]}
    assert list(told) == list(CHECKS)
    assert not [name for name, one in CHECKS.items() if bound(one) not in told[name]]


def bound(one: Check) -> str:
    return f"{one.harmless} {one.threshold:g}"
