"""However a command ends, it says so in a sentence: no traceback, no cut figure, no lost board."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.forked import Forked
from venire.render.sections import show
from venire.reports.board.rate import rate

Venire = Callable[..., Any]
Write = Callable[..., Path]

pytestmark = pytest.mark.usefixtures("direct_judges")


@pytest.fixture
def battles(tmp_path: Path) -> Path:
    table = tmp_path / "battles.csv"
    rows = [
        f"{a},{b},{'model_a' if n % 4 else 'model_b'},a-judge,q{n}"
        for n in range(12)
        for a, b in (("a", "b"), ("b", "c"))
    ]
    table.write_text("model_a,model_b,winner,judge,instruction_id\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return table


def test_a_judge_that_always_says_first_has_a_board(venire: Venire, write_campaign: Write, monkeypatch: Any) -> None:
    """The danger: ratings without spread have no correlation, and printing it ended a paid run with a traceback."""
    monkeypatch.setattr("venire.simulation.comparisons._verdict", lambda ask, said: "1")
    done = venire("run", write_campaign(), "--yes")
    assert done.code == 0, done.err
    assert "agreement with the reference: none: all ratings of one side are equal" in done.out
    assert "Judges" in done.out


@pytest.mark.parametrize("words", [("rate", "."), ("status", "."), ("rate", "/"), ("status", "/")])
def test_a_folder_is_no_store(venire: Venire, words: tuple[str, str]) -> None:
    done = venire(*words)
    assert done.code == 2
    assert "folder" in done.err
    assert "Traceback" not in done.err


def test_what_cannot_be_written_is_named(venire: Venire, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    done = venire("init", tmp_path / "file")
    assert done.code == 2
    assert str(tmp_path / "file") in done.err


def test_a_query_that_is_interrupted_is_an_interruption(venire: Venire, battles: Path, monkeypatch: Any) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr("venire.reports.board.files.read_battle_table", interrupted)
    done = venire("rate", battles)
    assert done.code == 130
    assert done.err == "venire: interrupted\n"


def test_ctrl_c_outside_a_run_says_so(venire: Venire, battles: Path, monkeypatch: Any) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("venire.reports.board.files.read_battle_table", interrupted)
    done = venire("rate", battles)
    assert done.code == 130
    assert "interrupted" in done.err


def test_sigterm_is_ctrl_c_where_no_campaign_runs_too(start: Callable[..., Any], battles: Path) -> None:
    script = (
        "import os, signal, sys, venire.reports.board.files as r; from venire.cli import main; "
        "r.read_battle_table = lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM); main()"
    )
    process = start("-c", script, "rate", battles)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "venire: interrupted\n")


@pytest.mark.parametrize("answer", [b"n\n", pytest.param(b"\x04", marks=pytest.mark.slow)])
def test_who_does_not_agree_to_the_plan_pays_nothing(venire: Venire, write_campaign: Write, answer: bytes) -> None:
    path = write_campaign()
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "venire", "run", str(path)]
    streams = {"stdin": terminal, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Forked(command, **streams, text=True, start_new_session=True) as process:
        os.write(controller, answer)
        _, err = process.communicate(timeout=60)
    os.close(controller)
    os.close(terminal)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    accounts = venire("status", path.with_suffix(".duckdb"), "--json").json()["campaigns"][0]["accounts"]
    assert accounts["calls"] == 0


@pytest.mark.parametrize("width", [80, 100, 130])
def test_no_figure_is_cut_on_a_narrow_terminal(battles: Path, width: int) -> None:
    out = io.StringIO()
    board = rate(battles)
    show(Console(file=out, width=width, markup=False, emoji=False, highlight=False), board.sections())
    shown = out.getvalue()
    assert "…" not in shown
    for row in board.judges:
        assert row.corrected is not None
        assert f"{row.corrected:.3f}" in shown
    for model in board.models:
        assert f"{model.elo:.0f}" in shown


def test_names_are_shown_as_they_stand(battles: Path) -> None:
    battles.write_text(battles.read_text(encoding="utf-8").replace("a-judge", ":cat: [bold]"), encoding="utf-8")
    out = io.StringIO()
    show(Console(file=out, width=130, markup=False, emoji=False, highlight=False), rate(battles).sections())
    assert ":cat: [bold]" in out.getvalue()


def test_an_output_that_is_closed_or_cannot_carry_a_letter_is_no_traceback(battles: Path) -> None:
    battles.write_text(battles.read_text(encoding="utf-8").replace("a-judge", "juré"), encoding="utf-8")
    for shell, extra in ((">&-", {}), ("| head -1", {"PYTHONIOENCODING": "ascii"})):
        command = f"{sys.executable} -m venire rate {battles} {shell}"
        done = subprocess.run(
            ["sh", "-c", command], capture_output=True, text=True, check=False, env={**os.environ, **extra}
        )
        assert "Traceback" not in done.stderr, (shell, done.stderr)


def test_control_characters_are_shown_and_not_obeyed(battles: Path) -> None:
    text = battles.read_text(encoding="utf-8").replace("a-judge", "\x1b[31mred\x07")
    battles.write_text(text, encoding="utf-8")
    out = io.StringIO()
    show(Console(file=out, width=130, markup=False, emoji=False, highlight=False), rate(battles).sections())
    assert "\x1b" not in out.getvalue()
    assert "\\x1b[31mred\\x07" in out.getvalue()


def test_an_elo_that_no_model_can_have_is_refused_by_its_row(venire: Venire, tmp_path: Path) -> None:
    table = tmp_path / "elo.csv"
    table.write_text("model,elo\na,1000\nb,1e300\n", encoding="utf-8")
    done = venire("import", "table", table, "--kind", "elo", "--store", tmp_path / "s.duckdb")
    assert done.code == 2
    assert "row 2" in done.err
    assert "1e300" in done.err
