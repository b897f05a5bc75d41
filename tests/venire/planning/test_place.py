"""`venire place` puts a new model on a judged board, goes on where it stopped, and says no in a sentence."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from venire.arena.clock import VirtualClock
from venire.arena.errors import InputError
from venire.cli import app
from venire.configs.loading import load_campaign
from venire.embedded import Embedded
from venire.orchestrator.recording.ending import Ending
from venire.session import Session

MODELS = {f"m{n}": 900.0 + 40.0 * n for n in range(11)}
NEW = "m10"

FILE = """
name = "board"
[data]
instructions = "instructions.csv"
completions = "completions.csv"
elo = "elo.csv"
[plan]
policy = "balanced"
battles = 120
round = 120
[[judge]]
name = "sim"
model = "simulated/gpt-4-0613@1"
concurrency = 8
price = { input = 2.0, output = 8.0 }
"""


def write(path: Path, head: list[str], rows: list[list[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *rows])


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store whose ten models are judged, and a table of the completions of an eleventh."""
    folder = tmp_path_factory.mktemp("board")
    texts = [f"i{n:02}" for n in range(30)]
    write(folder / "instructions.csv", ["instruction_id", "instruction"], [[one, f"say {one}"] for one in texts])
    answers = {model: [[model, one, f"{model} says of {one} this"] for one in texts] for model in MODELS}
    head = ["model", "instruction_id", "completion"]
    write(folder / "completions.csv", head, [row for model in MODELS if model != NEW for row in answers[model]])
    write(folder / "new.csv", head, answers[NEW])
    write(folder / "elo.csv", ["model", "elo"], [[model, elo] for model, elo in MODELS.items()])
    (folder / "board.toml").write_text(FILE, encoding="utf-8")
    with Session(load_campaign(folder / "board.toml"), clock=VirtualClock()) as session:
        assert session.run(environ={}, embedded=Embedded(direct=True)).ending is Ending.COMPLETE
    return folder


@pytest.fixture
def folder(judged: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(judged, tmp_path / "board"))


def place(folder: Path, *more: str) -> dict[str, Any]:
    """What `venire place --json` says of the new model."""
    given = ["place", NEW, "--on", str(folder / "board.duckdb"), "--yes", "--json", *more]
    done = CliRunner().invoke(app, given, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_model_is_placed_within_its_budget_and_a_larger_one_adds_to_it(folder: Path) -> None:
    first = place(folder, "--completions", str(folder / "new.csv"), "--budget", "0.05")
    assert 0.025 < first["cost_dollars"] <= 0.05
    assert first["verdicts"] == "simulated"
    assert first["people"]["known"] == MODELS[NEW]
    assert first["people"]["calibrated_on"] == 10
    assert first["people"]["low"] < first["people"]["elo"] < first["people"]["high"]
    assert first["estimand"] == "other instructions; this judge only"
    assert first["people"]["estimand"] == "other models like these anchors; this judge only"
    again = place(folder, "--budget", "0.05")
    assert {**again, "warnings": 0} == {**first, "warnings": 0}
    more = place(folder, "--budget", "0.075")
    assert 0.05 < more["cost_dollars"] <= 0.075
    assert more["battles"] > first["battles"]


@pytest.mark.slow
def test_a_tighter_rule_goes_on_and_nothing_is_paid_twice(folder: Path) -> None:
    few = place(folder, "--completions", str(folder / "new.csv"), "--battles", "20")
    assert few["battles"] == 20
    some = place(folder, "--battles", "30")
    assert some["battles"] == 30
    assert some["cost_dollars"] == pytest.approx(1.5 * few["cost_dollars"], rel=0.2)
    other = place(folder, "--battles", "20", "--policy", "balanced")
    assert other["campaign"] == f"place {NEW} (balanced)"


@pytest.mark.slow
def test_a_board_is_rated_without_naming_it_after_a_placement(folder: Path) -> None:
    place(folder, "--completions", str(folder / "new.csv"), "--battles", "20")
    done = CliRunner().invoke(app, ["rate", str(folder / "board.duckdb")])
    assert done.exit_code == 0, done.output
    assert "several campaigns" not in done.output


def test_a_model_whose_elo_a_simulated_judge_needs_is_refused_before_anything_is_asked(folder: Path) -> None:
    lines = (folder / "new.csv").read_text(encoding="utf-8").replace(f"{NEW},", "unknown,")
    (folder / "unknown.csv").write_text(lines, encoding="utf-8")
    given = ["place", "unknown", "--on", str(folder / "board.duckdb"), "--yes", "--battles", "20", "--json"]
    done = CliRunner().invoke(app, [*given, "--completions", str(folder / "unknown.csv")])
    assert isinstance(done.exception, InputError)
    assert "Elo of 'unknown'" in str(done.exception)
    assert "--elo" in str(done.exception)
    found = CliRunner().invoke(app, [*given, "--elo", "1300"], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["people"]["known"] == 1300
    assert not any("kept as the best" in warning for warning in json.loads(found.stdout)["warnings"])
    second = place(folder, "--completions", str(folder / "new.csv"), "--battles", "20")
    assert any("2 models were placed on this board" in warning for warning in second["warnings"])
    other = CliRunner().invoke(app, [*given, "--elo", "1301"])
    assert "has 1300 for 'unknown'" in str(other.exception)
    assert "number of Elo points" in str(CliRunner().invoke(app, [*given, "--elo", "1e9"]).exception)


@pytest.mark.parametrize(("columns", "model"), [(["prompt", "model", "response"], [NEW]), (["Prompt", "output"], [])])
def test_completions_without_ids_are_those_of_the_instructions_of_the_same_text(
    folder: Path, columns: list[str], model: list[str]
) -> None:
    write(folder / "texts.csv", columns, [[f" say i{n:02}\n", *model, f"answer {n}"] for n in range(30)])
    found = place(folder, "--completions", str(folder / "texts.csv"), "--battles", "10")
    assert found["battles"] == 10
    write(folder / "other.csv", columns, [["say nothing", *model, "answer"]])
    with pytest.raises(InputError, match="'say nothing', which is not in the store: nothing was imported"):
        place(folder, "--completions", str(folder / "other.csv"), "--battles", "10")


def test_a_limit_and_an_elo_that_are_missing_are_asked_for_at_once(folder: Path) -> None:
    write(folder / "unknown.csv", ["prompt", "response"], [[f"say i{n:02}", f"answer {n}"] for n in range(30)])
    given = ["place", "unknown", "--on", str(folder / "board.duckdb"), "--completions", str(folder / "unknown.csv")]
    with pytest.raises(InputError, match=r"give --budget, --battles or --half-width; and the judges .* with --elo"):
        CliRunner().invoke(app, given, catch_exceptions=False)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((NEW, "--budget", "1"), "has no completions in"),
        (("nobody", "--budget", "1"), "does not know it"),
        (("m3", "--budget", "0"), "--budget is 0"),
        (("m3", "--budget", "1", "--policy", "widest-gap"), "no policy that chooses battles"),
        (("m3", "--budget", "1", "--judge", "x"), "asks sim"),
        (("m3", "--budget", "1", "--level", "95"), "level is 95"),
        (("m3",), "nothing says when the placement is enough: give --budget, --battles"),
        (("m3", "--budget", "0.000001"), "does not cover one battle"),
    ],
)
def test_what_cannot_be_placed_is_refused_in_a_sentence(folder: Path, given: tuple[str, ...], said: str) -> None:
    store = folder / "board.duckdb"
    with pytest.raises(InputError, match=said):
        CliRunner().invoke(app, ["place", *given, "--on", str(store), "--yes"], catch_exceptions=False)


def test_a_text_that_no_budget_covers_is_named_and_the_model_is_placed_by_the_others(folder: Path) -> None:
    rows = [[NEW, f"i{n:02}", f"{NEW} says {n}" if n else "word" * 1_000_000] for n in range(30)]
    write(folder / "long.csv", ["model", "instruction_id", "completion"], rows)
    given = ["place", NEW, "--on", str(folder / "board.duckdb"), "--completions", str(folder / "long.csv"), "--yes"]
    done = CliRunner().invoke(app, [*given, "--budget", "0.05"], catch_exceptions=False)
    said = " ".join(done.output.split())
    assert "29 instructions in common" in said
    assert f"the answer of {NEW!r} to instruction 'i00'" in said
    assert "about 1,000,000 tokens" in said


@pytest.mark.slow
def test_a_model_of_the_board_is_placed_by_what_is_there_and_more(folder: Path) -> None:
    given = ["place", "m5", "--on", str(folder / "board.duckdb"), "--yes", "--battles", "40"]
    done = CliRunner().invoke(app, given, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "on the board already" in done.output
    assert "40 battles" in done.output
