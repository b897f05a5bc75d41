"""`python -m tests.torture`: rounds of torture, a line each, and a table. Exit code 1 for a broken promise."""

from __future__ import annotations

import argparse
import gc
import json
import os
import pickle
import select
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from tests.torture import alone, child, rig
from tests.torture.faults import FAULTS
from tests.torture.marks import PHASES
from tests.torture.plan import Plan
from tests.torture.processes import Process, fork
from tests.torture.promises import Broken
from tests.torture.shapes import SHAPES
from venire.configs.loading import load_campaign
from venire.embedded import answer_key
from venire.simulation.answer_key import AnswerKey

T = TypeVar("T")
_PATIENCE = 150.0
"""Seconds after which a round is given up."""


def main() -> int:
    """Play the rounds that were asked for; returns the exit code."""
    asked = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that processes and folders go all the same
    _import_everything()
    folder = Path(tempfile.mkdtemp(prefix="venire-torture-"))
    try:
        key = _key(folder / "key")
        begun = time.monotonic()
        numbers = [asked.round] if asked.round else range(1, asked.rounds + 1)
        options = {"seed": asked.seed, "only": asked.only, "broken": asked.broken, "keep": asked.keep}
        rounds = {number: partial(rig.play, key, number, folder, **options) for number in numbers}
        results = []
        for number, played in _pool(rounds, asked.jobs):
            result: rig.Result = played or _failed(number, asked)
            results.append(result)
            if not asked.json:
                _say(_line(result, asked))
        results.sort(key=lambda one: one.number)
        if asked.json:
            _say(json.dumps([asdict(one) for one in results]))
        else:
            _say(_table(results))
            _say(f"{len(results)} rounds in {time.monotonic() - begun:.0f} s, seed {asked.seed}")
        return int(any(one.broken for one in results))
    finally:
        gc.unfreeze()
        if asked.keep:
            sys.stderr.write(f"kept: {folder}\n")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    names = [*FAULTS, *PHASES, *(shape.name for shape in SHAPES)]
    parser.add_argument("--only", choices=names, help="one fault, one phase or one shape of campaign alone")
    parser.add_argument("--round", type=int, help="this round alone")
    parser.add_argument("--jobs", type=int, default=2, help="rounds at a time")
    parser.add_argument("--broken", choices=child.BROKEN, help="a build with one promise broken on purpose")
    parser.add_argument("--json", action="store_true", help="the results as JSON, and nothing else")
    parser.add_argument("--keep", action="store_true", help="leave the folders of the rounds")
    return parser.parse_args()


def _import_everything() -> None:
    """What the children import when they need it is imported once, here."""
    for name in (
        "duckdb",
        "scipy.optimize",
        "uvloop",
        "venire.cli",
        "venire.reports.board.build",
        "venire.render.outcome",
    ):
        import_module(name)
    gc.collect()
    gc.freeze()
    alone.check()


def _key(folder: Path) -> AnswerKey:
    folder.mkdir()
    path = SHAPES[0].write(folder, "http://127.0.0.1:9/v1", "store.duckdb", 1.0)[0]
    return answer_key(load_campaign(path))


def _pool(tasks: Mapping[T, Callable[[], object]], jobs: int) -> Iterator[tuple[T, Any]]:
    """Run functions in processes of their own, some at a time; what each returned, or None, as they end."""
    waiting = list(tasks.items())[::-1]
    running: dict[int, tuple[T, Process, float]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < max(1, jobs):
                name, body = waiting.pop()
                reading, process = _start(body)
                running[reading] = (name, process, time.monotonic() + _PATIENCE)
            ready, _, _ = select.select(list(running), [], [], 1.0)
            late = [one for one, (_, _, deadline) in running.items() if time.monotonic() > deadline]
            for reading in {*ready, *late}:
                name, process, _ = running.pop(reading)
                yield name, _returned(reading, process)
    finally:
        for reading, (_, process, _) in running.items():
            os.close(reading)
            process.end()


def _start(body: Callable[[], object]) -> tuple[int, Process]:
    reading, writing = os.pipe()

    def tell() -> None:
        value = body()
        with os.fdopen(writing, "wb") as stream:
            pickle.dump(value, stream)

    process = fork(tell)
    os.close(writing)
    return reading, process


def _returned(reading: int, process: Process) -> Any:
    os.set_blocking(reading, False)
    said = b""
    try:
        while piece := os.read(reading, 1 << 20):
            said += piece
    except BlockingIOError:
        pass  # given up: it is still at work
    finally:
        os.close(reading)
    process.wait(5.0)
    return pickle.loads(said) if process.end() == 0 and said else None


def _failed(number: int, asked: argparse.Namespace) -> rig.Result:
    plan = Plan.draw(asked.seed, number, 0, asked.only)
    problem = Broken(0, "a round that ends", "the rig itself failed")
    return rig.Result(number, plan.fault, plan.phase, plan.shape.name, "", False, 0, 0.0, broken=[problem])


def _line(result: rig.Result, asked: argparse.Namespace) -> str:
    outcome = "kept" if result.inside else "missed its phase"
    if result.broken:
        outcome = "BROKEN " + ", ".join(sorted({str(one.number) for one in result.broken}))
    codes = " ".join(map(str, result.runs))
    line = (
        f"{result.number:4} {result.fault:16} {result.phase:10} {result.point:8} {result.shape:14} "
        f"{result.requests:4} requests, exits {codes:12} {result.seconds:4.1f} s  {outcome}"
        + (f"  (and {result.others})" if result.others else "")
    )
    if not result.broken:
        return line
    again = ["python", "-m", "tests.torture", "--seed", str(asked.seed), "--round", str(result.number)]
    again += ["--only", asked.only] if asked.only else []
    again += ["--broken", asked.broken] if asked.broken else []
    told = [f"       promise {one.number}: expected {one.expected}; seen: {one.seen}" for one in result.broken]
    return "\n".join([line, *told, f"       again: {shlex.join(again)}"])


def _table(results: list[rig.Result]) -> str:
    """Rounds whose fault fell into its phase, by fault and phase; broken ones behind a stroke."""
    inside = Counter((one.fault, one.phase) for one in results if one.inside)
    broken = Counter((one.fault, one.phase) for one in results if one.broken)
    head = f"{'fault':16}" + "".join(f"{phase:>12}" for phase in PHASES)
    lines = ["", head]
    for fault in FAULTS:
        cells = [_cell(inside[fault, phase], broken[fault, phase]) for phase in PHASES]
        if any(cells):
            lines.append(f"{fault:16}" + "".join(f"{cell:>12}" for cell in cells))
    sums = [
        _cell(sum(inside[fault, phase] for fault in FAULTS), sum(broken[fault, phase] for fault in FAULTS))
        for phase in PHASES
    ]
    lines.append(f"{'together':16}" + "".join(f"{cell:>12}" for cell in sums))
    lines.append("rounds whose fault fell inside the phase, as the process itself marked it / with a broken promise")
    lines += [
        f"promise {number}: broken in {sum(any(b.number == number for b in one.broken) for one in results)} rounds"
        for number in range(1, 6)
    ]
    return "\n".join(lines)


def _cell(inside: int, broken: int) -> str:
    if not inside and not broken:
        return ""
    return f"{inside}" + (f" / {broken}" if broken else "")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
