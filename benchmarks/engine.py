"""The whole engine on one campaign, through the session that `venire run` uses. One measurement per process.

`python benchmarks/engine.py FOLDER [--without store|journal|limiter] [--profile FILE]` prints its measurements as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvloop
from material import CAMPAIGN
from resume import memory
from sampling import Sampler, threads

from venire.arena.battles import Statistics
from venire.configs.loading import load_campaign
from venire.judges.providers.openai import OpenAIProvider
from venire.orchestrator.lanes.gate import Gate, Permit
from venire.orchestrator.lanes.windows import Load, Slice
from venire.session import Session
from venire.storage.store.journal import Journal
from venire.storage.store.writer import Writer


def _pass(gate: Gate, load: Load) -> Permit:
    """A permit at once, without checking any limit."""
    return Permit(load, 0.0, Slice(0.0), 0)


def _nothing(*_: object, **__: object) -> int:
    return 0


PARTS: dict[str, dict[tuple[type, str], Callable[..., Any]]] = {
    "store": {(Writer, "_commit"): _nothing},
    "journal": {(Journal, name): _nothing for name in ("announce", "settle", "release", "withdraw")},
    "limiter": {(Gate, "take_now"): _pass, (Gate, "done"): _nothing, (Gate, "release"): _nothing},
}
"""Replacements of parts to measure their cost, in this process only: the product does not have these switches.

Without the store, rows are still built, grouped and passed to the writer's thread; nothing is committed.
"""


def leave_out(part: str) -> None:
    """Replace one part by a no-op. Raises AttributeError if the product no longer has its method."""
    for (owner, name), instead in PARTS[part].items():
        getattr(owner, name)
        setattr(owner, name, instead)


def count_calls() -> Callable[[], int]:
    """Count the calls in flight at a provider; returns a function that gives their maximum."""
    now = most = 0
    send = OpenAIProvider.send

    async def counted(self: OpenAIProvider, *arguments: Any, **named: Any) -> Any:
        nonlocal now, most
        now += 1
        most = max(most, now)
        try:
            return await send(self, *arguments, **named)
        finally:
            now -= 1

    OpenAIProvider.send = counted  # type: ignore[method-assign]
    return lambda: most


def run(folder: Path) -> dict[str, Any]:
    """Plan the campaign and run all of it."""
    busy: dict[str, float] = {}
    most = count_calls()

    def see(now: Statistics) -> None:
        busy.update(threads())

    start = time.perf_counter()
    with Session(load_campaign(folder / CAMPAIGN)) as session:
        planned = time.perf_counter()
        cpu = time.process_time()
        summary = session.run(progress=see, loop_factory=uvloop.new_event_loop)
        found = {"ended": time.time(), "cpu": time.process_time() - cpu}  # the last row is on disk
        found |= {"planning": planned - start, "whole": time.perf_counter() - start}
        rows = {
            name: session.store.connection.execute(f"select count(*) from {name}").fetchone()[0]  # type: ignore[index]
            for name in ("plan", "attempt", "verdict")
        }
    tail = {
        "calls": summary.statistics.calls,
        "most_sent": most(),
        "threads": busy,
        "peak": memory("VmHWM"),
        "ending": summary.ending.name,
    }
    return {**found, **rows, **tail}


def main() -> None:
    """Measure once."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--without", choices=PARTS)
    parser.add_argument("--profile", type=Path)
    given = parser.parse_args()
    if given.without:
        leave_out(given.without)
    sampler = Sampler() if given.profile else None
    found = run(given.folder)
    if sampler is not None:
        given.profile.write_text(f"{sampler.stop()}\nCPU seconds by thread: {found['threads']}\n", encoding="utf-8")
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
