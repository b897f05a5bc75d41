"""`venire rate --report`: the report is of the board that is shown, whatever was asked for.

Options are those that the command has: one that is added without an example here fails a test.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from venire.cli import app
from venire.cli.help import FIGURES
from venire.pages.report_page import report_html, report_markdown
from venire.reports.figure_tables import FIGURE_TABLES

Venire = Callable[..., Any]

OF_THE_OUTPUT = {"--json", "--report", "--compare", "--help"}

TOGETHER = (
    "--ridge 0.1 --anchor m1=1500 --where extra=1 --value tie= --format table --map winner=said --judge-weight j1=2 "
    "--own exclude --reference {reference} --level 0.8 --errors sandwich --cluster none --pairs given",
    "--merge strict --flips drop --ties drop --origin simulated --bootstrap 20 --seed 9",
    "--method am-elo --restarts 1 --habit ties --ability-ridge 1 --human j2",
    "--method stable-arena --least-verdicts 2 --least-ability 0.01 --until-stable",
    "--method covariates --covariate extra",
    "--method elo --order given --k 8",
    "--method kemeny --seconds 5",
)
"""Words that change a board of the table, as many at a time as one method takes."""
FIGURES_ASKED = (
    "--folds 3 --steady 0.34 --contrast m1 m3 --half-width 20 --positions --people --reference {reference} "
    "--threshold 0.1 --learning-curve --ascents 2 --learning-rate 0.5 --epochs 40"
)

OF_OTHER_SOURCES = {
    "--campaign": "a store with several",
    "--both-bad": "files with such verdicts",
    "--baseline": "files that do not name it",
    "--unranked": "ballots",
    "--human-ties": "scores",
    "--conformal": "scores",
    "--ablation": "four judges with a rating",
    "--accuracy-baseline": "grades",
    "--unattempted": "grades",
}


@cache
def options() -> dict[str, Any]:
    """The options of `venire rate` by their first flag."""
    from typer.main import get_command

    (command,) = [one for name, one in get_command(app).commands.items() if name == "rate"]  # type: ignore[attr-defined]
    return {one.opts[0]: one for one in command.params if one.param_type_name == "option"}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four models, three judges (one of them a model), both orders twice, some contradicting, and a column more."""
    folder = tmp_path_factory.mktemp("rated")
    lines = ["first,second,verdict,said,judge,instruction_id,repeat,extra"]
    for item in range(8):
        for a, b in (("m1", "m2"), ("m1", "m3"), ("m1", "m4"), ("m2", "m3"), ("m2", "m4"), ("m3", "m4")):
            for judge in ("j1", "j2", "m4"):
                for repeat in (1, 2):
                    for first, second in ((a, b), (b, a)):
                        draw = (item * 7 + len(lines) * 5 + repeat) % 11
                        won = "tie" if draw == 0 else b if draw < 4 else a if draw < 10 else first
                        said = "tie" if won == "tie" else "model_a" if won == first else "model_b"
                        lines.append(f"{first},{second},{said},{said},{judge},q{item},{repeat},{draw % 3}")
    path = folder / "votes.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "reference.csv").write_text("model,elo\nm1,1300\nm2,1200\nm3,1100\nm4,1000\n", encoding="utf-8")
    return path


def of_figures() -> set[str]:
    """The options that add figures below a board."""
    return {flag for flag, one in options().items() if one.rich_help_panel == FIGURES}


def flags(line: str) -> set[str]:
    """The options in a line of words."""
    return {word for word in line.split() if word.startswith("--")}


def test_every_option_of_rate_has_an_example_here() -> None:
    tried = set().union(*map(flags, (*TOGETHER, FIGURES_ASKED)))
    assert options().keys() - OF_THE_OUTPUT == tried | OF_OTHER_SOURCES.keys()
    assert of_figures() - OF_OTHER_SOURCES.keys() <= flags(FIGURES_ASKED)


def rated(venire: Venire, table: Path, line: str) -> tuple[Any, Any]:
    """The board that one command shows, and the document of its report, which is of that board."""
    words = line.format(reference=table.with_name("reference.csv")).split()
    out = table.with_name("r.json")
    done = venire("rate", table, "--json", *words, "--report", out)
    assert done.code == 0, done.err
    board, document = done.json(), json.loads(out.read_text(encoding="utf-8"))
    assert document["board"]["seen"]
    assert {**document["board"], **board} == document["board"]
    assert document["board"].keys() - board.keys() == {"seen"}
    return board, document


@pytest.mark.parametrize("line", TOGETHER, ids=lambda line: line.split()[0])
def test_the_report_is_of_the_board_that_is_shown(venire: Venire, table: Path, line: str) -> None:
    _, document = rated(venire, table, line)
    asked = " ".join(document["asked"]).split()
    how = " ".join(document["how"])
    for flag in flags(line) - of_figures() - {"--method", "--seed"}:
        assert flag in asked
        assert flag in how


@pytest.mark.parametrize("line", TOGETHER[:3], ids=lambda line: line.split()[0])
def test_a_report_takes_the_options_of_ratings_itself(venire: Venire, table: Path, line: str) -> None:
    words = line.format(reference=table.with_name("reference.csv")).split()
    out = table.with_name("report.json")
    made = venire("report", table, *(word.replace("--format", "--file-format") for word in words), "-o", out)
    assert made.code == 0, made.err
    document = json.loads(out.read_text(encoding="utf-8"))
    board = venire("rate", table, "--json", *words).json()
    assert {**document["board"], **board} == document["board"]
    assert flags(line) - {"--method", "--seed"} <= {*" ".join(document["asked"]).replace("-file", "").split()}


def test_every_figure_has_a_table_that_a_report_shows(venire: Venire, table: Path) -> None:
    board, document = rated(venire, table, FIGURES_ASKED)
    facts = board["diagnostics"]
    assert facts.keys() >= FIGURE_TABLES.keys() - {"ablation"}
    assert (facts["prediction"]["folds"], facts["contrast"]["model"]) == (3, "m1")
    assert {one["kind"] for one in facts["robustness"]["methods"]} == {"random", "equal", "flip", "mixed"}
    assert len(document["figures"]) >= len(FIGURE_TABLES) - 1
    assert any("ratings known before, over 4" in one for one in document["notes"])
    page, text = " ".join(report_html(document).split()), report_markdown(document)
    for one in document["figures"]:
        assert f"### {one['title'].split('  ')[0]}" in text
        assert " ".join(one["title"].split()) in page
        assert all(cell in page for row in one["rows"] for cell in row)
        assert all(line in unescape(page) for line in one["notes"])
