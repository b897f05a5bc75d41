"""The cost of rate-limit responses: see README.md here, and docs/lanes.md for the tested control law.

`python benchmarks/refusals.py [--tables sporadic limits mixed outage real] [--rounds 1] [--quick] [--judge]`

Simulated on the virtual clock: the gate of a route to an upstream that refuses at random, or has an undeclared limit,
or refuses everything for an hour. A refused call waits as in the engine's retry layer, and holds no slot. Every cell is
run with immediate refusals and with refusals as slow as answers, with and without Retry-After. The table `real` runs
whole campaigns in real time.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from random import Random

import refused_runs
from measuring import Failed
from upstream import Missing

from venire.arena.campaigns import Limits
from venire.arena.clock import VirtualClock
from venire.orchestrator.lanes.gate import Gate
from venire.orchestrator.lanes.windows import Load

LATENCIES = (0.02, 0.5, 2.0, 10.0)
CONCURRENCIES = (32, 256, 1_000)
QUICK = 0.02
"""Latency in seconds of an immediate refusal."""
SEND = 1e-4
"""Seconds between two calls sent together: no client opens a thousand connections at the same moment."""
RETRY_AFTER = 1.0

_CALL = Load(1, 1, 1)


class Upstream:
    """Accepts every call."""

    limit: float | None = None
    """Calls per second; None: no limit."""

    def takes(self, now: float, busy: int) -> bool:
        """Whether a call that arrives now is accepted, with `busy` calls in progress."""
        return True


@dataclass
class Sporadic(Upstream):
    """Refuses a share of the calls at any rate; another upstream decides on the rest."""

    share: float
    behind: Upstream = field(default_factory=Upstream)
    random: Random = field(default_factory=lambda: Random(5))

    def takes(self, now: float, busy: int) -> bool:
        """See `Upstream`."""
        return self.random.random() >= self.share and self.behind.takes(now, busy)


class Bucket(Upstream):
    """A token bucket with a capacity of one second."""

    def __init__(self, rate: float) -> None:
        self.limit = self._tokens = rate
        self._rate, self._last = rate, 0.0

    def takes(self, now: float, busy: int) -> bool:
        """See `Upstream`."""
        self._tokens = min(self._rate, self._tokens + self._rate * (now - self._last))
        self._last = now
        taken = self._tokens >= 1
        self._tokens -= taken
        return taken


class Window(Upstream):
    """A sliding window: a number of calls in any minute; refused calls do not count."""

    def __init__(self, calls: int) -> None:
        self.limit = calls / 60
        self._calls = calls
        self._log: deque[float] = deque()

    def takes(self, now: float, busy: int) -> bool:
        """See `Upstream`."""
        while self._log and self._log[0] + 60 <= now:
            self._log.popleft()
        if len(self._log) >= self._calls:
            return False
        self._log.append(now)
        return True


class Minutes(Upstream):
    """A fixed window: a number of calls per calendar minute."""

    def __init__(self, calls: int) -> None:
        self.limit = calls / 60
        self._calls, self._minute, self._seen = calls, -1, 0

    def takes(self, now: float, busy: int) -> bool:
        """See `Upstream`."""
        if int(now // 60) != self._minute:
            self._minute, self._seen = int(now // 60), 0
        self._seen += 1
        return self._seen <= self._calls


@dataclass
class Places(Upstream):
    """A concurrency limit: a number of calls in progress at one time."""

    most: int

    def takes(self, now: float, busy: int) -> bool:
        """See `Upstream`."""
        return busy < self.most


@dataclass
class Outage(Upstream):
    """Refuses everything during an interval."""

    start: float
    end: float

    def takes(self, now: float, busy: int) -> bool:
        """See `Upstream`."""
        return not self.start <= now < self.end


@dataclass
class Route:
    """A route's gate to an upstream, and the times at which its calls were answered and refused."""

    upstream: Upstream
    latency: float
    concurrency: int
    slow: bool
    """Whether refusals take as long as answers."""
    retry_after: float | None

    def __post_init__(self) -> None:
        self.clock = VirtualClock()
        self.gate = Gate(Limits(), self.clock, concurrency=self.concurrency)
        self.answered: list[float] = []
        self.refused: list[float] = []
        self._random = Random(self.concurrency)
        self._busy = self._waiting = self._free_at = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._over = asyncio.Event()

    def play(self, *, seconds: float = float("inf"), answers: float = float("inf")) -> Route:
        """Send calls continuously, until `seconds` virtual seconds have passed or `answers` calls were answered."""
        with asyncio.Runner(loop_factory=self.clock.new_event_loop) as runner:
            runner.run(self._play(seconds, answers))
        return self

    async def _play(self, seconds: float, answers: float) -> None:
        self._answers = answers
        self._departs = 0.0
        for _ in range(self.concurrency):
            self._start()
        if seconds < float("inf"):
            await self.clock.sleep(seconds)
        else:
            await self._over.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self) -> None:
        task = asyncio.get_running_loop().create_task(self._ask_on())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask_on(self) -> None:
        """One worker: a call that waits for a retry is replaced, and the surplus worker ends when it returns."""
        while len(self._tasks) - self._waiting <= self.concurrency:
            failures = 0
            while not await self._call():
                failures += 1
                self._waiting += 1
                if len(self._tasks) - self._waiting < self.concurrency:
                    self._start()
                jitter = self._random.uniform(0, min(60.0, 0.5 * 2.0 ** min(failures - 1, 10)))
                await self.clock.sleep(max(self.retry_after or 0.0, jitter))
                self._waiting -= 1

    async def _call(self) -> bool:
        turn = await self.gate.take(_CALL)
        now = self.clock.monotonic()
        self._departs = max(now, self._departs + SEND)
        if self._departs > now:
            await self.clock.sleep(self._departs - now)
        taken = self.upstream.takes(self.clock.monotonic(), self._busy)
        self._busy += taken
        refusing = self.latency if self.slow else min(QUICK, self.latency)
        await self.clock.sleep(self._random.uniform(0.8, 1.2) * (self.latency if taken else refusing))
        self._busy -= taken
        (self.answered if taken else self.refused).append(self.clock.monotonic())
        if taken:
            self.gate.done(turn, 1, 1)
        else:
            self.gate.done(turn, 0, 0, replied=False, rate_limited=True, retry_after=self.retry_after)
        if len(self.answered) >= self._answers:
            self._over.set()
        return taken

    def pace(self, start: float, end: float) -> float:
        """Answers per second in an interval."""
        return (bisect_left(self.answered, end) - bisect_left(self.answered, start)) / (end - start)


def say(text: str = "") -> None:
    """One line of the tables."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


KINDS = tuple(product((False, True), (None, RETRY_AFTER)))
"""Slow or immediate refusals, with or without Retry-After."""


def sporadic(scale: float) -> bool:
    """Throughput under random refusals relative to none: the worst of the four kinds of refusals, at each latency."""
    say(
        "random refusals: answers a second over those without any; the worst of quick and slow refusals, with and "
        "without Retry-After"
    )
    say(f"{'share':>8} {'in flight':>10}" + "".join(f"{latency:>9} s" for latency in LATENCIES) + "   at least")
    met = True
    for share, least in ((0.001, 0.97), (0.005, 0.97), (0.01, 0.97), (0.02, 0.93), (0.05, 0.6)):
        for most in CONCURRENCIES:
            row = [min(_sporadic(share, latency, most, scale)) for latency in LATENCIES]
            met = met and min(row) >= least
            say(
                f"{share:>8.1%} {most:>10,}"
                + "".join(f"{one:>11.3f}" for one in row)
                + f"   {least}{_mark(min(row) >= least)}"
            )
    return met


def _sporadic(share: float, latency: float, most: int, scale: float) -> Iterator[float]:
    answers = scale * max(5_000, 20 * most)
    alone = Route(Upstream(), latency, most, False, None).play(answers=answers)
    for slow, retry_after in KINDS:
        route = Route(Sporadic(share), latency, most, slow, retry_after).play(answers=answers)
        yield alone.clock.monotonic() / route.clock.monotonic()


LIMITS: dict[str, Callable[[], Upstream]] = {
    "bucket of 10 a second": partial(Bucket, 10),
    "bucket of 25 a second": partial(Bucket, 25),
    "sliding 600 a minute": partial(Window, 600),
    "600 a full minute": partial(Minutes, 600),
    "16 in flight": partial(Places, 16),
}


def limits(scale: float, random: float = 0.0) -> bool:
    """The used share of an undeclared limit in an hour, and the share of refused calls."""
    beside = f", {random:.0%} of the calls refused at random beside" if random else ""
    say(f"undeclared limits{beside}: used of the limit / refused of the calls, in an hour (or 50,000 calls)")
    say(f"{'limit':24} {'latency':>8} {'in flight':>10}" + "".join(f"{_kind(*kind):>24}" for kind in KINDS))
    met = True
    for name, latency, most in product(LIMITS, LATENCIES, CONCURRENCIES):
        limit = LIMITS[name]().limit or 16 / latency
        if most / latency < 1.15 * limit:
            continue
        seconds = scale * min(3_600.0, 50_000 / limit)
        cells = []
        for slow, retry_after in KINDS:
            upstream = LIMITS[name]()
            route = Route(Sporadic(random, upstream) if random else upstream, latency, most, slow, retry_after)
            route.play(seconds=seconds)
            used = route.pace(0, seconds) / limit
            refused = len(route.refused) / (len(route.refused) + len(route.answered))
            well = used >= (0.8 if random else 0.85) and (random > 0 or refused <= 0.05)
            met = met and well
            cells.append(f"{used:.2f} / {refused:.1%}{_mark(well)}")
        say(f"{name:24} {latency:>6} s {most:>10,}" + "".join(f"{cell:>24}" for cell in cells))
    return met


def outage(scale: float) -> bool:
    """An hour in which everything is refused: calls in it, and the time until the former throughput is restored."""
    say("an hour of refusals: calls in its first 2 minutes, a minute after them; seconds until 90 % of the former pace")
    say(f"{'latency':>8} {'in flight':>10}" + "".join(f"{'slow' if slow else 'quick':>30}" for slow in (False, True)))
    met = True
    for latency, most in product(LATENCIES, CONCURRENCIES):
        if most / latency > 20_000:
            continue  # a million calls a minute: no different from fewer
        cells = []
        for slow in (False, True):
            start = max(30.0, 6 * latency) if most / latency < 2_000 else 5.0
            end = start + 3_600
            route = Route(Outage(start, end), latency, most, slow, None).play(seconds=end + 150)
            former = route.pace(start / 2, start)
            first = bisect_left(route.refused, start + 120)
            a_minute = (len(route.refused) - first) / 58
            span = max(2.0, latency)
            back = next((t for t in range(150) if route.pace(end + t, end + t + span) >= 0.9 * former), 150)
            well = a_minute <= 2 and back + span <= 120
            met = met and well
            cells.append(f"{first:,}, {a_minute:.2f}; {back + span:.0f} s{_mark(well)}")
        say(f"{latency:>6} s {most:>10,}" + "".join(f"{cell:>30}" for cell in cells))
    return met


def _kind(slow: bool, retry_after: float | None) -> str:
    return f"{'slow' if slow else 'quick'}, {'no Retry-After' if retry_after is None else f'{retry_after:.0f} s'}"


def _mark(met: bool) -> str:
    return "" if met else " *"


def real(scale: float, rounds: int = 1) -> bool:
    """Throughput of whole campaigns under random refusals relative to none, in real time."""
    met = True
    try:
        for line, well in refused_runs.table(scale, rounds):
            say(line)
            met = met and well
    except (Failed, Missing) as error:
        sys.stderr.write(f"refusals: the table `real` is left out: {error}\n")
        return False
    return met


TABLES: dict[str, Callable[[float], bool]] = {
    "sporadic": sporadic,
    "limits": limits,
    "mixed": partial(limits, random=0.01),
    "outage": outage,
    "real": real,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; returns 1 for a missed target under `--judge`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--rounds", type=int, default=1, help="how often each cell of `real` is run")
    parser.add_argument("--quick", action="store_true", help="a tenth of the calls: nothing is judged")
    parser.add_argument("--judge", action="store_true", help="end with 1 where a target is missed")
    given = parser.parse_args(arguments)
    start, met = time.monotonic(), True
    tables = {**TABLES, "real": partial(real, rounds=given.rounds)}
    for name in given.tables:
        met = tables[name](0.1 if given.quick else 1.0) and met
        say()
    say(f"* a target is missed. {(time.monotonic() - start) / 60:.1f} minutes")
    return 1 if given.judge and not met and not given.quick else 0


if __name__ == "__main__":
    raise SystemExit(main())
