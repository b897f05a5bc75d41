"""`venire rate --reference FILE`: what is known before stands beside the board, whatever it was made from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from venire.orchestrator.recording.ending import Ending
from venire.reports.board.rate import rate

Settle = Callable[..., Ending]
Venire = Callable[..., Any]

BATTLES = "model_a,model_b,winner,instruction_id\n" + "".join(
    f"{a},{b},{winner},q{item}\n"
    for item in range(4)
    for a, b, winner in (
        ("a", "b", "model_a"),
        ("b", "c", "model_a"),
        ("a", "c", "model_a"),
        ("a", "c", "tie"),
        ("c", "d", "model_a"),
    )
    for winner in (winner, "model_b" if item == 3 else winner)
)


@pytest.fixture
def battles(tmp_path: Path) -> Path:
    path = tmp_path / "battles.csv"
    path.write_text(BATTLES, encoding="utf-8")
    return path


@pytest.fixture
def known(tmp_path: Path) -> Callable[[str], Path]:
    def write(rows: str) -> Path:
        path = tmp_path / "known.csv"
        path.write_text("model,rating\n" + rows, encoding="utf-8")
        return path

    return write


def test_a_table_of_battles_is_held_against_a_given_file(
    venire: Venire, battles: Path, known: Callable[[str], Path]
) -> None:
    path = known("a,1100\nb,1000\nc,900\nd,700\nz,1\n")
    board = venire("rate", battles, "--reference", path, "--json").json()
    met = board["diagnostics"]["agreement"]
    assert (met["models"], met["spearman"], met["verdicts"]) == (4, 1.0, "recorded")
    assert {row["model"]: row["reference"] for row in board["models"]} == {
        "a": 1100.0, "b": 1000.0, "c": 900.0, "d": 700.0
    }  # fmt: skip
    assert board["diagnostics"]["reference"] == {
        "file": str(path), "ratings": 5, "shared": 4, "not_judged": ["z"], "not_rated": [], "replaces": 0
    }  # fmt: skip
    shown = venire("rate", battles, "--reference", path)
    assert "reference: 4 models, Pearson" in shown.out
    assert "4 of its 5 models" in shown.out
    assert "not judged: z" in shown.out
    assert "reference" not in venire("rate", battles, "--json").json()["diagnostics"]


def test_the_python_interface_takes_the_file_too(battles: Path, known: Callable[[str], Path]) -> None:
    board = rate(battles, reference=known("a,1100\nb,1000\nc,900\nd,700\n"))
    assert board.diagnostics.agreement.models == 4


def test_a_board_in_json_is_a_reference_for_another(venire: Venire, battles: Path, tmp_path: Path) -> None:
    first = venire("rate", battles, "--json")
    (tmp_path / "board.json").write_text(first.out, encoding="utf-8")
    met = venire("rate", battles, "--reference", tmp_path / "board.json", "--json").json()["diagnostics"]["agreement"]
    assert (met["pearson"], met["mae"]) == (1.0, 0.0)


def test_models_without_a_reference_are_said_and_not_refused(
    venire: Venire, battles: Path, known: Callable[[str], Path]
) -> None:
    done = venire("rate", battles, "--reference", known("a,1100\n"))
    assert done.code == 0
    assert "reference for b, c, d" in done.out
    assert "reference: none: 1 models" in done.out
    facts = venire("rate", battles, "--reference", known("a,1100\n"), "--json").json()["diagnostics"]
    assert (facts["agreement"], facts["reference"]["not_rated"]) == (None, ["b", "c", "d"])
    assert "1 models have both ratings" in facts["agreement_reason"]


@pytest.mark.parametrize(
    ("rows", "more", "said"),
    [
        ("y,1\nz,2\n", (), "rates none of the models that were judged; it rates y, z; judged were a, b, c, d"),
    ],
)
def test_a_reference_that_cannot_serve_is_refused_in_words(
    venire: Venire, battles: Path, known: Callable[[str], Path], rows: str, more: tuple[str, ...], said: str
) -> None:
    done = venire("rate", battles, "--reference", known(rows), *more)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_a_given_file_stands_in_place_of_what_a_store_knows(
    venire: Venire, write_campaign: Callable[..., Path], known: Callable[[str], Path], settle: Settle
) -> None:
    path = write_campaign(instructions=1)
    assert settle(path) is Ending.COMPLETE
    store = path.with_suffix(".duckdb")
    own = {row["model"]: row["reference"] for row in venire("rate", store, "--json").json()["models"]}
    turned = known("".join(f"{model},{2000 - elo}\n" for model, elo in own.items()))
    board = json.loads(venire("rate", store, "--reference", turned, "--json").out)
    assert {row["model"]: row["reference"] for row in board["models"]} == {one: 2000 - elo for one, elo in own.items()}
    assert board["diagnostics"]["reference"]["replaces"] == len(own)
    assert f"of the store's {len(own)} ratings" in venire("rate", store, "--reference", turned).out
