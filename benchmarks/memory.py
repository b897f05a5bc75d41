"""Memory and CPU of a large campaign's run; started manually since it takes long: see README.md in this folder.

`python benchmarks/memory.py [--trials 1000000] [--protocol two-stage] [--in-flight 256] [--folder FOLDER]` prints the
peak of the process's resident memory, its slope over the second half of the calls, and the CPU time per call in the
second half of the first 10,000, 100,000 and 1,000,000 calls. Planning is part of the run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import upstream
from material import Judge, write_campaign
from measuring import HERE, Endpoint, checked, finish
from resume import memory

_MOST_PEAK, _MOST_SLOPE = 600.0, 5.0
"""MB, and MB per 100,000 calls."""


def watch(client: subprocess.Popen[str], at: Endpoint, seconds: float) -> list[tuple[int, float, float]]:
    """Calls at the endpoint, MB of the client's resident memory and its CPU seconds, every `seconds` until it ends."""
    seen: list[tuple[int, float, float]] = []
    while client.poll() is None:
        try:
            seen.append((upstream.counts(at.url)["calls"], memory("VmRSS", client.pid), _cpu(client.pid)))
        except (FileNotFoundError, IndexError):  # it ended in the meantime
            break
        time.sleep(seconds)
    return seen


def _cpu(process: int) -> float:
    """CPU seconds of a process, over all its threads."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_of_a_call(seen: list[tuple[int, float, float]]) -> dict[int, float]:
    """Milliseconds of CPU per call in the second half of the first 10,000, 100,000 and 1,000,000 calls."""
    calls, _, cpu = np.array([one for one in seen if one[0]]).T
    ends = [end for end in (10_000, 100_000, 1_000_000) if end <= calls[-1] * 1.01]
    taken = {end: np.interp(end, calls, cpu) - np.interp(end / 2, calls, cpu) for end in ends}
    return {end: float(1000 * seconds / (end / 2)) for end, seconds in taken.items()}


def slope(seen: list[tuple[int, float, float]]) -> float:
    """MB per 100,000 calls over the second half of the calls, by least squares."""
    late = np.array([one for one in seen if one[0] > seen[-1][0] / 2])
    return float(np.polyfit(late[:, 0], late[:, 1], 1)[0] * 100_000)


def main() -> int:
    """Run the campaign once; returns 1 if it exceeded the memory limit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=1_000_000)
    parser.add_argument("--protocol", default="two-stage", help="its name in a campaign file")
    parser.add_argument("--in-flight", type=int, default=256)
    parser.add_argument(
        "--folder", type=Path, help="where the campaign is made: it takes some GB; else a temporary one"
    )
    given = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    with (
        tempfile.TemporaryDirectory(dir=given.folder) as scratch,
        upstream.running(0.02, spread=0.0, core=cores[-1]) as url,
    ):
        at = Endpoint(url)
        folder = Path(scratch) / "campaign"
        judges = [Judge("judge", url, given.in_flight)]
        write_campaign(folder, judges, given.trials, models=20, protocol=given.protocol)
        command = [sys.executable, str(HERE / "engine.py"), str(folder)]
        pin = partial(os.sched_setaffinity, 0, {cores[0]})
        client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=pin)
        seen = watch(client, at, 0.5)
        run = checked(finish(client, at))
    peak, rise = run.told["peak"], slope(seen)
    asked = max(one[1] for one in seen if one[0])
    cpu = ", ".join(f"{ms:.3f} up to the {end:,}th" for end, ms in cpu_of_a_call(seen).items())
    met = peak < _MOST_PEAK and rise < _MOST_SLOPE
    sys.stdout.write(
        f"{given.protocol}: {run.told['plan']:,} trials, {run.calls:,} calls, {run.most} in flight at the most\n"
        f"peak {peak:.0f} MB, {asked:.0f} MB from the first call on (under {_MOST_PEAK:g}); slope over the second half "
        f"{rise:.2f} MB for 100,000 calls (under {_MOST_SLOPE:g}): {'met' if met else 'missed'}\n"
        f"CPU ms a call: {cpu}\n"
    )
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
