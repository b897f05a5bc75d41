"""The other verbs: what they print, as JSON and for eyes, and what they leave behind."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import venire as public
from venire.arena.clock import VirtualClock
from venire.judges.providers import PROVIDERS, Endpoint
from venire.judges.providers.batches.base import BatchState
from venire.orchestrator.recording.ending import Ending

pytestmark = pytest.mark.usefixtures("direct_judges")
Settle = Callable[..., Ending]
Venire = Callable[..., Any]
Write = Callable[..., Path]


def test_every_json_is_one_document_and_nothing_else(venire: Venire, write_campaign: Write, settle: Settle) -> None:
    path = write_campaign()
    plan = venire("plan", path, "--json").json()
    assert plan["progress"] == {"planned": 120, "settled": 0, "failed": 0, "missing": 120}
    assert {row["judge"]: row["calls"] for row in plan["judges"]} == {"gpt-4-0613": 120, "claude-3-opus": 120}
    empty = venire("rate", path.with_suffix(".duckdb"), "--json").json()
    assert empty["models"] == []
    assert empty["diagnostics"]["reason"]
    assert settle(path) is Ending.COMPLETE
    board = venire("rate", path.with_suffix(".duckdb"), "--json").json()
    assert set(board) == {"method", "gauge", "verdicts", "models", "judges", "diagnostics"}
    assert board["verdicts"] == "simulated"
    assert {"model", "elo", "lo", "hi", "battles"} <= set(board["models"][0])
    assert {"judge", "consistency", "decisive"} <= set(board["judges"][0])
    assert sum(row["elo"] for row in board["models"]) / 6 == pytest.approx(1000, abs=1e-4)
    status = venire("status", path.with_suffix(".duckdb"), "--json").json()
    assert status["campaigns"][0]["judges"][0] == {
        "judge": "claude-3-opus",
        "planned": 60,
        "settled": 60,
        "failed": 0,
    }


def test_every_board_says_where_its_verdicts_come_from(venire: Venire, write_campaign: Write) -> None:
    path = write_campaign()
    run = venire("run", path, "--yes").out
    rate = venire("rate", path.with_suffix(".duckdb")).out
    assert run == rate
    for line in rate.splitlines():
        if "Leaderboard" in line or "Judges" in line or "agreement" in line:
            assert "verdicts: simulated" in line


def test_a_board_of_mixed_origins_is_refused(venire: Venire, write_campaign: Write, serve: Any) -> None:
    with serve() as server:
        judges = (
            '[[judge]]\nname = "a"\nmodel = "simulated/bard@1"\n'
            f'[[judge]]\nname = "b"\nmodel = "real-model"\nbase_url = "{server.base_url}"\nfree = true\n'
        )
        path = write_campaign(judges=judges)
        assert venire("plan", path).code == 0
    done = venire("rate", path.with_suffix(".duckdb"))
    assert done.code == 2
    assert "real" in done.err
    assert "simulated" in done.err


def test_a_table_of_battles_is_rated(venire: Venire, tmp_path: Path) -> None:
    table = tmp_path / "battles.csv"
    rows = ["model_a,model_b,winner,judge,instruction_id"]
    rows += [f"a,b,{'model_a' if n % 3 else 'model_b'},j,q{n}" for n in range(30)]
    table.write_text("\n".join(rows) + "\n", encoding="utf-8")
    board = venire("rate", table, "--json").json()
    assert [row["model"] for row in board["models"]] == ["a", "b"]
    assert board["models"][0]["elo"] - board["models"][1]["elo"] == pytest.approx(120.412, abs=0.01)
    assert board["diagnostics"]["jackknife"]["unit"] == "instruction"
    assert board["verdicts"] == "recorded"
    table.write_text("".join(",".join(row.split(",")[:3]) + "\n" for row in rows), encoding="utf-8")
    assert venire("rate", table, "--json").json()["diagnostics"]["jackknife"]["unit"] == "battle"
    assert "jackknife over " in venire("rate", table).out


def test_separate_groups_are_named_and_rated_apart(venire: Venire, tmp_path: Path) -> None:
    table = tmp_path / "battles.csv"
    rows = [f"{a},{b},{w}" for a, b in (("a", "b"), ("c", "d")) for w in ("model_a", "model_b", "model_a")]
    table.write_text("model_a,model_b,winner\n" + "\n".join(rows) + "\n", encoding="utf-8")
    board = venire("rate", table, "--json").json()
    assert board["diagnostics"]["groups"] == [["a", "b"], ["c", "d"]]
    shown = venire("rate", table)
    assert shown.code == 0
    assert "rated apart" in shown.out


def test_recorded_votes_are_rated_as_published(venire: Venire, shared_data: Path) -> None:
    table = shared_data / "softelo_sample" / "battles.parquet"
    board = venire("rate", table, "--map", "winner=human_winner", "--bootstrap", 20, "--json").json()
    found = {row["model"]: row["elo"] for row in board["models"]}
    assert len(found) == 14
    assert found["gpt-4o-2024-05-13"] == pytest.approx(1145.64, abs=0.6)  # published with a slight ridge


def test_init_writes_a_campaign_that_plans(venire: Venire, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    assert venire("init", folder).code == 0
    assert sorted(file.name for file in folder.iterdir()) == [
        "campaign.schema.json",
        "campaign.toml",
        "completions.csv",
        "elo.csv",
        "instructions.csv",
    ]
    assert venire("plan", folder / "campaign.toml").code == 0
    again = venire("init", folder)
    assert again.code == 2
    assert "is there already" in again.err


@dataclass(frozen=True)
class Demo:
    """A demo that has run to its end: what it printed, and its folder."""

    out: str
    folder: Path


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The demo as a process of its own, on uvloop; without a network where this machine allows that."""
    folder = tmp_path_factory.mktemp("demo") / "d"
    command = f"{sys.executable} -m venire demo --folder {folder} --speed 2000"
    alone = subprocess.run(["sh", "-c", "unshare -rn true"], capture_output=True, check=False).returncode == 0
    words = ["unshare", "-rn", "sh", "-c", f"ip link set lo up && {command}"] if alone else command.split()
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    return Demo(done.stdout, folder)


def check_demo(out: str, folder: Path, venire: Venire) -> None:
    """What a demo prints and leaves, and that the commands it names work."""
    assert "1,920 answered" in out
    summary = next(line for line in out.splitlines() if "retries; the limiter made" in line).replace(",", "")
    retries, waits = int(summary.split(" retries")[0].split()[-1]), int(summary.split("made ")[1].split()[0])
    assert retries > 0
    assert waits > 0
    assert out.count("verdicts: simulated") >= 3
    assert "strong" in out
    assert "cost $0.00" in out
    files = ["campaign.duckdb", "campaign.toml", "completions.jsonl", "elo.csv", "instructions.jsonl"]
    assert sorted(file.name for file in folder.iterdir()) == files
    for line in out.split("Next:")[1].splitlines():
        words = line.split("#")[0].split()
        if words and words[1] != "init":
            assert venire(*words[1:]).code == 0, line


def test_the_demo_names_next_commands_that_work(
    venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("venire.session.SystemClock", VirtualClock)
    folder = tmp_path / "d"
    check_demo(venire("demo", "--folder", folder).out, folder, venire)


@pytest.mark.slow
def test_the_demo_needs_no_network(venire: Venire, demo: Demo) -> None:
    check_demo(demo.out, demo.folder, venire)


@pytest.mark.slow
def test_a_finished_demo_starts_anew_only_in_a_store_of_its_own(venire: Venire, demo: Demo, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    shutil.copytree(demo.folder, folder)
    again = venire("demo", "--folder", folder, "--speed", 0)
    assert "1,920 answered" in again.out
    short = (folder / "campaign.toml").read_text(encoding="utf-8").replace('name = "demo"', 'name = "mine"')
    (folder / "mine.toml").write_text(f'store = "campaign.duckdb"\n{short}', encoding="utf-8")
    assert venire("run", folder / "mine.toml", "--yes").code == 0
    kept = venire("demo", "--folder", folder, "--speed", 0)
    assert kept.code == 0
    assert "nothing was asked" in kept.out
    names = [one["campaign"] for one in venire("status", folder / "campaign.duckdb", "--json").json()["campaigns"]]
    assert names == ["demo", "mine"]


def test_mock_provider_serves_until_it_is_told_to_stop(
    start: Callable[..., subprocess.Popen[str]], venire: Venire, write_campaign: Write, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger.jsonl"
    words = ("mock-provider", write_campaign(name="key.toml"), "--speed", 0, "--ledger", ledger)
    server = start("-u", "-m", "venire", *words)
    assert server.stdout is not None
    base_url = server.stdout.readline().split("'")[1]
    judged = venire("run", write_campaign(judge=f'base_url = "{base_url}"', instructions=1), "--yes")
    assert judged.code == 0, judged.err
    server.send_signal(signal.SIGINT)
    assert server.wait(timeout=20) == 0
    entries = [json.loads(line) for line in ledger.read_text(encoding="utf-8").splitlines()]
    assert len({entry["ordinal"] for entry in entries}) == 15 * 2 * 2 * 2


def test_mock_provider_answers_batches_with_their_faults(
    start: Callable[..., subprocess.Popen[str]], write_campaign: Write, tmp_path: Path
) -> None:
    server = start("-u", "-m", "venire", "mock-provider", write_campaign(), "--speed", "0", "--batch-faults", "1")
    assert server.stdout is not None
    base_url = server.stdout.readline().split("'")[1]
    wave = tmp_path / "wave.jsonl"

    async def script() -> list[int | None]:
        batches = PROVIDERS["openai"].open_batches(Endpoint(base_url, None, 30.0, 4))
        lines = [batches.line(f"line-{number}", b"{}") for number in range(40)]
        wave.write_bytes(b"".join(line + b"\n" for line in lines))
        made = await batches.submit("wave-1", "judge", wave)
        assert (await batches.status(made.id)).state is BatchState.ENDED
        downloads = [[answer async for answer in batches.answers(made.id)] for _ in range(3)]
        assert downloads[0] != downloads[2] != downloads[1], "downloads are damaged at first"
        return [answer.status for answer in downloads[2]]

    statuses = asyncio.run(script())
    assert None in statuses
    assert {429, 500} <= set(statuses)
    assert len(statuses) < 40


def test_the_public_names_are_all_there() -> None:
    for name in public.__all__:
        assert getattr(public, name) is not None
    assert public.__version__
    with pytest.raises(AttributeError):
        _ = public.no_such_name
