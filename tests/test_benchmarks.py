"""The benchmarks run and refuse what they must; their figures are not judged: other work shares the cores."""

from __future__ import annotations

import os
import re
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from tests.parameters import slow_after

_BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
_SECOND = b'{"messages": [{"role": "assistant", "content": "reasons"}]}'

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the benchmarks pin processes to cores"),
    pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="their endpoint is a C program"),
]


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[str, ModuleType]]:
    """The benchmarks' own modules, which are no part of the package."""
    names = ("material", "measuring", "partitions", "peers", "resume", "scaling", "stores", "table", "upstream")
    sys.path.insert(0, str(_BENCHMARKS))
    try:
        yield {name: import_module(name) for name in names}
    finally:
        sys.path.remove(str(_BENCHMARKS))
        for name in names:
            del sys.modules[name]


def _post(url: str, body: bytes = b"{}") -> bytes:
    with urlopen(Request(f"{url}/chat/completions", body), timeout=30) as answer:
        said: bytes = answer.read()
    return said


@pytest.mark.slow
def test_the_first_row_in_brief_checks_its_rows_and_prints_its_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    done = subprocess.run(
        [sys.executable, str(_BENCHMARKS / "bench.py"), "--quick"], capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stderr
    assert "engine / yardstick at 20 ms, in brief | 4,000 | 256 (" in done.stdout
    with capsys.disabled():
        sys.stdout.write(f"\n{done.stdout}")


@pytest.mark.slow
def test_a_simulation_is_measured_in_virtual_seconds_a_second() -> None:
    command = [sys.executable, str(_BENCHMARKS / "simulated.py"), "--calls", "60", "--profiles", "person", "gemini-pro"]
    done = subprocess.run([*command, "--protocols", "direct"], capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    rows = [line.split(" | ") for line in done.stdout.splitlines()]
    assert [row[:2] for row in rows[2:]] == [["| person", "direct"], ["| gemini-pro", "direct"]]
    (calls, latency), (_, quicker) = ([float(cell.replace(",", "")) for cell in row[2:4]] for row in rows[2:])
    assert calls >= 60
    assert latency > 10 * quicker > 0


def test_the_endpoint_counts_what_came_by_lane_and_resets_dead_ones(modules: dict[str, ModuleType]) -> None:
    upstream = modules["upstream"]
    with upstream.running(0.001) as url:
        assert b"gives its grounds" in _post(url)
        assert b'"content":"2"' in _post(url.replace("/v1", "/slow-3/v1"), _SECOND)
        assert b'"content":"2"' in _post(url.replace("/v1", "/brief-3/v1"))
        with urlopen(url.replace("/v1", "/dead-4/v1/models"), timeout=30) as models:
            assert models.status == 200
        with pytest.raises((ConnectionResetError, URLError)):
            _post(url.replace("/v1", "/dead-4/v1"))
        found = upstream.counts(url)
    assert (found["calls"], found["answered"], found["most"], found["in_flight"]) == (4, 3, 1, 0)
    assert [lane[:3] for lane in found["lanes"]] == [[0, 1, 1], [3, 2, 2], [4, 1, 0]]
    assert found["bytes"] == 2 + 2 + 2 + len(_SECOND)


def test_the_endpoint_speaks_tls_where_openssl_is_there(modules: dict[str, ModuleType], tmp_path: Path) -> None:
    upstream = modules["upstream"]
    try:
        pair = upstream.certificate(tmp_path)
        with upstream.running(0.001, tls=pair) as url:
            trusting = ssl.create_default_context(cafile=str(pair[0]))
            request = Request(f"{url}/chat/completions", b" " * 100_000)
            with urlopen(request, timeout=30, context=trusting) as answer:
                assert b"gives its grounds" in answer.read()
            assert upstream.counts(url, pair[0])["bytes"] == 100_000
    except upstream.Missing as missing:
        pytest.skip(str(missing))


def test_without_a_compiler_the_endpoint_says_what_to_install(
    modules: dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modules["upstream"], "_CACHE", tmp_path)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(modules["upstream"].Missing, match="install cc, gcc or clang"), modules["upstream"].running(0.1):
        pass


def test_a_run_with_rows_that_are_not_its_calls_is_void(modules: dict[str, ModuleType]) -> None:
    measuring = modules["measuring"]
    told = {"plan": 5, "attempt": 10, "verdict": 5, "ending": "COMPLETE"}
    assert measuring.checked(measuring.Run(10, 1.0, 1.0, 4, told))
    for wrong in ({"attempt": 9}, {"verdict": 4}, {"ending": "LANE_CLOSED"}):
        with pytest.raises(measuring.Failed):
            measuring.checked(measuring.Run(10, 1.0, 1.0, 4, told | wrong))


@pytest.mark.parametrize(("seen", "sent", "latency"), [(24, 24, 0.02), (89, 89, 0.2), (49, 100, 0.2), (101, 100, 0.02)])
def test_a_run_with_too_few_or_too_many_in_flight_is_void(
    modules: dict[str, ModuleType], seen: int, sent: int, latency: float
) -> None:
    measuring = modules["measuring"]
    run = measuring.Run(1000, 1.0, 1.0, seen, {"most_sent": sent, "client": "engine.py"})
    with pytest.raises(measuring.Failed, match=f"{seen} by the endpoint's"):
        measuring.full(run, 100, latency)


def test_the_yardstick_sends_bodies_of_the_engines_size(modules: dict[str, ModuleType], tmp_path: Path) -> None:
    material = modules["material"]
    material.write_calls(tmp_path / "calls.jsonl", trials=20)
    sizes = [len(line) for line in (tmp_path / "calls.jsonl").read_text(encoding="utf-8").splitlines()]
    assert 5_500 < sum(sizes[::2]) / 20 < 6_800
    assert 1_500 < (sum(sizes[1::2]) - sum(sizes[::2])) / 20 < 2_000
    material.write_calls(tmp_path / "binary.jsonl", trials=20, protocol="binary")
    sizes = [len(line) for line in (tmp_path / "binary.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(sizes) == 20
    assert 5_500 < sum(sizes) / 20 < 6_800


@pytest.mark.parametrize("client", slow_after(1, "ry", "aiohttp"))
def test_each_yardstick_makes_every_call_once(modules: dict[str, ModuleType], tmp_path: Path, client: str) -> None:
    cores = os.sched_getaffinity(0)
    try:
        run = modules["measuring"].Bench(tmp_path).yardstick(300, 16, 0.01, client=client)
    finally:
        os.sched_setaffinity(0, cores)
    assert (run.calls, run.told["client"]) == (300, "yardstick.py")
    assert run.cpu > 0


def test_a_peer_of_another_version_than_its_lock_and_one_without_environment_are_refused(
    modules: dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measuring, peers = modules["measuring"], modules["peers"]
    monkeypatch.setattr(peers, "_ENVIRONMENTS", tmp_path)
    cores = os.sched_getaffinity(0)
    try:
        bench = measuring.Bench(tmp_path)
        with pytest.raises(measuring.Missing, match="make bench-peers"):
            bench.peer(peers.PEERS["litellm"], 10, 2, 0.001)
        python = tmp_path / "litellm" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(
            f"#!{sys.executable}\n"
            "import json, sys, time, urllib.request\n"
            "request = urllib.request.Request(sys.argv[2] + '/chat/completions', b'{}')\n"
            "urllib.request.urlopen(request).read()\n"
            "print(json.dumps({'ended': time.time(), 'cpu': 0.1, 'calls': 1, 'version': '0.0.1'}))\n",
            encoding="utf-8",
        )
        python.chmod(0o755)
        with pytest.raises(measuring.Failed, match=r"litellm is 0\.0\.1 and its lock says "):
            bench.peer(peers.PEERS["litellm"], 1, 2, 0.001)
    finally:
        os.sched_setaffinity(0, cores)


def test_a_line_tells_the_spread_of_paired_ratios_and_whether_the_target_is_met(
    modules: dict[str, ModuleType],
) -> None:
    measuring, table = modules["measuring"], modules["table"]
    base = [measuring.Run(100, seconds, 2.0, 8, {}) for seconds in (1.0, 1.0, 2.0)]
    subject = [measuring.Run(100, seconds, 4.0, 9, {}) for seconds in (2.0, 1.0, 2.5)]
    line = table.compare("it", 10, base, subject, 0.65)
    assert line.show() == (
        "| it | 100 | 10 (8, 9) | 0.800 (0.500-1.000) | 0.50 (0.50-0.50) | at least 0.65: met "
        "| 40.000 (200%) against 20.000 (200%) |"
    )
    assert not table.compare("it", 10, base, subject, 0.9).met
    waited = [measuring.Run(100, 1.0, 0.5, 8, {})]
    assert "core shared, not judged" in table.compare("it", 10, waited, waited, 0.5).show()
    assert "at least 0.5: met" in table.compare("it", 10, waited, waited, 0.5, saturated=False).show()


@pytest.mark.slow
def test_the_batches_are_measured_beside_live_calls() -> None:
    command = [sys.executable, str(_BENCHMARKS / "batches.py"), "--lines", "480", "--live", "480"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "collecting_ms" in done.stdout, done.stderr
    assert "lines            480" in done.stdout


@pytest.mark.slow
def test_two_shards_are_measured_beside_one_process_with_all_their_processes(
    modules: dict[str, ModuleType], tmp_path: Path
) -> None:
    cores = os.sched_getaffinity(0)
    try:
        bench = modules["measuring"].Bench(tmp_path)
        lines = list(modules["scaling"].scaling(bench, 1, trials=400, in_flight=16))
        assert os.sched_getaffinity(0) == {bench.core}
    finally:
        os.sched_setaffinity(0, cores)
    assert [line.calls for line in lines] == [800] * 4
    alone, whole, shards, both = (line.show() for line in lines)
    assert "one process, all cores, calls/s at 20 ms" in alone
    assert "two shards / one process" in shards
    for shown in (alone, shards):
        assert re.search(r"of \d+ cores engine \d+%, endpoint \d+%, other work \d+%: .+ is used up", shown)
    for shown in (whole, both):
        assert "from the start of the commands to their end" in shown
    spent = [float(shown.split(" | ")[-1].removesuffix(" |")) for shown in (whole, both)]
    assert min(spent) > 0.5, "the start of a command alone takes half a second of CPU, of 800 calls"
    assert spent[1] > 1.2 * spent[0], "and there are two"


def test_what_a_run_has_used_up_is_named(modules: dict[str, ModuleType]) -> None:
    measuring, scaling = modules["measuring"], modules["scaling"]

    def used_up(cpu: float, endpoint: float = 0.2, machine: float = 0.0, processes: int = 1) -> str:
        told = {"endpoint": endpoint, "own": 0.0, "machine": max(machine, cpu + endpoint), "processes": processes}
        said: str = scaling.bound(measuring.Run(100, 1.0, cpu, 8, told), cores=2)
        return said

    assert used_up(1.05) == "the engine"
    assert used_up(1.65, processes=2) == "the machine"
    assert used_up(1.1, machine=1.95, processes=2) == "the machine, with other work"
    assert used_up(0.5, endpoint=0.97) == "the endpoint"
    assert used_up(0.5) == "nothing"


def test_a_way_without_its_package_is_left_out_by_name(
    modules: dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measuring, scaling = modules["measuring"], modules["scaling"]
    ways = (scaling.WAYS[0], scaling.Way("elsewhere", list, package="no_such_package"))
    monkeypatch.setattr(scaling, "WAYS", ways)
    told = {"endpoint": 0.1, "own": 0.0, "machine": 1.2, "processes": 1, "whole_seconds": 2.0, "whole_cpu": 2.0}
    monkeypatch.setattr(scaling, "measure", lambda *_: measuring.Run(100, 1.0, 1.0, 8, told))
    cores = os.sched_getaffinity(0)
    try:
        assert len(list(scaling.scaling(measuring.Bench(tmp_path), 2))) == 2
    finally:
        os.sched_setaffinity(0, cores)
    assert "elsewhere is left out: no_such_package is not installed" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ranges", "shards"])
def test_partitions_are_merged_beside_duckdb_alone(kind: str, tmp_path: Path) -> None:
    command = [sys.executable, str(_BENCHMARKS / "partitions.py"), "--rows", "1000", "--partitions", "2"]
    done = subprocess.run([*command, "--kinds", kind], capture_output=True, text=True, check=False, timeout=110)
    assert done.returncode == 0, done.stderr
    rows = [line.split(" | ") for line in done.stdout.splitlines()[2:]]
    assert [row[:3] for row in rows] == [
        [f"| {kind}", "DuckDB alone", "2 x 2,000"],
        [f"| {kind}", "venire store merge", "2 x 2,000"],
    ]


@pytest.mark.parametrize("given", [["--rows", "1500"], ["--rows", "0"], ["--partitions", "1"]])
def test_partitions_that_there_cannot_be_are_refused(
    modules: dict[str, ModuleType],
    given: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["partitions.py", *given])
    with pytest.raises(SystemExit) as ended:
        modules["partitions"].main()
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert "--rows" in told
    assert "multiple of 1,000" in told
    assert "--partitions 2" in told
