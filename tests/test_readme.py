"""The pages at the door tell the truth: what they show runs, what they name exists."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import venire
from venire.cli import app

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(ROOT.glob("docs/*.md"))
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
LINK = re.compile(r"\]\(([^)\s]+)\)")
OWN_BATTLES = """\
model_a,model_b,winner,judge,instruction_id
cedar,maple,model_a,ann,q1
cedar,maple,model_b,ann,q2
cedar,oak,model_a,ann,q1
oak,cedar,model_a,ann,q2
maple,oak,tie,ann,q1
oak,maple,model_b,ann,q3
oak,maple,,ann,q4
"""


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def first(language: str, page: str) -> str:
    """The first fenced block of a language on a page."""
    return next(text for name, text in FENCED.findall(read(page)) if name == language)


def commands(page: str) -> Iterator[str]:
    """Every `venire VERB ...` of a page, in code of either form, without the remark behind it."""
    code = [line for name, text in FENCED.findall(page) if name == "console" for line in text.splitlines()]
    code += INLINE.findall(FENCED.sub("", page))
    for line in code:
        if line.startswith("venire "):
            yield line.partition("  #")[0].strip()


def shape(value: Any) -> Any:
    """The names of a JSON document without its values; of a list, those of its first entry."""
    if isinstance(value, dict):
        return {name: shape(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [shape(entry) for entry in value[:1]]
    return None


def anchors(page: Path) -> set[str]:
    """The names under which a page's headings are reached."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which `venire demo` has left its files, and where the test now is."""
    (tmp_path / "venire-demo").mkdir()
    for name in ("campaign.toml", "instructions.jsonl", "completions.jsonl", "elo.csv"):
        shutil.copy(str(files("venire.configs.demo").joinpath(name)), tmp_path / "venire-demo" / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "venire-demo"


@pytest.mark.usefixtures("direct_judges")
def test_the_python_example_runs_and_its_store_answers_the_queries(
    demo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = "docs/python.md"
    exec(compile(first("python", page), page, "exec"), {"__name__": "__main__"})
    said = capsys.readouterr().out
    assert "complete 180 of 180" in said
    assert "verdicts: simulated" in said
    statements = [one for one in first("sql", "docs/storage.md").split(";") if one.strip()]
    assert len(statements) == 3
    with duckdb.connect(str(demo / "short.duckdb"), read_only=True) as store:
        for statement in statements:
            assert store.execute(statement).fetchall(), f"nothing comes of {statement}"


@pytest.mark.usefixtures("direct_judges")
def test_the_front_page_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(ROOT / "examples" / "answers.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    planned, ended = (text for name, text in FENCED.findall(read("README.md")) if name == "text")
    words = ("judge", "answers.csv", "--judge")
    asked = CliRunner().invoke(app, [*words, "openai:gpt-4.1-mini", "--budget", "2"]).output
    assert [line for line in planned.splitlines() if line not in asked] == []
    done = CliRunner().invoke(app, [*words, "simulated", "--yes"]).output
    assert [line for line in ended.splitlines() if line.removesuffix("...") not in done] == []


def test_the_board_shown_is_the_demo_s(demo: Path) -> None:
    shutil.copy(ROOT / "examples" / "demo" / "campaign.duckdb", demo)  # what a demo leaves: tests/test_examples.py
    result = CliRunner().invoke(app, ["run", str(demo / "campaign.toml"), "--yes"])
    assert result.exit_code == 0, result.output
    printed = [line.rstrip() for line in result.output.splitlines()]
    shown = [line for line in first("text", "docs/campaigns.md").splitlines() if line and line != "..."]
    assert len(shown) > 12
    assert [line for line in shown if line not in printed] == []


def test_the_json_shown_has_the_shape_of_a_real_one(tmp_path: Path) -> None:
    table = tmp_path / "battles.csv"
    table.write_text(OWN_BATTLES, encoding="utf-8")
    board = venire.rate(table).to_json()
    page = (ROOT / "docs" / "documents.md").read_text(encoding="utf-8")
    text = next(block for language, block in FENCED.findall(page) if language == "json")
    assert shape(json.loads(text)) == shape(board)
    assert json.loads(text)["diagnostics"] == board["diagnostics"]


def test_every_command_and_option_named_is_in_the_help(monkeypatch: pytest.MonkeyPatch) -> None:
    built = get_command(app)  # by typer, for every call anew
    monkeypatch.setattr("typer.testing._get_command", lambda _: built)
    named = {command for page in PAGES for command in commands(page.read_text(encoding="utf-8"))}
    assert len(named) > 12
    runner = CliRunner()
    verbs = set(re.findall(r"^  ([a-z-]+)  ", runner.invoke(app, ["--help"]).output.partition("Start:")[2], re.M))
    for command in sorted(named):
        words = command.split()[1:]
        assert words[0] in verbs, f"no such verb: {command}"
        path = words[:2] if words[0] in ("batch", "import", "prompts", "store") else words[:1]
        explained = runner.invoke(app, [*path, "--help"])
        assert explained.exit_code == 0, command
        for option in (word for word in words if word.startswith("--")):
            assert re.search(rf"{option}\b", explained.output), f"no such option: {command}"
    assert verbs == {command.split()[1] for command in named}, "a verb is named nowhere"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for link in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.is_file(), f"{page.name}: {link}"
        assert target.is_relative_to(ROOT), f"{page.name}: {link} leaves the repository"
        assert not anchor or anchor in anchors(target), f"{page.name}: no heading {link}"


ROOMS = ("arena", "configs", "judges", "storage", "ratings", "orchestrator", "simulation", "reports", "pages", "venire")
PART = re.compile(rf"(?:{'|'.join(ROOMS)}|tests|benchmarks|examples)/[\w/.-]*")


@pytest.mark.parametrize("page", PAGES[:2] + PAGES[3:], ids=lambda page: page.name)  # the changelog names what is gone
def test_every_part_of_the_house_that_is_named_is_there(page: Path) -> None:
    named = [text.partition("::")[0] for text in INLINE.findall(FENCED.sub("", page.read_text(encoding="utf-8")))]
    parts = [name for name in named if PART.fullmatch(name)]
    assert [name for name in parts if not (ROOT / name).exists()] == []


def test_the_rooms_of_the_architecture_are_those_of_the_house() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert [room for room in ROOMS if f"`{room}" not in page] == []


def test_no_figure_of_agreement_stands_without_its_origin() -> None:
    for page in PAGES:
        for line in page.read_text(encoding="utf-8").splitlines():
            if re.search(r"(Pearson|Spearman|MAE) \d", line):
                assert "verdicts: " in line, f"{page.name}: {line}"


def test_the_exit_codes_are_those_of_the_code() -> None:
    from venire.orchestrator.recording.ending import EXIT_CODES

    table = {int(code) for code in re.findall(r"^\| (\d+) \|", read("docs/campaigns.md"), re.M)}
    assert table == {*EXIT_CODES.values(), 2}
    assert "130 interrupted" in CliRunner().invoke(app, ["run", "--help"]).output


def test_the_readme_stays_short() -> None:
    assert len(read("README.md").split()) < 900


def test_every_promise_names_a_test_that_is_there() -> None:
    text = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
    named: list[tuple[str, str]] = []
    for file, name in re.findall(r"`(tests/[\w/]+\.py)?(?:::(\w+))?`", text):
        if file or name:
            named.append((file or named[-1][0], name))
    assert len(named) > 30
    for file, name in named:
        content = (ROOT / file).read_text(encoding="utf-8")
        assert f"def {name}(" in content if name else content, f"{file} has no {name}"
