"""Ratings from pairs compared with other libraries, each in a separate environment: see README.md one folder up.

`python benchmarks/ratings/bench.py [--rows NAME ...] [--scale 1.0] [--judge] [--folder FOLDER]`
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from lines import HEAD
from rows import ROWS, Bench
from running import Failed

_DONE, _MISSED, _VOID = 0, 1, 2
_ALONE = 1.5
"""The five-minute load average up to which the benchmark counts as undisturbed."""


def measure(bench: Bench, names: list[str]) -> int:
    """Print the lines of these rows; a row that cannot be measured is reported and left out."""
    ending = _DONE
    for name in names:
        try:
            for found in ROWS[name](bench):
                line = replace(found, judged=bench.scale == 1.0)
                _say(line.show() + "\n")
                ending = max(ending, _DONE if line.met else _MISSED)
        except Failed as failed:
            sys.stderr.write(f"bench: row {name} is void: {failed}\n")
            ending = _VOID
    return ending


def main() -> int:
    """Measure rows and print the table; 2 where a row is void, 1 for a missed target under `--judge`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--scale", type=float, default=1.0, help="share of the rows of every table, to try things out")
    parser.add_argument("--judge", action="store_true", help="end with 1 where a target is missed")
    parser.add_argument("--folder", type=Path, help="keep the tables here for the next time")
    given = parser.parse_args()
    if not 0.0 < given.scale <= 1.0:
        parser.error("--scale: give a share above 0, at most 1")
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})  # children inherit it
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="venire-bench-") as scratch:
        folder = given.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        _say(HEAD)
        ending = measure(Bench(folder, given.scale), given.rows)
    _say(f"\none run on one core in {(time.monotonic() - start) / 60:.1f} minutes\n")
    load = os.getloadavg()[1]
    if load > _ALONE:
        sys.stderr.write(
            f"bench: other work ran beside this (load {load:.1f}): it takes cache and memory from what reads "
            "millions of rows, so the ratios say less\n"
        )
    return ending if given.judge or ending == _VOID else _DONE


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
