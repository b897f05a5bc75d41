"""`venire run --engine`: by a Ray cluster the same store as by this process, and nothing left of the cluster."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import venire as vn

Venire = Callable[..., Any]
Write = Callable[..., Path]
Start = Callable[..., subprocess.Popen[str]]
Serve = Callable[..., Any]

SECRET = "sk-not-to-be-seen-anywhere"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--engine", "spark"), "take local, ray, or ray:ADDRESS"),
        (("--engine", "ray:nowhere"), "the address of a cluster is HOST:PORT"),
        (("--actors", 2), "actors are those of a Ray cluster"),
        (("--engine", "ray", "--actors", 0), "--actors"),
        (("--engine", "ray", "--lease", "10ms"), "--lease is '10ms'"),
        (("--engine", "ray", "--lease", "0.5s"), "a lease of 0.5 s ends before its actor can have answered"),
    ],
)
def test_an_engine_that_cannot_be_is_refused(
    venire: Venire, write_campaign: Write, words: tuple[object, ...], said: str
) -> None:
    path = write_campaign()
    done = venire("run", path, "--yes", *words)
    assert done.code == 2
    assert said in " ".join(done.err.split())
    assert not path.with_suffix(".duckdb").exists()


def test_without_ray_the_command_says_what_to_install(
    venire: Venire, write_campaign: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    done = venire("run", write_campaign(), "--yes", "--engine", "ray")
    assert done.code == 2
    assert 'needs Ray: pip install "venire[ray]"' in " ".join(done.err.split())


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_a_cluster_leaves_the_board_of_one_process_and_nothing_else(
    start: Start, venire: Venire, write_campaign: Write, serve: Serve, tmp_path: Path, nothing_left_of_ray: None
) -> None:
    keys = tmp_path / "keys.env"
    keys.write_text(f"SOME_KEY={SECRET}\n", encoding="utf-8")
    with serve() as server:
        path = write_campaign(judge=f'base_url = "{server.base_url}"\nkey_variable = "SOME_KEY"')
        command = ("-m", "venire", "run", path, "--yes", "--env-file", keys)
        rated, said = [], []
        for words in ((), ("--engine", "ray", "--actors", "2")):
            done = start(*command, *words)
            said += done.communicate(timeout=200)
            assert done.returncode == 0, said[-1]
            store = path.with_suffix(".duckdb").rename(tmp_path / f"{len(rated)}.duckdb")
            shutil.copy(store, same := tmp_path / "same.duckdb")
            rated.append(venire("rate", same, "--json").out)
            assert venire("store", "check", store).code == 0
            said.append(store.read_bytes().decode("latin-1"))
    assert rated[0] == rated[1]
    assert "2 actors of a Ray cluster of 1 node will ask" in said[4]
    assert not [text for text in said if SECRET in text]


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_an_interrupted_run_goes_on_with_the_other_engine(
    start: Start, venire: Venire, write_campaign: Write, nothing_left_of_ray: None
) -> None:
    path = write_campaign(instructions=8)
    process = start("-m", "venire", "run", path, "--yes", "--engine", "ray", "--speed", "40")
    assert process.stderr is not None
    for line in process.stderr:
        if " trials, " in line and " in flight" in line and not line.strip().startswith("0/"):
            process.send_signal(signal.SIGINT)
            break
    process.communicate(timeout=120)
    assert process.returncode == 130
    done = venire("run", path, "--yes")
    assert done.code == 0
    assert "ended without notice" not in done.err
    assert venire("store", "check", path.with_suffix(".duckdb")).code == 0


@pytest.mark.ray
def test_ray_is_an_engine_in_python(write_campaign: Write, ray_cluster: Any) -> None:
    result = vn.run(write_campaign(instructions=1), engine="ray", actors=2)
    assert (result.ending, result.summary.progress.missing) == (vn.Ending.COMPLETE, 0)
    assert result.summary.losses.leases == 0
