"""The web pages of a large store, and of a campaign that runs, over HTTP: see README.md here.

`python benchmarks/page.py [--trials 1000000] [--requests 50] [--pairs 5] [--folder FOLDER] [--rows rest run] [--judge]`

Viewers and endpoint share the machine's last core; on two cores they take time from the run that they look at.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from html import unescape
from http.client import HTTPConnection
from math import ceil
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Any
from urllib.parse import urlencode, urlsplit

import aiohttp
import stores
import upstream
from material import CAMPAIGN, Judge, write_campaign
from measuring import Failed, Spread
from resume import memory

from venire.configs.loading import load_campaign
from venire.storage.store.opening import open_store

_DONE, _MISSED, _VOID = 0, 1, 2
_MODELS, _MATCHUPS = 50, 200
_JUDGES = [f"j{n}" for n in range(5)]
_CATEGORIES = ("code", "maths", "writing", "facts")
_ORDERS = ("battle", "trial", "cost", "latency", "attempts", "time", "score", "instruction")
_WATCHED = ("overview",) * 6 + ("calls", "leaderboard", "judges", "battle/1")
"""The pages that ten viewers of a campaign have open."""

_LAST = f"1e+300~{2**62}"
"""A place behind the last row of a table, as pages write it."""

_HEAD = "| what | requests | median | p95 | target | note |\n|---|---:|---:|---:|---|---|\n"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table; `figure` is what a target bounds, by `least` or `most`."""

    what: str
    requests: int
    median: str
    p95: str
    figure: float = 0.0
    unit: str = ""
    least: float | None = None
    most: float | None = None
    note: str = ""

    @property
    def met(self) -> bool:
        """Whether the target is met, if there is one."""
        return (self.least is None or self.figure >= self.least) and (self.most is None or self.figure < self.most)

    def show(self) -> str:
        """The line in Markdown."""
        target = "reported"
        if self.least is not None or self.most is not None:
            limit = f"under {self.most:g}" if self.least is None else f"at least {self.least:g}"
            target = f"{limit}{self.unit}: {'met' if self.met else '**missed**'}"
        return f"| {self.what} | {self.requests or ''} | {self.median} | {self.p95} | {target} | {self.note} |"


def timed(what: str, seconds: Sequence[float], most: float | None = None, note: str = "") -> Line:
    """A line of requests: median and p95 in ms, the target bounds the p95."""
    ranked = [1000 * one for one in sorted(seconds)]
    p95 = ranked[ceil(0.95 * len(ranked)) - 1]
    return Line(what, len(ranked), f"{median(ranked):.0f} ms", f"{p95:.0f} ms", p95, " ms", most=most, note=note)


class Reader:
    """One client of one server that keeps its connection, and knows the address of the store's first campaign."""

    def __init__(self, url: str) -> None:
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=120)
        where = "/"
        while True:  # from the front to the overview of the only campaign
            status, _, moved = self._ask(where)
            if status != 303:
                break
            if moved.endswith("/overview"):
                where = moved
                break
            where = moved
        if not where.endswith("/overview"):
            raise Failed(f"the first page leads to {where}, not to a campaign")
        self.base = where.removesuffix("/overview")

    def get(self, page: str) -> tuple[float, int, str]:
        """Seconds until the whole answer is there, its status and its text; an address that begins with / is whole."""
        start = time.perf_counter()
        status, text, _ = self._ask(page if page.startswith("/") else f"{self.base}/{page}")
        return time.perf_counter() - start, status, text

    def times(self, pages: Sequence[str]) -> list[float]:
        """Seconds of each page. Raises Failed for one that is not there."""
        found = []
        for page in pages:
            seconds, status, _ = self.get(page)
            if status != 200:
                raise Failed(f"{page} was answered with {status}")
            found.append(seconds)
        return found

    def wait_for(self, page: str) -> tuple[float, int]:
        """Seconds until a page is there that must be computed, and how often it said how far it was; as its script."""
        start, waited, pause = time.perf_counter(), 0, 0.1
        while True:
            _, status, text = self.get(page)
            if status == 200:
                return time.perf_counter() - start, waited
            if status != 202 or not re.search(r": [a-z ]+ for [0-9.]+ s\.", text):
                raise Failed(f"{page} was answered with {status}, and not with how far it is")
            waited += 1
            time.sleep(pause)
            pause = 0.2

    def _ask(self, path: str) -> tuple[int, str, str]:
        self._connection.request("GET", path, headers={"Accept": "text/html"})
        answer = self._connection.getresponse()
        return answer.status, answer.read().decode("utf-8", "replace"), answer.getheader("Location") or ""


@contextmanager
def serving(command: Sequence[str], scratch: Path) -> Iterator[tuple[int, str]]:
    """A command of Venire that serves pages: its process, and their address. Raises Failed where there is none."""
    said = scratch / "said"
    with said.open("w", encoding="utf-8") as into:
        process = subprocess.Popen([sys.executable, "-m", "venire", *command], stdout=into, stderr=into)
    try:
        until = time.monotonic() + 120
        while not (found := re.search(r"pages: (http://[0-9.:]+)", said.read_text(encoding="utf-8"))):
            if process.poll() is not None or time.monotonic() > until:
                raise Failed(f"venire {command[0]} serves no pages:\n{said.read_text(encoding='utf-8')[-2000:]}")
            time.sleep(0.05)
        yield process.pid, found[1]
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def children(process: int) -> list[int]:
    """The processes that a process has started and that still run."""
    found: list[int] = []
    for task in Path(f"/proc/{process}/task").iterdir():
        with suppress(OSError):
            found += map(int, (task / "children").read_text(encoding="ascii").split())
    return found


def cpu(process: int) -> float:
    """CPU seconds of all threads of a process."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# a store at rest


def calls_pages(random: Random, trials: int, count: int) -> list[str]:
    """Different addresses of the table of trials: filters, orders and places deep in it."""
    filters: list[dict[str, Any]] = [
        {},
        {"flipped": "yes"},
        {"disagree": "yes"},
        {"status": "unreadable"},
        {"winner": "0"},
        {"retried": "yes"},
    ]
    filters += [{"judge": one} for one in _JUDGES] + [{"category": one} for one in _CATEGORIES]
    filters += [{"model": random.randrange(1, _MODELS + 1)} for _ in range(5)]
    filters += [{"judge": "j1", "category": "maths", "flipped": "no"}, {"model": 3, "disagree": "yes", "judge": "j2"}]
    filters += [{"min_latency": 4, "max_latency": 6}, {"min_cost": 0.000002}, {"since": "2025-10-09T12:00:00"}]
    found: dict[str, None] = {}
    while len(found) < count:
        chosen = dict(random.choice(filters))
        order, trial = random.choice(_ORDERS), random.randrange(1, trials + 1)
        if order != "battle":
            chosen["order"] = order
        if random.random() < 0.5:
            chosen["down"] = "1"
        place = random.choice(("first", "deep", "deep", "back", "last"))
        deep = dict.fromkeys(("battle", "trial"), trial)
        deep |= {"cost": 2400 + trial % 500, "latency": 2000 + trial % 5000, "attempts": 2}
        deep |= {"time": 1_760_000_000_000_000 + trial * 20_000, "score": -1, "instruction": 1 + trial % 500}
        if place in ("deep", "back"):
            chosen["after" if place == "deep" else "before"] = f"{float(deep[order])!r}~{trial}"
        elif place == "last":
            chosen["before"] = _LAST if "down" not in chosen else "-1e+300~0"
        found["calls?" + urlencode(chosen)] = None
    return list(found)


def other_pages(random: Random, count: int) -> list[str]:
    """Different addresses of the pages beside that table, the leaderboard and the audit."""
    pages = ["overview", "judges", *(f"instructions?order={one}" for one in ("ties", "flips", "verdicts"))]
    numbers = random.sample(range(1, 51), 50)
    pages += [f"contestant/{one}" for one in numbers] + [f"instruction/{one}" for one in numbers]
    return pages[:5] + random.sample(pages[5:], count - 5)


def battle_pages(random: Random, trials: int, count: int) -> list[str]:
    """Different battles; every second one is come to from a filter or an order of the table."""
    ways = ("flipped=yes", "judge=j3", "order=cost&down=1", "category=code", "order=latency", "disagree=yes")
    chosen = random.sample(range(1, trials + 1), count)
    return [f"battle/{one}" + (f"?{random.choice(ways)}" if n % 2 else "") for n, one in enumerate(chosen)]


_TURN_SECONDS = 5.0
"""How long a reader takes from one page to the next."""


def at_rest(given: argparse.Namespace, campaign: Path, scratch: Path) -> Iterator[Line]:
    """The lines of `venire serve` on a store of so many verdicts."""
    random = Random(7)
    command = ["serve", str(campaign), "--at", "127.0.0.1:0"]
    with serving(command, scratch) as (process, url):
        reader = Reader(url)
        time.sleep(_TURN_SECONDS)  # whoever started it opens the address by hand
        seconds, waited = reader.wait_for("leaderboard")
        note = f"of {_MODELS} models, {_TURN_SECONDS:.0f} s after the address was printed; "
        note += f"{waited} times it said how far it was"
        yield Line("leaderboard, first time", 1, f"{seconds:.2f} s", "", seconds, " s", most=3.0, note=note)
        yield timed("leaderboard, again", reader.times(["leaderboard"] * given.requests), 300)
        pages = calls_pages(random, given.trials, given.requests)
        yield timed("calls: filters, orders, deep pages", reader.times(pages), 300, "each asked for the first time")
        yield timed("other pages", reader.times(other_pages(random, given.requests)), 300, "each for the first time")
        yield timed("one battle", reader.times(battle_pages(random, given.trials, given.requests)), 50)
        yield from _searches(reader, given.requests)
        before = memory("VmHWM", process)
        seconds, _ = reader.wait_for("audit")
        yield Line("audit, first time", 1, f"{seconds:.2f} s", "", note="reported alone")
        held = memory("VmHWM", process)
        beside = [memory("VmHWM", one) for one in children(process)]
        note = f"after all above ({before:.0f} MB before the audit); beside it {len(beside)} processes for fits: "
        note += ", ".join(f"{one:.0f} MB" for one in sorted(beside))
        yield Line("peak of memory", 0, f"{held:.0f} MB", "", held, " MB", most=600, note=note)
    with serving(command, scratch) as (_, url):
        start = time.perf_counter()
        reader = Reader(url)
        reader.times(["calls"])
        took = time.perf_counter() - start
        yield Line("first look at the store", 1, f"{took:.2f} s", "", note="the store is opened, its table made")


def _searches(reader: Reader, count: int) -> Iterator[Line]:
    """A word in one of a thousand replies, by different filters, and a word that is nowhere."""
    filters: list[dict[str, Any]] = [
        {},
        *({"judge": one} for one in _JUDGES),
        *({"category": one} for one in _CATEGORIES),
    ]
    filters += [{"judge": one, "category": other} for one in _JUDGES for other in _CATEGORIES]
    filters += [{"model": n + 1} for n in range(max(0, count - len(filters)))]
    seconds = []
    for one in filters[:count]:
        took, status, text = reader.get("search?" + urlencode({"q": "heliotrope", **one}))
        start = time.perf_counter()
        while status == 200 and not re.search(r"<li[ >]", _hits(text)) and (more := _more(text)):
            _, status, text = reader.get(more)
        seconds.append(took + time.perf_counter() - start)
        if not re.search(r"<li[ >]", _hits(text)):
            raise Failed(f"the search for a word that is there was answered with {status} and no hit")
    yield timed("search, until the first hits", seconds, 1000, "a word in 1 of 1,000 replies, by different filters")
    start, parts, page = time.perf_counter(), 0, "search?q=perihelion"
    while page:
        _, status, text = reader.get(page)
        if status != 200 or re.search(r"<li[ >]", _hits(text)):
            raise Failed(f"the search for a word that is nowhere was answered with {status}, or with a hit")
        parts, page = parts + 1, _more(text)
    took = time.perf_counter() - start
    yield Line("search, a word that is nowhere", 1, f"{took:.1f} s", "", note=f"in {parts} parts, each says how far")


def _hits(text: str) -> str:
    """The part of a page of a search that has the hits."""
    return text.partition('id="found"')[2]


def _more(text: str) -> str:
    """Where a search goes on; empty where it has ended."""
    found = re.search(r'data-more="([^"]*)"', text)
    return unescape(found[1]) if found else ""


# a campaign that runs


@dataclass(slots=True)
class Viewers:
    """Ten pages that follow a campaign, and one search, as the pages' script does; in a process of their own."""

    url: str
    base: str
    counts: dict[str, int] = field(default_factory=dict)

    async def follow(self, session: aiohttp.ClientSession, page: str) -> None:
        """Show a page, and again when the run has gone on."""
        again, asking = asyncio.Event(), asyncio.create_task(self._fetch(session, f"{self.base}/{page}"))
        refreshing = asyncio.create_task(self._refresh(session, page, again))
        try:
            async with session.get(f"{self.url}{self.base}/events") as events:
                async for line in events.content:
                    if line.startswith(b"event: changed"):
                        again.set()
        finally:
            refreshing.cancel()
            asking.cancel()

    async def _refresh(self, session: aiohttp.ClientSession, page: str, again: asyncio.Event) -> None:
        """The overview moves by itself; the others stay as they are until their reader turns to the next."""
        while page != "overview":
            await asyncio.sleep(_TURN_SECONDS)
            await self._fetch(session, f"{self.base}/{page}")
        while True:
            await again.wait()
            again.clear()
            await self._fetch(session, f"{self.base}/{page}")
            if again.is_set():  # it changed while the page was under way: a second later once more
                await asyncio.sleep(1.0)

    async def search(self, session: aiohttp.ClientSession) -> None:
        """Search for a word that is nowhere, part by part, over and over."""
        first = f"{self.base}/search?q=perihelion"
        page = first
        while True:
            page = _more(await self._fetch(session, page)) or first

    async def _fetch(self, session: aiohttp.ClientSession, path: str) -> str:
        async with session.get(self.url + path) as answer:
            text = await answer.text()
        what = "searches" if "/search" in path else "pages" if answer.status in (200, 202) else f"{answer.status}"
        self.counts[what] = self.counts.get(what, 0) + 1
        return text

    async def look(self, over: asyncio.Future[str]) -> None:
        """Look until `over`."""
        limits = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=limits, timeout=aiohttp.ClientTimeout(120)) as session:
            tasks: list[asyncio.Future[Any]] = [asyncio.create_task(self.follow(session, page)) for page in _WATCHED]
            tasks.append(asyncio.create_task(self.search(session)))
            await asyncio.wait([*tasks, over], return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done() and (error := task.exception()):
                    raise error
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def view(url: str, base: str) -> None:
    """The process of the viewers: each line of input begins or ends their look, and then says what was fetched."""

    async def go() -> None:
        loop = asyncio.get_running_loop()
        read: Callable[[], str] = sys.stdin.readline
        while await loop.run_in_executor(None, read):
            viewers = Viewers(url, base)
            await viewers.look(loop.run_in_executor(None, read))
            sys.stdout.write(json.dumps(viewers.counts) + "\n")
            sys.stdout.flush()

    asyncio.run(go())


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some seconds of a run: calls a second, CPU ms a call of its process, CPU seconds a second of those beside it."""

    rate: float
    cpu_ms: float
    share: float
    beside: float


def stretch(process: int, endpoint: str, seconds: float) -> Stretch:
    """Measure a run for so many seconds. Raises Failed where it makes no calls."""

    def now() -> tuple[float, int, float, dict[int, float]]:
        beside = {}
        for one in children(process):
            with suppress(OSError):
                beside[one] = cpu(one)
        return time.perf_counter(), upstream.counts(endpoint)["answered"], cpu(process), beside

    start, calls, used, others = now()
    time.sleep(seconds)
    end, more, more_used, more_others = now()
    if more == calls:
        raise Failed("the campaign made no calls while it was measured: it has ended, or needs more trials")
    took = end - start
    beside = sum(value - others.get(one, 0.0) for one, value in more_others.items())
    busy = more_used - used
    return Stretch((more - calls) / took, 1000 * busy / (more - calls), busy / took, beside / took)


def running(
    given: argparse.Namespace, in_flight: int, latency: float, least: float | None, scratch: Path
) -> list[Line]:
    """The lines of a campaign, alternately without and with viewers; the first stretches are not counted."""
    cores = sorted(os.sched_getaffinity(0))
    trials = ceil(in_flight / latency * given.seconds * (2 * given.pairs + 6) / 2)
    trials = min(trials, given.most_trials)
    file = write_campaign(scratch / f"campaign-{in_flight}-{latency:g}", [Judge("judge", "", in_flight)], trials)
    with upstream.running(latency, spread=0.2, core=cores[-1]) as endpoint:
        file.write_text(file.read_text(encoding="utf-8").replace('base_url = ""', f'base_url = "{endpoint}"'))
        command = ["run", str(file), "--yes", "--serve", "127.0.0.1:0"]
        with serving(command, scratch) as (process, url):
            base = Reader(url).base
            words = [sys.executable, __file__, "--view", url, base]
            with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as viewers:
                try:
                    os.sched_setaffinity(viewers.pid, {cores[-1]})
                    without, beside, fetched = _pairs(given, process, endpoint, viewers)
                finally:
                    viewers.kill()
            memory_used = memory("VmHWM", process)
    ratios = Spread(tuple(two.rate / one.rate for one, two in zip(without, beside, strict=True)))
    dearer = Spread(tuple(two.cpu_ms / one.cpu_ms for one, two in zip(without, beside, strict=True)))
    what = f"{in_flight} calls in flight of {latency:g} s"
    seen = ", ".join(f"{number} {name}" for name, number in fetched.items())
    note = f"{_middle(without, 'rate'):,.0f} calls/s without, {_middle(beside, 'rate'):,.0f} with; fetched: {seen}"
    cost = (
        f"{_middle(without, 'cpu_ms'):.2f} ms a call without ({_middle(without, 'share'):.0%} of a core), "
        f"{_middle(beside, 'cpu_ms'):.2f} with ({_middle(beside, 'share'):.0%}), pages included; fits beside it "
        f"{fmean(one.beside for one in beside):.0%} of a core; peak {memory_used:.0f} MB"
    )
    return [
        Line(
            f"calls/s with viewers over those without, {what}",
            given.pairs,
            ratios.show(),
            "",
            ratios.median,
            least=least,
            note=note,
        ),
        Line(f"CPU of the run's process a call, the same, {what}", given.pairs, dearer.show(), "", note=cost),
    ]


def _pairs(
    given: argparse.Namespace, process: int, endpoint: str, viewers: subprocess.Popen[str]
) -> tuple[list[Stretch], list[Stretch], Mapping[str, int]]:
    without, beside = [], []
    fetched: dict[str, int] = {}
    assert viewers.stdin is not None
    assert viewers.stdout is not None
    for number in range(given.pairs + 1):
        if number == 0:
            time.sleep(given.seconds)  # until every worker has a call
        alone = stretch(process, endpoint, given.seconds)
        viewers.stdin.write("look\n")
        viewers.stdin.flush()
        time.sleep(0.5 if number else 5.0)  # the first boards and imports
        watched = stretch(process, endpoint, given.seconds)
        viewers.stdin.write("enough\n")
        viewers.stdin.flush()
        counts: dict[str, int] = json.loads(viewers.stdout.readline())
        time.sleep(1.0)  # what was asked for last is computed to its end
        if number:
            without.append(alone)
            beside.append(watched)
            for name, count in counts.items():
                fetched[name] = fetched.get(name, 0) + count
    if refused := fetched.keys() - {"pages", "searches"}:
        raise Failed(f"viewers were answered with {', '.join(refused)}")
    return without, beside, fetched


def _middle(stretches: Sequence[Stretch], name: str) -> float:
    return float(median(getattr(one, name) for one in stretches))


# the command


def settled_store(folder: Path, trials: int) -> Path:
    """The campaign file of a store with so many verdicts, made where it is not there; about a minute for a million."""
    found = folder / f"pages-{trials}"
    if not found.exists():
        made = found.with_suffix(".part")
        file = stores.make(made, trials, models=_MODELS, matchups=_MATCHUPS)
        with open_store(load_campaign(file).store) as store:
            stores.settle(store, stores.settled_first(trials), varied=True)
        made.rename(found)
    return found / CAMPAIGN


def lines(given: argparse.Namespace, folder: Path, scratch: Path) -> Iterator[Line]:
    """All lines that are asked for."""
    if "rest" in given.rows:
        yield from at_rest(given, settled_store(folder, given.trials), scratch)
    if "run" in given.rows:
        yield from running(given, 256, 0.5, 0.95, scratch)
        if given.flat_out:
            yield from running(given, 256, 0.02, None, scratch)


def main() -> int:
    """Measure and print the table; 2 where it is void, 1 for a missed target under `--judge`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=1_000_000, help="verdicts of the store, a multiple of 2,000")
    parser.add_argument("--requests", type=int, default=50, help="different requests of each line")
    parser.add_argument("--pairs", type=int, default=5, help="stretches of the run without viewers, and with them")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each of them is")
    parser.add_argument("--most-trials", type=int, default=250_000, help=argparse.SUPPRESS)
    parser.add_argument("--rows", nargs="+", choices=("rest", "run"), default=["rest", "run"])
    parser.add_argument("--flat-out", action="store_true", help="also a run that makes as many calls as it can")
    parser.add_argument("--folder", type=Path, help="where the store is kept for the next time; else it is removed")
    parser.add_argument("--judge", action="store_true", help="end with 1 where a target is missed")
    parser.add_argument("--view", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.view:
        view(*given.view)
        return _DONE
    ending, start = _DONE, time.monotonic()
    _say(f"{given.trials:,} verdicts, {os.cpu_count()} cores, load before {os.getloadavg()[0]:.1f}\n\n{_HEAD}")
    with tempfile.TemporaryDirectory(prefix="venire-bench-") as scratch:
        try:
            for line in lines(given, given.folder or Path(scratch), Path(scratch)):
                _say(line.show() + "\n")
                ending = max(ending, _DONE if line.met else _MISSED)
        except (Failed, upstream.Missing) as error:
            sys.stderr.write(f"bench: {error}\n")
            return _VOID
    _say(f"\nin {(time.monotonic() - start) / 60:.1f} minutes, load after {os.getloadavg()[0]:.1f}\n")
    return ending if given.judge else _DONE


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
