"""What it takes to merge the partitions of a campaign: see README.md in this folder.

`python benchmarks/partitions.py [--rows 1000000] [--partitions 10] [--kinds ranges shards] [--folder FOLDER]`

`ranges`: each partition has the plan, the attempts and the verdicts of its own range of instructions. `shards`: each
has the whole plan, as `venire run --shard` leaves it, and attempts and verdicts of its own trials. A reply has some 350
characters. Partitions are planned by the product, settled in bulk, and merged by the product's own function.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import stores
from resume import memory

from venire.configs.loading import load_campaign
from venire.orchestrator.planning.sharding import Shard, shard_trials
from venire.storage.care.offline import made_empty
from venire.storage.store.connection import ROW_GROUP, make_database, quoted
from venire.storage.store.opening import open_store
from venire.storage.transfer.merging import merge

_MAX_PEAK, _MAX_FLOORS = 4_096.0, 5.0
"""MB, and CPU seconds of the merge over those of the floor: on a machine with other work they vary less."""

_PLANNED = ("trial", "plan", "completion", "instruction")
_KEYED = ("completion", "instruction")
"""Tables with primary keys, which partitions have in common."""

_RESULTS = ("attempt", "verdict")
_KINDS = ("ranges", "shards")


@dataclass(frozen=True, slots=True)
class Measured:
    """One measurement in a process of its own: seconds, MB of its memory at the most, MB on disk."""

    seconds: float
    cpu: float
    """CPU seconds, of all threads."""
    peak: float
    size: float
    scratch: float
    """MB beside the new file at the most, as seen every so often."""
    rows: dict[str, int]


def ranges(folder: Path, partitions: int, rows: int) -> list[Path]:
    """Partitions by range of instructions, each with a plan of its own; those that are there are used."""
    found = []
    for number in range(partitions):
        at = folder / f"range-{number + 1}-of-{partitions}-{rows}"
        if not at.exists():
            made = at.with_suffix(".part")
            shutil.rmtree(made, ignore_errors=True)
            file = stores.make(made, rows, first=number * stores.instructions_of(rows))
            with open_store(load_campaign(file).store) as store:
                stores.settle(store, stores.settled_first(rows), varied=True, steps=[1])
            made.rename(at)
        found.append(at / "campaign.duckdb")
    return found


def shards(folder: Path, partitions: int, rows: int) -> list[Path]:
    """Partitions by shard: each has the whole plan, and about `rows` of its trials are its own."""
    at = folder / f"shards-of-{partitions}-{rows}"
    if not at.exists():
        made = at.with_suffix(".part")
        shutil.rmtree(made, ignore_errors=True)
        whole = load_campaign(stores.make(made, partitions * rows)).store
        for number in range(1, partitions + 1):
            part = Shard(number, partitions)
            shutil.copyfile(whole, part.store(whole))
            with open_store(part.store(whole)) as store:
                store.connection.execute("update store set store_id = gen_random_uuid()")  # planned on its own
                store.connection.execute(f"update round set planned_at = planned_at + to_seconds({number})")
                mine = np.array(sorted(shard_trials(store, 1, part.of, [part.number])))
                stores.settle(store, mine, varied=True, steps=[1])
        whole.unlink()
        made.rename(at)
    return [Shard(number, partitions).store(at / "campaign.duckdb") for number in range(1, partitions + 1)]


def product(paths: Sequence[Path], out: Path) -> dict[str, int]:
    """Merge by the product; rows by kind."""
    return dict(merge(paths, out).rows)


def floor(paths: Sequence[Path], out: Path, *, kind: str) -> dict[str, int]:
    """DuckDB alone copies the rows that the merged store has into tables of its form, and changes none of them."""
    found: dict[str, int] = {}
    with duckdb.connect(":memory:") as connection:
        for setting in (
            "set enable_progress_bar = false",
            "set memory_limit = '1GB'",
            "set threads = 2",
            f"set temp_directory = {quoted(out.with_name('floor-tmp'))}",
        ):
            connection.execute(setting)
        make_database(out)
        connection.execute(f"attach {quoted(out)} as made (row_group_size {ROW_GROUP})")
        made_empty(connection, "made")
        for number, path in enumerate(paths, start=1):
            connection.execute(f"attach {quoted(path)} as s{number} (read_only)")
            for table in (*_PLANNED, *_RESULTS):
                into = f"{table}_without_key" if table in _KEYED else table
                if number == 1 and table in _KEYED:
                    connection.execute(f"create table made.{into} as from s1.{table} limit 0")
                if number == 1 or kind == "ranges" or table in _RESULTS:
                    ((rows,),) = connection.execute(f"insert into made.{into} from s{number}.{table}").fetchall()
                    found[table] = found.get(table, 0) + rows
        connection.execute("checkpoint made")
    return found


def measured(what: str, kind: str, paths: Sequence[Path], out: Path) -> Measured:
    """One measurement; the new file is removed again."""
    words = [sys.executable, __file__, "--only", what, kind, str(out), *map(str, paths)]
    scratch = 0.0
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            while process.poll() is None:
                scratch = max(scratch, _beside(out))
                time.sleep(0.2)
            assert process.stdout is not None
            said = process.stdout.read()
        finally:
            process.kill()
    if process.returncode:
        raise SystemExit(f"partitions: {what} of {kind} ended with {process.returncode}")
    told: dict[str, Any] = json.loads(said)
    size = out.stat().st_size / 1e6
    out.unlink()
    return Measured(told["seconds"], told["cpu"], told["peak"], size, scratch, told["rows"])


def _beside(out: Path) -> float:
    """MB of what is written for a while only: DuckDB's temporary files."""
    found = 0
    for folder in (out.with_name(f".{out.name}.merging"), out.with_name("floor-tmp")):
        for path in folder.rglob("*"):
            try:
                found += path.stat().st_size
            except FileNotFoundError:  # it was removed in the meantime
                continue
    return found / 1e6


def only(what: str, kind: str, out: Path, paths: Sequence[Path]) -> None:
    """One measurement, in this process."""
    start, cpu = time.perf_counter(), time.process_time()
    rows = product(paths, out) if what == "merge" else floor(paths, out, kind=kind)
    told = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}
    sys.stdout.write(json.dumps({**told, "peak": memory("VmHWM"), "rows": rows}))


def show(kind: str, what: str, paths: Sequence[Path], results: int, one: Measured, verdict: str) -> None:
    """Print one line of the table."""
    held = sum(path.stat().st_size for path in paths) / 1e6
    cells = (
        kind,
        what,
        f"{len(paths)} x {results // len(paths):,}",
        f"{one.seconds:.1f}",
        f"{one.cpu:.1f}",
        f"{results / one.seconds:,.0f}",
        f"{one.peak:,.0f}",
        f"{one.scratch:,.0f}",
        f"{held:,.0f}",
        f"{one.size:,.0f}",
        verdict,
    )
    sys.stdout.write(f"| {' | '.join(cells)} |\n")
    sys.stdout.flush()


def compare(kind: str, paths: Sequence[Path], rows: int, scratch: Path) -> bool:
    """Measure floor and merge of these partitions, print both, and say whether the limits hold."""
    results = 2 * rows * len(paths)
    base = measured("floor", kind, paths, scratch / "floor.duckdb")
    show(kind, "DuckDB alone", paths, results, base, "floor")
    made = measured("merge", kind, paths, scratch / "merged.duckdb")
    expected = rows * len(paths)
    found = (made.rows["attempts"], made.rows["verdicts"], base.rows["attempt"], base.rows["verdict"])
    if found != (expected,) * 4:
        raise SystemExit(f"partitions: {found} attempts and verdicts are not {expected} of each")
    ratio = made.cpu / base.cpu
    met = ratio < _MAX_FLOORS and made.peak < _MAX_PEAK
    limits = f"{ratio:.1f} floors of CPU (under {_MAX_FLOORS:g}), under {_MAX_PEAK:,.0f} MB: "
    limits += "met" if met else "**missed**"
    show(kind, "venire store merge", paths, results, made, limits)
    return met


def main() -> int:
    """Make the partitions, measure, print; 1 for a missed limit under `--judge`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000, help="attempts, and verdicts, of each; times 1,000")
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--kinds", nargs="+", choices=_KINDS, default=["ranges"])
    parser.add_argument(
        "--folder", type=Path, help="where partitions are kept for the next time; else they are removed"
    )
    parser.add_argument("--judge", action="store_true", help="end with 1 where a limit is missed")
    parser.add_argument("--only", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        what, kind, out, *paths = given.only
        only(what, kind, Path(out), [Path(path) for path in paths])
        return 0
    if given.rows < 1_000 or given.rows % 1_000 or given.partitions < 2:
        parser.error("--rows takes a multiple of 1,000, and --partitions 2 or more")
    sys.stdout.write(
        "| partitions | by | rows, half attempts | s | CPU s | rows/s | peak MB | MB of scratch | before | after | |\n"
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|\n"
    )
    met = True
    with tempfile.TemporaryDirectory(prefix="venire-bench-", dir=given.folder) as scratch:
        folder = given.folder or Path(scratch)
        for kind in given.kinds:
            paths = {"ranges": ranges, "shards": shards}[kind](folder, given.partitions, given.rows)
            met = compare(kind, paths, given.rows, Path(scratch)) and met
    return 1 if given.judge and not met else 0


if __name__ == "__main__":
    raise SystemExit(main())
