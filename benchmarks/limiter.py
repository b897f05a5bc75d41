"""The cost of a route's gate, and its use of the limits: see README.md here.

`python benchmarks/limiter.py [--waiters 5000] [--seconds 5] [--minutes 60]`
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from random import Random

import numpy as np
from asyncio_throttle import Throttler

from venire.arena.campaigns import Limits
from venire.arena.clock import SystemClock, VirtualClock
from venire.orchestrator.lanes.gate import Gate
from venire.orchestrator.lanes.windows import Load

_CALLS = 200_000
_PLENTY = 10**12
_SKEW = 1.0


def row(what: str, *figures: str) -> None:
    """One line of the table."""
    sys.stdout.write(f"{what:58}" + "".join(f"{figure:>14}" for figure in figures) + "\n")
    sys.stdout.flush()


async def _waiting(take: Callable[[], Awaitable[None]], waiters: int, seconds: float) -> tuple[float, list[float]]:
    """Share of a core, and the times at which calls passed, with a constant number of waiters."""
    passed: list[float] = []

    async def one() -> None:
        while True:
            await take()
            passed.append(time.perf_counter())

    tasks = [asyncio.ensure_future(one()) for _ in range(waiters)]
    await asyncio.sleep(1)
    passed.clear()
    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.sleep(seconds)
    share = (time.process_time() - cpu) / (time.perf_counter() - wall)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return share, passed


def _through(limits: Limits) -> Callable[[], Awaitable[None]]:
    gate = Gate(limits, SystemClock(), concurrency=10_000)

    async def take() -> None:
        gate.done(await gate.take(Load(4_000, 1_000, 500)), 900, 300)

    return take


def waiters(number: int, seconds: float) -> None:
    """The cost of many waiters at 500 calls a second."""
    row(f"{number:,} waiters, 500 calls a second", "% of a core", "calls/s", "most in 0.1 s")
    contestants: dict[str, Callable[[], Callable[[], Awaitable[None]]]] = {
        "gate: requests a minute": lambda: _through(Limits(30_000)),
        "gate: tokens a minute": lambda: _through(Limits(60_000, 36_000_000)),
        "asyncio-throttle as it is": lambda: Throttler(500, 1.0).acquire,
        "asyncio-throttle, looking every 0.1 s": lambda: Throttler(500, 1.0, 0.1).acquire,
    }
    for name, make in contestants.items():
        share, passed = asyncio.run(_waiting(make(), number, seconds))
        times = np.sort(np.array(passed))
        most = int((np.searchsorted(times, times + 0.1) - np.arange(len(times))).max(initial=0))
        row(f"  {name}", f"{100 * share:.1f}", f"{len(passed) / seconds:.0f}", f"{most}")


def quick_path() -> None:
    """Microseconds of a call that does not wait: take_now and done."""
    row("a call that need not wait", "us a call")
    for name, limits in {
        "no limit": Limits(),
        "requests a minute": Limits(_PLENTY),
        "requests and tokens a minute": Limits(_PLENTY, _PLENTY),
        "all five limits": Limits(_PLENTY, _PLENTY, _PLENTY, _PLENTY, _PLENTY),
    }.items():
        row(f"  gate: {name}", f"{min(_quick(limits) for _ in range(5)):.2f}")

    async def plain() -> float:
        throttler = Throttler(_PLENTY, 60.0)
        start = time.process_time()
        for _ in range(_CALLS):
            async with throttler:
                pass
        return (time.process_time() - start) / _CALLS * 1e6

    row("  asyncio-throttle as it is", f"{min(asyncio.run(plain()) for _ in range(5)):.2f}")


def _quick(limits: Limits) -> float:
    gate = Gate(limits, SystemClock(), concurrency=16)
    load = gate.load(6_000, 500)
    start = time.process_time()
    for _ in range(_CALLS):
        turn = gate.take_now(load)
        assert turn is not None
        gate.done(turn, 1_500, 300)
    return (time.process_time() - start) / _CALLS * 1e6


def memory() -> None:
    """Memory of a gate in megabytes after a minute of many calls."""
    row("memory after a minute of so many calls", "100,000", "1,000,000")
    for name, limits in {"no limit": Limits(), "requests and tokens a minute": Limits(_PLENTY, _PLENTY)}.items():
        row(f"  gate: {name}", *(f"{_held(limits, calls):.1f} MB" for calls in (100_000, 1_000_000)))


def _held(limits: Limits, calls: int) -> float:
    clock = VirtualClock()
    gate = Gate(limits, clock, concurrency=16)
    load = gate.load(6_000, 500)
    tracemalloc.start()
    for _ in range(calls):
        clock.advance(60 / calls)
        turn = gate.take_now(load)
        assert turn is not None
        gate.done(turn, 1_500, 300)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / 1e6


def saturated(minutes: int) -> None:
    """The used share of a limit under saturation, and the provider's busiest minute."""
    row("more calls than may pass, for virtual minutes", "minutes", "% of limit", "fullest 60 s")
    for limits, workers in (
        (Limits(1), 1),
        (Limits(60), 4),
        (Limits(6_000), 400),
        (Limits(100_000), 4_000),
        (Limits(tokens_per_minute=100_000), 20),
        (Limits(tokens_per_minute=2_000_000), 60),
        (Limits(3_000, 10_000_000, output_tokens_per_minute=1_500_000), 300),
    ):
        clock = VirtualClock()
        length = minutes if (limits.requests_per_minute or 0) < 10_000 else max(2, minutes // 6)
        with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
            sent = runner.run(_saturate(Gate(limits, clock, concurrency=workers), clock, workers, 60.0 * length))
        _show(limits, sent, length)


async def _saturate(gate: Gate, clock: VirtualClock, workers: int, until: float) -> np.ndarray:
    """Arrival times of calls (jitter below the skew), tokens used, and tokens of answers; latency 1 to 3 s."""
    random = Random(1)
    sent: list[tuple[float, int, int]] = []

    async def one() -> None:
        while True:
            body, most = random.randint(500, 8_000), random.randint(100, 2_000)
            turn = await gate.take(gate.load(4 * body, most))
            if clock.monotonic() >= until:
                return
            used = random.randint(most // 5, most)
            sent.append((clock.monotonic() + random.uniform(0, 0.999 * _SKEW), body + used, used))
            await clock.sleep(random.uniform(1, 3))
            gate.done(turn, body, used)

    await asyncio.gather(*(one() for _ in range(workers)))
    return np.array(sorted(sent))


def _show(limits: Limits, sent: np.ndarray, minutes: int) -> None:
    times = sent[:, 0]
    counts = {
        "requests": (limits.requests_per_minute, np.ones(len(sent))),
        "tokens": (limits.tokens_per_minute, sent[:, 1]),
        "output tokens": (limits.output_tokens_per_minute, sent[:, 2]),
    }
    for name, (limit, amounts) in counts.items():
        if limit is None:
            continue
        before = np.concatenate(([0.0], np.cumsum(amounts)))
        fullest = (before[np.searchsorted(times, times + 60)] - before[:-1]).max()
        used = amounts.sum() / (limit * minutes)
        row(f"  {limit:,} {name} a minute", f"{minutes}", f"{100 * used:.2f}", f"{100 * fullest / limit:.2f} %")


def main() -> None:
    """Measure all of it and print one table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--waiters", type=int, default=5_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--minutes", type=int, default=60)
    given = parser.parse_args()
    quick_path()
    memory()
    waiters(given.waiters, given.seconds)
    saturated(given.minutes)


if __name__ == "__main__":
    main()
