"""One measurement: an endpoint on one core, a client in a process of its own on another, and what each of them saw."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import upstream
from material import Judge, write_calls, write_campaign

__all__ = ["HERE", "Bench", "Failed", "Run", "Spread"]

HERE = Path(__file__).parent


class Failed(Exception):
    """A measurement that is worth nothing: rows that do not equal calls, or fewer in flight than asked for."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one client did; seconds from its first call at the endpoint to its end."""

    calls: int
    seconds: float
    cpu: float
    """Seconds of CPU of all threads, without imports and planning."""
    most: int
    """Most calls in flight at one time, as the endpoint saw them."""
    told: dict[str, Any]
    """What the client said."""

    @property
    def rate(self) -> float:
        """Calls per second."""
        return self.calls / self.seconds

    @property
    def cpu_ms(self) -> float:
        """Milliseconds of CPU for a call."""
        return 1000 * self.cpu / self.calls


@dataclass(frozen=True, slots=True)
class Spread:
    """Several values of one figure."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The one in the middle."""
        return median(self.values)

    def show(self, digits: int = 2) -> str:
        """Median and range."""
        return f"{self.median:.{digits}f} ({min(self.values):.{digits}f}-{max(self.values):.{digits}f})"


class Bench:
    """A folder for what is measured, and the cores: the client has the first, the endpoint and this process another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        cores = sorted(os.sched_getaffinity(0))
        self.client_core, self.core = cores[0], cores[-1]
        self.calls_file = folder / "calls.jsonl"
        write_calls(self.calls_file)
        os.sched_setaffinity(0, {self.core})

    @contextmanager
    def endpoint(self, latency: float, *, tls: tuple[Path, Path] | None = None) -> Iterator[str]:
        """The base URL of an endpoint with an even latency in seconds."""
        with upstream.running(latency, spread=0.0, core=self.core, tls=tls) as url:
            yield url

    def start(self, command: Sequence[str], **environment: str) -> subprocess.Popen[str]:
        """A client on its core."""
        pin: Callable[[], None] = partial(os.sched_setaffinity, 0, {self.client_core})
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=pin,
            env={**os.environ, **environment},
        )

    def finish(self, client: subprocess.Popen[str], url: str, trust: Path | None = None) -> Run:
        """Wait for a client and ask its endpoint. Raises Failed where one of them tells of something else."""
        said, complaint = client.communicate()
        if client.returncode:
            raise Failed(f"{' '.join(map(str, client.args))} failed:\n{complaint[-2000:]}")  # type: ignore[arg-type]
        told = json.loads(said.splitlines()[-1])
        seen = upstream.counts(url, trust)
        told |= {"client": client.args[1], "lanes": seen["lanes"], "bytes": seen["bytes"] / seen["calls"]}  # type: ignore[index]
        if told["calls"] != seen["calls"]:
            raise Failed(f"{told['calls']} calls by the client, {seen['calls']} at the endpoint")
        return Run(seen["calls"], told["ended"] - seen["first"], told["cpu"], seen["most"], told)

    def client(self, script: Path, calls: int, in_flight: int, latency: float, *, python: str = sys.executable) -> Run:
        """One run of a client without an engine: the yardstick or a peer."""
        with self.endpoint(latency) as url:
            words = [python, str(script), url, str(self.calls_file), str(calls), str(in_flight)]
            return self.finish(self.start(words), url)

    def yardstick(self, calls: int, in_flight: int, latency: float) -> Run:
        """One run of the yardstick. Raises Failed unless so many were in flight."""
        return full(self.client(HERE / "yardstick.py", calls, in_flight, latency), in_flight, latency)

    def engine(self, calls: int, in_flight: int, latency: float, *options: str) -> Run:
        """One run of the engine, through one lane, on a new store; `options` are those of engine.py."""
        with self.endpoint(latency) as url, tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            folder = Path(scratch) / "campaign"
            write_campaign(folder, [Judge("judge", url, in_flight)], calls)
            run = self.finish(self.start([sys.executable, str(HERE / "engine.py"), str(folder), *options]), url)
        checked(run, stored="store" not in options)
        return full(run, in_flight, latency)


def full(run: Run, in_flight: int, latency: float) -> Run:
    """The run, if it had so many calls in flight at one time, more or less. Raises Failed otherwise.

    From a latency of 0.1 s on the endpoint must have seen 0.95 of them. Below it the client's core is what is busy:
    answers wait for it that the endpoint has given already, and workers wait for their turn on it. Then the client
    must have counted half of them: a client that goes through a door one by one has a handful.
    """
    most, share = (run.most, 0.95) if latency >= 0.1 else (max(run.most, run.told["most_sent"]), 0.5)
    if run.most > in_flight or most < share * min(in_flight, run.calls):
        who = Path(run.told["client"]).name
        raise Failed(f"{who}: {most} calls were in flight at the most (at the endpoint {run.most}), not {in_flight}")
    return run


def checked(run: Run, *, stored: bool = True) -> Run:
    """The run, if its rows equal its calls and every trial has its verdict. Raises Failed otherwise."""
    told = run.told
    wanted = (run.calls, told["plan"], "COMPLETE")
    if stored and (told["attempt"], told["verdict"], told["ending"]) != wanted:
        raise Failed(
            f"{run.calls} calls at the endpoint and {told['plan']} trials, but {told['attempt']} attempts and "
            f"{told['verdict']} verdicts in the store; the run ended {told['ending']}"
        )
    return run
