"""`venire rate` with more figures: on the screen and in JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.reports.test_figures import campaign

Venire = Callable[..., Any]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = campaign()
    path = tmp_path_factory.mktemp("figures") / "battles.csv"
    lines = ["model_a,model_b,winner,judge,instruction_id"]
    for a, b, label, judge, item, swapped in zip(
        rows.model_a, rows.model_b, rows.label, rows.judge, rows.instruction, rows.swapped, strict=True
    ):
        if not swapped:
            winner = {1: "model_a", -1: "model_b", 0: "tie"}[int(label)]
            lines.append(f"{rows.models[a]},{rows.models[b]},{winner},{rows.judges[judge]},{rows.instructions[item]}")
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_figures_stand_below_the_board(venire: Venire, table: Path) -> None:
    asked = ("--folds", "4", "--steady", "0.25", "--contrast", "m4", "m1", "--half-width", "10")
    done = venire("rate", table, *asked)
    assert done.code == 0
    for words in ("Held-out prediction", "log loss", "Verdicts of 1 of 4 judges perturbed", "m4 less m1:", "within 10"):
        assert words in done.out


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--contrast", "m4", "nobody"), "nobody"),
        (("--folds", "1"), "folds is 1"),
        (("--folds", "9999"), "folds is 9999"),
        (("--half-width", "5"), "with --contrast"),
        (("--people",), "--reference FILE"),
        (("--positions",), "which completion came first"),
        (("--compare", "--folds", "5"), "leave --folds"),
        (("--order", "given"), "bradley-terry does not take order"),
        (("--method", "win-rate", "--steady", "0.01"), "at least one judge"),
    ],
)
def test_what_cannot_be_made_is_refused_in_words(
    venire: Venire, table: Path, asked: tuple[str, ...], said: str
) -> None:
    done = venire("rate", table, *asked)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_elo_in_the_order_of_rows_hangs_on_it(venire: Venire, table: Path, tmp_path: Path) -> None:
    head, *rows = table.read_text(encoding="utf-8").splitlines()
    turned = tmp_path / "turned.csv"
    turned.write_text("\n".join([head, *reversed(rows)]), encoding="utf-8")
    one, other = (
        venire("rate", path, "--method", "elo", "--order", "given", "--json").json()["models"]
        for path in (table, turned)
    )
    assert {row["model"]: row["elo"] for row in one} != {row["model"]: row["elo"] for row in other}
    plain = [venire("rate", path, "--method", "elo", "--json").json()["models"] for path in (table, turned)]
    assert plain[0] == plain[1]
