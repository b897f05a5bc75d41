"""Event loop lag of a run with 1,000 calls in flight on a store of a million trials: see README.md here.

`python benchmarks/loop_lag.py [--trials N] [--calls 1000] [--latency 4] [--seconds 6] [--repeats 3]`
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import stores
import upstream
import uvloop

_LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


async def heartbeat(seconds: float, into: list[tuple[float, float]]) -> None:
    """Sleep 1 ms repeatedly; record when each sleep should have ended, and its delay, in seconds."""
    end = time.perf_counter() + seconds
    while (due := time.perf_counter() + 0.001) < end:
        await asyncio.sleep(0.001)
        into.append((due, time.perf_counter() - due))


def idle(seconds: float, loop: str) -> dict[str, Any]:
    """The heartbeat only."""
    lags: list[tuple[float, float]] = []
    with asyncio.Runner(loop_factory=_LOOPS[loop]) as runner:
        runner.run(heartbeat(seconds, lags))
    return _figures(lags)


def client(url: str, body: bytes, calls: int, seconds: float, warm_up: float, loop: str) -> dict[str, Any]:
    """The same calls through the product's provider, without plan, lanes and store."""
    from venire.judges.providers import PROVIDERS, Endpoint

    lags: list[tuple[float, float]] = []

    async def ask(provider: Any, until: float) -> None:
        while time.perf_counter() < until:
            await provider.send(body, "bench")

    async def go() -> None:
        provider = PROVIDERS["openai"].open(Endpoint(url, None, 120.0, calls))
        until = time.perf_counter() + warm_up + seconds
        asking = [asyncio.ensure_future(ask(provider, until)) for _ in range(calls)]
        await asyncio.sleep(warm_up)
        await heartbeat(seconds, lags)
        await asyncio.gather(*asking)
        await provider.close()

    with asyncio.Runner(loop_factory=_LOOPS[loop]) as runner:
        runner.run(go())
    return _figures(lags)


def engine(folder: Path, seconds: float, warm_up: float, loop: str) -> dict[str, Any]:
    """A session that resumes a store; the heartbeat runs in its loop, and slow work is recorded with its times."""
    from venire.configs.loading import load_campaign
    from venire.orchestrator.run import feed
    from venire.session import Session
    from venire.storage.store.store import Store

    lags: list[tuple[float, float]] = []
    work: dict[str, list[tuple[float, float]]] = {"commit": [], "checkpoint": [], "load": []}

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                work[name].append((start, time.perf_counter()))

        return run

    feed.load = timed("load", feed.load)
    Store.checkpoint = timed("checkpoint", Store.checkpoint)  # type: ignore[method-assign]
    tasks: list[asyncio.Task[None]] = []

    def make_loop() -> asyncio.AbstractEventLoop:
        made = _LOOPS[loop]()
        made.call_later(warm_up, lambda: tasks.append(made.create_task(measure())))
        return made

    async def measure() -> None:
        await heartbeat(seconds, lags)
        os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C: calls in flight finish

    with Session(load_campaign(folder / stores.CAMPAIGN)) as session:
        commit = session.store.commit
        session.store.commit = lambda: _TimedBlock(commit(), work["commit"])  # type: ignore[method-assign,assignment]
        summary = session.run(loop_factory=make_loop)
    during = {
        name: [1000 * late for due, late in lags if any(start <= due + late and due <= end for start, end in spans)]
        for name, spans in work.items()
    }
    around = {name: [max(found, default=0.0), len(work[name])] for name, found in during.items()}
    rate = summary.statistics.calls / summary.statistics.elapsed
    return {**_figures(lags), "rate": rate, "around": around}


class _TimedBlock:
    """A context manager that records its times."""

    def __init__(self, block: Any, into: list[tuple[float, float]]) -> None:
        self._block, self._into = block, into

    def __enter__(self) -> Any:
        self._start = time.perf_counter()
        return self._block.__enter__()

    def __exit__(self, *why: Any) -> Any:
        try:
            return self._block.__exit__(*why)
        finally:
            self._into.append((self._start, time.perf_counter()))


def _figures(lags: list[tuple[float, float]]) -> dict[str, Any]:
    late = np.array([lag for _, lag in lags]) * 1000
    return {"p50": float(np.median(late)), "p99": float(np.quantile(late, 0.99)), "max": float(late.max())}


def main() -> None:
    """Measure idle, client only and engine on both loops, several times, and print one table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=1_000_000)
    parser.add_argument("--calls", type=int, default=1_000)
    parser.add_argument("--latency", type=float, default=4.0)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--warm-up", type=float, default=8.0, help="seconds until every worker has a call in flight")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where stores are kept for the next time; else they are removed")
    parser.add_argument("--only", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        what, where, loop = given.only
        if what == "idle":
            found = idle(given.seconds, loop)
        elif what == "client":
            found = client(where, (b'{"x": "' + b"a" * 4000 + b'"}'), given.calls, given.seconds, given.warm_up, loop)
        else:
            found = engine(Path(where), given.seconds, given.warm_up, loop)
        sys.stdout.write(json.dumps(found))
        return
    sys.stdout.write(
        f"lag of a 1 ms heartbeat in ms, median (range) of {given.repeats}; {given.calls} calls in flight of "
        f"{given.latency:g} s\nloop     what        p50                p99                max           "
        "calls/s  most in flight; largest lag at a commit, checkpoint, load (their number)\n"
    )
    with tempfile.TemporaryDirectory() as scratch:
        source = stores.shapes(given.folder or Path(scratch) / "stores", given.trials)["half"]
        for loop in _LOOPS:
            for what in ("idle", "client", "engine"):
                _row(given, loop, what, source, Path(scratch))


def _row(given: argparse.Namespace, loop: str, what: str, source: Path, scratch: Path) -> None:
    runs = []
    for _ in range(given.repeats):
        with upstream.running(given.latency) as url:
            where = url
            if what == "engine":
                folder = scratch / "copy"
                shutil.copytree(source, folder)
                stores.readdress(folder, url, given.calls)
                where = str(folder)
            options = ["--calls", str(given.calls), "--seconds", str(given.seconds)]
            command = [sys.executable, __file__, *options, "--only", what, where, loop]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
            runs.append(json.loads(done.stdout) | upstream.counts(url))
            if what == "engine":
                shutil.rmtree(folder)
    if what != "idle":
        assert all(0.95 * given.calls <= one["most"] <= given.calls for one in runs), [one["most"] for one in runs]
    cells = "".join(f"{_spread([one[name] for one in runs]):>19}" for name in ("p50", "p99", "max"))
    more = ""
    if what == "engine":
        names = ("commit", "checkpoint", "load")
        around = ", ".join(
            f"{max(one['around'][name][0] for one in runs):.0f} ({runs[0]['around'][name][1]})" for name in names
        )
        more = f"{median(one['rate'] for one in runs):8.0f}  {min(one['most'] for one in runs)}; {around}"
    sys.stdout.write(f"{loop:8} {what:7}{cells} {more}\n")
    sys.stdout.flush()


def _spread(values: list[float]) -> str:
    return f"{median(values):.1f} ({min(values):.1f}-{max(values):.1f})"


if __name__ == "__main__":
    main()
