"""Simulated seconds per second: campaigns of judges without HTTP on the virtual clock, by profile and protocol.

`python benchmarks/simulated.py [--profiles NAME ...] [--protocols NAME ...] [--calls 8000] [--in-flight 64]` prints one
table. The ratio is virtual seconds, from the first call to the last row on disk, over the seconds of `Session.run`: in
wall-clock time, and in CPU time, which other work on the machine affects less. Stores are in memory where the system
has a RAM file system.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from material import CAMPAIGN, texts

from venire.arena.clock import VirtualClock
from venire.configs.loading import load_campaign
from venire.embedded import Embedded
from venire.judges import PROTOCOLS
from venire.session import Session
from venire.simulation.judge import load_profiles

_MODELS = 8
_PAIRS = _MODELS * (_MODELS - 1) // 2
_IN_MEMORY = Path("/dev/shm")
_HEAD = ("profile", "protocol", "calls", "seconds a call", "simulated s", "per s", "per s of CPU", "CPU us a call")


class Measured(NamedTuple):
    """One campaign: its calls, virtual seconds, and the seconds and CPU seconds that simulating them took."""

    calls: int
    simulated: float
    wall: float
    cpu: float


def measure(folder: Path, profile: str, protocol: str, calls: int, in_flight: int) -> Measured:
    """Run a campaign of at least `calls` calls. Raises RuntimeError where it does not complete."""
    entry = PROTOCOLS[protocol]
    instructions = -(-calls // (entry.shape.trials(_MODELS, _PAIRS) * len(entry.expects)))
    _write(folder, profile, protocol, instructions, in_flight)
    clock = VirtualClock()
    with Session(load_campaign(folder / CAMPAIGN), clock=clock) as session:
        wall, cpu = time.perf_counter(), time.process_time()
        summary = session.run(embedded=Embedded(direct=True))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if summary.progress.missing or summary.progress.failed:
        raise RuntimeError(f"{profile}, {protocol}: the campaign ended {summary.ending.name}")
    return Measured(summary.statistics.calls, clock.monotonic(), wall, cpu)


def _write(folder: Path, profile: str, protocol: str, instructions: int, in_flight: int) -> None:
    """A campaign file with its tables: eight contestants 40 Elo apart, one judge, prompts of about 6 kB."""
    folder.mkdir()
    with (
        (folder / "instructions.jsonl").open("w", encoding="utf-8") as asked,
        (folder / "completions.jsonl").open("w", encoding="utf-8") as said,
    ):
        for name, text, completions in texts(instructions, _MODELS):
            asked.write(json.dumps({"instruction_id": name, "instruction": text, "reference": text[:200]}) + "\n")
            for model, completion in completions.items():
                said.write(json.dumps({"instruction_id": name, "model": model, "completion": completion}) + "\n")
    elo = "".join(f"model-{number:02},{1000 + 40 * number}\n" for number in range(_MODELS))
    (folder / "elo.csv").write_text(f"model,elo\n{elo}", encoding="utf-8")
    (folder / CAMPAIGN).write_text(
        'name = "simulated"\nseed = 7\n\n[data]\ninstructions = "instructions.jsonl"\n'
        'completions = "completions.jsonl"\nelo = "elo.csv"\n\n[plan]\npolicy = "all-pairs"\n\n'
        f'[[judge]]\nname = "judge"\nmodel = "simulated/{profile}@1"\nprotocol = "{protocol}"\n'
        f"concurrency = {in_flight}\ntimeout = 3600\n",  # a human judge takes longer than most clients wait
        encoding="utf-8",
    )


def show(profiles: Sequence[str], protocols: Sequence[str], calls: int, in_flight: int) -> None:
    """Print a line for each profile and protocol as soon as it is measured."""
    _line(*_HEAD)
    _line(*("---" for _ in _HEAD))
    with tempfile.TemporaryDirectory(dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None) as name:
        measure(Path(name) / "warm", profiles[0], protocols[0], 200, in_flight)
        for profile in profiles:
            for protocol in protocols:
                found = measure(Path(name) / f"{profile} {protocol}", profile, protocol, calls, in_flight)
                _line(
                    profile,
                    protocol,
                    f"{found.calls:,}",
                    f"{found.simulated * in_flight / found.calls:.1f}",
                    f"{found.simulated:,.0f}",
                    f"{found.simulated / found.wall:,.0f}",
                    f"{found.simulated / found.cpu:,.0f}",
                    f"{1e6 * found.cpu / found.calls:.0f}",
                )


def _line(*cells: str) -> None:
    sys.stdout.write("| " + " | ".join(cells) + " |\n")
    sys.stdout.flush()


def main() -> None:
    """Measure all of it and print one table."""
    protocols = [name for name, entry in PROTOCOLS.items() if not entry.shape.writes and name != "recorded"]
    parser = argparse.ArgumentParser()
    parser.add_argument("--profiles", nargs="+", choices=load_profiles(), default=list(load_profiles()))
    parser.add_argument("--protocols", nargs="+", choices=protocols, default=["two-stage"])
    parser.add_argument("--calls", type=int, default=8_000)
    parser.add_argument("--in-flight", type=int, default=64)
    given = parser.parse_args()
    show(given.profiles, given.protocols, given.calls, given.in_flight)


if __name__ == "__main__":
    main()
