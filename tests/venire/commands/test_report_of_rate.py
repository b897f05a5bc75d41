"""`venire rate --report`: the report is of the board that is shown, whatever was asked for.

Options are those that the command has: one that is added without an example here fails a test.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape

from venire.cli import app
from venire.cli.help import FIGURES
from venire.reports.figure_tables import FIGURE_TABLES, figure_tables

Venire = Callable[..., Any]

OF_THE_OUTPUT = {"--json", "--report", "--compare", "--help"}

EXAMPLES: dict[str, tuple[str, ...]] = {
    "--method": ("win-rate",),
    "--ridge": ("0.1",),
    "--anchor": ("m1=1500",),
    "--covariate": ("extra", "--method", "covariates"),
    "--map": ("winner=said",),
    "--value": ("tie=",),
    "--where": ("extra=1",),
    "--origin": ("simulated",),
    "--format": ("table",),
    "--reference": ("{reference}",),
    "--own": ("exclude",),
    "--judge-weight": ("j1=2",),
    "--merge": ("strict",),
    "--flips": ("drop",),
    "--ties": ("drop",),
    "--bootstrap": ("20",),
    "--cluster": ("none",),
    "--errors": ("sandwich",),
    "--level": ("0.8",),
    "--seed": ("9", "--bootstrap", "20"),
    "--restarts": ("1", "--method", "am-elo"),
    "--habit": ("ties", "--method", "am-elo"),
    "--ability-ridge": ("1", "--method", "am-elo"),
    "--least-verdicts": ("2", "--method", "stable-arena"),
    "--least-ability": ("0.01", "--method", "stable-arena"),
    "--until-stable": ("--method", "stable-arena"),
    "--seconds": ("5", "--method", "kemeny"),
    "--order": ("given", "--method", "elo"),
    "--folds": ("3",),
    "--steady": ("0.34",),
    "--contrast": ("m1", "m3"),
    "--half-width": ("20", "--contrast", "m1", "m3"),
    "--positions": (),
    "--people": ("--reference", "{reference}"),
    "--human": ("j2",),
}
"""Of each option words that change a board of the table, with what it needs beside it."""

OF_OTHER_SOURCES = {
    "--campaign": "a store with several",
    "--both-bad": "files with such verdicts",
    "--baseline": "files that do not name it",
    "--unranked": "ballots",
    "--accuracy-baseline": "grades",
}


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


def test_every_option_of_rate_has_an_example_here() -> None:
    assert set(options()) - OF_THE_OUTPUT == EXAMPLES.keys() | OF_OTHER_SOURCES.keys()


@pytest.mark.parametrize("flag", EXAMPLES)
def test_the_report_is_of_the_board_that_is_shown(venire: Venire, table: Path, tmp_path: Path, flag: str) -> None:
    words = [one.format(reference=table.with_name("reference.csv")) for one in EXAMPLES[flag]]
    out = tmp_path / "r.json"
    done = venire("rate", table, "--json", flag, *words, "--report", out)
    assert done.code == 0, done.err
    board, document = done.json(), json.loads(out.read_text(encoding="utf-8"))
    seen = document["board"].pop("seen")
    assert document["board"] == board
    assert seen
    asked = " ".join(document["asked"])
    if options()[flag].rich_help_panel == FIGURES:
        assert [one["title"] for one in document["figures"]] == [
            one.title for one in figure_tables(board["diagnostics"])
        ]
        assert document["figures"]
        page = tmp_path / "r.html"
        assert venire("rate", table, flag, *words, "--report", page).code == 0
        text = " ".join(page.read_text(encoding="utf-8").split())
        for one in document["figures"]:
            assert " ".join(one["title"].split()) in text
            assert all(cell in text for row in one["rows"] for cell in row)
            assert all(str(escape(line)) in text for line in one["notes"])
    elif flag not in ("--method", "--seed"):
        assert f"{flag} " in asked + " "
        assert flag in " ".join(document["how"])


def test_every_figure_has_a_table_that_a_report_shows(venire: Venire, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    asked = ("--folds", 3, "--steady", 0.34, "--contrast", "m1", "m3", "--positions", "--people")
    reference = ("--reference", table.with_name("reference.csv"))
    assert venire("rate", table, *asked, *reference, "--report", out).code == 0
    document = json.loads(out.read_text(encoding="utf-8"))
    assert document["board"]["diagnostics"].keys() >= FIGURE_TABLES.keys()
    assert len(document["figures"]) >= len(FIGURE_TABLES)
    assert any("agreement with the ratings known before, over 4 models" in one for one in document["notes"])
    text = venire("rate", table, *asked, *reference, "--report", tmp_path / "r.md")
    assert text.code == 0
    assert all(f"### {one['title'].split('  ')[0]}" in (tmp_path / "r.md").read_text(encoding="utf-8")
               for one in document["figures"])  # fmt: skip
