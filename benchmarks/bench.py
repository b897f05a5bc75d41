"""The engine compared with bare clients and other tools, at equal numbers of calls: see README.md in this folder.

`python benchmarks/bench.py [--rows NAME ...] [--rounds 5] [--judge]`, or `--quick` for the first row in brief.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from measuring import Bench, Failed
from rows import ROWS, in_brief
from table import HEAD
from upstream import Missing

_DONE, _MISSED, _VOID = 0, 1, 2


def measure(bench: Bench, names: Sequence[str], rounds: int) -> int:
    """Print the lines of these rows; a row that cannot be measured is reported and left out."""
    ending = _DONE
    for name in names:
        try:
            for line in ROWS[name](bench, rounds):
                _say(line.show() + "\n")
                if line.disturbed and line.least is not None:
                    sys.stderr.write(f"bench: row {name} is not judged: other work was on the client's core\n")
                    ending = _VOID
                ending = max(ending, _DONE if line.met else _MISSED)
        except Missing as missing:
            sys.stderr.write(f"bench: row {name} is left out: {missing}\n")
        except Failed as failed:
            sys.stderr.write(f"bench: row {name} is void: {failed}\n")
            ending = _VOID
    return ending


def main() -> int:
    """Measure rows and print the table; 2 where a row cannot be judged, 1 for a missed target under `--judge`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--rounds", type=int, default=5, help="how often each yardstick and its subject are run")
    parser.add_argument("--judge", action="store_true", help="end with 1 where a target is missed")
    parser.add_argument("--quick", action="store_true", help="only the first row, with few calls and once")
    given = parser.parse_args()
    if len(os.sched_getaffinity(0)) < 2:
        sys.stderr.write("bench: there is one core only: client and endpoint share it, and the ratios say little\n")
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="venire-bench-") as scratch:
        bench = Bench(Path(scratch))
        _say(HEAD)
        if given.quick:
            try:
                _say(in_brief(bench).show() + "\n")
            except (Failed, Missing) as error:
                sys.stderr.write(f"bench: {error}\n")
                return _VOID
            return _DONE
        ending = measure(bench, given.rows, given.rounds)
    _say(f"\n{given.rounds} rounds of each row in {(time.monotonic() - start) / 60:.1f} minutes\n")
    return ending if given.judge or ending == _VOID else _DONE


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
