"""What is printed: whole figures at every width, names that cannot steer a terminal, and ends told in a sentence."""

from __future__ import annotations

import errno
import io
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console

from venire.arena.battles import Statistics
from venire.arena.records import Origin
from venire.arena.wording import money, plain
from venire.cli.options import write_json
from venire.configs.loading import load_campaign
from venire.render.outcome import show_next_steps
from venire.render.plan import show_plan
from venire.render.screen import progress, tabulate
from venire.render.sections import show
from venire.reports.board.build import build
from venire.reports.board.rate import rate
from venire.session import Session
from venire.storage.transfer.formats.battles import read_battles
from venire.wording import is_reported_round

Venire = Callable[..., Any]
Write = Callable[..., Path]

WIDTHS = [40, 60, 80, 100, 130]
LONG = "an-organisation/a-model-with-a-very-long-name-2026-11-21-preview"


@pytest.fixture
def battles(tmp_path: Path) -> Path:
    table = tmp_path / "battles.csv"
    rows = [
        f"{a},{b},{'model_a' if n % 4 else 'model_b'},{LONG},q{n}" for n in range(12) for a, b in ((LONG, "b"), "bc")
    ]
    table.write_text("model_a,model_b,winner,judge,instruction_id\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return table


def screen_of(width: int) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, width=width, markup=False, emoji=False, highlight=False), out


def words_of(out: io.StringIO) -> list[str]:
    return [word.rstrip(",:") for word in out.getvalue().split()]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_board_cuts_no_figure(battles: Path, width: int) -> None:
    board = rate(battles)
    screen, out = screen_of(width)
    show(screen, board.sections())
    assert "…" not in out.getvalue()
    assert all(len(line.rstrip()) <= width for line in out.getvalue().splitlines())
    (judge,) = board.judges
    words = words_of(out)
    assert judge.corrected is not None
    for figure in (f"{max(judge.corrected, 0.0):.3f}", f"{judge.readable:.1%}", f"{judge.verdicts}"):
        assert figure in words
    for row in board.models:
        assert f"{row.elo:.0f}" in words
    assert ("narrow terminal" in " ".join(words)) == (width < 105)


def test_a_plan_cuts_no_figure(write_campaign: Write) -> None:
    judge = f'[[judge]]\nname = "{LONG}"\nmodel = "simulated/gpt-4-0613@1"\n'
    with Session(load_campaign(write_campaign(judges=judge))) as session:
        forecast = session.forecast()
        (row,) = forecast.judges
        for width in WIDTHS:
            screen, out = screen_of(width)
            show_plan(screen, session, forecast)
            assert "…" not in out.getvalue()
            for figure in (row.trials, row.calls, row.input_tokens, row.output_tokens):
                assert f"{figure:,}" in words_of(out)
            said = " ".join(out.getvalue().split())
            assert "battle: a matchup" in said
            assert "trial: 2; nothing costs money" in said
    assert "$" not in said


@pytest.mark.parametrize("width", range(12, 60))
def test_a_table_keeps_the_words_of_its_figures_at_any_width(width: int) -> None:
    screen, out = screen_of(width)
    tabulate(screen, ["judge", "tokens in", "at most"], [["x" * 30, "1,234,567", "$12.34"], ["y", "3", "no limit"]])
    words = words_of(out)
    assert {"1,234,567", "$12.34", "no", "limit"} <= set(words)
    assert "".join(word for word in words if set(word) == {"x"}) == "x" * 30


def test_a_judge_that_only_ties_has_a_board_beside_a_reference(tmp_path: Path) -> None:
    table = tmp_path / "ties.csv"
    table.write_text("model_a,model_b,winner\na,b,tie\nb,c,tie\nc,d,tie\n", encoding="utf-8")
    reference = {"a": 1200.0, "b": 1000.0, "c": 900.0, "d": 800.0}
    board = build(read_battles(table, {}), reference=reference, origins=[Origin.RECORDED])
    screen, out = screen_of(130)
    show(screen, board.sections())
    assert "agreement with the reference: none:" in out.getvalue()


def test_control_characters_are_shown_as_escapes_and_letters_as_they_are() -> None:
    assert plain("a\x1b[2Jb\nc\x07é漢 d") == "a\\x1b[2Jb\\nc\\x07é漢 d"
    assert plain("\udc80\u202e") == "\\udc80\\u202e"


def test_an_error_sentence_cannot_steer_the_terminal(venire: Venire, tmp_path: Path) -> None:
    done = venire("rate", tmp_path / "a\x1b[2Jb.csv")
    assert done.code == 2
    assert "\x1b" not in done.err
    assert "a\\x1b[2Jb.csv" in done.err


def test_json_without_an_output_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    write_json({"a": 1})


@pytest.mark.slow
@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_an_output_that_is_full_is_named_once(battles: Path, flags: list[str]) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    command = [sys.executable, "-m", "venire", "rate", str(battles), "--bootstrap", "0", *flags]
    with full.open("w", encoding="utf-8") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("venire: standard output: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_reader_that_went_away_ends_it_quietly(battles: Path) -> None:
    command = shlex.join([sys.executable, "-m", "venire", "rate", str(battles), "--bootstrap", "0", "--json"])
    done = subprocess.run(["sh", "-c", f"{command} | true"], capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "some.csv"), 2, "venire: some.csv: Permission denied\n"),
        (OSError(errno.EADDRINUSE, "Address already in use"), 2, "venire: Address already in use\n"),
        (typer.Abort(), 130, "venire: interrupted\n"),
        (KeyboardInterrupt(), 130, "venire: interrupted\n"),
    ],
)
def test_what_ends_a_command_is_one_sentence(
    venire: Venire, battles: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, told: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("venire.reports.board.files.read_battle_table", refuse)
    done = venire("rate", battles)
    assert (done.code, done.err) == (code, told)


def test_what_does_not_apply_to_a_store_or_a_table_is_refused(
    venire: Venire, write_campaign: Write, battles: Path
) -> None:
    path = write_campaign()
    assert venire("plan", path).code == 0
    for words in (("--map", "judge=j"), ("--origin", "real"), ("--both-bad", "drop")):
        done = venire("rate", path.with_suffix(".duckdb"), *words)
        assert done.code == 2
        assert f"leave {words[0]} out" in done.err
    done = venire("rate", battles, "--campaign", "small")
    assert done.code == 2
    assert "--campaign" in done.err


@pytest.mark.parametrize("port", ["-1", "65536"])
def test_a_port_that_cannot_be_is_a_usage_error(venire: Venire, write_campaign: Write, port: str) -> None:
    done = venire("mock-provider", write_campaign(), "--port", port)
    assert done.code == 2
    assert "--port" in done.err
    assert "Usage:" in done.err


def test_commands_to_paste_are_quoted(venire: Venire, write_campaign: Write, tmp_path: Path) -> None:
    done = venire("init", tmp_path / "a b;c")
    assert shlex.split(done.out.splitlines()[-1])[-1] == str(tmp_path / "a b;c" / "campaign.toml")
    screen, out = screen_of(300)
    show_next_steps(screen, tmp_path / "d e", load_campaign(write_campaign()))
    lines = [shlex.split(line, comments=True) for line in out.getvalue().splitlines() if "d e" in line]
    assert len(lines) == 3
    assert all(words[2].startswith(str(tmp_path / "d e")) for words in lines)


def test_on_a_narrow_screen_a_bar_gives_way_and_no_figure() -> None:
    """The danger: of 80,000/100,000 trials a terminal of 80 columns showed 80,00..."""
    out = io.StringIO()
    screen = Console(file=out, width=80, force_terminal=True, color_system=None)
    now = Statistics(planned=100_000, settled=80_000, failed=0, calls=81_234, in_flight=32, retries=123, spent=10**9)
    with progress(screen) as tell:
        tell(now)
    shown = out.getvalue()
    assert "80000/100000" in shown
    assert "…" not in shown


def test_in_rounds_a_bar_loses_no_figure_at_any_width() -> None:
    """The danger: of a run in rounds a terminal of 80 columns showed 2167/2... and $0.5..."""
    now = Statistics(
        planned=2400, settled=2167, failed=0, calls=2960, retries=1, spent=51_230_000, round=4, phase="refine"
    )
    for width in (60, 80, 100, 130):
        out = io.StringIO()
        with progress(Console(file=out, width=width, force_terminal=True, color_system=None)) as tell:
            tell(now)
        shown = out.getvalue()
        assert "…" not in shown
        assert all(figure in shown for figure in ("2167/2400", "2,960", "$0.0512"))
        assert "retries" not in shown


def test_money_is_never_rounded_to_nothing() -> None:
    told = {
        0: "$0.00",
        10_000: "$0.00001",
        49_300: "$0.000049",
        1: "$0.000000001",
        400_000: "$0.0004",
        51_230_000: "$0.0512",
        1_234_500_000_000: "$1,234.50",
    }
    assert {nano: money(nano) for nano in told} == told


def test_two_hundred_rounds_are_not_told_in_two_hundred_lines() -> None:
    out = io.StringIO()
    with progress(Console(file=out, width=200)) as tell:
        for number in range(1, 201):
            for settled in range(10 * number - 9, 10 * number + 1):
                tell(Statistics(planned=10 * number, settled=settled, failed=0, round=number, phase="plan"))
    lines = out.getvalue().splitlines()
    assert len(lines) <= 60
    assert "round 200" in lines[-1]
    assert [number for number in range(1, 301) if is_reported_round(number)] == [
        *range(1, 11),
        *range(20, 101, 10),
        200,
        300,
    ]


def test_a_log_says_that_a_lane_is_slowed_before_the_next_tenth_of_the_way() -> None:
    """The danger: a run without a terminal stopped by rate-limit responses said nothing until it went on."""
    out = io.StringIO()
    with progress(Console(file=out, width=200)) as tell:
        for second in range(400):
            slowed = ("judge-1: sends single calls after 8 rate-limit responses",) if 20 <= second < 300 else ()
            tell(Statistics(planned=100_000, settled=100, failed=0, elapsed=second, slowed=slowed))
    began, slow, gone = out.getvalue().splitlines()
    assert "slowed" not in began
    assert slow.endswith("judge-1: sends single calls after 8 rate-limit responses, 20 s")
    assert gone.endswith("$0.00, 5 min")


def test_a_lane_that_is_slowed_again_and_again_is_told_once_a_minute_at_most() -> None:
    out = io.StringIO()
    with progress(Console(file=out, width=200)) as tell:
        for second in range(600):
            tell(Statistics(planned=100_000, settled=100, failed=0, elapsed=second, slowed=("slow",) * (second % 2)))
    assert 2 <= len(out.getvalue().splitlines()) <= 11
