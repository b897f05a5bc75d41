"""Judges that are replicas in a Ray cluster: each is asked, one may die, and others go on where they stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import venire as vn
from tests.ledgers import read_ledger
from tests.processes import ends
from tests.stores import rows_of
from tests.torture.clusters import LOOPBACK
from venire.arena.errors import InputError
from venire.configs.loading import load_campaign
from venire.orchestrator.engines.ray_replicas import replaced
from venire.session import Session
from venire.simulation.faults import Faults
from venire.simulation.ledger import LedgerEntry
from venire.simulation.server import JudgeServer

Venire = Callable[..., Any]
Write = Callable[..., Path]
Serve = Callable[..., Any]

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "ray_vllm.py"
TRIALS = 15 * 2 * 2
CALLS = 2 * TRIALS
JUDGE = """\
[[judge]]
name = "judge"
model = "simulated/gpt-4-0613@1"
concurrency = {concurrency}
{more}
"""
REPLICAS = 'base_url = "ray://judge"'


def judged_by(more: str = REPLICAS, concurrency: int = 4) -> str:
    return JUDGE.format(more=more, concurrency=concurrency)


@pytest.mark.parametrize("words", [(), ("--engine", "local")])
def test_without_a_cluster_such_a_campaign_is_not_run(venire: Venire, write_campaign: Write, words: Any) -> None:
    path = write_campaign(judges=judged_by())
    done = venire("run", path, "--yes", *words)
    assert done.code == 2
    said = " ".join(done.err.split())
    assert "judge 'judge': ray://judge stands for servers that are found in a Ray cluster" in said
    assert "run it with --engine ray:ADDRESS" in said
    assert not path.with_suffix(".duckdb").exists()
    with pytest.raises(InputError, match="found in a Ray cluster"):
        vn.run(path)
    with Session(load_campaign(path)) as session, pytest.raises(InputError, match="found in a Ray cluster"):
        session.run(environ={})


def test_without_a_cluster_it_is_planned_and_looked_at(venire: Venire, write_campaign: Write) -> None:
    path = write_campaign(judges=judged_by())
    assert venire("plan", path, "--json").json()["trials"] == TRIALS
    assert venire("status", path).code == 0
    done = venire("doctor", path, "--yes")
    assert "ray://judge is looked for in the Ray cluster that a run is given" in " ".join(done.out.split())


def test_other_replicas_go_on_and_what_failed_stays_failed(venire: Venire, write_campaign: Write, serve: Serve) -> None:
    """A failure is tried again by itself where its endpoint has changed: replicas change at each start."""
    path = write_campaign(judges=judged_by(REPLICAS + "\nmax_attempts = 1"))
    campaign = load_campaign(path)

    def run(server: JudgeServer) -> Any:
        with Session(replaced(campaign, {"judge": [server.base_url]})) as session:
            return session.run(environ={})

    with serve(faults=Faults(server_error=0.1)) as first:
        before = run(first).progress
    assert before.failed > 2
    assert (before.settled + before.failed, before.missing) == (TRIALS, 0)
    assert venire("plan", path, "--json").json()["judges"][0]["calls"] == 0
    with serve() as second:
        assert run(second).progress == before
        assert second.ledger.entries == []
        with Session(replaced(campaign, {"judge": [second.base_url]})) as session:
            assert session.retry_failed() == before.failed
            assert session.run(environ={}).progress.settled == TRIALS
    assert rows(path, "select distinct endpoint from lane") == [("ray://judge",)]
    assert len(rows(path, "select name from lane")) == 2, "its name says where each of them was"


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    return rows_of(path.with_suffix(".duckdb"), query)


class Replicas:
    """Replicas that the example starts, with the embedded server in place of vLLM, and what each of them was asked."""

    def __init__(self, ray: Any, folder: Path, campaign: Path) -> None:
        self.ray, self.folder = ray, folder
        server = f"{sys.executable} -m venire mock-provider {campaign} --port {{port}} --speed 100"
        self.command = f"{server} --ledger {folder}/{{name}}-{{port}}.jsonl"

    def start(self, number: int = 2) -> None:
        words = ("simulated/gpt-4-0613@1", "--replicas", number, "--gpus", 0, "--port", 0, "--command", self.command)
        said = self._script("start", *words)
        assert said.count("http://127.0.0.1:") == number
        assert 'base_url = "ray://judge"' in said

    def stop(self) -> None:
        self._script("stop")

    def _script(self, verb: str, *words: object) -> str:
        address = self.ray.get_runtime_context().gcs_address
        command = [sys.executable, EXAMPLE, verb, *map(str, words), "--address", address]
        environ = os.environ | {LOOPBACK: "0"}  # as the cluster was started
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=100)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    def asked(self) -> dict[str, list[LedgerEntry]]:
        """By the name of the replica and its port."""
        return {path.stem: read_ledger(path) for path in sorted(self.folder.glob("*.jsonl"))}

    def servers(self, name: str) -> list[int]:
        """The processes of a replica's server."""
        mark = f"{self.folder}/{name}-".encode()
        return [int(one.parent.name) for one in Path("/proc").glob("[0-9]*/cmdline") if mark in read(one)]


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended
        return b""


@pytest.fixture
def replicas(ray_cluster: Any, write_campaign: Write, tmp_path: Path) -> Iterator[Replicas]:
    """Two replicas named judge."""
    (folder := tmp_path / "ledgers").mkdir()
    found = Replicas(ray_cluster, folder, write_campaign(name="key.toml"))
    found.start()
    left = [*found.servers("judge-0"), *found.servers("judge-1")]
    assert len(left) == 4, "a server and its keeper, of each"
    yield found
    left += [*found.servers("judge-0"), *found.servers("judge-1")]
    found.stop()
    assert all(ends(process, 20) for process in left), "a server ends with its actor"


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_all_replicas_are_asked_and_one_may_die(
    venire: Venire, write_campaign: Write, replicas: Replicas, tmp_path: Path
) -> None:
    rated = []
    for more, words in ((REPLICAS, ("--engine", "ray", "--actors", 2)), ("", ())):
        path = write_campaign(judges=judged_by(more))
        done = venire("run", path, "--yes", *words)
        assert done.code == 0, done.err
        path.with_suffix(".duckdb").replace(same := tmp_path / "same.duckdb")
        rated.append(venire("rate", same, "--json").out)
    asked = replicas.asked()
    assert len(asked) == 2
    assert all(len(entries) > CALLS / 10 for entries in asked.values())
    assert Counter(entry.body_asked for entries in asked.values() for entry in entries) == {1: CALLS}
    assert rated[0] == rated[1], "the store is that of one process without replicas"

    path = write_campaign(name="dying.toml", judges=judged_by(concurrency=1))
    servers = replicas.servers("judge-1")
    killed: list[int] = []

    def kill(now: Any) -> None:
        if now.answered > 10 and not killed:
            killed.append(now.answered)
            replicas.ray.kill(replicas.ray.get_actor("judge-1", namespace="venire"))

    result = vn.run(path, engine="ray", progress=kill)
    assert killed[0] < CALLS / 2, "in the middle"
    assert (result.ending, result.summary.progress.settled) == ("complete", TRIALS)
    assert all(ends(process, 20) for process in servers)


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_other_replicas_go_on_where_a_run_was_stopped(
    venire: Venire, write_campaign: Write, replicas: Replicas
) -> None:
    path = write_campaign(judges=judged_by(concurrency=1))

    def stop(now: Any) -> None:
        if now.answered > 10:
            signal.raise_signal(signal.SIGINT)

    assert vn.run(path, engine="ray", progress=stop).ending == "interrupted"
    before = replicas.asked()
    replicas.stop()
    done = venire("run", path, "--yes", "--engine", "ray")
    assert done.code == 2
    assert "judge 'judge': no replica answers for ray://judge: start actors" in " ".join(done.err.split())
    replicas.start()
    done = venire("run", path, "--yes", "--engine", "ray")
    assert done.code == 0, done.err
    after = replicas.asked()
    assert len(after) == 2 * len(before)
    bodies = Counter(entry.body for entries in after.values() for entry in entries)
    assert sum(map(len, before.values())) < CALLS
    assert (len(bodies), set(bodies.values())) == (CALLS, {1})
