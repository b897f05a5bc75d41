"""The engine with an endpoint that refuses calls at random, in real time: a table of `refusals.py`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import upstream
from material import Judge
from measuring import HERE, Bench, Endpoint, Spread, checked, finish

_LATENCY = 0.02
_CALLS = {32: 12_000, 256: 30_000}
"""By concurrency: enough seconds for the control law to settle."""
_COUNTED = 0.95
"""Share of calls over which throughput is measured: the last few only wait for their next attempt."""
_RETRY_AFTER = (None, 1)
_LEAST = {0.001: 0.97, 0.005: 0.97, 0.01: 0.97, 0.02: 0.93, 0.05: 0.6}


def table(scale: float, rounds: int) -> Iterator[tuple[str, bool]]:
    """Lines of the table, and whether each met its target; raises Missing without a C compiler, Failed."""
    yield f"real time, {_LATENCY:g} s: answers a second over those without refusals, median and range of {rounds}", True
    yield f"{'share':>8} {'in flight':>10}{'no Retry-After':>26}{'Retry-After 1 s':>26}   at least", True
    with tempfile.TemporaryDirectory(prefix="venire-bench-") as scratch:
        bench = Bench(Path(scratch))
        for concurrency, calls in _CALLS.items():
            wanted = int(scale * calls)
            found: dict[tuple[float, int | None], list[float]] = {}
            for _ in range(rounds):
                alone = _pace(bench, concurrency, wanted, 0.0, None)
                for share in _LEAST:
                    for retry_after in _RETRY_AFTER:
                        pace = _pace(bench, concurrency, wanted, share, retry_after)
                        found.setdefault((share, retry_after), []).append(pace / alone)
            for share, least in _LEAST.items():
                spreads = [Spread(tuple(found[share, retry_after])) for retry_after in _RETRY_AFTER]
                met = all(spread.median >= least for spread in spreads)
                cells = "".join(f"{spread.show(3):>26}" for spread in spreads)
                yield f"{share:>8.1%} {concurrency:>10,}{cells}   {least}{'' if met else ' *'}", met


def _pace(bench: Bench, concurrency: int, calls: int, refused: float, retry_after: int | None) -> float:
    """Answers per second of a whole campaign, until nearly all of its calls are answered."""
    with bench.endpoint(_LATENCY, refused=refused, retry_after=retry_after) as at:
        judge = Judge("judge", at.url, concurrency)
        with bench.campaign([judge], calls // 2) as folder:
            client = bench.start([sys.executable, HERE / "engine.py", folder], {})
            answered, end = _counted(client, at, int(_COUNTED * calls))
            run = checked(finish(client, at))
    return float(answered / (end - run.told["first"]))


def _counted(client: subprocess.Popen[str], at: Endpoint, calls: int) -> tuple[int, float]:
    """The number of answered calls once it reaches `calls`, or at the client's end, and the time of day."""
    while client.poll() is None:
        answered = upstream.counts(at.url)["answered"]
        if answered >= calls:
            return answered, time.time()
        time.sleep(0.02)
    return upstream.counts(at.url)["answered"], time.time()
