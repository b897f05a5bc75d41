"""Time and memory for a resumption to find the missing trials: see README.md in this folder.

`python benchmarks/resume.py [--trials N ...] [--repeats 3] [--folder FOLDER]`
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import stores
import upstream

_STEPS = ("open", "plan", "progress", "accounts", "forecast", "pending", "load")


def memory(name: str, process: int | str = "self") -> float:
    """`VmRSS` or `VmHWM` of a process in MB; getrusage would include the process that started it."""
    text = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(text.split(f"{name}:")[1].split()[0]) / 1024


def resume(folder: Path) -> dict[str, Any]:
    """The steps of a resumption until its first trials are available; in a separate process."""
    from venire import session  # the imports of a run
    from venire.configs.loading import load_campaign
    from venire.orchestrator.planning.plan import plan_campaign
    from venire.storage.plans import trial_states
    from venire.storage.read import frames
    from venire.storage.store.opening import open_store

    imported = memory("VmRSS")
    assert session
    campaign = load_campaign(folder / stores.CAMPAIGN)
    seconds: dict[str, float] = {}
    start = time.perf_counter()

    def lap(step: str) -> None:
        nonlocal start
        seconds[step], start = time.perf_counter() - start, time.perf_counter()

    with open_store(campaign.store, create=False) as store:
        lap("open")
        planned = plan_campaign(store, campaign)
        lap("plan")
        progress = frames.progress(store, planned.id)
        lap("progress")
        frames.campaign_spending(store, planned.id)
        lap("accounts")
        trial_states.pending_texts(store, planned.id)
        lap("forecast")
        left = trial_states.pending_trials(store, planned.id)
        lap("pending")
        loaded = trial_states.load(store, left.trials[:500]) if len(left.trials) else []
        lap("load")
        assert progress.missing == len(left.trials) >= len(loaded)
        return {
            "missing": progress.missing,
            "seconds": seconds,
            "imported": imported,
            "kept": memory("VmRSS"),
            "peak": memory("VmHWM"),
        }


def floor(folder: Path) -> dict[str, Any]:
    """DuckDB alone reads the trials of the plan and of the verdicts as NumPy, in a separate process."""
    import duckdb

    connection = duckdb.connect(str(folder / "campaign.duckdb"), read_only=True)
    start = time.perf_counter()
    for table in ("plan", "verdict"):
        connection.execute(f"select trial from {table}").fetchnumpy()
    return {"seconds": time.perf_counter() - start, "peak": memory("VmHWM")}


def first_call(folder: Path) -> dict[str, Any]:
    """`venire run` from its start until its first call has arrived."""
    with upstream.running(30.0) as url:
        file = stores.readdress(folder, url)
        command = [sys.executable, "-m", "venire", "run", str(file), "--yes"]
        start = time.time()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                while not (found := upstream.counts(url))["calls"] and process.poll() is None:
                    time.sleep(0.02)
                return {"seconds": found["first"] - start, "peak": memory("VmHWM", process.pid)}
            finally:
                process.kill()


def table(trials: int, folder: Path, repeats: int, scratch: Path) -> None:
    """Print one row per shape of a store of that size."""
    for shape, source in stores.shapes(folder, trials).items():
        found: dict[str, list[dict[str, Any]]] = {"resume": [], "floor": [], "run": []}
        for _ in range(repeats):
            for what, into in found.items():
                copy = scratch / "copy"
                shutil.copytree(source, copy)
                if what == "run":
                    if shape not in ("all", "killed"):  # setting the address would fold the log into the store
                        into.append(first_call(copy))
                else:
                    if what == "floor" and shape == "killed":  # its data is in the log: fold it in first
                        _in_process("resume", copy)
                    into.append(_in_process(what, copy))
                shutil.rmtree(copy)
        _print_row(trials, shape, found)


def _print_row(trials: int, shape: str, found: dict[str, list[dict[str, Any]]]) -> None:
    resumed = found["resume"]
    least = median(one["seconds"] for one in found["floor"])
    steps = "".join(f"{median(one['seconds'][step] for one in resumed):9.3f}" for step in _STEPS)
    whole = [sum(one["seconds"].values()) for one in resumed]
    peak = [one["peak"] for one in resumed]
    imported = median(one["imported"] for one in resumed)
    run = "         -         -"
    if found["run"]:
        run = f"{_spread([one['seconds'] for one in found['run']], 1)}{_spread([one['peak'] for one in found['run']])}"
    sys.stdout.write(
        f"{trials:>9,} {shape:>7} {resumed[0]['missing']:>9,}{steps} {_spread(whole, 2)} {median(whole) / least:7.1f}"
        f" {imported:6.0f} {_spread(peak)} {median(peak) / imported:6.2f} {run}\n"
    )
    sys.stdout.flush()


def _spread(values: list[float], digits: int = 0) -> str:
    """Median and range."""
    return f" {median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def _in_process(what: str, folder: Path) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, "--only", what, str(folder)], stdout=subprocess.PIPE, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main() -> None:
    """Create missing stores, measure, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where stores are kept for the next time; else they are removed")
    parser.add_argument("--only", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        what, folder = given.only
        sys.stdout.write(json.dumps({"resume": resume, "floor": floor}[what](Path(folder))))
        return
    steps = "".join(f"{step:>9}" for step in _STEPS)
    sys.stdout.write(
        "seconds and MB, median (range); floor: DuckDB alone reads the trials of plan and verdicts\n"
        f"   trials settled   missing{steps}  together       x floor import  peak        x import  first call: s, MB\n"
    )
    with tempfile.TemporaryDirectory() as scratch:
        for trials in given.trials:
            table(trials, given.folder or Path(scratch) / "stores", given.repeats, Path(scratch))


if __name__ == "__main__":
    main()
