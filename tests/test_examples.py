"""The demo in examples/: what a demo that is run today leaves, with the report that its store makes today."""

from __future__ import annotations

import re
import runpy
import shutil
import zlib
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import pytest

from venire.arena.clock import VirtualClock
from venire.cli.options import named_store
from venire.configs.loading import load_campaign
from venire.embedded import Embedded
from venire.pages.report_page import report_html, report_markdown
from venire.reports.board.source import VerdictSource
from venire.reports.documents.report import report_document
from venire.session import Session
from venire.storage.care.checking import check

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "examples" / "demo"
TABLES = ("campaign.toml", "instructions.jsonl", "completions.jsonl", "elo.csv")
AGAIN = "make examples"

VOLATILE = ("made_at", "calls", "basis", "sentence", "first", "last", "command", "input_tokens", "output_tokens")
"""Of a report: its own time, those of the run, and what the retries of a run add to its calls."""


def stable(value: Any) -> Any:
    """A report's document without what differs from run to run."""
    if isinstance(value, dict):
        return {key: stable(one) for key, one in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [stable(one) for one in value]
    return re.sub(r"between .* in 1 run|Python [\d.]+|\d{4}-\d\d-\d\d", "", value) if isinstance(value, str) else value


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A copy of the store in examples/: tests beside this one may have it open."""
    shutil.copytree(DEMO, tmp_path / "demo")
    return named_store(tmp_path / "demo")


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of the store in examples/, of which a report changes nothing."""
    folder = shutil.copytree(DEMO, tmp_path_factory.mktemp("kept") / "demo")
    store = named_store(folder)
    before = store.read_bytes()
    found = report_document(VerdictSource((store,)))
    assert store.read_bytes() == before, "an older schema: " + AGAIN
    return found


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a demo run now; judges are asked in this process, which takes less time and says the same."""
    folder = tmp_path_factory.mktemp("fresh")
    for name in TABLES:
        shutil.copy(ROOT / "configs" / "demo" / name, folder / name)
    with Session(load_campaign(folder / "campaign.toml"), clock=VirtualClock()) as session:
        session.run(environ={}, embedded=Embedded(direct=True))
    return folder / "campaign.duckdb"


def test_the_kept_store_exports_what_a_demo_run_now_does(kept: Path, fresh: Path) -> None:
    digests: Callable[[Path], dict[str, str]] = runpy.run_path(str(ROOT / "examples" / "make_demo.py"))["digests"]
    found = digests(kept)
    assert set(found) == {"battles.jsonl", "judgments.jsonl", "preferences.jsonl"}
    assert found == digests(fresh), AGAIN


def test_the_kept_store_has_the_report_of_a_demo_run_now(document: dict[str, Any], fresh: Path) -> None:
    other = report_document(VerdictSource((fresh,)))
    assert stable(document) == stable(other), AGAIN
    assert document["repeat"]["verdicts_sha256"] == other["repeat"]["verdicts_sha256"]
    assert document["answer"]["leader"] == "strong"


@pytest.mark.parametrize(("name", "render"), [("report.html", report_html), ("report.md", report_markdown)])
def test_the_kept_report_is_what_the_kept_store_makes(
    document: dict[str, Any], name: str, render: Callable[..., str]
) -> None:
    command = f"venire report examples/demo -o examples/demo/{name}"
    made = render({**document, "repeat": {**document["repeat"], "command": command}})
    text = (DEMO / name).read_text(encoding="utf-8")
    day = re.findall(r"\d{4}-\d\d-\d\d", text)[-1]
    own = rf"{day}|{document['made_at'][:10]}|\d\d:\d\d:\d\d UTC|Python [\d.]+"
    assert escape(command) in text
    assert re.sub(own, "", text) == re.sub(own, "", made), AGAIN


def test_what_is_kept_is_small_sound_and_of_today_s_schema(kept: Path) -> None:
    for name in TABLES:
        assert (DEMO / name).read_bytes() == (ROOT / "configs" / "demo" / name).read_bytes(), AGAIN
    content = kept.read_bytes()
    assert len(content) < 2_000_000
    assert len(zlib.compress(content)) < 400_000
    assert check(kept, full=True).sound
    assert {one.name for one in kept.parent.iterdir()} == {*TABLES, kept.name, "report.html", "report.md"}


def test_nothing_kept_names_the_machine_that_made_it() -> None:
    for path in DEMO.iterdir():
        content = path.read_bytes()
        assert not [place for place in (b"/tmp/", b"/home/", b"/root", b"/Users/", b"/work") if place in content]


def test_the_table_of_answers_is_the_demo_s(tmp_path: Path) -> None:
    runpy.run_path(str(ROOT / "examples" / "make_demo.py"))["write_answers"](tmp_path / "answers.csv")
    assert (tmp_path / "answers.csv").read_bytes() == (ROOT / "examples" / "answers.csv").read_bytes(), AGAIN
