"""The rows of `make bench`: the comparisons, their number of runs, and their targets."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import stores
import upstream
from material import Judge
from measuring import HERE, Bench, Endpoint, Failed, Run, Spread, checked, finish
from peers import PEERS
from scaling import scaling
from table import Line, compare

_SHORT, _LONG = 0.02, 0.2
"""Seconds until the endpoint answers."""


def in_brief(bench: Bench) -> Line:
    """The first row with few calls, once."""
    base, run = bench.yardstick(4_000, 256, _SHORT), bench.engine(4_000, 256, _SHORT)
    return compare("engine / yardstick at 20 ms, in brief", 256, [base], [run])


def saturated(bench: Bench, rounds: int) -> Iterator[Line]:
    """The whole engine compared with the yardstick where the core is the bottleneck, and without its parts."""
    calls, in_flight = 10_000, 256
    parts = (None, "store", "journal", "limiter")
    base: list[Run] = []
    transport: list[Run] = []
    found: dict[str | None, list[Run]] = {part: [] for part in parts}
    for _ in range(rounds):
        base.append(bench.yardstick(calls, in_flight, _SHORT))
        transport.append(bench.yardstick(calls, in_flight, _SHORT, client="ry"))
        for part in parts:
            found[part].append(bench.engine(calls, in_flight, _SHORT, part))
    yield compare("engine / yardstick at 20 ms", in_flight, base, found[None], 0.65)
    yield compare("engine / ry bare at 20 ms", in_flight, transport, found[None], saturated=False)
    pairs = zip(base, found[None], strict=True)
    whole = Spread(tuple(one.seconds / run.told["whole"] for one, run in pairs))
    yield Line("... with import of the data, planning and closing", calls, f"{in_flight}", whole)
    for part in parts[1:]:
        yield compare(f"... {part} off", in_flight, base, found[part])


def one_call(bench: Bench, rounds: int) -> Iterator[Line]:
    """A one-call protocol with one-character answers: two rows per call, and a parsed verdict each time."""
    base, subject = [], []
    for _ in range(rounds):
        base.append(bench.yardstick(10_000, 256, _SHORT, protocol="binary"))
        subject.append(bench.engine(10_000, 256, _SHORT, protocol="binary"))
    yield compare("engine / yardstick at 20 ms, one call a trial", 256, base, subject, 0.55)


def over_tls(bench: Bench, rounds: int) -> Iterator[Line]:
    """The first row over TLS with a self-signed certificate."""
    tls = upstream.certificate(bench.folder)
    base, subject = [], []
    for _ in range(rounds):
        base.append(bench.yardstick(10_000, 256, _SHORT, tls))
        subject.append(bench.engine(10_000, 256, _SHORT, tls=tls))
    yield compare("engine / yardstick at 20 ms over TLS", 256, base, subject)


def distant(bench: Bench, rounds: int) -> Iterator[Line]:
    """The engine compared with the yardstick at a realistic latency."""
    for in_flight, calls, least in ((256, 5_000, 0.97), (1_000, 20_000, 1.0)):
        base, subject = [], []
        for _ in range(rounds):
            base.append(bench.yardstick(calls, in_flight, _LONG))
            subject.append(bench.engine(calls, in_flight, _LONG))
        yield compare("engine / yardstick at 200 ms", in_flight, base, subject, least, saturated=False)


_HEALTHY, _DEAD, _SLOW = 85, 5, 10
_LANE_CALLS, _LANE_IN_FLIGHT = 40, 2


def lanes(bench: Bench, rounds: int) -> Iterator[Line]:
    """The same 85 lanes alone, and together with 5 that reset every call and 10 that are ten times as slow."""
    base, subject = [], []
    for _ in range(rounds):
        base.append(_healthy_lanes(bench, dead=0, slow=0))
        subject.append(_healthy_lanes(bench, dead=_DEAD, slow=_SLOW))
    what = f"{_HEALTHY} lanes beside {_DEAD} dead and {_SLOW} slow / alone, until their last call, at 200 ms"
    yield replace(compare(what, _HEALTHY * _LANE_IN_FLIGHT, base, subject, 0.95, saturated=False), cpu=None, note="")


def _healthy_lanes(bench: Bench, dead: int, slow: int) -> Run:
    """A campaign of many lanes; its seconds are those until the last call of the healthy lanes.

    Dead lanes answer requests for their models, so that the check before a run accepts them. Once the healthy lanes are
    done, a campaign with other pending calls is stopped as by Ctrl-C.
    """
    with bench.endpoint(_LONG) as at:
        kinds = ["ok"] * _HEALTHY + ["dead"] * dead + ["slow"] * slow
        address = at.url.removesuffix("/v1")
        judges = [Judge(f"judge-{n}", f"{address}/{kind}-{n}/v1", _LANE_IN_FLIGHT) for n, kind in enumerate(kinds)]
        with bench.campaign(judges, _LANE_CALLS // 2 * len(judges)) as folder:
            client = bench.start([sys.executable, HERE / "engine.py", folder], {})
            if len(kinds) > _HEALTHY:
                _stop_when_done(client, at)
            run = finish(client, at)
    checked(run, "INTERRUPTED" if len(kinds) > _HEALTHY else "COMPLETE")
    healthy = [lane for lane in run.told["lanes"] if lane[0] < _HEALTHY]
    calls = sum(lane[1] for lane in healthy)
    if calls != _HEALTHY * _LANE_CALLS or run.most < 0.95 * _HEALTHY * _LANE_IN_FLIGHT:
        raise Failed(f"{calls} calls of the healthy lanes, {run.most} in flight at the most")
    last: float = max(lane[3] for lane in healthy)
    return Run(calls, last - run.told["first"], run.cpu, run.most, run.told)


def _stop_when_done(client: subprocess.Popen[str], at: Endpoint) -> None:
    while client.poll() is None:
        answered = [lane[2] for lane in upstream.counts(at.url)["lanes"] if lane[0] < _HEALTHY]
        if sum(answered) == _HEALTHY * _LANE_CALLS:
            client.send_signal(signal.SIGINT)
            return
        time.sleep(0.1)


def litellm(bench: Bench, rounds: int) -> Iterator[Line]:
    """The engine compared with `litellm.acompletion` in a bare loop."""
    yield from _beside(bench, rounds, 3_000, ("litellm",), 17)


def bulk(bench: Bench, rounds: int) -> Iterator[Line]:
    """The engine compared with bulk callers of prompts."""
    yield from _beside(bench, rounds, 2_000, ("curator", "async_batch_llm"), 10)


def harness(bench: Bench, rounds: int) -> Iterator[Line]:
    """The engine compared with an evaluation harness."""
    yield from _beside(bench, rounds, 600, ("inspect_ai",), 60)


def _beside(bench: Bench, rounds: int, calls: int, names: tuple[str, ...], least: float) -> Iterator[Line]:
    """A line for each peer; the target is for the fastest of them."""
    found: dict[str, list[Run]] = {name: [] for name in names}
    subject = []
    for _ in range(rounds):
        for name, runs in found.items():
            runs.append(bench.peer(PEERS[name], calls, 256, _SHORT))
        subject.append(bench.engine(calls, 256, _SHORT))
    fastest = max(names, key=lambda name: Spread(tuple(run.rate for run in found[name])).median)
    for name, runs in found.items():
        what = f"engine / {PEERS[name].package} {PEERS[name].version} at 20 ms"
        yield compare(what, 256, runs, subject, least if name == fastest else None)


_LAG_TRIALS, _LAG_CALLS = 100_000, 1_000


def lag(bench: Bench, rounds: int) -> Iterator[Line]:
    """Event loop lag with 1,000 one-second calls in flight: the 99th percentile of a 1 ms heartbeat."""
    source = stores.make(bench.folder / "lag", _LAG_TRIALS).parent
    late, seen = [], []
    for _ in range(rounds):
        copy = bench.folder / "lag-copy"
        shutil.copytree(source, copy)
        with bench.endpoint(1.0, spread=0.5) as at:
            stores.readdress(copy, at.url, _LAG_CALLS)
            options = ["--seconds", "5", "--warm-up", "4", "--only", "engine", str(copy), "uvloop"]
            client = bench.start([sys.executable, HERE / "loop_lag.py", *options], {})
            said, complaint = client.communicate()
            if client.returncode:
                raise Failed(f"loop_lag.py failed:\n{complaint[-2000:]}")
            late.append(json.loads(said)["p99"])
            seen.append(upstream.counts(at.url))
        shutil.rmtree(copy)
    if min(one["most"] for one in seen) < 0.95 * _LAG_CALLS:
        raise Failed(f"{min(one['most'] for one in seen)} calls in flight at the most, not {_LAG_CALLS}")
    what = "lag of the event loop in ms, 99th percentile of a 1 ms heartbeat, at 1 s"
    in_flight = f"{_LAG_CALLS:,} ({min(one['most'] for one in seen):,})"
    yield Line(what, min(one["calls"] for one in seen), in_flight, Spread(tuple(late)), most=10.0)


ROWS: dict[str, Callable[[Bench, int], Iterator[Line]]] = {
    "saturated": saturated,
    "one-call": one_call,
    "tls": over_tls,
    "lanes": lanes,
    "litellm": litellm,
    "bulk": bulk,
    "harness": harness,
    "distant": distant,
    "lag": lag,
    "scaling": scaling,
}
"""Every row by its name, in the order of the table."""
