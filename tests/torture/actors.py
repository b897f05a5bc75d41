"""Actors under torture: `python -m tests.torture.actors` kills actors and their coordinator, and checks the books.

A campaign is asked by four actors of a Ray cluster, before a simulated provider in a process of its own whose ledger
says what was asked, and when. One actor is killed again and again, one is stopped for longer than its lease, and the
coordinator is killed once and started again; of several nodes one is lost. At the end the store is held against the
ledger and against the same campaign as this process alone asks it.

With `--helpers` the campaign is asked in a cluster of its own command, of which Ray's own processes are killed, one of
each kind, and then its actors while the control service is gone.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import select
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from tests.ledgers import read_ledger
from tests.torture.clusters import HELPERS, RayCluster, own_cluster, ray_nodes
from tests.torture.processes import fork
from venire.arena.campaigns import TokenPrice
from venire.configs.loading import load_campaign
from venire.embedded import answer_key
from venire.session import Session
from venire.simulation.answer_key import AnswerKey
from venire.simulation.ledger import Ledger
from venire.simulation.server import JudgeServer

ROOT = Path(__file__).resolve().parent.parent.parent
DATA = ROOT / "configs" / "demo"
_TRIALS_A_REPEAT = 480
"""Of the demo's texts by one judge: 15 pairs, 16 instructions, two orders."""
_PRICE = TokenPrice(1_000_000_000, 4_000_000_000)
_STAMP = struct.Struct("<d")
_MINUTE = 60.0
_OWN_NETWORK = "VENIRE_OWN_NETWORK"
_CALLS = 2
"""Of a trial."""
_APART = 8.0
"""Seconds between two kills of Ray's own processes, so that what the first has led to is seen."""
_ENDS_SECONDS = 10.0


@dataclass(slots=True)
class ActorRound:
    """One campaign that was tormented: what was seen, and the promises that were not kept."""

    trials: int
    actors_killed: int = 0
    stopped_seconds: float = 0.0
    helpers_killed: list[str] = field(default_factory=list)
    """Of Ray's own processes, by kind."""
    starts: int = 0
    requests: int = 0
    asked_twice: int = 0
    unanswered: int = 0
    fullest_minute: int = 0
    limit: int = 0
    spent: int = 0
    local: int = 0
    memory: int = 0
    seconds: float = 0.0
    broken: list[str] = field(default_factory=list)


def campaign_file(folder: Path, address: str, *, trials: int, limit: int | None, concurrency: int) -> Path:
    """A campaign of one judge and so many trials (or a few more), in a folder of its own."""
    folder.mkdir(parents=True)
    path = folder / "campaign.toml"
    path.write_text(
        f"""
seed = 7
[data]
instructions = "{DATA / "instructions.jsonl"}"
completions = "{DATA / "completions.jsonl"}"
elo = "{DATA / "elo.csv"}"
[plan]
policy = "all-pairs"
instructions = 16
repeats = {-(-trials // _TRIALS_A_REPEAT)}
[[judge]]
name = "judge"
model = "simulated/gpt-4-0613@1"
base_url = "{address}"
price = {{ input = 1.0, output = 4.0 }}
concurrency = {concurrency}
{"" if limit is None else f"requests_per_minute = {limit}"}
""",
        encoding="utf-8",
    )
    return path


@contextmanager
def _provider(key: AnswerKey, folder: Path, speed: float) -> Iterator[str]:
    """The judge server in a process of its own, with the moment of each request in a file; its base URL."""
    reading, writing = os.pipe()
    stamps = (folder / "stamps").open("ab", buffering=0)
    enter = Ledger.enter

    def entered(self: Ledger, *words: Any, **named: Any) -> Any:
        stamps.write(_STAMP.pack(time.monotonic()))
        return enter(self, *words, **named)

    async def serve() -> None:
        Ledger.enter = entered  # type: ignore[method-assign]
        async with JudgeServer(key, speed=speed, ledger_path=folder / "ledger.jsonl") as server:
            os.write(writing, server.base_url.encode())
            os.close(writing)
            await asyncio.Event().wait()

    process = fork(lambda: asyncio.run(serve()), folder / "server.out", folder / "server.err")
    os.close(writing)
    try:
        with os.fdopen(reading) as stream:
            yield stream.read()
    finally:
        process.end()
        stamps.close()


class _Torment:
    """One run with everything that is done to it."""

    def __init__(self, found: ActorRound, cluster: RayCluster, campaign: Path, folder: Path, words: list[str]) -> None:
        self.found, self.cluster, self.campaign, self.folder = found, cluster, campaign, folder
        self.command = [sys.executable, "-m", "venire", "run", str(campaign), "--yes", *words]
        self.process: subprocess.Popen[bytes] | None = None
        self.stopped: dict[int, float] = {}
        self.random = random.Random(7)
        self.left: deque[Any] = deque()

    def start(self) -> None:
        """Start the coordinator, or start it again."""
        with (self.folder / "run.out").open("ab") as out:
            self.process = subprocess.Popen(
                self.command, stdout=out, stderr=out, start_new_session=True, env=os.environ | self.cluster.environ
            )
        self.found.starts += 1

    def asked(self) -> int:
        """Requests that have come to the provider."""
        return (self.folder / "stamps").stat().st_size // _STAMP.size

    def kill_actor(self) -> None:
        """Kill one of the actors that are not stopped."""
        if there := [pid for pid in self.cluster.actors() if pid not in self.stopped]:
            os.kill(self.random.choice(there), signal.SIGKILL)
            self.found.actors_killed += 1

    def kill_actors(self) -> None:
        """Kill all of them."""
        for pid in self.cluster.actors():
            os.kill(pid, signal.SIGKILL)
            self.found.actors_killed += 1

    def kill_helper(self, kind: str) -> None:
        """Kill one of Ray's own processes, where there is one of the kind."""
        for pid in self.cluster.helpers(kind)[:1]:
            os.kill(pid, signal.SIGKILL)
            self.found.helpers_killed.append(kind)

    def stop_actor(self) -> None:
        """Stop one."""
        if there := self.cluster.actors():
            pid = self.random.choice(there)
            os.kill(pid, signal.SIGSTOP)
            self.stopped[pid] = time.monotonic()

    def wake_actor(self) -> None:
        """Let those go on that were stopped."""
        for pid, since in self.stopped.items():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
                self.found.stopped_seconds = time.monotonic() - since
        self.stopped.clear()

    def kill_coordinator(self) -> None:
        """Kill the command, and give it again."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.start()

    def measure(self) -> None:
        """Note how much memory all of it has."""
        assert self.process is not None
        self.found.memory = max(self.found.memory, self.cluster.memory(self.process.pid))

    def play(self, schedule: list[tuple[float, float, Callable[[], None]]], progress: Callable[[], float]) -> int:
        """Do one thing after another, and wait for the end; returns the exit code.

        Each is done when the progress is there, and so many seconds after the one before.
        """
        self.start()
        waiting = self.left = deque(schedule)
        looked, last = 0.0, time.monotonic()
        while True:
            assert self.process is not None
            try:
                code = self.process.wait(0.02)
            except subprocess.TimeoutExpired:
                code = None
            if code is not None:
                self.wake_actor()
                return code
            if waiting and progress() >= waiting[0][0] and time.monotonic() - last >= waiting[0][1]:
                waiting.popleft()[2]()
                last = time.monotonic()
            if time.monotonic() - looked > 5.0:
                looked = time.monotonic()
                self.measure()


_ROWS = """select lower(hex(t.trial_key)) || '-' || a.step request, a.fault, a.cost, a.reserved
  from attempt a join trial t on t.id = a.trial"""
_VERDICTS = """select lower(hex(t.trial_key)), v.status, v.rule, v.label, v.score, v.criteria, v.places
  from verdict v join trial t on t.id = v.trial order by 1"""


def _check(found: ActorRound, store: Path, local: Path, folder: Path) -> None:
    """Hold a store against the provider's ledger and against the store of one process."""
    with duckdb.connect(str(local), read_only=True) as connection:
        wanted = connection.execute(_VERDICTS).fetchall()
        once = connection.execute(_ROWS).fetchall()
    with duckdb.connect(str(store), read_only=True) as connection:
        seen = connection.execute(_VERDICTS).fetchall()
        rows = connection.execute(_ROWS).fetchall()
        (spent,) = connection.execute("select nano from spend").fetchone() or (0,)
    entries = read_ledger(folder / "ledger.jsonl")
    asked = Counter(one.key for one in entries)
    kept = Counter(request for request, *_ in rows)
    unanswered = Counter(request for request, fault, *_ in rows if fault == 8)
    found.requests, found.unanswered = len(entries), unanswered.total()
    found.asked_twice = sum(number - 1 for number in asked.values())
    found.spent, found.local = spent, sum(cost for _, _, cost, _ in once)

    def promise(kept: bool, said: str) -> None:
        if not kept:
            found.broken.append(said)

    promise(seen == wanted, f"keys and verdicts are not those of one process: {len(seen)} and {len(wanted)}")
    missing = asked - kept
    promise(not missing, f"{missing.total()} requests of the ledger are not in the store, such as {list(missing)[:3]}")
    beyond = kept - asked
    strange = beyond - unanswered
    promise(not strange, f"{strange.total()} answered calls of the store are not in the ledger")
    extra = spent - found.local
    price = {request: cost for request, _, cost, _ in once}
    answered = Counter(request for request, fault, *_ in rows if fault != 8)
    paid = sum((number - 1) * price[request] for request, number in answered.items())
    reserved = sum(reserved for _, fault, _, reserved in rows if fault == 8)
    promise(extra == paid + reserved, f"${extra / 1e9:.6f} more than one process, ${(paid + reserved) / 1e9:.6f} due")
    twice = sum(number - 1 for number in kept.values())
    promise(
        twice - found.asked_twice == beyond.total(), f"{twice} calls of the store are again, {found.asked_twice} asked"
    )
    stamps = [one[0] for one in _STAMP.iter_unpack((folder / "stamps").read_bytes())]
    low = 0
    for high, at in enumerate(stamps):
        while stamps[low] <= at - _MINUTE:
            low += 1
        found.fullest_minute = max(found.fullest_minute, high - low + 1)
    promise(found.fullest_minute <= found.limit, f"{found.fullest_minute} requests in a minute, {found.limit} allowed")
    checked = subprocess.run(
        [sys.executable, "-m", "venire", "store", "check", str(store)], capture_output=True, text=True
    )
    promise(checked.returncode == 0, f"store check: {checked.stdout}{checked.stderr}")


def play(
    folder: Path,
    *,
    trials: int,
    actors: int = 4,
    nodes: int = 1,
    lease: float = 5.0,
    seconds: float | None = None,
    limit: int = 60_000,
    concurrency: int = 128,
    speed: float = 20.0,
) -> ActorRound:
    """Torment one campaign; with `seconds` an actor is killed that often apart, else at parts of the calls."""
    with (
        _stage(folder, trials=trials, limit=limit, concurrency=concurrency, speed=speed) as stage,
        ExitStack() as stack,
    ):
        cluster = stack.enter_context(ray_nodes(nodes))
        words = ["--engine", f"ray:{cluster.address}", "--actors", str(actors), "--lease", f"{lease:g}s"]
        torment = _Torment(stage.found, cluster, stage.campaign, folder, words)
        whole = _CALLS * stage.found.trials
        begin = time.monotonic()
        if seconds is None:
            at, progress = [part * whole for part in (0.1, 0.2, 0.2, 0.5, 0.7)], lambda: float(torment.asked())
        else:
            at, progress = [part * seconds for part in (1.0, 1.3, 1.3, 2.5, 3.0)], lambda: time.monotonic() - begin
        stage.end(
            torment,
            [
                (at[0], 0.0, torment.kill_actor),
                (at[1], 0.0, torment.stop_actor),
                (at[2], 2.0 * lease, torment.wake_actor),
                *([] if seconds is None else [(2.0 * seconds, 0.0, torment.kill_actor)]),
                (at[3], 0.0, torment.kill_coordinator),
                (at[4], 0.0, torment.kill_actor),
                *([] if nodes == 1 else [(at[4], lease, partial(torment.kill_helper, "raylet"))]),
            ],
            progress,
        )
    return stage.found


def play_helpers(
    folder: Path, *, trials: int, kinds: Sequence[str] = tuple(HELPERS), actors: int = 2, concurrency: int = 24
) -> ActorRound:
    """Torment one campaign in a cluster of its own command by killing Ray's own processes, a kind after the other.

    At last its actors are killed, where who would start them again is gone.
    """
    with _stage(folder, trials=trials, limit=60_000, concurrency=concurrency, speed=20.0) as stage:
        words = ["--engine", "ray", "--actors", str(actors)]
        torment = _Torment(stage.found, own_cluster(), stage.campaign, folder, words)
        kills: list[Callable[[], None]] = [partial(torment.kill_helper, kind) for kind in kinds]
        kills += [torment.kill_actor, torment.kill_actors]
        part = _CALLS * stage.found.trials / (2 + len(kills))
        schedule = [((1 + number) * part, _APART, kill) for number, kill in enumerate(kills)]
        stage.end(torment, schedule, lambda: float(torment.asked()))
    return stage.found


@dataclass(slots=True)
class _Stage:
    """A campaign to be tormented, the provider that it asks, and the same as one process asked it."""

    found: ActorRound
    campaign: Path
    local: Path
    folder: Path

    def end(
        self,
        torment: _Torment,
        schedule: list[tuple[float, float, Callable[[], None]]],
        progress: Callable[[], float],
    ) -> None:
        """Play a schedule to its end, and note what is wrong with the end."""
        broken = self.found.broken
        code = torment.play(schedule, progress)
        if left := len(torment.left):
            broken.append(f"the campaign ended before {left} of the things that were to be done to it")
        if code != 0:
            broken.append(f"the campaign ended with {code}: {(self.folder / 'run.out').read_text()[-2000:]}")
        if lasting := [pid for pid in torment.cluster.actors() if not _ends(pid)]:
            broken.append(f"{len(lasting)} actors outlive the campaign")


def _ends(pid: int) -> bool:
    """Whether a process that is not ours ends by itself.

    Ray waits for the processes that it started, not for theirs: an actor whose raylet is gone notices a moment later.
    """
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], _ENDS_SECONDS)[0])
    finally:
        os.close(process)


@contextmanager
def _stage(folder: Path, *, trials: int, limit: int, concurrency: int, speed: float) -> Iterator[_Stage]:
    """A campaign as one process asks it, then the same to be tormented; its books are checked at the end."""
    began = time.monotonic()
    found = ActorRound(-(-trials // _TRIALS_A_REPEAT) * _TRIALS_A_REPEAT, limit=limit)
    data = campaign_file(folder / "data", "http://127.0.0.1:9/v1", trials=1, limit=None, concurrency=1)
    key = answer_key(load_campaign(data))
    served = folder / "served"
    served.mkdir()
    with _provider(key, served, 0.0) as address:
        local = campaign_file(folder / "local", address, trials=trials, limit=None, concurrency=concurrency)
        with Session(load_campaign(local)) as session:
            session.run()
    with _provider(key, folder, speed) as address:
        path = campaign_file(folder / "campaign", address, trials=trials, limit=limit, concurrency=concurrency)
        yield _Stage(found, path, local, folder)
    _check(found, path.with_suffix(".duckdb"), local.with_suffix(".duckdb"), folder)
    found.seconds = time.monotonic() - began


def main() -> int:
    """Torment one campaign and print what was seen; 1 where a promise was broken."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--actors", type=int, default=4)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--lease", type=float, default=10.0)
    parser.add_argument("--every", type=float, default=60.0, help="seconds between two kills; 0: by parts of the calls")
    parser.add_argument("--limit", type=int, default=10_800, help="requests a minute that the campaign may send")
    parser.add_argument("--keep", type=Path, help="a folder to leave everything in")
    parser.add_argument("--helpers", action="store_true", help="kill Ray's own processes in a cluster of the command")
    given = parser.parse_args()
    if (
        not given.helpers and given.nodes > 1 and _OWN_NETWORK not in os.environ
    ):  # several nodes listen on all addresses
        os.environ[_OWN_NETWORK] = "1"
        command = " ".join(shlex.quote(one) for one in (sys.executable, "-m", "tests.torture.actors", *sys.argv[1:]))
        os.execvp("unshare", ["unshare", "-rn", "sh", "-c", f"ip link set lo up && exec {command}"])
    with ExitStack() as stack:
        folder = given.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="venire-actors-")))
        folder.mkdir(parents=True, exist_ok=True)
        if given.helpers:
            found = play_helpers(folder, trials=min(given.trials, 2_000))
        else:
            found = play(
                folder,
                trials=given.trials,
                actors=given.actors,
                nodes=given.nodes,
                lease=given.lease,
                seconds=given.every or None,
                limit=given.limit,
            )
        sys.stdout.write(_told(found))
    return 1 if found.broken else 0


def _told(found: ActorRound) -> str:
    lines = [
        f"{found.trials:,} trials, {found.requests:,} requests, {found.asked_twice:,} of them asked again",
        f"{found.actors_killed} actors killed, one stopped for {found.stopped_seconds:.0f} s, {found.starts} starts",
        f"Ray's own processes killed: {', '.join(found.helpers_killed) or 'none'}",
        f"{found.unanswered:,} calls without an answer on record",
        f"fullest minute {found.fullest_minute:,} requests of {found.limit:,}",
        f"${found.spent / 1e9:.4f} spent, ${found.local / 1e9:.4f} by one process",
        f"memory {found.memory / 1e9:.2f} GB at most; {found.seconds:.0f} s",
    ]
    lines += [f"BROKEN: {one}" for one in found.broken] or ["kept"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
