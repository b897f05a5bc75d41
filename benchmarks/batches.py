"""Memory and CPU of judging by batches, beside the same calls one by one: see README.md in this folder.

`python benchmarks/batches.py [--lines 50000] [--live 5000] [--protocol binary] [--folder FOLDER]` prints, for a wave of
so many lines, the peak memory of the process that writes and submits it and of the one that collects it, and the CPU
time of each line beside that of a live call of the same judge. The simulated provider is a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_MOST_PEAK, _MOST_RATIO = 300.0, 1.0
"""MB of the process that collects, and its CPU per line as a part of that of a live call."""
_DEMO = Path(__file__).resolve().parent.parent / "configs" / "demo"
_TRIALS_A_REPEAT = 480


def campaign_file(folder: Path, name: str, address: str, trials: int, protocol: str, transport: str) -> Path:
    """A campaign of one judge and so many trials (or a few more) on the demo's texts."""
    path = folder / f"{name}.toml"
    path.write_text(
        f"""
seed = 7
[data]
instructions = "{_DEMO / "instructions.jsonl"}"
completions = "{_DEMO / "completions.jsonl"}"
elo = "{_DEMO / "elo.csv"}"
[plan]
policy = "all-pairs"
repeats = {-(-trials // _TRIALS_A_REPEAT)}
[[judge]]
name = "judge"
model = "simulated/gpt-4-0613@1"
protocol = "{protocol}"
base_url = "{address}"
concurrency = 64
price = {{ input = 1.0, output = 4.0 }}
{transport}
""",
        encoding="utf-8",
    )
    return path


def run(path: Path, *, detach: bool) -> dict[str, float]:
    """One start of a campaign, in this process: calls sent and answered, CPU seconds of the run, and its peak MB."""
    from venire.configs.loading import load_campaign
    from venire.orchestrator.run.run_setup import Polling
    from venire.session import Session

    with Session(load_campaign(path)) as session:
        before = time.process_time()
        summary = session.run(environ={}, progress=lambda now: None, polling=Polling(1.0, detach=detach))
        cpu = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    return {"calls": summary.statistics.calls, "answered": summary.statistics.answered, "cpu": cpu, "peak": peak}


def serve(file: Path) -> None:
    """The simulated provider, until standard input ends."""
    from venire.configs.loading import load_campaign
    from venire.embedded import answer_key
    from venire.session import Session
    from venire.simulation.server import JudgeServer, serve_in_thread

    campaign = load_campaign(file)
    with Session(campaign) as session:
        key = answer_key(campaign, session.store)
    with serve_in_thread(JudgeServer(key, speed=0.0)) as server:
        print(server.base_url, flush=True)  # noqa: T201 - the address is what the parent waits for
        sys.stdin.read()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The provider's address while it runs."""
    known = campaign_file(folder, "known", "http://127.0.0.1:9/v1", 1, "binary", "")
    process = subprocess.Popen(
        [sys.executable, __file__, "--serve", str(known)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.communicate("")


def measured(path: Path, *words: str) -> dict[str, float]:
    """What one start of a campaign in a process of its own took."""
    command = [sys.executable, __file__, "--run", str(path), *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(folder: Path, *, lines: int, live: int, protocol: str) -> dict[str, Any]:
    """Submit and collect a wave of so many lines, and make so many calls live; milliseconds of CPU, and MB."""
    with served(folder) as address:
        one_by_one = measured(campaign_file(folder, "live", address, live, protocol, ""))
        batched = campaign_file(
            folder, "batched", address, lines, protocol, f'transport = "batch"\nwave_size = {lines}'
        )
        sent = measured(batched, "--detach")
        collected = measured(batched, "--detach")
    count = sent["calls"]
    if collected["answered"] != count or count < lines:
        raise SystemExit(f"{count} lines were sent and {collected['answered']} answered, for {lines}")
    call = 1000 * one_by_one["cpu"] / one_by_one["answered"]
    line = 1000 * collected["cpu"] / count
    return {
        "lines": count,
        "live_calls": one_by_one["answered"],
        "live_ms": call,
        "submitting_ms": 1000 * sent["cpu"] / count,
        "collecting_ms": line,
        "ratio": line / call,
        "live_mb": one_by_one["peak"],
        "submitting_mb": sent["peak"],
        "collecting_mb": collected["peak"],
    }


def main() -> int:
    """Measure and print; 1 where a target is missed."""
    parser = argparse.ArgumentParser(prog="batches.py", description=__doc__)
    parser.add_argument("--lines", type=int, default=50_000)
    parser.add_argument("--live", type=int, default=5_000)
    parser.add_argument("--protocol", choices=("binary", "two-stage"), default="binary")
    parser.add_argument("--folder", type=Path, help="where stores are made; default: a folder that is removed")
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--detach", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve(asked.serve)
        return 0
    if asked.run:
        print(json.dumps(run(asked.run, detach=asked.detach)))  # noqa: T201
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        found = measure(asked.folder or Path(scratch), lines=asked.lines, live=asked.live, protocol=asked.protocol)
    for name, value in found.items():
        print(f"{name:16} {value:,.3f}" if isinstance(value, float) else f"{name:16} {value:,}")  # noqa: T201
    met = found["collecting_mb"] < _MOST_PEAK and found["ratio"] <= _MOST_RATIO
    print(f"under {_MOST_PEAK:.0f} MB and at most the CPU of a live call: {'met' if met else 'MISSED'}")  # noqa: T201
    return int(not met)


if __name__ == "__main__":
    raise SystemExit(main())
