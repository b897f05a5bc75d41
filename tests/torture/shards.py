"""Shards under torture: `python -m tests.torture.shards` has shards take each other over, kills some, checks the books.

A round divides a campaign among four shards with half of the money that it needs. All are begun, and ended by SIGKILL
after a few requests. In each step some of them go on at once, a few told to take others over, two perhaps the same one;
some are ended by SIGKILL after so many requests. Then one takes all that is left, and goes on with money enough. The
provider is a server in a process of its own, whose ledger says what was asked and what that cost.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from tests.demo import DATA, demo_key
from tests.ledgers import read_ledger
from tests.torture import alone
from tests.torture.processes import Process, answer_of, fork
from venire.arena.campaigns import TokenPrice
from venire.simulation.answer_key import AnswerKey
from venire.simulation.ledger import LedgerEntry
from venire.simulation.server import JudgeServer

_OF = 4
_STEPS = 4
_PRICE = TokenPrice(1_000_000_000, 4_000_000_000)
_SPEED = 40.0
_SECONDS = 60.0
_KEEPS = 0.1
"""The part of the money, at most, that a budget leaves unspent where work is left and nothing was lost."""

_VERDICTS = "select instruction_id, model_a, model_b, swapped, status, winner from battle order by all"
_ATTEMPTS = "select lower(hex(t.trial_key)) || '-' || a.step, a.fault from attempt a join trial t on t.id = a.trial"


@dataclass(slots=True)
class ShardRound:
    """What was seen in a round, and the promises that were not kept; money in nano-dollars."""

    number: int
    runs: int = 0
    killed: int = 0
    refused: int = 0
    """Starts that were told whose part it is, or who is at work on it."""
    requests: int = 0
    twice: int = 0
    """Steps asked again, of calls that a kill left without an answer or of trials that it cut."""
    cap: int = 0
    owed: int = 0
    """What the provider charged before there was more money."""
    on_account: int = 0
    seconds: float = 0.0
    broken: list[str] = field(default_factory=list)


@contextmanager
def _server(key: AnswerKey, ledger: Path) -> Iterator[str]:
    reading, writing = os.pipe()

    async def serve() -> None:
        async with JudgeServer(key, speed=_SPEED, seed=3, ledger_path=ledger) as server:
            os.write(writing, server.base_url.encode())
            os.close(writing)
            await asyncio.Event().wait()

    process = fork(lambda: asyncio.run(serve()), ledger.with_suffix(".out"), ledger.with_suffix(".err"))
    os.close(writing)
    try:
        with os.fdopen(reading) as stream:
            yield stream.read()
    finally:
        process.end()


def _campaign(path: Path, address: str, money: float) -> None:
    path.write_text(
        f"""
name = "shards"
seed = 7
{DATA}
[plan]
policy = "all-pairs"
instructions = 8
[[judge]]
name = "judge"
model = "simulated/gpt-4-0613@1"
base_url = "{address}"
protocol = "two-stage"
concurrency = 4
max_tokens = 300
price = {{ input = 1.0, output = 4.0 }}
[budget]
money = {money}
""",
        encoding="utf-8",
    )


def _without_their_spending() -> None:
    """A taker has the parts of those that it took, and not what they spent."""
    from venire.orchestrator.run import takeover

    takeover.without_spent = lambda limits, store, judges: limits  # type: ignore[attr-defined]


BROKEN: dict[str, Callable[[], None]] = {"spending-left-behind": _without_their_spending}


def _venire(folder: Path, *words: object, broken: str | None = None) -> Process:
    def body() -> None:
        from venire.cli import main

        if broken:
            BROKEN[broken]()
        sys.argv = ["venire", *map(str, words)]
        main()

    number = len(list(folder.glob("*.err")))
    return fork(body, folder / f"{number}.out", folder / f"{number}.err")


def _finish(process: Process) -> int:
    process.wait(_SECONDS)
    return process.end()


class _Round:
    def __init__(self, found: ShardRound, rng: random.Random, folder: Path, broken: str | None) -> None:
        self.found, self.rng, self.folder, self.broken = found, rng, folder, broken
        self.path, self.ledger, self.said = folder / "campaign.toml", folder / "ledger.jsonl", folder / "said"
        self.said.mkdir()
        self.address = ""

    def play(self, key: AnswerKey) -> None:
        with _server(key, self.ledger) as self.address:
            _campaign(self.path, self.address, 1000.0)
            self._expect(_finish(_venire(self.said, "run", self.path, "--yes")), {0}, "one process")
            whole = self.path.with_suffix(".duckdb").rename(self.folder / "one.duckdb")
            alone_entries = read_ledger(self.ledger)
            needed = _owed(alone_entries)
            self.found.cap = cap = needed // 2 // 1_000_000 * 1_000_000
            _campaign(self.path, self.address, cap / 1e9)
            self._run([(number, None, self.rng.randint(5, 20)) for number in range(1, _OF + 1)])
            for _ in range(_STEPS):
                self._step()
            everything = self._shard(1, *range(2, _OF + 1))
            self._expect(_finish(everything), {3}, "one that has all parts")
            tight = self._requests()[len(alone_entries) :]
            self.found.owed = _owed(tight)
            self.found.on_account, aside = answer_of(self._accounts)
            _campaign(self.path, self.address, 1000.0)
            self._expect(_finish(self._shard(1, more="--amend")), {0}, "the same with money enough")
            entries = self._requests()[len(alone_entries) :]
        self._check_money(aside)
        self._check_merged(whole, entries)

    def _shard(self, number: int, *taken: int, more: str = "--yes") -> Process:
        take = [word for one in taken for word in ("--take", f"{one}/{_OF}")]
        words = ("run", self.path, "--yes", "--shard", f"{number}/{_OF}", *take, more)
        return _venire(self.said, *words, broken=self.broken)

    def _step(self) -> None:
        """Some shards at once, each perhaps told to take another, perhaps killed."""
        same, rng = self.rng.randint(1, _OF), self.rng
        shards: list[tuple[int, int | None, int | None]] = []
        for number in rng.sample(range(1, _OF + 1), rng.randint(2, 3)):
            taken = rng.choice((None, same, rng.randint(1, _OF)))
            shards.append((number, None if taken == number else taken, rng.choice((None, rng.randint(1, 60)))))
        self._run(shards)

    def _run(self, shards: list[tuple[int, int | None, int | None]]) -> None:
        """Run shards at once, by number, whom to take, and after how many requests to be killed."""
        had, deadline = self._total(), time.monotonic() + _SECONDS
        running = [
            (self._shard(number, *(() if taken is None else (taken,))), None if after is None else had + after)
            for number, taken, after in shards
        ]
        left = [(process, at) for process, at in running if at is not None]
        while left and time.monotonic() < deadline:
            now = self._total()
            for process, at in left:
                if now >= at:
                    process.send(signal.SIGKILL)
            left = [(process, at) for process, at in left if process.wait(0.002) is None]
        for process, _ in running:
            self._expect(_finish(process), {0, 2, 3, -signal.SIGKILL}, "a shard")

    def _expect(self, code: int, codes: set[int], who: str) -> None:
        self.found.runs += 1
        self.found.killed += code == -signal.SIGKILL
        self.found.refused += code == 2
        if code not in codes:
            self.found.broken.append(f"{who} ends with one of {sorted(codes)}, not {code}")

    def _total(self) -> int:
        with urlopen(self.address.removesuffix("/v1") + "/ledger", timeout=10) as answer:
            return int(json.load(answer)["totals"]["requests"])

    def _requests(self) -> list[LedgerEntry]:
        """The ledger, once nothing is in flight: what a kill left behind is answered to nobody."""
        quiet = 0
        while quiet < 3:
            with urlopen(self.address.removesuffix("/v1") + "/ledger", timeout=10) as answer:
                quiet = quiet + 1 if json.load(answer)["totals"]["in_flight"] == 0 else 0
            time.sleep(0.01)
        return read_ledger(self.ledger)

    def _stores(self) -> list[Path]:
        return sorted(self.folder.glob("campaign.shard-*-of-*.duckdb"))

    def _accounts(self) -> tuple[int, int]:
        """What all shards account for, and of that what is set aside for calls without an answer."""
        found = [_read(store, "select nano, unanswered from spend") for store in self._stores()]
        return sum(nano for ((nano, _),) in filter(None, found)), sum(aside for ((_, aside),) in filter(None, found))

    def _check_money(self, aside: int) -> None:
        found = self.found
        if not found.owed <= found.on_account <= found.cap:
            found.broken.append(f"owed {found.owed:,} <= on account {found.on_account:,} <= cap {found.cap:,}")
        if found.on_account < (1 - _KEEPS) * found.cap:
            found.broken.append(
                f"nearly all of the cap to be used: {found.on_account:,} of {found.cap:,}, of which {aside:,} set aside"
            )

    def _check_merged(self, whole: Path, entries: list[LedgerEntry]) -> None:
        found, merged = self.found, self.folder / "merged.duckdb"
        self._expect(_finish(_venire(self.said, "store", "merge", *self._stores(), "-o", merged)), {0}, "the merge")
        if not merged.exists():
            return
        self._expect(_finish(_venire(self.said, "store", "check", merged)), {0}, "the check of the merged store")
        mine, other = (answer_of(lambda store=store: _read(store, _VERDICTS)) for store in (merged, whole))
        if mine != other:
            found.broken.append(f"the verdicts of one process: {len({*mine} ^ {*other})} of {len(other)} differ")
        asked = Counter(entry.key for entry in entries)
        on_record: Counter[str] = Counter()
        answered: Counter[str] = Counter()
        for store in self._stores():
            for key, fault in answer_of(lambda store=store: _read(store, _ATTEMPTS)):
                on_record[key] += 1
                answered[key] += fault == 0
        found.requests, found.twice = len(entries), sum(times - 1 for times in asked.values())
        if unknown := asked - on_record:
            found.broken.append(f"every request is on record: {unknown.total()} are not, such as {min(unknown)}")
        settled = {key for key, times in answered.items() if times > 1 and key.endswith("-2")}
        if settled:
            found.broken.append(f"nothing settled is asked again: {len(settled)} were, such as {min(settled)}")


def _read(store: Path, query: str) -> list[Any]:
    import duckdb

    with duckdb.connect(str(store), read_only=True) as connection:
        return connection.execute(query).fetchall()


def _owed(entries: list[LedgerEntry]) -> int:
    return sum(_PRICE.cost(*entry.billed) for entry in entries if entry.billed is not None)


def play(key: AnswerKey, number: int, seed: int, folder: Path, broken: str | None = None) -> ShardRound:
    """One round in a folder of its own."""
    found, begun = ShardRound(number), time.monotonic()
    here = folder / str(number)
    here.mkdir()
    _Round(found, random.Random(f"{seed}/{number}/shards"), here, broken).play(key)
    found.seconds = time.monotonic() - begun
    return found


def main() -> int:
    """Play the rounds that were asked for; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture.shards", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--broken", choices=BROKEN, help="a build with a promise broken on purpose")
    parser.add_argument("--keep", action="store_true")
    asked = parser.parse_args()
    for name in (
        "duckdb",
        "scipy.optimize",
        "uvloop",
        "venire.cli",
        "venire.reports.board.build",
        "venire.render.outcome",
    ):
        import_module(name)
    alone.check()
    folder = Path(tempfile.mkdtemp(prefix="venire-shards-"))
    bad = 0
    try:
        key = answer_of(demo_key)
        for number in range(1, asked.rounds + 1):
            one = play(key, number, asked.seed, folder, asked.broken)
            sys.stdout.write(
                f"round {one.number}: {one.runs} runs, {one.killed} killed, {one.refused} refused, {one.requests:,} "
                f"requests, {one.twice} again; ${one.owed / 1e9:.4f} owed, ${one.on_account / 1e9:.4f} on account, cap "
                f"${one.cap / 1e9:.4f}; {one.seconds:.1f} s  {'BROKEN' if one.broken else 'kept'}\n"
            )
            for problem in one.broken:
                sys.stdout.write(f"     expected {problem}\n")
            sys.stdout.flush()
            bad += bool(one.broken)
        return int(bad > 0)
    finally:
        if asked.keep:
            sys.stderr.write(f"kept: {folder}\n")
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    raise SystemExit(main())
