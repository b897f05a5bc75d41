"""`venire run` as a person uses it: it asks before it spends, stops when told, goes on, and says how it ended."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from venire.simulation.faults import Faults
from venire.simulation.ledger import LedgerEntry
from venire.simulation.server import JudgeServer

Venire = Callable[..., Any]
Write = Callable[..., Path]
Serve = Callable[..., AbstractContextManager[JudgeServer]]
Start = Callable[..., "subprocess.Popen[str]"]

TRIALS = 15 * 2 * 2 * 2


def twice_asked(entries: list[LedgerEntry]) -> list[str | None]:
    return [entry.key for entry in entries if (entry.key_asked or 0) > 1]


def test_a_campaign_runs_to_its_end_and_then_asks_nothing_more(venire: Venire, write_campaign: Write) -> None:
    path = write_campaign()
    done = venire("run", path, "--yes")
    assert done.code == 0, done.err
    assert f"= {TRIALS} trials" in done.err
    assert f"{2 * TRIALS} calls" in done.err
    assert "verdicts: simulated" in done.out
    again = venire("run", path)
    assert again.code == 0
    assert "nothing was asked" in again.err
    assert again.out == done.out


def test_without_a_terminal_and_without_yes_nothing_is_asked(venire: Venire, write_campaign: Write) -> None:
    done = venire("run", write_campaign())
    assert done.code == 2
    assert "--yes" in done.err
    status = venire("status", write_campaign().with_suffix(".duckdb"), "--json").json()
    assert status["campaigns"][0]["accounts"]["calls"] == 0


def test_the_budget_ends_it_with_3_and_more_budget_goes_on(venire: Venire, write_campaign: Write) -> None:
    path = write_campaign(more="[budget]\ncalls = 100")
    done = venire("run", path, "--yes")
    assert done.code == 3
    assert "the budget of 100 calls is reached" in done.err
    assert "are missing" in done.err
    write_campaign(more="[budget]\ncalls = 1000")
    refused = venire("run", path, "--yes")
    assert refused.code == 2
    assert "-calls = 100" in refused.err
    assert "+calls = 1000" in refused.err
    amended = venire("run", path, "--yes", "--amend")
    assert amended.code == 0, amended.err
    assert f"{2 * TRIALS - 100} calls" in amended.err, "what was answered before is not asked again"


def test_a_changed_file_is_refused_whatever_changed_and_amend_plans_anew(
    venire: Venire, judged: Write, write_campaign: Write
) -> None:
    path = judged()
    write_campaign(instructions=3)
    refused = venire("run", path, "--yes")
    assert refused.code == 2
    assert "-instructions = 2" in refused.err
    assert "--amend" in refused.err
    assert venire("plan", path).code == 2
    amended = venire("run", path, "--yes", "--amend")
    assert amended.code == 0, amended.err
    assert f"{15 * 3 * 2 * 2} trials" in amended.err
    status = venire("status", path.with_suffix(".duckdb"), "--json").json()
    assert status["campaigns"][0]["progress"]["missing"] == 0


@pytest.mark.slow
def test_a_judge_that_is_taken_out_is_no_longer_asked_nor_rated(venire: Venire, write_campaign: Write) -> None:
    path = write_campaign(more="[budget]\ncalls = 60")
    assert venire("run", path, "--yes").code == 3
    one = '[[judge]]\nname = "gpt-4-0613"\nmodel = "simulated/gpt-4-0613@1"\n'
    write_campaign(judges=one)
    assert venire("run", path, "--yes", "--amend").code == 0
    board = venire("rate", path.with_suffix(".duckdb"), "--json").json()
    assert [judge["judge"] for judge in board["judges"]] == ["gpt-4-0613"]
    assert board["diagnostics"]["statuses"]["ok"] == TRIALS // 2


def test_a_file_that_changed_before_any_call_is_simply_planned_anew(venire: Venire, write_campaign: Write) -> None:
    path = write_campaign()
    assert venire("plan", path, "--json").json()["trials"] == TRIALS
    write_campaign(instructions=1)
    assert venire("plan", path, "--json").json()["trials"] == TRIALS // 2


def test_comments_and_spaces_are_no_change(venire: Venire, judged: Write) -> None:
    path = judged()
    path.write_text("# a remark\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    assert venire("run", path, "--yes").code == 0


def test_steps_that_fail_end_it_with_4_until_they_are_tried_again(
    venire: Venire, write_campaign: Write, serve: Serve
) -> None:
    one = '[[judge]]\nname = "j"\nmodel = "simulated/gpt-4-0613@1"\nbase_url = "{url}"\nmax_attempts = 1\n'
    with serve(faults=Faults(server_error=0.1)) as server:
        path = write_campaign(judges=one.format(url=server.base_url))
        done = venire("run", path, "--yes")
        assert done.code == 4, done.err
        assert "--retry-failed" in done.err
        assert "transient" in done.err
        asked = len(server.ledger.entries)
        assert venire("run", path, "--yes").code == 4
        assert len(server.ledger.entries) == asked, "a failed step is not paid for again unasked"
        while done.code == 4 and len(server.ledger.entries) < 2 * asked:
            done = venire("run", path, "--yes", "--retry-failed")
        assert done.code == 0, done.err


@pytest.mark.slow
def test_faults_change_calls_and_never_a_verdict(venire: Venire, write_campaign: Write, serve: Serve) -> None:
    boards = []
    faults = Faults(0.03, 0.03, 0.01, 0.03, 0.03, retry_after_s=0.01, timeout_s=0.05)
    for name, settings in (("calm", {}), ("stormy", {"faults": faults})):
        with serve(**settings) as server:
            path = write_campaign(name=f"{name}.toml", judge=f'base_url = "{server.base_url}"')
            assert venire("run", path, "--yes").code == 0
            boards.append(venire("rate", path.with_suffix(".duckdb"), "--json").out)
            status = venire("status", path.with_suffix(".duckdb"), "--json").json()
    assert boards[0] == boards[1]
    assert status["campaigns"][0]["accounts"]["calls"] == len(server.ledger.entries) > 2 * TRIALS
    assert set(status["campaigns"][0]["faults"]) == {"transient", "rate_limited"}


def test_ctrl_c_stops_gently_and_the_same_command_goes_on(
    start: Start, venire: Venire, write_campaign: Write, serve: Serve
) -> None:
    process: list[subprocess.Popen[str]] = []

    def interrupt(ordinal: int) -> None:
        if ordinal == 100:
            process[0].send_signal(signal.SIGINT)

    with serve(speed=400.0, on_request=interrupt) as server:
        path = write_campaign(judge=f'base_url = "{server.base_url}"')
        process.append(start("-m", "venire", "run", path, "--yes"))
        _, err = process[0].communicate(timeout=60)
        assert process[0].returncode == 130, err
        assert err.count("interrupted") == 1
        assert "Go on: venire run" in err
        assert "Ctrl-C again gives them up" in err
        assert "Traceback" not in err
        assert len(server.ledger.entries) < 200
        again = venire("run", path, "--yes")
        assert again.code == 0, again.err
        assert twice_asked(server.ledger.entries) == [], "Ctrl-C costs nothing"
        assert len(server.ledger.entries) == 2 * TRIALS


@pytest.mark.slow
def test_sigterm_is_ctrl_c(start: Start, write_campaign: Write, serve: Serve) -> None:
    process: list[subprocess.Popen[str]] = []

    def end(ordinal: int) -> None:
        if ordinal == 50:
            process[0].terminate()

    with serve(speed=400.0, on_request=end) as server:
        process.append(start("-m", "venire", "run", write_campaign(judge=f'base_url = "{server.base_url}"'), "--yes"))
        process[0].communicate(timeout=60)
        assert process[0].returncode == 130


def test_a_model_that_the_endpoint_does_not_have_closes_the_lane_with_1(
    venire: Venire, write_campaign: Write, serve: Serve
) -> None:
    with serve() as server:
        wrong = f'[[judge]]\nname = "j"\nmodel = "no-such-model"\nbase_url = "{server.base_url}"\nfree = true\n'
        done = venire("run", write_campaign(judges=wrong), "--yes")
        assert done.code == 1
        assert "lane closed" in done.err
        assert "no-such-model" in done.err
        assert len(server.ledger.entries) < 60


@pytest.mark.usefixtures("migrated_stores")  # whose tables are not the demo's
def test_a_battle_of_equal_texts_is_left_out_and_counted(venire: Venire, write_campaign: Write, folder: Path) -> None:
    table = folder / "completions.jsonl"
    lines = table.read_text(encoding="utf-8").splitlines()
    import json

    rows = [json.loads(line) for line in lines]
    first = next(row for row in rows if row["model"] == "strong")
    for row in rows:
        if row["model"] == "solid" and row["instruction_id"] == first["instruction_id"]:
            row["completion"] = first["completion"]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    done = venire("plan", write_campaign(instructions=16), "--json").json()
    assert done["equal_texts"] == 1
    assert done["trials"] == (15 * 16 - 1) * 2 * 2
