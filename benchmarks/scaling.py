"""One campaign by several processes of this machine: calls a second, CPU a call, and what of the machine that took.

A row of `make bench`. Each way is a list of commands, run side by side on all cores, with one endpoint: the same calls
and the same number in flight in total. CPU is that of all processes that the commands start, theirs included, by their
ids in /proc: children of children, and those whose parent has ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import duckdb
import numpy as np
import upstream
from material import CAMPAIGN, Judge
from measuring import Bench, Failed, Run, Spread
from table import Line

_TRIALS, _IN_FLIGHT, _LATENCY = 15_000, 256, 0.02
_TICK = os.sysconf("SC_CLK_TCK")
_BECOMES_PARENT_OF_ORPHANS = 36
"""PR_SET_CHILD_SUBREAPER of prctl."""

_FULL = 0.9
"""Share of what there is from which it counts as used up."""

_RUN = (sys.executable, "-m", "venire", "run")


@dataclass(frozen=True, slots=True)
class Way:
    """A way to run a campaign: commands that are started side by side, each with an equal part of the calls in flight.

    `package` is one that the commands need besides Venire's own; without it the way is left out.
    """

    name: str
    commands: Callable[[Path], Sequence[Sequence[str]]]
    package: str | None = None
    processes: int | None = None
    """Processes that ask, each with a core's work at most; None: one a command."""


def _shards(file: Path, of: int) -> list[list[str]]:
    return [[*_RUN, str(file), "--yes", "--shard", f"{number}/{of}"] for number in range(1, of + 1)]


def _actors(file: Path, number: int) -> list[list[str]]:
    return [[*_RUN, str(file), "--yes", "--engine", "ray", "--actors", str(number)]]


WAYS = (
    Way("one process", lambda file: [[*_RUN, str(file), "--yes"]]),
    Way("two shards", lambda file: _shards(file, 2)),
    Way("Ray, one actor", lambda file: _actors(file, 1), "ray", 2),
    Way("Ray, two actors", lambda file: _actors(file, 2), "ray", 3),
)
"""The first is what the others are compared with."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """What was used up to a moment, in CPU seconds: by the engine, the endpoint, this process, and the machine."""

    at: float
    engine: float
    endpoint: float
    own: float
    machine: float


@dataclass(slots=True)
class _Tree:
    """All processes that came from this one since a moment, and the CPU seconds of each."""

    before: frozenset[tuple[int, str]]
    cpu: dict[tuple[int, str], float] = field(default_factory=dict)

    def look(self) -> float:
        """CPU seconds so far of all of them, those that have ended included."""
        found = _processes()
        below = {os.getpid()}
        while more := {pid for pid, (parent, _, _) in found.items() if parent in below} - below:
            below |= more
        for pid in below - {os.getpid()}:
            _, began, seconds = found[pid]
            if (pid, began) not in self.before:
                self.cpu[pid, began] = seconds
        return sum(self.cpu.values())

    def end(self) -> None:
        """End what is left of them, by their ids; those without another parent are this process's to reap."""
        left = [pid for pid, (_, began, _) in _processes().items() if (pid, began) in self.cpu]
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in left:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _processes() -> dict[int, tuple[int, str, float]]:
    """Every process of the machine: its parent, when it began (so that an id used again is another), CPU seconds."""
    found = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                text = Path(entry.path, "stat").read_text(encoding="utf-8", errors="replace")
            except (FileNotFoundError, ProcessLookupError):  # it has ended
                continue
            fields = text.rpartition(")")[2].split()
            found[int(entry.name)] = (int(fields[1]), fields[19], (int(fields[11]) + int(fields[12])) / _TICK)
    return found


def _machine() -> float:
    """CPU seconds of the whole machine that were not idle."""
    user, nice, system, _, _, *interrupts = map(
        int, Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + sum(interrupts)) / _TICK


def measure(bench: Bench, way: Way, trials: int, in_flight: int) -> Run:
    """One run of a campaign. Raises Failed unless every trial is settled by one verdict, and rows equal calls."""
    commands = len(way.commands(Path()))
    tree = _Tree(frozenset((pid, began) for pid, (_, began, _) in _processes().items()))
    with (
        _everywhere(bench),
        upstream.running(_LATENCY, spread=0.0) as url,
        bench.campaign([Judge("judge", url, in_flight // commands)], trials) as folder,
    ):
        endpoint = {(pid, began) for pid, (parent, began, _) in _processes().items() if parent == os.getpid()}
        tree.before |= endpoint
        samples = _watched(way.commands(folder / CAMPAIGN), folder, url, tree)
        seen = upstream.counts(url)
        attempts, settled, planned = _stored(folder)
    if not seen["calls"] == attempts == 2 * planned or settled != planned:
        raise Failed(
            f"{way.name}: {seen['calls']} calls at the endpoint and {planned} trials, but {attempts} attempts and "
            f"{settled} settled trials in its stores"
        )
    times = [sample.at for sample in samples]
    first, last = seen["first"], seen["last"] + _LATENCY

    def between(what: str) -> float:
        began, ended = np.interp([first, last], times, [getattr(sample, what) for sample in samples])
        return float(ended - began)

    told = {
        "endpoint": between("endpoint"),
        "own": between("own"),
        "machine": between("machine"),
        "processes": way.processes or commands,
        "whole_seconds": samples[-1].at - samples[0].at,
        "whole_cpu": samples[-1].engine,
    }
    return Run(seen["calls"], last - first, between("engine"), seen["most"], told)


@contextlib.contextmanager
def _everywhere(bench: Bench) -> Iterator[None]:
    """This process, and what it starts, on all cores, and the parent of processes whose own has ended."""
    prctl = ctypes.CDLL(None).prctl
    os.sched_setaffinity(0, bench.cores)
    prctl(_BECOMES_PARENT_OF_ORPHANS, 1)
    try:
        yield
    finally:
        prctl(_BECOMES_PARENT_OF_ORPHANS, 0)
        os.sched_setaffinity(0, {bench.core})


def _watched(commands: Sequence[Sequence[str]], folder: Path, url: str, tree: _Tree) -> list[_Sample]:
    """Run commands side by side, and look at what they use until all have ended. Raises Failed where one fails."""
    with contextlib.ExitStack() as stack:
        stack.callback(tree.end)
        logs = [stack.enter_context((folder / f"{number}.log").open("w+")) for number in range(len(commands))]
        samples = [_sample(tree, url)]
        started = [
            subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=log)
            for words, log in zip(commands, logs, strict=True)
        ]
        while any(process.poll() is None for process in started):
            time.sleep(0.1)
            samples.append(_sample(tree, url))
        for process, log in zip(started, logs, strict=True):
            if process.returncode:
                log.seek(0)
                raise Failed(f"{' '.join(process.args[2:])} ended with {process.returncode}:\n{log.read()[-2000:]}")  # type: ignore[index]
        return samples


def _sample(tree: _Tree, url: str) -> _Sample:
    return _Sample(time.time(), tree.look(), upstream.counts(url)["cpu"], time.process_time(), _machine())


def _stored(folder: Path) -> tuple[int, int, int]:
    """Attempts of all stores of a campaign, trials that one of them has settled, and trials planned."""
    attempts, settled, planned = 0, set(), set()
    for path in folder.glob("campaign*.duckdb"):
        with duckdb.connect(str(path), read_only=True) as store:
            attempts += store.execute("select count(*) from attempt").fetchall()[0][0]
            settled |= set(store.execute("select trial_key from trial join verdict on trial = id").fetchall())
            planned |= set(store.execute("select trial_key from trial join plan on trial = id").fetchall())
    return attempts, len(settled), len(planned)


def bound(run: Run, cores: int) -> str:
    """What a run could have no more of: the endpoint's core, the machine's cores, or a core for each process."""
    if run.told["endpoint"] >= _FULL * run.seconds:
        return "the endpoint"
    if run.cpu + run.told["endpoint"] + run.told["own"] >= _FULL * cores * run.seconds:
        return "the machine"
    if run.told["machine"] >= _FULL * cores * run.seconds:
        return "the machine, with other work"
    if run.cpu >= _FULL * run.told["processes"] * run.seconds:
        return "the engine"
    return "nothing"


def note(runs: Sequence[Run], cores: int) -> str:
    """Calls a second, CPU a call, the share of all cores of each, and what is used up."""

    def share(seconds: Callable[[Run], float]) -> str:
        return f"{median(seconds(run) / run.seconds / cores for run in runs):.0%}"

    engine, endpoint = share(lambda run: run.cpu), share(lambda run: run.told["endpoint"])
    others = share(lambda run: max(0.0, run.told["machine"] - run.cpu - run.told["endpoint"] - run.told["own"]))
    bounds = [bound(run, cores) for run in runs]
    return (
        f"{median(run.cpu_ms for run in runs):.3f} at {median(run.rate for run in runs):,.0f} calls/s; of {cores} "
        f"cores engine {engine}, endpoint {endpoint}, other work {others}: {max(bounds, key=bounds.count)} is used up"
    )


def scaling(bench: Bench, rounds: int, *, trials: int = _TRIALS, in_flight: int = _IN_FLIGHT) -> Iterator[Line]:
    """Every way beside the first, with all processes on all cores."""
    ways = [way for way in WAYS if way.package is None or find_spec(way.package) is not None]
    for way in WAYS:
        if way not in ways:
            sys.stderr.write(f"bench: {way.name} is left out: {way.package} is not installed\n")
    found: dict[str, list[Run]] = {way.name: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            found[way.name].append(measure(bench, way, trials, in_flight))
    base, cores = found[ways[0].name], len(bench.cores)
    for way in ways:
        yield from _lines(way, base, found[way.name], in_flight, cores)


def _lines(way: Way, base: list[Run], runs: list[Run], in_flight: int, cores: int) -> Iterator[Line]:
    seen = f"{in_flight} ({min(run.most for run in runs)})"
    calls = runs[0].calls
    if runs is base:
        rate = Spread(tuple(run.rate for run in runs))
        whole = Spread(tuple(run.calls / run.told["whole_seconds"] for run in runs))
        what, cpu, whole_cpu = f"{way.name}, all cores, calls/s at {1000 * _LATENCY:g} ms", None, None
    else:
        pairs = list(zip(base, runs, strict=True))
        rate = Spread(tuple(two.rate / one.rate for one, two in pairs))
        whole = Spread(tuple(one.told["whole_seconds"] / two.told["whole_seconds"] for one, two in pairs))
        cpu = Spread(tuple(one.cpu_ms / two.cpu_ms for one, two in pairs))
        whole_cpu = Spread(tuple(one.told["whole_cpu"] / two.told["whole_cpu"] for one, two in pairs))
        what = f"{way.name} / one process, all cores, at {1000 * _LATENCY:g} ms"
    yield Line(what, calls, seen, rate, cpu, note=note(runs, cores))
    spent = f"{median(1000 * run.told['whole_cpu'] / run.calls for run in runs):.3f}"
    yield Line("... from the start of the commands to their end", calls, f"{in_flight}", whole, whole_cpu, note=spent)
