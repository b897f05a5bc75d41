"""One measurement: a driver in a separate process, on one core, with one thread."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
_PEERS = HERE.parent.parent / ".venv-peers" / "ratings"
_HOMES = {"rowwise": "fastchat"}
"""Drivers that use the environment of another driver, which has their dependencies."""

_LONGEST = 600.0


class Missing(Exception):
    """A library is not installed, or lacks the function."""


class Failed(Exception):
    """A driver ended with an error, or took too long."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Seconds of the fastest call by wall clock and by CPU, the number of calls, and the returned value."""

    seconds: float
    cpu: float
    calls: int
    version: str
    peak_mb: float
    found: NDArray[np.float64]

    @property
    def share(self) -> float:
        """The share of its core that the fastest call used."""
        return self.cpu / self.seconds


def environment() -> dict[str, str]:
    """One thread for every linear algebra library, no telemetry, and only the CPU."""
    single = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "RAYON_NUM_THREADS"), "1"
    )
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    return {**os.environ, **single, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "HF_HUB_OFFLINE": "1"}


def run(name: str, task: str, folder: Path, *, repeats: int = 3, seconds: float = 10.0, **options: Any) -> Run:
    """Call a task of "venire" or of a library `repeats` times, or until `seconds` have passed.

    Raises `Missing` where the library is not installed and `Failed` where its driver ends with an error.
    """
    result = folder / f"result-{name}-{os.getpid()}.npy"
    given = json.dumps({"repeats": repeats, "seconds": seconds, **options})
    command = [*_command(name), task, str(folder), str(result), given]
    try:
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=_LONGEST, check=False)
    except subprocess.TimeoutExpired as late:
        raise Failed(f"{name} took more than {_LONGEST:.0f} s") from late
    if done.returncode:
        raise Failed(f"{name} failed:\n{done.stderr[-1500:]}")
    told = json.loads(done.stdout.splitlines()[-1])
    if "missing" in told:
        raise Missing(told["missing"])
    found = np.load(result)
    result.unlink()
    best = int(np.argmin(told["cpu"]))
    return Run(told["wall"][best], told["cpu"][best], len(told["cpu"]), told["version"], told["peak_mb"], found)


def _command(name: str) -> list[str]:
    if name == "venire":
        return [sys.executable, str(HERE / "ours.py")]
    home = _PEERS / _HOMES.get(name, name)
    if not (home / ".installed").exists():
        raise Missing(f"{name} is not installed: make bench-ratings-peers")
    return [str(home / "bin" / "python"), str(HERE / "peers" / f"{name}_driver.py")]


def last_words(reason: Exception) -> str:
    """The reason for a missing figure, as a table cell: the last line of a driver's error."""
    return str(reason).strip().splitlines()[-1].replace("|", "/")
