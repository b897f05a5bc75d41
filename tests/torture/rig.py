"""A round: a campaign is run, one thing is done to it at a seeded moment, it goes on until it is complete."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from tests.ledgers import read_ledger
from tests.torture import child
from tests.torture.faults import FAULTS, OF_THE_SERVER, Scene, mount, unmount
from tests.torture.marks import Marks, Orders, Trap
from tests.torture.plan import MOST_DRAWS, Plan
from tests.torture.processes import Process, answer_of, fork
from tests.torture.promises import DUPLICATE, Broken, Dump, Facts, Run, broken_promises
from tests.torture.shapes import JUDGES, PRICES, Shape
from venire.simulation.answer_key import AnswerKey
from venire.simulation.faults import FaultKind, Faults
from venire.simulation.server import JudgeServer

_DEADLINE = 25.0
"""Seconds that a run may take; a provider's grace and every time-out are shorter here."""
_MOST_RUNS = 6
_LATE = 0.12
"""Seconds by which a late reply misses its client."""


@dataclass
class Result:
    """How a round ended."""

    number: int
    fault: str
    phase: str
    shape: str
    point: str
    inside: bool
    draws: int
    seconds: float
    requests: int = 0
    runs: list[int] = field(default_factory=list)
    """Exit codes."""
    others: str = ""
    """Faults before and after the one that the round is about."""
    broken: list[Broken] = field(default_factory=list)
    folder: str | None = None


class _Ordered:
    """The shape's own faults, and those that the rig orders."""

    def __init__(self, usual: Faults, orders: Orders, late_s: float) -> None:
        self._usual, self._orders = usual, orders
        self.retry_after_s, self.timeout_s, self.late_s = usual.retry_after_s, usual.timeout_s, late_s

    def draw(self, seed: int, body_digest: str, asked: int) -> Any:
        """See `Faults.draw`."""
        ordered: Any = self._orders.take() if asked <= 3 else None
        kind: FaultKind | None = ordered or self._usual.draw(seed, body_digest, asked)
        return kind


@contextmanager
def _server(key: AnswerKey, plan: Plan, orders: Orders, ledger: Path, seed: int) -> Iterator[str]:
    """The judge server in a process of its own; its base URL."""
    reading, writing = os.pipe()

    async def serve() -> None:
        faults: Any = _Ordered(plan.shape.faults, orders, plan.timeout + _LATE)
        async with JudgeServer(key, speed=plan.shape.speed, seed=seed, faults=faults, ledger_path=ledger) as server:
            os.write(writing, server.base_url.encode())
            os.close(writing)
            await asyncio.Event().wait()

    process = fork(lambda: asyncio.run(serve()), ledger.with_name("server.out"), ledger.with_name("server.err"))
    os.close(writing)
    try:
        with os.fdopen(reading) as stream:
            yield stream.read()
    finally:
        process.end()


class _Round:
    """One try of a round in its folder."""

    def __init__(self, plan: Plan, rng: random.Random, folder: Path, broken: str | None) -> None:
        self.plan, self.rng, self.folder, self.broken = plan, rng, folder, broken
        self.orders = Orders()
        self.runs: list[Run] = []
        self.problems: list[Broken] = []
        self.inside = False
        self.url = ""
        self.disk = folder / "disk"
        self.disk.mkdir()
        self.mounted = "disk full" in (plan.fault, plan.before) and mount(self.disk)
        self.store = self.disk / "store.duckdb"

    def leave_disk(self, *, keep: bool) -> None:
        """Take the round's own file system off; what is on it is copied where it is to be kept."""
        if not self.mounted:
            return
        if keep:
            shutil.copytree(self.disk, self.folder / "kept")
        unmount(self.disk)

    def play(self, key: AnswerKey, expected: dict[str, str], seed: int) -> Facts:
        """All runs of the round, and what they left."""
        shape, ledger = self.plan.shape, self.folder / "ledger.jsonl"
        with _server(key, self.plan, self.orders, ledger, seed) as self.url:
            files = shape.write(self.folder, self.url, "disk/store.duckdb", self.plan.timeout)
            for place, (file, campaign) in enumerate(zip(files, shape.campaigns, strict=True)):
                self._campaign(file, campaign.name, disturbed=place == self.plan.campaign)
        final = self._look()
        if final is None:
            self.problems.append(Broken(4, "a store that opens at the end", "it does not"))
        rates = {} if final is None or not expected else {name: self._rate(name) for name in expected}
        return Facts(
            entries=read_ledger(ledger),
            runs=self.runs,
            final=final,
            prices=PRICES,
            calls={one.name: one.calls for one in shape.campaigns if one.calls is not None},
            money={one.name: one.money for one in shape.campaigns if one.money is not None},
            tokens={(one.name, None): one.tokens for one in shape.campaigns if one.tokens is not None}
            | {
                (one.name, f"simulated/{JUDGES[0]}@1"): one.of_first
                for one in shape.campaigns
                if one.of_first is not None
            },
            group_rows=shape.group_rows,
            strict=all(one.strict for one in shape.campaigns),
            concurrency=shape.in_flight,
            rates=rates,
            expected=expected,
            problems=self.problems,
        )

    def _campaign(self, file: Path, name: str, *, disturbed: bool) -> None:
        """Run a campaign until it is complete or its budget is reached."""
        if disturbed and self.plan.phase == "recovery":
            self._run(file, name, Trap("calls", "start", self.rng.randint(5, 60)), self.plan.before)
        if disturbed:
            self._run(file, name, self.plan.trap, self.plan.fault)
            if self.plan.fault == "late duplicates":
                self._duplicate()
        if disturbed and self.plan.again:
            self._run(file, name, Trap("calls", "start", self.rng.randint(1, 40)), self.plan.again)
        for _ in range(_MOST_RUNS):
            run = self._run(file, name, None, None)
            if run.code in (0, 2, 3) or not run.ended_in_time:
                return
        self.problems.append(Broken(4, f"{name} complete after {_MOST_RUNS} undisturbed runs", "it is not"))

    def _run(self, file: Path, name: str, trap: Trap | None, fault: str | None) -> Run:
        number = len(self.runs) + 1
        marks = Marks(trap)
        settings = child.Settings(
            self.plan.shape.group_rows,
            self.plan.shape.group_seconds,
            self.folder / f"opened-{number}",
            retry_failed=bool(self.runs) and self.runs[-1].code == 4,
            broken=self.broken,
        )
        out, err = (self.folder / f"run-{number}.{kind}" for kind in ("out", "err"))
        run = Run(name, self._requests())
        deadline = time.monotonic() + _DEADLINE
        process = fork(lambda: child.run(file, settings, marks), out, err)
        undo: Callable[[], None] | None = None
        if fault is not None and process.wait(_DEADLINE, marks.report) is None:
            undo = self._disturb(process, marks, fault, run)
        if process.wait(deadline - time.monotonic()) is None:
            run.ended_in_time = False
        run.code = process.end()
        if undo is not None:
            self._undo(undo)
        run.fault = "SIGKILL" if run.fault == "late duplicates" else run.fault
        run.batch = marks.batch
        run.err = err.read_text(errors="replace")
        run.last = self._requests()
        run.opened = child.read_dump(settings.dump)
        run.after = self._look() if fault is not None else None
        marks.close()
        self.runs.append(run)
        return run

    def _disturb(self, process: Process, marks: Marks, fault: str, run: Run) -> Callable[[], None]:
        trap = marks.trap
        assert trap is not None
        if trap.point == "anywhere":
            time.sleep(self.plan.delay)
        run.fault = "disk dead" if fault == "disk full" and not self.mounted else fault
        run.in_calls = marks.inside("calls") or trap.phase in ("first call", "calls")
        scene = Scene(process, marks, self.orders, self.store, self.mounted, self.rng, self.plan.timeout)
        ordered = self.orders.left
        inside = marks.inside(trap.phase)
        undo = FAULTS[fault](scene)
        if fault in ("SIGKILL", "late duplicates"):
            process.wait(5.0)
            inside = marks.inside(trap.phase)  # nothing moves any more
        elif fault in OF_THE_SERVER:
            inside = inside and (self.orders.left != ordered or trap.phase == "first call")
        if self.plan.trap is trap:
            self.inside = inside
        return undo

    def _undo(self, undo: Callable[[], None]) -> None:
        try:
            undo()
        except AssertionError as error:
            self.problems.append(Broken(5, "a foreign file in the store's place left as it is", str(error)))

    def _requests(self) -> int:
        """How many requests the server has had, once it has none in flight."""
        quiet = 0
        for _ in range(2000):
            with urlopen(self.url.removesuffix("/v1") + "/ledger", timeout=10) as answer:
                totals = json.load(answer)["totals"]
            quiet = quiet + 1 if totals["in_flight"] == 0 else 0
            if quiet == 2:
                return int(totals["requests"])
            time.sleep(0.01 if totals["in_flight"] else 0)
        raise RuntimeError("the judge server does not come to rest")

    def _look(self) -> Dump | None:
        """The committed rows, read from a copy; None where there is no readable store."""
        return answer_of(lambda: child.committed(self.store, self.folder / "copy"))

    def _duplicate(self) -> None:
        answer_of(lambda: child.put_duplicates(self.store, DUPLICATE))

    def _rate(self, campaign: str) -> str:
        words = ["rate", str(self.store), "--campaign", campaign, "--json", "--bootstrap", "20"]
        return _venire(words, self.folder / f"rate-{campaign}")


def _venire(words: list[str], out: Path) -> str:
    """What a command prints, in a process of its own."""

    def body() -> None:
        from venire.cli import main

        sys.argv = ["venire", *words]
        main()

    process = fork(body, out, out.with_suffix(".err"))
    process.wait(_DEADLINE)
    process.end()
    return out.read_text() if out.exists() else ""


def undisturbed(key: AnswerKey, shape: Shape, folder: Path) -> dict[str, str]:
    """The ratings of a shape's campaigns when nobody disturbs them, by campaign; none where a budget ends them.

    Found once and kept in the folder.
    """
    if shape.budgeted:
        return {}
    known = folder / f"{shape.name}.json"
    if not known.exists():
        here = Path(tempfile.mkdtemp(dir=folder))
        (here / "ratings").write_text(json.dumps(answer_of(lambda: _undisturbed(key, shape, here), 60.0)))
        (here / "ratings").replace(known)
        shutil.rmtree(here)
    rates: dict[str, str] = json.loads(known.read_text())
    return rates


def _undisturbed(key: AnswerKey, shape: Shape, folder: Path) -> dict[str, str]:
    plan = Plan("none", "calls", replace(shape, speed=0.0, faults=Faults()), Trap("calls", "start", 1), 0.0, -1, 5.0)
    rated = {one.name: "" for one in shape.campaigns}
    facts = _Round(plan, random.Random(0), folder, None).play(key, rated, 0)
    if any(run.code != 0 for run in facts.runs) or not all(facts.rates.values()):
        raise RuntimeError(f"{shape.name} does not run even undisturbed: {[run.err for run in facts.runs]}")
    return dict(facts.rates)


def play(
    key: AnswerKey,
    number: int,
    folder: Path,
    *,
    seed: int,
    only: str | None = None,
    broken: str | None = None,
    keep: bool = False,
) -> Result:
    """Play a round, drawn again as long as its fault misses its phase; nothing of it is left unless `keep`."""
    begun = time.monotonic()
    for draw in range(MOST_DRAWS):
        plan = Plan.draw(seed, number, draw, only)
        here = folder / f"{number}-{draw}"
        here.mkdir(parents=True)
        with ExitStack() as stack:
            if not keep:
                stack.callback(shutil.rmtree, here, ignore_errors=True)
            one = _Round(plan, random.Random(f"{seed}/{number}/{draw}/round"), here, broken)
            stack.callback(one.leave_disk, keep=keep)
            facts = one.play(key, undisturbed(key, plan.shape, folder), seed)
            found = broken_promises(facts)
        if one.inside or found:
            break
    return Result(
        number,
        plan.fault,
        plan.phase,
        plan.shape.name,
        plan.trap.point,
        one.inside,
        draw + 1,
        time.monotonic() - begun,
        len(facts.entries),
        [run.code for run in facts.runs],
        " and ".join(filter(None, (plan.before, plan.again))),
        found,
        str(here) if keep else None,
    )
