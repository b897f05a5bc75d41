"""The engine beside bare clients and other tools, at equal numbers of calls: see README.md in this folder.

`python benchmarks/bench.py [--rows NAME ...] [--pairs 5] [--judge]`, or `--quick` for the first row in brief.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from measuring import Bench, Failed, Run, Spread
from upstream import Missing

__all__ = ["main"]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: a figure with its spread, and what it should be."""

    what: str
    calls: int
    in_flight: int
    ratio: Spread
    cpu: Spread | None = None
    least: float | None = None
    note: str = ""

    @property
    def met(self) -> bool:
        """Whether the target is reached, where there is one."""
        return self.least is None or self.ratio.median >= self.least

    def show(self) -> str:
        """The line in Markdown."""
        target = "" if self.least is None else f"at least {self.least:g}: {'met' if self.met else 'missed'}"
        cells = (
            self.what,
            f"{self.calls:,}",
            f"{self.in_flight:,}",
            self.ratio.show(),
            self.cpu.show() if self.cpu else "",
            target,
            self.note,
        )
        return f"| {' | '.join(cells)} |"


HEAD = (
    "| what, against what | calls | in flight | ratio of calls/s | ratio of CPU a call | target for calls/s "
    "| CPU ms a call, in flight at the endpoint |\n"
    "|---|---:|---:|---|---|---|---|\n"
)


def compare(
    what: str, calls: int, in_flight: int, base: list[Run], subject: list[Run], least: float | None = None
) -> Line:
    """A line for runs that were made in pairs."""
    pairs = list(zip(base, subject, strict=True))
    ratio = Spread(tuple(two.rate / one.rate for one, two in pairs))
    cpu = Spread(tuple(one.cpu_ms / two.cpu_ms for one, two in pairs))
    middle = [Spread(tuple(run.cpu_ms for run in runs)).median for runs in (base, subject)]
    seen = min(run.most for run in subject)
    return Line(what, calls, in_flight, ratio, cpu, least, f"{middle[1]:.3f} against {middle[0]:.3f}, {seen}")


def saturated(bench: Bench, rounds: int) -> Iterator[Line]:
    """The whole engine against the yardstick, 20 ms and 256 in flight, and the same without its parts."""
    calls, in_flight, latency = 20_000, 256, 0.02
    parts = ("store", "journal", "limiter")
    base: list[Run] = []
    found: dict[str, list[Run]] = {name: [] for name in ("", *parts)}
    for _ in range(rounds):
        base.append(bench.yardstick(calls, in_flight, latency))
        for part, runs in found.items():
            runs.append(bench.engine(calls, in_flight, latency, *(["--without", part] if part else [])))
    yield compare("engine, yardstick: 20 ms", calls, in_flight, base, found[""], 0.65)
    pairs_made = zip(base, found[""], strict=True)
    whole = Spread(tuple(one.seconds / run.told["whole"] for one, run in pairs_made))
    yield Line("the same with import of the data and planning", calls, in_flight, whole)
    for part in parts:
        yield compare(f"the same, {part} off", calls, in_flight, base, found[part])


def in_brief(bench: Bench) -> Line:
    """The first row with few calls, once."""
    calls, in_flight, latency = 4_000, 256, 0.02
    base, run = bench.yardstick(calls, in_flight, latency), bench.engine(calls, in_flight, latency)
    return compare("engine, yardstick: 20 ms, in brief", calls, in_flight, [base], [run])


ROWS: dict[str, Callable[[Bench, int], Iterator[Line]]] = {"saturated": saturated}
"""Every row by its name, in the order of the table."""


def main() -> int:
    """Measure the rows asked for and print the table; 1 where a target is missed under `--judge`, 2 for no figure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--pairs", type=int, default=5, help="how often each yardstick and its subject are run")
    parser.add_argument("--judge", action="store_true", help="end with 1 where a target is missed")
    parser.add_argument("--quick", action="store_true", help="only the first row, with few calls and once")
    given = parser.parse_args()
    start = time.monotonic()
    met = True
    try:
        with tempfile.TemporaryDirectory(prefix="venire-bench-") as scratch:
            bench = Bench(Path(scratch))
            _say(HEAD)
            if given.quick:
                _say(in_brief(bench).show() + "\n")
                return 0
            for name in given.rows:
                for line in ROWS[name](bench, given.pairs):
                    met = met and line.met
                    _say(line.show() + "\n")
    except (Failed, Missing) as error:
        sys.stderr.write(f"bench: {error}\n")
        return 2
    _say(f"\nmeasured in {(time.monotonic() - start) / 60:.0f} minutes\n")
    return 0 if met or not given.judge else 1


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
