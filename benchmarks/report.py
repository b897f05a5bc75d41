"""How long the report of a large store takes, and how large its file is: 50 models and 100,000 verdicts.

Prints a line for each with its aim; `--judge` ends with 1 where one is missed. The command is run as a process of its
own, so that its start counts.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import stores

from venire.configs.loading import load_campaign
from venire.storage.store.opening import open_store

AIM_SECONDS, AIM_MB = 20.0, 3.0
MODELS, MATCHUPS = 50, 100


def main() -> int:
    """Measure and print; 1 for a missed aim under `--judge`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=100_000, help="verdicts of the store, a multiple of 1,000")
    parser.add_argument("--judge", action="store_true", help="end with 1 where an aim is missed")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="venire-bench-") as scratch:
        file = stores.make(Path(scratch) / "store", given.trials, models=MODELS, matchups=MATCHUPS)
        with open_store(load_campaign(file).store) as store:
            stores.settle(store, stores.settled_first(given.trials), varied=True)
        out = Path(scratch) / "report.html"
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "venire", "report", str(file), "-o", str(out)], check=True)
        seconds, size = time.perf_counter() - start, out.stat().st_size / 1e6
    sys.stdout.write(
        f"report of {MODELS} models and {given.trials:,} verdicts: {seconds:.1f} s (aim: under {AIM_SECONDS:g}), "
        f"{size:.2f} MB (aim: under {AIM_MB:g})\n"
    )
    missed = seconds >= AIM_SECONDS or size >= AIM_MB
    return 1 if missed and given.judge else 0


if __name__ == "__main__":
    raise SystemExit(main())
